//! The reader of recordings: files that a stranger made, and good ones with bytes changed and the end cut off.
//!
//! Input that is itself a SQLite file is taken as it is. Other input changes a recording made at the start: two bytes that
//! say how much of the end to leave out, then a place (three bytes) and what to write there (one byte), again and again.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use faultscope::sample::delta::{Cpu, Loss, Process, ProcessId};
use faultscope::sample::run::{End, LossKind, Output, Run, RunFact, Workload};
use faultscope::sample::{Delta, Interval, Missing, Spinlock};
use faultscope::store::{Recording, Writer};
use faultscope::workload::{Defaults, parse};
use libfuzzer_sys::fuzz_target;

/// Where the input lies while it is read; each process of the fuzzer has its own.
static PLACE: LazyLock<PathBuf> = LazyLock::new(|| {
    std::env::temp_dir().join(format!("faultscope-fuzz-{}.fsc", std::process::id()))
});

static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    fs::remove_file(&*PLACE).ok();
    make().expect("a recording can be written");
    fs::read(&*PLACE).expect("it was just written")
});

fn make() -> Result<(), faultscope::store::Error> {
    let text = "real 1.00\nuser 0.50\nsys 0.25\n";
    let run = Run {
        id: "0123456789abcdef0123456789abcdef".to_owned(),
        host: "box".to_owned(),
        labels: [("side".to_owned(), "a".to_owned())].into(),
        facts: vec![RunFact {
            id: "thp".to_owned(),
            value: Err("unknown".to_owned()),
        }],
        kernel_config: vec![("CONFIG_NUMA".to_owned(), "y".to_owned())],
        losses: LossKind::list(&[("ring_full", "The ring was full.")]),
        workload: Some(Workload {
            argv: vec!["true".to_owned()],
            output: Output {
                text: text.to_owned(),
                dropped_bytes: 0,
            },
            ..Workload::default()
        }),
        ..Run::default()
    };
    let mut writer = Writer::create(&PLACE, &run)?;
    for number in 1..4 {
        let id = ProcessId {
            tgid: 7,
            start_ns: 1,
        };
        let delta = Delta {
            t_mono_ns: number * 1_000_000_000,
            interval_ns: 1_000_000_000,
            cpus: vec![Cpu::default(); 2],
            processes: [(id, Process::default())].into(),
            names: [(7, Arc::from("mysqld"))].into(),
            losses: vec![Loss::default()],
            ..Delta::default()
        };
        writer.append(&Interval {
            delta: Arc::new(delta),
            missing: Arc::new([Missing {
                signal: "faults".into(),
                reason: "no tracepoint".to_owned(),
            }]),
            spinlock: Spinlock::default(),
            notes: vec!["a note".to_owned()],
        })?;
    }
    let found = parse(text, &Defaults::default()).expect("a result of time");
    writer.set_metrics(&found.measurements[0].metrics)?;
    writer.finish(&End {
        mono_ns: 4_000_000_000,
        reason: "the command ended".to_owned(),
    })
}

fn changed(data: &[u8]) -> Vec<u8> {
    let mut bytes = GOOD.clone();
    let [high, low, changes @ ..] = data else {
        return bytes;
    };
    for change in changes.chunks_exact(4) {
        let at =
            usize::from(change[0]) << 16 | usize::from(change[1]) << 8 | usize::from(change[2]);
        let end = bytes.len();
        bytes[at % end] = change[3];
    }
    // Mostly nothing; else up to all of it, in steps of four bytes.
    let cut = usize::from(*high & 0x7f) << 8 | usize::from(*low);
    if high & 0x80 != 0 {
        bytes.truncate(bytes.len().saturating_sub(cut * 4));
    }
    bytes
}

fuzz_target!(|data: &[u8]| {
    let bytes = if data.starts_with(b"SQLite format 3\0") {
        data.to_vec()
    } else {
        changed(data)
    };
    fs::write(&*PLACE, &bytes).expect("the directory for temporary files takes it");
    if let Ok(mut recording) = Recording::open(&PLACE) {
        for index in 0..recording.len() {
            let _ = recording.interval(index);
        }
        let _ = recording.losses();
    }
    assert!(
        fs::read(&*PLACE).is_ok_and(|after| after == bytes),
        "reading changed the file"
    );
});
