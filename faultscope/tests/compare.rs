//! `compare` as it is run: files in, status out.
#![expect(
    clippy::print_stdout,
    reason = "a skip and a time are told; the harness owns the output"
)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Instant;

use faultscope::sample::delta::{CallChain, Cpu, Lock, LockId};
use faultscope::sample::run::{End, Ended, Run, RunFact, Workload};
use faultscope::sample::{Delta, Interval, Scope, counters::MMAP_LOCK};
use faultscope::store::{Recording, Writer};

fn faultscope(args: &[&str], files: &[PathBuf]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_faultscope"))
        .args(args)
        .args(files)
        .output()
        .expect("the binary runs")
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("it exits")
}

fn said(output: &Output) -> String {
    let all =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    all.concat()
}

/// A directory that goes when the test ends.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("compare-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory is made");
        Self(path)
    }

    /// Runs made of a table with a column for each side.
    fn import(&self, text: &str) -> [PathBuf; 2] {
        let table = self.0.join("table.tsv");
        std::fs::write(&table, text).expect("writable");
        let out = self.0.to_str().expect("UTF-8");
        let done = faultscope(&["import", "-o", out], &[table]);
        assert_eq!(status(&done), 0, "{}", said(&done));
        ["old", "new"].map(|side| self.0.join(format!("table-{side}.fsc")))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

const TABLE: &str = "# unit: 1/s\n# direction: higher\n# metric: transactions/s\nthreads\told\tnew\n1\t600\t545\n8\t1000\t2087\n";

#[test]
fn statuses_of_two_files() {
    let place = Place::new("statuses");
    let files = place.import(TABLE);
    let done = faultscope(&["compare"], &files);
    assert_eq!(status(&done), 0, "{}", said(&done));
    assert!(said(&done).contains("no single verdict"), "{}", said(&done));
    let done = faultscope(&["compare", "--require-verdict"], &files);
    assert_eq!(status(&done), 3, "{}", said(&done));
    let done = faultscope(&["compare", "--gate", "no such=5"], &files);
    assert_eq!(status(&done), 2, "{}", said(&done));
    let done = faultscope(&["compare", "--format", "json"], &files);
    assert_eq!(status(&done), 0, "{}", said(&done));
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(json["schema"], "faultscope.compare/1");
}

#[test]
fn hosts_that_differ_end_with_four() {
    let place = Place::new("hosts");
    let files = place.import(&format!("# host: old=a new=b\n{TABLE}"));
    let done = faultscope(&["compare"], &files);
    assert_eq!(status(&done), 4, "{}", said(&done));
    assert!(said(&done).contains("--vary host"), "{}", said(&done));
    for option in [["--vary", "host"].as_slice(), &["--force"]] {
        let args = [&["compare"], option].concat();
        let done = faultscope(&args, &files);
        assert_eq!(status(&done), 0, "{}", said(&done));
    }
}

#[test]
fn a_wrong_line_shows_the_right_one() {
    let golden =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings/v1-sysbench.fsc");
    let three = [golden.clone(), golden.clone(), golden.clone()];
    let done = faultscope(&["compare"], &three);
    assert_eq!(status(&done), 2);
    assert!(said(&done).contains("--against"), "{}", said(&done));
    let done = faultscope(&["compare"], &three[..2]);
    assert_eq!(status(&done), 2);
    assert!(
        said(&done).contains("the same run, on both sides"),
        "{}",
        said(&done)
    );
    let missing = PathBuf::from("/nonexistent.fsc");
    let done = faultscope(&["compare"], &[missing, golden]);
    assert_eq!(status(&done), 2, "{}", said(&done));
    let empty = Place::new("empty");
    let done = faultscope(&["compare"], &[empty.0.clone(), empty.0.clone()]);
    assert_eq!(status(&done), 2);
    assert!(
        said(&done).contains("holds no recording"),
        "{}",
        said(&done)
    );
}

/// The golden recording as another run, with multi-generational LRU in this state.
fn golden_with_mglru(place: &Place, name: &str, state: &str) -> PathBuf {
    let golden =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings/v1-sysbench.fsc");
    let mut recording = Recording::open(&golden).expect("a recording");
    let mut run = recording.run().clone();
    run.id = format!("{:0>32}", state.trim_start_matches("0x"));
    run.facts.retain(|fact| fact.id != "mglru");
    run.facts.push(RunFact {
        id: "mglru".to_owned(),
        value: Ok(state.to_owned()),
    });
    let file = place.0.join(name);
    let mut writer = Writer::create(&file, &run).expect("a new file");
    for index in 0..recording.len() {
        let interval = recording.interval(index).expect("an interval");
        writer.append(&interval).expect("written");
    }
    if let Some(workload) = &run.workload {
        writer.set_workload(workload).expect("written");
    }
    writer.set_metrics(recording.metrics()).expect("written");
    writer.finish(&run.end.expect("it ended")).expect("written");
    file
}

#[test]
fn another_mglru_state_ends_with_four() {
    let place = Place::new("mglru");
    let files = [("off.fsc", "0x0000"), ("on.fsc", "0x0007")]
        .map(|(name, state)| golden_with_mglru(&place, name, state));
    let done = faultscope(&["compare"], &files);
    assert_eq!(status(&done), 4, "{}", said(&done));
    assert!(
        said(&done).contains("mglru: 0x0000 -> 0x0007") && said(&done).contains("--vary mglru"),
        "{}",
        said(&done)
    );
    for option in [["--vary", "mglru"].as_slice(), &["--force"]] {
        let done = faultscope(&[&["compare"], option].concat(), &files);
        assert_eq!(status(&done), 0, "{}", said(&done));
        let is_forced = option[0] == "--force";
        assert_eq!(
            said(&done).contains("FORCED: the sides are not comparable (mglru)"),
            is_forced,
            "{}",
            said(&done)
        );
    }
}

/// Two sweeps of `bench fault`, recorded here without probes.
#[test]
fn recorded_sweeps_are_compared_by_threads() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("SKIP a sweep over threads needs two CPUs");
        return;
    }
    let place = Place::new("sweeps");
    let sides = ["before", "after"].map(|side| {
        let directory = place.0.join(side);
        let out = directory.to_str().expect("UTF-8");
        let made = faultscope(
            &[
                "bench",
                "fault",
                "--bare",
                "--case",
                "anon",
                "--threads",
                "1,2",
                "--size",
                "1M",
                "--rounds",
                "4",
                "--reps",
                "4",
                "-o",
                out,
            ],
            &[],
        );
        assert_eq!(status(&made), 0, "{}", said(&made));
        directory
    });
    let done = faultscope(&["compare", "--by-threads", "--format", "json"], &sides);
    assert_eq!(
        status(&done),
        0,
        "sweeps of like commands match: {}",
        said(&done)
    );
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let sweep = &json["sweep"];
    assert_eq!(sweep["metric"], "fault/wsec");
    let by_threads = sweep["by_threads"].as_array().expect("a list");
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    assert_eq!(by_threads.len(), 2, "{sweep:#}");
    for (at, threads) in by_threads.iter().zip([1, 2]) {
        assert_eq!(at["threads"], threads);
        assert_eq!(at["cells"], 1);
        let (low, high) = (number(&at["interval"][0]), number(&at["interval"][1]));
        let ratio = number(&at["ratio"]);
        assert!(0.0 < low && low <= ratio && ratio <= high, "{at:#}");
    }
    let mean = &sweep["geomean"];
    assert_eq!(mean["cells"], 2);
    assert!(number(&mean["min"]) <= number(&mean["ratio"]));
    assert!(number(&mean["ratio"]) <= number(&mean["max"]));
    let curves = sweep["curves"].as_array().expect("a list");
    assert_eq!(curves.len(), 1, "{sweep:#}");
    assert_eq!(curves[0]["over"], "threads");
    assert_eq!(curves[0]["efficiency"].as_array().map(Vec::len), Some(2));
    // Two points are no curve of the law.
    assert_eq!(curves[0]["law"], serde_json::Value::Null);
    let done = faultscope(&["compare", "--by-threads"], &sides);
    let text = said(&done);
    for part in [
        "ratio by threads, after / before; above 1 is better",
        "efficiency: throughput of n threads",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains("kernel figures"), "there are none: {text}");
}

/// Runs and classes of the large comparison.
const RUNS: u32 = 200;
const CLASSES: u32 = 50;

/// A run in which each of fifty functions waited for mmap_lock, in one interval.
fn contended(place: &Place, number: u32) -> PathBuf {
    let at = u64::from(number) * 20_000_000_000;
    let mut cpu = Cpu::default();
    cpu.counters[Scope::User(1)] = 100_000;
    cpu.counters[Scope::Waits(MMAP_LOCK)] = u64::from(CLASSES) * 200;
    let mut chains = HashMap::new();
    let mut locks = HashMap::new();
    for class in 1..=CLASSES {
        let site = format!("site_{class:02}");
        let chain = CallChain {
            chain: vec![site.clone(), "do_syscall_64".to_owned()],
            site,
        };
        chains.insert(class, Arc::new(chain));
        let id = LockId {
            is_site: true,
            class: MMAP_LOCK,
            mode: 4,
            node: 0,
            id: 0,
            memcg: 0,
            stack: class,
            owner: 20,
        };
        let lock = Lock {
            waits: 200,
            wait_ns: 1_000_000 + u64::from((number * 7 + class) % 11) * 1_000,
            ..Lock::default()
        };
        locks.insert(id, lock);
    }
    let delta = Delta {
        t_mono_ns: at + 10_000_000_000,
        t_real_ns: at + 10_000_000_000,
        interval_ns: 10_000_000_000,
        cpus: vec![cpu],
        chains: Arc::new(chains),
        locks,
        ..Delta::default()
    };
    let fact = |id: &str, value: &str| RunFact {
        id: id.to_owned(),
        value: Ok(value.to_owned()),
    };
    let run = Run {
        id: format!("{number:032x}"),
        host: "box".to_owned(),
        kernel: "6.12.0".to_owned(),
        start_real_ns: at + 1,
        start_mono_ns: at + 1,
        facts: vec![fact("host_id", "aa"), fact("mglru", "0x0000")],
        ..Run::default()
    };
    let workload = Workload {
        argv: vec!["work".to_owned()],
        tgid: 20,
        start_mono_ns: at + 1,
        ended: Some(Ended {
            mono_ns: at + 10_000_000_000 + u64::from(number % 9) * 1_000_000,
            code: Some(0),
            ..Ended::default()
        }),
        ..Workload::default()
    };
    let file = place.0.join(format!("run-{number:03}.fsc"));
    let mut writer = Writer::create(&file, &run).expect("a new file");
    let interval = Interval {
        delta: Arc::new(delta),
        ..Interval::default()
    };
    writer.append(&interval).expect("written");
    writer.set_workload(&workload).expect("written");
    let end = End {
        mono_ns: at + 10_000_000_000,
        reason: "the command ended".to_owned(),
    };
    writer.finish(&end).expect("written");
    file
}

/// Every class of every run is tested; `cargo xtask bench` reads the time that is printed.
#[test]
fn two_hundred_files_of_fifty_classes_are_compared() {
    let place = Place::new("many");
    let files: Vec<PathBuf> = (1..=RUNS).map(|n| contended(&place, n)).collect();
    let half =
        |rest: usize| -> Vec<PathBuf> { files.iter().skip(rest).step_by(2).cloned().collect() };
    let begin = Instant::now();
    let done = Command::new(env!("CARGO_BIN_EXE_faultscope"))
        .args(["compare", "--format", "json"])
        .args(half(0))
        .arg("--against")
        .args(half(1))
        .output()
        .expect("the binary runs");
    println!(
        "compare of {RUNS} files of {CLASSES} lock classes: {:.2} s",
        begin.elapsed().as_secs_f64()
    );
    assert_eq!(status(&done), 0, "{}", said(&done));
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(json["locks"]["tested"], CLASSES);
    let classes = json["locks"]["classes"].as_array().expect("a list");
    assert_eq!(classes.len(), CLASSES as usize);
    for side in ["before", "after"] {
        let runs = json["runs"][side].as_array().expect("a list");
        assert_eq!(runs.len(), RUNS as usize / 2);
    }
}
