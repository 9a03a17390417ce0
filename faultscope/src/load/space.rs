//! One address space: threads that fault in it, others that change it, and a process that looks at it from outside.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::os::fd::AsRawFd as _;

use rustix::mm::{MprotectFlags, mprotect};
use rustix::param::page_size;

use super::helper::{Signals, beside};
use super::memory::Region;
use super::share::map_while;
use super::team::{Team, Used};

/// Pages of each of many small mappings.
const PIECE: usize = 2;
/// Name of the process that looks from outside, as the kernel keeps it.
pub const READER: &str = "smaps-reader";

/// What changes the address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// mmap, a touch and munmap of a page.
    MapUnmap,
    /// mprotect of memory that others fault on, to and fro.
    Protect,
}

impl Change {
    /// Name of the threads that do it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MapUnmap => "fsb-mapper",
            Self::Protect => "fsb-protector",
        }
    }
}

/// Threads that fault on memory of one address space, and threads that change it meanwhile.
///
/// Faults are read faults on the zero page, so that taking the right to write away does no harm.
#[derive(Debug)]
pub struct Space {
    regions: Vec<Region>,
    rounds: u64,
    /// Bytes whose protection is changed at once.
    piece: usize,
}

impl Space {
    /// Maps `pages` pages for each of `faulters` threads; with `is_split` in mappings of two pages each, one page more if
    /// their number is odd.
    ///
    /// # Errors
    /// What mmap(2) or mprotect(2) says; `ENOMEM` for more mappings than `vm.max_map_count`.
    pub fn new(faulters: usize, pages: usize, rounds: u64, is_split: bool) -> io::Result<Self> {
        let pages = if is_split {
            pages.next_multiple_of(PIECE)
        } else {
            pages
        };
        let regions: Vec<Region> = (0..faulters)
            .map(|_| Region::new(pages))
            .collect::<io::Result<_>>()?;
        let piece = if is_split { PIECE } else { pages } * page_size();
        let space = Self {
            regions,
            rounds,
            piece,
        };
        if is_split {
            // Neighbours of different protection stay mappings of their own.
            for region in &space.regions {
                for odd in (1..space.pieces(region)).step_by(2) {
                    space.protect(region, odd, false)?;
                }
            }
        }
        Ok(space)
    }

    fn pieces(&self, region: &Region) -> usize {
        region.bytes() / self.piece
    }

    fn protect(&self, region: &Region, piece: usize, is_writable: bool) -> io::Result<()> {
        let flags = if is_writable {
            MprotectFlags::READ | MprotectFlags::WRITE
        } else {
            MprotectFlags::READ
        };
        assert!(piece < self.pieces(region), "inside the region");
        // SAFETY: a piece of a mapping of ours, which is only read.
        unsafe {
            let start = region.address().add(piece * self.piece);
            mprotect(start.cast(), self.piece, flags)?;
        }
        Ok(())
    }

    /// Runs all rounds in every thread of `team`, with one thread for each of `changes` beside it, called
    /// [`Change::name`]; what the team used, whose work is the number of faults caused, and the changers' system calls.
    ///
    /// A round reads every page of the thread's region, one fault for each, and drops them, mapping by mapping: advice
    /// for one needs no mmap_lock where the kernel takes the lock of the mapping.
    ///
    /// # Errors
    /// What a system call of the load says.
    pub fn run(&self, team: &Team, changes: &[Change]) -> io::Result<(Used, u64)> {
        let names: Vec<&str> = changes.iter().map(|change| change.name()).collect();
        beside(
            team,
            &names,
            |n, signals| self.change(changes[n], n, signals),
            |signals| {
                team.run(
                    |_| Ok(()),
                    |n, ()| {
                        signals.begin();
                        let region = self.region(n);
                        for _ in 0..self.rounds {
                            region.read();
                            for piece in 0..self.pieces(region) {
                                region.discard_part(piece * self.piece, self.piece)?;
                            }
                        }
                        Ok(self.rounds * region.pages() as u64)
                    },
                )
            },
        )
    }

    fn region(&self, n: usize) -> &Region {
        &self.regions[n % self.regions.len()]
    }

    /// Changes the address space while `signals` say so; system calls made.
    fn change(&self, change: Change, n: usize, signals: &Signals) -> io::Result<u64> {
        if change == Change::MapUnmap {
            return map_while(|| signals.goes_on());
        }
        let region = self.region(n);
        let (mut calls, mut piece) = (0, 0);
        while signals.goes_on() {
            let is_odd = piece % 2 == 1;
            self.protect(region, piece, is_odd)?;
            self.protect(region, piece, !is_odd)?;
            piece = (piece + 1) % self.pieces(region);
            calls += 2;
        }
        Ok(calls)
    }
}

/// A process that reads `smaps_rollup` of ours, again and again, until this is dropped or we end.
///
/// The kernel walks all mappings for each reading, with mmap_lock held for reading.
#[derive(Debug)]
pub struct SmapsReader {
    pid: libc::pid_t,
    /// Its far end hangs up when this goes.
    life: Option<PipeWriter>,
    reads: PipeReader,
}

impl SmapsReader {
    /// Starts the process. The caller must have one thread only.
    ///
    /// # Errors
    /// What fork(2), pipe2(2) or the proc file system says.
    pub fn start() -> io::Result<Self> {
        let (alive, life) = io::pipe()?;
        let (reads, told) = io::pipe()?;
        let path = format!("/proc/{}/smaps_rollup", std::process::id());
        // A kernel without it says so here.
        File::open(&path)?;
        // SAFETY: one thread, so that the child's memory is whole; it ends by _exit.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop((life, reads));
                read_on(&path, &alive, told);
                // SAFETY: ends the child without running anything of the parent's.
                unsafe { libc::_exit(0) }
            }
            pid => Ok(Self {
                pid,
                life: Some(life),
                reads,
            }),
        }
    }

    /// Process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Ends the process; how often it read.
    ///
    /// # Errors
    /// The process ended before: it could not read.
    pub fn end(mut self) -> io::Result<u64> {
        self.life = None;
        let mut count = [0; 8];
        self.reads.read_exact(&mut count)?;
        Ok(u64::from_le_bytes(count))
    }
}

impl Drop for SmapsReader {
    fn drop(&mut self) {
        self.life = None;
        // SAFETY: a child of ours; its status says nothing.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

/// The child: reads until the other end of `alive` is closed, then tells how often.
fn read_on(path: &str, alive: &PipeReader, mut told: PipeWriter) {
    use std::io::Write as _;
    let name = std::ffi::CString::new(READER).unwrap_or_default();
    // SAFETY: a string that ends in NUL; fifteen bytes of it are kept.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    let mut text = [0; 4096];
    let mut reads = 0_u64;
    let mut poll = libc::pollfd {
        fd: alive.as_raw_fd(),
        events: 0,
        revents: 0,
    };
    // SAFETY: one live pollfd; a hang-up is always reported.
    while unsafe { libc::poll(&raw mut poll, 1, 0) } == 0 {
        let read = File::open(path).and_then(|mut file| file.read(&mut text));
        if !matches!(read, Ok(1..)) {
            return;
        }
        reads += 1;
    }
    // Nobody is left to hear it if this fails.
    told.write_all(&reads.to_le_bytes()).ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::team::Kind;

    #[test]
    fn changes_go_on_until_the_faulting_threads_are_done() {
        let team = Team {
            members: 2,
            kind: Kind::Threads,
            cpus: Vec::new(),
        };
        for (is_split, change) in [
            (false, Change::MapUnmap),
            (false, Change::Protect),
            (true, Change::Protect),
        ] {
            let space = Space::new(2, 63, 20, is_split).expect("memory");
            let (used, calls) = space.run(&team, &[change]).expect("faults and changes");
            let pages = if is_split { 64 } else { 63 };
            assert_eq!(used.work, 2 * pages * 20);
            // Each page is one read fault of the thread; its stack may fault as well.
            assert!(
                (used.work..used.work + 20).contains(&used.faults()),
                "{used:?}"
            );
            assert_eq!(calls % 2, 0);
        }
    }
}
