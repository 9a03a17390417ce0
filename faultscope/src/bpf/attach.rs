//! Puts programs into the kernel and on their hooks; partial success is a value.

use super::{
    load::{Loaded, chain},
    maps::fdinfo,
};
use aya::{
    Btf, Ebpf,
    programs::{
        PerfEvent, Program, ProgramError,
        perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent},
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
    attached: BTreeMap<String, OwnedFd>,
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
        if matches!(hook, Hook::Tracepoint(_)) && self.btf.is_none() {
            self.btf = Some(Btf::from_sys_fs().map_err(|e| chain(&e))?);
        }
        let program = self
            .ebpf
            .program_mut(name)
            .ok_or_else(|| format!("program \"{name}\" is not in the object"))?;
        let fd = attach(program, hook, self.btf.as_ref(), &self.cpus).map_err(|e| match e {
            // The log's last lines say what the verifier minded.
            ProgramError::LoadError {
                io_error,
                verifier_log,
            } => {
                let log = verifier_log.to_string();
                let tail: Vec<&str> = log.lines().rev().take(6).collect();
                let tail: Vec<&str> = tail.into_iter().rev().collect();
                format!(
                    "load refused: {io_error}{}{}",
                    if tail.is_empty() { "" } else { "; verifier: " },
                    tail.join(" | ")
                )
            }
            other => chain(&other),
        })?;
        self.attached.insert(name.to_owned(), fd);
        Ok(())
    }

    /// Detaches and unloads one program; its counts stay in the maps.
    pub fn detach(&mut self, name: &str) {
        if self.attached.remove(name).is_some() {
            let unloaded = match self.ebpf.program_mut(name) {
                Some(Program::BtfTracePoint(p)) => p.unload(),
                Some(Program::PerfEvent(p)) => p.unload(),
                _ => Ok(()),
            };
            debug_assert!(unloaded.is_ok(), "unload of our own program");
        }
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
        let fd = self.attached.get(name)?.as_raw_fd();
        Some(ProgramStats {
            run_ns: fdinfo(fd, "run_time_ns:")?,
            runs: fdinfo(fd, "run_cnt:")?,
            misses: fdinfo(fd, "recursion_misses:")?,
        })
    }

    /// Instructions the verifier walked, where the kernel says (5.16).
    #[must_use]
    pub fn verified_instructions(&self, name: &str) -> Option<u64> {
        fdinfo(self.attached.get(name)?.as_raw_fd(), "verified_insns:")
    }
}

fn attach(
    program: &mut Program,
    hook: Hook,
    btf: Option<&Btf>,
    cpus: &[u32],
) -> Result<OwnedFd, ProgramError> {
    match (program, hook) {
        (Program::BtfTracePoint(program), Hook::Tracepoint(name)) => {
            let btf = btf.ok_or(ProgramError::NotLoaded)?;
            program.load(name, btf)?;
            if let Err(error) = program.attach() {
                program.unload()?;
                return Err(error);
            }
            Ok(program.fd()?.as_fd().try_clone_to_owned()?)
        }
        (Program::PerfEvent(program), Hook::PageFaults) => {
            software(program, SoftwareEvent::PageFaults, cpus)
        }
        (Program::PerfEvent(program), Hook::MajorFaults) => {
            software(program, SoftwareEvent::PageFaultsMaj, cpus)
        }
        _ => Err(ProgramError::UnexpectedProgramType),
    }
}

fn software(
    program: &mut PerfEvent,
    event: SoftwareEvent,
    cpus: &[u32],
) -> Result<OwnedFd, ProgramError> {
    program.load()?;
    for &cpu in cpus {
        let attached = program.attach(
            PerfEventConfig::Software(event),
            PerfEventScope::AllProcessesOneCpu { cpu },
            SamplePolicy::Period(1),
            false,
        );
        if let Err(error) = attached {
            program.unload()?;
            return Err(error);
        }
    }
    Ok(program.fd()?.as_fd().try_clone_to_owned()?)
}

/// Turns the kernel's run-time statistics on while the value lives: about 30 ns
/// more per run of every BPF program on the machine. Minimum kernel 5.8.
///
/// # Errors
/// What bpf(2) says, e.g. EPERM without CAP_SYS_ADMIN.
pub fn run_time_statistics() -> Result<OwnedFd, String> {
    aya::sys::enable_stats(aya::sys::Stats::RunTime).map_err(|e| chain(&e))
}
