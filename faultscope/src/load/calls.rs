//! Loops of system calls.

use std::io;
use std::ptr::null_mut;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use rustix::param::page_size;

use super::Load;
use super::memory::Region;

/// Rounds of one run.
const ROUNDS: u64 = 512;
/// Calls of one run of [`SystemCalls`].
const CALLS: u64 = 8192;

/// mmap, mprotect and munmap of one page: 512 rounds of three write acquisitions of our own mmap_lock and one
/// downgrade.
#[derive(Debug, Default)]
pub struct Mappings;

impl Load for Mappings {
    fn events(&self) -> &'static str {
        "mmap_lock acquisitions"
    }

    fn run(&mut self) -> io::Result<u64> {
        let bytes = page_size();
        for _ in 0..ROUNDS {
            // SAFETY: a fresh private mapping that nobody refers to, unmapped before the next.
            unsafe {
                let page = mmap_anonymous(
                    null_mut(),
                    bytes,
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::PRIVATE,
                )?;
                mprotect(page, bytes, MprotectFlags::READ)?;
                munmap(page, bytes)?;
            }
        }
        Ok(3 * ROUNDS)
    }
}

/// 512 calls of madvise(MADV_DONTNEED) on an empty page.
#[derive(Debug)]
pub struct Advices(Region);

impl Advices {
    /// Maps the page.
    ///
    /// # Errors
    /// What mmap(2) says.
    pub fn new() -> io::Result<Self> {
        Region::new(1).map(Self)
    }
}

impl Load for Advices {
    fn events(&self) -> &'static str {
        "madvise calls"
    }

    fn run(&mut self) -> io::Result<u64> {
        for _ in 0..ROUNDS {
            self.0.discard()?;
        }
        Ok(ROUNDS)
    }
}

/// 8,192 calls of getppid(2), about the cheapest system call: what programs on every call do to a bystander.
#[derive(Debug, Default)]
pub struct SystemCalls;

impl Load for SystemCalls {
    fn events(&self) -> &'static str {
        "getppid calls"
    }

    fn run(&mut self) -> io::Result<u64> {
        for _ in 0..CALLS {
            let _parent = rustix::process::getppid();
        }
        Ok(CALLS)
    }
}
