//! Every loss counter, made to read exactly what was lost.
//!
//! The maps are filled before anything is attached: a slot or a table that is
//! taken loses the events of one child and of nobody else. Where other tasks may
//! add to a counter, the test repeats until nobody did: the counter never reads
//! less than the child lost, and once reads exactly that.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use bytemuck::Zeroable as _;
use faultscope::bpf::{Maps, Programs, Sizes, load::load, object};
use faultscope::collect::{CATALOG, Collector, Now, Settings};
use faultscope::commands::{consult_kernel, hook};
use faultscope::export::{Format, Selection, Writer};
use faultscope::host::{Fact, HostFacts};
use faultscope::model::{Context, Model, TableId};
use faultscope::plan::{self, Plan, Request, Set, probe};
use faultscope::sample::{Scope, counters::MMAP_LOCK, run::LossKind};
use faultscope_common::{
    config::Control,
    loss,
    madvise::{MadviseKey, MadviseRow},
    thread::{RetiredKey, SpaceKey, ThreadRow},
};

use crate::support::{
    self, Cgroup, Child, Link, PAGE, Pages, Role, demand, demand_exactly, demand_near, is_rt,
    own_faults, pin,
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

/// A tag no thread has: ids have 22 bits at most (PID_MAX_LIMIT, include/linux/threads.h).
const NOBODY: u64 = 1 << 40;
/// Times a test is repeated because others lost events as well.
const TRIES: usize = 20;

/// Programs and maps without a session, so that a test fills the maps first.
struct Rig {
    host: HostFacts,
    /// The kernel keeps RSS changes in the thread and hands them on at every 64th
    /// fault, and the tracepoint has a count (`SPLIT_RSS_COUNTING`, mm/memory.c of 6.1;
    /// both are gone with f1a7941243c1, 6.2). Others: an update for each anonymous page.
    hands_on_rss: bool,
    programs: Programs,
    maps: Maps,
}

impl Rig {
    /// Attaches `programs` once `fill` has seen the maps; rows are kept for `pid` alone.
    fn new(
        pid: u32,
        programs: &[&str],
        resize: impl FnOnce(&mut Sizes),
        fill: impl FnOnce(&mut Maps),
    ) -> Self {
        let mut host = HostFacts::read(Path::new("/"));
        let Fact::Yes(facts) = consult_kernel(Path::new("/"), &mut host) else {
            panic!("SKIP: the kernel's BTF cannot be used");
        };
        let plan = plan::plan(
            &facts,
            &Request {
                sets: [
                    Set::Core,
                    Set::Taken,
                    Set::Mmap,
                    Set::Lru,
                    Set::Rss,
                    Set::Madvise,
                    Set::Budget,
                    Set::Blocked,
                ]
                .into(),
                ..Request::core()
            },
        );
        let cpus = host.topology.cpus.iter().map(|c| c.cpu + 1).max();
        let mut sizes = Sizes::for_machine(cpus.unwrap_or(1), 0);
        resize(&mut sizes);
        let mut globals = plan.globals.clone();
        globals.push(("FILTERS", 1));
        let object = object::read(support::object().as_deref()).expect("the object");
        let loaded = load(&object, &globals, sizes).expect("the object loads");
        let online = host.topology.cpus.iter().filter(|c| c.is_online);
        let (mut attached, mut maps) = Programs::split(loaded, online.map(|c| c.cpu).collect());
        maps.set_filters(&[pid], &[], &[]).expect("one filter");
        fill(&mut maps);
        for name in programs {
            let name = prototype(&plan, name);
            let probe = probe(name).expect("a program of the catalogue");
            attached
                .attach(name, hook(probe.attach))
                .expect("it attaches");
        }
        Self {
            hands_on_rss: facts.tracepoints["rss_stat"].len() == 3,
            host,
            programs: attached,
            maps,
        }
    }

    /// Reading of a loss counter since attach.
    fn lost(&self, index: usize) -> u64 {
        let rows = 0..self.maps.sizes.cpus as usize;
        rows.map(|cpu| self.maps.cpus.read(cpu).losses[index]).sum()
    }

    /// The model of everything since attach.
    fn model(self) -> Model {
        let settings = Settings {
            root: "/".into(),
            topology: self.host.topology,
            cgroups: None,
            has_symbols: false,
            places: Vec::new(),
        };
        let now = Now {
            mono_ns: 1,
            real_ns: 1,
            cpu_ns: 1,
        };
        let delta = Collector::new(self.programs, self.maps, settings)
            .tick(now)
            .expect("the maps can be read");
        let context = Context {
            losses: LossKind::list(&CATALOG),
            ..Context::default()
        };
        Model::new(Arc::new(delta), Arc::new(context))
    }

    /// Demands that the counter reads exactly `wanted`, and that models and JSON say so.
    fn demand(self, index: usize, wanted: u64) {
        let (id, _) = loss::ALL[index];
        demand_exactly(id, self.lost(index), wanted);
        // A counter moves on while the model is made where others lose as well.
        assert!(demand_told(&self.model(), index) >= wanted, "{id}");
    }
}

/// Demands that the model, its header's sum and the JSON tell of the loss; the counter's reading.
fn demand_told(model: &Model, index: usize) -> u64 {
    let (id, _) = loss::ALL[index];
    let lost = model.lost.iter().find(|l| *l.id == *id).expect("a counter");
    assert!(lost.total > 0 && lost.increment == lost.total, "{lost:?}");
    assert!(model.lost_total() >= lost.total && model.delta().is_lossy());
    let selection = Selection {
        table: TableId::Losses,
        sort: None,
        word: String::new(),
        top: None,
    };
    let mut json = Vec::new();
    Writer::new(Format::Jsonl, selection)
        .expect("a format of top")
        .write(&mut json, model)
        .expect("memory can be written");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["lost"][id]["total"].as_u64(), Some(lost.total));
    lost.total
}

/// The program of this name that fits the running kernel's prototypes.
fn prototype(plan: &Plan, name: &str) -> &'static str {
    plan.chosen
        .iter()
        .map(|probe| probe.program)
        .find(|program| program.strip_suffix("_memcg").unwrap_or(program) == name)
        .unwrap_or_else(|| panic!("SKIP: this kernel has nothing for \"{name}\""))
}

/// Gives the thread's slot to nobody, so that the thread finds it taken.
fn take_slot(maps: &Maps, tid: u32) {
    let slot = tid & (maps.sizes.threads - 1);
    maps.threads.write_word(slot as usize, 0, NOBODY);
}

/// Gives every slot but the thread's to nobody: only this thread has a row.
fn take_other_slots(maps: &Maps, tid: u32) {
    let own = tid & (maps.sizes.threads - 1);
    for slot in (0..maps.sizes.threads).filter(|slot| *slot != own) {
        maps.threads.write_word(slot as usize, 0, NOBODY);
    }
}

/// Fills the fall-back map, made for one row.
fn fill_overflow(maps: &mut Maps) {
    maps.overflow
        .insert(NOBODY, ThreadRow::zeroed())
        .expect("the map is empty");
}

/// Repeats `attempt`, which gives a rig and what was lost, until only the child lost events.
fn until_alone(index: usize, attempt: impl Fn() -> (Rig, u64)) {
    for _ in 1..TRIES {
        let (rig, wanted) = attempt();
        let lost = rig.lost(index);
        if lost == wanted {
            rig.demand(index, wanted);
            return;
        }
        println!(
            "  {}: {lost} lost, {wanted} of them by the child; again",
            loss::ALL[index].0
        );
        assert!(lost > wanted, "a counter never reads too little");
    }
    let (rig, wanted) = attempt();
    rig.demand(index, wanted);
}

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

/// A child at the stop before its load, and the thread that will run it.
fn start(role: &str, n: u64) -> (Child, u32) {
    let mut child = Child::start(role, &[n]);
    let [tid, ..] = child.step();
    (child, u32::try_from(tid).expect("a thread id"))
}

/// The other side of [`start`]. What the load calls is in memory afterwards.
fn ready(link: &mut Link) {
    link.stop([own_faults().0, 0, 0, 0]);
    link.stop([u64::from(tid()), 0, 0, 0]);
}

/// Id of the calling thread; the harness does not run tests on the main thread.
fn tid() -> u32 {
    // SAFETY: no arguments.
    u32::try_from(unsafe { libc::gettid() }).expect("ids are positive")
}

fn touch(link: &mut Link, arguments: &[u64]) {
    let pages = Pages::new(usize::try_from(arguments[0]).expect("a size"));
    ready(link);
    let (before, _) = own_faults();
    pages.touch();
    let (after, _) = own_faults();
    link.stop([after - before, 0, 0, 0]);
}

fn touch_twice(link: &mut Link, arguments: &[u64]) {
    let first = Pages::new(1);
    let pages = Pages::new(usize::try_from(arguments[0]).expect("a size"));
    ready(link);
    first.touch();
    link.stop([0; 4]);
    let (before, _) = own_faults();
    pages.touch();
    let (after, _) = own_faults();
    link.stop([after - before, 0, 0, 0]);
}

fn futex(link: &mut Link, arguments: &[u64]) {
    let pages = Pages::new(1);
    // SAFETY: the mapping's own range, which nothing reads.
    let done = unsafe { libc::mprotect(pages.start().cast(), PAGE, libc::PROT_NONE) };
    assert_eq!(done, 0, "mprotect");
    let wait = || {
        // SAFETY: the kernel alone looks at the address, and refuses it.
        let done = unsafe {
            libc::syscall(
                libc::SYS_futex,
                pages.start(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                0,
                std::ptr::null::<libc::timespec>(),
            )
        };
        u64::from(done == -1)
    };
    ready(link);
    let calls = (0..arguments[0]).map(|_| wait()).sum();
    link.stop([calls, 0, 0, 0]);
}

fn migrate(link: &mut Link, arguments: &[u64]) {
    let pages = Pages::new(usize::try_from(arguments[0]).expect("a size"));
    let last = Pages::new(1);
    pin(0);
    ready(link);
    let (before, _) = own_faults();
    pages.touch();
    let (after, _) = own_faults();
    pin(1);
    last.touch();
    link.stop([after - before, 0, 0, 0]);
}

fn mprotect(link: &mut Link, arguments: &[u64]) {
    let pages = Pages::new(1);
    pages.touch();
    ready(link);
    for i in 0..arguments[0] {
        let protection = [libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE][(i % 2) as usize];
        // SAFETY: the mapping's own range, which nothing accesses meanwhile.
        let done = unsafe { libc::mprotect(pages.start().cast(), PAGE, protection) };
        assert_eq!(done, 0, "mprotect");
    }
    link.stop([arguments[0], 0, 0, 0]);
}

fn madvise(link: &mut Link, arguments: &[u64]) {
    let pages = Pages::new(1);
    pages.touch();
    ready(link);
    for _ in 0..arguments[0] {
        pages.advise(libc::MADV_WILLNEED);
    }
    link.stop([arguments[0], 0, 0, 0]);
}

/// Makes this thread wait exactly so often for an inode's rwsem.
///
/// A second thread holds it inside write(2): its buffer is a page that is missing
/// until userfaultfd brings it, which a third thread does once this thread
/// sleeps uninterruptibly. The owner of the lock sleeps as well, so that the
/// waiter does not spin.
fn inode_lock(link: &mut Link, arguments: &[u64]) {
    let n = usize::try_from(arguments[0]).expect("a count");
    let missing = Missing::new(n);
    // SAFETY: a name and no flags.
    let file = unsafe { libc::memfd_create(c"faultscope".as_ptr(), 0) };
    assert!(file >= 0, "memfd_create");
    let (hold, holds): (Sender<usize>, Receiver<usize>) = channel();
    let (held, is_held) = channel();
    let waiter = tid();
    std::thread::scope(|scope| {
        let missing = &missing;
        scope.spawn(move || {
            for page in holds {
                write_byte(file, missing.page(page));
            }
        });
        scope.spawn(move || {
            for _ in 0..n {
                let address = missing.wait();
                held.send(()).expect("the waiter listens");
                while !sleeps_uninterruptibly(waiter) {
                    std::thread::yield_now();
                }
                missing.bring(address);
            }
        });
        ready(link);
        for page in 0..n {
            hold.send(page).expect("the holder listens");
            is_held.recv().expect("the holder holds");
            write_byte(file, (&raw const waiter).cast());
        }
        drop(hold);
    });
    link.stop([arguments[0], 0, 0, 0]);
}

fn write_byte(file: i32, from: *const u8) {
    // SAFETY: one byte; a page that is missing is the point.
    let written = unsafe { libc::pwrite(file, from.cast(), 1, 0) };
    assert_eq!(written, 1, "pwrite");
}

/// State of a thread of ours, whose names hold no parenthesis.
fn sleeps_uninterruptibly(tid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat"));
    stat.is_ok_and(|stat| stat.contains(") D "))
}

/// Pages that userfaultfd brings one at a time (include/uapi/linux/userfaultfd.h).
struct Missing {
    pages: Pages,
    file: i32,
}

impl Missing {
    const API: libc::c_ulong = 0xc018_aa3f;
    const REGISTER: libc::c_ulong = 0xc020_aa00;
    const ZEROPAGE: libc::c_ulong = 0xc020_aa04;

    fn new(n: usize) -> Self {
        let pages = Pages::new(n);
        // SAFETY: a system call without pointers.
        let file = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
        let file = i32::try_from(file).expect("a descriptor");
        assert!(file >= 0, "SKIP: no userfaultfd");
        let new = Self { pages, file };
        new.order(Self::API, &mut [0xaa, 0, 0]);
        let (start, bytes) = (new.pages.start() as u64, new.pages.bytes() as u64);
        new.order(Self::REGISTER, &mut [start, bytes, 1, 0]);
        new
    }

    fn order(&self, order: libc::c_ulong, words: &mut [u64]) {
        // SAFETY: the words are the structure the order reads and writes.
        let done = unsafe { libc::ioctl(self.file, order, words.as_mut_ptr()) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }

    fn page(&self, page: usize) -> *const u8 {
        // SAFETY: inside the mapping.
        unsafe { self.pages.start().add(page * PAGE) }
    }

    /// Address of the next page that somebody waits for.
    fn wait(&self) -> u64 {
        let mut message = [0_u64; 4];
        // SAFETY: a message has 32 bytes.
        let read = unsafe { libc::read(self.file, message.as_mut_ptr().cast(), 32) };
        assert_eq!(read, 32, "a message");
        message[2] & !(PAGE as u64 - 1)
    }

    fn bring(&self, address: u64) {
        self.order(Self::ZEROPAGE, &mut [address, PAGE as u64, 0, 0]);
    }
}

impl Drop for Missing {
    fn drop(&mut self) {
        // SAFETY: our own descriptor.
        unsafe { libc::close(self.file) };
    }
}
