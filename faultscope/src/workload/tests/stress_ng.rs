//! stress-ng's metrics.

use super::*;

// Written by Debian's stress-ng 0.15.06 on a virtual machine.
const METRICS: &str = include_str!("../../../tests/data/workload/stress-ng-0.15.06-metrics.txt");
const BRIEF: &str = include_str!("../../../tests/data/workload/stress-ng-0.15.06-brief.txt");
const SCIENTIFIC: &str =
    include_str!("../../../tests/data/workload/stress-ng-0.15.06-scientific.txt");
const TIMESTAMP: &str =
    include_str!("../../../tests/data/workload/stress-ng-0.15.06-timestamp.txt");
const YAML: &str = include_str!("../../../tests/data/workload/stress-ng-0.15.06.yaml");

fn of<'a>(found: &'a Found, stressor: &str, name: &str) -> &'a Metric {
    let mut all = found.measurements.iter().flat_map(|m| &m.metrics);
    all.find(|m| m.name == name && m.keys[0].1 == stressor)
        .unwrap_or_else(|| panic!("\"{name}\" of {stressor} is not in {found:#?}"))
}

#[test]
fn metrics_have_eight_columns_and_instances() {
    let full = found(METRICS);
    assert_eq!(full.measurements.len(), 1);
    assert_value(of(&full, "fault", "bogo-ops/s"), 838.47);
    assert_value(of(&full, "fault", "max rss"), 2468.0);
    assert_value(of(&full, "vm", "system"), 0.10);
    let rate = of(&full, "fault", "bogo-ops/s");
    let key = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(rate.keys, [key("stressor", "fault"), key("instances", "2")]);
    assert_eq!(
        (rate.direction, rate.work),
        (Some(Direction::Higher), Some(Work::Timed))
    );
    for damaged in by_mail(METRICS) {
        assert_eq!(found(&damaged).measurements, full.measurements);
    }
}

#[test]
fn brief_metrics_time_stamps_and_exponents_are_read() {
    assert_value(of(&found(BRIEF), "fault", "bogo-ops/cpu-s"), 9500.78);
    assert_value(of(&found(TIMESTAMP), "fault", "bogo-ops"), 501.0);
    let scientific = found(SCIENTIFIC);
    let rate = of(&scientific, "fault", "bogo-ops/s");
    assert_value(rate, 1891.35);
    assert!((rate.resolution - 0.01).abs() < 1e-9, "{}", rate.resolution);
    // Until 0.14 metrics were an info.
    let old = BRIEF.replace("metrc:", "info: ");
    assert_value(of(&found(&old), "fault", "bogo-ops/s"), 1600.37);
    assert_value(
        of(
            &Found {
                measurements: vec![Measurement::new(Format::StressNg, results(BRIEF, &[]).0)],
                reasons: vec![],
            },
            "fault",
            "bogo-ops/s",
        ),
        1600.37,
    );
}

#[test]
fn what_is_averaged_how_is_part_of_a_figure() {
    let full = found(METRICS);
    let faults = of(&full, "fault", "minor page faults per sec");
    assert_value(faults, 2109.19);
    assert_eq!((faults.unit.as_str(), faults.direction), ("1/s", None));
    assert_eq!(
        faults.keys.last().map(|(_, v)| v.as_str()),
        Some("geometric mean")
    );
    assert_eq!(of(&full, "fault", "nanosecs per page fault").unit, "ns");
    for (wording, kind) in [
        ("(geometric mean of 2 instances)", Some("geometric mean")),
        ("(harmonic mean of 2 instances)", Some("harmonic mean")),
        ("(average per stressor)", Some("average")),
        ("(total of 2 instances)", Some("total")),
        ("", None),
    ] {
        let text = METRICS.replace("(geometic mean of 2 instances)", wording);
        let other = found(&text);
        let faults = of(&other, "fault", "minor page faults per sec");
        let over = faults.keys.iter().find(|(key, _)| key == "over instances");
        assert_eq!(over.map(|(_, v)| v.as_str()), kind);
    }
}

#[test]
fn yaml_says_the_same_and_names_its_host() {
    let yaml = found(YAML);
    assert_value(of(&yaml, "fault", "bogo-ops/s"), 1_886.234_207);
    assert_value(of(&yaml, "vm", "system"), 0.130_432);
    assert_value(
        of(&yaml, "fault", "minor page faults per sec"),
        4_771.046_401,
    );
    assert_eq!(yaml.measurements[0].host.as_deref(), Some("vm"));
    let later = YAML.replace(
        "      bogo-ops: 3787",
        "      instances: 2\n      bogo-ops: 3787",
    );
    let later = found(&later);
    assert_eq!(
        of(&later, "fault", "bogo-ops/s").keys[1],
        ("instances".to_owned(), "2".to_owned())
    );
    assert_eq!(of(&later, "vm", "bogo-ops/s").keys.len(), 1);
    let last = YAML.replace(
        "      nanosecs-per-page-fault",
        "      instances: 2\n      nanosecs-per-page-fault",
    );
    assert_eq!(of(&found(&last), "fault", "bogo-ops/s").keys.len(), 2);
    assert!(refusal(&YAML.replace("1886.234207", "1886,234207")).contains("LC_ALL=C"));
    for damaged in by_mail(YAML) {
        assert_eq!(found(&damaged).measurements, yaml.measurements);
    }
}

#[test]
fn a_run_that_failed_or_cannot_be_trusted_is_refused() {
    for line in [
        "stress-ng: fail:  [16144] fault: cannot mmap",
        "stress-ng: warn:  [16144] metrics corrupted",
        "stress-ng: info:  [16144] metrics untrustworthy: 1: fault (1)",
        "stress-ng: info:  [16144] unsuccessful run completed in 2.00s",
    ] {
        let error = refusal(&format!("{METRICS}{line}\n"));
        assert!(error.starts_with("line 12: "), "{error}");
    }
    let fine = format!("{METRICS}stress-ng: info:  [16144] metrics untrustworthy: 0\n");
    assert_eq!(found(&fine).measurements, found(METRICS).measurements);
}

#[test]
fn a_row_that_does_not_add_up_is_refused() {
    let error = refusal(&METRICS.replace("838.47", "938.47"));
    assert!(error.contains("line 5: the row does not add up"), "{error}");
    let error = refusal(&METRICS.replace("838.47", "838,47"));
    assert!(error.contains("LC_ALL=C"), "{error}");
}

#[test]
fn runs_after_one_another_are_repetitions() {
    assert_eq!(
        runs(found(&format!("{BRIEF}{BRIEF}")).measurements).len(),
        2
    );
}
