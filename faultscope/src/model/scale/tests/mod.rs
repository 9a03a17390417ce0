//! Curves whose figures are known.

use super::*;

mod old;

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

/// Values of a law at given numbers of threads.
fn of_law(law: &Law, at: &[u32]) -> Vec<(u32, f64)> {
    at.iter()
        .map(|n| (*n, law.per_sec(f64::from(*n))))
        .collect()
}

fn scaling(values: &[(u32, f64)]) -> Scaling {
    Scaling::new(&observations(values), &[])
}

const DOUBLING: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

#[test]
fn a_law_without_noise_is_found_again() {
    for (s, k) in [
        (0.0, 0.0),
        (0.05, 0.0),
        (0.0, 0.001),
        (0.3, 0.033),
        (0.02, 1e-5),
        (1.5, 0.1),
    ] {
        let law = Law { lam: 1234.5, s, k };
        let found = Law::fit(&of_law(&law, &DOUBLING)).expect("enough points");
        assert_near(found.s, s, 1e-6);
        assert_near(found.k, k, 1e-7);
        assert_near(found.lam / law.lam, 1.0, 1e-5);
    }
    assert_eq!(Law::fit(&[(1, 1.0), (2, 2.0)]), None);
}

#[test]
fn numbers_of_the_law_are_never_negative() {
    // More than linear: the best law without bounds has s below 0.
    let above: Vec<(u32, f64)> = DOUBLING
        .iter()
        .map(|n| (*n, f64::from(*n).powf(1.2)))
        .collect();
    let law = Law::fit(&above).expect("enough points");
    assert_eq!((law.s, law.k), (0.0, 0.0));
    assert_eq!(law.peak(), None);
}

#[test]
fn the_peak_is_where_throughput_is_greatest() {
    let law = Law {
        lam: 1.0,
        s: 0.1,
        k: 0.01,
    };
    let peak = law.peak().expect("k above 0");
    assert_near(peak, 90_f64.sqrt(), 1e-12);
    assert!(law.per_sec(peak) > law.per_sec(peak * 1.01));
    assert!(law.per_sec(peak) > law.per_sec(peak * 0.99));
    let queue = Law {
        lam: 1.0,
        s: 1.2,
        k: 0.01,
    };
    assert_eq!(queue.peak(), Some(1.0));
    assert_eq!(
        Law {
            s: 1.0,
            k: 0.0,
            ..queue
        }
        .peak(),
        None
    );
}

#[test]
fn the_madvise_table_has_its_known_weak_fits() {
    for ((name, values), (s, k, peak)) in MADVISE.into_iter().zip([
        (0.30, 0.033, 4.6),
        (0.36, 0.017, 6.2),
        (0.0, 0.029, 5.8),
        (0.03, 0.015, 8.1),
    ]) {
        let at: Vec<(u32, f64)> = [1, 2, 4, 8, 16].into_iter().zip(values).collect();
        let scaling = scaling(&at);
        assert_eq!(scaling.refused[0], Doubt::Few { points: 5 }, "{name}");
        let [fit] = scaling.fits.as_slice() else {
            panic!("{name}: {scaling:?}");
        };
        assert_near(fit.law.s, s, 0.005);
        assert_near(fit.law.k, k, 0.0005);
        assert_near(fit.law.peak().expect(name), peak, 0.05);
        assert_eq!(fit.doubts[0], Doubt::Few { points: 5 }, "weak: {name}");
        assert!(scaling.unfitted.is_empty() && fit.interval.is_none());
    }
}

#[test]
fn points_along_the_law_have_one_sound_fit() {
    let law = Law {
        lam: 100.0,
        s: 0.05,
        k: 0.001,
    };
    let scaling = scaling(&of_law(&law, &DOUBLING));
    assert!(scaling.refused.is_empty() && scaling.unfitted.is_empty());
    let [fit] = scaling.fits.as_slice() else {
        panic!("{scaling:?}");
    };
    assert_eq!((fit.from, fit.to, fit.points), (1, 128, 8));
    assert!(fit.worst < 1e-6 && fit.doubts.is_empty());
}

#[test]
fn a_fit_is_refused_for_each_reason() {
    let law = Law {
        lam: 100.0,
        s: 0.02,
        k: 0.0,
    };
    let refused = |values: &[(u32, f64)], limits: &[Limit]| {
        let scaling = Scaling::new(&observations(values), limits);
        let reasons: Vec<String> = scaling
            .refused
            .iter()
            .map(|d| d.reason("threads"))
            .collect();
        (reasons.join("; "), scaling.fits.len(), scaling.unfitted)
    };
    let long = of_law(&law, &DOUBLING);
    assert_eq!(refused(&long, &[]).0, "");

    let (reasons, fits, unfitted) = refused(&long[..4], &[]);
    assert!(
        reasons.contains("6 different numbers of threads, and there are 4"),
        "{reasons}"
    );
    assert_eq!((fits, unfitted[0].points), (0, 4), "efficiency only");

    // 8 threads at 88 %.
    let short = of_law(&law, &[1, 2, 3, 4, 6, 8]);
    let (reasons, fits, _) = refused(&short, &[]);
    assert!(
        reasons.contains("at 8 threads, the most measured, efficiency is still 88 %"),
        "{reasons}"
    );
    assert_eq!(fits, 1, "shown, and said to be weak");

    let limit = Limit {
        n: 48,
        what: "CPUs".to_owned(),
    };
    let (reasons, fits, unfitted) = refused(&long, &[limit]);
    assert!(
        reasons.contains("128 threads are more than the 48 CPUs"),
        "{reasons}"
    );
    assert_eq!(
        (fits, unfitted),
        (
            1,
            vec![Unfitted {
                from: 64,
                to: 128,
                points: 2
            }]
        )
    );

    let mut bent = long;
    bent[7].1 *= 1.6;
    let (reasons, _, _) = refused(&bent, &[]);
    assert!(reasons.contains("off the throughput at"), "{reasons}");
    assert!(!reasons.contains("valley"), "{reasons}");
}

#[test]
fn a_valley_is_a_fall_and_a_rise() {
    let first = |values: &[f64]| {
        let at = (1..).zip(values.iter().copied());
        let curve = curve(&at.collect::<Vec<_>>());
        doubt::Valley::first(&curve.points).map(|v| (v.from, v.bottom, v.to))
    };
    assert_eq!(
        first(&[100.0, 200.0, 150.0, 140.0, 170.0, 260.0, 250.0]),
        Some((2, 4, 6))
    );
    assert_eq!(first(&[100.0, 97.5, 120.0]), None, "3 % is noise");
    assert_eq!(first(&[100.0, 90.0, 94.0]), None, "and so is a rise of 5 %");
    assert_eq!(first(&[100.0, 90.0, 80.0]), None);
    assert_eq!(first(&[100.0, 90.0, 95.0]), Some((1, 2, 3)));
    assert_eq!(first(&[]), None);
}

#[test]
fn intervals_need_runs_and_hold_the_truth() {
    let law = Law {
        lam: 100.0,
        s: 0.05,
        k: 0.002,
    };
    let mut all = Vec::new();
    // Six runs at each, spread evenly over 5 %.
    for (i, (n, per_sec)) in of_law(&law, &DOUBLING).into_iter().enumerate() {
        for run in 0..6_u32 {
            let spread = f64::from((run * 5 + u32::try_from(i).expect("small") * 3) % 6) - 2.5;
            all.push((n, per_sec * (1.0 + spread / 100.0)));
        }
    }
    let repeated = scaling(&all);
    let [fit] = repeated.fits.as_slice() else {
        panic!("{repeated:?}");
    };
    let interval = fit.interval.expect("six runs each");
    assert!(interval.s[0] < 0.05 && 0.05 < interval.s[1], "{interval:?}");
    assert!(
        interval.k[0] < 0.002 && 0.002 < interval.k[1],
        "{interval:?}"
    );
    let peak = interval.peak.map(|n| n.expect("k is above 0"));
    assert!(peak[0] < 21.79 && 21.79 < peak[1], "{interval:?}");
    assert_eq!(interval.runs, 6);
    // The same again: the seed is fixed.
    assert_eq!(scaling(&all), repeated);
    all.truncate(all.len() - 5);
    assert_eq!(
        scaling(&all).fits[0].interval,
        None,
        "one point has one run"
    );
}
