//! Entries of the dictionaries.

use crate::{
    sample::{
        Spinlock,
        blocked::{BlockedId, Held},
        counters::LOCK_CLASSES,
        delta::{LockId, ProcessId, TakerId, ThreadId},
    },
    store::codec::{Cache, Caches, Codec, Entry, Fault, Record, Text, damaged},
};

macro_rules! entry {
    ($type:ty, $field:ident) => {
        impl Entry for $type {
            fn cache(caches: &mut Caches) -> &mut Cache<Self> {
                &mut caches.$field
            }
        }
    };
}

/// A thread under a name and in a cgroup.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::store) struct ThreadKey {
    pub(super) id: ThreadId,
    pub(super) process: ProcessId,
    pub(super) comm: Text,
    pub(super) cgroup: u64,
}

impl Default for ThreadKey {
    fn default() -> Self {
        Self {
            id: ThreadId {
                tid: 0,
                start_ns: 0,
            },
            process: NO_PROCESS,
            comm: Text::default(),
            cgroup: 0,
        }
    }
}

const NO_PROCESS: ProcessId = ProcessId {
    tgid: 0,
    start_ns: 0,
};

impl Record for ThreadKey {
    const TABLE: &'static str = "thread_id";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.small(&mut self.id.tid)?;
        c.reading(&mut self.id.start_ns)?;
        c.small(&mut self.process.tgid)?;
        c.reading(&mut self.process.start_ns)?;
        c.text(&mut self.comm)?;
        c.word(&mut self.cgroup)
    }
}

entry!(ThreadKey, threads);

/// A process under a name and in a cgroup.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::store) struct ProcessKey {
    pub(super) id: ProcessId,
    pub(super) comm: Text,
    pub(super) cgroup: u64,
}

impl Default for ProcessKey {
    fn default() -> Self {
        Self {
            id: NO_PROCESS,
            comm: Text::default(),
            cgroup: 0,
        }
    }
}

impl Record for ProcessKey {
    const TABLE: &'static str = "process_id";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.small(&mut self.id.tgid)?;
        c.reading(&mut self.id.start_ns)?;
        c.text(&mut self.comm)?;
        c.word(&mut self.cgroup)
    }
}

entry!(ProcessKey, processes);

/// An address space.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(in crate::store) struct SpaceKey {
    pub(super) mm: u64,
    pub(super) process: Option<ProcessId>,
}

impl Record for SpaceKey {
    const TABLE: &'static str = "mm_id";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.word(&mut self.mm)?;
        let mut tgid = self.process.map(|p| p.tgid);
        let mut start = self.process.map(|p| p.start_ns);
        c.opt_small(&mut tgid)?;
        c.opt_reading(&mut start)?;
        self.process = match (tgid, start) {
            (Some(tgid), Some(start_ns)) => Some(ProcessId { tgid, start_ns }),
            (None, None) => None,
            _ => return Err(damaged("a process is half there")),
        };
        Ok(())
    }
}

entry!(SpaceKey, spaces);

/// A taker of an mmap_lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::store) struct TakerKey {
    pub(super) id: TakerId,
    pub(super) owner: u32,
}

impl Default for TakerKey {
    fn default() -> Self {
        Self {
            id: TakerId {
                mm: 0,
                tgid: 0,
                syscall: 0,
                is_write: false,
            },
            owner: 0,
        }
    }
}

impl Record for TakerKey {
    const TABLE: &'static str = "taker_id";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.word(&mut self.id.mm)?;
        c.small(&mut self.id.tgid)?;
        c.small(&mut self.id.syscall)?;
        c.flag(&mut self.id.is_write)?;
        c.small(&mut self.owner)
    }
}

entry!(TakerKey, takers);

/// A contended lock or call site.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::store) struct LockKey {
    pub(super) id: LockId,
    pub(super) address: u64,
}

impl Default for LockKey {
    fn default() -> Self {
        Self {
            id: LockId {
                is_site: false,
                class: 0,
                mode: 0,
                node: 0,
                id: 0,
                memcg: 0,
                stack: 0,
                owner: 0,
            },
            address: 0,
        }
    }
}

impl Record for LockKey {
    const TABLE: &'static str = "lock_id";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.flag(&mut self.id.is_site)?;
        c.index(&mut self.id.class, LOCK_CLASSES)?;
        c.small(&mut self.id.mode)?;
        c.small(&mut self.id.node)?;
        c.word(&mut self.id.id)?;
        c.word(&mut self.id.memcg)?;
        c.small(&mut self.id.stack)?;
        c.small(&mut self.id.owner)?;
        c.word(&mut self.address)
    }
}

entry!(LockKey, locks);

/// A waiter for an mmap_lock and who held it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::store) struct BlockedKey(pub(super) BlockedId);

impl Default for BlockedKey {
    fn default() -> Self {
        Self(BlockedId {
            tgid: 0,
            syscall: 0,
            is_write: false,
            site: 0,
            held: Held::Unknown,
            holder: 0,
            holder_tid: 0,
            holder_comm: Text::default(),
            holder_syscall: None,
            holder_site: 0,
            owner: 0,
        })
    }
}

/// In the order of their numbers in the file.
const HELD: [Held; 4] = [Held::Unknown, Held::Write, Held::Read, Held::Readers];

impl Record for BlockedKey {
    const TABLE: &'static str = "blocked_id";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        let id = &mut self.0;
        c.small(&mut id.tgid)?;
        c.small(&mut id.syscall)?;
        c.flag(&mut id.is_write)?;
        c.small(&mut id.site)?;
        let mut held = HELD.iter().position(|h| *h == id.held).unwrap_or_default();
        c.index(&mut held, HELD.len())?;
        id.held = HELD[held];
        c.small(&mut id.holder)?;
        c.small(&mut id.holder_tid)?;
        c.text(&mut id.holder_comm)?;
        c.opt_small(&mut id.holder_syscall)?;
        c.small(&mut id.holder_site)?;
        c.small(&mut id.owner)
    }
}

entry!(BlockedKey, blocked);

/// Which spinlock waits are seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(in crate::store) struct SpinlockKey(pub(super) Spinlock);

impl Record for SpinlockKey {
    const TABLE: &'static str = "spinlock";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.opt_text(&mut self.0.mode)?;
        c.flag(&mut self.0.is_exact)?;
        c.own_text(&mut self.0.sentence)
    }
}

entry!(SpinlockKey, spinlocks);
