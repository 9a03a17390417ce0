//! One row per thread, written only by the running thread itself.

use crate::blocked::Blocked;
use crate::cpu::FAULT_CLASSES;
use crate::lock::{CLASSES, DEPTH, Wait};
use bytemuck::{Pod, Zeroable};

/// The additive columns of a thread.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct Columns {
    /// User faults by class; written by `fault_user` only.
    pub user: [u64; FAULT_CLASSES],
    /// Serviced kernel faults by class; written by `fault_kernel` only.
    pub kernel: [u64; FAULT_CLASSES],
    /// Faults repaired by the exception table.
    pub fixed_up: u64,
    /// Major faults; written by `fault_major` only.
    pub major: u64,
    /// RSS-counter updates; written by `rss_stat` only.
    pub rss: u64,
    /// Faults inside the measuring window.
    pub window_faults: u64,
    /// Of those, with the previous fault of the address space on another CPU.
    pub window_handoffs: u64,
    /// madvise calls.
    pub madvise: u64,
    /// Contended waits by class; mmap_lock here is read and write together.
    pub waits: [u64; CLASSES],
    /// Their time, ns.
    pub wait_ns: [u64; CLASSES],
    /// mmap_lock acquisitions, read then write.
    pub mmap_taken: [u64; 2],
    /// Time from asking to having, read then write, ns.
    pub mmap_take_ns: [u64; 2],
    /// Time held, read then write, ns.
    pub mmap_hold_ns: [u64; 2],
}
/// `Columns` as words.
pub const COLUMN_WORDS: usize = size_of::<Columns>() / 8;

/// Counts the events of this thread (the filter let it through).
pub const COUNTED: u32 = 1;
/// The thread has passed `sched_process_exit`.
pub const DEAD: u32 = 2;

/// Row of one thread.
///
/// `tag` is claimed by compare-and-exchange; user space frees the row of a dead
/// thread by zeroing it, `tag` last.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct ThreadRow {
    /// Thread id, 0 free.
    pub tag: u64,
    /// `task->cgroups`, part of the cached identity.
    pub css_set: u64,
    /// `task->start_time`, ns; tells a reused tid.
    pub start_ns: u64,
    /// `self_exec_id` in the low half, process id in the high half.
    pub exec_and_tgid: u64,
    /// `Control::epoch` when the identity was read.
    pub epoch: u64,
    /// Address of the mm; an identity, never shown.
    pub mm: u64,
    /// CPU of the latest fault.
    pub cpu: u32,
    /// `COUNTED`, `DEAD`.
    pub flags: u32,
    /// Cgroup id of the memory controller's cgroup.
    pub memcg: u64,
    /// Faults already added to `SPACES`.
    pub flushed: u64,
    /// Raised by every change of identity.
    pub generation: u64,
    /// start_time of the thread group's leader, ns: identifies the process.
    pub leader_start_ns: u64,
    /// Name of the thread, NUL-padded.
    pub comm: [u8; 16],
    /// Odd while the identity changes.
    pub sequence: u64,
    /// Keeps `columns` at a cache line.
    pub _pad: [u64; 2],
    /// The counts.
    pub columns: Columns,
    /// Rounds the row up to whole cache lines.
    pub _tail: [u64; 4],
}
const _: () = assert!(core::mem::offset_of!(ThreadRow, columns) == 128);
const _: () = assert!(size_of::<ThreadRow>().is_multiple_of(64));

/// Identity of a row that was re-keyed (exec, cgroup move, reused tid).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct RetiredKey {
    /// Thread id.
    pub tid: u64,
    /// `start_ns` of the old row.
    pub start_ns: u64,
    /// `generation` of the old row.
    pub generation: u64,
}

/// An address space on one CPU.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct SpaceKey {
    /// Address of the mm.
    pub mm: u64,
    /// `leader_start_ns` of the process: tells a reused mm.
    pub leader_start_ns: u64,
    /// CPU.
    pub cpu: u32,
    /// Process.
    pub tgid: u32,
}

/// `MmapHold::mode`: asked for or held for read.
pub const READ: u32 = 0;
/// `MmapHold::mode`: for write.
pub const WRITE: u32 = 1;
/// `MmapHold::mode`: held for read after a downgrade.
pub const DOWNGRADED: u32 = 2;

/// An mmap_lock asked for or held.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct MmapHold {
    /// The mm; 0 is free.
    pub mm: u64,
    /// When it was asked for, ns.
    pub asked_ns: u64,
    /// When it was had, ns; 0 while waiting.
    pub had_ns: u64,
    /// `READ`, `WRITE` or `DOWNGRADED`.
    pub mode: u32,
    /// System call of the acquisition.
    pub syscall: i32,
    /// Index into `MmapRow::handoffs`; `DISTANCES` where not tracked.
    pub distance: u32,
    /// Set by another thread that waits for this hold.
    pub is_waited: u32,
    /// Number of the hold among the thread's, never 0; a downgrade keeps it.
    pub number: u64,
}

/// Holds kept for those that waited for them; a power of two. As many threads may
/// wait for different holds of one thread at once before one is lost.
pub const WAITED: usize = 4;

/// A hold that ended and had been waited for.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct Waited {
    /// Low half of `MmapHold::number`.
    pub number: u32,
    /// Where it ended: stack slot + 1, 0 unknown.
    pub site: u32,
}

/// What a thread has begun and not ended; same index as its `ThreadRow`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct Pending {
    /// mmap_locks asked for or held, oldest first (fork holds two).
    pub mmap: [MmapHold; DEPTH],
    /// Entries of `mmap` in use.
    pub mmap_depth: u64,
    /// Entries of `sleeps` in use.
    pub sleep_depth: u64,
    /// Contended sleeping waits, oldest first (RT nests).
    pub sleeps: [Wait; DEPTH],
    /// Start of the madvise call in progress, ns; 0 none.
    pub madvise_start_ns: u64,
    /// Its length argument; of process_madvise the mm whose lock it has taken, if not the caller's, else 0.
    pub madvise_len: u64,
    /// Its advice.
    pub madvise_advice: i32,
    /// Its system call.
    pub madvise_call: u32,
    /// The mm of the event at hand.
    pub mm: u64,
    /// `Control::mmap_era` in which the entries of `mmap` were made.
    pub mmap_era: u64,
    /// Number of the latest entry of `mmap`.
    pub mmap_number: u64,
    /// Holds that ended and had been waited for, so far.
    pub waited_count: u64,
    /// The latest of them, by `waited_count`.
    pub waited: [Waited; WAITED],
    /// The contended mmap_lock wait in progress.
    pub blocked: Blocked,
}
