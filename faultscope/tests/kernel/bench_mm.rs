//! `bench madvise`, `accessed`, `mmap` and `suite`: what their recordings must say, at small sizes.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use faultscope::host::{Fact, HostFacts};
use faultscope::model::command;
use faultscope::model::{Context, Model};
use faultscope::sample::blocked::Held;
use faultscope::sample::merge::Merger;
use faultscope::store::Recording;
use faultscope::workload::bench::{BenchResult, read};

use crate::record::Directory;
use crate::support::{
    demand, demand_exactly, demand_near, feature, is_rt, left_to_real_machines, object,
    print_losses,
};

/// Status of a sweep in which points were skipped.
const SKIPPED: i32 = 5;
/// Status of a sweep in whose recordings events are missing.
const LOSSY: i32 = 4;

/// Runs `bench` with its files and runs in `directory`.
fn bench(directory: &Directory, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultscope"));
    command.arg("bench").args(arguments);
    command.arg("-o").arg(directory.file("runs"));
    // On a disk: tmpfs keeps no pages for a hole.
    command.arg("--files").arg(env!("CARGO_TARGET_TMPDIR"));
    if let Some(object) = object()
        && !arguments.contains(&"--bare")
    {
        command.arg("--bpf-object").arg(object);
    }
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    print!("{}{}", text(&output.stdout), text(&output.stderr));
    output
}

/// Demands that every point was made; on a busy machine events of others may be lost, which is said.
fn demand_made(output: &Output) {
    let status = output.status.code();
    assert!(matches!(status, Some(0 | LOSSY)), "{status:?}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a point said of itself and the model of its whole recording.
fn point(directory: &Directory, name: &str) -> (BenchResult, Model, u32) {
    let path = directory.file("runs").join(name);
    let mut recording = Recording::open(&path).expect("a recording of the point");
    let run = recording.run().clone();
    let mut merger = Merger::default();
    let mut context = None;
    for index in 0..recording.len() {
        let interval = recording.interval(index).expect("an interval");
        merger.add(&interval.delta);
        context = Some(Context::of(&run, &interval));
    }
    let delta = merger.finish().delta;
    let model = Model::new(Arc::new(delta), Arc::new(context.expect("intervals")));
    let workload = run.workload.expect("a command was run");
    let mut results = read(&workload.output.text).expect("a result");
    (results.pop().expect("one result"), model, workload.tgid)
}

fn events(result: &BenchResult, name: &str) -> u64 {
    result
        .events(name)
        .unwrap_or_else(|| panic!("no figure {name}: {result:?}"))
}

/// Why memory cannot be limited here, if it cannot.
fn no_pressure(directory: &Path) -> Option<String> {
    let hierarchy = match HostFacts::read(Path::new("/")).memory_hierarchy {
        Fact::Yes(hierarchy) => hierarchy,
        Fact::No(reason) | Fact::Unknown(reason) => return Some(reason),
    };
    if let Err(error) = faultscope::run::MemoryLimit::new(&hierarchy, 64 << 20) {
        return Some(error.to_string());
    }
    let pressure = faultscope::load::Pressure::new(directory, 4096);
    pressure.err().map(|error| error.to_string())
}

/// Pages of a point of `bench madvise` here, and cycles; a quarter of them under pressure.
const PAGES: u64 = (4 << 20) / 4096;
const CYCLES: u64 = 8;

/// What a case of `bench madvise` did to its pages.
struct GivenBack {
    zeroed: u64,
    kept: u64,
    /// By the kernel's account.
    faults: u64,
    /// By the probes.
    refaults: u64,
}

impl GivenBack {
    /// Of a case; what the child saw in its pages and what the probes saw is one number, unless events were lost.
    fn of(directory: &Directory, case: &str, advice: i32) -> Self {
        let (result, model, _) = point(directory, &format!("madvise-{case}-2t-4m-1.fsc"));
        let (refaults, lost) = command::Command::of(&model).refaults(advice);
        let seen = Self {
            zeroed: events(&result, "zeroed"),
            kept: events(&result, "kept"),
            faults: events(&result, "faults"),
            refaults,
        };
        if model.lost_total() + lost == 0 {
            demand_exactly(&format!("{case}: zeroed"), seen.zeroed, refaults);
        } else {
            print_losses(&model);
            demand(&format!("{case}: refaults"), refaults, seen.zeroed / 2);
        }
        seen
    }
}

/// MADV_DONTNEED refaults on every page, MADV_FREE on none unless memory is short, and then as MADV_DONTNEED.
#[test]
fn dropped_and_freed_pages_differ_without_pressure_and_converge_under_it() {
    let directory = Directory::new("bench-madvise");
    let mut cases = vec!["none", "dontneed", "free", "dontneed-map"];
    let refused = no_pressure(Path::new(env!("CARGO_TARGET_TMPDIR")));
    if refused.is_none() {
        cases.extend(["dontneed-press", "free-press"]);
    }
    let list = cases.join(",");
    let output = bench(
        &directory,
        &[
            "madvise",
            "--case",
            &list,
            "--threads",
            "2",
            "--size",
            "4M",
            "--rounds",
            "8",
        ],
    );
    demand_made(&output);
    let pages = PAGES * CYCLES;
    let dropped = GivenBack::of(&directory, "dontneed", libc::MADV_DONTNEED);
    demand_exactly("zeroed after MADV_DONTNEED", dropped.zeroed, pages);
    demand_exactly("kept", dropped.kept, 0);
    demand_near("faults in the cycles", dropped.faults, pages, 20);
    let freed = GivenBack::of(&directory, "free", libc::MADV_FREE);
    demand_near("zeroed after MADV_FREE", freed.zeroed, 0, pages / 200);
    demand_exactly("kept or zeroed", freed.kept + freed.zeroed, pages);
    assert!(
        freed.refaults * 100 < dropped.refaults,
        "more than two orders of magnitude"
    );
    let get = |case: &str| point(&directory, &format!("madvise-{case}-2t-4m-1.fsc"));
    let (none, _, _) = get("none");
    demand_exactly("zeroed without advice", events(&none, "zeroed"), 0);
    let (maps, model, _) = get("dontneed-map");
    let [_, write] = command::Command::of(&model).mmap_lock();
    demand(
        "write holds of the mappers",
        write.holds,
        events(&maps, "map_calls"),
    );
    let said = text(&output.stdout);
    assert!(
        said.contains("pages that came back zeroed: dontneed"),
        "{said}"
    );
    feature("bench madvise", Ok(()));
    if let Some(reason) = refused {
        feature(
            "bench madvise under memory pressure",
            Err("memory cannot be limited"),
        );
        println!("  {reason}");
        return;
    }
    let dropped = GivenBack::of(&directory, "dontneed-press", libc::MADV_DONTNEED);
    let freed = GivenBack::of(&directory, "free-press", libc::MADV_FREE);
    demand_exactly(
        "zeroed after MADV_DONTNEED, pressed",
        dropped.zeroed,
        pages / 4,
    );
    demand(
        "zeroed after MADV_FREE, pressed",
        freed.zeroed,
        dropped.zeroed * 9 / 10,
    );
    let left = Path::new(&crate::support::memory_mount()).join("faultscope-bench-");
    let left = left.display().to_string();
    let groups = std::fs::read_dir(crate::support::memory_mount()).expect("a hierarchy");
    let own = groups
        .flatten()
        .filter(|entry| entry.path().display().to_string().starts_with(&left));
    demand_exactly("cgroups left behind", own.count() as u64, 0);
    feature("bench madvise under memory pressure", Ok(()));
}

/// A reader of smaps is named as holder, the process it reads as waiter.
#[test]
fn the_reader_of_smaps_is_named_with_its_victim() {
    let directory = Directory::new("bench-mmap");
    let output = bench(
        &directory,
        &[
            "mmap",
            "--case",
            "smaps",
            "--threads",
            "1",
            "--size",
            "16M",
            "--rounds",
            "100",
        ],
    );
    demand_made(&output);
    let (result, model, victim) = point(&directory, "mmap-smaps-1t-16m-1.fsc");
    demand("readings of smaps", events(&result, "smaps_reads"), 2);
    demand(
        "changes of the address space",
        events(&result, "changes"),
        2,
    );
    demand_exactly(
        "faults",
        events(&result, "read_faults"),
        100 * (16 << 20) / 4096,
    );
    let reader = u32::try_from(events(&result, "reader")).expect("a process id");
    if is_rt() {
        let delta = model.delta();
        let waits = delta
            .blocked
            .iter()
            .filter(|(id, _)| id.owner == victim && id.held == Held::Readers);
        demand("waits for readers", waits.map(|(_, w)| w.waits).sum(), 1);
        feature(
            "bench mmap names an outside reader",
            Err("PREEMPT_RT names no readers"),
        );
        return;
    }
    let delta = model.delta();
    let behind = delta
        .blocked
        .iter()
        .filter(|(id, _)| id.holder == reader && id.tgid == victim);
    let (waits, ns) = behind.fold((0, 0), |(n, ns), (_, w)| (n + w.waits, ns + w.wait_ns));
    demand("waits of the victim for the reader", waits, 1);
    demand("their time, ns", ns, 1);
    let said = text(&output.stdout);
    let line = said.lines().find(|line| line.contains("<- smaps-reader"));
    let line = line.unwrap_or_else(|| panic!("no line names the reader:\n{said}"));
    assert!(
        line.contains(&format!("({victim}) in ")) && line.contains(&format!("({reader})")),
        "{line}"
    );
    feature("bench mmap names an outside reader", Ok(()));
}

/// Changes of the protection of what is faulted on block faults or send them back, and nothing is lost meanwhile.
#[test]
fn faults_are_exact_while_the_address_space_changes() {
    let directory = Directory::new("bench-vmas");
    let output = bench(
        &directory,
        &[
            "mmap",
            "--case",
            "faults,map,protect,vmas",
            "--threads",
            "1",
            "--size",
            "4M",
            "--rounds",
            "20",
        ],
    );
    demand_made(&output);
    for case in ["faults", "map", "protect", "vmas"] {
        let (result, model, _) = point(&directory, &format!("mmap-{case}-1t-4m-1.fsc"));
        let pages = 20 * (4 << 20) / 4096;
        demand_exactly(
            &format!("{case}: faults"),
            events(&result, "read_faults"),
            pages,
        );
        demand_near(
            &format!("{case}: ru_minflt"),
            events(&result, "faults"),
            pages,
            20,
        );
        if case != "faults" {
            let [_, write] = command::Command::of(&model).mmap_lock();
            demand(
                &format!("{case}: write holds"),
                write.holds,
                events(&result, "changes"),
            );
        }
    }
    feature("bench mmap", Ok(()));
}

/// Threads and processes read as many pages; re-used pages are activated where the kernel activates.
#[test]
fn cached_pages_are_read_again_by_threads_and_processes() {
    let directory = Directory::new("bench-accessed");
    let output = bench(
        &directory,
        &[
            "accessed",
            "--case",
            "read-reuse,map-stream",
            "--threads",
            "2",
            "--processes",
            "2",
            "--size",
            "4M",
            "--rounds",
            "4",
        ],
    );
    demand_made(&output);
    for (case, kind) in [
        ("read-reuse", 't'),
        ("read-reuse", 'p'),
        ("map-stream", 't'),
        ("map-stream", 'p'),
    ] {
        let (result, ..) = point(&directory, &format!("accessed-{case}-2{kind}-4m-1.fsc"));
        demand_exactly(
            &format!("{case} {kind}: pages read"),
            events(&result, "reads"),
            2 * 4 * (4 << 20) / 4096,
        );
    }
    let said = text(&output.stdout);
    for title in [
        "Elapsed Time",
        "User Time",
        "System Time",
        "Percent CPU",
        "Context Switches",
        "Sleeps",
    ] {
        assert!(said.contains(title), "no {title}:\n{said}");
    }
    feature("bench accessed", Ok(()));
    if let Some(reason) = no_pressure(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        println!("  {reason}");
        feature(
            "bench accessed under memory pressure",
            Err("memory cannot be limited"),
        );
        return;
    }
    let directory = Directory::new("bench-accessed-press");
    let output = bench(
        &directory,
        &[
            "accessed",
            "--case",
            "read-stream-press",
            "--threads",
            "1",
            "--size",
            "16M",
            "--rounds",
            "3",
        ],
    );
    demand_made(&output);
    let (_, model, _) = point(&directory, "accessed-read-stream-press-1t-16m-1.fsc");
    // All of the file but what fits is read from the disk again in each pass.
    let refaults = command::workingset_refaults(&model).expect("vmstat counts them");
    demand("refaults of pages reclaimed", refaults, (4 << 20) / 4096);
    feature("bench accessed under memory pressure", Ok(()));
}

/// An advice the kernel lacks, members that cannot share an address space: skipped with a reason, the others are made.
#[test]
fn what_cannot_be_run_is_skipped_and_the_others_are_made() {
    let directory = Directory::new("bench-skip");
    let output = bench(
        &directory,
        &[
            "madvise",
            "--bare",
            "--case",
            "none",
            "--threads",
            "1",
            "--processes",
            "1",
            "--size",
            "1M",
            "--rounds",
            "1",
        ],
    );
    assert_eq!(output.status.code(), Some(SKIPPED));
    let said = text(&output.stderr);
    assert!(
        said.contains("skipped: bench madvise is about one address space"),
        "{said}"
    );
    assert!(said.contains("1 point made, 1 skipped"), "{said}");
}

/// Who may make no cgroup misses the points of memory pressure, with the reason, and gets the others.
#[test]
fn without_a_right_to_make_cgroups_pressure_is_skipped() {
    use std::os::unix::process::CommandExt as _;
    /// Nobody.
    const USER: u32 = 65534;
    let directory = Directory::new("bench-no-cgroup");
    std::os::unix::fs::chown(&directory.0, Some(USER), Some(USER)).expect("may be given away");
    let output = Command::new(env!("CARGO_BIN_EXE_faultscope"))
        .args(["bench", "madvise", "--bare", "--case", "none-press,none"])
        .args(["--threads", "1", "--size", "1M", "--rounds", "1", "-o"])
        .arg(directory.file("runs"))
        .uid(USER)
        .gid(USER)
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    print!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(SKIPPED));
    let said = text(&output.stderr);
    assert!(
        said.contains("none-press, 1 thread, 1.00MiB: skipped: a memory cgroup cannot be made in")
            && said.contains("Permission denied")
            && said.contains("run as root"),
        "{said}"
    );
    assert!(said.contains("1 point made, 1 skipped"), "{said}");
}

/// All benches, short, with one summary.
#[test]
fn a_suite_runs_every_bench_and_sums_up() {
    if left_to_real_machines() {
        return;
    }
    let directory = Directory::new("bench-suite");
    let output = bench(
        &directory,
        &["suite", "--threads", "1", "--size", "4M", "--rounds", "2"],
    );
    let status = output.status.code();
    assert!(matches!(status, Some(0 | SKIPPED | LOSSY)), "{status:?}");
    let said = text(&output.stdout);
    let (_, summary) = said.split_once("\nSummary").expect("a summary");
    for bench in ["fault", "madvise", "accessed", "mmap"] {
        assert!(
            summary.contains(&format!("\n{bench} ")),
            "no {bench} in {summary}"
        );
        let runs =
            std::fs::read_dir(directory.file("runs").join(bench)).expect("runs of the bench");
        demand(&format!("runs of {bench}"), runs.count() as u64, 1);
    }
}
