//! Lock classes: filter, family, appearances, names of other kernels.

use super::*;
use crate::compare::align::Class;

/// Gives each run of a side waits of classes: site, waits, ns.
fn with(side: &mut [Observed], classes: &[(&str, u64, u64)]) {
    for (i, run) in side.iter_mut().enumerate() {
        let table = classes.iter().map(|(site, waits, wait_ns)| {
            let waits = Waits {
                waits: *waits,
                wait_ns: wait_ns + i as u64,
                p99_ns: None,
            };
            (Class::new("mmap_lock", "write", site), waits)
        });
        if let Some(kernel) = &mut run.kernel {
            kernel.sites = Some(table.collect());
            kernel.classes =
                Some([(Class::new("mmap_lock", "write", ""), Waits::default())].into());
        }
    }
}

#[test]
fn a_class_that_appears_has_no_percentage() {
    let mut both = sides(1.0);
    with(&mut both[0], &[("do_brk", 100, 900_000)]);
    with(
        &mut both[1],
        &[("do_brk", 100, 900_000), ("do_madvise", 8, 500_000)],
    );
    let found = report(both, Options::default());
    let locks = found.locks.as_ref().expect("measured");
    let row = locks
        .rows
        .iter()
        .find(|r| r.class.site == "do_madvise")
        .expect("kept for its wait");
    assert!(matches!(row.presence, stats::Presence::Appeared { .. }) && row.verdict.is_none());
    assert_eq!(row.waits, [(0, 5), (40, 5)]);
    let shown = text(&found);
    let line = shown
        .lines()
        .find(|l| l.ends_with("appeared"))
        .expect("shown");
    assert!(
        line.contains("appeared") && !line.contains('%') && !line.contains("inf"),
        "{line}"
    );
    assert!(
        words(&shown).contains("waits a run: 0 [0,0.60] -> 8 [5.72,10.9]"),
        "{shown}"
    );
    assert!(
        shown.contains("waited for only after: mmap_lock write do_madvise"),
        "{shown}"
    );
    assert!(
        words(&shown).contains("appeared: none in 5 runs before, 40 in 5 after"),
        "{shown}"
    );
}

#[test]
fn thirteen_classes_blind_five_runs_and_one_does_not() {
    let names: Vec<String> = (0..13).map(|i| format!("site_{i:02}")).collect();
    let table = |n: usize, wait: u64| -> Vec<(&str, u64, u64)> {
        (0..n)
            .map(|i| {
                (
                    names[i].as_str(),
                    200,
                    if i == 0 { wait } else { 1_000_000 },
                )
            })
            .collect()
    };
    let make = |n: usize| {
        let mut both = sides(1.0);
        with(&mut both[0], &table(n, 1_000_000));
        with(&mut both[1], &table(n, 3_000_000));
        report(both, Options::default())
    };
    let one = make(1);
    let locks = one.locks.as_ref().expect("measured");
    assert_eq!(
        (locks.tested, locks.rows[0].verdict),
        (1, Some(Verdict::Regressed))
    );
    let many = make(13);
    let locks = many.locks.as_ref().expect("measured");
    assert!(
        locks
            .rows
            .iter()
            .all(|r| r.verdict != Some(Verdict::Regressed))
    );
    assert!(text(&many).contains("n too small to flag a single class at m=13; need n=6"));
}

#[test]
fn names_of_two_kernels_are_one_class() {
    let mut both = sides(1.0);
    with(
        &mut both[0],
        &[
            ("mark_page_accessed", 100, 1_000_000),
            ("do_munmap.isra.3", 100, 1_000_000),
        ],
    );
    with(
        &mut both[1],
        &[
            ("folio_mark_accessed", 100, 1_000_000),
            ("do_munmap", 100, 1_000_000),
        ],
    );
    let found = report(both, Options::default());
    let locks = found.locks.as_ref().expect("measured");
    assert_eq!(
        (locks.tested, locks.unmatched.clone()),
        (2, [Vec::new(), Vec::new()])
    );
}

#[test]
fn more_faults_are_not_more_contention() {
    let mut both = sides(1.0);
    with(&mut both[0], &[("do_munmap", 971, 796_220_000)]);
    with(&mut both[1], &[("do_munmap", 2114, 3_910_900_000)]);
    for run in &mut both[1] {
        if let Some(kernel) = &mut run.kernel {
            kernel.faults = Some(2_222_000);
        }
    }
    let found = report(both, Options::default());
    let row = &found.locks.as_ref().expect("measured").rows[0];
    let percent = |c: &Option<stats::Comparison>| {
        c.as_ref().and_then(|c| c.shift.percent()).expect("a ratio")
    };
    // 0.82 -> 1.85 ms a wait is +121 % of wait per fault, of 2 % fewer waits.
    assert!(
        (percent(&row.comparison) - 121.0).abs() < 1.0,
        "{}",
        percent(&row.comparison)
    );
    assert!(
        (percent(&row.rates) + 2.0).abs() < 0.3,
        "{}",
        percent(&row.rates)
    );
}

/// A comparison of 100 and 100 runs with so many classes, and the pairwise values that it took.
fn two_hundred_runs(classes: usize) -> (Report, usize) {
    let names: Vec<String> = (0..classes).map(|i| format!("site_{i:02}")).collect();
    let table: Vec<(&str, u64, u64)> = names.iter().map(|n| (n.as_str(), 200, 1_000_000)).collect();
    let mut both = [
        (0..100)
            .map(|i| run(1 + 2 * i, 1000.0 + real(i % 9)))
            .collect::<Vec<_>>(),
        (0..100)
            .map(|i| run(2 + 2 * i, 1000.0 + real(i % 7)))
            .collect::<Vec<_>>(),
    ];
    both.iter_mut().for_each(|side| with(side, &table));
    stats::work::take();
    let found = report(both, Options::default());
    (found, stats::work::take())
}

#[test]
fn two_hundred_runs_of_fifty_classes_take_work_for_each_class_once() {
    let (found, many) = two_hundred_runs(50);
    assert_eq!(found.locks.as_ref().map(|l| l.tested), Some(50));
    assert!(text(&found).contains("Mann-Whitney (normal)"));
    let (_, one) = two_hundred_runs(1);
    // The wait and the number of waits of each class, over all pairs of runs.
    assert_eq!(many - one, 49 * 2 * 100 * 100);
}

#[test]
fn rare_classes_have_the_counts_of_both_sides() {
    let mut both = sides(1.0);
    with(&mut both[0], &[("do_brk", 12, 900_000)]);
    with(&mut both[1], &[("do_brk", 3, 500_000)]);
    let found = report(both, Options::default());
    let row = &found.locks.as_ref().expect("measured").rows[0];
    assert!(matches!(row.presence, stats::Presence::Rare));
    let shown = text(&found);
    let line = shown.lines().find(|l| l.ends_with("too few"));
    assert_eq!(
        line.expect("shown").split_whitespace().collect::<Vec<_>>(),
        ["mmap_lock", "write", "do_brk", "too", "few"]
    );
    assert!(words(&shown).contains("waits a run: 12 ["), "{shown}");
    assert!(words(&shown).contains("] -> 3 ["), "{shown}");
    assert!(
        shown.contains("too rare for a percentage") && !shown.contains("first line"),
        "{shown}"
    );
}

#[test]
fn a_change_against_its_medians_is_told() {
    let mut both = sides(1.0);
    for (side, values) in both
        .iter_mut()
        .zip([[1.0, 1.0, 10.0, 11.0, 12.0], [0.5, 9.0, 10.5, 10.6, 10.7]])
    {
        for (run, value) in side.iter_mut().zip(values) {
            run.metrics[0].value = 100.0 * value;
        }
    }
    let found = report(both, Options::default());
    let comparison = &found.rows[0].comparison;
    assert!(
        comparison.after > comparison.before && comparison.shift.estimate < 0.0,
        "{comparison:?}"
    );
    assert!(
        words(&text(&found))
            .contains("transactions/s: the change is the median over all pairs of runs")
    );
    assert!(!text(&report(sides(1.1), Options::default())).contains("over all pairs"));
}
