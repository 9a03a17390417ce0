//! Programs that do nothing: what a hook costs by itself (`doctor --cost`).

use aya_ebpf::{
    macros::{btf_tracepoint, perf_event},
    programs::{BtfTracePointContext, PerfEventContext},
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
