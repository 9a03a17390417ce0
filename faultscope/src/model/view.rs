//! The views under their digits, and the tables each view can show.

use super::field::{self, Field};

macro_rules! tables {
    ($($variant:ident, $id:literal, $view:ident, $title:literal, $fields:path, $sort:literal, $doc:literal;)*) => {
        /// The tables of the model; a view shows one of its tables at a time.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum TableId { $(#[doc = $doc] $variant,)* }

        impl TableId {
            /// Every table, in the order of `Model::tables`.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Name on the command line and in JSON.
            #[must_use]
            pub fn id(self) -> &'static str { match self { $(Self::$variant => $id,)* } }

            /// The view under which the table appears.
            #[must_use]
            pub fn view(self) -> View { match self { $(Self::$variant => View::$view,)* } }

            /// Title above the table.
            #[must_use]
            pub fn title(self) -> &'static str { match self { $(Self::$variant => $title,)* } }

            /// Columns in display order.
            #[must_use]
            pub fn fields(self) -> &'static [&'static Field] { match self { $(Self::$variant => $fields,)* } }

            /// Id of the field the table is sorted by unless the user chooses.
            #[must_use]
            pub fn default_sort(self) -> &'static str { match self { $(Self::$variant => $sort,)* } }

            /// What the table shows, one sentence.
            #[must_use]
            pub fn description(self) -> &'static str { match self { $(Self::$variant => $doc,)* } }
        }
    };
}

tables! {
    Overview, "overview", Overview, "Overview", field::OVERVIEW, "value",
        "Findings, the machine's own counters, and the five greatest rows of each view.";
    Findings, "findings", Overview, "Findings", field::FINDINGS, "finding",
        "What the rules of docs/findings.md found; all probes they need are attached while it is shown.";
    Cpus, "cpus", Cpus, "CPUs", field::CPUS, "faults",
        "Fault rate, lock waits and handoffs by CPU; never filtered.";
    Processes, "processes", Processes, "Processes", field::PROCESSES, "faults",
        "One row per process: the sum over its threads, exited ones included.";
    Threads, "threads", Processes, "Threads", field::THREADS, "faults",
        "One row per thread.";
    Cgroups, "cgroups", Cgroups, "Cgroups", field::CGROUPS, "faults",
        "One row per memory cgroup, its own tasks only.";
    FaultKinds, "faults", Faults, "Faults by kind", field::FAULT_KINDS, "faults",
        "Faults by origin, access and cause, and what the tracepoints cannot see.";
    AddressSpaces, "spaces", Faults, "Address spaces", field::SPACES, "faults",
        "How many CPUs share each address space: the cacheline-bounce proxy.";
    FaultLatency, "latency", Faults, "handle_mm_fault by path and backing", field::LATENCY, "passes",
        "Faults inside `handle_mm_fault`: time, retries, errors, major faults, by path and backing.";
    FaultProcesses, "faulters", Faults, "handle_mm_fault by process", field::LATENCY_PROCESSES, "passes",
        "The same by process, with the path.";
    FaultCpus, "faultcpus", Faults, "handle_mm_fault by CPU", field::LATENCY_CPUS, "passes",
        "The same by CPU; never filtered.";
    Budget, "budget", Faults, "Fault time budget", field::BUDGET, "samples",
        "Where the CPU time of faults goes, by kernel function, from samples of the CPU clock.";
    Lru, "lru", Lru, "LRU", field::LRU, "events",
        "What moves on the LRU lists, marks, batches and drains, RSS-counter updates, and vmstat's reclaim counters.";
    Locks, "locks", Locks, "Locks", field::LOCKS, "wait_ns",
        "One row per lock: mmap_lock by owner, lru_lock by node and memcg, others by call site.";
    LockHolders, "holders", Locks, "mmap_lock by taker", field::HOLDERS, "hold_ns",
        "Who takes which mmap_lock, by process and system call: waits and holds.";
    LockSites, "sites", Locks, "Contended waits by call site", field::SITES, "wait_ns",
        "Kernel call sites of contended waits.";
    LockWaiters, "waiters", Locks, "Contended waits by waiter", field::WAITERS, "wait_ns",
        "Which process waited, and in which memory cgroup it runs.";
    LruHolds, "lru_holds", Locks, "lru_lock holds", field::LRU_HOLD_FIELDS, "lru_hold_ns",
        "How long lru_lock is held: by region, and exactly with --probe hold_release.";
    LockBlocked, "blocked", Locks, "Who blocks whom", field::BLOCKED, "blocked_ns",
        "Contended waits for mmap_lock with who held it when the waiter arrived, and from which call site.";
    LockClasses, "classes", Locks, "Contended waits by lock class", field::CLASSES, "wait_ns",
        "Contended waits by class and mode, also per million faults and per fault.";
    Madvise, "madvise", Madvise, "madvise", field::MADVISE, "calls",
        "madvise and process_madvise by process and advice.";
    Refaults, "refaults", Madvise, "Refaults after madvise", field::REFAULTED, "refaults",
        "Memory given back by MADV_DONTNEED, MADV_FREE or MADV_PAGEOUT, and how much of it was touched again at once.";
    Programs, "self", Own, "Self: programs", field::PROGRAMS, "runs",
        "Our own programs: attached or why not, run time, hits.";
    Losses, "losses", Own, "Self: losses and maps", field::LOSSES, "lost",
        "Loss counters and the fill of every map.";
}

impl TableId {
    /// Whether rows come sorted by the default field; the others have an order
    /// of their own (CPU numbers, kinds, groups) until the user sorts.
    #[must_use]
    pub fn is_sorted(self) -> bool {
        !matches!(
            self,
            Self::Overview
                | Self::Findings
                | Self::Cpus
                | Self::FaultKinds
                | Self::FaultCpus
                | Self::Budget
                | Self::Lru
                | Self::Losses
                | Self::Programs
        )
    }

    /// Index into `Model::tables`.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The table called `id` on the command line.
    #[must_use]
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|t| t.id() == id)
    }
}

/// The views under the digits 1 to 9 (final).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum View {
    /// 1: the most important rows of all views.
    Overview,
    /// 2: heat grid by CPU, LLC, node.
    Cpus,
    /// 3: processes or threads.
    Processes,
    /// 4: memory cgroups, flat.
    Cgroups,
    /// 5: faults by kind, address spaces, fault latency.
    Faults,
    /// 6: LRU and RSS counters.
    Lru,
    /// 7: locks, takers, call sites, waiters.
    Locks,
    /// 8: madvise.
    Madvise,
    /// 9: the tool itself.
    Own,
}

impl View {
    /// All views in the order of their digits.
    pub const ALL: [Self; 9] = [
        Self::Overview,
        Self::Cpus,
        Self::Processes,
        Self::Cgroups,
        Self::Faults,
        Self::Lru,
        Self::Locks,
        Self::Madvise,
        Self::Own,
    ];

    /// The digit that shows the view.
    #[must_use]
    pub fn digit(self) -> char {
        char::from(b'1' + self as u8)
    }

    /// Title on the tab.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Cpus => "CPUs",
            Self::Processes => "Processes",
            Self::Cgroups => "Cgroups",
            Self::Faults => "Faults",
            Self::Lru => "LRU",
            Self::Locks => "Locks",
            Self::Madvise => "madvise",
            Self::Own => "Self",
        }
    }

    /// The view's tables, the default one first.
    pub fn tables(self) -> impl Iterator<Item = TableId> {
        TableId::ALL
            .iter()
            .copied()
            .filter(move |t| t.view() == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_its_sort_field_and_a_place() {
        for (i, t) in TableId::ALL.iter().enumerate() {
            assert_eq!(t.index(), i);
            assert_eq!(TableId::parse(t.id()), Some(*t));
            assert!(
                t.fields().iter().any(|f| f.id == t.default_sort()),
                "{} sorts by {}, which it does not show",
                t.id(),
                t.default_sort()
            );
        }
        for v in View::ALL {
            assert!(v.tables().next().is_some(), "{v:?} has no table");
        }
    }
}
