//! One interval with what was known when it was read: all that a model is made of
//! beside the facts of the run.

use super::Delta;
use std::sync::Arc;

/// Increments, and what to keep in mind when reading them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interval {
    /// The increments.
    pub delta: Arc<Delta>,
    /// Signals without a value, each with the reason `doctor` prints.
    pub missing: Arc<[Missing]>,
    /// What contended spinlock waits mean in this kernel's spinlock mode.
    pub spinlock: Spinlock,
    /// Sentences that hold for the whole capture, for every screen.
    pub notes: Vec<String>,
}

/// A signal this host does not give.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Missing {
    /// Signal id of the probe catalogue, e.g. `mark_accessed`.
    pub signal: Arc<str>,
    /// Why, in the words of `doctor`.
    pub reason: String,
}

/// How the reason of a signal begins that would be given if it were asked for.
pub const ATTACHED_ONLY: &str = "attached only";

impl Missing {
    /// Whether the host would give the signal: its probes are just not attached,
    /// because no view shows it or because they are attached by name alone.
    #[must_use]
    pub fn is_by_choice(&self) -> bool {
        self.reason.starts_with(ATTACHED_ONLY)
    }
}

/// Which spinlock waits are seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Spinlock {
    /// `pv`, `native` or `test-and-set`; `None` where unknown.
    pub mode: Option<Arc<str>>,
    /// Every wait is measured in its slow path.
    pub is_exact: bool,
    /// What that means, a sentence without a full stop.
    pub sentence: String,
}
