//! Arguments of `top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::choice;
use super::filters::Filters;
use super::format::parse_top;
use crate::export::Format;
use crate::model::{TableId, View, field};
use crate::plan::{PROBES, probe};

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal that has it, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Arguments that say how the live kernel is captured; a recording is what it is.
const LIVE: [&str; 7] = [
    "interval",
    "pids",
    "cgroups",
    "comms",
    "probes",
    "refault_window",
    "bpf_object",
];

/// Arguments of `top`.
#[derive(Debug, Clone, Args)]
pub struct TopArgs {
    /// Prints one table per interval in place of the screen; chosen by itself when standard output is no terminal.
    #[arg(short, long)]
    pub batch: bool,
    /// Shows a recording in place of the live kernel, at the speed at which it was recorded; in batch mode without
    /// waiting. Needs no rights.
    #[arg(long, value_name = "FILE", conflicts_with_all = LIVE)]
    pub replay: Option<PathBuf>,
    /// Shows the recording that ships with faultscope: a database under sysbench. Needs no rights and no BPF.
    #[arg(long, conflicts_with_all = LIVE, conflicts_with = "replay")]
    pub demo: bool,
    /// Ends after this many intervals; without it, top runs until it is stopped.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Sets the interval in seconds, from 0.1 to 60.
    #[arg(short = 'd', long, value_name = "SEC", default_value = "1", value_parser = parse_interval)]
    pub interval: Duration,
    /// Shows this view or table first: overview, findings, cpus, processes, threads, cgroups, faults, spaces,
    /// latency, faulters, faultcpus, budget, lru, locks, classes, holders, sites, waiters, lru_holds, blocked,
    /// madvise, refaults, self or losses.
    #[arg(long, value_name = "ID", default_value = "overview", value_parser = parse_view)]
    pub view: TableId,
    /// Sets the format of batch output: text, csv or jsonl.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = parse_top)]
    pub format: Format,
    /// Prints at most this many rows of a table.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,
    /// Sorts by this field of the view, greatest first.
    #[arg(long, value_name = "FIELD", value_parser = parse_sort)]
    pub sort: Option<&'static str>,
    /// Shows only rows whose names contain this word; the kernel still counts everything.
    #[arg(long, value_name = "WORD")]
    pub filter: Option<String>,
    /// Whose events are counted.
    #[command(flatten)]
    pub filters: Filters,
    /// Attaches this program from the start, whatever the view, and ends with status 4 if it cannot be attached;
    /// may be repeated. "faultscope doctor" lists the programs.
    #[arg(long = "probe", value_name = "PROGRAM", value_parser = parse_probe)]
    pub probes: Vec<&'static str>,
    /// Counts a fault on memory given back by madvise for so many seconds after the call, from 0.1 to 60.
    #[arg(long, value_name = "SEC", default_value = "1", value_parser = parse_window)]
    pub refault_window: Duration,
    /// Uses colour.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorWhen,
    /// Draws with ASCII characters alone.
    #[arg(long)]
    pub ascii: bool,
    /// Leaves the mouse to the terminal.
    #[arg(long)]
    pub no_mouse: bool,
    /// Uses this compiled BPF object in place of the one built in.
    #[arg(long, value_name = "PATH")]
    pub bpf_object: Option<PathBuf>,
}

impl TopArgs {
    /// Checks what concerns two arguments at once.
    ///
    /// # Errors
    /// A sentence naming the field and the fields the view has.
    pub fn check(&self) -> Result<(), String> {
        let Some(sort) = self.sort else { return Ok(()) };
        let ids: Vec<_> = self.view.fields().iter().map(|field| field.id).collect();
        if ids.contains(&sort) {
            return Ok(());
        }
        Err(format!(
            "view \"{}\" has no field \"{sort}\" to sort by; it has {}",
            self.view.id(),
            choice(&ids)
        ))
    }
}

pub(super) fn parse_interval(text: &str) -> Result<Duration, String> {
    parse_seconds(text, "the interval", 60.0)
}

fn parse_window(text: &str) -> Result<Duration, String> {
    parse_seconds(text, "the window", 60.0)
}

pub(super) fn parse_seconds(text: &str, what: &str, most: f64) -> Result<Duration, String> {
    let range = || format!("{what} is a number of seconds from 0.1 to {most}");
    let seconds: f64 = text.parse().map_err(|_| range())?;
    if (0.1..=most).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(range())
    }
}

pub(super) fn parse_view(name: &str) -> Result<TableId, String> {
    TableId::parse(name)
        .or_else(|| {
            let view = View::ALL
                .into_iter()
                .find(|view| view.title().eq_ignore_ascii_case(name))?;
            view.tables().next()
        })
        .ok_or_else(|| {
            let ids: Vec<_> = TableId::ALL.iter().map(|table| table.id()).collect();
            format!("there is no view \"{name}\"; use {}", choice(&ids))
        })
}

fn parse_sort(id: &str) -> Result<&'static str, String> {
    field::ALL
        .iter()
        .map(|field| field.id)
        .find(|known| *known == id)
        .ok_or_else(|| format!("there is no field \"{id}\"; the keys of \"--format jsonl\" rows are the fields of a view"))
}

pub(super) fn parse_probe(name: &str) -> Result<&'static str, String> {
    probe(name).map(|probe| probe.program).ok_or_else(|| {
        let names: Vec<_> = PROBES.iter().map(|probe| probe.program).collect();
        format!("there is no program \"{name}\"; use {}", choice(&names))
    })
}
