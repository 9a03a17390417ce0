//! Arguments of `compare`.

use std::path::PathBuf;

use clap::Args;

use super::choice;
use crate::commands::compare::Request;
use crate::compare::Options;
use crate::compare::gate::KEYS;
use crate::compare::locks::Per;
use crate::compare::render::Layout;

/// Exit codes of `compare`.
pub(super) const EXIT_CODES: &str = "\
Exit status:
  0  No confirmed regression of a metric named with --gate.
  1  A confirmed one: the whole interval lies beyond the percentage, and the adjusted p is .05 or less.
  2  The command line is wrong, or a file cannot be read.
  3  No verdict (--require-verdict only).
  4  The sides are not comparable, and neither --vary nor --force said to compare them.";

/// Arguments of `compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// Recordings, or directories of them: the side before and the side after, or with --against all of the side before.
    #[arg(required = true, value_name = "BEFORE")]
    pub runs: Vec<PathBuf>,
    /// Recordings or directories of the side after.
    #[arg(long, value_name = "AFTER", num_args = 1..)]
    pub against: Vec<PathBuf>,
    /// Names what is meant to differ, so that it is no reason to refuse: host, cpus, memory, page-size, thp, mglru,
    /// swap, command, probes, loss, complete or pages; may be repeated.
    #[arg(long, value_name = "KEY", value_parser = parse_key)]
    pub vary: Vec<String>,
    /// Compares what is not comparable; a banner stays in the output.
    #[arg(long)]
    pub force: bool,
    /// Names the two sides in the output.
    #[arg(long, value_names = ["BEFORE", "AFTER"], num_args = 2)]
    pub label: Vec<String>,
    /// Divides lock waits by this: fault, transaction or second.
    #[arg(long, value_name = "WHAT", default_value = "fault", value_parser = parse_per)]
    pub per: Per,
    /// Ends with status 1 if this metric is worse by more than so many percent, beyond chance; may be repeated.
    #[arg(long = "gate", value_name = "METRIC=PCT", value_parser = parse_gate)]
    pub gates: Vec<(String, f64)>,
    /// Sets the smallest difference that matters, in percent.
    #[arg(long, value_name = "PCT", default_value = "3", value_parser = parse_percent)]
    pub min_effect: f64,
    /// Learns the smallest difference from two halves of the side before; with one side, holds its halves against each
    /// other.
    #[arg(long, conflicts_with = "floor")]
    pub aa: bool,
    /// Learns the smallest difference from these recordings or directories: eight runs or more that differ in nothing,
    /// kept to tell what chance does (the A/A floor). Single runs are held against it too.
    #[arg(long, value_name = "RUNS", num_args = 1..)]
    pub floor: Vec<PathBuf>,
    /// Pairs runs of one round (record --alternate), which takes out drift.
    #[arg(long)]
    pub paired: bool,
    /// Tells a sweep by its numbers of threads, processes or clients alone, without a row for each configuration.
    #[arg(long)]
    pub by_threads: bool,
    /// Ends with status 3 if the primary metric or a gated one has no verdict.
    #[arg(long)]
    pub require_verdict: bool,
    /// Sets the style of the text: default, lkp or mmtests.
    #[arg(long, value_name = "STYLE", default_value = "default", value_parser = parse_style)]
    pub style: Layout,
    /// Sets the format: text, json, md, csv or html. JSON has the schema faultscope.compare/1 and every value.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = parse_layout)]
    pub format: Layout,
}

impl CompareArgs {
    /// The request, checked.
    ///
    /// # Errors
    /// A sentence about arguments that do not go together.
    pub fn request(self) -> Result<Request, String> {
        let (before, after) = match (self.runs.len(), self.against.is_empty()) {
            (_, false) => (self.runs, self.against),
            (2, true) => {
                let mut runs = self.runs.into_iter();
                (runs.by_ref().take(1).collect(), runs.collect())
            }
            (_, true) if self.aa => (self.runs, Vec::new()),
            (1, true) => {
                return Err(
                    "there is one side; name the other: faultscope compare BEFORE AFTER".to_owned(),
                );
            }
            (n, true) => {
                return Err(format!(
                    "{n} files are two sides, and where the second begins is not said: faultscope compare BEFORE... \
                     --against AFTER..."
                ));
            }
        };
        if self.style != Layout::Text && self.format != Layout::Text {
            return Err("--style is for --format text".to_owned());
        }
        let labels = match <[String; 2]>::try_from(self.label) {
            Ok(labels) => labels,
            Err(_) => Options::default().labels,
        };
        Ok(Request {
            before,
            after,
            floor: self.floor,
            options: Options {
                labels,
                vary: self.vary,
                is_forced: self.force,
                per: self.per,
                min_effect: self.min_effect / 100.0,
                is_aa: self.aa,
                is_halved: false,
                is_paired: self.paired,
                is_by_threads: self.by_threads,
                gates: self.gates,
            },
            layout: if self.format == Layout::Text {
                self.style
            } else {
                self.format
            },
            is_verdict_required: self.require_verdict,
        })
    }
}

fn one_of<T: Copy>(name: &str, what: &str, all: &[(&str, T)]) -> Result<T, String> {
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        format!("there is no {what} \"{name}\"; use {}", choice(&names))
    })
}

fn parse_key(name: &str) -> Result<String, String> {
    let names: Vec<(&str, &str)> = KEYS.iter().map(|(key, _)| (*key, *key)).collect();
    one_of(name, "key", &names).map(str::to_owned)
}

fn parse_per(name: &str) -> Result<Per, String> {
    let all = [Per::Fault, Per::Transaction, Per::Second];
    one_of(name, "divisor", &all.map(|per| (per.id(), per)))
}

fn parse_style(name: &str) -> Result<Layout, String> {
    let all = [
        ("default", Layout::Text),
        ("lkp", Layout::Lkp),
        ("mmtests", Layout::Mmtests),
    ];
    one_of(name, "style", &all)
}

fn parse_layout(name: &str) -> Result<Layout, String> {
    let all = [
        ("text", Layout::Text),
        ("json", Layout::Json),
        ("md", Layout::Md),
        ("csv", Layout::Csv),
        ("html", Layout::Html),
    ];
    one_of(name, "format", &all)
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').parse::<f64>();
    let found = percent.ok().filter(|p| (0.0..100.0).contains(p));
    found.ok_or_else(|| format!("\"{text}\" is no percentage from 0 to less than 100"))
}

fn parse_gate(text: &str) -> Result<(String, f64), String> {
    let (metric, percent) = text
        .rsplit_once('=')
        .filter(|(metric, _)| !metric.is_empty())
        .ok_or_else(|| format!("\"{text}\" is no METRIC=PCT, for example transactions/s=5"))?;
    Ok((metric.to_owned(), parse_percent(percent)?))
}
