//! What the command of a recording did to mmap_lock, madvise and the LRU, told from the rest of the machine where the
//! kernel's side can be told apart.

use std::collections::BTreeSet;

use super::{Model, TableId, Value, field};
use crate::sample::{
    counters::{LRU_LOCK, MMAP_LOCK},
    delta::FALL_BACK,
};

/// `LockId::mode` of a wait for read and for write.
const READ: u8 = 2;
const WRITE: u8 = 4;

/// Contended waits and holds of a lock in one mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Side {
    /// Contended waits.
    pub waits: u64,
    /// Their time, ns.
    pub wait_ns: u64,
    /// Holds.
    pub holds: u64,
    /// Their time, ns.
    pub hold_ns: u64,
}

/// Waits of one process for another.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocked {
    /// The waiter's process, its system call and the mode it wanted.
    pub waiter: String,
    /// The holder's process, thread, system call and mode, as far as known.
    pub holder: String,
    /// The holder is known and none of the process that the lock belongs to.
    pub is_outside: bool,
    /// Waits.
    pub waits: u64,
    /// Their time, ns.
    pub wait_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
}

/// The model of a whole recording, seen from its command. Signals that are missing read 0: who asks looks first.
#[derive(Debug)]
pub struct Command<'a> {
    model: &'a Model,
    /// The command's processes.
    tgids: BTreeSet<u32>,
}

impl<'a> Command<'a> {
    /// The command is what a recording marked, with all its descendants.
    #[must_use]
    pub fn of(model: &'a Model) -> Self {
        let own = model.delta().processes.iter();
        Self {
            model,
            tgids: own
                .filter(|(_, process)| process.is_workload)
                .map(|(id, _)| id.tgid)
                .collect(),
        }
    }

    /// mmap_lock of the command's address spaces for read and for write, whoever took it.
    #[must_use]
    pub fn mmap_lock(&self) -> [Side; 2] {
        let delta = self.model.delta();
        let mut sides = [Side::default(); 2];
        for (id, lock) in &delta.locks {
            if id.is_site || id.class != MMAP_LOCK || !self.tgids.contains(&id.owner) {
                continue;
            }
            let side = match id.mode {
                READ => 0,
                WRITE => 1,
                _ => continue,
            };
            sides[side].waits += lock.waits;
            sides[side].wait_ns += lock.wait_ns;
        }
        for (id, taker) in &delta.takers {
            if self.tgids.contains(&taker.owner) {
                let side = &mut sides[usize::from(id.is_write)];
                side.holds += taker.taken;
                side.hold_ns += taker.hold_ns;
            }
        }
        sides
    }

    /// Faults on memory that the command gave back by this advice, and bytes of it that were not followed.
    #[must_use]
    pub fn refaults(&self, advice: i32) -> (u64, u64) {
        let rows = self.model.delta().refaults.iter();
        rows.filter(|(id, _)| id.advice == advice && self.tgids.contains(&id.tgid))
            .fold((0, 0), |(refaults, lost), (_, row)| {
                (refaults + row.refaults, lost + row.lost_bytes)
            })
    }

    /// The command's calls with this advice and their time, ns.
    #[must_use]
    pub fn advices(&self, advice: i32) -> (u64, u64) {
        let rows = self.model.delta().madvise.iter();
        rows.filter(|(id, _)| id.advice == advice && self.tgids.contains(&id.tgid))
            .fold((0, 0), |(calls, ns), (_, row)| {
                (calls + row.calls, ns + row.ns)
            })
    }

    /// Faults of the command that began under the VMA lock and were done under mmap_lock.
    #[must_use]
    pub fn fall_backs(&self) -> u64 {
        let rows = self.model.delta().process_passes.iter();
        rows.filter(|(tgid, _)| self.tgids.contains(tgid))
            .map(|(_, row)| row.paths[FALL_BACK])
            .sum()
    }

    /// Who waited for mmap_lock of the command's address spaces, and for whom: waits for other processes first, then
    /// the longest.
    #[must_use]
    pub fn blocked(&self) -> Vec<Blocked> {
        let table = self.model.table(TableId::LockBlocked);
        let at = |wanted: &field::Field| table.position(wanted.id);
        let owners: Vec<String> = self.tgids.iter().map(|tgid| format!("({tgid})")).collect();
        let mut all: Vec<Blocked> = table
            .rows
            .iter()
            .filter_map(|row| {
                let text = |wanted: &field::Field| match at(wanted).map(|i| &row.cells[i]) {
                    Some(Value::Text(text)) => text.as_str(),
                    _ => "-",
                };
                let count = |wanted: &field::Field| match at(wanted).map(|i| &row.cells[i]) {
                    Some(Value::Count(n)) => *n,
                    _ => 0,
                };
                let owner = text(&field::OWNER);
                let holder = text(&field::BLOCKER);
                owners
                    .iter()
                    .any(|own| owner.ends_with(own))
                    .then(|| Blocked {
                        waiter: format!(
                            "{} in {} for {}",
                            text(&field::WAITER),
                            text(&field::WAITER_CALL),
                            text(&field::MODE)
                        ),
                        holder: match holder {
                            "-" => format!("not named: {}", text(&field::BLOCKER_MODE)),
                            process => format!(
                                "{process} {} in {} for {}",
                                text(&field::BLOCKER_THREAD),
                                text(&field::BLOCKER_CALL),
                                text(&field::BLOCKER_MODE)
                            ),
                        },
                        is_outside: holder != "-" && holder != owner,
                        waits: count(&field::BLOCKED_WAITS),
                        wait_ns: count(&field::BLOCKED_NS),
                        max_ns: count(&field::BLOCKED_MAX_NS),
                    })
            })
            .collect();
        all.sort_by_key(|blocked| std::cmp::Reverse((blocked.is_outside, blocked.wait_ns)));
        all
    }
}

/// TLB flushes as vmstat counts them, of the whole machine; `None` where the kernel has no such counters
/// (CONFIG_DEBUG_TLBFLUSH). What a CPU was asked for by another is counted where it was asked.
#[must_use]
pub fn tlb_flushes(model: &Model) -> Option<u64> {
    let vmstat = model.delta().vmstat.iter();
    let mut counts = vmstat
        .filter(|(name, _)| name.starts_with("nr_tlb_") && !name.ends_with("_received"))
        .map(|(_, n)| *n)
        .peekable();
    counts.peek()?;
    Some(counts.sum())
}

/// Refaults of pages that reclaim had taken, as vmstat counts them for the whole machine.
#[must_use]
pub fn workingset_refaults(model: &Model) -> Option<u64> {
    let vmstat = model.delta().vmstat.iter();
    let mut counts = vmstat
        .filter(|(name, _)| name.starts_with("workingset_refault_"))
        .map(|(_, n)| *n)
        .peekable();
    counts.peek()?;
    Some(counts.sum())
}

/// Contended waits for any lru_lock and their time, ns; of the whole machine.
#[must_use]
pub fn lru_waits(model: &Model) -> (u64, u64) {
    let locks = model.delta().locks.iter();
    locks
        .filter(|(id, _)| !id.is_site && id.class == LRU_LOCK)
        .fold((0, 0), |(waits, ns), (_, lock)| {
            (waits + lock.waits, ns + lock.wait_ns)
        })
}

/// Call sites of contended waits for any lru_lock with waits and time in ns, longest first; of the whole machine.
#[must_use]
pub fn lru_sites(model: &Model) -> Vec<(String, u64, u64)> {
    let table = model.table(TableId::LockSites);
    let at = |wanted: &field::Field| table.position(wanted.id);
    let lock = Value::Text("lru_lock".to_owned());
    let rows = table.rows.iter().filter_map(|row| {
        let cell = |wanted: &field::Field| row.cells.get(at(wanted)?);
        if cell(&field::LOCK) != Some(&lock) {
            return None;
        }
        let count = |wanted: &field::Field| match cell(wanted) {
            Some(Value::Count(n)) => *n,
            _ => 0,
        };
        let site = match cell(&field::SITE) {
            Some(Value::Text(site)) => site.clone(),
            _ => "an unnamed site".to_owned(),
        };
        Some((site, count(&field::WAITS), count(&field::WAIT_NS)))
    });
    rows.collect()
}

/// What multi-generational LRU does to activations; empty if the kernel does not say.
#[must_use]
pub fn activations(model: &Model) -> String {
    let table = model.table(TableId::Lru);
    let wanted = Value::Text("folio activations".to_owned());
    let mut rows = table.rows.iter();
    let comment = rows.find_map(|row| {
        let is_it = row.cells.get(table.position(field::SUBJECT.id)?) == Some(&wanted);
        match row.cells.get(table.position(field::COMMENT.id)?) {
            Some(Value::Text(text)) if is_it => Some(text.clone()),
            _ => None,
        }
    });
    comment.unwrap_or_default()
}

/// Share of the CPU time of all CPUs that was idle or waited for a read; `None` where /proc/stat was not read.
#[must_use]
pub fn idle(model: &Model) -> Option<f64> {
    let times = model.delta().cpus.iter().filter_map(|cpu| cpu.time);
    let (idle, all) = times.fold((0, 0), |(idle, all), time| {
        let unused = time.idle_ns + time.iowait_ns;
        (idle + unused, all + unused + time.busy_ns + time.steal_ns)
    });
    super::build::ratio(idle, all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Context;
    use crate::sample::{
        Delta,
        blocked::{BlockedId, BlockedWaits, Held},
        delta::{CallChain, Lock, LockId, MadviseId, Process, ProcessId, Taker, TakerId},
        refault::Refault,
    };
    use std::sync::Arc;

    /// Our command, and a process that is none of it.
    const OWN: u32 = 7;
    const OTHER: u32 = 8;

    fn delta() -> Delta {
        let mut delta = Delta::default();
        for tgid in [OWN, OTHER] {
            let id = ProcessId { tgid, start_ns: 1 };
            let process = Process {
                is_workload: tgid == OWN,
                ..Process::default()
            };
            delta.processes.insert(id, process);
            for (mode, waits) in [(READ, 3), (WRITE, 5)] {
                let id = LockId {
                    is_site: false,
                    class: MMAP_LOCK,
                    mode,
                    node: 0,
                    id: u64::from(tgid),
                    memcg: 0,
                    stack: 0,
                    owner: tgid,
                };
                let lock = Lock {
                    waits,
                    wait_ns: waits * 100,
                    ..Lock::default()
                };
                delta.locks.insert(id, lock);
            }
            // Both take the lock of our command.
            let id = TakerId {
                mm: 1,
                tgid,
                syscall: 0,
                is_write: false,
            };
            let taker = Taker {
                owner: OWN,
                taken: 10,
                hold_ns: 50,
                ..Taker::default()
            };
            delta.takers.insert(id, taker);
            for (advice, refaults) in [(4, 40), (8, 2), (20, 9)] {
                let id = MadviseId {
                    tgid,
                    advice,
                    is_remote: false,
                };
                let row = Refault {
                    refaults,
                    ..Refault::default()
                };
                delta.refaults.insert(id, row);
            }
        }
        delta
    }

    fn model(delta: Delta) -> Model {
        Model::new(Arc::new(delta), Arc::new(Context::default()))
    }

    #[test]
    fn waits_are_those_of_the_commands_lock_and_holds_whoevers_they_are() {
        let model = model(delta());
        let [read, write] = Command::of(&model).mmap_lock();
        let expected = Side {
            waits: 3,
            wait_ns: 300,
            holds: 20,
            hold_ns: 100,
        };
        assert_eq!(read, expected);
        assert_eq!((write.waits, write.wait_ns, write.holds), (5, 500, 0));
    }

    #[test]
    fn refaults_are_the_commands_own_by_advice() {
        let model = model(delta());
        let command = Command::of(&model);
        assert_eq!(command.refaults(4), (40, 0));
        assert_eq!(command.refaults(8), (2, 0));
        assert_eq!(command.refaults(21), (0, 0));
    }

    #[test]
    fn who_waited_for_the_commands_lock_is_named_with_whom_it_waited_for() {
        let mut delta = delta();
        delta.names.insert(OTHER, "reader".into());
        for owner in [OWN, OTHER] {
            let id = BlockedId {
                tgid: owner,
                syscall: 9,
                is_write: true,
                site: 0,
                held: Held::Read,
                holder: OTHER,
                holder_tid: OTHER,
                holder_comm: "reader".into(),
                holder_syscall: Some(0),
                holder_site: 0,
                owner,
            };
            let waits = BlockedWaits {
                waits: 2,
                wait_ns: 9,
                max_ns: 8,
            };
            delta.blocked.insert(id, waits);
        }
        let model = model(delta);
        let [blocked]: [Blocked; 1] = Command::of(&model).blocked().try_into().expect("one row");
        assert!(
            blocked.waiter.ends_with("(7) in mmap for write"),
            "{blocked:?}"
        );
        assert_eq!(blocked.holder, "reader(8) reader in read for read");
        assert!(blocked.is_outside);
        assert_eq!((blocked.waits, blocked.wait_ns, blocked.max_ns), (2, 9, 8));
    }

    #[test]
    fn tlb_flushes_are_counted_where_the_kernel_counts_them() {
        let mut counted = delta();
        counted.vmstat = [
            ("nr_tlb_local_flush_all", 3),
            ("nr_tlb_remote_flush", 4),
            ("nr_tlb_remote_flush_received", 5),
            ("pgfault", 6),
        ]
        .into_iter()
        .map(|(name, n)| (name.into(), n))
        .collect();
        assert_eq!(tlb_flushes(&model(counted)), Some(7));
        assert_eq!(tlb_flushes(&model(delta())), None);
        assert_eq!(workingset_refaults(&model(delta())), None);
    }

    #[test]
    fn waits_for_lru_lock_have_their_call_sites() {
        let mut delta = delta();
        let chain = CallChain {
            site: "folio_batch_move_lru".to_owned(),
            chain: Vec::new(),
        };
        delta.chains = Arc::new([(1, Arc::new(chain))].into_iter().collect());
        for is_site in [false, true] {
            let id = LockId {
                is_site,
                class: LRU_LOCK,
                mode: 0,
                node: 0,
                id: 0,
                memcg: 0,
                stack: 1,
                owner: 0,
            };
            let lock = Lock {
                waits: 6,
                wait_ns: 60,
                ..Lock::default()
            };
            delta.locks.insert(id, lock);
        }
        let model = model(delta);
        assert_eq!(lru_waits(&model), (6, 60));
        assert_eq!(
            lru_sites(&model),
            [("folio_batch_move_lru".to_owned(), 6, 60)]
        );
        assert_eq!(idle(&model), None);
    }
}
