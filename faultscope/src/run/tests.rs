use super::*;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, Read as _, Seek as _};
use std::os::fd::{AsFd as _, AsRawFd as _};

/// Where the output of a test's command goes.
struct Outputs {
    files: [File; 2],
}

impl Outputs {
    fn new(name: &str) -> Self {
        let files = ["out", "err"].map(|stream| {
            let path = std::env::temp_dir()
                .join(format!("faultscope-{}-{name}-{stream}", std::process::id()));
            let file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(&path)
                .expect("a temporary file");
            std::fs::remove_file(path).expect("just made");
            file
        });
        Self { files }
    }

    fn relay(&self) -> (Relay, Inlets) {
        Relay::start_to([self.files[0].as_raw_fd(), self.files[1].as_raw_fd()])
            .expect("a process and two pipes")
    }

    fn text(&mut self) -> [String; 2] {
        self.files.each_mut().map(|file| {
            let mut text = String::new();
            file.rewind().expect("a file");
            file.read_to_string(&mut text).expect("UTF-8");
            text
        })
    }
}

fn command(words: &[&str]) -> Command {
    Command {
        argv: words.iter().map(OsString::from).collect(),
        environment: vec![("LC_ALL".into(), "C".into())],
    }
}

fn clock() -> u64 {
    use std::time::{SystemTime, UNIX_EPOCH};
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(0))
}

/// Runs a command to its end; how it ended, what was kept, what came out.
fn run(name: &str, words: &[&str]) -> (Ended, Drained, Kept, [String; 2]) {
    let signals = Signals::take().expect("signals");
    let mut outputs = Outputs::new(name);
    let (mut relay, inlets) = outputs.relay();
    let mut child = Child::start(&command(words), inlets, &signals, clock).expect("it can be run");
    let ended = child.end();
    let drained = relay.drain(&signals);
    (ended, drained, relay.kept(), outputs.text())
}

#[test]
fn output_is_passed_on_and_kept() {
    let (ended, drained, kept, text) = run(
        "both",
        &["sh", "-c", "echo out $LC_ALL; echo err >&2; exit 7"],
    );
    assert_eq!((ended.status(), drained), (7, Drained::Ended));
    assert_eq!(text, ["out C\n", "err\n"]);
    let kept = String::from_utf8(kept.bytes).expect("ASCII");
    assert!(kept.contains("out C\n") && kept.contains("err\n") && kept.len() == 10);
}

#[test]
fn more_than_pipes_hold_arrives_whole_from_both_streams() {
    let script = "i=0; while [ $i -lt 20000 ]; do echo out line $i; echo error line $i >&2; i=$((i+1)); done";
    let (ended, drained, kept, [out, err]) = run("much", &["sh", "-c", script]);
    assert_eq!((ended.status(), drained), (0, Drained::Ended));
    assert_eq!((out.lines().count(), err.lines().count()), (20_000, 20_000));
    assert!(out.ends_with("out line 19999\n") && err.ends_with("error line 19999\n"));
    let total = out.len() + err.len();
    assert_eq!(kept.bytes.len() as u64 + kept.dropped_bytes, total as u64);
    assert!(kept.dropped_bytes > 0);
}

#[test]
fn statuses_are_those_of_shells() {
    let (ended, ..) = run("killed", &["sh", "-c", "kill -TERM $$"]);
    assert_eq!((ended.signal, ended.status()), (Some(libc::SIGTERM), 143));
    let signals = Signals::take().expect("signals");
    let start = |words: &[&str]| {
        let outputs = Outputs::new("none");
        let (_relay, inlets) = outputs.relay();
        Child::start(&command(words), inlets, &signals, clock).expect_err("it cannot be run")
    };
    let error = start(&["faultscope-no-such-command"]);
    assert_eq!(error.status(), 127);
    assert!(
        error
            .to_string()
            .contains("\"faultscope-no-such-command\" was not found")
    );
    let error = start(&["/etc/passwd"]);
    assert_eq!(error.status(), 126);
    assert!(error.to_string().contains("cannot be run"), "{error}");
}

#[test]
fn what_it_used_is_what_the_kernel_says() {
    let (ended, ..) = run(
        "used",
        &[
            "sh",
            "-c",
            "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done",
        ],
    );
    let usage = ended.usage.expect("we reaped it");
    assert!(
        usage.user_ns + usage.system_ns > 0 && usage.minor_faults > 10,
        "{usage:?}"
    );
    assert!(usage.max_rss_bytes > 100 << 10, "{usage:?}");
    assert!(ended.at_ns > 0);
}

#[test]
fn a_daemon_left_behind_holds_nobody_up_and_keeps_its_output() {
    let signals = Signals::take().expect("signals");
    let (reader, writer) = io::pipe().expect("a pipe");
    let (mut relay, inlets) =
        Relay::start_to([writer.as_raw_fd(), writer.as_raw_fd()]).expect("a relay");
    drop(writer);
    // The daemon waits for the end of a pipe that this test holds, by a path: sh takes no descriptor of two digits.
    let (hold, held) = io::pipe().expect("a pipe");
    let script = format!(
        "{{ read x </proc/self/fd/{}; echo from the daemon; }} & echo from the command",
        hold.as_raw_fd()
    );
    keep_over_exec(&hold);
    let mut child =
        Child::start(&command(&["sh", "-c", &script]), inlets, &signals, clock).expect("sh");
    drop(hold);
    assert_eq!(child.end().status(), 0);
    assert_eq!(relay.drain(&signals), Drained::StillOpen);
    assert_eq!(relay.kept().bytes, b"from the command\n");
    // Gone without a word, as after kill -9.
    drop(relay);
    drop(held);
    assert_eq!(all_of(reader), "from the command\nfrom the daemon\n");
}

/// Lets a file stay open in programs started from here on.
fn keep_over_exec(file: &PipeReader) {
    // SAFETY: changes one flag of a live file.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) };
    assert_eq!(done, 0);
}

fn all_of(mut reader: PipeReader) -> String {
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("UTF-8");
    text
}

#[test]
fn a_closed_standard_output_closes_that_of_the_command() {
    let signals = Signals::take().expect("signals");
    let (reader, writer) = io::pipe().expect("a pipe");
    let other = Outputs::new("closed");
    let (_relay, inlets) =
        Relay::start_to([writer.as_raw_fd(), other.files[1].as_raw_fd()]).expect("a relay");
    drop((reader, writer));
    let mut child = Child::start(&command(&["yes"]), inlets, &signals, clock).expect("yes");
    assert_eq!(child.end().signal, Some(libc::SIGPIPE));
}

#[test]
fn the_command_starts_with_no_signal_blocked_and_the_end_wakes_us() {
    let signals = Signals::take().expect("signals");
    let outputs = Outputs::new("mask");
    let (mut relay, inlets) = outputs.relay();
    let words = [
        "sh",
        "-c",
        "while read key value; do case $key in SigBlk:) echo $value;; esac; done < /proc/self/status",
    ];
    let mut child = Child::start(&command(&words), inlets, &signals, clock).expect("sh");
    let [ended] = relay::wait([child.as_fd().as_raw_fd()], 20_000);
    assert!(ended, "the end of the command can be waited for");
    child.end();
    relay.drain(&signals);
    assert_eq!(relay.kept().bytes, b"0000000000000000\n");
}

#[test]
fn signals_are_taken_and_passed_on() {
    let mut signals = Signals::take().expect("signals");
    assert_eq!(signals.receive(), None);
    // SAFETY: to this thread, which blocks it.
    unsafe { libc::raise(libc::SIGTERM) };
    let taken = signals.receive().expect("it was sent");
    assert_eq!((taken.number, taken.name()), (libc::SIGTERM, "SIGTERM"));
    assert!(!taken.is_terminals);
    let outputs = Outputs::new("signal");
    let (_relay, inlets) = outputs.relay();
    let mut child =
        Child::start(&command(&["sleep", "1000"]), inlets, &signals, clock).expect("sleep");
    child.signal(taken.number);
    assert_eq!(child.end().status(), 128 + 15);
    // It has been reaped: its number may be anybody's.
    child.signal(libc::SIGKILL);
}
