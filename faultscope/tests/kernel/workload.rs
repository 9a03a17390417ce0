//! The process tree of a recorded command: exactly its descendants are marked.

use faultscope::commands::session::{Options, Session};

use crate::support::{
    Child, Link, Pages, Role, demand, demand_exactly, feature, is_answered, object, print_losses,
    process, tick,
};

pub(crate) const ROLES: &[(&str, Role)] = &[
    ("workload_tree", tree),
    ("workload_stranger", stranger),
    ("workload_storm", storm),
    ("workload_forks", forks),
];

/// Name of a process that forks on, and of its children.
const FORKS: &std::ffi::CStr = c"marked-forks";

/// Pages that each process of a tree touches.
const TOUCHED: usize = 16;

/// Children of the command, each with a daemon of its own.
const CHILDREN: u64 = 5;

/// Forks `n` children, each of which leaves a daemon behind; all of them fault.
fn tree(link: &mut Link, arguments: &[u64]) {
    let n = arguments.first().copied().unwrap_or(0);
    // SAFETY: plain numbers. Daemons become children of this process, so that it can wait for them.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    link.stop([u64::from(std::process::id()), 0, 0, 0]);
    for _ in 0..n {
        forked(|| {
            forked(|| {
                // SAFETY: no arguments.
                unsafe { libc::setsid() };
                Pages::new(TOUCHED).touch();
            });
            Pages::new(TOUCHED).touch();
        });
    }
    Pages::new(TOUCHED).touch();
    wait_for_all();
    link.stop([0; 4]);
}

/// Forks more processes than the map of marks holds, all alive at once.
fn storm(link: &mut Link, arguments: &[u64]) {
    let n = arguments.first().copied().unwrap_or(0);
    link.stop([u64::from(std::process::id()), 0, 0, 0]);
    let (hold, held) = std::io::pipe().expect("a pipe");
    for _ in 0..n {
        let (hold, held) = (&hold, &held);
        forked(move || {
            use std::io::Read as _;
            use std::os::fd::AsRawFd as _;
            // SAFETY: this process's own copy, which nothing uses any more.
            unsafe { libc::close(held.as_raw_fd()) };
            let mut hold = hold;
            drop(hold.read(&mut [0]));
        });
    }
    link.stop([0; 4]);
    drop(held);
    wait_for_all();
    link.stop([0; 4]);
}

/// Forks one child after the other, each of which faults, until it is answered; reports how many.
fn forks(link: &mut Link, _arguments: &[u64]) {
    // SAFETY: a string that ends; what is not a name is not looked at.
    unsafe { libc::prctl(libc::PR_SET_NAME, FORKS.as_ptr()) };
    link.stop([u64::from(std::process::id()), 0, 0, 0]);
    let mut n = 0;
    while !is_answered() {
        forked(|| Pages::new(TOUCHED).touch());
        wait_for_all();
        n += 1;
    }
    // The first goes on by the answer that ended the loop.
    link.stop([n, 0, 0, 0]);
    link.stop([0; 4]);
}

/// Runs `what` in a new process and ends it.
fn forked(what: impl FnOnce()) {
    // SAFETY: a role runs on a single thread, so the child may do anything.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            what();
            // SAFETY: ends the child without running what belongs to its parent.
            unsafe { libc::_exit(0) }
        }
        _ => {}
    }
}

fn wait_for_all() {
    // SAFETY: a null status is allowed.
    while unsafe { libc::wait(std::ptr::null_mut()) } > 0 {}
}

/// Faults, and is nobody's child but the test's.
fn stranger(link: &mut Link, _arguments: &[u64]) {
    link.stop([u64::from(std::process::id()), 0, 0, 0]);
    forked(|| Pages::new(TOUCHED).touch());
    Pages::new(TOUCHED).touch();
    wait_for_all();
    link.stop([0; 4]);
}

fn session(sizes: Option<faultscope::bpf::Sizes>) -> Session {
    let mut session = Session::start(&Options {
        bpf_object: object(),
        sizes,
        ..Options::default()
    })
    .expect("the core set attaches");
    session.record_all(true);
    session
}

#[test]
fn exactly_the_descendants_of_the_command_are_marked() {
    let mut session = session(None);
    let mut stranger = Child::start("workload_stranger", &[]);
    let mut child = session
        .mark(|| Child::start("workload_tree", &[CHILDREN]))
        .expect("the map takes a mark");
    tick(&mut session);
    stranger.step();
    child.step();
    let interval = session.interval().expect("the maps can be read");
    let delta = &interval.delta;
    assert!(interval.missing.iter().all(|m| *m.signal != *"workload"));
    let marked: Vec<_> = delta
        .processes
        .iter()
        .filter(|(_, p)| p.is_workload)
        .collect();
    demand_exactly("marked processes", marked.len() as u64, 1 + 2 * CHILDREN);
    let faults: u64 = marked.iter().map(|(_, p)| p.counters.faults()).sum();
    demand(
        "faults of the workload",
        faults,
        (1 + 2 * CHILDREN) * TOUCHED as u64,
    );
    demand(
        "faults of the stranger",
        process(delta, stranger.pid()).faults(),
        TOUCHED as u64,
    );
    let own = std::process::id();
    for (id, process) in &delta.processes {
        let is_ours = id.tgid == child.pid();
        assert!(
            process.is_workload || !is_ours,
            "the command itself is marked"
        );
        assert!(!process.is_workload || (id.tgid != own && id.tgid != stranger.pid()));
    }
    child.finish();
    stranger.finish();
    feature("process tree of a recorded command", Ok(()));
}

/// A process that comes while a reading is made has its mark in the interval in which it has its faults.
#[test]
fn processes_that_come_during_a_reading_are_marked() {
    const READINGS: usize = 40;
    let mut session = session(None);
    let mut child = session
        .mark(|| Child::start("workload_forks", &[]))
        .expect("the map takes a mark");
    tick(&mut session);
    child.go();
    let (mut marked, mut unmarked) = (0, 0);
    let mut count = |session: &mut Session| {
        let interval = session.interval().expect("the maps can be read");
        let delta = &interval.delta;
        let forks = delta.threads.values().filter(|thread| {
            thread.comm.as_bytes() == FORKS.to_bytes() && thread.counters.faults() > 0
        });
        for thread in forks {
            match delta.processes.get(&thread.process) {
                Some(process) if process.is_workload => marked += 1,
                _ => unmarked += 1,
            }
        }
    };
    for _ in 0..READINGS {
        count(&mut session);
    }
    let [forked, ..] = child.step();
    child.report();
    count(&mut session);
    demand("processes forked", forked, READINGS as u64);
    demand("processes with faults and a mark", marked, forked / 2);
    demand_exactly("processes with faults and no mark", unmarked, 0);
    child.finish();
}

#[test]
fn marks_that_find_no_room_are_counted() {
    const ROOM: u32 = 64;
    const FORKED: u64 = 150;
    let sizes = faultscope::bpf::Sizes {
        workload: ROOM,
        ..faultscope::bpf::Sizes::for_machine(64, 1000)
    };
    let mut session = session(Some(sizes));
    let mut child = session
        .mark(|| Child::start("workload_storm", &[FORKED]))
        .expect("the map takes a mark");
    tick(&mut session);
    child.step();
    let model = tick(&mut session);
    print_losses(&model);
    let lost = crate::support::loss(&model, "workload_map_full");
    // The command itself has an entry.
    demand_exactly("marks lost", lost, FORKED + 1 - u64::from(ROOM));
    child.step();
    child.finish();
}
