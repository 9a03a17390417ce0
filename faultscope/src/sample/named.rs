//! What the rows of an interval name only by number: processes, cgroups, call chains.

use super::Delta;
use std::collections::BTreeSet;

impl Delta {
    /// Processes of rows that have but their id; a name of theirs belongs in `names`.
    #[must_use]
    pub fn named_processes(&self) -> BTreeSet<u32> {
        let blocked = self.blocked.keys();
        let spaces = self.spaces.values().filter_map(|space| space.process);
        self.takers
            .iter()
            .flat_map(|(id, taker)| [id.tgid, taker.owner])
            .chain(self.locks.keys().map(|lock| lock.owner))
            .chain(blocked.flat_map(|id| [id.tgid, id.holder, id.owner]))
            .chain(self.madvise.keys().map(|id| id.tgid))
            .chain(self.process_passes.keys().copied())
            .chain(self.refaults.keys().map(|id| id.tgid))
            .chain(spaces.map(|process| process.tgid))
            .filter(|tgid| *tgid != 0)
            .collect()
    }

    /// Memory cgroups of rows; a path of theirs belongs in `cgroup_paths`.
    #[must_use]
    pub fn named_cgroups(&self) -> BTreeSet<u64> {
        self.cgroups
            .keys()
            .copied()
            .chain(self.locks.keys().map(|lock| lock.memcg))
            .chain(self.lru_holds.keys().map(|lock| lock.memcg))
            .filter(|id| *id != 0)
            .collect()
    }

    /// Slots + 1 of the call chains of rows.
    #[must_use]
    pub fn named_chains(&self) -> BTreeSet<u32> {
        let blocked = self.blocked.keys();
        self.locks
            .keys()
            .map(|lock| lock.stack)
            .chain(blocked.flat_map(|id| [id.site, id.holder_site]))
            .chain(self.takers.values().map(|taker| taker.site))
            .filter(|slot| *slot != 0)
            .collect()
    }
}
