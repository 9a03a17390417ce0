//! Documents made from the tables they document; `FAULTSCOPE_WRITE_DOCS=1` rewrites them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use faultscope::model::finding::RULES;
use faultscope::model::{Kind, TableId, field};
use faultscope::tui::keys_markdown;

fn doc(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name)
}

fn check(name: &str, made: &str) {
    let path = doc(name);
    if std::env::var_os("FAULTSCOPE_WRITE_DOCS").is_some() {
        std::fs::write(&path, made).expect("docs are writable");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/{name} is stale; run the tests once with FAULTSCOPE_WRITE_DOCS=1 and commit it"
    );
}

#[test]
fn metrics_list_every_table_and_field() {
    let mut made = String::from(
        "# Metrics\n\nEvery table of `top` and every field, made from the field catalogue. Counters are increments over the \
         interval;\nin JSON and CSV the rate stands beside them as `<id>_per_sec`. An absent value is a dash, `null`, or an empty \
         cell.\n\n## Tables\n\n| `--view` | tab | shows | fields |\n|---|---|---|---|\n",
    );
    for table in TableId::ALL {
        let fields: Vec<_> = table
            .fields()
            .iter()
            .map(|f| format!("`{}`", f.id))
            .collect();
        writeln!(
            made,
            "| `{}` | {} | {} | {} |",
            table.id(),
            table.view().title(),
            table.description(),
            fields.join(" ")
        )
        .expect("writing to a string");
    }
    made.push_str(
        "\n## Fields\n\n| id | kind | unit | signal | meaning |\n|---|---|---|---|---|\n",
    );
    for f in field::ALL {
        let kind = match f.kind {
            Kind::Key => "key",
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let unit = format!("{:?}", f.unit).to_lowercase();
        writeln!(
            made,
            "| `{}` | {kind} | {unit} | {} | {} |",
            f.id, f.signal, f.description
        )
        .expect("writing to a string");
    }
    check("metrics.md", &made);
}

#[test]
fn keys_are_those_of_the_key_table() {
    check(
        "keys.md",
        &format!(
            "# Keys of `top`\n\nMade from the key table; `?` shows the same.\n\n{}",
            keys_markdown()
        ),
    );
}

#[test]
fn findings_are_those_of_the_table_of_rules() {
    let mut made = String::from(
        "# Findings\n\nRules over the numbers of one interval, or of a whole recording; made from the table of rules. `top` shows what \
         they\nfound in the Overview, and in full with `--view findings`; in JSON lines they stand under `findings` whatever the view, \
         each\nwith `id`, `title`, `text`, `evidence` (numbers under keys that end in their unit) and `next`.\n\nA rule whose signal is \
         missing says nothing: that a finding is absent does not mean that its cause is. `--view findings`\nattaches every probe that \
         a rule needs; among them is the pair for madvise, which slows every system call.\n",
    );
    for rule in RULES {
        write!(
            made,
            "\n## {}\n\n| | |\n|---|---|\n| id | `{}` |\n| shown when | {} |\n| why there | {} |\n| needs | {} |\n| next | `{}` |\n",
            rule.title, rule.id, rule.threshold, rule.reason, rule.needs, rule.next
        )
        .expect("writing to a string");
    }
    check("findings.md", &made);
}
