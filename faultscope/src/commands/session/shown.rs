//! What is measured beside the core set: for a table of the live view, or for a recording.

use std::collections::BTreeSet;

use crate::model::{ATTACHED_ONLY, Missing, TableId};
use crate::plan::{self, Set};

/// Views that show what the set of LRU programs counts.
const LRU_VIEWS: &str = "LRU or CPUs";
/// Views that show takes and holds of mmap_lock; acquisitions are shown with the CPUs too.
const MMAP_VIEWS: &str = "holders, blocked, processes, threads, cgroups, spaces or findings";
const TAKEN_VIEWS: &str = "CPUs, holders, processes, threads or cgroups";
const EXACT_HOLDS_BY_NAME: &str = "attached only by name, with \"--probe hold_release\" (\"hold_release_rt\" on \
     PREEMPT_RT): its programs run at every release of a spinlock";

/// What is measured beside the core set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// Sets of programs.
    pub(super) sets: BTreeSet<Set>,
    /// Call chains of contended waits.
    pub(super) stacks: bool,
    /// The window in which handoffs of address spaces are counted.
    pub(super) sharing: bool,
    /// Samples of the fault path, read and named.
    pub(super) budget: bool,
    /// Run times of programs, some 30 ns a run.
    pub(super) statistics: bool,
}

impl Shown {
    /// What a table shows.
    pub(super) fn table(table: TableId) -> Self {
        let is_findings = table == TableId::Findings;
        let is_locks = matches!(
            table,
            TableId::Locks | TableId::LockSites | TableId::LockHolders | TableId::LockBlocked
        );
        Self {
            sets: sets(table).iter().copied().collect(),
            stacks: is_locks || is_findings,
            sharing: table == TableId::AddressSpaces || is_findings,
            budget: table == TableId::Budget || is_findings,
            statistics: table == TableId::Programs,
        }
    }

    /// Everything that is not attached by name only; `with_workload` if a command is recorded. Run times stay off:
    /// they would cost every BPF program of the machine more than a recording may.
    pub(super) fn recording(with_workload: bool) -> Self {
        let is_recorded = |set: &Set| match set {
            Set::Slowpath | Set::ExactHolds | Set::Learn => false,
            Set::Workload => with_workload,
            _ => true,
        };
        Self {
            sets: Set::ALL.into_iter().filter(is_recorded).collect(),
            stacks: true,
            sharing: true,
            budget: true,
            statistics: false,
        }
    }
}

impl Shown {
    /// These sets beside the core set, for a recording whose reader knows what it wants; stacks, the clock samples and
    /// the sharing window only as far as the sets bring them.
    pub(super) fn of_sets(sets: &[Set], with_workload: bool) -> Self {
        let sets: BTreeSet<Set> = sets
            .iter()
            .copied()
            .chain(with_workload.then_some(Set::Workload))
            .collect();
        Self {
            stacks: sets.contains(&Set::Taken),
            sharing: true,
            budget: sets.contains(&Set::Budget),
            statistics: false,
            sets,
        }
    }
}

/// Sets whose signals a table shows.
fn sets(table: TableId) -> &'static [Set] {
    match table {
        TableId::Cpus => &[Set::Taken, Set::Lru, Set::Rss],
        TableId::Lru => &[Set::Lru, Set::Rss],
        TableId::Processes | TableId::Threads | TableId::Cgroups | TableId::AddressSpaces => {
            &[Set::Mmap, Set::Rss]
        }
        TableId::Madvise => &[Set::Madvise],
        TableId::Refaults => &[Set::Refaults],
        TableId::LruHolds => &[Set::Holds],
        TableId::FaultKinds
        | TableId::FaultLatency
        | TableId::FaultProcesses
        | TableId::FaultCpus => &[Set::Latency],
        TableId::LockHolders => &[Set::Mmap],
        TableId::LockBlocked => &[Set::Blocked],
        TableId::Budget => &[Set::Budget],
        // Whatever a rule looks at.
        TableId::Findings => &[
            Set::Blocked,
            Set::Latency,
            Set::Lru,
            Set::Madvise,
            Set::Refaults,
            Set::Budget,
        ],
        _ => &[],
    }
}

/// Sets of the programs the user named: attached whatever is shown.
pub(super) fn named_sets(named: &BTreeSet<String>) -> impl Iterator<Item = Set> {
    named
        .iter()
        .filter_map(|name| plan::probe(name))
        .map(|probe| probe.set)
}

/// The sets and those they need.
pub(super) fn with_needs(sets: impl IntoIterator<Item = Set>) -> BTreeSet<Set> {
    sets.into_iter()
        .flat_map(|set| set.needs().iter().copied().chain([set]))
        .collect()
}

/// Adds the signals of sets that were not attached for the whole interval.
pub(super) fn add_unattached(whole: &BTreeSet<Set>, missing: &mut Vec<Missing>) {
    for (set, signal, view) in [
        (Set::Taken, "mmap_lock", TAKEN_VIEWS),
        (Set::Mmap, "mmap_lock_hold", MMAP_VIEWS),
        (Set::Lru, "lru", LRU_VIEWS),
        (Set::Lru, "mark_accessed", LRU_VIEWS),
        (Set::Lru, "workingset_activation", LRU_VIEWS),
        (Set::Lru, "workingset_refault", LRU_VIEWS),
        (Set::Lru, "drains", LRU_VIEWS),
        (Set::Lru, "batches", LRU_VIEWS),
        (Set::Holds, "lru_lock_hold", "lru_holds"),
        (Set::Rss, "rss_stat", "processes, CPUs or LRU"),
        (Set::Madvise, "madvise", "madvise"),
        (Set::Latency, "populate_faults", "faults"),
        (Set::Latency, "fault_latency", "faults"),
        (Set::Latency, "fault_backing", "faults"),
        (Set::Latency, "fault_pages", "faults"),
        (Set::Blocked, "blocked", "blocked"),
        (Set::Budget, "fault_budget", "budget"),
        (Set::Refaults, "refaults", "refaults"),
    ] {
        if !whole.contains(&set) && missing.iter().all(|m| *m.signal != *signal) {
            let reason = format!("{ATTACHED_ONLY} while a view that shows it is open ({view})");
            missing.push(Missing {
                signal: signal.into(),
                reason,
            });
        }
    }
    let signal = "lru_lock_exact_hold";
    if !whole.contains(&Set::ExactHolds) && missing.iter().all(|m| *m.signal != *signal) {
        let reason = EXACT_HOLDS_BY_NAME.to_owned();
        missing.push(Missing {
            signal: signal.into(),
            reason,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_acquisitions_or_holds_attaches_what_measures_them() {
        for table in TableId::ALL {
            let attached = with_needs(sets(*table).iter().copied());
            for (signal, set) in [("mmap_lock", Set::Taken), ("mmap_lock_hold", Set::Mmap)] {
                let mut fields = table.fields().iter();
                let is_shown = fields.any(|field| field.signal == signal);
                assert!(!is_shown || attached.contains(&set), "{table:?} {signal}");
            }
            let is_light = matches!(
                table,
                TableId::Overview | TableId::Locks | TableId::FaultKinds
            );
            assert!(!is_light || !attached.contains(&Set::Taken), "{table:?}");
        }
    }

    #[test]
    fn a_named_program_brings_the_sets_it_relies_on() {
        let named = BTreeSet::from(["blocked_begin".to_owned()]);
        let sets = with_needs(named_sets(&named));
        assert_eq!(sets, [Set::Taken, Set::Mmap, Set::Blocked].into());
    }

    #[test]
    fn a_recording_has_every_set_that_is_not_by_name_only() {
        let recording = Shown::recording(true);
        for set in Set::ALL {
            let is_by_name = matches!(set, Set::Slowpath | Set::ExactHolds | Set::Learn);
            assert_eq!(recording.sets.contains(&set), !is_by_name, "{set:?}");
        }
        for table in TableId::ALL {
            let missing = Shown::table(*table)
                .sets
                .difference(&recording.sets)
                .count();
            assert_eq!(missing, 0, "{table:?}");
        }
        assert!(!Shown::recording(false).sets.contains(&Set::Workload));
        assert!(!recording.statistics);
    }
}
