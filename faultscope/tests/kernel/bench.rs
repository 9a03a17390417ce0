//! `bench`: what the probes count, what the kernel accounts and what a case must cause are the same.

use std::process::{Command, Output, Stdio};

use faultscope::store::Recording;
use faultscope::workload::bench::{BenchResult, read};

use crate::record::Directory;
use crate::support::{demand, demand_exactly, demand_near, feature, object, skip};

/// Memory of a point: 4,096 base pages, small enough for an emulated guest.
const SIZE: &str = "16M";
/// Pages of a point, twice over.
const PAGES: u64 = 2 * 4096;

fn bench(directory: &Directory, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultscope"));
    command.args(["bench", "fault", "--size", SIZE, "--rounds", "2"]);
    command.args(arguments).arg("-o").arg(&directory.0);
    command.arg("--files").arg(std::env::temp_dir());
    if let Some(object) = object()
        && !arguments.contains(&"--bare")
    {
        command.arg("--bpf-object").arg(object);
    }
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    println!("{}", String::from_utf8_lossy(&output.stdout).trim_end());
    println!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
    output
}

/// What a recording's process printed, and the faults of its members that the probes counted, from their creation on.
fn point(directory: &Directory, name: &str) -> (BenchResult, u64) {
    let mut recording = Recording::open(&directory.file(name)).expect("a recording");
    let workload = recording.run().workload.clone().expect("a process");
    let mut results = read(&workload.output.text).expect("its result");
    assert_eq!(results.len(), 1);
    let mut faults = 0;
    for index in 0..recording.len() {
        let delta = recording.interval(index).expect("an interval").delta;
        let members = delta.threads.values().filter(|thread| {
            let process = delta.processes.get(&thread.process);
            &*thread.comm == faultscope::load::MEMBER && process.is_some_and(|p| p.is_workload)
        });
        faults += members.map(|t| t.counters.faults()).sum::<u64>();
    }
    (results.remove(0), faults)
}

/// At most 0.1 % of what is wanted, and the few faults of a thread's end.
fn within(members: u64) -> u64 {
    PAGES / 1000 + members
}

/// Demands that probes, kernel and prediction agree on a point of one fault a page.
fn demand_agreement(directory: &Directory, name: &str, members: u64, traps: bool) {
    let (result, seen) = point(directory, name);
    let count = |figure: &str| result.events(figure).expect("a figure");
    let (faults, other) = (count("faults"), count("other_faults"));
    println!("  {name}");
    demand_exactly("pages", count("pages"), PAGES);
    demand_near(
        "faults by getrusage",
        faults,
        count("faults_predicted"),
        within(members),
    );
    if traps {
        demand_near(
            "faults by the probes",
            seen - other,
            faults,
            within(members),
        );
    }
}

#[test]
fn faults_of_every_backing_are_those_predicted() {
    let directory = Directory::new("bench");
    let cases = [
        "anon",
        "anon-read",
        "anon-line",
        "anon-populate",
        "private",
        "tmpfs",
        "tmpfs-read",
        "cow",
    ];
    let list = cases.join(",");
    // Each point attaches and detaches everything, which takes an emulated guest its time.
    for (cases, members) in [
        (list.as_str(), ["--threads", "2"]),
        ("anon", ["--threads", "1"]),
        ("anon,cow", ["--processes", "2"]),
    ] {
        let output = bench(&directory, &[&["--case", cases], &members[..]].concat());
        let status = output.status.code();
        assert!(matches!(status, Some(0 | 4)), "{status:?}");
    }
    for case in cases {
        let name = format!("fault-{case}-2t-16m-1.fsc");
        demand_agreement(&directory, &name, 2, case != "anon-populate");
    }
    demand_agreement(&directory, "fault-anon-1t-16m-1.fsc", 1, true);
    demand_agreement(&directory, "fault-anon-2p-16m-1.fsc", 2, true);
    demand_agreement(&directory, "fault-cow-2p-16m-1.fsc", 2, true);
    feature("faults of bench fault are those predicted", Ok(()));
}

#[test]
fn files_of_a_disk_fault_once_a_page_or_once_a_folio() {
    let directory = Directory::new("bench-file");
    let output = bench(
        &directory,
        &[
            "--case",
            "private-read,shared,shared-read",
            "--threads",
            "2",
        ],
    );
    assert!(matches!(output.status.code(), Some(0 | 4 | 5)));
    for case in ["private-read", "shared", "shared-read"] {
        let name = format!("fault-{case}-2t-16m-1.fsc");
        if !directory.file(&name).exists() {
            skip("the file cannot be made");
            return;
        }
        let (result, seen) = point(&directory, &name);
        let count = |figure: &str| result.events(figure);
        let faults = count("faults").expect("a figure");
        let most = count("faults_predicted").expect("a figure");
        let least = count("faults_predicted_least").unwrap_or(0);
        println!("  {case}: {faults} faults, {least} to {most} predicted");
        assert!(
            (least..=most + within(2)).contains(&faults),
            "{case}: {faults} faults, {least} to {most} predicted"
        );
        demand_near(
            "faults by the probes",
            seen - count("other_faults").expect("a figure"),
            faults,
            within(2),
        );
    }
}

#[test]
fn huge_pages_fault_once_each_or_say_why_not() {
    let directory = Directory::new("bench-huge");
    let output = bench(
        &directory,
        &["--case", "anon-thp,anon-64k", "--threads", "2"],
    );
    let status = output.status.code();
    assert!(matches!(status, Some(0 | 4 | 5)), "{status:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    for case in ["anon-thp", "anon-64k"] {
        let name = format!("fault-{case}-2t-16m-1.fsc");
        if directory.file(&name).exists() {
            let (result, seen) = point(&directory, &name);
            let count = |figure: &str| result.events(figure).expect("a figure");
            // Folios are counted for the whole machine.
            demand_near(
                "faults by getrusage",
                count("faults"),
                count("faults_predicted"),
                4,
            );
            demand_near(
                "faults by the probes",
                seen - count("other_faults"),
                count("faults"),
                4,
            );
        } else {
            assert!(
                said.contains(&format!("{case}, 2 threads, 16.0MiB: skipped: ")),
                "{said}"
            );
            assert_eq!(status, Some(5));
        }
    }
}

#[test]
fn what_cannot_be_run_is_skipped_and_the_rest_is_made() {
    let directory = Directory::new("bench-skip");
    let output = bench(&directory, &["--threads", "1,4096", "--bare"]);
    assert_eq!(output.status.code(), Some(5));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("anon, 4096 threads, 16.0MiB: skipped: 4096 threads need a CPU each"),
        "{said}"
    );
    assert!(said.contains("1 points made, 1 skipped"), "{said}");
    let (result, seen) = point(&directory, "fault-anon-1t-16m-1.fsc");
    demand("pages", result.events("pages").expect("a figure"), PAGES);
    demand_exactly("faults by probes there are none of", seen, 0);
    // The same directory again: nothing is overwritten.
    let again = bench(&directory, &["--threads", "1", "--bare"]);
    assert_eq!(again.status.code(), Some(2));
}

#[test]
fn an_interrupted_sweep_keeps_and_shows_the_points_made() {
    use std::io::{BufRead as _, BufReader, Read as _};
    let directory = Directory::new("bench-stop");
    let mut child = Command::new(env!("CARGO_BIN_EXE_faultscope"))
        .args([
            "bench",
            "fault",
            "--bare",
            "--threads",
            "1",
            "--reps",
            "1000",
        ])
        .args(["--size", SIZE, "--rounds", "2", "-o"])
        .arg(&directory.0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    for _ in 0..3 {
        line.clear();
        out.read_line(&mut line).expect("a row");
    }
    assert!(line.starts_with("anon "), "{line}");
    let pid = libc::pid_t::try_from(child.id()).expect("a process id");
    // SAFETY: plain numbers; the process is our child and was not waited for.
    unsafe { libc::kill(pid, libc::SIGINT) };
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("its tables");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    let rows = 2 + rest.lines().take_while(|l| l.starts_with("anon ")).count();
    let kept = std::fs::read_dir(&directory.0)
        .expect("the directory")
        .flatten()
        .filter(|f| f.path().extension().is_some_and(|e| e == "fsc"))
        .count();
    demand_exactly("recordings", kept as u64, rows as u64);
    assert!(rest.contains("Faults of the measured part"), "{rest}");
}
