//! Rules about locks.

use super::*;

/// Faults that waited behind a writer, and behind readers.
pub(super) fn blocked(waits: u64, write_ns: u64, read_ns: u64) -> Delta {
    let mut delta = second();
    let id = |held, holder_syscall| BlockedId {
        tgid: 10,
        syscall: -1,
        is_write: false,
        site: 0,
        held,
        holder: 10,
        holder_tid: 11,
        holder_comm: "worker".into(),
        holder_syscall: Some(holder_syscall),
        holder_site: 3,
        owner: 10,
    };
    let waited = |waits, wait_ns| BlockedWaits {
        waits,
        wait_ns,
        max_ns: 0,
    };
    delta
        .blocked
        .insert(id(Held::Write, 11), waited(waits - 1, write_ns));
    delta.blocked.insert(id(Held::Read, 0), waited(1, read_ns));
    // Writers that wait are no faults.
    let writer = BlockedId {
        is_write: true,
        ..id(Held::Read, 0)
    };
    delta.blocked.insert(writer, waited(1_000, SECOND));
    let chain = CallChain {
        site: "__vm_munmap".into(),
        chain: vec!["__vm_munmap".into()],
    };
    delta.chains = Arc::new([(3, Arc::new(chain))].into());
    delta
}

#[test]
fn writers_block_faults_by_holder() {
    let id = "mmap_lock_writers_block_faults";
    let found = holds(id, &blocked(20, 6_000_000, 6_000_000), &["blocked"]);
    says(
        &found,
        &["20 faults waited 12.0ms", "50%", "munmap of mysqld(10)"],
    );
    assert_eq!(found.next, "faultscope top --view blocked");
    assert!(found.evidence.contains(&text("writer_site", "__vm_munmap")));
    fails(id, &blocked(19, 6_000_000, 6_000_000));
    fails(id, &blocked(20, 4_900_000, 4_900_000));
    fails(id, &blocked(20, 6_000_000, 6_100_000));
    // A recording of ten such intervals is judged as one of them.
    let mut long = blocked(200, 60_000_000, 60_000_000);
    long.interval_ns *= 10;
    holds(id, &long, &[]);
    long.interval_ns *= 10;
    fails(id, &long);
}

/// Read waits of one address space, of which `by_faults` acquisitions were slow.
pub(super) fn taken(waits: u64, wait_ns: u64, by_faults: u64) -> Delta {
    let mut delta = second();
    let lock = LockId {
        is_site: false,
        class: MMAP_LOCK,
        mode: 2,
        node: 0,
        id: 7,
        memcg: 0,
        stack: 0,
        owner: 10,
    };
    let waited = Lock {
        waits,
        wait_ns,
        ..Lock::default()
    };
    delta.locks.insert(lock, waited);
    for (syscall, is_write, slow_takes, taken) in [
        (-1, false, by_faults, 500),
        (0, false, 10, 500),
        (11, true, 0, 30),
        (9, true, 0, 10),
    ] {
        let id = TakerId {
            mm: 7,
            tgid: 10,
            syscall,
            is_write,
        };
        let taker = Taker {
            owner: 10,
            taken,
            slow_takes,
            ..Taker::default()
        };
        delta.takers.insert(id, taker);
    }
    delta
}

#[test]
fn writers_block_faults_by_taker() {
    let id = "mmap_lock_writers_block_faults";
    let check = |delta: &Delta, signals: &[&'static str]| find(id, delta, &missing(signals));
    let delta = taken(20, 10_000_000, 10);
    let found = check(&delta, &["blocked"]).expect("found");
    says(
        &found,
        &[
            "waited 10.0ms",
            "of its 40 writes, 75% were munmap of mysqld(10)",
        ],
    );
    assert_eq!(check(&delta, &["blocked", "mmap_lock_hold"]), None);
    assert_eq!(check(&delta, &["blocked", "contention"]), None);
    assert_eq!(check(&taken(19, 10_000_000, 10), &["blocked"]), None);
    assert_eq!(check(&taken(20, 9_900_000, 10), &["blocked"]), None);
    assert_eq!(check(&taken(20, 10_000_000, 9), &["blocked"]), None);
}

fn fallen(fall_backs: u64, others: u64) -> Delta {
    let mut delta = second();
    let passes = |faults: u64, ns| Passes {
        faults,
        ns: faults * ns,
        ..Passes::default()
    };
    delta
        .passes
        .insert((FALL_BACK, 1), passes(fall_backs, 3_000));
    delta.passes.insert((0, 0), passes(others, 1_000));
    // Populating is no fault from user mode.
    delta.passes.insert((4, 0), passes(1_000_000, 1_000));
    let mut of_process = ProcessPasses::default();
    of_process.paths[FALL_BACK] = fall_backs;
    delta.process_passes.insert(10, of_process);
    delta
}

#[test]
fn faults_fall_back() {
    let id = "vma_lock_fall_backs";
    let found = holds(id, &fallen(100, 1_900), &["fault_latency"]);
    says(
        &found,
        &[
            "5% of 2.00k",
            "100% of these in mysqld(10)",
            "on file",
            "3.00us",
            "1.00us",
        ],
    );
    fails(id, &fallen(99, 100));
    fails(id, &fallen(100, 1_901));
}

fn lru_waits(waits: u64, drain_ns: u64, other_ns: u64) -> Delta {
    let mut delta = second();
    let chain = |names: &[&str]| {
        Arc::new(CallChain {
            site: names[0].into(),
            chain: names.iter().map(|name| (*name).to_owned()).collect(),
        })
    };
    delta.chains = Arc::new(
        [
            (
                1,
                chain(&["folio_batch_move_lru", "folio_add_lru", "do_anonymous_page"]),
            ),
            (2, chain(&["shrink_lruvec", "shrink_node"])),
            (3, chain(&["folio_batch_move_lru", "folio_activate"])),
        ]
        .into(),
    );
    for (stack, n, wait_ns) in [
        (1, waits - 3, drain_ns),
        (2, 1, other_ns),
        (3, 1, 0),
        // Its chain was lost.
        (9, 1, 0),
    ] {
        let id = LockId {
            is_site: true,
            class: LRU_LOCK,
            mode: 0,
            node: 0,
            id: 0,
            memcg: 0,
            stack,
            owner: 0,
        };
        let lock = Lock {
            waits: n,
            wait_ns,
            ..Lock::default()
        };
        delta.locks.insert(id, lock);
    }
    delta
}

#[test]
fn lru_lock_waits_come_from_drains() {
    let id = "lru_lock_waits_from_drain";
    let mut delta = lru_waits(20, 5_000_000, 5_000_000);
    let found = holds(id, &delta, &["contention"]);
    says(&found, &["50% of 10.0ms", "folio_batch_move_lru."]);
    let added = Moves {
        batches: 10,
        folios: 150,
        ..Moves::default()
    };
    delta.moves.insert("lru_add".into(), added);
    says(&holds(id, &delta, &[]), &["a batch had 15 folios"]);
    let unmeasured = find(id, &delta, &missing(&["batches"])).expect("found");
    assert!(!unmeasured.text.contains("folios"), "{}", unmeasured.text);
    fails(id, &lru_waits(19, 5_000_000, 5_000_000));
    fails(id, &lru_waits(20, 5_000_000, 5_000_001));
    fails(id, &lru_waits(20, 4_900_000, 4_900_000));
    // What has no name may come from anywhere.
    delta.chains = Arc::default();
    fails(id, &delta);
}
