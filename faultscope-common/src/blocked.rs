//! Contended mmap_lock waits joined with whoever held the lock when the waiter arrived.

use bytemuck::{Pod, Zeroable};

/// `BlockedKey::holder_mode`: the lock was changing hands, so nobody is named.
pub const UNKNOWN: u8 = 0;
/// Held for write; the kernel names the holder.
pub const WRITER: u8 = 1;
/// Held for read, by the named thread and maybe others.
pub const READER: u8 = 2;
/// Held for read by threads that the kernel does not name.
pub const READERS: u8 = 3;

/// `BlockedKey::holder_syscall` where the holder's pairing slot does not tell.
pub const UNKNOWN_CALL: i32 = i32::MIN;

/// `BlockedKey::used` of a row in use.
pub const ROW_USED: u8 = 1;

/// Identity of a row: who waited where, for whom.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct BlockedKey {
    /// `ROW_USED`, and `lock::ROW_RETIRED` once user space gives it up; 0 is a free row.
    pub used: u8,
    /// `flags` READ or WRITE of the waiter.
    pub mode: u8,
    /// `UNKNOWN`, `WRITER`, `READER` or `READERS`.
    pub holder_mode: u8,
    /// Padding.
    pub _pad: u8,
    /// Waiting process.
    pub tgid: u32,
    /// System call of the waiter, as in `MmapKey`.
    pub syscall: i32,
    /// Stack slot + 1 of the waiter, 0 none.
    pub site: u32,
    /// Holding process, 0 unknown.
    pub holder: u32,
    /// Holding thread, 0 unknown.
    pub holder_tid: u32,
    /// System call of the hold, `UNKNOWN_CALL` if unknown.
    pub holder_syscall: i32,
    /// Stack slot + 1 of where the hold ended, 0 unknown.
    pub holder_site: u32,
    /// tgid of the mm's owner, 0 unknown.
    pub owner: u32,
    /// Padding.
    pub _tail: u32,
}
/// `BlockedKey` as words.
pub const KEY_WORDS: usize = size_of::<BlockedKey>() / 8;

/// One row; written only by `blocked_end` on its CPU.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct BlockedRow {
    /// Identity; its first word is written last.
    pub key: BlockedKey,
    /// Contended waits that ended.
    pub waits: u64,
    /// Their time, ns.
    pub wait_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// Name of the holding thread when the row was made; zeroes if unknown.
    pub comm: [u8; 16],
    /// Rounds the row up to whole cache lines.
    pub _tail: [u64; 6],
}
const _: () = assert!(size_of::<BlockedRow>().is_multiple_of(64));

/// The wait a thread is in, and for whom; `lock` 0 is none.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct Blocked {
    /// Address that `contention_end` will name.
    pub lock: u64,
    /// Start, monotonic ns.
    pub start_ns: u64,
    /// Identity so far; `holder_site` is known at the end.
    pub key: BlockedKey,
    /// `MmapHold::number` of the hold waited for, 0 unknown.
    pub hold: u64,
}
