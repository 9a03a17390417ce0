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
            // A new thread may have taken the row over meanwhile.
            if self.row(&row, &mut shares, delta)
                && maps.threads.word(slot, SEQUENCE_WORD) == row.sequence
            {
                maps.threads.free(slot);
                self.known.remove(&row.tag);
            }
        }
        let overflow = maps.overflow.entries()?;
        self.overflow_rows = overflow.len() as u64;
        for (tid, row) in overflow {
            if row.tag == 0 || row.sequence & 1 != 0 {
                // Being made or changing its identity; next tick.
                continue;
            }
            if self.row(&row, &mut shares, delta) {
                maps.overflow.remove(&tid);
                self.known.remove(&tid);
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
        let is_free = is_dead && was_dead && increment.is_zero();
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
        is_free
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

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable as _;

    fn row(tid: u64, writes: u64) -> ThreadRow {
        let mut row = ThreadRow::zeroed();
        row.tag = tid;
        row.start_ns = 100;
        row.leader_start_ns = 100;
        row.exec_and_tgid = tid << 32;
        row.mm = 0xffff_0000;
        row.memcg = 5;
        row.comm[..2].copy_from_slice(b"ab");
        row.columns.user[1] = writes;
        row
    }

    fn faults(delta: &Delta, tgid: u32) -> u64 {
        delta
            .processes
            .iter()
            .filter(|(id, _)| id.tgid == tgid)
            .map(|(_, p)| p.counters.faults())
            .sum()
    }

    fn read(threads: &mut Threads, row: &ThreadRow) -> (Delta, Shares, bool) {
        let (mut delta, mut shares) = (Delta::default(), Shares::new());
        let is_free = threads.row(row, &mut shares, &mut delta);
        (delta, shares, is_free)
    }

    #[test]
    fn a_row_gives_its_increments_once() {
        let mut threads = Threads::default();
        assert_eq!(faults(&read(&mut threads, &row(7, 10)).0, 7), 10);
        assert_eq!(faults(&read(&mut threads, &row(7, 14)).0, 7), 4);
        assert_eq!(faults(&read(&mut threads, &row(7, 14)).0, 7), 0);
    }

    #[test]
    fn an_exec_between_two_reads_loses_and_doubles_nothing() {
        for is_read_first in [true, false] {
            let mut threads = Threads::default();
            read(&mut threads, &row(7, 10));
            // 5 more as the old identity, then a new generation with 3.
            let old = row(7, 15);
            let mut new = row(7, 3);
            new.generation = 1;
            new.exec_and_tgid |= 1;
            new.memcg = 6;
            let key = RetiredKey {
                tid: 7,
                start_ns: 100,
                generation: 0,
            };
            let (mut delta, mut shares) = (Delta::default(), Shares::new());
            if is_read_first {
                threads.row(&new, &mut shares, &mut delta);
                threads.retire(&key, &old, &mut delta);
            } else {
                // The thread changes after its row was read in this tick.
                threads.retire(&key, &old, &mut delta);
                threads.row(&new, &mut shares, &mut delta);
            }
            assert_eq!(delta.cgroups[&5].counters.faults(), 5, "{is_read_first}");
            assert_eq!(delta.cgroups[&6].counters.faults(), 3, "{is_read_first}");
        }
    }

    #[test]
    fn a_dead_row_is_freed_only_after_a_quiet_interval() {
        let mut threads = Threads::default();
        let mut dying = row(7, 10);
        dying.flags = DEAD;
        assert!(!read(&mut threads, &dying).2, "first seen dead");
        dying.columns.user[1] = 12;
        let (delta, _, is_free) = read(&mut threads, &dying);
        assert!(
            !is_free && faults(&delta, 7) == 2,
            "faults of exit_mm still count"
        );
        assert!(read(&mut threads, &dying).2, "quiet since the last reading");
    }

    #[test]
    fn shares_move_to_the_map_without_being_counted_twice() {
        let mut threads = Threads::default();
        let (_, shares, _) = read(&mut threads, &row(7, 10));
        assert_eq!(shares.values().sum::<i64>(), 10);
        // Moved to CPU 1: the 10 were flushed into the map (whose increment the map gives).
        let mut moved = row(7, 16);
        moved.cpu = 1;
        moved.flushed = 10;
        let (_, shares, _) = read(&mut threads, &moved);
        let by_cpu: Vec<(u32, i64)> = shares.iter().map(|(k, n)| (k.cpu, *n)).collect();
        assert_eq!(by_cpu, [(0, -10), (1, 6)]);
    }

    #[test]
    fn a_hostile_name_is_scrubbed_where_it_is_read() {
        let mut threads = Threads::default();
        let mut hostile = row(7, 1);
        hostile.comm = *b"a\x1b]52;c;x\x07\xff\xfe\0\0\0\0";
        let (delta, _, _) = read(&mut threads, &hostile);
        let comm = &delta.threads.values().next().expect("one thread").comm;
        assert!(comm.chars().all(|c| !c.is_control()), "{comm:?}");
    }
}
