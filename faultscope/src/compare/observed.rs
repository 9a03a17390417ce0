//! One run, reduced to what is compared: one value for each figure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::align::Class;
use super::aspect::{self, Aspect};
use super::loss::{Loss, loss};
use super::quantile;
use crate::model::{Context, Missing, Model, Row, Table, TableId, Unit, headline::headline};
use crate::name::scrub;
use crate::sample::{Delta, Interval, Spinlock, histogram::Histogram, merge::Merger, run::Run};
use crate::store::{Error, Recording};
use crate::symbol::FaultPart;
use crate::workload::Metric;

/// A run that takes part in a comparison.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Name of the file, as the user wrote it, scrubbed.
    pub file: String,
    /// What the recording says of itself.
    pub run: Run,
    /// What the workload said of itself.
    pub metrics: Vec<Metric>,
    /// What probes and the kernel's counters say; `None` for text that was imported.
    pub kernel: Option<Kernel>,
    /// Intervals that could not be read.
    pub damaged: usize,
}

/// Figures of the kernel over a whole run.
#[derive(Debug, Clone, Default)]
pub struct Kernel {
    /// Figures of `report`, and those that `compare` adds.
    pub readings: Vec<Reading>,
    /// Serviced faults; `None` where they are not counted.
    pub faults: Option<u64>,
    /// Faults by kind, in the order of the table.
    pub kinds: Vec<(String, u64)>,
    /// Contended waits by lock class, mode and call site; `None` where they are not measured.
    pub sites: Option<BTreeMap<Class, Waits>>,
    /// The same without call sites.
    pub classes: Option<BTreeMap<Class, Waits>>,
    /// Waits and holds by what else they were of, as far as they were measured.
    pub aspects: BTreeMap<Aspect, BTreeMap<Class, Waits>>,
    /// Handoffs of locks by distance, in the order of [`super::aspect::DISTANCES`].
    pub handoffs: BTreeMap<Class, [u64; 5]>,
    /// Durations by what they are of: faults by path, waits by lock and mode, holds.
    pub durations: BTreeMap<String, Histogram>,
    /// Time inside `handle_mm_fault`, ns; `None` where it is not measured.
    pub fault_ns: Option<u64>,
    /// CPU time of a fault by part of the fault path, ns; empty where it was not sampled.
    pub budget: Vec<(String, f64)>,
    /// Signals without a value, with the reason.
    pub missing: Vec<Missing>,
    /// Which spinlock waits are seen.
    pub spinlock: Spinlock,
    /// Losses that are not 0.
    pub losses: Vec<Loss>,
    /// Memory that the command gave back by madvise; `None` where it was not followed.
    pub given_back: Option<GivenBack>,
    /// CPU time that faults of the whole machine spent clearing pages, ns, and the samples it is made of; `None` where
    /// the clock was not sampled.
    pub clearing: Option<(u64, u64)>,
    /// Share of the machine's CPU time that the hypervisor took, 0 to 1.
    pub steal_ratio: Option<f64>,
    /// Page state used: huge pages, reclaim, in the kernel's words.
    pub pages: BTreeMap<String, f64>,
    /// Time covered by intervals, ns.
    pub covered_ns: u64,
}

/// One figure of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Name in JSON and on the command line, with its unit as suffix.
    pub id: &'static str,
    /// What it is.
    pub title: String,
    /// Unit of the value.
    pub unit: Unit,
    /// The value; finite.
    pub value: f64,
}

/// Memory given back by madvise in one run, whatever the advice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GivenBack {
    /// Its bytes.
    pub bytes: u64,
    /// Faults on it within the window.
    pub refaults: u64,
    /// Bytes that were not followed to the end of their window.
    pub lost_bytes: u64,
}

/// Contended waits of a class in one run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Waits {
    /// Number of waits.
    pub waits: u64,
    /// Their time, ns.
    pub wait_ns: u64,
    /// 99 % of them were shorter, ns (off by at most 25 %).
    pub p99_ns: Option<f64>,
}

impl Observed {
    /// Reads the recording at `path`.
    ///
    /// # Errors
    /// If it is no recording that can be read.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let mut recording = Recording::open(path)?;
        let mut sum = Sum::default();
        let mut damaged = 0;
        for index in 0..recording.len() {
            match recording.interval(index) {
                Ok(interval) => sum.add(&interval),
                Err(_) => damaged += 1,
            }
        }
        let run = recording.run().clone();
        let metrics = recording.metrics().to_vec();
        let kernel = (sum.intervals > 0).then(|| sum.finish(&run, &metrics));
        Ok(Self {
            file: scrub(path.as_os_str().as_encoded_bytes()),
            run,
            metrics,
            kernel,
            damaged,
        })
    }

    /// Elapsed time of the command, ns.
    #[must_use]
    pub fn elapsed_ns(&self) -> Option<u64> {
        let workload = self.run.workload.as_ref()?;
        let ended = workload.ended.as_ref()?;
        Some(ended.mono_ns.saturating_sub(workload.start_mono_ns)).filter(|ns| *ns > 0)
    }

    /// Why the run is not whole, in a clause.
    #[must_use]
    pub fn cut_short(&self) -> Option<String> {
        // Imported text has no end of its own.
        self.kernel.as_ref()?;
        let Some(end) = &self.run.end else {
            return Some("its recorder was killed".to_owned());
        };
        if end.reason.contains("broke off") || end.reason.starts_with("SIG") {
            return Some(end.reason.clone());
        }
        let ended = self.run.workload.as_ref()?.ended.as_ref();
        match ended.map(|e| (e.code, e.signal)) {
            None => Some("its command was still running".to_owned()),
            Some((Some(0), _)) => None,
            Some((Some(code), _)) => Some(format!("its command ended with status {code}")),
            Some((None, Some(signal))) => Some(format!("signal {signal} ended its command")),
            Some((None, None)) => None,
        }
    }
}

/// The intervals of a run as one.
#[derive(Default)]
struct Sum {
    merger: Merger,
    intervals: usize,
    missing: BTreeMap<Arc<str>, (Missing, usize)>,
    spinlock: Spinlock,
}

impl Sum {
    fn add(&mut self, interval: &Interval) {
        self.merger.add(&interval.delta);
        self.intervals += 1;
        for missing in interval.missing.iter() {
            let known = self.missing.entry(Arc::clone(&missing.signal));
            known.or_insert_with(|| (missing.clone(), 0)).1 += 1;
        }
        self.spinlock = interval.spinlock.clone();
    }

    fn finish(self, run: &Run, metrics: &[Metric]) -> Kernel {
        let intervals = self.intervals;
        let always = self.missing.into_values().filter(|(_, n)| *n == intervals);
        let missing: Vec<Missing> = always.map(|(missing, _)| missing).collect();
        let interval = Interval {
            missing: missing.clone().into(),
            spinlock: self.spinlock,
            ..Interval::default()
        };
        let context = Context::of(run, &interval);
        let merged = self.merger.finish();
        let model = Model::new(Arc::new(merged.delta), Arc::new(context));
        let mut kernel = Kernel {
            missing,
            spinlock: interval.spinlock,
            covered_ns: model.interval_ns,
            ..Kernel::default()
        };
        kernel.take(&model, run, metrics);
        kernel
    }
}

impl Kernel {
    /// Whether the signal was measured.
    #[must_use]
    pub fn has(&self, signal: &str) -> bool {
        !self.missing.iter().any(|m| *m.signal == *signal)
    }

    fn take(&mut self, model: &Model, run: &Run, metrics: &[Metric]) {
        let delta = model.delta();
        let total = delta.total();
        self.faults = self.has("faults").then(|| total.faults());
        self.readings = headline(model, run, metrics, false)
            .into_iter()
            .filter_map(|figure| {
                Some(Reading {
                    id: figure.id,
                    title: figure.label,
                    unit: figure.unit,
                    value: figure.value.number()?,
                })
            })
            .collect();
        self.add_own(model, run);
        self.kinds = kinds(model.table(TableId::FaultKinds));
        if self.has("contention") {
            self.sites = Some(waits(model.table(TableId::LockSites)));
            self.classes = Some(waits(model.table(TableId::LockClasses)));
        }
        self.aspects = aspect::tables(model, &|signal| self.has(signal));
        self.handoffs = aspect::handoffs(model);
        self.durations = quantile::durations(delta, &|signal| self.has(signal));
        let passes = delta.passes.values();
        self.fault_ns = self
            .has("fault_latency")
            .then(|| passes.fold(0, |sum: u64, p| sum.saturating_add(p.ns)));
        self.budget = budget(model.table(TableId::Budget));
        self.losses = model
            .lost
            .iter()
            .filter_map(|lost| loss(&lost.id, lost.total, delta))
            .collect();
        self.given_back = self.has("refaults").then(|| given_back(delta));
        self.clearing = delta
            .budget
            .as_ref()
            .filter(|_| self.has("fault_budget"))
            .map(|budget| {
                let samples = budget.part(FaultPart::PageClearing);
                (samples.saturating_mul(budget.period_ns), samples)
            });
        let times = || delta.cpus.iter().filter_map(|cpu| cpu.time);
        let steal: u64 = times().map(|t| t.steal_ns).sum();
        let all: u64 = times()
            .map(|t| t.busy_ns + t.idle_ns + t.iowait_ns + t.steal_ns)
            .sum();
        self.steal_ratio = quotient(steal, all);
        for name in ["thp_fault_alloc", "pgsteal_kswapd", "pgsteal_direct"] {
            if let Some(n) = delta.vmstat.get(name) {
                self.pages.insert(name.to_owned(), real(*n));
            }
        }
        for (name, bytes) in &delta.levels {
            if &**name == "AnonHugePages" {
                self.pages
                    .insert("AnonHugePages_bytes".to_owned(), real(*bytes));
            }
        }
    }

    /// Figures that `report` does not have.
    fn add_own(&mut self, model: &Model, run: &Run) {
        let delta = model.delta();
        let total = delta.total();
        let mut add = |id, title: &str, unit, value: Option<f64>| {
            if let Some(value) = value {
                self.readings.push(Reading {
                    id,
                    title: title.to_owned(),
                    unit,
                    value,
                });
            }
        };
        let ended = run.workload.as_ref().and_then(|w| w.ended.as_ref());
        if let Some(ended) = ended {
            let usage = ended.usage;
            let per_fault = quotient(usage.system_ns, usage.faults());
            add(
                "system_per_fault_ns",
                "system time per fault",
                Unit::Ns,
                per_fault,
            );
            add(
                "command_user_ns",
                "the command's user time",
                Unit::Ns,
                Some(real(usage.user_ns)),
            );
            add(
                "command_system_ns",
                "the command's system time",
                Unit::Ns,
                Some(real(usage.system_ns)),
            );
        }
        let is_missing = |signal: &str| model.missing.iter().any(|m| *m.signal == *signal);
        let faults = Some(total.faults()).filter(|_| !is_missing("faults"));
        if !is_missing("contention") {
            let wait = faults.and_then(|faults| quotient(total.wait_ns(), faults));
            add(
                "lock_wait_per_fault_ns",
                "lock wait per fault",
                Unit::Ns,
                wait,
            );
        }
        if !is_missing("refaults") {
            // Other processes give back too, the recorder among them.
            let refaults = given_back(delta).refaults;
            let share = faults.and_then(|_| quotient(refaults, own_faults(delta)));
            add(
                "refaults_per_mfault",
                "refaults per Mfault",
                Unit::Number,
                share.map(|x| x * 1e6),
            );
        }
    }
}

/// What the command gave back, or everybody if there was no command.
pub(super) fn given_back(delta: &Delta) -> GivenBack {
    let own = workload(delta);
    let rows = delta
        .refaults
        .iter()
        .filter(|(id, _)| own.as_ref().is_none_or(|own| own.contains(&id.tgid)));
    rows.fold(GivenBack::default(), |sum, (_, row)| GivenBack {
        bytes: sum.bytes.saturating_add(row.bytes),
        refaults: sum.refaults.saturating_add(row.refaults),
        lost_bytes: sum.lost_bytes.saturating_add(row.lost_bytes),
    })
}

/// Faults of the command, or of everybody if there was no command.
fn own_faults(delta: &Delta) -> u64 {
    workload(delta).map_or_else(
        || delta.total().faults(),
        |own| {
            let rows = delta.processes.iter();
            let rows = rows.filter(|(id, _)| own.contains(&id.tgid));
            rows.map(|(_, process)| process.counters.faults()).sum()
        },
    )
}

/// The command's processes; `None` if there was no command.
fn workload(delta: &Delta) -> Option<BTreeSet<u32>> {
    let rows = delta.processes.iter();
    let own: BTreeSet<u32> = rows
        .filter(|(_, process)| process.is_workload)
        .map(|(id, _)| id.tgid)
        .collect();
    (!own.is_empty()).then_some(own)
}

/// `n / d`; `None` for nothing.
fn quotient(n: u64, d: u64) -> Option<f64> {
    (d > 0).then(|| real(n) / real(d))
}

/// A count as a number to calculate with.
#[expect(
    clippy::cast_precision_loss,
    reason = "figures of a run: three digits are shown"
)]
pub(super) fn real(n: u64) -> f64 {
    n as f64
}

/// A cell of a row by the field's id.
pub(super) fn cell<'a>(table: &Table, row: &'a Row, id: &str) -> Option<&'a crate::model::Value> {
    row.cells.get(table.position(id)?)
}

/// The text of a cell; empty if it has none.
pub(super) fn text(table: &Table, row: &Row, id: &str) -> String {
    match cell(table, row, id) {
        Some(crate::model::Value::Text(text)) => text.clone(),
        _ => String::new(),
    }
}

/// The count in a cell.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of the table: whole and not negative"
)]
pub(super) fn count(table: &Table, row: &Row, id: &str) -> Option<u64> {
    Some(cell(table, row, id)?.number()? as u64)
}

fn kinds(table: &Table) -> Vec<(String, u64)> {
    table
        .rows
        .iter()
        .filter_map(|row| {
            let words = ["origin", "access", "cause"].map(|id| text(table, row, id));
            let name = words.iter().filter(|w| !w.is_empty()).cloned();
            let name = name.collect::<Vec<_>>().join(" ");
            Some((name, count(table, row, "faults")?))
        })
        .collect()
}

/// Contended waits by lock class, mode and, if the table has one, call site.
fn waits(table: &Table) -> BTreeMap<Class, Waits> {
    let class = |row: &Row| {
        let [lock, mode, site] = ["lock", "mode", "site"].map(|id| text(table, row, id));
        Some(Class::new(&lock, &mode, &site))
    };
    aspect::waits(table, &class, ["waits", "wait_ns", "wait_p99_ns"])
}

/// Parts of the fault path; the rows after their sum are other things.
fn budget(table: &Table) -> Vec<(String, f64)> {
    let mut parts = Vec::new();
    for row in &table.rows {
        let part = text(table, row, "part");
        if part == "fault path" {
            break;
        }
        let Some(ns) = cell(table, row, "time_per_fault_ns").and_then(crate::model::Value::number)
        else {
            continue;
        };
        parts.push((part, ns));
    }
    parts
}
