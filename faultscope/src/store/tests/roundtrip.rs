//! What is written is read again.

use super::{
    Scratch,
    fixture::{end, interval, metrics, run, workload},
};
use crate::{
    sample::{Interval, run::Run},
    store::{Error, Recording, Writer},
};
use proptest::prelude::*;
use std::sync::Arc;

fn same(read: &Interval, wrote: &Interval, at: usize) {
    // Part by part, for a delta is long.
    let (a, b) = (&read.delta, &wrote.delta);
    assert_eq!(a.cpus, b.cpus, "cpus of {at}");
    assert_eq!(a.threads, b.threads, "threads of {at}");
    assert_eq!(a.processes, b.processes, "processes of {at}");
    assert_eq!(a.locks, b.locks, "locks of {at}");
    assert_eq!(a.takers, b.takers, "takers of {at}");
    assert_eq!(a.chains, b.chains, "chains of {at}");
    assert_eq!(a.names, b.names, "names of {at}");
    assert_eq!(a.programs, b.programs, "programs of {at}");
    assert_eq!(read, wrote, "interval {at}");
}

#[test]
fn a_run_and_its_intervals_come_back() {
    let scratch = Scratch::new();
    let path = scratch.file();
    let run = Run {
        workload: None,
        ..run()
    };
    let wrote: Vec<Interval> = (0..20).map(|n| interval(n, n)).collect();
    let mut writer = Writer::create(&path, &run).expect("a new file");
    for interval in &wrote {
        writer.append(interval).expect("written");
    }
    assert_eq!(writer.intervals(), 20);
    writer.set_metrics(&metrics()[..1]).expect("written");
    writer.set_workload(&workload()).expect("written");
    writer.set_metrics(&metrics()).expect("written");
    assert_eq!(scratch.names(), ["run.fsc", "run.fsc-shm", "run.fsc-wal"]);
    writer.finish(&end()).expect("finished");
    assert_eq!(scratch.names(), ["run.fsc"]);

    let mut recording = Recording::open(&path).expect("a recording");
    let expected = Run {
        workload: Some(workload()),
        end: Some(end()),
        ..run
    };
    assert_eq!(recording.run(), &expected);
    assert_eq!(recording.metrics(), metrics());
    assert!(recording.is_complete());
    assert_eq!(recording.len(), wrote.len());
    for (at, (time, wrote)) in recording.times().iter().zip(&wrote).enumerate() {
        let d = &wrote.delta;
        let times = (time.end_mono_ns, time.end_real_ns, time.length_ns);
        assert_eq!(times, (d.t_mono_ns, d.t_real_ns, d.interval_ns), "{at}");
    }
    for (at, read) in recording.intervals(0..usize::MAX).enumerate() {
        same(&read.expect("an interval"), &wrote[at], at);
    }
    // In any order.
    for at in [19, 3, 7, 3, 0] {
        same(
            &recording.interval(at).expect("an interval"),
            &wrote[at],
            at,
        );
    }
    let totals: Vec<u64> = recording
        .losses()
        .expect("losses")
        .iter()
        .map(|(_, total)| *total)
        .collect();
    let mut last: Vec<u64> = wrote[19].delta.losses.iter().map(|l| l.total).collect();
    last.resize(4, 0);
    assert_eq!(totals, last);
    assert!(recording.interval(20).is_err());
    assert_eq!(
        scratch.names(),
        ["run.fsc"],
        "reading leaves nothing behind"
    );
}

#[test]
fn nothing_is_overwritten() {
    let scratch = Scratch::new();
    let path = scratch.file();
    std::fs::write(&path, "mine").expect("written");
    let error = Writer::create(&path, &run()).expect_err("refused");
    assert!(matches!(error, Error::Exists { .. }), "{error}");
    assert!(error.to_string().contains("give another name with -o"));
    assert_eq!(std::fs::read(&path).expect("readable"), b"mine");
}

#[test]
fn an_open_recording_can_be_read() {
    let scratch = Scratch::new();
    let path = scratch.file();
    let mut writer = Writer::create(&path, &run()).expect("a new file");
    for n in 0..3 {
        writer.append(&interval(n, 3)).expect("written");
        let mut recording = Recording::open(&path).expect("a recording");
        assert!(!recording.is_complete());
        let at = usize::try_from(n).expect("small");
        assert_eq!(recording.len(), at + 1);
        same(&recording.interval(at).expect("read"), &interval(n, 3), at);
    }
    writer.finish(&end()).expect("finished");
    assert_eq!(scratch.names(), ["run.fsc"]);
}

/// Names change, vanish and come back; a chain gets its name late.
#[test]
fn names_hold_from_an_interval_on() {
    let scratch = Scratch::new();
    let path = scratch.file();
    let base = interval(7, 6);
    let tgid = *base.delta.named_processes().first().expect("a process");
    let slot = *base.delta.chains.keys().next().expect("a chain");
    let named = |name: Option<&str>, has_chain: bool| {
        let mut delta = crate::sample::Delta::clone(&base.delta);
        delta.names.remove(&tgid);
        if let Some(name) = name {
            delta.names.insert(tgid, name.into());
        }
        if !has_chain {
            Arc::make_mut(&mut delta.chains).remove(&slot);
        }
        Interval {
            delta: Arc::new(delta),
            ..base.clone()
        }
    };
    let wrote = [
        named(None, false),
        named(Some("a"), false),
        named(Some("b"), true),
        named(None, true),
        named(Some("a"), true),
    ];
    let mut writer = Writer::create(&path, &run()).expect("a new file");
    for interval in &wrote {
        writer.append(interval).expect("written");
    }
    writer.finish(&end()).expect("finished");
    let mut recording = Recording::open(&path).expect("a recording");
    for at in [0, 1, 2, 3, 4, 2, 0, 4, 1] {
        same(&recording.interval(at).expect("read"), &wrote[at], at);
    }
}

/// An interval that could not be written leaves no trace, and the next one is whole.
#[test]
fn what_failed_is_not_relied_on() {
    let scratch = Scratch::new();
    let path = scratch.file();
    let mut writer = Writer::create(&path, &run()).expect("a new file");
    writer.append(&interval(1, 4)).expect("written");
    let mut odd = interval(2, 4);
    let mut delta = crate::sample::Delta::clone(&odd.delta);
    let first = interval(1, 4);
    let known = first.delta.chains.keys().next().expect("a chain");
    let mut lock = *delta.locks.keys().next().expect("a lock");
    lock.stack = *known;
    delta.locks.insert(lock, Default::default());
    Arc::make_mut(&mut delta.chains).insert(*known, Arc::default());
    odd.delta = Arc::new(delta);
    let error = writer.append(&odd).expect_err("refused").to_string();
    assert!(error.contains("became another one"), "{error}");
    writer.append(&interval(2, 4)).expect("written");
    writer.finish(&end()).expect("finished");
    let mut recording = Recording::open(&path).expect("a recording");
    assert_eq!(recording.len(), 2);
    for n in 0..2 {
        let read = recording.interval(n).expect("read");
        same(&read, &interval(n as u64 + 1, 4), n);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_intervals_come_back(seeds in prop::collection::vec((any::<u64>(), 0_u64..12), 1..6)) {
        let scratch = Scratch::new();
        let path = scratch.file();
        let mut writer = Writer::create(&path, &run()).expect("a new file");
        for (seed, rows) in &seeds {
            writer.append(&interval(*seed, *rows)).expect("written");
        }
        writer.finish(&end()).expect("finished");
        let mut recording = Recording::open(&path).expect("a recording");
        for (at, (seed, rows)) in seeds.iter().enumerate() {
            same(&recording.interval(at).expect("read"), &interval(*seed, *rows), at);
        }
    }
}
