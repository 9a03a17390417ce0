//! Memory that threads of one address space use, give back by an advice, and use again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

use super::file::{nameless, on_disk};
use super::helper::beside;
use super::memory::Region;
use super::share::map_while;
use super::space::Change;
use super::team::{Team, Used};

/// What a used page begins with; a page that came back zeroed begins with 0.
const TOKEN: u64 = 0x6661_756c_7473_6370;
/// Bytes of one read of the file that presses on memory.
const READ_BYTES: usize = 1 << 17;

/// What the threads saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GivenBack {
    /// Cycles: each gives all pages back once and uses them again.
    pub cycles: u64,
    /// Pages that held zeroes when they were used again.
    pub zeroed: u64,
    /// Pages that still held what was written before they were given back.
    pub kept: u64,
}

/// Memory that is used, given back by one advice and used again, a region for each worker.
#[derive(Debug)]
pub struct GiveBack {
    regions: Vec<Region>,
    advice: Option<i32>,
    cycles: u64,
    pressure: Option<Pressure>,
}

impl GiveBack {
    /// Maps `pages` pages for each of `workers` threads.
    ///
    /// Without an advice nothing is given back, and pages are only used again. With `pressure` each cycle presses
    /// between giving back and using again.
    ///
    /// # Errors
    /// What mmap(2) says.
    pub fn new(
        workers: usize,
        pages: usize,
        advice: Option<i32>,
        cycles: u64,
        pressure: Option<Pressure>,
    ) -> io::Result<Self> {
        Ok(Self {
            regions: (0..workers)
                .map(|_| Region::new(pages))
                .collect::<io::Result<_>>()?,
            advice,
            cycles,
            pressure,
        })
    }

    /// Runs all cycles in every thread of `team`, with `mappers` threads beside it that map and unmap a page all the
    /// time; what the team used and saw, and the system calls of the mappers.
    ///
    /// # Errors
    /// What madvise(2) or the file that presses on memory says; a page with content that nobody wrote.
    pub fn run(&self, team: &Team, mappers: usize) -> io::Result<(Used, GivenBack, u64)> {
        let counts: [AtomicU64; 2] = Default::default();
        let (used, calls) = beside(
            team,
            &vec![Change::MapUnmap.name(); mappers],
            |_, signals| map_while(|| signals.goes_on()),
            |signals| {
                team.run(
                    // Who uses the pages touches them first, so that they are on its node.
                    |n| {
                        self.reuse(n, &mut GivenBack::default())?;
                        Ok(vec![1; READ_BYTES])
                    },
                    |n, buffer| {
                        signals.begin();
                        let seen = self.work(n, buffer)?;
                        counts[0].fetch_add(seen.zeroed, Ordering::Relaxed);
                        counts[1].fetch_add(seen.kept, Ordering::Relaxed);
                        Ok(seen.cycles)
                    },
                )
            },
        )?;
        let [zeroed, kept] = counts.map(AtomicU64::into_inner);
        let seen = GivenBack {
            cycles: used.work,
            zeroed,
            kept,
        };
        Ok((used, seen, calls))
    }

    /// All cycles of worker `n`.
    fn work(&self, n: usize, buffer: &mut [u8]) -> io::Result<GivenBack> {
        let mut seen = GivenBack::default();
        for _ in 0..self.cycles {
            if let Some(advice) = self.advice {
                self.region(n).advise_raw(advice)?;
            }
            if let Some(pressure) = &self.pressure {
                pressure.press(buffer)?;
            }
            self.reuse(n, &mut seen)?;
            seen.cycles += 1;
        }
        Ok(seen)
    }

    fn region(&self, n: usize) -> &Region {
        &self.regions[n % self.regions.len()]
    }

    /// Writes to every page, at the cost of one fault where a page is gone, and counts what was there.
    fn reuse(&self, n: usize, seen: &mut GivenBack) -> io::Result<()> {
        let region = self.region(n);
        for index in 0..region.pages() {
            match region.swap(index, TOKEN) {
                0 => seen.zeroed += 1,
                TOKEN => seen.kept += 1,
                other => {
                    return Err(io::Error::other(format!(
                        "page {index} holds {other:#x}, which nobody wrote"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Whether the kernel knows an advice: it checks that before anything else, so that no page need be given back
/// (mm/madvise.c).
///
/// # Errors
/// What madvise(2) says; `EINVAL` for an advice it does not know.
pub fn try_advice(advice: i32) -> io::Result<()> {
    // SAFETY: an empty range, in which there is nothing to change.
    match unsafe { libc::madvise(std::ptr::null_mut(), 0, advice) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A file larger than the memory its reader may have: reading it makes the kernel reclaim what it can.
///
/// It has no blocks, so that nothing is read from a disk; its pages are in the page cache like others.
#[derive(Debug)]
pub struct Pressure {
    file: File,
    bytes: u64,
}

impl Pressure {
    /// Makes a file of `bytes` bytes without a name in `directory`.
    ///
    /// # Errors
    /// What the file system says; `Unsupported` for one in memory, which keeps no pages for a hole.
    pub fn new(directory: &Path, bytes: u64) -> io::Result<Self> {
        on_disk(directory)?;
        let file = nameless(directory)?;
        file.set_len(bytes)?;
        Ok(Self { file, bytes })
    }

    fn press(&self, buffer: &mut [u8]) -> io::Result<()> {
        let mut at = 0;
        while at < self.bytes {
            match self.file.read_at(buffer, at) {
                Ok(0) => break,
                Ok(n) => at += n as u64,
                Err(error) if Errno::from_io_error(&error) == Some(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::team::Kind;

    /// Pages of a region and cycles.
    const PAGES: usize = 64;
    const CYCLES: u64 = 3;

    fn seen(advice: Option<i32>) -> GivenBack {
        let team = Team {
            members: 2,
            kind: Kind::Threads,
            cpus: Vec::new(),
        };
        let load = GiveBack::new(2, PAGES, advice, CYCLES, None).expect("memory");
        let (_, seen, calls) = load.run(&team, 1).expect("the kernel takes the advice");
        assert_eq!((seen.cycles, calls % 2), (2 * CYCLES, 0));
        seen
    }

    #[test]
    fn dropped_pages_come_back_zeroed_and_others_as_they_were() {
        let pages = 2 * PAGES as u64 * CYCLES;
        let dropped = seen(Some(libc::MADV_DONTNEED));
        assert_eq!((dropped.zeroed, dropped.kept), (pages, 0));
        let kept = seen(None);
        assert_eq!((kept.zeroed, kept.kept), (0, pages));
        // Whatever the kernel reclaimed meanwhile.
        let freed = seen(Some(libc::MADV_FREE));
        assert_eq!(freed.zeroed + freed.kept, pages);
    }

    #[test]
    fn an_advice_that_does_not_exist_is_refused() {
        let refused = try_advice(77).expect_err("no advice");
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
        try_advice(libc::MADV_DONTNEED).expect("known since ever");
    }

    #[test]
    fn pressing_reads_the_whole_file() {
        let directory = std::env::temp_dir();
        let file = nameless(&directory).expect("a file");
        let bytes = 3 * READ_BYTES as u64 + 1;
        file.set_len(bytes).expect("a file without blocks");
        let pressure = Pressure { file, bytes };
        let mut buffer = vec![1; READ_BYTES];
        pressure.press(&mut buffer).expect("it can be read");
        assert!(buffer.contains(&0));
    }
}
