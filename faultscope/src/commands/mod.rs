//! One file for each subcommand, and what they all do first: read the host.

pub mod bench;
pub mod compare;
pub mod cost;
pub mod doctor;
pub mod import;
mod live;
mod player;
pub mod record;
mod replay;
pub mod report;
mod schedule;
pub mod session;
mod spinlocks;
pub mod top;

use std::path::Path;

use crate::bpf::attach::Hook;
use crate::host::btf::Btf;
use crate::host::{Fact, HostFacts};
use crate::plan::{Attach, FunctionAt, ProbeFacts, SoftwareEvent};

/// Reads and parses the kernel's BTF below `root`, completes `host` from it, and keeps what a plan needs.
///
/// Total: unreadable or damaged BTF is a reason. The image, some megabytes, is dropped on return.
#[must_use]
pub fn consult_kernel(root: &Path, host: &mut HostFacts) -> Fact<ProbeFacts> {
    match &host.kernel.btf_bytes {
        Fact::Yes(_) => {}
        Fact::No(reason) => return Fact::no(reason.clone()),
        Fact::Unknown(reason) => return Fact::unknown(reason.clone()),
    }
    let file = root.join("sys/kernel/btf/vmlinux");
    let image = match std::fs::read(&file) {
        Ok(image) => image,
        Err(error) => {
            return Fact::unknown(format!("\"{}\" cannot be read: {error}", file.display()));
        }
    };
    match Btf::parse(image) {
        Ok(btf) => {
            host.consult_btf(&btf);
            let symbols = host.kernel.kallsyms.clone();
            Fact::Yes(ProbeFacts::from_btf(&btf, &host.privilege, symbols))
        }
        Err(error) => Fact::unknown(format!("\"{}\" cannot be used: {error}", file.display())),
    }
}

/// The loader's name for a hook of the catalogue.
#[must_use]
pub const fn hook(attach: Attach) -> Hook {
    match attach {
        Attach::Tracepoint { name, .. } => Hook::Tracepoint(name),
        Attach::Software(SoftwareEvent::PageFaults) => Hook::PageFaults,
        Attach::Software(SoftwareEvent::MajorFaults) => Hook::MajorFaults,
        Attach::Function { at, names, .. } => match at {
            FunctionAt::Entry => Hook::FunctionEntry(names),
            FunctionAt::Exit => Hook::FunctionExit(names),
            FunctionAt::Probe => Hook::FunctionProbe(names),
        },
        Attach::Clock { hz } => Hook::Clock(hz),
    }
}

/// What multi-generation LRU does to the activation counts.
#[must_use]
pub fn mglru_sentence(mglru: &Fact<u32>) -> String {
    match mglru {
        Fact::Yes(bits) => format!(
            "multi-generation LRU is on ({bits:#06x}): mark-accessed returns before activation, so activations stay 0"
        ),
        Fact::No(reason) | Fact::Unknown(reason) => format!("multi-generation LRU: {reason}"),
    }
}
