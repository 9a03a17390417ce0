//! `handle_mm_fault` from entry to exit: path, backing, outcome, time.
//!
//! Entry and exit run where the task may sleep, the programs that mark a pass
//! under a page-table lock: all of them touch arrays only. The filter's verdict
//! may need a row of the thread, which only the entry program asks for.

use crate::{
    globals::{self, get, member, peek},
    lru::argument,
    maps::{MM_PATHS, MM_THREADS},
    mmap::syscall,
    record::{cpu, exchange, lose, mix},
    thread::{self, Context},
};
use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns, generated::bpf_get_func_arg},
    macros::{fentry, fexit, kprobe},
    programs::{FEntryContext, FExitContext, ProbeContext},
};
use core::ptr::{read_volatile, write_volatile};
use faultscope_common::{
    config::ABSENT,
    latency::bucket,
    loss,
    mm_fault::{
        ANON, BACKINGS, COUNTED, COW, FALL_BACK, FILE, GUP, HUGETLB, KERNEL, MMAP_LOCK,
        MmThreadRow, OTHER, POPULATE, PROBES, Pass, PathRow, ROWS, SHARED, SHMEM, SPECIAL, SWAP,
        SWAPPED, THP, VMA_LOCK, WROTE_PRESENT,
    },
    thread as wire,
};

/// `enum fault_flag` (include/linux/mm_types.h), the same values since 5.16.
mod flag {
    pub const WRITE: u32 = 0x1;
    pub const TRIED: u32 = 0x20;
    pub const USER: u32 = 0x40;
}
/// `vm_fault_t` (include/linux/mm_types.h).
mod reason {
    pub const OOM: u32 = 0x1;
    pub const SIGBUS: u32 = 0x2;
    pub const MAJOR: u32 = 0x4;
    pub const SIGSEGV: u32 = 0x40;
    pub const RETRY: u32 = 0x400;
    pub const COMPLETED: u32 = 0x4000;
    /// OOM, SIGBUS, SIGSEGV, HWPOISON, HWPOISON_LARGE, FALLBACK.
    pub const ERROR: u32 = 0x873;
}
/// `vm_flags` (include/linux/mm.h).
const VM_SHARED: u64 = 0x8;
const VM_HUGETLB: u64 = 0x40_0000;
/// File types (include/uapi/linux/stat.h).
const S_IFMT: u16 = 0o170_000;
const S_IFREG: u16 = 0o100_000;
const S_IFBLK: u16 = 0o060_000;
/// tmpfs, and the kernel's own mount of it (include/uapi/linux/magic.h).
const TMPFS_MAGIC: u64 = 0x0102_1994;
/// Where the type is in a swap entry on x86-64 (arch/x86/include/asm/pgtable_64.h).
const SWAP_TYPE_SHIFT: u32 = 59;
/// Least number of swap areas a kernel is built for: types below are swap slots
/// (MAX_SWAPFILES with every user of special entries, include/linux/swap.h).
const SWAP_TYPES: u64 = 23;
/// Order of a huge page on x86-64.
const PMD_ORDER: u32 = 9;

#[inline(always)]
fn now() -> u64 {
    // SAFETY: no arguments.
    unsafe { bpf_ktime_get_ns() }
}

/// A member of a typed kernel object, or of one known by address only.
#[inline(always)]
fn load<const TYPED: bool, T: Copy>(object: *const u8, offset: &'static u64) -> Option<T> {
    if TYPED {
        member(object, offset)
    } else {
        peek(object as u64, offset)
    }
}

/// Backing and whether the mapping is shared, as far as the VMA tells.
#[inline(always)]
fn backing<const TYPED: bool>(vma: *const u8, flags: u32) -> (u32, u32) {
    let vm_flags: u64 = load::<TYPED, _>(vma, &globals::OFF_VMA_FLAGS).unwrap_or(0);
    let shared = if vm_flags & VM_SHARED != 0 { SHARED } else { 0 };
    if vm_flags & VM_HUGETLB != 0 {
        return (HUGETLB, shared);
    }
    if load::<TYPED, u64>(vma, &globals::OFF_VMA_OPS).unwrap_or(0) == 0 {
        return (ANON, shared);
    }
    let Some(file) = load::<TYPED, *const u8>(vma, &globals::OFF_VMA_FILE) else {
        return (OTHER, shared);
    };
    if file.is_null() {
        return (OTHER, shared);
    }
    let Some(inode) = load::<TYPED, *const u8>(file, &globals::OFF_FILE_INODE) else {
        return (OTHER, shared);
    };
    if inode.is_null() {
        return (OTHER, shared);
    }
    let kind = load::<TYPED, u16>(inode, &globals::OFF_INODE_MODE).unwrap_or(0) & S_IFMT;
    if kind != S_IFREG && kind != S_IFBLK {
        return (OTHER, shared);
    }
    if shared == 0 && flags & flag::WRITE != 0 {
        return (COW, shared);
    }
    let magic = match load::<TYPED, *const u8>(inode, &globals::OFF_INODE_SB) {
        Some(sb) if !sb.is_null() => load::<TYPED, u64>(sb, &globals::OFF_SB_MAGIC).unwrap_or(0),
        _ => 0,
    };
    if magic == TMPFS_MAGIC && kind == S_IFREG {
        (SHMEM, shared)
    } else {
        (FILE, shared)
    }
}

/// Whether the running system call is one that populates what it maps or locks;
/// `get_user_pages` inside it comes from there.
#[inline(always)]
fn populates() -> bool {
    matches!(
        syscall(),
        // mmap, mprotect, brk, mremap, madvise, shmat, mlock, mlockall, remap_file_pages, mlock2
        9 | 10 | 12 | 25 | 28 | 30 | 149 | 151 | 216 | 325
    )
}

/// Whether the running thread passes the filter.
#[inline(always)]
fn is_counted() -> bool {
    if get(&globals::FILTERS) == 0 {
        return true;
    }
    match thread::row(Context::MaySleep) {
        Some(row) => row.flags & wire::COUNTED != 0,
        None => false,
    }
}

/// The running thread's row; with `CLAIM` a free one is taken if it has none.
#[inline(always)]
fn thread_row<const CLAIM: bool>() -> Option<&'static mut MmThreadRow> {
    let pid_tgid = bpf_get_current_pid_tgid();
    let tid = pid_tgid & 0xffff_ffff;
    if tid == 0 {
        return None;
    }
    let start: u64 = member(thread::task(), &globals::OFF_TASK_START).unwrap_or(0);
    // Neither 0 (free) nor all ones (retired).
    let tag = (mix(start ^ (tid << 40)) | 1) & !2;
    for i in 0..u64::from(PROBES) {
        let index = (tid + i) & get(&globals::MM_THREAD_MASK);
        let row = MM_THREADS.get_ptr_mut(index as u32)?;
        // SAFETY: a live map value.
        let mut found = unsafe { read_volatile(&raw const (*row).tag) };
        if CLAIM && found == 0 {
            // SAFETY: as above.
            found = exchange(unsafe { &raw mut (*row).tag }, 0, tag);
            if found == 0 {
                // SAFETY: the row is ours now; `tid` last tells readers.
                unsafe {
                    write_volatile(&raw mut (*row).tgid, (pid_tgid >> 32) as u32);
                    write_volatile(&raw mut (*row).tid, tid as u32);
                }
                found = tag;
            }
        }
        if found == tag {
            // SAFETY: a live map value that only the running thread writes.
            return Some(unsafe { &mut *row });
        }
    }
    None
}

/// The row of a path and backing on this CPU.
#[inline(always)]
fn path_row(path: u32, backing: u32) -> Option<&'static mut PathRow> {
    let index = cpu() * ROWS + path * BACKINGS as u32 + backing;
    // SAFETY: a live map value; each word is written by one program on one CPU.
    MM_PATHS.get_ptr_mut(index).map(|row| unsafe { &mut *row })
}

/// Path of a pass that is no second one.
#[inline(always)]
fn path(flags: u32, has_regs: bool) -> u32 {
    if !has_regs {
        if populates() { POPULATE } else { GUP }
    } else if flags & flag::USER == 0 {
        KERNEL
    } else if flags & get(&globals::FAULT_VMA_LOCK) as u32 != 0 {
        VMA_LOCK
    } else {
        MMAP_LOCK
    }
}

/// Counts a pass that begins and, with `PAIRED`, notes it for its end.
#[inline(always)]
fn begin<const TYPED: bool, const PAIRED: bool>(
    vma: *const u8,
    address: u64,
    flags: u32,
    has_regs: bool,
) {
    let counted = is_counted();
    let (backing, shared) = backing::<TYPED>(vma, flags);
    let mut path = path(flags, has_regs);
    let Some(row) = thread_row::<true>() else {
        lose(loss::MM_THREADS_FULL, 1);
        if let Some(out) = path_row(path, backing) {
            out.passes += 1;
        }
        return;
    };
    // SAFETY: words of a live map value; volatile, or the copy becomes a call.
    let (address_before, start_before, flags_before, path_before) = unsafe {
        let retried = &raw const row.retried;
        (
            read_volatile(&raw const (*retried).address),
            read_volatile(&raw const (*retried).start_ns),
            read_volatile(&raw const (*retried).flags),
            read_volatile(&raw const (*retried).path),
        )
    };
    let vma_lock = get(&globals::FAULT_VMA_LOCK) as u32;
    // The kernel tries again for the same address and without the VMA lock; after
    // a pass under mmap_lock it says so.
    let is_second = start_before != 0
        && address_before == address
        && flags & vma_lock == 0
        && (flags & flag::TRIED != 0 || flags_before & vma_lock != 0);
    if is_second {
        path = if path_before == VMA_LOCK {
            FALL_BACK
        } else {
            path_before
        };
    }
    if let Some(out) = path_row(path, backing) {
        out.passes += 1;
    }
    if counted {
        row.passes += 1;
    }
    if !PAIRED {
        return;
    }
    row.retried.start_ns = 0;
    let mut depth = row.depth;
    if depth >= 2 {
        // The oldest gives way: its end was missed, or it will be unpaired.
        lose(loss::MM_FAULT_NESTING, 1);
        row.open[0] = row.open[1];
        depth = 1;
    }
    let marks = shared | if counted { COUNTED } else { 0 };
    let pass = if depth == 0 {
        &mut row.open[0]
    } else {
        &mut row.open[1]
    };
    pass.address = address;
    pass.flags = flags;
    pass.path = path;
    pass.backing = backing;
    pass.marks = marks;
    pass.mapped = 0;
    pass.order = 0;
    row.depth = depth + 1;
    // Last, so that our own work is not in the time.
    pass.start_ns = if is_second { start_before } else { now() };
}

/// A pass begins.
#[fentry(function = "handle_mm_fault")]
fn mm_fault_begin(ctx: FEntryContext) -> i32 {
    let mut regs = 0_u64;
    // SAFETY: the helper fills the word; it gives a plain number, which may be 0
    // where the verifier takes the typed argument for a valid pointer.
    unsafe { bpf_get_func_arg(ctx.as_ptr(), 3, &raw mut regs) };
    begin::<true, true>(ctx.arg(0), ctx.arg(1), ctx.arg::<u64>(2) as u32, regs != 0);
    0
}

/// A pass begins, where its end cannot be seen.
#[kprobe]
fn mm_fault_entry(ctx: ProbeContext) -> u32 {
    if let (Some(vma), Some(address), Some(flags), Some(regs)) = (
        ctx.arg::<u64>(0),
        ctx.arg::<u64>(1),
        ctx.arg::<u64>(2),
        ctx.arg::<u64>(3),
    ) {
        begin::<false, false>(vma as *const u8, address, flags as u32, regs != 0);
    }
    0
}

/// Takes the pass for `address` off the thread's stack, and those above it, whose
/// ends were missed. `None` if there is none.
#[inline(always)]
fn pop(row: &mut MmThreadRow, address: u64) -> Option<&'static mut Pass> {
    let row: *mut MmThreadRow = row;
    // SAFETY: a live map value that only the running thread writes.
    let row = unsafe { &mut *row };
    if row.depth >= 2 && row.open[1].address == address {
        row.depth = 1;
        return Some(&mut row.open[1]);
    }
    if row.depth >= 1 && row.open[0].address == address {
        row.depth = 0;
        return Some(&mut row.open[0]);
    }
    None
}

/// Backing as the VMA and the marks tell it.
#[inline(always)]
fn settled(pass: &Pass) -> u32 {
    if pass.backing == HUGETLB {
        return HUGETLB;
    }
    if pass.marks & SWAPPED != 0 {
        SWAP
    } else if pass.marks & SPECIAL != 0 {
        OTHER
    } else if pass.marks & (WROTE_PRESENT | SHARED) == WROTE_PRESENT {
        COW
    } else if pass.order > PMD_ORDER {
        THP
    } else {
        pass.backing
    }
}

/// Error bits as an index of `PathRow::errors`.
#[inline(always)]
fn error(ret: u32) -> usize {
    if ret & reason::OOM != 0 {
        0
    } else if ret & reason::SIGBUS != 0 {
        1
    } else if ret & reason::SIGSEGV != 0 {
        2
    } else {
        3
    }
}

/// A pass returns.
#[fexit(function = "handle_mm_fault")]
fn mm_fault_end(ctx: FExitContext) -> i32 {
    let end_ns = now();
    let address: u64 = ctx.arg(1);
    let flags = ctx.arg::<u64>(2) as u32;
    let ret = ctx.ret::<u64>().unwrap_or(0) as u32;
    let found = thread_row::<false>();
    let Some(row) = found else {
        unpaired();
        return 0;
    };
    let Some(pass) = pop(row, address) else {
        unpaired();
        return 0;
    };
    let backing = settled(pass);
    let Some(out) = path_row(pass.path, backing) else {
        return 0;
    };
    let counted = pass.marks & COUNTED != 0;
    if ret & reason::RETRY != 0 {
        out.retries += 1;
        if counted {
            row.retries += 1;
        }
        row.retried.address = address;
        row.retried.flags = flags;
        row.retried.path = pass.path;
        row.retried.start_ns = pass.start_ns;
        return 0;
    }
    let ns = end_ns.wrapping_sub(pass.start_ns);
    let bucket = (u64::from(bucket(ns)) & get(&globals::M63)) as usize;
    let is_error = ret & reason::ERROR != 0;
    let is_major = !is_error && (ret & reason::MAJOR != 0 || flags & flag::TRIED != 0);
    let made = if pass.order > 1 {
        1_u64 << ((u64::from(pass.order) - 1) & get(&globals::M15))
    } else {
        u64::from(pass.order)
    };
    let mapped = u64::from(pass.mapped);
    let pages = if mapped > made { mapped } else { made };
    out.faults += 1;
    out.ns += ns;
    if ns > out.max_ns {
        out.max_ns = ns;
    }
    out.histogram[bucket] += 1;
    out.pages += pages;
    if pass.order > 1 && pass.order <= PMD_ORDER {
        out.large += 1;
    }
    if is_error {
        out.errors[error(ret) & get(&globals::M3) as usize] += 1;
    } else if is_major {
        out.majors += 1;
    }
    if ret & reason::COMPLETED != 0 {
        out.completed += 1;
    }
    if counted {
        row.faults += 1;
        row.ns += ns;
        if ns > row.max_ns {
            row.max_ns = ns;
        }
        row.histogram[(bucket as u64 & get(&globals::M63)) as usize] += 1;
        row.pages += pages;
        row.errors += u64::from(is_error);
        row.majors += u64::from(is_major);
        let path = (u64::from(pass.path) & get(&globals::M7)) as usize;
        if path < row.paths.len() {
            row.paths[path] += 1;
        }
    }
    0
}

/// Counts an end whose beginning is not known.
#[inline(always)]
fn unpaired() {
    if let Some(out) = path_row(MMAP_LOCK, OTHER) {
        out.unpaired += 1;
    }
}

/// The pass the running thread is in.
#[inline(always)]
fn inner() -> Option<&'static mut Pass> {
    let row = thread_row::<false>()?;
    match row.depth {
        0 => None,
        1 => Some(&mut row.open[0]),
        _ => Some(&mut row.open[1]),
    }
}

/// A write to a page that is present and write-protected; the page-table lock is held.
#[fentry(function = "do_wp_page")]
fn mm_fault_write(_ctx: FEntryContext) -> i32 {
    if let Some(pass) = inner() {
        pass.marks |= WROTE_PRESENT;
    }
    0
}

/// A page-table entry that is neither empty nor present.
#[fentry(function = "do_swap_page")]
fn mm_fault_swap(ctx: FEntryContext) -> i32 {
    let vmf: *const u8 = ctx.arg(0);
    let entry: u64 = member(vmf, &globals::OFF_VMF_PTE).unwrap_or(u64::MAX);
    if let Some(pass) = inner() {
        pass.marks |= if entry >> SWAP_TYPE_SHIFT < SWAP_TYPES {
            SWAPPED
        } else {
            SPECIAL
        };
    }
    0
}

/// A new anonymous folio is mapped; the page-table lock is held.
#[fentry(function = "folio_add_new_anon_rmap")]
fn mm_fault_new(ctx: FEntryContext) -> i32 {
    let Some(pass) = inner() else { return 0 };
    let folio = argument(&ctx, 0);
    let flags: u64 = peek(folio, &globals::OFF_FOLIO_FLAGS).unwrap_or(0);
    let head = get(&globals::PG_HEAD);
    let order = if head != ABSENT && (flags >> (head & get(&globals::M63))) & 1 != 0 {
        u32::from(peek::<u8>(folio, &globals::OFF_FOLIO_ORDER).unwrap_or(0))
    } else {
        0
    };
    if order + 1 > pass.order {
        pass.order = order + 1;
    }
    0
}

/// Pages of one folio are mapped; the page-table lock is held. Since 6.6.
#[fentry(function = "set_pte_range")]
fn mm_fault_map(ctx: FEntryContext) -> i32 {
    let pages: u64 = ctx.arg(3);
    if let Some(pass) = inner() {
        pass.mapped += pages as u32;
    }
    0
}

/// A page is mapped; the page-table lock is held. Before 6.6.
#[fentry(function = "do_set_pte")]
fn mm_fault_map_one(_ctx: FEntryContext) -> i32 {
    if let Some(pass) = inner() {
        pass.mapped += 1;
    }
    0
}
