//! Two threads that wait for each other's mmap_lock.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::mm::{MprotectFlags, mprotect};

use super::memory::Region;
use super::{Load, cpu};

/// Pages whose protection changes: some hundred microseconds of a write hold, so that most takes meanwhile wait.
const PAGES: usize = 16_384;
/// Pairs of write holds of one run.
const HOLDS: u64 = 50;

/// One thread holds mmap_lock for writing again and again, another takes it beside that.
///
/// The other's takes are counted; how many of them had to wait is up to the scheduler, so whoever wants to know
/// counts waits by the programs themselves.
#[derive(Debug)]
pub struct Contention {
    held: Region,
    taken: Region,
    cpus: [usize; 2],
}

impl Contention {
    /// Maps the memory.
    ///
    /// # Errors
    /// What mmap(2) says, or that there is only one CPU to run on.
    pub fn new(cpus: [usize; 2]) -> io::Result<Self> {
        let held = Region::new(PAGES)?;
        held.write();
        Ok(Self {
            held,
            taken: Region::new(1)?,
            cpus,
        })
    }

    fn hold(&self) -> io::Result<()> {
        cpu::pin(self.cpus[0])?;
        for _ in 0..HOLDS {
            protect(&self.held)?;
        }
        Ok(())
    }

    fn take(&self, is_over: &AtomicBool, takes: &AtomicU64) -> io::Result<()> {
        cpu::pin(self.cpus[1])?;
        while !is_over.load(Ordering::Relaxed) {
            protect(&self.taken)?;
            takes.fetch_add(2, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Takes away the right to write and gives it back: two write holds of mmap_lock.
/// Not madvise, which needs no mmap_lock for one mapping since per-VMA locks.
fn protect(region: &Region) -> io::Result<()> {
    for flags in [
        MprotectFlags::READ,
        MprotectFlags::READ | MprotectFlags::WRITE,
    ] {
        // SAFETY: a mapping of ours, which nobody reads or writes meanwhile.
        unsafe { mprotect(region.address().cast(), region.bytes(), flags)? };
    }
    Ok(())
}

impl Load for Contention {
    fn events(&self) -> &'static str {
        "mmap_lock takes beside a writer"
    }

    fn run(&mut self) -> io::Result<u64> {
        let this = &*self;
        let (is_over, takes) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let taker = scope.spawn(|| this.take(&is_over, &takes));
            let holder = scope.spawn(|| this.hold());
            let died = || io::Error::other("a thread of the load panicked");
            let held = holder.join().unwrap_or_else(|_| Err(died()));
            is_over.store(true, Ordering::Relaxed);
            taker.join().unwrap_or_else(|_| Err(died())).and(held)
        })?;
        Ok(takes.into_inner())
    }
}
