//! Pages in a real browser, for tests of those who write them.

use std::io;
use std::path::PathBuf;
use std::process::Command;

/// Width of a screen, and of a telephone.
pub(crate) const WIDTHS: [u32; 2] = [1280, 400];
/// Measures the page inside a frame of a given width, and leaves what it found in the text.
const MEASURE: &str = "<script>addEventListener('load',()=>{const d=document.querySelector('iframe').contentDocument,\
    r=d.documentElement;document.body.insertAdjacentHTML('beforeend','<pre id=\"measured\">'+JSON.stringify({\
    inner:r.clientWidth,scroll:r.scrollWidth,plots:[...d.querySelectorAll('figure')].map(f=>({id:f.id,\
    svgs:[...f.querySelectorAll('svg')].filter(s=>!s.parentElement.closest('svg')).map(s=>{\
    const b=s.getBoundingClientRect();return [b.left,b.right,b.height]})}))})+'</pre>')})</script>";

/// A directory that goes away with the value.
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// A new one; `name` sets tests apart.
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("faultscope-page-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Opens the report in a frame `width` wide; what was measured, and what the console said.
pub(crate) fn open(
    directory: &Directory,
    html: &str,
    width: u32,
) -> Option<(serde_json::Value, Vec<String>)> {
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

/// A number that the page measured.
pub(crate) fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().expect("a number")
}

/// The page fills its frame, does not overflow, and the console is silent.
pub(crate) fn check_width(width: u32, measured: &serde_json::Value, console: &[String]) {
    assert!(console.is_empty(), "{width}: {console:?}");
    let inner = number(&measured["inner"]);
    assert!(inner > f64::from(width) - 30.0, "{width}: {inner}");
    assert!(
        number(&measured["scroll"]) <= inner,
        "{width} overflows: {measured}"
    );
}
