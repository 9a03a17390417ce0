//! Who else used the machine's CPUs during a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::host::process;

/// Share of one CPU from which on a process is named.
const SHARE: f64 = 0.05;
/// Most processes named.
const NAMED: usize = 20;

/// CPU time of every process so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Used(BTreeMap<(u32, u64), (String, u64)>);

impl Used {
    /// Reads `/proc` below `root`.
    pub(super) fn read(root: &Path) -> Self {
        let pids = process::list_pids(root).unwrap_or_default();
        let all = pids.into_iter().filter_map(|pid| {
            let stat = process::read_stat(root, pid).ok()?;
            let ticks = stat.utime_ticks + stat.stime_ticks;
            Some(((pid, stat.start_ticks), (stat.comm, ticks)))
        });
        Self(all.collect())
    }

    /// Processes that used more than 5 % of a CPU since `before`, busiest first: `mariadbd 183 %`.
    ///
    /// Those in `own` are left out, and so are those that ended in between.
    pub(super) fn busy_since(
        &self,
        before: &Self,
        elapsed_ns: u64,
        own: &BTreeSet<u32>,
    ) -> Vec<String> {
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let mut busy: Vec<(f64, &str)> = self
            .0
            .iter()
            .filter(|((pid, _), _)| !own.contains(pid))
            .filter_map(|(id, (comm, ticks))| {
                let old = before.0.get(id).map_or(0, |(_, ticks)| *ticks);
                let used = ticks.saturating_sub(old).saturating_mul(tick_ns);
                let share = used as f64 / elapsed_ns.max(1) as f64;
                (share > SHARE).then_some((share, comm.as_str()))
            })
            .collect();
        busy.sort_by(|a, b| b.0.total_cmp(&a.0));
        busy.iter()
            .take(NAMED)
            .map(|(share, comm)| format!("{comm} {:.0} %", share * 100.0))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(all: &[(u32, &str, u64)]) -> Used {
        Used(
            all.iter()
                .map(|(pid, comm, ticks)| ((*pid, 1), ((*comm).to_owned(), *ticks)))
                .collect(),
        )
    }

    #[test]
    fn the_busy_are_named_and_our_own_left_out() {
        let hz = rustix::param::clock_ticks_per_second();
        let before = used(&[(1, "server", hz), (2, "idle", 5), (3, "own", 0)]);
        let after = used(&[
            (1, "server", 4 * hz),
            (2, "idle", 5),
            (3, "own", hz),
            (4, "new", hz),
        ]);
        let own = BTreeSet::from([3]);
        assert_eq!(
            after.busy_since(&before, 2_000_000_000, &own),
            ["server 150 %", "new 50 %"]
        );
    }
}
