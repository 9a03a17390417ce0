//! Which runs and figures are held against each other: points of benches, rounds, sweeps.

use super::*;
use crate::compare::observed::GivenBack;
use crate::sample::run::Round;

/// A recorded point of `bench madvise`.
fn point(number: u64, case: &str, threads: u32, rate: f64) -> Observed {
    let mut made = run(number, rate);
    let words = [
        "/usr/bin/faultscope",
        "bench-load",
        "madvise",
        "--case",
        case,
        "--threads",
        &threads.to_string(),
        "--size",
        "8388608",
        "--rounds",
        "20",
    ];
    if let Some(workload) = &mut made.run.workload {
        workload.argv = words.map(str::to_owned).into();
    }
    let keys = [
        ("bench", "madvise".to_owned()),
        ("case", case.to_owned()),
        ("threads", threads.to_string()),
        ("mib", "8".to_owned()),
        ("rep", "20".to_owned()),
    ];
    for metric in &mut made.metrics {
        metric.name = "pages/s".to_owned();
        metric.format = "bench".to_owned();
        metric.keys = keys.clone().map(|(k, v)| (k.to_owned(), v)).into();
    }
    made
}

/// The same in a round.
fn in_round(number: u32, case: &str, threads: u32, rate: f64) -> Observed {
    let at = u64::from(2 * number + u32::from(case.starts_with("free")) + 100 * threads);
    let mut made = point(at, case, threads, rate);
    made.run.round = Some(Round {
        series: "s".to_owned(),
        number,
        side: String::new(),
    });
    made
}

/// Ten rounds of two cases at one thread.
fn two_cases(cases: [&str; 2], rates: [f64; 2]) -> [Vec<Observed>; 2] {
    [0, 1].map(|i| {
        let rate = |n: u32| rates[i] + f64::from((n * 7) % 5);
        (1..=10)
            .map(|n| in_round(n, cases[i], 1, rate(n)))
            .collect()
    })
}

fn vary_command() -> Options {
    Options {
        vary: vec!["command".to_owned()],
        ..Options::default()
    }
}

#[test]
fn the_case_that_is_meant_to_differ_is_no_key() {
    let refused = report(
        two_cases(["dontneed", "free"], [1000.0, 3000.0]),
        Options::default(),
    );
    assert_eq!(refused.outcome(false), Outcome::NotComparable);
    assert!(text(&refused).contains("--vary command"));
    let options = Options {
        is_paired: true,
        ..vary_command()
    };
    let found = report(two_cases(["dontneed", "free"], [1000.0, 3000.0]), options);
    let primary = &found.rows[0];
    assert_eq!(
        (primary.id.as_str(), primary.role, primary.verdict),
        ("pages/s", Role::Primary, Some(Verdict::Improved))
    );
    assert_eq!(primary.comparison.design, Design::Pairs(10));
    assert_eq!(primary.cell, "bench madvise, threads 1, mib 8");
    assert!(found.sweep.is_none(), "one configuration is left");
    let shown = words(&text(&found));
    assert!(
        shown.contains("case dontneed -> free is what --vary command means"),
        "{shown}"
    );
}

#[test]
fn several_cases_on_a_side_are_not_guessed_at() {
    let both = |cases: [[&str; 2]; 2]| {
        let of = |i: usize| -> Vec<Observed> {
            let all = cases[i].iter().zip(1..);
            all.flat_map(|(case, at): (&&str, u64)| {
                let from = 100 * i as u64 + 10 * at;
                (from..from + 4).map(|n| point(n, case, 1, 1000.0))
            })
            .collect()
        };
        [of(0), of(1)]
    };
    let mixed = both([["dontneed", "dontneed-map"], ["free", "free-map"]]);
    let error = Report::new(mixed, vary_command()).expect_err("which goes with which?");
    for part in [
        "no figure in common",
        "case (dontneed, dontneed-map -> free, free-map)",
        "name the runs of one on either side",
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn text_of_another_case_names_it_and_the_option() {
    let side = |from: u64, case: &str| -> Vec<Observed> {
        let imported = |n| Observed {
            run: Run {
                id: format!("{n:032x}"),
                ..Run::default()
            },
            kernel: None,
            ..point(n, case, 1, 1000.0)
        };
        (from..from + 5).map(imported).collect()
    };
    let both = || [side(1, "dontneed"), side(11, "free")];
    let error = Report::new(both(), Options::default()).expect_err("nothing to compare");
    assert!(
        error.to_string().contains("case (dontneed -> free)")
            && error.to_string().contains("--vary command"),
        "{error}"
    );
    assert_eq!(report(both(), vary_command()).rows[0].id, "pages/s");
}

/// A sweep of one case, so many runs at each number of threads; starts and identities begin at `from`.
fn sweep_of(from: u64, threads: &[u32], runs: u64, rate: impl Fn(u32) -> f64) -> Vec<Observed> {
    let mut all = Vec::new();
    for n in threads {
        for at in 0..runs {
            let jitter = 1.0 + 0.002 * real((at * 3 + u64::from(*n)) % 5);
            let number = from + all.len() as u64;
            all.push(point(number, "free", *n, jitter * rate(*n)));
        }
    }
    all
}

#[test]
fn sides_of_the_same_commands_match() {
    let both = [
        sweep_of(1, &[1, 2], 4, |n| 100.0 * f64::from(n)),
        sweep_of(1001, &[1, 2], 5, |n| 110.0 * f64::from(n)),
    ];
    let found = report(both, Options::default());
    assert_eq!(found.outcome(false), Outcome::Fine, "no --vary is needed");
    let shown = words(&text(&found));
    assert!(
        shown.contains("runs of one side differ (threads 1, 2): kernel figures are not pooled"),
        "{shown}"
    );
    assert!(found.rows.iter().all(|row| !row.cell.is_empty()));
    // Another command on one side is told alone, not with those that both have.
    let mut other = sweep_of(2001, &[1, 2], 4, |n| 100.0 * f64::from(n));
    other.push(point(2999, "cold", 1, 100.0));
    let refused = report(
        [sweep_of(1, &[1, 2], 4, |n| 100.0 * f64::from(n)), other],
        Options::default(),
    );
    let difference = &refused.comparability.refusals[0];
    assert_eq!(difference.key, "command");
    assert_eq!(difference.before, "none that the other side has not");
    assert!(
        difference.after.contains("--case cold") && !difference.after.contains("--case free"),
        "{}",
        difference.after
    );
}

#[test]
fn commands_in_other_shares_are_refused_unless_figures_tell_them_apart() {
    let with = |scripts: [&[&str]; 2]| {
        let mut both = [0, 1].map(|i: usize| {
            let numbers = (1..=scripts[i].len() as u64).map(|n| 2 * n + i as u64);
            numbers.map(|n| run(n, 1000.0)).collect::<Vec<_>>()
        });
        for (side, scripts) in both.iter_mut().zip(scripts) {
            for (run, script) in side.iter_mut().zip(scripts) {
                if let Some(workload) = &mut run.run.workload {
                    workload.argv = vec!["sh".to_owned(), (*script).to_owned()];
                }
            }
        }
        report(both, Options::default())
    };
    let same = with([&["a", "b", "a", "b"], &["b", "a", "b", "a"]]);
    assert_eq!(same.outcome(false), Outcome::Fine);
    let other = with([&["a", "a", "a", "b"], &["a", "b", "b", "b"]]);
    assert_eq!(other.outcome(false), Outcome::NotComparable);
    let difference = &other.comparability.refusals[0];
    assert_eq!(
        (difference.before.as_str(), difference.after.as_str()),
        ("3 of sh a and 1 of sh b", "1 of sh a and 3 of sh b")
    );
}

#[test]
fn what_changes_from_run_to_run_of_a_point_is_not_its_command() {
    let with = |path: &str, rounds: &str, group: &str| {
        let mut both = two_cases(["free-press", "free-press"], [1000.0, 1000.0]);
        both[1]
            .iter_mut()
            .zip(1000..)
            .for_each(|(run, n)| run.run.id = format!("{n:032x}"));
        for run in &mut both[1] {
            if let Some(workload) = &mut run.run.workload {
                workload.argv[0] = path.to_owned();
                workload.argv[10] = rounds.to_owned();
            }
        }
        for (run, n) in both.iter_mut().flatten().zip(1..) {
            if let Some(workload) = &mut run.run.workload {
                let path = format!("{group}/faultscope-bench-{n}");
                workload.argv.extend(["--cgroup".to_owned(), path]);
            }
        }
        report(both, Options::default())
    };
    let keys = |found: &Report| -> Vec<String> {
        let refused = found.comparability.refusals.iter();
        refused.map(|d| d.key.clone()).collect()
    };
    let same = with("./faultscope", "40", "/sys/fs/cgroup");
    assert_eq!(keys(&same), [""; 0]);
    let mut other = two_cases(["dontneed", "dontneed"], [1000.0, 1000.0]);
    for (run, n) in other[0].iter_mut().zip(1000..) {
        run.run.id = format!("{n:032x}");
        if let Some(workload) = &mut run.run.workload {
            workload.argv.push("--no-pin".to_owned());
        }
    }
    assert_eq!(keys(&report(other, Options::default())), ["command"]);
}

#[test]
fn a_paired_sweep_pairs_each_configuration() {
    let side = |case: &str, factor: f64| -> Vec<Observed> {
        (1..=8)
            .flat_map(|n| {
                let drift = 1.0 + 0.1 * f64::from(n);
                [1, 2].map(|threads| {
                    in_round(
                        n,
                        case,
                        threads,
                        factor * drift * 100.0 * f64::from(threads),
                    )
                })
            })
            .collect()
    };
    let options = || Options {
        is_paired: true,
        ..vary_command()
    };
    let found = report([side("dontneed", 1.0), side("free", 1.2)], options());
    let primary: Vec<&Row> = found
        .rows
        .iter()
        .filter(|r| r.role == Role::Primary)
        .collect();
    assert_eq!(primary.len(), 2);
    // Five pairs have no exact interval, and without one nobody is ahead.
    let few = |case, factor| side(case, factor).into_iter().take(10).collect();
    let few = report([few("dontneed", 1.0), few("free", 1.2)], options());
    let by_count = &few.sweep.as_ref().expect("two numbers of threads").by_count;
    assert!(
        by_count.iter().all(|at| at.interval.is_some()),
        "{by_count:?}"
    );
    for row in primary {
        assert_eq!(row.comparison.design, Design::Pairs(8), "{}", row.cell);
        assert_eq!(row.verdict, Some(Verdict::Improved), "{}", row.cell);
    }
}

/// A throughput that follows the scalability law.
fn law(n: u32, s: f64, k: f64) -> f64 {
    let n = f64::from(n);
    1e6 * n / (1.0 + s * (n - 1.0) + k * n * (n - 1.0))
}

/// Each run as of a text of its own, which sets the runs of a side not apart.
fn of_files(mut side: Vec<Observed>) -> Vec<Observed> {
    for (i, run) in side.iter_mut().enumerate() {
        let source = (
            crate::sample::run::SOURCE.to_owned(),
            format!("run-{i}.txt"),
        );
        run.run.labels.extend([source]);
    }
    side
}

#[test]
fn recorded_sweeps_are_told_by_threads() {
    let threads = [1, 2, 4, 8, 16, 32];
    let both = [
        sweep_of(1, &threads, 5, |n| law(n, 0.30, 0.010)),
        sweep_of(1001, &threads, 5, |n| law(n, 0.05, 0.010)),
    ]
    .map(of_files);
    let found = report(
        both.clone(),
        Options {
            is_by_threads: true,
            ..Options::default()
        },
    );
    let sweep = found.sweep.as_ref().expect("six thread counts");
    let counts: Vec<u32> = sweep.by_count.iter().map(|at| at.count).collect();
    assert_eq!(counts, threads);
    for at in &sweep.by_count {
        let expected = law(at.count, 0.05, 0.010) / law(at.count, 0.30, 0.010);
        let (low, high) = at.interval.expect("five runs each");
        assert!(
            low <= at.ratio && at.ratio <= high && (at.ratio / expected - 1.0).abs() < 0.01,
            "{at:?}, {expected}"
        );
    }
    // The ratio of a single cell is that of its row, with its exact interval.
    let row = found.rows.iter().find(|r| r.cell.contains("threads 8,"));
    let percent = row.and_then(|r| r.comparison.shift.percent_interval());
    let at = sweep.by_count.iter().find(|at| at.count == 8);
    let (low, _) = at.and_then(|at| at.interval).expect("five runs each");
    let (percent, _) = percent.expect("five runs each");
    assert!(
        (100.0 * (low - 1.0) - percent).abs() < 1e-9,
        "{low} {percent}"
    );
    let alike = sweep_of(500, &threads, 8, |n| law(n, 0.30, 0.010));
    let above = Report::above(both.clone(), alike, Options::default()).expect("comparable");
    let shown = words(&text(&above));
    for part in [
        "floors from at least 8 A/A runs each are +-",
        "each is the margin of its configuration",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let mean = sweep.geomean.as_ref().expect("all above 0");
    assert_eq!(mean.cells, 6);
    assert!((mean.worst.1 - 1.0).abs() < 0.01, "{mean:?}");
    assert!(mean.interval.is_some_and(|(low, _)| low > 1.0), "{mean:?}");
    let [curves] = sweep.curves.as_slice() else {
        panic!("one curve: {:?}", sweep.curves);
    };
    let (_, [before, after]) = curves.efficiency[3];
    assert!(
        (before - law(8, 0.30, 0.010) / law(8, 0.0, 0.0)).abs() < 0.01
            && (after - law(8, 0.05, 0.010) / law(8, 0.0, 0.0)).abs() < 0.01,
        "{before} {after}"
    );
    let [(s, k), (t, l)] = curves.law.expect("the law fits both sides");
    assert!(
        (s - 0.30).abs() < 0.02 && (t - 0.05).abs() < 0.02,
        "contention {s} -> {t}"
    );
    assert!(
        (k - 0.010).abs() < 0.002 && (l - 0.010).abs() < 0.002,
        "coherence {k} -> {l}"
    );
    let shown = words(&text(&found));
    for part in [
        "pages/s by configuration: no single verdict",
        "ratio by threads, after / before",
        "geometric mean",
        "contention s 0.3",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    assert!(!shown.contains("adj.p"), "no row for each cell: {shown}");
    // With all CPUs of the machine in use the law is not fitted, and it is said why.
    let mut beyond = both;
    for run in beyond.iter_mut().flatten() {
        let topology = RunFact {
            id: "topology".to_owned(),
            value: Ok("node 0 LLC 0 8 CPUs, 4 cores".to_owned()),
        };
        run.run.facts.push(topology);
    }
    let found = report(beyond, Options::default());
    let curves = &found.sweep.as_ref().expect("a sweep").curves[0];
    assert_eq!(curves.law, None);
    assert!(
        curves.doubts.len() == 2 && curves.doubts[0].contains("32"),
        "{:?}",
        curves.doubts
    );
}

#[test]
fn memory_given_back_explains_the_gain() {
    let with = |refaults: [u64; 2], lost_bytes: u64, rates: [f64; 2]| {
        let mut both = two_cases(["dontneed", "free"], rates);
        for (side, refaults) in both.iter_mut().zip(refaults) {
            for kernel in side.iter_mut().filter_map(|run| run.kernel.as_mut()) {
                kernel.given_back = Some(GivenBack {
                    bytes: 160 << 20,
                    refaults,
                    lost_bytes,
                });
                kernel.clearing = Some((2_000 * refaults, refaults / 100));
            }
            for run in side.iter_mut() {
                let count = Metric {
                    name: "zeroed".to_owned(),
                    value: real(refaults),
                    direction: None,
                    ..run.metrics[0].clone()
                };
                run.metrics.push(count);
            }
        }
        let options = Options {
            is_paired: true,
            ..vary_command()
        };
        let found = report(both, options);
        let told = found.findings.iter().find(|f| f.id == "given_back");
        told.map(|f| f.text.clone())
    };
    let told = with([40_960, 20], 0, [1000.0, 3000.0]).expect("it moved");
    for part in [
        "faulted in again 40960 -> 20 times a run (2048.0 to 1)",
        "of the pages used again 40960 -> 20 came back zeroed",
        "clearing pages took 81.9ms -> 40.0us of CPU time a run",
        "the gain is faults and zeroing that are not done",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    let told = with([20, 40_960], 4096, [1000.0, 500.0]).expect("it moved");
    assert!(
        told.contains("at least 20 -> 40960") && told.contains("the loss is faults and zeroing"),
        "{told}"
    );
    let told = with([40_960, 0], 0, [1000.0, 1001.0]).expect("it moved");
    assert!(
        !told.contains("to 1") && !told.contains("the gain"),
        "{told}"
    );
    assert_eq!(with([40_960, 40_000], 0, [1000.0, 3000.0]), None);
    assert_eq!(
        with([20, 0], 0, [1000.0, 3000.0]),
        None,
        "a handful is chance"
    );
}
