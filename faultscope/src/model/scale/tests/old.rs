//! The tables of 2004 and 2007 as runs.

use super::*;
use crate::sample::run::Run;
use crate::workload::{self, Defaults, Direction, Metric};

const SLOPPY: &str = include_str!("../../../../tests/data/workload/pft-2004-sloppy.txt");
const TASKLIST: &str = include_str!("../../../../tests/data/workload/pft-2004-tasklist.txt");
const MADVISE: &str = include_str!("../../../../tests/data/workload/sysbench-madvise-2007.tsv");

/// The runs of a text, labelled as `import` labels them.
fn runs(text: &str, source: &str, defaults: &Defaults) -> Vec<(Run, Vec<Metric>)> {
    let found = workload::parse(text, defaults).expect("a table");
    let sets = workload::runs(found.measurements).into_iter().map(|set| {
        let mut run = Run::default();
        let mut label = |key: &str, value: String| run.labels.insert(key.to_owned(), value);
        label("source", source.to_owned());
        if let Some(variant) = set.variant {
            label("variant", variant);
        }
        if set.repetition > 1 {
            label("repetition", set.repetition.to_string());
        }
        (run, set.metrics)
    });
    sets.collect()
}

fn all(runs: &[(Run, Vec<Metric>)]) -> AllSeries {
    AllSeries::new(runs.iter().map(|(run, metrics)| (run, metrics.as_slice())))
}

fn page_faults() -> Vec<Series> {
    let mut both = runs(SLOPPY, "sloppy", &Defaults::default());
    both.extend(runs(TASKLIST, "tasklist", &Defaults::default()));
    let AllSeries { series, reasons } = all(&both);
    assert!(reasons.is_empty(), "{reasons:?}");
    series
}

fn full(series: &[Series]) -> Vec<&Series> {
    let full = series.iter().filter(|s| s.scaling.curve.points.len() == 10);
    full.collect()
}

#[test]
fn the_page_fault_tables_are_14_curves_and_10_of_them_full() {
    let series = page_faults();
    assert_eq!((series.len(), full(&series).len()), (14, 10));
    let points: usize = series.iter().map(|s| s.scaling.curve.points.len()).sum();
    assert_eq!(points, 64 + 66, "134 rows of which 4 are measured again");
    for one in &series {
        let keys: Vec<&str> = one.keys.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["gib", "source"]);
        assert_eq!((one.name.as_str(), one.over), ("fault/wsec", "threads"));
    }
    let again = |one: &&Series| one.runs == 2;
    assert_eq!(series.iter().filter(again).count(), 2);
    let twice = series.iter().flat_map(|s| &s.scaling.curve.points);
    assert_eq!(twice.filter(|p| p.runs.len() == 2).count(), 4);
}

#[test]
fn cost_of_a_fault_follows_from_its_rate_per_cpu_second() {
    let series = page_faults();
    // 369606.184 faults/s, 74889.898 for each second of CPU time.
    let point = series[0].scaling.curve.at(8).expect("measured");
    assert_near(point.per_sec, 369_606.184, 1e-9);
    assert_near(point.cpu_ns_per_op.expect("told"), 13352.9, 0.1);
}

#[test]
fn every_full_curve_of_2004_has_its_valley_and_no_law() {
    for one in full(&page_faults()) {
        let scaling = &one.scaling;
        let valley = scaling.refused.iter().find_map(|doubt| match doubt {
            Doubt::Valley(valley) => Some(valley),
            _ => None,
        });
        let valley = valley.expect("a valley");
        assert!(
            (64..=128).contains(&valley.bottom),
            "{:?}: {valley:?}",
            one.keys
        );
        assert!(valley.from <= 16 && valley.to >= 256);
        // The law is met before the valley, and nowhere else.
        let [fit] = scaling.fits.as_slice() else {
            panic!("{:?}: {scaling:?}", one.keys);
        };
        assert!(fit.from == 1 && fit.to >= 16 && fit.to <= 128);
        assert!(fit.worst <= MOST_RESIDUAL);
    }
}

#[test]
fn fits_to_all_points_of_2004_are_as_bad_as_known() {
    let (mut errors, mut squares) = (Vec::new(), Vec::new());
    for one in full(&page_faults()) {
        let points = doubt::rates(&one.scaling.curve.points);
        let law = Law::fit(&points).expect("enough points");
        errors.push(law.worst(&points).expect("a point").1);
        squares.push(r2(&law, &points));
        let head = &points[..5];
        let law = Law::fit(head).expect("enough points");
        assert_near(r2(&law, head), 0.995, 0.0055);
        let peak = law.peak().expect("it falls");
        assert!((10.5..28.5).contains(&peak), "{peak}");
    }
    let span = |values: &[f64]| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        (low, values.iter().copied().fold(0.0, f64::max))
    };
    let (low, high) = span(&errors);
    assert_near(low, 0.66, 0.01);
    assert_near(high, 0.90, 0.01);
    let (low, high) = span(&squares);
    assert_near(low, 0.47, 0.01);
    assert_near(high, 0.88, 0.01);
}

/// Share of the variance of the logs that the law explains.
fn r2(law: &Law, points: &[(u32, f64)]) -> f64 {
    let logs: Vec<f64> = points.iter().map(|(_, x)| x.ln()).collect();
    let count = f64::from(u32::try_from(logs.len()).expect("few"));
    let mean = logs.iter().sum::<f64>() / count;
    let left: f64 = points
        .iter()
        .map(|(n, x)| (x / law.per_sec(f64::from(*n))).ln().powi(2))
        .sum();
    1.0 - left / logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>()
}

#[test]
fn the_table_of_2007_needs_to_be_told_what_its_numbers_are() {
    let untold = all(&runs(MADVISE, "2007", &Defaults::default()));
    assert!(untold.series.is_empty());
    let [reason] = untold.reasons.as_slice() else {
        panic!("{untold:?}");
    };
    assert!(reason.contains("--unit 1/s --direction higher"), "{reason}");
    let defaults = Defaults {
        name: Some("transactions/s".to_owned()),
        unit: Some("1/s".to_owned()),
        direction: Some(Direction::Higher),
    };
    let told = all(&runs(MADVISE, "2007", &defaults));
    let variants: Vec<&str> = told.series.iter().map(|s| s.keys[0].1.as_str()).collect();
    assert_eq!(variants, super::MADVISE.map(|(name, _)| name));
    assert_near(
        told.series[3].scaling.curve.points[4].efficiency,
        0.23,
        0.005,
    );
}

#[test]
fn limits_come_from_the_machine_of_the_run() {
    let limits = |text: &str| {
        let limits = Limit::of_topology(text).into_iter();
        limits.map(|l| (l.n, l.what)).collect::<Vec<_>>()
    };
    let owned = |n, what: &str| (n, what.to_owned());
    assert_eq!(
        limits("node 0 LLC 0: 2 CPUs, 2 cores"),
        [owned(2, "CPUs of the machine")]
    );
    assert_eq!(
        limits(
            "node 0 LLC 0: 8 CPUs, 4 cores; node 0 LLC 8: 8 CPUs, 4 cores; node 1 LLC 16: 8 CPUs, 4 cores"
        ),
        [
            owned(24, "CPUs of the machine"),
            owned(12, "cores of the machine"),
            owned(16, "CPUs of a node")
        ]
    );
    assert_eq!(limits("something else"), []);
}
