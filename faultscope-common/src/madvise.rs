//! madvise and process_madvise by process and advice.

use bytemuck::{Pod, Zeroable};

/// x86-64 number of madvise(2).
pub const NR_MADVISE: u64 = 28;
/// x86-64 number of process_madvise(2).
pub const NR_PROCESS_MADVISE: u64 = 440;
/// Advice of calls whose value is none the kernel knows (0 to 127).
pub const UNKNOWN_ADVICE: i32 = -1;

/// Identity of a row.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct MadviseKey {
    /// Calling process.
    pub tgid: u32,
    /// Advice as in madvise(2), or `UNKNOWN_ADVICE`.
    pub advice: i32,
    /// `NR_MADVISE` or `NR_PROCESS_MADVISE`.
    pub call: u32,
    /// Padding.
    pub _pad: u32,
}

/// Counts of a row; atomic adds, as the threads of a process share it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub struct MadviseRow {
    /// Calls that returned.
    pub calls: u64,
    /// Calls that returned an error.
    pub failures: u64,
    /// Bytes of successful calls.
    pub bytes: u64,
    /// Time in calls, ns.
    pub ns: u64,
    /// Longest call, ns.
    pub max_ns: u64,
}
