//! `docs/kernels.md`: which kernel gives what, as the tests found it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::report::Report;

/// The document.
const FILE: &str = "docs/kernels.md";

/// Kernels in the order of the columns; the last is no guest but the machine it was written on.
const COLUMNS: [&str; 4] = ["6.1", "6.12", "6.12-rt", "6.18"];

/// A cell that no test stated, because it cannot run there.
const UNSTATED: &str = "-";

const HEAD: &str = "# Kernels

Written by `cargo xtask vm --write-docs` from what the kernel tests found; do not edit. 6.1, 6.12 and 6.12-rt are Debian's
kernels in QEMU, and every run of `cargo xtask vm` holds their columns against its own results. The last column is a
microVM guest kernel on real hardware, without kprobes and without programs on functions.

";

/// What a column was made from.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) release: String,
    pub(crate) report: Report,
}

impl Column {
    /// A column for the running kernel; nothing if the document has none for it.
    pub(crate) fn of_host(report: Report) -> Option<Self> {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
        let release = release.trim().to_owned();
        let host = COLUMNS.into_iter().next_back()?;
        let is_it = release
            .strip_prefix(host)
            .is_some_and(|rest| rest.starts_with('.'));
        is_it.then_some(Self {
            name: host,
            release,
            report,
        })
    }
}

/// Writes the document; needs results of every kernel.
pub(super) fn write(root: &Path, columns: &[Column]) -> Result<()> {
    let missing: Vec<&str> = COLUMNS
        .into_iter()
        .filter(|name| !columns.iter().any(|column| column.name == *name))
        .collect();
    if !missing.is_empty() {
        bail!(
            "\"{FILE}\" needs results of {} too; run the whole matrix, on a machine with that kernel",
            missing.join(", ")
        );
    }
    let path = root.join(FILE);
    fs::write(&path, render(columns)).with_context(|| format!("writing \"{}\"", path.display()))?;
    println!("vm: {FILE} is written");
    Ok(())
}

/// What differs between the results and the committed document, a sentence each.
pub(super) fn complaints(root: &Path, columns: &[Column]) -> Vec<String> {
    match fs::read_to_string(root.join(FILE)) {
        Ok(text) => compare(&parse(&text), columns),
        Err(error) => vec![format!(
            "\"{FILE}\" cannot be read ({error}); write it by `cargo xtask vm --write-docs`"
        )],
    }
}

/// Cells by row and column, without those that have a dash.
type Cells = BTreeMap<(String, String), bool>;

fn compare(written: &Cells, columns: &[Column]) -> Vec<String> {
    let mut complaints = Vec::new();
    for column in columns {
        let name = column.name;
        for (row, has) in &column.report.features {
            let found = if has.is_ok() { "yes" } else { "no" };
            match written.get(&(row.clone(), name.to_owned())) {
                Some(cell) if *cell == has.is_ok() => {}
                Some(_) => complaints.push(format!(
                    "feature \"{row}\" on {name}: found {found}, and {FILE} says the opposite; write it anew or repair the probe"
                )),
                None => complaints.push(format!(
                    "feature \"{row}\" on {name}: found {found}, and {FILE} has no such cell; write it anew"
                )),
            }
        }
        for (row, _) in written.keys().filter(|(_, column)| column == name) {
            if !column.report.features.contains_key(row) {
                complaints.push(format!(
                    "feature \"{row}\" on {name} stands in {FILE} and no test stated it"
                ));
            }
        }
    }
    complaints
}

/// Reads the cells of the first table.
fn parse(text: &str) -> Cells {
    let mut cells = Cells::new();
    let table = text
        .lines()
        .skip_while(|line| !line.starts_with("| feature |"))
        .take_while(|line| line.starts_with('|'))
        .skip(2);
    for line in table {
        let mut words = line.trim_matches('|').split('|').map(str::trim);
        let row = words.next().unwrap_or_default();
        for (column, cell) in COLUMNS.iter().zip(words) {
            if cell != UNSTATED {
                cells.insert((row.to_owned(), (*column).to_owned()), cell == "yes");
            }
        }
    }
    cells
}

fn render(columns: &[Column]) -> String {
    let mut text = HEAD.to_owned();
    // Writing to a String cannot fail.
    for column in columns {
        let _ = writeln!(text, "- {}: {}", column.name, column.release);
    }
    text.push_str("\n## Features\n\nA dash: the test that would tell cannot run there.\n\n");
    features(&mut text, columns);
    text.push_str(
        "\n## Programs\n\nInstructions the verifier read on all paths, and milliseconds to load and attach. An emulated \
         guest takes many times the\ntime of a real machine; a dash means that the kernel has no use for the program or \
         refuses its kind.\n\n",
    );
    programs(&mut text, columns);
    text
}

/// The header of a table over all kernels.
fn header(text: &mut String, first: &str) {
    let _ = writeln!(text, "| {first} | {} |", COLUMNS.join(" | "));
    let _ = writeln!(text, "|---|{}", "---|".repeat(COLUMNS.len()));
}

fn in_order(columns: &[Column]) -> impl Iterator<Item = &Column> {
    COLUMNS
        .iter()
        .filter_map(|name| columns.iter().find(|column| column.name == *name))
}

fn features(text: &mut String, columns: &[Column]) {
    header(text, "feature");
    let rows: BTreeSet<&String> = columns
        .iter()
        .flat_map(|column| column.report.features.keys())
        .collect();
    let mut reasons = String::new();
    for row in rows {
        let mut cells = Vec::new();
        let mut absent: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for column in in_order(columns) {
            match column.report.features.get(row) {
                Some(Ok(())) => cells.push("yes"),
                Some(Err(reason)) => {
                    cells.push("no");
                    absent.entry(reason).or_default().push(column.name);
                }
                None => cells.push(UNSTATED),
            }
        }
        let _ = writeln!(text, "| {row} | {} |", cells.join(" | "));
        for (reason, kernels) in absent {
            let _ = writeln!(reasons, "- {row}, {}: {reason}", kernels.join(", "));
        }
    }
    if !reasons.is_empty() {
        text.push_str("\nWhy not:\n\n");
        text.push_str(&reasons);
    }
}

fn programs(text: &mut String, columns: &[Column]) {
    header(text, "program");
    let rows: BTreeSet<&String> = columns
        .iter()
        .flat_map(|column| column.report.programs.keys())
        .collect();
    for row in rows {
        let cells: Vec<String> = in_order(columns)
            .map(|column| match column.report.programs.get(row) {
                Some(verified) => {
                    let instructions = verified
                        .instructions
                        .map_or_else(|| "-".to_owned(), |number| number.to_string());
                    let tenths = verified.load_us / 100;
                    format!("{instructions} / {}.{} ms", tenths / 10, tenths % 10)
                }
                None => "-".to_owned(),
            })
            .collect();
        let _ = writeln!(text, "| `{row}` | {} |", cells.join(" | "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &'static str, lines: &[&str]) -> Column {
        let mut report = Report::default();
        report.read("test x ... ");
        for line in lines {
            report.read(line);
        }
        Column {
            name,
            release: format!("{name}.1"),
            report,
        }
    }

    fn all() -> Vec<Column> {
        COLUMNS
            .into_iter()
            .map(|name| {
                let latency = if name == "6.18" {
                    "feature: fault latency: no: fentry is refused"
                } else {
                    "feature: fault latency: yes"
                };
                column(
                    name,
                    &[
                        latency,
                        "feature: faults: yes",
                        "program: fault_user insns 812 load_us 4160",
                    ],
                )
            })
            .collect()
    }

    #[test]
    fn what_is_written_is_read_back_and_agrees() {
        let columns = all();
        let text = render(&columns);
        assert!(
            text.contains("| fault latency | yes | yes | yes | no |"),
            "{text}"
        );
        assert!(
            text.contains("- fault latency, 6.18: fentry is refused"),
            "{text}"
        );
        assert!(text.contains("| `fault_user` | 812 / 4.1 ms |"), "{text}");
        let cells = parse(&text);
        assert_eq!(cells.len(), 8);
        assert!(compare(&cells, &columns).is_empty());
    }

    #[test]
    fn a_cell_that_changed_is_told_and_so_is_a_row_without_test() {
        let cells = parse(&render(&all()));
        let lost = [column("6.12", &["feature: fault latency: no: gone"])];
        let complaints = compare(&cells, &lost);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert!(complaints[0].contains("found no"), "{complaints:?}");
        assert!(
            complaints[1].contains("no test stated it"),
            "{complaints:?}"
        );
    }

    #[test]
    fn a_cell_that_no_test_stated_has_a_dash_and_is_not_read() {
        let mut columns = all();
        columns[0].report.features.remove("faults");
        let text = render(&columns);
        assert!(text.contains("| faults | - | yes | yes | yes |"), "{text}");
        let cells = parse(&text);
        assert!(compare(&cells, &columns).is_empty());
        assert_eq!(compare(&cells, &all()).len(), 1);
    }
}
