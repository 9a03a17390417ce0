//! Tables of increments: rows of an interval.

use super::{Column, Table, columns};

const ROW: &[Column] = columns! {
    Int "at" "the interval times 2^18, plus the row's place in it";
    Sum("at >> 18") "interval" "the interval";
};

/// Those of `sample::Counters` that are not often zero; `rare` has the others by their number
/// there.
const COUNTERS: &[Column] = columns! {
    Int "user_read" "user faults: read, page not present";
    Int "user_write" "user faults: write, page not present";
    Int "user_exec" "user faults: instruction fetch, page not present";
    Int "user_read_present" "user faults: read, page present";
    Int "user_write_present" "user faults: write, page present";
    Int "user_exec_present" "user faults: instruction fetch, page present";
    Int "kernel_read" "serviced kernel faults: read, page not present";
    Int "kernel_write" "serviced kernel faults: write, page not present";
    Int "kernel_exec" "serviced kernel faults: instruction fetch, page not present";
    Int "kernel_read_present" "serviced kernel faults: read, page present";
    Int "kernel_write_present" "serviced kernel faults: write, page present";
    Int "kernel_exec_present" "serviced kernel faults: instruction fetch, page present";
    Int "fixed_up" "kernel faults repaired by the exception table";
    Int "major" "major faults, which the columns by class count too";
    Int "rss_updates" "RSS-counter updates";
    Int "madvise" "madvise calls";
    Int "mmap_read_taken" "mmap_lock had for read";
    Int "mmap_write_taken" "mmap_lock had for write";
    Int "mmap_read_take_ns" "time from asking to having it for read, ns";
    Int "mmap_write_take_ns" "time from asking to having it for write, ns";
    Int "mmap_read_hold_ns" "time held for read, ns";
    Int "mmap_write_hold_ns" "time held for write, ns";
    Int "mmap_lock_waits" "contended waits for mmap_lock";
    Int "mmap_lock_wait_ns" "their time, ns";
    Int "lru_lock_waits" "contended waits for lru_lock";
    Int "lru_lock_wait_ns" "their time, ns";
    Int "other_waits" "contended waits for locks of all other classes";
    Int "other_wait_ns" "their time, ns";
    Counts "rare" "counters that are nearly always zero, by number: see below";
    Sum("user_read + user_write + user_exec + user_read_present + user_write_present + user_exec_present") "user_faults" "user faults of all classes";
    Sum("kernel_read + kernel_write + kernel_exec + kernel_read_present + kernel_write_present + kernel_exec_present") "kernel_faults" "serviced kernel faults of all classes";
    Sum("user_faults + kernel_faults") "faults" "serviced faults";
    Sum("faults - major") "minor" "serviced faults that are not major";
};

const PASSES: &[Column] = columns! {
    Int "open" "passes of `handle_mm_fault` that began, minus those that ended";
    Int "ended" "faults that ended";
    Int "retries" "passes that returned RETRY";
    Int "majors" "faults the kernel accounts as major";
    Int "ns" "time of faults from their first pass on, ns";
    Int "max_ns" "longest since attach, ns";
    Int "more_pages" "base pages mapped, minus one for each fault that ended";
    Counts "rare" "by number: 0 faults that returned COMPLETED, 1 OOM (of a process: any error), 2 SIGBUS, 3 SIGSEGV, 4 HWPOISON, 5 faults that made a folio of several pages smaller than a huge one, 6 exits without a known entry";
    Counts "histogram" "fault times by latency bucket";
    Sum("open + ended + retries") "began" "passes that began";
    Sum("more_pages + ended") "pages" "base pages mapped";
};

const WAITS: &[Column] = columns! {
    Int "waits" "waits that ended";
    Int "wait_ns" "their time, ns";
    Int "max_ns" "longest since attach, ns";
};

const ADVICE: &[Column] = columns! {
    Int "tgid" "the process";
    Int "advice" "the advice of madvise(2), -1 unknown";
    Int "is_remote" "1 for process_madvise";
};

pub(super) const TABLES: &[Table] = &[
    Table {
        name: "interval",
        doc: "An interval, with what has no rows of its own.",
        key: 1,
        place: 1,
        groups: &[columns! {
            Int "interval" "its number, from 0";
            Int "t_mono_ns" "its end on the monotonic clock, ns";
            Int "t_real_ns" "its end, ns since the Unix epoch";
            Int "interval_ns" "its length, ns";
            Int "is_first" "1 for the first after attach: ends without a begin are its edge";
            Int "missing" "signals without a value: `missing.list`, 0 none";
            Int "notes" "sentences for the reader: `note.list`, 0 none";
            Int "spinlock" "what spinlock waits mean: `spinlock.id`";
            OptInt "is_paravirtual" "whether spinlock waits named so far came from the paravirtual slow path";
            OptInt "symbols_refused" "why call chains have no names although they should: `string.id`";
            Int "has_spin_waits" "1 if spinlock waits are measured in their slow path (`spin_wait`)";
            Int "regions_unpaired" "ends of `folio_batch_move_lru` without a known begin";
            Int "lru_acquired" "lru_locks had through `folio_lruvec_lock*`";
            Int "lru_unended" "of those, never seen released";
            Int "lru_releases" "releases of any spinlock";
            Int "lru_tested" "releases tested for an lru_lock";
            Int "lru_uncovered" "of those tested, lru_locks had by open-coded locking";
            Int "lru_sample" "one release in this many is tested";
            OptInt "mglru_begin" "switch of multi-generational LRU at the beginning, NULL where it is not built";
            OptInt "mglru_end" "the same at the end";
            Int "refault_window_ns" "how long after memory was given back a fault on it counts, ns";
            Int "unpaired_ends" "`contention_end` without a begin";
            Int "mmap_unpaired" "mmap_lock releases without an acquisition";
            Int "compat_madvise" "madvise calls of 32-bit processes";
            OptInt "context_switches" "context switches";
            OptInt "memory_some_ns" "memory pressure, some, ns";
            OptInt "memory_full_ns" "memory pressure, full, ns";
            OptInt "own_cpu_ns" "CPU time of the recorder, ns";
            OptInt "own_rss_bytes" "its resident memory, bytes";
            OptInt "own_peak_rss_bytes" "its peak resident memory, bytes";
            OptInt "own_map_bytes" "memory of its BPF maps, bytes";
            Int "own_overruns" "ticks that began late, since start";
            Int "programs" "its programs: `program.list`, 0 none";
            Int "maps" "its maps: `map.list`, 0 none";
            Int "levels" "names of `level` in order: `name.list`, 0 none";
            Int "vmstat" "names read from /proc/vmstat: `name.list`, 0 none";
            Int "losses" "loss counters read";
            Int "digest" "checksum of the interval's rows and of all they refer to";
        }],
    },
    Table {
        name: "cpu_time",
        doc: "A CPU of the interval: where it is and what its time went to.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "cpu" "its number";
                OptInt "core" "its core, NULL where the topology is unknown";
                OptInt "llc" "its last-level cache";
                OptInt "node" "its NUMA node";
                OptInt "busy_ns" "neither idle nor iowait, ns; NULL where /proc/stat does not tell";
                OptInt "idle_ns" "idle, ns";
                OptInt "iowait_ns" "idle with a read outstanding, ns";
                OptInt "steal_ns" "taken by the hypervisor, ns";
            },
        ],
    },
    Table {
        name: "cpu",
        doc: "What happened on a CPU; never filtered.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! { Int "cpu" "its number"; },
            COUNTERS,
            columns! {
                Int "rss_file" "RSS-counter updates, file pages";
                Int "rss_anon" "RSS-counter updates, anonymous pages";
                Int "rss_swap" "RSS-counter updates, swap entries";
                Int "rss_shmem" "RSS-counter updates, shared memory";
                Int "lru_insertions" "folios put on an LRU list";
                Int "lru_activations" "folios activated";
                Int "mark_accessed" "calls of `folio_mark_accessed`";
                Int "workingset_activations" "calls of `workingset_activation`";
                Int "refaults" "calls of `workingset_refault`";
                Int "drains" "calls of `lru_add_drain_cpu`";
                Int "mmap_handoffs" "mmap_lock handoffs from another CPU";
                Int "mmap_read_failed" "failed attempts at mmap_lock for read";
                Int "mmap_write_failed" "failed attempts at mmap_lock for write";
                Int "mmap_downgraded" "mmap_lock downgrades";
            },
        ],
    },
    Table {
        name: "cpu_fault",
        doc: "Passes of `handle_mm_fault` on a CPU; never filtered.",
        key: 1,
        place: 1,
        groups: &[ROW, columns! { Int "cpu" "its number"; }, PASSES],
    },
    Table {
        name: "thread",
        doc: "What a thread did, unless it did all that its process did (`process.only_thread`).",
        key: 1,
        place: 1,
        groups: &[ROW, columns! { Int "thread" "`thread_id.id`"; }, COUNTERS],
    },
    Table {
        name: "process",
        doc: "What the threads of a process did, exited ones included.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "process" "`process_id.id`";
                Int "threads" "threads with a row that are alive";
                Int "is_workload" "1 if it belongs to the recorded command";
                OptInt "only_thread" "`thread_id.id` of the thread that did all of it and has no row of its own";
            },
            COUNTERS,
        ],
    },
    Table {
        name: "cgroup",
        doc: "What the threads of a memory cgroup did.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "cgroup" "its id, the inode of its directory";
                Int "threads" "threads with a row that are alive";
            },
            COUNTERS,
        ],
    },
    Table {
        name: "space",
        doc: "Faults of an address space.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "mm" "`mm_id.id`";
                Int "window_faults" "faults inside the sharing window";
                Int "window_handoffs" "of those, after one on another CPU";
                Int "rss_updates" "RSS-counter updates of its threads";
                Counts "by_cpu" "faults by CPU";
            },
        ],
    },
    Table {
        name: "fault_kind",
        doc: "Passes of `handle_mm_fault` of the whole machine by path and backing.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "path" "0 VMA lock, 1 mmap_lock, 2 fall-back, 3 kernel, 4 populate, 5 get_user_pages";
                Int "backing" "0 anon, 1 file, 2 shmem, 3 cow, 4 swap, 5 thp, 6 hugetlb, 7 other";
            },
            PASSES,
        ],
    },
    Table {
        name: "process_fault",
        doc: "Passes of `handle_mm_fault` of a process's threads.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! { Int "tgid" "the process"; },
            PASSES,
            columns! {
                Int "vma_lock" "faults under the VMA lock";
                Int "mmap_lock" "faults under mmap_lock at once";
                Int "fall_back" "faults after an attempt under the VMA lock that returned RETRY";
                Int "kernel" "faults the kernel took";
                Int "populate" "pages populated without a trap";
                Int "get_user_pages" "other `get_user_pages`";
            },
        ],
    },
    Table {
        name: "mmap_taker",
        doc: "Who took which mmap_lock how.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "taker" "`taker_id.id`";
                Int "taken" "acquisitions given back";
                Int "downgraded" "downgrades";
                Int "failed" "failed attempts";
                Int "take_ns" "time from asking to having, ns";
                Int "take_max_ns" "longest since attach, ns";
                Int "slow_takes" "takes of more than 10 us";
                Int "holds" "holds ended";
                Int "hold_ns" "time held, ns";
                Int "hold_max_ns" "longest since attach, ns";
                Int "chain" "`chain.id` of where the latest sampled hold ended, 0 none";
                Counts "handoffs" "handoffs by distance";
            },
        ],
    },
    Table {
        name: "lock_wait",
        doc: "Contended waits for a lock, or at a call site.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! { Int "lock" "`lock_id.id`"; },
            WAITS,
            columns! {
                Int "untraced" "of `waits`, those the contention tracepoint did not see";
                Counts "handoffs" "handoffs by distance";
                Counts "histogram" "waits by latency bucket";
            },
        ],
    },
    Table {
        name: "spin_wait",
        doc: "Spinlock waits measured in their slow path.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "class" "lock class, as `lock_id.class`";
                Int "ended" "waits that ended";
                Int "traced" "of those, the ones the contention tracepoint saw as well";
            },
        ],
    },
    Table {
        name: "blocked",
        doc: "Contended waits for mmap_lock by waiter and holder.",
        key: 1,
        place: 1,
        groups: &[ROW, columns! { Int "blocked" "`blocked_id.id`"; }, WAITS],
    },
    Table {
        name: "lru_move",
        doc: "What `folio_batch_move_lru` did with a move function.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "function" "the move function: `string.id`";
                Int "batches" "batches";
                Int "folios" "folios in them";
                Counts "sizes" "batches by number of folios";
                Int "regions" "calls timed";
                Int "region_ns" "their time, ns";
                Int "region_max_ns" "longest since attach, ns";
                Counts "histogram" "calls by latency bucket";
            },
        ],
    },
    Table {
        name: "lru_hold",
        doc: "Exact holds of an lru_lock.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "node" "its NUMA node";
                Int "memcg" "cgroup the pages are charged to, 0 the node's own";
                Int "holds" "holds that ended";
                Int "hold_ns" "their time, ns";
                Int "max_ns" "longest since attach, ns";
                Counts "handoffs" "handoffs by distance";
                Counts "histogram" "holds by latency bucket";
                Int "address" "an address of the lock, 0 where kernel addresses are hidden";
            },
        ],
    },
    Table {
        name: "madvise",
        doc: "madvise calls of a process by advice.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            ADVICE,
            columns! {
                Int "calls" "calls";
                Int "failures" "failed calls";
                Int "bytes" "bytes of successful calls";
                Int "ns" "time, ns";
                Int "max_ns" "longest since attach, ns";
            },
        ],
    },
    Table {
        name: "refault",
        doc: "Memory a process gave back by an advice, and faults on it within the window.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            ADVICE,
            columns! {
                Int "ranges" "ranges given back";
                Int "bytes" "their bytes, whole pages";
                Int "lost_bytes" "bytes of ranges not followed to the end of their window";
                Int "refaults" "faults on a page not present";
                Int "ns" "time from the return of the call to the fault, sum, ns";
                Counts "histogram" "the same by latency bucket";
            },
        ],
    },
    Table {
        name: "budget",
        doc: "Samples of the CPU clock; no row while none are taken.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "period_ns" "CPU time a sample stands for, ns";
                Int "cpus" "CPUs that gave samples";
                Int "samples" "all samples; never filtered";
                Int "idle" "in the idle task; never filtered";
                Int "user" "in user mode, filtered";
                Int "kernel" "in the kernel outside the idle task, filtered";
                Int "deep" "of `kernel`, with too many frames to tell";
                Int "interrupted" "of `kernel`, inside a fault that an interrupt interrupted";
            },
        ],
    },
    Table {
        name: "budget_part",
        doc: "Samples inside the fault path by what the kernel was doing.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "part" "the part's number: `part.position`";
                Int "user" "of faults from user mode";
                Int "kernel" "of faults the kernel took";
                Int "untrapped" "of populate and get_user_pages";
                OptInt "function" "the function in which the clock struck most often: `string.id`";
            },
        ],
    },
    Table {
        name: "loss",
        doc: "A loss counter that is not zero.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "loss" "`loss_kind.position`";
                Int "total" "events lost since the recording began";
                Int "increment" "events lost in the interval";
            },
        ],
    },
    Table {
        name: "vmstat",
        doc: "A counter of /proc/vmstat that moved.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "name" "its name: `string.id`";
                Int "increment" "what was added";
            },
        ],
    },
    Table {
        name: "level",
        doc: "A level of /proc/meminfo at the end of the interval.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "position" "its place in the list `interval.levels`";
                Int "bytes" "the level, bytes";
            },
        ],
    },
    Table {
        name: "program_run",
        doc: "Runs of a program of the recorder; no row where all are zero.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "position" "its place in the list `interval.programs`";
                Int "run_ns" "run time, ns";
                Int "runs" "runs";
                Int "misses" "runs skipped by the kernel's recursion guard";
            },
        ],
    },
    Table {
        name: "map_fill",
        doc: "Entries of a BPF map that is not empty.",
        key: 1,
        place: 1,
        groups: &[
            ROW,
            columns! {
                Int "position" "its place in the list `interval.maps`";
                Int "entries" "entries in use";
            },
        ],
    },
];
