//! Faults on anonymous memory.

use std::io::{self, IoSlice, PipeReader, PipeWriter, Read as _, Write as _};
use std::ptr::{NonNull, null_mut};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::param::page_size;

use super::Load;

/// Pages touched by one run; the most segments one readv(2) takes (UIO_MAXIOV).
const PAGES: usize = 1024;

/// Private anonymous memory without huge pages.
#[derive(Debug)]
pub(super) struct Region {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is owned by the value, and all access is through volatile words or system calls.
unsafe impl Send for Region {}
// SAFETY: as above; concurrent volatile bytes of one page do no harm to a load that ignores their value.
unsafe impl Sync for Region {}

impl Region {
    pub(super) fn new(pages: usize) -> io::Result<Self> {
        let bytes = pages * page_size();
        // SAFETY: a fresh private mapping at an address the kernel chooses.
        let base = unsafe {
            mmap_anonymous(
                null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?
        };
        let base =
            NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mmap returned null"))?;
        let region = Self { base, bytes };
        match region.advise(Advice::LinuxNoHugepage) {
            // A kernel without huge pages has none to turn off.
            Err(error) if Errno::from_io_error(&error) != Some(Errno::INVAL) => Err(error),
            _ => Ok(region),
        }
    }

    pub(super) fn pages(&self) -> usize {
        self.bytes / page_size()
    }

    pub(super) fn address(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// First byte of a page.
    fn page(&self, index: usize) -> *mut u8 {
        // SAFETY: in bounds: the remainder is below the number of pages.
        unsafe { self.base.as_ptr().add(index % self.pages() * page_size()) }
    }

    pub(super) fn read(&self) {
        for index in 0..self.pages() {
            // SAFETY: mapped and readable.
            let _byte = unsafe { self.page(index).read_volatile() };
        }
    }

    pub(super) fn write(&self) {
        for index in 0..self.pages() {
            // SAFETY: mapped and writable.
            unsafe { self.page(index).write_volatile(1) };
        }
    }

    /// Writes the first two words of a page; what was in the first.
    ///
    /// The second is written before the first is read, so that a page which is gone costs one write fault. An atomic
    /// exchange does that too on real CPUs, but an emulator may read first and then write, which is two faults.
    pub(super) fn swap(&self, index: usize, word: u64) -> u64 {
        let first = self.page(index).cast::<u64>();
        // SAFETY: mapped, writable and aligned to a page; other threads use other regions.
        unsafe {
            first.add(1).write_volatile(word);
            let before = first.read_volatile();
            first.write_volatile(word);
            before
        }
    }

    /// An advice by its number, known to the kernel or not.
    pub(super) fn advise_raw(&self, advice: i32) -> io::Result<()> {
        // SAFETY: a mapping of ours, accessed by volatile and atomic words only.
        match unsafe { libc::madvise(self.base.as_ptr().cast(), self.bytes, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn advise(&self, advice: Advice) -> io::Result<()> {
        // SAFETY: our own mapping; callers keep no reference into it.
        unsafe { madvise(self.base.as_ptr().cast(), self.bytes, advice)? };
        Ok(())
    }

    /// Gives back the pages of a part, from byte `from` on.
    pub(super) fn discard_part(&self, from: usize, bytes: usize) -> io::Result<()> {
        assert!(from + bytes <= self.bytes, "inside the region");
        // SAFETY: our own mapping; callers keep no reference into it.
        unsafe {
            let start = self.base.as_ptr().add(from);
            madvise(start.cast(), bytes, Advice::LinuxDontNeed)?;
        }
        Ok(())
    }

    /// Gives the pages back: the next touch faults again. The kernel also drains this CPU's LRU batches.
    pub(super) fn discard(&self) -> io::Result<()> {
        self.advise(Advice::LinuxDontNeed)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: our own mapping, unmapped once.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping");
    }
}

/// User-mode read faults, all on the zero page: the cheapest faults there are, so the dearest for a program's share.
///
/// 1,024 faults a run, then one madvise(MADV_DONTNEED).
#[derive(Debug)]
pub struct ReadFaults(Region);

impl ReadFaults {
    /// Maps the memory.
    ///
    /// # Errors
    /// What mmap(2) says.
    pub fn new() -> io::Result<Self> {
        Region::new(PAGES).map(Self)
    }
}

impl Load for ReadFaults {
    fn events(&self) -> &'static str {
        "read faults"
    }

    fn run(&mut self) -> io::Result<u64> {
        self.0.read();
        self.0.discard()?;
        Ok(PAGES as u64)
    }
}

/// User-mode write faults: each takes a page, puts it on an LRU list and raises an RSS counter.
///
/// 1,024 faults and 1,024 LRU insertions a run, then one madvise(MADV_DONTNEED); RSS counters move once a fault and
/// some times more as the pages go, below 1 %.
#[derive(Debug)]
pub struct WriteFaults(Region);

impl WriteFaults {
    /// Maps the memory.
    ///
    /// # Errors
    /// What mmap(2) says.
    pub fn new() -> io::Result<Self> {
        Region::new(PAGES).map(Self)
    }
}

impl Load for WriteFaults {
    fn events(&self) -> &'static str {
        "write faults"
    }

    fn run(&mut self) -> io::Result<u64> {
        self.0.write();
        self.0.discard()?;
        Ok(PAGES as u64)
    }
}

/// Write faults on more pages than a memory cgroup may have: each run swaps out what the last one brought in.
///
/// Needs room in swap; without it the kernel kills a process of the cgroup.
#[derive(Debug)]
pub struct Overcommit(Region);

impl Overcommit {
    /// Maps `pages` pages.
    ///
    /// # Errors
    /// What mmap(2) says.
    pub fn new(pages: usize) -> io::Result<Self> {
        Region::new(pages).map(Self)
    }
}

impl Load for Overcommit {
    fn events(&self) -> &'static str {
        "pages written"
    }

    fn run(&mut self) -> io::Result<u64> {
        self.0.write();
        Ok(self.0.pages() as u64)
    }
}

/// Faults the kernel takes on user addresses: writev(2) into a pipe of one byte from each of 1,024 untouched pages.
#[derive(Debug)]
pub struct KernelFaults {
    region: Region,
    reader: PipeReader,
    writer: PipeWriter,
}

impl KernelFaults {
    /// Maps the memory and opens the pipe.
    ///
    /// # Errors
    /// What mmap(2) or pipe2(2) says.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self {
            region: Region::new(PAGES)?,
            reader,
            writer,
        })
    }
}

impl Load for KernelFaults {
    fn events(&self) -> &'static str {
        "kernel faults"
    }

    fn run(&mut self) -> io::Result<u64> {
        let bytes: Vec<IoSlice<'_>> = (0..PAGES)
            .map(|index| {
                // SAFETY: one byte of a page each, mapped while the region lives and written by nobody.
                IoSlice::new(unsafe { std::slice::from_raw_parts(self.region.page(index), 1) })
            })
            .collect();
        // Less than PIPE_BUF, so the pipe takes all of it at once.
        let written = self.writer.write_vectored(&bytes)?;
        let mut taken = [0; PAGES];
        self.reader.read_exact(&mut taken[..written])?;
        self.region.discard()?;
        Ok(written as u64)
    }
}
