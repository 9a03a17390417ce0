//! Thread rows: increments by thread, process, cgroup and address space.

use super::rows;
use crate::{
    bpf::Maps,
    name::scrub,
    sample::{
        Counters, Delta, Scope,
        delta::{Process, ProcessId, Thread, ThreadId},
    },
};
use faultscope_common::thread::{DEAD, RetiredKey, SpaceKey, ThreadRow};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// Words before the columns of a row, by position.
const SEQUENCE_WORD: usize = std::mem::offset_of!(ThreadRow, sequence) / 8;

/// What was last read of a row.
#[derive(Debug)]
struct Known {
    start_ns: u64,
    generation: u64,
    counters: Counters,
    comm_bytes: [u8; 16],
    comm: Arc<str>,
    space: SpaceKey,
    unflushed: u64,
    is_dead: bool,
}

/// Faults of one address space by CPU, since attach; signed because a row's
/// share may move into the map between two reads.
type Shares = BTreeMap<SpaceKeyOrd, i64>;

/// `SpaceKey` in an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SpaceKeyOrd {
    mm: u64,
    start_ns: u64,
    cpu: u32,
    tgid: u32,
}

impl From<SpaceKey> for SpaceKeyOrd {
    fn from(k: SpaceKey) -> Self {
        Self {
            mm: k.mm,
            start_ns: k.leader_start_ns,
            cpu: k.cpu,
            tgid: k.tgid,
        }
    }
}

/// Reads thread rows and remembers what was read.
#[derive(Debug, Default)]
pub(super) struct Threads {
    known: HashMap<u64, Known>,
    retired: HashMap<(u64, u64, u64), Counters>,
    spaces: HashMap<(u64, u64, u32), (u64, u32)>,
    /// Rows read last, for the map fill.
    pub(super) rows: u64,
    /// Rows in the fall-back map.
    pub(super) overflow_rows: u64,
}

impl Threads {
    /// Adds the increments since the last call to `delta`, and frees the rows of
    /// threads that were dead at the last call already.
    pub(super) fn collect(
        &mut self,
        maps: &mut Maps,
        delta: &mut Delta,
    ) -> Result<(), crate::bpf::MapError> {
        let mut shares = Shares::new();
        // Levels are those of the last reading of an interval.
        delta.processes.values_mut().for_each(|p| p.threads = 0);
        delta.cgroups.values_mut().for_each(|c| c.threads = 0);
        self.space_map(maps, &mut shares)?;
        self.rows = 0;
        for slot in 0..maps.threads.len() {
            if maps.threads.tag(slot) == 0 {
                continue;
            }
            self.rows += 1;
            let Some(row) = read_steady(maps, slot) else {
                continue;
            };
            if self.row(&row, &mut shares, delta) {
                maps.threads.free(slot);
            }
        }
        let overflow = maps.overflow.entries()?;
        self.overflow_rows = overflow.len() as u64;
        for (tid, row) in overflow {
            if self.row(&row, &mut shares, delta) {
                maps.overflow.remove(&tid);
            }
        }
        for (key, row) in maps.retired.entries()? {
            self.retire(&key, &row, delta);
            maps.retired.remove(&key);
        }
        add_spaces(&shares, delta);
        Ok(())
    }

    /// One row; true if it is to be freed.
    fn row(&mut self, row: &ThreadRow, shares: &mut Shares, delta: &mut Delta) -> bool {
        let now = rows::thread(&row.columns);
        let unflushed = now.faults().saturating_sub(row.flushed);
        let space = SpaceKey {
            mm: row.mm,
            leader_start_ns: row.leader_start_ns,
            cpu: row.cpu,
            tgid: tgid(row),
        };
        let is_dead = row.flags & DEAD != 0;
        let mut increment = now;
        let mut was_dead = false;
        let mut comm = None;
        if let Some(before) = self.known.remove(&row.tag) {
            if before.unflushed > 0 {
                *shares.entry(before.space.into()).or_default() -=
                    i64::try_from(before.unflushed).unwrap_or(0);
            }
            if before.start_ns == row.start_ns && before.generation == row.generation {
                increment = now.since(&before.counters);
                was_dead = before.is_dead;
            } else {
                // The rest of the old identity comes through the map of old rows.
                self.retired.insert(
                    (row.tag, before.start_ns, before.generation),
                    before.counters,
                );
            }
            if before.comm_bytes == row.comm {
                comm = Some(before.comm);
            }
        }
        if unflushed > 0 {
            *shares.entry(space.into()).or_default() += i64::try_from(unflushed).unwrap_or(0);
        }
        let comm = comm.unwrap_or_else(|| name(&row.comm));
        attribute(row, &comm, &increment, !is_dead, delta);
        // A row stays for one more interval after its thread died: faults of
        // exit_mm follow sched_process_exit on newer kernels.
        if is_dead && was_dead && increment.is_zero() {
            return true;
        }
        self.known.insert(
            row.tag,
            Known {
                start_ns: row.start_ns,
                generation: row.generation,
                counters: now,
                comm_bytes: row.comm,
                comm,
                space,
                unflushed,
                is_dead,
            },
        );
        false
    }

    /// The last values of an identity a thread no longer has.
    fn retire(&mut self, key: &RetiredKey, row: &ThreadRow, delta: &mut Delta) {
        let now = rows::thread(&row.columns);
        let before = self
            .retired
            .remove(&(key.tid, key.start_ns, key.generation))
            .or_else(|| {
                // The thread changed after its row was read in this tick.
                let known = self.known.get_mut(&key.tid)?;
                if known.start_ns != key.start_ns || known.generation != key.generation {
                    return None;
                }
                known.generation += 1;
                Some(std::mem::take(&mut known.counters))
            })
            .unwrap_or_default();
        attribute(row, &name(&row.comm), &now.since(&before), false, delta);
    }

    /// Increments of the map of address-space shares; drops those of the dead.
    fn space_map(
        &mut self,
        maps: &mut Maps,
        shares: &mut Shares,
    ) -> Result<(), crate::bpf::MapError> {
        /// Ticks without a change before an entry is dropped.
        const IDLE_TICKS: u32 = 30;
        let alive: std::collections::HashSet<u64> = self
            .known
            .values()
            .map(|k| k.space.leader_start_ns)
            .collect();
        for (key, total) in maps.spaces.entries()? {
            let id = (key.mm, key.leader_start_ns, key.cpu);
            let (before, idle) = self.spaces.get(&id).copied().unwrap_or_default();
            let increment = total.saturating_sub(before);
            if increment == 0 && idle >= IDLE_TICKS && !alive.contains(&key.leader_start_ns) {
                maps.spaces.remove(&key);
                self.spaces.remove(&id);
                continue;
            }
            let idle = if increment == 0 { idle + 1 } else { 0 };
            self.spaces.insert(id, (total, idle));
            if increment > 0 {
                *shares.entry(key.into()).or_default() += i64::try_from(increment).unwrap_or(0);
            }
        }
        Ok(())
    }

    /// Entries in the map of address-space shares.
    pub(super) fn space_entries(&self) -> u64 {
        self.spaces.len() as u64
    }
}

fn tgid(row: &ThreadRow) -> u32 {
    u32::try_from(row.exec_and_tgid >> 32).unwrap_or(0)
}

/// A row read while its identity did not change; `None` after four tries.
fn read_steady(maps: &Maps, slot: usize) -> Option<ThreadRow> {
    for _ in 0..4 {
        let row = maps.threads.read(slot);
        let after = maps.threads.word(slot, SEQUENCE_WORD);
        if row.sequence & 1 == 0 && row.sequence == after && row.sequence != 0 {
            return Some(row);
        }
    }
    None
}

fn name(comm: &[u8; 16]) -> Arc<str> {
    let end = comm.iter().position(|b| *b == 0).unwrap_or(comm.len());
    scrub(&comm[..end]).into()
}

fn attribute(
    row: &ThreadRow,
    comm: &Arc<str>,
    increment: &Counters,
    is_alive: bool,
    delta: &mut Delta,
) {
    let tid = u32::try_from(row.tag).unwrap_or(0);
    let process = ProcessId {
        tgid: tgid(row),
        start_ns: row.leader_start_ns,
    };
    let entry: &mut Process = delta.processes.entry(process).or_default();
    entry.cgroup = row.memcg;
    entry.threads += u64::from(is_alive);
    if tid == process.tgid {
        entry.comm = Arc::clone(comm);
    }
    entry.counters += increment;
    let cgroup = delta.cgroups.entry(row.memcg).or_default();
    cgroup.threads += u64::from(is_alive);
    cgroup.counters += increment;
    if increment.is_zero() {
        return;
    }
    let id = ThreadId {
        tid,
        start_ns: row.start_ns,
    };
    delta
        .threads
        .entry(id)
        .and_modify(|t| {
            t.counters += increment;
            t.cgroup = row.memcg;
            t.comm = Arc::clone(comm);
        })
        .or_insert_with(|| Thread {
            process,
            comm: Arc::clone(comm),
            cgroup: row.memcg,
            counters: *increment,
        });
    let space = delta.spaces.entry(row.mm).or_default();
    space.process = Some(process);
    space.window_faults += increment[Scope::WindowFaults];
    space.window_handoffs += increment[Scope::WindowHandoffs];
    space.rss += increment[Scope::Rss];
}

fn add_spaces(shares: &Shares, delta: &mut Delta) {
    for (key, n) in shares {
        if let Ok(n @ 1..) = u64::try_from(*n) {
            let space = delta.spaces.entry(key.mm).or_default();
            space.process.get_or_insert(ProcessId {
                tgid: key.tgid,
                start_ns: key.start_ns,
            });
            *space.by_cpu.entry(key.cpu).or_default() += n;
        }
    }
    delta.spaces.retain(|_, space| !space.by_cpu.is_empty());
}
