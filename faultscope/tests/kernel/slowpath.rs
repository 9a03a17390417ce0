//! Exact spinlock waits, recognition of lru_locks, and the frames that are
//! reported; held against programs of the test's own (`witness`).
//!
//! All probes are attached before a load begins. How often CPUs meet at a lock is
//! not ours to say, so loads are repeated until the floor is reached; names end in
//! `_multi` so that guests have CPUs that really run at once.

use std::collections::BTreeMap;

use faultscope::commands::session::{Options, Session};
use faultscope::model::{Model, TableId};
use faultscope::sample::counters::{LOCK_CLASS_NAMES, LOCK_CLASSES, LRU_LOCK, MMAP_LOCK};
use faultscope::symbol::is_lock_code;

use crate::support::{
    self, Child, Link, Pages, Role, cpus, demand, feature, is_rt, pin, skip, tick,
};
use crate::witness::Witness;

/// Roles of the children of this file.
pub(crate) const ROLES: &[(&str, Role)] = &[("slow_lru", lru), ("slow_mm", mm)];

/// Rounds at most; what is new at a tick costs a guest seconds, for the names.
const ROUNDS: usize = 100;
/// Loads of a round, each short: an emulator that has no time makes every handover of a
/// queued lock a wait for the machine.
const LOADS: usize = 3;
/// Contended waits a test needs.
const FLOOR: u64 = 500;
const CPUS: u64 = 4;
const ZONE_LOCK: usize = 2;
const PAGE_TABLE_LOCK: usize = 3;
const SPINLOCK: usize = 4;
const RWSEM: usize = 5;
const RT_MUTEX: usize = 7;
/// Classes of what the slow path is entered for.
const SPINNING: [usize; 4] = [LRU_LOCK, ZONE_LOCK, PAGE_TABLE_LOCK, SPINLOCK];

/// `contention_begin` flags (include/trace/events/lock.h).
const SPIN: usize = 1;
const RT: usize = 8;
const READ: usize = 2;
const WRITE: usize = 4;

/// Functions below which an lru_lock is taken, as prefixes (mm/swap.c, mm/vmscan.c,
/// mm/mlock.c, mm/memcontrol.c, mm/compaction.c, mm/huge_memory.c).
const LRU_CODE: &[&str] = &[
    "folio_lruvec_",
    "folio_batch_move_lru",
    "__folio_batch_",
    "folio_batch_add_and_move",
    "folio_activate",
    "folio_isolate_lru",
    "folio_rotate",
    "lru_",
    "__page_cache_release",
    "release_pages",
    "folios_put_refs",
    "shrink_",
    "evict_folios",
    "isolate_",
    "move_folios_to_lru",
    "move_pages_to_lru",
    "mlock_folio",
    "mlock_batch",
    "__mlock_",
    "__munlock_",
    "check_move_unevictable",
    "workingset_",
    "lruvec_",
    "compact_",
    "inc_max_seq",
    "try_to_inc_max_seq",
    "get_nr_gens",
    "walk_mm",
];

/// Everything counted, spinlock waits in their slow path; `None`, and a counted
/// skip, where the kernel lets no such program in.
fn exact_session() -> Option<Session> {
    let mut session = Session::start(&Options {
        named: ["spin_slowpath_native_begin".to_owned()].into(),
        bpf_object: support::object(),
        ..Options::default()
    })
    .expect("the core set attaches; see `faultscope doctor`");
    let refused = session.named_missing();
    if let Some(reason) = refused.first() {
        feature("exact spinlock waits", Err("it lets no fentry program in"));
        skip(reason);
        return None;
    }
    // Call chains are taken.
    session.show(TableId::LockSites);
    Some(session)
}

/// The children, each on a CPU of its own where there are enough, before their load.
fn children(role: &str) -> Vec<Child> {
    (0..CPUS).map(|cpu| Child::start(role, &[cpu])).collect()
}

/// Lets every child do some loads; what happened meanwhile.
fn round(session: &mut Session, children: &mut [Child]) -> Model {
    for _ in 0..LOADS {
        for child in &mut *children {
            child.go();
        }
        for child in &mut *children {
            child.report();
        }
    }
    tick(session)
}

/// Waits by class, from the rows of locks.
fn by_class(model: &Model, sum: &mut [u64; LOCK_CLASSES]) {
    for (id, lock) in &model.delta().locks {
        if !id.is_site {
            sum[id.class] += lock.waits;
        }
    }
}

/// Waits for an mmap_lock or another rwsem for read.
fn read_waits(model: &Model) -> u64 {
    let locks = model.delta().locks.iter();
    locks
        .filter(|(id, _)| !id.is_site && [MMAP_LOCK, RWSEM].contains(&id.class))
        .filter(|(id, _)| usize::from(id.mode) == READ)
        .map(|(_, lock)| lock.waits)
        .sum()
}

fn total(sum: &[u64; LOCK_CLASSES], classes: &[usize]) -> u64 {
    classes.iter().map(|class| sum[*class]).sum()
}

/// Says how far a load has come: silence means a hang to who watches.
fn progress(round: usize, waits: u64) {
    println!("  round {round}: {waits} waits so far");
}

/// Prints what was waited for.
fn print(sum: &[u64; LOCK_CLASSES]) {
    for (name, waits) in LOCK_CLASS_NAMES.iter().zip(sum) {
        println!("  {name} waits: {waits}");
    }
}

/// Waits in flight when counters are read or programs come and go.
fn edge(n: u64) -> u64 {
    10 + n / 100
}

#[test]
fn spinlock_waits_are_counted_in_their_slow_path_and_once_multi() {
    let mut children = children("slow_lru");
    let Some(mut session) = exact_session() else {
        return;
    };
    let witness = Witness::new(is_rt());
    tick(&mut session);
    let before = witness.events(SPIN);
    let entered: u64 = witness.waited().iter().map(|(_, n)| n).sum();
    // On RT the slow path is that of raw spinlocks only: contended ones are few.
    let floor = if is_rt() { 1 } else { FLOOR };
    let (mut ended, mut traced, mut missed) = ([0; LOCK_CLASSES], 0, 0);
    let mut rows = [0; LOCK_CLASSES];
    for n in 0..ROUNDS {
        let model = round(&mut session, &mut children);
        by_class(&model, &mut rows);
        missed += slow_path_misses(&model);
        let waits = model.delta().spin_waits.expect("the slow path is probed");
        for (sum, n) in ended.iter_mut().zip(waits.ended) {
            *sum += n;
        }
        traced += waits.traced.iter().sum::<u64>();
        let so_far = ended.iter().sum();
        progress(n, so_far);
        if so_far >= floor {
            break;
        }
    }
    let exact: u64 = ended.iter().sum();
    let events = witness.events(SPIN) - before;
    print(&ended);
    println!("  seen by the tracepoint: {traced}, all its spinlock events: {events}");
    assert!(traced <= exact && exact + edge(exact) >= events);
    demand("exact waits", exact, floor);
    if !is_rt() {
        let entries: u64 = witness.waited().iter().map(|(_, n)| n).sum::<u64>() - entered;
        println!("  runs the kernel skipped, a loss that is shown: {missed}");
        let seen = exact + missed.min(entries.saturating_sub(exact));
        support::demand_near("entries of the slow path", seen, entries, edge(exact));
        // No wait twice: rows have what the slow path had, and the tracepoint added nothing.
        let in_rows = total(&rows, &SPINNING);
        support::demand_near("waits in the lock table", in_rows, exact, edge(exact));
    }
    // First waiters: what the tracepoint alone would have missed.
    support::demand_near("waits the tracepoint saw", traced, events, edge(events));
    print_cost(&mut session, &mut children);
    feature("exact spinlock waits", Ok(()));
}

/// Waits at most that the slow path's programs missed: an interrupt's, while the same
/// program ran below it on that CPU (kernel/bpf/trampoline.c, recursion guard).
fn slow_path_misses(model: &Model) -> u64 {
    let programs = model.delta().programs.iter();
    programs
        .filter(|program| program.name.starts_with("spin_slowpath_native"))
        .filter_map(|program| program.misses)
        .sum()
}

/// Prints how long the programs run beside the tracepoint's: the end's run lengthens
/// the hold that begins with it. An emulator's nanoseconds compare with each other only.
fn print_cost(session: &mut Session, children: &mut [Child]) {
    session.show(TableId::Programs);
    tick(session);
    let model = round(session, children);
    for program in &model.delta().programs {
        let is_ours = program.name.starts_with("spin_slowpath_native")
            || program.name.starts_with("contention_");
        if let (true, Some(ns), Some(runs @ 1..)) = (is_ours, program.run_ns, program.runs) {
            println!("  {}: {runs} runs, {} ns each", program.name, ns / runs);
        }
    }
}

#[test]
fn every_lru_lock_is_recognised_multi() {
    let mut children = children("slow_lru");
    let Some(mut session) = exact_session() else {
        return;
    };
    let witness = Witness::new(is_rt());
    tick(&mut session);
    let old: BTreeMap<u64, u64> = witness.waited().into_iter().collect();
    let mut rows = [0; LOCK_CLASSES];
    let mut false_rows = Vec::new();
    let mut learned_waits = 0;
    for n in 0..ROUNDS {
        let model = round(&mut session, &mut children);
        by_class(&model, &mut rows);
        let delta = model.delta();
        for (id, lock) in delta.locks.iter().filter(|(id, _)| id.is_site) {
            let Some(chain) = delta.chains.get(&id.stack) else {
                continue;
            };
            let is_lru_code = |name: &String| LRU_CODE.iter().any(|code| name.starts_with(code));
            if id.class == LRU_LOCK && !chain.chain.iter().any(is_lru_code) {
                false_rows.push(format!("{} x lru_lock in {:?}", lock.waits, chain.chain));
            }
            if id.class == SPINLOCK && !is_rt() && chain.site.starts_with("folio_lruvec_lock") {
                false_rows.push(format!("{} x {:?} is no lru_lock", lock.waits, chain.chain));
            }
        }
        let learned = witness.learned();
        learned_waits = witness
            .waited()
            .iter()
            .filter(|(address, _)| learned.contains(address))
            .map(|(address, n)| n - old.get(address).copied().unwrap_or(0))
            .sum();
        for (id, lock) in &delta.locks {
            let is_other = [ZONE_LOCK, PAGE_TABLE_LOCK, RT_MUTEX].contains(&id.class)
                || (id.class == SPINLOCK && !is_rt());
            if is_other && learned.contains(&lock.address) {
                false_rows.push(format!("{id:?} {:#x} is an lru_lock", lock.address));
            }
        }
        progress(n, learned_waits);
        if learned_waits >= FLOOR {
            break;
        }
    }
    println!("  lru_locks learned: {:x?}", witness.learned());
    print(&rows);
    support::demand_exactly("addresses not kept", witness.unplaced(), 0);
    demand("waits for learned lru_locks", learned_waits, FLOOR);
    // Reclaim locks lruvecs that no function returned: those may be more.
    let seen = rows[LRU_LOCK] + edge(learned_waits);
    demand(
        "waits recognised as lru_lock, with the edge",
        seen,
        learned_waits,
    );
    support::demand_exactly("rows that are wrong", false_rows.len() as u64, 0);
    assert!(false_rows.is_empty(), "{false_rows:#?}");
    feature("recognition of lru_locks", Ok(()));
}

#[test]
fn waits_that_nest_on_rt_are_counted_once_multi() {
    if !is_rt() {
        skip("no PREEMPT_RT: waits for spinlocks do not sleep here");
        return;
    }
    let mut lru = children("slow_lru");
    let mut mm = [Child::start("slow_mm", &[])];
    let Some(mut session) = exact_session() else {
        return;
    };
    let witness = Witness::new(true);
    tick(&mut session);
    let events = || {
        [
            witness.events(RT),
            witness.events(RT | READ),
            witness.events(RT | WRITE),
            witness.events(SPIN),
        ]
    };
    let (before, mut rows, mut exact, mut reads) = (events(), [0; LOCK_CLASSES], 0, 0);
    for n in 0..ROUNDS {
        for children in [&mut lru[..], &mut mm[..]] {
            let model = round(&mut session, children);
            by_class(&model, &mut rows);
            reads += read_waits(&model);
            let waits = model.delta().spin_waits.expect("the slow path is probed");
            exact += waits.ended.iter().sum::<u64>();
        }
        progress(n, rows[LRU_LOCK].min(10 * rows[MMAP_LOCK]));
        if rows[LRU_LOCK] >= FLOOR && rows[MMAP_LOCK] >= FLOOR / 10 {
            break;
        }
    }
    print(&rows);
    let after = events();
    let [rt, read, write, spin] = [0, 1, 2, 3].map(|i| after[i] - before[i]);
    println!(
        "  events: {rt} rt_mutex, {read} and {write} rwsem for read and write, {spin} raw spinlock"
    );
    demand("lru_lock waits", rows[LRU_LOCK], FLOOR);
    demand("mmap_lock waits", rows[MMAP_LOCK], FLOOR / 10);
    // Each event is in one row.
    let slept = [LRU_LOCK, ZONE_LOCK, PAGE_TABLE_LOCK, RT_MUTEX];
    let sleeping = total(&rows, &slept) + total(&rows, &[MMAP_LOCK, RWSEM]);
    let all = rt + read + write;
    support::demand_near("waits that sleep", sleeping, all, edge(all));
    // A reader's wait nests that for the rt_mutex inside the rwsem, which is no wait for
    // the rwsem again; a writer waits for another writer at the rt_mutex alone.
    support::demand_near("rwsem waits for read", reads, read, edge(read));
    demand(
        "rwsem waits, with the edge",
        total(&rows, &[MMAP_LOCK, RWSEM]) + edge(read + write),
        read + write,
    );
    support::demand_near("raw spinlock waits", rows[SPINLOCK], exact, edge(exact));
    assert!(exact + edge(spin) >= spin, "{exact} exact, {spin} traced");
}

#[test]
fn the_first_frame_of_a_wait_is_never_lock_code_multi() {
    let mut children: Vec<Child> = children("slow_lru");
    children.push(Child::start("slow_mm", &[]));
    // Where no function can be probed the tracepoint's waits have to do.
    let mut session = Session::start(&Options {
        named: ["spin_slowpath_native_begin".to_owned()].into(),
        bpf_object: support::object(),
        ..Options::default()
    })
    .expect("the core set attaches; see `faultscope doctor`");
    session.show(TableId::LockSites);
    tick(&mut session);
    let mut sites: BTreeMap<String, u64> = BTreeMap::new();
    for n in 0..ROUNDS {
        let model = round(&mut session, &mut children);
        let delta = model.delta();
        for (id, lock) in delta.locks.iter().filter(|(id, _)| id.is_site) {
            if let Some(chain) = delta.chains.get(&id.stack) {
                *sites.entry(chain.site.clone()).or_default() += lock.waits;
            }
        }
        let so_far = sites.values().sum();
        progress(n, so_far);
        if so_far >= FLOOR {
            break;
        }
    }
    for (site, waits) in &sites {
        println!("  {waits:6} {site}");
    }
    demand("waits with a call site", sites.values().sum(), FLOOR);
    let wrong: Vec<_> = sites
        .keys()
        .filter(|site| is_lock_code(site) || site.starts_with('[') || site.contains('.'))
        .collect();
    assert!(wrong.is_empty(), "call sites: {wrong:?}");
    feature("call sites without lock code", Ok(()));
}

/// Repeats a load each time the test says so; the test ends the child.
fn on_each_answer(link: &mut Link, mut load: impl FnMut()) {
    loop {
        link.stop([0; 4]);
        load();
    }
}

/// Pages that go to the unevictable list and back, and come and go: one lru_lock,
/// four CPUs, and little work beside it.
fn lru(link: &mut Link, arguments: &[u64]) {
    pin(usize::try_from(arguments[0]).expect("a CPU") % cpus());
    let stay = Pages::new(256);
    stay.touch();
    let (start, bytes) = (stay.start().cast(), stay.bytes());
    on_each_answer(link, || {
        for _ in 0..2 {
            // SAFETY: the mapping's own range, whose contents stay.
            assert_eq!(unsafe { libc::mlock(start, bytes) }, 0, "mlock");
            // SAFETY: as above.
            assert_eq!(unsafe { libc::munlock(start, bytes) }, 0, "munlock");
        }
        let pages = Pages::new(64);
        pages.touch();
        pages.advise(libc::MADV_COLD);
    });
}

/// Four threads that map, touch and unmap in one address space.
fn mm(link: &mut Link, _: &[u64]) {
    on_each_answer(link, || {
        std::thread::scope(|scope| {
            for cpu in 0..4 {
                scope.spawn(move || {
                    pin(cpu % cpus());
                    for _ in 0..10 {
                        Pages::new(8).touch();
                    }
                });
            }
        });
    });
}
