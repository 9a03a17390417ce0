//! Processes that copy their parent's memory.

use std::io;

use super::Load;
use super::memory::Region;

/// Pages a child copies.
const PAGES: usize = 256;
/// Children of one run, one after the other.
const CHILDREN: u64 = 4;

/// Four children a run; each writes to the 256 pages it shares with its parent, and ends.
///
/// The caller must not wait for children of its own meanwhile.
#[derive(Debug)]
pub struct Forks(Region);

impl Forks {
    /// Maps the memory.
    ///
    /// # Errors
    /// What mmap(2) says.
    pub fn new() -> io::Result<Self> {
        Region::new(PAGES).map(Self)
    }
}

impl Load for Forks {
    fn events(&self) -> &'static str {
        "pages copied on write"
    }

    fn run(&mut self) -> io::Result<u64> {
        for _ in 0..CHILDREN {
            self.0.write();
            // SAFETY: the child allocates nothing and takes no lock: it writes to memory and ends.
            let child = match unsafe { libc::fork() } {
                -1 => return Err(io::Error::last_os_error()),
                0 => {
                    self.0.write();
                    // SAFETY: ends the child without running anything of the parent's.
                    unsafe { libc::_exit(0) }
                }
                child => child,
            };
            // SAFETY: a child of ours; its status says nothing.
            if unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } != child {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(CHILDREN * PAGES as u64)
    }
}
