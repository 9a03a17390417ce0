//! Which frames of a kernel call chain are never the call site of a wait.
//!
//! Told by name and not by depth: how many frames lie between a probe and the
//! caller of a lock function depends on the kernel, the compiler and the kind of
//! probe (a fentry program adds its trampoline, and the traced function twice).

/// Why a frame is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Our own program, or another one on the same hook.
    Program,
    /// Trampolines and handlers of the tracing code (kernel/trace, arch/x86/net/bpf_jit_comp.c).
    Tracing,
    /// Lock code of every kernel (kernel/locking, and the run queues' in kernel/sched/core.c).
    Lock,
    /// Lock code of PREEMPT_RT (kernel/locking/rtmutex.c, rwbase_rt.c, spinlock_rt.c).
    RtLock,
}

/// Prefixes of the names of each class, clone suffixes removed.
const PREFIXES: &[(Class, &[&str])] = &[
    (Class::Program, &["bpf_prog_", "bpf_dispatcher_"]),
    (
        Class::Tracing,
        &[
            "bpf_trace_run",
            "bpf_trampoline_",
            "__bpf_prog_enter",
            "__bpf_prog_exit",
            "__bpf_trace_",
            "__bpf_tramp_",
            "__traceiter_",
            "__probestub_",
            "trace_contention_",
            "trace_call_bpf",
            "__mmap_lock_do_trace_",
            "ftrace_caller",
            "ftrace_regs_caller",
            "ftrace_call",
            "ftrace_ops_",
            "arch_ftrace_ops_list_func",
            "kprobe_dispatcher",
            "kprobe_ftrace_handler",
            "kprobe_perf_func",
            "aggr_pre_handler",
            "optimized_callback",
            "__fentry__",
        ],
    ),
    (
        Class::Lock,
        &[
            "rwsem_",
            "__down_",
            "down_read",
            "down_write",
            "down_interruptible",
            "down_killable",
            "down_timeout",
            "percpu_down_",
            "__percpu_down_",
            "percpu_rwsem_",
            "native_queued_spin_lock_slowpath",
            "__pv_queued_spin_lock_slowpath",
            "queued_spin_lock_slowpath",
            "queued_read_lock_slowpath",
            "queued_write_lock_slowpath",
            "__raw_callee_save___pv_",
            "pv_wait",
            "_raw_spin_",
            "_raw_read_",
            "_raw_write_",
            "__raw_spin_",
            "__raw_read_",
            "__raw_write_",
            "do_raw_",
            "osq_lock",
            "raw_spin_rq_lock",
            "task_rq_lock",
            "__task_rq_lock",
            "double_rq_lock",
            "mutex_lock",
            "mutex_spin_on_owner",
            "mutex_optimistic_spin",
            "__mutex_lock",
            "ww_mutex_lock",
            "__ww_mutex_",
        ],
    ),
    (
        Class::RtLock,
        &[
            "rtlock_slowlock",
            "rt_spin_lock",
            "__rt_spin_lock",
            "rt_read_lock",
            "rt_write_lock",
            "rt_mutex_",
            "__rt_mutex_",
            "rwbase_",
            "__rwbase_",
        ],
    ),
];

/// Class of a function that is never a call site; `None` for all others.
#[must_use]
pub fn class(name: &str) -> Option<Class> {
    PREFIXES
        .iter()
        .find(|(_, prefixes)| prefixes.iter().any(|prefix| name.starts_with(prefix)))
        .map(|(class, _)| *class)
}

/// Whether a function is tracing or lock code, and so never the call site.
#[must_use]
pub fn is_lock_code(name: &str) -> bool {
    class(name).is_some()
}

/// Name without what the compiler appends to clones and parts of a function:
/// `.isra.0`, `.constprop.0`, `.part.0`, `.cold`, `.llvm.123`, several at once.
#[must_use]
pub fn normalize(name: &str) -> &str {
    // No function has a dot of its own: C identifiers have none.
    match name.split_once('.') {
        Some((plain, _)) if !plain.is_empty() => plain,
        _ => name,
    }
}

/// Frames before the call site: all of some class, or without a name.
fn leading(frames: &[Option<String>]) -> usize {
    let class_of = |frame: &Option<String>| frame.as_deref().and_then(class);
    // The innermost frame is the program's own. Where programs have no symbols
    // (net.core.bpf_jit_kallsyms) it gets the name of whatever lies before it.
    let program = usize::from(frames.get(1).and_then(class_of) == Some(Class::Tracing));
    let rest = frames[program..].iter();
    let lock = rest.take_while(|frame| frame.as_deref().is_none_or(is_lock_code));
    program + lock.count()
}

/// The chain from the call site outwards: leading frames of any class and frames
/// without a name are dropped; empty if nothing else is left.
#[must_use]
pub fn call_site(frames: &[Option<String>]) -> Vec<String> {
    frames[leading(frames)..]
        .iter()
        .map(|frame| frame.clone().unwrap_or_else(|| "[unknown]".into()))
        .collect()
}

/// Whether the chain comes from the slow path of paravirtual spinlocks rather
/// than the native one; `None` if from neither.
///
/// The innermost lock frame tells: a paravirtual kernel has both functions and
/// calls the one its boot chose.
#[must_use]
pub fn is_paravirtual(frames: &[Option<String>]) -> Option<bool> {
    let names = frames[..leading(frames)].iter().flatten();
    names.map(String::as_str).find_map(|name| match name {
        "__pv_queued_spin_lock_slowpath" => Some(true),
        "native_queued_spin_lock_slowpath" => Some(false),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(names: &[&str]) -> Vec<Option<String>> {
        names
            .iter()
            .map(|n| (!n.is_empty()).then(|| normalize(n).to_owned()))
            .collect()
    }

    #[test]
    fn the_call_site_is_never_lock_code() {
        let frames = chain(&[
            "bpf_prog_1234_contention_begin",
            "bpf_trace_run2",
            "__pv_queued_spin_lock_slowpath",
            "_raw_spin_lock_irqsave",
            "folio_lruvec_lock_irqsave",
            "folio_batch_move_lru",
        ]);
        assert_eq!(
            call_site(&frames),
            ["folio_lruvec_lock_irqsave", "folio_batch_move_lru"]
        );
        let frames = chain(&[
            "",
            "rwsem_down_write_slowpath",
            "down_write_killable",
            "vm_mmap_pgoff",
        ]);
        assert_eq!(call_site(&frames), ["vm_mmap_pgoff"]);
        assert!(call_site(&chain(&["down_read"])).is_empty());
    }

    #[test]
    fn a_traced_function_may_stand_on_both_sides_of_its_trampoline() {
        let frames = chain(&[
            "bpf_prog_12_spin_slowpath_n",
            "bpf_trampoline_6442546195",
            "native_queued_spin_lock_slowpath",
            "bpf_trampoline_6442546195",
            "native_queued_spin_lock_slowpath",
            "_raw_spin_lock",
            "__pte_offset_map_lock",
        ]);
        assert_eq!(call_site(&frames), ["__pte_offset_map_lock"]);
        assert_eq!(is_paravirtual(&frames), Some(false));
    }

    #[test]
    fn a_program_without_a_symbol_is_not_the_call_site() {
        let frames = chain(&[
            "__init_scratch_end",
            "bpf_trace_run2",
            "rwsem_down_read_slowpath",
            "lock_mm_and_find_vma",
        ]);
        assert_eq!(call_site(&frames), ["lock_mm_and_find_vma"]);
    }

    #[test]
    fn lock_code_of_preempt_rt_goes() {
        for frames in [
            [
                "__traceiter_contention_begin",
                "rtlock_slowlock_locked",
                "rt_spin_lock",
            ],
            [
                "__rt_mutex_slowlock_locked.constprop.0",
                "__rwbase_read_lock",
                "down_read",
            ],
            ["rwbase_write_lock.isra.0", "rt_write_lock", ""],
        ] {
            let mut names = frames.to_vec();
            names.push("do_exit");
            assert_eq!(call_site(&chain(&names)), ["do_exit"], "{frames:?}");
            assert_eq!(is_paravirtual(&chain(&names)), None);
        }
    }

    #[test]
    fn only_frames_inside_the_lock_code_tell_the_slow_path() {
        // An interrupt during a wait: the outer wait is another one.
        let frames = chain(&["_raw_spin_lock", "do_irq", "__pv_queued_spin_lock_slowpath"]);
        assert_eq!(is_paravirtual(&frames), None);
        let frames = chain(&["", "__pv_queued_spin_lock_slowpath", "_raw_spin_lock"]);
        assert_eq!(is_paravirtual(&frames), Some(true));
    }

    #[test]
    fn clone_suffixes_go() {
        for (name, plain) in [
            ("folio_batch_move_lru.isra.0", "folio_batch_move_lru"),
            ("lru_add_fn.part.0.constprop.1", "lru_add_fn"),
            ("do_fault.cold", "do_fault"),
            ("do_wp_page.llvm.1234567", "do_wp_page"),
            ("do_madvise", "do_madvise"),
            (".hidden", ".hidden"),
        ] {
            assert_eq!(normalize(name), plain);
        }
    }
}
