//! The tools that are compared: starting one, knowing when it watches, stopping it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::proc::{capture, run};

/// Time in which a tool has to be ready.
const PATIENCE: Duration = Duration::from_secs(30);
/// Times a tool is told to end before it is killed.
const INTERRUPTS: usize = 4;
/// Time it has to end after each.
const INTERRUPTED: Duration = Duration::from_secs(3);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// A tool is ready when what it has attached has not changed for so long.
const SETTLED: Duration = Duration::from_millis(200);

/// One row of the tables.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    program: PathBuf,
    args: Vec<String>,
    /// Whether to wait until it has attached something.
    attaches: bool,
}

/// A tool that runs.
pub(super) struct Running {
    child: Child,
}

/// Runs of a BPF program and their time, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) runs: u64,
    pub(super) ns: u64,
}

/// Counts of a tool's BPF programs by their id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Programs(BTreeMap<u64, Counts>);

impl Programs {
    /// What each program added since `before`; one that was unloaded meanwhile counts nothing.
    pub(super) fn since(&self, before: &Self) -> BTreeMap<u64, Counts> {
        let added = self.0.iter().map(|(id, now)| {
            let before = before.0.get(id).copied();
            let before = before.unwrap_or(Counts { runs: 0, ns: 0 });
            let counts = Counts {
                runs: now.runs.saturating_sub(before.runs),
                ns: now.ns.saturating_sub(before.ns),
            };
            (*id, counts)
        });
        added.collect()
    }
}

/// All tools; `load` is the program of the loads, `attachable` are the programs that faultscope can attach here.
pub(super) fn all(faultscope: &Path, load: &Path, attachable: &[String]) -> Vec<Tool> {
    let tool = |name, program: &str, args: &[&str]| {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        Tool::new(name, Path::new(program), args)
    };
    let own = faultscope.to_string_lossy();
    let core = ["top", "--batch", "--view", "overview"];
    let mut everything = tool("faultscope, all this kernel allows", &own, &core);
    for program in attachable {
        everything
            .args
            .extend(["--probe".to_owned(), program.clone()]);
    }
    vec![
        Tool {
            attaches: false,
            ..tool("nothing (A/A)", "sleep", &["infinity"])
        },
        tool("an empty BPF program", &load.to_string_lossy(), &["hook"]),
        tool("faultscope core", &own, &core),
        everything,
        tool(
            "bpftrace, faults by process",
            "bpftrace",
            &["-e", "software:page-faults:1 { @[pid] = count(); }"],
        ),
        tool(
            "perf stat -a -e page-faults",
            "perf",
            &["stat", "-a", "-e", "page-faults", "-o", "/dev/null"],
        ),
        tool(
            "perf record -a -e page-faults -c 1",
            "perf",
            &[
                "record",
                "-a",
                "-e",
                "page-faults",
                "-c",
                "1",
                "-o",
                "/dev/null",
            ],
        ),
        tool(
            "perf trace -F all",
            "perf",
            &["trace", "-F", "all", "-o", "/dev/null"],
        ),
    ]
}

/// What the peers say of their version, for those that are there.
pub(super) fn versions() -> Vec<String> {
    let version = |command: &mut Command| capture(command.arg("--version")).ok();
    [
        version(&mut Command::new("bpftrace")),
        version(&mut Command::new("perf")),
    ]
    .into_iter()
    .flatten()
    .map(|text| text.trim().replace(" version", ""))
    .collect()
}

impl Tool {
    /// A program that attaches something, and how to start it.
    pub(super) fn new(name: &'static str, program: &Path, args: Vec<String>) -> Self {
        Self {
            name,
            program: program.to_owned(),
            args,
            attaches: true,
        }
    }

    /// A row whose program is nowhere.
    #[cfg(test)]
    pub(super) fn absent(program: &str) -> Self {
        Self::new("absent", Path::new(program), Vec::new())
    }

    /// Starts the tool and waits until it watches.
    pub(super) fn start(&self) -> Result<Running, String> {
        let mut command = Command::new(&self.program);
        // Peers say little on standard error: their data goes elsewhere.
        command
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!(
                "\"{}\" is not installed; \"cargo xtask setup --bench\" installs it",
                self.program.display()
            ),
            _ => format!("cannot be started: {error}"),
        })?;
        let mut running = Running { child };
        running.wait_until_ready(self.attaches)?;
        Ok(running)
    }
}

impl Running {
    fn wait_until_ready(&mut self, attaches: bool) -> Result<(), String> {
        let begin = Instant::now();
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            if let Some(said) = self.ended()? {
                return Err(format!("ended before it watched anything: {said}"));
            }
            let now = self.attached();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            if since.elapsed() >= SETTLED && (seen > 0 || !attaches) {
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                return Err(format!("attached nothing within {} s", PATIENCE.as_secs()));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The last line of its standard error if the tool has ended.
    fn ended(&mut self) -> Result<Option<String>, String> {
        let status = self.child.try_wait().map_err(|error| error.to_string())?;
        Ok(status.map(|status| {
            let mut said = String::new();
            if let Some(mut stderr) = self.child.stderr.take() {
                // What cannot be read leaves the status.
                let _read = stderr.read_to_string(&mut said);
            }
            let line = said.lines().rfind(|line| !line.trim().is_empty());
            line.map_or_else(|| status.to_string(), |line| line.trim().to_owned())
        }))
    }

    /// Its open files of perf events and BPF links.
    fn attached(&self) -> usize {
        let is_hook = |target: &str| target.contains("perf_event") || target.contains("bpf_link");
        self.files()
            .into_values()
            .filter(|target| is_hook(target))
            .count()
    }

    /// Number and target of each open file; none for a process that is gone.
    fn files(&self) -> BTreeMap<String, String> {
        let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", self.child.id())) else {
            return BTreeMap::new();
        };
        entries
            .flatten()
            .filter_map(|entry| {
                let target = fs::read_link(entry.path()).ok()?;
                let number = entry.file_name().into_string().ok()?;
                Some((number, target.to_string_lossy().into_owned()))
            })
            .collect()
    }

    /// CPU time of all its threads so far, ns: the first figure of `schedstat` (sched-stats.rst).
    pub(super) fn cpu_ns(&self) -> Result<u64> {
        let threads = format!("/proc/{}/task", self.child.id());
        let threads = fs::read_dir(threads).context("listing the tool's threads")?;
        let mut sum = 0;
        for thread in threads.flatten() {
            // One that ends just now has done nothing since.
            let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) else {
                continue;
            };
            let ns = text.split_whitespace().next().and_then(|n| n.parse().ok());
            sum += ns.unwrap_or(0_u64);
        }
        Ok(sum)
    }

    /// Counts of the BPF programs the tool holds; `None` if it holds none.
    pub(super) fn programs(&self) -> Option<Programs> {
        let mut programs = BTreeMap::new();
        for (number, target) in self.files() {
            if !target.contains("bpf-prog") {
                continue;
            }
            let file = format!("/proc/{}/fdinfo/{number}", self.child.id());
            let program = fs::read_to_string(file).ok().and_then(|text| parse(&text));
            programs.extend(program);
        }
        (!programs.is_empty()).then_some(Programs(programs))
    }

    /// Tells the tool to end as a user would, with an interrupt, and waits until it is gone.
    ///
    /// An interrupt can be lost on a tool that is just about to wait, so it is repeated. One that stays is killed: what
    /// was measured under it stands.
    pub(super) fn stop(mut self) -> Result<(), String> {
        if let Some(said) = self.ended()? {
            return Err(format!("ended while it was measured: {said}"));
        }
        let pid = self.child.id().to_string();
        for _ in 0..INTERRUPTS {
            run(Command::new("kill").args(["-INT", &pid])).map_err(|error| error.to_string())?;
            let begin = Instant::now();
            while begin.elapsed() < INTERRUPTED {
                if self.ended()?.is_some() {
                    return Ok(());
                }
                std::thread::sleep(LOOK);
            }
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After `stop` it is gone as a rule, which is no error.
        let _gone = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// Id and counts of a program from the text of its file in `/proc/PID/fdinfo`.
fn parse(text: &str) -> Option<(u64, Counts)> {
    let number = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().parse().ok()
    };
    let counts = Counts {
        runs: number("run_cnt:")?,
        ns: number("run_time_ns:")?,
    };
    Some((number("prog_id:")?, counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_read_from_its_file() {
        let text = "pos:\t0\nprog_type:\t26\nprog_id:\t7\nrun_time_ns:\t300\nrun_cnt:\t10\n";
        let (id, counts) = parse(text).expect("all three are there");
        assert_eq!((id, counts), (7, Counts { runs: 10, ns: 300 }));
        assert_eq!(parse("pos:\t0\nlink_id:\t3\n"), None);
    }

    #[test]
    fn a_program_that_was_unloaded_takes_nothing_away() {
        let counts = |runs, ns| Counts { runs, ns };
        let before = Programs([(1, counts(50, 500)), (2, counts(10, 100))].into());
        let after = Programs([(2, counts(14, 180)), (3, counts(1, 7))].into());
        let added = [(2, counts(4, 80)), (3, counts(1, 7))];
        assert_eq!(after.since(&before), added.into());
    }

    #[test]
    fn a_tool_that_gives_up_leaves_its_last_word() {
        let mut tool = Tool::absent("sh");
        tool.args = ["-c", "echo first >&2; echo no right to >&2; exit 1"]
            .map(str::to_owned)
            .into();
        let reason = tool.start().err().expect("it ends at once");
        assert_eq!(reason, "ended before it watched anything: no right to");
    }

    #[test]
    fn a_tool_that_attaches_nothing_is_started_and_stopped() {
        let mut tool = Tool::absent("sleep");
        tool.args = vec!["infinity".to_owned()];
        tool.attaches = false;
        let running = tool.start().expect("sleep runs");
        assert_eq!(running.programs(), None);
        running.stop().expect("an interrupt ends it");
    }
}
