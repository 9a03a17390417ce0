//! Contended waits for an mmap_lock by waiter and holder.

use std::sync::Arc;

/// How the lock was held when a waiter arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Held {
    /// It was changing hands.
    #[default]
    Unknown,
    /// For write.
    Write,
    /// For read, by the thread named and maybe others.
    Read,
    /// For read, by threads that the kernel does not name.
    Readers,
}

/// Identity of contended waits for an mmap_lock: who waited where, for whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockedId {
    /// Waiting process.
    pub tgid: u32,
    /// System call of the waiter, as in `TakerId`.
    pub syscall: i32,
    /// The waiter wants it for write.
    pub is_write: bool,
    /// Call chain slot + 1 of the waiter, 0 none.
    pub site: u32,
    /// How it was held.
    pub held: Held,
    /// Process that held it, 0 unknown.
    pub holder: u32,
    /// Thread that held it, 0 unknown.
    pub holder_tid: u32,
    /// Its name, scrubbed; empty if unknown.
    pub holder_comm: Arc<str>,
    /// System call of the hold, `None` if unknown.
    pub holder_syscall: Option<i32>,
    /// Call chain slot + 1 of where the hold ended, 0 unknown.
    pub holder_site: u32,
    /// Process that owns the mm, 0 unknown.
    pub owner: u32,
}

/// Contended waits of one waiter for one holder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockedWaits {
    /// Waits that ended.
    pub waits: u64,
    /// Their time, ns.
    pub wait_ns: u64,
    /// Longest since attach, ns.
    pub max_ns: u64,
}
