//! Which processes are the recorded command and its descendants.

use crate::{
    bpf::{MapError, Maps},
    sample::{Delta, delta::ProcessId},
};
use faultscope_common::abi::WORKLOAD_SEED;
use std::collections::HashMap;

/// Ticks for which the mark of an ended process is kept: its rows are read for one more interval.
const KEPT_TICKS: u32 = 3;

/// What is marked.
#[derive(Debug, Default)]
pub(super) struct Workload {
    /// Marked processes with the ticks since they were seen alive.
    marked: HashMap<ProcessId, u32>,
    /// Process id of the command where the kernel tells no descendants.
    root: Option<u32>,
    /// Entries of the map read last.
    pub(super) rows: u64,
}

impl Workload {
    /// Says which process is the command, for kernels that mark none.
    pub(super) fn set_root(&mut self, tgid: u32) {
        self.root = Some(tgid);
    }

    /// Learns the marks set since the last call and takes those of ended processes out of the kernel's map.
    pub(super) fn read(
        &mut self,
        maps: &mut Maps,
        is_alive: impl Fn(u32) -> bool,
    ) -> Result<(), MapError> {
        self.rows = 0;
        for (tgid, start_ns) in maps.workload.entries()? {
            if start_ns == WORKLOAD_SEED {
                continue;
            }
            self.rows += 1;
            self.marked.insert(ProcessId { tgid, start_ns }, 0);
            if !is_alive(tgid) {
                maps.workload.remove(&tgid);
            }
        }
        Ok(())
    }

    /// Marks the processes of a tick that has been read.
    pub(super) fn mark(&mut self, delta: &mut Delta) {
        for (id, process) in &mut delta.processes {
            process.is_workload = self.marked.contains_key(id) || self.root == Some(id.tgid);
        }
        self.marked.retain(|_, ticks| {
            *ticks += 1;
            *ticks <= KEPT_TICKS
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::delta::Process;

    fn id(tgid: u32, start_ns: u64) -> ProcessId {
        ProcessId { tgid, start_ns }
    }

    fn marks(workload: &mut Workload, ids: &[ProcessId]) -> Vec<bool> {
        let mut delta = Delta::default();
        for id in ids {
            delta.processes.insert(*id, Process::default());
        }
        workload.mark(&mut delta);
        ids.iter()
            .map(|id| delta.processes[id].is_workload)
            .collect()
    }

    #[test]
    fn a_process_is_told_by_its_start_and_remembered_a_while() {
        let mut workload = Workload::default();
        workload.marked.insert(id(7, 100), 0);
        let ids = [id(7, 100), id(7, 200), id(8, 100)];
        for _ in 0..KEPT_TICKS + 1 {
            assert_eq!(marks(&mut workload, &ids), [true, false, false]);
        }
        assert_eq!(marks(&mut workload, &ids), [false; 3]);
        workload.set_root(8);
        assert_eq!(marks(&mut workload, &ids), [false, false, true]);
    }
}
