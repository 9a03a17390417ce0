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
use crate::sample::run::{End, Output, Run, RunFact, Workload};
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
    label("source", scrub(source.as_encoded_bytes()));
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
mod tests {
    use super::*;
    use crate::store::Recording;

    /// An empty directory that vanishes again.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir()
                .join(format!("faultscope-import-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a temporary directory");
            Self(path)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    fn data(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data/workload")
            .join(name)
    }

    struct Outcome {
        exit: Exit,
        saved: Vec<(PathBuf, Run, Vec<Metric>)>,
        out: String,
        err: String,
    }

    fn import(options: &Options, input: &str) -> Outcome {
        let (mut saved, mut out, mut err) = (Vec::new(), Vec::new(), Vec::new());
        let exit = run(
            options,
            &mut input.as_bytes(),
            &mut |path, run, metrics| {
                saved.push((path.to_owned(), run.clone(), metrics.to_vec()));
                Ok(())
            },
            &mut out,
            &mut err,
        )
        .expect("a vector takes everything");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Outcome {
            exit,
            saved,
            out: text(out),
            err: text(err),
        }
    }

    fn of(files: &[PathBuf]) -> Options {
        Options {
            files: files.to_vec(),
            directory: PathBuf::from("out"),
            ..Options::default()
        }
    }

    #[test]
    fn the_old_tables_become_runs() {
        let outcome = import(
            &of(&[
                data("pft-2004-sloppy.txt"),
                data("pft-2004-tasklist.txt"),
                data("sysbench-madvise-2007.tsv"),
                data("kernbench-mark-accessed-2004.tsv"),
            ]),
            "",
        );
        assert_eq!((outcome.exit, outcome.err.as_str()), (Exit::Done, ""));
        let lines: Vec<&str> = outcome.out.lines().collect();
        assert_eq!(
            lines,
            [
                "out/pft-2004-sloppy.fsc: pft, 320 figures, host unknown, pages of 16384 bytes",
                "out/pft-2004-tasklist.fsc: pft, 330 figures, host unknown, pages of 16384 bytes",
                "out/pft-2004-tasklist-2.fsc: pft, 20 figures, repetition 2, host unknown, pages of 16384 bytes",
                "out/sysbench-madvise-2007-vanilla.fsc: table, 5 figures, variant vanilla, host unknown",
                "out/sysbench-madvise-2007-new_glibc.fsc: table, 5 figures, variant new_glibc, host unknown",
                "out/sysbench-madvise-2007-madv_free.fsc: table, 5 figures, variant madv_free, host unknown",
                "out/sysbench-madvise-2007-madv_free_mmap_sem.fsc: table, 5 figures, variant madv_free_mmap_sem, host unknown",
                "out/kernbench-mark-accessed-2004-batched.fsc: table, 6 figures, variant batched, host stp8-002",
                "out/kernbench-mark-accessed-2004-vanilla.fsc: table, 6 figures, variant vanilla, host stp8-003",
            ]
        );
        let (_, run, _) = &outcome.saved[2];
        assert_eq!(run.labels.get("repetition").map(String::as_str), Some("2"));
        assert_eq!(run.facts[1].value.as_deref(), Ok("16384"));
        assert!(
            run.facts[0].value.is_err(),
            "a host that is not named is unknown"
        );
        let output = run.workload.as_ref().map(|w| w.output.text.as_str());
        assert_eq!(
            output,
            Some(include_str!(
                "../../tests/data/workload/pft-2004-tasklist.txt"
            ))
        );
        let mut ids: Vec<&str> = outcome
            .saved
            .iter()
            .map(|(_, run, _)| run.id.as_str())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        assert!(ids.len() == 9 && ids.iter().all(|id| id.len() == 32));
    }

    #[test]
    fn a_refused_file_does_not_stop_the_others() {
        let outcome = import(
            &of(&[
                PathBuf::from("-"),
                data("time-1.9-verbose.txt"),
                PathBuf::from("/nonexistent\u{1b}"),
            ]),
            "no result at all\n",
        );
        assert_eq!(outcome.exit, Exit::Error);
        assert_eq!(outcome.saved.len(), 1);
        let lines: Vec<&str> = outcome.err.lines().collect();
        assert!(
            lines[0].starts_with("faultscope: \"-\" was not imported: this is no output of"),
            "{}",
            outcome.err
        );
        assert!(
            lines[1].contains("it cannot be read: No such file"),
            "{}",
            outcome.err
        );
        assert!(!outcome.err.contains('\u{1b}'));
    }

    #[test]
    fn reservations_are_told_and_counted_in_the_status() {
        let outcome = import(&of(&[data("time-1.9-default-status-1.txt")]), "");
        assert_eq!(outcome.exit, Exit::Incomplete);
        assert!(
            outcome
                .err
                .contains("the timed command ended with status 1"),
            "{}",
            outcome.err
        );
        assert_eq!(
            outcome.saved[0]
                .1
                .labels
                .get("exit_status")
                .map(String::as_str),
            Some("1")
        );
    }

    #[test]
    fn rules_take_figures_of_text_in_any_format() {
        let rule = |text: &str| text.parse::<MetricRule>().expect("a rule");
        let mut options = of(&[PathBuf::from("-")]);
        options.rules = vec![
            rule("score:points:higher=score ([0-9]+)"),
            rule("none=none ([0-9]+)"),
        ];
        options
            .labels
            .insert("kernel".to_owned(), "6.12".to_owned());
        let outcome = import(&options, "> the score 42\n");
        assert_eq!(outcome.exit, Exit::Incomplete, "one rule found nothing");
        let (path, run, metrics) = &outcome.saved[0];
        assert_eq!(path, Path::new("out/stdin.fsc"));
        assert_eq!(
            (
                metrics.len(),
                metrics[0].name.as_str(),
                metrics[0].unit.as_str()
            ),
            (1, "score", "points")
        );
        let refused = run.workload.as_ref().map(|w| w.refused.join("; "));
        let reason = "metric \"none\": its expression matches nothing in the output";
        assert_eq!(
            refused.as_deref(),
            Some(reason),
            "the run says what it lacks"
        );
        assert!(outcome.err.contains(reason), "{}", outcome.err);
        assert_eq!(run.labels.get("kernel").map(String::as_str), Some("6.12"));
        assert_eq!(import(&options, "nothing\n").exit, Exit::Error);
        // Beside one run of a known format, but not beside several.
        let time = "real 1.00\nuser 0.50\nsys 0.25\n";
        assert_eq!(
            import(&options, &format!("{time}score 1\n")).saved[0]
                .2
                .len(),
            4
        );
        let several = import(&options, &format!("{time}{time}score 1\n"));
        assert!(several.err.contains("several runs"), "{}", several.err);
    }

    #[test]
    fn what_is_saved_is_read_again() {
        let place = Place::new("saved");
        let options = Options {
            directory: place.0.clone(),
            ..of(&[data("pft-2004-tasklist.txt")])
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let exit = run(&options, &mut io::empty(), &mut save, &mut out, &mut err)
            .expect("a vector takes everything");
        assert_eq!(exit, Exit::Done, "{}", String::from_utf8_lossy(&err));
        let mut names: Vec<_> = fs::read_dir(&place.0)
            .expect("readable")
            .map(|entry| entry.expect("readable").file_name())
            .collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["pft-2004-tasklist-2.fsc", "pft-2004-tasklist.fsc"],
            "no log is left"
        );
        let kept = Recording::open(&place.0.join("pft-2004-tasklist.fsc")).expect("a recording");
        assert!(kept.is_complete() && kept.is_empty());
        assert_eq!(kept.metrics().len(), 66 * 5);
        let text = include_str!("../../tests/data/workload/pft-2004-tasklist.txt");
        let Some(workload) = &kept.run().workload else {
            panic!("the text is kept");
        };
        assert_eq!(workload.output.text, text);
        // The stored text gives the stored figures again.
        let again = workload::runs(
            workload::parse(text, &Defaults::default())
                .expect("parsed")
                .measurements,
        );
        assert_eq!(kept.metrics(), again[0].metrics);
    }

    #[test]
    fn an_existing_file_is_kept_and_a_long_text_refused() {
        let place = Place::new("existing");
        fs::write(place.0.join("sysbench-madvise-2007-madv_free.fsc"), "mine").expect("writable");
        let options = Options {
            directory: place.0.clone(),
            ..of(&[data("sysbench-madvise-2007.tsv")])
        };
        let outcome = import(&options, "");
        assert_eq!(
            (outcome.exit, outcome.saved.len()),
            (Exit::Error, 0),
            "all or nothing of a file"
        );
        assert!(
            outcome.err.contains("exists and is not overwritten"),
            "{}",
            outcome.err
        );

        let long = "x".repeat(usize::try_from(MAX_TEXT).expect("fits") + 1);
        let outcome = import(&of(&[PathBuf::from("-")]), &long);
        assert!(
            outcome.err.contains("longer than 16 MiB"),
            "{}",
            outcome.err
        );
    }

    #[test]
    fn what_is_for_tables_is_refused_elsewhere() {
        let mut options = of(&[
            data("time-1.9-verbose.txt"),
            data("sysbench-madvise-2007.tsv"),
        ]);
        options.defaults.unit = Some("1/s".to_owned());
        let outcome = import(&options, "");
        assert_eq!((outcome.exit, outcome.saved.len()), (Exit::Error, 4));
        assert!(outcome.err.contains("it is no table"), "{}", outcome.err);
    }

    #[test]
    fn names_of_files_are_plain() {
        assert_eq!(plain("../a b/\u{e9}"), "_._a_b__");
        assert_eq!(plain("-o"), "_o");
        assert_eq!(plain("4.19-rc1"), "4.19-rc1");
    }
}
