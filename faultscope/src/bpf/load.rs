//! Creates the maps and hands the programs their globals; attaches nothing.

use super::{maps::Maps, object};
use aya::{Ebpf, EbpfLoader};
use faultscope_common::{
    abi::{ABI_SYMBOL, map},
    budget, mm_fault,
    refault::REFAULT_ROWS,
};
use std::{io, path::PathBuf};
use thiserror::Error;

/// Why an object could not be made ready.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The object file cannot be read.
    #[error("cannot read BPF object \"{}\": {source}; name a file built by `cargo xtask ebpf`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The object was built for another faultscope.
    #[error("{}", object::wrong_abi())]
    WrongAbi,
    /// The bytes are no BPF object.
    #[error("this is no BPF object: {0}; name a file built by `cargo xtask ebpf`")]
    NotAnObject(String),
    /// The kernel or the loader refused the object.
    #[error("the kernel refused to create the BPF maps: {0}")]
    Refused(String),
    /// A map is missing or cannot be mapped.
    #[error("BPF map \"{name}\" is unusable: {reason}; the object does not fit this faultscope")]
    Map {
        /// Name of the map.
        name: &'static str,
        /// Why.
        reason: String,
    },
}

/// Entries of each map; all powers of two where a mask is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Possible CPUs.
    pub cpus: u32,
    /// Rows of the thread array, a power of two.
    pub threads: u32,
    /// Threads whose array slot is taken.
    pub overflow: u32,
    /// Rows of before an exec or cgroup move, drained every interval.
    pub retired: u32,
    /// Address spaces times CPUs.
    pub spaces: u32,
    /// Lock rows per CPU, a power of two.
    pub lock_rows: u32,
    /// madvise rows.
    pub madvise: u32,
    /// Rows of lru_lock holds per CPU, a power of two.
    pub hold_rows: u32,
    /// Rows of threads while the fault-latency programs run, a power of two.
    pub mm_threads: u32,
    /// Processes of a recorded command alive, or ended since the last reading.
    pub workload: u32,
    /// Rows per CPU of mmap_lock waiters and holders, a power of two.
    pub blocked_rows: u32,
}

impl Sizes {
    /// Sizes for a machine with `cpus` possible CPUs and `threads` threads now.
    ///
    /// The whole stays below 160 MiB at 512 CPUs and 100,000 threads, which with
    /// the process itself fits a limit of 256 MiB, and near 20 MiB on a small machine.
    #[must_use]
    pub fn for_machine(cpus: u32, threads: u32) -> Self {
        let rows_budget = (16_u32 << 20) / 320 / cpus.max(1);
        let power = |n: u32| {
            if n.is_power_of_two() {
                n
            } else {
                n.next_power_of_two() / 2
            }
        };
        Self {
            cpus: cpus.max(1),
            threads: threads
                .saturating_mul(2)
                .clamp(16_384, 65_536)
                .next_power_of_two(),
            overflow: 4096,
            retired: 4096,
            spaces: (cpus.saturating_mul(64)).clamp(8192, 65_536),
            lock_rows: power(rows_budget.clamp(64, 1024)),
            madvise: 4096,
            hold_rows: power(((4_u32 << 20) / 384 / cpus.max(1)).clamp(16, 256)),
            mm_threads: 8192,
            workload: 8192,
            blocked_rows: power(rows_budget.clamp(64, 512)),
        }
    }
}

/// One in this many releases of spinlocks that end no tracked hold is tested for
/// an lru_lock; the test is up to four loads by address.
pub const RELEASE_SAMPLE: u64 = 16;

/// Values of the read-only globals.
pub type Globals = Vec<(&'static str, u64)>;

/// A loaded object: maps live, programs not yet in the kernel.
#[derive(Debug)]
pub struct Loaded {
    pub(super) ebpf: Ebpf,
    /// The maps.
    pub maps: Maps,
}

/// Loads `object` with the given globals and sizes.
///
/// # Errors
/// [`LoadError`]; nothing stays behind in the kernel.
pub fn load(object: &[u8], globals: &Globals, sizes: Sizes) -> Result<Loaded, LoadError> {
    let mut loader = EbpfLoader::new();
    let own = [
        ("THREAD_MASK", u64::from(sizes.threads) - 1),
        ("LOCK_ROWS", u64::from(sizes.lock_rows)),
        ("HOLD_ROWS", u64::from(sizes.hold_rows)),
        ("RELEASE_SAMPLE", RELEASE_SAMPLE),
        ("MM_THREAD_MASK", u64::from(sizes.mm_threads) - 1),
        ("BLOCKED_ROWS", u64::from(sizes.blocked_rows)),
        (ABI_SYMBOL, 1),
    ];
    for (name, value) in own.iter().chain(globals) {
        loader.override_global(name, value, true);
    }
    for (name, entries) in [
        (map::CPUS, sizes.cpus),
        (map::SPINS, sizes.cpus),
        (map::SCRATCH, sizes.cpus),
        (map::SLOW, sizes.cpus),
        (map::SLOW_SCRATCH, sizes.cpus),
        (map::PLACES, sizes.cpus),
        (map::THREADS, sizes.threads),
        (map::PENDING, sizes.threads),
        (map::OVERFLOW, sizes.overflow),
        (map::RETIRED, sizes.retired),
        (map::SPACES, sizes.spaces),
        (map::LOCKS, sizes.lock_rows * sizes.cpus),
        (map::LRU, sizes.cpus),
        (map::LRU_HOLDS, sizes.hold_rows * sizes.cpus),
        (map::MADVISE, sizes.madvise),
        (map::MM_PATHS, sizes.cpus * mm_fault::ROWS),
        (map::MM_THREADS, sizes.mm_threads),
        (map::BLOCKED, sizes.blocked_rows * sizes.cpus),
        (map::WAITER_SCRATCH, sizes.cpus),
        (map::RELEASE_SCRATCH, sizes.cpus),
        (map::REFAULT_SCRATCH, sizes.cpus),
        (map::DOWNGRADE_SCRATCH, sizes.cpus),
        (map::BUDGET_CLOCK, sizes.cpus),
        (map::BUDGET_SCRATCH, sizes.cpus),
        (map::BUDGET_HITS, budget::SLOTS * sizes.cpus),
        (map::REFAULTS, REFAULT_ROWS * sizes.cpus),
        (map::WORKLOAD, sizes.workload),
        (map::FILTER_PIDS, 1024),
        (map::FILTER_CGROUPS, 1024),
        (map::FILTER_COMMS, 1024),
    ] {
        loader.map_max_entries(name, entries);
    }
    let mut ebpf = loader.load(object).map_err(|error| classify(&error))?;
    let maps = Maps::take(&mut ebpf, sizes)?;
    Ok(Loaded { ebpf, maps })
}

fn classify(error: &aya::EbpfError) -> LoadError {
    let text = chain(error);
    if text.contains(ABI_SYMBOL) {
        LoadError::WrongAbi
    } else if matches!(error, aya::EbpfError::ParseError(_)) {
        LoadError::NotAnObject(text)
    } else {
        LoadError::Refused(text)
    }
}

/// An error with its causes on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let next_text = next.to_string();
        if !text.contains(&next_text) {
            text.push_str(": ");
            text.push_str(&next_text);
        }
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use faultscope_common::{
        blocked::BlockedRow,
        budget::{ChainRow, ClockRow, Scratch},
        cpu::CpuRow,
        lock::LockRow,
        lru::{HoldRow, LruRow},
        mm_fault::{MmThreadRow, PathRow},
        refault::{GIVEN_SETS, GivenSet, REFAULT_ROWS, RefaultRow},
        slowpath::SlowRow,
        thread::{Pending, ThreadRow},
    };

    fn bytes(s: Sizes) -> usize {
        s.threads as usize * (size_of::<ThreadRow>() + size_of::<Pending>())
            + (s.overflow + s.retired) as usize * (size_of::<ThreadRow>() + 64)
            + s.lock_rows as usize * s.cpus as usize * size_of::<LockRow>()
            + s.cpus as usize * (size_of::<CpuRow>() + size_of::<LruRow>())
            + s.hold_rows as usize * s.cpus as usize * size_of::<HoldRow>()
            + s.blocked_rows as usize * s.cpus as usize * size_of::<BlockedRow>()
            + s.spaces as usize * 96
            + s.workload as usize * 64
            + (s.cpus * mm_fault::ROWS) as usize * size_of::<PathRow>()
            + s.mm_threads as usize * size_of::<MmThreadRow>()
            + budget::SLOTS as usize * (size_of::<ChainRow>() + 8 * s.cpus as usize)
            + s.cpus as usize * (size_of::<ClockRow>() + size_of::<Scratch>())
            + (s.cpus * REFAULT_ROWS) as usize * size_of::<RefaultRow>()
            + GIVEN_SETS as usize * size_of::<GivenSet>()
            + s.cpus as usize * size_of::<SlowRow>()
    }

    #[test]
    fn the_defaults_fit_a_256_mib_limit_at_512_cpus() {
        let big = bytes(Sizes::for_machine(512, 100_000));
        // The process had a peak of 41 MiB; the rest is room.
        assert!(big < 160 << 20, "{big}");
        assert!(bytes(Sizes::for_machine(2, 200)) < 40 << 20);
    }

    #[test]
    fn bytes_that_are_no_object_and_objects_of_another_interface_are_told_apart() {
        let sizes = Sizes::for_machine(1, 0);
        let other = load(b"no object", &Vec::new(), sizes);
        assert!(matches!(other, Err(LoadError::NotAnObject(_))), "{other:?}");
        let mut object = object::read(None).expect("embedded").into_owned();
        let name = ABI_SYMBOL.as_bytes();
        let at = object
            .windows(name.len())
            .position(|w| w == name)
            .expect("the object carries its number");
        object[at + name.len() - 1] = b'9';
        let other = load(&object, &Vec::new(), sizes);
        assert!(matches!(other, Err(LoadError::WrongAbi)), "{other:?}");
        let text = LoadError::WrongAbi.to_string();
        assert!(
            text.contains(&format!("interface {}", faultscope_common::abi::ABI))
                && text.contains("cargo xtask ebpf"),
            "{text}"
        );
    }

    #[test]
    fn masks_need_powers_of_two() {
        for cpus in [1, 2, 3, 64, 96, 512, 8192] {
            for threads in [0, 1, 20_000, 1_000_000] {
                let s = Sizes::for_machine(cpus, threads);
                assert!(
                    s.threads.is_power_of_two()
                        && s.lock_rows.is_power_of_two()
                        && s.blocked_rows.is_power_of_two(),
                    "{s:?}"
                );
            }
        }
    }
}
