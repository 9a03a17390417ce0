//! What the time of a fault goes to, told by the functions of its call chain.

use super::frame::is_lock_code;

macro_rules! parts {
    ($($variant:ident, $id:literal, $doc:literal;)*) => {
        /// A part of the time of page faults; the parts add up to the whole.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum FaultPart { $(#[doc = $doc] $variant,)* }

        impl FaultPart {
            /// Every part, in the order in which a function is looked up.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Name in tables and JSON.
            #[must_use]
            pub fn id(self) -> &'static str { match self { $(Self::$variant => $id,)* } }

            /// What is counted here, one sentence.
            #[must_use]
            pub fn description(self) -> &'static str { match self { $(Self::$variant => $doc,)* } }
        }
    };
}

parts! {
    PageClearing, "page clearing", "Filling fresh pages with zeroes.";
    Copy, "copy", "Copying the page of a copy-on-write fault.";
    MemcgCharge, "memcg charge", "Charging pages to a memory cgroup.";
    TlbFlush, "TLB flush", "Flushing TLBs, waits for other CPUs included.";
    RmapLru, "rmap/LRU", "Reverse mapping and LRU lists.";
    PageTableLock, "page-table lock", "Taking page-table locks, spins included.";
    OtherLock, "other lock", "Taking and spinning for other locks; sleeping waits take no CPU time.";
    Allocation, "allocation", "Allocating and freeing pages and slab objects, direct reclaim included.";
    FileMap, "file map", "Finding pages of files and shared memory and mapping them.";
    Tracing, "tracing", "Tracepoints and BPF programs, our own included.";
    IrqEnable, "irq-enable (delayed)", "Work done with interrupts off, of whatever part: the sample comes when they go on again.";
    Rest, "rest", "The rest of the fault path.";
}

/// Number of parts.
pub const FAULT_PARTS: usize = FaultPart::ALL.len();

/// Functions of each part, `*` at the end for any continuation. A function that
/// two patterns match belongs to the part that stands first here.
///
/// Names of mm/, arch/x86/mm/ and arch/x86/lib/ in 6.1, 6.12 and 6.18; those
/// that a kernel inlines count for their caller.
const FUNCTIONS: &[(FaultPart, &[&str])] = &[
    (
        FaultPart::PageClearing,
        &[
            "clear_page_erms",
            "clear_page_orig",
            "clear_page_rep",
            "clear_pages*",
            "clear_huge_page",
            "clear_subpage",
            "clear_gigantic_page",
            "folio_zero_user",
            "kernel_init_pages",
        ],
    ),
    (
        FaultPart::Copy,
        &[
            "copy_mc_*",
            "copy_page",
            "copy_user_highpage*",
            "copy_user_large_folio",
            "copy_user_huge_page",
            "copy_user_gigantic_page",
            "copy_subpage",
            "__wp_page_copy_user",
            "wp_page_copy",
        ],
    ),
    (
        FaultPart::MemcgCharge,
        &[
            "__mem_cgroup_charge*",
            "mem_cgroup_charge*",
            "mem_cgroup_swapin_charge_folio",
            "charge_memcg",
            "try_charge*",
            "page_counter_try_charge",
            "page_counter_charge",
            "get_mem_cgroup_from_mm",
            "mem_cgroup_commit_charge",
            "commit_charge",
            "memcg_check_events",
            "refill_stock",
            "drain_stock",
        ],
    ),
    (
        FaultPart::TlbFlush,
        &[
            "flush_tlb_*",
            "native_flush_tlb_*",
            "ptep_clear_flush*",
            "arch_tlbbatch_flush",
            "try_to_unmap_flush*",
            "tlb_flush_mmu*",
        ],
    ),
    (
        FaultPart::RmapLru,
        &[
            "folio_add_lru*",
            "lru_cache_add*",
            "lru_add*",
            "__folio_batch_add_and_move",
            "folio_batch_move_lru",
            "folio_batch_add_and_move",
            "__pagevec_lru_add*",
            "lru_gen_add_folio",
            "folio_add_new_anon_rmap",
            "folio_add_anon_rmap*",
            "folio_add_file_rmap*",
            "folio_remove_rmap*",
            "page_add_new_anon_rmap",
            "page_add_anon_rmap",
            "page_add_file_rmap",
            "page_remove_rmap",
            "page_move_anon_rmap",
            "folio_move_anon_rmap",
            "anon_vma_*",
            "__anon_vma_*",
            "__vmf_anon_prepare",
            "vmf_anon_prepare",
            "folio_mark_accessed",
            "folio_activate",
            "workingset_*",
        ],
    ),
    (
        FaultPart::OtherLock,
        &[
            "osq_lock",
            "osq_unlock",
            "up_read",
            "up_write",
            "lock_vma_under_rcu",
            "vma_start_read*",
            "lock_mm_and_find_vma",
            "mutex_unlock",
            "rt_spin_unlock",
            "rt_read_unlock",
            "rt_write_unlock",
            "folio_lock*",
            "__folio_lock*",
            "folio_unlock",
        ],
    ),
    (
        FaultPart::Allocation,
        &[
            "__alloc_pages*",
            "__alloc_frozen_pages*",
            "alloc_frozen_pages*",
            "alloc_pages*",
            "__folio_alloc*",
            "folio_alloc*",
            "vma_alloc_folio*",
            "vma_alloc_zeroed*",
            "alloc_anon_folio",
            "alloc_charge_folio",
            "folio_prealloc",
            "get_page_from_freelist",
            "rmqueue*",
            "__rmqueue*",
            "post_alloc_hook",
            "prep_new_page",
            "prep_compound_page",
            "__free_pages*",
            "__free_frozen_pages*",
            "free_unref_*",
            "free_frozen_*",
            "free_pcppages_bulk",
            "free_pages*",
            "__folio_put*",
            "folios_put_refs",
            "pte_alloc_one",
            "__pte_alloc*",
            "__pmd_alloc",
            "__pud_alloc",
            "__p4d_alloc",
            "kmem_cache_alloc*",
            "kmem_cache_free*",
            "___slab_alloc",
            "__slab_alloc*",
            "__slab_free",
            "try_to_free_*",
        ],
    ),
    (
        FaultPart::FileMap,
        &[
            "filemap_*",
            "__filemap_*",
            "next_uptodate_*",
            "set_pte_range",
            "do_set_pte",
            "do_fault_around",
            "do_read_fault",
            "page_cache_*",
            "shmem_*",
            "ext4_filemap_*",
            "xfs_filemap_*",
            "btrfs_page_mkwrite",
        ],
    ),
    (
        FaultPart::Tracing,
        &[
            "bpf_trace_run*",
            "bpf_prog_*",
            "bpf_trampoline_*",
            "__bpf_trace_*",
            "__bpf_prog_*",
            "__traceiter_*",
            "trace_event_raw_event_*",
            "perf_trace_*",
            "perf_tp_event",
            "perf_swevent_*",
            "___perf_sw_event",
            "__perf_sw_event",
            "__mmap_lock_do_trace_*",
            "ftrace_*",
            "arch_ftrace_*",
            "fprobe_*",
        ],
    ),
];

/// Functions in which interrupts go on again, so that a sample due earlier comes
/// there; only where the clock struck counts. The entry of a fault runs with
/// interrupts off, tracepoint included, until `do_user_addr_fault`, inlined into
/// `exc_page_fault` on some kernels, puts them on (arch/x86/mm/fault.c): on 6.18
/// nearly all samples there were within the 16 bytes behind that.
const IRQ_ENABLE: &[&str] = &[
    "_raw_spin_unlock_irq*",
    "_raw_read_unlock_irq*",
    "_raw_write_unlock_irq*",
    "__raw_spin_unlock_irq*",
    "finish_task_switch",
    "do_user_addr_fault",
    "exc_page_fault",
    "native_irq_enable",
    "pv_native_irq_enable",
    "__local_bh_enable_ip",
];

/// Functions that take a page-table lock themselves, inlined helpers included
/// (`pte_offset_map_lock` is one before 6.5).
const PAGE_TABLE_LOCKERS: &[&str] = &[
    "__pte_offset_map_lock",
    "pte_offset_map_lock*",
    "pte_offset_map_rw_nolock",
    "handle_pte_fault",
    "__handle_mm_fault",
    "do_anonymous_page",
    "do_wp_page",
    "wp_page_copy",
    "wp_pfn_shared",
    "wp_page_shared",
    "finish_fault",
    "finish_mkwrite_fault",
    "filemap_map_pages",
    "filemap_map_pmd",
    "do_fault",
    "do_read_fault",
    "do_cow_fault",
    "do_shared_fault",
    "do_swap_page",
    "do_numa_page",
    "do_set_pmd",
    "do_huge_pmd_*",
    "__do_huge_pmd_*",
    "pmd_install",
    "__pte_alloc",
    "__pmd_alloc",
    "__pud_alloc",
    "change_pte_range",
    "copy_pte_range",
];

/// Entries of interrupts, and what is done on the way back to user mode: inside
/// a fault's frames, but none of its work.
const NOT_THE_FAULT: &[&str] = &[
    "asm_sysvec_*",
    "sysvec_*",
    "asm_common_interrupt",
    "common_interrupt",
    "asm_exc_nmi",
    "exc_nmi",
    "handle_softirqs",
    "__do_softirq",
    "exit_to_user_mode_loop",
];

fn is_in(list: &[&str], name: &str) -> bool {
    list.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => *pattern == name,
    })
}

/// The part that a chain of the fault path counts for, from its functions,
/// innermost first and without clone suffixes; frames without a name tell
/// nothing. `None` if the sample only interrupted a fault.
///
/// The innermost function of the table decides.
#[must_use]
pub fn fault_part(names: &[Option<&str>]) -> Option<FaultPart> {
    if names
        .iter()
        .flatten()
        .any(|name| is_in(NOT_THE_FAULT, name))
    {
        return None;
    }
    if names
        .first()
        .is_some_and(|name| name.is_some_and(|name| is_in(IRQ_ENABLE, name)))
    {
        return Some(FaultPart::IrqEnable);
    }
    for (at, name) in names.iter().enumerate() {
        let Some(name) = name else { continue };
        if let Some((part, _)) = FUNCTIONS.iter().find(|(_, list)| is_in(list, name)) {
            return Some(*part);
        }
        if is_lock_code(name) {
            let caller = names[at..]
                .iter()
                .flatten()
                .find(|caller| !is_lock_code(caller));
            return Some(match caller {
                Some(caller) if is_in(PAGE_TABLE_LOCKERS, caller) => FaultPart::PageTableLock,
                _ => FaultPart::OtherLock,
            });
        }
        // Taking the lock is nearly all these do.
        if matches!(*name, "__pte_offset_map_lock" | "pte_offset_map_lock") {
            return Some(FaultPart::PageTableLock);
        }
    }
    Some(FaultPart::Rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(names: &[&str]) -> Option<FaultPart> {
        let names: Vec<Option<&str>> = names
            .iter()
            .map(|n| (!n.is_empty()).then_some(*n))
            .collect();
        fault_part(&names)
    }

    /// Chains as 6.1, 6.12 and 6.18 give them.
    #[test]
    fn the_innermost_known_function_decides() {
        let outer = [
            "handle_mm_fault",
            "do_user_addr_fault",
            "exc_page_fault",
            "asm_exc_page_fault",
        ];
        for (inner, wanted) in [
            (
                &[
                    "clear_page_erms",
                    "get_page_from_freelist",
                    "__alloc_frozen_pages_noprof",
                    "vma_alloc_folio_noprof",
                    "do_anonymous_page",
                ] as &[&str],
                FaultPart::PageClearing,
            ),
            (
                &["get_page_from_freelist", "__alloc_pages", "vma_alloc_folio"],
                FaultPart::Allocation,
            ),
            (
                &[
                    "page_counter_try_charge",
                    "try_charge_memcg",
                    "__mem_cgroup_charge",
                ],
                FaultPart::MemcgCharge,
            ),
            (
                &[
                    "__mod_memcg_lruvec_state",
                    "folio_add_new_anon_rmap",
                    "do_anonymous_page",
                ],
                FaultPart::RmapLru,
            ),
            (
                &[
                    "native_queued_spin_lock_slowpath",
                    "_raw_spin_lock",
                    "do_anonymous_page",
                ],
                FaultPart::PageTableLock,
            ),
            (
                &[
                    "_raw_spin_lock",
                    "__pte_offset_map_lock",
                    "do_anonymous_page",
                ],
                FaultPart::PageTableLock,
            ),
            (
                &[
                    "__pv_queued_spin_lock_slowpath",
                    "_raw_spin_lock_irqsave",
                    "folio_lruvec_lock_irqsave",
                    "folio_batch_move_lru",
                ],
                FaultPart::OtherLock,
            ),
            (
                &[
                    "smp_call_function_many_cond",
                    "native_flush_tlb_multi",
                    "ptep_clear_flush",
                ],
                FaultPart::TlbFlush,
            ),
            (
                &[
                    "xas_find",
                    "next_uptodate_folio",
                    "filemap_map_pages",
                    "do_fault",
                ],
                FaultPart::FileMap,
            ),
            (
                &["copy_mc_enhanced_fast_string", "wp_page_copy", "do_wp_page"],
                FaultPart::Copy,
            ),
            (
                &["", "bpf_trace_run2", "__handle_mm_fault"],
                FaultPart::Tracing,
            ),
            (
                &[
                    "_raw_spin_unlock_irqrestore",
                    "folio_batch_move_lru",
                    "folio_add_lru",
                ],
                FaultPart::IrqEnable,
            ),
            (&["__handle_mm_fault"], FaultPart::Rest),
            (&["", "handle_pte_fault"], FaultPart::Rest),
        ] {
            let chain: Vec<&str> = inner.iter().chain(&outer).copied().collect();
            assert_eq!(part(&chain), Some(wanted), "{chain:?}");
        }
    }

    #[test]
    fn an_interrupt_inside_a_fault_is_none_of_its_work() {
        for interrupt in ["asm_sysvec_apic_timer_interrupt", "handle_softirqs"] {
            let chain = [
                "_raw_spin_unlock_irqrestore",
                interrupt,
                "clear_page_erms",
                "handle_mm_fault",
            ];
            assert_eq!(part(&chain), None);
        }
    }

    #[test]
    fn a_chain_without_names_is_the_rest() {
        assert_eq!(part(&["", "", ""]), Some(FaultPart::Rest));
        assert_eq!(part(&[]), Some(FaultPart::Rest));
    }

    #[test]
    fn every_part_is_described_and_has_functions_or_a_rule() {
        for (index, part) in FaultPart::ALL.iter().enumerate() {
            assert_eq!(*part as usize, index);
            assert!(part.description().ends_with('.'), "{part:?}");
        }
        for (index, (part, list)) in FUNCTIONS.iter().enumerate() {
            assert!(!list.is_empty(), "{part:?}");
            assert!(
                FUNCTIONS[..index].iter().all(|(before, _)| before != part),
                "{part:?} stands twice"
            );
        }
    }
}
