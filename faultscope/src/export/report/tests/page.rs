//! The page in a real browser, at two widths.

use super::*;
use crate::render::browser::{Directory, WIDTHS, check_width, number, open};

/// Plots of a page, by id, whatever was measured.
const PLOTS: [&str; 6] = [
    "plot-flame-fault",
    "plot-rate",
    "plot-latency",
    "plot-waits",
    "plot-flame-wait",
    "plot-flame-hold",
];

#[test]
fn a_browser_shows_every_plot_at_two_widths_without_a_word() {
    let directory = Directory::new("report");
    for names in [&PLAIN, &HOSTILE] {
        let html = written(&report_of(names, |_| {}), Layout::Html);
        for width in WIDTHS {
            let Some((measured, console)) = open(&directory, &html, width) else {
                let why = "chromium is not installed (cargo xtask setup)";
                writeln!(io::stdout(), "SKIP the page in a browser: {why}").ok();
                return;
            };
            check_width(width, &measured, &console);
            let inner = number(&measured["inner"]);
            let plots = measured["plots"].as_array().expect("a list");
            let ids: Vec<&str> = plots
                .iter()
                .filter_map(|plot| plot["id"].as_str())
                .collect();
            assert_eq!(ids, PLOTS, "{width}");
            for plot in plots {
                let svgs = plot["svgs"].as_array().expect("a list");
                assert!(!svgs.is_empty(), "{width}: {plot}");
                for svg in svgs {
                    let (left, right, height) = (number(&svg[0]), number(&svg[1]), number(&svg[2]));
                    assert!(left >= 0.0 && right <= inner, "{width}: {plot}");
                    // A third of the width, and tall enough to be seen.
                    assert!(
                        right - left > inner / 3.0 && height > 20.0,
                        "{width}: {plot}"
                    );
                }
            }
        }
    }
}
