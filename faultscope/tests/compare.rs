//! `compare` as it is run: files in, status out.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn faultscope(args: &[&str], files: &[PathBuf]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_faultscope"))
        .args(args)
        .args(files)
        .output()
        .expect("the binary runs")
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("it exits")
}

fn said(output: &Output) -> String {
    let all =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    all.concat()
}

/// A directory that goes when the test ends.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("compare-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory is made");
        Self(path)
    }

    /// Runs made of a table with a column for each side.
    fn import(&self, text: &str) -> [PathBuf; 2] {
        let table = self.0.join("table.tsv");
        std::fs::write(&table, text).expect("writable");
        let out = self.0.to_str().expect("UTF-8");
        let done = faultscope(&["import", "-o", out], &[table]);
        assert_eq!(status(&done), 0, "{}", said(&done));
        ["old", "new"].map(|side| self.0.join(format!("table-{side}.fsc")))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

const TABLE: &str = "# unit: 1/s\n# direction: higher\n# metric: transactions/s\nthreads\told\tnew\n1\t600\t545\n8\t1000\t2087\n";

#[test]
fn statuses_of_two_files() {
    let place = Place::new("statuses");
    let files = place.import(TABLE);
    let done = faultscope(&["compare"], &files);
    assert_eq!(status(&done), 0, "{}", said(&done));
    assert!(said(&done).contains("no single verdict"), "{}", said(&done));
    let done = faultscope(&["compare", "--require-verdict"], &files);
    assert_eq!(status(&done), 3, "{}", said(&done));
    let done = faultscope(&["compare", "--gate", "no such=5"], &files);
    assert_eq!(status(&done), 2, "{}", said(&done));
    let done = faultscope(&["compare", "--format", "json"], &files);
    assert_eq!(status(&done), 0, "{}", said(&done));
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(json["schema"], "faultscope.compare/1");
}

#[test]
fn hosts_that_differ_end_with_four() {
    let place = Place::new("hosts");
    let files = place.import(&format!("# host: old=a new=b\n{TABLE}"));
    let done = faultscope(&["compare"], &files);
    assert_eq!(status(&done), 4, "{}", said(&done));
    assert!(said(&done).contains("--vary host"), "{}", said(&done));
    for option in [["--vary", "host"].as_slice(), &["--force"]] {
        let args = [&["compare"], option].concat();
        let done = faultscope(&args, &files);
        assert_eq!(status(&done), 0, "{}", said(&done));
    }
}

#[test]
fn a_wrong_line_shows_the_right_one() {
    let golden =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings/v1-sysbench.fsc");
    let three = [golden.clone(), golden.clone(), golden.clone()];
    let done = faultscope(&["compare"], &three);
    assert_eq!(status(&done), 2);
    assert!(said(&done).contains("--against"), "{}", said(&done));
    let done = faultscope(&["compare"], &three[..2]);
    assert_eq!(status(&done), 2);
    assert!(
        said(&done).contains("the same run, on both sides"),
        "{}",
        said(&done)
    );
    let missing = PathBuf::from("/nonexistent.fsc");
    let done = faultscope(&["compare"], &[missing, golden]);
    assert_eq!(status(&done), 2, "{}", said(&done));
    let empty = Place::new("empty");
    let done = faultscope(&["compare"], &[empty.0.clone(), empty.0.clone()]);
    assert_eq!(status(&done), 2);
    assert!(
        said(&done).contains("holds no recording"),
        "{}",
        said(&done)
    );
}
