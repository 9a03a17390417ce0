//! What faultscope costs, against the bars it is held to. Prints ratios and verdicts; a missed bar fails nothing.
//!
//! Programs and sets are measured by the product itself (`doctor --cost --json`), `top` from outside, in `/proc`.

mod compare;
pub(crate) mod overhead;
mod report;
pub(crate) mod touch;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::proc::{capture, run};

/// Bar and aim of a figure.
struct Bar {
    most: f64,
    aim: f64,
}

/// ns for each event of a program that adds to a counter of its CPU.
const COUNTER: Bar = Bar {
    most: 10.0,
    aim: 5.0,
};
/// ns for each event of a program with rows of threads and filters, clock reads apart.
const SCOPED: Bar = Bar {
    most: 25.0,
    aim: 12.0,
};
/// Share of a fault that the core set may take.
const CORE: Bar = Bar {
    most: 0.03,
    aim: 0.01,
};
/// Share of a fault that all sets may take.
const ALL: Bar = Bar {
    most: 0.07,
    aim: 0.07,
};
/// Share of one CPU that a tick each second may take, in percent.
const TICK_PERCENT: f64 = 0.5;
/// Resident memory after the first tick.
const RESIDENT_MIB: f64 = 40.0;
/// Resident memory at its highest.
const PEAK_MIB: f64 = 96.0;
/// Processes that `top` has to show.
const SLEEPERS: usize = 500;
/// Pages each of them touches each second.
const TOUCHED_PAGES: usize = 64;
/// Ticks of `top`, one second each: with a clock of 100 Hz one part in 2,000 is told.
const TICKS: usize = 20;

impl Bar {
    fn verdict(&self, value: f64) -> &'static str {
        match value {
            value if value <= self.aim => "PASS, aim reached",
            value if value <= self.most => "PASS",
            _ => "MISS",
        }
    }
}

/// Builds the release binary and prints the figures.
pub(crate) fn bench(root: &Path) -> Result<()> {
    let binary = built(root)?;
    println!("measuring programs and sets; this takes about a minute");
    let report = capture(Command::new(&binary).args(["doctor", "--cost", "--json"]))?;
    let report = serde_json::from_str(&report).context("reading what doctor --cost printed")?;
    print!("{}", programs(&report));
    print!("{}", sets(&report));
    println!("measuring top with {SLEEPERS} processes for {TICKS} seconds");
    print!("{}", top(&binary)?);
    print!("{}", report::report(&binary)?);
    println!("measuring compare: makes 200 recordings");
    print!("{}", compare::compare(root)?);
    Ok(())
}

/// The last part of [`bench`] alone.
pub(crate) fn report(root: &Path) -> Result<()> {
    print!("{}", report::report(&built(root)?)?);
    Ok(())
}

fn built(root: &Path) -> Result<PathBuf> {
    run(Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", "faultscope"])
        .current_dir(root))?;
    Ok(root.join("target/release/faultscope"))
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

/// The table of programs, stacked copies less the empty program.
fn programs(report: &Value) -> String {
    let clock_ns = report["clock_ns"].as_f64().unwrap_or(0.0);
    let mut text = format!(
        "\nns for each event less an empty program (8 stacked copies); clock read {clock_ns:.0} ns\n"
    );
    for row in list(report, "cost") {
        let name = row["program"].as_str().unwrap_or("?");
        let filter = row["filter"]
            .as_str()
            .map_or_else(String::new, |filter| format!(", {filter} filter"));
        let Some(ns) = row["ns_stacked"].as_f64() else {
            if let Some(stats) = row["ns_stats"].as_f64() {
                text += &format!("  {:>7}  {name} ({stats:.1} by statistics)\n", "-");
            }
            continue;
        };
        let quartile = |index: usize| row["iqr"][index].as_f64().unwrap_or(f64::NAN);
        text += &format!(
            "  {ns:>7.1}  [{:.1}, {:.1}]  {name}{filter}: {}\n",
            quartile(0),
            quartile(1),
            program_verdict(row, ns, clock_ns)
        );
    }
    text
}

fn program_verdict(row: &Value, ns: f64, clock_ns: f64) -> String {
    match row["class"].as_str() {
        Some("counter") => COUNTER.verdict(ns).to_owned(),
        Some("scoped") => SCOPED.verdict(ns).to_owned(),
        // Each run reads the clock once; what is left is shared by the runs.
        Some("clocked") => match row["runs_per_event"].as_f64().filter(|runs| *runs > 0.0) {
            Some(runs) => {
                let each = ns / runs - clock_ns;
                format!(
                    "{each:.1} a run without its clock read: {}",
                    SCOPED.verdict(each)
                )
            }
            None => "runs were not counted".to_owned(),
        },
        _ => "no bar".to_owned(),
    }
}

/// Programs' costs added up for a fault, and the throughput measured in pairs.
fn sets(report: &Value) -> String {
    let mut text = "\nsum of the programs' ns for each fault / bare ns of a fault\n".to_owned();
    for budget in list(report, "budgets") {
        let set = budget["set"].as_str().unwrap_or("?");
        let ratio = budget["ratio"].as_f64().unwrap_or(f64::NAN);
        let bar = if set == "core" { CORE } else { ALL };
        text += &format!(
            "  {set:<5} {:<12} {:>6.2} % of {:.0} ns: {}\n",
            budget["load"].as_str().unwrap_or("?"),
            100.0 * ratio,
            budget["bare_ns"].as_f64().unwrap_or(f64::NAN),
            bar.verdict(ratio)
        );
    }
    if let Some(reason) = report["no_statistics"].as_str() {
        text += &format!("  not measured without run-time statistics: {reason}\n");
    }
    text += "\nthroughput with the set / without, paired [95 % interval]\n";
    for effect in list(report, "effects") {
        let spread = |key: &str| {
            // The report has times; throughput is their inverse, so the bounds change places.
            let part = |bound: &str| 1.0 / effect[key][bound].as_f64().unwrap_or(f64::NAN);
            format!(
                "{:.3} [{:.3}, {:.3}]",
                part("median"),
                part("high"),
                part("low")
            )
        };
        text += &format!(
            "  {:<8} {:<14} {}, A/A {}, {} pairs{}\n",
            effect["set"].as_str().unwrap_or("?"),
            effect["load"].as_str().unwrap_or("?"),
            spread("time_ratio"),
            spread("null_ratio"),
            effect["pairs"],
            if effect["is_resolved"] == true {
                ""
            } else {
                " (A/A wider than 1.5 %: the machine is not quiet)"
            }
        );
    }
    text
}

/// Children that end with the value.
struct Sleepers(Vec<Child>);

impl Sleepers {
    /// So many processes, of which the first `busy` fault.
    fn start(count: usize, busy: usize) -> Result<Self> {
        let own = std::env::current_exe().context("finding this program")?;
        let mut sleepers = Self(Vec::new());
        for number in 0..count {
            let mut command = Command::new(&own);
            command.arg("sleeper");
            if number >= busy {
                command.arg("--idle");
            }
            let child = command.stdin(Stdio::null()).spawn();
            sleepers
                .0
                .push(child.context("starting a sleeping process")?);
        }
        Ok(sleepers)
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that is gone already is no error.
            let _gone = child.kill().and_then(|()| child.wait());
        }
    }
}

/// Touches some pages each second, unless it is idle, until the parent is gone: one of the processes `top` and `record`
/// are measured with.
pub(crate) fn sleep_and_fault(is_idle: bool) {
    let parent = std::os::unix::process::parent_id();
    while std::os::unix::process::parent_id() == parent {
        if is_idle {
            // Seldom, or looking would be all it does.
            std::thread::sleep(Duration::from_secs(10));
            continue;
        }
        // Large enough to be mapped and unmapped each time, so every page faults again.
        let mut pages = vec![0_u8; TOUCHED_PAGES * 4096];
        for page in pages.chunks_mut(4096) {
            page[0] = 1;
        }
        std::hint::black_box(&pages);
        drop(pages);
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// `top` in batch mode, seen from outside.
fn top(binary: &Path) -> Result<String> {
    let sleepers = Sleepers::start(SLEEPERS, SLEEPERS)?;
    std::thread::sleep(Duration::from_secs(2));
    let begin = Instant::now();
    let mut child = Command::new(binary)
        .args([
            "top",
            "-b",
            "-d",
            "1",
            "--view",
            "processes",
            "--format",
            "jsonl",
        ])
        .args(["-n", &TICKS.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .context("starting top")?;
    let pid = child.id();
    let out = child.stdout.take().context("top has no output")?;
    let mut first = None;
    let mut last = None;
    let mut header = Value::Null;
    for line in BufReader::new(out).lines() {
        let line = line.context("reading what top prints")?;
        let object: Value = serde_json::from_str(&line).context("top printed no JSON")?;
        if object.get("header").is_some() {
            header = object["header"].clone();
        }
        // The process is gone after its last line; what was read before then stands.
        if let Ok(reading) = Reading::of(pid, begin.elapsed()) {
            first.get_or_insert(reading);
            last = Some(reading);
        }
    }
    let status = child.wait().context("waiting for top")?;
    drop(sleepers);
    // 4: events were lost, which is no matter here.
    if !status.success() && status.code() != Some(4) {
        bail!("top failed ({status}); its own message is above");
    }
    let (Some(first), Some(last)) = (first, last) else {
        bail!("top printed nothing while it ran");
    };
    Ok(top_text(&first, &last, &header))
}

fn top_text(first: &Reading, last: &Reading, header: &Value) -> String {
    let verdict = |is_met: bool| if is_met { "PASS" } else { "MISS" };
    let wall = last.at.saturating_sub(first.at).as_secs_f64();
    let percent = 100.0 * (last.cpu_seconds - first.cpu_seconds) / wall;
    let start = first.at.as_secs_f64();
    let mut text = format!(
        "\ntop, one tick a second\n  \
         CPU {percent:.2} % of one CPU over {wall:.0} s (bar {TICK_PERCENT} %): {}\n  \
         resident after the first tick {:.1} MiB (bar {RESIDENT_MIB}): {}\n  \
         peak {:.1} MiB (bar {PEAK_MIB}): {}\n  \
         first frame after {start:.2} s, one second of it counting (bar one interval, 1 s): {}\n",
        verdict(percent <= TICK_PERCENT),
        first.resident_mib,
        verdict(first.resident_mib <= RESIDENT_MIB),
        last.peak_mib,
        verdict(last.peak_mib <= PEAK_MIB),
        verdict(start <= 1.0),
    );
    if let Some(own) = header["own_cpu_ratio"].as_f64() {
        text += &format!("  top's own figure for its CPU: {:.2} %\n", 100.0 * own);
    }
    text
}

/// What the kernel says of a process.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Reading {
    at: Duration,
    cpu_seconds: f64,
    resident_mib: f64,
    peak_mib: f64,
}

impl Reading {
    fn of(pid: u32, at: Duration) -> Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        parse(&stat, &status, at).context("reading /proc")
    }
}

/// CPU time and memory from the texts of `/proc/PID/stat` and `status`; `None` for a process that has no memory left.
fn parse(stat: &str, status: &str, at: Duration) -> Option<Reading> {
    // The name in brackets may hold spaces and brackets; utime and stime are fields 14 and 15 (proc(5)), in units of
    // 10 ms: USER_HZ is 100 wherever Linux runs.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    let mib = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
        Some(kib / 1024.0)
    };
    Some(Reading {
        at,
        cpu_seconds: (user + system) / 100.0,
        resident_mib: mib("VmRSS:")?,
        peak_mib: mib("VmHWM:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_process_is_read_past_a_hostile_name() {
        let stat = "7 (a) R 1) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 5 6 7";
        let status = "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1536 kB\n";
        let reading = parse(stat, status, Duration::from_secs(1)).expect("both texts are whole");
        assert!((reading.cpu_seconds - 3.0).abs() < 1e-9);
        assert!((reading.resident_mib - 1.5).abs() < 1e-9);
        assert!((reading.peak_mib - 2.0).abs() < 1e-9);
        assert_eq!(parse(stat, "Name:\tzombie\n", Duration::ZERO), None);
    }

    #[test]
    fn bars_include_their_bound() {
        assert_eq!(COUNTER.verdict(5.0), "PASS, aim reached");
        assert_eq!(COUNTER.verdict(10.0), "PASS");
        assert_eq!(COUNTER.verdict(10.1), "MISS");
    }

    #[test]
    fn programs_that_time_are_judged_without_the_clock() {
        let report = json!({ "clock_ns": 20.0, "cost": [
            { "program": "lru_insertion", "class": "counter", "ns_stacked": 11.0, "iqr": [10.0, 12.0] },
            { "program": "fault_user", "class": "scoped", "ns_stacked": 24.0, "iqr": [20.0, 26.0], "filter": "pid" },
            { "program": "a + b", "class": "clocked", "ns_stacked": 120.0, "iqr": [110.0, 130.0], "runs_per_event": 3.0 },
            { "program": "wait", "class": "wait", "ns_stacked": null, "ns_stats": 300.0 },
            { "program": "task_exit", "class": "rare", "ns_stacked": null, "ns_stats": null },
        ]});
        let text = programs(&report);
        for line in [
            "lru_insertion: MISS",
            "fault_user, pid filter: PASS\n",
            "a + b: 20.0 a run without its clock read: PASS\n",
            "wait (300.0 by statistics)",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(!text.contains("task_exit"), "{text}");
    }

    #[test]
    fn throughput_is_the_inverse_of_time() {
        let spread = json!({ "low": 1.0, "median": 1.25, "high": 2.0 });
        let report = json!({
            "budgets": [{ "set": "core", "load": "read faults", "bare_ns": 800.0, "ratio": 0.02 },
                        { "set": "all", "load": "write faults", "bare_ns": 1000.0, "ratio": 0.08 }],
            "effects": [{ "set": "core", "load": "write faults", "time_ratio": spread, "null_ratio": spread,
                          "pairs": 12, "is_resolved": false }],
        });
        let text = sets(&report);
        for part in [
            "2.00 % of 800 ns: PASS\n",
            "8.00 % of 1000 ns: MISS",
            "0.800 [0.500, 1.000], A/A",
            "not quiet",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
