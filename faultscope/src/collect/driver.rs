//! One tick: every collector fills one `Delta`.

use super::{
    blocked::BlockedTable, budget::Budgets, lru::Lru, machine::Machine, mm_faults::MmFaults,
    names::Names, refaults::Refaults, slowpath::Slowpath, tables::Tables, threads::Threads,
    workload::Workload,
};
use crate::{
    bpf::{Maps, Programs, attach::ProgramStats},
    host::{cgroup::CgroupPaths, clock, system::SystemReader, topology::Topology},
    sample::{
        Delta,
        delta::{Loss, MapFill, Program},
    },
};
use anyhow::Context as _;
use faultscope_common::{
    abi::{WORKLOAD_SEED, map},
    budget::SLOTS,
    config::Control,
    refault::REFAULT_ROWS,
};
use std::{collections::BTreeMap, os::fd::OwnedFd, path::PathBuf};

/// Longest time in which fault handoffs are measured at once, ns, unless told
/// otherwise: with the next constant at most 10 ms a second.
const WINDOW_NS: u64 = 9_500_000;
/// Shortest time between the starts of two windows, ns; less than a second, or a
/// tick that comes a little early would go without.
const WINDOW_EVERY_NS: u64 = 950_000_000;

/// Programs of which one is attached while spinlock waits are exact.
const SLOWPATH: [&str; 2] = ["spin_slowpath_native_begin", "spin_slowpath_pv_begin"];
/// How long after memory was given back a fault on it counts, unless the user says otherwise, ns.
pub const DEFAULT_REFAULT_WINDOW_NS: u64 = 1_000_000_000;

const WINDOW_WORD: usize = std::mem::offset_of!(Control, window_until_ns) / 8;
const STACKS_WORD: usize = std::mem::offset_of!(Control, stacks) / 8;
const ERA_WORD: usize = std::mem::offset_of!(Control, mmap_era) / 8;

/// What a collector is told once.
#[derive(Debug)]
pub struct Settings {
    /// File-system root, `/` outside tests.
    pub root: PathBuf,
    /// Places of the CPUs.
    pub topology: Topology,
    /// Names of memory cgroups; `None` where no hierarchy has the controller.
    pub cgroups: Option<CgroupPaths>,
    /// Kernel symbols are readable; else call chains are addresses.
    pub has_symbols: bool,
    /// Every program of the catalogue with its hook, or why it is not attached.
    pub places: Vec<(&'static str, String)>,
}

/// A time as the caller's clock has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Monotonic ns.
    pub mono_ns: u64,
    /// ns since the Unix epoch.
    pub real_ns: u64,
    /// CPU time of this process, ns.
    pub cpu_ns: u64,
}

/// Reads everything once per tick.
#[derive(Debug)]
pub struct Collector {
    maps: Maps,
    programs: Programs,
    threads: Threads,
    tables: Tables,
    lru: Lru,
    slowpath: Slowpath,
    budgets: Budgets,
    blocked: BlockedTable,
    refaults: Refaults,
    refault_window_ns: u64,
    workload: Workload,
    machine: Machine,
    mm_faults: MmFaults,
    names: Names,
    root: PathBuf,
    places: Vec<(&'static str, String)>,
    stats: BTreeMap<&'static str, ProgramStats>,
    statistics: Option<OwnedFd>,
    misses_total: u64,
    has_symbols: bool,
    measures_sharing: bool,
    window_ns: u64,
    /// Length of a window, ns.
    window_length_ns: u64,
    before: Option<Now>,
    /// Thread increments read since the last tick.
    pending: Delta,
    ticks: u64,
    overruns: u64,
}

impl Collector {
    /// Takes the attached programs and their maps.
    #[must_use]
    pub fn new(programs: Programs, maps: Maps, settings: Settings) -> Self {
        let system = SystemReader::open(&settings.root);
        Self {
            machine: Machine::new(system, &settings.topology, maps.sizes.cpus),
            mm_faults: MmFaults::default(),
            names: Names::new(
                settings.root.clone(),
                settings.cgroups,
                settings.has_symbols,
            ),
            has_symbols: settings.has_symbols,
            maps,
            programs,
            threads: Threads::default(),
            tables: Tables::default(),
            lru: Lru::new(settings.has_symbols),
            slowpath: Slowpath::default(),
            budgets: Budgets::default(),
            root: settings.root.clone(),
            blocked: BlockedTable::default(),
            refaults: Refaults::default(),
            workload: Workload::default(),
            refault_window_ns: DEFAULT_REFAULT_WINDOW_NS,
            places: settings.places,
            stats: BTreeMap::new(),
            statistics: None,
            misses_total: 0,
            measures_sharing: false,
            window_ns: 0,
            window_length_ns: WINDOW_NS,
            before: None,
            pending: Delta::default(),
            ticks: 0,
            overruns: 0,
        }
    }

    /// The programs, to attach and detach sets.
    pub fn programs(&mut self) -> &mut Programs {
        &mut self.programs
    }

    /// Replaces what is said of a program's hook.
    pub fn set_place(&mut self, program: &'static str, place: String) {
        match self.places.iter_mut().find(|(name, _)| *name == program) {
            Some(entry) => entry.1 = place,
            None => self.places.push((program, place)),
        }
    }

    /// Switches kernel stacks of contended waits on or off (about 1.2 us each).
    pub fn set_stacks(&mut self, on: bool) {
        self.maps.control.write_word(0, STACKS_WORD, u64::from(on));
    }

    /// Voids the takes and holds of mmap_lock that have begun: to be called before the programs that pair them with
    /// their ends are attached, and after they were detached.
    pub fn begin_mmap_era(&mut self) {
        let era = self.maps.control.read(0).mmap_era;
        self.maps
            .control
            .write_word(0, ERA_WORD, era.wrapping_add(1));
    }

    /// Switches the sharing window on or off.
    pub fn set_sharing(&mut self, on: bool) {
        self.measures_sharing = on;
        if !on {
            self.maps.control.write_word(0, WINDOW_WORD, 0);
        }
    }

    /// Sets the length of sharing windows to come, in place of 9.5 ms; for tests on
    /// machines that take longer to begin what is to be measured.
    pub fn set_window(&mut self, length: std::time::Duration) {
        self.window_length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX / 2);
    }

    /// Switches the reading of clock samples on or off; the program is attached by the caller.
    ///
    /// # Errors
    /// One clause, if the functions of the fault path have no known address.
    pub fn set_budget(&mut self, on: bool) -> Result<(), String> {
        self.budgets.set(on, &self.maps, &self.root)
    }

    /// Processes that this one starts from now on are the workload, with their descendants; or no more.
    ///
    /// # Errors
    /// What bpf(2) says.
    pub fn set_workload(&mut self, on: bool) -> anyhow::Result<()> {
        let own = std::process::id();
        if on {
            let seed = self.maps.workload.insert(own, WORKLOAD_SEED);
            return seed.context("marking the workload in the BPF maps");
        }
        self.maps.workload.remove(&own);
        Ok(())
    }

    /// Says which process the workload is, where the kernel marks none.
    pub fn set_workload_root(&mut self, tgid: u32) {
        if !self.programs.is_attached("workload_fork") {
            self.workload.set_root(tgid);
        }
    }

    /// Says how long the programs look out for refaults, ns; they were told when they were loaded.
    pub fn set_refault_window(&mut self, ns: u64) {
        self.refault_window_ns = ns;
    }

    /// Switches the kernel's run-time statistics on or off; they cost every BPF
    /// program of the machine about 30 ns per run.
    ///
    /// # Errors
    /// What bpf(2) says; nothing changes then.
    pub fn set_statistics(&mut self, on: bool) -> Result<(), String> {
        if on != self.statistics.is_some() {
            self.statistics = if on {
                Some(crate::bpf::attach::run_time_statistics()?)
            } else {
                None
            };
            self.stats.clear();
        }
        Ok(())
    }

    /// Counts a tick that began late.
    pub fn overrun(&mut self) {
        self.overruns += 1;
    }

    /// Everything since the last call; the first call sets the base and its
    /// increments count from attach.
    ///
    /// # Errors
    /// A map that cannot be read.
    pub fn tick(&mut self, now: Now) -> anyhow::Result<Delta> {
        // The array first: thread rows are then ahead of it by what happened
        // meanwhile, and never behind.
        self.machine.cpus(&self.maps, &mut self.pending);
        self.mm_faults.paths(&self.maps, &mut self.pending);
        // Next to it: vmstat less the totals is what the programs do not see.
        self.machine.system(&mut self.pending);
        self.harvest()?;
        let mut delta = Delta {
            t_mono_ns: now.mono_ns,
            t_real_ns: now.real_ns,
            interval_ns: self
                .before
                .map_or(0, |b| now.mono_ns.saturating_sub(b.mono_ns)),
            is_first: self.ticks <= 1,
            ..std::mem::take(&mut self.pending)
        };
        self.tables.locks(&self.maps, &mut delta);
        if SLOWPATH.iter().any(|name| self.programs.is_attached(name)) {
            self.slowpath.collect(&self.maps, &mut delta);
        }
        self.blocked.read(&self.maps, &mut delta);
        self.tables
            .madvise(&mut self.maps, &mut delta)
            .context("reading madvise rows from the BPF maps")?;
        self.lru.collect(&self.maps, &mut delta);
        self.budgets
            .collect(&self.maps, &mut delta)
            .map_err(anyhow::Error::msg)
            .context("naming the call chains of faults")?;
        self.refaults.collect(&self.maps, &mut delta);
        delta.refault_window_ns = self.refault_window_ns;
        self.names.fill(&self.maps, &mut delta);
        self.workload.mark(&mut delta);
        self.own(now, &mut delta);
        if !self.has_symbols {
            // Whoever may not read kernel addresses must not learn them here.
            delta.locks.values_mut().for_each(|lock| lock.address = 0);
            delta
                .lru_holds
                .values_mut()
                .for_each(|lock| lock.address = 0);
        }
        self.before = Some(now);
        self.ticks += 1;
        // Last, or the tick's own work would keep one CPU of the window busy.
        self.window(clock::monotonic_ns());
        Ok(delta)
    }

    /// Reads takers and thread rows and frees those of the dead: at least once a second,
    /// whatever the interval, or a machine that forks much fills the table.
    ///
    /// # Errors
    /// A map that cannot be read.
    pub fn harvest(&mut self) -> anyhow::Result<()> {
        self.tables.takers(&self.maps, &mut self.pending, is_alive);
        let is_on = ["mm_fault_begin", "mm_fault_entry"]
            .iter()
            .any(|program| self.programs.is_attached(program));
        self.mm_faults
            .threads(&self.maps, is_on, &mut self.pending, is_alive);
        self.threads
            .collect(&mut self.maps, &mut self.pending)
            .context("reading thread rows from the BPF maps")?;
        // After the rows: a process is marked before it can have one, so that no row read above lacks its mark.
        self.workload
            .read(&mut self.maps, is_alive)
            .context("reading the marks of the workload from the BPF maps")
    }

    /// Whether the tables of what comes and goes fill up, so that they should be
    /// read again soon.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        let takers = self.tables.taker_rows() * 8 > self.maps.mmap.len() as u64;
        takers
            || self.workload.rows * 4 > u64::from(self.maps.sizes.workload)
            || self.mm_faults.rows * 4 > u64::from(self.maps.sizes.mm_threads)
            || self.threads.rows * 4 > u64::from(self.maps.sizes.threads)
    }

    fn window(&mut self, now_ns: u64) {
        if self.measures_sharing && now_ns.saturating_sub(self.window_ns) >= WINDOW_EVERY_NS {
            self.window_ns = now_ns;
            self.maps
                .control
                .write_word(0, WINDOW_WORD, now_ns + self.window_length_ns);
        }
    }

    fn own(&mut self, now: Now, delta: &mut Delta) {
        if let Some(before) = self.before {
            delta.own.cpu_ns = Some(now.cpu_ns.saturating_sub(before.cpu_ns));
        }
        delta.own.map_bytes = self.maps.memory_bytes;
        delta.own.overruns = self.overruns;
        let mut misses_total = 0;
        for (name, place) in &self.places {
            let stats = self.programs.stats(name);
            let before = self.stats.get(name).copied();
            let since = |f: fn(&ProgramStats) -> u64| {
                let now = stats.as_ref().map(f)?;
                Some(now.saturating_sub(before.as_ref().map(f)?))
            };
            let measured = self.statistics.is_some();
            misses_total += stats.map_or(0, |s| s.misses);
            delta.programs.push(Program {
                name: (*name).into(),
                place: place.clone(),
                is_attached: stats.is_some(),
                run_ns: since(|s| s.run_ns).filter(|_| measured),
                runs: since(|s| s.runs).filter(|_| measured),
                misses: stats.map(|s| s.misses.saturating_sub(before.map_or(0, |b| b.misses))),
            });
            match stats {
                Some(stats) => self.stats.insert(name, stats),
                None => self.stats.remove(name),
            };
        }
        // A detached program takes its count along; what it missed stays missed.
        let increment = misses_total.saturating_sub(self.misses_total);
        let total = delta
            .losses
            .last()
            .map_or(0, |_| misses_total.max(self.misses_total));
        self.misses_total = total;
        delta.losses.push(Loss { total, increment });
        self.fill(delta);
    }

    fn fill(&self, delta: &mut Delta) {
        let sizes = &self.maps.sizes;
        let row = |name: &str, entries, capacity: u32| MapFill {
            name: name.into(),
            entries,
            capacity: u64::from(capacity),
        };
        delta.maps = vec![
            row(map::THREADS, self.threads.rows, sizes.threads),
            row(map::OVERFLOW, self.threads.overflow_rows, sizes.overflow),
            row(map::SPACES, self.threads.space_entries(), sizes.spaces),
            row(map::LOCKS, self.tables.lock_rows, sizes.lock_rows),
            row(
                map::MMAP,
                self.tables.taker_rows(),
                u32::try_from(self.maps.mmap.len()).unwrap_or(u32::MAX),
            ),
            row(map::LRU_HOLDS, self.lru.hold_rows, sizes.hold_rows),
            row(map::BUDGET_CHAINS, self.budgets.rows(), SLOTS),
            row(map::BLOCKED, self.blocked.fill, sizes.blocked_rows),
            row(map::MADVISE, self.tables.madvise_rows(), sizes.madvise),
            row(map::WORKLOAD, self.workload.rows, sizes.workload),
            row(map::MM_THREADS, self.mm_faults.rows, sizes.mm_threads),
            row(map::REFAULTS, self.refaults.fill, REFAULT_ROWS),
        ];
    }
}

/// Whether a process or thread exists. Only then is its taker row kept; a wrong "no" (in
/// another pid namespace) costs a new row, not a count.
fn is_alive(tgid: u32) -> bool {
    i32::try_from(tgid)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .is_none_or(|pid| {
            !matches!(
                rustix::process::test_kill_process(pid),
                Err(rustix::io::Errno::SRCH)
            )
        })
}
