//! Tables of compare-mmtests.

use super::*;

/// Made by hand after a mail with a table of mmtests: two kernels, 5.0.0-rc1-vanilla and 5.0.0-rc1-patched.
const TABLE: &str = include_str!("../../../tests/data/workload/mmtests-pft.txt");

fn of<'a>(found: &'a Found, variant: &str, statistic: &str, name: &str) -> Option<&'a Metric> {
    let ours = found
        .measurements
        .iter()
        .filter(|m| m.variant.as_deref() == Some(variant));
    let mut all = ours.flat_map(|m| &m.metrics);
    all.find(|m| m.name == name && m.keys[0].1 == statistic)
}

#[test]
fn kernels_are_variants_and_their_names_stand_in_two_lines() {
    let table = found(TABLE);
    assert_eq!(runs(table.measurements.clone()).len(), 2);
    let rate = of(&table, "5.0.0-rc1-patched", "Hmean", "faults/sec").expect("a row");
    assert_value(rate, 275_031.11);
    assert_eq!(rate.keys[1], ("clients".to_owned(), "4".to_owned()));
    assert_eq!(rate.unit, "1/s");
    for damaged in by_mail(TABLE) {
        assert_eq!(found(&damaged).measurements, table.measurements);
    }
}

#[test]
fn the_sign_of_a_change_tells_which_way_is_better() {
    let table = found(TABLE);
    let direction = |statistic, name| {
        of(&table, "5.0.0-rc1-vanilla", statistic, name)
            .expect("a row")
            .direction
    };
    assert_eq!(direction("Hmean", "faults/sec"), Some(Direction::Higher));
    assert_eq!(
        direction("BHmean-95", "faults/sec"),
        Some(Direction::Higher)
    );
    assert_eq!(direction("Amean", "elapsed"), Some(Direction::Lower));
    assert_eq!(direction("Amean", "system"), Some(Direction::Lower));
    // A deviation is better when it is less, whatever its figure.
    assert_eq!(direction("Stddev", "faults/sec"), None);
    let error = refusal(&TABLE.replace("*   4.50%*", "*  -4.50%*"));
    assert!(error.contains("contradicts"), "{error}");
}

#[test]
fn asterisks_mean_nothing_here() {
    assert_eq!(
        found(&TABLE.replace("*   4.50%*", "(   4.50%)")).measurements,
        found(TABLE).measurements
    );
}

#[test]
fn what_stands_for_a_failed_run_is_missing() {
    for (value, change) in [
        ("-1.00", "-100.00%"),
        ("NaN", "NaN%"),
        ("nan", "-nan%"),
        ("0.00", "-100.00%"),
    ] {
        let row = format!("{value} ( {change})");
        let table = found(&TABLE.replace("275031.11 *   4.50%*", &row));
        assert!(
            of(&table, "5.0.0-rc1-patched", "Hmean", "faults/sec").is_none(),
            "{value}"
        );
        assert!(
            table.reasons[0].contains("line 6") && table.reasons[0].contains("missing"),
            "{:?}",
            table.reasons
        );
    }
}

#[test]
fn damage_is_refused() {
    let error = refusal(&TABLE.replace("275031.11", "285031.11"));
    assert!(
        error.contains("line 6") && error.contains("does not follow"),
        "{error}"
    );
    let error = refusal(&TABLE.replace("20.00 (   0.00%)", "20.00"));
    assert!(error.contains("line 10"), "{error}");
    let error = refusal(&TABLE.replace(
        "Amean     elapsed-4          10.00 (   0.00%)        9.50 *   5.00%*",
        "Amean     elapsed-4          10.00 (   0.00%)",
    ));
    assert!(
        error.contains("has 1 values and the first one 2"),
        "{error}"
    );
}

#[test]
fn kernels_without_a_head_are_numbered() {
    let bare: Vec<&str> = TABLE.lines().skip(3).collect();
    let table = found(&bare.join("\n"));
    assert!(of(&table, "kernel-2", "Hmean", "faults/sec").is_some());
    let same = TABLE.replace("rc1-patched", "rc1-vanilla");
    assert!(of(&found(&same), "5.0.0-rc1-vanilla-2", "Hmean", "faults/sec").is_some());
}
