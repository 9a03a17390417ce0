//! Tables of reaim.

use super::*;

/// Made by hand after the columns that reaim prints.
const TABLE: &str = include_str!("../../../tests/data/workload/reaim.txt");

#[test]
fn rows_are_figures_by_the_number_of_tasks() {
    let table = found(TABLE);
    assert_eq!(table.measurements.len(), 2);
    let rate = metric(&table.measurements[1], "jobs/min");
    assert_value(rate, 4012.5);
    assert_eq!(rate.keys, [("tasks".to_owned(), "8".to_owned())]);
    assert_eq!(
        (rate.unit.as_str(), rate.direction),
        ("1/min", Some(Direction::Higher))
    );
    assert_value(metric(&table.measurements[1], "child user"), 80.11);
    assert_value(metric(&table.measurements[1], "job timing index"), 98.0);
    // The greatest of noisy figures is biased.
    let all = table.measurements.iter().flat_map(|m| &m.metrics);
    assert_eq!(all.filter(|m| m.name.contains("ax")).count(), 0);
    for damaged in by_mail(TABLE) {
        assert_eq!(found(&damaged).measurements, table.measurements);
    }
}

#[test]
fn a_row_that_does_not_add_up_or_lacks_a_column_is_refused() {
    let error = refusal(&TABLE.replace("4012.50    501.56", "4112.50    501.56"));
    assert!(error.contains("line 4: the row does not add up"), "{error}");
    let error = refusal(&TABLE.replace("501.56     0.20", "501.56"));
    assert!(error.contains("has 9 columns, and this one 8"), "{error}");
    let error = refusal(&TABLE.replace("12.40", "12,40"));
    assert!(error.contains("LC_ALL=C"), "{error}");
    // Without the header its digits are anything.
    assert_eq!(
        auto("8 12.40 1.90 80.11 4012.50 501.56 0.20 1.61 98\n"),
        Err(Refusal::NotRecognised)
    );
}
