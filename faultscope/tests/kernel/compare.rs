//! `compare` of runs of this kernel: a change whose answer is known, no change at all, and states that may not be held
//! against each other.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::lru::Switch;
use crate::record::{Directory, open, record};
use crate::support::{
    demand, demand_exactly, demand_near, has_vma_locks, is_emulated, left_to_real_machines, object,
    skip,
};

/// Status of a sweep in whose recordings events are missing.
const LOSSY: i32 = 4;
/// Status of a comparison that may not be made.
const NOT_COMPARABLE: i32 = 4;

/// Rounds of two runs.
const ROUNDS: u32 = 10;

fn said(output: &Output) -> String {
    let all = [&output.stdout, &output.stderr];
    all.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

/// Runs `bench` into `directory`; losses of a busy machine are said, and judged by `compare`.
fn bench(directory: &Directory, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultscope"));
    command.arg("bench").args(arguments);
    command.arg("-o").arg(directory.file("runs"));
    command.arg("--files").arg(env!("CARGO_TARGET_TMPDIR"));
    if let Some(object) = object() {
        command.arg("--bpf-object").arg(object);
    }
    // What it prints is to be seen as it comes: a guest that says nothing for minutes is taken for hung.
    let status = command.stdin(Stdio::null()).status().expect("it runs");
    assert!(matches!(status.code(), Some(0 | LOSSY)), "{status:?}");
}

fn compare(arguments: &[&str], before: &[PathBuf], after: &[PathBuf]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultscope"));
    command.arg("compare").args(arguments).args(before);
    if !after.is_empty() {
        command.arg("--against").args(after);
    }
    command.output().expect("it runs")
}

/// The comparison as one document; its text is printed for whoever reads the log.
///
/// What else runs on this machine may lose events of its own and use huge pages: that is told, and not refused.
fn compared(arguments: &[&str], before: &[PathBuf], after: &[PathBuf]) -> Value {
    let arguments = [arguments, &["--vary", "loss", "--vary", "pages"]].concat();
    print!("{}", said(&compare(&arguments, before, after)));
    let json = [arguments.as_slice(), &["--format", "json"]].concat();
    let output = compare(&json, before, after);
    assert_eq!(output.status.code(), Some(0), "no regression, no refusal");
    serde_json::from_slice(&output.stdout).expect("one document")
}

/// The two numbers around the arrow that follow `words` in a sentence.
fn around_arrow(text: &str, words: &str) -> [u64; 2] {
    let (_, rest) = text.split_once(words).expect("the sentence has them");
    let mut numbers = rest.split_whitespace();
    let before = numbers.next().expect("a number");
    assert_eq!(numbers.next(), Some("->"), "{text}");
    let after = numbers.next().expect("a number");
    [before, after].map(|n| n.parse().expect("a whole number"))
}

/// MADV_FREE in place of MADV_DONTNEED is an improvement, and the explanation is refaults and zeroing.
#[test]
fn freeing_in_place_of_dropping_improves_and_refaults_explain_it() {
    // The oldest has the fewest programs to bring in.
    if is_emulated() && has_vma_locks() {
        skip("one emulated kernel does, for minutes");
        return;
    }
    // The fewest pairs with a verdict where a run takes half a minute.
    let rounds = if is_emulated() { 6 } else { ROUNDS };
    let directory = Directory::new("compare-madvise");
    bench(
        &directory,
        &[
            "madvise",
            "--case",
            "dontneed,free",
            "--threads",
            "1",
            "--size",
            "2M",
            "--rounds",
            "32",
            "--reps",
            &rounds.to_string(),
        ],
    );
    let side = |case: &str| -> Vec<PathBuf> {
        let name = |n| format!("runs/madvise-{case}-1t-2m-{n}.fsc");
        (1..=rounds).map(|n| directory.file(&name(n))).collect()
    };
    let found = compared(
        &["--vary", "command", "--paired"],
        &side("dontneed"),
        &side("free"),
    );
    assert_eq!(found["order"], "alternating");
    let primary = &found["metrics"][0];
    assert_eq!(primary["role"], "primary", "{primary}");
    assert_eq!(primary["verdict"], "improved", "{primary}");
    let findings = found["findings"].as_array().expect("a list");
    let told = findings
        .iter()
        .find(|finding| finding["id"] == "given_back")
        .and_then(|finding| finding["text"].as_str())
        .expect("the explanation");
    let [dropped, freed] = around_arrow(told, "faulted in again ");
    let pages = 32 * (2 << 20) / 4096;
    demand("refaults after MADV_DONTNEED", dropped, pages * 99 / 100);
    demand(
        "refaults after MADV_DONTNEED for each after MADV_FREE",
        dropped / freed.max(1),
        100,
    );
    let [dropped, freed] = around_arrow(told, "of the pages used again ");
    demand_exactly("pages zeroed after MADV_DONTNEED", dropped, pages);
    demand_near("pages zeroed after MADV_FREE", freed, 0, pages / 200);
    assert!(
        told.contains("the gain is faults and zeroing that are not done"),
        "{told}"
    );
}

/// Runs of one command have no confirmed regression, whatever the noise of this machine.
#[test]
fn two_halves_of_one_side_have_no_confirmed_regression() {
    if left_to_real_machines() {
        return;
    }
    let directory = Directory::new("compare-aa");
    bench(
        &directory,
        &[
            "fault",
            "--core",
            "--case",
            "anon",
            "--threads",
            "1",
            "--size",
            "4M",
            "--rounds",
            "8",
            "--reps",
            &(2 * ROUNDS).to_string(),
        ],
    );
    let runs = [directory.file("runs")];
    let found = compared(&["--aa", "--gate", "fault/wsec=5"], &runs, &[]);
    let gate = &found["gates"][0];
    assert_eq!(gate["metric"], "fault/wsec");
    assert_eq!(gate["is_regressed"], false, "{gate}");
    for side in ["before", "after"] {
        let runs = found["runs"][side].as_array().expect("a list");
        demand_exactly(side, runs.len() as u64, u64::from(ROUNDS));
    }
}

/// Runs with multi-generational LRU on and off are refused, and compared when that is what is meant: with the times of
/// faults and of lru_lock where the kernel lets programs on its functions in.
#[test]
fn runs_of_another_mglru_state_are_refused() {
    let Some(_switch) = Switch::new() else {
        skip("this kernel is built without multi-generational LRU");
        return;
    };
    let directory = Directory::new("compare-mglru");
    let inner = directory.file("inner");
    let run = |name: &str, on: bool| {
        Switch::set(on);
        let file = directory.file(name);
        let points = inner.to_str().expect("UTF-8");
        let load = [
            "--",
            env!("CARGO_BIN_EXE_faultscope"),
            "bench",
            "fault",
            "--bare",
            "--case",
            "anon",
            "--threads",
            "1",
            "--size",
            "4M",
            "--rounds",
            "4",
            "-o",
            points,
        ];
        let output = record(&file, &load).output().expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        // The same command for the other side.
        std::fs::remove_dir_all(&inner).expect("it was made");
        [file]
    };
    let (off, on) = (run("off.fsc", false), run("on.fsc", true));
    let refused = compare(&[], &off, &on);
    print!("{}", said(&refused));
    assert_eq!(refused.status.code(), Some(NOT_COMPARABLE));
    assert!(said(&refused).contains("mglru: ") && said(&refused).contains("--vary mglru"));
    let found = compared(&["--vary", "mglru"], &off, &on);
    let notes = found["notes"].to_string();
    assert!(!notes.contains("FORCED"), "{notes}");
    let forced = compare(&["--force"], &off, &on);
    assert_eq!(forced.status.code(), Some(0), "{}", said(&forced));
    assert!(said(&forced).contains("FORCED: the sides are not comparable"));

    let recording = open(&off[0]);
    for (signal, name, floor) in [
        ("fault_latency", "fault", 4 * 1024),
        // Folios reach the LRU in batches of 15 or 31, if they are not large.
        ("lru_lock_hold", "region of lru_lock", 29),
    ] {
        let probes = &recording.run().probes;
        let is_measured = probes.iter().any(|p| p.signal == signal && p.is_attached);
        let durations = found["durations"].as_array().expect("a list");
        let of_name = durations.iter().find(|d| d["name"] == name);
        assert_eq!(of_name.is_some(), is_measured, "{name}: {durations:?}");
        let Some(of_name) = of_name else {
            println!("  {name}: this kernel lets no such program in");
            continue;
        };
        let fewest = of_name["fewest_values"].as_u64().expect("a count");
        demand(&format!("values of {name} in each run"), fewest, floor);
        for quantile in of_name["quantiles"].as_array().expect("a list") {
            let needed = quantile["needed_values"].as_u64().expect("a count");
            let comparison = &quantile["comparison_ns"];
            assert_eq!(comparison.is_object(), fewest >= needed, "{quantile}");
            for side in ["before", "after"] {
                let ns = comparison[side].as_f64();
                assert!(
                    fewest < needed || ns.is_some_and(|ns| ns > 0.0),
                    "{quantile}"
                );
            }
        }
    }
}
