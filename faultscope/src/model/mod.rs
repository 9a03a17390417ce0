//! Derived values for sinks: one [`Model`] per interval, made without I/O.
//!
//! Owns the field catalogue, the views and their tables. Knows nothing of
//! terminals, files, BPF maps or clocks. Tables are built when first asked for,
//! so that a screen pays for what it shows.

pub mod advice;
mod build;
pub mod command;
pub mod field;
pub mod finding;
pub mod header;
pub mod headline;
pub mod scale;
pub mod syscall;
pub mod table;
pub mod view;

pub use crate::sample::{ATTACHED_ONLY, Missing, Spinlock};
pub use field::{Field, Kind, Unit};
pub use finding::Finding;
pub use header::{Header, Lost};
pub use table::{Row, Table, Value};
pub use view::{TableId, View};

use crate::sample::{
    Delta, Interval,
    run::{LossKind, Run},
};
use std::sync::{Arc, OnceLock};

/// What the model is told beside the increments; the same for a whole capture.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Host name and kernel release, scrubbed.
    pub host: Arc<HostLine>,
    /// Signals this host does not give, each with the reason `doctor` prints.
    pub missing: Arc<[Missing]>,
    /// Kernel-side filters in force, as the user wrote them.
    pub filter: String,
    /// State of multi-generation LRU in the words of the host facts.
    pub mglru: String,
    /// What contended spinlock waits mean in this kernel's spinlock mode.
    pub spinlock: Spinlock,
    /// Sentences that hold for the whole capture, for every screen.
    pub notes: Vec<String>,
    /// The loss catalogue: id and description, in the order of `Delta::losses`.
    pub losses: Arc<[LossKind]>,
}

impl Context {
    /// What a model of a recorded interval is told.
    #[must_use]
    pub fn of(run: &Run, interval: &Interval) -> Self {
        Self {
            host: Arc::new(HostLine {
                name: run.host.clone(),
                kernel: run.kernel.clone(),
            }),
            missing: Arc::clone(&interval.missing),
            filter: run.filter.clone(),
            mglru: run.mglru.clone(),
            spinlock: interval.spinlock.clone(),
            notes: interval.notes.clone(),
            losses: run.losses.clone().into(),
        }
    }
}

/// What the header calls the machine.
#[derive(Debug, Clone, Default)]
pub struct HostLine {
    /// Node name.
    pub name: String,
    /// Kernel release as `uname -r` prints it.
    pub kernel: String,
}

/// Everything a sink shows of one interval.
#[derive(Debug, Clone)]
pub struct Model {
    /// Host name and kernel release, scrubbed.
    pub host: Arc<HostLine>,
    /// End of the interval on the monotonic clock, in ns since boot.
    pub t_mono_ns: u64,
    /// End of the interval in ns since the Unix epoch.
    pub t_real_ns: u64,
    /// Length of the interval in ns; rates are increments over this.
    pub interval_ns: u64,
    /// The figures of the two header lines; machine-wide, never filtered.
    pub header: Header,
    /// Every loss counter, also those that read zero.
    pub lost: Vec<Lost>,
    /// Signals this host does not give, each with the reason `doctor` prints.
    pub missing: Arc<[Missing]>,
    /// Short sentences worth a line on every screen (stale waits, attach edge).
    pub notes: Vec<String>,
    delta: Arc<Delta>,
    context: Arc<Context>,
    tables: Vec<OnceLock<Table>>,
    findings: OnceLock<Vec<Finding>>,
}

impl Model {
    /// The model of one interval.
    #[must_use]
    pub fn new(delta: Arc<Delta>, context: Arc<Context>) -> Self {
        Self {
            host: Arc::clone(&context.host),
            t_mono_ns: delta.t_mono_ns,
            t_real_ns: delta.t_real_ns,
            interval_ns: delta.interval_ns,
            header: build::header(&delta, &context),
            lost: build::lost(&delta, &context),
            missing: Arc::clone(&context.missing),
            notes: build::notes(&delta, &context),
            delta,
            context,
            tables: vec![OnceLock::new(); TableId::ALL.len()],
            findings: OnceLock::new(),
        }
    }

    /// A model whose tables are given, in the order of `TableId::ALL`; tables
    /// not given are those of an empty interval.
    #[must_use]
    pub fn from_tables(context: Arc<Context>, header: Header, tables: Vec<Table>) -> Self {
        let mut model = Self::new(Arc::default(), context);
        model.header = header;
        for (slot, table) in model.tables.iter_mut().zip(tables) {
            *slot = OnceLock::from(table);
        }
        model
    }

    /// The table called `id`, built on the first call.
    #[must_use]
    pub fn table(&self, id: TableId) -> &Table {
        self.tables[id.index()].get_or_init(|| build::table(id, &self.delta, &self.context))
    }

    /// What the rules found, in the order of their table; made on the first call.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        self.findings
            .get_or_init(|| finding::findings(&self.delta, &self.context))
    }

    /// Whether a note holds for the whole capture, so that saying it once is enough.
    #[must_use]
    pub fn is_standing(&self, note: &str) -> bool {
        self.context.notes.iter().any(|n| n == note)
            || self.delta.symbols_refused.as_deref() == Some(note)
    }

    /// The increments behind the model.
    #[must_use]
    pub fn delta(&self) -> &Delta {
        &self.delta
    }

    /// Interval in seconds, never zero.
    #[must_use]
    pub fn interval_secs(&self) -> f64 {
        units_secs(self.interval_ns)
    }

    /// Total of all losses since attach.
    #[must_use]
    pub fn lost_total(&self) -> u64 {
        self.lost.iter().map(|l| l.total).sum()
    }
}

/// Nanoseconds as seconds, at least one nanosecond so that a rate stays finite.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "2^53 ns are 104 days; an interval is at most a minute"
)]
pub fn units_secs(ns: u64) -> f64 {
    ns.max(1) as f64 / 1e9
}
