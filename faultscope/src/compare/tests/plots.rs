//! Plots of the page.

use super::tables::imported;
use super::*;

const SLOPPY: &str = include_str!("../../../tests/data/workload/pft-2004-sloppy.txt");
const TASKLIST: &str = include_str!("../../../tests/data/workload/pft-2004-tasklist.txt");

fn page(report: &Report) -> String {
    let html = written(report, Layout::Html);
    for word in ["NaN", "inf ", "<script", "http://", "https://"] {
        assert!(!html.contains(word), "{word} in\n{html}");
    }
    html
}

#[test]
fn every_run_of_a_headline_is_a_dot() {
    let html = page(&report(sides(1.1), Options::default()));
    let figure = html
        .split("<figure id=\"plot-runs-transactions/s\">")
        .nth(1)
        .and_then(|rest| rest.split("</figure>").next())
        .expect("the primary figure is plotted");
    let dots = |class: &str| {
        let path = figure.split(&format!("class=\"{class}\" d=\"")).nth(1);
        let path = path.and_then(|rest| rest.split('"').next());
        path.map_or(0, |path| path.matches('M').count())
    };
    assert_eq!(
        (dots("before dots"), dots("after dots")),
        (5, 5),
        "{figure}"
    );
    assert_eq!(
        (
            dots("before median"),
            dots("after median"),
            dots("interval")
        ),
        (1, 1, 1)
    );
    // Markdown and text have no plots.
    assert!(!written(&report(sides(1.1), Options::default()), Layout::Md).contains("<figure"));
}

#[test]
fn runs_that_are_alike_or_alone_are_plotted() {
    let alike = [
        vec![run(1, 5.0), run(3, 5.0)],
        vec![run(2, 5.0), run(4, 5.0)],
    ];
    let html = page(&report(alike, Options::default()));
    assert!(
        html.contains("class=\"before dots\"") && !html.contains("class=\"interval\""),
        "{html}"
    );
    let html = page(&report(
        [vec![run(1, 5.0)], vec![run(2, 0.0)]],
        Options::default(),
    ));
    assert!(html.contains("class=\"after dots\""), "{html}");
}

#[test]
fn sweeps_have_both_sides_by_threads() {
    let old = [SLOPPY, TASKLIST].map(|text| imported(text, None, &Defaults::default()));
    let html = page(&report(old, Options::default()));
    assert!(html.contains("<figure id=\"plot-ratio\">"), "{html}");
    assert_eq!(html.matches("<figure id=\"plot-curve-").count(), 7);
    assert!(html.contains("fault/wsec, gib 4<span>"), "{html}");
    for class in ["before", "after", "before dots", "after dots", "one"] {
        assert!(
            html.contains(&format!("<path class=\"{class}\"")),
            "{class}"
        );
    }
}

/// Whatever a sweep counts, its ratios, plots and findings are by that, in its own word.
#[test]
fn sweeps_of_processes_have_them_too() {
    let old = || [SLOPPY, TASKLIST].map(|text| imported(text, None, &Defaults::default()));
    let mut processes = old();
    let metrics = processes.iter_mut().flatten().flat_map(|o| &mut o.metrics);
    for (key, _) in metrics.flat_map(|metric| &mut metric.keys) {
        if key == "threads" {
            *key = "processes".to_owned();
        }
    }
    let by = |sides| report(sides, Options::default());
    let (threads, processes) = (by(old()), by(processes));
    let (of, other) = (threads.sweep.as_ref(), processes.sweep.as_ref());
    let (of, other) = of.zip(other).expect("sweeps");
    assert_eq!((of.over, other.over), ("threads", "processes"));
    assert_eq!(of.by_count, other.by_count);
    assert_eq!(of.crossovers, other.crossovers);
    assert!(other.by_count.len() > 5, "{:?}", other.by_count);
    let html = page(&processes);
    assert!(html.contains("<figure id=\"plot-ratio\">"), "{html}");
    assert_eq!(html.matches("<figure id=\"plot-curve-").count(), 7);
    assert!(html.contains("<span>1 process</span>"), "{html}");
    let shown = text(&processes);
    assert!(shown.contains("ratio by processes"), "{shown}");
    assert!(!shown.contains("threads"), "{shown}");
}

#[test]
fn a_browser_shows_the_plots_at_two_widths_without_a_word() {
    use crate::render::browser::{Directory, WIDTHS, check_width, number, open};
    let directory = Directory::new("compare");
    let old = [SLOPPY, TASKLIST].map(|text| imported(text, None, &Defaults::default()));
    for (sides, plots) in [(sides(1.1), 1), (old, 8)] {
        let html = page(&report(sides, Options::default()));
        for width in WIDTHS {
            let Some((measured, console)) = open(&directory, &html, width) else {
                let why = "chromium is not installed (cargo xtask setup)";
                std::io::Write::write_fmt(
                    &mut std::io::stdout(),
                    format_args!("SKIP the page of compare in a browser: {why}\n"),
                )
                .ok();
                return;
            };
            check_width(width, &measured, &console);
            let inner = number(&measured["inner"]);
            let figures = measured["plots"].as_array().expect("a list");
            assert_eq!(figures.len(), plots, "{width}: {measured}");
            for svg in figures
                .iter()
                .filter_map(|f| f["svgs"].as_array())
                .flatten()
            {
                let (left, right, height) = (number(&svg[0]), number(&svg[1]), number(&svg[2]));
                assert!(left >= 0.0 && right <= inner, "{width}: {svg}");
                assert!(
                    right - left > inner / 2.0 && height > 100.0,
                    "{width}: {svg}"
                );
            }
        }
    }
}
