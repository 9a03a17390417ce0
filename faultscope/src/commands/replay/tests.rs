//! A replay says what the live output said.

use std::path::PathBuf;

use super::*;
use crate::export::{Format, Selection, Writer as Output};
use crate::model::TableId;
use crate::sample::merge::fixture;
use crate::sample::run::{End, LossKind};
use crate::sample::{Interval, Missing, Spinlock};
use crate::store::Writer;
use crate::tui::Play;

const SECOND: u64 = 1_000_000_000;

/// A file of a test's own, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("faultscope-replay-{name}-{}.fsc", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).expect("the file is ours");
    }
}

fn run() -> Run {
    Run {
        id: "0123456789abcdef0123456789abcdef".into(),
        host: "host".into(),
        kernel: "6.18".into(),
        mglru: "multi-generation LRU: not built".into(),
        start_mono_ns: SECOND / 2,
        start_real_ns: 5_500_000_000,
        interval_ns: SECOND,
        losses: LossKind::list(&[("a_full", "A."), ("b_full", "B.")]),
        ..Run::default()
    }
}

fn interval(t: u64) -> Interval {
    // Every kind of row, with some identities in common and some not.
    let ops: Vec<_> = (0..90_u8)
        .map(|i| {
            (
                i,
                i % 7 + u8::try_from(t).expect("small"),
                100 + u64::from(i) * t,
            )
        })
        .collect();
    let mut delta = fixture::interval(t, &ops);
    // An unknown cgroup has no path.
    delta.cgroup_paths.remove(&0);
    Interval {
        delta: Arc::new(delta),
        missing: Arc::new([Missing {
            signal: "drains".into(),
            reason: "fentry is refused".into(),
        }]),
        spinlock: Spinlock {
            mode: Some("native".into()),
            is_exact: false,
            sentence: "spinlocks: native; some waits are not seen".into(),
        },
        notes: vec!["a standing note".into()],
    }
}

/// A recording of `n` intervals, finished or cut short.
fn record(file: &Scratch, n: u64, is_finished: bool) {
    let mut writer = Writer::create(&file.0, &run()).expect("a new file");
    for t in 1..=n {
        writer.append(&interval(t)).expect("written");
    }
    if is_finished {
        let end = End {
            mono_ns: n * SECOND,
            reason: "the command ended".into(),
        };
        writer.finish(&end).expect("written");
    }
}

fn jsonl(models: impl Iterator<Item = Arc<Model>>, table: TableId) -> String {
    let selection = Selection {
        table,
        sort: None,
        word: String::new(),
        top: None,
    };
    let mut output = Output::new(Format::Jsonl, selection).expect("a format of top");
    let mut text = Vec::new();
    for model in models {
        output.write(&mut text, &model).expect("a vector");
    }
    String::from_utf8(text).expect("UTF-8")
}

fn frames(replay: &mut Replay) -> Vec<Frame> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let mut frames = Vec::new();
    runtime.block_on(async {
        while let Some(frame) = replay.next().await.expect("readable") {
            frames.push(frame);
        }
    });
    frames
}

#[test]
fn every_table_of_a_replay_is_that_of_the_live_output() {
    let file = Scratch::new("same");
    record(&file, 3, true);
    for table in TableId::ALL {
        let live = (1..=3).map(|t| {
            let interval = interval(t);
            let context = Context::of(&run(), &interval);
            Arc::new(Model::new(interval.delta, Arc::new(context)))
        });
        let mut replay = Replay::open(&file.0, false).expect("a recording");
        let replayed = frames(&mut replay).into_iter().map(|frame| frame.model);
        let (live, replayed) = (jsonl(live, *table), jsonl(replayed, *table));
        assert_eq!(live.lines().count(), 3);
        let differs = live.bytes().zip(replayed.bytes()).position(|(a, b)| a != b);
        let around = |text: &str, at: usize| {
            let bytes = &text.as_bytes()[at.saturating_sub(200)..];
            String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned()
        };
        if let Some(at) = differs {
            assert_eq!(around(&live, at), around(&replayed, at), "{}", table.id());
        }
        assert_eq!(live.len(), replayed.len(), "{}", table.id());
    }
}

#[test]
fn places_and_the_end_are_told() {
    let file = Scratch::new("places");
    record(&file, 3, true);
    let mut replay = Replay::open(&file.0, false).expect("a recording");
    let positions: Vec<_> = frames(&mut replay)
        .into_iter()
        .map(|frame| frame.position.expect("a place"))
        .collect();
    let seen: Vec<_> = positions.iter().map(|p| (p.index, p.at_ns)).collect();
    let half = SECOND / 2;
    assert_eq!(
        seen,
        [(0, half), (1, half + SECOND), (2, half + 2 * SECOND)]
    );
    let last = &positions[2];
    assert!(last.is_end() && !positions[1].is_end());
    assert_eq!((&*last.ending, last.count), ("the command ended", 3));
}

#[test]
fn a_recording_cut_short_says_so() {
    let file = Scratch::new("cut");
    record(&file, 2, false);
    let replay = Replay::open(&file.0, false).expect("a recording");
    assert!(replay.ending.contains("its end was not written"));
    for beside in ["-wal", "-shm"] {
        let mut name = file.0.clone().into_os_string();
        name.push(beside);
        // Either is there only as long as somebody has the file open.
        std::fs::remove_file(name).unwrap_or_default();
    }
}

#[test]
fn no_interval_is_an_error_that_names_the_file() {
    let file = Scratch::new("none");
    record(&file, 0, true);
    let error = Replay::open(&file.0, false).err().expect("nothing to show");
    let text = crate::error::message(&error);
    assert!(
        text.contains("places") || text.contains("no interval"),
        "{text}"
    );
    assert!(text.contains(&file.0.display().to_string()), "{text}");
}

#[tokio::test(start_paused = true)]
async fn it_plays_in_recorded_time_and_waits_at_the_end() {
    let file = Scratch::new("paced");
    record(&file, 3, true);
    let mut replay = Replay::open(&file.0, true).expect("a recording");
    let start = Instant::now();
    let mut at = Vec::new();
    for _ in 0..3 {
        let frame = replay.next().await.expect("readable").expect("a frame");
        let index = frame.position.map(|p| p.index);
        at.push((index, start.elapsed().as_secs()));
    }
    assert_eq!(at, [(Some(0), 0), (Some(1), 1), (Some(2), 2)]);
    let more = tokio::time::timeout(Duration::from_secs(3600), replay.next()).await;
    assert!(more.is_err(), "nothing comes after the end");
    // Space at the end plays it again.
    let again = replay
        .control(Control::Play(Play::Toggle))
        .expect("readable");
    assert_eq!(again.and_then(|f| f.position).map(|p| p.index), Some(0));
    let next = replay.next().await.expect("readable").expect("a frame");
    assert_eq!(next.position.map(|p| p.index), Some(1));
}

#[tokio::test(start_paused = true)]
async fn speed_and_steps_change_what_comes_when() {
    let file = Scratch::new("speed");
    record(&file, 4, true);
    let mut replay = Replay::open(&file.0, true).expect("a recording");
    replay.next().await.expect("readable");
    let ask = |replay: &mut Replay, play| {
        let frame = replay.control(Control::Play(play)).expect("readable");
        frame.and_then(|f| f.position).expect("a place")
    };
    ask(&mut replay, Play::Faster);
    let start = Instant::now();
    replay.next().await.expect("readable");
    assert_eq!(start.elapsed(), Duration::from_millis(500));
    let paused = ask(&mut replay, Play::Step(1));
    assert_eq!((paused.index, paused.is_playing), (2, false));
    let more = tokio::time::timeout(Duration::from_secs(60), replay.next()).await;
    assert!(more.is_err(), "a step pauses");
    let start = Instant::now();
    ask(&mut replay, Play::Toggle);
    replay.next().await.expect("readable");
    assert_eq!(start.elapsed(), Duration::from_millis(500));
    let shown = replay.control(Control::Show(TableId::Cpus));
    assert!(shown.expect("nothing to do").is_none());
}
