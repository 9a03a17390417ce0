//! What happened in one interval, by every scope.

use super::{
    blocked::{BlockedId, BlockedWaits},
    budget::Budget,
    counters::{Counters, DISTANCES, LOCK_CLASSES},
    histogram::Histogram,
    refault::Refault,
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// A thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId {
    /// Thread id.
    pub tid: u32,
    /// Start, ns since boot: tells a reused id.
    pub start_ns: u64,
}

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId {
    /// Thread group id.
    pub tgid: u32,
    /// Start of its leader, ns since boot.
    pub start_ns: u64,
}

/// A thread's increments.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    /// Its process.
    pub process: ProcessId,
    /// Name, scrubbed.
    pub comm: Arc<str>,
    /// Memory cgroup, 0 unknown.
    pub cgroup: u64,
    /// Increments.
    pub counters: Counters,
}

/// A process's increments: its threads, exited ones included.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Process {
    /// Name of the leader, scrubbed; empty if never seen.
    pub comm: Arc<str>,
    /// Memory cgroup of the thread read last.
    pub cgroup: u64,
    /// Threads with a row that are alive.
    pub threads: u64,
    /// The process or an ancestor of it is the command that a recording was made of.
    pub is_workload: bool,
    /// Increments.
    pub counters: Counters,
}

/// A cgroup's increments: the threads in it when they faulted or waited.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cgroup {
    /// Threads with a row that are alive.
    pub threads: u64,
    /// Increments.
    pub counters: Counters,
}

/// Time of a CPU in the interval, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Neither idle nor iowait.
    pub busy_ns: u64,
    /// Idle.
    pub idle_ns: u64,
    /// Idle with a read outstanding.
    pub iowait_ns: u64,
    /// Taken by the hypervisor.
    pub steal_ns: u64,
}

/// Calls of LRU functions on a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LruCalls {
    /// `folio_mark_accessed`.
    pub mark_accessed: u64,
    /// `workingset_activation`.
    pub workingset_activations: u64,
    /// `workingset_refault`.
    pub refaults: u64,
    /// `lru_add_drain_cpu`.
    pub drains: u64,
}

/// Greatest number of folios in a batch, plus one.
pub const BATCH_SIZES: usize = 32;

/// What `folio_batch_move_lru` did with one move function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moves {
    /// Batches.
    pub batches: u64,
    /// Folios in them.
    pub folios: u64,
    /// Batches by number of folios.
    pub sizes: [u64; BATCH_SIZES],
    /// Calls timed: regions of lru_lock.
    pub regions: u64,
    /// Their time, ns.
    pub region_ns: u64,
    /// Longest since attach, ns.
    pub region_max_ns: u64,
    /// Calls of the interval.
    pub histogram: Histogram,
}

/// An lru_lock: its node and memcg.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LruLockId {
    /// NUMA node.
    pub node: u32,
    /// Cgroup the pages are charged to, 0 the node's own.
    pub memcg: u64,
}

/// Exact holds of an lru_lock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LruHold {
    /// Holds that ended.
    pub holds: u64,
    /// Their time, ns.
    pub hold_ns: u64,
    /// Longest since attach, ns.
    pub max_ns: u64,
    /// Handoffs by distance.
    pub handoffs: [u64; DISTANCES],
    /// Holds of the interval.
    pub histogram: Histogram,
    /// An address of the lock, 0 where kernel addresses are hidden.
    pub address: u64,
}

/// What the exact holds cover.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LruCoverage {
    /// lru_locks had through `folio_lruvec_lock*`.
    pub acquired: u64,
    /// Of those, never seen released.
    pub unended: u64,
    /// Releases of any spinlock.
    pub releases: u64,
    /// Of those that end no tracked hold, how many were tested for an lru_lock.
    pub tested: u64,
    /// Of those tested, how many were lru_locks: had by open-coded locking.
    pub uncovered: u64,
    /// One in this many is tested.
    pub sample: u64,
}

/// A CPU's increments; never filtered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cpu {
    /// CPU number.
    pub cpu: u32,
    /// Core, LLC and node; `None` where the topology is unknown.
    pub place: Option<(u32, u32, u32)>,
    /// Faults, waits, mmap_lock and RSS updates.
    pub counters: Counters,
    /// RSS-counter updates by member: file, anon, swap, shmem.
    pub rss: [u64; 4],
    /// Folios put on an LRU list.
    pub lru_insertions: u64,
    /// Folios activated.
    pub lru_activations: u64,
    /// Calls of LRU functions.
    pub lru: LruCalls,
    /// mmap_lock handoffs from another CPU.
    pub mmap_handoffs: u64,
    /// Failed mmap_lock attempts, read then write.
    pub mmap_failed: [u64; 2],
    /// Downgrades.
    pub mmap_downgraded: u64,
    /// CPU time, where /proc/stat gives it.
    pub time: Option<CpuTime>,
    /// Passes of `handle_mm_fault`.
    pub passes: Passes,
}

/// Paths of `handle_mm_fault`, by index; see `faultscope_common::mm_fault`.
pub const FAULT_PATHS: [&str; 6] = [
    "VMA lock",
    "mmap_lock",
    "fall-back",
    "kernel",
    "populate",
    "get_user_pages",
];
/// Index of faults after an attempt under the VMA lock that returned RETRY.
pub const FALL_BACK: usize = 2;
/// Index of pages populated without a trap.
pub const POPULATE: usize = 4;
/// Index of other `get_user_pages`.
pub const GUP: usize = 5;
/// Backings of a fault, by index.
pub const FAULT_BACKINGS: [&str; 8] = [
    "anon", "file", "shmem", "cow", "swap", "thp", "hugetlb", "other",
];

/// Passes of `handle_mm_fault`; those that returned anything but RETRY are faults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Passes {
    /// Passes that began.
    pub began: u64,
    /// Faults that ended.
    pub faults: u64,
    /// Passes that returned RETRY.
    pub retries: u64,
    /// Faults the kernel accounts as major.
    pub majors: u64,
    /// Faults that returned COMPLETED.
    pub completed: u64,
    /// Faults that returned OOM, SIGBUS, SIGSEGV, HWPOISON.
    pub errors: [u64; 4],
    /// Time of faults from their first pass on, ns.
    pub ns: u64,
    /// Longest since attach, ns.
    pub max_ns: u64,
    /// Base pages mapped.
    pub pages: u64,
    /// Faults that made a folio of several pages, smaller than a huge one.
    pub large: u64,
    /// Exits without a known entry.
    pub unpaired: u64,
    /// Fault times.
    pub histogram: Histogram,
}

impl Passes {
    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        self.began = self.began.saturating_add(other.began);
        self.faults = self.faults.saturating_add(other.faults);
        self.retries = self.retries.saturating_add(other.retries);
        self.majors = self.majors.saturating_add(other.majors);
        self.completed = self.completed.saturating_add(other.completed);
        for (a, b) in self.errors.iter_mut().zip(&other.errors) {
            *a = a.saturating_add(*b);
        }
        self.ns = self.ns.saturating_add(other.ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.pages = self.pages.saturating_add(other.pages);
        self.large = self.large.saturating_add(other.large);
        self.unpaired = self.unpaired.saturating_add(other.unpaired);
        self.histogram.add(&other.histogram);
    }

    /// Faults that returned an error.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.iter().sum()
    }
}

/// Passes of a process's threads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessPasses {
    /// All of them; errors are not told apart and stand under the first.
    pub passes: Passes,
    /// Faults by path.
    pub paths: [u64; FAULT_PATHS.len()],
}

/// Faults of an address space in the interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Space {
    /// Process that has it.
    pub process: Option<ProcessId>,
    /// Faults by CPU.
    pub by_cpu: BTreeMap<u32, u64>,
    /// Faults inside the window.
    pub window_faults: u64,
    /// Of those, after one on another CPU.
    pub window_handoffs: u64,
    /// RSS-counter updates of its threads.
    pub rss: u64,
}

/// Identity of a mmap_lock taker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TakerId {
    /// Identity of the mm.
    pub mm: u64,
    /// Taking process.
    pub tgid: u32,
    /// System call; -1 a fault, -2 a kernel thread, -3 a dying thread.
    pub syscall: i32,
    /// For write.
    pub is_write: bool,
}

/// Who took which mmap_lock how.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Taker {
    /// Process that owns the mm, 0 unknown.
    pub owner: u32,
    /// Acquisitions given back.
    pub taken: u64,
    /// Downgrades.
    pub downgraded: u64,
    /// Failed attempts.
    pub failed: u64,
    /// Time from asking to having, ns.
    pub take_ns: u64,
    /// Longest since attach, ns.
    pub take_max_ns: u64,
    /// Takes of more than 10 us.
    pub slow_takes: u64,
    /// Holds ended.
    pub holds: u64,
    /// Time held, ns.
    pub hold_ns: u64,
    /// Longest since attach, ns.
    pub hold_max_ns: u64,
    /// Handoffs by distance.
    pub handoffs: [u64; DISTANCES],
    /// Call chain slot + 1 of where the latest sampled hold ended, 0 none.
    pub site: u32,
}

/// Identity of a contended lock or call site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockId {
    /// A call site rather than a lock.
    pub is_site: bool,
    /// Class.
    pub class: usize,
    /// 2 read, 4 write, 0 neither.
    pub mode: u8,
    /// NUMA node of lru_lock and zone lock.
    pub node: u32,
    /// mm of a mmap_lock, address of a zone.
    pub id: u64,
    /// Cgroup the lru_lock's pages are charged to, 0 the node's own.
    pub memcg: u64,
    /// Call chain slot + 1, 0 none.
    pub stack: u32,
    /// Process that owns the mm.
    pub owner: u32,
}

/// Contended waits of a lock or call site.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lock {
    /// Waits that ended.
    pub waits: u64,
    /// Their time, ns.
    pub wait_ns: u64,
    /// Longest since attach, ns.
    pub max_ns: u64,
    /// Handoffs by distance.
    pub handoffs: [u64; DISTANCES],
    /// Waits of the interval.
    pub histogram: Histogram,
    /// Of `waits`, those the contention tracepoint saw.
    pub traced: u64,
    /// An address of the lock, 0 where kernel addresses are hidden.
    pub address: u64,
}

/// Spinlock waits measured in their slow path, by class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpinWaits {
    /// Waits that ended.
    pub ended: [u64; LOCK_CLASSES],
    /// Of those, the ones the contention tracepoint saw as well.
    pub traced: [u64; LOCK_CLASSES],
}

/// A kernel call chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallChain {
    /// First function outside the lock code.
    pub site: String,
    /// The chain, innermost first, lock code stripped.
    pub chain: Vec<String>,
}

/// madvise of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MadviseId {
    /// Process.
    pub tgid: u32,
    /// Advice, -1 unknown.
    pub advice: i32,
    /// process_madvise rather than madvise.
    pub is_remote: bool,
}

/// Increments of a madvise row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Madvise {
    /// Calls.
    pub calls: u64,
    /// Failed calls.
    pub failures: u64,
    /// Bytes of successful calls.
    pub bytes: u64,
    /// Time, ns.
    pub ns: u64,
    /// Longest since attach, ns.
    pub max_ns: u64,
}

/// One of our programs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Program {
    /// Its name.
    pub name: Arc<str>,
    /// Hook, or why it is not attached.
    pub place: String,
    /// Attached now.
    pub is_attached: bool,
    /// Run time in the interval, ns; `None` while statistics are off.
    pub run_ns: Option<u64>,
    /// Runs in the interval; `None` while statistics are off.
    pub runs: Option<u64>,
    /// Runs skipped by the kernel's recursion guard, where it says.
    pub misses: Option<u64>,
}

/// Fill of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct MapFill {
    /// Name.
    pub name: Arc<str>,
    /// Entries in use.
    pub entries: u64,
    /// Entries it can hold.
    pub capacity: u64,
}

/// A loss counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loss {
    /// Since attach.
    pub total: u64,
    /// In the interval.
    pub increment: u64,
}

/// Own cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Own {
    /// CPU time of this process in the interval, ns.
    pub cpu_ns: Option<u64>,
    /// Resident memory, bytes.
    pub rss_bytes: Option<u64>,
    /// Peak resident memory, bytes.
    pub peak_rss_bytes: Option<u64>,
    /// Map memory, bytes.
    pub map_bytes: Option<u64>,
    /// Ticks that began late, since start.
    pub overruns: u64,
}

/// Increments over one interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Delta {
    /// End, monotonic ns.
    pub t_mono_ns: u64,
    /// End, ns since the Unix epoch.
    pub t_real_ns: u64,
    /// Length, ns.
    pub interval_ns: u64,
    /// The first interval after attach: ends without a begin are its edge.
    pub is_first: bool,
    /// By CPU.
    pub cpus: Vec<Cpu>,
    /// By thread; threads without increments are left out.
    pub threads: HashMap<ThreadId, Thread>,
    /// By process; processes without increments are left out.
    pub processes: HashMap<ProcessId, Process>,
    /// By cgroup; cgroups without increments are left out.
    pub cgroups: HashMap<u64, Cgroup>,
    /// By address space.
    pub spaces: HashMap<u64, Space>,
    /// Passes of `handle_mm_fault` by path and backing, of the whole machine.
    pub passes: BTreeMap<(usize, usize), Passes>,
    /// The same by process.
    pub process_passes: HashMap<u32, ProcessPasses>,
    /// mmap_lock takers.
    pub takers: HashMap<TakerId, Taker>,
    /// Contended locks and call sites.
    pub locks: HashMap<LockId, Lock>,
    /// Whether the spinlock waits named so far came from the paravirtual slow path; `None` until one tells.
    pub is_paravirtual: Option<bool>,
    /// Why call chains have no names although they should.
    pub symbols_refused: Option<String>,
    /// Exact spinlock waits; `None` while the tracepoint alone counts them.
    pub spin_waits: Option<SpinWaits>,
    /// Contended waits for mmap_lock by waiter and holder.
    pub blocked: HashMap<BlockedId, BlockedWaits>,
    /// Call chains by slot + 1: those of the rows, maybe others. A slot keeps its
    /// chain for the whole of a capture.
    pub chains: Arc<HashMap<u32, Arc<CallChain>>>,
    /// `folio_batch_move_lru` by name of the move function.
    pub moves: BTreeMap<Arc<str>, Moves>,
    /// Ends of `folio_batch_move_lru` without a known begin.
    pub regions_unpaired: u64,
    /// Exact lru_lock holds.
    pub lru_holds: HashMap<LruLockId, LruHold>,
    /// What they cover.
    pub lru_coverage: LruCoverage,
    /// Multi-generational LRU at the beginning and end of the interval: the bits of
    /// its switch, 0 off; `None` where it is not built.
    pub mglru: [Option<u32>; 2],
    /// madvise.
    pub madvise: HashMap<MadviseId, Madvise>,
    /// Samples of the CPU clock, while they are taken.
    pub budget: Option<Budget>,
    /// Memory given back and refaults, by who gave it back.
    pub refaults: HashMap<MadviseId, Refault>,
    /// How long after memory was given back a fault on it counts, ns.
    pub refault_window_ns: u64,
    /// Names of processes that appear in rows, by tgid, scrubbed.
    pub names: HashMap<u32, Arc<str>>,
    /// Paths of cgroups that appear in rows, scrubbed.
    pub cgroup_paths: HashMap<u64, Arc<str>>,
    /// Losses in the order of the loss catalogue.
    pub losses: Vec<Loss>,
    /// `contention_end` without a begin.
    pub unpaired_ends: u64,
    /// mmap_lock releases without an acquisition.
    pub mmap_unpaired: u64,
    /// madvise calls of 32-bit processes, of which nothing else is known.
    pub compat_madvise: u64,
    /// vmstat increments of the counters kept.
    pub vmstat: BTreeMap<Arc<str>, u64>,
    /// Context switches.
    pub context_switches: Option<u64>,
    /// Pressure stall of memory, some and full, ns.
    pub memory_pressure_ns: Option<(u64, u64)>,
    /// Levels of /proc/meminfo at the end, bytes.
    pub levels: Vec<(Arc<str>, u64)>,
    /// Our programs.
    pub programs: Vec<Program>,
    /// Map fill.
    pub maps: Vec<MapFill>,
    /// Own cost.
    pub own: Own,
}

impl Delta {
    /// Machine-wide sum over CPUs.
    #[must_use]
    pub fn total(&self) -> Counters {
        let mut total = Counters::default();
        for cpu in &self.cpus {
            total += &cpu.counters;
        }
        total
    }

    /// Whether any loss counter moved since attach.
    #[must_use]
    pub fn is_lossy(&self) -> bool {
        self.losses.iter().any(|l| l.total > 0)
    }
}

const _: () = assert!(LOCK_CLASSES == 8, "Counters has room for eight classes");
