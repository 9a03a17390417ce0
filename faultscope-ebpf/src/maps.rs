//! Every map: who writes, who reads, what happens when it is full.
//!
//! Sizes given here are the smallest; user space sets the real ones before load.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    macros::map,
    maps::{Array, HashMap},
};
use faultscope_common::{
    abi::{LAST_SLOTS, STACK_SLOTS},
    blocked::BlockedRow,
    budget::{self, ChainRow, ClockRow, Code, Scratch},
    config::Control,
    cpu::CpuRow,
    lock::{FRAMES, LockRow, SpinStack, StackRow},
    lru::{HELD_SLOTS, Held, HoldRow, LruRow, Regions},
    madvise::{MadviseKey, MadviseRow},
    mm_fault::{MmThreadRow, PathRow},
    mmap::{MMAP_SLOTS, MmapRow},
    refault::{GIVEN_SETS, GivenSet, REFAULT_ROWS, RefaultRow},
    slowpath::SlowRow,
    thread::{Pending, RetiredKey, SpaceKey, ThreadRow},
};

/// Written by the CPU itself; read in place. Never full.
#[map]
pub static CPUS: Array<CpuRow> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// Written by the thread itself; read in place, and zeroed by user space once
/// the thread is dead. A taken slot sends the thread to `OVERFLOW`.
#[map]
pub static THREADS: Array<ThreadRow> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// Written by the thread that owns the same slot of `THREADS`.
#[map]
pub static PENDING: Array<Pending> = Array::with_max_entries(1, 0);
/// Written by the thread itself. Full: `OVERFLOW_FULL`.
#[map]
pub static OVERFLOW: HashMap<u64, ThreadRow> = HashMap::with_max_entries(1, 0);
/// Written once a key; deleted by user space. Full: `RETIRED_FULL`.
#[map]
pub static RETIRED: HashMap<RetiredKey, ThreadRow> = HashMap::with_max_entries(1, 0);
/// Added to atomically. Full: `SPACES_FULL`.
#[map]
pub static SPACES: HashMap<SpaceKey, u64> = HashMap::with_max_entries(1, 0);
/// Written by any CPU inside the window only.
#[map]
pub static SPACE_LAST: Array<u64> = Array::with_max_entries(LAST_SLOTS, 0);
/// Claimed by compare-and-exchange, added to atomically, freed by user space.
/// Full: `MMAP_FULL`.
#[map]
pub static MMAP: Array<MmapRow> = Array::with_max_entries(MMAP_SLOTS, BPF_F_MMAPABLE);
/// Written by whoever acquires; a reused slot makes the distance unknown.
#[map]
pub static MMAP_LAST: Array<u64> = Array::with_max_entries(LAST_SLOTS, 0);
/// `LOCK_ROWS` rows per CPU, written there by whoever ends a wait; read in place.
/// Full: `LOCKS_FULL`.
#[map]
pub static LOCKS: Array<LockRow> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// Written by whoever ends a contended wait.
#[map]
pub static LOCK_LAST: Array<u64> = Array::with_max_entries(LAST_SLOTS, 0);
/// Spinlock waits in progress on a CPU.
#[map]
pub static SPINS: Array<SpinStack> = Array::with_max_entries(1, 0);
/// Claimed by compare-and-exchange, written once. Full: `STACKS_FULL`.
#[map]
pub static STACKS: Array<StackRow> = Array::with_max_entries(STACK_SLOTS, BPF_F_MMAPABLE);
/// A stack being taken on a CPU.
#[map]
pub static SCRATCH: Array<[u64; FRAMES]> = Array::with_max_entries(1, 0);
/// Written by the slow-path programs of the CPU; read in place. Never full.
#[map]
pub static SLOW: Array<SlowRow> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// A stack being taken by a slow-path program of a CPU, which interrupts others.
#[map]
pub static SLOW_SCRATCH: Array<[u64; FRAMES]> = Array::with_max_entries(1, 0);
/// Core, LLC and node of each CPU, 16 bits each; written by user space.
#[map]
pub static PLACES: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// Added to atomically. Full: `MADVISE_FULL`.
#[map]
pub static MADVISE: HashMap<MadviseKey, MadviseRow> = HashMap::with_max_entries(1, 0);
/// Written by the CPU itself; read in place. Never full but for its move functions:
/// `LRU_MOVES_FULL`.
#[map]
pub static LRU: Array<LruRow> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// `HOLD_ROWS` rows per CPU, written there by the release; read in place.
/// Full: `LRU_HOLDS_FULL`.
#[map]
pub static LRU_HOLDS: Array<HoldRow> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// Written by the holder. Slot taken: `LRU_HELD_COLLISION`.
#[map]
pub static LRU_HELD: Array<Held> = Array::with_max_entries(HELD_SLOTS, 0);
/// Written by the caller of `folio_batch_move_lru`. Slot taken: `LRU_HELD_COLLISION`.
#[map]
pub static LRU_REGIONS: Array<Regions> = Array::with_max_entries(HELD_SLOTS, 0);
/// Written by whoever has an lru_lock.
#[map]
pub static LRU_LAST: Array<u64> = Array::with_max_entries(LAST_SLOTS, 0);
/// `mm_fault::ROWS` rows per CPU, written there; read in place. Never full.
#[map]
pub static MM_PATHS: Array<PathRow> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// Claimed by compare-and-exchange, written by the thread itself, freed by user
/// space. Full: `MM_THREADS_FULL`.
#[map]
pub static MM_THREADS: Array<MmThreadRow> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// `BLOCKED_ROWS` rows per CPU, written by `blocked_end` there; read in place.
/// Full: `BLOCKED_FULL`.
#[map]
pub static BLOCKED: Array<BlockedRow> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// A stack being taken on a CPU by `blocked_begin`.
#[map]
pub static WAITER_SCRATCH: Array<[u64; FRAMES]> = Array::with_max_entries(1, 0);
/// The same by `mmap_released`.
#[map]
pub static RELEASE_SCRATCH: Array<[u64; FRAMES]> = Array::with_max_entries(1, 0);
/// A pointer that loses its type in a program on madvise or its refaults: none of
/// them interrupts another.
#[map]
pub static REFAULT_SCRATCH: Array<[u64; FRAMES]> = Array::with_max_entries(1, 0);
/// The same by `mmap_acquired`, of a hold that is downgraded.
#[map]
pub static DOWNGRADE_SCRATCH: Array<[u64; FRAMES]> = Array::with_max_entries(1, 0);
/// Written at the end of a madvise call. Newer ranges overwrite older ones:
/// `GIVEN_OVERWRITTEN`.
#[map]
pub static GIVEN: Array<GivenSet> = Array::with_max_entries(GIVEN_SETS, 0);
/// `REFAULT_ROWS` rows per CPU, written there; read in place, freed by user
/// space. Full: `REFAULTS_FULL`.
#[map]
pub static REFAULTS: Array<RefaultRow> = Array::with_max_entries(REFAULT_ROWS, BPF_F_MMAPABLE);
/// Written by user space; the epoch also by programs.
#[map]
pub static CONTROL: Array<Control> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// Never written: what insertions copy.
#[map]
pub static ZERO: Array<ThreadRow> = Array::with_max_entries(1, 0);
/// Written by user space.
#[map]
pub static FILTER_PIDS: HashMap<u32, u8> = HashMap::with_max_entries(1, 0);
/// Written by user space.
#[map]
pub static FILTER_CGROUPS: HashMap<u64, u8> = HashMap::with_max_entries(1, 0);
/// Written by user space.
#[map]
pub static FILTER_COMMS: HashMap<[u8; 16], u8> = HashMap::with_max_entries(1, 0);
/// Written by the clock program on its CPU; read in place.
#[map]
pub static BUDGET_CLOCK: Array<ClockRow> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// Written by user space.
#[map]
pub static BUDGET_CODE: Array<Code> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// Claimed by compare-and-exchange, written once, freed by user space. Full:
/// `BUDGET_FULL`.
#[map]
pub static BUDGET_CHAINS: Array<ChainRow> = Array::with_max_entries(budget::SLOTS, BPF_F_MMAPABLE);
/// Samples of each chain, `budget::SLOTS` words per CPU, written by the clock
/// program there; zeroed by user space before it frees the chain.
#[map]
pub static BUDGET_HITS: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// A stack being taken by the clock program on a CPU.
#[map]
pub static BUDGET_SCRATCH: Array<Scratch> = Array::with_max_entries(1, 0);
/// Written once a process; deleted by user space. Full: `WORKLOAD_FULL`.
#[map]
pub static WORKLOAD: HashMap<u32, u64> = HashMap::with_max_entries(1, 0);
