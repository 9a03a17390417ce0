//! What people read: sections of figures, tables and findings as text.

mod about;
mod grid;
mod scale;

use super::{Report, Sweep};
use crate::model::{
    Field, TableId, Unit, Value,
    headline::{Figure, headline},
};
use crate::render::{
    cell::{ABSENT, scrub},
    finding,
    foot::loss_line,
    number::{format_bytes, format_ns, format_ratio, format_si},
};
use crate::sample::run::Workload;
use about::{about, facts};
use grid::grid;

/// A report as text.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) title: String,
    /// Why to read on with care; the first thing to see.
    pub(super) warnings: Vec<String>,
    pub(super) sections: Vec<Section>,
}

/// A part of the report.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Debug)]
pub(super) enum Block {
    Pairs(Vec<Pair>),
    Grid(Grid),
    Lines(Vec<String>),
    Findings(Vec<Found>),
}

/// A name, its value, and what to know about it.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) label: String,
    pub(super) value: String,
    pub(super) comment: String,
}

/// A table with the columns that say something.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) fields: Vec<&'static Field>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) foot: Vec<String>,
}

/// A finding in words.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) title: &'static str,
    pub(super) text: String,
    pub(super) evidence: String,
    pub(super) next: &'static str,
}

/// Sections with their tables, in the order a reader needs.
pub(super) const SECTIONS: &[(&str, &str, &[TableId])] = &[
    (
        "budget",
        "Where the CPU time of faults goes",
        &[TableId::Budget],
    ),
    (
        "faults",
        "Faults",
        &[
            TableId::FaultKinds,
            TableId::FaultLatency,
            TableId::Processes,
            TableId::FaultProcesses,
            TableId::Cgroups,
        ],
    ),
    (
        "locks",
        "Locks: who waits, who holds, from where",
        &[
            TableId::LockClasses,
            TableId::LockWaiters,
            TableId::LockHolders,
            TableId::LockBlocked,
            TableId::LockSites,
            TableId::Locks,
        ],
    ),
    (
        "madvise",
        "madvise and refaults",
        &[TableId::Madvise, TableId::Refaults],
    ),
    ("lru", "LRU", &[TableId::Lru, TableId::LruHolds]),
    (
        "bounce",
        "Cacheline-bounce proxies",
        &[TableId::AddressSpaces, TableId::Cpus],
    ),
];

/// What the section of curves is called.
const SCALABILITY: &str = "Scalability";

/// Said of proxies wherever they stand.
const PROXY: &str = "No hardware counter was read: these are proxies. Where there is a PMU, \"perf c2c\" is the next step.";

impl Document {
    /// Several runs: what they are, and the curves that they make together.
    pub(super) fn of_runs(sweep: &Sweep) -> Self {
        let mut document = Self {
            title: match sweep.runs.len() {
                1 => "faultscope: 1 run".to_owned(),
                n => format!("faultscope: {n} runs"),
            },
            warnings: sweep
                .warnings
                .iter()
                .map(|w| scrub(w).into_owned())
                .collect(),
            sections: Vec::new(),
        };
        document.push("runs", "Runs", vec![scale::runs(sweep)]);
        document.push("scalability", SCALABILITY, scale::curves(&sweep.scaling));
        document
    }

    pub(super) fn new(report: &Report) -> Self {
        let mut document = Self {
            title: title(report),
            warnings: warnings(report),
            sections: Vec::new(),
        };
        if !report.tables.is_empty() {
            let blocks = report.tables.iter().map(|id| grid(report, *id)).collect();
            document.push("tables", "Tables", blocks);
            return document;
        }
        document.push("run", "Machine and workload", about(report));
        if !report.scaling.is_empty() {
            document.push("scalability", SCALABILITY, scale::curves(&report.scaling));
        }
        let figures = headline(
            &report.model,
            &report.run,
            &report.metrics,
            report.range.is_part,
        );
        let figures = figures.iter().map(pair).collect();
        document.push("headline", "Headline", vec![Block::Pairs(figures)]);
        for (id, title, tables) in SECTIONS {
            let mut blocks: Vec<Block> = tables.iter().map(|id| grid(report, *id)).collect();
            if *id == "bounce" {
                blocks.insert(0, Block::Lines(vec![PROXY.to_owned()]));
            }
            document.push(id, title, blocks);
        }
        document.push("findings", "Findings", vec![findings(report)]);
        document.push("own", "Losses and own cost", own(report));
        document.push("facts", "The machine in full", vec![facts(report)]);
        document
    }

    fn push(&mut self, id: &'static str, title: &'static str, blocks: Vec<Block>) {
        self.sections.push(Section { id, title, blocks });
    }
}

fn title(report: &Report) -> String {
    let what = match &report.run.workload {
        None => "the whole machine".to_owned(),
        Some(workload) if workload.argv.is_empty() => "imported text".to_owned(),
        Some(workload) => command(workload),
    };
    match report.model.host.name.as_str() {
        "" => format!("faultscope: {}", scrub(&what)),
        host => format!("faultscope: {} on {}", scrub(&what), scrub(host)),
    }
}

/// The command as one line, long ones cut.
fn command(workload: &Workload) -> String {
    const LONG: usize = 200;
    let line = workload.argv.join(" ");
    match line.char_indices().nth(LONG) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn warnings(report: &Report) -> Vec<String> {
    let run = &report.run;
    let mut warnings = Vec::new();
    if run.end.is_none() {
        warnings.push(format!(
            "cut short: the recorder ended without closing the file; the last interval ends {} after the start",
            seconds(report.range.to_ns)
        ));
    }
    warnings.extend(loss_line(&report.model).map(|line| line.trim_start_matches("! ").to_owned()));
    if report.merged.intervals == 0 {
        warnings.push("no interval lies in the range: every figure is absent or zero".to_owned());
    }
    if !run.filter.is_empty() {
        warnings.push(format!(
            "filter: {}; figures of the machine and of CPUs are unfiltered",
            scrub(&run.filter)
        ));
    }
    warnings.extend(
        report
            .warnings
            .iter()
            .map(|warning| scrub(warning).into_owned()),
    );
    warnings
}

fn seconds(ns: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    format_ns(ns as f64)
}

fn plain(label: &str, value: impl Into<String>) -> Pair {
    Pair {
        label: label.to_owned(),
        value: scrub(&value.into()).into_owned(),
        comment: String::new(),
    }
}

fn bytes(n: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    format_bytes(n as f64)
}

fn pair(figure: &Figure) -> Pair {
    let value = match (&figure.value, figure.value.number()) {
        (Value::Text(text), _) => text.clone(),
        (_, None) => ABSENT.to_owned(),
        (_, Some(x)) => match figure.unit {
            Unit::Ns => format_ns(x),
            Unit::Bytes => format_bytes(x),
            Unit::Ratio => format_ratio(x),
            _ => format_si(x),
        },
    };
    Pair {
        label: figure.label.clone(),
        value: scrub(&value).into_owned(),
        comment: scrub(&figure.comment).into_owned(),
    }
}

fn findings(report: &Report) -> Block {
    let found = report.model.findings();
    if found.is_empty() {
        let nothing = "no rule of docs/findings.md matched".to_owned();
        return Block::Lines(vec![nothing]);
    }
    Block::Findings(
        found
            .iter()
            .map(|f| {
                let numbers: Vec<String> = f.evidence.iter().map(finding::evidence).collect();
                Found {
                    title: f.title,
                    text: scrub(&f.text).into_owned(),
                    evidence: scrub(&numbers.join(", ")).into_owned(),
                    next: f.next,
                }
            })
            .collect(),
    )
}

/// What was lost, what was missing, what it cost.
fn own(report: &Report) -> Vec<Block> {
    let header = &report.model.header;
    let ratio = |x: Option<f64>| x.map_or_else(|| ABSENT.to_owned(), format_ratio);
    let size = |x: Option<u64>| x.map_or_else(|| ABSENT.to_owned(), bytes);
    let cost = vec![
        plain("own CPU time, of one CPU", ratio(header.own_cpu_ratio)),
        plain("own programs' CPU time", ratio(header.own_bpf_ratio)),
        plain("resident memory", size(header.own_rss_bytes)),
        plain("memory of the maps", size(header.own_map_bytes)),
        plain("late readings", header.overruns.to_string()),
    ];
    let missing: Vec<String> = report
        .model
        .missing
        .iter()
        .map(|m| format!("{} not measured: {}", m.signal, scrub(&m.reason)))
        .collect();
    let mut blocks = vec![Block::Pairs(cost)];
    if !missing.is_empty() {
        blocks.push(Block::Lines(missing));
    }
    let notes: Vec<String> = report
        .model
        .notes
        .iter()
        .map(|note| scrub(note).into_owned())
        .collect();
    if !notes.is_empty() {
        blocks.push(Block::Lines(notes));
    }
    blocks.push(grid(report, TableId::Losses));
    blocks.push(grid(report, TableId::Programs));
    blocks
}
