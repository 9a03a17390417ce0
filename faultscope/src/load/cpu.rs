//! Keeping the load on one CPU, and what it used of it.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// CPUs the calling thread may run on, ascending.
///
/// # Errors
/// What sched_getaffinity(2) says.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect())
}

/// Binds the calling thread to `cpu`.
pub(super) fn pin(cpu: usize) -> io::Result<()> {
    let mut one = CpuSet::new();
    one.set(cpu);
    Ok(sched_setaffinity(None, &one)?)
}

/// Keeps the calling thread on one CPU while the value lives.
#[derive(Debug)]
pub struct Pinned {
    before: CpuSet,
}

impl Pinned {
    /// Binds the calling thread to the highest CPU it may use; interrupts and housekeeping prefer the lowest.
    ///
    /// # Errors
    /// What sched_setaffinity(2) says.
    pub fn new() -> io::Result<Self> {
        let before = sched_getaffinity(None)?;
        if let Some(&last) = allowed()?.last() {
            pin(last)?;
        }
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The CPUs may have gone offline meanwhile; the kernel then chooses itself.
        let _restored = sched_setaffinity(None, &self.before);
    }
}

/// CPU time of this process so far, all threads, user and system, in ns.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}
