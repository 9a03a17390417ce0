//! A plan in sentences, for `doctor`, the status line and error messages.

use super::Attached;
use super::plan::{Plan, Why};
use super::signals::SIGNALS;
use crate::error::Failure;
use crate::host::spinlock::SpinlockMode;
use crate::host::{Fact, HostFacts};

/// A signal nothing attached gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingSignal {
    /// Signal id.
    pub signal: &'static str,
    /// Why, a clause without a full stop.
    pub reason: String,
}

/// Names the one thing without which nothing can be attached, if there is one.
///
/// `btf` is what became of reading and parsing the kernel's BTF.
#[must_use]
pub fn refusal<T>(host: &HostFacts, btf: &Fact<T>) -> Option<Failure> {
    if !host.privilege.may_load_bpf() {
        return Some(Failure::NoCapBpf);
    }
    if !host.privilege.may_trace() {
        return Some(Failure::NoCapPerfmon);
    }
    btf.reason().map(|reason| Failure::NoBtf {
        reason: reason.to_owned(),
    })
}

/// Lists the signals that neither the plan nor its attachment gives, in catalogue order.
///
/// A set that is not wanted now is not missing. `attached` may be empty before anything was tried.
#[must_use]
pub fn missing(plan: &Plan, attached: &[Attached]) -> Vec<MissingSignal> {
    SIGNALS
        .iter()
        .filter_map(|signal| {
            reason_missing(signal.id, plan, attached).map(|reason| MissingSignal {
                signal: signal.id,
                reason,
            })
        })
        .collect()
}

fn reason_missing(signal: &'static str, plan: &Plan, attached: &[Attached]) -> Option<String> {
    let failure = |program: &str| {
        attached
            .iter()
            .find(|result| result.program == program)
            .and_then(|result| result.outcome.as_ref().err())
    };
    let chosen: Vec<_> = plan
        .chosen
        .iter()
        .filter(|probe| probe.signal == signal)
        .collect();
    if !chosen.is_empty() {
        // A part works only as a whole; the signal is there while one of its parts is.
        let is_whole = |part: &str| {
            chosen
                .iter()
                .filter(|probe| probe.part == part)
                .all(|probe| failure(probe.program).is_none())
        };
        if chosen.iter().any(|probe| is_whole(probe.part)) {
            return None;
        }
        let (program, why) = chosen
            .iter()
            .find_map(|probe| Some((probe.program, failure(probe.program)?)))?;
        return Some(format!("the kernel refused program \"{program}\": {why}"));
    }
    let omissions: Vec<_> = plan
        .omissions
        .iter()
        .filter(|omission| omission.signal == signal)
        .collect();
    if omissions
        .iter()
        .any(|omission| omission.why == Why::NotRequested)
    {
        return None;
    }
    let cause = omissions
        .iter()
        .find(|omission| !matches!(omission.why, Why::Incomplete | Why::OtherWay))
        .or_else(|| omissions.first())?;
    Some(cause.reason.clone())
}

/// One line that names the missing signals, or nothing if none is missing.
#[must_use]
pub fn status_line(missing: &[MissingSignal]) -> Option<String> {
    if missing.is_empty() {
        return None;
    }
    let names: Vec<_> = missing.iter().map(|signal| signal.signal).collect();
    Some(format!(
        "not available here: {} (\"faultscope doctor\" says why)",
        names.join(", ")
    ))
}

/// What contended spinlock waits mean here, one sentence without a full stop.
///
/// `is_exact` says that they are measured in their slow path, `is_rt` that the kernel is PREEMPT_RT.
#[must_use]
pub fn spinlock_sentence(mode: &Fact<SpinlockMode>, is_exact: bool, is_rt: bool) -> String {
    let name = mode.value().map_or("unknown", |mode| mode.name());
    let seen = if is_exact {
        "every wait is measured in its slow path".to_owned()
    } else {
        spinlock(mode).unwrap_or_else(|| "every waiter of a spinlock is seen".to_owned())
    };
    let what = if is_rt {
        "raw spinlocks (the others sleep here and every wait is seen)"
    } else {
        "spinlocks"
    };
    format!("{what}: {name}; {seen}")
}

/// Says what the contention tracepoint does not see in this spinlock mode; `None` if it sees every waiter.
#[must_use]
pub fn spinlock(mode: &Fact<SpinlockMode>) -> Option<String> {
    Some(match mode {
        Fact::Yes(SpinlockMode::Pv) => return None,
        Fact::Yes(SpinlockMode::Native) => {
            "spinlock waits are counted too low: the first waiter of a lock is not traced (about 60 % of the waits \
             are seen)"
                .to_owned()
        }
        Fact::Yes(SpinlockMode::TestAndSet) => {
            "spinlock waits (lru_lock, zone lock, page-table lock) are not seen at all: test-and-set locks return \
             before the tracepoint"
                .to_owned()
        }
        Fact::No(reason) | Fact::Unknown(reason) => {
            format!("spinlock waits may be counted too low or not at all: {reason}")
        }
    })
}
