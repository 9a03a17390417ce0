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

/// A copy of the recordings, for what is read with its log gets an index beside it.
struct Copy(PathBuf);

impl Copy {
    fn new(test: &str) -> Self {
        let name = format!("faultscope-golden-{}-{test}", std::process::id());
        let copy = Self(std::env::temp_dir().join(name));
        std::fs::create_dir(&copy.0).expect("a new directory");
        for entry in std::fs::read_dir(data()).expect("readable") {
            let path = entry.expect("readable").path();
            let name = path.file_name().expect("a name");
            std::fs::copy(&path, copy.0.join(name)).expect("a copy");
        }
        copy
    }

    /// What faultscope writes of the recording `name`.
    fn output(&self, arguments: &[&str], name: &str) -> String {
        let done = Command::new(env!("CARGO_BIN_EXE_faultscope"))
            .args(arguments)
            .arg(format!("{name}.fsc"))
            .current_dir(&self.0)
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
}

impl Drop for Copy {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("the directory is ours");
    }
}

/// Holds what was made against what is kept, line by line, or keeps it.
fn hold(kept: &str, made: &str) {
    let path = data().join(kept);
    if std::env::var_os("FAULTSCOPE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, made).expect("tests/data is writable");
    }
    let old = std::fs::read_to_string(&path).expect("the expected output is kept");
    assert_eq!(old.lines().count(), made.lines().count(), "{kept}");
    for (i, (old, new)) in old.lines().zip(made.lines()).enumerate() {
        let value = |line| serde_json::from_str::<Value>(line).expect("JSON");
        assert_eq!(
            change(&value(old), &value(new), ""),
            None,
            "{kept}, line {i}"
        );
    }
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
    let copy = Copy::new("top");
    for (name, _) in recordings() {
        for table in TableId::ALL.iter().map(|table| table.id()) {
            let made = copy.output(
                &[
                    "top", "-b", "--format", "jsonl", "--view", table, "--replay",
                ],
                &name,
            );
            if KEPT.contains(&table) {
                hold(&format!("{name}.{table}.jsonl"), &made);
            }
        }
    }
}

#[test]
fn golden_recordings_are_reported_as_they_were() {
    let copy = Copy::new("report");
    for (name, _) in recordings() {
        let made = copy.output(&["report", "--format", "json"], &name);
        // On one line, so that it is compared as one value.
        let value: Value = serde_json::from_str(&made).expect("JSON");
        hold(&format!("{name}.report.json"), &format!("{value}\n"));
    }
}

#[test]
fn every_schema_version_has_a_recording() {
    let copy = Copy::new("versions");
    let recordings = recordings();
    for version in 1..=schema::VERSION {
        let prefix = format!("v{version}-");
        let of_version = recordings
            .iter()
            .filter(|(name, _)| name.starts_with(&prefix));
        for (name, _) in of_version.clone() {
            let path = copy.0.join(format!("{name}.fsc"));
            let recording = Recording::open(&path).expect("readable");
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
