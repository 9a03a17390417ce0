//! Number of the object's binary interface and the names and sizes of its maps.

/// Interface number: raised by every change of a wire type, a map or a global.
///
/// The object carries a global named [`ABI_SYMBOL`]; user space refuses one
/// without it.
pub const ABI: u32 = 2;
/// Name of the global that says which interface an object speaks.
pub const ABI_SYMBOL: &str = "FAULTSCOPE_ABI_2";

/// Names of the maps, equal to the statics in the BPF crate.
pub mod map {
    /// Array of `CpuRow`, one per possible CPU, mmapable.
    pub const CPUS: &str = "CPUS";
    /// Array of `ThreadRow` indexed by tid & mask, mmapable.
    pub const THREADS: &str = "THREADS";
    /// Array of `Pending` under the same index as `THREADS`.
    pub const PENDING: &str = "PENDING";
    /// Hash tid → `ThreadRow` for threads whose slot belongs to another.
    pub const OVERFLOW: &str = "OVERFLOW";
    /// Hash `RetiredKey` → `ThreadRow`: a row's last values before it was re-keyed.
    pub const RETIRED: &str = "RETIRED";
    /// Hash `SpaceKey` → u64: faults of an address space by CPU.
    pub const SPACES: &str = "SPACES";
    /// Array of u64 by hash of mm: CPU of the previous fault inside the window.
    pub const SPACE_LAST: &str = "SPACE_LAST";
    /// Array of `MmapRow`, open-addressed, mmapable.
    pub const MMAP: &str = "MMAP";
    /// Array of u64 by hash of mm: CPU of the previous mmap_lock acquisition.
    pub const MMAP_LAST: &str = "MMAP_LAST";
    /// Array of `LockRow`, `rows_per_cpu` rows per CPU, mmapable.
    pub const LOCKS: &str = "LOCKS";
    /// Array of u64 by hash of the lock: CPU of the previous contended acquirer.
    pub const LOCK_LAST: &str = "LOCK_LAST";
    /// Array of `SpinStack`, one per possible CPU.
    pub const SPINS: &str = "SPINS";
    /// Array of `StackRow`, mmapable.
    pub const STACKS: &str = "STACKS";
    /// Array with one zeroed `ThreadRow`: the template of every insertion.
    pub const ZERO: &str = "ZERO";
    /// Array of scratch stacks, one per possible CPU.
    pub const SCRATCH: &str = "SCRATCH";
    /// Array of `SlowRow`, one per possible CPU, mmapable.
    pub const SLOW: &str = "SLOW";
    /// Array of scratch stacks of the slow-path programs, one per possible CPU.
    pub const SLOW_SCRATCH: &str = "SLOW_SCRATCH";
    /// Array of u64: packed place of each CPU, mmapable.
    pub const PLACES: &str = "PLACES";
    /// Hash `MadviseKey` → `MadviseRow`.
    pub const MADVISE: &str = "MADVISE";
    /// Array of `LruRow`, one per possible CPU, mmapable.
    pub const LRU: &str = "LRU";
    /// Array of `HoldRow`, `hold_rows` rows per CPU, mmapable.
    pub const LRU_HOLDS: &str = "LRU_HOLDS";
    /// Array of `Held`, `HELD_SLOTS` of them.
    pub const LRU_HELD: &str = "LRU_HELD";
    /// Array of `Regions`, `HELD_SLOTS` of them.
    pub const LRU_REGIONS: &str = "LRU_REGIONS";
    /// Array of u64 by hash of the lock: CPU of the previous hold.
    pub const LRU_LAST: &str = "LRU_LAST";
    /// Array of `PathRow`, `mm_fault::ROWS` rows per CPU, mmapable.
    pub const MM_PATHS: &str = "MM_PATHS";
    /// Array of `MmThreadRow`, open-addressed, mmapable.
    pub const MM_THREADS: &str = "MM_THREADS";
    /// Array of `BlockedRow`, `BLOCKED_ROWS` rows per CPU, mmapable.
    pub const BLOCKED: &str = "BLOCKED";
    /// Array of scratch stacks of waiters, one per possible CPU.
    pub const WAITER_SCRATCH: &str = "WAITER_SCRATCH";
    /// Array of scratch stacks of holders that give the lock back, one per possible CPU.
    pub const RELEASE_SCRATCH: &str = "RELEASE_SCRATCH";
    /// Array of words through which refault programs forget the type of a pointer, one per possible CPU.
    pub const REFAULT_SCRATCH: &str = "REFAULT_SCRATCH";
    /// Array of scratch stacks of holders that keep it for read, one per possible CPU.
    pub const DOWNGRADE_SCRATCH: &str = "DOWNGRADE_SCRATCH";
    /// Array of `GivenSet`, hashed by address space and address.
    pub const GIVEN: &str = "GIVEN";
    /// Array of `RefaultRow`, `REFAULT_ROWS` per possible CPU, mmapable.
    pub const REFAULTS: &str = "REFAULTS";
    /// Array with one `Control`, mmapable.
    pub const CONTROL: &str = "CONTROL";
    /// Array of `ClockRow`, one per possible CPU, mmapable.
    pub const BUDGET_CLOCK: &str = "BUDGET_CLOCK";
    /// Array with one `Code`, mmapable.
    pub const BUDGET_CODE: &str = "BUDGET_CODE";
    /// Array of `ChainRow`, mmapable.
    pub const BUDGET_CHAINS: &str = "BUDGET_CHAINS";
    /// Array of u64: `budget::SLOTS` per possible CPU, mmapable.
    pub const BUDGET_HITS: &str = "BUDGET_HITS";
    /// Array of `Scratch`, one per possible CPU.
    pub const BUDGET_SCRATCH: &str = "BUDGET_SCRATCH";
    /// Hash tgid → start_time of the process, ns, or `WORKLOAD_SEED`.
    pub const WORKLOAD: &str = "WORKLOAD";
    /// Hash tgid → 1.
    pub const FILTER_PIDS: &str = "FILTER_PIDS";
    /// Hash cgroup id → 1.
    pub const FILTER_CGROUPS: &str = "FILTER_CGROUPS";
    /// Hash 16-byte comm → 1.
    pub const FILTER_COMMS: &str = "FILTER_COMMS";
}

/// Slots of `SPACE_LAST`, `MMAP_LAST`, `LOCK_LAST` and `LRU_LAST`; a power of two.
pub const LAST_SLOTS: u32 = 4096;
/// Slots of `STACKS`; a power of two.
pub const STACK_SLOTS: u32 = 4096;
/// Value of a process in `WORKLOAD` whose children are of the workload, but not itself.
pub const WORKLOAD_SEED: u64 = u64::MAX;
/// Slots tried before a table counts as full.
pub const PROBES: u32 = 8;
