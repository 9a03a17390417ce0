//! What is attached on this host, and why the rest is not.
//!
//! Facts in, decision out: [`plan`] does no I/O and loads nothing. The catalogue is the only list of programs;
//! `bpf/` attaches what a [`Plan`] holds and reports back through [`Prober`].

mod catalog;
mod explain;
mod facts;
#[expect(
    clippy::module_inception,
    reason = "the file owns the plan itself, as the folder's plan of parts says"
)]
mod plan;
mod signals;
#[cfg(test)]
mod tests;

pub use catalog::{
    Attach, BUDGET_HZ, Cost, Degrade, FunctionAt, PROBES, Probe, Set, SoftwareEvent, probe,
};
pub use explain::{MissingSignal, missing, refusal, spinlock, spinlock_sentence, status_line};
pub use facts::ProbeFacts;
pub use plan::{Degradation, Omission, Plan, Request, Why, plan};
pub use signals::{SIGNALS, Signal};

/// What became of one program of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// Program name of the catalogue.
    pub program: &'static str,
    /// Attached, or the kernel's refusal in words with its errno.
    pub outcome: Result<(), String>,
}

/// Loads and attaches the programs of a plan for as long as it takes to see whether that works.
pub trait Prober {
    /// Tries every chosen program in plan order; one result each, and nothing stays attached.
    fn try_attach(&mut self, plan: &Plan) -> Vec<Attached>;
}
