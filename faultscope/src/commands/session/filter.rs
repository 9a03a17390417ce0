//! The filters a user gave, resolved to what the programs compare.

use std::path::Path;

use super::Options;
use crate::error::Failure;
use crate::host::cgroup::CgroupPaths;
use crate::name::scrub;

/// Longest name of a thread, without its NUL (TASK_COMM_LEN, include/linux/sched.h).
const COMM_BYTES: usize = 15;

/// The filters as the programs want them.
#[derive(Debug, Default)]
pub(super) struct Filter {
    has_pids: bool,
    /// Ids of the cgroups.
    pub(super) cgroups: Vec<u64>,
    /// Names, NUL-padded.
    pub(super) comms: Vec<[u8; 16]>,
}

impl Filter {
    /// Looks every name up; one that names nothing is an error of the user's.
    pub(super) fn resolve(
        root: &Path,
        options: &Options,
        paths: Option<&CgroupPaths>,
    ) -> Result<Self, Failure> {
        let mut filter = Self {
            has_pids: !options.pids.is_empty(),
            ..Self::default()
        };
        for pid in &options.pids {
            if !root.join(format!("proc/{pid}")).exists() {
                return Err(Failure::Usage(format!(
                    "--pid {pid}: there is no process {pid} now, and a later one of that number would be another"
                )));
            }
        }
        for path in &options.cgroups {
            let paths = paths.ok_or_else(|| {
                Failure::Usage("--cgroup needs a mounted cgroup hierarchy with the memory controller; there is none".into())
            })?;
            let id = paths
                .resolve_filter(path)
                .map_err(|e| Failure::Usage(e.to_string()))?;
            filter.cgroups.push(id);
        }
        for comm in &options.comms {
            let bytes = comm.as_bytes();
            if bytes.is_empty() || bytes.len() > COMM_BYTES {
                return Err(Failure::Usage(format!(
                    "--comm \"{}\" names no thread: names have 1 to {COMM_BYTES} bytes; the kernel cuts longer ones",
                    scrub(bytes)
                )));
            }
            let mut name = [0; 16];
            name[..bytes.len()].copy_from_slice(bytes);
            filter.comms.push(name);
        }
        Ok(filter)
    }

    /// The kinds in force: bit 0 pid, bit 1 cgroup, bit 2 name.
    pub(super) fn kinds(&self) -> u64 {
        u64::from(self.has_pids)
            | u64::from(!self.cgroups.is_empty()) << 1
            | u64::from(!self.comms.is_empty()) << 2
    }
}
