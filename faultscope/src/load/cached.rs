//! Pages of one file that workers read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::param::page_size;

use super::file::{fill, nameless, read_mapped};
use super::team::{Team, Used};

/// How a page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheAccess {
    /// read(2): each marks its folio accessed.
    Read,
    /// A mapping made for each pass: the folio of a page that was used is marked when it is unmapped.
    Mapping,
}

/// In which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The whole file, page by page, pass after pass.
    Streaming,
    /// Its first quarter four times, pass after pass.
    Reuse,
}

/// A file that workers read, the same number of pages in either order.
#[derive(Debug)]
pub struct CacheReads {
    file: File,
    pages: usize,
    workers: usize,
    access: CacheAccess,
    order: Order,
    passes: u64,
}

impl CacheReads {
    /// Writes a file of `pages` pages, at least 4, without a name in `directory`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn new(
        directory: &Path,
        pages: usize,
        workers: usize,
        access: CacheAccess,
        order: Order,
        passes: u64,
    ) -> io::Result<Self> {
        let file = nameless(directory)?;
        fill(&file, pages)?;
        Ok(Self {
            file,
            pages,
            workers: workers.max(1),
            access,
            order,
            passes,
        })
    }

    /// Runs all passes in every member of `team`; the work is the number of pages read.
    ///
    /// Members begin at different pages, so that one does not read what another has just brought in.
    ///
    /// # Errors
    /// What read(2) or mmap(2) says.
    pub fn run(&self, team: &Team) -> io::Result<Used> {
        team.run(|_| Ok(vec![0; page_size()]), |n, page| self.work(n, page))
    }

    fn work(&self, n: usize, page: &mut [u8]) -> io::Result<u64> {
        let (size, times) = match self.order {
            Order::Streaming => (self.pages, 1),
            Order::Reuse => (self.pages / 4, 4),
        };
        let first = n % self.workers * size / self.workers;
        for _ in 0..self.passes * times {
            let pages = (first..size).chain(0..first);
            match self.access {
                CacheAccess::Read => self.read(pages, page)?,
                CacheAccess::Mapping => self.read_mapped(size, pages)?,
            }
        }
        Ok(self.passes * times * size as u64)
    }

    fn read(&self, pages: impl Iterator<Item = usize>, page: &mut [u8]) -> io::Result<()> {
        for index in pages {
            self.file
                .read_exact_at(page, (index * page_size()) as u64)?;
        }
        Ok(())
    }

    fn read_mapped(&self, size: usize, pages: impl Iterator<Item = usize>) -> io::Result<()> {
        // Without advice: the kernel does not mark what was mapped for random or sequential access.
        read_mapped(&self.file, size, None, pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::team::Kind;

    #[test]
    fn either_order_and_access_reads_as_many_pages() {
        let directory = std::env::temp_dir();
        let team = Team {
            members: 2,
            kind: Kind::Threads,
            cpus: Vec::new(),
        };
        for access in [CacheAccess::Read, CacheAccess::Mapping] {
            for order in [Order::Streaming, Order::Reuse] {
                let load =
                    CacheReads::new(&directory, 32, 2, access, order, 3).expect("a file of pages");
                let used = load.run(&team).expect("pages");
                assert_eq!(used.work, 2 * 3 * 32, "{access:?} {order:?}");
            }
        }
    }
}
