//! The section that says what was recorded: machine, run, command, results.

use super::{Block, Pair, bytes, command, plain, seconds};
use crate::export::report::{Report, start};
use crate::host::usage::Usage;
use crate::render::cell::{ABSENT, scrub};
use crate::sample::run::Workload;
use crate::workload::Metric;

/// Figures that are listed at most if the curves that they make stand below.
const MANY: usize = 40;

/// Machine, run, command and its results.
pub(super) fn about(report: &Report) -> Vec<Block> {
    let run = &report.run;
    let range = &report.range;
    let part = if range.is_part {
        ", a part of the run"
    } else {
        ""
    };
    let ended = run
        .end
        .as_ref()
        .map_or("not ended: cut short", |end| &end.reason);
    let mut machine = vec![
        plain("file", report.file.as_str()),
        plain("host", report.model.host.name.as_str()),
        plain("kernel", report.model.host.kernel.as_str()),
        plain("recorded by", format!("faultscope {}", run.tool_version)),
        plain("start", start(run).unwrap_or_else(|| ABSENT.to_owned())),
        plain("ended", ended),
        plain(
            "range",
            format!(
                "{} to {} after the start, {} intervals{part}",
                seconds(range.from_ns),
                seconds(range.to_ns),
                report.merged.intervals
            ),
        ),
    ];
    if let Some(round) = &run.round {
        let side = if round.side.is_empty() {
            String::new()
        } else {
            format!(", side {}", round.side)
        };
        machine.push(plain("round", format!("{}{side}", round.number)));
    }
    let labels = run.labels.iter();
    machine.extend(labels.map(|(key, value)| plain(&scrub(key), value.as_str())));
    let mut blocks = vec![Block::Pairs(machine)];
    // Of text that was imported no command is known.
    if let Some(workload) = run.workload.as_ref().filter(|w| !w.argv.is_empty()) {
        blocks.push(Block::Pairs(workload_pairs(workload)));
    }
    if report.metrics.len() > MANY && !report.scaling.series.is_empty() {
        blocks.push(Block::Lines(vec![format!(
            "{} figures of the workload, of which the throughputs stand below; --format json has all",
            report.metrics.len()
        )]));
    } else if !report.metrics.is_empty() {
        blocks.push(Block::Pairs(results(report)));
    }
    let untold = report.untold();
    if !untold.is_empty() {
        let pairs = untold.into_iter().map(|reason| plain("no figure", reason));
        blocks.push(Block::Pairs(pairs.collect()));
    }
    blocks
}

/// Every fact about the machine, for the end: there are a hundred of them.
pub(super) fn facts(report: &Report) -> Block {
    let facts = report.run.facts.iter().map(|fact| {
        let value = match &fact.value {
            Ok(value) => value.clone(),
            Err(reason) => format!("{ABSENT} ({reason})"),
        };
        plain(&scrub(&fact.id), value)
    });
    Block::Pairs(facts.collect())
}

fn workload_pairs(workload: &Workload) -> Vec<Pair> {
    let mut pairs = vec![
        plain("command", command(workload)),
        plain("directory", workload.directory.as_str()),
    ];
    let Some(ended) = &workload.ended else {
        pairs.push(plain("command's end", "not seen: it still ran"));
        return pairs;
    };
    let how = match (ended.code, ended.signal) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown".to_owned(),
    };
    pairs.push(plain("command's end", how));
    let wall = ended.mono_ns.saturating_sub(workload.start_mono_ns);
    pairs.push(plain("command's time", seconds(wall)));
    let Usage {
        user_ns,
        system_ns,
        max_rss_bytes,
        minor_faults,
        major_faults,
        voluntary_switches,
        involuntary_switches,
    } = ended.usage;
    pairs.push(plain(
        "command's usage",
        format!(
            "{} user, {} system, {minor_faults} minor and {major_faults} major faults, {} at most resident, \
             {voluntary_switches} voluntary and {involuntary_switches} involuntary switches",
            seconds(user_ns),
            seconds(system_ns),
            bytes(max_rss_bytes),
        ),
    ));
    pairs
}

/// A value with as many digits as the workload printed.
fn printed(metric: &Metric) -> String {
    let digits = -metric.resolution.log10();
    if (0.0..=9.0).contains(&digits) && (digits - digits.round()).abs() < 1e-9 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 9"
        )]
        let digits = digits.round() as usize;
        format!("{:.digits$}", metric.value)
    } else {
        metric.value.to_string()
    }
}

/// Figures as the workload printed them: no digit is added or dropped.
fn results(report: &Report) -> Vec<Pair> {
    report
        .metrics
        .iter()
        .map(|metric| {
            let keys: Vec<String> = metric
                .keys
                .iter()
                .map(|(key, value)| format!("{key} {value}"))
                .collect();
            let unit = match metric.unit.as_str() {
                // The name says it.
                "count" | "1/s" => String::new(),
                unit => format!(" {unit}"),
            };
            Pair {
                label: scrub(&metric.name).into_owned(),
                value: scrub(&format!("{}{unit}", printed(metric))).into_owned(),
                comment: scrub(format!("{} {}", metric.format, keys.join(", ")).trim())
                    .into_owned(),
            }
        })
        .collect()
}
