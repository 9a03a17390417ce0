//! Faults: user, kernel, major, unseen; by CPU and by thread.

use std::ffi::CString;
use std::os::fd::AsRawFd as _;

use faultscope::model::{Model, TableId, Value};
use faultscope::sample::Scope;

use crate::support::{
    Child, Link, PAGE, Pages, Role, demand, demand_exactly, demand_near, demand_no_loss, loss,
    own_faults, process, session, tick, watch,
};

pub(crate) const ROLES: &[(&str, Role)] = &[
    ("touch", touch),
    ("read a dropped file", read_dropped_file),
    ("kernel faults", kernel_faults),
    ("populate", populate),
    ("short processes", short_processes),
];

/// Pages of the large loads.
const MANY: u64 = 200_000;
/// Pages of the exact ones.
const SOME: u64 = 2_000;
/// Faults a thread takes for its own stack, at most.
const THREAD_START: u64 = 32;

fn size(n: u64) -> usize {
    usize::try_from(n).expect("sizes fit")
}

/// Writes to `arguments[0]` fresh pages from `arguments[1]` threads; reports the
/// minor and major faults the kernel counted.
fn touch(link: &mut Link, arguments: &[u64]) {
    let (pages, threads) = (size(arguments[0]), size(arguments[1]));
    let memory = Pages::new(pages);
    link.stop([0; 4]);
    let before = own_faults();
    if threads == 1 {
        memory.touch();
    } else {
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let memory = &memory;
                let part = pages / threads;
                scope.spawn(move || memory.touch_part(thread * part, part));
            }
        });
    }
    let after = own_faults();
    link.stop([after.0 - before.0, after.1 - before.1, 0, 0]);
}

fn touched(threads: u64) {
    let mut child = Child::start("touch", &[MANY, threads]);
    let mut session = session(&[child.pid()]);
    let (model, [minor, ..]) = watch(&mut session, &mut child);
    let delta = model.delta();
    let counters = process(delta, child.pid());
    demand("minor faults the kernel counted", minor, MANY);
    demand_near("user faults", counters.user(), minor, MANY / 1000);
    let by_thread: u64 = delta
        .threads
        .values()
        .filter(|t| t.process.tgid == child.pid())
        .map(|t| t.counters.user())
        .sum();
    demand_exactly("sum over its threads", by_thread, counters.user());
    let by_cpu: u64 = delta
        .spaces
        .values()
        .filter(|s| s.process.is_some_and(|p| p.tgid == child.pid()))
        .flat_map(|s| s.by_cpu.values())
        .sum();
    demand_exactly("sum over its CPU shares", by_cpu, counters.faults());
    demand_no_loss(&model);
    child.finish();
}

/// One thread's user faults are the minor faults the kernel counted.
#[test]
fn user_faults_of_one_thread_equal_minflt() {
    touched(1);
}

/// The same with four threads.
#[test]
fn user_faults_of_four_threads_equal_minflt() {
    touched(4);
}
