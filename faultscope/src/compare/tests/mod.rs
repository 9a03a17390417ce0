//! Comparisons of runs made by hand, and of old tables.

mod details;
mod gates;
mod locks;
mod matched;
mod plots;
mod styles;
mod tables;

use super::observed::{Kernel, Observed, Reading, Waits};
use super::render::{Layout, WIDTH, write};
use super::stats::Verdict;
use super::*;
use crate::host::usage::Usage;
use crate::model::Unit;
use crate::sample::run::{End, Ended, Run, RunFact, RunProbe, Workload};
use crate::workload::{self, Defaults, Metric};

/// A recorded run of a command that made so many transactions a second.
fn run(number: u64, rate: f64) -> Observed {
    let fact = |id: &str, value: &str| RunFact {
        id: id.to_owned(),
        value: Ok(value.to_owned()),
    };
    let facts = [
        ("host_id", "aa"),
        ("cpu_model", "a CPU"),
        ("cpus_online", "4"),
        ("memory_bytes", "8589934592"),
        ("page_bytes", "4096"),
        ("thp", "madvise"),
        ("mglru", "0x0000"),
        ("swap", "none"),
        ("kernel_release", "6.12.0"),
    ];
    let metric = Metric {
        name: "transactions/s".to_owned(),
        value: rate,
        unit: "1/s".to_owned(),
        direction: Some(workload::Direction::Higher),
        work: None,
        resolution: 0.01,
        format: "sysbench".to_owned(),
        keys: vec![("threads".to_owned(), "4".to_owned())],
    };
    Observed {
        file: format!("run-{number}.fsc"),
        run: Run {
            id: format!("{number:032x}"),
            host: "box".to_owned(),
            kernel: "6.12.0".to_owned(),
            start_real_ns: number * 1_000_000_000,
            facts: facts.map(|(id, value)| fact(id, value)).into(),
            probes: vec![RunProbe {
                program: "contention_begin".to_owned(),
                signal: "contention".to_owned(),
                is_attached: true,
                place: "contention_begin".to_owned(),
                substitutes: None,
            }],
            workload: Some(Workload {
                argv: vec!["sysbench".to_owned(), "run".to_owned()],
                start_mono_ns: 1,
                ended: Some(Ended {
                    mono_ns: 10_000_000_001,
                    code: Some(0),
                    signal: None,
                    usage: Usage {
                        system_ns: 4_000_000_000,
                        minor_faults: 1_000_000,
                        ..Usage::default()
                    },
                }),
                ..Workload::default()
            }),
            end: Some(End {
                mono_ns: 10_000_000_001,
                reason: "the command ended".to_owned(),
            }),
            ..Run::default()
        },
        metrics: vec![metric],
        kernel: Some(Kernel {
            faults: Some(1_000_000),
            covered_ns: 10_000_000_000,
            kinds: vec![
                ("user write not present".to_owned(), 900_000),
                ("major".to_owned(), 10),
            ],
            ..Kernel::default()
        }),
        damaged: 0,
    }
}

/// Alternating runs: five of each side, the second one by `ratio` higher.
fn sides(ratio: f64) -> [Vec<Observed>; 2] {
    let level = |i: u64| 1000.0 + 3.0 * real((i * 7) % 5);
    [
        (0..5).map(|i| run(1 + 2 * i, level(i))).collect(),
        (0..5)
            .map(|i| run(2 + 2 * i, ratio * level(i + 1)))
            .collect(),
    ]
}

fn report(sides: [Vec<Observed>; 2], options: Options) -> Report {
    Report::new(sides, options).expect("the sides have runs and figures")
}

fn written(report: &Report, layout: Layout) -> String {
    let mut out = Vec::new();
    write(report, layout, &mut out).expect("a vector takes all");
    String::from_utf8(out).expect("UTF-8")
}

/// The text, which every test holds to its width.
fn text(report: &Report) -> String {
    let text = written(report, Layout::Text);
    for line in text.lines() {
        assert!(line.len() <= WIDTH && line.is_ascii(), "{line}");
    }
    text
}

/// The text without its line ends.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn gate(metric: &str, percent: f64) -> Options {
    Options {
        gates: vec![(metric.to_owned(), percent)],
        ..Options::default()
    }
}

#[test]
fn a_clear_change_has_a_verdict() {
    let up = report(sides(1.1), Options::default());
    let primary = &up.rows[0];
    assert_eq!(
        (primary.id.as_str(), primary.verdict),
        ("transactions/s", Some(Verdict::Improved))
    );
    assert_eq!(up.outcome(true), Outcome::Fine);
    let shown = text(&up);
    for part in [
        "5 vs 5, alternating",
        "host same",
        ".0079 improved",
        "Mann-Whitney (exact)",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    // The unchanged headline metric is told so, and not for its p.
    let system = up.rows.iter().find(|r| r.id == "lock_wait_per_fault_ns");
    assert!(system.is_none(), "no contention was given");
}

#[test]
fn a_gate_decides_the_status() {
    assert_eq!(
        report(sides(0.8), gate("transactions/s", 5.0)).outcome(false),
        Outcome::Regressed
    );
    assert_eq!(
        report(sides(0.8), Options::default()).outcome(true),
        Outcome::Fine
    );
    assert_eq!(
        report(sides(0.99), gate("transactions/s", 5.0)).outcome(false),
        Outcome::Fine
    );
    assert_eq!(
        report(sides(1.2), gate("transactions/s", 5.0)).outcome(false),
        Outcome::Fine
    );
    let error = Report::new(sides(1.0), gate("no such metric", 5.0)).expect_err("there is none");
    assert!(
        error.to_string().contains("there are transactions/s"),
        "{error}"
    );
    let told = text(&report(sides(0.8), gate("transactions/s", 5.0)));
    assert!(
        told.contains("gate transactions/s 5 %: CONFIRMED REGRESSION"),
        "{told}"
    );
}

#[test]
fn one_run_each_has_no_verdict() {
    let one = || [vec![run(1, 596.0)], vec![run(2, 545.0)]];
    let found = report(one(), Options::default());
    assert_eq!(found.rows[0].verdict, Some(Verdict::Inconclusive));
    assert_eq!(found.outcome(false), Outcome::Fine);
    assert_eq!(found.outcome(true), Outcome::Inconclusive);
    let shown = text(&found);
    assert!(
        shown.contains("1 run per side: no noise estimate. Difference -8.6 %. No verdict"),
        "{shown}"
    );
    assert!(
        !shown.contains("order:"),
        "two single runs are one after the other by nature: {shown}"
    );
    // One against twelve: the right answer, not a refusal.
    let twelve: Vec<Observed> = (2..14).map(|i| run(i, 1000.0)).collect();
    let found = report([vec![run(1, 500.0)], twelve], Options::default());
    assert_eq!(found.rows[0].verdict, Some(Verdict::Inconclusive));
    assert!(text(&found).contains("1 run on one side, 12 on the other"));
}

#[test]
fn blocked_order_is_told() {
    let blocked = [
        (1..6).map(|i| run(i, 1000.0 + real(i))).collect(),
        (6..11).map(|i| run(i, 1000.0 + real(i))).collect(),
    ];
    let found = report(blocked, Options::default());
    let shown = text(&found);
    assert!(
        shown.contains("! order: blocked, drift cannot be separated from the patch"),
        "{shown}"
    );
    assert!(shown.contains("rises with the start time"), "{shown}");
}

#[test]
fn pairs_need_rounds() {
    let options = || Options {
        is_paired: true,
        ..Options::default()
    };
    let error = Report::new(sides(1.1), options()).expect_err("no run has a round");
    assert!(error.to_string().contains("record --alternate"), "{error}");
    let mut with = sides(1.1);
    for (side, name) in with.iter_mut().zip(["A", "B"]) {
        for (i, run) in (1..).zip(side.iter_mut()) {
            run.run.round = Some(crate::sample::run::Round {
                series: "s".to_owned(),
                number: i,
                side: name.to_owned(),
            });
        }
    }
    let found = report(with.clone(), options());
    // Five pairs cannot decide; the report says how many could.
    assert_eq!(found.rows[0].verdict, Some(Verdict::Inconclusive));
    let shown = text(&found);
    assert!(shown.contains("At least 6 pairs are needed"), "{shown}");
    assert!(shown.contains("5 vs 5, alternating, 5 pairs"), "{shown}");
    assert!(!shown.contains("no partner"), "{shown}");
    with[1].pop();
    let shown = words(&text(&report(with.clone(), options())));
    let left = "4 pairs: 1 of the runs before and 0 of those after have no partner in their round";
    assert!(shown.contains(left), "{shown}");
    for round in with[1].iter_mut().flat_map(|run| &mut run.run.round) {
        round.series = "another".to_owned();
    }
    let error = Report::new(with, options()).expect_err("rounds of two starts");
    assert!(error.to_string().contains("not made in one go"), "{error}");
}

#[test]
fn every_format_holds_the_comparison() {
    let found = report(sides(1.1), Options::default());
    let json: serde_json::Value =
        serde_json::from_str(&written(&found, Layout::Json)).expect("JSON");
    assert_eq!(json["schema"], "faultscope.compare/1");
    assert_eq!(json["metrics"][0]["verdict"], "improved");
    assert_eq!(
        json["metrics"][0]["values"]["before"]
            .as_array()
            .map(Vec::len),
        Some(5)
    );
    let csv = written(&found, Layout::Csv);
    let columns: Vec<usize> = csv.lines().map(|l| l.split(',').count()).collect();
    assert!(
        columns.len() > 1 && columns.iter().all(|n| *n == columns[0]),
        "{csv}"
    );
    assert!(csv.contains("primary,transactions/s,"), "{csv}");
    assert!(written(&found, Layout::Md).contains("| transactions/s |"));
    assert!(written(&found, Layout::Html).contains("<td>transactions/s</td>"));
    let lkp = written(&found, Layout::Lkp);
    assert!(
        lkp.contains("%stddev     %change") && lkp.contains("threads-4.transactions/s"),
        "{lkp}"
    );
    assert!(lkp.lines().all(|l| l.is_ascii()), "{lkp}");
    let mmtests = written(&found, Layout::Mmtests);
    assert!(
        mmtests.contains("Hmean") && mmtests.contains("*  10."),
        "{mmtests}"
    );
}

#[test]
fn a_margin_can_be_learnt_from_the_side_before() {
    let noisy = |from: u64, ratio: f64| -> Vec<Observed> {
        (0..12)
            .map(|i| run(from + 2 * i, ratio * (900.0 + 20.0 * real((i * 5) % 12))))
            .collect()
    };
    let learnt = Options {
        is_aa: true,
        ..Options::default()
    };
    let found = report([noisy(1, 1.0), noisy(2, 1.0)], learnt);
    assert!(found.rows[0].margin.relative() > 0.03);
    let shown = text(&found);
    assert!(shown.contains("floor from 12 A/A runs is +-"), "{shown}");
    assert!(shown.contains("that is the margin"), "{shown}");
    let wide = Options {
        is_aa: true,
        min_effect: 0.5,
        ..Options::default()
    };
    let shown = text(&report([noisy(1, 1.0), noisy(2, 1.0)], wide));
    assert!(shown.contains("below the margin of 50.0 %"), "{shown}");
    let halves = Options {
        is_halved: true,
        ..Options::default()
    };
    let shown = text(&report([noisy(1, 1.0), noisy(2, 1.0)], halves));
    assert!(
        shown.contains("a change within it may be chance"),
        "{shown}"
    );
}

/// 100 ms and 0.11 s are no 99.9 % apart, and what is better cannot be both.
#[test]
fn figures_of_another_unit_or_direction_are_not_compared() {
    type Change = fn(&mut Metric);
    let other_unit: Change = |metric| metric.unit = "1/min".to_owned();
    let other_way: Change = |metric| metric.direction = Some(workload::Direction::Lower);
    let changes = [
        (other_unit, "in 1/min, better if higher after: not compared"),
        (other_way, "in 1/s, better if lower after: not compared"),
    ];
    for (change, told) in changes {
        let mut both = sides(1.1);
        both[1]
            .iter_mut()
            .flat_map(|o| &mut o.metrics)
            .for_each(change);
        let error = Report::new(both.clone(), Options::default()).expect_err("nothing is left");
        assert!(error.to_string().contains(told), "{error}");
        for kernel in both.iter_mut().flatten().flat_map(|o| &mut o.kernel) {
            kernel.readings = vec![reading("lock_wait_per_fault_ns", Unit::Ns, 5.0)];
        }
        let found = report(both, Options::default());
        let mut ids = found.rows.iter().map(|row| row.id.as_str());
        assert!(ids.all(|id| id == "lock_wait_per_fault_ns"), "{ids:?}");
        let notes = found.notes.join("; ");
        assert!(
            notes.contains("transactions/s is in 1/s, better if higher before and"),
            "{notes}"
        );
        assert!(notes.contains(told), "{notes}");
    }
}

/// Runs that were kept to tell what chance does: their pairs for single runs, their halves for sides.
#[test]
fn a_floor_can_be_kept_on_file() {
    let alike = |values: u64| -> Vec<Observed> {
        (0..values)
            .map(|i| run(100 + i, 100.0 + real((i * 7) % 12)))
            .collect()
    };
    let above = |sides, alike| Report::above(sides, alike, Options::default());
    // 95 % of all pairs of 100 to 111 are no further apart than 109 and 100.
    for (after, verdict) in [
        (108.0, "within the floor, which chance alone may do"),
        (110.0, "beyond the floor, not proof"),
        (92.6, "within the floor, which chance alone may do"),
        (91.0, "beyond the floor, not proof"),
        (0.0, "a change to or from 0 is no ratio to hold against it"),
    ] {
        let single = [vec![run(1, 100.0)], vec![run(2, after)]];
        let found = above(single, alike(12)).expect("single runs");
        let told: String = text(&found)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let expected = format!("floor from 12 A/A runs is -8.3/+9.0 %: {verdict}");
        assert!(told.contains(&expected), "{after}: {told}");
        assert_eq!(found.rows[0].verdict, Some(Verdict::Inconclusive));
    }
    // Runs that rise by 110 % at most fall by 52 %: a fall of 99 % is none of theirs.
    let two: Vec<Observed> = (0..8)
        .map(|i| run(100 + i, if i % 2 == 0 { 100.0 } else { 210.0 }))
        .collect();
    let single = [vec![run(1, 100.0)], vec![run(2, 1.0)]];
    let told = words(&text(&above(single, two).expect("single runs")));
    let expected = "floor from 8 A/A runs is -52.4/+110.0 %: beyond the floor, not proof";
    assert!(told.contains(expected), "{told}");
    let found = above(sides(1.04), alike(12)).expect("five runs a side");
    let floor = found.rows[0].floor.expect("it was learnt").halves;
    assert!(floor > 0.04 && floor < 0.12, "{floor}");
    assert!((found.rows[0].margin.relative() - floor).abs() < 1e-12);
    assert_eq!(found.rows[0].verdict, Some(Verdict::Unchanged));
    assert_eq!(
        report(sides(1.04), Options::default()).rows[0].verdict,
        Some(Verdict::Improved)
    );

    let mut silent = alike(12);
    silent.iter_mut().for_each(|o| o.metrics.clear());
    let shown = text(&above(sides(1.0), silent).expect("two sides"));
    let absent = "no floor for transactions/s, threads 4: the A/A runs do not have it";
    assert!(words(&shown).contains(absent), "{shown}");
    let mut zero = alike(12);
    zero[3].metrics[0].value = 0.0;
    let shown = text(&above(sides(1.0), zero).expect("two sides"));
    let none = "no floor for transactions/s, threads 4: an A/A run has a value of 0 or below";
    assert!(words(&shown).contains(none), "{shown}");
    let same = above([vec![run(1, 100.0)], vec![run(100, 101.0)]], alike(12));
    let same = same.expect_err("a run tells nothing of itself").to_string();
    assert!(same.contains("among the runs that are compared"), "{same}");

    let few = above(sides(1.0), alike(7)).expect_err("seven tell nothing");
    assert!(few.to_string().contains("at least 8 runs"), "{few}");
    let mut elsewhere = alike(12);
    for fact in elsewhere.iter_mut().flat_map(|o| &mut o.run.facts) {
        if fact.id == "cpus_online" {
            fact.value = Ok("8".to_owned());
        }
    }
    let other = above(sides(1.0), elsewhere).expect_err("another machine");
    assert!(
        other
            .to_string()
            .contains("they differ in cpus_online (4 -> 8)"),
        "{other}"
    );
}

fn reading(id: &'static str, unit: Unit, value: f64) -> Reading {
    Reading {
        id,
        title: id.replace('_', " "),
        unit,
        value,
    }
}

#[test]
fn locks_and_throughput_that_disagree_have_a_banner() {
    let mut both = sides(0.5);
    for (side, wait) in both.iter_mut().zip([800.0, 10.0]) {
        for (i, run) in side.iter_mut().enumerate() {
            if let Some(kernel) = &mut run.kernel {
                let wait = wait + real(i as u64);
                kernel.readings = vec![reading("lock_wait_per_fault_ns", Unit::Ns, wait)];
            }
        }
    }
    let found = report(both, Options::default());
    let shown = text(&found);
    assert!(
        shown.contains("! LOCKS AND TRANSACTIONS/S DISAGREE"),
        "{shown}"
    );
}

#[test]
fn the_budget_adds_up() {
    let mut both = sides(1.1);
    for (side, clear) in both.iter_mut().zip([500.0, 350.0]) {
        for run in side {
            if let Some(kernel) = &mut run.kernel {
                let parts = [
                    ("page clearing", clear),
                    ("other lock", 80.0),
                    ("tracing", 20.0),
                    ("rest", 100.0),
                ];
                kernel.budget = parts.map(|(name, ns)| (name.to_owned(), ns)).into();
            }
        }
    }
    let found = report(both, Options::default());
    let budget = found.budget.as_ref().expect("every run sampled it");
    let sum: f64 = budget.parts.iter().map(budget::Part::change).sum();
    assert!(
        (sum - budget.total.change()).abs() < 1e-9 && (sum + 150.0).abs() < 1e-9,
        "{sum}"
    );
    let shown = text(&found);
    assert!(
        shown.contains("clear -150") && shown.contains("= -150 ns"),
        "{shown}"
    );
    assert!(shown.contains("clear changed most, by -150ns"), "{shown}");
}

#[test]
fn the_same_run_on_both_sides_is_no_comparison() {
    let error = Report::new([vec![run(1, 1.0)], vec![run(1, 1.0)]], Options::default())
        .expect_err("the same");
    assert!(
        error.to_string().contains("the same run, on both sides"),
        "{error}"
    );
    assert!(Report::new([Vec::new(), vec![run(1, 1.0)]], Options::default()).is_err());
}
