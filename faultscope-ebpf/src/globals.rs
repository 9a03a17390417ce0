//! Read-only globals: offsets from the running kernel's BTF, sizes and filters.
//!
//! User space patches them before load; the section is frozen, so the verifier
//! sees constants and drops the branches of absent members.

use faultscope_common::config::ABSENT;

macro_rules! globals {
    ($($name:ident = $value:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub static $name: u64 = $value;
        )*
    };
}

globals! {
    FAULTSCOPE_ABI_2 = 2;
    OFF_TASK_MM = ABSENT;
    OFF_TASK_FLAGS = ABSENT;
    OFF_TASK_CGROUPS = ABSENT;
    OFF_TASK_START = ABSENT;
    OFF_TASK_EXEC_ID = ABSENT;
    OFF_TASK_TGID = ABSENT;
    OFF_TASK_PID = ABSENT;
    OFF_TASK_LEADER = ABSENT;
    OFF_TASK_PF_DISABLED = ABSENT;
    OFF_TASK_STATUS = ABSENT;
    OFF_CSS_SET_SUBSYS = ABSENT;
    OFF_CSS_CGROUP = ABSENT;
    OFF_CSS_PARENT = ABSENT;
    OFF_CSS_SERIAL = ABSENT;
    OFF_FBATCH_NR = ABSENT;
    OFF_CGROUP_KN = ABSENT;
    OFF_KN_ID = ABSENT;
    OFF_MM_OWNER = ABSENT;
    OFF_MM_LOCK = ABSENT;
    OFF_MM_PTL = ABSENT;
    OFF_LRUVEC_LOCK = ABSENT;
    OFF_LRUVEC_PGDAT = ABSENT;
    OFF_PGDAT_LRUVEC = ABSENT;
    OFF_PGDAT_NODE = ABSENT;
    OFF_ZONE_LOCK = ABSENT;
    OFF_ZONE_PGDAT = ABSENT;
    OFF_MEMCG_NODE_LRUVEC = ABSENT;
    OFF_MEMCG_NODE_MEMCG = ABSENT;
    OFF_MEMCG_CSS = ABSENT;
    OFF_VMA_FLAGS = ABSENT;
    OFF_VMA_OPS = ABSENT;
    OFF_VMA_FILE = ABSENT;
    OFF_FILE_INODE = ABSENT;
    OFF_INODE_MODE = ABSENT;
    OFF_INODE_SB = ABSENT;
    OFF_SB_MAGIC = ABSENT;
    OFF_VMF_PTE = ABSENT;
    OFF_FOLIO_FLAGS = ABSENT;
    // Offset of the byte that holds a large folio's order.
    OFF_FOLIO_ORDER = ABSENT;
    // Number of the page flag that marks a large folio's first page.
    PG_HEAD = ABSENT;
    // FAULT_FLAG_VMA_LOCK, 0 before per-VMA locks.
    FAULT_VMA_LOCK = 0;
    // Rows of MM_THREADS less one.
    MM_THREAD_MASK = 0;
    // Offset of the split page-table lock in its page descriptor.
    OFF_PAGE_PTL = ABSENT;
    // Offset of the owner in an rwsem; on PREEMPT_RT that of its rt_mutex.
    OFF_RWSEM_OWNER = ABSENT;
    // Offset of the rt_mutex in an rwsem; on PREEMPT_RT only.
    OFF_RWSEM_INNER = ABSENT;
    SIZE_RWSEM = 0;
    SIZE_PAGE = 64;
    // Index of the memory controller in css_set.subsys.
    MEMCG_SUBSYS = ABSENT;
    // Rows of THREADS less one.
    THREAD_MASK = 0;
    // Rows of LOCKS per CPU, a power of two.
    LOCK_ROWS = 1;
    // Rows of LRU_HOLDS per CPU, a power of two.
    HOLD_ROWS = 1;
    // One in this many unknown releases, a power of two, is tested for an lru_lock.
    RELEASE_SAMPLE = 1;
    // Rows of BLOCKED per CPU, a power of two.
    BLOCKED_ROWS = 1;
    // Bit 0 pid, bit 1 cgroup, bit 2 comm.
    FILTERS = 0;
    // 1 where exit, exec and rename are traced: a row that no such event touched
    // still belongs to the thread it was made for.
    SCOPES_TRACED = 0;
    // 1 on PREEMPT_RT.
    IS_RT = 0;
    // 1 elsewhere; decides between programs, none reads it.
    SPINLOCK_SPINS = 0;
    // 1 where faults do not take mmap_lock (per-VMA locks), so that handoffs of
    // read acquisitions may be tracked as well.
    READ_HANDOFFS = 0;
    // 1 where spinlock waits are measured in their slow path: the contention
    // tracepoint then only marks them.
    SLOWPATH = 0;
    // How long after a range was given back a fault on it counts, ns.
    REFAULT_WINDOW_NS = 1_000_000_000;
    // Bounds the compiler must not know, or it drops the checks the 6.1 verifier needs.
    M3 = 3;
    M7 = 7;
    M15 = 15;
    M31 = 31;
    M63 = 63;
}

/// Value of a global as patched by user space.
#[inline(always)]
pub fn get(global: &'static u64) -> u64 {
    // SAFETY: a valid reference; volatile, so that the compiler cannot use the initial value.
    unsafe { core::ptr::read_volatile(global) }
}

/// Load of a kernel object's member through a BTF pointer; `None` where the
/// running kernel lacks the member.
#[inline(always)]
pub fn member<T: Copy>(object: *const u8, offset: &'static u64) -> Option<T> {
    let offset = get(offset);
    if offset == ABSENT {
        return None;
    }
    // SAFETY: the verifier checks the access against the kernel's own type;
    // a faulting load through a BTF pointer reads as zero.
    Some(unsafe { core::ptr::read_volatile(object.add(offset as usize).cast::<T>()) })
}

/// Load of a kernel object's member by address, for pointers without a type.
#[inline(always)]
pub fn peek<T: Copy>(address: u64, offset: &'static u64) -> Option<T> {
    let offset = get(offset);
    if offset == ABSENT {
        return None;
    }
    read(address.wrapping_add(offset))
}

/// Load of kernel memory by address; `None` if it faults.
#[inline(always)]
pub fn read<T: Copy>(address: u64) -> Option<T> {
    // SAFETY: the helper checks the address and copies at most the size of T.
    unsafe { aya_ebpf::helpers::bpf_probe_read_kernel(address as *const T).ok() }
}
