//! One point of a bench: what is done, in the words of the command line that does it.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use super::{Bench, Case};
use crate::load::allowed;
use crate::units::format_bytes;

/// One point of a bench.
#[derive(Debug, Clone)]
pub struct Job {
    /// The bench.
    pub bench: &'static Bench,
    /// One of its cases.
    pub case: &'static Case,
    /// Threads or processes.
    pub members: usize,
    /// Processes, each with an address space of its own, rather than threads of one.
    pub are_processes: bool,
    /// Memory of all members together, bytes.
    pub bytes: u64,
    /// The sweep has several sizes, so that the size tells its series apart.
    pub has_sizes: bool,
    /// Times the work is done within the point.
    pub rounds: u32,
    /// Which repetition of the point this is, from 1.
    pub repetition: u32,
    /// Members stay on a CPU each.
    pub is_pinned: bool,
    /// Directory of the memory cgroup in which the work is done, if it is one of memory pressure.
    pub cgroup: Option<PathBuf>,
    /// Where files that the work needs are made; the current directory if not given.
    pub directory: Option<PathBuf>,
}

impl Job {
    /// Arguments after the program's name that do the work of this point.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = [
            "bench-load",
            self.bench.name,
            "--case",
            self.case.name,
            if self.are_processes {
                "--processes"
            } else {
                "--threads"
            },
        ]
        .map(OsString::from)
        .into();
        words.push(self.members.to_string().into());
        for (option, value) in [
            ("--size", self.bytes.to_string()),
            ("--rounds", self.rounds.to_string()),
        ] {
            words.extend([option.into(), value.into()]);
        }
        if !self.is_pinned {
            words.push("--no-pin".into());
        }
        if let Some(directory) = &self.directory {
            words.extend(["--files".into(), directory.into()]);
        }
        if let Some(cgroup) = &self.cgroup {
            words.extend(["--cgroup".into(), cgroup.into()]);
        }
        words
    }

    /// What sets the point apart from others of its bench, for the figures it prints.
    #[must_use]
    pub fn keys(&self) -> Vec<(&'static str, String)> {
        vec![
            ("case", self.case.name.to_owned()),
            (self.members_key(), self.members.to_string()),
            ("mib", mib(self.bytes)),
            (crate::workload::REPETITIONS, self.rounds.to_string()),
        ]
    }

    /// CPUs for the members, one each, from the highest down: interrupts and housekeeping prefer the lowest. Empty if
    /// they are not to be bound.
    ///
    /// # Errors
    /// What sched_getaffinity(2) says.
    pub fn cpus(&self) -> io::Result<Vec<usize>> {
        if self.is_pinned {
            Ok(allowed()?.into_iter().rev().collect())
        } else {
            Ok(Vec::new())
        }
    }

    /// `threads` or `processes`.
    #[must_use]
    pub const fn members_key(&self) -> &'static str {
        if self.are_processes {
            "processes"
        } else {
            "threads"
        }
    }

    /// The case, that members are processes, and the size if the sweep has several: what a series of points has in
    /// common.
    #[must_use]
    pub fn series(&self) -> String {
        let kind = if self.are_processes { "/proc" } else { "" };
        let size = if self.has_sizes {
            format!("/{}m", mib(self.bytes))
        } else {
            String::new()
        };
        format!("{}{kind}{size}", self.case.name)
    }

    /// The point in a message: `anon, 2 threads, 64.0MiB`.
    #[must_use]
    pub fn title(&self) -> String {
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        let size = format_bytes(self.bytes as f64);
        let key = match (self.are_processes, self.members) {
            (false, 1) => "thread",
            (true, 1) => "process",
            _ => self.members_key(),
        };
        format!("{}, {} {key}, {size}", self.case.name, self.members)
    }

    /// Name of its recording: `fault-anon-2t-64m-1.fsc`.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!(
            "{}-{}-{}{}-{}m-{}.fsc",
            self.bench.name,
            self.case.name,
            self.members,
            if self.are_processes { 'p' } else { 't' },
            mib(self.bytes),
            self.repetition
        )
    }
}

/// MiB as text, without digits that say nothing.
fn mib(bytes: u64) -> String {
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact below 2^53 bytes, and a power of two divides"
    )]
    let mib = bytes as f64 / f64::from(1 << 20);
    mib.to_string()
}
