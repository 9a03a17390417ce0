//! Curves whose figures are known.

use super::*;

fn observations(values: &[(u32, f64)]) -> Vec<Observation> {
    values
        .iter()
        .map(|(n, per_sec)| Observation {
            n: *n,
            per_sec: *per_sec,
            cpu_ns_per_op: None,
        })
        .collect()
}

fn curve(values: &[(u32, f64)]) -> Curve {
    Curve::new(&observations(values))
}

fn assert_near(a: f64, b: f64, within: f64) {
    assert!((a - b).abs() <= within, "{a} is not {b} within {within}");
}

/// The madvise table of 2007, transactions/s at 1, 2, 4, 8 and 16 threads.
const MADVISE: [(&str, [f64; 5]); 4] = [
    ("vanilla", [610.0, 1032.0, 1070.0, 1000.0, 779.0]),
    ("new_glibc", [609.0, 1136.0, 1128.0, 1088.0, 1073.0]),
    ("madv_free", [596.0, 1196.0, 2014.0, 1665.0, 1310.0]),
    (
        "madv_free_mmap_sem",
        [545.0, 1200.0, 2024.0, 2087.0, 1999.0],
    ),
];

fn madvise(values: [f64; 5]) -> Curve {
    let at = [1, 2, 4, 8, 16].into_iter().zip(values);
    curve(&at.collect::<Vec<_>>())
}

#[test]
fn efficiency_of_the_madvise_table_is_the_known_one() {
    for ((name, values), (at_4, at_16)) in
        MADVISE
            .into_iter()
            .zip([(0.44, 0.08), (0.46, 0.11), (0.84, 0.14), (0.93, 0.23)])
    {
        let curve = madvise(values);
        let at = |n| curve.at(n).expect(name).efficiency;
        assert_near(at(4), at_4, 0.005);
        assert_near(at(16), at_16, 0.005);
    }
}

#[test]
fn a_point_has_speed_up_gain_and_cost() {
    let mut all = observations(&[(4, 300.0), (1, 100.0), (2, 210.0)]);
    all[0].cpu_ns_per_op = Some(20.0);
    let curve = Curve::new(&all);
    assert_eq!(
        curve.points.iter().map(|p| p.n).collect::<Vec<_>>(),
        [1, 2, 4]
    );
    assert_eq!(curve.base(), Some(1));
    let four = curve.at(4).expect("measured");
    assert_near(four.speedup, 3.0, 1e-12);
    assert_near(four.efficiency, 0.75, 1e-12);
    // 90 more with two more threads, of which one did 100 alone.
    assert_near(four.marginal.expect("not the first"), 0.45, 1e-12);
    assert_eq!(four.cpu_ns_per_op, Some(20.0));
    let two = curve.at(2).expect("measured");
    assert!(two.is_above_linear() && !four.is_above_linear());
    assert_eq!((curve.points[0].marginal, two.cpu_ns_per_op), (None, None));
    assert_eq!(curve.best().map(|p| p.n), Some(4));
}

#[test]
fn runs_at_one_number_of_threads_are_one_point() {
    let curve = curve(&[(1, 100.0), (2, 100.0), (2, 400.0)]);
    assert_eq!(curve.points.len(), 2);
    assert_eq!(curve.points[1].runs, [100.0, 400.0]);
    assert_near(curve.points[1].per_sec, 200.0, 1e-9);
}

#[test]
fn without_one_thread_the_fewest_are_the_base() {
    let curve = curve(&[(4, 400.0), (8, 600.0)]);
    assert_eq!(curve.base(), Some(4));
    assert_near(curve.points[1].efficiency, 0.75, 1e-12);
    assert_near(curve.points[1].marginal.expect("not the first"), 0.5, 1e-12);
}

#[test]
fn what_cannot_be_divided_by_is_left_out() {
    let nothing = curve(&[
        (0, 5.0),
        (1, 0.0),
        (2, f64::NAN),
        (3, -1.0),
        (4, f64::INFINITY),
    ]);
    assert_eq!((nothing.points.len(), nothing.base()), (0, None));
    assert!(nothing.best().is_none());
}
