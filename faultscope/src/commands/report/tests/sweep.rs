//! The old tables, imported and reported.

use super::*;
use crate::commands::import;
use crate::workload::{Defaults, Direction};

/// A directory of runs that goes away with the value.
struct Runs(PathBuf);

impl Runs {
    /// Imports files of the test data.
    fn import(name: &str, files: &[&str], defaults: Defaults) -> Self {
        let name = format!("faultscope-sweep-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("a temporary directory");
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/workload");
        let options = import::Options {
            files: files.iter().map(|file| data.join(file)).collect(),
            directory: directory.clone(),
            defaults,
            ..import::Options::default()
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        import::run(
            &options,
            &mut std::io::empty(),
            &mut import::save,
            &mut out,
            &mut err,
        )
        .expect("a vector takes everything");
        assert!(err.is_empty(), "{}", String::from_utf8_lossy(&err));
        Self(directory)
    }

    fn request(&self, format: Format) -> Request {
        Request {
            files: vec![self.0.clone()],
            format,
            of: Of::Wait,
            tables: Vec::new(),
            from: None,
            to: None,
            top: None,
        }
    }

    fn text(&self) -> String {
        written(&self.request(Format::Text))
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

const PAGE_FAULTS: [&str; 2] = ["pft-2004-sloppy.txt", "pft-2004-tasklist.txt"];

fn page_faults(name: &str) -> Runs {
    Runs::import(name, &PAGE_FAULTS, Defaults::default())
}

fn madvise(name: &str) -> Runs {
    let defaults = Defaults {
        name: Some("transactions/s".to_owned()),
        unit: Some("1/s".to_owned()),
        direction: Some(Direction::Higher),
    };
    Runs::import(name, &["sysbench-madvise-2007.tsv"], defaults)
}

/// The section of curves: the one before names files, whose place differs from run to run.
fn curves(text: &str) -> &str {
    text.split_once("== Scalability ==").expect("the section").1
}

/// The same text with its lines joined.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_page_fault_tables_have_curves_peaks_and_no_sound_law() {
    let text = page_faults("pft").text();
    let flat = flat(&text);
    assert_eq!(flat.matches("fault/wsec by threads: gib").count(), 14);
    assert_eq!(flat.matches("greatest throughput:").count(), 14);
    assert_eq!(flat.matches("no curve of the law has a valley").count(), 14);
    insta::assert_snapshot!(curves(&text));
}

#[test]
fn the_madvise_table_has_efficiency_and_weak_fits() {
    insta::assert_snapshot!(curves(&madvise("madvise").text()));
}

#[test]
fn one_file_has_its_curves_in_the_report() {
    let runs = page_faults("one");
    let request = |format| Request {
        files: vec![runs.0.join("pft-2004-sloppy.fsc")],
        ..runs.request(format)
    };
    let text = written(&request(Format::Text));
    assert!(text.contains("== Scalability ==") && text.contains("== Headline =="));
    assert!(
        flat(&text).contains("320 figures of the workload"),
        "{text}"
    );
    // What all curves share tells none of them apart.
    assert!(text.contains("fault/wsec by threads: gib 256\n"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&written(&request(Format::Json))).expect("one document");
    assert_eq!(json["scalability"].as_array().map(Vec::len), Some(7));
    assert_eq!(json["results"].as_array().map(Vec::len), Some(320));
}

#[test]
fn every_layout_has_the_curves() {
    let runs = madvise("layouts");
    let html = written(&runs.request(Format::Html));
    assert_eq!(html.matches("<svg class=\"curve\"").count(), 8);
    assert!(html.contains("id=\"scalability-3\"") && !html.contains("://"));
    let md = written(&runs.request(Format::Md));
    assert!(md.contains("| THREADS | PER SEC |"), "{md}");
    let json: serde_json::Value =
        serde_json::from_str(&written(&runs.request(Format::Json))).expect("one document");
    assert_eq!(json["schema"], "faultscope.sweep/1");
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(4));
    let vanilla = json["scalability"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|curve| curve["keys"]["variant"] == "vanilla")
        .expect("imported");
    assert_eq!(vanilla["points"][4]["n"], 16);
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    assert!((number(&vanilla["laws"][0]["peak"]) - 4.59).abs() < 0.01);
    assert!((number(&vanilla["points"][4]["efficiency_ratio"]) - 0.08).abs() < 0.001);
}

#[test]
fn points_are_lines_of_csv_and_curves_lines_of_json() {
    let runs = madvise("points");
    let csv = written(&runs.request(Format::Csv));
    let mut lines = csv.split_terminator("\r\n");
    assert_eq!(
        lines.next(),
        Some(
            "figure,unit,workload,keys,over,n,runs,per_sec,speedup,efficiency_ratio,marginal_ratio,cpu_ns_per_op"
        )
    );
    // Four variants at 1, 2, 4, 8 and 16 threads.
    assert_eq!(lines.clone().count(), 20, "{csv}");
    let first = lines
        .find(|line| line.contains("variant=vanilla"))
        .expect("imported");
    assert_eq!(
        first,
        "transactions/s,1/s,table,variant=vanilla,threads,1,1,610,1,1,,"
    );
    let jsonl = written(&runs.request(Format::Jsonl));
    let curves: Vec<serde_json::Value> = jsonl
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect();
    assert_eq!(curves.len(), 4);
    assert!(
        curves
            .iter()
            .all(|c| c["points"].as_array().map(Vec::len) == Some(5))
    );
}

#[test]
fn a_table_without_a_curve_is_an_error_that_says_why() {
    let runs = Runs::import(
        "no-curve",
        &["kernbench-mark-accessed-2004.tsv"],
        Defaults::default(),
    );
    for format in [Format::Csv, Format::Jsonl] {
        let error = run(&runs.request(format), &mut Vec::new()).expect_err("no curve");
        assert!(error.to_string().contains("no curve to write"), "{error}");
        assert_eq!(Exit::of(&error), Exit::Error);
    }
}

#[test]
fn numbers_without_a_unit_are_no_curve_and_it_is_said() {
    let runs = Runs::import(
        "untold",
        &[
            "sysbench-madvise-2007.tsv",
            "kernbench-mark-accessed-2004.tsv",
        ],
        Defaults::default(),
    );
    let text = runs.text();
    assert!(
        flat(&text).contains("--unit 1/s --direction higher"),
        "{text}"
    );
    // The hosts of the kernbench table stand in its own line.
    assert!(
        text.contains("stp8-002") && text.contains("stp8-003"),
        "{text}"
    );
}

#[test]
fn a_damaged_file_is_left_out_and_counted() {
    let runs = madvise("damaged");
    std::fs::write(runs.0.join("z.fsc"), "no recording").expect("writable");
    let mut out = Vec::new();
    let error = run(&runs.request(Format::Text), &mut out).expect_err("incomplete");
    assert_eq!(Exit::of(&error), Exit::Incomplete);
    let text = String::from_utf8(out).expect("UTF-8");
    assert!(text.contains("1 recording could not be read"), "{text}");
    assert_eq!(text.matches("by threads: variant").count(), 4);
    for file in ["vanilla", "new_glibc", "madv_free", "madv_free_mmap_sem"] {
        std::fs::remove_file(runs.0.join(format!("sysbench-madvise-2007-{file}.fsc")))
            .expect("there");
    }
    let error = run(&runs.request(Format::Text), &mut Vec::new()).expect_err("nothing is left");
    assert!(error.to_string().contains("none of the files"), "{error}");
    std::fs::remove_file(runs.0.join("z.fsc")).expect("there");
    let error = run(&runs.request(Format::Text), &mut Vec::new()).expect_err("empty");
    assert!(error.to_string().contains("no .fsc file"), "{error}");
    assert_eq!(Exit::of(&error), Exit::Usage);
}

#[test]
fn a_run_that_is_named_twice_is_refused() {
    let runs = madvise("twice");
    let mut request = runs.request(Format::Text);
    let file = runs.0.join("sysbench-madvise-2007-vanilla.fsc");
    request.files = vec![file.clone(), file];
    let error = run(&request, &mut Vec::new()).expect_err("it would count as two");
    assert_eq!(Exit::of(&error), Exit::Usage);
    assert!(error.to_string().contains("the same run"), "{error}");
}

#[test]
fn what_is_of_one_recording_is_refused_for_several() {
    let runs = madvise("refused");
    let refused = |edit: fn(&mut Request)| {
        let mut request = runs.request(Format::Text);
        edit(&mut request);
        let error = run(&request, &mut Vec::new()).expect_err("refused");
        assert_eq!(Exit::of(&error), Exit::Usage);
        error.to_string()
    };
    assert!(refused(|r| r.from = Some(When::After(0))).contains("a range is of one recording"));
    assert!(refused(|r| r.tables = vec![TableId::Cpus]).contains("--view"));
    assert!(refused(|r| r.top = Some(1)).contains("--top"));
    assert!(refused(|r| r.format = Format::Folded).contains("--format folded"));
}
