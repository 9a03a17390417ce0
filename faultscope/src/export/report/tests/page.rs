//! The page in a real browser, at two widths.

use super::*;
use std::path::PathBuf;
use std::process::Command;

/// Width of a screen, and of a telephone.
const WIDTHS: [u32; 2] = [1280, 400];
/// Plots of a page, by id, whatever was measured.
const PLOTS: [&str; 6] = [
    "plot-flame-fault",
    "plot-rate",
    "plot-latency",
    "plot-waits",
    "plot-flame-wait",
    "plot-flame-hold",
];
/// Measures the page inside a frame of a given width, and leaves what it found in the text.
const MEASURE: &str = "<script>addEventListener('load',()=>{const d=document.querySelector('iframe').contentDocument,\
    r=d.documentElement;document.body.insertAdjacentHTML('beforeend','<pre id=\"measured\">'+JSON.stringify({\
    inner:r.clientWidth,scroll:r.scrollWidth,plots:[...d.querySelectorAll('figure')].map(f=>({id:f.id,\
    svgs:[...f.querySelectorAll('svg')].filter(s=>!s.parentElement.closest('svg')).map(s=>{\
    const b=s.getBoundingClientRect();return [b.left,b.right,b.height]})}))})+'</pre>')})</script>";

/// A directory that goes away with the value.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Opens the report in a frame `width` wide; what was measured, and what the console said.
fn open(directory: &Directory, html: &str, width: u32) -> Option<(serde_json::Value, Vec<String>)> {
    let page = directory.0.join(format!("{width}.html"));
    let frame = format!(
        "<!doctype html><body style=\"margin:0\"><iframe style=\"border:0;width:{width}px;height:900px\" srcdoc=\"{}\">\
         </iframe>{MEASURE}</body>",
        html.replace('&', "&amp;").replace('"', "&quot;")
    );
    std::fs::write(&page, frame).expect("a temporary file");
    let mut browser = Command::new("chromium");
    browser
        // Tests run as root, where there is no sandbox; the page is our own.
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args(["--enable-logging=stderr", "--window-size=1400,1000"])
        .arg(format!("--user-data-dir={}", directory.0.display()))
        .arg(&page);
    let output = match browser.output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => panic!("starting \"chromium\": {error}"),
    };
    let dom = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    let found = dom
        .rsplit_once("id=\"measured\">")
        .and_then(|(_, rest)| rest.split_once("</pre>"))
        .map(|(json, _)| json);
    let Some(found) = found else {
        panic!("nothing was measured at {width}:\n{log}");
    };
    let console = log
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .map(str::to_owned)
        .collect();
    let measured = serde_json::from_str(found).expect("what the page measured is JSON");
    Some((measured, console))
}

#[test]
fn a_browser_shows_every_plot_at_two_widths_without_a_word() {
    let name = format!("faultscope-page-{}", std::process::id());
    let directory = Directory(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&directory.0).expect("a temporary directory");
    for names in [&PLAIN, &HOSTILE] {
        let html = written(&report_of(names, |_| {}), Layout::Html);
        for width in WIDTHS {
            let Some((measured, console)) = open(&directory, &html, width) else {
                let why = "chromium is not installed (cargo xtask setup)";
                writeln!(io::stdout(), "SKIP the page in a browser: {why}").ok();
                return;
            };
            assert!(console.is_empty(), "{width}: {console:?}");
            let number = |value: &serde_json::Value| value.as_f64().expect("a number");
            let inner = number(&measured["inner"]);
            assert!(inner > f64::from(width) - 30.0, "{width}: {inner}");
            assert!(
                number(&measured["scroll"]) <= inner,
                "{width} overflows: {measured}"
            );
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
