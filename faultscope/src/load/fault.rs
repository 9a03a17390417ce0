//! Faults of a chosen kind by a team: the load of `bench fault`.
//!
//! Each round maps memory anew, hands every member a part of its own, and measures while they touch it: one access to
//! each base page, whatever the size of the folios behind it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::param::page_size;

use super::folios::{Folios, folios_behind, huge_page_bytes};
use super::mapping::{Backed, Mapping, map_shared};
use super::team::{Kind, Team, Used};

/// What the memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// Private anonymous memory.
    Anonymous,
    /// A file on a disk, in the page cache and mapped privately.
    PrivateFile,
    /// The same, mapped shared.
    SharedFile,
    /// A file in memory (tmpfs), mapped shared.
    Tmpfs,
    /// Private anonymous memory that another process has as well since fork(2).
    CopyOnWrite,
}

/// How a page is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A write.
    Write,
    /// A read.
    Read,
}

/// Which folios the kernel may use for anonymous memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Huge {
    /// Base pages only.
    Off,
    /// Whatever the machine's settings give memory that asks for huge pages.
    Advised,
}

/// How memory comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultIn {
    /// By being touched.
    Touch,
    /// By mmap(2) with `MAP_POPULATE`, then it is touched.
    MapPopulate,
    /// By `MADV_POPULATE_WRITE` (Linux 5.14), then it is touched.
    AdvisePopulate,
}

/// Where a thread keeps the count of pages it has touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// On cache lines of its own.
    Separate,
    /// Beside those of other members, eight to a cache line.
    Shared,
}

/// The load.
#[derive(Debug, Clone)]
pub struct Faults {
    /// What the memory is.
    pub backing: Backing,
    /// How it is touched.
    pub access: Access,
    /// Folio sizes.
    pub huge: Huge,
    /// How it comes in.
    pub fault_in: FaultIn,
    /// Where members count.
    pub state: State,
    /// Memory of all members together, bytes: whole base pages.
    pub bytes: usize,
    /// Times the memory is mapped and touched.
    pub rounds: u32,
    /// Members of the team.
    pub members: usize,
    /// Members are processes rather than threads.
    pub are_processes: bool,
    /// CPUs they are bound to; empty for none.
    pub cpus: Vec<usize>,
    /// Directory for the file of a file mapping.
    pub directory: PathBuf,
}

/// What the load did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faulted {
    /// What the members used, all rounds together.
    pub used: Used,
    /// Base pages touched, all rounds together.
    pub pages: u64,
    /// Folios of more than a base page that faults of the whole machine were given meanwhile: size in base pages and
    /// number. `None` without huge pages, and if this kernel does not count them.
    pub folios: Option<Vec<(u64, u64)>>,
    /// Folios that the file's pages are in; `None` without a file on a disk, and where the kernel does not let us look.
    pub file_folios: Option<u64>,
}

/// One counter of touched pages for each member, in memory that processes share.
#[derive(Debug)]
struct Progress {
    start: NonNull<AtomicU64>,
    members: usize,
    stride: usize,
}

// SAFETY: the mapping holds atomics only and lives as long as the value.
unsafe impl Sync for Progress {}

impl Progress {
    fn new(members: usize, state: State) -> io::Result<Self> {
        let stride = match state {
            // Two lines, since x86 fetches them in pairs.
            State::Separate => 128 / size_of::<AtomicU64>(),
            State::Shared => 1,
        };
        Ok(Self {
            start: map_shared(members * stride * size_of::<AtomicU64>())?.cast(),
            members,
            stride,
        })
    }

    fn of(&self, member: usize) -> &AtomicU64 {
        // SAFETY: inside the mapping, whose zeroes are valid atomics.
        unsafe { self.start.add(member % self.members * self.stride).as_ref() }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let bytes = self.members * self.stride * size_of::<AtomicU64>();
        // SAFETY: our own mapping, of which nothing is borrowed any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), bytes) };
    }
}

impl Faults {
    /// Does the work of all rounds.
    ///
    /// # Errors
    /// What the kernel says to a mapping, a file, or a member.
    pub fn run(&self) -> io::Result<Faulted> {
        let page = page_size();
        let pages = self.bytes / page;
        let progress = Progress::new(self.members, self.state)?;
        let file = match self.backing {
            Backing::PrivateFile | Backing::SharedFile => {
                Some(cached_file(&self.directory, self.bytes)?)
            }
            _ => None,
        };
        let mut folios = (self.huge == Huge::Advised).then(Folios::open);
        let mut count = || folios.as_mut().and_then(Folios::read);
        let mut done = Faulted {
            folios: count().map(|_| Vec::new()),
            file_folios: match &file {
                Some(file) => self.file_folios(file)?,
                None => None,
            },
            ..Faulted::default()
        };
        if self.huge == Huge::Off {
            forbid_huge_pages()?;
        }
        for _ in 0..self.rounds {
            let tmpfs = match self.backing {
                Backing::Tmpfs => Some(self.memory_file()?),
                _ => None,
            };
            let backed = match (self.backing, file.as_ref().or(tmpfs.as_ref())) {
                (Backing::PrivateFile, Some(file)) => Backed::Private(file),
                (Backing::SharedFile | Backing::Tmpfs, Some(file)) => Backed::Shared(file),
                _ => Backed::Anonymous,
            };
            let memory = Mapping::new(self.bytes, backed)?;
            if self.huge == Huge::Advised {
                memory.advise(0, self.bytes, libc::MADV_HUGEPAGE)?;
            }
            if self.backing == Backing::CopyOnWrite {
                write(memory.start(), 0..pages, page, progress.of(0));
            }
            let before = count();
            let used = self.round(&memory, backed, &progress)?;
            done.used.add(&used);
            done.pages += pages as u64;
            if let (Some(all), Some(before), Some(after)) = (&mut done.folios, before, count()) {
                add_folios(all, &before, &after);
            }
            drop(memory);
            if let (Backing::SharedFile, Some(file)) = (self.backing, &file) {
                // The next round must find clean pages, as this one did.
                file.sync_all()?;
            }
        }
        Ok(done)
    }

    /// One round of all members.
    fn round(&self, memory: &Mapping, backed: Backed<'_>, progress: &Progress) -> io::Result<Used> {
        let page = page_size();
        let team = Team {
            members: self.members,
            kind: match (self.are_processes, self.backing) {
                (true, _) => Kind::Processes,
                (false, Backing::CopyOnWrite) => Kind::ForkedThreads,
                (false, _) => Kind::Threads,
            },
            cpus: self.cpus.clone(),
        };
        team.run(
            |member| {
                // After fork(2) a process has its code to fault in again, and its stack to copy.
                let scratch = Mapping::new(page, Backed::Anonymous)?;
                self.work(&scratch, Backed::Anonymous, 0..1, progress.of(member))?;
                Ok(self.part(member))
            },
            |member, part| self.work(memory, backed, part.clone(), progress.of(member)),
        )
    }

    /// Brings in and touches a part; the number of its pages.
    fn work(
        &self,
        memory: &Mapping,
        backed: Backed<'_>,
        part: Range<usize>,
        progress: &AtomicU64,
    ) -> io::Result<u64> {
        let page = page_size();
        let (from, bytes) = (part.start * page, part.len() * page);
        match self.fault_in {
            FaultIn::Touch => {}
            FaultIn::MapPopulate => memory.map_part(from, bytes, backed, libc::MAP_POPULATE)?,
            FaultIn::AdvisePopulate => memory.advise(from, bytes, libc::MADV_POPULATE_WRITE)?,
        }
        let pages = part.len() as u64;
        match self.access {
            Access::Write => write(memory.start(), part, page, progress),
            Access::Read => read(memory.start(), part, page, progress),
        }
        Ok(pages)
    }

    /// Pages of a member: parts of whole units as equal as can be, so that no two members touch the same huge page or
    /// the same window of pages mapped around a fault.
    fn part(&self, member: usize) -> Range<usize> {
        let pages = self.bytes / page_size();
        let unit = match (self.huge, self.access) {
            (Huge::Off, Access::Write) => 1,
            (Huge::Off, Access::Read) => AROUND.min(pages),
            (Huge::Advised, _) => huge_page_bytes() / page_size(),
        };
        share(pages, unit, self.members, member)
    }

    /// Folios of the file, seen through a mapping of its own.
    fn file_folios(&self, file: &File) -> io::Result<Option<u64>> {
        let pages = self.bytes / page_size();
        let mapping = Mapping::new(self.bytes, Backed::Shared(file))?;
        read(mapping.start(), 0..pages, page_size(), &AtomicU64::new(0));
        Ok(folios_behind(mapping.start(), pages))
    }

    /// A new file in memory: empty pages for writers, written ones for readers.
    fn memory_file(&self) -> io::Result<File> {
        let file: File = memfd_create("faultscope-bench", MemfdFlags::CLOEXEC)?.into();
        match self.access {
            Access::Write => file.set_len(self.bytes as u64)?,
            Access::Read => fill(&file, self.bytes)?,
        }
        Ok(file)
    }
}

/// Takes huge pages away from this process and its children, whatever the machine's settings (Linux 3.15).
fn forbid_huge_pages() -> io::Result<()> {
    // SAFETY: plain numbers.
    match unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // A kernel without huge pages has none to take.
            error if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            error => Err(error),
        },
    }
}

/// Pages that a fault may map around itself at most: 64 KiB, `default_fault_around_bytes` in mm/memory.c.
pub const AROUND: usize = 16;

/// The part of one of `members`, in whole units; what is no whole unit goes to the last member.
fn share(pages: usize, unit: usize, members: usize, member: usize) -> Range<usize> {
    let units = pages / unit;
    let begin = |member: usize| units * member / members * unit;
    let end = if member + 1 == members {
        pages
    } else {
        begin(member + 1)
    };
    begin(member)..end
}

fn add_folios(all: &mut Vec<(u64, u64)>, before: &[(u64, u64)], after: &[(u64, u64)]) {
    for (size, n) in after {
        let earlier = before
            .iter()
            .find(|(s, _)| s == size)
            .map_or(0, |(_, n)| *n);
        let more = n.saturating_sub(earlier);
        match all.iter_mut().find(|(s, _)| s == size) {
            Some((_, sum)) => *sum += more,
            None => all.push((*size, more)),
        }
    }
}

/// Writes a word to each page.
#[inline(never)]
fn write(start: *mut u8, pages: Range<usize>, page: usize, progress: &AtomicU64) {
    for index in pages {
        // SAFETY: a page of the caller's mapping, aligned, and no reference points into it.
        unsafe { start.add(index * page).cast::<u64>().write_volatile(1) };
        progress.store(index as u64, Ordering::Relaxed);
    }
}

/// Reads a word of each page.
#[inline(never)]
fn read(start: *mut u8, pages: Range<usize>, page: usize, progress: &AtomicU64) {
    for index in pages {
        // SAFETY: as above.
        let _word = unsafe { start.add(index * page).cast::<u64>().read_volatile() };
        progress.store(index as u64, Ordering::Relaxed);
    }
}

/// A file without a name whose pages are in the page cache and clean.
fn cached_file(directory: &Path, bytes: usize) -> io::Result<File> {
    let path = directory.join(format!(".faultscope-bench-{}", std::process::id()));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    fs::remove_file(&path)?;
    fill(&file, bytes)?;
    file.sync_all()?;
    Ok(file)
}

fn fill(mut file: &File, bytes: usize) -> io::Result<()> {
    let piece = vec![1_u8; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let n = left.min(piece.len());
        file.write_all(&piece[..n])?;
        left -= n;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_units_and_cover_everything_once() {
        for (pages, unit, members) in [(1024, 1, 3), (1000, 16, 4), (5, 16, 2), (4096, 512, 3)] {
            let mut next = 0;
            for member in 0..members {
                let part = share(pages, unit, members, member);
                assert_eq!(part.start, next, "{pages} {unit} {members}");
                assert!(part.start.is_multiple_of(unit));
                next = part.end;
            }
            assert_eq!(next, pages);
        }
    }

    fn faults(backing: Backing, access: Access, fault_in: FaultIn) -> Faulted {
        let load = Faults {
            backing,
            access,
            huge: Huge::Off,
            fault_in,
            state: State::Separate,
            bytes: 512 * page_size(),
            rounds: 2,
            members: 2,
            are_processes: false,
            cpus: Vec::new(),
            directory: std::env::temp_dir(),
        };
        load.run().expect("the load runs")
    }

    #[test]
    fn written_pages_fault_once_each() {
        for (backing, fault_in) in [
            (Backing::Anonymous, FaultIn::Touch),
            (Backing::Anonymous, FaultIn::MapPopulate),
            (Backing::PrivateFile, FaultIn::Touch),
            (Backing::Tmpfs, FaultIn::Touch),
        ] {
            let done = faults(backing, Access::Write, fault_in);
            assert_eq!(done.pages, 1024);
            assert_eq!(done.used.work, 1024);
            assert_eq!(done.used.faults(), 1024, "{backing:?} {fault_in:?}");
        }
    }

    #[test]
    fn read_pages_of_a_file_come_in_windows() {
        let anonymous = faults(Backing::Anonymous, Access::Read, FaultIn::Touch);
        assert_eq!(anonymous.used.faults(), 1024, "the zero page, page by page");
        let tmpfs = faults(Backing::Tmpfs, Access::Read, FaultIn::Touch);
        assert!(tmpfs.used.faults() <= 1024 / 4, "{}", tmpfs.used.faults());
    }
}
