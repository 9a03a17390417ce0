//! Programs that do nothing: what a hook costs by itself (`doctor --cost`).

use aya_ebpf::{
    macros::{btf_tracepoint, fentry, fexit, kprobe, perf_event},
    programs::{BtfTracePointContext, FEntryContext, FExitContext, PerfEventContext, ProbeContext},
};

/// Loaded on whatever tracepoint is measured.
#[btf_tracepoint(function = "page_fault_user")]
fn empty(_ctx: BtfTracePointContext) -> i32 {
    0
}

/// The same for software events.
#[perf_event]
fn empty_event(_ctx: PerfEventContext) -> u32 {
    0
}

/// The same for the entry of a function.
#[fentry]
fn empty_entry(_ctx: FEntryContext) -> i32 {
    0
}

/// The same for the return of a function.
#[fexit]
fn empty_exit(_ctx: FExitContext) -> i32 {
    0
}

/// The same for a kprobe.
#[kprobe]
fn empty_probe(_ctx: ProbeContext) -> u32 {
    0
}
