//! Holds of lru_lock: by region, exactly, and what the exact ones do not cover.

use std::path::{Path, PathBuf};

use faultscope::commands::session::{Options, Session};
use faultscope::model::{Model, TableId, Value};
use faultscope::sample::Delta;
use faultscope::sample::delta::{LruCoverage, LruHold};

use crate::support::{
    Cgroup, Child, Link, Pages, Role, demand, feature, is_rt, loss, object, pin, print_losses,
    skip, tick,
};

pub(crate) const ROLES: &[(&str, Role)] = &[("hold_pages", pages)];

/// Pages a child touches in a round, more than its cgroup holds.
const TOUCHED: usize = 6000;
/// Bytes of each cgroup.
const LIMIT: u64 = 16 << 20;
/// Holds the exact programs need.
const FLOOR: u64 = 10_000;
/// Rounds of the load at most.
const ROUNDS: usize = 40;

/// Touches pages until reclaim takes some, advises the rest out and unmaps.
fn pages(link: &mut Link, arguments: &[u64]) {
    pin(usize::try_from(arguments[0]).expect("a CPU"));
    loop {
        link.stop([0; 4]);
        let pages = Pages::new(TOUCHED);
        pages.touch();
        // One hold for each page that is isolated (folio_isolate_lru, mm/vmscan.c).
        pages.advise(libc::MADV_PAGEOUT);
        drop(pages);
    }
}

/// Two children in each of two memory cgroups smaller than what they touch.
struct Load {
    children: Vec<Child>,
    cgroups: [Cgroup; 2],
}

impl Load {
    fn start() -> Self {
        let cgroups = [Cgroup::new("hold-one"), Cgroup::new("hold-two")];
        for cgroup in &cgroups {
            cgroup.reclaim_above(LIMIT);
        }
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let children = (0..4)
            .map(|i: u64| {
                let cgroup = &cgroups[usize::from(i % 2 == 1)];
                Child::start_in("hold_pages", &[i % cpus], Some(cgroup))
            })
            .collect();
        Self { children, cgroups }
    }

    fn round(&mut self) {
        for child in &mut self.children {
            child.go();
        }
        for child in &mut self.children {
            child.report();
        }
    }
}

/// A session that shows the table of holds; `None`, said and counted, where the
/// signal is missing.
fn session(named: Option<&str>, signal: &str, row: &str) -> Option<Session> {
    let mut session = Session::start(&Options {
        named: named.into_iter().map(str::to_owned).collect(),
        bpf_object: object(),
        ..Options::default()
    })
    .expect("the core set attaches; see `faultscope doctor`");
    session.show(TableId::LruHolds);
    tick(&mut session);
    let model = tick(&mut session);
    let Some(missing) = model.missing.iter().find(|m| *m.signal == *signal) else {
        return Some(session);
    };
    feature(row, Err("the kernel takes no programs on its functions"));
    skip(&missing.reason);
    None
}

/// Counts `mm_vmscan_lru_isolate` by tracefs, apart from our own programs: reclaim
/// takes the lru_lock itself for each (`shrink_inactive_list`, `shrink_active_list`
/// and `evict_folios`, mm/vmscan.c).
struct Isolations {
    instance: PathBuf,
}

impl Isolations {
    /// `None` where tracefs is not mounted.
    fn start() -> Option<Self> {
        let instance = Path::new("/sys/kernel/tracing/instances").join("faultscope-test");
        std::fs::create_dir(&instance).ok()?;
        let counter = Self { instance };
        let event = "events/vmscan/mm_vmscan_lru_isolate/enable";
        std::fs::write(counter.instance.join(event), "1").expect("a tracepoint can be enabled");
        Some(counter)
    }

    fn count(&self) -> u64 {
        let cpus = std::fs::read_dir(self.instance.join("per_cpu")).expect("a directory");
        cpus.flatten()
            .map(|cpu| std::fs::read_to_string(cpu.path().join("stats")).expect("statistics"))
            .map(|text| {
                // "entries: 12", "overrun: 0", one a line.
                text.lines()
                    .filter(|line| line.starts_with("entries:") || line.starts_with("overrun:"))
                    .filter_map(|line| line.split_once(':')?.1.trim().parse::<u64>().ok())
                    .sum::<u64>()
            })
            .sum()
    }
}

impl Drop for Isolations {
    fn drop(&mut self) {
        drop(std::fs::remove_dir(&self.instance));
    }
}

/// Sum of the exact holds.
fn exact(delta: &Delta) -> LruHold {
    let mut sum = LruHold::default();
    for hold in delta.lru_holds.values() {
        sum.holds += hold.holds;
        sum.hold_ns += hold.hold_ns;
        sum.max_ns = sum.max_ns.max(hold.max_ns);
        sum.histogram.add(&hold.histogram);
        for (a, b) in sum.handoffs.iter_mut().zip(&hold.handoffs) {
            *a += b;
        }
    }
    sum
}

fn add(sum: &mut LruCoverage, more: &LruCoverage) {
    sum.acquired += more.acquired;
    sum.unended += more.unended;
    sum.releases += more.releases;
    sum.tested += more.tested;
    sum.uncovered += more.uncovered;
    sum.sample = more.sample;
}

fn misses(delta: &Delta) -> u64 {
    let of_holds = delta
        .programs
        .iter()
        .filter(|p| p.name.starts_with("hold_"));
    of_holds.filter_map(|p| p.misses).sum()
}

fn rows<'a>(model: &'a Model, way: &str) -> Vec<&'a [Value]> {
    let table = model.table(TableId::LruHolds);
    let is_way = |cells: &[Value]| cells[0] == Value::Text(way.into());
    table
        .rows
        .iter()
        .map(|row| &*row.cells)
        .filter(|cells| is_way(cells))
        .collect()
}

#[test]
fn regions_are_timed_by_move_function() {
    let row = "lru_lock holds by region";
    let Some(mut session) = session(None, "lru_lock_hold", row) else {
        return;
    };
    let mut load = Load::start();
    tick(&mut session);
    load.round();
    let model = tick(&mut session);
    let mut regions = 0;
    for (name, moves) in &model.delta().moves {
        println!(
            "  {name}: {} regions, {} ns, at most {} ns, median {:?} ns",
            moves.regions,
            moves.region_ns,
            moves.region_max_ns,
            moves.histogram.quantile_ns(0.5)
        );
        assert_eq!(moves.histogram.count(), moves.regions, "{name}");
        assert!(
            moves.region_ns
                >= moves
                    .region_max_ns
                    .min(moves.region_ns / moves.regions.max(1))
        );
        regions += moves.regions;
    }
    // Each child's pages come in batches of at most 31.
    let floor = 4 * TOUCHED as u64 / 31;
    demand("regions", regions, floor);
    let is_added = |name: &str| name.starts_with("lru_add");
    let added = model
        .delta()
        .moves
        .iter()
        .filter(|(name, _)| is_added(name));
    demand("of lru_add", added.map(|(_, m)| m.regions).sum(), floor);
    println!("  ends without a begin: {}", model.delta().regions_unpaired);
    assert!(model.delta().regions_unpaired * 1000 <= regions);
    assert_eq!(rows(&model, "region").len(), model.delta().moves.len());
    // The exact ones are opt-in, and the table says how.
    let exact = rows(&model, "exact");
    let says =
        |cell: &Value| matches!(cell, Value::Text(text) if text.contains("--probe hold_release"));
    assert!(exact.len() == 1 && exact[0].iter().any(says), "{exact:?}");
    print_losses(&model);
    feature(row, Ok(()));
}

#[test]
fn every_lru_lock_had_by_function_is_matched_with_its_release() {
    let row = "lru_lock holds, exactly, by memory cgroup";
    let program = if is_rt() {
        "hold_release_rt"
    } else {
        "hold_release"
    };
    let Some(mut session) = session(Some(program), "lru_lock_exact_hold", row) else {
        return;
    };
    let mut load = Load::start();
    let isolations = Isolations::start();
    tick(&mut session);
    let mut sum = LruCoverage::default();
    let mut holds = LruHold::default();
    let (mut lost, mut missed, mut regions, mut region_ns) = (0, 0, 0, 0);
    let mut by_cgroup = [0, 0];
    for _ in 0..ROUNDS {
        load.round();
        let model = tick(&mut session);
        let delta = model.delta();
        add(&mut sum, &delta.lru_coverage);
        let more = exact(delta);
        holds.holds += more.holds;
        holds.hold_ns += more.hold_ns;
        holds.max_ns = holds.max_ns.max(more.max_ns);
        holds.histogram.add(&more.histogram);
        for (a, b) in holds.handoffs.iter_mut().zip(&more.handoffs) {
            *a += b;
        }
        missed += misses(delta);
        lost += loss(&model, "lru_hold_slot_collision") + loss(&model, "lru_hold_table_full");
        for moves in delta.moves.values() {
            regions += moves.regions;
            region_ns += moves.region_ns;
        }
        for (seen, cgroup) in by_cgroup.iter_mut().zip(&load.cgroups) {
            let of = |(id, _): &(&faultscope::sample::delta::LruLockId, &LruHold)| {
                id.memcg == cgroup.id()
            };
            let holds: u64 = delta
                .lru_holds
                .iter()
                .filter(of)
                .map(|(_, h)| h.holds)
                .sum();
            *seen += holds;
        }
        assert_eq!(rows(&model, "exact").len(), delta.lru_holds.len());
        assert_eq!(rows(&model, "not covered").len(), 1);
        if holds.holds >= FLOOR && by_cgroup.iter().all(|n| *n >= FLOOR / 10) {
            break;
        }
    }
    demand("holds", holds.holds, FLOOR);
    for (seen, cgroup) in by_cgroup.iter().zip(&load.cgroups) {
        let name = cgroup.path().file_name().expect("a name").to_string_lossy();
        demand(&format!("of {name}"), *seen, FLOOR / 10);
    }
    println!(
        "  had: {}, matched: {}, without a release: {}, lost and counted: {lost}, runs skipped by the kernel: {missed}",
        sum.acquired, holds.holds, sum.unended
    );
    // Nothing is held now but by tasks of the rest of the machine. Where the holder is
    // preemptible the kernel may skip a run (its recursion guard), and counts it.
    let unmatched = sum.acquired.abs_diff(holds.holds);
    assert!(
        unmatched <= missed + lost + 4,
        "{unmatched} of {} acquisitions have no release",
        sum.acquired
    );
    assert!(sum.unended <= missed + lost, "{sum:?}");
    assert_eq!(holds.histogram.count(), holds.holds);
    println!(
        "  exact: {} holds, {} ns, at most {} ns, median {:?} ns, handoffs by distance {:?}",
        holds.holds,
        holds.hold_ns,
        holds.max_ns,
        holds.histogram.quantile_ns(0.5),
        holds.handoffs
    );
    println!("  by region: {regions} regions, {region_ns} ns");
    println!(
        "  region against exact: {:.2} of the number, {:.2} of the time",
        regions as f64 / holds.holds as f64,
        region_ns as f64 / holds.hold_ns as f64
    );
    println!(
        "  releases of any spinlock: {}, {} for each hold",
        sum.releases,
        sum.releases / holds.holds
    );
    let estimate = sum.uncovered * sum.sample;
    println!(
        "  open-coded: {} of {} releases tested (1 in {}): about {estimate}, {:.0} % of all lru_lock holds",
        sum.uncovered,
        sum.tested,
        sum.sample,
        100.0 * estimate as f64 / (estimate + sum.acquired) as f64
    );
    demand("releases of open-coded locking tested", sum.uncovered, 10);
    if let Some(isolations) = isolations {
        let isolated = isolations.count();
        println!("  mm_vmscan_lru_isolate meanwhile: {isolated}");
        // Of few tested, the estimate has the spread of a Poisson count: three standard deviations.
        let tested = sum.uncovered as f64;
        let most = (tested + 3.0 * tested.sqrt()) * sum.sample as f64;
        println!("  open-coded holds, at most: {most:.0} (floor {isolated})");
        assert!(
            most >= isolated as f64,
            "at most {most} open-coded holds, and {isolated} isolations are one each"
        );
    }
    // One in `sample` of the releases that end no tracked hold is tested.
    let other = sum.releases - holds.holds;
    let wanted = other / sum.sample;
    assert!(
        sum.tested.abs_diff(wanted) * 10 <= wanted,
        "{} of {other} releases tested",
        sum.tested
    );
    feature(row, Ok(()));
}
