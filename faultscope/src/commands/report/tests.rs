//! Reports of files that the recorder's writer made.

use super::*;
use crate::export::report::fixture::{HOSTILE, PLAIN, interval, run as fixture_run};
use crate::store::Writer as Recorder;

mod sweep;
use std::path::Path;

/// A file below the target directory that goes away with the value.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let name = format!("faultscope-report-{}-{name}.fsc", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let path = format!("{}{end}", self.0.display());
            std::fs::remove_file(path).ok();
        }
    }
}

/// Ten seconds of a server.
fn recorded(name: &str, names: &[&str; 4], is_ended: bool) -> Temporary {
    let file = Temporary::new(name);
    let run = fixture_run(names);
    let mut begun = run.clone();
    begun.end = None;
    let mut recorder = Recorder::create(file.path(), &begun).expect("a new file");
    for t in 1..=10 {
        recorder
            .append(&interval(t, names))
            .expect("an interval is written");
    }
    if is_ended {
        let end = run.end.expect("the fixture ends");
        recorder.finish(&end).expect("the file is closed");
    }
    file
}

fn request(file: &Temporary, format: Format) -> Request {
    Request {
        files: vec![file.path().to_owned()],
        format,
        of: Of::Wait,
        tables: Vec::new(),
        from: None,
        to: None,
        top: None,
    }
}

fn written(request: &Request) -> String {
    let mut out = Vec::new();
    let exit = run(request, &mut out).expect("a report");
    assert_eq!(exit, Exit::Done);
    String::from_utf8(out).expect("output is UTF-8")
}

#[test]
fn csv_and_json_lines_of_a_recording_hold_one_table() {
    let file = recorded("one-table", &PLAIN, true);
    for tables in [vec![], vec![TableId::Locks, TableId::LockSites]] {
        for format in [Format::Csv, Format::Jsonl] {
            let request = Request {
                tables: tables.clone(),
                ..request(&file, format)
            };
            let error = run(&request, &mut Vec::new()).expect_err("refused");
            assert_eq!(Exit::of(&error), Exit::Usage);
            assert!(
                error.to_string().contains("one table of a recording"),
                "{error}"
            );
        }
    }
}

/// Whatever counters a reader lets through, no sum, ratio or difference of them panics.
#[test]
fn any_counters_give_every_format() {
    for seed in 0..10 {
        let file = Temporary::new(&format!("any-{seed}"));
        let mut recorder = Recorder::create(file.path(), &fixture_run(&PLAIN)).expect("a file");
        for n in 0..3 {
            let mut interval = crate::store::tests::fixture::interval(seed * 3 + n, 6);
            let delta = Arc::make_mut(&mut interval.delta);
            // The fixture's catalogue has two.
            delta.losses.truncate(2);
            recorder.append(&interval).expect("written");
        }
        drop(recorder);
        for format in Format::ALL {
            let tables: &[TableId] = match format {
                Format::Csv | Format::Jsonl => TableId::ALL,
                _ => &[],
            };
            for of in Of::ALL {
                let mut request = request(&file, format);
                request.of = of;
                if tables.is_empty() {
                    let out = written(&request);
                    // There may be no sampled stack.
                    assert!(
                        format == Format::Folded || !out.is_empty(),
                        "{seed} {format:?}"
                    );
                }
                for table in tables {
                    request.tables = vec![*table];
                    written(&request);
                }
            }
        }
    }
}

#[test]
fn a_recording_gives_every_format() {
    let file = recorded("formats", &PLAIN, true);
    for format in Format::ALL {
        let mut request = request(&file, format);
        if matches!(format, Format::Csv | Format::Jsonl) {
            request.tables = vec![TableId::Processes];
        }
        let out = written(&request);
        let lines = out.lines().count();
        match format {
            // One head and two processes; one object for each interval.
            Format::Csv => assert_eq!(lines, 3, "{out}"),
            Format::Jsonl => assert_eq!(lines, 10),
            Format::Json => {
                let json: serde_json::Value = serde_json::from_str(&out).expect("one document");
                assert_eq!(json["schema"], "faultscope.report/1");
                assert_eq!(json["range"]["intervals"], 10);
                assert_eq!(json["is_complete"], true);
                // 4,000 (1 + ... + 10) and ten times 1,000.
                assert_eq!(json["headline"][0]["value"], 230_000);
            }
            Format::Folded => assert_eq!(lines, 3, "{out}"),
            Format::Flamegraph => {
                assert!(out.starts_with("<svg") && out.contains("do_anonymous_page"));
            }
            Format::Text | Format::Md | Format::Html => {
                assert!(
                    out.contains("mariadbd") && !out.contains("cut short"),
                    "{out}"
                );
            }
        }
    }
}

#[test]
fn a_file_without_an_end_is_reported_and_said_to_be_cut_short() {
    let file = recorded("cut", &PLAIN, false);
    let out = written(&request(&file, Format::Text));
    let second = out.lines().nth(1).expect("two lines");
    assert!(second.starts_with("! cut short"), "{second}");
    assert!(out.contains("10 intervals"), "{out}");
}

#[test]
fn a_range_takes_whole_intervals_and_is_told() {
    let file = recorded("range", &PLAIN, true);
    let of = |from: Option<&str>, to: Option<&str>| {
        let parse = |text: &str| text.parse().expect("a point in time");
        let request = Request {
            from: from.map(parse),
            to: to.map(parse),
            ..request(&file, Format::Json)
        };
        let mut out = Vec::new();
        run(&request, &mut out).map(|_| {
            let json: serde_json::Value = serde_json::from_slice(&out).expect("one document");
            let range = &json["range"];
            let ns = |key: &str| range[key].as_u64().expect("a number") / 1_000_000_000;
            (ns("from_ns"), ns("to_ns"), range["is_part"] == true)
        })
    };
    assert_eq!(of(None, None).expect("whole"), (0, 10, false));
    assert_eq!(of(Some("2.5"), Some("4")).expect("a part"), (2, 4, true));
    // The run began at 22:13:20.
    assert_eq!(of(Some("22:13:29"), None).expect("a part"), (9, 10, true));
    let error = of(Some("11"), None).expect_err("behind the end");
    assert!(error.to_string().contains("10.0s long"), "{error}");
    assert_eq!(Exit::of(&error), Exit::Usage);
    let error = of(Some("5"), Some("5")).expect_err("nothing");
    assert!(error.to_string().contains("--from"), "{error}");
}

#[test]
fn hostile_names_of_a_file_stay_text() {
    let file = recorded("hostile", &HOSTILE, true);
    for format in [
        Format::Text,
        Format::Md,
        Format::Html,
        Format::Json,
        Format::Flamegraph,
    ] {
        let out = written(&request(&file, format));
        assert!(
            !out.contains('\u{1b}') && !out.contains('\u{202e}'),
            "{format:?}"
        );
        if matches!(format, Format::Html | Format::Flamegraph | Format::Md) {
            assert!(
                !out.contains("<script") && !out.contains("<img"),
                "{format:?}"
            );
        }
    }
    let mut csv = request(&file, Format::Csv);
    csv.tables = vec![TableId::Processes];
    // A head and two rows, whatever the names hold.
    assert_eq!(written(&csv).matches("\r\n").count(), 3);
}

#[test]
fn what_is_no_recording_is_an_error_without_its_bytes() {
    let file = Temporary::new("none");
    std::fs::write(file.path(), "secret text").expect("a temporary file");
    let error = run(&request(&file, Format::Text), &mut Vec::new()).expect_err("no recording");
    let message = crate::error::message(&error);
    assert!(!message.contains("secret"), "{message}");
    assert_eq!(Exit::of(&error), Exit::Error);
}
