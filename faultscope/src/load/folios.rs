//! Folios of more than one page: the kernel's own counts of anonymous ones, and those behind a mapping.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::param::page_size;

use crate::host::system::SystemReader;

/// Size of a huge page, bytes: what one entry of a page-middle directory of x86-64 maps.
#[must_use]
pub const fn huge_page_bytes() -> usize {
    2 << 20
}

/// A reader of `hugepages-*/stats` (Linux 6.8) or, before, of `thp_fault_alloc` in `/proc/vmstat`.
#[derive(Debug)]
pub(super) struct Folios(SystemReader);

impl Folios {
    pub(super) fn open() -> Self {
        Self(SystemReader::open(Path::new("/")))
    }

    /// Folios given to anonymous faults of this machine so far: size in base pages, and number. `None` if the kernel
    /// does not count them.
    pub(super) fn read(&mut self) -> Option<Vec<(u64, u64)>> {
        let sample = self.0.read();
        let page_kib = (page_size() / 1024) as u64;
        let by_size: Vec<(u64, u64)> = sample
            .mthp
            .iter()
            .filter_map(|size| Some((size.size_kib / page_kib, size.get("anon_fault_alloc")?)))
            .collect();
        if !by_size.is_empty() {
            return Some(by_size);
        }
        let huge = sample.vmstat?.get("thp_fault_alloc")?;
        Some(vec![((huge_page_bytes() / page_size()) as u64, huge)])
    }
}

/// Bit of a page in `/proc/kpageflags` that is not the first of its folio (KPF_COMPOUND_TAIL,
/// include/uapi/linux/kernel-page-flags.h).
const TAIL: u32 = 16;
/// Bits of an entry of `/proc/self/pagemap` that number the page frame; zero without CAP_SYS_ADMIN.
const FRAME: u64 = (1 << 55) - 1;

/// Folios behind `pages` mapped base pages from `start` on; `None` where the kernel does not let us look.
pub(super) fn folios_behind(start: *const u8, pages: usize) -> Option<u64> {
    let pagemap = File::open("/proc/self/pagemap").ok()?;
    let flags = File::open("/proc/kpageflags").ok()?;
    let mut entries = vec![0_u8; pages * 8];
    let first = (start.addr() / page_size()) as u64;
    pagemap.read_exact_at(&mut entries, first * 8).ok()?;
    let mut folios = 0;
    for entry in entries.as_chunks::<8>().0 {
        let frame = u64::from_ne_bytes(*entry) & FRAME;
        if frame == 0 {
            return None;
        }
        let mut word = [0; 8];
        flags.read_exact_at(&mut word, frame * 8).ok()?;
        folios += u64::from(u64::from_ne_bytes(word) >> TAIL & 1 == 0);
    }
    Some(folios)
}
