//! Loads against the kernel's own count of this thread's faults.

use super::*;
use crate::host::usage::Usage;

/// Minor faults of the calling thread so far (`ru_minflt`, getrusage(2)).
fn minor_faults() -> u64 {
    let usage = Usage::read(libc::RUSAGE_THREAD).expect("getrusage of the own thread");
    usage.minor_faults
}

/// Runs the load twice and compares what it says with what the kernel counted the second time.
fn faults_of(load: &mut dyn Load) -> (u64, u64) {
    load.run().expect("the load runs");
    let before = minor_faults();
    let said = load.run().expect("the load runs");
    (said, minor_faults() - before)
}

#[test]
fn fault_loads_say_how_many_faults_they_cause() {
    let mut loads: [Box<dyn Load>; 3] = [
        Box::new(ReadFaults::new().expect("memory")),
        Box::new(WriteFaults::new().expect("memory")),
        Box::new(KernelFaults::new().expect("memory and a pipe")),
    ];
    for load in &mut loads {
        let (said, counted) = faults_of(load.as_mut());
        assert_eq!(said, 1024, "{}", load.events());
        // The segment list of writev and the test harness may fault a few times more.
        assert!(
            (said..said + 10).contains(&counted),
            "{}: {said} said, {counted} counted",
            load.events()
        );
    }
}

#[test]
fn populated_pages_are_minor_faults_of_the_kernel() {
    let mut load = Populates::new().expect("memory");
    let (said, counted) = faults_of(&mut load);
    assert_eq!(said, 512);
    assert!((said..said + 10).contains(&counted), "{counted}");
}

#[test]
fn other_loads_repeat_the_same_count() {
    let path = std::env::temp_dir().join(format!("faultscope-load-{}", std::process::id()));
    let mut loads: [Box<dyn Load>; 9] = [
        Box::new(Mappings),
        Box::new(Advices::new().expect("a page")),
        Box::new(SystemCalls),
        Box::new(Rereads::new().expect("a file in memory")),
        Box::new(SharedMappings),
        Box::new(EveryAdvice::new().expect("memory")),
        Box::new(Forks::new().expect("memory")),
        Box::new(FileReads::new(&path, 32).expect("a file")),
        Box::new(Overcommit::new(64).expect("memory")),
    ];
    let counts = [1536, 512, 8192, 256, 4096, 23, 1024, 64, 64];
    for (load, count) in loads.iter_mut().zip(counts) {
        for _ in 0..2 {
            assert_eq!(
                load.run().expect("the load runs"),
                count,
                "{}",
                load.events()
            );
        }
    }
    assert!(!path.exists(), "the file has lost its name");
}

#[test]
fn a_load_stays_where_it_is_put_until_it_is_let_go() {
    let before = allowed().expect("own affinity");
    let pinned = Pinned::new().expect("own affinity may be narrowed");
    assert_eq!(
        allowed().expect("own affinity"),
        before.last().copied().into_iter().collect::<Vec<_>>()
    );
    drop(pinned);
    assert_eq!(allowed().expect("own affinity"), before);
}

#[test]
fn contending_threads_both_come_to_an_end() {
    let cpus = allowed().expect("own affinity");
    let ends = [cpus[0], *cpus.last().expect("at least one CPU")];
    let mut load = Contention::new(ends).expect("memory");
    assert!(load.run().expect("the load runs") > 0);
}
