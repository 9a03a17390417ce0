//! The tables of other tools: within their columns, and read back by the parsers of those formats.

use std::collections::BTreeMap;

use super::tables::imported;
use super::*;
use crate::workload::Format;

const SLOPPY: &str = include_str!("../../../tests/data/workload/pft-2004-sloppy.txt");
const TASKLIST: &str = include_str!("../../../tests/data/workload/pft-2004-tasklist.txt");
const LKP: &str = include_str!("../../../tests/data/workload/lkp-will-it-scale.txt");

/// A table that every line of is fit for a mail.
fn table(report: &Report, layout: Layout) -> String {
    let table = written(report, layout);
    for line in table.lines() {
        assert!(line.len() <= WIDTH && line.is_ascii(), "{line}");
        assert!(!line.contains("NaN") && !line.contains("inf"), "{line}");
        assert_eq!(line, line.trim_end(), "no blanks at the end");
    }
    table
}

/// Runs whose figures have all units, zeros, huge and small values, and long names.
fn wide() -> [Vec<Observed>; 2] {
    let mut both = sides(1.1);
    for (at, side) in both.iter_mut().enumerate() {
        for (i, run) in side.iter_mut().enumerate() {
            let (i, ratio) = (real(i as u64), 1.0 + 0.5 * real(at as u64));
            let mut add = |name: &str, value: f64, unit: &str, keys: &[(&str, String)]| {
                let keys = keys.iter().map(|(k, v)| ((*k).to_owned(), v.clone()));
                run.metrics.push(Metric {
                    name: name.to_owned(),
                    value,
                    unit: unit.to_owned(),
                    direction: None,
                    work: None,
                    resolution: 0.0,
                    format: "sysbench".to_owned(),
                    keys: keys.collect(),
                });
            };
            add("latency avg", ratio * (6.5 + i), "ms", &[]);
            add("elapsed", 1e-3 * ratio * (1.0 + i), "s", &[]);
            add("tiny", 1e-7 * ratio * (1.0 + i), "", &[]);
            add("huge", 1e12 * ratio * (1.0 + i), "count", &[]);
            add("nothing", 0.0, "count", &[]);
            add("from zero", real(at as u64) * (5.0 + i), "count", &[]);
            for n in 0..30 {
                let keys = [
                    ("a rather long key", format!("with a long value {n}")),
                    ("threads", format!("{}", 100 + n)),
                ];
                add("a figure with a name of many words", 100.0 + i, "ms", &keys);
            }
            if let Some(kernel) = &mut run.kernel {
                kernel.readings = vec![
                    reading("faults", Unit::Events, ratio * 1e6),
                    reading("faults_major", Unit::Events, 0.0),
                    reading("faults_per_sec", Unit::PerSec, ratio * 1e5),
                    reading("lock_wait_per_fault_ns", Unit::Ns, ratio * 18.25),
                    reading("command_system_ns", Unit::Ns, ratio * 4e9),
                ];
            }
        }
    }
    both
}

/// What a parser reads: value and unit by name, for each side.
fn read(text: &str, format: Format) -> [BTreeMap<String, (f64, String)>; 2] {
    let found = workload::parse_as(text, format, &Defaults::default()).expect("it is read");
    let alone = workload::parse(text, &Defaults::default()).expect("nothing else reads it");
    assert_eq!(alone.measurements, found.measurements);
    assert_eq!(found.reasons, [""; 0], "every figure is taken");
    let mut sides = [BTreeMap::new(), BTreeMap::new()];
    let names: Vec<_> = found
        .measurements
        .iter()
        .map(|m| m.variant.clone())
        .collect();
    for measurement in found.measurements {
        let side = usize::from(measurement.variant != names[0]);
        for metric in measurement.metrics {
            let old = sides[side].insert(metric.name, (metric.value, metric.unit));
            assert_eq!(old, None, "names are unique");
        }
    }
    sides
}

/// Every row of the report is read back: value as printed, to a thousandth, and unit; a name may be shortened.
fn holds(
    report: &Report,
    layout: Layout,
    format: Format,
    mean: fn(&[f64], stats::Direction, bool) -> f64,
) {
    let text = table(report, layout);
    let sides = read(&text, format);
    for side in &sides {
        assert_eq!(side.len(), report.rows.len(), "{text}");
    }
    let mut by_value: Vec<(f64, String)> = sides[1].values().cloned().collect();
    for row in &report.rows {
        let values: Vec<f64> = row.after.iter().map(|(v, _)| *v).collect();
        let is_seconds = row.id.starts_with("command_");
        let scale = if is_seconds { 1e-9 } else { 1.0 };
        let before: Vec<f64> = row.before.iter().map(|(v, _)| *v).collect();
        let has_zero = arithmetic(&before) <= 0.0 || arithmetic(&values) <= 0.0;
        let expected = scale * mean(&values, row.direction, has_zero);
        let unit = match &row.shown {
            headline::Shown::In(unit) if unit == "count" => "",
            headline::Shown::In(unit) => unit,
            headline::Shown::Of(Unit::Ns) if is_seconds => "s",
            headline::Shown::Of(Unit::Ns) => "ns",
            headline::Shown::Of(Unit::PerSec) => "1/s",
            headline::Shown::Of(_) => "",
        };
        let is_it = |(value, of): &(f64, String)| {
            of == unit && (value - expected).abs() <= 1e-3 * expected.abs()
        };
        let place = by_value.iter().position(is_it);
        let place = place.unwrap_or_else(|| panic!("{} {expected} {unit} in\n{text}", row.id));
        by_value.remove(place);
    }
}

fn arithmetic(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / real(values.len() as u64)
}

#[test]
fn lkp_reads_its_style() {
    let old = || [SLOPPY, TASKLIST].map(|text| imported(text, None, &Defaults::default()));
    for sides in [sides(1.1), wide(), old()] {
        let found = report(sides, Options::default());
        holds(&found, Layout::Lkp, Format::Lkp, |values, _, _| {
            arithmetic(values)
        });
    }
    let shown = table(&report(wide(), Options::default()), Layout::Lkp);
    assert!(
        shown.contains("0.003000 +- 47%     +50.0%   0.004500 +- 47%  elapsed_s"),
        "{shown}"
    );
    assert!(shown.contains("# ") && shown.contains('~'), "{shown}");
}

#[test]
fn mmtests_reads_its_style() {
    let old = || [SLOPPY, TASKLIST].map(|text| imported(text, None, &Defaults::default()));
    for sides in [sides(1.1), wide(), old()] {
        let found = report(sides, Options::default());
        holds(
            &found,
            Layout::Mmtests,
            Format::Mmtests,
            |values, direction, has_zero| {
                let mean = arithmetic(values);
                if has_zero {
                    // A mean of 0 is a failed run there.
                    return values.iter().copied().fold(0.0, f64::max);
                }
                if direction == stats::Direction::HigherIsBetter && mean > 0.0 {
                    let inverse: Vec<f64> = values.iter().map(|v| 1.0 / v).collect();
                    1.0 / arithmetic(&inverse)
                } else {
                    mean
                }
            },
        );
    }
}

#[test]
fn a_figure_without_a_better_way_has_none_in_any_style() {
    let found = report(wide(), Options::default());
    let text = table(&found, Layout::Mmtests);
    let line = |name: &str| {
        let mut lines = text
            .lines()
            .filter(|l| l.split_whitespace().nth(1) == Some(name));
        lines.next().unwrap_or_else(|| panic!("{name} in\n{text}"))
    };
    assert!(line("faults").starts_with("Amean") && line("faults").ends_with("(      -%)"));
    assert!(line("faults_major").starts_with("Max"), "{text}");
    let parsed = workload::parse(&text, &Defaults::default()).expect("it is read");
    let direction = |name: &str| {
        let mut all = parsed.measurements.iter().flat_map(|m| &m.metrics);
        all.find(|m| m.name == name).map(|m| m.direction)
    };
    assert_eq!(direction("faults"), Some(None));
    assert_eq!(
        direction("threads-4.transactions/s"),
        Some(Some(workload::Direction::Higher))
    );
    assert_eq!(
        direction("lock_wait_per_fault_ns"),
        Some(Some(workload::Direction::Lower))
    );
}

#[test]
fn names_of_sides_are_one_word_each() {
    let labels = [
        "6.12.0-rc1 with a very long label of its own",
        "6.12.0-rc1-patched",
    ];
    let found = report(
        sides(1.1),
        Options {
            labels: labels.map(str::to_owned),
            ..Options::default()
        },
    );
    for layout in [Layout::Mmtests, Layout::Lkp] {
        let text = table(&found, layout);
        let parsed = workload::parse(&text, &Defaults::default()).expect("it is read");
        let variants: Vec<_> = parsed
            .measurements
            .iter()
            .map(|m| m.variant.as_deref())
            .collect();
        assert_eq!(variants[1], Some("6.12.0-rc1-patched"));
        assert!(variants[0].is_some_and(|name| name.ends_with("bel_of_its_own")));
    }
}

#[test]
fn a_table_of_lkp_is_compared_without_a_verdict() {
    let sides = || {
        ["2c2ae8d1e0", "9ab3d2a1bc"].map(|commit| imported(LKP, Some(commit), &Defaults::default()))
    };
    let found = report(sides(), Options::default());
    assert_eq!(found.rows.len(), 4);
    assert!(found.rows.iter().all(|row| row.verdict.is_none()));
    assert_eq!(found.outcome(false), Outcome::Fine);
    assert_eq!(found.outcome(true), Outcome::Inconclusive);
    let shown = text(&found);
    for part in [
        "will-it-scale.16.threads 3.30M 7.34M +122% - / -",
        "mpstat.cpu.all.sys% 11.4 10.2 -10.5% 2% / 2%",
        "n unknown, so no interval and no p. No verdict possible.",
        "of job gcc-12/performance",
    ] {
        assert!(words(&shown).contains(part), "{part} in\n{shown}");
    }
    assert!(
        !shown.contains("()") && !shown.contains("Mann-Whitney"),
        "{shown}"
    );
    // The same table in the same style holds the same figures.
    let again = read(&table(&found, Layout::Lkp), Format::Lkp);
    let values: Vec<f64> = again[1].values().map(|(value, _)| *value).collect();
    for value in [7_336_336.0, 10.22, 4.035e8, 1.5] {
        assert!(values.contains(&value), "{value} in {values:?}");
    }
    // Five tables are five means of unknown numbers of runs, not five runs.
    let many = sides().map(|side| {
        let copies = (0..5).map(|i| {
            let mut run = side[0].clone();
            run.run.id.push_str(&i.to_string());
            run
        });
        copies.collect::<Vec<_>>()
    });
    let options = gate("will-it-scale.16.threads", 5.0);
    let error = Report::new(many.clone(), options).expect_err("which way is better is not told");
    assert!(error.to_string().contains("no better direction"), "{error}");
    let found = report(many, Options::default());
    let is_open = |v: Option<Verdict>| matches!(v, None | Some(Verdict::Inconclusive));
    assert!(
        found
            .rows
            .iter()
            .all(|row| is_open(row.verdict) && row.adjusted_p.is_none())
    );
}

#[test]
fn sides_without_a_common_figure_are_told() {
    let [mut before, mut after] = sides(1.1);
    for (run, name) in before
        .iter_mut()
        .zip(["a"; 5])
        .chain(after.iter_mut().zip(["b"; 5]))
    {
        run.kernel = None;
        run.run.workload = None;
        run.metrics[0].name = name.to_owned();
        run.metrics[0].direction = None;
    }
    let error = Report::new([before, after], Options::default()).expect_err("nothing is compared");
    assert!(error.to_string().contains("no figure in common"), "{error}");
}
