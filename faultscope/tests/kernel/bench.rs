//! `bench`: what the probes count, what the kernel accounts and what a case must cause are the same.

use std::collections::BTreeSet;
use std::process::{Command, Output, Stdio};

use faultscope::sample::delta::{FAULT_BACKINGS, GUP, POPULATE};
use faultscope::store::Recording;
use faultscope::workload::bench::{BenchResult, read};

use crate::record::Directory;
use crate::support::{Setting, demand, demand_exactly, demand_near, feature, object, skip};

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

/// What a recording says of a point.
struct Point {
    /// What its process printed.
    result: BenchResult,
    /// Faults of its members that the probes counted, from their creation on.
    trapped: u64,
    /// Faults of its processes that trapped nowhere, or why they were not counted.
    untrapped: Result<u64, String>,
    /// Faults of the machine that made a huge page, and base pages that faults mapped by folios between.
    huge: u64,
    large: u64,
}

impl Point {
    fn of(directory: &Directory, name: &str) -> Self {
        let mut recording = Recording::open(&directory.file(name)).expect("a recording");
        let workload = recording.run().workload.clone().expect("a process");
        let mut results = read(&workload.output.text).expect("its result");
        assert_eq!(results.len(), 1);
        let mut point = Self {
            result: results.remove(0),
            trapped: 0,
            untrapped: Ok(0),
            huge: 0,
            large: 0,
        };
        let thp = FAULT_BACKINGS.iter().position(|name| *name == "thp");
        for index in 0..recording.len() {
            let interval = recording.interval(index).expect("an interval");
            let delta = &interval.delta;
            let members = delta.threads.values().filter(|thread| {
                let process = delta.processes.get(&thread.process);
                &*thread.comm == faultscope::load::MEMBER && process.is_some_and(|p| p.is_workload)
            });
            point.trapped += members.map(|t| t.counters.faults()).sum::<u64>();
            let work: BTreeSet<u32> = delta
                .processes
                .iter()
                .filter(|(_, process)| process.is_workload)
                .map(|(id, _)| id.tgid)
                .collect();
            let passes = delta.process_passes.iter();
            let own = passes.filter(|(tgid, _)| work.contains(tgid));
            let n: u64 = own.map(|(_, p)| p.paths[POPULATE] + p.paths[GUP]).sum();
            let mut missing = interval.missing.iter();
            point.untrapped = match missing.find(|m| &*m.signal == "fault_latency") {
                Some(missing) => Err(missing.reason.clone()),
                None => point.untrapped.map(|so_far| so_far + n),
            };
            for ((_, backing), passes) in &delta.passes {
                if Some(*backing) == thp {
                    point.huge += passes.faults;
                } else {
                    point.large += passes.large;
                }
            }
        }
        point
    }

    fn count(&self, figure: &str) -> u64 {
        self.result
            .events(figure)
            .unwrap_or_else(|| panic!("no figure {figure}"))
    }

    /// Faults in the measured part by the probes. getrusage(2) tells exactly which lie outside of it: what the members
    /// faulted from their creation to the end of their exit, less what they did between start and end.
    fn trapped_in_part(&self) -> u64 {
        let other = self.count("other_faults");
        assert!(
            self.trapped >= other,
            "{} trapped, {other} outside",
            self.trapped
        );
        self.trapped - other
    }
}

/// 0.1 % of what is wanted.
fn within(wanted: u64) -> u64 {
    wanted / 1000
}

/// Demands that probes, kernel and prediction agree on a point.
fn demand_agreement(directory: &Directory, name: &str) -> Point {
    let point = Point::of(directory, name);
    let wanted = point.count("faults_predicted");
    println!("  {name}");
    demand_faults(&point, wanted);
    point
}

/// Demands the faults that were predicted, by getrusage(2) and by the probes.
fn demand_faults(point: &Point, wanted: u64) {
    demand_exactly("pages", point.count("pages"), PAGES);
    let faults = point.count("faults");
    demand_near("faults by getrusage", faults, wanted, within(wanted));
    demand_near(
        "faults by the probes",
        point.trapped_in_part(),
        faults,
        within(wanted),
    );
}

#[test]
fn faults_of_every_backing_are_those_predicted() {
    let directory = Directory::new("bench");
    let cases = [
        "anon",
        "anon-read",
        "anon-line",
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
        demand_agreement(&directory, &format!("fault-{case}-2t-16m-1.fsc"));
    }
    demand_agreement(&directory, "fault-anon-1t-16m-1.fsc");
    demand_agreement(&directory, "fault-anon-2p-16m-1.fsc");
    demand_agreement(&directory, "fault-cow-2p-16m-1.fsc");
    feature("faults of bench fault are those predicted", Ok(()));
}

/// `MAP_POPULATE` and `MADV_POPULATE_WRITE` trap nowhere: getrusage(2) counts them, and so do programs on the function
/// that handles them.
#[test]
fn populated_pages_are_counted_without_a_trap() {
    const WHAT: &str = "faults of bench fault that trap nowhere are those predicted";
    let directory = Directory::new("bench-populate");
    let cases = "anon-populate,anon-madvise";
    for members in [["--threads", "2"], ["--processes", "2"]] {
        let output = bench(&directory, &[&["--case", cases], &members[..]].concat());
        let status = output.status.code();
        assert!(matches!(status, Some(0 | 4)), "{status:?}");
    }
    let mut refused = None;
    for case in cases.split(',') {
        for kind in ["2t", "2p"] {
            let name = format!("fault-{case}-{kind}-16m-1.fsc");
            println!("  {name}");
            let point = Point::of(&directory, &name);
            let faults = point.count("faults");
            demand_exactly("pages", point.count("pages"), PAGES);
            demand_exactly("predicted", point.count("faults_predicted"), PAGES);
            demand_near("faults by getrusage", faults, PAGES, within(PAGES));
            match point.untrapped {
                // Before it starts each of two members brings in a page in each of two rounds.
                Ok(n) => demand_near("faults without a trap", n, faults + 4, within(PAGES)),
                Err(reason) => refused = Some(reason),
            }
        }
    }
    match refused {
        None => feature(WHAT, Ok(())),
        Some(reason) => {
            println!("  {reason}");
            feature(WHAT, Err("fentry is refused"));
            skip("this kernel lets no fentry program in");
        }
    }
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
        let point = Point::of(&directory, &name);
        let faults = point.count("faults");
        let most = point.count("faults_predicted");
        let least = point.result.events("faults_predicted_least");
        let least = least.unwrap_or_else(|| most - within(most));
        println!("  {case}: {faults} faults, {least} to {most} predicted");
        assert!(
            (least..=most + within(most)).contains(&faults),
            "{case}: {faults} faults, {least} to {most} predicted"
        );
        demand_near(
            "faults by the probes",
            point.trapped_in_part(),
            faults,
            within(faults),
        );
    }
}

/// Where transparent huge pages are set.
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const HUGE: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";
const LARGE: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";

/// Demands that a point of huge or large folios has one fault for each of them, at least half of its pages in them.
fn demand_folios(directory: &Directory, case: &str, kib: u64) -> Point {
    let name = format!("fault-{case}-2t-16m-1.fsc");
    println!("  {name}");
    let point = Point::of(directory, &name);
    let folios = point.count(&format!("folios_{kib}k"));
    let pages = kib / 4;
    demand("folios by the kernel's counter", folios, PAGES / pages / 2);
    let wanted = folios + PAGES.saturating_sub(folios * pages);
    demand_exactly("predicted", point.count("faults_predicted"), wanted);
    demand_faults(&point, wanted);
    point
}

#[test]
fn huge_pages_fault_once_each() {
    const WHAT: &str = "faults of bench fault on huge pages are those predicted";
    // For memory that asks for them only, so that nobody else's are in the kernel's counter.
    let Some(_thp) = Setting::set(THP, "madvise") else {
        feature(WHAT, Err("the kernel has no transparent huge pages"));
        skip("this kernel has no transparent huge pages, or they may not be set");
        return;
    };
    let _huge = Setting::set(HUGE, "inherit");
    let directory = Directory::new("bench-huge");
    let output = bench(
        &directory,
        &["--case", "anon-thp,anon-thp-read", "--threads", "2"],
    );
    let status = output.status.code();
    assert!(matches!(status, Some(0 | 4)), "{status:?}");
    let point = demand_folios(&directory, "anon-thp", 2048);
    if point.untrapped.is_ok() {
        demand_exactly(
            "faults that made a huge page",
            point.huge,
            point.count("folios_2048k"),
        );
    }
    let zero = Point::of(&directory, "fault-anon-thp-read-2t-16m-1.fsc");
    demand_exactly("huge zero pages", zero.count("faults"), PAGES / 512);
    demand_exactly(
        "faults by the probes",
        zero.trapped_in_part(),
        zero.count("faults"),
    );
    feature(WHAT, Ok(()));
}

#[test]
fn folios_of_64_kib_fault_once_each() {
    const WHAT: &str = "faults of bench fault on large folios (mTHP) are those predicted";
    let (Some(_large), Some(_huge)) = (Setting::set(LARGE, "madvise"), Setting::set(HUGE, "never"))
    else {
        feature(WHAT, Err("the kernel has huge pages of one size only"));
        skip("this kernel has no large anonymous folios but huge pages, or they may not be set");
        return;
    };
    let directory = Directory::new("bench-large");
    let output = bench(&directory, &["--case", "anon-64k", "--threads", "2"]);
    let status = output.status.code();
    assert!(matches!(status, Some(0 | 4)), "{status:?}");
    let point = demand_folios(&directory, "anon-64k", 64);
    if point.untrapped.is_ok() {
        demand_exactly(
            "faults that made a large folio",
            point.large,
            point.count("folios_64k"),
        );
    }
    feature(WHAT, Ok(()));
}

/// A size that the kernel lacks, or that is off, is skipped with the reason, and other points are made.
#[test]
fn folios_that_are_missing_or_off_are_skipped_and_it_is_said() {
    let _off = Setting::set(LARGE, "never");
    let directory = Directory::new("bench-no-folios");
    let output = bench(
        &directory,
        &["--bare", "--case", "anon-64k,anon", "--threads", "1"],
    );
    assert_eq!(output.status.code(), Some(5));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = said
        .lines()
        .find(|line| line.contains("anon-64k, 1 thread, 16.0MiB: skipped: "))
        .unwrap_or_else(|| panic!("{said}"));
    assert!(
        ["switched off", "no folios of 64 KiB", "no transparent huge"]
            .iter()
            .any(|why| line.contains(why)),
        "{line}"
    );
    assert!(said.contains("1 point made, 1 skipped"), "{said}");
    let point = Point::of(&directory, "fault-anon-1t-16m-1.fsc");
    demand_exactly("pages", point.count("pages"), PAGES);
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
    assert!(said.contains("1 point made, 1 skipped"), "{said}");
    let point = Point::of(&directory, "fault-anon-1t-16m-1.fsc");
    demand_exactly("pages", point.count("pages"), PAGES);
    demand_exactly("faults by probes there are none of", point.trapped, 0);
    // The same directory again: nothing is overwritten.
    let again = bench(&directory, &["--threads", "1", "--bare"]);
    assert_eq!(again.status.code(), Some(2));
}

/// Who may load no programs is told what is missing and what runs without, and finds nothing left behind.
#[test]
fn without_a_right_to_programs_a_bare_bench_is_offered() {
    use std::os::unix::process::CommandExt as _;
    /// Nobody.
    const USER: u32 = 65534;
    let directory = Directory::new("bench-no-right");
    std::os::unix::fs::chown(&directory.0, Some(USER), Some(USER)).expect("may be given away");
    let runs = directory.file("runs");
    let run = |bare: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_faultscope"))
            .args(["bench", "fault", "--threads", "1", "--size", SIZE])
            .args(["--rounds", "2", "-o"])
            .arg(&runs)
            .args(bare)
            .uid(USER)
            .gid(USER)
            .stdin(Stdio::null())
            .output()
            .expect("the binary runs")
    };
    let refused = run(&[]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    println!("{}", said.trim_end());
    assert_eq!(refused.status.code(), Some(3));
    assert!(
        said.contains("CAP_BPF") && said.contains("with --bare"),
        "{said}"
    );
    assert!(!runs.exists(), "an empty directory is left");
    assert_eq!(run(&["--bare"]).status.code(), Some(0));
    let point = Point::of(&directory, "runs/fault-anon-1t-16m-1.fsc");
    demand_exactly("pages", point.count("pages"), PAGES);
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
