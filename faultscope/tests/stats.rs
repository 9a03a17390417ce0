//! The statistics of `compare` against SciPy, an independent implementation.
//!
//! `tests/stats/scipy.json` was written by `tests/stats/vectors.py`. `cargo xtask test` has the script draw other data
//! and runs these tests on them again: `FAULTSCOPE_SCIPY` names the file.

use faultscope::compare::stats::{
    EXACT_MAX, Method, benjamini_hochberg, compare, compare_pairs, drift, holm, poisson_interval,
};
use serde_json::Value;

/// Relative difference that two ways of calculating may have.
const TOLERANCE: f64 = 1e-8;

fn vectors() -> Value {
    let text = match std::env::var_os("FAULTSCOPE_SCIPY") {
        Some(path) => std::fs::read_to_string(path).expect("FAULTSCOPE_SCIPY names a file"),
        None => include_str!("stats/scipy.json").to_owned(),
    };
    serde_json::from_str(&text).expect("vectors.py writes JSON")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().expect("a list")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("a list");
    list.iter().map(number).collect()
}

#[track_caller]
fn close(ours: f64, theirs: f64, what: &Value) {
    let off = (ours - theirs).abs();
    // What is nearly 0 on both sides (a p of 1e-11, a shift of 1e-16) is compared absolutely.
    assert!(
        off <= TOLERANCE * theirs.abs().max(1e-4),
        "{ours} against {theirs} of {what}"
    );
}

#[test]
fn independent_sides() {
    let vectors = vectors();
    let mut methods = [0, 0];
    for key in ["sides", "tied_sides"] {
        for case in list(&vectors, key) {
            let (before, after) = (numbers(&case["before"]), numbers(&case["after"]));
            let ours = compare(&before, &after).expect("values on both sides");
            close(ours.test.p, number(&case["p"]), case);
            close(ours.shift.estimate, number(&case["estimate"]), case);
            interval(ours.shift.interval, case);
            let is_counted = before.len().max(after.len()) <= EXACT_MAX;
            assert_eq!(ours.test.method == Method::Exact, is_counted, "{case}");
            methods[usize::from(is_counted)] += 1;
        }
    }
    assert!(methods[0] >= 6 && methods[1] >= 20, "{methods:?}");
}

#[test]
fn paired_rounds() {
    let vectors = vectors();
    let mut cases = 0;
    for key in ["pairs", "tied_pairs"] {
        for case in list(&vectors, key) {
            let before = numbers(&case["before"]);
            let pairs: Vec<(f64, f64)> = before.into_iter().zip(numbers(&case["after"])).collect();
            let ours = compare_pairs(&pairs).expect("there are pairs");
            close(ours.test.p, number(&case["p"]), case);
            close(ours.shift.estimate, number(&case["estimate"]), case);
            interval(ours.shift.interval, case);
            cases += 1;
        }
    }
    assert!(cases >= 24, "{cases}");
}

/// Compares an interval with that of the inverted test, where the case has one.
fn interval(ours: Option<(f64, f64)>, case: &Value) {
    match (ours, &case["interval"]) {
        (Some((low, high)), Value::Array(theirs)) => {
            close(low, number(&theirs[0]), case);
            close(high, number(&theirs[1]), case);
        }
        (None, Value::Null) => {}
        // With ties the test is no function of pairwise differences alone: there is nothing to compare.
        (Some(_), Value::Null) if case.get("interval").is_none() => {}
        (ours, theirs) => panic!("{ours:?} against {theirs} of {case}"),
    }
}

#[test]
fn families() {
    let vectors = vectors();
    for case in list(&vectors, "families") {
        let p = numbers(&case["p"]);
        for (ours, key) in [(holm(&p), "holm"), (benjamini_hochberg(&p), "bh")] {
            let theirs = numbers(&case[key]);
            assert_eq!(ours.len(), theirs.len());
            ours.iter()
                .zip(theirs)
                .for_each(|(o, t)| close(*o, t, case));
        }
    }
}

#[test]
fn rank_correlation_with_time() {
    let vectors = vectors();
    for case in list(&vectors, "drifts") {
        let values = numbers(&case["values"]);
        let starts: Vec<u64> = (1..).take(values.len()).collect();
        let ours = drift(&values, &starts).expect("three values or more");
        close(ours.tau, number(&case["tau"]), case);
        close(ours.p, number(&case["p"]), case);
    }
}

#[test]
fn intervals_of_counts() {
    let vectors = vectors();
    for case in list(&vectors, "counts") {
        let count = case["count"].as_u64().expect("a count");
        let ours = poisson_interval(count, 1).expect("one run");
        close(ours.low, number(&case["low"]), case);
        close(ours.high, number(&case["high"]), case);
    }
}
