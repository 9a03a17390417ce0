//! Threads that map, touch and unmap in one address space.

use std::io;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::param::page_size;

use super::Load;

/// Threads on the one address space.
const THREADS: usize = 4;
/// Rounds of one run, of all threads together.
const ROUNDS: u64 = 4096;
/// Rounds a thread takes at a time, so that the counter they share is not what they wait for.
const CHUNK: u64 = 16;

/// Four threads of one process, not pinned: each maps a page, touches it and unmaps it, again and again.
///
/// A round takes mmap_lock for writing twice and faults once; with as few as two CPUs most of the time is spent in or
/// before mmap_lock. All threads end within one chunk of each other.
#[derive(Debug, Default)]
pub struct SharedMappings;

impl Load for SharedMappings {
    fn events(&self) -> &'static str {
        "map, touch, unmap rounds"
    }

    fn run(&mut self) -> io::Result<u64> {
        let taken = AtomicU64::new(0);
        let work = || -> io::Result<()> {
            while taken.fetch_add(CHUNK, Ordering::Relaxed) < ROUNDS {
                for _ in 0..CHUNK {
                    map_and_unmap()?;
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| {
                let died = |_| Err(io::Error::other("a thread of the load panicked"));
                thread.join().unwrap_or_else(died)
            })
        })?;
        Ok(ROUNDS)
    }
}

/// Maps a page, touches it and unmaps it: two write acquisitions of our own mmap_lock.
fn map_and_unmap() -> io::Result<()> {
    let bytes = page_size();
    // SAFETY: a fresh private mapping that nobody else refers to, unmapped before the next.
    unsafe {
        let page = mmap_anonymous(
            null_mut(),
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )?;
        page.cast::<u8>().write_volatile(1);
        munmap(page, bytes)?;
    }
    Ok(())
}

/// Maps a page, touches it and unmaps it while `goes_on`; system calls made.
pub(super) fn map_while(goes_on: impl Fn() -> bool) -> io::Result<u64> {
    let mut calls = 0;
    while goes_on() {
        map_and_unmap()?;
        calls += 2;
    }
    Ok(calls)
}
