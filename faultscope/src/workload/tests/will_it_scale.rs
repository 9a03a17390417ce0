//! Tables of will-it-scale and what one binary prints.

use super::*;

/// Made by hand after the columns of will-it-scale's runtest.py.
const TABLE: &str = include_str!("../../../tests/data/workload/will-it-scale-page_fault1.csv");

/// What the binary of one test case prints, as of will-it-scale's main.c.
const BINARY: &str = "testcase:Anonymous memory page fault\nwarmup\nmin:650000 max:655000 total:1305000\n\
                      min:652000 max:656000 total:1308000\nmeasurement\nmin:655000 max:656000 total:1311000\naverage:1310720\n";

fn rates(found: &Found) -> Vec<(String, f64)> {
    let all = found.measurements.iter().flat_map(|m| &m.metrics);
    all.filter(|m| m.name == "ops/s")
        .map(|m| {
            let keys: Vec<String> = m.keys.iter().map(|(k, v)| format!("{k} {v}")).collect();
            (keys.join(" "), m.value)
        })
        .collect()
}

#[test]
fn a_table_has_rates_of_processes_and_threads() {
    let table = found(TABLE);
    assert!(table.reasons.is_empty());
    let expected = [
        ("processes 1", 655_360.0),
        ("threads 1", 655_360.0),
        ("processes 2", 1_310_720.0),
        ("threads 2", 655_360.0),
    ];
    // The row of 0 tasks is an origin for plots, and linear no measurement.
    assert_eq!(
        rates(&table),
        expected.map(|(key, rate)| (key.to_owned(), rate))
    );
    let rate = metric(&table.measurements[1], "ops/s");
    assert_eq!(
        (rate.direction, rate.work),
        (Some(Direction::Higher), Some(Work::Timed))
    );
    assert!((rate.resolution - 1.0).abs() < 1e-12);
    assert_value(metric(&table.measurements[1], "idle"), 0.35);
    for damaged in by_mail(TABLE) {
        assert_eq!(found(&damaged).measurements, table.measurements);
    }
}

#[test]
fn a_run_that_died_has_no_rate() {
    let table = found(&TABLE.replace("1310720,0.35", "-1,0.35"));
    assert_eq!(rates(&table).len(), 3);
    let [reason] = table.reasons.as_slice() else {
        panic!("{table:?}");
    };
    assert!(
        reason.contains("line 4: the run of 2 processes died"),
        "{reason}"
    );
}

#[test]
fn a_decimal_comma_shifts_columns_and_is_refused() {
    let error = refusal(&TABLE.replace("0.35", "0,35"));
    assert!(
        error.contains("line 4") && error.contains("LC_ALL=C"),
        "{error}"
    );
    let error = refusal(&TABLE.replace("2,1310720", "2,13x0720"));
    assert!(error.contains("\"13x0720\" is no number"), "{error}");
}

#[test]
fn two_tables_are_repetitions() {
    assert_eq!(
        runs(found(&format!("{TABLE}\n{TABLE}")).measurements).len(),
        2
    );
}

#[test]
fn one_binary_has_its_average_and_no_lines_of_seconds() {
    let one = found(BINARY);
    let average = only(&one, "ops/s");
    assert_value(average, 1_310_720.0);
    let case = (
        "testcase".to_owned(),
        "Anonymous memory page fault".to_owned(),
    );
    assert_eq!(average.keys, [case]);
    let cut = BINARY.replace("average:1310720\n", "");
    assert!(refusal(&cut).contains("line 1: the test case"));
    assert!(refusal(&format!("{cut}{BINARY}")).contains("cut short"));
    assert_eq!(results(BINARY, &[]).0.len(), 1, "record reads it");
}
