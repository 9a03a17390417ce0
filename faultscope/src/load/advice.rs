//! Every advice madvise(2) knows, and pages populated on request.

use std::io;

use super::Load;
use super::memory::Region;

/// Pages of the range.
const PAGES: usize = 256;

/// Advices in an order in which each that changes a mapping is followed by the one that takes the change back.
///
/// Missing are `MADV_HWPOISON` and `MADV_SOFT_OFFLINE`, which take memory away from the machine, and `MADV_POPULATE_*`
/// ([`Populates`]). A kernel that does not know one refuses it.
const ADVICES: &[i32] = &[
    libc::MADV_RANDOM,
    libc::MADV_SEQUENTIAL,
    libc::MADV_NORMAL,
    libc::MADV_WILLNEED,
    libc::MADV_COLD,
    libc::MADV_PAGEOUT,
    libc::MADV_FREE,
    libc::MADV_DONTNEED,
    libc::MADV_REMOVE,
    libc::MADV_DONTFORK,
    libc::MADV_DOFORK,
    libc::MADV_MERGEABLE,
    libc::MADV_UNMERGEABLE,
    libc::MADV_DONTDUMP,
    libc::MADV_DODUMP,
    libc::MADV_WIPEONFORK,
    libc::MADV_KEEPONFORK,
    libc::MADV_HUGEPAGE,
    MADV_COLLAPSE,
    libc::MADV_NOHUGEPAGE,
    MADV_DONTNEED_LOCKED,
    MADV_GUARD_INSTALL,
    MADV_GUARD_REMOVE,
];

/// Linux 5.18, 6.1 and 6.13 (`include/uapi/asm-generic/mman-common.h`).
const MADV_DONTNEED_LOCKED: i32 = 24;
const MADV_COLLAPSE: i32 = 25;
const MADV_GUARD_INSTALL: i32 = 102;
const MADV_GUARD_REMOVE: i32 = 103;

/// 23 advices to 256 pages, which are written before each.
///
/// Advices a kernel does not know, or cannot follow here, are refused and count as calls.
#[derive(Debug)]
pub struct EveryAdvice(Region);

impl EveryAdvice {
    /// Maps the memory.
    ///
    /// # Errors
    /// What mmap(2) says.
    pub fn new() -> io::Result<Self> {
        Region::new(PAGES).map(Self)
    }
}

impl Load for EveryAdvice {
    fn events(&self) -> &'static str {
        "madvise calls"
    }

    fn run(&mut self) -> io::Result<u64> {
        for &advice in ADVICES {
            // Nobody may write where guards are.
            if advice != MADV_GUARD_REMOVE {
                self.0.write();
            }
            // A refusal is a call like others.
            let _refused = self.0.advise_raw(advice);
        }
        Ok(ADVICES.len() as u64)
    }
}

/// 256 pages populated for reading and 256 for writing, which no fault tracepoint sees.
#[derive(Debug)]
pub struct Populates(Region);

impl Populates {
    /// Maps the memory.
    ///
    /// # Errors
    /// What mmap(2) says.
    pub fn new() -> io::Result<Self> {
        Region::new(PAGES).map(Self)
    }
}

impl Load for Populates {
    fn events(&self) -> &'static str {
        "populated pages"
    }

    fn run(&mut self) -> io::Result<u64> {
        for advice in [libc::MADV_POPULATE_READ, libc::MADV_POPULATE_WRITE] {
            self.0.advise_raw(advice)?;
            self.0.discard()?;
        }
        Ok(2 * PAGES as u64)
    }
}
