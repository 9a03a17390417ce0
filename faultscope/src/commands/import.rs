//! `import`: text that a workload printed becomes runs, as if they had been recorded without probes.
//!
//! Which measurements make a run is `workload`'s decision; here files are read, named and written.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::record::identity;
use crate::error::{Exit, message};
use crate::name::scrub;
use crate::sample::run::{End, Output, Run, RunFact, SOURCE, Workload};
use crate::store::Writer;
use crate::workload::{
    self, Defaults, Format, Found, Measurement, Metric, MetricRule, Refusal, RunSet,
};

/// Longest text that is read, bytes.
pub const MAX_TEXT: u64 = 16 << 20;

/// What to import, and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Texts; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// Directory for the runs, made if it is not there.
    pub directory: PathBuf,
    /// The format, if it is not to be found out.
    pub format: Option<Format>,
    /// Figures to take by expression.
    pub rules: Vec<MetricRule>,
    /// Labels for every run.
    pub labels: BTreeMap<String, String>,
    /// What holds where a table does not say.
    pub defaults: Defaults,
}

/// A way to keep a run with its figures in a file that does not exist yet.
pub type Save<'a> = dyn FnMut(&Path, &Run, &[Metric]) -> Result<()> + 'a;

/// Imports every file; one that is refused does not keep the others from it.
///
/// Each run is a line on `out`; what was refused, or taken with a reservation, one on `err`.
///
/// # Errors
/// If `out` cannot be written.
pub fn run(
    options: &Options,
    input: &mut dyn Read,
    save: &mut Save<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit> {
    let mut exit = Exit::Done;
    for file in &options.files {
        let name = scrub(file.as_os_str().as_encoded_bytes());
        match import(options, file, input, save) {
            Ok(imported) => {
                for line in &imported.lines {
                    writeln!(out, "{line}")?;
                }
                for reason in &imported.reasons {
                    // A closed standard error leaves nobody to tell.
                    writeln!(err, "faultscope: \"{name}\": {reason}").ok();
                    if exit == Exit::Done {
                        exit = Exit::Incomplete;
                    }
                }
            }
            Err(error) => {
                writeln!(
                    err,
                    "faultscope: \"{name}\" was not imported: {}",
                    message(&error)
                )
                .ok();
                exit = Exit::Error;
            }
        }
    }
    out.flush()?;
    Ok(exit)
}

/// What became of a file.
struct Imported {
    lines: Vec<String>,
    reasons: Vec<String>,
}

fn import(
    options: &Options,
    file: &Path,
    input: &mut dyn Read,
    save: &mut Save<'_>,
) -> Result<Imported> {
    let text = if file == Path::new("-") {
        read(input)
    } else {
        File::open(file).and_then(|mut file| read(&mut file))
    };
    let text = text.context("it cannot be read")?;
    let (found, refused) = parse(options, &text)?;
    let Found {
        measurements,
        mut reasons,
    } = found;
    let runs = workload::runs(measurements);
    let planned = plan(options, file, runs);
    for (path, _) in &planned {
        if path.symlink_metadata().is_ok() {
            bail!(
                "\"{}\" exists and is not overwritten; remove it, or choose another directory with -o",
                path.display()
            );
        }
    }
    let mut lines = Vec::new();
    for (path, set) in planned {
        let run = describe(options, file, &text, &set, &refused)?;
        save(&path, &run, &set.metrics)?;
        lines.push(line(&path, &set));
    }
    reasons.extend(refused);
    Ok(Imported { lines, reasons })
}

/// Reads text of at most [`MAX_TEXT`] bytes; what is no UTF-8 becomes the replacement character.
fn read(from: &mut dyn Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(MAX_TEXT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_TEXT {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!(
                "it is longer than {} MiB; cut the results out of it",
                MAX_TEXT >> 20
            ),
        ));
    }
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

/// The measurements of a text, with the figures that rules take; why others of theirs could not be taken.
fn parse(options: &Options, text: &str) -> Result<(Found, Vec<String>)> {
    let parsed = match options.format {
        Some(format) => workload::parse_as(text, format, &options.defaults),
        None => workload::parse(text, &options.defaults),
    };
    if options.defaults != Defaults::default()
        && let Ok(found) = &parsed
        && found.measurements.iter().all(|m| m.format != Format::Table)
    {
        bail!(
            "it is no table, and --name, --unit and --direction are for tables: its figures have all three"
        );
    }
    if options.rules.is_empty() {
        return Ok((parsed?, Vec::new()));
    }
    let mut found = match parsed {
        Ok(found) => found,
        // The rules are for text in no known format.
        Err(Refusal::NotRecognised) => Found::default(),
        Err(refusal) => return Err(refusal.into()),
    };
    let (named, refused) = workload::apply(&options.rules, &workload::mail::undo(text));
    if named.is_empty() {
        bail!("{}", refused.join("; "));
    }
    if workload::runs(found.measurements.clone()).len() > 1 {
        bail!(
            "its results are several runs, and which of them --metric is about is not said; import it without --metric"
        );
    }
    found.measurements.push(Measurement::of_rules(named));
    Ok((found, refused))
}

/// Gives each run its file: the text's name, the variant, and the number of a repetition.
fn plan(options: &Options, file: &Path, runs: Vec<RunSet>) -> Vec<(PathBuf, RunSet)> {
    let stem = match file.file_stem() {
        Some(stem) if file != Path::new("-") => plain(&stem.to_string_lossy()),
        _ => "stdin".to_owned(),
    };
    let path = |set: &RunSet| {
        let mut name = stem.clone();
        if let Some(variant) = &set.variant {
            name.push('-');
            name.push_str(&plain(variant));
        }
        if set.repetition > 1 {
            name.push_str(&format!("-{}", set.repetition));
        }
        options.directory.join(name + ".fsc")
    };
    runs.into_iter().map(|set| (path(&set), set)).collect()
}

/// A name that is no path and needs no quoting.
fn plain(name: &str) -> String {
    let kept = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().take(80).map(kept).collect();
    match name.strip_prefix(['.', '-']) {
        Some(rest) => format!("_{rest}"),
        None => name,
    }
}

/// What is known of the run: next to nothing.
fn describe(
    options: &Options,
    file: &Path,
    text: &str,
    set: &RunSet,
    refused: &[String],
) -> Result<Run> {
    let mut labels = options.labels.clone();
    let mut label = |key: &str, value: String| {
        labels.entry(key.to_owned()).or_insert(value);
    };
    let source = file.file_name().unwrap_or(file.as_os_str());
    label(SOURCE, scrub(source.as_encoded_bytes()));
    if let Some(variant) = &set.variant {
        label("variant", variant.clone());
    }
    if set.repetition > 1 {
        label("repetition", set.repetition.to_string());
    }
    if let Some(status) = set.exit_status {
        label("exit_status", status.to_string());
    }
    let unknown = || Err("the imported text does not tell".to_owned());
    let fact = |id: &str, value: Option<String>| RunFact {
        id: id.to_owned(),
        value: value.map_or_else(unknown, Ok),
    };
    Ok(Run {
        id: identity().context("drawing an identity for the run")?,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: set.host.clone().unwrap_or_default(),
        labels,
        facts: vec![
            fact("host_id", set.host.clone()),
            fact("page_bytes", set.page_size.map(|bytes| bytes.to_string())),
        ],
        workload: Some(Workload {
            output: Output {
                text: text.to_owned(),
                dropped_bytes: 0,
            },
            refused: refused.to_vec(),
            ..Workload::default()
        }),
        ..Run::default()
    })
}

/// Keeps a run in a recording without intervals.
///
/// # Errors
/// If there is a file of that name, or it cannot be written; what was begun of it is removed.
pub fn save(path: &Path, run: &Run, metrics: &[Metric]) -> Result<()> {
    if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
        fs::create_dir_all(directory).context("making the directory for the runs")?;
    }
    let mut writer = Writer::create(path, run)?;
    let end = End {
        mono_ns: 0,
        reason: "imported from text".to_owned(),
    };
    let done = writer
        .set_metrics(metrics)
        .and_then(|()| writer.finish(&end));
    if done.is_err() {
        // The disk is full, or the like: half a run would be taken for one.
        fs::remove_file(path).ok();
    }
    Ok(done?)
}

fn line(path: &Path, set: &RunSet) -> String {
    let mut formats: Vec<&str> = set.metrics.iter().map(|m| m.format.as_str()).collect();
    formats.dedup();
    let mut text = format!(
        "{}: {}, {} figures",
        scrub(path.as_os_str().as_encoded_bytes()),
        formats.join(" and "),
        set.metrics.len()
    );
    if let Some(variant) = &set.variant {
        text.push_str(&format!(", variant {variant}"));
    }
    if set.repetition > 1 {
        text.push_str(&format!(", repetition {}", set.repetition));
    }
    match &set.host {
        Some(host) => text.push_str(&format!(", host {host}")),
        None => text.push_str(", host unknown"),
    }
    if let Some(bytes) = set.page_size {
        text.push_str(&format!(", pages of {bytes} bytes"));
    }
    text
}

#[cfg(test)]
mod tests;
