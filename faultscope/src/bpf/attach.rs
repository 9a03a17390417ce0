//! Puts programs into the kernel and on their hooks; partial success is a value.

use super::{
    load::{Loaded, chain},
    maps::fdinfo,
};
use aya::{
    Btf, Ebpf,
    programs::{
        PerfEvent, Program, ProgramError,
        fentry::FEntryLinkId,
        fexit::FExitLinkId,
        kprobe::KProbeLinkId,
        perf_event::{
            PerfEventConfig, PerfEventLinkId, PerfEventScope, SamplePolicy, SoftwareEvent,
        },
        tp_btf::BtfTracePointLinkId,
    },
};
use std::{
    collections::BTreeMap,
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

/// Where a program goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// A BTF tracepoint by its kernel name.
    Tracepoint(&'static str),
    /// Every fault the kernel accounts (perf software event, every occurrence).
    PageFaults,
    /// Every major fault.
    MajorFaults,
    /// The entry of a kernel function: the first of the names that the kernel has.
    FunctionEntry(&'static [&'static str]),
    /// The return of a kernel function.
    FunctionExit(&'static [&'static str]),
    /// The entry of a kernel function, by a kprobe.
    FunctionProbe(&'static [&'static str]),
    /// A sample of every CPU's clock, this many times a second of running time.
    Clock(u64),
}

impl Hook {
    /// Whether the hook is named by the kernel's BTF.
    fn needs_btf(self) -> bool {
        matches!(
            self,
            Self::Tracepoint(_) | Self::FunctionEntry(_) | Self::FunctionExit(_)
        )
    }
}

/// What the kernel says of one of our programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramStats {
    /// Run time, ns; moves only while run-time statistics are on.
    pub run_ns: u64,
    /// Runs; moves only while run-time statistics are on.
    pub runs: u64,
    /// Runs skipped because the program was already running on that CPU.
    pub misses: u64,
}

/// The programs of a loaded object.
#[derive(Debug)]
pub struct Programs {
    ebpf: Ebpf,
    btf: Option<Btf>,
    cpus: Vec<u32>,
    attached: BTreeMap<String, Attached>,
    /// Programs in the kernel that are on no hook, each with the hook it was loaded for.
    suspended: BTreeMap<String, Hook>,
}

/// A program on its hook.
#[derive(Debug)]
struct Attached {
    fd: OwnedFd,
    hook: Hook,
    links: Links,
}

#[derive(Debug)]
enum Links {
    Tracepoint(BtfTracePointLinkId),
    Entry(FEntryLinkId),
    Exit(FExitLinkId),
    Probe(KProbeLinkId),
    /// One for each CPU.
    Events(Vec<PerfEventLinkId>),
}

impl Programs {
    /// Takes the programs of `loaded`; perf events go on each of `cpus`.
    #[must_use]
    pub fn new(ebpf: Ebpf, cpus: Vec<u32>) -> Self {
        Self {
            ebpf,
            btf: None,
            cpus,
            attached: BTreeMap::new(),
            suspended: BTreeMap::new(),
        }
    }

    /// Splits a loaded object into programs and maps.
    #[must_use]
    pub fn split(loaded: Loaded, cpus: Vec<u32>) -> (Self, super::Maps) {
        (Self::new(loaded.ebpf, cpus), loaded.maps)
    }

    /// Loads and attaches one program.
    ///
    /// # Errors
    /// One line saying which step failed and what the kernel said; the program
    /// is then in no state that counts anything.
    pub fn attach(&mut self, name: &str, hook: Hook) -> Result<(), String> {
        if self.attached.contains_key(name) {
            return Ok(());
        }
        let is_loaded = match self.suspended.remove(name) {
            Some(before) if before == hook => true,
            Some(_) => {
                self.unload(name);
                false
            }
            None => false,
        };
        if !is_loaded && hook.needs_btf() && self.btf.is_none() {
            self.btf = Some(Btf::from_sys_fs().map_err(|e| chain(&e))?);
        }
        let program = self
            .ebpf
            .program_mut(name)
            .ok_or_else(|| format!("program \"{name}\" is not in the object"))?;
        if !is_loaded {
            load(program, hook, self.btf.as_ref()).map_err(refusal)?;
        }
        let attached = attach(program, hook, &self.cpus);
        if attached.is_err() {
            self.unload(name);
        }
        self.attached
            .insert(name.to_owned(), attached.map_err(|e| chain(&e))?);
        Ok(())
    }

    /// Detaches and unloads one program; its counts stay in the maps.
    pub fn detach(&mut self, name: &str) {
        let was_attached = self.attached.remove(name).is_some();
        if self.suspended.remove(name).is_some() || was_attached {
            self.unload(name);
        }
    }

    /// Takes one program off its hook but leaves it in the kernel, so that
    /// attaching it there again does not verify it again.
    pub fn suspend(&mut self, name: &str) {
        let Some(attached) = self.attached.remove(name) else {
            return;
        };
        let detached = match (self.ebpf.program_mut(name), attached.links) {
            (Some(Program::BtfTracePoint(p)), Links::Tracepoint(link)) => p.detach(link),
            (Some(Program::FEntry(p)), Links::Entry(link)) => p.detach(link),
            (Some(Program::FExit(p)), Links::Exit(link)) => p.detach(link),
            (Some(Program::KProbe(p)), Links::Probe(link)) => p.detach(link),
            (Some(Program::PerfEvent(p)), Links::Events(links)) => {
                links.into_iter().try_for_each(|link| p.detach(link))
            }
            _ => Ok(()),
        };
        debug_assert!(detached.is_ok(), "detach of our own program");
        self.suspended.insert(name.to_owned(), attached.hook);
    }

    fn unload(&mut self, name: &str) {
        let unloaded = match self.ebpf.program_mut(name) {
            Some(Program::BtfTracePoint(p)) => p.unload(),
            Some(Program::PerfEvent(p)) => p.unload(),
            Some(Program::FEntry(p)) => p.unload(),
            Some(Program::FExit(p)) => p.unload(),
            Some(Program::KProbe(p)) => p.unload(),
            _ => Ok(()),
        };
        debug_assert!(unloaded.is_ok(), "unload of our own program");
    }

    /// Whether the program is attached.
    #[must_use]
    pub fn is_attached(&self, name: &str) -> bool {
        self.attached.contains_key(name)
    }

    /// Names of the attached programs.
    pub fn attached(&self) -> impl Iterator<Item = &str> {
        self.attached.keys().map(String::as_str)
    }

    /// Drops the kernel type information kept for attaching.
    pub fn forget_btf(&mut self) {
        self.btf = None;
    }

    /// Run-time statistics of an attached program.
    #[must_use]
    pub fn stats(&self, name: &str) -> Option<ProgramStats> {
        let fd = self.attached.get(name)?.fd.as_raw_fd();
        Some(ProgramStats {
            run_ns: fdinfo(fd, "run_time_ns:")?,
            runs: fdinfo(fd, "run_cnt:")?,
            misses: fdinfo(fd, "recursion_misses:")?,
        })
    }
}

/// Hands one program to the verifier.
fn load(program: &mut Program, hook: Hook, btf: Option<&Btf>) -> Result<(), ProgramError> {
    let btf = || btf.ok_or(ProgramError::NotLoaded);
    match (program, hook) {
        (Program::BtfTracePoint(program), Hook::Tracepoint(name)) => program.load(name, btf()?),
        (Program::FEntry(program), Hook::FunctionEntry(names)) => {
            let btf = btf()?;
            first(names, |name| program.load(name, btf))
        }
        (Program::FExit(program), Hook::FunctionExit(names)) => {
            let btf = btf()?;
            first(names, |name| program.load(name, btf))
        }
        (Program::KProbe(program), Hook::FunctionProbe(_)) => program.load(),
        (Program::PerfEvent(program), Hook::PageFaults | Hook::MajorFaults | Hook::Clock(_)) => {
            program.load()
        }
        _ => Err(ProgramError::UnexpectedProgramType),
    }
}

/// What came of the first name the kernel knows; of the last one if it knows none.
fn first<T>(
    names: &[&str],
    mut with: impl FnMut(&str) -> Result<T, ProgramError>,
) -> Result<T, ProgramError> {
    let mut last = Err(ProgramError::NotLoaded);
    for name in names {
        last = with(name);
        if !matches!(
            last,
            Err(ProgramError::Btf(_) | ProgramError::KProbeError(_))
        ) {
            break;
        }
    }
    last
}

/// What the kernel said to a program it would not load, with the last lines of
/// the log, which say what the verifier minded.
fn refusal(error: ProgramError) -> String {
    match error {
        ProgramError::LoadError {
            io_error,
            verifier_log,
        } => {
            let log = verifier_log.to_string();
            let tail: Vec<&str> = log.lines().rev().take(6).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            if tail.is_empty() && io_error.raw_os_error() == Some(libc::EPERM) {
                // Before verification: a policy of the kernel, not a fault of the program.
                return format!("load refused: {io_error}; this kernel lets no such program in");
            }
            format!(
                "load refused: {io_error}{}{}",
                if tail.is_empty() { "" } else { "; verifier: " },
                tail.join(" | ")
            )
        }
        other => chain(&other),
    }
}

/// Puts a loaded program on its hook.
fn attach(program: &mut Program, hook: Hook, cpus: &[u32]) -> Result<Attached, ProgramError> {
    match (program, hook) {
        (Program::BtfTracePoint(program), Hook::Tracepoint(_)) => Ok(Attached {
            links: Links::Tracepoint(program.attach()?),
            fd: program.fd()?.as_fd().try_clone_to_owned()?,
            hook,
        }),
        (Program::FEntry(program), Hook::FunctionEntry(_)) => Ok(Attached {
            links: Links::Entry(program.attach()?),
            fd: program.fd()?.as_fd().try_clone_to_owned()?,
            hook,
        }),
        (Program::FExit(program), Hook::FunctionExit(_)) => Ok(Attached {
            links: Links::Exit(program.attach()?),
            fd: program.fd()?.as_fd().try_clone_to_owned()?,
            hook,
        }),
        (Program::KProbe(program), Hook::FunctionProbe(names)) => Ok(Attached {
            links: Links::Probe(first(names, |name| program.attach(name, 0))?),
            fd: program.fd()?.as_fd().try_clone_to_owned()?,
            hook,
        }),
        (Program::PerfEvent(program), Hook::PageFaults) => {
            software(program, hook, SoftwareEvent::PageFaults, EVERY, cpus)
        }
        (Program::PerfEvent(program), Hook::MajorFaults) => {
            software(program, hook, SoftwareEvent::PageFaultsMaj, EVERY, cpus)
        }
        (Program::PerfEvent(program), Hook::Clock(hz)) => {
            let rate = SamplePolicy::Frequency(hz);
            software(program, hook, SoftwareEvent::CpuClock, rate, cpus)
        }
        _ => Err(ProgramError::UnexpectedProgramType),
    }
}

/// Every occurrence of an event.
const EVERY: SamplePolicy = SamplePolicy::Period(1);

fn software(
    program: &mut PerfEvent,
    hook: Hook,
    event: SoftwareEvent,
    rate: SamplePolicy,
    cpus: &[u32],
) -> Result<Attached, ProgramError> {
    let links = cpus
        .iter()
        .map(|&cpu| {
            program.attach(
                PerfEventConfig::Software(event),
                PerfEventScope::AllProcessesOneCpu { cpu },
                rate,
                false,
            )
        })
        .collect::<Result<_, _>>()?;
    Ok(Attached {
        fd: program.fd()?.as_fd().try_clone_to_owned()?,
        hook,
        links: Links::Events(links),
    })
}

/// Turns the kernel's run-time statistics on while the value lives: about 30 ns
/// more per run of every BPF program on the machine. Minimum kernel 5.8.
///
/// # Errors
/// What bpf(2) says, e.g. EPERM without CAP_SYS_ADMIN.
pub fn run_time_statistics() -> Result<OwnedFd, String> {
    aya::sys::enable_stats(aya::sys::Stats::RunTime).map_err(|e| chain(&e))
}
