//! Files that no recorder wrote: an error in clear words or the right numbers, no panic.

#![expect(clippy::print_stdout, reason = "a test says what it met")]

use super::{
    Scratch,
    fixture::{Random, end, interval, metrics, run},
};
use crate::{
    name::is_unsafe,
    sample::{
        Interval,
        delta::{Madvise, MadviseId},
    },
    store::{Error, Recording, Writer, writer::beside},
};
use rusqlite::Connection;
use std::{path::Path, sync::Arc};

const INTERVALS: u64 = 4;

fn wrote() -> Vec<Interval> {
    (0..INTERVALS).map(|n| interval(n + 50, 5)).collect()
}

fn record(path: &Path) {
    let mut writer = Writer::create(path, &run()).expect("a new file");
    for interval in wrote() {
        writer.append(&interval).expect("written");
    }
    writer.set_metrics(&metrics()).expect("written");
    writer.finish(&end()).expect("finished");
}

/// Changes a recording with SQLite itself.
fn changed(path: &Path, sql: &str) {
    record(path);
    let conn = Connection::open(path).expect("a database");
    conn.execute_batch(sql).expect("good SQL");
}

/// The error, after a look at how it is said.
fn refused(path: &Path) -> Error {
    let error = Recording::open(path).map(|_| ()).expect_err("refused");
    let text = error.to_string();
    assert!(!text.chars().any(is_unsafe), "{text}");
    assert!(text.len() < 600, "{text}");
    error
}

/// Reads all; how many intervals were refused.
fn read_all(path: &Path, wrote: &[Interval]) -> Option<usize> {
    let mut recording = match Recording::open(path) {
        Ok(recording) => recording,
        Err(error) => {
            assert!(!error.to_string().chars().any(is_unsafe), "{error}");
            return None;
        }
    };
    let expected = crate::sample::run::Run {
        end: Some(end()),
        ..run()
    };
    assert_eq!(recording.run(), &expected);
    assert_eq!(recording.metrics(), metrics());
    let mut refused = 0;
    for (index, wrote) in wrote.iter().enumerate().take(recording.len()) {
        match recording.interval(index) {
            Ok(interval) => assert_eq!(&interval, wrote, "interval {index}"),
            Err(error) => {
                assert!(!error.to_string().chars().any(is_unsafe), "{error}");
                refused += 1;
            }
        }
    }
    Some(refused)
}

#[test]
fn truncation_is_seen_or_harmless() {
    let scratch = Scratch::new();
    let path = scratch.file();
    record(&path);
    let whole = std::fs::read(&path).expect("readable");
    let wrote = wrote();
    let mut opened = 0;
    let lengths = (0..whole.len())
        .step_by(1_531)
        .chain([1, 15, 16, 99, 100, 101, 511, 4095, 4096]);
    for length in lengths {
        std::fs::write(&path, &whole[..length]).expect("written");
        opened += usize::from(read_all(&path, &wrote).is_some());
    }
    std::fs::write(&path, &whole).expect("written");
    assert_eq!(read_all(&path, &wrote), Some(0));
    println!("{opened} of the cut files could be opened");
}

#[test]
fn flipped_bits_are_seen_or_harmless() {
    let scratch = Scratch::new();
    let path = scratch.file();
    record(&path);
    let whole = std::fs::read(&path).expect("readable");
    let wrote = wrote();
    let mut random = Random(0x000f_11b5);
    let (mut refused, mut damaged, mut harmless) = (0, 0, 0);
    for round in 0..400 {
        let mut bytes = whole.clone();
        // One bit, or a handful.
        for _ in 0..if round % 3 == 0 { 8 } else { 1 } {
            let at = usize::try_from(random.below(whole.len() as u64)).expect("small");
            bytes[at] ^= 1_u8 << random.below(8);
        }
        std::fs::write(&path, &bytes).expect("written");
        match read_all(&path, &wrote) {
            None => refused += 1,
            Some(0) => harmless += 1,
            Some(_) => damaged += 1,
        }
    }
    println!("refused {refused}, intervals refused {damaged}, all read {harmless}");
    assert!(
        refused > 0 && damaged > 0,
        "refused {refused}, damaged {damaged}"
    );
}

#[test]
fn what_is_no_recording_is_told_so() {
    let scratch = Scratch::new();
    let path = scratch.file();
    for (bytes, words) in [
        (&b""[..], "it is empty"),
        (b"SQLite format 3\0", "it is too short"),
        (&[b'x'; 200], "it is no SQLite file"),
    ] {
        std::fs::write(&path, bytes).expect("written");
        let error = refused(&path);
        assert!(matches!(error, Error::NotARecording { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    std::fs::remove_file(&path).expect("removed");
    let error = refused(&path);
    assert!(matches!(error, Error::Io { .. }), "{error}");
    let error = refused(&scratch.0);
    assert!(error.to_string().contains("no regular file"), "{error}");
    let conn = Connection::open(&path).expect("a database");
    conn.execute_batch("CREATE TABLE t (x)").expect("good SQL");
    drop(conn);
    let error = refused(&path);
    assert!(error.to_string().contains("another application"), "{error}");
}

#[test]
fn versions_and_foreign_objects_are_refused() {
    for (sql, words) in [
        ("PRAGMA application_id = 7", "another application"),
        (
            "PRAGMA user_version = 2",
            "schema version 2, and this version",
        ),
        ("PRAGMA user_version = 0", "schema version is 0"),
        ("PRAGMA user_version = -9", "schema version is -9"),
        ("CREATE VIEW v AS SELECT 1", "a view called \"v\""),
        (
            "CREATE TRIGGER t AFTER INSERT ON loss BEGIN DELETE FROM loss; END",
            "a trigger called \"t\"",
        ),
        ("CREATE INDEX i ON loss (total)", "an index called \"i\""),
        ("CREATE VIRTUAL TABLE f USING fts5(x)", "called \"f\""),
        ("DROP TABLE loss", "it has no table \"loss\""),
        (
            "DROP TABLE result_refused",
            "it has no table \"result_refused\"",
        ),
        (
            "ALTER TABLE loss ADD COLUMN x ANY",
            "table \"loss\" is not made as",
        ),
        (
            "DROP TABLE loss; CREATE VIEW loss AS SELECT 1",
            "a view called \"loss\"",
        ),
        (
            "CREATE VIEW \"\x1b[2J\u{202e}evil\" AS SELECT 1",
            "a view called \"\u{fffd}[2J\u{fffd}evil\"",
        ),
        ("DELETE FROM run", "does not add up"),
        (
            "DELETE FROM run; DELETE FROM checksum",
            "does not say what was recorded",
        ),
        (
            "UPDATE fact SET value = 'x'",
            "table \"fact\" does not add up",
        ),
        (
            "UPDATE metric SET value = 2 * value",
            "table \"metric\" does not add up",
        ),
        (
            "DELETE FROM interval WHERE interval = 1",
            "an interval is not there",
        ),
    ] {
        let scratch = Scratch::new();
        let path = scratch.file();
        changed(&path, sql);
        let text = refused(&path).to_string();
        assert!(text.contains(words), "{sql}: {text}");
    }
}

#[test]
fn tables_of_a_later_version_are_left_alone() {
    let scratch = Scratch::new();
    let path = scratch.file();
    changed(
        &path,
        "CREATE TABLE later (x); INSERT INTO later VALUES ('y')",
    );
    assert_eq!(read_all(&path, &wrote()), Some(0));
}

/// What a stranger changes is found out when the interval is read, and only that is refused.
#[test]
fn changed_rows_are_refused_one_by_one() {
    for sql in [
        "UPDATE process SET major = major + 1 WHERE at >> 18 = 2",
        "UPDATE lock_wait SET wait_ns = 0 WHERE at = (SELECT min(at) FROM lock_wait WHERE at >> 18 = 2 AND wait_ns > 0)",
        "DELETE FROM thread WHERE at = (SELECT max(at) FROM thread WHERE at >> 18 = 2)",
        "UPDATE interval SET t_real_ns = 5 WHERE interval = 2",
        "UPDATE interval SET digest = digest + 1 WHERE interval = 2",
        "UPDATE interval SET losses = 60000 WHERE interval = 2",
        "UPDATE process SET process = 99999 WHERE at >> 18 = 2",
        "UPDATE process SET is_workload = 7 WHERE at >> 18 = 2",
        "UPDATE lock_wait SET histogram = x'ffffffffffffffffffff' WHERE at >> 18 = 2",
        "UPDATE lock_wait SET histogram = x'7f01' WHERE at >> 18 = 2",
        "UPDATE lock_wait SET histogram = zeroblob(1000000) WHERE at >> 18 = 2",
        "UPDATE fault_kind SET path = 6 WHERE at >> 18 = 2",
        "UPDATE fault_kind SET backing = -1 WHERE at >> 18 = 2",
        "INSERT INTO spin_wait VALUES ((2 << 18) + 77, 8, 1, 1)",
        "INSERT INTO loss VALUES ((2 << 18) + 77, 9, 1, 1)",
        "INSERT INTO budget_part VALUES ((2 << 18) + 77, 99, 1, 1, 1, NULL)",
        "UPDATE cpu_time SET cpu = cpu + 4294967296 WHERE at >> 18 = 2",
        "INSERT INTO cpu_time VALUES ((2 << 18) + 77, 999, 1, NULL, NULL, 1, 1, 1, 1)",
    ] {
        let scratch = Scratch::new();
        let path = scratch.file();
        changed(&path, sql);
        let mut recording = Recording::open(&path).expect("a recording");
        let text = recording
            .interval(2)
            .map(|_| ())
            .expect_err(sql)
            .to_string();
        assert!(text.contains("interval 2: "), "{sql}: {text}");
        let wrote = wrote();
        for index in [0, 1, 3] {
            let read = recording.interval(index).expect("another interval");
            assert_eq!(read, wrote[index], "{sql}: {index}");
        }
    }
}

/// A file whose checksums are right may still hold what a terminal must not print.
#[test]
fn strings_are_scrubbed() {
    let evil = "a\x1b[2J\u{202e}\u{9b}\r\nb";
    let scratch = Scratch::new();
    let path = scratch.file();
    let mut run = run();
    run.host = evil.into();
    run.facts[0].value = Err(evil.into());
    let workload = run.workload.as_mut().expect("a workload");
    workload.argv = vec![evil.into()];
    workload.output.text = format!("one\ttwo\n{evil}\n");
    let mut interval = interval(3, 4);
    let mut delta = crate::sample::Delta::clone(&interval.delta);
    for process in delta.processes.values_mut() {
        process.comm = evil.into();
    }
    let tgid = *delta.named_processes().first().expect("a process");
    delta.names.insert(tgid, evil.into());
    interval.delta = delta.into();
    interval.notes = vec![evil.into()];
    let mut writer = Writer::create(&path, &run).expect("a new file");
    writer.append(&interval).expect("written");
    writer.finish(&end()).expect("finished");
    let mut recording = Recording::open(&path).expect("a recording");
    let clean = "a\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}\u{fffd}b";
    let run = recording.run();
    assert_eq!(run.host, clean);
    assert_eq!(run.facts[0].value, Err(clean.into()));
    let workload = run.workload.as_ref().expect("a workload");
    assert_eq!(workload.argv, [clean]);
    assert_eq!(
        workload.output.text,
        "one\ttwo\na\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}\nb\n"
    );
    let read = recording.interval(0).expect("an interval");
    assert_eq!(read.notes, [clean]);
    assert_eq!(&*read.delta.names[&tgid], clean);
    assert!(read.delta.processes.values().all(|p| &*p.comm == clean));
}

/// Counters whose sums would overflow, and clocks of the far future, are refused although the checksums are right.
#[test]
fn what_no_kernel_counts_is_refused() {
    let most = |interval: &mut Interval, ns| {
        let delta = Arc::make_mut(&mut interval.delta);
        delta.madvise = [(
            MadviseId {
                tgid: 1,
                advice: 4,
                is_remote: false,
            },
            Madvise {
                ns,
                ..Madvise::default()
            },
        )]
        .into();
    };
    let scratch = Scratch::new();
    let path = scratch.file();
    let mut wrote = wrote();
    most(&mut wrote[0], u64::MAX);
    // Two of them are too much, one is not, however often it is read.
    most(&mut wrote[1], (1 << 62) + (1 << 61));
    most(&mut wrote[2], 1 << 62);
    Arc::make_mut(&mut wrote[3].delta).t_mono_ns = 1 << 62;
    let mut writer = Writer::create(&path, &run()).expect("a new file");
    for interval in &wrote {
        writer.append(interval).expect("written");
    }
    writer.finish(&end()).expect("finished");
    let mut recording = Recording::open(&path).expect("a recording");
    for _ in 0..3 {
        let read = recording.interval(1).expect("it fits alone");
        assert_eq!(read, wrote[1]);
    }
    for (index, words) in [
        (0, "counters are larger"),
        (2, "counters are larger"),
        (3, "a clock or a level is larger"),
    ] {
        let error = recording.interval(index).map(|_| ()).expect_err("too much");
        assert!(error.to_string().contains(words), "{index}: {error}");
    }
    let mut recording = Recording::open(&path).expect("a recording");
    let read = recording.interval(2).expect("it fits alone");
    assert_eq!(read.delta.madvise, wrote[2].delta.madvise);
}

/// Rows without end, and texts without end, are refused before they fill the memory.
#[test]
fn huge_things_are_refused() {
    let scratch = Scratch::new();
    let path = scratch.file();
    changed(
        &path,
        "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 1100000)
         INSERT INTO vmstat SELECT (1 << 18) + i % 200000, 1, 1 FROM n WHERE i < 200000;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1100000)
         INSERT INTO name SELECT 77777, i, 1 FROM n;
         UPDATE interval SET vmstat = 77777 WHERE interval = 2",
    );
    let mut recording = Recording::open(&path).expect("a recording");
    let text = |error: Error| error.to_string();
    let few = text(recording.interval(1).map(|_| ()).expect_err("changed"));
    assert!(few.contains("do not add up"), "{few}");
    let many = text(recording.interval(2).map(|_| ()).expect_err("changed"));
    assert!(
        many.contains("too large to read") && many.contains("more rows"),
        "{many}"
    );
    drop(recording);

    let scratch = Scratch::new();
    let path = scratch.file();
    changed(
        &path,
        "UPDATE string SET text = CAST(zeroblob(20000000) AS TEXT)",
    );
    let mut recording = Recording::open(&path).expect("a recording");
    let long = text(recording.interval(1).map(|_| ()).expect_err("changed"));
    assert!(
        long.contains("too large to read") && long.contains("too big"),
        "{long}"
    );

    let scratch = Scratch::new();
    let path = scratch.file();
    changed(
        &path,
        "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
         INSERT INTO label SELECT i, 'k', 'v' FROM n",
    );
    let error = refused(&path);
    assert!(matches!(error, Error::TooMuch { .. }), "{error}");
}

/// A million call chains that nothing refers to cost nothing.
#[test]
fn a_million_chains_are_not_read_at_once() {
    let scratch = Scratch::new();
    let path = scratch.file();
    changed(
        &path,
        "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 1000100)
         INSERT INTO chain SELECT i, 0, 1, 0 FROM n",
    );
    assert_eq!(read_all(&path, &wrote()), Some(0));
}

#[test]
fn a_journal_beside_it_is_not_played_back() {
    let scratch = Scratch::new();
    let path = scratch.file();
    record(&path);
    std::fs::write(beside(&path, "-journal"), [0xd9; 600]).expect("written");
    let error = refused(&path);
    assert!(error.to_string().contains("rollback journal"), "{error}");
}

/// A log that belongs to something else is not taken for ours.
#[test]
fn a_foreign_log_changes_nothing() {
    let scratch = Scratch::new();
    let path = scratch.file();
    record(&path);
    std::fs::write(beside(&path, "-wal"), [0x37; 9_000]).expect("written");
    assert_eq!(read_all(&path, &wrote()), Some(0));
}
