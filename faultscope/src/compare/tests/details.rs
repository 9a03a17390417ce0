//! What stands behind the lock classes, and quantiles of durations.

use super::*;
use crate::compare::align::Class;
use crate::compare::aspect::Aspect;
use crate::compare::quantile::{FAULT, QUANTILES};
use crate::sample::histogram::Histogram;

fn kernels(both: &mut [Vec<Observed>; 2], change: impl Fn(usize, u64, &mut Kernel)) {
    for (at, side) in both.iter_mut().enumerate() {
        for (i, run) in (0..).zip(side) {
            if let Some(kernel) = &mut run.kernel {
                change(at, i, kernel);
            }
        }
    }
}

fn class(site: &str) -> Class {
    Class {
        site: site.to_owned(),
        ..Class::new("lru_lock", "", "")
    }
}

fn waits(waits: u64, wait_ns: u64) -> Waits {
    Waits {
        waits,
        wait_ns,
        p99_ns: Some(9000.0),
    }
}

#[test]
fn nodes_and_cgroups_are_told_and_not_tested() {
    let mut both = sides(1.0);
    kernels(&mut both, |at, i, kernel| {
        let mut table = BTreeMap::from([
            (
                class("node 0 /a"),
                waits(200, (1 + at as u64) * 1_000_000 + i),
            ),
            (class("node 1 /a"), waits(200, 1_000_000 + i)),
        ]);
        if at == 1 {
            table.insert(class("node 1 /new"), waits(100, 500_000));
        }
        kernel.aspects.insert(Aspect::Places, table);
    });
    let found = report(both, Options::default());
    let told = &found.details.told;
    assert_eq!((told.len(), told[0].aspect), (1, Aspect::Places));
    assert_eq!(told[0].rows.len(), 3);
    assert!(
        told[0]
            .rows
            .iter()
            .all(|row| row.verdict.is_none() && row.q.is_none())
    );
    assert_eq!(found.details.unmeasured.len(), 4);
    let shown = words(&text(&found));
    for part in [
        "lock waits by node and memory cgroup, not tested",
        "lru_lock node 0 /a 1.00ns 2.00ns +100%",
        "lru_lock node 1 /a 1.00ns 1.00ns",
        "lru_lock node 1 /new appeared",
        "waits a run: 0 [0,0.60] -> 100 [",
        "not measured by every run: mmap_lock holds by call and process;",
    ] {
        assert!(shown.contains(part), "{part} in\n{}", text(&found));
    }
    let json: serde_json::Value =
        serde_json::from_str(&written(&found, Layout::Json)).expect("JSON");
    assert_eq!(json["lock_details"]["aspects"][0]["id"], "places");
    assert_eq!(
        json["lock_details"]["not_measured"]
            .as_array()
            .map(Vec::len),
        Some(4)
    );
}

#[test]
fn an_aspect_that_one_run_lacks_is_no_change() {
    let mut both = sides(1.0);
    kernels(&mut both, |at, i, kernel| {
        if at == 0 || i > 0 {
            let table = BTreeMap::from([(class("node 0"), waits(200, 1_000_000))]);
            kernel.aspects.insert(Aspect::LruHolds, table);
        }
    });
    let found = report(both, Options::default());
    assert!(found.details.told.is_empty());
    assert_eq!(found.details.unmeasured.len(), Aspect::ALL.len());
}

#[test]
fn distances_are_shares_of_many_handoffs() {
    let mut both = sides(1.0);
    kernels(&mut both, |at, i, kernel| {
        let near = if at == 0 { 900 } else { 500 };
        kernel.handoffs = BTreeMap::from([
            (
                Class::new("mmap_lock", "write", ""),
                [near + i, 0, 1000 - near, 0, 2],
            ),
            (Class::new("lru_lock", "", ""), [3, 0, 1, 0, 0]),
        ]);
    });
    let found = report(both, Options::default());
    let bounces = &found.details.bounces;
    let told: Vec<&str> = bounces.iter().map(|b| b.distance).collect();
    // Two of a thousand are below a hundredth, and four handoffs say nothing.
    assert_eq!(told, ["same CPU", "same LLC"]);
    let shown = words(&text(&found));
    assert!(
        shown.contains("mmap_lock write: same CPU 89.8% 50% -44.3%"),
        "{}",
        text(&found)
    );
}

#[test]
fn waits_are_told_as_a_share_of_fault_time() {
    let mut both = sides(1.0);
    kernels(&mut both, |at, i, kernel| {
        let of_side = (1 + at as u64) * 1_000_000 + i;
        kernel.sites = Some(BTreeMap::from([(
            Class::new("mmap_lock", "read", "fault"),
            waits(100, of_side),
        )]));
        kernel.fault_ns = Some(10_000_000);
    });
    let found = report(both, Options::default());
    let row = &found.locks.as_ref().expect("measured").rows[0];
    let share = row.of_fault.as_ref().expect("every run has the time");
    assert!((share.before - 0.1).abs() < 1e-6 && (share.after - 0.2).abs() < 1e-6);
    let shown = words(&text(&found));
    assert!(
        shown.contains("of fault time 10.0% 20.0% +100%"),
        "{}",
        text(&found)
    );
    assert!(shown.contains("p99 wait 9.00us 9.00us"), "{}", text(&found));
}

/// So many values in a bucket each.
fn histogram(buckets: &[(usize, u64)]) -> Histogram {
    let mut histogram = Histogram::default();
    for (bucket, n) in buckets {
        histogram.0[*bucket] = *n;
    }
    histogram
}

#[test]
fn quantiles_need_values_and_tails_have_names() {
    let mut both = sides(1.0);
    kernels(&mut both, |at, _, kernel| {
        // The slowest fiftieth is slower after.
        let tail = if at == 0 { 20 } else { 30 };
        kernel.durations = BTreeMap::from([
            (FAULT.to_owned(), histogram(&[(10, 980), (tail, 20)])),
            ("wait for lru_lock".to_owned(), histogram(&[(10, 15)])),
        ]);
    });
    let found = report(both, Options::default());
    let [faults, lock] = found.quantiles.as_slice() else {
        panic!("{:?}", found.quantiles);
    };
    assert_eq!((faults.name.as_str(), faults.fewest), (FAULT, 1000));
    let told: Vec<bool> = faults
        .quantiles
        .iter()
        .map(|q| q.comparison.is_some())
        .collect();
    assert_eq!(told, [true, true, true, false]);
    assert!(lock.quantiles[1].comparison.is_none() && lock.quantiles[0].comparison.is_some());
    let p99 = faults.quantiles[2]
        .comparison
        .as_ref()
        .expect("enough values");
    assert!(p99.shift.interval.is_some() && p99.shift.estimate > 1.0);
    let shown = words(&text(&found));
    for part in [
        "fault: p99.9 needs 2995 in each run, the fewest are 1000",
        "wait for lru_lock: p90 needs 29, p99 needs 299, p99.9 needs 2995 in each run, the fewest are 15",
        "tail of \"fault\": p99",
        "the slow ones changed, not the common case",
    ] {
        assert!(shown.contains(part), "{part} in\n{}", text(&found));
    }
    let json: serde_json::Value =
        serde_json::from_str(&written(&found, Layout::Json)).expect("JSON");
    let quantiles = json["durations"][0]["quantiles"]
        .as_array()
        .expect("a list");
    assert_eq!(quantiles.len(), QUANTILES.len());
    assert_eq!(quantiles[3]["comparison_ns"], serde_json::Value::Null);
}

#[test]
fn a_recording_has_what_stands_behind_its_locks() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/recordings/v1-sysbench.fsc");
    let run = Observed::read(&path).expect("a golden recording");
    let kernel = run.kernel.expect("it has intervals");
    for (aspect, table) in &kernel.aspects {
        for class in table.keys() {
            assert!(!class.site.is_empty(), "{aspect:?} {class:?}");
        }
    }
    let all: u64 = kernel.classes.iter().flatten().map(|(_, w)| w.waits).sum();
    let counted: u64 = kernel
        .durations
        .iter()
        .filter(|(name, _)| name.starts_with("wait for"))
        .map(|(_, h)| h.count())
        .sum();
    assert!(counted <= all, "{counted} of {all}");
    assert_eq!(
        kernel.fault_ns.is_some(),
        kernel.durations.contains_key(FAULT)
    );
}
