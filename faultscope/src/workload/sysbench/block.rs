//! One report block of sysbench: lines into fields, nothing derived.

use crate::workload::number::{self, Printed, parse_count};

/// A count and its rate per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rated {
    pub(super) count: u64,
    pub(super) rate: Printed,
}

/// What the memory test moved.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Transferred {
    pub(super) amount: Printed,
    /// `MiB`; 0.4 and 0.5 write `MB` and mean the same.
    pub(super) unit: String,
    pub(super) rate: Printed,
}

/// What the lines to come belong to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Part {
    /// Nothing that is read.
    #[default]
    Other,
    Sql,
    Cpu,
    General,
    Latency,
}

/// The fields of a block.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Block {
    pub(super) is_checkpoint: bool,
    pub(super) transactions: Option<Rated>,
    pub(super) queries: Option<Rated>,
    /// Names and counts of errors and the like, those above 0.
    pub(super) failures: Vec<(String, u64)>,
    pub(super) operations: Option<Rated>,
    pub(super) transferred: Option<Transferred>,
    pub(super) cpu_rate: Option<Printed>,
    pub(super) events_rate: Option<Printed>,
    pub(super) total_time: Option<Printed>,
    pub(super) events: Option<u64>,
    /// `avg`, `p95` and so on, ms.
    pub(super) latency: Vec<(String, Printed)>,
    /// Whether the heading of those was there.
    has_latency: bool,
    /// What the line taken last belongs to.
    part: Part,
}

/// Headers that only a new block can begin with.
const STARTS: &[&str] = &[
    "SQL statistics:",
    "OLTP test statistics:",
    "CPU speed:",
    "File operations:",
    "General statistics:",
    "Test execution summary:",
];

impl Block {
    /// An empty block that a checkpoint announced.
    pub(super) fn of_checkpoint() -> Self {
        Self {
            is_checkpoint: true,
            ..Self::default()
        }
    }

    /// Whether `line` cannot belong to this block, since its general part is there already.
    pub(super) fn ends_before(&self, line: &str) -> bool {
        self.total_time.is_some()
            && (STARTS.contains(&line)
                || line.starts_with("Total operations:")
                || line.starts_with("Operations performed:")
                || line.starts_with("events/s (eps):"))
    }

    /// Whether anything of a result is in it.
    pub(super) fn is_empty(&self) -> bool {
        *self
            == Self {
                part: self.part,
                has_latency: self.has_latency,
                is_checkpoint: self.is_checkpoint,
                ..Self::default()
            }
    }

    /// Whether the part that every test prints is in it, and what was begun after it is not broken off.
    pub(super) fn is_whole(&self) -> bool {
        let has_most = self
            .latency
            .iter()
            .any(|(name, _)| name == "max" || name.starts_with('p'));
        self.total_time.is_some() && self.events.is_some() && (has_most || !self.has_latency)
    }

    /// Takes a trimmed line.
    ///
    /// # Errors
    /// A clause, if a line of a known meaning cannot be read.
    pub(super) fn take(&mut self, line: &str) -> Result<(), String> {
        if let Some(part) = header(line) {
            self.part = part;
            self.has_latency |= part == Part::Latency;
            return Ok(());
        }
        if self.take_transferred(line)? {
            return Ok(());
        }
        let Some((label, rest)) = line.split_once(':') else {
            return Ok(());
        };
        let rest = rest.trim();
        if rest.is_empty() {
            return Ok(());
        }
        // Mail may have collapsed or kept the blanks inside.
        let label: String = label.split_whitespace().collect::<Vec<_>>().join(" ");
        let fail = || format!("\"{label}\" holds no number that can be read");
        match (self.part, label.as_str()) {
            (_, "Total operations" | "Operations performed") => {
                // The file test of 0.4 has a line of the same name and another form.
                if rest.contains("Total") {
                    return Ok(());
                }
                self.operations = Some(rated(rest).ok_or_else(fail)?);
            }
            (Part::Sql, "transactions") => self.transactions = Some(rated(rest).ok_or_else(fail)?),
            (Part::Sql, "queries") => self.queries = Some(rated(rest).ok_or_else(fail)?),
            (Part::Sql, "ignored errors" | "deadlocks" | "reconnects") => {
                let count = first(rest).and_then(parse_count).ok_or_else(fail)?;
                if count > 0 {
                    self.failures.push((label, count));
                }
            }
            (Part::Cpu, "events per second") => {
                self.cpu_rate = Some(printed(rest, "").ok_or_else(fail)?);
            }
            (Part::General, "events/s (eps)") => {
                self.events_rate = Some(printed(rest, "").ok_or_else(fail)?);
            }
            (Part::General, "total time" | "time elapsed") => {
                self.total_time = Some(printed(rest, "s").ok_or_else(fail)?);
            }
            (Part::General, "total number of events") => {
                self.events = Some(first(rest).and_then(parse_count).ok_or_else(fail)?);
            }
            (Part::Latency, "percentile stats") => {}
            (Part::Latency, name) => {
                if let Some(name) = latency_name(name) {
                    self.latency
                        .push((name, printed(rest, "ms").ok_or_else(fail)?));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// `2048.00 MiB transferred (3306.90 MiB/sec)`.
    fn take_transferred(&mut self, line: &str) -> Result<bool, String> {
        let words: Vec<&str> = line.split_whitespace().take(6).collect();
        let [amount, unit @ ("MiB" | "MB"), "transferred", rate, per] = words.as_slice() else {
            return Ok(false);
        };
        let read = || {
            let amount = number::parse(amount).ok()?;
            let rate = number::parse(rate.strip_prefix('(')?).ok()?;
            (per.strip_suffix("/sec)") == Some(unit)).then_some((amount, rate))
        };
        let (amount, rate) = read().ok_or("\"transferred\" holds no number that can be read")?;
        self.transferred = Some(Transferred {
            amount,
            unit: (*unit).to_owned(),
            rate,
        });
        Ok(true)
    }
}

fn header(line: &str) -> Option<Part> {
    Some(match line {
        "SQL statistics:" | "OLTP test statistics:" => Part::Sql,
        "CPU speed:" => Part::Cpu,
        "General statistics:" | "Test execution summary:" | "Throughput:" => Part::General,
        "Latency (ms):" | "per-request statistics:" | "response time:" => Part::Latency,
        "File operations:"
        | "Threads fairness:"
        | "Query execution statistics:"
        | "Results fetching statistics:" => Part::Other,
        _ => return None,
    })
}

fn first(text: &str) -> Option<&str> {
    text.split_whitespace().next()
}

/// The number that `text` begins with, with or without its unit.
fn printed(text: &str, unit: &str) -> Option<Printed> {
    let word = first(text)?;
    number::parse(word.strip_suffix(unit).unwrap_or(word)).ok()
}

/// `6000   (599.88 per sec.)`
fn rated(text: &str) -> Option<Rated> {
    let (count, rate) = text.split_once('(')?;
    Some(Rated {
        count: parse_count(count.trim())?,
        rate: printed(rate, "")?,
    })
}

/// `95th percentile` and `approx. 95 percentile` are `p95`; `sum` says nothing that compares.
fn latency_name(label: &str) -> Option<String> {
    if matches!(label, "min" | "avg" | "max") {
        return Some(label.to_owned());
    }
    let rank = label.strip_suffix("percentile")?.trim_end();
    let rank = rank.strip_prefix("approx.").map_or(rank, str::trim_start);
    let rank = ["th", "st", "nd", "rd"]
        .iter()
        .find_map(|s| rank.strip_suffix(s))
        .unwrap_or(rank);
    parse_count(rank).map(|rank| format!("p{rank}"))
}
