//! Page faults by CPU and thread.

use crate::{
    globals::{self, get, member},
    record::{cpu, lose, totals},
    thread::{self, Context},
};
use aya_ebpf::{
    EbpfContext,
    macros::{btf_tracepoint, perf_event},
    programs::{BtfTracePointContext, PerfEventContext},
};
use faultscope_common::{cpu::fault_class, loss, thread::COUNTED};

/// Interrupt flag in pt_regs.flags (arch/x86/include/uapi/asm/processor-flags.h).
const IF: u64 = 0x200;
/// Offset of `flags` in pt_regs (arch/x86/include/asm/ptrace.h).
const REGS_FLAGS: usize = 144;
/// Offset of `cs` in pt_regs.
const REGS_CS: usize = 136;

/// The class with a bound the 6.1 verifier can see.
#[inline(always)]
fn bounded(class: usize) -> usize {
    class & get(&globals::M7) as usize
}

/// Every fault from user mode; no kernel lock is held there.
#[btf_tracepoint(function = "page_fault_user")]
fn fault_user(ctx: BtfTracePointContext) -> i32 {
    let error_code: u64 = ctx.arg(2);
    let class = bounded(fault_class(error_code));
    let cpu = cpu();
    if let Some(totals) = totals(cpu) {
        totals.user[class] += 1;
    }
    match thread::row_and_window(Context::MaySleep) {
        Some((row, window)) if row.flags & COUNTED != 0 => {
            thread::place(row, cpu, window);
            row.columns.user[class] += 1;
        }
        Some(_) => {}
        None => lose(loss::OVERFLOW_FULL, 1),
    }
    0
}

/// Kernel faults: those on user addresses with page faults enabled are
/// serviced, the rest is repaired by the exception table.
#[btf_tracepoint(function = "page_fault_kernel")]
fn fault_kernel(ctx: BtfTracePointContext) -> i32 {
    let address: u64 = ctx.arg(0);
    let regs: *const u8 = ctx.arg(1);
    let error_code: u64 = ctx.arg(2);
    let disabled: i32 = member(thread::task(), &globals::OFF_TASK_PF_DISABLED).unwrap_or(0);
    let cpu = cpu();
    if disabled != 0 || address >> 63 != 0 {
        if let Some(totals) = totals(cpu) {
            totals.fixed_up += 1;
        }
        match thread::present() {
            Some(row) if row.flags & COUNTED != 0 => row.columns.fixed_up += 1,
            Some(_) => {}
            None if thread::tid() == 0 => {}
            None => lose(loss::UNATTRIBUTED, 1),
        }
        return 0;
    }
    let class = bounded(fault_class(error_code));
    if let Some(totals) = totals(cpu) {
        totals.kernel[class] += 1;
    }
    // SAFETY: the verifier checks the load against pt_regs.
    let flags = unsafe { core::ptr::read_volatile(regs.add(REGS_FLAGS).cast::<u64>()) };
    let context = if flags & IF != 0 {
        Context::MaySleep
    } else {
        Context::Atomic
    };
    match thread::row_and_window(context) {
        Some((row, window)) if row.flags & COUNTED != 0 => {
            if context == Context::MaySleep {
                thread::place(row, cpu, window);
            }
            row.columns.kernel[class] += 1;
        }
        Some(_) => {}
        None if context == Context::MaySleep => lose(loss::OVERFLOW_FULL, 1),
        None => lose(loss::UNATTRIBUTED, 1),
    }
    0
}

/// Major faults, exactly: the perf software event fires once per serviced one.
#[perf_event]
fn fault_major(_ctx: PerfEventContext) -> u32 {
    if let Some(totals) = totals(cpu()) {
        totals.major += 1;
    }
    match thread::row(Context::Atomic) {
        Some(row) if row.flags & COUNTED != 0 => row.columns.major += 1,
        Some(_) => {}
        None => lose(loss::UNATTRIBUTED, 1),
    }
    0
}

/// All faults where the fault tracepoints are missing: user or kernel, no kind.
#[perf_event]
fn fault_software(ctx: PerfEventContext) -> u32 {
    let cpu = cpu();
    let regs = ctx.as_ptr().cast::<u8>();
    // SAFETY: bpf_perf_event_data begins with pt_regs; the verifier checks the load.
    let cs = unsafe { core::ptr::read_volatile(regs.add(REGS_CS).cast::<u64>()) };
    let is_user = cs & 3 == 3;
    if let Some(totals) = totals(cpu) {
        if is_user {
            totals.user[0] += 1;
        } else {
            totals.kernel[0] += 1;
        }
    }
    match thread::row(Context::Atomic) {
        Some(row) if row.flags & COUNTED != 0 => {
            if is_user {
                row.columns.user[0] += 1;
            } else {
                row.columns.kernel[0] += 1;
            }
        }
        Some(_) => {}
        None => lose(loss::UNATTRIBUTED, 1),
    }
    0
}
