//! Sheets and plots of known curves.

use super::*;
use crate::model::scale::{Limit, Observation};

fn series(values: &[(u32, f64)], limits: &[Limit]) -> Series {
    let observations: Vec<Observation> = values
        .iter()
        .map(|(n, per_sec)| Observation {
            n: *n,
            per_sec: *per_sec,
            cpu_ns_per_op: (*n > 1).then_some(1_200.0),
        })
        .collect();
    Series {
        name: "fault/wsec".to_owned(),
        unit: "1/s".to_owned(),
        format: "pft".to_owned(),
        over: "threads",
        keys: vec![("gib".to_owned(), "4".to_owned())],
        runs: 1,
        scaling: Scaling::new(&observations, limits),
    }
}

fn text(series: &Series) -> String {
    sheet(series).lines().join("\n")
}

/// 4 GB of the page-fault table of 2004.
const VALLEY: [(u32, f64); 10] = [
    (1, 63_237.0),
    (2, 154_606.0),
    (4, 263_190.0),
    (8, 396_402.0),
    (16, 411_640.0),
    (32, 330_197.0),
    (64, 295_042.0),
    (128, 211_812.0),
    (256, 360_940.0),
    (512, 544_185.0),
];

#[test]
fn a_valley_has_a_table_a_segment_and_its_reasons() {
    insta::assert_snapshot!(text(&series(&VALLEY, &[])));
}

#[test]
fn weak_fits_say_so() {
    let madvise = [
        (1, 609.0),
        (2, 1136.0),
        (4, 1128.0),
        (8, 1088.0),
        (16, 1073.0),
    ];
    insta::assert_snapshot!(text(&series(&madvise, &[])));
}

#[test]
fn few_points_and_another_base_are_told() {
    let limit = Limit {
        n: 2,
        what: "CPUs of the machine".to_owned(),
    };
    insta::assert_snapshot!(text(&series(&[(2, 100.0), (4, 80.0), (8, 70.0)], &[limit])));
}

#[test]
fn runs_have_a_spread_and_a_law_its_interval() {
    let mut values = Vec::new();
    for n in [1_u32, 2, 4, 8, 16, 32] {
        let x = f64::from(n);
        let law = 1000.0 * x / (1.0 + 0.1 * (x - 1.0) + 0.002 * x * (x - 1.0));
        values.extend([(n, law * 0.98), (n, law * 1.02), (n, law)]);
    }
    insta::assert_snapshot!(text(&series(&values, &[])));
}

#[test]
fn plots_hold_the_ideal_the_law_and_every_run() {
    let series = series(&VALLEY, &[]);
    let svg = throughput_svg(&series);
    for class in ["ideal", "law", "line", "dots"] {
        assert_eq!(
            svg.matches(&format!("class=\"{class}\"")).count(),
            1,
            "{class}"
        );
    }
    assert_eq!(svg.matches("h0").count(), 10);
    assert!(svg.contains("aria-label=\"throughput, fault/wsec by threads: gib 4\""));
    // Nothing is drawn above the plot.
    assert!(!svg.contains(" -"), "{svg}");
    let svg = efficiency_svg(&series);
    assert_eq!(svg.matches("h0").count(), 10);
    // 122 % at two threads are inside.
    assert!(!svg.contains(" -"), "{svg}");
    let nothing = Series {
        scaling: Scaling::default(),
        ..series
    };
    assert!(throughput_svg(&nothing).is_empty() && efficiency_svg(&nothing).is_empty());
}
