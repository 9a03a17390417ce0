//! `doctor`: what this kernel and this process allow, what is lost, and the exact fix.
//!
//! [`examine`] is pure but for the [`Prober`] it is handed; writing is apart. What a program costs is measured
//! elsewhere and filled into [`ProgramLine::ns`].

mod facts;
mod signals;
#[cfg(test)]
mod tests;
mod trial;

pub use trial::KernelTrial;

use std::io::{self, IsTerminal as _, Write};
use std::path::Path;

use serde::Serialize;

use crate::commands::cost::Costs;
use crate::error::Exit;
use crate::host::{Fact, HostFacts};
use crate::plan::{self, Attached, Plan, ProbeFacts, Prober, Request};

/// Name and version of the JSON document.
const SCHEMA: &str = "faultscope.doctor/1";

/// How a line is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing is lost.
    Ok,
    /// Something is lost, by the kernel's build or by a setting.
    Warn,
    /// Something this kernel offers is refused to this process.
    Fail,
}

impl Level {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One fact about the host, or one signal (`signal.ID`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactLine {
    /// Stable id.
    pub id: String,
    /// `yes`, `no` or `unknown`.
    pub state: &'static str,
    /// What was found, or why not.
    pub reason: Option<String>,
    /// What the user loses by it.
    pub lost: Option<String>,
    /// What to do about it, as exact as possible.
    pub fix: Option<String>,
    /// Judgement, shown in text only: JSON readers have `lost` and `verdict`.
    #[serde(skip)]
    pub level: Level,
}

/// One program of the catalogue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramLine {
    /// Program name.
    pub name: &'static str,
    /// It was attached when tried.
    pub attached: bool,
    /// Why it was not.
    pub reason: Option<String>,
    /// Cost in ns per event; `None` unless measured.
    pub ns: Option<f64>,
}

/// What `doctor` found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    schema: &'static str,
    /// `ok`, `degraded` or `refused`.
    pub verdict: &'static str,
    /// Facts, then signals.
    pub facts: Vec<FactLine>,
    /// Every program of the catalogue, in its order.
    pub programs: Vec<ProgramLine>,
    /// What `--cost` measured; its keys stand beside the others.
    #[serde(flatten)]
    pub costs: Option<Costs>,
}

/// What `doctor` looks at beside the host's facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// The kernel's clock source, e.g. `tsc`.
    pub clocksource: Fact<String>,
    /// The terminal type, if standard output is a terminal.
    pub terminal: Fact<String>,
}

impl Surroundings {
    /// Reads the clock source below `root` and looks at standard output.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        let file = "sys/devices/system/clocksource/clocksource0/current_clocksource";
        let clocksource = match std::fs::read(root.join(file)) {
            Ok(text) => Fact::Yes(crate::name::scrub(text.trim_ascii())),
            Err(error) => Fact::unknown(format!("\"/{file}\" cannot be read: {error}")),
        };
        let terminal = if io::stdout().is_terminal() {
            match std::env::var("TERM") {
                Ok(term) if !term.is_empty() => Fact::Yes(crate::name::scrub(term.as_bytes())),
                _ => Fact::unknown("the environment variable TERM is not set"),
            }
        } else {
            Fact::no("standard output is no terminal")
        };
        Self {
            clocksource,
            terminal,
        }
    }
}

/// Judges the host and, where nothing stands in the way, tries every program once.
///
/// `probes` is what became of the kernel's BTF (see [`super::consult_kernel`]). Without a capability or BTF the
/// prober is not called.
#[must_use]
pub fn examine(
    host: &HostFacts,
    probes: &Fact<ProbeFacts>,
    around: &Surroundings,
    prober: &mut dyn Prober,
) -> Report {
    let refusal = plan::refusal(host, probes);
    let (plan, attached) = match (probes.value(), &refusal) {
        (Some(probes), None) => {
            let (plan, attached) = try_ways(probes, prober);
            (Some(plan), attached)
        }
        (probes, _) => (
            probes.map(|probes| plan::plan(probes, &Request::everything())),
            Vec::new(),
        ),
    };
    let mut lines = facts::lines(host, probes, around);
    let trial = signals::Trial {
        plan: plan.as_ref(),
        attached: &attached,
        refusal: refusal.as_ref(),
    };
    lines.extend(signals::lines(
        &trial,
        &host.spinlock,
        &host.privilege.perf_event_paranoid,
    ));
    let is_refused = refusal.is_some()
        || plan
            .as_ref()
            .is_some_and(|plan| plan.omissions.iter().any(plan::Omission::is_refusal));
    let verdict = if is_refused {
        "refused"
    } else if lines.iter().any(|line| line.level > Level::Ok) {
        "degraded"
    } else {
        "ok"
    };
    Report {
        schema: SCHEMA,
        verdict,
        facts: lines,
        programs: signals::programs(&trial),
        costs: None,
    }
}

/// Tries every program, and the next way of what the kernel refuses, until nothing new is refused.
fn try_ways(probes: &ProbeFacts, prober: &mut dyn Prober) -> (Plan, Vec<Attached>) {
    let mut request = Request::everything();
    let mut attached: Vec<Attached> = Vec::new();
    loop {
        let plan = plan::plan(probes, &request);
        let is_new = |name: &str| attached.iter().all(|result| result.program != name);
        let mut untried = plan.clone();
        untried.chosen.retain(|probe| is_new(probe.program));
        let results = prober.try_attach(&untried);
        let before = request.refused.len();
        for result in &results {
            if let Err(reason) = &result.outcome {
                request
                    .refused
                    .insert(result.program.to_owned(), reason.clone());
            }
        }
        attached.extend(results);
        if request.refused.len() == before {
            attached.retain(|result| plan.has(result.program));
            return (plan, attached);
        }
    }
}

impl Report {
    /// Takes what was measured, and fills it into the programs' lines.
    pub fn set_costs(&mut self, costs: Costs) {
        for program in &mut self.programs {
            program.ns = costs.of(program.name);
        }
        self.costs = Some(costs);
    }

    /// Programs that could be attached.
    #[must_use]
    pub fn attachable(&self) -> Vec<&'static str> {
        self.programs
            .iter()
            .filter(|program| program.attached)
            .map(|program| program.name)
            .collect()
    }

    /// Status of the process: [`Exit::Refused`] if something this kernel offers is refused, else [`Exit::Done`].
    #[must_use]
    pub fn exit(&self) -> Exit {
        if self.verdict == "refused" {
            Exit::Refused
        } else {
            Exit::Done
        }
    }

    /// Writes the JSON document and a newline.
    ///
    /// # Errors
    /// What the writer says, a broken pipe included.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, self)?;
        writeln!(out)
    }

    /// Writes the report for people: a line for each fact, below it what is lost and the fix.
    ///
    /// # Errors
    /// What the writer says, a broken pipe included.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let is_signal = |line: &&FactLine| line.id.starts_with(signals::PREFIX);
        writeln!(out, "Host")?;
        for line in self.facts.iter().filter(|line| !is_signal(line)) {
            write_fact(out, &line.id, line)?;
        }
        writeln!(out, "\nSignals")?;
        for line in self.facts.iter().filter(is_signal) {
            write_fact(out, &line.id[signals::PREFIX.len()..], line)?;
        }
        writeln!(out, "\nPrograms")?;
        for program in &self.programs {
            let state = if program.attached { "ok" } else { "-" };
            write!(out, "  {state:<5} {:<20}", program.name)?;
            if let Some(ns) = program.ns {
                write!(out, " {ns:>7.1} ns")?;
            }
            match &program.reason {
                Some(reason) => writeln!(out, " {reason}")?,
                None => {
                    let hook = plan::probe(program.name).map(|probe| probe.attach.hook());
                    writeln!(out, " {}", hook.unwrap_or_default())?;
                }
            }
        }
        if let Some(costs) = &self.costs {
            writeln!(out)?;
            costs.write_text(out)?;
        }
        writeln!(out, "\n{}", self.conclusion())
    }

    fn conclusion(&self) -> &'static str {
        match self.verdict {
            "ok" => "verdict: ok; everything can be measured here.",
            "degraded" => {
                "verdict: degraded; what can be attached works, and the lines marked \"warn\" say what is lost."
            }
            _ => {
                "verdict: refused; the lines marked \"fail\" name what this process may not use, and the fix."
            }
        }
    }
}

fn write_fact(out: &mut dyn Write, name: &str, line: &FactLine) -> io::Result<()> {
    write!(out, "  {:<5} {name:<22}", line.level.word())?;
    match (&line.reason, line.state) {
        (Some(reason), "yes") => writeln!(out, " {reason}")?,
        (Some(reason), state) => writeln!(out, " {state}: {reason}")?,
        (None, state) => writeln!(out, " {state}")?,
    }
    if let Some(lost) = &line.lost {
        writeln!(out, "        lost: {lost}")?;
    }
    if let Some(fix) = &line.fix {
        writeln!(out, "        fix:  {fix}")?;
    }
    Ok(())
}
