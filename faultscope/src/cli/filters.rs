//! Whose events are counted: the filters of every command that attaches probes.

use std::path::PathBuf;

use clap::Args;

/// Filters of the programs in the kernel.
#[derive(Debug, Clone, Args)]
pub struct Filters {
    /// Counts only this process, all its threads but not its children; may be repeated.
    #[arg(long = "pid", value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pub pids: Vec<u32>,
    /// Counts only tasks in this cgroup of the memory controller and its descendants; may be repeated.
    #[arg(long = "cgroup", value_name = "PATH")]
    pub cgroups: Vec<PathBuf>,
    /// Counts only threads of exactly this name; may be repeated. Servers name their threads, so --pid or --cgroup
    /// is usually what is wanted.
    #[arg(long = "comm", value_name = "NAME", value_parser = parse_comm)]
    pub comms: Vec<String>,
}

/// The kernel keeps 15 bytes of a thread's name (TASK_COMM_LEN), so a longer one would never match.
fn parse_comm(name: &str) -> Result<String, String> {
    if name.is_empty() || name.len() > 15 {
        return Err(format!(
            "thread names have 1 to 15 bytes, and \"{name}\" has {}",
            name.len()
        ));
    }
    Ok(name.to_owned())
}
