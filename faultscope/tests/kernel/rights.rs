//! Rights taken away: one message that names what is missing, status 3, and
//! nothing in the kernel.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

use faultscope::commands::consult_kernel;
use faultscope::commands::session::{Options, Session};
use faultscope::error::{Exit, message};
use faultscope::host::{Fact, HostFacts};
use faultscope::plan::ProbeFacts;

use crate::support::{Child, demand_exactly, programs_of};

fn refused(host: &HostFacts, probes: Fact<ProbeFacts>, words: &[&str]) {
    let before = programs_of(std::process::id());
    let error = Session::start_on(Path::new("/"), host, probes, &Options::default())
        .expect_err("a right is missing");
    assert_eq!(Exit::of(&error), Exit::Refused, "{error:#}");
    let text = message(&error);
    println!("  {text}");
    assert!(!text.contains('\n') && !text.contains("root"), "{text}");
    for word in words {
        assert!(text.contains(word), "{text} lacks {word}");
    }
    let after = programs_of(std::process::id());
    demand_exactly("programs held", after.len() as u64, before.len() as u64);
}

fn facts() -> (HostFacts, Fact<ProbeFacts>) {
    let mut host = HostFacts::read(Path::new("/"));
    let probes = consult_kernel(Path::new("/"), &mut host);
    (host, probes)
}

#[test]
fn without_cap_bpf_nothing_is_attached() {
    let (mut host, probes) = facts();
    host.privilege.cap_bpf = Fact::no("taken away");
    host.privilege.cap_sys_admin = Fact::no("taken away");
    refused(&host, probes, &["lacks CAP_BPF", "setcap"]);
}

#[test]
fn without_cap_perfmon_nothing_is_attached() {
    let (mut host, probes) = facts();
    host.privilege.cap_perfmon = Fact::no("taken away");
    host.privilege.cap_sys_admin = Fact::no("taken away");
    refused(&host, probes, &["lacks CAP_PERFMON", "setcap"]);
}

#[test]
fn without_btf_nothing_is_attached() {
    let (host, _) = facts();
    let words = ["BTF", "there is no file", "CONFIG_DEBUG_INFO_BTF"];
    refused(&host, Fact::no("there is no file"), &words);
    refused(
        &host,
        Fact::unknown("it is damaged"),
        &["BTF", "it is damaged"],
    );
}

/// The control of the tests above: with every right a session holds programs.
#[test]
fn a_session_holds_its_programs_and_lets_them_go() {
    let before = programs_of(std::process::id());
    let session = crate::support::session(&[]);
    let held = programs_of(std::process::id());
    crate::support::demand(
        "programs held by a session",
        held.difference(&before).count() as u64,
        8,
    );
    drop(session);
    let after = programs_of(std::process::id());
    assert_eq!(after, before);
    crate::support::feature("core set of tracepoints", Ok(()));
}

/// The binary without some capabilities: those of the bounding set are all that
/// an executable of user 0 gets.
fn without(capabilities: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set", capabilities])
        .arg(env!("CARGO_BIN_EXE_faultscope"))
        .args(arguments);
    if let (Some(object), true) = (crate::support::object(), arguments[0] == "top") {
        command.arg("--bpf-object").arg(object);
    }
    command
        .output()
        .expect("SKIP: setpriv of the package util-linux cannot be run")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is UTF-8")
}

#[test]
fn rights_really_dropped_are_named() {
    let top = ["top", "-b", "-n", "1", "-d", "0.2"];
    for (dropped, name) in [
        ("-bpf,-sys_admin", "CAP_BPF"),
        ("-perfmon,-sys_admin", "CAP_PERFMON"),
    ] {
        let output = without(dropped, &["doctor"]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let lines = text(&output.stdout).lines();
        let verdict = lines.filter(|line| line.starts_with("verdict:"));
        println!("  {:?}", verdict.collect::<Vec<_>>());
        assert!(text(&output.stdout).contains(name));

        let output = without(dropped, &top);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let error = text(&output.stderr);
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(&format!("lacks {name}")), "{error}");

        let directory = crate::record::Directory::new("rights");
        let (file, witness) = (directory.file("run.fsc"), directory.file("witness"));
        let [path, ran] = [&file, &witness].map(|p| p.to_str().expect("UTF-8"));
        let output = without(dropped, &["record", "-o", path, "--", "touch", ran]);
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        let error = text(&output.stderr);
        assert!(error.contains(&format!("lacks {name}")), "{error}");
        assert!(!file.exists() && !witness.exists(), "nothing was run");
    }
}

/// `kernel.perf_event_paranoid`.
fn paranoid() -> i64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let text = text.expect("a kernel with perf events");
    text.trim().parse().expect("a number")
}

#[test]
fn the_two_capabilities_are_enough() {
    let all_but = "-all,+bpf,+perfmon";
    let output = without(all_but, &["doctor"]);
    if paranoid() > 2 && !output.status.success() {
        // Debian's kernels leave perf events to CAP_SYS_ADMIN then; nothing else is refused.
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let lines: Vec<&str> = text(&output.stdout).lines().collect();
        let failed: Vec<usize> = (0..lines.len())
            .filter(|n| lines[*n].starts_with("  fail"))
            .collect();
        for n in failed {
            println!("  {}", lines[n]);
            assert!(lines[n].contains("perf_event_open"), "{}", lines[n]);
            let fix = lines[n + 1..].iter().find(|line| line.contains("fix:"));
            assert!(fix.is_some_and(|line| line.contains("kernel.perf_event_paranoid=2")));
        }
    } else {
        assert!(output.status.success(), "{output:?}");
    }
    // An idle machine has no waits to show.
    let mut waiting = Child::start("lock_own_mm", &[]);
    let is_done = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                waiting.step();
            }
        });
        let output = without(
            all_but,
            &[
                "top", "-b", "-n", "3", "-d", "0.5", "--view", "locks", "--format", "jsonl",
            ],
        );
        is_done.store(true, Ordering::Relaxed);
        output
    });
    assert!(matches!(output.status.code(), Some(0 | 4)), "{output:?}");
    let mut rows = 0;
    for line in text(&output.stdout).lines() {
        let interval: serde_json::Value = serde_json::from_str(line).expect("JSON");
        for row in interval["rows"].as_array().expect("rows") {
            // Without CAP_SYSLOG no lock has an address and no call site a name.
            assert!(row["address"].is_null(), "{row}");
            let site = row["site"].as_str().unwrap_or("[");
            assert!(site.starts_with('['), "{row}");
            rows += 1;
        }
    }
    crate::support::demand("lock rows without addresses", rows, 1);
}
