//! Pages read again from the page cache.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::param::page_size;

use super::Load;
use super::memory::Region;

/// Pages of the file.
const PAGES: usize = 256;

/// 256 pages written to a file in memory and read again twice, which moves each to the active list.
///
/// With multi-generational LRU in use the kernel activates nothing there.
#[derive(Debug)]
pub struct Rereads {
    file: File,
    content: Vec<u8>,
    drain: Region,
}

impl Rereads {
    /// Makes the file, which has no name and goes with the value.
    ///
    /// # Errors
    /// What memfd_create(2) or mmap(2) says.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            file: memfd_create("faultscope-load", MemfdFlags::CLOEXEC)?.into(),
            content: vec![1; PAGES * page_size()],
            drain: Region::new(1)?,
        })
    }
}

impl Load for Rereads {
    fn events(&self) -> &'static str {
        "LRU activations"
    }

    fn run(&mut self) -> io::Result<u64> {
        self.file.write_all_at(&self.content, 0)?;
        // A folio still in a batch would be marked active there, without the tracepoint.
        self.drain.discard()?;
        let mut byte = [0];
        for _ in 0..2 {
            for offset in (0..self.content.len()).step_by(page_size()) {
                self.file.read_exact_at(&mut byte, offset as u64)?;
            }
        }
        self.drain.discard()?;
        self.file.set_len(0)?;
        Ok(PAGES as u64)
    }
}
