//! What the plan and its trial mean for each signal and program.

use super::{FactLine, Level, ProgramLine};
use crate::error::Failure;
use crate::host::Fact;
use crate::host::spinlock::SpinlockMode;
use crate::plan::{self, Attached, PROBES, Plan, SIGNALS};

/// Begins the id of a signal's line.
pub(super) const PREFIX: &str = "signal.";

const REFUSED_FIX: &str = "look for a refusal of bpf or perf_event_open in the audit log, and in the seccomp profile of \
     the container";

const PARANOID_FIX: &str = "sysctl -w kernel.perf_event_paranoid=2: above that some distributions' kernels leave perf \
     events to CAP_SYS_ADMIN";

/// A plan and what became of it.
pub(super) struct Trial<'a> {
    /// Plan of everything; `None` without BTF.
    pub(super) plan: Option<&'a Plan>,
    /// Results; empty if nothing was tried.
    pub(super) attached: &'a [Attached],
    /// Why nothing was tried.
    pub(super) refusal: Option<&'a Failure>,
}

impl Trial<'_> {
    fn untried(&self) -> Option<&'static str> {
        Some(match self.refusal? {
            Failure::NoCapBpf => "not tried without CAP_BPF",
            Failure::NoCapPerfmon => "not tried without CAP_PERFMON",
            _ => "not tried without the kernel's BTF",
        })
    }
}

/// One line for each signal of the catalogue.
pub(super) fn lines(
    trial: &Trial<'_>,
    spinlock: &Fact<SpinlockMode>,
    paranoid: &Fact<i64>,
) -> Vec<FactLine> {
    let missing = trial
        .plan
        .map(|plan| plan::missing(plan, trial.attached))
        .unwrap_or_default();
    SIGNALS
        .iter()
        .map(|signal| {
            let reason = missing
                .iter()
                .find(|entry| entry.signal == signal.id)
                .map(|entry| entry.reason.clone());
            let is_refused = trial.plan.is_some_and(|plan| {
                plan.omissions
                    .iter()
                    .any(|entry| entry.signal == signal.id && entry.is_refusal())
            });
            let (state, reason, level) = match (reason, trial.untried()) {
                // What the kernel lacks is worth saying even where nothing may be tried.
                (Some(reason), _) => (
                    "no",
                    reason,
                    if is_refused { Level::Fail } else { Level::Warn },
                ),
                (None, Some(untried)) => ("unknown", untried.to_owned(), Level::Fail),
                (None, None) => {
                    let level = if is_refused { Level::Fail } else { Level::Ok };
                    ("yes", programs_of(trial, signal.id), level)
                }
            };
            let lost = lost(trial, signal.id, signal.description, state, spinlock);
            let is_paranoid = reason.contains("perf_event_open")
                && paranoid.value().is_some_and(|level| *level > 2);
            let fix = if is_paranoid {
                PARANOID_FIX
            } else {
                REFUSED_FIX
            };
            FactLine {
                id: format!("{PREFIX}{}", signal.id),
                state,
                reason: Some(reason),
                level: if lost.is_some() {
                    level.max(Level::Warn)
                } else {
                    level
                },
                lost,
                fix: is_refused.then(|| fix.to_owned()),
            }
        })
        .collect()
}

fn programs_of(trial: &Trial<'_>, signal: &str) -> String {
    let names: Vec<_> = trial
        .plan
        .into_iter()
        .flat_map(|plan| &plan.chosen)
        .filter(|probe| probe.signal == signal)
        .map(|probe| probe.program)
        .collect();
    names.join(", ")
}

/// The whole signal, or the features and parts of it that are missing.
fn lost(
    trial: &Trial<'_>,
    signal: &str,
    description: &str,
    state: &str,
    spinlock: &Fact<SpinlockMode>,
) -> Option<String> {
    if state != "yes" {
        let mut words = description.trim_end_matches('.').to_owned();
        // The description is a sentence; after "lost:" it goes on in lower case.
        let is_word = words.chars().nth(1).is_some_and(char::is_lowercase);
        if let (true, Some(first)) = (is_word, words.get_mut(..1)) {
            first.make_ascii_lowercase();
        }
        return Some(words);
    }
    let plan = trial.plan?;
    let mut clauses: Vec<String> = plan
        .degradations
        .iter()
        .filter(|entry| entry.signal == signal)
        .map(|entry| entry.lost.to_owned())
        .collect();
    // An alternative that was not needed is no loss, nor is one that another replaced.
    let has_part = |part: &str| plan.chosen.iter().any(|probe| probe.part == part);
    clauses.extend(
        PROBES
            .iter()
            .filter(|probe| probe.signal == signal)
            .filter_map(|probe| {
                let omission = plan
                    .omissions
                    .iter()
                    .find(|entry| entry.program == Some(probe.program))?;
                (!has_part(probe.part))
                    .then(|| format!("\"{}\": {}", probe.program, omission.reason))
            }),
    );
    if signal == "contention" {
        clauses.extend(plan::spinlock(spinlock));
    }
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// One line for each program of the catalogue.
pub(super) fn programs(trial: &Trial<'_>) -> Vec<ProgramLine> {
    PROBES
        .iter()
        .map(|probe| {
            let omission = trial
                .plan
                .and_then(|plan| {
                    plan.omissions
                        .iter()
                        .find(|entry| entry.program == Some(probe.program))
                })
                .map(|entry| entry.reason.clone());
            let reason = omission.or_else(|| trial.untried().map(str::to_owned));
            let was_tried = trial
                .attached
                .iter()
                .any(|result| result.program == probe.program);
            ProgramLine {
                name: probe.program,
                attached: was_tried && reason.is_none(),
                reason: reason.or_else(|| (!was_tried).then(|| "not tried".to_owned())),
                ns: None,
            }
        })
        .collect()
}
