//! The one table of probes, in attach order.
//!
//! A program that ends something stands before the one that begins it: what began before we attached then shows
//! as an unmatched end (attach edge), never as a begin whose end was lost. Prototypes are those of the kernels'
//! BTF (6.1, 6.12, 6.12-rt and 6.18 were read); which one is there is told by its argument count.

/// When programs are attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Set {
    /// Always.
    Core,
    /// While a view or recording shows how often mmap locks are taken.
    Taken,
    /// While a view or recording shows how long mmap locks take to have and are held, and by whom.
    Mmap,
    /// While a view or recording shows LRU movement.
    Lru,
    /// While a view or recording shows RSS-counter updates.
    Rss,
    /// While a view or recording shows madvise calls.
    Madvise,
    /// While a view or recording shows what faults cost and which way they went.
    Latency,
    /// Exact spinlock waits; by name only, as these programs run inside the slow path of every spinlock.
    Slowpath,
    /// While a view or recording shows holds of lru_lock, by region.
    Holds,
    /// Exact holds of lru_lock; by name only, as these programs run at every release of a spinlock.
    ExactHolds,
    /// While a view or recording shows re-faults of ranges given back by madvise.
    Refaults,
    /// While a view or recording shows where fault time goes.
    Budget,
    /// While a view or recording shows whom waits for mmap_lock were for.
    Blocked,
    /// While a command is recorded: which processes are its own.
    Workload,
    /// For a moment at the start.
    Learn,
}

impl Set {
    /// Every set.
    pub const ALL: [Self; 15] = [
        Self::Core,
        Self::Taken,
        Self::Mmap,
        Self::Lru,
        Self::Rss,
        Self::Madvise,
        Self::Latency,
        Self::Slowpath,
        Self::Holds,
        Self::ExactHolds,
        Self::Refaults,
        Self::Budget,
        Self::Blocked,
        Self::Workload,
        Self::Learn,
    ];

    /// Sets whose programs this one relies on.
    #[must_use]
    pub const fn needs(self) -> &'static [Self] {
        match self {
            // The CPU that had the lock before is noted by the program that counts.
            Self::Mmap => &[Self::Taken],
            // Holders are found among the holds that are being paired.
            Self::Blocked => &[Self::Taken, Self::Mmap],
            // Ranges are kept by the programs that count the calls.
            Self::Refaults => &[Self::Madvise],
            _ => &[],
        }
    }
}

/// A perf software event of `include/uapi/linux/perf_event.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoftwareEvent {
    /// PERF_COUNT_SW_PAGE_FAULTS: every serviced fault.
    PageFaults,
    /// PERF_COUNT_SW_PAGE_FAULTS_MAJ: every serviced major fault.
    MajorFaults,
}

/// Where in a kernel function a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionAt {
    /// At its entry, by a BPF trampoline (fentry, 5.5).
    Entry,
    /// At its return, by a BPF trampoline (fexit, 5.5).
    Exit,
    /// At its entry, by a breakpoint or ftrace (kprobe).
    Probe,
}

/// Samples of the fault budget a second and CPU: a prime, so that they do not run in step with the kernel's tick or
/// a load's own period. A second gives 997 samples of a CPU that does nothing but fault: shares to about 3 points.
pub const BUDGET_HZ: u64 = 997;

/// Where a program is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attach {
    /// A `tp_btf` tracepoint.
    Tracepoint {
        /// Name without `btf_trace_`.
        name: &'static str,
        /// Argument counts the program can read; empty if it reads none.
        args: &'static [usize],
    },
    /// A perf software event on every CPU, with period 1.
    Software(SoftwareEvent),
    /// A kernel function.
    Function {
        /// Entry, return or kprobe.
        at: FunctionAt,
        /// Its names over the kernel's history, the newest first; the first that the kernel's BTF has is used.
        names: &'static [&'static str],
        /// Argument counts the program can read; empty if it reads none.
        args: &'static [usize],
    },
    /// A sample of every CPU, `hz` times a second of its running time (perf software event cpu-clock).
    Clock {
        /// Samples per second and CPU.
        hz: u64,
    },
}

impl Attach {
    /// Names the hook for a table: `tp_btf/page_fault_user`, `perf/page-faults`.
    #[must_use]
    pub fn hook(self) -> String {
        match self {
            Self::Tracepoint { name, .. } => format!("tp_btf/{name}"),
            Self::Software(SoftwareEvent::PageFaults) => "perf/page-faults".into(),
            Self::Software(SoftwareEvent::MajorFaults) => "perf/major-faults".into(),
            Self::Function { at, names, .. } => {
                let kind = match at {
                    FunctionAt::Entry => "fentry",
                    FunctionAt::Exit => "fexit",
                    FunctionAt::Probe => "kprobe",
                };
                format!("{kind}/{}", names.first().copied().unwrap_or_default())
            }
            Self::Clock { hz } => format!("perf/cpu-clock at {hz} Hz"),
        }
    }
}

/// How often a program runs, which decides what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// Once in the life of a thread, or at a change of name or cgroup: not measurable.
    Rare,
    /// At every page fault, with the thread's row: at most 25 ns above an empty program.
    Fault,
    /// At every attempt to take an mmap_lock and every downgrade, under the lock, with the thread's row.
    Taken,
    /// At every acquisition or region, with the two clock reads of its beginning and end.
    Acquisition,
    /// At every acquisition of an lru_lock or every release of any spinlock, some dozens for each lru_lock hold.
    Release,
    /// At a wait that has already cost microseconds.
    Wait,
    /// At every folio or counter update, a per-CPU addition: at most 10 ns above an empty program.
    Counter,
    /// At every pass of `handle_mm_fault`, or of a function below it; no kernel at hand with fentry keeps real time,
    /// so what it costs is not known.
    Pass,
    /// At every system call of every task: for the cheapest calls a quarter more on one machine, three quarters on another.
    SystemCall,
    /// At every sample of a CPU's clock, with a kernel stack: some microseconds, a thousand times a second and CPU.
    Sample,
}

/// A feature that some kernel members carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Degrade {
    /// Globals, all of which must be present.
    pub globals: &'static [&'static str],
    /// What is lost if one is absent, a clause without a full stop.
    pub lost: &'static str,
}

/// One program of the BPF object.
#[derive(Debug, PartialEq, Eq)]
pub struct Probe {
    /// Function name in the object.
    pub program: &'static str,
    /// Signal it gives, an id of [`SIGNALS`](super::SIGNALS).
    pub signal: &'static str,
    /// Set it belongs to.
    pub set: Set,
    /// Programs of one part are attached together or not at all.
    pub part: &'static str,
    /// Rank among the alternatives of a part; the lowest that works is chosen, and only that.
    pub way: u8,
    /// Hook.
    pub attach: Attach,
    /// What the program does, one sentence.
    pub purpose: &'static str,
    /// Globals without which the program is not planned.
    pub required: &'static [&'static str],
    /// Globals without which a feature is missing.
    pub optional: &'static [Degrade],
    /// What this alternative does not give compared with the first, a clause; empty for the first.
    pub limits: &'static str,
    /// Cost class.
    pub cost: Cost,
}

/// Identity of a thread's row, compared at every event.
const ROW: &[&str] = &[
    "OFF_TASK_CGROUPS",
    "OFF_TASK_START",
    "OFF_TASK_EXEC_ID",
    "OFF_TASK_MM",
    "OFF_TASK_LEADER",
    "OFF_TASK_FLAGS",
];
/// [`ROW`], and the mark that tells serviced kernel faults from repaired ones.
const ROW_AND_DISABLED: &[&str] = &[
    "OFF_TASK_CGROUPS",
    "OFF_TASK_START",
    "OFF_TASK_EXEC_ID",
    "OFF_TASK_MM",
    "OFF_TASK_LEADER",
    "OFF_TASK_FLAGS",
    "OFF_TASK_PF_DISABLED",
];

/// [`ROW`], and what tells a downgrade from an acquisition for read.
const ROW_AND_RWSEM: &[&str] = &[
    "OFF_TASK_CGROUPS",
    "OFF_TASK_START",
    "OFF_TASK_EXEC_ID",
    "OFF_TASK_MM",
    "OFF_TASK_LEADER",
    "OFF_TASK_FLAGS",
    "OFF_MM_LOCK",
    "OFF_RWSEM_OWNER",
];
/// [`ROW`], and what names the holder of an mmap_lock.
const ROW_AND_OWNER: &[&str] = &[
    "OFF_TASK_CGROUPS",
    "OFF_TASK_START",
    "OFF_TASK_EXEC_ID",
    "OFF_TASK_MM",
    "OFF_TASK_LEADER",
    "OFF_TASK_FLAGS",
    "OFF_TASK_PID",
    "OFF_TASK_TGID",
    "OFF_MM_LOCK",
    "OFF_RWSEM_OWNER",
    "SIZE_RWSEM",
];

/// Members on the way from a task to the id of its memory cgroup.
pub(super) const CGROUP_WALK: &[&str] = &[
    "OFF_CSS_SET_SUBSYS",
    "OFF_CSS_CGROUP",
    "OFF_CGROUP_KN",
    "OFF_KN_ID",
    "MEMCG_SUBSYS",
];

const NO_CGROUP: Degrade = Degrade {
    globals: CGROUP_WALK,
    lost: "the memory cgroup of a thread is unknown, so the Cgroups view is empty and --cgroup matches nothing",
};
const NO_DESCENDANTS: Degrade = Degrade {
    globals: &["OFF_CSS_PARENT"],
    lost: "--cgroup matches the tasks of the cgroup itself but not those of its descendants",
};
const NO_OWNER: Degrade = Degrade {
    globals: &["OFF_MM_OWNER", "OFF_TASK_TGID"],
    lost: "the process that owns another one's mmap_lock is not named",
};
const SCOPES: &[Degrade] = &[NO_CGROUP, NO_DESCENDANTS];
const TAKEN: &[Degrade] = &[
    NO_CGROUP,
    NO_DESCENDANTS,
    Degrade {
        globals: &["OFF_MM_LOCK", "OFF_RWSEM_OWNER"],
        lost: "a write hold turned into a read hold counts as an acquisition for read",
    },
];
const MMAP: &[Degrade] = &[NO_CGROUP, NO_DESCENDANTS, NO_OWNER];
const LOCKS: &[Degrade] = &[
    NO_CGROUP,
    NO_DESCENDANTS,
    NO_OWNER,
    Degrade {
        globals: &["OFF_MM_LOCK", "SIZE_RWSEM"],
        lost: "contended waits for mmap_lock are shown as \"rwsem\"",
    },
    Degrade {
        globals: &["OFF_MM_OWNER"],
        lost: "contended waits for another process's mmap_lock are shown as \"rwsem\" while takes are not shown",
    },
    Degrade {
        globals: &["OFF_LRUVEC_LOCK", "OFF_LRUVEC_PGDAT", "OFF_ZONE_PGDAT"],
        lost: "contended waits for lru_lock are shown as \"spinlock\"",
    },
    Degrade {
        globals: &["OFF_PGDAT_NODE"],
        lost: "lru_lock and zone lock rows do not tell their NUMA node",
    },
    Degrade {
        globals: &[
            "OFF_PGDAT_LRUVEC",
            "OFF_MEMCG_NODE_LRUVEC",
            "OFF_MEMCG_NODE_MEMCG",
            "OFF_MEMCG_CSS",
        ],
        lost: "lru_lock rows do not tell the memory cgroup the pages are charged to",
    },
    Degrade {
        globals: &["OFF_ZONE_LOCK", "OFF_ZONE_PGDAT"],
        lost: "contended waits for a zone lock are shown as \"spinlock\"",
    },
    Degrade {
        globals: &["OFF_MM_PTL"],
        lost: "contended waits for the page-table lock of a whole address space are shown as \"spinlock\"",
    },
];

const LRU_LOCK: &[&str] = &["OFF_LRUVEC_LOCK", "OFF_LRUVEC_PGDAT", "OFF_ZONE_PGDAT"];
/// [`LRU_LOCK`], on kernels whose spinlocks spin.
const SPINNING_LRU_LOCK: &[&str] = &[
    "OFF_LRUVEC_LOCK",
    "OFF_LRUVEC_PGDAT",
    "OFF_ZONE_PGDAT",
    "SPINLOCK_SPINS",
];
const LRU_LOCK_NAMES: &[Degrade] = &[
    Degrade {
        globals: &["OFF_PGDAT_NODE"],
        lost: "lru_lock holds do not tell their NUMA node",
    },
    Degrade {
        globals: &[
            "OFF_PGDAT_LRUVEC",
            "OFF_MEMCG_NODE_LRUVEC",
            "OFF_MEMCG_NODE_MEMCG",
            "OFF_MEMCG_CSS",
        ],
        lost: "lru_lock holds do not tell the memory cgroup the pages are charged to",
    },
    Degrade {
        globals: &["OFF_CSS_SERIAL"],
        lost: "the lru_lock of a new memory cgroup at the address of a removed one is shown as the latter's",
    },
];
const REUSED_MM: &[Degrade] = &[Degrade {
    globals: &["OFF_MM_OWNER", "OFF_TASK_START"],
    lost: "an address space made anew where another one was is taken for it, until the window is over",
}];

/// What tells backing and path of a pass, and whether its thread passes the filter.
const PASS: &[&str] = &[
    "OFF_TASK_CGROUPS",
    "OFF_TASK_START",
    "OFF_TASK_EXEC_ID",
    "OFF_TASK_MM",
    "OFF_TASK_LEADER",
    "OFF_TASK_FLAGS",
    "OFF_VMA_FLAGS",
    "OFF_VMA_OPS",
    "OFF_VMA_FILE",
    "OFF_FILE_INODE",
    "OFF_INODE_MODE",
    "OFF_INODE_SB",
    "OFF_SB_MAGIC",
];

const NEW_MMAP: u8 = 0;
/// The page-based name is the only one before Linux 5.16 and a wrapper since (mm/folio-compat.c).
const MARK_ACCESSED: &[&str] = &["folio_mark_accessed", "mark_page_accessed"];
/// The prototypes with `const char *memcg_path` as second argument.
const MEMCG_PATH: u8 = 1;

macro_rules! probes {
    ($($program:ident: $signal:literal $set:ident $part:literal $way:expr, $attach:expr, $cost:ident,
        $required:expr, $optional:expr, $limits:literal, $purpose:literal;)*) => {
        /// Every probe, in attach order.
        pub static PROBES: &[Probe] = &[$(Probe {
            program: stringify!($program), signal: $signal, set: Set::$set, part: $part, way: $way,
            attach: $attach, purpose: $purpose, required: $required, optional: $optional,
            limits: $limits, cost: Cost::$cost,
        },)*];
    };
}

const fn entry(names: &'static [&'static str], args: &'static [usize]) -> Attach {
    Attach::Function {
        at: FunctionAt::Entry,
        names,
        args,
    }
}

const fn exit(names: &'static [&'static str], args: &'static [usize]) -> Attach {
    Attach::Function {
        at: FunctionAt::Exit,
        names,
        args,
    }
}

const fn kprobe(names: &'static [&'static str]) -> Attach {
    Attach::Function {
        at: FunctionAt::Probe,
        names,
        args: &[],
    }
}

const fn tp(name: &'static str, args: &'static [usize]) -> Attach {
    Attach::Tracepoint { name, args }
}

/// A slow path, whose arguments are the lock and its value.
const fn function(at: FunctionAt, names: &'static [&'static str]) -> Attach {
    Attach::Function {
        at,
        names,
        args: &[2],
    }
}

/// kernel/locking/qspinlock.c; a kernel with PV locks has both and uses the one its boot chose.
const NATIVE_SLOWPATH: &[&str] = &["native_queued_spin_lock_slowpath"];
const PV_SLOWPATH: &[&str] = &["__pv_queued_spin_lock_slowpath"];

probes! {
    task_exit: "scopes" Core "identity" 0, tp("sched_process_exit", &[]), Rare, &[], &[], "",
        "Marks the row of a dying thread, so that it is freed after the faults of its exit.";
    task_exec: "scopes" Core "identity" 0, tp("sched_process_exec", &[3]), Rare, &[], &[], "",
        "Marks the row that a thread leaves behind when its exec gives it the process's id.";
    task_rename: "scopes" Core "identity" 0, tp("task_rename", &[]), Rare, &[], &[], "",
        "Makes a thread's identity and name be read again after exec or a rename.";
    cgroup_move: "scopes" Core "cgroup moves" 0, tp("cgroup_attach_task", &[]), Rare, &[], &[], "",
        "Makes threads look their cgroup up again after a move.";

    workload_fork: "workload" Workload "workload" 0, tp("sched_process_fork", &[2]), Rare,
        &["OFF_TASK_TGID", "OFF_TASK_START"], &[], "",
        "Marks the processes that descend from the command of a recording.";

    fault_user: "faults" Core "faults" 0, tp("page_fault_user", &[3]), Fault, ROW, SCOPES, "",
        "Counts faults from user mode by access and cause.";
    fault_kernel: "faults" Core "faults" 0, tp("page_fault_kernel", &[3]), Fault, ROW_AND_DISABLED, SCOPES, "",
        "Counts faults the kernel takes on user addresses, those repaired by the exception table apart.";
    fault_software: "faults" Core "faults" 1, Attach::Software(SoftwareEvent::PageFaults), Fault, ROW, SCOPES,
        "faults are split into user and kernel only, without access or cause, and fixed-up ones are not seen",
        "Counts all serviced faults where the fault tracepoints are missing.";
    fault_major: "major_faults" Core "major faults" 0, Attach::Software(SoftwareEvent::MajorFaults), Fault, ROW,
        SCOPES, "", "Counts faults that waited for a page to be read.";

    mmap_taken: "mmap_lock" Taken "mmap_lock" NEW_MMAP, tp("mmap_lock_acquire_returned", &[3]), Taken, ROW,
        TAKEN, "", "Counts acquisitions, failures and downgrades of mmap locks.";
    mmap_taken_memcg: "mmap_lock" Taken "mmap_lock" MEMCG_PATH, tp("mmap_lock_acquire_returned", &[4]), Taken,
        ROW, TAKEN, "", "Counts acquisitions of mmap locks, for the prototype with a cgroup path.";
    mmap_released: "mmap_lock_hold" Mmap "mmap_lock holds" NEW_MMAP, tp("mmap_lock_released", &[2]), Acquisition,
        ROW_AND_RWSEM, MMAP, "", "Ends a hold of an mmap_lock.";
    mmap_acquired: "mmap_lock_hold" Mmap "mmap_lock holds" NEW_MMAP, tp("mmap_lock_acquire_returned", &[3]),
        Acquisition, ROW_AND_RWSEM, MMAP, "", "Ends a take of an mmap_lock and begins its hold.";
    mmap_start: "mmap_lock_hold" Mmap "mmap_lock holds" NEW_MMAP, tp("mmap_lock_start_locking", &[2]), Acquisition,
        ROW_AND_RWSEM, MMAP, "", "Begins a take of an mmap_lock.";
    mmap_released_memcg: "mmap_lock_hold" Mmap "mmap_lock holds" MEMCG_PATH, tp("mmap_lock_released", &[3]),
        Acquisition, ROW_AND_RWSEM, MMAP, "", "Ends a hold of an mmap_lock, for the prototype with a cgroup path.";
    mmap_acquired_memcg: "mmap_lock_hold" Mmap "mmap_lock holds" MEMCG_PATH,
        tp("mmap_lock_acquire_returned", &[4]), Acquisition, ROW_AND_RWSEM, MMAP, "",
        "Ends a take of an mmap_lock, for the prototype with a cgroup path.";
    mmap_start_memcg: "mmap_lock_hold" Mmap "mmap_lock holds" MEMCG_PATH, tp("mmap_lock_start_locking", &[3]),
        Acquisition, ROW_AND_RWSEM, MMAP, "", "Begins a take of an mmap_lock, for the prototype with a cgroup path.";

    learn_page: "page_table_locks" Learn "page address" 0, tp("mm_page_alloc", &[4]), Counter,
        &["OFF_PAGE_PTL", "SIZE_PAGE"], &[], "", "Learns one page descriptor's address, so that split page-table locks can be told.";
    contention_end: "contention" Core "contention" 0, tp("contention_end", &[2]), Wait, ROW, LOCKS, "",
        "Ends a contended wait and adds it to its lock, call site and thread.";
    contention_begin: "contention" Core "contention" 0, tp("contention_begin", &[2]), Wait, ROW, LOCKS, "",
        "Begins a contended wait and finds out which lock it is for.";
    spin_slowpath_native_end: "exact_spin_waits" Slowpath "native slow path" 0,
        function(FunctionAt::Exit, NATIVE_SLOWPATH), Wait, ROW, &[], "",
        "Ends a spinlock wait at the return of the native slow path.";
    spin_slowpath_native_begin: "exact_spin_waits" Slowpath "native slow path" 0,
        function(FunctionAt::Entry, NATIVE_SLOWPATH), Wait, ROW, &[], "",
        "Begins a spinlock wait at the entry of the native slow path, first waiters included.";
    spin_slowpath_pv_end: "exact_spin_waits" Slowpath "paravirtual slow path" 0,
        function(FunctionAt::Exit, PV_SLOWPATH), Wait, ROW, &[], "",
        "Ends a spinlock wait at the return of the paravirtual slow path.";
    spin_slowpath_pv_begin: "exact_spin_waits" Slowpath "paravirtual slow path" 0,
        function(FunctionAt::Entry, PV_SLOWPATH), Wait, ROW, &[], "",
        "Begins a spinlock wait at the entry of the paravirtual slow path.";
    blocked_end: "blocked" Blocked "blocked" 0, tp("contention_end", &[2]), Wait, ROW_AND_OWNER, MMAP, "",
        "Ends a contended wait for an mmap_lock and adds it to the row of waiter and holder.";
    blocked_begin: "blocked" Blocked "blocked" 0, tp("contention_begin", &[2]), Wait, ROW_AND_OWNER, MMAP, "",
        "Begins a contended wait for an mmap_lock and finds out who holds it.";

    lru_insertion: "lru" Lru "LRU insertions" 0, tp("mm_lru_insertion", &[]), Counter, &[], &[], "",
        "Counts folios put on an LRU list, on the CPU that drains.";
    lru_activate: "lru" Lru "LRU activations" 0, tp("mm_lru_activate", &[]), Counter, &[], &[], "",
        "Counts folios moved to the active list; none with multi-generational LRU on.";
    mark_accessed: "mark_accessed" Lru "mark accessed" 0, entry(MARK_ACCESSED, &[]), Counter, &[], &[], "",
        "Counts pages marked accessed.";
    mark_accessed_kprobe: "mark_accessed" Lru "mark accessed" 1, kprobe(MARK_ACCESSED), Counter, &[], &[],
        "each page marked accessed costs more: a kprobe in place of a trampoline",
        "Counts pages marked accessed where fentry is refused.";
    workingset_activation: "workingset_activation" Lru "workingset_activation" 0,
        entry(&["workingset_activation"], &[]), Counter, &[], &[], "", "Counts activations asked for.";
    workingset_refault: "workingset_refault" Lru "workingset_refault" 0, entry(&["workingset_refault"], &[]),
        Counter, &[], &[], "", "Counts refaults of evicted pages.";
    lru_drain: "drains" Lru "drains" 0, entry(&["lru_add_drain_cpu"], &[]), Counter, &[], &[], "",
        "Counts drains of a CPU's LRU batches.";
    lru_batch: "batches" Lru "batches" 0, entry(&["folio_batch_move_lru"], &[2]), Counter, &["OFF_FBATCH_NR"], &[],
        "", "Counts batches moved to a list, with their size and move function.";

    region_end: "lru_lock_hold" Holds "lru_lock region" 0, exit(&["folio_batch_move_lru"], &[2]), Acquisition, &[],
        &[], "", "Ends the region in which a batch is moved with lru_lock held.";
    region_begin: "lru_lock_hold" Holds "lru_lock region" 0, entry(&["folio_batch_move_lru"], &[2]), Acquisition,
        &[], &[], "", "Begins the region in which a batch is moved with lru_lock held.";
    hold_release: "lru_lock_exact_hold" ExactHolds "exact lru_lock holds" 0, entry(&["_raw_spin_unlock"], &[1]),
        Release, SPINNING_LRU_LOCK, LRU_LOCK_NAMES, "", "Ends a hold of an lru_lock.";
    hold_release_irq: "lru_lock_exact_hold" ExactHolds "exact lru_lock holds" 0,
        entry(&["_raw_spin_unlock_irq"], &[1]), Release, SPINNING_LRU_LOCK, LRU_LOCK_NAMES, "",
        "Ends a hold of an lru_lock with interrupts off.";
    hold_release_irqrestore: "lru_lock_exact_hold" ExactHolds "exact lru_lock holds" 0,
        entry(&["_raw_spin_unlock_irqrestore"], &[2]), Release, SPINNING_LRU_LOCK, LRU_LOCK_NAMES, "",
        "Ends a hold of an lru_lock with interrupts off and saved.";
    hold_acquired: "lru_lock_exact_hold" ExactHolds "exact lru_lock holds" 0, exit(&["folio_lruvec_lock"], &[1]),
        Release, SPINNING_LRU_LOCK, LRU_LOCK_NAMES, "", "Begins a hold of an lru_lock.";
    hold_acquired_irq: "lru_lock_exact_hold" ExactHolds "exact lru_lock holds" 0,
        exit(&["folio_lruvec_lock_irq"], &[1]), Release, SPINNING_LRU_LOCK, LRU_LOCK_NAMES, "",
        "Begins a hold of an lru_lock with interrupts off.";
    hold_acquired_irqsave: "lru_lock_exact_hold" ExactHolds "exact lru_lock holds" 0,
        exit(&["folio_lruvec_lock_irqsave"], &[2]), Release, SPINNING_LRU_LOCK, LRU_LOCK_NAMES, "",
        "Begins a hold of an lru_lock with interrupts off and saved.";
    hold_release_rt: "lru_lock_exact_hold" ExactHolds "exact lru_lock holds" 1, entry(&["rt_spin_unlock"], &[1]),
        Release, LRU_LOCK, LRU_LOCK_NAMES, "", "Ends a hold of an lru_lock on PREEMPT_RT.";
    hold_acquired_rt: "lru_lock_exact_hold" ExactHolds "exact lru_lock holds" 1, exit(&["folio_lruvec_lock"], &[1]),
        Release, LRU_LOCK, LRU_LOCK_NAMES, "", "Begins a hold of an lru_lock on PREEMPT_RT.";
    hold_acquired_irq_rt: "lru_lock_exact_hold" ExactHolds "exact lru_lock holds" 1,
        exit(&["folio_lruvec_lock_irq"], &[1]), Release, LRU_LOCK, LRU_LOCK_NAMES, "",
        "Begins a hold of an lru_lock taken by the irq form on PREEMPT_RT.";
    hold_acquired_irqsave_rt: "lru_lock_exact_hold" ExactHolds "exact lru_lock holds" 1,
        exit(&["folio_lruvec_lock_irqsave"], &[2]), Release, LRU_LOCK, LRU_LOCK_NAMES, "",
        "Begins a hold of an lru_lock taken by the irqsave form on PREEMPT_RT.";
    rss_stat: "rss_stat" Rss "rss_stat" 0, tp("rss_stat", &[2, 3]), Counter, ROW, SCOPES, "",
        "Counts RSS-counter updates by member.";

    sys_exit: "madvise" Madvise "madvise" 0, tp("sys_exit", &[2]), SystemCall, ROW, SCOPES, "",
        "Ends a madvise call and adds its bytes, duration and failure.";
    sys_enter: "madvise" Madvise "madvise" 0, tp("sys_enter", &[2]), SystemCall, ROW,
        &[NO_CGROUP, NO_DESCENDANTS, Degrade {
            globals: &["OFF_TASK_STATUS"],
            lost: "32-bit callers cannot be excluded: two unrelated 32-bit calls would be taken for madvise",
        }], "",
        "Begins a madvise or process_madvise call.";

    budget: "fault_budget" Budget "fault budget" 0, Attach::Clock { hz: BUDGET_HZ }, Sample, ROW, SCOPES, "",
        "Samples the CPU clock and counts kernel call chains of the fault path.";

    mm_fault_end: "fault_latency" Latency "fault latency" 0,
        Attach::Function { at: FunctionAt::Exit, names: &["handle_mm_fault"], args: &[4] }, Pass, PASS, &[], "",
        "Ends a pass of handle_mm_fault: time, retry, error, major.";
    mm_fault_begin: "populate_faults" Latency "fault latency" 0, entry(&["handle_mm_fault"], &[4]), Pass, PASS,
        SCOPES, "", "Begins a pass of handle_mm_fault: path and backing.";
    mm_fault_entry: "populate_faults" Latency "fault latency" 1,
        Attach::Function { at: FunctionAt::Probe, names: &["handle_mm_fault"], args: &[4] }, Pass, PASS, SCOPES,
        "passes of handle_mm_fault are counted where they begin: no times, no retries, errors or major faults, \
         and swap-ins and copies are not told apart",
        "Counts passes of handle_mm_fault where their end cannot be seen.";
    mm_fault_swap: "fault_backing" Latency "swap faults" 0, entry(&["do_swap_page"], &[1]), Pass,
        &["OFF_TASK_START", "OFF_VMF_PTE"], &[], "", "Marks a pass that finds a swap entry.";
    mm_fault_write: "fault_backing" Latency "copy faults" 0, entry(&["do_wp_page"], &[]), Pass,
        &["OFF_TASK_START"], &[], "", "Marks a pass that writes to a present page.";
    mm_fault_new: "fault_pages" Latency "new folios" 0,
        entry(&["folio_add_new_anon_rmap", "page_add_new_anon_rmap"], &[3, 4]), Pass,
        &["OFF_TASK_START", "OFF_FOLIO_FLAGS", "OFF_FOLIO_ORDER", "PG_HEAD"], &[], "",
        "Notes the size of the anonymous folio that a fault maps.";
    mm_fault_map: "fault_pages" Latency "mapped pages" 0, entry(&["set_pte_range"], &[5]), Pass,
        &["OFF_TASK_START"], &[], "", "Counts the pages of files that a fault maps, fault-around included.";
    mm_fault_map_one: "fault_pages" Latency "mapped pages" 1, entry(&["do_set_pte"], &[3]), Pass,
        &["OFF_TASK_START"], &[], "", "Counts the pages of files that a fault maps, one at a time.";

    advised_mm: "refaults" Refaults "advised address space" 0, tp("mmap_lock_start_locking", &[2, 3]), Acquisition,
        &["OFF_TASK_MM"], &[], "", "Learns whose memory a process_madvise call is about.";
    refault_user: "refaults" Refaults "refaults" 0, tp("page_fault_user", &[3]), Fault, &["OFF_TASK_MM"], REUSED_MM, "",
        "Counts faults from user mode on memory that madvise gave back a moment ago.";
    refault_kernel: "refaults" Refaults "refaults" 0, tp("page_fault_kernel", &[3]), Fault,
        &["OFF_TASK_MM", "OFF_TASK_PF_DISABLED"], REUSED_MM, "",
        "Counts faults of the kernel on memory that madvise gave back a moment ago.";
}

/// Looks a program up by name.
#[must_use]
pub fn probe(program: &str) -> Option<&'static Probe> {
    PROBES.iter().find(|probe| probe.program == program)
}
