//! Tables that LKP mails.

use super::*;

/// Made by hand after a mail of LKP.
const TABLE: &str = include_str!("../../../tests/data/workload/lkp-will-it-scale.txt");

fn values(found: &Found, name: &str) -> Vec<(String, f64)> {
    found
        .measurements
        .iter()
        .filter(|m| m.metrics[0].name == name)
        .map(|m| (m.variant.clone().unwrap_or_default(), m.metrics[0].value))
        .collect()
}

fn pair(a: f64, b: f64) -> [(String, f64); 2] {
    [("2c2ae8d1e0".to_owned(), a), ("9ab3d2a1bc".to_owned(), b)]
}

#[test]
fn commits_are_variants_and_the_test_box_is_the_host() {
    let table = found(TABLE);
    assert_eq!(
        values(&table, "will-it-scale.16.threads"),
        pair(3_301_453.0, 7_336_336.0)
    );
    assert_eq!(values(&table, "mpstat.cpu.all.sys%"), pair(11.42, 10.22));
    let first = &table.measurements[0];
    assert_eq!(first.host.as_deref(), Some("lkp-ivb-2ep1"));
    // The sign is raw: which way is better is not told.
    assert_eq!(first.metrics[0].direction, None);
    assert_eq!(table.measurements[2].metrics[0].unit, "%");
}

#[test]
fn large_values_have_four_digits() {
    let table = found(TABLE);
    let faults = table
        .measurements
        .iter()
        .find(|m| m.metrics[0].name == "proc-vmstat.pgfault");
    let faults = &faults.expect("a row").metrics[0];
    assert_value(faults, 3.302e8);
    assert!(
        (faults.resolution / 1e5 - 1.0).abs() < 1e-9,
        "{}",
        faults.resolution
    );
}

#[test]
fn the_mark_may_be_lost_or_mangled() {
    let table = found(TABLE);
    for mark in ["+-", "+/-", "?", "\u{fffd}", "", "\u{c2}\u{b1}"] {
        let text = TABLE.replace('\u{b1}', mark);
        assert_eq!(found(&text).measurements, table.measurements, "{mark:?}");
    }
    for damaged in by_mail(TABLE) {
        assert_eq!(found(&damaged).measurements, table.measurements);
    }
}

#[test]
fn a_base_of_zero_gives_a_huge_change() {
    assert_eq!(values(&found(TABLE), "perf-sched.total"), pair(0.0, 1.5));
}

#[test]
fn runs_that_failed_are_no_figures() {
    let text = format!(
        "{TABLE}\n       fail:runs  %reproduction    fail:runs\n           |             |             |\n\
         2:4          -50%            :4     dmesg.WARNING\n"
    );
    let table = found(&text);
    assert_eq!(table.measurements, found(TABLE).measurements);
    assert!(
        table.reasons[0].contains("1 line counts runs that failed"),
        "{:?}",
        table.reasons
    );
}

#[test]
fn three_commits_repeat_change_and_value() {
    let text = "         %stddev     %change         %stddev     %change         %stddev\n\
                \x20  100 +-  2%     +10.0%        110             -20.0%         80 +- 3%  will-it-scale.16.threads\n";
    let table = found(text);
    let expected = [("commit-1", 100.0), ("commit-2", 110.0), ("commit-3", 80.0)];
    assert_eq!(
        values(&table, "will-it-scale.16.threads"),
        expected.map(|(variant, value)| (variant.to_owned(), value))
    );
}

#[test]
fn tables_of_several_jobs_are_told_apart_or_refused() {
    let other = TABLE.replace("page_fault1", "page_fault2");
    let both = found(&format!("{TABLE}\n{other}"));
    assert_eq!(
        runs(both.measurements).len(),
        2,
        "two commits, no repetition"
    );
    let bare: Vec<&str> = TABLE.lines().skip(2).collect();
    let error = refusal(&format!("{}\n{0}\n", bare.join("\n")));
    assert!(error.contains("of which job it is is not said"), "{error}");
}

#[test]
fn damage_is_refused() {
    let error = refusal(&TABLE.replace("7336336", "7336"));
    assert!(
        error.contains("line 12") && error.contains("does not follow"),
        "{error}"
    );
    let error = refusal(&TABLE.replace("+122.2%", ""));
    assert!(error.contains("cannot be told apart"), "{error}");
    let error = refusal(&format!(
        "{TABLE}{}",
        TABLE.replace("9ab3d2a1bc", "deadbeef00")
    ));
    assert!(error.contains("import the tables one by one"), "{error}");
}

#[test]
fn deviations_are_kept_and_set_nothing_apart() {
    let table = found(TABLE);
    let deviations = |name: &str| -> Vec<Option<f64>> {
        let of_name = table
            .measurements
            .iter()
            .filter(|m| m.metrics[0].name == name);
        of_name.map(|m| m.metrics[0].deviation_pct()).collect()
    };
    assert_eq!(deviations("will-it-scale.16.threads"), [None, None]);
    assert_eq!(deviations("mpstat.cpu.all.sys%"), [Some(2.0), Some(2.0)]);
    assert_eq!(deviations("proc-vmstat.pgfault"), [Some(3.0), None]);
    assert_eq!(deviations("perf-sched.total"), [None, Some(10.0)]);
    for metric in table.measurements.iter().flat_map(|m| &m.metrics) {
        assert!(metric.is_summary());
        let keys: Vec<&str> = metric
            .configuration()
            .map(|(key, _)| key.as_str())
            .collect();
        assert_eq!(keys, ["job"]);
    }
}
