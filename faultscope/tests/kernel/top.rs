//! The binary's batch mode and screen: how they end, and what hostile names do.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child as Process, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use faultscope::name::{REPLACEMENT, is_unsafe};

use crate::support::{
    self, Cgroup, Child, Link, Pages, Role, demand, demand_exactly, demand_gone,
    left_to_real_machines, programs_of, terminal,
};

/// Roles of the children of this file.
pub(crate) const ROLES: &[(&str, Role)] =
    &[("top_hostile", hostile), ("top_many_advices", many_advices)];

/// Time the kernel may take to free what nobody holds any more.
const PATIENCE: Duration = Duration::from_secs(10);

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultscope"));
    command.arg("top").args(arguments);
    if let Some(object) = support::object() {
        command.arg("--bpf-object").arg(object);
    }
    command
}

/// Batch output in JSON lines without end, after its first line.
struct Batch {
    process: Process,
    lines: Option<BufReader<ChildStdout>>,
    programs: BTreeSet<u32>,
}

impl Batch {
    fn start(arguments: &[&str]) -> Self {
        let mut process = command(&["-b", "-d", "0.2", "--format", "jsonl"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line");
        let first: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(first["schema"], "faultscope.top/1");
        let programs = programs_of(process.id());
        demand("programs held", programs.len() as u64, 8);
        Self {
            process,
            lines: Some(lines),
            programs,
        }
    }

    /// Demands that it ended without a message of its own making.
    fn demand_quiet_end(mut self, is_expected: impl Fn(ExitStatus) -> bool) {
        let status = ended(&mut self.process);
        println!("  ended with {status}");
        assert!(is_expected(status), "{status}");
        let mut error = String::new();
        let mut pipe = self.process.stderr.take().expect("a pipe");
        pipe.read_to_string(&mut error).expect("UTF-8");
        for line in error.lines() {
            // What is missing here is said at the start, what was lost at the end.
            let is_known = line.contains("not available") || line.contains("incomplete");
            assert!(is_known, "{line}");
        }
        demand_gone(&self.programs);
    }
}

/// Done, or done with losses, which a busy machine may bring.
fn is_done(status: ExitStatus) -> bool {
    matches!(status.code(), Some(0 | 4))
}

fn kill(process: &Process, signal: i32) {
    let pid = i32::try_from(process.id()).expect("ids fit");
    // SAFETY: a child of ours that was not waited for.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "kill");
}

fn ended(process: &mut Process) -> ExitStatus {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = process.try_wait().expect("a child of ours") {
            return status;
        }
        if Instant::now() > until {
            drop(process.kill());
            drop(process.wait());
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_interrupt_ends_batch_mode_quietly() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let batch = Batch::start(&[]);
        kill(&batch.process, signal);
        batch.demand_quiet_end(is_done);
    }
}

#[test]
fn a_killed_process_leaves_no_program() {
    let batch = Batch::start(&[]);
    kill(&batch.process, libc::SIGKILL);
    batch.demand_quiet_end(|status| status.signal() == Some(libc::SIGKILL));
}

#[test]
fn a_reader_that_goes_away_ends_batch_mode_quietly() {
    let mut batch = Batch::start(&[]);
    batch.lines = None;
    batch.demand_quiet_end(|status| status.code() == Some(0));
}

/// Modes of a terminal, as bytes.
fn modes(terminal: &OwnedFd) -> String {
    use std::os::fd::AsRawFd as _;
    // SAFETY: a zeroed termios is valid and tcgetattr fills it.
    let modes = unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &raw mut modes), 0);
        modes
    };
    format!(
        "{} {} {} {}",
        modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_lflag
    )
}

/// `top` on a terminal that controls it, once its first frame is there.
fn screen() -> (Process, std::fs::File, OwnedFd, BTreeSet<u32>) {
    use std::os::unix::process::CommandExt as _;
    let (ours, theirs) = terminal(100);
    let end = || Stdio::from(theirs.try_clone().expect("a descriptor"));
    let mut command = command(&["-d", "0.2"]);
    command
        .env("TERM", "xterm")
        .stdin(end())
        .stdout(end())
        .stderr(end());
    // SAFETY: both calls are async-signal-safe and touch nothing of the parent.
    unsafe {
        command.pre_exec(|| {
            if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    let process = command.spawn().expect("the binary runs");
    // The builder keeps its ends of the terminal open otherwise.
    drop(command);
    let mut ours = std::fs::File::from(ours);
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&seen).contains("faultscope") {
        let n = ours.read(&mut buffer).expect("the screen is drawn");
        seen.extend_from_slice(&buffer[..n]);
    }
    let programs = programs_of(process.id());
    demand("programs held", programs.len() as u64, 8);
    (process, ours, theirs, programs)
}

#[test]
fn a_signal_restores_the_terminal() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let before = {
            let (_ours, theirs) = terminal(100);
            modes(&theirs)
        };
        let (mut process, mut ours, theirs, programs) = screen();
        assert_ne!(modes(&theirs), before, "the screen has modes of its own");
        kill(&process, signal);
        // Whoever writes to a terminal that nobody reads waits.
        let reader = std::thread::spawn(move || {
            let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
            while let Ok(n @ 1..) = ours.read(&mut buffer) {
                seen.extend_from_slice(&buffer[..n]);
            }
            (seen, ours)
        });
        let status = ended(&mut process);
        assert!(is_done(status), "{status}");
        assert_eq!(modes(&theirs), before);
        drop(theirs);
        let (seen, _ours) = reader.join().expect("the reader");
        let seen = String::from_utf8_lossy(&seen).into_owned();
        let left = seen
            .rfind("\u{1b}[?1049l")
            .expect("the other screen is left");
        assert!(
            seen[left..].contains("\u{1b}[?25h"),
            "the cursor is shown again"
        );
        demand_gone(&programs);
    }
}

#[test]
fn a_closed_terminal_ends_the_screen() {
    let (mut process, ours, theirs, programs) = screen();
    drop((ours, theirs));
    let status = ended(&mut process);
    println!("  ended with {status}");
    assert!(status.signal().is_none(), "{status}");
    demand_gone(&programs);
}

#[test]
fn hostile_names_stay_names() {
    if left_to_real_machines() {
        return;
    }
    let parent = Cgroup::new("hostile");
    let cgroup = parent.make_inside(OsStr::from_bytes(b"x\x1b]0;y\x07\xe2\x80\xae\xff,\"\rz"));
    let mut child = Child::start("top_hostile", &[]);
    let pid = child.pid().to_string();
    cgroup.take(child.pid());
    child.go();
    // Names are scrubbed where they are read, so not every view needs every format.
    for (view, format) in [
        ("processes", "text"),
        ("threads", "csv"),
        ("cgroups", "jsonl"),
        ("overview", "text"),
        ("holders", "csv"),
        ("madvise", "jsonl"),
    ] {
        let arguments = ["-b", "-n", "2", "-d", "0.3", "--pid", &pid];
        let output = command(&arguments)
            .args(["--view", view, "--format", format])
            .output()
            .expect("the binary runs");
        assert!(is_done(output.status), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        // Lines of CSV end as RFC 4180 says.
        let text = text.replace("\r\n", "\n");
        let hostile: Vec<char> = text
            .chars()
            .filter(|c| is_unsafe(*c) && *c != '\n')
            .collect();
        assert!(hostile.is_empty(), "{view} {format}: {hostile:?}");
        let named = text.matches(REPLACEMENT).count() as u64;
        demand(&format!("scrubbed characters, {view} {format}"), named, 3);
        match format {
            "csv" => demand_rectangular(&text),
            "jsonl" => {
                for line in text.lines() {
                    serde_json::from_str::<serde_json::Value>(line).expect("JSON");
                }
            }
            _ => {}
        }
    }
}

/// Every line has as many cells as the first; quotes as in RFC 4180.
fn demand_rectangular(csv: &str) {
    let cells = |line: &str| {
        let (mut cells, mut is_quoted) = (1, false);
        for c in line.chars() {
            match c {
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => cells += 1,
                _ => {}
            }
        }
        assert!(!is_quoted, "{line}");
        cells
    };
    let mut lines = csv.lines().filter(|line| !line.starts_with('#')).map(cells);
    let first: u64 = lines.next().expect("a line of names");
    assert!(lines.all(|n| n == first), "{csv}");
}

/// More keys than the table of advices holds, each of them once.
#[test]
fn a_lossy_batch_ends_with_status_4() {
    const PROCESSES: u64 = 50;
    const ADVICES: u64 = 100;
    const TABLE: u64 = 4096;
    let mut child = Child::start("top_many_advices", &[PROCESSES, ADVICES]);
    let mut batch = Batch::start(&["-n", "8", "--view", "madvise", "--comm", "fs-advices"]);
    child.step();
    let lines = batch.lines.take().expect("a pipe").lines();
    let last: serde_json::Value = lines
        .map(|line| serde_json::from_str(&line.expect("UTF-8")).expect("JSON"))
        .last()
        .expect("more lines");
    let lost = last["lost"]["madvise_map_full"]["total"].as_u64();
    demand_exactly(
        "madvise_map_full",
        lost.expect("a counter"),
        PROCESSES * ADVICES - TABLE,
    );
    let mut error = String::new();
    let mut pipe = batch.process.stderr.take().expect("a pipe");
    pipe.read_to_string(&mut error).expect("UTF-8");
    assert!(error.contains("madvise_map_full"), "{error}");
    assert_eq!(ended(&mut batch.process).code(), Some(4));
    demand_gone(&batch.programs);
}

/// Faults, unmaps and advises under names that mean harm, until it is killed.
fn hostile(link: &mut Link, _: &[u64]) {
    const NAME: &[u8] = b"\x1b[2J\xe2\x80\xae\xff,\"\n\r\x07";
    let main = format!("/proc/self/task/{}/comm", std::process::id());
    std::fs::write(main, NAME).expect("the name of a thread of ours");
    let name = [NAME, b"\0"].concat();
    // SAFETY: a name that ends in NUL.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    link.stop([0; 4]);
    loop {
        let pages = Pages::new(10);
        pages.touch();
        pages.advise(libc::MADV_DONTNEED);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes that give each advice once, at an address the kernel refuses.
fn many_advices(link: &mut Link, arguments: &[u64]) {
    // SAFETY: a name that ends in NUL.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"fs-advices".as_ptr()) };
    link.stop([0; 4]);
    for _ in 0..arguments[0] {
        // SAFETY: the child makes system calls alone.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "fork");
        if pid == 0 {
            for advice in 0..i32::try_from(arguments[1]).unwrap_or(0) {
                // SAFETY: not the start of a page: refused before anything else.
                unsafe { libc::madvise(std::ptr::without_provenance_mut(1), 1, advice) };
            }
            // SAFETY: ends the process without running anything of the parent's.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: a child of ours; its status is not wanted.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    }
    link.stop([0; 4]);
}
