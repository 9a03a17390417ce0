//! madvise and process_madvise through the system-call tracepoints.

use crate::{
    globals::{self, member},
    maps::{MADVISE, ZERO},
    record::{add, cpu, lose, raise, totals},
    refault,
    thread::{self, Context},
};
use aya_ebpf::{helpers::bpf_ktime_get_ns, macros::btf_tracepoint, programs::BtfTracePointContext};
use core::ptr::read_volatile;
use faultscope_common::{
    loss,
    madvise::{MadviseKey, MadviseRow, NR_MADVISE, NR_PROCESS_MADVISE, UNKNOWN_ADVICE},
    refault::is_given_back,
    thread::COUNTED,
};

/// madvise(2) of 32-bit callers (arch/x86/entry/syscalls/syscall_32.tbl).
const NR_MADVISE_32: u64 = 219;
/// `thread_info.status`: a 32-bit system call (arch/x86/include/asm/thread_info.h).
const TS_COMPAT: u32 = 2;
/// Advices are small numbers; 100 to 102 are poison, offline and install-guard.
const ADVICES: u64 = 128;
/// Offsets in pt_regs (arch/x86/include/asm/ptrace.h).
const REGS_R10: usize = 56;
const REGS_DX: usize = 96;
const REGS_SI: usize = 104;
const REGS_DI: usize = 112;
const REGS_ORIG_AX: usize = 120;

#[inline(always)]
fn reg(regs: *const u8, offset: usize) -> u64 {
    // SAFETY: the verifier checks the load against pt_regs.
    unsafe { read_volatile(regs.add(offset).cast()) }
}

/// Remembers the arguments of a madvise call.
#[btf_tracepoint(function = "sys_enter")]
fn sys_enter(ctx: BtfTracePointContext) -> i32 {
    let id: u64 = ctx.arg(1);
    if id != NR_MADVISE && id != NR_PROCESS_MADVISE && id != NR_MADVISE_32 {
        return 0;
    }
    let compat = member::<u32>(thread::task(), &globals::OFF_TASK_STATUS).unwrap_or(0) & TS_COMPAT;
    if id == NR_MADVISE_32 || compat != 0 {
        if compat != 0 && id == NR_MADVISE_32 {
            if let Some(totals) = totals(cpu()) {
                totals.compat_syscalls += 1;
            }
        }
        return 0;
    }
    let regs: *const u8 = ctx.arg(0);
    let advice = if id == NR_MADVISE {
        reg(regs, REGS_DX)
    } else {
        reg(regs, REGS_R10)
    };
    if thread::row(Context::MaySleep).is_none() {
        lose(loss::THREAD_COLLISION, 1);
    }
    let Some(pending) = thread::pending() else {
        lose(loss::PAIRING_COLLISION, 1);
        return 0;
    };
    pending.madvise_advice = advice as i32;
    pending.madvise_call = id as u32;
    pending.madvise_len = if id == NR_MADVISE {
        reg(regs, REGS_SI)
    } else {
        0
    };
    // SAFETY: no arguments.
    pending.madvise_start_ns = unsafe { bpf_ktime_get_ns() };
    0
}

/// Counts a madvise call that returned.
#[btf_tracepoint(function = "sys_exit")]
fn sys_exit(ctx: BtfTracePointContext) -> i32 {
    let regs: *const u8 = ctx.arg(0);
    let id = reg(regs, REGS_ORIG_AX);
    if id != NR_MADVISE && id != NR_PROCESS_MADVISE {
        return 0;
    }
    let Some(pending) = thread::pending() else {
        return 0;
    };
    if pending.madvise_start_ns == 0 || u64::from(pending.madvise_call) != id {
        return 0;
    }
    // SAFETY: no arguments.
    let ns = unsafe { bpf_ktime_get_ns() } - pending.madvise_start_ns;
    pending.madvise_start_ns = 0;
    let Some(row) = thread::present() else {
        return 0;
    };
    if row.flags & COUNTED == 0 {
        return 0;
    }
    row.columns.madvise += 1;
    let advice = pending.madvise_advice;
    let key = MadviseKey {
        tgid: (row.exec_and_tgid >> 32) as u32,
        advice: if (advice as u32 as u64) < ADVICES {
            advice
        } else {
            UNKNOWN_ADVICE
        },
        call: id as u32,
        _pad: 0,
    };
    let ret: i64 = ctx.arg(1);
    let bytes = if id == NR_MADVISE {
        pending.madvise_len
    } else {
        ret as u64
    };
    count(&key, ret < 0, bytes, ns);
    if ret >= 0 && is_given_back(advice) {
        // The arguments are still there: only the result is written to pt_regs.
        let start = if id == NR_MADVISE {
            reg(regs, REGS_DI)
        } else {
            reg(regs, REGS_SI)
        };
        refault::given_back(pending, key.tgid, start, bytes);
    }
    0
}

#[inline(always)]
fn count(key: &MadviseKey, is_failure: bool, bytes: u64, ns: u64) {
    let row = match MADVISE.get_ptr_mut(key) {
        Some(row) => row,
        None => {
            let Some(zero) = ZERO.get_ptr(0) else { return };
            // SAFETY: a live map value that nobody writes, larger than a row. An
            // error (another thread was first) shows in the look-up.
            let _ = MADVISE.insert(key, unsafe { &*zero.cast::<MadviseRow>() }, 1);
            let Some(row) = MADVISE.get_ptr_mut(key) else {
                lose(loss::MADVISE_FULL, 1);
                return;
            };
            row
        }
    };
    // SAFETY: a live map value.
    unsafe {
        add(&raw mut (*row).calls, 1);
        add(&raw mut (*row).ns, ns);
        raise(&raw mut (*row).max_ns, ns);
        if is_failure {
            add(&raw mut (*row).failures, 1);
        } else {
            add(&raw mut (*row).bytes, bytes);
        }
    }
}
