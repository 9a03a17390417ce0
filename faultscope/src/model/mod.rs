//! Derived values for sinks: one [`Model`] per interval, made without I/O.
//!
//! Owns the field catalogue, the views and their tables. Knows nothing of
//! terminals, files, BPF maps or clocks.

pub mod field;
pub mod header;
pub mod table;
pub mod view;

pub use field::{Field, Kind, Unit};
pub use header::{Header, Lost, Missing};
pub use table::{Row, Table, Value};
pub use view::{TableId, View};

use std::sync::Arc;

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
    pub missing: Vec<Missing>,
    /// One table per [`TableId`], in the order of `TableId::ALL`.
    pub tables: Vec<Table>,
    /// Short sentences worth a line on every screen (stale waits, attach edge).
    pub notes: Vec<String>,
}

/// What the header calls the machine.
#[derive(Debug, Clone, Default)]
pub struct HostLine {
    /// Node name.
    pub name: String,
    /// Kernel release as `uname -r` prints it.
    pub kernel: String,
}

impl Model {
    /// The table called `id`.
    ///
    /// # Panics
    /// Never on a model from `Model::new`, which fills every table.
    #[must_use]
    pub fn table(&self, id: TableId) -> &Table {
        &self.tables[id.index()]
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
