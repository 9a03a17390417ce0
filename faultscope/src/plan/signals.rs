//! The one table of signals: what the probes of the catalogue give.

/// A thing a user wants to know, given by one or more probes, or by none yet.
#[derive(Debug, PartialEq, Eq)]
pub struct Signal {
    /// Id, as in the field catalogue.
    pub id: &'static str,
    /// What it counts, one sentence.
    pub description: &'static str,
    /// Why no tracepoint gives it, a clause; empty if one does.
    pub untraced: &'static str,
}

const fn traced(id: &'static str, description: &'static str) -> Signal {
    Signal {
        id,
        description,
        untraced: "",
    }
}

/// Every signal `doctor` reports on.
pub static SIGNALS: &[Signal] = &[
    traced(
        "faults",
        "Page faults by CPU, thread, process, cgroup and kind.",
    ),
    traced("major_faults", "Faults that waited for a page to be read."),
    traced(
        "mmap_lock",
        "Acquisitions of mmap locks, for read and for write.",
    ),
    traced(
        "mmap_lock_hold",
        "How long mmap locks take to have and are held, with failures, downgrades and system call of the taker.",
    ),
    traced(
        "contention",
        "Contended waits for kernel locks with the lock's identity.",
    ),
    traced(
        "blocked",
        "Contended waits for mmap_lock with who held it when the waiter arrived, and from which call site.",
    ),
    Signal {
        id: "exact_spin_waits",
        description: "Every contended spinlock wait.",
        untraced: "the contention tracepoint leaves out the first waiter of a native queued lock and every waiter of a \
                   test-and-set lock",
    },
    traced("lru", "LRU insertions and activations."),
    traced("rss_stat", "RSS-counter updates by member."),
    traced("madvise", "madvise and process_madvise calls by advice."),
    traced(
        "refaults",
        "Faults on memory that madvise gave back a moment ago.",
    ),
    traced(
        "fault_budget",
        "Where the CPU time of faults goes: clearing, copying, allocating, locking and more.",
    ),
    traced(
        "page_table_locks",
        "Split page-table locks told from other spinlocks.",
    ),
    traced(
        "scopes",
        "Rows of threads kept right at exit, cgroup moves and renames.",
    ),
    traced(
        "workload",
        "Which processes descend from the command of a recording.",
    ),
    Signal {
        id: "mark_accessed",
        description: "Pages marked accessed.",
        untraced: "no tracepoint exists",
    },
    Signal {
        id: "fault_latency",
        description: "Time from the entry of `handle_mm_fault` to its return, with retries, errors and major faults.",
        untraced: "the fault tracepoints fire at the start of a fault only",
    },
    Signal {
        id: "populate_faults",
        description: "Passes of `handle_mm_fault` by path and backing, those of MAP_POPULATE, mlock and \
                      get_user_pages among them.",
        untraced: "no trap happens, so the fault tracepoints do not see them; vmstat's pgfault and a process's \
                   ru_minflt count them and are the cross-check",
    },
    Signal {
        id: "fault_backing",
        description: "Faults that swap in, and those that write to a page that is present.",
        untraced: "no tracepoint exists",
    },
    Signal {
        id: "fault_pages",
        description: "Pages that a fault maps: fault-around, large folios, huge pages.",
        untraced: "no tracepoint exists",
    },
    Signal {
        id: "lru_lock_hold",
        description: "Time in folio_batch_move_lru, a region in which many lru_lock holds lie.",
        untraced: "no tracepoint fires at the release of a spinlock",
    },
    Signal {
        id: "lru_lock_exact_hold",
        description: "Time each lru_lock was held, by node and memory cgroup.",
        untraced: "no tracepoint fires at the release of a spinlock",
    },
    Signal {
        id: "drains",
        description: "Drains of the per-CPU LRU batches.",
        untraced: "no tracepoint exists",
    },
    Signal {
        id: "batches",
        description: "Size of the batches of folios moved between LRU lists, by move function.",
        untraced: "no tracepoint exists",
    },
    Signal {
        id: "workingset_activation",
        description: "Activations asked for: a page marked twice.",
        untraced: "no tracepoint exists",
    },
    Signal {
        id: "workingset_refault",
        description: "Refaults of pages that reclaim had evicted, by CPU.",
        untraced: "no tracepoint exists; vmstat's workingset_refault_* counts them for the machine",
    },
];
