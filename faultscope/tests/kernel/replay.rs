//! A replay of a recording against the live batch output of the same intervals.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use faultscope::export::{Format, Selection, Writer as Output};
use faultscope::host::clock;
use faultscope::model::{Context, Model, TableId};
use faultscope::sample::run::{End, Run};
use faultscope::store::Writer;

use crate::support::{Child, demand, session};

/// Intervals recorded.
const INTERVALS: usize = 3;

/// A file of this test's own, removed at its end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap_or_default();
    }
}

/// What `top -b --format jsonl` writes of these models.
fn jsonl(models: &[Model], table: TableId) -> String {
    let selection = Selection {
        table,
        sort: None,
        word: String::new(),
        top: None,
    };
    let mut output = Output::new(Format::Jsonl, selection).expect("a format of top");
    let mut text = Vec::new();
    for model in models {
        output.write(&mut text, model).expect("a vector");
    }
    String::from_utf8(text).expect("UTF-8")
}

/// What the binary writes of the recording.
fn replayed(file: &Scratch, table: TableId) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_faultscope"))
        .args([
            "top",
            "-b",
            "--format",
            "jsonl",
            "--view",
            table.id(),
            "--replay",
        ])
        .arg(&file.0)
        .output()
        .expect("the binary runs");
    // Losses of the recording are losses of its output.
    let is_done = matches!(done.status.code(), Some(0 | 4));
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(is_done, "{}: {error}", done.status);
    String::from_utf8(done.stdout).expect("UTF-8")
}

#[test]
fn a_replay_is_the_live_output_number_by_number() {
    // The whole machine, while a child faults, gives memory back and touches it again.
    let arguments = [2_000, 700, libc::MADV_DONTNEED.unsigned_abs().into(), 16, 0];
    let mut child = Child::start("give back", &arguments);
    let mut session = session(&[]);
    session.record_all(false);
    session.interval().expect("the maps can be read");
    let context = session.context().clone();
    let run = Run {
        host: context.host.name.clone(),
        kernel: context.host.kernel.clone(),
        mglru: context.mglru.clone(),
        filter: context.filter.clone(),
        losses: context.losses.to_vec(),
        start_mono_ns: clock::monotonic_ns(),
        start_real_ns: clock::realtime_ns(),
        ..Run::default()
    };
    let name = format!("faultscope-kernel-replay-{}.fsc", std::process::id());
    let file = Scratch(std::env::temp_dir().join(name));
    let mut writer = Writer::create(&file.0, &run).expect("a new file");
    let mut models = Vec::new();
    for _ in 0..INTERVALS {
        child.step();
        let interval = session.interval().expect("the maps can be read");
        writer.append(&interval).expect("written");
        // As a tick of top makes it.
        let context = Context {
            missing: Arc::clone(&interval.missing),
            spinlock: interval.spinlock.clone(),
            ..context.clone()
        };
        models.push(Model::new(interval.delta, Arc::new(context)));
    }
    let end = End {
        mono_ns: clock::monotonic_ns(),
        reason: "the test ended".into(),
    };
    writer.finish(&end).expect("written");
    let mut rows = 0;
    for table in TableId::ALL {
        let (live, replayed) = (jsonl(&models, *table), replayed(&file, *table));
        assert_eq!(replayed.lines().count(), INTERVALS, "{}", table.id());
        for (live, replayed) in live.lines().zip(replayed.lines()) {
            let at = live.bytes().zip(replayed.bytes()).position(|(a, b)| a != b);
            let around = |text: &str| {
                let from = at.unwrap_or(0).saturating_sub(300);
                text.chars().skip(from).take(600).collect::<String>()
            };
            assert!(
                live == replayed,
                "{}:\nlive:     {}\nreplayed: {}",
                table.id(),
                around(live),
                around(replayed)
            );
        }
        rows += models
            .iter()
            .map(|m| m.table(*table).rows.len())
            .sum::<usize>();
    }
    demand("rows compared", rows as u64, 500);
}
