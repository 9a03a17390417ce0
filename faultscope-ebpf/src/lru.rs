//! LRU tracepoints and functions, and RSS counters; many run with a spinlock
//! held, so these programs take none and insert nothing.

use crate::{
    globals::{self, get, member},
    maps::{CONTROL, LRU},
    record::{cpu, exchange, lose, totals},
    thread::{self, Context},
};
use aya_ebpf::{
    EbpfContext,
    helpers::generated::bpf_get_func_arg,
    macros::{btf_tracepoint, fentry, kprobe},
    programs::{BtfTracePointContext, FEntryContext, ProbeContext},
};
use core::ptr::{read_volatile, write_volatile};
use faultscope_common::{
    cpu::RSS_MEMBERS,
    loss,
    lru::{LruRow, MOVES, MoveRow},
    thread::COUNTED,
};

/// LRU totals of the running CPU.
#[inline(always)]
pub fn row() -> Option<&'static mut LruRow> {
    // SAFETY: a live map value; only this CPU writes it, each column by one program.
    LRU.get_ptr_mut(cpu()).map(|p| unsafe { &mut *p })
}

/// Argument `n` as a plain number. The verifier gives no access to a pointer to
/// a function, and forbids arithmetic on one to a structure.
///
/// Minimum kernel 5.17 (`bpf_get_func_arg`).
#[inline(always)]
pub fn argument(ctx: &impl EbpfContext, n: u32) -> u64 {
    let mut value = 0;
    // SAFETY: the helper checks the index and writes one word.
    unsafe { bpf_get_func_arg(ctx.as_ptr(), n, &raw mut value) };
    value
}

/// The row of a move function, claimed at its first call on this CPU.
#[inline(always)]
pub fn move_row(row: &mut LruRow, function: u64) -> Option<&mut MoveRow> {
    if function == 0 {
        return None;
    }
    for i in 0..MOVES {
        let word = &raw mut row.moves[i].function;
        // SAFETY: a word of a live map value.
        let found = unsafe { read_volatile(word) };
        if found == function || (found == 0 && exchange(word, 0, function) == 0) {
            return Some(&mut row.moves[i]);
        }
    }
    lose(loss::LRU_MOVES_FULL, 1);
    None
}

/// A folio enters an LRU list; `current` is the drainer, not the page's owner.
#[btf_tracepoint(function = "mm_lru_insertion")]
fn lru_insertion(_ctx: BtfTracePointContext) -> i32 {
    if let Some(totals) = totals(cpu()) {
        totals.lru_insertions += 1;
    }
    0
}

/// A folio moves to the active list.
#[btf_tracepoint(function = "mm_lru_activate")]
fn lru_activate(_ctx: BtfTracePointContext) -> i32 {
    if let Some(totals) = totals(cpu()) {
        totals.lru_activations += 1;
    }
    0
}

/// A page was used: by read(2), at the end of a mapping, by the kernel's own users.
#[fentry(function = "folio_mark_accessed")]
fn mark_accessed(_ctx: FEntryContext) -> i32 {
    if let Some(row) = row() {
        row.mark_accessed += 1;
    }
    0
}

/// The same where fentry is refused.
#[kprobe]
fn mark_accessed_kprobe(_ctx: ProbeContext) -> u32 {
    if let Some(row) = row() {
        row.mark_accessed += 1;
    }
    0
}

/// A page marked twice is to go to the active list. `folio_activate`, which
/// queues it, is no place to count: gcc inlines it into `folio_mark_accessed`
/// (0 calls for 4,000 activations on Debian\'s 6.12).
#[fentry(function = "workingset_activation")]
fn workingset_activation(_ctx: FEntryContext) -> i32 {
    if let Some(row) = row() {
        row.workingset_activations += 1;
    }
    0
}

/// A page comes back that reclaim had evicted.
#[fentry(function = "workingset_refault")]
fn workingset_refault(_ctx: FEntryContext) -> i32 {
    if let Some(row) = row() {
        row.refaults += 1;
    }
    0
}

/// The batches of a CPU are emptied.
#[fentry(function = "lru_add_drain_cpu")]
fn lru_drain(_ctx: FEntryContext) -> i32 {
    if let Some(row) = row() {
        row.drains += 1;
    }
    0
}

/// A batch of folios moves to its list; argument 0 is the batch.
#[fentry(function = "folio_batch_move_lru")]
fn lru_batch(ctx: FEntryContext) -> i32 {
    let batch: *const u8 = ctx.arg(0);
    let folios: u8 = member(batch, &globals::OFF_FBATCH_NR).unwrap_or(0);
    let function = argument(&ctx, 1);
    let Some(moves) = row().and_then(|row| move_row(row, function)) else {
        return 0;
    };
    moves.batches += 1;
    moves.folios += u64::from(folios);
    let size = u64::from(folios) & get(&globals::M31);
    moves.sizes[size as usize] += 1;
    0
}

/// An RSS counter changes; the member is argument 1 in both prototypes.
#[btf_tracepoint(function = "rss_stat")]
fn rss_stat(ctx: BtfTracePointContext) -> i32 {
    let member: u64 = ctx.arg(1);
    if let Some(totals) = totals(cpu()) {
        totals.rss[(member & (RSS_MEMBERS as u64 - 1)) as usize] += 1;
    }
    match thread::row(Context::Atomic) {
        Some(row) if row.flags & COUNTED != 0 => row.columns.rss += 1,
        Some(_) => {}
        None if thread::tid() == 0 => {}
        None => lose(loss::THREAD_COLLISION, 1),
    }
    0
}

/// Learns one `struct page` address, so that split page-table locks can be told;
/// detached as soon as it has run.
#[btf_tracepoint(function = "mm_page_alloc")]
fn learn_page(ctx: BtfTracePointContext) -> i32 {
    let page: u64 = ctx.arg(0);
    if let Some(control) = CONTROL.get_ptr_mut(0) {
        // SAFETY: a live map value; whoever writes last is as right as the first.
        unsafe {
            if page != 0 && read_volatile(&raw const (*control).vmemmap) == 0 {
                write_volatile(&raw mut (*control).vmemmap, page);
            }
        }
    }
    0
}
