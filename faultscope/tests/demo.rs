//! The recording that ships with the tool is a real one, and whole.

use std::process::Command;

use faultscope::store::Recording;
use faultscope::workload::results;

/// Bytes it may add to the binary.
const MOST_BYTES: usize = 300 << 10;

static DEMO: &[u8] = include_bytes!("../demo/demo.fsc.z");

#[test]
fn the_demo_holds_command_host_losses_and_sysbench_s_own_figure() {
    assert!(DEMO.len() <= MOST_BYTES, "{} bytes", DEMO.len());
    let mut demo = Recording::from_packed("the demo", DEMO).expect("readable");
    assert!(demo.is_complete() && demo.len() >= 20, "{}", demo.len());
    let run = demo.run().clone();
    assert_eq!(run.host, "demo");
    assert!(run.facts.len() > 10 && !run.kernel_config.is_empty());
    assert!(!run.losses.is_empty() && !run.probes.is_empty());
    let workload = run.workload.expect("it was made of a command");
    assert_eq!(workload.argv[..2], ["sysbench", "oltp_read_write"]);
    let ended = workload.ended.expect("the command ended");
    assert_eq!(ended.code, Some(0));

    // Derived anew from the text, the figure is the one that was stored, and sysbench's line.
    let stored = demo.metrics().to_vec();
    let (metrics, refused) = results(&workload.output.text, &[]);
    assert_eq!(refused, [""; 0]);
    assert_eq!(metrics, stored);
    let line = workload
        .output
        .text
        .lines()
        .find(|line| line.trim_start().starts_with("transactions:"))
        .expect("sysbench's line");
    let per_sec = line.split(['(', ' ']).filter(|w| !w.is_empty()).nth(2);
    let per_sec: f64 = per_sec.and_then(|w| w.parse().ok()).expect("a figure");
    let found = stored.iter().any(|m| (m.value - per_sec).abs() < 1e-9);
    assert!(found, "{per_sec} is not among {stored:?}");

    // Every interval can be read.
    let n = demo.len();
    assert_eq!(demo.intervals(0..n).filter(Result::is_ok).count(), n);
}

#[test]
fn the_demo_needs_no_rights_and_shows_a_finding() {
    let done = Command::new(env!("CARGO_BIN_EXE_faultscope"))
        .args(["top", "--demo", "-b", "--view", "findings"])
        .output()
        .expect("the binary runs");
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(text.contains("an outside reader holds mmap_lock"), "{text}");
    assert!(text.contains("mariadbd("), "{text}");
}
