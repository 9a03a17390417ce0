//! Plain arrays that the kernel shares with us, read in place.

use aya::maps::MapData;
use bytemuck::Pod;
use std::{
    io,
    marker::PhantomData,
    os::fd::AsFd,
    ptr::{NonNull, read_volatile, write_volatile},
};

/// A BPF array mapped into this process: no system call per row.
///
/// Minimum kernel 5.5 (`BPF_F_MMAPABLE`).
#[derive(Debug)]
pub struct Table<T> {
    base: NonNull<T>,
    rows: usize,
    bytes: usize,
    /// Keeps the map's descriptor open: programs loaded later refer to it.
    _data: MapData,
    _rows: PhantomData<T>,
}

// SAFETY: the mapping is owned by the value and words are read and written volatilely.
unsafe impl<T: Send> Send for Table<T> {}

impl<T: Pod> Table<T> {
    /// Maps the whole array of `rows` rows.
    ///
    /// # Errors
    /// What mmap(2) says, e.g. EPERM for an array that is not mmapable.
    pub fn map(data: MapData, rows: u32) -> io::Result<Self> {
        const { assert!(size_of::<T>().is_multiple_of(8), "rows are whole words") };
        let page = rustix::param::page_size();
        let rows = rows as usize;
        let bytes = (rows * size_of::<T>()).next_multiple_of(page);
        // SAFETY: a fresh shared mapping at an address the kernel chooses.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE,
                rustix::mm::MapFlags::SHARED,
                data.fd().as_fd(),
                0,
            )?
        };
        let base =
            NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mmap returned null"))?;
        Ok(Self {
            base,
            rows,
            bytes,
            _data: data,
            _rows: PhantomData,
        })
    }

    /// Rows of the array.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether the array has no rows; the kernel allows none such.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Bytes mapped.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// First word of a row, its tag; 0 past the end.
    #[must_use]
    pub fn tag(&self, row: usize) -> u64 {
        self.word(row, 0)
    }

    /// Word `word` of a row, 0 past the end.
    #[must_use]
    pub fn word(&self, row: usize, word: usize) -> u64 {
        if row >= self.rows || word >= size_of::<T>() / 8 {
            return 0;
        }
        // SAFETY: in bounds; the kernel writes aligned words, so none is torn.
        unsafe { read_volatile(self.base.add(row).cast::<u64>().add(word).as_ptr()) }
    }

    /// A copy of a row, word by word; zeroes past the end.
    #[must_use]
    pub fn read(&self, row: usize) -> T {
        let mut copy = T::zeroed();
        for (i, word) in bytemuck::cast_slice_mut::<T, u64>(std::slice::from_mut(&mut copy))
            .iter_mut()
            .enumerate()
        {
            *word = self.word(row, i);
        }
        copy
    }

    /// Writes word `word` of a row; nothing past the end.
    pub fn write_word(&self, row: usize, word: usize, value: u64) {
        if row < self.rows && word < size_of::<T>() / 8 {
            // SAFETY: in bounds and aligned.
            unsafe { write_volatile(self.base.add(row).cast::<u64>().add(word).as_ptr(), value) }
        }
    }

    /// Zeroes a row, its first word last: only then can a program claim it.
    pub fn free(&self, row: usize) {
        for word in (0..size_of::<T>() / 8).rev() {
            self.write_word(row, word, 0);
        }
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        // SAFETY: our own mapping, unmapped once.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping");
    }
}
