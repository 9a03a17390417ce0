//! Every format of a report of three small intervals, and the same with hostile names.

mod page;

use super::fixture::{HOSTILE, PLAIN, interval, run};
use super::*;
use crate::sample::delta::Loss;
use std::sync::Arc;

fn report_of(names: &[&str; 4], edit: impl Fn(&mut Beside)) -> Report {
    let mut gather = Gather::default();
    for t in 1..=3 {
        gather.add(&interval(t, names));
    }
    let output = "SQL statistics:\n    queries performed:\n        read:                            84000\n        \
                  write:                           24000\n        other:                           12000\n        \
                  total:                           120000\n    transactions:                        6000   (599.88 per sec.)\n    \
                  queries:                             120000 (11997.60 per sec.)\n    ignored errors:                      0      (0.00 per sec.)\n    \
                  reconnects:                          0      (0.00 per sec.)\n\nGeneral statistics:\n    total time:                          10.0012s\n    \
                  total number of events:              6000\n";
    let (metrics, _) = crate::workload::results(output, &[]);
    let mut beside = Beside {
        file: "run.fsc".into(),
        run: run(names),
        metrics,
        ..Beside::default()
    };
    edit(&mut beside);
    gather.finish(beside)
}

fn plain() -> Report {
    report_of(&PLAIN, |_| {})
}

fn written(report: &Report, layout: Layout) -> String {
    let mut out = Vec::new();
    report
        .write(layout, &mut out)
        .expect("a vector takes everything");
    String::from_utf8(out).expect("output is UTF-8")
}

#[test]
fn text() {
    insta::assert_snapshot!(written(&plain(), Layout::Text));
}

#[test]
fn results_that_could_not_be_taken_are_said() {
    let said = |text: &str| {
        let report = report_of(&PLAIN, |beside| {
            beside.metrics.clear();
            let workload = beside.run.workload.as_mut().expect("a workload");
            workload.output.text = text.to_owned();
        });
        (
            written(&report, Layout::Text),
            written(&report, Layout::Json),
        )
    };
    for (output, reason) in [
        ("done in no time\n", "no known format"),
        ("real\t0m0,80s\nuser\t0m0,70s\nsys\t0m0,10s\n", "comma"),
        ("", "the command wrote nothing"),
    ] {
        let (text, json) = said(output);
        assert!(
            text.contains("no figure") && text.contains(reason),
            "{text}"
        );
        assert!(json.contains("results_missing") && json.contains(reason));
    }
}

#[test]
fn markdown() {
    insta::assert_snapshot!(written(&plain(), Layout::Md));
}

#[test]
fn json() {
    insta::assert_snapshot!(written(
        &report_of(&PLAIN, |b| b.top = Some(1)),
        Layout::Json
    ));
}

#[test]
fn html() {
    insta::assert_snapshot!(written(&plain(), Layout::Html));
}

#[test]
fn folded_stacks_hold_every_wait_and_hold() {
    let report = plain();
    let folded = |of: Of| of.stacks(&report.merged).folded();
    insta::assert_snapshot!(
        Of::ALL
            .map(|of| format!("{}:\n{}", of.id(), folded(of)))
            .join("\n")
    );
    let waits: u64 = report
        .merged
        .delta
        .locks
        .iter()
        .filter(|(id, _)| !id.is_site)
        .map(|(_, lock)| lock.wait_ns)
        .sum();
    assert_eq!(Of::Wait.stacks(&report.merged).total(), waits);
    let holds: u64 = report.merged.delta.takers.values().map(|t| t.hold_ns).sum();
    assert_eq!(Of::Hold.stacks(&report.merged).total(), holds);
}

#[test]
fn the_workload_s_own_figure_stands_as_printed() {
    for layout in [Layout::Text, Layout::Md, Layout::Html] {
        assert!(written(&plain(), layout).contains("599.88"), "{layout:?}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&written(&plain(), Layout::Json)).expect("one document");
    assert_eq!(json["schema"], "faultscope.report/1");
    let tps = json["results"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|m| m["name"] == "transactions/s")
        .expect("parsed");
    assert_eq!(tps["value"], 599.88);
    let per = json["headline"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|f| f["id"] == "faults_per_transaction")
        .expect("there are transactions");
    // 4,000 (1 + 2 + 3) and 3 times 1,000 faults over 6,000 transactions.
    assert_eq!(per["value"], 4.5);
}

#[test]
fn hostile_names_stay_text_in_every_format() {
    let report = report_of(&HOSTILE, |_| {});
    let html = written(&report, Layout::Html);
    for markup in ["<script", "<img", "onerror=alert(2)>", "\u{1b}", "\u{202e}"] {
        assert!(!html.contains(markup), "{markup}");
    }
    assert!(html.contains("&lt;script&gt;alert(1)"));
    assert!(!html.contains("javascript:") && !html.contains("://"));
    let md = written(&report, Layout::Md);
    assert!(!md.contains('<') || !md.contains("<script"), "{md}");
    for line in md.lines().filter(|l| l.starts_with('|')) {
        let cells = line.matches('|').count();
        assert!(cells >= 3, "{line}");
    }
    // JSON escapes control characters, and nobody prints it as it is.
    for layout in [Layout::Text, Layout::Md, Layout::Html] {
        let out = written(&report, layout);
        assert!(
            !out.contains('\u{1b}') && !out.contains('\u{202e}'),
            "{layout:?}"
        );
    }
    serde_json::from_str::<serde_json::Value>(&written(&report, Layout::Json)).expect("valid");
    for of in Of::ALL {
        for line in of.stacks(&report.merged).folded().lines() {
            let (_, weight) = line.rsplit_once(' ').expect("a weight");
            weight.parse::<u64>().expect("a number");
        }
    }
}

#[test]
fn a_figure_that_was_asked_for_and_not_found_is_told_once() {
    let reason = "metric \"tps\": its expression matches \"5\" and \"6\"";
    let report = report_of(&PLAIN, |b| {
        let workload = b.run.workload.as_mut().expect("there is one");
        workload.refused = vec![reason.to_owned()];
    });
    for layout in [Layout::Text, Layout::Md, Layout::Html] {
        let text = written(&report, layout);
        assert_eq!(text.matches("no figure").count(), 1, "{text}");
    }
    assert!(written(&report, Layout::Text).contains(reason));
    let json: serde_json::Value =
        serde_json::from_str(&written(&report, Layout::Json)).expect("one document");
    assert_eq!(json["results_missing"], serde_json::json!([reason]));
}

#[test]
fn imported_text_has_no_time_and_no_command() {
    let report = report_of(&PLAIN, |b| {
        b.run.start_real_ns = 0;
        b.run.host = String::new();
        b.run.workload = Some(Workload::default());
    });
    let text = written(&report, Layout::Text);
    assert!(text.starts_with("faultscope: imported text\n"), "{text}");
    assert!(
        !text.contains("1970") && !text.contains("still ran"),
        "{text}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&written(&report, Layout::Json)).expect("one document");
    assert_eq!(json["run"]["start_real"], serde_json::Value::Null);
}

#[test]
fn what_was_cut_short_lost_or_refused_stands_on_top() {
    let report = report_of(&PLAIN, |b| {
        b.run.end = None;
        b.warnings = vec!["sysbench: two results".into()];
    });
    let text = written(&report, Layout::Text);
    let head: String = text.lines().take(4).collect();
    assert!(
        head.contains("! cut short") && head.contains("3.00s after the start"),
        "{head}"
    );
    assert!(head.contains("two results"), "{head}");
    let mut gather = Gather::default();
    let mut lossy = interval(1, &PLAIN);
    Arc::make_mut(&mut lossy.delta).losses[1] = Loss {
        total: 9,
        increment: 9,
    };
    gather.add(&lossy);
    let report = gather.finish(Beside {
        run: run(&PLAIN),
        ..Beside::default()
    });
    let text = written(&report, Layout::Text);
    assert!(
        text.lines()
            .nth(1)
            .is_some_and(|l| l.contains("9 events lost: ring_full 9")),
        "{text}"
    );
}

#[test]
fn a_recording_without_intervals_says_so() {
    for layout in [Layout::Text, Layout::Md, Layout::Html, Layout::Json] {
        let report = Gather::default().finish(Beside::default());
        let out = written(&report, layout);
        assert!(
            out.contains("no interval") || layout == Layout::Json,
            "{out}"
        );
    }
}

#[test]
fn chosen_tables_stand_alone_and_rows_are_bounded() {
    let report = report_of(&PLAIN, |b| {
        b.tables = vec![TableId::Processes];
        b.top = Some(1);
    });
    let text = written(&report, Layout::Text);
    assert!(
        text.contains("mariadbd") && text.contains("1 more rows not shown"),
        "{text}"
    );
    assert!(!text.contains("Headline"));
}

#[test]
fn a_signal_some_intervals_had_is_shown_and_the_gap_is_told() {
    let mut gather = Gather::default();
    for t in 1..=3 {
        let mut i = interval(t, &PLAIN);
        if t > 1 {
            i.missing = Arc::new([]);
        }
        gather.add(&i);
    }
    let report = gather.finish(Beside::default());
    assert!(report.model.missing.is_empty());
    assert!(
        report
            .model
            .notes
            .iter()
            .any(|n| n.contains("rss_stat was not measured in 1 of 3 intervals")),
        "{:?}",
        report.model.notes
    );
}
