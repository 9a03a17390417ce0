//! `record`: the command as its user expects it, the file as its reader does, whatever goes wrong.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, Output, Stdio};
use std::time::{Duration, Instant};

use faultscope::store::Recording;

use crate::support::{demand, demand_exactly, feature, is_emulated, left_to_real_machines, object};

/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(240);

/// A directory of a test's own.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("faultscope-record-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).expect("a directory can be made");
        Self(path)
    }

    /// The same, on a file system of its own in memory.
    fn mounted(name: &str, options: &str) -> Self {
        let directory = Self::new(name);
        let path = std::ffi::CString::new(directory.0.as_os_str().as_bytes()).expect("no NUL");
        let data = std::ffi::CString::new(options).expect("no NUL");
        // SAFETY: strings that end in NUL and outlive the call.
        let done = unsafe {
            libc::mount(
                c"faultscope".as_ptr(),
                path.as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                data.as_ptr().cast(),
            )
        };
        assert_eq!(done, 0, "mount: {}", std::io::Error::last_os_error());
        directory
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Ok(path) = std::ffi::CString::new(self.0.as_os_str().as_bytes()) {
            // One that is no mount stays as it is.
            // SAFETY: a string that ends in NUL.
            unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
        }
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// `faultscope record` with its output file and the object under test.
pub(crate) fn record(output: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultscope"));
    command.arg("record").arg("-o").arg(output);
    if let Some(object) = object() {
        command.arg("--bpf-object").arg(object);
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

pub(crate) fn run(output: &Path, arguments: &[&str]) -> Output {
    let output = record(output, arguments).output().expect("the binary runs");
    println!("  {}", text(&output.stderr).trim_end());
    output
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn open(path: &Path) -> Recording {
    Recording::open(path).expect("a recording")
}

/// Reads every interval, which holds it against its checksum; faults of the workload.
fn workload_faults(recording: &mut Recording) -> u64 {
    let mut faults = 0;
    for index in 0..recording.len() {
        let interval = recording
            .interval(index)
            .expect("an interval as it was written");
        let own = interval.delta.processes.values().filter(|p| p.is_workload);
        faults += own.map(|p| p.counters.faults()).sum::<u64>();
    }
    faults
}

#[test]
fn a_run_is_kept_with_what_the_command_said() {
    let directory = Directory::new("whole");
    let file = directory.file("run.fsc");
    let script =
        "echo value 42; echo warning >&2; env | grep ^LC_ALL; true; /bin/true; sleep 1; exit 3";
    let output = run(
        &file,
        &[
            "-d",
            "0.2",
            "--label",
            "patch=v3",
            "--metric",
            "v:1/s:higher=value ([0-9]+)",
            "--metric",
            "w=no such ([0-9]+)",
            "--",
            "sh",
            "-c",
            script,
        ],
    );
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stdout), "value 42\nLC_ALL=C\n");
    assert!(
        text(&output.stderr).starts_with("warning\n")
            || text(&output.stderr).contains("\nwarning\n")
    );
    let mut recording = open(&file);
    assert!(recording.is_complete());
    demand("intervals", recording.len() as u64, 2);
    let run = recording.run().clone();
    assert_eq!(run.labels.get("patch").map(String::as_str), Some("v3"));
    let workload = run.workload.expect("a command was run");
    assert_eq!(workload.argv, ["sh", "-c", script]);
    assert_eq!(
        workload.refused,
        ["metric \"w\": its expression matches nothing in the output"]
    );
    assert!(
        workload.output.text.contains("value 42\n") && workload.output.text.contains("warning\n")
    );
    assert_eq!(
        workload.environment[0],
        ("LC_ALL".to_owned(), "C".to_owned())
    );
    let ended = workload.ended.expect("it ended");
    assert_eq!((ended.code, ended.signal), (Some(3), None));
    assert!(ended.mono_ns > workload.start_mono_ns);
    let [metric] = recording.metrics() else {
        panic!("{:?}", recording.metrics());
    };
    assert_eq!(
        (metric.name.as_str(), metric.value.to_bits()),
        ("v", 42_f64.to_bits())
    );
    let known: Vec<_> = run
        .facts
        .iter()
        .filter(|f| f.value.is_ok())
        .map(|f| f.id.as_str())
        .collect();
    for id in [
        "cpu_model",
        "memory_bytes",
        "kernel_release",
        "swap",
        "bpf_object_sha256",
        "other_tasks",
    ] {
        assert!(known.contains(&id), "{id} is not in {known:?}");
    }
    // What the kernel accounts to the command and its descendants, but for the time before exec.
    let faults = workload_faults(&mut recording);
    let accounted = ended.usage.minor_faults + ended.usage.major_faults;
    println!("  faults of the workload: {faults}, rusage says {accounted}");
    assert!(
        faults > 0 && faults.abs_diff(accounted) * 10 <= accounted,
        "{faults} {accounted}"
    );
    feature("a command's run and output in one file", Ok(()));
}

#[test]
fn statuses_of_commands_are_kept() {
    if left_to_real_machines() {
        return;
    }
    let directory = Directory::new("status");
    let status = |name: &str, words: &[&str]| {
        let arguments = [&["--"], words].concat();
        run(&directory.file(name), &arguments).status.code()
    };
    assert_eq!(status("killed", &["sh", "-c", "kill -9 $$"]), Some(137));
    assert_eq!(
        open(&directory.file("killed"))
            .run()
            .workload
            .as_ref()
            .and_then(|w| w.ended.as_ref()?.signal),
        Some(9)
    );
    assert_eq!(status("absent", &["faultscope-no-such-program"]), Some(127));
    assert_eq!(status("text", &["/proc/self/status"]), Some(126));
    for name in ["absent", "text"] {
        assert!(!directory.file(name).exists(), "nothing was recorded");
    }
    // Ends before anybody looks.
    assert_eq!(status("instant", &["true"]), Some(0));
    assert!(open(&directory.file("instant")).is_complete());
}

#[test]
fn a_file_that_exists_or_cannot_be_made_runs_nothing() {
    let directory = Directory::new("exists");
    let file = directory.file("run.fsc");
    let witness = directory.file("witness");
    let touch = format!("touch {}", witness.display());
    std::fs::write(&file, "mine").expect("a file");
    let output = run(&file, &["--", "sh", "-c", &touch]);
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("exists and is not overwritten"));
    assert_eq!(std::fs::read(&file).expect("still there"), b"mine");
    let sealed = Directory::mounted("sealed", "ro,size=1m");
    let output = run(&sealed.file("run.fsc"), &["--", "sh", "-c", &touch]);
    assert_eq!(output.status.code(), Some(125));
    assert!(
        text(&output.stderr).contains("ead-only"),
        "{}",
        text(&output.stderr)
    );
    assert!(!witness.exists(), "the command was not run");
    assert_eq!(run(&file, &["--duration", "0.1"]).status.code(), Some(2));
}

/// Records a command that ends with `status`, on a disk that fills up once there are intervals; how it ended, and all
/// it printed on both pipes.
fn record_on_full_disk(
    directory: &Directory,
    arguments: &[&str],
    status: u8,
) -> (Option<i32>, String, String) {
    let file = directory.file("run.fsc");
    let other = Directory::new("elsewhere");
    let go = other.file("go");
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.05; done; echo done; exit {status}",
        go.display()
    );
    let arguments = [arguments, &["-d", "0.1", "--", "sh", "-c", &script]].concat();
    let mut process = record(&file, &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    wait_until("three intervals are in the file", || intervals(&file) >= 3);
    let fill = directory.file("fill");
    let full = std::io::copy(
        &mut std::io::repeat(0),
        &mut std::fs::File::create(&fill).expect("a file"),
    );
    assert_eq!(
        full.map_err(|error| error.kind()),
        Err(std::io::ErrorKind::StorageFull)
    );
    let mut messages = BufReader::new(process.stderr.take().expect("a pipe"));
    let mut message = String::new();
    while !message.contains("broke off:") {
        let read = messages.read_line(&mut message).expect("UTF-8");
        assert!(read > 0, "it ended without a word: {message}");
    }
    std::fs::File::create(&go).expect("a file");
    messages.read_to_string(&mut message).expect("UTF-8");
    println!("  {}", message.trim_end());
    let output = process.wait_with_output().expect("it ends");
    drop(std::fs::remove_file(&fill));
    (output.status.code(), text(&output.stdout), message)
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_command() {
    if left_to_real_machines() {
        return;
    }
    let directory = Directory::mounted("full", "size=6m");
    let (status, out, message) = record_on_full_disk(&directory, &[], 5);
    assert_eq!(status, Some(5));
    assert_eq!(out, "done\n");
    assert_eq!(message.matches("broke off:").count(), 1, "{message}");
    assert!(message.contains("the command runs on"), "{message}");
    let mut recording = open(&directory.file("run.fsc"));
    demand(
        "intervals before the disk was full",
        recording.len() as u64,
        3,
    );
    workload_faults(&mut recording);
    let directory = Directory::mounted("strict", "size=6m");
    let (status, ..) = record_on_full_disk(&directory, &["--strict"], 0);
    assert_eq!(status, Some(4));
}

/// A figure that the user named and the command did not print is a recording that is not whole.
#[test]
fn strict_demands_the_figures_that_were_named() {
    if left_to_real_machines() {
        return;
    }
    let directory = Directory::new("strict-metric");
    // A run that lost something ends with the same status, and proves nothing.
    let mut proofs = [0, 0];
    for attempt in 0..10 {
        for (i, (expression, status)) in [("(2)", 4), ("(1)", 0)].into_iter().enumerate() {
            let file = directory.file(&format!("{attempt}-{i}.fsc"));
            let metric = format!("v=value {expression}");
            let output = run(
                &file,
                &["--strict", "--metric", &metric, "--", "echo", "value 1"],
            );
            if text(&output.stderr).contains("events were lost") {
                assert_eq!(output.status.code(), Some(4));
            } else {
                assert_eq!(output.status.code(), Some(status), "{metric}");
                proofs[i] += 1;
            }
        }
        if proofs.iter().all(|n| *n > 0) {
            break;
        }
    }
    demand("runs without the figure", proofs[0], 1);
    demand("runs with the figure", proofs[1], 1);
}

#[test]
fn a_daemon_left_behind_is_not_waited_for() {
    let directory = Directory::new("daemon");
    let file = directory.file("run.fsc");
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let mut process = record(
        &file,
        &["--", "sh", "-c", "setsid sleep 1000 & echo $!; echo up"],
    )
    .stdout(writer)
    .spawn()
    .expect("the binary runs");
    assert!(process.wait().expect("it ends").success());
    let workload = open(&file).run().workload.clone().expect("a command");
    assert!(workload.output.text.ends_with("up\n"));
    let pid: i32 = workload
        .output
        .text
        .lines()
        .next()
        .and_then(|l| l.parse().ok())
        .expect("a process id");
    // SAFETY: our own grandchild, alive since nothing ends it.
    let killed = unsafe { libc::kill(pid, libc::SIGKILL) };
    assert_eq!(killed, 0, "the daemon outlives the recorder");
    let mut rest = String::new();
    reader.read_to_string(&mut rest).expect("UTF-8");
    assert!(rest.ends_with("up\n"));
}

#[test]
fn signals_reach_the_command_and_end_a_recording_without_one() {
    if left_to_real_machines() {
        return;
    }
    let directory = Directory::new("signals");
    let file = directory.file("run.fsc");
    let script = "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.1; done";
    let mut process = record(&file, &["--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut out = process.stdout.take().expect("a pipe");
    let mut ready = [0; 6];
    out.read_exact(&mut ready).expect("it starts");
    signal(&process, libc::SIGTERM);
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("UTF-8");
    assert_eq!(
        (process.wait().expect("it ends").code(), rest.as_str()),
        (Some(9), "caught\n")
    );
    assert!(open(&file).is_complete());
    let file = directory.file("machine.fsc");
    let mut process = record(&file, &["-d", "0.1"])
        .spawn()
        .expect("the binary runs");
    wait_until("an interval is in the file", || intervals(&file) > 0);
    signal(&process, libc::SIGINT);
    assert_eq!(process.wait().expect("it ends").code(), Some(0));
    let recording = open(&file);
    assert_eq!(
        recording.run().end.as_ref().map(|e| e.reason.as_str()),
        Some("SIGINT")
    );
    assert!(recording.run().workload.is_none());
}

fn signal(process: &Process, number: i32) {
    let pid = libc::pid_t::try_from(process.id()).expect("a process id");
    // SAFETY: our own child, not yet waited for.
    unsafe { libc::kill(pid, number) };
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Intervals of a file that may still be written, or not be there yet.
fn intervals(file: &Path) -> usize {
    Recording::open(file).map_or(0, |recording| recording.len())
}

#[test]
fn runs_in_turn_have_their_round_and_side() {
    if left_to_real_machines() {
        return;
    }
    let directory = Directory::new("rounds");
    let file = directory.file("run.fsc");
    let output = run(
        &file,
        &[
            "--repeat",
            "2",
            "--alternate",
            "echo side b",
            "--",
            "echo",
            "side a",
        ],
    );
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "side a\nside b\nside b\nside a\n");
    let mut series = Vec::new();
    for (name, number, side) in [
        ("run.1A.fsc", 1, "A"),
        ("run.1B.fsc", 1, "B"),
        ("run.2B.fsc", 2, "B"),
        ("run.2A.fsc", 2, "A"),
    ] {
        let round = open(&directory.file(name))
            .run()
            .round
            .clone()
            .expect("one of several");
        assert_eq!((round.number, round.side.as_str()), (number, side));
        series.push(round.series);
    }
    series.dedup();
    demand_exactly("series", series.len() as u64, 1);
    let output = run(
        &directory.file("bad.fsc"),
        &["--repeat", "3", "--", "false"],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("the other 2 are not made"));
    assert!(!directory.file("bad.2.fsc").exists());
}

/// Twenty recorders (in the slow guests three) killed at as many moments: what was closed is there, the command never notices.
#[test]
fn a_killed_recorder_leaves_its_intervals_and_its_command() {
    let killed = if is_emulated() { 3 } else { 20 };
    let directory = Directory::new("killed");
    let (mut recorded, mut closed) = (0, 0);
    for n in 0..killed {
        let file = directory.file(&format!("{n}.fsc"));
        let go = directory.file(&format!("{n}.go"));
        let script = format!(
            "echo begin; while [ ! -e {} ]; do sleep 0.05; done; echo end",
            go.display()
        );
        let mut process = record(&file, &["-d", "0.1", "--", "sh", "-c", &script])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let mut out = process.stdout.take().expect("a pipe");
        let mut begin = [0; 6];
        out.read_exact(&mut begin).expect("the command starts");
        // At any moment of an interval, and never in step with them.
        wait_until("intervals are in the file", || {
            intervals(&file) as u64 >= n % 4
        });
        std::thread::sleep(Duration::from_millis(n * 737 % 300));
        let before = intervals(&file);
        process.kill().expect("it lives");
        process.wait().expect("it ends");
        std::fs::File::create(&go)
            .and_then(|mut f| f.write_all(b"go"))
            .expect("a file");
        let mut rest = String::new();
        out.read_to_string(&mut rest).expect("UTF-8");
        assert_eq!(rest, "end\n", "the command's output arrives whole");
        let mut recording = open(&file);
        assert!(
            !recording.is_complete(),
            "the file says that it was cut short"
        );
        assert!(
            recording.len() >= before,
            "{} intervals of {before}",
            recording.len()
        );
        workload_faults(&mut recording);
        recorded += 1;
        closed += recording.len() as u64;
    }
    demand_exactly("recordings that can be read", recorded, killed);
    demand(
        "intervals in them",
        closed,
        (0..killed).map(|n| n % 4).sum(),
    );
}

#[test]
fn a_parent_that_ignores_its_children_does_not_hide_the_status() {
    if left_to_real_machines() {
        return;
    }
    use std::os::unix::process::CommandExt as _;
    let directory = Directory::new("ignored");
    let mut command = record(&directory.file("f"), &["--", "sh", "-c", "exit 3"]);
    // SAFETY: async-signal-safe, and touches nothing of the parent.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            Ok(())
        });
    }
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
}

#[test]
fn a_disk_too_small_to_begin_on_is_left_as_it_was() {
    let directory = Directory::mounted("begin", "size=300k");
    let output = run(&directory.file("f"), &["--", "echo", "ran"]);
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(text(&output.stdout), "", "nothing was run");
    let said = text(&output.stderr);
    assert!(
        said.contains("no space is left on the device; nothing was recorded"),
        "{said}"
    );
    let left = std::fs::read_dir(&directory.0).expect("readable").count();
    demand_exactly("files left", left as u64, 0);
}
