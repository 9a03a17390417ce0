//! The process tree of the command that a recording is made of.

use crate::{
    globals::{self, member},
    maps::WORKLOAD,
    record::lose,
};
use aya_ebpf::{
    helpers::bpf_get_current_pid_tgid, macros::btf_tracepoint, programs::BtfTracePointContext,
};
use faultscope_common::loss;

/// Marks the new process of a marked one. `kernel_clone` calls this with no lock
/// held and before the new process runs (kernel/fork.c), so none of its events is
/// missed; no other program writes the map.
#[btf_tracepoint(function = "sched_process_fork")]
fn workload_fork(ctx: BtfTracePointContext) -> i32 {
    let parent = (bpf_get_current_pid_tgid() >> 32) as u32;
    // SAFETY: the value is not used after the look-up.
    if unsafe { WORKLOAD.get(&parent) }.is_none() {
        return 0;
    }
    let child: *const u8 = ctx.arg(1);
    let (Some(tgid), Some(start_ns)) = (
        member::<u32>(child, &globals::OFF_TASK_TGID),
        member::<u64>(child, &globals::OFF_TASK_START),
    ) else {
        return 0;
    };
    // A new thread is of its process already.
    if tgid != parent && WORKLOAD.insert(&tgid, &start_ns, 0).is_err() {
        lose(loss::WORKLOAD_FULL, 1);
    }
    0
}
