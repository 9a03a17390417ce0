//! Recorders that are killed, disks that are full, directories that cannot be written.

#![expect(clippy::print_stdout, reason = "a test says what it met")]

use super::{
    Scratch,
    fixture::{Random, end, interval, run},
    names,
};
use crate::store::{Error, Recording, Writer, writer::beside};
use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

/// Tells the test program that it is the recorder, and where to.
const TARGET: &str = "FAULTSCOPE_TEST_RECORDER";

/// Not a test of its own: what the killed recorder does.
#[test]
fn recorder() {
    let Some(path) = std::env::var_os(TARGET) else {
        return;
    };
    let mut writer = Writer::create(Path::new(&path), &run()).expect("a new file");
    for n in 0.. {
        writer.append(&interval(n, 6)).expect("written");
        println!("closed {}", n + 1);
    }
}

/// A recorder in another process, killed at a random moment; intervals it said were closed.
fn killed(path: &Path, after: Duration) -> usize {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "store::tests::kill::recorder", "--nocapture"])
        .env(TARGET, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    let out = child.stdout.take().expect("a pipe");
    let mut lines = BufReader::new(out).lines();
    // Killing begins with the first interval, so that there is something to lose.
    let first = lines
        .by_ref()
        .map_while(Result::ok)
        .find(|line| line.starts_with("closed"));
    assert!(first.is_some(), "the recorder writes");
    let killer = std::thread::spawn(move || {
        std::thread::sleep(after);
        child.kill().expect("killed");
        child.wait().expect("waited for");
    });
    let closed = 1 + lines
        .map_while(Result::ok)
        .filter(|line| line.starts_with("closed"))
        .count();
    killer.join().expect("no panic");
    closed
}

fn integrity(path: &Path) -> String {
    let conn = rusqlite::Connection::open(path).expect("a database");
    conn.query_row("PRAGMA integrity_check", (), |row| row.get(0))
        .expect("checked")
}

#[test]
fn a_killed_recorder_loses_at_most_the_open_interval() {
    let mut random = Random(0x6b11);
    let mut seen = Vec::new();
    for round in 0..20 {
        let scratch = Scratch::new();
        let path = scratch.file();
        let closed = killed(&path, Duration::from_micros(random.below(120_000)));
        let mut recording = Recording::open(&path).expect("a recording");
        assert!(!recording.is_complete());
        let found = recording.len();
        // The last may have been closed without having been told of.
        assert!(
            found == closed || found == closed + 1,
            "{found} of {closed} in round {round}"
        );
        for index in 0..found {
            let read = recording.interval(index).expect("an interval");
            assert_eq!(
                read,
                interval(index as u64, 6),
                "interval {index} in round {round}"
            );
        }
        drop(recording);
        assert_eq!(integrity(&path), "ok", "round {round}");
        seen.push(found);
    }
    println!("intervals found in twenty rounds: {seen:?}");
}

/// Where the log's index cannot be made beside the file, a copy is read.
#[test]
fn a_killed_recorders_file_opens_in_a_directory_that_cannot_be_written() {
    let scratch = Scratch::new();
    let path = scratch.file();
    let closed = killed(&path, Duration::from_millis(30));
    let directory = scratch.0.join("moved");
    std::fs::create_dir(&directory).expect("a new directory");
    let moved = directory.join("a ?%#'&.fsc");
    // Whoever sends it sends no index.
    for suffix in ["", "-wal"] {
        std::fs::copy(beside(&path, suffix), beside(&moved, suffix)).expect("copied");
    }
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(&directory, mode(0o500)).expect("ours");
    let before = names(&directory);
    let opened = Recording::open(&moved).map(|recording| recording.len());
    assert_eq!(names(&directory).len().min(2), before.len());
    std::fs::set_permissions(&directory, mode(0o700)).expect("ours");
    let found = opened.expect("a recording");
    assert!(found >= closed, "{found} of {closed}");
    // Without the log, what was copied into the file before is there.
    std::fs::remove_file(beside(&moved, "-wal")).expect("removed");
    let early = Recording::open(&moved).expect("a recording").len();
    assert!(early <= found, "{early}");
}

/// Runs in a small file system of its own, if this process may make one.
fn with_small_disk(test: impl FnOnce(PathBuf)) {
    let scratch = Scratch::new();
    let disk = scratch.0.join("disk");
    std::fs::create_dir(&disk).expect("a new directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=600k", "tmpfs"])
        .arg(&disk)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        println!("SKIP this process may not mount a small file system");
        return;
    }
    let path = disk.join("run.fsc");
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(path)));
    let status = Command::new("umount").arg(&disk).status();
    assert!(status.is_ok_and(|status| status.success()), "unmounted");
    done.expect("the test passes");
}

#[test]
fn a_full_disk_costs_nothing_that_was_recorded() {
    with_small_disk(|path| {
        let mut writer = Writer::create(&path, &run()).expect("a new file");
        let mut closed = 0;
        let error = loop {
            match writer.append(&interval(closed, 6)) {
                Ok(()) => closed += 1,
                Err(error) => break error,
            }
            assert!(closed < 100_000, "the disk is never full");
        };
        assert!(closed > 0);
        let text = error.to_string();
        assert!(matches!(error, Error::Write { .. }), "{text}");
        assert!(text.contains("no space is left on the device"), "{text}");
        assert!(text.contains("run.fsc"), "{text}");
        // The end may just fit where an interval does not.
        let finished = writer.finish(&end());
        let mut recording = Recording::open(&path).expect("a recording");
        assert_eq!(recording.len() as u64, closed);
        assert_eq!(recording.is_complete(), finished.is_ok(), "{finished:?}");
        for index in 0..closed {
            let at = usize::try_from(index).expect("small");
            let read = recording.interval(at).expect("an interval");
            assert_eq!(read, interval(index, 6), "interval {index}");
        }
        drop(recording);
        println!("{closed} intervals before the disk was full");
    });
}

#[test]
fn a_directory_that_is_not_there_is_told_in_one_message() {
    let scratch = Scratch::new();
    let path = scratch.0.join("none/run.fsc");
    let error = Writer::create(&path, &run()).expect_err("refused");
    let text = error.to_string();
    assert!(matches!(error, Error::Io { .. }), "{text}");
    assert!(
        text.starts_with("cannot create \"") && text.contains("No such file"),
        "{text}"
    );
}
