//! What is known about the machine before anything is attached, and what the kernel's files say each tick.
//!
//! Every fact is yes, no or unknown, and the last two carry a sentence for the user. Parsers are pure
//! functions on text or bytes; readers are thin and take the file-system root, so that tests pass a
//! directory. Nothing here loads BPF, prints, or decides what to attach.

pub mod btf;
pub mod cgroup;
pub mod clock;
pub mod conditions;
mod file;
pub mod interrupts;
pub mod kernel;
pub mod mount;
pub mod privilege;
pub mod process;
pub mod spinlock;
pub mod system;
mod system_text;
#[cfg(test)]
mod tests;
pub mod topology;
pub mod usage;

use std::fmt;
use std::path::Path;

use serde::Serialize;

use btf::Btf;
use cgroup::MemoryHierarchy;
use kernel::KernelFacts;
use privilege::PrivilegeFacts;
use spinlock::{SpinlockEvidence, SpinlockMode};
use topology::Topology;

/// Everything read from the host before a plan is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostFacts {
    /// Rights and limits of this process.
    pub privilege: PrivilegeFacts,
    /// Kernel identity and interfaces.
    pub kernel: KernelFacts,
    /// CPUs and their places.
    pub topology: Topology,
    /// Where the memory controller's cgroups are.
    pub memory_hierarchy: Fact<MemoryHierarchy>,
    /// Process ids here are those that programs see.
    pub initial_pid_namespace: Fact<()>,
    /// Slow path of contended spinlocks.
    pub spinlock: Fact<SpinlockMode>,
    /// What `spinlock` was decided from.
    pub spinlock_evidence: SpinlockEvidence,
}

impl HostFacts {
    /// Reads all facts below `root`, `/` outside tests.
    ///
    /// Total: what cannot be read is unknown. Call [`HostFacts::consult_btf`] once BTF is parsed.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        let mounts = mount::read_mounts(root).unwrap_or_default();
        let privilege = PrivilegeFacts::read(root);
        let kernel = KernelFacts::read(root, &privilege, &mounts);
        let topology = Topology::read(root);
        let cmdline = kernel.cmdline.value().map(String::as_str);
        let spinlock_evidence = SpinlockEvidence::read(root, cmdline, topology.cpus.len());
        Self {
            memory_hierarchy: cgroup::find_memory_hierarchy(root, &mounts),
            initial_pid_namespace: process::initial_pid_namespace(root),
            spinlock: spinlock_evidence.decide(),
            spinlock_evidence,
            privilege,
            kernel,
            topology,
        }
    }

    /// Completes the facts that need the kernel's BTF.
    pub fn consult_btf(&mut self, btf: &Btf) {
        self.spinlock_evidence.pv_built = Some(btf.has_function("__pv_queued_spin_lock_slowpath"));
        self.spinlock = self.spinlock_evidence.decide();
    }
}

/// One thing the host has, has not, or would not tell.
///
/// `Unknown` never counts as yes: [`Fact::is_yes`] and [`Fact::value`] treat it like `No`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "detail", rename_all = "lowercase")]
pub enum Fact<T> {
    /// The host has it; the value says which or how much.
    Yes(T),
    /// The host lacks it; the sentence says why and, where there is one, names the fix.
    No(String),
    /// It could not be determined; the sentence says what stood in the way.
    Unknown(String),
}

impl<T> Fact<T> {
    /// Builds a [`Fact::No`] from any text.
    pub fn no(reason: impl Into<String>) -> Self {
        Self::No(reason.into())
    }

    /// Builds a [`Fact::Unknown`] from any text.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown(reason.into())
    }

    /// Returns true only for [`Fact::Yes`].
    pub const fn is_yes(&self) -> bool {
        matches!(self, Self::Yes(_))
    }

    /// Returns the value of a [`Fact::Yes`].
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Yes(value) => Some(value),
            Self::No(_) | Self::Unknown(_) => None,
        }
    }

    /// Returns the sentence of a [`Fact::No`] or [`Fact::Unknown`].
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Yes(_) => None,
            Self::No(reason) | Self::Unknown(reason) => Some(reason),
        }
    }

    /// Returns `"yes"`, `"no"` or `"unknown"`, the words of the JSON output.
    pub const fn state(&self) -> &'static str {
        match self {
            Self::Yes(_) => "yes",
            Self::No(_) => "no",
            Self::Unknown(_) => "unknown",
        }
    }

    /// Applies `convert` to the value and keeps the reasons.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Yes(value) => Fact::Yes(convert(value)),
            Self::No(reason) => Fact::No(reason),
            Self::Unknown(reason) => Fact::Unknown(reason),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Fact<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yes(value) => write!(f, "{value}"),
            Self::No(reason) => write!(f, "no: {reason}"),
            Self::Unknown(reason) => write!(f, "unknown: {reason}"),
        }
    }
}
