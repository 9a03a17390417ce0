//! Waits for mmap_lock: who was waited for, in which call, from which call site.
//!
//! How often two threads meet at the lock is not ours to say, so a load is repeated
//! until its floor is reached, at most [`ROUNDS`] times.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use faultscope::commands::session::Session;
use faultscope::host::Fact;
use faultscope::model::{Model, TableId, Value};
use faultscope::sample::blocked::{BlockedId, BlockedWaits, Held};
use faultscope::sample::{Scope, counters::MMAP_LOCK};

use crate::support::{
    self, Child, Link, PAGE, Pages, Role, demand, feature, is_rt, pin, print_losses, process,
    session, tick,
};

/// Roles of the children of this file.
pub(crate) const ROLES: &[(&str, Role)] = &[
    ("blocked_populate", populate),
    ("blocked_protect", protect),
    ("blocked_owner", own_and_change),
    ("blocked_reader", read_smaps),
];

/// Times a load is repeated at most.
const ROUNDS: usize = 200;
/// Contended waits each test needs.
const FLOOR: u64 = 500;
/// Threads that want the lock beside the one that holds it.
const WANTERS: usize = 3;
/// Name of the thread that holds the lock.
const HOLDER: &str = "fs-holder";

/// Waits of threads that are joined but not dead: they give their address space
/// up after that (exit_mm, kernel/exit.c).
const DYING: u64 = WANTERS as u64 + 1;

/// What a test knows of the holds that others must wait for.
struct Wanted {
    waiter: u32,
    holder: u32,
    /// Name of the holding thread, where it is one of its process's own.
    thread: Option<&'static str>,
    /// System calls of the holds.
    calls: &'static [libc::c_long],
    held: Held,
    /// The functions that may end them.
    sites: &'static [&'static str],
    /// Waits that may end while the maps are read: the waiter is not at rest then.
    edge: u64,
}

/// Contended waits of one waiter.
#[derive(Default)]
struct Seen {
    all: u64,
    /// For the known holder; on PREEMPT_RT for readers, if it reads.
    for_holder: u64,
    with_call: u64,
    with_site: u64,
    texts: BTreeMap<String, u64>,
}

impl Seen {
    fn add(&mut self, model: &Model, wanted: &Wanted) {
        for (id, waits) in blocked_of(model, wanted.waiter) {
            assert!(id.owner != 0 && waits.wait_ns > 0, "{id:?} {waits:?}");
            let site = site_of(model, id.holder_site);
            let text = format!(
                "{:?} by {} \"{}\" in {:?} at {site}, waiter in {} at {}",
                id.held,
                id.holder,
                id.holder_comm,
                id.holder_syscall,
                id.syscall,
                site_of(model, id.site),
            );
            let n = waits.waits;
            *self.texts.entry(text).or_default() += n;
            self.all += n;
            if matches!(id.held, Held::Readers | Held::Unknown) {
                assert_eq!((id.holder, id.holder_syscall), (0, None), "{id:?}");
            }
            if wanted.held == Held::Readers {
                self.for_holder += if id.held == Held::Readers { n } else { 0 };
                continue;
            }
            let is_thread = wanted.thread.is_none_or(|name| *id.holder_comm == *name);
            if id.holder != wanted.holder || !is_thread {
                continue;
            }
            self.for_holder += n;
            let call = id.holder_syscall.map(i64::from);
            if call.is_some_and(|call| wanted.calls.contains(&call)) {
                self.with_call += n;
                self.with_site += if wanted.sites.contains(&site.as_str()) {
                    n
                } else {
                    0
                };
            }
        }
    }
}

/// Repeats the load of `children` until enough waits were seen, and demands that
/// they name the holder, its call and its call site.
fn demand_blocked(session: &mut Session, children: &mut [Child], wanted: &Wanted) {
    session.show(TableId::LockBlocked);
    tick(session);
    let mut seen = Seen::default();
    for _ in 0..ROUNDS {
        for child in &mut *children {
            child.go();
        }
        for child in &mut *children {
            child.report();
        }
        let model = tick(session);
        demand_whole(&model, wanted);
        seen.add(&model, wanted);
        print_losses(&model);
        if seen.all >= FLOOR && seen.for_holder >= FLOOR / 5 {
            demand_shown(&model, wanted);
            break;
        }
    }
    for (text, waits) in &seen.texts {
        println!("  {waits}: {text}");
    }
    demand("contended waits", seen.all, FLOOR);
    demand("for the known holder", seen.for_holder, FLOOR / 5);
    if wanted.held != Held::Readers {
        // Between the end of a hold and the moment the lock is free it has no call.
        demand("with its call", seen.with_call, seen.for_holder * 9 / 10);
        if has_symbols() {
            // A hold that is over before it could be marked leaves no call site.
            demand(
                "with its call site",
                seen.with_site,
                seen.with_call * 95 / 100,
            );
        }
    }
}

fn has_symbols() -> bool {
    let host = faultscope::host::HostFacts::read(std::path::Path::new("/"));
    let has = matches!(host.kernel.kallsyms, Fact::Yes(()));
    if !has {
        println!("  kernel symbols are hidden: call sites are not compared");
    }
    has
}

fn blocked_of(model: &Model, waiter: u32) -> impl Iterator<Item = (&BlockedId, &BlockedWaits)> {
    let rows = model.delta().blocked.iter();
    rows.filter(move |(id, _)| id.tgid == waiter)
}

fn site_of(model: &Model, stack: u32) -> String {
    let chain = model.delta().chains.get(&stack);
    chain.map_or_else(|| "-".to_owned(), |chain| chain.site.clone())
}

/// Demands that the waits of the process are those that other code counts.
fn demand_whole(model: &Model, wanted: &Wanted) {
    let blocked: u64 = blocked_of(model, wanted.waiter)
        .map(|(_, waits)| waits.waits)
        .sum();
    let counted = process(model.delta(), wanted.waiter)[Scope::Waits(MMAP_LOCK)];
    assert!(
        blocked.abs_diff(counted) <= wanted.edge,
        "{blocked} waits by holder, {counted} by process"
    );
}

/// Demands that the table has a row with the holder's process in it.
fn demand_shown(model: &Model, wanted: &Wanted) {
    if wanted.held == Held::Readers {
        return;
    }
    let table = model.table(TableId::LockBlocked);
    let at = table.position("holder").expect("a holder column");
    let end = format!("({})", wanted.holder);
    let is_shown = |value: &Value| matches!(value, Value::Text(text) if text.ends_with(&end));
    assert!(
        table.rows.iter().any(|row| is_shown(&row.cells[at])),
        "{table:?}"
    );
}

/// A thread that populates holds the lock for read while another wants it for write.
#[test]
fn a_populating_thread_is_named_by_those_it_blocks() {
    let mut children = [Child::start("blocked_populate", &[])];
    let pid = children[0].pid();
    let mut session = session(&[pid]);
    let wanted = Wanted {
        waiter: pid,
        holder: pid,
        thread: Some(HOLDER),
        calls: &[libc::SYS_mmap, libc::SYS_munmap],
        held: if is_rt() { Held::Readers } else { Held::Read },
        sites: &[
            "__mm_populate",
            "__get_user_pages",
            "vm_mmap_pgoff",
            "__vm_munmap",
            "vms_complete_munmap_vmas",
            "do_vmi_align_munmap",
            "do_mas_align_munmap",
        ],
        edge: DYING,
    };
    demand_blocked(&mut session, &mut children, &wanted);
    feature(
        "readers named by the waits for mmap_lock they cause",
        if is_rt() {
            Err("PREEMPT_RT counts the readers of an rwsem and names none")
        } else {
            Ok(())
        },
    );
}

/// A thread that changes protections holds it for write while others map and fault.
#[test]
fn a_writing_thread_is_named_by_those_it_blocks() {
    let mut children = [Child::start("blocked_protect", &[])];
    let pid = children[0].pid();
    let mut session = session(&[pid]);
    let wanted = Wanted {
        waiter: pid,
        holder: pid,
        thread: Some(HOLDER),
        calls: &[libc::SYS_mprotect],
        held: Held::Write,
        sites: &["do_mprotect_pkey", "__x64_sys_mprotect"],
        edge: DYING,
    };
    demand_blocked(&mut session, &mut children, &wanted);
    feature(
        "writers named by the waits for mmap_lock they cause",
        Ok(()),
    );
}

/// A reader of smaps blocks the process whose address space it reads.
#[test]
fn a_reader_of_another_process_is_named_by_those_it_blocks() {
    let mut owner = Child::start("blocked_owner", &[]);
    let mut readers: Vec<Child> = Vec::new();
    readers.push(Child::start("blocked_reader", &[u64::from(owner.pid())]));
    let mut session = session(&[owner.pid()]);
    let wanted = Wanted {
        waiter: owner.pid(),
        holder: readers[0].pid(),
        thread: None,
        calls: &[libc::SYS_read],
        held: if is_rt() { Held::Readers } else { Held::Read },
        sites: &[
            "show_smaps_rollup",
            "smaps_rollup_release",
            "m_stop",
            "m_next",
            "show_smap",
        ],
        edge: 1,
    };
    owner.go();
    demand_blocked(&mut session, &mut readers, &wanted);
    owner.go();
    owner.report();
    owner.finish();
}

fn change(pages: &Pages, is_writable: bool) {
    let write = if is_writable { libc::PROT_WRITE } else { 0 };
    let start = pages.start().cast();
    // SAFETY: the mapping's own range, which nothing writes meanwhile.
    let done = unsafe { libc::mprotect(start, pages.bytes(), libc::PROT_READ | write) };
    assert_eq!(done, 0, "mprotect");
}

/// Runs `hold` on a thread called [`HOLDER`] and `want` on [`WANTERS`] others until it has ended.
fn beside(hold: impl FnOnce() + Send, want: impl Fn(usize) + Sync) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let wanters: Vec<_> = (0..WANTERS)
            .map(|thread| {
                let (is_over, want) = (&is_over, &want);
                scope.spawn(move || {
                    while !is_over.load(Ordering::Acquire) {
                        want(thread);
                    }
                })
            })
            .collect();
        let holder = std::thread::Builder::new().name(HOLDER.into());
        let holder = holder.spawn_scoped(scope, hold).expect("a thread");
        let ended = holder.join();
        is_over.store(true, Ordering::Release);
        assert!(ended.is_ok(), "the holder failed");
        // The end of a scope leaves them unmapping their stacks, with mmap_lock.
        for wanter in wanters {
            assert!(wanter.join().is_ok(), "a wanter failed");
        }
    });
}

/// At each answer a thread populates mappings while others change protections.
fn populate(link: &mut Link, _: &[u64]) {
    let pages: [Pages; WANTERS] = std::array::from_fn(|_| Pages::new(1));
    loop {
        link.stop([0; 4]);
        beside(
            || {
                for _ in 0..30 {
                    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
                    drop(Pages::map(2048, flags, -1));
                }
            },
            |thread| {
                change(&pages[thread], false);
                change(&pages[thread], true);
            },
        );
    }
}

/// At each answer a thread changes the protection of much memory while others map.
fn protect(link: &mut Link, _: &[u64]) {
    let much = Pages::new(8192);
    much.touch();
    loop {
        link.stop([0; 4]);
        beside(
            || {
                for i in 0..200 {
                    change(&much, i % 2 == 1);
                }
            },
            |_| drop(Pages::new(1)),
        );
    }
}

/// Changes protections without end, until the test answers once more.
fn own_and_change(link: &mut Link, _: &[u64]) {
    // Many mappings make the reader's way long.
    let many: Vec<Pages> = (0..800)
        .map(|i| {
            let pages = Pages::new(2);
            pages.touch();
            change(&pages, i % 2 == 0);
            pages
        })
        .collect();
    link.stop([0; 4]);
    while !support::is_answered() {
        for _ in 0..100 {
            change(&many[0], false);
            change(&many[0], true);
        }
    }
    link.stop([0; 4]);
}

/// At each answer reads smaps_rollup of process `arguments[0]` some times.
fn read_smaps(link: &mut Link, arguments: &[u64]) {
    let path = format!("/proc/{}/smaps_rollup", arguments[0]);
    let mut text = vec![1_u8; PAGE];
    pin(1);
    loop {
        link.stop([0; 4]);
        for _ in 0..200 {
            use std::io::Read as _;
            let mut file = std::fs::File::open(&path).expect("the process lives");
            let n = file.read(&mut text).expect("smaps can be read");
            assert!(n > 0);
        }
    }
}
