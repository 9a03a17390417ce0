//! Which files are a side.

use std::path::{Path, PathBuf};

use super::cell;
use super::observed::Observed;
use crate::error::Failure;
use crate::name::scrub;

/// Extension of recordings.
const EXTENSION: &str = "fsc";

/// Reads every run of a side: files, and the recordings of directories, in the order of their starts; those of text,
/// which tells none, in that of their names, `run-2` before `run-10`.
///
/// # Errors
/// [`Failure::Usage`] for what is no recording, or a directory without one.
pub fn side(paths: &[PathBuf]) -> Result<Vec<Observed>, Failure> {
    let mut runs = Vec::new();
    for path in paths {
        for file in files(path)? {
            let run = Observed::read(&file).map_err(|error| Failure::Usage(error.to_string()))?;
            runs.push(run);
        }
    }
    for (i, run) in runs.iter().enumerate() {
        if let Some(same) = runs[..i].iter().find(|other| other.run.id == run.run.id) {
            return Err(Failure::Usage(format!(
                "\"{}\" and \"{}\" are the same run; name each once",
                same.file, run.file
            )));
        }
    }
    runs.sort_by(|a, b| {
        let by_start = a.run.start_real_ns.cmp(&b.run.start_real_ns);
        by_start.then_with(|| cell::order(&a.file, &b.file))
    });
    Ok(runs)
}

/// The recordings a path stands for.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let shown = || scrub(path.as_os_str().as_encoded_bytes());
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable =
        |error: std::io::Error| Failure::Usage(format!("\"{}\" cannot be read: {error}", shown()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if file.extension().is_some_and(|e| e == EXTENSION) {
            found.push(file);
        }
    }
    if found.is_empty() {
        return Err(Failure::Usage(format!(
            "\"{}\" holds no recording (*.fsc); make some with \"faultscope record\", or of a workload's text with \
             \"faultscope import\"",
            shown()
        )));
    }
    found.sort();
    Ok(found)
}
