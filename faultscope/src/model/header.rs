//! The machine-wide figures that stand above every view.

use super::Spinlock;
use std::sync::Arc;

/// Figures of the two header lines; `None` is shown as a dash.
#[derive(Debug, Clone, Default)]
pub struct Header {
    /// Minor faults serviced per second, user and kernel, all CPUs.
    pub minor_per_sec: Option<f64>,
    /// Major faults per second (perf software event).
    pub major_per_sec: Option<f64>,
    /// Time all tasks together waited for mmap locks, ns per second.
    pub mmap_lock_wait_ns_per_sec: Option<f64>,
    /// Time all tasks together waited for LRU locks, ns per second.
    pub lru_lock_wait_ns_per_sec: Option<f64>,
    /// CPU time of this process over one CPU, 0 to the number of CPUs.
    pub own_cpu_ratio: Option<f64>,
    /// CPU time of our BPF programs over one CPU; `None` while the kernel's
    /// run-time statistics are off.
    pub own_bpf_ratio: Option<f64>,
    /// Resident memory of this process in bytes.
    pub own_rss_bytes: Option<u64>,
    /// Memory of our BPF maps in bytes.
    pub own_map_bytes: Option<u64>,
    /// Kernel-side filters in force, as the user wrote them; empty if none.
    pub filter: String,
    /// Spinlock mode and whether every wait is measured.
    pub spinlock: Spinlock,
    /// Ticks that began late by more than a tenth of the interval, since start.
    pub overruns: u64,
}

/// One loss counter (design.md 9: map full, ring full, slot collision, pairing
/// overflow).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Catalogue id, e.g. `thread_slot_collision`.
    pub id: Arc<str>,
    /// What was lost, a full sentence.
    pub description: Arc<str>,
    /// Events lost since attach.
    pub total: u64,
    /// Events lost in this interval.
    pub increment: u64,
}
