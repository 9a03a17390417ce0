//! `perf lock contention` and `perf stat`.

use super::*;

// Written by Debian's perf 6.1 on a virtual machine, the list cut to its first rows.
const LOCKS: &str = include_str!("../../../tests/data/workload/perf-6.1-lock-contention.txt");
const STAT: &str = include_str!("../../../tests/data/workload/perf-6.1-stat.txt");
const REPEATED: &str = include_str!("../../../tests/data/workload/perf-6.1-stat-repeated.txt");
const GERMAN: &str = include_str!("../../../tests/data/workload/perf-6.1-stat-de_DE.txt");

const HEAD: &str = " contended   total wait     max wait     avg wait         type   caller\n\n";

fn of<'a>(found: &'a Found, name: &str, key: &str) -> &'a Metric {
    let mut all = found.measurements.iter().flat_map(|m| &m.metrics);
    all.find(|m| m.name == name && m.keys.iter().any(|(_, v)| v == key))
        .unwrap_or_else(|| panic!("\"{name}\" of {key} is not in {found:#?}"))
}

#[test]
fn waits_are_by_type_and_caller_in_ns() {
    let text = format!(
        "{HEAD}        83    226.38 us      9.15 us      2.73 us     spinlock   folio_lruvec_lock_irqsave+0x5e\n"
    );
    let list = found(&text);
    assert_value(of(&list, "waits", "folio_lruvec_lock_irqsave"), 83.0);
    let total = of(&list, "wait total", "spinlock");
    assert_value(total, 226_380.0);
    assert!((total.resolution - 10.0).abs() < 1e-9);
    assert_value(of(&list, "wait max", "spinlock"), 9150.0);
    assert_value(of(&list, "wait avg", "spinlock"), 2730.0);
    assert_eq!(
        total.direction, None,
        "a sum depends on how long perf looked"
    );
}

#[test]
fn a_real_list_has_rows_of_one_function_as_one_figure() {
    let list = found(LOCKS);
    assert_eq!(
        runs(list.measurements.clone()).len(),
        1,
        "places are no repetitions"
    );
    let rows = LOCKS
        .lines()
        .filter(|l| l.contains("folio_lruvec_lock_irqsave+"));
    let count: f64 = rows
        .filter_map(|l| l.split_whitespace().next()?.parse::<f64>().ok())
        .sum();
    assert_value(of(&list, "waits", "folio_lruvec_lock_irqsave"), count);
    let waits = of(&list, "wait total", "folio_lruvec_lock_irqsave").value / count;
    assert_value(of(&list, "wait avg", "folio_lruvec_lock_irqsave"), waits);
    assert!(
        list.measurements[0]
            .metrics
            .iter()
            .any(|m| m.keys[0].1 == "rwsem:W")
    );
    // The compiler's suffixes differ from build to build.
    assert_value(of(&list, "wait max", "poll_schedule_timeout"), 214.56e6);
    for damaged in by_mail(LOCKS) {
        assert_eq!(found(&damaged).measurements, list.measurements);
    }
}

#[test]
fn units_differ_from_cell_to_cell() {
    for (cell, ns) in [
        ("5.00 ns", 5.0),
        ("5.00 us", 5e3),
        ("5.00 ms", 5e6),
        ("5.00 s", 5e9),
        ("5.00 m", 300e9),
    ] {
        let list = found(&format!("{HEAD} 1 {cell} {cell} {cell} mutex f+0x1\n"));
        assert_value(of(&list, "wait max", "f"), ns);
    }
    let error = refusal(&format!("{HEAD} 1 5.00 5.00 5.00 mutex f+0x1\n"));
    assert!(error.contains("no unit of time"), "{error}");
}

#[test]
fn columns_are_those_of_the_head() {
    let list =
        found(" contended     avg wait         type   caller\n\n 7 2.00 us rwlock:R f+0x1\n");
    assert_eq!(names(&list.measurements[0]), ["waits", "wait avg"]);
}

#[test]
fn locks_with_a_name_are_taken_and_addresses_are_not() {
    let text = " contended   total wait     max wait     avg wait            address   symbol\n\n\
                \x20 4     40.00 us     20.00 us     10.00 us   ffff9d6a4cd0bca0   mmap_lock (rwsem)\n\
                \x20 2     20.00 us     12.00 us     10.00 us   ffff9d6a4cd0bca8    (spinlock)\n\
                \x20 3     30.00 us     12.00 us     10.00 us   ffff9d6a4cd0bcb0\n";
    let list = found(text);
    assert_value(of(&list, "waits", "mmap_lock"), 4.0);
    assert_eq!(list.measurements[0].metrics.len(), 4);
    assert!(
        list.reasons[0].contains("2 locks have an address and no name"),
        "{:?}",
        list.reasons
    );
}

#[test]
fn threads_are_by_name() {
    let text = " contended   total wait     max wait     avg wait          pid   comm\n\n\
                \x20 185    135.89 ms     17.94 ms    738.54 us         1246   fsb-mapper\n";
    assert_value(of(&found(text), "waits", "fsb-mapper"), 185.0);
}

#[test]
fn an_empty_list_is_unknown() {
    let error = refusal(HEAD);
    assert!(error.contains("unknown, not zero"), "{error}");
}

#[test]
fn lost_events_and_damage_are_told() {
    let text =
        format!("{LOCKS}\n=== output for debug===\n\nbad: 12, total: 400\nbad rate: 3.00 %\n");
    assert!(found(&text).reasons[0].contains("could not use 12 of 400 events"));
    let row = " 83 226.38 us 9.15 us 2.73 ms spinlock f+0x5e\n";
    assert!(refusal(&format!("{HEAD}{row}")).contains("does not add up"));
    assert!(refusal(&format!("{HEAD} 83 226.38 us\n")).contains("ends before its head"));
    assert!(
        refusal(&format!("{HEAD} 83 226,38 us 9.15 us 2.73 us spinlock f\n")).contains("LC_ALL=C")
    );
}

#[test]
fn counts_and_times_of_perf_stat() {
    let stat = found(STAT);
    assert_eq!(
        names(&stat.measurements[0]),
        [
            "task-clock",
            "page-faults",
            "context-switches",
            "elapsed",
            "user",
            "system"
        ]
    );
    assert_value(only(&stat, "page-faults"), 64.0);
    assert_eq!(only(&stat, "task-clock").unit, "ms");
    assert_value(only(&stat, "elapsed"), 0.009_971_020);
    let repeated = found(REPEATED);
    assert_value(only(&repeated, "elapsed"), 0.004_60);
    for damaged in by_mail(STAT) {
        assert_eq!(found(&damaged).measurements, stat.measurements);
    }
}

#[test]
fn a_german_perf_stat_is_refused_and_the_locale_named() {
    for text in [
        GERMAN,
        "              0,80 msec task-clock:u         #    0,003 CPUs utilized\n",
    ] {
        let error = refusal(text);
        assert!(
            error.contains("locale") && error.contains("de_DE") && error.contains("LC_ALL=C"),
            "{error}"
        );
    }
    // American thousands cannot be told from a German decimal.
    let error = refusal(&STAT.replace("                64 ", "             64,123 "));
    assert!(error.contains("\"64,123\" has a comma"), "{error}");
}
