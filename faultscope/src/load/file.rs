//! Pages of a file on a disk, read until the page cache has no room for them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::param::page_size;

use super::Load;

/// A new file in `directory` that has lost its name.
pub(super) fn nameless(directory: &Path) -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!("faultscope-load-{}-{n}", std::process::id()));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}

/// A file read whole by read(2) and then, from its end, through a mapping.
///
/// In a memory cgroup with a limit below its size every run reclaims its pages and reads them from the disk again.
#[derive(Debug)]
pub struct FileReads {
    file: File,
    pages: usize,
}

impl FileReads {
    /// Writes a file of `pages` pages at `path`, which must be new, and takes its name away.
    ///
    /// # Errors
    /// What the file system says.
    pub fn new(path: &Path, pages: usize) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        fs::remove_file(path)?;
        fill(&file, pages)?;
        Ok(Self { file, pages })
    }
}

/// Writes `pages` pages, all of them clean afterwards: only those can be reclaimed at once.
///
/// They are cleaned as they come. In a memory cgroup with less room than the file, dirty pages alone would fill it before
/// the kernel's own writeback begins, and the writer be killed.
pub(super) fn fill(file: &File, pages: usize) -> io::Result<()> {
    const DIRTY: usize = 256;
    let page = vec![1; page_size()];
    for index in 0..pages {
        file.write_all_at(&page, (index * page_size()) as u64)?;
        if index % DIRTY == DIRTY - 1 {
            file.sync_data()?;
        }
    }
    file.sync_all()
}

/// Maps `size` pages of a file that nobody shortens, reads a byte of each of `pages`, and unmaps it.
pub(super) fn read_mapped(
    file: &File,
    size: usize,
    advice: Option<Advice>,
    pages: impl Iterator<Item = usize>,
) -> io::Result<()> {
    let bytes = size * page_size();
    // SAFETY: a fresh mapping, which no reference points into.
    unsafe {
        let start = mmap(
            null_mut(),
            bytes,
            ProtFlags::READ,
            MapFlags::SHARED,
            file,
            0,
        )?;
        if let Some(advice) = advice {
            madvise(start, bytes, advice)?;
        }
        for index in pages {
            let _byte = start.cast::<u8>().add(index * page_size()).read_volatile();
        }
        munmap(start, bytes)?;
    }
    Ok(())
}

/// Name of the file system at `path`, or its magic number in hexadecimal; `an unknown file system` if it cannot be
/// asked.
#[must_use]
pub fn file_system(path: &Path) -> String {
    let Ok(found) = rustix::fs::statfs(path) else {
        return "an unknown file system".to_owned();
    };
    // include/uapi/linux/magic.h
    let name = match found.f_type {
        0xef53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0x0102_1994 => "tmpfs",
        0x8584_58f6 => "ramfs",
        0x794c_7630 => "overlayfs",
        0xf2f5_2010 => "f2fs",
        magic => return format!("file system {magic:#x}"),
    };
    name.to_owned()
}

/// Whether files in `directory` have pages that the kernel can give up when memory is short.
///
/// # Errors
/// `Unsupported` for a file system in memory, whose pages are the only copy.
pub fn on_disk(directory: &Path) -> io::Result<()> {
    let name = file_system(directory);
    match name.as_str() {
        "tmpfs" | "ramfs" => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!(
                "files in \"{}\" are on {name}, in memory, so that their pages cannot be given up; name a directory on a disk",
                crate::name::scrub(directory.as_os_str().as_encoded_bytes())
            ),
        )),
        _ => Ok(()),
    }
}

impl Load for FileReads {
    fn events(&self) -> &'static str {
        "pages read"
    }

    fn run(&mut self) -> io::Result<u64> {
        let mut page = vec![0; page_size()];
        for index in 0..self.pages {
            self.file
                .read_exact_at(&mut page, (index * page_size()) as u64)?;
        }
        let backwards = (0..self.pages).rev();
        read_mapped(&self.file, self.pages, Some(Advice::Random), backwards)?;
        // SAFETY: advice on a descriptor of ours.
        match unsafe { libc::posix_fadvise(self.file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }
        {
            0 => Ok(2 * self.pages as u64),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}
