//! Every way of losing an event, each with its own counter.

macro_rules! losses {
    ($($name:ident = $index:literal, $id:literal, $doc:literal;)*) => {
        $(#[doc = $doc] pub const $name: usize = $index;)*
        /// `(id, description)` of each counter, in the order of `CpuRow::losses`.
        pub const ALL: &[(&str, &str)] = &[$(($id, $doc)),*];
    };
}

losses! {
    THREAD_COLLISION = 0, "thread_slot_collision",
        "Lock waits, acquisitions and holds of mmap_lock, RSS updates and clock samples of threads without a row of their own, missing from the thread scopes and from filtered budgets.";
    OVERFLOW_FULL = 1, "thread_overflow_full",
        "Faults of threads whose row belongs to another thread, with the fall-back map full.";
    UNATTRIBUTED = 2, "faults_unattributed",
        "Faults of threads without a row, where none may be made; counted for their CPU only.";
    RETIRED_FULL = 3, "retired_map_full",
        "Events attributed to what a thread was before an exec or cgroup move, as the map of old rows is full.";
    SPACES_FULL = 4, "space_map_full",
        "Faults missing from the CPU shares of their address space.";
    MMAP_FULL = 5, "mmap_map_full",
        "mmap_lock acquisitions missing from the taker table.";
    MMAP_NESTING = 6, "mmap_nesting_overflow",
        "mmap_lock acquisitions nested deeper than the pairing stack.";
    LOCKS_FULL = 7, "lock_table_full",
        "Contended waits missing from the lock table.";
    STACKS_FULL = 8, "stack_table_full",
        "Contended waits whose call chain could not be kept.";
    PAIRING_COLLISION = 9, "pairing_slot_collision",
        "Waits and holds of threads whose pairing slot belongs to another thread.";
    STALE_BEGIN = 10, "contention_begin_unended",
        "Contended waits whose end was never seen.";
    MADVISE_FULL = 11, "madvise_map_full",
        "madvise calls missing from the madvise table.";
    LRU_MOVES_FULL = 12, "lru_move_functions_full",
        "Batches and regions of more move functions than a CPU keeps apart.";
    LRU_HELD_COLLISION = 13, "lru_hold_slot_collision",
        "lru_lock holds of threads whose slot belongs to another thread (PREEMPT_RT).";
    LRU_HOLDS_FULL = 14, "lru_hold_table_full",
        "lru_lock holds missing from the hold table.";
    MM_THREADS_FULL = 15, "fault_latency_rows_full",
        "Passes of handle_mm_fault without latency and outcome, missing from the fault-latency tables.";
    MM_FAULT_NESTING = 16, "fault_latency_nesting",
        "Passes of handle_mm_fault inside others, deeper than the pairing stack.";
    BUDGET_FULL = 17, "budget_table_full",
        "Clock samples of the fault time budget whose call chain could not be kept.";
    BLOCKED_FULL = 18, "blocked_table_full",
        "Contended mmap_lock waits missing from the table of waiters and holders.";
    GIVEN_OVERWRITTEN = 19, "given_back_overwritten",
        "Parts of ranges given back that newer ones overwrote before their window was over: later touches are missed.";
    GIVEN_UNREAD = 20, "given_back_unread",
        "process_madvise calls with ranges that were not followed: beyond the first four, or unreadable.";
    REFAULTS_FULL = 21, "refault_table_full",
        "Ranges given back and refaults missing from the refault table.";
    WORKLOAD_FULL = 22, "workload_map_full",
        "Processes of the recorded command that are not told from others, and their descendants.";
}

/// Number of loss counters a `CpuRow` has room for.
pub const SLOTS: usize = 32;
const _: () = assert!(ALL.len() <= SLOTS);
