//! The field catalogue: every column any sink shows, once.
//!
//! Ids are the JSON and CSV keys (with their unit suffix), titles the column
//! heads, descriptions the help and `docs/metrics.md`.

/// What the number of a field is, and so how it is formatted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Text.
    None,
    /// Events.
    Events,
    /// Nanoseconds.
    Ns,
    /// Bytes.
    Bytes,
    /// Pages of the base size.
    Pages,
    /// A share from 0 to 1 (of one CPU: 0 to the number of CPUs).
    Ratio,
    /// Already a rate, events per second.
    PerSec,
    /// A plain number: an id, a CPU, a node.
    Number,
}

/// How a field behaves over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Identifies the row; matched by the word filter.
    Key,
    /// Increment over the interval; sinks also show it per second.
    Counter,
    /// Level, maximum, average or ratio at the end of the interval.
    Gauge,
}

/// One column.
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    /// Catalogue id: JSON and CSV key, sort key.
    pub id: &'static str,
    /// Column head, at most 12 characters.
    pub title: &'static str,
    /// Unit of the cell.
    pub unit: Unit,
    /// Key, counter or gauge.
    pub kind: Kind,
    /// 0 stays longest when the screen is narrow, 9 goes first.
    pub priority: u8,
    /// Signal of the probe catalogue that gives the field; empty: always there.
    pub signal: &'static str,
    /// One sentence.
    pub description: &'static str,
}

macro_rules! fields {
    ($($name:ident = $id:literal $title:literal $unit:ident $kind:ident $prio:literal $signal:literal $doc:literal;)*) => {
        $(#[doc = $doc] pub static $name: Field = Field {
            id: $id, title: $title, unit: Unit::$unit, kind: Kind::$kind,
            priority: $prio, signal: $signal, description: $doc,
        };)*
        /// Every field, for help, documentation and tests.
        pub static ALL: &[&Field] = &[$(&$name,)*];
    };
}

fields! {
    CPU = "cpu" "CPU" Number Key 0 "" "CPU number.";
    CORE = "core" "CORE" Number Gauge 7 "" "Physical core of the CPU.";
    LLC = "llc" "LLC" Number Gauge 6 "" "Last-level cache the CPU shares.";
    NODE = "node" "NODE" Number Gauge 6 "" "NUMA node.";
    PID = "pid" "PID" Number Key 0 "" "Process id (thread group).";
    TID = "tid" "TID" Number Key 0 "" "Thread id.";
    COMM = "comm" "COMM" None Key 0 "" "Name of the thread, or of the process's first thread.";
    THREADS_N = "threads" "THR" Number Gauge 5 "" "Threads seen by our programs and still alive.";
    CGROUP = "cgroup" "CGROUP" None Key 2 "" "Path in the hierarchy that holds the memory controller.";
    CGROUP_ID = "cgroup_id" "CGID" Number Gauge 9 "" "Inode of the cgroup directory.";

    FAULTS_N = "faults" "FAULTS" Events Counter 0 "faults" "Faults serviced, user and kernel, minor and major.";
    FAULTS_MINOR = "faults_minor" "MINOR" Events Counter 4 "faults" "Faults less major faults.";
    FAULTS_MAJOR = "faults_major" "MAJOR" Events Counter 1 "major_faults" "Faults that waited for a page to be read (exact, perf software event).";
    FAULTS_USER = "faults_user" "USER" Events Counter 5 "faults" "Faults from user mode.";
    FAULTS_KERNEL = "faults_kernel" "KERN" Events Counter 5 "faults" "Faults the kernel took on user addresses with page faults enabled.";
    FAULTS_FIXED = "faults_fixed_up" "FIXUP" Events Counter 6 "faults" "Kernel faults with page faults disabled or on kernel addresses, repaired by the exception table; never serviced.";
    FAULTS_READ = "faults_read" "READ" Events Counter 6 "faults" "Serviced faults on a read of a page not present.";
    FAULTS_WRITE = "faults_write" "WRITE" Events Counter 3 "faults" "Serviced faults on a write to a page not present.";
    FAULTS_EXEC = "faults_exec" "EXEC" Events Counter 8 "faults" "Serviced faults on an instruction fetch.";
    FAULTS_PROT = "faults_protection" "PROT" Events Counter 4 "faults" "Serviced faults on a present page: copy-on-write, write-protect, access denied.";
    FAULTS_PER_CPU_SEC = "faults_per_cpu_sec" "F/CPUs" PerSec Gauge 7 "faults" "Faults per second of CPU time the CPU was busy (pft's flt/cpu/s).";
    RSS_UPDATES = "rss_updates" "RSS UPD" Events Counter 5 "rss_stat" "RSS-counter updates.";
    RSS_PER_FAULT = "rss_updates_per_fault" "UPD/F" Number Gauge 7 "rss_stat" "RSS-counter updates per serviced fault: shared-counter pressure, a bounce proxy.";

    MM_WAIT_NS = "mmap_lock_wait_ns" "MMLK WAIT" Ns Counter 2 "contention" "Time in contended waits for an mmap_lock.";
    MM_READ_TAKE_NS = "mmap_lock_read_take_ns" "MMLK-R TAKE" Ns Counter 7 "mmap_lock_hold" "Time from asking for mmap_lock for read to having it: waits, and about 150 ns of our own for each.";
    MM_WRITE_TAKE_NS = "mmap_lock_write_take_ns" "MMLK-W TAKE" Ns Counter 6 "mmap_lock_hold" "Time from asking for mmap_lock for write to having it: waits, and about 150 ns of our own for each.";
    MM_READS = "mmap_lock_reads" "MMLK-R" Events Counter 6 "mmap_lock" "mmap_lock acquisitions for read, downgrades apart.";
    MM_WRITES = "mmap_lock_writes" "MMLK-W" Events Counter 4 "mmap_lock" "mmap_lock acquisitions for write.";
    MM_HOLD_W_NS = "mmap_lock_write_hold_ns" "MMLK-W HOLD" Ns Counter 5 "mmap_lock_hold" "Time mmap_lock was held for write.";
    MM_HOLD_R_NS = "mmap_lock_read_hold_ns" "MMLK-R HOLD" Ns Counter 7 "mmap_lock_hold" "Time mmap_lock was held for read.";
    LRU_WAIT_NS = "lru_lock_wait_ns" "LRULK WAIT" Ns Counter 3 "contention" "Time in contended waits for an lru_lock.";
    OTHER_WAIT_NS = "other_lock_wait_ns" "OTHER WAIT" Ns Counter 6 "contention" "Time in contended waits for locks other than mmap_lock and lru_lock.";
    LOCK_WAITS = "lock_waits" "LOCKWAITS" Events Counter 4 "contention" "Contended waits for any lock.";
    LOCK_WAIT_NS = "lock_wait_ns" "LOCK WAIT" Ns Counter 2 "contention" "Time in contended waits for any lock.";
    HANDOFF_RATIO = "mmap_lock_handoff_ratio" "HANDOFF" Ratio Gauge 5 "mmap_lock_hold" "Share of mmap_lock acquisitions whose previous acquisition was on another CPU: a bounce proxy.";
    HANDOFFS = "mmap_lock_handoffs" "HANDOFFS" Events Counter 5 "mmap_lock" "mmap_lock acquisitions whose previous acquisition was on another CPU: a bounce proxy.";
    SHARE_EXPECTED = "sharing_expected_per_sec" "SHARE/s" PerSec Gauge 6 "faults" "Bounce proxy: rate at which successive faults of the address space fall on different CPUs if their order is random.";
    SHARE_BOUND = "sharing_bound_per_sec" "BOUND/s" PerSec Gauge 8 "faults" "Bounce proxy: greatest possible such rate for the same shares.";
    SHARE_MEASURED = "sharing_measured_ratio" "MEASURED" Ratio Gauge 8 "faults" "Bounce proxy: share of successive faults on different CPUs, measured in a window of at most 10 ms per second.";
    SHARE_EXPECTED_RATIO = "sharing_expected_ratio" "EXPECTED" Ratio Gauge 6 "faults" "Bounce proxy: 1 - sum(p_i^2) over the CPU shares p_i of the faults.";
    SHARE_BOUND_RATIO = "sharing_bound_ratio" "BOUND" Ratio Gauge 7 "faults" "Bounce proxy: min(1, 2 (1 - max p_i)).";
    SHARE_WINDOW = "sharing_window_faults" "WINDOW" Events Counter 9 "faults" "Faults seen inside the measuring window.";
    CPUS_USED = "cpus_used" "CPUS" Number Gauge 5 "faults" "CPUs on which the address space faulted.";
    MADVISE_CALLS = "madvise_calls" "MADV" Events Counter 6 "madvise" "madvise and process_madvise calls.";

    FAULT_PATH = "path" "PATH" None Key 0 "" "How `handle_mm_fault` was reached: from user mode under the VMA lock, under mmap_lock, or under mmap_lock after a RETRY (fall-back); for the kernel; or without a trap (populate, get_user_pages).";
    BACKING = "backing" "BACKING" None Key 0 "" "What the address is backed by: anon, file, shmem, cow (private copy), swap, thp, hugetlb, other (devices, special mappings, migration).";
    PASSES = "passes" "PASSES" Events Counter 1 "populate_faults" "Passes of `handle_mm_fault`: faults, and passes that returned RETRY.";
    HANDLED = "handled" "HANDLED" Events Counter 0 "fault_latency" "Faults that `handle_mm_fault` ended: passes that returned anything but RETRY. Without errors they are ru_minflt and ru_majflt.";
    FAULT_P50_NS = "fault_p50_ns" "P50" Ns Gauge 2 "fault_latency" "Half of the faults took less from the first pass's entry to the last one's return (off by at most 25 %).";
    FAULT_P99_NS = "fault_p99_ns" "P99" Ns Gauge 1 "fault_latency" "99 % of the faults took less (off by at most 25 %).";
    FAULT_AVG_NS = "fault_avg_ns" "AVG" Ns Gauge 3 "fault_latency" "Average time of a fault.";
    FAULT_MAX_NS = "fault_max_ns" "MAX" Ns Gauge 4 "fault_latency" "Longest fault since the programs were loaded.";
    FAULT_NS = "fault_ns" "TIME" Ns Counter 5 "fault_latency" "Time of all faults.";
    HANDLED_MAJOR = "handled_major" "MAJOR" Events Counter 3 "fault_latency" "Faults the kernel accounts as major: MAJOR was returned, or an earlier pass had waited (TRIED).";
    RETRIES = "retries" "RETRY" Events Counter 2 "fault_latency" "Passes that returned RETRY; the pass that follows is no new fault.";
    FAULT_ERRORS = "fault_errors" "ERRORS" Events Counter 4 "fault_latency" "Faults that returned an error.";
    ERRORS_OOM = "errors_oom" "OOM" Events Counter 5 "fault_latency" "Faults that returned OOM.";
    ERRORS_SIGBUS = "errors_sigbus" "SIGBUS" Events Counter 5 "fault_latency" "Faults that returned SIGBUS: beyond the end of a file, or an I/O error.";
    ERRORS_SIGSEGV = "errors_sigsegv" "SIGSEGV" Events Counter 6 "fault_latency" "Faults that returned SIGSEGV. An address outside every mapping never gets here.";
    ERRORS_HWPOISON = "errors_hwpoison" "HWPOISON" Events Counter 7 "fault_latency" "Faults that returned HWPOISON, or an error bit not named here.";
    COMPLETED = "completed" "COMPLETED" Events Counter 8 "fault_latency" "Faults that returned COMPLETED: done, with the lock given back meanwhile.";
    PAGES_MAPPED = "pages_mapped" "MAPPED" Pages Counter 6 "fault_pages" "Base pages that faults mapped: new anonymous folios, and pages of files with those around; hugetlb is not in it, nor are swap-ins on older kernels.";
    PAGES_PER_FAULT = "pages_per_fault" "PAGES/F" Number Gauge 5 "fault_pages" "Pages mapped per fault.";
    LARGE_FOLIOS = "large_folios" "LARGE" Events Counter 7 "fault_pages" "Faults that made an anonymous folio of several pages, smaller than a huge page (mTHP).";
    VIA_VMA_LOCK = "via_vma_lock" "VMA LOCK" Events Counter 3 "fault_latency" "Faults from user mode under the VMA lock.";
    VIA_MMAP_LOCK = "via_mmap_lock" "MMAP LOCK" Events Counter 3 "fault_latency" "Faults from user mode under mmap_lock, the VMA lock never tried.";
    VIA_FALL_BACK = "via_fall_back" "FALL-BACK" Events Counter 3 "fault_latency" "Faults from user mode under mmap_lock, after an attempt under the VMA lock returned RETRY.";
    VIA_KERNEL = "via_kernel" "KERN" Events Counter 5 "fault_latency" "Faults the kernel took on user addresses.";
    VIA_POPULATE = "via_populate" "POPULATE" Events Counter 5 "fault_latency" "Pages populated without a trap by mmap, mlock, madvise, brk, mremap, mprotect or shmat.";
    VIA_GUP = "via_get_user_pages" "GUP" Events Counter 6 "fault_latency" "Other faults of get_user_pages: direct I/O, ptrace, exec's arguments.";

    CPU_BUSY = "cpu_busy_ratio" "BUSY" Ratio Gauge 4 "" "Share of the interval the CPU was neither idle nor in iowait.";
    CPU_IDLE = "cpu_idle_ratio" "IDLE" Ratio Gauge 5 "" "Share of the interval idle.";
    CPU_IOWAIT = "cpu_iowait_ratio" "IOWAIT" Ratio Gauge 6 "" "Share of the interval idle while a read was outstanding.";
    CPU_STEAL = "cpu_steal_ratio" "STEAL" Ratio Gauge 5 "" "Share of the interval the hypervisor ran something else.";
    SPIN_WAITS = "spin_waits" "SPINWAITS" Events Counter 4 "contention" "Contended spinlock waits.";
    SPIN_WAIT_NS = "spin_wait_ns" "SPIN WAIT" Ns Counter 3 "contention" "Time in contended spinlock waits.";
    LRU_INSERTIONS = "lru_insertions" "LRU INS" Events Counter 6 "lru" "Folios put on an LRU list; counted where the drain ran, not where the page was touched.";
    LRU_ACTIVATIONS = "lru_activations" "LRU ACT" Events Counter 7 "lru" "Folios activated; with multi-generation LRU on this stays 0.";
    LRU_MARKED = "lru_mark_accessed" "MARK ACC" Events Counter 7 "mark_accessed" "Calls of folio_mark_accessed.";
    LRU_REFAULTS = "lru_refaults" "REFAULTS" Events Counter 8 "workingset_refault" "Folios that came back after reclaim had evicted them.";
    LRU_DRAINS = "lru_drains" "DRAINS" Events Counter 8 "drains" "Calls of lru_add_drain_cpu: all LRU batches of a CPU emptied.";

    ORIGIN = "origin" "ORIGIN" None Key 0 "" "user: from user mode; kernel: serviced for the kernel; fixed up; or a counter of the kernel.";
    ACCESS = "access" "ACCESS" None Key 0 "" "read, write or instruction fetch.";
    CAUSE = "cause" "CAUSE" None Key 0 "" "not present, or protection (page present).";
    SHARE = "share_ratio" "SHARE" Ratio Gauge 3 "faults" "Share of all serviced faults.";
    COMMENT = "comment" "COMMENT" None Gauge 6 "" "What to know about the row.";

    PART = "part" "WHERE" None Key 0 "" "Part of the fault path, whose parts add up to it; below them who faulted, and the other uses of CPU time.";
    SAMPLES = "samples" "SAMPLES" Events Counter 0 "fault_budget" "Samples of the CPU clock in the interval, 997 a second and CPU.";
    TIME_SHARE = "fault_time_ratio" "SHARE" Ratio Gauge 1 "fault_budget" "Share of the fault time; absent below 100 samples in the fault path.";
    TIME_SHARE_LOW = "fault_time_low_ratio" "LOW" Ratio Gauge 2 "fault_budget" "Lower end of the share's 95 % interval (Wilson), samples taken as independent.";
    TIME_SHARE_HIGH = "fault_time_high_ratio" "HIGH" Ratio Gauge 2 "fault_budget" "Upper end of the share's 95 % interval (Wilson), samples taken as independent.";
    NS_A_FAULT = "time_per_fault_ns" "A FAULT" Ns Gauge 2 "fault_budget" "CPU time of one trapped fault, estimated: samples times period over the faults of the interval; absent below 100 of either.";
    CPU_SHARE = "cpu_time_ratio" "OF CPU" Ratio Gauge 3 "fault_budget" "Share of the CPU time, idle time apart, of the threads shown; of all CPU time for idle and missed samples.";
    TIME_NS = "time_ns" "TIME" Ns Counter 4 "fault_budget" "CPU time, estimated: samples times period.";
    FUNCTION = "function" "FUNCTION" None Gauge 5 "fault_budget" "Kernel function in which the clock struck most often.";

    SUBJECT = "subject" "WHAT" None Key 0 "" "What the row counts.";
    SOURCE = "source" "SOURCE" None Key 3 "" "Where the number comes from.";
    EVENTS = "events" "EVENTS" Events Counter 0 "" "Events in the interval.";
    TOTAL = "total" "TOTAL" Events Gauge 5 "" "Events since attach, or the kernel's own counter.";

    LOCK = "lock" "LOCK" None Key 0 "" "Lock class.";
    MODE = "mode" "MODE" None Key 1 "" "read, write, spin, mutex or rt.";
    OWNER = "owner" "OF" None Key 0 "" "mmap_lock: process that owns the address space; lru_lock: memcg the pages are charged to.";
    ADDRESS = "address" "ADDRESS" None Gauge 9 "" "Kernel address of the lock; shown only where kernel addresses are readable.";
    WAITS = "waits" "WAITS" Events Counter 1 "contention" "Contended waits that ended in the interval.";
    WAIT_NS = "wait_ns" "WAIT" Ns Counter 0 "contention" "Time waited.";
    TRACED_WAITS = "traced_waits" "TRACED" Events Counter 8 "exact_spin_waits" "Of these waits, those the contention tracepoint saw; shown while spinlock waits are measured in their slow path.";
    WAIT_AVG_NS = "wait_avg_ns" "AVG" Ns Gauge 4 "contention" "Average wait.";
    WAIT_MAX_NS = "wait_max_ns" "MAX EVER" Ns Gauge 3 "contention" "Longest wait since attach.";
    WAIT_P99_NS = "wait_p99_ns" "P99" Ns Gauge 5 "contention" "99th percentile of the waits of the interval (log-linear buckets, error at most 25 %).";
    WAITS_PER_MFAULT = "waits_per_mfault" "W/MFAULT" Number Gauge 2 "contention" "Contended waits per million serviced faults: comparable between runs of different speed.";
    WAIT_PER_FAULT = "wait_per_fault_ns" "WAIT/FAULT" Ns Gauge 2 "contention" "Time waited per serviced fault.";
    HANDOFF_SAME = "handoff_same_cpu" "H:SAME" Events Counter 7 "contention" "Handoffs to the CPU that had it before.";
    HANDOFF_SMT = "handoff_smt" "H:SMT" Events Counter 8 "contention" "Handoffs between hardware threads of one core.";
    HANDOFF_LLC = "handoff_llc" "H:LLC" Events Counter 7 "contention" "Handoffs within a last-level cache.";
    HANDOFF_NODE = "handoff_node" "H:NODE" Events Counter 8 "contention" "Handoffs within a NUMA node, across caches.";
    HANDOFF_REMOTE = "handoff_remote" "H:REMOTE" Events Counter 6 "contention" "Handoffs between NUMA nodes.";
    LOCKS_MERGED = "locks" "LOCKS" Number Gauge 7 "contention" "Locks that differ in nothing shown and share the row.";
    CHAINS_MERGED = "chains" "CHAINS" Number Gauge 8 "contention" "Different call chains through the call site.";
    SITE = "site" "CALL SITE" None Key 1 "" "First kernel function outside the lock code.";
    STACK = "stack" "STACK" None Gauge 9 "" "Call chain, innermost first.";
    HOLDER = "taker" "TAKER" None Key 0 "" "Process that takes the lock.";
    SYSCALL = "syscall" "SYSCALL" None Key 0 "" "System call that takes the lock; `fault` outside system calls, `exit` of a dying thread.";
    ACQUISITIONS = "acquisitions" "TAKEN" Events Counter 1 "mmap_lock_hold" "Times the lock was taken, downgrades apart.";
    DOWNGRADES = "downgrades" "DOWNGR" Events Counter 6 "mmap_lock_hold" "Write holds turned into read holds.";
    FAILURES = "failures" "FAILED" Events Counter 6 "mmap_lock_hold" "Failed attempts: trylock failures (never waits) and killed waiters.";
    HOLD_NS = "hold_ns" "HOLD" Ns Counter 2 "mmap_lock_hold" "Time held.";
    HOLD_AVG_NS = "hold_avg_ns" "AVG HOLD" Ns Gauge 5 "mmap_lock_hold" "Average hold.";
    HOLD_MAX_NS = "hold_max_ns" "MAXHOLD EVER" Ns Gauge 5 "mmap_lock_hold" "Longest hold since attach.";
    MM_WAITS = "mmap_lock_waits" "WAITED" Events Counter 4 "mmap_lock_hold" "Acquisitions that took more than 10 us from asking to having.";
    TAKER_WAIT_NS = "take_wait_ns" "TAKE" Ns Counter 1 "mmap_lock_hold" "Time from asking for mmap_lock to having it; uncontended ones included.";
    HOLD_WAY = "hold_way" "WAY" None Key 0 "" "region: a call of folio_batch_move_lru; exact: from had to released; not covered: an estimate.";
    LRU_HOLDS = "lru_holds" "HOLDS" Events Counter 1 "lru_lock_hold" "Holds of lru_lock that ended, or regions.";
    LRU_HOLD_NS = "lru_hold_ns" "HELD" Ns Counter 0 "lru_lock_hold" "Time lru_lock was held, or in the region; our own programs' time inside it included.";
    LRU_HOLD_AVG_NS = "lru_hold_avg_ns" "AVG HELD" Ns Gauge 3 "lru_lock_hold" "Average hold or region.";
    LRU_HOLD_MAX_NS = "lru_hold_max_ns" "MAX EVER" Ns Gauge 4 "lru_lock_hold" "Longest hold or region since attach.";
    LRU_HOLD_P99_NS = "lru_hold_p99_ns" "P99 HELD" Ns Gauge 4 "lru_lock_hold" "99th percentile of the holds or regions of the interval (log-linear buckets, error at most 25 %).";

    WAITER = "waiter" "WAITER" None Key 0 "" "Process that waited.";
    WAITER_CALL = "waiter_syscall" "BY" None Key 2 "" "System call the waiter was in; `fault` outside system calls.";
    WAITER_SITE = "waiter_site" "WAITS AT" None Key 4 "" "First kernel function outside the lock code where it waited.";
    BLOCKER = "holder" "HELD BY" None Key 0 "" "Process that held the lock when the waiter arrived; absent where the kernel does not tell.";
    BLOCKER_THREAD = "holder_thread" "THREAD" None Key 5 "" "Name of the holding thread.";
    BLOCKER_MODE = "held_for" "HELD FOR" None Key 1 "" "write; read: by the thread named, maybe with others; readers: for read by threads the kernel does not name; changing hands.";
    BLOCKER_CALL = "holder_syscall" "HOLDER BY" None Key 1 "" "System call of the hold; `fault` outside system calls.";
    BLOCKER_SITE = "holder_site" "HOLDER AT" None Key 2 "" "First kernel function outside the lock code where the hold ended; absent if it had not before the waiter went on.";
    SAMPLED_SITE = "hold_site" "CALL SITE" None Gauge 4 "mmap_lock_hold" "First kernel function outside the lock code where a hold ended: the latest of 1 in 64 holds of the row, and of those somebody waited for while `blocked` was shown.";
    BLOCKED_WAITS = "blocked_waits" "WAITS" Events Counter 1 "blocked" "Contended waits for mmap_lock that ended in the interval.";
    BLOCKED_NS = "blocked_ns" "WAIT" Ns Counter 0 "blocked" "Time waited.";
    BLOCKED_AVG_NS = "blocked_avg_ns" "AVG" Ns Gauge 4 "blocked" "Average wait.";
    BLOCKED_MAX_NS = "blocked_max_ns" "MAX EVER" Ns Gauge 3 "blocked" "Longest wait since attach.";

    ADVICE = "advice" "ADVICE" None Key 0 "" "Advice as in madvise(2).";
    CALL = "call" "CALL" None Key 3 "" "madvise or process_madvise.";
    CALLS = "calls" "CALLS" Events Counter 0 "madvise" "Calls that returned in the interval.";
    MADV_FAILURES = "madvise_failures" "FAILED" Events Counter 1 "madvise" "Calls that returned an error.";
    MADV_BYTES = "madvise_bytes" "BYTES" Bytes Counter 1 "madvise" "Bytes of successful calls: the length asked for, or what process_madvise returned.";
    MADV_NS = "madvise_ns" "TIME" Ns Counter 2 "madvise" "Time in the calls.";
    MADV_AVG_NS = "madvise_avg_ns" "AVG" Ns Gauge 3 "madvise" "Average duration.";
    MADV_MAX_NS = "madvise_max_ns" "MAX EVER" Ns Gauge 4 "madvise" "Longest call since attach.";
    GIVEN_RANGES = "given_back_ranges" "RANGES" Events Counter 4 "madvise" "Ranges given back.";
    GIVEN_BYTES = "given_back_bytes" "GIVEN BACK" Bytes Counter 1 "madvise" "Bytes given back, whole pages, there before or not.";
    REFAULTS = "refaults" "REFAULTS" Events Counter 0 "refaults" "Faults on pages not present, in memory given back within the window: pages touched again.";
    REFAULT_BYTES = "refaulted_bytes" "REFAULTED" Bytes Counter 2 "refaults" "Base pages of the refaults.";
    REFAULT_RATIO = "refault_ratio" "SHARE" Ratio Gauge 1 "refaults" "Bytes refaulted over bytes given back in the interval; both ends of a window may lie in different intervals.";
    GIVEN_LOST_BYTES = "given_back_lost_bytes" "UNFOLLOWED" Bytes Counter 3 "refaults" "Bytes of ranges that were not followed to the end of the window, so that the refaults are a lower bound.";
    REFAULT_AVG_NS = "refault_avg_ns" "AVG AFTER" Ns Gauge 4 "refaults" "Average time from the return of the call to the refault.";
    REFAULT_P50_NS = "refault_p50_ns" "P50 AFTER" Ns Gauge 5 "refaults" "Median of the same (log-linear buckets, error at most 25 %).";
    REFAULT_P99_NS = "refault_p99_ns" "P99 AFTER" Ns Gauge 6 "refaults" "99th percentile of the same.";
    REFAULT_WINDOW_NS = "refault_window_ns" "WINDOW" Ns Gauge 6 "" "How long after the return of the call a fault counts (--refault-window).";

    PROGRAM = "program" "PROGRAM" None Key 0 "" "Our BPF program.";
    ATTACHED_TO = "attached_to" "ATTACHED TO" None Key 2 "" "Hook, or why it is not attached.";
    RUNS = "runs" "RUNS" Events Counter 1 "" "Runs, where kernel run-time statistics are on.";
    NS_PER_RUN = "ns_per_run" "NS/RUN" Ns Gauge 2 "" "Average run time incl. about 30 ns of the statistics themselves.";
    RUN_RATIO = "run_ratio" "CPU" Ratio Gauge 1 "" "Run time over one CPU.";
    MISSES = "recursion_misses" "MISSED" Events Counter 3 "" "Runs the kernel skipped because the program was already running on that CPU.";

    LOSS = "loss" "LOSS" None Key 0 "" "Loss counter or map.";
    LOST = "lost" "LOST" Events Counter 0 "" "Events lost in the interval.";
    LOST_TOTAL = "lost_total" "TOTAL" Events Gauge 1 "" "Events lost since attach, or entries in the map.";
    CAPACITY = "capacity" "CAPACITY" Number Gauge 3 "" "Entries the map can hold.";

    FINDING = "finding" "FINDING" None Key 0 "" "What a rule found; docs/findings.md lists the rules.";
    FINDING_TEXT = "text" "TEXT" None Gauge 1 "" "The finding in one sentence with its numbers.";
    FINDING_NEXT = "next" "NEXT" None Gauge 4 "" "Command that shows more.";

    OVERVIEW_FROM = "from" "FROM" None Key 0 "" "View the row comes from.";
    VALUE = "value" "VALUE" Number Gauge 0 "" "The row's first figure, in the unit given.";
    UNIT_NAME = "unit" "UNIT" None Key 1 "" "Unit of the figure.";
}

/// Columns of the Overview.
pub static OVERVIEW: &[&Field] = &[&OVERVIEW_FROM, &SUBJECT, &VALUE, &UNIT_NAME, &COMMENT];
/// Columns of the findings.
pub static FINDINGS: &[&Field] = &[&FINDING, &FINDING_TEXT, &FINDING_NEXT];
/// Columns of the CPU view.
pub static CPUS: &[&Field] = &[
    &CPU,
    &NODE,
    &LLC,
    &CORE,
    &FAULTS_N,
    &FAULTS_MAJOR,
    &FAULTS_USER,
    &FAULTS_KERNEL,
    &FAULTS_FIXED,
    &FAULTS_PER_CPU_SEC,
    &LOCK_WAITS,
    &LOCK_WAIT_NS,
    &SPIN_WAITS,
    &SPIN_WAIT_NS,
    &MM_READS,
    &MM_WRITES,
    &HANDOFFS,
    &RSS_UPDATES,
    &RSS_PER_FAULT,
    &LRU_INSERTIONS,
    &LRU_ACTIVATIONS,
    &LRU_MARKED,
    &LRU_REFAULTS,
    &LRU_DRAINS,
    &CPU_BUSY,
    &CPU_IDLE,
    &CPU_IOWAIT,
    &CPU_STEAL,
];
/// The columns every scope has, between those that name it and those that place it.
macro_rules! scope {
    ([$($name:expr),*], [$($place:expr),*]) => {
        &[
            $($name,)*
            &FAULTS_N, &FAULTS_MAJOR, &FAULTS_MINOR, &FAULTS_WRITE, &FAULTS_READ, &FAULTS_EXEC, &FAULTS_PROT,
            &FAULTS_USER, &FAULTS_KERNEL, &FAULTS_FIXED, &MM_WAIT_NS, &LRU_WAIT_NS,
            &OTHER_WAIT_NS, &LOCK_WAITS, &MM_WRITES, &MM_READS, &MM_HOLD_W_NS, &MM_HOLD_R_NS, &MM_WRITE_TAKE_NS, &MM_READ_TAKE_NS, &RSS_UPDATES,
            &RSS_PER_FAULT, &MADVISE_CALLS,
            $($place,)*
        ]
    };
}

/// Columns of the process table.
pub static PROCESSES: &[&Field] = scope!([&PID, &COMM], [&SHARE_EXPECTED, &THREADS_N, &CGROUP]);
/// Columns of the thread table.
pub static THREADS: &[&Field] = scope!([&TID, &PID, &COMM], [&CGROUP]);
/// Columns of the cgroup table.
pub static CGROUPS: &[&Field] = scope!([&CGROUP], [&THREADS_N, &CGROUP_ID]);
/// Columns of the fault-kind table.
pub static FAULT_KINDS: &[&Field] = &[&ORIGIN, &ACCESS, &CAUSE, &FAULTS_N, &SHARE, &COMMENT];
/// Columns of the address-space table.
pub static SPACES: &[&Field] = &[
    &PID,
    &COMM,
    &FAULTS_N,
    &CPUS_USED,
    &SHARE_EXPECTED_RATIO,
    &SHARE_BOUND_RATIO,
    &SHARE_MEASURED,
    &SHARE_WINDOW,
    &SHARE_EXPECTED,
    &SHARE_BOUND,
    &HANDOFF_RATIO,
    &RSS_PER_FAULT,
];
/// The columns of every fault-latency table, between those of its own.
macro_rules! latency {
    ([$($key:path),*], [$($place:path),*]) => {
        &[
            $(&$key,)*
            &PASSES, &HANDLED, &FAULT_P50_NS, &FAULT_P99_NS, &FAULT_AVG_NS, &FAULT_MAX_NS, &FAULT_NS,
            &HANDLED_MAJOR, &RETRIES,
            $(&$place,)*
            &PAGES_PER_FAULT, &PAGES_MAPPED, &COMMENT,
        ]
    };
}
/// Columns of the table of fault paths.
pub static LATENCY: &[&Field] = latency!(
    [FAULT_PATH, BACKING],
    [
        ERRORS_OOM,
        ERRORS_SIGBUS,
        ERRORS_SIGSEGV,
        ERRORS_HWPOISON,
        COMPLETED,
        LARGE_FOLIOS
    ]
);
/// Columns of fault latency by process.
pub static LATENCY_PROCESSES: &[&Field] = latency!(
    [PID, COMM],
    [
        FAULT_ERRORS,
        VIA_VMA_LOCK,
        VIA_MMAP_LOCK,
        VIA_FALL_BACK,
        VIA_KERNEL,
        VIA_POPULATE,
        VIA_GUP
    ]
);
/// Columns of fault latency by CPU.
pub static LATENCY_CPUS: &[&Field] = latency!(
    [CPU],
    [
        ERRORS_OOM,
        ERRORS_SIGBUS,
        ERRORS_SIGSEGV,
        ERRORS_HWPOISON,
        COMPLETED,
        LARGE_FOLIOS
    ]
);
/// Columns of the fault time budget.
pub static BUDGET: &[&Field] = &[
    &PART,
    &SAMPLES,
    &TIME_SHARE,
    &TIME_SHARE_LOW,
    &TIME_SHARE_HIGH,
    &NS_A_FAULT,
    &CPU_SHARE,
    &TIME_NS,
    &FUNCTION,
    &COMMENT,
];
/// Columns of the LRU view.
pub static LRU: &[&Field] = &[&SUBJECT, &EVENTS, &TOTAL, &SOURCE, &COMMENT];
/// Columns of the lock table.
pub static LOCKS: &[&Field] = &[
    &LOCK,
    &MODE,
    &OWNER,
    &SITE,
    &WAITS,
    &WAIT_NS,
    &WAIT_AVG_NS,
    &WAIT_MAX_NS,
    &TRACED_WAITS,
    &WAIT_P99_NS,
    &NODE,
    &HANDOFF_SAME,
    &HANDOFF_SMT,
    &HANDOFF_LLC,
    &HANDOFF_NODE,
    &HANDOFF_REMOTE,
    &LOCKS_MERGED,
    &CGROUP_ID,
    &ADDRESS,
];
/// Columns of the taker table.
pub static HOLDERS: &[&Field] = &[
    &HOLDER,
    &PID,
    &OWNER,
    &SYSCALL,
    &MODE,
    &SAMPLED_SITE,
    &ACQUISITIONS,
    &HOLD_NS,
    &HOLD_AVG_NS,
    &HOLD_MAX_NS,
    &TAKER_WAIT_NS,
    &MM_WAITS,
    &WAIT_MAX_NS,
    &DOWNGRADES,
    &FAILURES,
    &HANDOFF_RATIO,
    &HANDOFF_SAME,
    &HANDOFF_SMT,
    &HANDOFF_LLC,
    &HANDOFF_NODE,
    &HANDOFF_REMOTE,
];
/// Columns of the table of mmap_lock waiters and holders.
pub static BLOCKED: &[&Field] = &[
    &WAITER,
    &MODE,
    &WAITER_CALL,
    &WAITER_SITE,
    &BLOCKER,
    &BLOCKER_THREAD,
    &BLOCKER_MODE,
    &BLOCKER_CALL,
    &BLOCKER_SITE,
    &OWNER,
    &BLOCKED_WAITS,
    &BLOCKED_NS,
    &BLOCKED_AVG_NS,
    &BLOCKED_MAX_NS,
];
/// Columns of the call-site table.
pub static SITES: &[&Field] = &[
    &SITE,
    &LOCK,
    &MODE,
    &WAITS,
    &WAIT_NS,
    &WAIT_AVG_NS,
    &WAIT_MAX_NS,
    &TRACED_WAITS,
    &CHAINS_MERGED,
    &STACK,
];
/// Columns of the table of lock classes.
pub static CLASSES: &[&Field] = &[
    &LOCK,
    &MODE,
    &WAITS,
    &WAIT_NS,
    &WAITS_PER_MFAULT,
    &WAIT_PER_FAULT,
    &WAIT_AVG_NS,
    &WAIT_P99_NS,
    &WAIT_MAX_NS,
    &LOCKS_MERGED,
];
/// Columns of the waiter table.
pub static WAITERS: &[&Field] = &[&PID, &COMM, &LOCK, &WAITS, &WAIT_NS, &WAIT_AVG_NS, &CGROUP];
/// Columns of the lru_lock hold table.
pub static LRU_HOLD_FIELDS: &[&Field] = &[
    &HOLD_WAY,
    &SUBJECT,
    &OWNER,
    &LRU_HOLDS,
    &LRU_HOLD_NS,
    &LRU_HOLD_AVG_NS,
    &LRU_HOLD_MAX_NS,
    &LRU_HOLD_P99_NS,
    &NODE,
    &HANDOFF_SAME,
    &HANDOFF_SMT,
    &HANDOFF_LLC,
    &HANDOFF_NODE,
    &HANDOFF_REMOTE,
    &CGROUP_ID,
    &ADDRESS,
    &COMMENT,
];
/// Columns of the madvise view.
pub static MADVISE: &[&Field] = &[
    &PID,
    &COMM,
    &ADVICE,
    &CALL,
    &CALLS,
    &MADV_FAILURES,
    &MADV_BYTES,
    &MADV_NS,
    &MADV_AVG_NS,
    &MADV_MAX_NS,
];
/// Columns of the table of refaults after madvise.
pub static REFAULTED: &[&Field] = &[
    &PID,
    &COMM,
    &ADVICE,
    &CALL,
    &GIVEN_RANGES,
    &GIVEN_BYTES,
    &REFAULTS,
    &REFAULT_BYTES,
    &REFAULT_RATIO,
    &GIVEN_LOST_BYTES,
    &REFAULT_AVG_NS,
    &REFAULT_P50_NS,
    &REFAULT_P99_NS,
    &REFAULT_WINDOW_NS,
    &COMMENT,
];
/// Columns of the program table.
pub static PROGRAMS: &[&Field] = &[
    &PROGRAM,
    &ATTACHED_TO,
    &RUNS,
    &NS_PER_RUN,
    &RUN_RATIO,
    &MISSES,
];
/// Columns of the loss and map table.
pub static LOSSES: &[&Field] = &[&LOSS, &LOST, &LOST_TOTAL, &CAPACITY, &COMMENT];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_carry_their_unit() {
        for (i, f) in ALL.iter().enumerate() {
            assert!(
                ALL[..i].iter().all(|g| g.id != f.id),
                "{} stands twice",
                f.id
            );
            assert!(f.title.len() <= 12, "{}: title too long", f.id);
            assert!(f.description.ends_with('.'), "{}: not a sentence", f.id);
            let suffix = match f.unit {
                Unit::Ns => "_ns",
                Unit::Bytes => "_bytes",
                Unit::PerSec => "_sec",
                _ => "",
            };
            assert!(
                f.id.ends_with(suffix) || f.id == "ns_per_run",
                "{} lacks its unit suffix",
                f.id
            );
        }
    }
}
