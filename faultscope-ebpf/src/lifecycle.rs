//! Ends and changes of threads.

use crate::{maps::CONTROL, record::add, thread};
use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use faultscope_common::thread::DEAD;

/// Marks the dying thread's row; user space frees it one interval later, so
/// faults of `exit_mm` still find it.
#[btf_tracepoint(function = "sched_process_exit")]
fn task_exit(_ctx: BtfTracePointContext) -> i32 {
    if let Some(row) = thread::present() {
        row.flags |= DEAD;
    }
    0
}

/// Cached identities expire: a css_set pointer may be reused.
#[btf_tracepoint(function = "cgroup_attach_task")]
fn cgroup_move(_ctx: BtfTracePointContext) -> i32 {
    bump_epoch();
    0
}

/// Cached verdicts expire: the name is what `--comm` looks at.
#[btf_tracepoint(function = "task_rename")]
fn task_rename(_ctx: BtfTracePointContext) -> i32 {
    bump_epoch();
    0
}

#[inline(always)]
fn bump_epoch() {
    if let Some(control) = CONTROL.get_ptr_mut(0) {
        // SAFETY: a live map value.
        add(unsafe { &raw mut (*control).epoch }, 1);
    }
}
