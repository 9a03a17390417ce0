//! Sharing of an address space between CPUs, and identities that change.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use faultscope::model::{Model, TableId, Value};
use faultscope::sample::{Counters, Delta};

use crate::support::{
    self, Cgroup, Child, Link, Pages, Role, demand, demand_exactly, demand_near, feature,
    own_faults, pin, print_losses, process, run_anew as exec, session, tick, watch,
};

pub(crate) const ROLES: &[(&str, Role)] = &[
    ("fault in turns", fault_in_turns),
    ("fault by lot", fault_by_lot),
    ("touch in parts", touch_in_parts),
    ("touch and run anew", touch_and_run_anew),
    ("run anew", run_anew),
];

/// CPUs the threads of a load are spread over.
const CPUS: usize = 2;
/// Faults a process takes beside its load, at most.
const NOISE: u64 = 16;

fn size(n: u64) -> usize {
    usize::try_from(n).expect("sizes fit")
}

/// Threads, each on one CPU, touch fresh pages at the same time at each answer;
/// each argument is one thread's number of pages. Ends when it is killed.
fn fault_in_turns(link: &mut Link, arguments: &[u64]) {
    let regions: Vec<Pages> = arguments.iter().map(|n| Pages::new(size(*n))).collect();
    let line = Barrier::new(regions.len() + 1);
    let ready = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (thread, memory) in regions.iter().enumerate() {
            let (line, ready, threads) = (&line, &ready, regions.len());
            scope.spawn(move || {
                pin(thread % CPUS);
                run_before_others();
                for turn in 1.. {
                    line.wait();
                    // A wake-up takes longer than the shorter turns: all run before one begins.
                    ready.fetch_add(1, Ordering::Relaxed);
                    while ready.load(Ordering::Relaxed) < turn * threads {
                        std::thread::yield_now();
                    }
                    memory.touch();
                    line.wait();
                    memory.advise(libc::MADV_DONTNEED);
                }
            });
        }
        run_before_others();
        loop {
            link.stop([0; 4]);
            line.wait();
            line.wait();
        }
    });
}

/// Says so where CPUs are an emulator's: their threads do not fault at the same time, and a window does not hold the
/// faults of a turn.
fn skips_emulated() -> bool {
    let emulated = support::is_emulated();
    if emulated {
        support::skip(
            "emulated CPUs do not fault at the same time; turns by lot are tested instead",
        );
    }
    emulated
}

/// `arguments[0]` threads, each on a CPU as far as there are, of which one at a time
/// touches one fresh page and draws the next by lot. Ends when it is killed.
fn fault_by_lot(link: &mut Link, arguments: &[u64]) {
    const PAGES: usize = 512;
    let threads = size(arguments[0]);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let regions: Vec<Pages> = (0..threads).map(|_| Pages::new(PAGES)).collect();
    let (turn, lot) = (
        AtomicUsize::new(usize::MAX),
        AtomicU64::new(88_172_645_463_325_252),
    );
    let all: OnceLock<Vec<Thread>> = OnceLock::new();
    let work = |me: usize| {
        pin(me % cpus);
        for page in (0..PAGES).cycle() {
            while turn.load(Ordering::Acquire) != me {
                std::thread::park();
            }
            if page == 0 {
                regions[me].advise(libc::MADV_DONTNEED);
            }
            regions[me].touch_part(page, 1);
            // xorshift64 (Marsaglia, 2003); only who has the turn draws.
            let mut word = lot.load(Ordering::Relaxed);
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            lot.store(word, Ordering::Relaxed);
            let next = size(word >> 33) % threads;
            turn.store(next, Ordering::Release);
            if let (true, Some(all)) = (next != me, all.get()) {
                all[next].unpark();
            }
        }
    };
    std::thread::scope(|scope| {
        let handles = (0..threads).map(|me| {
            let work = &work;
            scope.spawn(move || work(me)).thread().clone()
        });
        let threads = all.get_or_init(|| handles.collect());
        link.stop([0; 4]);
        turn.store(0, Ordering::Release);
        threads[0].unpark();
        link.stop([0; 4]);
    });
}

/// Expected and measured share of handoffs where the order is random, which is what
/// the expectation supposes; means over windows weighted by their faults.
fn by_lot(threads: u64) -> [f64; 2] {
    const FAULTS: f64 = 1_000.0;
    const TICKS: usize = 90;
    let mut child = Child::start("fault by lot", &[threads]);
    let mut session = session(&[child.pid()]);
    session.show(TableId::AddressSpaces);
    child.step();
    tick(&mut session);
    let (mut sum, mut faults, mut windows) = ([0.0; 2], 0.0, 0);
    for _ in 0..TICKS {
        std::thread::sleep(Duration::from_secs(1));
        let model = tick(&mut session);
        let Some(([expected, bound, measured], window)) = shares(&model, child.pid()) else {
            continue;
        };
        assert!((expected..=1.0).contains(&bound), "{expected} {bound}");
        sum[0] += expected * window;
        sum[1] += measured * window;
        faults += window;
        windows += 1;
        if faults >= FAULTS {
            break;
        }
    }
    println!("  {faults} faults in {windows} windows (floor {FAULTS} faults)");
    assert!(faults >= FAULTS, "{faults} faults in windows");
    let [expected, measured] = sum.map(|s| s / faults);
    println!("  {threads} threads: expected {expected:.3}, measured {measured:.3}");
    [expected, measured]
}

/// The proxy lies between half and double of what is measured.
fn proxy_holds(threads: u64) {
    let [expected, measured] = by_lot(threads);
    // With two CPUs of like shares a half, with four three quarters.
    assert!(expected > 0.4, "{expected}");
    let factor = expected / measured;
    assert!((0.5..=2.0).contains(&factor), "{expected} for {measured}");
}

#[test]
fn the_sharing_of_one_thread_is_nothing() {
    let [expected, measured] = by_lot(1);
    assert!(expected < 0.02 && measured < 0.02, "{expected} {measured}");
}

#[test]
fn the_sharing_of_two_threads_is_as_measured() {
    proxy_holds(2);
}

#[test]
fn the_sharing_of_four_threads_is_as_measured() {
    proxy_holds(4);
    feature("sharing of an address space between CPUs", Ok(()));
}

/// Lets the calling thread run before all other work for the few ms of a turn, so
/// that all CPUs of the load fault at the same time. Without the right to it
/// other work may keep them apart, and a test that needs handoffs says so.
fn run_before_others() {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: one live structure; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) };
}

/// Expected, bound and measured share of handoffs as the table has them, and the
/// faults of the window.
fn shares(model: &Model, pid: u32) -> Option<([f64; 3], f64)> {
    let table = model.table(TableId::AddressSpaces);
    let at = |id: &str| table.position(id).unwrap_or_else(|| panic!("column {id}"));
    let row = table
        .rows
        .iter()
        .find(|row| row.cells[at("pid")] == Value::Count(u64::from(pid)))?;
    let real = |id: &str| row.cells[at(id)].number();
    Some((
        [
            real("sharing_expected_ratio")?,
            real("sharing_bound_ratio")?,
            real("sharing_measured_ratio")?,
        ],
        real("sharing_window_faults")?,
    ))
}

/// Expected, bound and measured shares of some windows, as means weighted by the
/// faults of each, and the greatest measured share of a window. Each thread takes
/// so many faults in some ms; a window counts when it holds nearly all of them, as
/// the shares are those of all.
fn shared_by(pages: &[u64]) -> [f64; 4] {
    const WINDOWS: usize = 3;
    const TURNS: usize = 20;
    let turn: f64 = pages
        .iter()
        .map(|n| f64::from(u32::try_from(*n).expect("small")))
        .sum();
    let child = &mut Child::start("fault in turns", pages);
    let mut session = session(&[child.pid()]);
    session.show(TableId::AddressSpaces);
    // A turn takes some ms, where it does not take a hundred times as long to begin.
    session.collector().set_window(Duration::from_secs(600));
    let mut sum = [0.0; 3];
    let (mut windows, mut faults, mut greatest) = (0, 0.0, 0.0_f64);
    for _ in 0..TURNS {
        tick(&mut session);
        child.step();
        // No window opens before the second is over.
        std::thread::sleep(Duration::from_millis(500));
        let model = tick(&mut session);
        std::thread::sleep(Duration::from_millis(500));
        let Some((row, window)) = shares(&model, child.pid()) else {
            println!("  no fault in the window");
            continue;
        };
        println!("  expected, bound, measured: {row:.3?} of {window} faults");
        if window < turn * 0.95 {
            continue;
        }
        for (sum, ratio) in sum.iter_mut().zip(row) {
            *sum += ratio * window;
        }
        faults += window;
        greatest = greatest.max(row[2]);
        windows += 1;
        if windows == WINDOWS {
            break;
        }
    }
    println!("  {faults} faults in {windows} whole windows (floor {WINDOWS} windows)");
    assert_eq!(windows, WINDOWS, "windows with nearly all faults of a turn");
    let [expected, bound, measured] = sum.map(|s| s / faults);
    println!("  together: {expected:.3}, {bound:.3}, {measured:.3}; greatest {greatest:.3}");
    [expected, bound, measured, greatest]
}

/// One thread on one CPU shares nothing; nothing is expected either.
#[test]
fn one_faulting_thread_shares_nothing() {
    if skips_emulated() {
        return;
    }
    let [expected, bound, _, greatest] = shared_by(&[3_000]);
    assert!(expected < 0.001 && bound < 0.001, "{expected} {bound}");
    assert!(greatest < 0.001, "{greatest}");
}

/// Two CPUs with like shares: half expected, all possible.
fn two_cpus(pages: &[u64]) {
    if skips_emulated() {
        return;
    }
    let [expected, bound, measured, greatest] = shared_by(pages);
    assert!((0.3..=0.501).contains(&expected), "expected {expected}");
    // With two CPUs 2p(1-p) and 2 min(p, 1-p).
    assert!((expected..=1.0).contains(&bound), "bound {bound}");
    assert!(
        measured <= bound + 0.05,
        "{measured} above the bound {bound}"
    );
    // Both CPUs fault through at least one of the windows.
    assert!(greatest >= expected / 2.0, "{greatest} for {expected}");
    assert!(
        greatest < 1.0,
        "strict turns, though nobody waits for the other"
    );
}

/// Expected, bound and measured for two threads on two CPUs.
#[test]
fn two_faulting_threads_share_as_expected_multi() {
    two_cpus(&[1_500; 2]);
}

/// The same for four threads on two CPUs.
#[test]
fn four_faulting_threads_share_as_expected_multi() {
    two_cpus(&[750; 4]);
}

/// A CPU with a tenth of the faults bounds the handoffs to a fifth of them.
#[test]
fn uneven_shares_bound_the_handoffs_multi() {
    if skips_emulated() {
        return;
    }
    let [expected, bound, measured, _] = shared_by(&[2_700, 300]);
    assert!((0.15..=0.21).contains(&expected), "expected {expected}");
    assert!((expected..=0.23).contains(&bound), "bound {bound}");
    assert!(
        measured <= bound + 0.05,
        "{measured} above the bound {bound}"
    );
    assert!(measured >= expected / 10.0, "{measured} for {expected}");
}

/// Touches as many fresh pages as each argument says, with a stop after each.
fn touch_in_parts(link: &mut Link, arguments: &[u64]) {
    let regions: Vec<Pages> = arguments.iter().map(|n| Pages::new(size(*n))).collect();
    link.stop([0; 4]);
    for memory in &regions {
        memory.touch();
        link.stop([0; 4]);
    }
}

fn in_cgroup(delta: &Delta, id: u64) -> Counters {
    delta
        .cgroups
        .get(&id)
        .map_or_else(Counters::default, |c| c.counters)
}

/// A process that moves between two cgroups, within one interval and across two:
/// each cgroup has the faults taken in it.
#[test]
fn faults_belong_to_the_cgroup_they_were_taken_in() {
    const PARTS: [u64; 4] = [3_000, 5_000, 7_000, 11_000];
    let (a, b) = (Cgroup::new("a"), Cgroup::new("b"));
    let mut child = Child::start_in("touch in parts", &PARTS, Some(&a));
    let pid = child.pid();
    let mut session = session(&[pid]);
    tick(&mut session);
    child.step();
    b.take(pid);
    child.step();
    let first = tick(&mut session);
    child.step();
    a.take(pid);
    let second = tick(&mut session);
    child.step();
    let third = tick(&mut session);
    for (what, model, in_a, in_b) in [
        ("moved within an interval", &first, PARTS[0], PARTS[1]),
        ("moved at its end", &second, 0, PARTS[2]),
        ("moved back before it", &third, PARTS[3], 0),
    ] {
        let delta = model.delta();
        let seen = [a.id(), b.id()].map(|id| in_cgroup(delta, id).user());
        demand_near(&format!("{what}: user faults in A"), seen[0], in_a, NOISE);
        demand_near(&format!("{what}: user faults in B"), seen[1], in_b, NOISE);
        let all = process(delta, pid).user();
        demand_exactly(
            &format!("{what}: faults of the process"),
            all,
            seen[0] + seen[1],
        );
        print_losses(model);
    }
    for (id, cgroup) in [(a.id(), &a), (b.id(), &b)] {
        let path = first.delta().cgroup_paths.get(&id);
        let name = cgroup
            .path()
            .file_name()
            .map(|n| format!("/{}", n.display()));
        assert_eq!(path.map(ToString::to_string), name, "path of cgroup {id}");
    }
    child.finish();
}

/// Touches `arguments[0]` pages, runs this binary anew, touches `arguments[1]`
/// pages; reports the minor faults of the process before and after all that.
fn touch_and_run_anew(link: &mut Link, arguments: &[u64]) {
    let memory = Pages::new(size(arguments[0]));
    link.stop([own_faults().0, 0, 0, 0]);
    memory.touch();
    exec("run anew", &arguments[1..]);
}

fn run_anew(link: &mut Link, arguments: &[u64]) {
    Pages::new(size(arguments[0])).touch();
    link.stop([own_faults().0, 0, 0, 0]);
}

/// A process that runs another program within one interval stays one process
/// with two address spaces, and loses no fault.
#[test]
fn faults_survive_an_exec_and_keep_their_address_space() {
    const BEFORE: u64 = 5_000;
    const AFTER: u64 = 7_000;
    /// Faults of get_user_pages for the new stack and of the loader.
    const EXEC: u64 = 2_000;
    /// Faults only the kernel counts: the new program's first stack pages.
    const UNSEEN: u64 = 32;
    let mut child = Child::start("touch and run anew", &[BEFORE, AFTER]);
    let pid = child.pid();
    let mut session = session(&[pid]);
    let [before, ..] = child.first();
    let (model, [after, ..]) = watch(&mut session, &mut child);
    let delta = model.delta();
    let rows = delta.processes.keys().filter(|id| id.tgid == pid).count();
    assert_eq!(rows, 1, "rows of the process");
    demand_near(
        "faults of the process against minor faults",
        process(delta, pid).faults(),
        after - before,
        UNSEEN,
    );
    let mut spaces: Vec<u64> = delta
        .spaces
        .values()
        .filter(|s| s.process.is_some_and(|p| p.tgid == pid))
        .map(|s| s.by_cpu.values().sum())
        .collect();
    spaces.sort_unstable();
    println!("  faults by address space: {spaces:?}");
    assert_eq!(spaces.len(), 2, "address spaces");
    demand_near("faults before the exec", spaces[0], BEFORE, NOISE);
    demand("faults after the exec", spaces[1], AFTER);
    assert!(spaces[1] <= AFTER + EXEC, "faults after the exec");
    print_losses(&model);
    child.finish();
}
