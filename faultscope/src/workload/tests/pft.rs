//! The tables of 2004 and the traps of those after.

use std::collections::BTreeMap;

use super::*;

const SLOPPY: &str = include_str!("../../../tests/data/workload/pft-2004-sloppy.txt");
const TASKLIST: &str = include_str!("../../../tests/data/workload/pft-2004-tasklist.txt");

const HEADER: &str = " Gb Rep Threads   User      System     Wall flt/cpu/s fault/wsec\n";

fn key<'a>(metric: &'a Metric, name: &str) -> &'a str {
    let mut keys = metric.keys.iter();
    keys.find(|(k, _)| k == name).map_or("", |(_, v)| v)
}

/// Rates by configuration, repetitions averaged.
fn cells(found: &Found) -> BTreeMap<(u64, u64), f64> {
    let mut all: BTreeMap<(u64, u64), Vec<f64>> = BTreeMap::new();
    for measurement in &found.measurements {
        let rate = metric(measurement, "fault/wsec");
        let number = |name| key(rate, name).parse().expect("a number");
        all.entry((number("gib"), number("threads")))
            .or_default()
            .push(rate.value);
    }
    #[expect(clippy::cast_precision_loss, reason = "one or two values")]
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    all.into_iter()
        .map(|(cell, values)| (cell, mean(values)))
        .collect()
}

#[test]
fn every_row_of_2004_is_read_and_adds_up() {
    let (sloppy, tasklist) = (found(SLOPPY), found(TASKLIST));
    assert_eq!(
        (sloppy.measurements.len(), tasklist.measurements.len()),
        (64, 70),
        "134 rows"
    );
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for measurement in sloppy.measurements.iter().chain(&tasklist.measurements) {
        assert_eq!(measurement.page_size, Some(16384));
        assert_eq!(
            names(measurement),
            ["fault/wsec", "flt/cpu/s", "user", "system", "wall"]
        );
        let rate = metric(measurement, "fault/wsec");
        let wall = metric(measurement, "wall");
        assert!((wall.resolution - 0.01).abs() < 1e-12);
        assert!(
            measurement
                .metrics
                .iter()
                .all(|m| m.work == Some(Work::Fixed) && m.direction.is_some())
        );
        let number = |name| key(rate, name).parse::<f64>().expect("a number");
        let faults = number("gib") * number("rep") * 1_073_741_824.0 / 16384.0;
        let residual = faults / rate.value - wall.value;
        (low, high) = (low.min(residual), high.max(residual));
        let cpu = faults / metric(measurement, "flt/cpu/s").value;
        let used = metric(measurement, "user").value + metric(measurement, "system").value;
        assert!((cpu - used).abs() <= 0.0023, "{measurement:?}");
    }
    assert!(
        (0.0..0.0001).contains(&low) && (0.0097..0.01).contains(&high),
        "{low} {high}"
    );
}

#[test]
fn wall_of_2004_is_padded_centiseconds() {
    let text =
        format!("{HEADER}   1  10    8   0.093s      8.657s   1.077s 74889.898 369606.184\n");
    assert_value(only(&found(&text), "wall"), 1.77);
}

#[test]
fn fused_columns_are_told_by_the_s() {
    let fused = |text: &str| text.lines().filter(|l| l.contains("s1")).count();
    assert_eq!(fused(SLOPPY) + fused(TASKLIST), 2);
    let sloppy = found(SLOPPY);
    let first = &sloppy.measurements[0];
    assert_value(metric(first, "wall"), 6.54);
    assert_value(metric(first, "flt/cpu/s"), 100_117.616);
    let second = sloppy
        .measurements
        .iter()
        .find(|m| (metric(m, "wall").value - 1026.3).abs() < 1e-9)
        .expect("64 GB on one thread");
    assert_value(metric(second, "system"), 1021.948);
    assert_value(metric(second, "flt/cpu/s"), 40863.994);
}

#[test]
fn keys_measured_twice_are_two_runs() {
    let runs_of = |text| runs(found(text).measurements);
    let sloppy = runs_of(SLOPPY);
    assert_eq!(sloppy.len(), 1);
    let tasklist = runs_of(TASKLIST);
    assert_eq!(
        tasklist
            .iter()
            .map(|r| r.metrics.len() / 5)
            .collect::<Vec<_>>(),
        [66, 4]
    );
    let again: Vec<(&str, &str)> = tasklist[1]
        .metrics
        .iter()
        .filter(|m| m.name == "wall")
        .map(|m| (key(m, "gib"), key(m, "threads")))
        .collect();
    assert_eq!(
        again,
        [
            ("128", "256"),
            ("128", "512"),
            ("256", "256"),
            ("256", "512")
        ]
    );
    assert_eq!(tasklist[1].page_size, Some(16384));
    // One run that a recording holds has no two values.
    let (metrics, reasons) = results(TASKLIST, &[]);
    assert_eq!((metrics.len(), reasons.len()), (62 * 5, 4));
}

#[test]
fn the_common_cells_of_2004_have_their_known_geomean() {
    let (sloppy, tasklist) = (cells(&found(SLOPPY)), cells(&found(TASKLIST)));
    let ratios: Vec<f64> = sloppy
        .iter()
        .filter_map(|(cell, rate)| Some(tasklist.get(cell)? / rate))
        .collect();
    assert_eq!((ratios.len(), sloppy.len(), tasklist.len()), (64, 64, 66));
    let geomean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / 64.0).exp();
    assert!((geomean - 1.0043).abs() < 0.000_05, "{geomean}");
    assert_eq!(ratios.iter().filter(|r| **r > 1.0).count(), 42);
    let one_sided: Vec<_> = tasklist
        .keys()
        .filter(|cell| !sloppy.contains_key(cell))
        .collect();
    assert_eq!(one_sided, [&(128, 4), &(256, 4)]);
}

#[test]
fn tables_that_mail_damaged_parse_to_the_same_rows() {
    for text in [SLOPPY, TASKLIST] {
        let whole = found(text);
        for damaged in by_mail(text) {
            assert_eq!(
                found(&damaged).measurements,
                whole.measurements,
                "{}",
                &damaged[..200]
            );
        }
    }
}

#[test]
fn the_later_table_has_no_repetitions_and_plain_decimals() {
    let row = " 15   16   1   0.67s   233.41s  14.76s  16798.546 266356.260\n";
    let text = format!(" Gb Thr CLine   User     System   Wall    flt/cpu/s fault/wsec\n{row}");
    let later = found(&text);
    assert_value(only(&later, "wall"), 14.76);
    assert_eq!(later.measurements[0].page_size, Some(4096));
    let wall = only(&later, "wall");
    assert_eq!(
        (
            key(wall, "gib"),
            key(wall, "threads"),
            key(wall, "cache line")
        ),
        ("15", "16", "1")
    );
    assert!((wall.resolution - 0.01).abs() < 1e-12);
    // Without its header it may as well be 16 times 15 GB in pages of 64 KiB; on 12 threads it may not.
    assert!(refusal(row).contains("put the header above it"));
    let twelve = row.replace("15   16 ", "15   12 ");
    assert_eq!(key(only(&found(&twelve), "wall"), "threads"), "12");
    // LKP announces its iterations, so the same configuration under a second header is a repetition.
    let lkp = format!("Clients: 16\nIteration: 1\n{text}Iteration: 2\n{text}");
    assert_eq!(runs(found(&lkp).measurements).len(), 2);
}

#[test]
fn the_table_of_2005_has_a_cache_line_column_and_fused_rates() {
    // 4 GiB x 3 in pages of 16 KiB are 786432 faults.
    let text = " Gb Rep Thr CLine  User      System   Wall  flt/cpu/s fault/wsec\n  4  3    1   1    0.15s     12.03s   3.01s64567.480 260931.649\n";
    let table = found(text);
    let wall = only(&table, "wall");
    assert_value(wall, 3.01);
    assert_eq!(
        (
            key(wall, "threads"),
            key(wall, "cache line"),
            key(wall, "rep")
        ),
        ("1", "1", "3")
    );
    assert_value(only(&table, "flt/cpu/s"), 64567.480);
    assert_eq!(table.measurements[0].page_size, Some(16384));
}

#[test]
fn our_own_layout_of_2004_is_read_back() {
    // One GiB, 10 times, in pages of 4 KiB, in 2.346 s: rounded to two decimals.
    let text =
        format!("{HEADER}   1  10    2    0.100s      4.100s     2.35s 624152.381 1117408.355\n");
    let table = found(&text);
    assert_value(only(&table, "wall"), 2.35);
    assert_eq!(table.measurements[0].page_size, Some(4096));
}

#[test]
fn a_row_that_adds_up_in_no_reading_is_refused() {
    let good = "  4  10    4    0.193s     31.886s   9.096s 81715.471 263190.941";
    assert!(auto(&format!("{HEADER}{good}\n")).is_ok());
    for (what, row) in [
        ("wall", good.replace("9.096s", "9.196s")),
        (
            "wall",
            good.replace("9.096s", "9.96s").replace("9.96s", "8.96s"),
        ),
        ("rate", good.replace("263190.941", "463190.941")),
        ("user", good.replace("0.193s", "0.293s")),
        ("repetitions", good.replace("4  10", "4  11")),
    ] {
        let error = refusal(&format!("{HEADER}{row}\n"));
        assert!(
            error.contains("line 2: this row of pft does not add up"),
            "{what}: {error}"
        );
    }
    // A table of 2005 in megabytes whose wall time was cut off wrongly.
    let text = "  Mb Rep Thr CLine  User      System   Wall  flt/cpu/s fault/wsec\n 200  3    1   1    0.01s      0.15s   0.01s846860.493 848882.424\n";
    assert!(refusal(text).contains("does not add up"));
    // Padding is three digits and the first is 0.
    assert!(
        auto(&format!("{HEADER}{}\n", good.replace("9.096s", "9.96s"))).is_ok(),
        "decimal, and right"
    );
}

#[test]
fn a_damaged_row_is_refused_with_its_line() {
    for (row, phrase) in [
        (
            "  4  10    4    0.193s     31.886s   9.096s 81715.471",
            "two rates do not follow",
        ),
        (
            "  4  10    4    0.193s     31.886s",
            "Wall time is not there",
        ),
        ("  4  10    4    0.193s", "System time is not there"),
        (
            "  10    4    0.193s     31.886s   9.096s 81715.471 263190.941",
            "a column before User is not there",
        ),
        (
            "  4  10    4    0.193s     31.886s   9.096s 81715.471 0.000",
            "not above 0",
        ),
        (
            "  4  10    4    0.193s     31.886s   9.096s 81715.471 263190.941 x",
            "two rates do not follow",
        ),
        (
            "  4  10    4    0.193s     31.886s   9.096s 81715,471 263190,941",
            "LC_ALL=C",
        ),
    ] {
        let error = refusal(&format!("{HEADER}{row}\n"));
        assert!(
            error.contains("line 2") && error.contains(phrase),
            "{row}: {error}"
        );
    }
    assert!(
        refusal(&format!("{}{}", HEADER.replace("Rep", "Reps"), SLOPPY))
            .contains("columns before User")
    );
}

#[test]
fn a_size_of_0_cannot_be_verified() {
    let text =
        format!("{HEADER}  0   3    1    0.000s      0.004s   0.000s 37407.481  29200.500\n");
    let table = found(&text);
    assert_eq!(table.measurements[0].page_size, None);
    assert_eq!(table.reasons.len(), 1);
    assert!(table.reasons[0].contains("line 2") && table.reasons[0].contains("unverified"));
}

#[test]
fn two_tables_in_one_text_are_ambiguous() {
    // Before and after in one mail look like repetitions, and are none.
    let error = refusal(&format!("w/o patch:\n{SLOPPY}w/ patch:\n{SLOPPY}"));
    assert!(
        error.contains("under two headers") && error.contains("import the tables one by one"),
        "{error}"
    );
    let error = refusal(&format!("{SLOPPY}{TASKLIST}"));
    assert!(
        error.contains("Rep is 10 at first and 3 in line"),
        "{error}"
    );
}

#[test]
fn without_a_header_columns_that_both_add_up_are_ambiguous() {
    // 1 GiB once on one thread, or one thread with cache line 1.
    // 262144 faults in 0.5242 s and 0.51 s of CPU.
    let row = "  1   1    1    0.01s      0.50s   0.52s 514007.843 500083.937\n";
    let error = refusal(row);
    assert!(error.contains("put the header above it"), "{error}");
}

#[test]
fn annotations_and_prose_are_no_rows() {
    let text = format!("TAG pft:anon\nLEGEND 8 CPUs\nWe ran 4 10 times, 1.5s each\n{SLOPPY}");
    assert_eq!(found(&text).measurements, found(SLOPPY).measurements);
}
