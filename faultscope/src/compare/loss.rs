//! Losses of a run, each against the events of the table that they are missing from.

use super::observed::{given_back, real};
use crate::sample::counters::MMAP_LOCK;
use crate::sample::{Delta, Scope};
use crate::units::format_si;

/// Events that a table did not keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// Id of the loss counter.
    pub id: String,
    /// What the counter says: events of the whole machine; above 0.
    pub lost: u64,
    /// How much of what is compared is missing, in the unit of `whole`.
    pub missing: u64,
    /// All of it, with what is missing.
    pub whole: u64,
    /// What is counted, in the plural.
    pub what: &'static str,
}

impl Loss {
    /// The loss as a share of its table, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        real(self.missing) / real(self.whole.max(1))
    }

    /// The loss in words.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "{} lost of {} {} ({})",
            self.missing,
            format_si(real(self.whole)),
            self.what,
            self.id
        )
    }
}

/// What a loss counter stands for: ids, what is lost, and how many of it the tables have.
type Kind = (&'static [&'static str], &'static str, fn(&Delta) -> u64);

/// Every loss counter of the programs by the table it belongs to. One that is not here is held against all events.
const TABLES: &[Kind] = &[
    (
        &[
            "thread_overflow_full",
            "faults_unattributed",
            "space_map_full",
        ],
        "faults",
        |d| d.total().faults(),
    ),
    (
        &[
            "lock_table_full",
            "stack_table_full",
            "contention_begin_unended",
        ],
        "waits",
        |d| d.total().waits(),
    ),
    (&["blocked_table_full"], "waits for mmap_lock", |d| {
        d.total()[Scope::Waits(MMAP_LOCK)]
    }),
    (
        &["mmap_map_full", "mmap_nesting_overflow"],
        "mmap_lock acquisitions",
        acquisitions,
    ),
    (&["pairing_slot_collision"], "waits and holds", |d| {
        d.total().waits().saturating_add(acquisitions(d))
    }),
    (
        &["thread_slot_collision"],
        "waits, acquisitions and RSS updates",
        |d| {
            let total = d.total();
            let waits = total.waits().saturating_add(total[Scope::Rss]);
            waits.saturating_add(acquisitions(d))
        },
    ),
    (&["retired_map_full"], "faults and waits", all_events),
    (&["program_recursion"], "faults and waits", all_events),
    (&["madvise_map_full"], "madvise calls", |d| {
        d.total()[Scope::Madvise]
    }),
    (
        &["refault_table_full"],
        "ranges given back and refaults",
        |d| {
            d.refaults
                .values()
                .map(|row| row.ranges + row.refaults)
                .sum()
        },
    ),
    (
        &["fault_latency_rows_full", "fault_latency_nesting"],
        "passes of handle_mm_fault",
        |d| d.passes.values().map(|row| row.began).sum(),
    ),
    (&["budget_table_full"], "clock samples", |d| {
        d.budget.as_ref().map_or(0, |b| b.samples)
    }),
    (&["lru_move_functions_full"], "batches and regions", |d| {
        d.moves.values().map(|row| row.batches + row.regions).sum()
    }),
    (
        &["lru_hold_slot_collision", "lru_hold_table_full"],
        "lru_lock holds",
        |d| d.lru_holds.values().map(|row| row.holds).sum(),
    ),
    (&["workload_map_full"], "processes", |d| {
        d.processes.values().filter(|p| p.is_workload).count() as u64
    }),
];

/// mmap_lock acquisitions, for read and for write.
fn acquisitions(delta: &Delta) -> u64 {
    let total = delta.total();
    [0, 1]
        .iter()
        .map(|side| total[Scope::MmapTaken(*side)])
        .sum()
}

fn all_events(delta: &Delta) -> u64 {
    let total = delta.total();
    total.faults().saturating_add(total.waits())
}

/// Counters of ranges given back that were not followed; whose they were is known.
const GIVEN_BACK: [&str; 2] = ["given_back_overwritten", "given_back_unread"];

/// A loss of a run whose increments are `delta`; `None` if nothing was lost.
#[must_use]
pub fn loss(id: &str, lost: u64, delta: &Delta) -> Option<Loss> {
    if lost == 0 {
        return None;
    }
    let made = |missing, whole, what| Loss {
        id: id.to_owned(),
        lost,
        missing,
        whole,
        what,
    };
    if GIVEN_BACK.contains(&id) {
        // Bytes of other processes are in no figure.
        let given = given_back(delta);
        return Some(made(given.lost_bytes, given.bytes, "bytes given back"));
    }
    let table = TABLES.iter().find(|(ids, ..)| ids.contains(&id));
    let (what, kept) = table.map_or_else(
        || ("faults and waits", all_events(delta)),
        |(_, what, kept)| (*what, kept(delta)),
    );
    Some(made(lost, kept.saturating_add(lost), what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::delta::{Cpu, MadviseId, Process, ProcessId};
    use crate::sample::refault::Refault;

    #[test]
    fn every_loss_counter_belongs_to_one_table() {
        let known = |id: &str| {
            let tables = TABLES.iter().filter(|(ids, ..)| ids.contains(&id));
            tables.count() + usize::from(GIVEN_BACK.contains(&id))
        };
        for (id, _) in faultscope_common::loss::ALL {
            assert_eq!(known(id), 1, "{id}");
        }
        let all: usize = TABLES.iter().map(|(ids, ..)| ids.len()).sum();
        // program_recursion is the kernel's own counter.
        assert_eq!(
            all + GIVEN_BACK.len(),
            faultscope_common::loss::ALL.len() + 1
        );
    }

    #[test]
    fn a_loss_is_a_share_of_its_own_table() {
        let mut delta = Delta::default();
        let mut cpu = Cpu::default();
        cpu.counters[Scope::User(1)] = 1_000_000;
        delta.cpus.push(cpu);
        for (tgid, is_workload) in [(7, true), (8, false)] {
            let id = ProcessId { tgid, start_ns: 1 };
            let process = Process {
                is_workload,
                ..Process::default()
            };
            delta.processes.insert(id, process);
            let id = MadviseId {
                tgid,
                advice: 4,
                is_remote: false,
            };
            let given = Refault {
                bytes: 100_000,
                lost_bytes: if is_workload { 1_000 } else { 90_000 },
                ..Refault::default()
            };
            delta.refaults.insert(id, given);
        }
        let of = |id| loss(id, 10, &delta).expect("something was lost");
        // A hundredth of what the command gave back is no small loss, although there were a million faults.
        let given = of("given_back_overwritten");
        assert!((given.share() - 0.01).abs() < 1e-9);
        assert_eq!(
            given.text(),
            "1000 lost of 100k bytes given back (given_back_overwritten)"
        );
        assert_eq!(of("space_map_full").whole, 1_000_010);
        // Of a table that has nothing all is lost.
        assert!((of("lock_table_full").share() - 1.0).abs() < 1e-9);
        assert_eq!(of("of a later version").what, "faults and waits");
        assert_eq!(loss("space_map_full", 0, &delta), None);
    }
}
