//! An idle machine shows no waits that cannot be (trap: stale begin slots).

use std::time::Duration;

use faultscope::model::TableId;
use faultscope::sample::counters::LOCK_CLASS_NAMES;

use crate::support::{demand, session, tick};

/// A spin wait above this is worth a line, ns.
const LONG_SPIN_NS: u64 = 10_000_000;

#[test]
fn no_wait_is_longer_than_the_capture() {
    let mut session = session(&[]);
    session.show(TableId::Locks);
    let start = tick(&mut session).t_mono_ns;
    let (mut ticks, mut waits, mut long) = (0, 0, 0);
    for _ in 0..10 {
        std::thread::sleep(Duration::from_secs(1));
        let model = tick(&mut session);
        ticks += 1;
        // The longest wait is kept since attach, which comes before the first tick.
        let capture_ns = model.t_mono_ns - start + 2_000_000_000;
        for (id, lock) in model.delta().locks.iter().filter(|(id, _)| !id.is_site) {
            waits += lock.waits;
            let class = LOCK_CLASS_NAMES[id.class];
            assert!(lock.max_ns <= capture_ns, "{class}: {lock:?}");
            assert!(lock.wait_ns <= capture_ns * lock.waits, "{class}: {lock:?}");
            assert_eq!(lock.histogram.count(), lock.waits, "{class}: {lock:?}");
            let longest = lock.histogram.quantile_ns(1.0).unwrap_or(0);
            let spins = ["lru_lock", "zone_lock", "page_table_lock", "spinlock"];
            if spins.contains(&class) && longest > LONG_SPIN_NS {
                long += 1;
                let notes = model.notes.iter();
                let note = notes.filter(|n| n.starts_with("a spin wait") && n.contains(class));
                let note = note.map(String::as_str).next().expect("a note of the wait");
                assert!(note.contains("hypervisor took"), "{note}");
                println!("  {note}");
            }
        }
        let steal_ns: u64 = model
            .delta()
            .cpus
            .iter()
            .map(|cpu| cpu.time.expect("/proc/stat is readable").steal_ns)
            .sum();
        println!("  tick {ticks}: steal {} ms", steal_ns / 1_000_000);
    }
    demand("ticks", ticks, 10);
    println!("  waits: {waits}; spin waits over 10 ms: {long}");
}
