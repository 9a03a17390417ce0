//! Read-only globals that user space sets before load, and the control row.

use bytemuck::{Pod, Zeroable};

/// Switches that user space changes while programs run; read-mostly.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub struct Control {
    /// Monotonic ns until which fault handoffs are measured; 0: closed.
    pub window_until_ns: u64,
    /// Bumped when a task changes cgroup or name: cached identities expire.
    pub epoch: u64,
    /// A kernel stack is taken for each contended wait if not 0.
    pub stacks: u64,
    /// A `struct page` address, learned once; 0: unknown.
    pub vmemmap: u64,
    /// Bumped whenever the programs that pair takes with releases of mmap_lock come
    /// or go: what they had begun before is void.
    pub mmap_era: u64,
    /// Pads the row to a cache line of its own.
    pub _pad: [u64; 3],
}

/// Offsets in bytes from the running kernel's BTF, patched into globals `OFF_*`.
///
/// [`ABSENT`] means the member does not exist here and its use is skipped.
pub const ABSENT: u64 = u64::MAX;

/// `(global, struct, member path)` of every offset a program needs.
pub const OFFSETS: &[(&str, &str, &str)] = &[
    ("OFF_TASK_MM", "task_struct", "mm"),
    ("OFF_TASK_FLAGS", "task_struct", "flags"),
    ("OFF_TASK_CGROUPS", "task_struct", "cgroups"),
    ("OFF_TASK_START", "task_struct", "start_time"),
    ("OFF_TASK_EXEC_ID", "task_struct", "self_exec_id"),
    ("OFF_TASK_TGID", "task_struct", "tgid"),
    ("OFF_TASK_PID", "task_struct", "pid"),
    ("OFF_TASK_LEADER", "task_struct", "group_leader"),
    ("OFF_TASK_PF_DISABLED", "task_struct", "pagefault_disabled"),
    ("OFF_TASK_STATUS", "task_struct", "thread_info.status"),
    ("OFF_CSS_SET_SUBSYS", "css_set", "subsys"),
    ("OFF_CSS_CGROUP", "cgroup_subsys_state", "cgroup"),
    ("OFF_CSS_PARENT", "cgroup_subsys_state", "parent"),
    ("OFF_CSS_SERIAL", "cgroup_subsys_state", "serial_nr"),
    ("OFF_FBATCH_NR", "folio_batch", "nr"),
    ("OFF_CGROUP_KN", "cgroup", "kn"),
    ("OFF_KN_ID", "kernfs_node", "id"),
    ("OFF_MM_OWNER", "mm_struct", "owner"),
    ("OFF_MM_LOCK", "mm_struct", "mmap_lock"),
    ("OFF_MM_PTL", "mm_struct", "page_table_lock"),
    ("OFF_LRUVEC_LOCK", "lruvec", "lru_lock"),
    ("OFF_LRUVEC_PGDAT", "lruvec", "pgdat"),
    ("OFF_PGDAT_LRUVEC", "pglist_data", "__lruvec"),
    ("OFF_PGDAT_NODE", "pglist_data", "node_id"),
    ("OFF_ZONE_LOCK", "zone", "lock"),
    ("OFF_ZONE_PGDAT", "zone", "zone_pgdat"),
    ("OFF_MEMCG_NODE_LRUVEC", "mem_cgroup_per_node", "lruvec"),
    ("OFF_MEMCG_NODE_MEMCG", "mem_cgroup_per_node", "memcg"),
    ("OFF_MEMCG_CSS", "mem_cgroup", "css"),
    ("OFF_VMA_FLAGS", "vm_area_struct", "vm_flags"),
    ("OFF_VMA_OPS", "vm_area_struct", "vm_ops"),
    ("OFF_VMA_FILE", "vm_area_struct", "vm_file"),
    ("OFF_FILE_INODE", "file", "f_inode"),
    ("OFF_INODE_MODE", "inode", "i_mode"),
    ("OFF_INODE_SB", "inode", "i_sb"),
    ("OFF_SB_MAGIC", "super_block", "s_magic"),
    ("OFF_VMF_PTE", "vm_fault", "orig_pte"),
    ("OFF_FOLIO_FLAGS", "folio", "flags"),
];
