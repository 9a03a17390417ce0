//! A run: what a recording says beside its increments. Pure data.

use std::{collections::BTreeMap, sync::Arc};

use crate::host::usage::Usage;

/// Label of a run that was made of a text: the name of its file.
pub const SOURCE: &str = "source";

/// One recorded run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// Identity, 32 hexadecimal digits drawn at the start.
    pub id: String,
    /// Version of the tool that recorded it.
    pub tool_version: String,
    /// Node name of the machine, scrubbed.
    pub host: String,
    /// Kernel release as `uname -r` prints it, scrubbed.
    pub kernel: String,
    /// State of multi-generational LRU in the words of the host facts.
    pub mglru: String,
    /// First reading, ns since the Unix epoch; 0 if it is not known, as of imported text.
    pub start_real_ns: u64,
    /// First reading, monotonic ns.
    pub start_mono_ns: u64,
    /// Interval asked for, ns.
    pub interval_ns: u64,
    /// Kernel-side filters in force, as the user wrote them.
    pub filter: String,
    /// What the user said of it: `--label KEY=VALUE`.
    pub labels: BTreeMap<String, String>,
    /// Number of its round, from 1, and its side, among alternating or repeated runs.
    pub round: Option<Round>,
    /// Host and kernel facts at the start, in the order of their catalogue.
    pub facts: Vec<RunFact>,
    /// The kernel's build options, sorted by name; empty if the kernel does not tell.
    pub kernel_config: Vec<(String, String)>,
    /// The loss catalogue, in the order of `Delta::losses`.
    pub losses: Vec<LossKind>,
    /// Programs of the catalogue with what became of them.
    pub probes: Vec<RunProbe>,
    /// The workload, if there is one.
    pub workload: Option<Workload>,
    /// How it ended; `None` if the recorder was killed.
    pub end: Option<End>,
}

/// A way to lose events.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LossKind {
    /// Catalogue id, e.g. `thread_slot_collision`.
    pub id: Arc<str>,
    /// What was lost, a full sentence.
    pub description: Arc<str>,
}

impl LossKind {
    /// The kinds of a catalogue of `(id, description)`.
    pub fn list<'a, C: FromIterator<Self>>(
        catalogue: impl IntoIterator<Item = &'a (&'a str, &'a str)>,
    ) -> C {
        let kind = |(id, description): &(&str, &str)| Self {
            id: (*id).into(),
            description: (*description).into(),
        };
        catalogue.into_iter().map(kind).collect()
    }
}

/// Place of a run among others made together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// Identity that all runs made together share.
    pub series: String,
    /// Number of the round, from 1.
    pub number: u32,
    /// `A` or `B` of alternating runs, empty for repeated ones.
    pub side: String,
}

/// A fact about the host; unknown ones keep their reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFact {
    /// Catalogue id.
    pub id: String,
    /// Its value in words, or why it is not known.
    pub value: Result<String, String>,
}

/// What became of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunProbe {
    /// Program.
    pub program: String,
    /// Its signal.
    pub signal: String,
    /// Attached at the start.
    pub is_attached: bool,
    /// Its hook, or why it is not attached.
    pub place: String,
    /// Program of the first choice whose place it took, if it is a substitute.
    pub substitutes: Option<String>,
}

/// The command a recording was made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workload {
    /// Arguments, the program first; lossy where they are no UTF-8.
    pub argv: Vec<String>,
    /// Working directory.
    pub directory: String,
    /// Environment variables set for it.
    pub environment: Vec<(String, String)>,
    /// Process id.
    pub tgid: u32,
    /// Start, monotonic ns.
    pub start_mono_ns: u64,
    /// What it wrote to standard output and standard error, as far as kept.
    pub output: Output,
    /// Results that could not be taken from the output, a sentence each.
    pub refused: Vec<String>,
    /// How it ended; `None` while it runs.
    pub ended: Option<Ended>,
}

/// Output of a workload, both streams as they arrived.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Text, lossy.
    pub text: String,
    /// Bytes left out in the middle to keep the file small.
    pub dropped_bytes: u64,
}

/// How a workload ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// End, monotonic ns.
    pub mono_ns: u64,
    /// Exit status, if it exited.
    pub code: Option<i32>,
    /// Signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Resources it and its waited-for descendants used.
    pub usage: Usage,
}

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct End {
    /// Last reading, monotonic ns.
    pub mono_ns: u64,
    /// Why, in a clause: `the command ended`, `--duration`, `SIGINT`.
    pub reason: String,
}
