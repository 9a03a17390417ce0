//! Kernel symbols through blazesym; the lock code is told by name.

use blazesym::symbolize::{
    Input, Symbolized, Symbolizer,
    source::{Kernel, Source},
};

/// Prefixes of the frames between the probe and the caller of a lock function:
/// our program, the tracing code, then the lock code of non-RT and RT kernels
/// (kernel/locking/*.c).
const LOCK_CODE: &[&str] = &[
    "bpf_prog_",
    "bpf_trace_run",
    "bpf_trampoline",
    "__bpf_trace_",
    "__traceiter_",
    "trace_contention",
    "__mmap_lock_do_trace_",
    "rwsem_",
    "__down_",
    "down_read",
    "down_write",
    "percpu_down_",
    "__percpu_down_",
    "percpu_rwsem_",
    "native_queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
    "_raw_spin_",
    "_raw_read_",
    "_raw_write_",
    "__raw_spin_",
    "__raw_callee_save___pv_",
    "do_raw_spin_",
    "mutex_lock",
    "mutex_spin_on_owner",
    "mutex_optimistic_spin",
    "__mutex_lock",
    "ww_mutex_lock",
    "rtlock_slowlock",
    "rt_spin_lock",
    "rt_read_lock",
    "rt_write_lock",
    "rt_mutex_",
    "__rt_mutex_",
    "rwbase_",
    "__rwbase_",
];

/// Whether a function is tracing or lock code, and so never the call site.
#[must_use]
pub fn is_lock_code(name: &str) -> bool {
    LOCK_CODE.iter().any(|prefix| name.starts_with(prefix))
}

/// Name without the compiler's clone suffix (`.isra.0`, `.constprop.0`, `.part.0`, `.cold`).
#[must_use]
pub fn normalize(name: &str) -> &str {
    name.split_once('.').map_or(name, |(plain, _)| plain)
}

/// The chain from the call site outwards: leading lock code and frames without
/// a name are dropped; empty if nothing else is left.
#[must_use]
pub fn call_site(frames: &[Option<String>]) -> Vec<String> {
    let last_lock = frames
        .iter()
        .take_while(|frame| frame.as_deref().is_none_or(is_lock_code))
        .count();
    frames[last_lock..]
        .iter()
        .map(|frame| frame.clone().unwrap_or_else(|| "[unknown]".into()))
        .collect()
}

/// Resolves kernel addresses; made for a batch and dropped, so that the symbol
/// table (tens of MB) does not stay resident.
#[derive(Debug)]
pub struct KernelSymbols {
    symbolizer: Symbolizer,
}

impl Default for KernelSymbols {
    fn default() -> Self {
        Self {
            symbolizer: Symbolizer::new(),
        }
    }
}

impl KernelSymbols {
    /// A name for each address, `None` where none is known.
    ///
    /// # Errors
    /// One sentence when kallsyms cannot be used at all.
    pub fn resolve(&self, addresses: &[u64]) -> Result<Vec<Option<String>>, String> {
        // Only kallsyms: a vmlinux file may belong to another build.
        let kernel = Kernel {
            vmlinux: blazesym::MaybeDefault::None,
            ..Kernel::default()
        };
        self.symbolizer
            .symbolize(&Source::Kernel(kernel), Input::AbsAddr(addresses))
            .map(|symbols| {
                symbols
                    .into_iter()
                    .map(|symbol| match symbol {
                        Symbolized::Sym(sym) => Some(normalize(&sym.name).to_owned()),
                        Symbolized::Unknown(_) => None,
                    })
                    .collect()
            })
            .map_err(|error| format!("kernel symbols are unavailable: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(names: &[&str]) -> Vec<Option<String>> {
        names
            .iter()
            .map(|n| (!n.is_empty()).then(|| (*n).to_owned()))
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
    fn clone_suffixes_go() {
        assert_eq!(
            normalize("folio_batch_move_lru.isra.0"),
            "folio_batch_move_lru"
        );
        assert_eq!(normalize("do_madvise"), "do_madvise");
    }
}
