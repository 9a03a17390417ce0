//! The general table.

use super::*;

const MADVISE: &str = include_str!("../../../tests/data/workload/sysbench-madvise-2007.tsv");
const KERNBENCH: &str =
    include_str!("../../../tests/data/workload/kernbench-mark-accessed-2004.tsv");

#[test]
fn variants_are_runs_and_the_first_column_is_the_key() {
    let defaults = Defaults {
        name: Some("transactions/s".to_owned()),
        unit: Some("1/s".to_owned()),
        direction: Some(Direction::Higher),
    };
    let all = parse(MADVISE, &defaults).expect("a table");
    assert_eq!(all.measurements.len(), 20);
    let runs = runs(all.measurements);
    let variants: Vec<&str> = runs.iter().filter_map(|r| r.variant.as_deref()).collect();
    assert_eq!(
        variants,
        ["vanilla", "new_glibc", "madv_free", "madv_free_mmap_sem"]
    );
    assert!(
        runs.iter()
            .all(|r| r.metrics.len() == 5 && r.host.is_none())
    );
    let last = &runs[3].metrics[0];
    assert_value(last, 545.0);
    assert_eq!(last.keys, [("threads".to_owned(), "1".to_owned())]);
    assert_eq!(
        (last.name.as_str(), last.unit.as_str()),
        ("transactions/s", "1/s")
    );
    assert_eq!(
        (last.direction, last.format.as_str()),
        (Some(Direction::Higher), "table")
    );
    // Nothing is guessed where nothing is said.
    let bare = &found(MADVISE).measurements[0].metrics[0];
    assert_eq!(
        (
            bare.name.as_str(),
            bare.unit.as_str(),
            bare.direction,
            bare.work
        ),
        ("value", "", None, None)
    );
}

#[test]
fn kernbench_names_its_figures_and_its_hosts() {
    let runs = runs(found(KERNBENCH).measurements);
    let hosts: Vec<_> = runs
        .iter()
        .map(|r| (r.variant.as_deref(), r.host.as_deref()))
        .collect();
    assert_eq!(
        hosts,
        [
            (Some("batched"), Some("stp8-002")),
            (Some("vanilla"), Some("stp8-003"))
        ]
    );
    let names: Vec<&str> = runs[0].metrics.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "elapsed_s",
            "user_s",
            "system_s",
            "percent_cpu",
            "context_switches",
            "sleeps"
        ]
    );
    assert!(
        runs.iter()
            .all(|r| r.metrics.iter().all(|m| m.keys.is_empty()))
    );
    assert_value(&runs[1].metrics[0], 245.026);
    assert!((runs[1].metrics[0].resolution - 0.001).abs() < 1e-12);
}

#[test]
fn lines_say_what_numbers_do_not() {
    let text = "# measured on a rainy day\n# host: box\n# unit: t=s n=count\n# direction: t=lower n=higher\n# work: fixed\n\
                metric\ta\tb\nt\t1.5\t-\nn\t7\t8\n";
    let all = found(text);
    assert_eq!(
        all.measurements.len(),
        3,
        "a missing value is no measurement"
    );
    assert!(
        all.measurements
            .iter()
            .all(|m| m.host.as_deref() == Some("box"))
    );
    let t = &all.measurements[0].metrics[0];
    assert_eq!(
        (t.unit.as_str(), t.direction, t.work),
        ("s", Some(Direction::Lower), Some(Work::Fixed))
    );
    let n = &all.measurements[2].metrics[0];
    assert_eq!(
        (n.unit.as_str(), n.direction),
        ("count", Some(Direction::Higher))
    );
    let named = found("# metric: faults/s\n# unit: 1/s\nthreads a\n1 5\n1 6\n");
    assert_eq!(named.measurements[0].metrics[0].name, "faults/s");
    assert_eq!(
        runs(named.measurements).len(),
        2,
        "a key that is repeated is a repetition"
    );
}

#[test]
fn collapsed_blanks_and_quotes_do_no_harm() {
    for text in [MADVISE, KERNBENCH] {
        let whole = found(text);
        for damaged in by_mail(text)
            .into_iter()
            .take(6)
            .filter(|t| !t.contains("somebody"))
        {
            assert_eq!(
                found(&damaged).measurements,
                whole.measurements,
                "{damaged}"
            );
        }
    }
}

#[test]
fn a_table_that_is_asked_for_tells_what_is_wrong() {
    for (text, phrase) in [
        ("", "a header and rows of numbers are missing"),
        ("k a\n", "a header and rows of numbers are missing"),
        ("k\n1\n", "one column"),
        ("k\ta\t\n1\t2\t3\n", "column 3 of the header has no name"),
        ("k a a\n1 2 3\n", "two columns are named \"a\""),
        (
            "k a b\n1 2\n",
            "line 2: the row has 2 cells and the header 3",
        ),
        ("k\ta\n\t2\n", "no name in its first column"),
        ("k a\n1 x\n", "\"x\" is no number"),
        ("k a\n1 1,5\n", "LC_ALL=C"),
        (
            "# host: c=box\nk a\n1 2\n",
            "names \"c\", which is no column",
        ),
        ("# host:\nk a\n1 2\n", "gives nothing"),
        ("# unit: a=s b\nk a\n1 2\n", "\"b\" is not NAME=VALUE"),
        ("# direction: up\nk a\n1 2\n", "it is higher or lower"),
        ("# work: hard\nk a\n1 2\n", "it is fixed or timed"),
    ] {
        let error = parse_as(text, Format::Table, &Defaults::default())
            .expect_err("refused")
            .to_string();
        assert!(error.contains(phrase), "{text:?}: {error}");
    }
}

#[test]
fn prose_and_numbers_without_a_header_are_no_table() {
    for text in [
        "two words\nand more of them here\n",
        "1 2 3\n4 5 6\n",
        "a b\n",
        "name a b\nx 1 two\n",
    ] {
        assert_eq!(auto(text), Err(Refusal::NotRecognised), "{text}");
    }
}
