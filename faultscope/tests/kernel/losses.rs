//! Every loss counter, made to read exactly what was lost.
//!
//! The maps are filled before anything is attached: a slot or a table that is
//! taken loses the events of one child and of nobody else. Where other tasks may
//! add to a counter, the test repeats until nobody did: the counter never reads
//! less than the child lost, and once reads exactly that.

mod loads;
mod rig;

use std::path::Path;

use bytemuck::Zeroable as _;
use faultscope::sample::Scope;
use faultscope::sample::counters::MMAP_LOCK;
use faultscope_common::config::Control;
use faultscope_common::loss;
use faultscope_common::madvise::{MadviseKey, MadviseRow};
use faultscope_common::thread::{RetiredKey, SpaceKey, ThreadRow};

use self::loads::{futex, inode_lock, madvise, migrate, mprotect, start, touch, touch_twice};
use self::rig::{
    NOBODY, Rig, demand_told, fill_overflow, take_other_slots, take_slot, until_alone,
};
use crate::support::{
    self, Cgroup, Child, Pages, Role, demand, demand_exactly, demand_near, is_rt,
};

/// Roles of the children of this file.
pub(crate) const ROLES: &[(&str, Role)] = &[
    ("loss_touch", touch),
    ("loss_touch_twice", touch_twice),
    ("loss_futex", futex),
    ("loss_migrate", migrate),
    ("loss_mprotect", mprotect),
    ("loss_madvise", madvise),
    ("loss_inode_lock", inode_lock),
];

#[test]
fn rss_updates_of_a_thread_without_a_row_are_counted() {
    let (mut child, tid) = start("loss_touch", 2000);
    let rig = Rig::new(
        child.pid(),
        &["rss_stat"],
        |_| {},
        |maps| take_slot(maps, tid),
    );
    let [touched, ..] = child.step();
    demand("faults of the child", touched, 2000);
    let updates = if rig.hands_on_rss {
        // The last of some that came before the test may be counted in it.
        let seen = rig.lost(loss::THREAD_COLLISION);
        demand_near("updates of every 64th fault", seen, touched / 64, 1);
        seen
    } else {
        touched
    };
    rig.demand(loss::THREAD_COLLISION, updates);
    child.finish();
}

#[test]
fn clock_samples_of_a_full_chain_table_are_counted() {
    let mut child = Child::start("budget_zero", &[500]);
    let rig = Rig::new(
        child.pid(),
        &["budget"],
        |_| {},
        |maps| {
            let names = ["asm_exc_page_fault", "handle_mm_fault"];
            let code = faultscope::symbol::ranges(Path::new("/"), names).expect("kallsyms");
            for (n, range) in code.into_iter().enumerate() {
                maps.fault_code.write_word(0, 2 * n, range.start);
                maps.fault_code.write_word(0, 2 * n + 1, range.bytes);
            }
            for slot in 0..maps.fault_chains.len() {
                maps.fault_chains.write_word(slot, 0, NOBODY + 1);
            }
        },
    );
    child.step();
    let rows = 0..rig.maps.sizes.cpus as usize;
    let faults = rows.map(|cpu| rig.maps.clock.read(cpu).faults).sum();
    demand("samples in the fault path", faults, 50);
    rig.demand(loss::BUDGET_FULL, faults);
    child.finish();
}

#[test]
fn faults_of_a_thread_without_a_row_are_counted() {
    let (mut child, tid) = start("loss_touch", 3000);
    let rig = Rig::new(
        child.pid(),
        &["fault_user"],
        |sizes| sizes.overflow = 1,
        |maps| {
            take_slot(maps, tid);
            fill_overflow(maps);
        },
    );
    let [touched, ..] = child.step();
    demand("faults of the child", touched, 3000);
    rig.demand(loss::OVERFLOW_FULL, touched);
    child.finish();
}

#[test]
fn faults_where_no_row_may_be_made_are_counted() {
    let (mut child, tid) = start("loss_futex", 1500);
    let rig = Rig::new(
        child.pid(),
        &["fault_kernel"],
        |sizes| sizes.overflow = 1,
        |maps| {
            take_slot(maps, tid);
            fill_overflow(maps);
        },
    );
    let [calls, ..] = child.step();
    demand("futex calls on memory that may not be read", calls, 1500);
    // Each call reads twice: with page faults disabled, where no row may be
    // made, and then without (futex_wait_setup, kernel/futex/waitwake.c).
    demand_exactly("thread_overflow_full", rig.lost(loss::OVERFLOW_FULL), calls);
    rig.demand(loss::UNATTRIBUTED, calls);
    child.finish();
}

#[test]
fn events_kept_under_an_old_identity_are_counted() {
    let cgroup = Cgroup::new("retired");
    let (mut child, tid) = start("loss_touch_twice", 700);
    let rig = Rig::new(
        child.pid(),
        &["fault_user"],
        |sizes| {
            sizes.retired = 1;
            sizes.overflow = 1;
        },
        |maps| {
            take_other_slots(maps, tid);
            fill_overflow(maps);
            let nobody = RetiredKey {
                tid: NOBODY,
                start_ns: 0,
                generation: 0,
            };
            maps.retired
                .insert(nobody, ThreadRow::zeroed())
                .expect("the map is empty");
        },
    );
    child.step();
    demand_exactly("lost before the move", rig.lost(loss::RETIRED_FULL), 0);
    cgroup.take(child.pid());
    let [touched, ..] = child.step();
    demand("faults after the move", touched, 700);
    rig.demand(loss::RETIRED_FULL, touched);
    child.finish();
}

#[test]
fn faults_missing_from_the_shares_of_a_space_are_counted() {
    let (mut child, tid) = start("loss_migrate", 900);
    let rig = Rig::new(
        child.pid(),
        &["fault_user"],
        |sizes| {
            sizes.spaces = 1;
            sizes.overflow = 1;
        },
        |maps| {
            take_other_slots(maps, tid);
            fill_overflow(maps);
            let nobody = SpaceKey {
                mm: NOBODY,
                leader_start_ns: 0,
                cpu: 0,
                tgid: 0,
            };
            maps.spaces.insert(nobody, 1).expect("the map is empty");
        },
    );
    let [touched, ..] = child.step();
    demand("faults before the change of CPU", touched, 900);
    rig.demand(loss::SPACES_FULL, touched);
    child.finish();
}

#[test]
fn acquisitions_of_a_thread_without_a_row_are_counted() {
    let (mut child, tid) = start("loss_mprotect", 1100);
    let rig = Rig::new(
        child.pid(),
        &["mmap_taken"],
        |sizes| sizes.overflow = 1,
        |maps| {
            // Nobody else is without a row, nor may anybody make one.
            take_slot(maps, tid);
            fill_overflow(maps);
        },
    );
    let [calls, ..] = child.step();
    demand("mprotect calls", calls, 1100);
    rig.demand(loss::THREAD_COLLISION, calls);
    child.finish();
}

#[test]
fn acquisitions_missing_from_the_taker_table_are_counted() {
    let (mut child, _) = start("loss_mprotect", 1200);
    let rig = Rig::new(
        child.pid(),
        &["mmap_start", "mmap_acquired", "mmap_released"],
        |_| {},
        |maps| {
            for slot in 0..maps.mmap.len() {
                maps.mmap.write_word(slot, 0, NOBODY);
            }
        },
    );
    let [calls, ..] = child.step();
    demand("mprotect calls", calls, 1200);
    rig.demand(loss::MMAP_FULL, calls);
    child.finish();
}

/// Without the program that sees releases every acquisition stays on the
/// pairing stack, which has four entries.
#[test]
fn acquisitions_nested_too_deep_are_counted() {
    let (mut child, tid) = start("loss_mprotect", 1004);
    let rig = Rig::new(
        child.pid(),
        &["mmap_start", "mmap_acquired"],
        |_| {},
        |maps| take_other_slots(maps, tid),
    );
    let [calls, ..] = child.step();
    demand("mprotect calls", calls, 1004);
    rig.demand(loss::MMAP_NESTING, calls - 4);
    child.finish();
}

#[test]
fn madvise_calls_of_a_thread_whose_slot_is_taken_are_counted() {
    let (mut child, tid) = start("loss_madvise", 1100);
    let rig = Rig::new(
        child.pid(),
        &["sys_exit", "sys_enter"],
        |_| {},
        |maps| take_slot(maps, tid),
    );
    let [calls, ..] = child.step();
    demand("madvise calls", calls, 1100);
    rig.demand(loss::PAIRING_COLLISION, calls);
    child.finish();
}

#[test]
fn madvise_calls_missing_from_their_table_are_counted() {
    let (mut child, _) = start("loss_madvise", 1300);
    let rig = Rig::new(
        child.pid(),
        &["sys_exit", "sys_enter"],
        |sizes| sizes.madvise = 1,
        |maps| {
            let nobody = MadviseKey {
                tgid: 0,
                advice: 0,
                call: 0,
                _pad: 0,
            };
            maps.madvise
                .insert(nobody, MadviseRow::default())
                .expect("the map is empty");
        },
    );
    let [calls, ..] = child.step();
    demand("madvise calls", calls, 1300);
    rig.demand(loss::MADVISE_FULL, calls);
    child.finish();
}

/// Class and mode of a wait for an inode's rwsem behind a writer: with PREEMPT_RT
/// that is a wait for the rt_mutex in it (`rwbase_write_lock`,
/// kernel/locking/rwbase_rt.c), which says neither what it is part of nor what for.
fn inode_lock_wait() -> (usize, u8) {
    if is_rt() { (7, 0) } else { (5, 4) }
}

/// The control of the three tests after it: nothing lost, every wait seen once.
#[test]
fn every_wait_for_an_inode_lock_is_seen_once() {
    let (mut child, _) = start("loss_inode_lock", 100);
    let rig = Rig::new(
        child.pid(),
        &["contention_end", "contention_begin"],
        |_| {},
        |_| {},
    );
    let [waits, ..] = child.step();
    demand("waits for the inode lock", waits, 100);
    let model = rig.model();
    let row = support::process(model.delta(), child.pid());
    let (class, mode) = inode_lock_wait();
    demand_exactly("waits of its class", row[Scope::Waits(class)], waits);
    let rows = model.delta().locks.iter();
    let seen = rows.filter(|(id, _)| !id.is_site && id.class == class && id.mode == mode);
    demand_exactly(
        "write waits of lock rows",
        seen.map(|(_, l)| l.waits).sum(),
        waits,
    );
    child.finish();
}

#[test]
fn waits_missing_from_the_lock_table_are_counted() {
    let (mut child, _) = start("loss_inode_lock", 100);
    let rig = Rig::new(
        child.pid(),
        &["contention_end", "contention_begin"],
        |_| {},
        |maps| {
            for slot in 0..maps.locks.len() {
                maps.locks.write_word(slot, 0, u64::MAX);
            }
        },
    );
    let [waits, ..] = child.step();
    demand("waits for the inode lock", waits, 100);
    // The child's threads wait for spinlocks as well, as often as they meet.
    let model = rig.model();
    let row = support::process(model.delta(), child.pid());
    let (class, _) = inode_lock_wait();
    demand_exactly("waits of its class", row[Scope::Waits(class)], waits);
    assert!(model.delta().locks.is_empty(), "the table had room");
    let lost = demand_told(&model, loss::LOCKS_FULL);
    demand_exactly(
        "lock_table_full, for all waits of the child",
        lost,
        row.waits(),
    );
    child.finish();
}

#[test]
fn waits_missing_from_the_table_of_holders_are_counted() {
    let mut child = Child::start("blocked_protect", &[]);
    let rig = Rig::new(
        child.pid(),
        &[
            "mmap_released",
            "mmap_acquired",
            "mmap_start",
            "contention_end",
            "contention_begin",
            "blocked_end",
            "blocked_begin",
        ],
        |_| {},
        |maps| {
            for slot in 0..maps.blocked.len() {
                maps.blocked.write_word(slot, 0, u64::MAX);
            }
        },
    );
    for _ in 0..10 {
        child.step();
    }
    let model = rig.model();
    let row = support::process(model.delta(), child.pid());
    let waits = row[Scope::Waits(MMAP_LOCK)];
    demand("contended waits for mmap_lock", waits, 20);
    assert!(model.delta().blocked.is_empty(), "the table had room");
    let lost = demand_told(&model, loss::BLOCKED_FULL);
    demand_exactly("blocked_table_full", lost, waits);
}

#[test]
fn waits_without_a_call_chain_are_counted() {
    until_alone(loss::STACKS_FULL, || {
        let (mut child, _) = start("loss_inode_lock", 5);
        let rig = Rig::new(
            child.pid(),
            &["contention_end", "contention_begin"],
            |_| {},
            |maps| {
                for slot in 0..maps.stacks.len() {
                    maps.stacks.write_word(slot, 0, u64::MAX);
                }
                let word = std::mem::offset_of!(Control, stacks) / 8;
                maps.control.write_word(0, word, 1);
            },
        );
        let [waits, ..] = child.step();
        child.finish();
        (rig, waits)
    });
}

/// Without the program that sees ends, each wait gives up the one before.
#[test]
fn waits_that_never_end_are_counted() {
    until_alone(loss::STALE_BEGIN, || {
        let (mut child, tid) = start("loss_inode_lock", 6);
        let rig = Rig::new(
            child.pid(),
            &["contention_begin"],
            |_| {},
            |maps| take_other_slots(maps, tid),
        );
        let [waits, ..] = child.step();
        child.finish();
        (rig, waits - 1)
    });
}

/// What the recursion guard skipped cannot be forced: no program runs inside
/// another of its own kind by any known load. The counter is the sum of what
/// the kernel says of each program.
#[test]
fn recursion_misses_are_the_kernels_own() {
    let mut session = support::session(&[]);
    support::tick(&mut session);
    Pages::new(20_000).touch();
    let model = support::tick(&mut session);
    let misses = model.delta().programs.iter().filter_map(|p| p.misses);
    let attached = model.delta().programs.iter().filter(|p| p.is_attached);
    demand("programs attached", attached.count() as u64, 8);
    demand_exactly(
        "program_recursion",
        support::loss(&model, "program_recursion"),
        misses.sum(),
    );
}
