//! The pure decision: facts and a request in, a plan out.

use std::collections::{BTreeMap, BTreeSet};

use faultscope_common::config::{ABSENT, OFFSETS};

use super::catalog::{Attach, CGROUP_WALK, FunctionAt, PROBES, Probe, Set};
use super::facts::{DERIVED, ProbeFacts};
use super::signals::SIGNALS;
use crate::host::Fact;

/// Programs that see every change of a thread's identity but a silent change of its css_set.
const IDENTITY: [&str; 3] = ["task_exit", "task_exec", "task_rename"];

/// What a command wants attached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// Sets beside [`Set::Core`], which is always wanted; what they need comes with them.
    pub sets: BTreeSet<Set>,
    /// Programs the user named; wanted whatever their set.
    pub named: BTreeSet<String>,
    /// Programs that must not be used; for tests of what is left without them.
    pub forbidden: BTreeSet<String>,
    /// Programs the kernel has refused, with its reason.
    pub refused: BTreeMap<String, String>,
}

impl Request {
    /// The core set and nothing else.
    #[must_use]
    pub fn core() -> Self {
        Self::default()
    }

    /// Every program the kernel can have, for `doctor`.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            sets: Set::ALL.into(),
            ..Self::default()
        }
    }

    fn wants(&self, probe: &Probe) -> bool {
        let is_in_use = probe.set == Set::Core
            || self.sets.contains(&probe.set)
            || self.sets.iter().any(|set| set.needs().contains(&probe.set));
        self.named.contains(probe.program) || is_in_use
    }
}

/// Why a program or signal is not in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// This kernel does not have what the program needs.
    KernelLacks,
    /// The kernel has it, this process may not use it.
    NotPermitted,
    /// The request forbids the program.
    Forbidden,
    /// The kernel refused it when it was tried.
    Refused,
    /// The request does not ask for it.
    NotRequested,
    /// Another alternative gives the signal.
    OtherWay,
    /// The other programs of its part cannot be used, and alone it would miscount.
    Incomplete,
    /// This version of the tool has no program for the signal.
    NoProgram,
}

/// Something that is not attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omission {
    /// Signal id.
    pub signal: &'static str,
    /// Program; `None` if the signal has none in this version.
    pub program: Option<&'static str>,
    /// Kind of reason.
    pub why: Why,
    /// The reason, a clause without a full stop.
    pub reason: String,
    /// The user named the program, so that its absence is an incomplete result.
    pub is_named: bool,
}

impl Omission {
    /// Whether this process is refused something that the kernel offers: a permission, or a hook that every
    /// kernel with BTF lets a privileged process have. Kernel functions are not: some kernels let nobody in.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        let is_function = PROBES
            .iter()
            .find(|probe| Some(probe.program) == self.program)
            .is_some_and(|probe| matches!(probe.attach, Attach::Function { .. }));
        match self.why {
            Why::NotPermitted => true,
            Why::Refused => !is_function,
            _ => false,
        }
    }
}

/// A feature that a chosen program cannot give here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Degradation {
    /// Signal id.
    pub signal: &'static str,
    /// What is lost, a clause without a full stop.
    pub lost: &'static str,
    /// Globals without a value; empty if an alternative is the cause.
    pub absent: Vec<&'static str>,
}

/// Programs to attach, values to patch, and what is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Programs in attach order.
    pub chosen: Vec<&'static Probe>,
    /// Read-only globals to set before the object is loaded; [`ABSENT`] for a missing member.
    pub globals: Vec<(&'static str, u64)>,
    /// Programs and signals left out, in catalogue order, each with its reason.
    pub omissions: Vec<Omission>,
    /// Features missing from what is attached, each once.
    pub degradations: Vec<Degradation>,
}

impl Plan {
    /// Returns true if the program is to be attached.
    #[must_use]
    pub fn has(&self, program: &str) -> bool {
        self.chosen.iter().any(|probe| probe.program == program)
    }

    /// Iterates over the programs the user named that are not in the plan.
    pub fn named_missing(&self) -> impl Iterator<Item = &Omission> {
        self.omissions.iter().filter(|omission| omission.is_named)
    }
}

/// Chooses one way for each part of the catalogue that the request wants.
///
/// Pure and total: the same facts and request give the same plan. No program is chosen with an argument list
/// or a required member it does not know.
#[must_use]
pub fn plan(facts: &ProbeFacts, request: &Request) -> Plan {
    let mut chosen = Vec::new();
    let mut omissions = Vec::new();
    for part in parts() {
        choose(&part, facts, request, &mut chosen, &mut omissions);
    }
    omissions.extend(
        SIGNALS
            .iter()
            .filter(|signal| PROBES.iter().all(|probe| probe.signal != signal.id))
            .map(|signal| Omission {
                signal: signal.id,
                program: None,
                why: Why::NoProgram,
                reason: signal.untraced.to_owned(),
                is_named: false,
            }),
    );
    let degradations = degradations(&chosen, facts);
    let mut globals = globals(facts);
    let is_traced = IDENTITY
        .iter()
        .all(|name| chosen.iter().any(|probe| probe.program == *name));
    globals.push(("SCOPES_TRACED", u64::from(is_traced)));
    let is_exact = chosen.iter().any(|probe| probe.set == Set::Slowpath);
    globals.push(("SLOWPATH", u64::from(is_exact)));
    Plan {
        globals,
        chosen,
        omissions,
        degradations,
    }
}

/// The parts of the catalogue in order, each with its ways in order of preference.
fn parts() -> Vec<BTreeMap<u8, Vec<&'static Probe>>> {
    let mut names: Vec<&str> = Vec::new();
    let mut parts: Vec<BTreeMap<u8, Vec<&Probe>>> = Vec::new();
    for probe in PROBES {
        let index = names
            .iter()
            .position(|name| *name == probe.part)
            .unwrap_or_else(|| {
                names.push(probe.part);
                parts.push(BTreeMap::new());
                names.len() - 1
            });
        parts[index].entry(probe.way).or_default().push(probe);
    }
    parts
}

fn choose(
    part: &BTreeMap<u8, Vec<&'static Probe>>,
    facts: &ProbeFacts,
    request: &Request,
    chosen: &mut Vec<&'static Probe>,
    omissions: &mut Vec<Omission>,
) {
    let is_wanted = part.values().flatten().any(|probe| request.wants(probe));
    let mut winner: Option<&Vec<&'static Probe>> = None;
    for way in part.values() {
        let verdicts: Vec<_> = way
            .iter()
            .map(|probe| check(probe, facts, request))
            .collect();
        let obstacle = way
            .iter()
            .zip(&verdicts)
            .find(|(_, verdict)| verdict.is_err())
            .map(|(probe, _)| probe.program);
        if obstacle.is_none() && winner.is_none() {
            winner = Some(way);
            if is_wanted {
                chosen.extend(way);
                continue;
            }
        }
        for (probe, verdict) in way.iter().zip(verdicts) {
            let (why, reason) = match (verdict, winner, obstacle) {
                (Err((why, reason)), _, _) => (why, reason),
                (Ok(()), _, Some(other)) => (
                    Why::Incomplete,
                    format!("of no use without \"{other}\", which cannot be attached"),
                ),
                (Ok(()), Some(other), None) if !std::ptr::eq(other, way) => (
                    Why::OtherWay,
                    format!("not needed: \"{}\" gives the signal", other[0].program),
                ),
                (Ok(()), _, None) => (
                    Why::NotRequested,
                    "attached only while something uses it".to_owned(),
                ),
            };
            omissions.push(Omission {
                signal: probe.signal,
                program: Some(probe.program),
                why,
                reason,
                is_named: request.named.contains(probe.program),
            });
        }
    }
}

fn check(probe: &Probe, facts: &ProbeFacts, request: &Request) -> Result<(), (Why, String)> {
    if request.forbidden.contains(probe.program) {
        return Err((Why::Forbidden, "forbidden by the request".to_owned()));
    }
    if let Some(reason) = request.refused.get(probe.program) {
        return Err((
            Why::Refused,
            format!("the kernel refused program \"{}\": {reason}", probe.program),
        ));
    }
    match probe.attach {
        Attach::Tracepoint { name, args } => {
            let Some(found) = facts.tracepoints.get(name) else {
                return Err((
                    Why::KernelLacks,
                    format!("this kernel has no tracepoint \"{name}\""),
                ));
            };
            if !args.is_empty() && !args.contains(&found.len()) {
                let known: Vec<_> = args.iter().map(usize::to_string).collect();
                return Err((
                    Why::KernelLacks,
                    format!(
                        "tracepoint \"{name}\" has the {} arguments ({}) here, and the program reads {}",
                        found.len(),
                        found.join(", "),
                        known.join(" or ")
                    ),
                ));
            }
        }
        Attach::Function { at, names, args } => function(at, names, args, facts)?,
        Attach::Software(_) | Attach::Clock { .. } => match &facts.perf_software {
            Fact::Yes(()) => {}
            // Only the absence of the whole subsystem is the kernel's; the rest is permission.
            Fact::No(reason) if !reason.contains("CAP_") => {
                return Err((Why::KernelLacks, reason.clone()));
            }
            Fact::No(reason) | Fact::Unknown(reason) => {
                return Err((Why::NotPermitted, reason.clone()));
            }
        },
    }
    if matches!(probe.attach, Attach::Clock { .. }) {
        // A restriction of addresses degrades, whoever set it; it refuses nothing.
        if let Some(reason) = facts.symbols.reason() {
            return Err((
                Why::KernelLacks,
                format!("kernel functions cannot be told without their names: {reason}"),
            ));
        }
    }
    let absent = absent(probe.required, facts);
    if absent.is_empty() {
        return Ok(());
    }
    let members: Vec<_> = absent.iter().map(|global| member_name(global)).collect();
    Err((
        Why::KernelLacks,
        format!("the kernel's BTF does not give {}", members.join(", ")),
    ))
}

/// Whether one of the names is a function of this kernel that the program can read.
fn function(
    at: FunctionAt,
    names: &[&str],
    args: &[usize],
    facts: &ProbeFacts,
) -> Result<(), (Why, String)> {
    if at == FunctionAt::Probe && !facts.has_kprobes {
        return Err((
            Why::KernelLacks,
            "kprobes are not built into this kernel".to_owned(),
        ));
    }
    let Some((name, found)) = names
        .iter()
        .find_map(|name| Some((name, *facts.functions.get(name)?)))
    else {
        return Err((
            Why::KernelLacks,
            format!(
                "this kernel's BTF has no function \"{}\"",
                names.join("\" or \"")
            ),
        ));
    };
    if args.is_empty() || args.contains(&found) {
        return Ok(());
    }
    let known: Vec<_> = args.iter().map(usize::to_string).collect();
    Err((
        Why::KernelLacks,
        format!(
            "function \"{name}\" has {found} arguments here, and the program reads {}",
            known.join(" or ")
        ),
    ))
}

fn absent(globals: &[&'static str], facts: &ProbeFacts) -> Vec<&'static str> {
    globals
        .iter()
        .copied()
        .filter(|global| !facts.values.contains_key(global))
        .collect()
}

/// The kernel's word for a global, for messages.
pub(super) fn member_name(global: &str) -> String {
    if let Some((_, aggregate, path)) = OFFSETS.iter().find(|(name, _, _)| *name == global) {
        return format!("\"{aggregate}.{path}\"");
    }
    match global {
        "OFF_PAGE_PTL" => "a page-table lock inside the page descriptor (\"ptdesc.ptl\")".into(),
        "OFF_RWSEM_OWNER" => "the owner of an rwsem (\"rw_semaphore.owner\")".into(),
        "OFF_RWSEM_INNER" => "the rt_mutex of an rwsem (\"rw_semaphore.rwbase.rtmutex\")".into(),
        "SIZE_RWSEM" => "the size of \"rw_semaphore\"".into(),
        "SPINLOCK_SPINS" => "a spinlock that spins (this is PREEMPT_RT)".into(),
        "SIZE_PAGE" => "the size of \"page\"".into(),
        "OFF_FOLIO_ORDER" => "the order of a folio (\"folio._flags_1\")".into(),
        "PG_HEAD" => "the page flag \"PG_head\"".into(),
        "FAULT_VMA_LOCK" => "\"FAULT_FLAG_VMA_LOCK\"".into(),
        "MEMCG_SUBSYS" => "the memory controller (\"memory_cgrp_id\")".into(),
        _ => format!("\"{global}\""),
    }
}

fn globals(facts: &ProbeFacts) -> Vec<(&'static str, u64)> {
    // The program walks from task to cgroup once it knows the controller's index: withhold that if a step is missing.
    let can_walk = absent(CGROUP_WALK, facts).is_empty();
    OFFSETS
        .iter()
        .map(|(global, _, _)| *global)
        .chain(DERIVED)
        .map(|global| {
            let value = facts.values.get(global).map(|value| u64::from(*value));
            let value = match global {
                "MEMCG_SUBSYS" if !can_walk => ABSENT,
                // Split page-table locks are found by their place in an array of page descriptors.
                "OFF_PAGE_PTL" if !facts.values.contains_key("SIZE_PAGE") => ABSENT,
                // Nothing lies inside an rwsem of unknown size, and an unknown switch is off.
                "SIZE_RWSEM" | "SIZE_PAGE" | "IS_RT" | "SPINLOCK_SPINS" | "READ_HANDOFFS"
                | "FAULT_VMA_LOCK" => value.unwrap_or(0),
                _ => value.unwrap_or(ABSENT),
            };
            (global, value)
        })
        .collect()
}

fn degradations(chosen: &[&'static Probe], facts: &ProbeFacts) -> Vec<Degradation> {
    let mut all: Vec<Degradation> = Vec::new();
    let mut add = |degradation: Degradation| {
        if !all
            .iter()
            .any(|other| (other.signal, other.lost) == (degradation.signal, degradation.lost))
        {
            all.push(degradation);
        }
    };
    for probe in chosen {
        if !probe.limits.is_empty() {
            add(Degradation {
                signal: probe.signal,
                lost: probe.limits,
                absent: Vec::new(),
            });
        }
        for degrade in probe.optional {
            let absent = absent(degrade.globals, facts);
            if !absent.is_empty() {
                add(Degradation {
                    signal: probe.signal,
                    lost: degrade.lost,
                    absent,
                });
            }
        }
    }
    all
}
