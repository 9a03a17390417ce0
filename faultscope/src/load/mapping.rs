//! Memory of a bench: any backing, begun at a huge-page boundary, unmapped with the value.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::{NonNull, null_mut};

/// Boundary at which a mapping begins: the size of a huge page of x86-64.
pub(super) const ALIGNMENT: usize = 2 << 20;

/// What is mapped.
#[derive(Debug, Clone, Copy)]
pub(super) enum Backed<'a> {
    /// Private anonymous memory.
    Anonymous,
    /// A file, private: a write copies.
    Private(&'a File),
    /// A file, shared: a write changes it.
    Shared(&'a File),
}

impl Backed<'_> {
    fn flags_and_file(self) -> (i32, i32) {
        match self {
            Self::Anonymous => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
            Self::Private(file) => (libc::MAP_PRIVATE, file.as_raw_fd()),
            Self::Shared(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        }
    }
}

/// A mapping of our own.
#[derive(Debug)]
pub(super) struct Mapping {
    reserved: NonNull<u8>,
    reserved_bytes: usize,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is owned by the value, and all access is through volatile words or system calls.
unsafe impl Send for Mapping {}
// SAFETY: as above; members touch parts of their own.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes`, readable and writable, untouched.
    pub(super) fn new(bytes: usize, backed: Backed<'_>) -> io::Result<Self> {
        let reserved_bytes = bytes + ALIGNMENT;
        // SAFETY: address space where the kernel likes; nobody can touch it.
        let reserved = unsafe {
            libc::mmap(
                null_mut(),
                reserved_bytes,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if reserved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let reserved = NonNull::new(reserved.cast::<u8>())
            .ok_or_else(|| io::Error::other("mmap returned null"))?;
        // SAFETY: at most one boundary further, which the reservation has room for.
        let start = unsafe { reserved.add(reserved.align_offset(ALIGNMENT)) };
        let mapping = Self {
            reserved,
            reserved_bytes,
            start,
            bytes,
        };
        mapping.map_part(0, bytes, backed, 0)?;
        Ok(mapping)
    }

    /// Maps a part anew, with `flags` on top; its pages are untouched afterwards, or populated if the flags say so.
    pub(super) fn map_part(
        &self,
        from: usize,
        bytes: usize,
        backed: Backed<'_>,
        flags: i32,
    ) -> io::Result<()> {
        assert!(from + bytes <= self.bytes, "inside the mapping");
        if bytes == 0 {
            return Ok(());
        }
        let (kind, file) = backed.flags_and_file();
        let offset = libc::off_t::try_from(from).map_err(io::Error::other)?;
        // SAFETY: replaces memory of this mapping only, which no reference points into.
        let mapped = unsafe {
            libc::mmap(
                self.start.as_ptr().add(from).cast(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                kind | libc::MAP_FIXED | flags,
                file,
                if file < 0 { 0 } else { offset },
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// First byte.
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// madvise(2) of a part.
    pub(super) fn advise(&self, from: usize, bytes: usize, advice: i32) -> io::Result<()> {
        assert!(from + bytes <= self.bytes, "inside the mapping");
        // SAFETY: our own memory, accessed by volatile words only.
        match unsafe { libc::madvise(self.start.as_ptr().add(from).cast(), bytes, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own reservation and all that was mapped into it.
        unsafe { libc::munmap(self.reserved.as_ptr().cast(), self.reserved_bytes) };
    }
}

/// Zeroed memory that processes forked from here share.
pub(super) fn map_shared(bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping where the kernel likes.
    let start = unsafe {
        libc::mmap(
            null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mmap returned null"))
}
