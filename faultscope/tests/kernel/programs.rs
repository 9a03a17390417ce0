//! Every program this kernel could run, in front of this kernel's verifier.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use faultscope::bpf::{Programs, Sizes, load::load, object};
use faultscope::commands::{consult_kernel, hook};
use faultscope::host::{Fact, HostFacts};
use faultscope::plan::{PROBES, Probe, Request, Set, plan};

use crate::support::demand;

/// How a kernel that traces no functions refuses a program before the verifier reads it.
const NOT_LET_IN: &str = "this kernel lets no such program in";

fn ids() -> BTreeSet<u32> {
    aya::programs::loaded_programs()
        .flatten()
        .map(|program| program.id())
        .collect()
}

/// Instructions the verifier read, for all paths, of the program that is new since `before`.
fn verified(before: &BTreeSet<u32>) -> Option<u32> {
    aya::programs::loaded_programs()
        .flatten()
        .filter(|program| !before.contains(&program.id()))
        .max_by_key(aya::programs::ProgramInfo::id)?
        .verified_instruction_count()
}

/// Loads and attaches each alternative by itself, those too that no plan prefers here.
#[test]
fn the_verifier_takes_every_program() {
    let mut host = HostFacts::read(Path::new("/"));
    let Fact::Yes(facts) = consult_kernel(Path::new("/"), &mut host) else {
        panic!("SKIP: the kernel's BTF cannot be used");
    };
    let object = object::read(crate::support::object().as_deref()).expect("the object");
    let mut request = Request {
        sets: Set::ALL.into(),
        named: PROBES.iter().map(|p| p.program.to_owned()).collect(),
        ..Request::default()
    };
    let (mut taken, mut refused) = (0, Vec::new());
    loop {
        let plan = plan(&facts, &request);
        let next: Vec<&Probe> = plan
            .chosen
            .iter()
            .copied()
            .filter(|probe| !request.forbidden.contains(probe.program))
            .collect();
        if next.is_empty() {
            break;
        }
        let loaded = load(&object, &plan.globals, Sizes::for_machine(4, 0)).expect("maps");
        let (mut programs, _maps) = Programs::split(loaded, vec![0]);
        for probe in next {
            request.forbidden.insert(probe.program.to_owned());
            let before = ids();
            let start = Instant::now();
            let outcome = programs.attach(probe.program, hook(probe.attach));
            let took = start.elapsed().as_micros();
            match outcome {
                Ok(()) => {
                    let insns = verified(&before).map_or_else(|| "-".into(), |n| n.to_string());
                    println!("program: {} insns {insns} load_us {took}", probe.program);
                    taken += 1;
                }
                // Before the verifier reads it: no verdict on the program.
                Err(error) if error.ends_with(NOT_LET_IN) => {
                    println!("  {} was not read: {error}", probe.program);
                }
                Err(error) => refused.push(format!("{}: {error}", probe.program)),
            }
            programs.detach(probe.program);
        }
    }
    assert!(refused.is_empty(), "refused: {refused:#?}");
    demand("programs taken", taken, 15);
}
