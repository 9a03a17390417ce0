//! The BPF programs of faultscope: one file per probe family, no logic that can
//! live in user space.
//!
//! Rules every program follows (docs/limitations.md says why): where a spinlock
//! may be held a program takes none, inserts into no hash and reserves no ring;
//! no line shared between CPUs is written on the fault path; each column has
//! one writer; every failure to store is counted.
#![no_std]
#![no_main]
#![feature(core_intrinsics)]
#![expect(
    internal_features,
    reason = "the BPF target has no atomic types wider than loads and stores; the intrinsics give them"
)]

mod blocked;
mod budget;
mod empty;
mod fault;
mod globals;
mod handoff;
mod identify;
mod lifecycle;
mod lock;
mod lru;
mod lru_hold;
mod madvise;
mod maps;
mod mm_fault;
mod mmap;
mod record;
mod refault;
mod slowpath;
mod taken;
mod thread;
mod workload;

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: never reached: the verifier rejects a program with a panic path.
    unsafe { core::hint::unreachable_unchecked() }
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
