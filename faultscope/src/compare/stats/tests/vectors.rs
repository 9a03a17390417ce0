//! Values from tables, and the cases a reader would try first.

use super::super::*;

#[track_caller]
fn close(ours: f64, expected: f64) {
    assert!((ours - expected).abs() <= 1e-9, "{ours} is not {expected}");
}

fn apart(n: usize) -> (Vec<f64>, Vec<f64>) {
    let side = |from: f64| (0..n).map(|i| from + real(i)).collect();
    (side(100.0), side(200.0))
}

/// The verdict of headline metrics where more is better, with a margin of 3 %.
fn verdict(before: &[f64], after: &[f64]) -> Verdict {
    let compared = compare(before, after).expect("runs on both sides");
    let margin = Margin::new(0.03, 0.0, compared.before);
    compared.verdict(compared.test.p, ALPHA, Direction::HigherIsBetter, margin)
}

#[test]
fn interval_ranks_are_those_of_the_tables() {
    let rank = |design: Design| design.interval_rank().map(|(k, _)| k);
    for (n, k) in [(4, 1), (5, 3), (6, 6), (8, 14), (10, 24)] {
        assert_eq!(rank(Design::Sides(n, n)), Some(k), "n={n}");
    }
    assert_eq!(rank(Design::Sides(3, 3)), None);
    assert_eq!(rank(Design::Pairs(5)), None);
    assert_eq!(rank(Design::Pairs(6)), Some(1));
    // The step from counting to the approximation moves the rank by one at most.
    let counted = rank(Design::Sides(20, 20)).expect("counted");
    let near = rank(Design::Sides(21, 20)).expect("approximated");
    assert!(near > counted && near - counted < 12, "{counted} {near}");
}

#[test]
fn smallest_p_and_least_n() {
    for (n, p) in [
        (3, 0.10),
        (4, 0.029),
        (5, 0.0079),
        (6, 0.0022),
        (8, 0.00016),
        (10, 0.00001),
    ] {
        let floor = Design::Sides(n, n).floor();
        assert!((floor - p).abs() <= 0.05 * p + 5e-6, "n={n}: {floor}");
        let (before, after) = apart(n);
        close(mann_whitney(&before, &after).expect("runs").p, floor);
    }
    assert!((Design::Sides(5, 10).floor() - 0.00067).abs() < 5e-6);
    assert_eq!(Design::Pairs(3).least(ALPHA), Some(6));
    assert_eq!(Design::Pairs(6).least(ALPHA / 6.0), Some(8));
    assert_eq!(Design::Sides(2, 2).least(ALPHA), Some(4));
    assert_eq!(Design::Sides(2, 2).least(0.0), None);
    assert_eq!(Design::Sides(2, 2).enough(ALPHA), Some(5));
    assert_eq!(Design::Pairs(2).enough(ALPHA), Some(6));
}

#[test]
fn five_runs_apart_decide_one_class_and_not_thirteen() {
    let (before, after) = apart(5);
    let compared = compare(&before, &after).expect("runs on both sides");
    assert_eq!(format!("{:.4}", compared.test.p), "0.0079");
    assert_eq!(verdict(&before, &after), Verdict::Improved);
    assert_eq!(too_small(compared.design, 1), None);
    assert_eq!(too_small(compared.design, 12), None);
    assert_eq!(
        too_small(compared.design, 13).as_deref(),
        Some("n too small to flag a single class at m=13; need n=6")
    );
    assert_eq!(too_small(Design::Sides(6, 6), 46), None);
    assert!(too_small(Design::Sides(6, 6), 47).is_some());
    assert_eq!(too_small(Design::Sides(8, 8), 643), None);
    assert!(too_small(Design::Sides(8, 8), 644).is_some());
    // One class far apart among twelve that are alike.
    let mut p = vec![1.0; 13];
    p[4] = compared.test.p;
    assert!(benjamini_hochberg(&p)[4] > FDR);
}

#[test]
fn one_run_per_side_has_no_verdict() {
    assert_eq!(verdict(&[596.0], &[545.0]), Verdict::Inconclusive);
    let compared = compare(&[596.0], &[545.0]).expect("one run each");
    assert_eq!(compared.shift.interval, None);
    assert_eq!(
        small_n(compared.design, compared.shift.percent()).as_deref(),
        Some(
            "1 run per side: no noise estimate. Difference -8.6 %. No verdict possible. Repeat at least 5 times per \
             side, alternating kernels."
        )
    );
}

#[test]
fn few_runs_are_told() {
    let told = |design| small_n(design, None).unwrap_or_default();
    assert!(told(Design::Sides(2, 2)).contains("the smallest possible p is 0.33"));
    assert!(told(Design::Sides(3, 3)).contains("the smallest possible p is 0.10"));
    // One number of runs, whichever is missing, and one of pairs.
    for n in 1..5 {
        let text = told(Design::Sides(n, n)).to_lowercase();
        assert!(text.contains("at least 5 "), "{text}");
    }
    for n in 1..6 {
        let text = told(Design::Pairs(n)).to_lowercase();
        assert!(text.contains("at least 6 "), "{text}");
    }
    assert!(told(Design::Sides(4, 4)).contains("one bad run decides"));
    assert!(told(Design::Sides(1, 12)).starts_with("1 run on one side, 12 on the other"));
    assert!(told(Design::Pairs(5)).contains("At least 6 pairs"));
    for design in [Design::Sides(5, 5), Design::Sides(5, 10), Design::Pairs(6)] {
        assert_eq!(small_n(design, None), None);
    }
}

#[test]
fn four_verdicts_and_a_move() {
    let steady = [100.0, 100.2, 100.4, 100.6, 100.8];
    let times = |ratio: f64| steady.map(|v| v * ratio);
    assert_eq!(verdict(&steady, &times(1.08)), Verdict::Improved);
    assert_eq!(verdict(&steady, &times(0.92)), Verdict::Regressed);
    // Clearly different, and too little to matter.
    assert_eq!(verdict(&steady, &times(1.015)), Verdict::Unchanged);
    assert_eq!(verdict(&steady, &steady), Verdict::Unchanged);
    let noisy = [80.0, 95.0, 100.0, 110.0, 130.0];
    assert_eq!(verdict(&steady, &noisy), Verdict::Inconclusive);
    let compared = compare(&steady, &times(1.08)).expect("runs on both sides");
    let margin = Margin::new(0.03, 0.0, 100.0);
    let with = |p, direction| compared.verdict(p, ALPHA, direction, margin);
    assert_eq!(with(0.01, Direction::LowerIsBetter), Verdict::Regressed);
    assert_eq!(with(0.01, Direction::None), Verdict::Moved);
    // Significant alone, not in its family: never "unchanged".
    assert_eq!(with(0.2, Direction::HigherIsBetter), Verdict::Inconclusive);
}

#[test]
fn a_margin_is_never_below_what_can_be_read() {
    // Elapsed times of a second with steps of 10 ms; the difference is one step.
    let (before, after) = ([0.20; 5], [0.21; 5]);
    let compared = compare(&before, &after).expect("runs on both sides");
    let margin = Margin::new(0.03, 0.01, compared.before);
    close(margin.relative(), 0.05);
    let found = compared.verdict(compared.test.p, ALPHA, Direction::LowerIsBetter, margin);
    assert_eq!(found, Verdict::Inconclusive);
    // Times that read alike may lie a step apart, which is more than 3 %.
    let alike = compare(&before, &before).expect("runs on both sides");
    let found = alike.verdict(1.0, ALPHA, Direction::LowerIsBetter, margin);
    assert_eq!(found, Verdict::Inconclusive);
}

#[test]
fn a_change_of_just_the_margin_is_within_it_up_and_down() {
    let before = [100.0; 5];
    for after in [103.0, 97.0] {
        assert_eq!(verdict(&before, &[after; 5]), Verdict::Unchanged, "{after}");
    }
    assert_eq!(verdict(&before, &[103.1; 5]), Verdict::Improved);
    assert_eq!(verdict(&before, &[96.9; 5]), Verdict::Regressed);
}

#[test]
fn a_gate_wants_the_whole_interval_beyond_it() {
    let before = [100.0, 101.0, 102.0, 103.0, 104.0];
    let slower = before.map(|v| v * 1.2);
    let compared = compare(&before, &slower).expect("runs on both sides");
    let gate = |p, direction, percent| compared.is_beyond_gate(p, direction, percent);
    assert!(gate(0.0079, Direction::LowerIsBetter, 5.0));
    assert!(
        !gate(0.0079, Direction::LowerIsBetter, 19.0),
        "the interval reaches below"
    );
    assert!(
        !gate(0.06, Direction::LowerIsBetter, 5.0),
        "chance does that"
    );
    assert!(
        !gate(0.0079, Direction::HigherIsBetter, 5.0),
        "an improvement"
    );
    assert!(!gate(0.0079, Direction::None, 5.0));
}

#[test]
fn a_regression_from_zero_has_no_percentage() {
    let compared = compare(&[0.0; 5], &[7.0, 8.0, 9.0, 10.0, 11.0]).expect("runs on both sides");
    assert_eq!(compared.shift.scale, Scale::Difference);
    assert_eq!(compared.shift.percent(), None);
    close(compared.shift.estimate, 9.0);
    let margin = Margin::new(0.03, 0.0, compared.before);
    let found = compared.verdict(compared.test.p, ALPHA, Direction::LowerIsBetter, margin);
    assert_eq!(found, Verdict::Regressed);
    assert!(compared.is_beyond_gate(compared.test.p, Direction::LowerIsBetter, 5.0));
}

#[test]
fn what_has_no_number_is_not_compared() {
    assert_eq!(compare(&[], &[1.0]), None);
    assert_eq!(compare(&[1.0, f64::NAN], &[1.0]), None);
    assert_eq!(compare_pairs(&[]), None);
    assert_eq!(compare_pairs(&[(1.0, f64::INFINITY)]), None);
    assert_eq!(signed_rank(&[0.0, 0.0]).map(|t| t.p), Some(1.0));
    assert_eq!(mann_whitney(&[3.0; 30], &[3.0; 30]).map(|t| t.p), Some(1.0));
}

#[test]
fn pairing_takes_out_what_both_runs_of_a_round_share() {
    // Each round 10 % slower than the one before, and 4 % between the sides.
    let round = |i: usize| {
        let level = 100.0 * 1.1_f64.powf(real(i));
        (level, level * (1.04 + 0.001 * real(i % 3)))
    };
    let pairs: Vec<(f64, f64)> = (0..8).map(round).collect();
    let (before, after): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    assert_eq!(verdict(&before, &after), Verdict::Inconclusive);
    let compared = compare_pairs(&pairs).expect("there are pairs");
    close(compared.test.p, Design::Pairs(8).floor());
    let margin = Margin::new(0.03, 0.0, compared.before);
    let found = compared.verdict(compared.test.p, ALPHA, Direction::HigherIsBetter, margin);
    assert_eq!(found, Verdict::Improved);
}

#[test]
fn nothing_before_and_forty_after_is_an_appearance() {
    let found = presence((0, 5), (40, 5)).expect("runs on both sides");
    let Presence::Appeared { upper } = found else {
        panic!("{found:?}");
    };
    assert!((upper - 2.9957 / 5.0).abs() < 1e-4, "{upper}");
    assert!(matches!(
        presence((40, 5), (0, 5)),
        Some(Presence::Vanished { .. })
    ));
    assert_eq!(presence((0, 5), (0, 5)), Some(Presence::Nowhere));
    assert_eq!(presence((99, 5), (500, 5)), Some(Presence::Rare));
    assert_eq!(presence((100, 5), (100, 5)), Some(Presence::Both));
    assert_eq!(presence((1, 0), (1, 5)), None);
    let ten = poisson_interval(10, 2).expect("two runs");
    close(ten.rate, 5.0);
    assert!((ten.low - 4.7954 / 2.0).abs() < 1e-4 && (ten.high - 18.3904 / 2.0).abs() < 1e-4);
}

#[test]
fn the_filter_does_not_see_the_sides() {
    let class = |wait_ns, events| Blind { wait_ns, events };
    // The third has neither wait nor events; the second few events, the fourth a small share.
    let found = filter_blind(
        &[
            class(990.0, 5000),
            class(6.0, 3),
            class(1.0, 100),
            class(3.0, 200),
        ],
        10,
    );
    assert_eq!(found.kept, [0, 1, 3]);
    assert_eq!(found.dropped, 1);
    close(found.dropped_share, 0.001);
    assert_eq!(filter_blind(&[], 10).dropped, 0);
}

#[test]
fn order_and_drift() {
    let order_of = |before: &[u64], after: &[u64]| order(before, after);
    assert_eq!(
        order_of(&[1, 4, 5, 8], &[2, 3, 6, 7]),
        Some(Order::Alternating)
    );
    assert_eq!(
        order_of(&[1, 3, 5, 7], &[2, 4, 6, 8]),
        Some(Order::Alternating)
    );
    assert_eq!(order_of(&[1, 2, 5, 6], &[3, 4, 7, 8]), Some(Order::Mixed));
    assert_eq!(order_of(&[1, 3, 5], &[2, 4]), Some(Order::Mixed));
    for sides in [([1, 2, 3], [4, 5, 6]), ([4, 5, 6], [1, 2, 3])] {
        let found = order_of(&sides.0, &sides.1).expect("all started");
        assert_eq!(
            found.warning(),
            Some("order: blocked, drift cannot be separated from the patch")
        );
    }
    assert_eq!(order_of(&[0, 2], &[1, 3]), None, "a start is unknown");
    assert_eq!(order_of(&[], &[1]), None);
    let starts = [10, 20, 30, 40, 50];
    let rising = drift(&[1.0, 2.0, 3.0, 4.0, 5.0], &starts).expect("five runs");
    close(rising.tau, 1.0);
    close(rising.p, 2.0 / 120.0);
    assert!(rising.is_flagged());
    assert!(
        !drift(&[1.0, 2.0, 3.0, 4.0], &starts[..4])
            .expect("four runs")
            .is_flagged()
    );
    let flat = drift(&[2.0; 5], &starts).expect("five runs");
    close(flat.p, 1.0);
    assert_eq!(drift(&[1.0, 2.0, 3.0], &[1, 2, 0]), None);
}

#[test]
fn outliers_and_clusters_are_named_and_kept() {
    let values = [100.0, 101.0, 99.0, 100.5, 150.0];
    let found = outliers(&values, 0.0);
    assert_eq!(found.iter().map(|o| o.index).collect::<Vec<_>>(), [4]);
    assert_eq!(outliers(&[1.0, 1.0, 2.0], 0.0), []);
    // One step of the clock beside equal readings.
    assert_eq!(outliers(&[0.20, 0.20, 0.20, 0.21], 0.01), []);
    assert_eq!(outliers(&[0.20, 0.20, 0.20, 0.26], 0.01).len(), 1);
    let two = [
        100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 112.0, 112.5, 111.5,
    ];
    assert_eq!(
        clusters(&two, 0.0)
            .map(|c| c.sentence(|v| format!("{v:.0}")))
            .as_deref(),
        Some("bimodal: 7 runs near 100, 3 near 112")
    );
    assert_eq!(clusters(&two[..5], 0.0), None, "too few");
    // One run apart is an outlier, not a cluster.
    assert_eq!(clusters(&two[..8], 0.0), None);
}

#[test]
fn a_geometric_mean_is_over_common_cells() {
    let cell = |before: &[f64], after: &[f64], is_lower_better| Cell {
        before: before.iter().copied().enumerate().collect(),
        after: after.iter().copied().enumerate().collect(),
        is_lower_better,
    };
    let cells = [
        cell(&[100.0], &[200.0], false),
        cell(&[100.0], &[200.0], true),
        cell(&[100.0], &[], false),
        cell(&[10.0], &[11.0], false),
    ];
    let found = geomean(&cells).expect("three cells");
    close(found.ratio, 1.1_f64.cbrt());
    assert_eq!(
        (found.cells, found.left_out.as_slice()),
        (3, [2].as_slice())
    );
    assert_eq!((found.worst.0, found.best.0), (1, 0));
    assert_eq!(found.interval, None, "one run each");
    assert_eq!(geomean(&[cell(&[0.0], &[1.0], false)]), None);
    assert_eq!(geomean(&[cell(&[1.0], &[], false)]), None);
    // Runs that cover both cells and share their noise: drawn together it cancels nowhere.
    let noise = [0.9, 0.95, 1.0, 1.05, 1.1];
    let joint = [
        cell(&noise, &noise.map(|v| v * 1.2), false),
        cell(&noise.map(|v| 50.0 * v), &noise.map(|v| 60.0 * v), false),
    ];
    let found = geomean(&joint).expect("two cells");
    let (low, high) = found.interval.expect("five runs");
    assert!(
        found.is_approximate && low < 1.2 && high > 1.2,
        "{low} {high}"
    );
    // As wide as that of one cell alone, for two cells of the same runs tell no more than one.
    let (one_low, one_high) = geomean(&joint[..1])
        .and_then(|g| g.interval)
        .expect("five runs");
    close(low, one_low);
    close(high, one_high);
    // Runs of one cell each are drawn by themselves.
    let apart = [
        joint[0].clone(),
        Cell {
            before: joint[1]
                .before
                .iter()
                .map(|(run, v)| (run + 10, *v))
                .collect(),
            after: joint[1]
                .after
                .iter()
                .map(|(run, v)| (run + 10, *v))
                .collect(),
            is_lower_better: false,
        },
    ];
    let (low, high) = geomean(&apart)
        .and_then(|g| g.interval)
        .expect("five runs each");
    assert!(high - low < 0.85 * (one_high - one_low), "{low} {high}");
}

#[test]
fn a_floor_from_identical_runs() {
    let noise: Vec<f64> = (0..12).map(|i| 100.0 + real((i * 7) % 12)).collect();
    let floor = aa_floor(&noise).expect("twelve runs");
    assert!(floor > 0.0 && floor < 0.12, "{floor}");
    assert_eq!(aa_floor(&noise[..7]), None);
    // Of 66 pairs of 100 to 111 the three widest are 111:100, 110:100 and 111:101; then comes 109:100.
    close(single_floor(&noise).expect("twelve runs"), 0.09);
    assert_eq!(single_floor(&noise[..7]), None);
    assert_eq!(single_floor(&[0.0; 12]), None);
}
