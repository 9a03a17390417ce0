//! Recordings of every schema version are read, and say what they have said since.
//!
//! `data/recordings/README.md` tells how they were made. With
//! `FAULTSCOPE_WRITE_GOLDEN=1` the output that is expected of them is written anew.

use std::path::{Path, PathBuf};
use std::process::Command;

use faultscope::model::TableId;
use faultscope::store::{Recording, schema};
use serde_json::Value;

/// Tables whose output is kept; the others have to be written without an error.
const KEPT: [&str; 5] = ["overview", "processes", "blocked", "refaults", "spaces"];

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings")
}

/// Every golden recording, with its name without the extension.
fn recordings() -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(data()).expect("readable");
    let mut found: Vec<_> = entries
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "fsc"))
        .map(|path| {
            let stem = path.file_stem().expect("a name").to_string_lossy();
            (stem.into_owned(), path)
        })
        .collect();
    found.sort();
    found
}

fn top(path: &Path, table: &str) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_faultscope"))
        .args([
            "top", "-b", "--format", "jsonl", "--view", table, "--replay",
        ])
        .arg(path)
        .output()
        .expect("the binary runs");
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(
        matches!(done.status.code(), Some(0 | 4)),
        "{}: {error}",
        done.status
    );
    String::from_utf8(done.stdout).expect("UTF-8")
}

/// The first place where `new` lacks or changes what `old` has; new keys are no change.
fn change(old: &Value, new: &Value, at: &str) -> Option<String> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => old.iter().find_map(|(key, value)| {
            let at = format!("{at}.{key}");
            match new.get(key) {
                Some(new) => change(value, new, &at),
                None => Some(format!("{at} is gone")),
            }
        }),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => old
            .iter()
            .zip(new)
            .enumerate()
            .find_map(|(i, (old, new))| change(old, new, &format!("{at}[{i}]"))),
        _ if old == new => None,
        _ => {
            let short = |value: &Value| value.to_string().chars().take(200).collect::<String>();
            Some(format!("{at} was {} and is {}", short(old), short(new)))
        }
    }
}

#[test]
fn golden_recordings_say_what_they_said() {
    let recordings = recordings();
    let is_writing = std::env::var_os("FAULTSCOPE_WRITE_GOLDEN").is_some();
    for (name, path) in &recordings {
        for table in TableId::ALL.iter().map(|table| table.id()) {
            let made = top(path, table);
            if !KEPT.contains(&table) {
                continue;
            }
            let kept = data().join(format!("{name}.{table}.jsonl"));
            if is_writing {
                std::fs::write(&kept, &made).expect("tests/data is writable");
            }
            let kept = std::fs::read_to_string(&kept).expect("the expected output is kept");
            assert_eq!(
                kept.lines().count(),
                made.lines().count(),
                "{name}, {table}"
            );
            for (i, (old, new)) in kept.lines().zip(made.lines()).enumerate() {
                let value = |line| serde_json::from_str::<Value>(line).expect("JSON");
                let changed = change(&value(old), &value(new), "");
                assert_eq!(changed, None, "{name}, {table}, interval {i}");
            }
        }
    }
}

#[test]
fn every_schema_version_has_a_recording() {
    let recordings = recordings();
    for version in 1..=schema::VERSION {
        let prefix = format!("v{version}-");
        let of_version = recordings
            .iter()
            .filter(|(name, _)| name.starts_with(&prefix));
        for (name, path) in of_version.clone() {
            let recording = Recording::open(path).expect("readable");
            assert!(!recording.is_empty(), "{name}");
        }
        assert!(of_version.count() > 0, "no recording of version {version}");
    }
}

#[test]
fn a_change_is_found_and_a_new_key_is_none() {
    let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let old = value(r#"{"a":[{"b":1}],"c":null}"#);
    assert_eq!(
        change(&old, &value(r#"{"a":[{"b":1,"x":2}],"c":null,"d":0}"#), ""),
        None
    );
    for (new, at) in [
        (r#"{"a":[{"b":2}],"c":null}"#, ".a[0].b was 1 and is 2"),
        (r#"{"a":[{"b":1}]}"#, ".c is gone"),
        (r#"{"a":[],"c":null}"#, ".a was"),
        (r#"{"a":[{"b":1}],"c":0}"#, ".c was null and is 0"),
    ] {
        let found = change(&old, &value(new), "").expect("a change");
        assert!(found.contains(at), "{found}");
    }
}
