//! Contended mmap_lock waits joined with who held the lock when the waiter
//! arrived, and with where that hold ended.
//!
//! The waiter reads the owner from the rwsem, finds the hold among what the
//! owner has begun, and marks it; the holder, before it gives a marked hold
//! back, leaves its call chain where the waiter picks it up. Nobody pays for
//! holds that nobody waits for. The wait_lock of the rwsem may be held here: no
//! hash is touched.

use crate::{
    globals::{self, get, peek},
    identify::{call_chain, mmap_lock, owner},
    maps::{BLOCKED, WAITER_SCRATCH},
    mmap::{launder_in, renew, topmost},
    record::{cpu, lose, mix},
    thread,
};
use aya_ebpf::{helpers::bpf_ktime_get_ns, macros::btf_tracepoint, programs::BtfTracePointContext};
use core::ptr::{read_volatile, write_volatile};
use faultscope_common::{
    abi::PROBES,
    blocked::{
        Blocked, BlockedKey, BlockedRow, KEY_WORDS, READER, READERS, ROW_USED, UNKNOWN,
        UNKNOWN_CALL, WRITER,
    },
    lock::{DEPTH, flags},
    loss,
    mmap::NO_SYSCALL,
    thread::{COUNTED, Pending, WAITED, WRITE},
};

/// Low bits of `rw_semaphore.owner`: held for read, and "do not spin"
/// (kernel/locking/rwsem.c, RWSEM_OWNER_FLAGS_MASK).
const RWSEM_READER_OWNED: u64 = 1;
const RWSEM_OWNER_FLAGS: u64 = 3;
/// Low bit of `rt_mutex_base.owner` (kernel/locking/rtmutex_common.h).
const RT_MUTEX_HAS_WAITERS: u64 = 1;

#[inline(always)]
fn now() -> u64 {
    // SAFETY: no arguments.
    unsafe { bpf_ktime_get_ns() }
}

#[btf_tracepoint(function = "contention_begin")]
fn blocked_begin(ctx: BtfTracePointContext) -> i32 {
    let kind = ctx.arg::<u64>(1) as u32;
    let is_rwsem = kind & (flags::READ | flags::WRITE) != 0;
    if kind & (flags::SPIN | flags::PERCPU | flags::MUTEX) != 0
        || (!is_rwsem && kind & flags::RT == 0)
    {
        return 0;
    }
    let lock: u64 = ctx.arg(0);
    let Some((mm, is_inner)) = mmap_lock(lock, &WAITER_SCRATCH) else {
        return 0;
    };
    let Some(pending) = thread::pending() else {
        lose(loss::PAIRING_COLLISION, 1);
        return 0;
    };
    let start_ns = now();
    let rwsem = mm.wrapping_add(get(&globals::OFF_MM_LOCK));
    if is_inner && pending.blocked.lock == rwsem {
        // PREEMPT_RT: part of the wait for the rwsem that has begun already.
        return 0;
    }
    let holder = holder(rwsem, mm);
    renew(pending);
    let asked = topmost!(pending, |e| e.mm == mm && e.had_ns == 0, { e.syscall });
    pending.blocked = Blocked {
        lock,
        start_ns,
        key: BlockedKey {
            used: ROW_USED,
            // With PREEMPT_RT a writer waits for another at the rt_mutex itself.
            mode: if kind & flags::READ != 0 {
                flags::READ as u8
            } else {
                flags::WRITE as u8
            },
            holder_mode: holder.mode,
            _pad: 0,
            tgid: (aya_ebpf::helpers::bpf_get_current_pid_tgid() >> 32) as u32,
            syscall: asked.unwrap_or(NO_SYSCALL),
            site: 0,
            holder: holder.tgid,
            holder_tid: holder.tid,
            holder_syscall: holder.syscall,
            holder_site: 0,
            owner: owner(mm),
            _tail: 0,
        },
        hold: holder.hold,
    };
    pending.blocked.key.site = call_chain(&ctx, &WAITER_SCRATCH);
    0
}

struct Holder {
    hold: u64,
    tid: u32,
    tgid: u32,
    syscall: i32,
    mode: u8,
}

const NOBODY: Holder = Holder {
    hold: 0,
    tid: 0,
    tgid: 0,
    syscall: UNKNOWN_CALL,
    mode: UNKNOWN,
};

/// Who holds the lock, as the rwsem and the holder's own record tell.
#[inline(always)]
fn holder(rwsem: u64, mm: u64) -> Holder {
    let word = peek::<u64>(rwsem, &globals::OFF_RWSEM_OWNER).unwrap_or(0);
    let is_rt = get(&globals::IS_RT) != 0;
    let (task, is_reader) = if is_rt {
        let task = word & !RT_MUTEX_HAS_WAITERS;
        // Readers hold no rt_mutex: a writer that has it waits for them.
        (
            task,
            task != 0 && task == launder_in(&WAITER_SCRATCH, thread::task()),
        )
    } else {
        (word & !RWSEM_OWNER_FLAGS, word & RWSEM_READER_OWNED != 0)
    };
    // Since 6.16 a reader that leaves may take its name away (kernel/locking/rwsem.c,
    // rwsem_clear_reader_owned).
    if is_reader && (is_rt || task == 0) {
        return Holder {
            mode: READERS,
            ..NOBODY
        };
    }
    let tid = peek::<u32>(task, &globals::OFF_TASK_PID).unwrap_or(0);
    if task == 0 || tid == 0 {
        return NOBODY;
    }
    let found = mark(tid, mm, is_reader);
    if is_reader && found.is_none() {
        // The kernel names the last reader to come, which may have left.
        return Holder {
            mode: READERS,
            ..NOBODY
        };
    }
    let (hold, syscall) = found.unwrap_or((0, UNKNOWN_CALL));
    Holder {
        hold,
        tid,
        tgid: peek(task, &globals::OFF_TASK_TGID).unwrap_or(0),
        syscall,
        mode: if is_reader { READER } else { WRITER },
    }
}

/// Finds the hold of `mm` among what thread `tid` has begun and marks it: its
/// number and system call. A writer owns the rwsem before it has said so.
#[inline(always)]
fn mark(tid: u32, mm: u64, is_reader: bool) -> Option<(u64, i32)> {
    let pending = thread::pending_of(u64::from(tid))?;
    // SAFETY: a live map value of another thread: words may change meanwhile,
    // and then the number matches nothing at the end.
    let pending = unsafe { &mut *pending };
    if pending.mmap_era != thread::mmap_era() {
        return None;
    }
    topmost!(
        pending,
        |e| e.mm == mm && (e.had_ns != 0 || (!is_reader && e.mode == WRITE)),
        {
            e.is_waited = 1;
            (e.number, e.syscall)
        }
    )
}

#[btf_tracepoint(function = "contention_end")]
fn blocked_end(ctx: BtfTracePointContext) -> i32 {
    let lock: u64 = ctx.arg(0);
    let Some(pending) = thread::pending() else {
        return 0;
    };
    if pending.blocked.lock != lock || lock == 0 {
        return 0;
    }
    pending.blocked.lock = 0;
    let end_ns = now();
    let wait_ns = end_ns.saturating_sub(pending.blocked.start_ns);
    match thread::present() {
        Some(row) if row.flags & COUNTED != 0 => add(pending, wait_ns),
        _ => {}
    }
    0
}

/// The call chain that the holder left, 0 if it has none or a later one.
#[inline(always)]
fn site_of(blocked: &Blocked) -> u32 {
    if blocked.hold == 0 {
        return 0;
    }
    let Some(holder) = thread::pending_of(u64::from(blocked.key.holder_tid)) else {
        return 0;
    };
    for i in 0..WAITED {
        // SAFETY: a live map value; plain reads.
        let waited = unsafe { read_volatile(&raw const (*holder).waited[i]) };
        if waited.number == blocked.hold as u32 {
            return waited.site;
        }
    }
    0
}

/// Finds or makes the wait's row among this CPU's rows and adds it.
#[inline(always)]
fn add(pending: &mut Pending, wait_ns: u64) {
    pending.blocked.key.holder_site = site_of(&pending.blocked);
    let words = (&raw const pending.blocked.key).cast::<u64>();
    let mut mixed = 0_u64;
    for i in 0..KEY_WORDS {
        // SAFETY: within the key.
        mixed = mix(mixed ^ unsafe { read_volatile(words.add(i)) });
    }
    let rows = get(&globals::BLOCKED_ROWS);
    let base = u64::from(cpu()) * rows;
    let mut free = u64::MAX;
    for i in 0..u64::from(PROBES) {
        let index = base + ((mixed + i) & (rows - 1));
        let Some(row) = BLOCKED.get_ptr_mut(index as u32) else {
            return;
        };
        let found = row.cast::<u64>().cast_const();
        let mut differ = 0;
        for word in 0..KEY_WORDS {
            // SAFETY: keys; only this program on this CPU writes the row.
            differ |= unsafe { read_volatile(found.add(word)) ^ read_volatile(words.add(word)) };
        }
        if differ == 0 {
            add_wait(row, wait_ns);
            return;
        }
        // SAFETY: as above.
        if unsafe { read_volatile(found) } & 0xff == 0 && free == u64::MAX {
            free = index;
        }
    }
    if free == u64::MAX {
        lose(loss::BLOCKED_FULL, 1);
        return;
    }
    let Some(row) = BLOCKED.get_ptr_mut(free as u32) else {
        return;
    };
    name(row, pending.blocked.key.holder_tid);
    let into = row.cast::<u64>();
    for word in (0..KEY_WORDS).rev() {
        // SAFETY: as above. The word that says "used" comes last: a reader sees a whole key.
        unsafe { write_volatile(into.add(word), read_volatile(words.add(word))) };
    }
    add_wait(row, wait_ns);
}

/// Keeps the holding thread's name, which it may have lost when somebody looks.
#[inline(always)]
fn name(row: *mut BlockedRow, tid: u32) {
    let Some(holder) = thread::row_of(u64::from(tid)) else {
        return;
    };
    // SAFETY: live map values, two words each.
    unsafe {
        let (from, into) = (
            (&raw const (*holder).comm).cast::<u64>(),
            (&raw mut (*row).comm).cast::<u64>(),
        );
        write_volatile(into, read_volatile(from));
        write_volatile(into.add(1), read_volatile(from.add(1)));
    }
}

#[inline(always)]
fn add_wait(row: *mut BlockedRow, wait_ns: u64) {
    // SAFETY: a live map value; only this program on this CPU writes it.
    let row = unsafe { &mut *row };
    row.waits += 1;
    row.wait_ns += wait_ns;
    if wait_ns > row.max_ns {
        row.max_ns = wait_ns;
    }
}
