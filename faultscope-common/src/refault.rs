//! Ranges given back by madvise, and faults on them soon after.

use crate::latency::SLOTS;
use bytemuck::{Pod, Zeroable};

/// `MADV_DONTNEED` (include/uapi/asm-generic/mman-common.h).
pub const DONTNEED: i32 = 4;
/// `MADV_FREE`.
pub const FREE: i32 = 8;
/// `MADV_PAGEOUT`.
pub const PAGEOUT: i32 = 21;
/// `MADV_DONTNEED_LOCKED`.
pub const DONTNEED_LOCKED: i32 = 24;

/// Whether memory is given back by this advice.
#[must_use]
#[inline(always)]
pub const fn is_given_back(advice: i32) -> bool {
    matches!(advice, DONTNEED | FREE | PAGEOUT | DONTNEED_LOCKED)
}

/// Bits of an address within a granule of each level: 128 KiB, 4 MiB, everything (a process has 2^56 bytes at most).
pub const LEVELS: [u32; 3] = [17, 22, 56];
/// Most granules a range may touch on its level; it is kept under each, on the lowest level with so few.
pub const GRANULES: u64 = 2;
/// Rows of `GIVEN`; a power of two.
pub const GIVEN_SETS: u32 = 2048;
/// Ranges of one row of `GIVEN`; a power of two.
pub const WAYS: usize = 8;
/// Rows of `REFAULTS` for each CPU; a power of two.
pub const REFAULT_ROWS: u32 = 64;
/// Ranges of one process_madvise call that are followed.
pub const VECTOR: u64 = 4;

/// Ranges whose address space and granule hash alike.
///
/// Each array is one cache line, so that a fault of an address space without ranges reads one line of each row.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct GivenSet {
    /// Address of the mm, 0 free; an identity, never shown.
    pub mm: [u64; WAYS],
    /// Odd while the range is written.
    pub sequence: [u64; WAYS],
    /// First byte.
    pub start: [u64; WAYS],
    /// Byte after the last.
    pub end: [u64; WAYS],
    /// When the call returned, monotonic ns.
    pub at_ns: [u64; WAYS],
    /// start_time of the mm's owner, ns: tells a reused mm.
    pub owner_start_ns: [u64; WAYS],
    /// Row the range belongs to, see [`refault_tag`].
    pub tag: [u64; WAYS],
    /// Ranges written so far, in the first word: the next takes the place of the one written first.
    pub written: [u64; WAYS],
}
const _: () = assert!(size_of::<GivenSet>().is_multiple_of(64));

/// Packs who gave back and how: the process, the advice, and whether by process_madvise. Never 0.
#[must_use]
#[inline(always)]
pub const fn refault_tag(tgid: u32, advice: i32, is_remote: bool) -> u64 {
    (tgid as u64) << 32 | (advice as u64 & 0xff) << 8 | (is_remote as u64) << 1 | 1
}

/// What [`refault_tag`] packed.
#[must_use]
pub const fn unpack_refault_tag(tag: u64) -> (u32, i32, bool) {
    (
        (tag >> 32) as u32,
        (tag >> 8 & 0xff) as i32,
        tag >> 1 & 1 != 0,
    )
}

/// Counts of one process and advice on one CPU, written only on that CPU.
///
/// `tag` is claimed by compare-and-exchange; user space frees the row.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct RefaultRow {
    /// [`refault_tag`], 0 free, [`RETIRED_REFAULT`] about to be freed.
    pub tag: u64,
    /// Ranges given back.
    pub ranges: u64,
    /// Their bytes, whole pages.
    pub bytes: u64,
    /// Bytes of ranges that were not kept to the end of their window, or not at all.
    pub lost_bytes: u64,
    /// Faults on a page not present, inside a range and its window.
    pub refaults: u64,
    /// Time from the return of the call to the fault, sum, ns.
    pub ns: u64,
    /// The same by bucket of `latency`; wraps.
    pub histogram: [u32; SLOTS],
    /// Rounds the row up to whole cache lines.
    pub _pad: [u64; 2],
}
const _: () = assert!(size_of::<RefaultRow>().is_multiple_of(64));

/// Tag of a row that no program matches any more.
pub const RETIRED_REFAULT: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_gives_back_what_went_in() {
        for (tgid, advice, is_remote) in [
            (1, DONTNEED, false),
            (u32::MAX >> 1, PAGEOUT, true),
            (7, DONTNEED_LOCKED, false),
        ] {
            let tag = refault_tag(tgid, advice, is_remote);
            assert_eq!(unpack_refault_tag(tag), (tgid, advice, is_remote));
            assert!(tag != 0 && tag != RETIRED_REFAULT);
        }
    }
}
