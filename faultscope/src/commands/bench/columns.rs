//! Columns that benches share: growth, lock waits, counters, the time budget.

use super::point::{Point, Seen};
use super::scale;
use super::table::{Column, Section};
use crate::sample::Scope;
use crate::sample::budget::interval;
use crate::sample::counters::LOCK_CLASSES;
use crate::symbol::{FAULT_PARTS, FaultPart};

/// Faults below which nothing is divided by them.
const FEWEST_FAULTS: u64 = 100;
/// Samples below which no share of the time is told.
const FEWEST_SAMPLES: u64 = 100;

/// Threads or processes.
pub(super) const THREADS: Column = Column {
    title: "Threads",
    width: 7,
    signal: None,
    cell: |point, _| Some(point.job.members.to_string()),
};

/// Rate against that of the fewest members.
pub(super) const EFFICIENCY: Column = Column {
    title: "efficiency",
    width: 10,
    signal: None,
    cell: |point, all| Some(format!("{:.2}", scale::efficiency(point, all)?)),
};

/// What one more member brought, as a share of what one does among the fewest.
pub(super) const GAIN: Column = Column {
    title: "gain",
    width: 6,
    signal: None,
    cell: |point, all| scale::marginal_gain(point, all).map(|gain| format!("{gain:.2}")),
};

/// RSS-counter updates for each fault of the work.
pub(super) const RSS: Column = Column {
    title: "rss/fault",
    width: 9,
    signal: Some("rss_stat"),
    cell: |point, _| {
        let counters = point.given("rss_stat")?.members();
        ratio(counters[Scope::Rss], faults(point)?).map(|r| format!("{r:.3}"))
    },
};

/// The sharing proxy: how likely it is that two faults in a row are of different CPUs.
pub(super) const SHARING: Column = Column {
    title: "sharing",
    width: 7,
    signal: Some("faults"),
    cell: |point, _| shares(point).map(|(expected, _)| format!("{expected:.2}")),
};

/// Its bound.
pub(super) const SHARING_BOUND: Column = Column {
    title: "at most",
    width: 7,
    signal: Some("faults"),
    cell: |point, _| shares(point).map(|(_, bound)| format!("{bound:.2}")),
};

/// Share of user faults that went by the VMA lock.
pub(super) const VMA_LOCK: Column = Column {
    title: "VMA-lock",
    width: 8,
    signal: Some("fault_latency"),
    cell: |point, _| {
        let seen = point.given("fault_latency")?;
        let (mut by_vma_lock, mut all) = (0, 0);
        for (tgid, passes) in &seen.model.delta().process_passes {
            if seen.is_workload(*tgid) {
                by_vma_lock += passes.paths[0];
                all += passes.paths[..3].iter().sum::<u64>();
            }
        }
        ratio(by_vma_lock, all).map(|r| format!("{:.1}%", 100.0 * r))
    },
};

/// Time in contended waits for all locks, for each fault.
pub(super) const WAITS: Column = Column {
    title: "all",
    width: 8,
    signal: Some("contention"),
    cell: |point, _| {
        let counters = point.given("contention")?.members();
        wait(counters.wait_ns(), faults(point)?)
    },
};

const fn class<const CLASS: usize>(title: &'static str) -> Column {
    Column {
        title,
        width: 10,
        signal: Some("contention"),
        cell: |point, _| {
            let counters = point.given("contention")?.members();
            wait(counters[Scope::WaitNs(CLASS)], faults(point)?)
        },
    }
}

/// Contended waits of the work, by lock class in the order of `LOCK_CLASS_NAMES`.
pub(super) const LOCK_WAITS: Section = Section {
    title: "Time the threads spent in contended waits by lock class, ns a fault; their start and end included",
    columns: &[
        THREADS,
        WAITS,
        class::<0>("mmap_lock"),
        class::<1>("lru_lock"),
        class::<2>("zone_lock"),
        class::<3>("pt_lock"),
        class::<4>("spinlock"),
        class::<5>("rwsem"),
        class::<6>("mutex"),
        class::<7>("rt_mutex"),
    ],
};

const fn part<const PART: usize>(title: &'static str) -> Column {
    Column {
        title,
        width: 8,
        signal: Some("fault_budget"),
        cell: |point, _| {
            let budget = point.given("fault_budget")?.model.delta().budget.as_ref()?;
            let all = budget.faults();
            let n = budget.part(FaultPart::ALL[PART]);
            ratio(n, all)
                .filter(|_| all >= FEWEST_SAMPLES)
                .map(|r| format!("{:.1}%", 100.0 * r))
        },
    }
}

/// Samples of the clock in the fault path.
pub(super) const SAMPLES: Column = Column {
    title: "samples",
    width: 7,
    signal: Some("fault_budget"),
    cell: |point, _| {
        let seen = point.given("fault_budget")?;
        let budget = seen.model.delta().budget.as_ref()?;
        Some(budget.faults().to_string())
    },
};

/// Half of the widest 95 % interval among the parts, in points.
pub(super) const SAMPLING_ERROR: Column = Column {
    title: "+-",
    width: 5,
    signal: Some("fault_budget"),
    cell: |point, _| {
        let budget = point.given("fault_budget")?.model.delta().budget.as_ref()?;
        let all = budget.faults();
        let halves = FaultPart::ALL.iter().filter_map(|part| {
            let (low, high) = interval(budget.part(*part), all)?;
            Some((high - low) / 2.0)
        });
        let widest = halves.reduce(f64::max)?;
        (all >= FEWEST_SAMPLES).then(|| format!("{:.1}", 100.0 * widest))
    },
};

/// Parts of the time of faults, in the order of [`FaultPart::ALL`].
pub(super) const BUDGET: Section = Section {
    title: "Where the CPU time of faults goes: clock samples of the whole machine, +- the 95 % sampling error in points",
    columns: &[
        THREADS,
        SAMPLES,
        SAMPLING_ERROR,
        part::<0>("clearing"),
        part::<1>("copy"),
        part::<2>("charge"),
        part::<3>("TLB"),
        part::<4>("rmap/LRU"),
        part::<5>("pt_lock"),
        part::<6>("lock"),
        part::<7>("alloc"),
        part::<8>("file map"),
        part::<9>("tracing"),
        part::<10>("irq"),
        part::<11>("rest"),
    ],
};

const _: () = assert!(FAULT_PARTS == 12 && LOCK_CLASSES == 8, "a column each");

/// Time for a fault, ns.
fn wait(ns: u64, faults: u64) -> Option<String> {
    let each = ratio(ns, faults)?;
    (faults >= FEWEST_FAULTS).then(|| format!("{each:.1}"))
}

/// The sharing proxy and its bound over the address spaces of the members, by faults; `None` where hardly any trapped.
fn shares(point: &Point) -> Option<(f64, f64)> {
    let seen = point.given("faults")?;
    if counted(seen, point)? < FEWEST_FAULTS {
        return None;
    }
    let members = seen.member_processes();
    let (mut expected, mut bound, mut faults) = (0.0, 0.0, 0.0);
    let table = seen.model.table(crate::model::TableId::AddressSpaces);
    let at = |id: &str| table.position(id);
    let (pid, n) = (at("pid")?, at("faults")?);
    let (e, b) = (at("sharing_expected_ratio")?, at("sharing_bound_ratio")?);
    for row in &table.rows {
        let number = |column: usize| row.cells.get(column).and_then(crate::model::Value::number);
        let crate::model::Value::Count(tgid) = row.cells[pid] else {
            continue;
        };
        if !u32::try_from(tgid).is_ok_and(|tgid| members.contains(&tgid)) {
            continue;
        }
        if let (Some(n), Some(e), Some(b)) = (number(n), number(e), number(b)) {
            expected += n * e;
            bound += n * b;
            faults += n;
        }
    }
    (faults > 0.0).then(|| (expected / faults, bound / faults))
}

/// A quotient; `None` where there is nothing to divide by.
#[expect(clippy::cast_precision_loss, reason = "a few digits are shown")]
pub(super) fn ratio(n: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| n as f64 / of as f64)
}

/// Faults of the members' measured part as the probes counted them: all of their lives, less those outside of it, which
/// getrusage(2) gives exactly.
pub(super) fn counted(seen: &Seen, point: &Point) -> Option<u64> {
    let outside = point.result.events("other_faults")?;
    Some(seen.members().faults().saturating_sub(outside))
}

/// Faults of the members' whole lives by getrusage(2), those that trap nowhere included.
fn faults(point: &Point) -> Option<u64> {
    let result = &point.result;
    Some(result.events("faults")? + result.events("other_faults")?)
}
