//! The load that `cargo xtask bench overhead` measures tools on; it reads commands from standard input.
//!
//! One answer on one line for each command. `faults MS` and `maps MS` run a load for about that long and answer
//! events, wall time and CPU time of this process, both in ns. `statistics on` and `off` switch the kernel's run-time
//! statistics. `empty` answers what those make of a program that does nothing, in ns a run. `names` answers the BPF
//! programs in the kernel, each as its id, `=` and its name. An answer that begins with `no` gives the reason.
//!
//! With the argument `hook` it is a tool that does nothing: it has a program of no instruction run at each user fault until
//! it is interrupted. What remains of another tool's cost beyond that is the tool's own.

use std::io::{self, BufRead as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use faultscope::bpf::attach::{Hook, run_time_statistics};
use faultscope::bpf::load::load;
use faultscope::bpf::{Programs, Sizes, object};
use faultscope::commands::consult_kernel;
use faultscope::host::{Fact, HostFacts};
use faultscope::load::{Load, Pinned, SharedMappings, WriteFaults, process_cpu_ns};
use faultscope::plan::{Request, plan};

fn main() -> anyhow::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("hook") {
        let _programs = attach_empty()?;
        loop {
            std::thread::park();
        }
    }
    let mut statistics = None;
    for line in io::stdin().lock().lines() {
        let line = line.context("reading a command")?;
        let answer = answer(&line, &mut statistics).unwrap_or_else(|error| format!("no {error:#}"));
        let mut out = io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn answer(line: &str, statistics: &mut Option<OwnedFd>) -> anyhow::Result<String> {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("faults", length) => {
            let _pinned = Pinned::new()?;
            block(&mut WriteFaults::new()?, length)
        }
        ("maps", length) => block(&mut SharedMappings, length),
        ("statistics", "on") => {
            *statistics = Some(run_time_statistics().map_err(|error| anyhow!(error))?);
            Ok("on".into())
        }
        ("statistics", "off") => {
            *statistics = None;
            Ok("off".into())
        }
        ("empty", _) => empty(),
        ("names", _) => names(),
        _ => bail!("unknown command \"{line}\""),
    }
}

/// Runs the load again and again until the time is over, after one run that does not count.
fn block(load: &mut dyn Load, length: &str) -> anyhow::Result<String> {
    let length = Duration::from_millis(length.parse().context("a length in ms")?);
    load.run()?;
    let (begin, cpu) = (Instant::now(), process_cpu_ns());
    let mut events = 0;
    while begin.elapsed() < length {
        events += load.run()?;
    }
    let (wall, cpu) = (begin.elapsed().as_nanos(), process_cpu_ns() - cpu);
    Ok(format!("{events} {wall} {cpu}"))
}

/// The program that does nothing.
const EMPTY: &str = "empty";

/// Attaches it to user faults; it goes with the value.
fn attach_empty() -> anyhow::Result<Programs> {
    let root = Path::new("/");
    let mut host = HostFacts::read(root);
    let facts = match consult_kernel(root, &mut host) {
        Fact::Yes(facts) => facts,
        Fact::No(reason) | Fact::Unknown(reason) => bail!("{reason}"),
    };
    let globals = plan(&facts, &Request::core()).globals;
    let cpus = host.topology.cpus.last().map_or(1, |place| place.cpu + 1);
    let loaded = load(&object::read(None)?, &globals, Sizes::for_machine(cpus, 0))?;
    let (mut programs, _maps) = Programs::split(loaded, Vec::new());
    let attached = programs.attach(EMPTY, Hook::Tracepoint("page_fault_user"));
    attached.map_err(|error| anyhow!(error))?;
    Ok(programs)
}

/// What run-time statistics say of the empty program on faults: nearly all of it is their own clock reads.
fn empty() -> anyhow::Result<String> {
    let _on = run_time_statistics().map_err(|error| anyhow!(error))?;
    let programs = attach_empty()?;
    let _pinned = Pinned::new()?;
    block(&mut WriteFaults::new()?, "300")?;
    let stats = programs.stats(EMPTY).context("no statistics")?;
    if stats.runs == 0 {
        bail!("the empty program did not run");
    }
    Ok(format!("{:.2}", stats.run_ns as f64 / stats.runs as f64))
}

/// Ids and names of the programs in the kernel, which cuts names at 15 letters.
fn names() -> anyhow::Result<String> {
    let mut names = Vec::new();
    for program in aya::programs::loaded_programs() {
        let program = program.context("listing BPF programs")?;
        let name = String::from_utf8_lossy(program.name()).replace([' ', '\n'], "_");
        names.push(format!("{}={name}", program.id()));
    }
    Ok(names.join(" "))
}
