//! The process that holds the loads: one command a line, one answer a line.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, anyhow, bail};

use crate::proc::run;

/// A load by its command, with what its events are and what it is called.
pub(super) struct Load {
    command: &'static str,
    pub(super) event: &'static str,
    pub(super) title: &'static str,
}

/// The loads, in the order of the tables.
pub(super) const LOADS: [Load; 2] = [
    Load {
        command: "faults",
        event: "fault",
        title: "write faults of one thread",
    },
    Load {
        command: "maps",
        event: "round",
        title: "four threads of one process map, touch and unmap a page",
    },
];

/// The program of `faultscope/examples` that holds the loads.
const LOAD: &str = "measured_load";

/// The programs that are measured.
pub(super) struct Built {
    pub(super) faultscope: PathBuf,
    pub(super) load: PathBuf,
}

/// Builds faultscope and the load.
pub(super) fn build(root: &Path) -> Result<Built> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo)
        .args(["build", "--release", "--quiet", "--package", "faultscope"])
        .args(["--bin", "faultscope", "--example", LOAD])
        .current_dir(root))?;
    let release = root.join("target/release");
    Ok(Built {
        faultscope: release.join("faultscope"),
        load: release.join("examples").join(LOAD),
    })
}

/// A stretch of load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Block {
    pub(super) events: u64,
    /// ns.
    pub(super) wall: u64,
    /// CPU time of the load's process, all threads, ns.
    pub(super) cpu: u64,
}

impl Block {
    /// Wall time of an event, ns.
    pub(super) fn wall_ns(&self) -> f64 {
        self.wall as f64 / self.events as f64
    }

    /// CPU time of an event, ns.
    pub(super) fn cpu_ns(&self) -> f64 {
        self.cpu as f64 / self.events as f64
    }

    fn parse(answer: &str) -> Option<Self> {
        let mut words = answer.split(' ').map(|word| word.parse().ok());
        let mut next = || words.next().flatten().filter(|&n: &u64| n > 0);
        Some(Self {
            events: next()?,
            wall: next()?,
            cpu: next()?,
        })
    }
}

/// The load's process; it ends with the value.
pub(super) struct Driver {
    child: Child,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    block_ms: u32,
}

impl Driver {
    pub(super) fn start(program: &Path, block_ms: u32) -> Result<Self> {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting \"{}\"", program.display()))?;
        let (commands, answers) = (child.stdin.take(), child.stdout.take());
        Ok(Self {
            child,
            commands: commands.context("the load has no input")?,
            answers: BufReader::new(answers.context("the load has no output")?).lines(),
            block_ms,
        })
    }

    fn ask(&mut self, command: &str) -> Result<String> {
        writeln!(self.commands, "{command}").context("the load is gone")?;
        let answer = self
            .answers
            .next()
            .ok_or_else(|| anyhow!("the load ended; its own message is above"))?
            .context("reading the load's answer")?;
        match answer.strip_prefix("no ") {
            Some(reason) => bail!("{reason}"),
            None => Ok(answer),
        }
    }

    /// Runs a load for one block.
    pub(super) fn block(&mut self, load: usize) -> Result<Block> {
        let command = format!("{} {}", LOADS[load].command, self.block_ms);
        let answer = self
            .ask(&command)
            .with_context(|| format!("running {}", LOADS[load].title))?;
        Block::parse(&answer).with_context(|| format!("the load answered \"{answer}\""))
    }

    /// Switches run-time statistics.
    pub(super) fn statistics(&mut self, on: bool) -> Result<()> {
        let command = format!("statistics {}", if on { "on" } else { "off" });
        self.ask(&command)
            .context("switching run-time statistics")?;
        Ok(())
    }

    /// Names of the BPF programs in the kernel, by id.
    pub(super) fn names(&mut self) -> Result<BTreeMap<u64, String>> {
        let answer = self
            .ask("names")
            .context("asking for the names of programs")?;
        let pairs = answer.split(' ').filter_map(|pair| pair.split_once('='));
        Ok(pairs
            .filter_map(|(id, name)| Some((id.parse().ok()?, name.to_owned())))
            .collect())
    }

    /// What run-time statistics say of a program that does nothing, ns a run.
    pub(super) fn empty_run_ns(&mut self) -> Result<f64, String> {
        let answer = self.ask("empty").map_err(|error| format!("{error:#}"))?;
        answer
            .parse()
            .map_err(|_| format!("the load answered \"{answer}\""))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // One that is gone already is no error.
        let _gone = self.child.kill().and_then(|()| self.child.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_events_is_no_block() {
        let block = Block::parse("100 5000 4000").expect("three numbers");
        assert!((block.wall_ns() - 50.0).abs() < 1e-9 && (block.cpu_ns() - 40.0).abs() < 1e-9);
        for answer in ["", "0 5000 4000", "100 5000", "no load"] {
            assert_eq!(Block::parse(answer), None, "{answer}");
        }
    }
}
