//! What forbids a comparison.

use super::*;
use crate::compare::loss::Loss;
use crate::model::Missing;

fn refused(change: impl Fn(&mut Observed)) -> Report {
    let mut both = sides(1.1);
    both[1].iter_mut().for_each(change);
    report(both, Options::default())
}

fn set(run: &mut Observed, id: &str, value: &str) {
    for fact in run.run.facts.iter_mut().filter(|f| f.id == id) {
        fact.value = Ok(value.to_owned());
    }
}

#[track_caller]
fn is_refused(report: &Report, key: &str) {
    assert_eq!(
        report.outcome(false),
        Outcome::NotComparable,
        "{:?}",
        report.comparability
    );
    let keys: Vec<&str> = report
        .comparability
        .refusals
        .iter()
        .map(|d| d.key.as_str())
        .collect();
    assert_eq!(keys, [key]);
    let shown = text(report);
    assert!(
        shown.contains("! NOT COMPARABLE") && !shown.contains("verdict"),
        "{shown}"
    );
    assert!(report.rows.is_empty());
}

#[test]
fn another_machine_or_state_is_refused() {
    for (id, value) in [
        ("host_id", "bb"),
        ("cpu_model", "another"),
        ("cpus_online", "8"),
        ("memory_bytes", "1"),
        ("page_bytes", "16384"),
        ("thp", "always"),
        ("mglru", "0x0007"),
        ("swap", "partition 1 kB priority -2"),
    ] {
        is_refused(&refused(|run| set(run, id, value)), id);
    }
    // A machine that was given another name is the same machine.
    let renamed = refused(|run| run.run.host = "renamed".to_owned());
    assert_eq!(renamed.outcome(false), Outcome::Fine);
    assert!(text(&renamed).contains("host same"), "{}", text(&renamed));
    let flagged = refused(|run| set(run, "kernel_release", "6.13.0"));
    assert_eq!(flagged.outcome(false), Outcome::Fine);
    assert!(text(&flagged).contains("kernel_release: 6.12.0 -> 6.13.0"));
}

#[test]
fn what_is_meant_to_differ_is_no_refusal() {
    let mglru = |options: Options| {
        let mut both = sides(1.1);
        both[1]
            .iter_mut()
            .for_each(|run| set(run, "mglru", "0x0007"));
        report(both, options)
    };
    let vary = Options {
        vary: vec!["mglru".to_owned()],
        ..Options::default()
    };
    let told = mglru(vary);
    assert_eq!(told.outcome(true), Outcome::Fine);
    assert!(text(&told).contains("mglru: 0x0000 -> 0x0007"));
    let forced = Options {
        is_forced: true,
        ..Options::default()
    };
    let told = mglru(forced);
    assert_eq!(told.outcome(true), Outcome::Fine);
    assert!(text(&told).contains("! FORCED: the sides are not comparable (mglru)"));
    assert!(written(&told, Layout::Lkp).starts_with("# FORCED"));
    let wrong = Options {
        vary: vec!["thp".to_owned()],
        ..Options::default()
    };
    is_refused(&mglru(wrong), "mglru");
    assert!(text(&mglru(Options::default())).contains("--vary mglru"));
}

#[test]
fn other_workloads_probes_losses_and_ends_are_refused() {
    is_refused(
        &refused(|run| {
            if let Some(workload) = &mut run.run.workload {
                workload.argv.push("--threads=8".to_owned());
            }
        }),
        "command",
    );
    is_refused(
        &refused(|run| run.run.probes[0].program = "another".to_owned()),
        "probes",
    );
    is_refused(
        &refused(|run| {
            if let Some(kernel) = &mut run.kernel {
                let missing = Missing {
                    signal: "contention".into(),
                    reason: "no tracepoint".to_owned(),
                };
                kernel.missing = vec![missing];
            }
        }),
        "probes",
    );
    let lossy = |n: u64| {
        refused(move |run| {
            if let Some(kernel) = &mut run.kernel {
                kernel.losses = vec![Loss {
                    id: "lock_table_full".to_owned(),
                    lost: n,
                    missing: n,
                    whole: 1_000_000,
                    what: "waits",
                }];
            }
        })
    };
    is_refused(&lossy(2000), "loss");
    let few = lossy(500);
    assert_eq!(few.outcome(false), Outcome::Fine, "below 0.1 %");
    assert!(text(&few).contains("500 lost of 1.00M waits (lock_table_full)"));
    is_refused(&refused(|run| run.run.end = None), "complete");
    is_refused(&refused(|run| run.damaged = 1), "complete");
    is_refused(
        &refused(|run| {
            if let Some(ended) = run.run.workload.as_mut().and_then(|w| w.ended.as_mut()) {
                ended.code = Some(1);
            }
        }),
        "complete",
    );
}

#[test]
fn page_state_that_was_used_counts() {
    let with = |before: f64, after: f64| {
        let mut both = sides(1.1);
        for (side, n) in both.iter_mut().zip([before, after]) {
            for run in side {
                if let Some(kernel) = &mut run.kernel {
                    kernel.pages.insert("thp_fault_alloc".to_owned(), n);
                }
            }
        }
        report(both, Options::default())
    };
    is_refused(&with(1000.0, 10.0), "pages");
    is_refused(&with(0.0, 1000.0), "pages");
    assert_eq!(with(1000.0, 700.0).outcome(false), Outcome::Fine);
    assert_eq!(
        with(1.0, 10.0).outcome(false),
        Outcome::Fine,
        "a handful is chance"
    );
}

#[test]
fn a_side_of_mixed_runs_is_refused_and_the_unknown_is_flagged() {
    let mut both = sides(1.1);
    set(&mut both[0][2], "mglru", "0x0007");
    set(&mut both[1][2], "mglru", "0x0007");
    is_refused(&report(both, Options::default()), "mglru");
    let unknown = refused(|run| run.run.facts.retain(|f| f.id != "swap"));
    assert_eq!(unknown.outcome(false), Outcome::Fine);
    assert!(text(&unknown).contains("not known on a side: swap"));
}
