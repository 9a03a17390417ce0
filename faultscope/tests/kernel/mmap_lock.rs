//! mmap_lock: how often it is taken; and while that is shown who takes it, how,
//! through which system call, from which CPU.

use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use faultscope::commands::session::Session;
use faultscope::model::{Model, TableId};
use faultscope::sample::{Counters, Delta, Scope, counters::MMAP_LOCK, delta::Taker};

use crate::support::{
    self, Child, Link, PAGE, Pages, Role, demand, demand_exactly, demand_near, pin, print_losses,
    process, tick, watch,
};

pub(crate) const ROLES: &[(&str, Role)] = &[
    ("map and unmap", map_and_unmap),
    ("map and unmap on", map_and_unmap_on),
    ("fault under a writer", fault_under_a_writer),
    ("alternate mprotect", alternate_mprotect),
    ("hold memory", hold_memory),
    ("read smaps", read_smaps),
];

/// Calls of each kind.
const CALLS: u64 = 3_000;

/// A session that pairs takes with releases.
fn session(pids: &[u32]) -> Session {
    let mut session = support::session(pids);
    session.show(TableId::LockHolders);
    session
}

fn size(n: u64) -> usize {
    usize::try_from(n).expect("sizes fit")
}

/// The taker row of `pid` by one system call; zero if there is none.
pub(crate) fn taker(delta: &Delta, pid: u32, syscall: i64, is_write: bool) -> Taker {
    let mut rows = delta.takers.iter().filter(|(id, _)| {
        id.tgid == pid && i64::from(id.syscall) == syscall && id.is_write == is_write
    });
    let taker = rows.next().map(|(_, taker)| taker.clone());
    assert!(rows.next().is_none(), "two rows of one taker and one mm");
    taker.unwrap_or_default()
}

/// `arguments[0]` calls each of mmap, mprotect and munmap, then as many of each
/// that fail while they have the lock.
fn map_and_unmap(link: &mut Link, arguments: &[u64]) {
    let calls = size(arguments[0]);
    let mut places: Vec<*mut libc::c_void> = vec![std::ptr::null_mut(); calls];
    places.fill(std::ptr::without_provenance_mut(1));
    let own = Pages::new(1);
    let gap = Pages::new(3);
    // SAFETY: the middle page of our own mapping, which nothing borrows from.
    unsafe { libc::munmap(gap.start().add(PAGE).cast(), PAGE) };
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let map = |at: *mut libc::c_void, flags: i32| {
        // SAFETY: a new mapping, or none where one is.
        unsafe { libc::mmap(at, PAGE, libc::PROT_READ, anonymous | flags, -1, 0) }
    };
    link.stop([0; 4]);
    for place in &mut places {
        *place = map(std::ptr::null_mut(), 0);
    }
    link.stop([0; 4]);
    assert!(places.iter().all(|place| *place != libc::MAP_FAILED));
    for place in &places {
        // SAFETY: a mapping of ours without any access to it.
        assert_eq!(unsafe { libc::mprotect(*place, PAGE, libc::PROT_NONE) }, 0);
    }
    link.stop([0; 4]);
    for place in &places {
        // SAFETY: as above.
        assert_eq!(unsafe { libc::munmap(*place, PAGE) }, 0);
    }
    link.stop([0; 4]);
    for _ in 0..calls {
        // The page is taken already.
        assert_eq!(
            map(own.start().cast(), libc::MAP_FIXED_NOREPLACE),
            libc::MAP_FAILED
        );
        // A range with a hole.
        // SAFETY: the protection the pages have already.
        let done = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            libc::mprotect(gap.start().cast(), 3 * PAGE, protection)
        };
        assert_eq!(done, -1);
        // Not on a page's border.
        // SAFETY: refused by the kernel.
        assert_eq!(unsafe { libc::munmap(own.start().add(1).cast(), PAGE) }, -1);
    }
    link.stop([0; 4]);
}

/// Every write acquisition, downgrade and system call of the writer, exactly.
#[test]
fn writers_of_mmap_lock_are_exact() {
    let mut child = Child::start("map and unmap", &[CALLS]);
    let pid = child.pid();
    let mut session = session(&[pid]);
    for (what, syscall, downgraded) in [
        ("mmap", libc::SYS_mmap, 0),
        ("mprotect", libc::SYS_mprotect, 0),
        ("munmap", libc::SYS_munmap, CALLS),
    ] {
        let (model, _) = watch(&mut session, &mut child);
        let delta = model.delta();
        let writer = taker(delta, pid, syscall, true);
        demand_exactly(&format!("{what}: taken for write"), writer.taken, CALLS);
        demand_exactly(
            &format!("{what}: downgraded"),
            writer.downgraded,
            downgraded,
        );
        demand_exactly(&format!("{what}: failed attempts"), writer.failed, 0);
        let reader = taker(delta, pid, syscall, false);
        demand_exactly(&format!("{what}: taken for read"), reader.taken, 0);
        demand_exactly(
            &format!("{what}: holds ended"),
            writer.holds + reader.holds,
            CALLS + downgraded,
        );
        demand_counted(what, &process(delta, pid));
        demand(
            &format!("{what}: its holds, ns"),
            process(delta, pid)[Scope::MmapHoldNs(1)],
            CALLS,
        );
        assert_eq!(writer.owner, pid, "{what}: owner of the mm");
        print_losses(&model);
    }
    let (model, _) = watch(&mut session, &mut child);
    for (what, syscall) in [
        ("mmap", libc::SYS_mmap),
        ("mprotect", libc::SYS_mprotect),
        ("munmap", libc::SYS_munmap),
    ] {
        let writer = taker(model.delta(), pid, syscall, true);
        demand_exactly(&format!("refused {what}: taken"), writer.taken, CALLS);
        demand_exactly(&format!("refused {what}: downgraded"), writer.downgraded, 0);
    }
    print_losses(&model);
    child.finish();
}

/// Demands [`CALLS`] acquisitions for write, and none for read.
fn demand_counted(what: &str, counters: &Counters) {
    let taken = |side| counters[Scope::MmapTaken(side)];
    demand_exactly(
        &format!("{what}: taken for write by the process"),
        taken(1),
        CALLS,
    );
    demand_exactly(
        &format!("{what}: taken for read by the process"),
        taken(0),
        0,
    );
}

/// Acquisitions and downgrades of the machine.
fn of_machine(model: &Model) -> ([u64; 2], u64) {
    let cpus = &model.delta().cpus;
    let taken = [0, 1].map(|side| {
        cpus.iter()
            .map(|c| c.counters[Scope::MmapTaken(side)])
            .sum()
    });
    (taken, cpus.iter().map(|c| c.mmap_downgraded).sum())
}

/// Without takes and holds the counts are the same, and there is no time and no taker.
#[test]
fn acquisitions_are_exact_without_the_programs_that_pair_them() {
    let mut child = Child::start("map and unmap", &[CALLS]);
    let pid = child.pid();
    let mut session = support::session(&[pid]);
    session.show(TableId::Cpus);
    for (what, downgraded) in [
        ("mmap", 0),
        ("mprotect", 0),
        ("munmap", CALLS),
        ("refused", 0),
    ] {
        let (model, _) = watch(&mut session, &mut child);
        let delta = model.delta();
        let counters = process(delta, pid);
        if what == "refused" {
            demand_exactly(
                "refused: taken for write",
                counters[Scope::MmapTaken(1)],
                3 * CALLS,
            );
        } else {
            demand_counted(what, &counters);
        }
        let (taken, of_all) = of_machine(&model);
        demand(
            &format!("{what}: downgrades of the machine"),
            of_all,
            downgraded,
        );
        demand(
            &format!("{what}: taken for write on the machine"),
            taken[1],
            CALLS,
        );
        for side in 0..2 {
            let times = [Scope::MmapTakeNs(side), Scope::MmapHoldNs(side)].map(|s| counters[s]);
            assert_eq!(times, [0, 0], "{what}: times that nothing measures");
        }
        assert!(delta.takers.is_empty(), "{what}: takers that nothing notes");
        let reason = model
            .missing
            .iter()
            .find(|m| *m.signal == *"mmap_lock_hold");
        let reason = reason.expect("the signal is missing, with the reason");
        assert!(reason.reason.contains("holders"), "{reason:?}");
        print_losses(&model);
    }
    child.finish();
}

/// Maps and unmaps a page on two threads until the test answers, then reports the rounds.
fn map_and_unmap_on(link: &mut Link, _: &[u64]) {
    loop {
        link.stop([0; 4]);
        let stop = AtomicU64::new(0);
        let rounds = std::thread::scope(|scope| {
            let work = || {
                let mut rounds: u64 = 0;
                while stop.load(Ordering::Relaxed) == 0 {
                    drop(Pages::new(1));
                    rounds += 1;
                }
                rounds
            };
            let threads = [scope.spawn(work), scope.spawn(work)];
            while !support::is_answered() {
                std::thread::sleep(Duration::from_millis(1));
            }
            stop.store(1, Ordering::Relaxed);
            threads.map(|thread| thread.join().expect("it maps and unmaps"))
        });
        link.stop([rounds.iter().sum(), 0, 0, 0]);
    }
}

/// The programs that pair takes and releases come and go in the middle of holds:
/// each round stays two acquisitions, nothing is lost, and no hold reaches from one
/// time they are attached to the next.
#[test]
fn pairing_comes_and_goes_under_load() {
    // Each turn brings programs in and takes them out, which costs a slow guest half a minute.
    let turns = if support::is_emulated() { 2 } else { 4 };
    /// Of the threads' own start and end: stacks, and what they allocate.
    const EDGE: u64 = 64;
    let mut child = Child::start("map and unmap on", &[]);
    let pid = child.pid();
    let mut session = support::session(&[pid]);
    session.show(TableId::Cpus);
    tick(&mut session);
    child.go();
    let (mut sum, mut hold_max_ns, mut holds) = (Counters::default(), 0, 0);
    let (mut downgraded, mut nested) = (0, 0);
    let mut add = |model: &Model| {
        print_losses(model);
        sum += &process(model.delta(), pid);
        downgraded += of_machine(model).1;
        nested += support::loss(model, "mmap_nesting_overflow");
        for taker in model.delta().takers.values() {
            hold_max_ns = hold_max_ns.max(taker.hold_max_ns);
            holds += taker.holds;
        }
    };
    let mut longest = Duration::ZERO;
    for _ in 0..turns {
        let began = Instant::now();
        session.show(TableId::LockHolders);
        std::thread::sleep(Duration::from_millis(50));
        add(&tick(&mut session));
        session.show(TableId::Cpus);
        longest = longest.max(began.elapsed());
        std::thread::sleep(2 * longest);
        add(&tick(&mut session));
    }
    let [rounds, ..] = child.step();
    add(&tick(&mut session));
    demand_near(
        "taken for write",
        sum[Scope::MmapTaken(1)],
        2 * rounds,
        EDGE,
    );
    demand("rounds", rounds, 1_000);
    demand("holds that were paired", holds, 500);
    demand("downgrades of the machine", downgraded, rounds);
    demand_exactly("mmap_nesting_overflow", nested, 0);
    println!("  longest hold {hold_max_ns} ns, longest time attached {longest:?}");
    assert!(
        u128::from(hold_max_ns) <= longest.as_nanos(),
        "a hold that began before the programs came"
    );
}

/// At each answer one thread changes the protection of a large range while another
/// faults in it, `arguments[0]` rounds long. Ends when it is killed.
fn fault_under_a_writer(link: &mut Link, arguments: &[u64]) {
    const PAGES: usize = 8_192;
    let memory = Pages::new(PAGES);
    memory.touch();
    loop {
        link.stop([0; 4]);
        fault_under_a_writer_once(&memory, arguments[0]);
    }
}

fn fault_under_a_writer_once(memory: &Pages, rounds: u64) {
    const FRESH: usize = 256;
    let stop = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(0);
            for n in 0.. {
                if stop.load(Ordering::Relaxed) == 1 {
                    break;
                }
                let exec = if n % 2 == 0 { libc::PROT_EXEC } else { 0 };
                // SAFETY: readable and writable all the time.
                let done = unsafe {
                    let protection = libc::PROT_READ | libc::PROT_WRITE | exec;
                    libc::mprotect(memory.start().cast(), memory.bytes(), protection)
                };
                assert_eq!(done, 0);
            }
        });
        pin(1);
        for _ in 0..rounds {
            // SAFETY: private pages whose content nobody wants.
            let done =
                unsafe { libc::madvise(memory.start().cast(), FRESH * PAGE, libc::MADV_DONTNEED) };
            assert_eq!(done, 0);
            memory.touch_part(0, FRESH);
        }
        stop.store(1, Ordering::Relaxed);
    });
}

/// A fault tries mmap_lock before it waits for it; the attempt is no wait.
#[test]
fn failed_trylocks_are_never_waits() {
    const ROUNDS: u64 = 500;
    const FAILED: u64 = 50;
    /// Other work can keep the two threads apart for a while.
    const STEPS: usize = 20;
    let child = &mut Child::start("fault under a writer", &[ROUNDS]);
    let pid = child.pid();
    let mut session = session(&[pid]);
    let mut failed = 0;
    for _ in 0..STEPS {
        let (model, _) = watch(&mut session, child);
        print_losses(&model);
        let delta = model.delta();
        let faults = taker(delta, pid, -1, false);
        failed += faults.failed;
        let by_cpu: u64 = delta.cpus.iter().map(|c| c.mmap_failed[0]).sum();
        assert!(by_cpu >= faults.failed, "{by_cpu} by CPU");
        // Each fault that failed to have the lock at once had it later.
        assert!(faults.taken >= faults.failed, "{faults:?}");
        let waits = |mode: u8| -> u64 {
            delta
                .locks
                .iter()
                .filter(|(id, _)| !id.is_site && id.class == MMAP_LOCK && id.mode == mode)
                .filter(|(id, _)| id.owner == pid)
                .map(|(_, lock)| lock.waits)
                .sum()
        };
        let (read, write) = (waits(2), waits(4));
        let calls = taker(delta, pid, libc::SYS_madvise, false);
        println!(
            "  faults: failed trylocks {}, taken {}; waits to read {read}, to write {write}",
            faults.failed, faults.taken
        );
        assert!(
            read <= faults.taken + calls.taken,
            "more waits to read than acquisitions that could wait"
        );
        let of_process = process(delta, pid)[Scope::Waits(MMAP_LOCK)];
        assert_eq!(of_process, read + write, "waits of the process");
        if failed >= FAILED {
            break;
        }
    }
    demand("failed trylocks of faults", failed, FAILED);
}

/// `arguments[0]` calls of mprotect, by turns from `arguments[1]` threads on CPUs
/// of their own.
fn alternate_mprotect(link: &mut Link, arguments: &[u64]) {
    let (calls, threads) = (arguments[0], arguments[1]);
    let memory = Pages::new(1);
    let ready = AtomicU64::new(0);
    let turn = AtomicU64::new(0);
    let ended = AtomicU64::new(0);
    let work = |me: u64| {
        pin(size(me));
        ready.fetch_add(1, Ordering::SeqCst);
        for n in 0..calls {
            if n % threads != me {
                continue;
            }
            // The first turn comes with the test's answer.
            while turn.load(Ordering::Acquire) != n + 1 {
                std::thread::yield_now();
            }
            let protection = if n / threads % 2 == 0 {
                libc::PROT_NONE
            } else {
                libc::PROT_READ
            };
            // SAFETY: nobody accesses the page.
            let done = unsafe { libc::mprotect(memory.start().cast(), PAGE, protection) };
            assert_eq!(done, 0);
            turn.store(n + 2, Ordering::Release);
        }
        ended.fetch_add(1, Ordering::SeqCst);
    };
    std::thread::scope(|scope| {
        for me in 0..threads {
            let work = &work;
            scope.spawn(move || work(me));
        }
        while ready.load(Ordering::SeqCst) != threads {
            std::thread::yield_now();
        }
        link.stop([0; 4]);
        turn.store(1, Ordering::Release);
        while turn.load(Ordering::Acquire) != calls + 1 {
            // SAFETY: no arguments that matter; this thread keeps off the CPUs.
            unsafe { libc::usleep(1_000) };
        }
        link.stop([0; 4]);
    });
}

fn alternation(threads: u64) -> (u64, u64) {
    let mut child = Child::start("alternate mprotect", &[2 * CALLS, threads]);
    let pid = child.pid();
    let mut session = session(&[pid]);
    let (model, _) = watch(&mut session, &mut child);
    let writer = taker(model.delta(), pid, libc::SYS_mprotect, true);
    demand_exactly("taken by mprotect", writer.taken, 2 * CALLS);
    let waits = process(model.delta(), pid)[Scope::Waits(MMAP_LOCK)];
    let moved = writer.handoffs[1..5].iter().sum();
    println!(
        "  handoffs by distance: {:?}, waits: {waits}",
        writer.handoffs
    );
    print_losses(&model);
    child.finish();
    (moved, waits)
}

/// Strict turns between two CPUs: each acquisition moves the lock, none waits.
#[test]
fn alternating_threads_hand_mmap_lock_over_without_waiting() {
    let (moved, waits) = alternation(2);
    demand("handoffs between CPUs", moved, 2 * CALLS * 99 / 100);
    assert!(waits <= 2 * CALLS / 100, "{waits} contended waits");
}

/// One thread on one CPU moves the lock nowhere.
#[test]
fn one_thread_hands_mmap_lock_to_nobody() {
    let (moved, waits) = alternation(1);
    // Its own thread's start may come from another CPU.
    assert!(moved <= 2, "{moved} handoffs between CPUs");
    assert_eq!(waits, 0, "contended waits");
}

/// Keeps `arguments[0]` touched pages and reports where.
pub(crate) fn hold_memory(link: &mut Link, arguments: &[u64]) {
    let memory = Pages::new(size(arguments[0]));
    memory.touch();
    let start = memory.start() as u64;
    link.stop([start, memory.bytes() as u64, 0, 0]);
}

/// Reads `/proc/PID/smaps_rollup` of process `arguments[0]` `arguments[1]` times.
fn read_smaps(link: &mut Link, arguments: &[u64]) {
    let path = format!("/proc/{}/smaps_rollup", arguments[0]);
    let mut text = vec![1_u8; PAGE];
    link.stop([0; 4]);
    for _ in 0..arguments[1] {
        let file = std::fs::File::open(&path).expect("the process lives");
        // SAFETY: the buffer is this long.
        let n = unsafe { libc::read(file.as_raw_fd(), text.as_mut_ptr().cast(), PAGE) };
        assert!(n > 0);
    }
    link.stop([0; 4]);
}

/// Who reads smaps takes the mmap_lock of another: the row says both.
#[test]
fn a_reader_of_smaps_is_the_taker_of_a_foreign_lock() {
    let victim = Child::start("hold memory", &[64]);
    let mut reader = Child::start("read smaps", &[u64::from(victim.pid()), CALLS]);
    let mut session = session(&[reader.pid()]);
    let (model, _) = watch(&mut session, &mut reader);
    let foreign: Vec<_> = model
        .delta()
        .takers
        .iter()
        .filter(|(id, taker)| id.tgid == reader.pid() && taker.owner == victim.pid())
        .collect();
    println!("  rows: {foreign:?}");
    let taken = foreign
        .iter()
        .filter(|(id, _)| i64::from(id.syscall) == libc::SYS_read && !id.is_write)
        .map(|(_, taker)| taker.taken)
        .sum();
    demand_exactly("taken by the reader, owned by the victim", taken, CALLS);
    assert_eq!(foreign.len(), 1, "one row for the foreign lock");
    print_losses(&model);
    reader.finish();
    victim.finish();
}

/// Every exec leaves about twenty taker rows; more of them than the table holds
/// must pass through it without a loss.
#[test]
fn short_processes_leave_room_in_the_taker_table() {
    const ROUNDS: u64 = 60;
    const EACH: u64 = 20;
    let mut session = session(&[]);
    tick(&mut session);
    let (mut taken, mut lost, mut was_crowded) = (0, 0, false);
    for round in 0..ROUNDS {
        let started = (0..EACH).map(|_| std::process::Command::new("true").spawn());
        for child in started.collect::<Vec<_>>() {
            let status = child.expect("coreutils").wait().expect("it ends");
            assert!(status.success());
        }
        was_crowded |= session.is_crowded();
        session.harvest().expect("the maps can be read");
        if round % 10 == 9 {
            let model = tick(&mut session);
            let full = model.lost.iter().find(|l| &*l.id == "mmap_map_full");
            lost += full.expect("the counter is listed").increment;
            taken += model.delta().takers.values().map(|t| t.taken).sum::<u64>();
        }
    }
    println!("  table crowded in between: {was_crowded}");
    demand("acquisitions by short processes", taken, ROUNDS * EACH * 15);
    demand_exactly("acquisitions missing from the taker table", lost, 0);
}
