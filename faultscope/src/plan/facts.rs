//! What a plan is made from: prototypes, offsets and functions of one kernel.

use std::collections::BTreeMap;

use faultscope_common::config::OFFSETS;

use super::catalog::{Attach, PROBES};
use crate::host::Fact;
use crate::host::btf::Btf;
use crate::host::privilege::PrivilegeFacts;

/// Globals that are no member offset of [`OFFSETS`]: derived offsets, sizes, numbers, switches.
pub(super) const DERIVED: [&str; 12] = [
    "OFF_PAGE_PTL",
    "OFF_RWSEM_OWNER",
    "OFF_RWSEM_INNER",
    "SIZE_RWSEM",
    "SIZE_PAGE",
    "MEMCG_SUBSYS",
    "IS_RT",
    "SPINLOCK_SPINS",
    "READ_HANDOFFS",
    "OFF_FOLIO_ORDER",
    "PG_HEAD",
    "FAULT_VMA_LOCK",
];

/// Facts about a kernel that decide which programs can be attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeFacts {
    /// Argument types of each tracepoint of the catalogue that exists.
    pub tracepoints: BTreeMap<&'static str, Vec<String>>,
    /// Value of each global the kernel has a member, size or enumerator for; the rest is absent.
    pub values: BTreeMap<&'static str, u32>,
    /// Number of arguments of each function of the catalogue that is in the kernel's BTF; being there does not
    /// make it attachable.
    pub functions: BTreeMap<&'static str, usize>,
    /// The kernel was built with kprobes.
    pub has_kprobes: bool,
    /// perf software events can be opened for every CPU.
    pub perf_software: Fact<()>,
    /// Kernel functions have readable addresses and names.
    pub symbols: Fact<()>,
}

impl ProbeFacts {
    /// Looks up everything the catalogue mentions.
    #[must_use]
    pub fn from_btf(btf: &Btf, privilege: &PrivilegeFacts, symbols: Fact<()>) -> Self {
        let tracepoints = PROBES
            .iter()
            .filter_map(|probe| match probe.attach {
                Attach::Tracepoint { name, .. } => Some((name, btf.tracepoint_args(name)?)),
                _ => None,
            })
            .collect();
        let mut values: BTreeMap<_, _> = OFFSETS
            .iter()
            .filter_map(|&(global, aggregate, path)| {
                Some((global, btf.member_offset(aggregate, path)?))
            })
            .collect();
        for global in DERIVED {
            if let Some(value) = derived(btf, global) {
                values.insert(global, value);
            }
        }
        Self {
            tracepoints,
            values,
            functions: PROBES
                .iter()
                .flat_map(|probe| match probe.attach {
                    Attach::Function { names, .. } => names,
                    _ => &[],
                })
                .filter_map(|name| Some((*name, btf.function_args(name)?)))
                .collect(),
            // Without CONFIG_KPROBES only inline stubs exist (include/linux/kprobes.h).
            has_kprobes: btf.has_function("register_kprobe"),
            perf_software: perf_software(privilege),
            symbols,
        }
    }
}

fn derived(btf: &Btf, global: &str) -> Option<u32> {
    match global {
        "OFF_PAGE_PTL" => {
            // Above the size of a word the lock is allocated apart, and `ptl` is a pointer to it
            // (ALLOC_SPLIT_PTLOCKS, include/linux/mm_types_task.h).
            let is_inline = btf.size_of("spinlock_t").is_some_and(|size| size <= 8);
            let offset = btf
                .member_offset("ptdesc", "ptl")
                .or_else(|| btf.member_offset("page", "ptl"));
            offset.filter(|_| is_inline)
        }
        // With PREEMPT_RT an rwsem is an rt_mutex and a count of readers (include/linux/rwbase_rt.h).
        "OFF_RWSEM_OWNER" => btf
            .member_offset("rw_semaphore", "owner")
            .or_else(|| btf.member_offset("rw_semaphore", "rwbase.rtmutex.owner")),
        "OFF_RWSEM_INNER" => btf.member_offset("rw_semaphore", "rwbase.rtmutex"),
        "SIZE_RWSEM" => btf.size_of("rw_semaphore"),
        // The program masks with it.
        "SIZE_PAGE" => btf.size_of("page").filter(|size| size.is_power_of_two()),
        "MEMCG_SUBSYS" => btf
            .enum_value("memory_cgrp_id")
            .and_then(|index| u32::try_from(index).ok()),
        // kernel/locking/spinlock_rt.c, built with PREEMPT_RT only.
        "IS_RT" => Some(u32::from(btf.has_function("rt_spin_lock"))),
        "SPINLOCK_SPINS" => (!btf.has_function("rt_spin_lock")).then_some(1),
        // mm/mmap_lock.c or mm/memory.c, built with per-VMA locks only: faults then leave mmap_lock alone, and
        // its read side may be tracked without a shared line on the fault path.
        "READ_HANDOFFS" => Some(u32::from(btf.has_function("lock_vma_under_rcu"))),
        // A byte: `_folio_order` before 6.6, then the low byte of `_flags_1` (include/linux/mm.h, folio_order()).
        "OFF_FOLIO_ORDER" => btf
            .member_offset("folio", "_folio_order")
            .or_else(|| btf.member_offset("folio", "_flags_1")),
        "PG_HEAD" => btf
            .enum_value("PG_head")
            .and_then(|bit| u32::try_from(bit).ok())
            .filter(|bit| *bit < u64::BITS),
        // Absent before 6.4, when no fault is handled under a lock of its VMA.
        "FAULT_VMA_LOCK" => Some(
            btf.enum_value("FAULT_FLAG_VMA_LOCK")
                .and_then(|flag| u32::try_from(flag).ok())
                .unwrap_or(0),
        ),
        _ => None,
    }
}

/// The rule is `perf_event_open()` in `kernel/events/core.c`: an event for all tasks of a CPU needs
/// CAP_PERFMON. The sysctl's file is missing only where perf events are not built.
fn perf_software(privilege: &PrivilegeFacts) -> Fact<()> {
    match &privilege.perf_event_paranoid {
        Fact::No(_) => Fact::no("this kernel has no perf events"),
        _ if privilege.may_trace() => Fact::Yes(()),
        _ => Fact::no("perf software events of all tasks need CAP_PERFMON"),
    }
}
