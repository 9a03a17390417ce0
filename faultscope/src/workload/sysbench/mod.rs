//! sysbench 0.4, 0.5, 1.0 and later: the end report of each run in a text.
//!
//! Interval lines are not read: they are parts of one run and no repetitions. A report after `--report-checkpoints`
//! covers the time since the last checkpoint only (seen in 1.0.20: the count of events starts anew, the total time does
//! not), so counts and times are left out there.

mod block;
mod command;

use block::{Block, Rated};
pub use command::settle_work;

use super::found::{Format, Found, Measurement, Outcome, Refusal};
use super::metric::{Direction, Metric, Work};
use super::number::{Printed, parse_count};

/// What one start of sysbench printed.
#[derive(Debug, Default)]
struct Section {
    line: usize,
    has_banner: bool,
    has_options: bool,
    has_started: bool,
    has_checkpoints: bool,
    is_time_limited: bool,
    threads: Option<u64>,
    /// Size of all that the memory test is to move, in MiB.
    total_mib: Option<u64>,
    request_limit: Option<u64>,
    fatal: Option<String>,
    unfinished: Option<u64>,
    /// What the test was set to: kept as keys, since another setting is another workload.
    settings: Vec<(String, String)>,
    blocks: Vec<Block>,
}

/// Finds every result of sysbench in `text`.
pub(super) fn parse(text: &str) -> Outcome {
    let mut sections = vec![Section {
        line: 1,
        ..Section::default()
    }];
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let is_banner = is_banner(line);
        let is_options = line.starts_with("Running the test with following options");
        let current = sections.last_mut()?;
        if is_banner || (is_options && current.has_options) {
            sections.push(Section {
                line: at + 1,
                ..Section::default()
            });
        }
        let section = sections.last_mut()?;
        section.has_banner |= is_banner;
        section.has_options |= is_options;
        if let Err(reason) = section.take(line) {
            return Some(Err(Refusal::Line {
                line: at + 1,
                reason,
            }));
        }
    }
    let is_there = |s: &Section| s.has_banner || s.blocks.iter().any(Block::is_whole);
    if !sections.iter().any(is_there) {
        return None;
    }
    let mut found = Found::default();
    for section in sections {
        let line = section.line;
        match section.measure() {
            Ok(Some((measurement, reservation))) => {
                found.measurements.push(measurement);
                found
                    .reasons
                    .extend(reservation.map(|r| format!("from line {line}: {r}")));
            }
            Ok(None) => {}
            Err(reason) => found.reasons.push(format!("from line {line}: {reason}")),
        }
    }
    Some(Ok(found))
}

/// `sysbench 1.0.20 (using …)`, `sysbench 0.4.12:  multi-threaded system evaluation benchmark`.
fn is_banner(line: &str) -> bool {
    line.strip_prefix("sysbench ")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains('.'))
}

impl Section {
    fn take(&mut self, line: &str) -> Result<(), String> {
        if line.starts_with('[') {
            if line.ends_with("Checkpoint report:") {
                self.has_checkpoints = true;
                self.blocks.push(Block::of_checkpoint());
            }
            return Ok(());
        }
        // A row of the histogram.
        if line.contains('|') {
            return Ok(());
        }
        if line.starts_with("FATAL:") {
            self.fatal
                .get_or_insert_with(|| line.chars().take(80).collect());
        }
        self.has_started |= line == "Threads started!";
        self.is_time_limited |= line.starts_with("Time limit exceeded");
        let number = |prefix| {
            line.strip_prefix(prefix)
                .map(str::trim)
                .and_then(parse_count)
        };
        if let Some(threads) = number("Number of threads:") {
            self.threads = Some(threads);
        } else if let Some(limit) = number("Maximum number of requests for OLTP test is limited to")
        {
            self.request_limit = Some(limit);
        } else if let Some(count) = number("Number of unfinished transactions on forced shutdown:")
        {
            self.unfinished = Some(count);
        } else if let Some(limit) = number("Prime numbers limit:") {
            self.settings
                .push(("prime limit".to_owned(), limit.to_string()));
        } else if !self.has_started {
            self.take_setting(line);
        }
        // After a checkpoint's block comes the next one, of a checkpoint or the last.
        match self.blocks.last() {
            Some(block) if !block.ends_before(line) => {}
            _ => self.blocks.push(Block::default()),
        }
        match self.blocks.last_mut() {
            Some(block) => block.take(line),
            None => Ok(()),
        }
    }

    /// The memory test's own options, as it lists them.
    fn take_setting(&mut self, line: &str) {
        let Some((label, value)) = line.split_once(':') else {
            return;
        };
        let value = value.trim();
        match label.trim() {
            "total size" => self.total_mib = value.strip_suffix("MiB").and_then(parse_count),
            label @ ("block size" | "operation" | "scope") if !value.is_empty() => {
                self.settings.push((label.to_owned(), value.to_owned()));
            }
            _ => {}
        }
    }

    /// The result, with a reservation if there is one; nothing if none was meant; or why it does not count.
    fn measure(self) -> Result<Option<(Measurement, Option<String>)>, String> {
        if let Some(fatal) = &self.fatal {
            return Err(format!(
                "sysbench gave up (\"{fatal}\"), so there is no result"
            ));
        }
        let (checkpoints, last): (Vec<&Block>, Vec<&Block>) = self
            .blocks
            .iter()
            .filter(|b| !b.is_empty())
            .partition(|b| b.is_checkpoint);
        let block = match last.as_slice() {
            [] if self.has_started && !checkpoints.is_empty() => {
                return Err(
                    "the output ends after a checkpoint, without the last report".to_owned(),
                );
            }
            [] if self.has_started => {
                return Err("the test started, and its report is missing".to_owned());
            }
            // `prepare` and `cleanup` have no result.
            [] => return Ok(None),
            [block] if block.is_whole() => *block,
            [_] => return Err("the report is cut short".to_owned()),
            blocks => {
                return Err(format!(
                    "{} reports follow each other without the lines that sysbench starts with, so they cannot be told \
                     apart",
                    blocks.len()
                ));
            }
        };
        let failures = self.blocks.iter().flat_map(|b| &b.failures);
        if let Some((name, count)) = failures.max_by_key(|(_, count)| *count) {
            return Err(format!("{name}: {count}; a run with errors is no result"));
        }
        if let Some(count) = self.unfinished.filter(|c| *c > 0) {
            return Err(format!(
                "the run was shut down by force with {count} transactions unfinished"
            ));
        }
        let metrics = self.metrics(block)?;
        let reservation = self.has_checkpoints.then(|| {
            "the run had checkpoints, and sysbench counts anew at each: the figures are those since the last one".to_owned()
        });
        Ok(Some((
            Measurement::new(Format::Sysbench, metrics),
            reservation,
        )))
    }

    fn metrics(&self, block: &Block) -> Result<Vec<Metric>, String> {
        let mut metrics = Vec::new();
        let is_whole = !self.has_checkpoints;
        let mut rated = |name: &str, of: &Option<Rated>| {
            if let Some(Rated { count, rate }) = of {
                metrics.push(figure(&format!("{name}/s"), *rate, "1/s").better(Direction::Higher));
                if is_whole {
                    metrics.push(whole(name, *count));
                }
            }
        };
        rated("transactions", &block.transactions);
        rated("queries", &block.queries);
        rated("operations", &block.operations);
        if let Some(moved) = &block.transferred {
            let unit = format!("{}/s", moved.unit);
            metrics.push(figure("transferred", moved.rate, &unit).better(Direction::Higher));
        }
        if block.transactions.is_none() && block.operations.is_none() {
            metrics.extend(self.events(block)?);
        }
        let work = self.work(block);
        for (name, value) in &block.latency {
            metrics.push(figure(&format!("latency {name}"), *value, "ms").better(Direction::Lower));
        }
        if let Some(time) = block.total_time.filter(|_| is_whole) {
            // Of a run that a time limit ends, the time is no result.
            let mut time = figure("total time", time, "s");
            time.direction = (work == Some(Work::Fixed)).then_some(Direction::Lower);
            metrics.push(time);
        }
        let threads = self.threads.map(|n| ("threads".to_owned(), n.to_string()));
        let keys: Vec<_> = threads
            .into_iter()
            .chain(self.settings.iter().cloned())
            .collect();
        for metric in &mut metrics {
            metric.work = work;
            metric.keys.clone_from(&keys);
        }
        Ok(metrics)
    }

    /// Events and their rate; some tests print none, and then it is events by time.
    fn events(&self, block: &Block) -> Result<Vec<Metric>, String> {
        let (Some(time), Some(count)) = (block.total_time, block.events) else {
            return Err("the report is cut short".to_owned());
        };
        let rate = match block.cpu_rate.or(block.events_rate) {
            Some(rate) => figure("events/s", rate, "1/s"),
            None if self.has_checkpoints => {
                return Err("this test prints no rate, and after a checkpoint its events and its time do not belong \
                            together"
                    .to_owned());
            }
            None if time.value > 0.0 => {
                let value = as_f64(count) / time.value;
                let resolution = value * time.resolution() / time.value;
                if !(value.is_finite() && resolution.is_finite()) {
                    return Err(
                        "its total time is too short for a rate; a digit is damaged".to_owned()
                    );
                }
                let printed = Printed { value, decimals: 0 };
                figure("events/s", printed, "1/s").resolved(resolution)
            }
            None => {
                return Err(
                    "the test took no time that sysbench can print, so it has no rate".to_owned(),
                );
            }
        };
        let mut metrics = vec![rate.better(Direction::Higher)];
        if !self.has_checkpoints {
            metrics.push(whole("events", count));
        }
        Ok(metrics)
    }

    /// What was kept constant, where the output tells.
    fn work(&self, block: &Block) -> Option<Work> {
        if self.is_time_limited {
            return Some(Work::Timed);
        }
        if let (Some(total), Some(moved)) = (self.total_mib, &block.transferred) {
            let is_all = (as_f64(total) - moved.amount.value).abs() < 1.0;
            return Some(if is_all { Work::Fixed } else { Work::Timed });
        }
        if self.request_limit.is_some() && self.request_limit == block.events {
            return Some(Work::Fixed);
        }
        // The mutex test: each thread does all its work in one event.
        let is_bare =
            block.transactions.is_none() && block.operations.is_none() && block.cpu_rate.is_none();
        (is_bare && self.threads.is_some() && self.threads == block.events).then_some(Work::Fixed)
    }
}

fn figure(name: &str, value: Printed, unit: &str) -> Metric {
    Metric::printed(Format::Sysbench, name, value, unit)
}

fn whole(name: &str, count: u64) -> Metric {
    let value = as_f64(count);
    figure(name, Printed { value, decimals: 0 }, "count")
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts above 2^53 are none of a benchmark"
)]
const fn as_f64(count: u64) -> f64 {
    count as f64
}
