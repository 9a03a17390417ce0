//! Several recordings: what they say together of scalability.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::{Request, left_out_files};
use crate::error::{Exit, Failure};
use crate::export::Format;
use crate::export::report::{Layout, Sweep, SweepRun};
use crate::name::scrub;
use crate::store::Recording;

/// Recordings that are read at most.
const MOST: usize = 10_000;

/// Writes what the recordings make together.
pub(super) fn run(request: &Request, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let shape = shape(request)?;
    let (mut runs, mut damaged) = (Vec::new(), Vec::new());
    let files = files(&request.files)?;
    for file in &files {
        match Recording::open(file) {
            Ok(recording) => runs.push(SweepRun {
                file: file.display().to_string(),
                run: recording.run().clone(),
                metrics: recording.metrics().to_vec(),
            }),
            // It names its file.
            Err(error) => damaged.push(error.to_string()),
        }
    }
    check_distinct(&runs)?;
    if runs.is_empty() {
        bail!("none of the files can be read: {}", damaged.join("; "));
    }
    let warnings = if damaged.is_empty() {
        Vec::new()
    } else {
        vec![left_out_files(&damaged)]
    };
    let sweep = Sweep::new(runs, warnings);
    match shape {
        Shape::Document(layout) => sweep.write(layout, out),
        Shape::Points | Shape::Curves if sweep.curves() == 0 => {
            bail!("there is no curve to write: {}", sweep.why_no_curve())
        }
        Shape::Points => sweep.write_points(out),
        Shape::Curves => sweep.write_curves(out),
    }
    .context("writing the report")?;
    if damaged.is_empty() {
        Ok(Exit::Done)
    } else {
        Err(Failure::Incomplete(left_out_files(&damaged)).into())
    }
}

/// Refuses a run that is named twice: it would count as two.
fn check_distinct(runs: &[SweepRun]) -> Result<(), Failure> {
    let mut known: HashMap<&str, &str> = HashMap::new();
    for run in runs.iter().filter(|run| !run.run.id.is_empty()) {
        if let Some(other) = known.insert(&run.run.id, &run.file) {
            return Err(Failure::Usage(format!(
                "\"{}\" and \"{}\" are the same run; name each once",
                scrub(other.as_bytes()),
                scrub(run.file.as_bytes())
            )));
        }
    }
    Ok(())
}

/// What is written of several recordings.
enum Shape {
    /// A document of runs and curves.
    Document(Layout),
    /// The points of the curves as CSV.
    Points,
    /// The curves as JSON lines.
    Curves,
}

/// What is written, if the request fits several recordings.
fn shape(request: &Request) -> Result<Shape, Failure> {
    let usage = |what: &str| {
        Failure::Usage(format!(
            "{what} is of one recording; several are reported as the curves that they make, in text, md, html, json, csv or jsonl"
        ))
    };
    if request.from.is_some() || request.to.is_some() {
        return Err(usage("a range"));
    }
    if !request.tables.is_empty() {
        return Err(usage("--view"));
    }
    if request.top.is_some() {
        return Err(usage("--top"));
    }
    match request.format {
        Format::Text => Ok(Shape::Document(Layout::Text)),
        Format::Md => Ok(Shape::Document(Layout::Md)),
        Format::Html => Ok(Shape::Document(Layout::Html)),
        Format::Json => Ok(Shape::Document(Layout::Json)),
        Format::Csv => Ok(Shape::Points),
        Format::Jsonl => Ok(Shape::Curves),
        other => Err(usage(&format!("--format {}", other.id()))),
    }
}

/// The files meant: those named, and those in directories named, sorted.
fn files(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if path.is_dir() {
            files.extend(of_directory(path)?);
        } else {
            files.push(path.clone());
        }
    }
    if files.len() > MOST {
        bail!("these are {} recordings; {MOST} are the most", files.len());
    }
    Ok(files)
}

fn of_directory(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let name = scrub(directory.as_os_str().as_encoded_bytes());
    let entries = std::fs::read_dir(directory)
        .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
        .with_context(|| format!("reading the directory \"{name}\""))?;
    let paths = entries.into_iter().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "fsc"))
        .collect();
    if files.is_empty() {
        return Err(
            Failure::Usage(format!("there is no .fsc file in the directory \"{name}\"")).into(),
        );
    }
    files.sort();
    Ok(files)
}
