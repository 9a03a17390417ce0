//! LRU tracepoints and RSS counters; all fire with a spinlock held, so these
//! programs take none and insert nothing.

use crate::{
    maps::CONTROL,
    record::{cpu, lose, totals},
    thread::{self, Context},
};
use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use core::ptr::{read_volatile, write_volatile};
use faultscope_common::{cpu::RSS_MEMBERS, loss, thread::COUNTED};

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
