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

/// A thread that was not the first of its process takes the process's id at
/// exec, and leaves the row of its own id behind.
#[btf_tracepoint(function = "sched_process_exec")]
fn task_exec(ctx: BtfTracePointContext) -> i32 {
    let old_tid = ctx.arg::<u64>(1) & 0xffff_ffff;
    if old_tid != thread::tid() {
        if let Some(row) = thread::of(old_tid) {
            row.flags |= DEAD;
        }
    }
    0
}

/// The name changes with a rename and with every exec, then between the change
/// of address space and that of `self_exec_id` (fs/exec.c, begin_new_exec).
#[btf_tracepoint(function = "task_rename")]
fn task_rename(ctx: BtfTracePointContext) -> i32 {
    let task: *const u8 = ctx.arg(0);
    if task == thread::task() {
        if let Some(row) = thread::present() {
            row.epoch = u64::MAX;
        }
    } else {
        bump_epoch();
    }
    0
}

#[inline(always)]
fn bump_epoch() {
    if let Some(control) = CONTROL.get_ptr_mut(0) {
        // SAFETY: a live map value.
        add(unsafe { &raw mut (*control).epoch }, 1);
    }
}
