//! Two threads that wait for each other's mmap_lock.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::mm::{MprotectFlags, mprotect};

use super::memory::Region;
use super::{Load, cpu};

/// Pages whose protection changes: some ten microseconds of a write hold.
const PAGES: usize = 1024;
/// Pairs of write holds of one run.
const HOLDS: u64 = 100;

/// One thread holds mmap_lock for writing again and again, another takes it for reading.
///
/// The readers' takes are counted; how many of them had to wait is up to the scheduler, so whoever wants to know
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
            for flags in [
                MprotectFlags::READ,
                MprotectFlags::READ | MprotectFlags::WRITE,
            ] {
                // SAFETY: our own mapping, which nobody reads or writes meanwhile.
                unsafe { mprotect(self.held.address().cast(), self.held.bytes(), flags)? };
            }
        }
        Ok(())
    }

    fn take(&self, is_over: &AtomicBool, takes: &AtomicU64) -> io::Result<()> {
        cpu::pin(self.cpus[1])?;
        while !is_over.load(Ordering::Relaxed) {
            self.taken.discard()?;
            takes.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
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
