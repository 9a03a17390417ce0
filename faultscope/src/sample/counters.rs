//! Counter sets that every scope has: thread, process, cgroup.

use std::ops::{AddAssign, Index, IndexMut, Range};

/// Fault classes: bit 0 write, bit 1 instruction fetch, bit 2 page present.
pub const FAULT_CLASSES: usize = 8;
/// Lock classes, in the order of [`LOCK_CLASS_NAMES`].
pub const LOCK_CLASSES: usize = 8;
/// Index of the mmap_lock class.
pub const MMAP_LOCK: usize = 0;
/// Index of the lru_lock class.
pub const LRU_LOCK: usize = 1;
/// Names of the lock classes.
pub const LOCK_CLASS_NAMES: [&str; LOCK_CLASSES] = [
    "mmap_lock",
    "lru_lock",
    "zone_lock",
    "page_table_lock",
    "spinlock",
    "rwsem",
    "mutex",
    "rt_mutex",
];

/// Handoff distances: same CPU, SMT sibling, LLC, node, remote, unknown.
pub const DISTANCES: usize = 6;

/// Position of a counter in [`Counters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// User faults by class.
    User(usize),
    /// Serviced kernel faults by class.
    Kernel(usize),
    /// Faults repaired by the exception table.
    FixedUp,
    /// Major faults.
    Major,
    /// RSS-counter updates.
    Rss,
    /// Faults inside the sharing window.
    WindowFaults,
    /// Of those, after a fault of the address space on another CPU.
    WindowHandoffs,
    /// madvise calls.
    Madvise,
    /// Contended waits by lock class.
    Waits(usize),
    /// Their time, ns.
    WaitNs(usize),
    /// mmap_lock acquisitions: read 0, write 1.
    MmapTaken(usize),
    /// Time from asking to having, ns.
    MmapTakeNs(usize),
    /// Time held, ns.
    MmapHoldNs(usize),
}

impl Scope {
    const fn index(self) -> usize {
        match self {
            Self::User(class) => class,
            Self::Kernel(class) => 8 + class,
            Self::FixedUp => 16,
            Self::Major => 17,
            Self::Rss => 18,
            Self::WindowFaults => 19,
            Self::WindowHandoffs => 20,
            Self::Madvise => 21,
            Self::Waits(class) => 22 + class,
            Self::WaitNs(class) => 30 + class,
            Self::MmapTaken(side) => 38 + side,
            Self::MmapTakeNs(side) => 40 + side,
            Self::MmapHoldNs(side) => 42 + side,
        }
    }
}

/// Where the contended waits stand in a set, by lock class.
pub const WAITS: Range<usize> = 22..22 + LOCK_CLASSES;
/// Where their times stand.
pub const WAIT_NS: Range<usize> = 30..30 + LOCK_CLASSES;
/// Number of counters in a set.
pub const COUNTERS: usize = 44;

/// One value per [`Scope`] counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters(pub [u64; COUNTERS]);

impl Default for Counters {
    fn default() -> Self {
        Self([0; COUNTERS])
    }
}

impl Index<Scope> for Counters {
    type Output = u64;
    fn index(&self, counter: Scope) -> &u64 {
        &self.0[counter.index()]
    }
}

impl IndexMut<Scope> for Counters {
    fn index_mut(&mut self, counter: Scope) -> &mut u64 {
        &mut self.0[counter.index()]
    }
}

impl AddAssign<&Self> for Counters {
    fn add_assign(&mut self, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a = a.saturating_add(*b);
        }
    }
}

impl Counters {
    /// What was added since `before`; a word that went backwards adds nothing.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut increment = *self;
        for (a, b) in increment.0.iter_mut().zip(&before.0) {
            *a = a.saturating_sub(*b);
        }
        increment
    }

    /// Whether nothing happened.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|n| *n == 0)
    }

    fn sum(&self, from: usize, n: usize) -> u64 {
        self.0[from..from + n].iter().sum()
    }

    /// User faults of all classes.
    #[must_use]
    pub fn user(&self) -> u64 {
        self.sum(0, FAULT_CLASSES)
    }

    /// Serviced kernel faults of all classes.
    #[must_use]
    pub fn kernel(&self) -> u64 {
        self.sum(8, FAULT_CLASSES)
    }

    /// Serviced faults.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.user() + self.kernel()
    }

    /// Serviced faults whose class satisfies `test`.
    #[must_use]
    pub fn faults_where(&self, test: impl Fn(usize) -> bool) -> u64 {
        (0..FAULT_CLASSES)
            .filter(|class| test(*class))
            .map(|class| self[Scope::User(class)] + self[Scope::Kernel(class)])
            .sum()
    }

    /// Contended waits for any lock.
    #[must_use]
    pub fn waits(&self) -> u64 {
        self.sum(22, LOCK_CLASSES)
    }

    /// Time in contended waits for any lock, ns.
    #[must_use]
    pub fn wait_ns(&self) -> u64 {
        self.sum(30, LOCK_CLASSES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_place_of_its_own() {
        let mut places: Vec<usize> = (0..8)
            .flat_map(|c| {
                [
                    Scope::User(c),
                    Scope::Kernel(c),
                    Scope::Waits(c),
                    Scope::WaitNs(c),
                ]
            })
            .chain((0..2).flat_map(|s| {
                [
                    Scope::MmapTaken(s),
                    Scope::MmapTakeNs(s),
                    Scope::MmapHoldNs(s),
                ]
            }))
            .chain([
                Scope::FixedUp,
                Scope::Major,
                Scope::Rss,
                Scope::WindowFaults,
                Scope::WindowHandoffs,
                Scope::Madvise,
            ])
            .map(Scope::index)
            .collect();
        places.sort_unstable();
        assert_eq!(places, (0..COUNTERS).collect::<Vec<_>>());
    }

    #[test]
    fn a_counter_that_went_backwards_adds_nothing() {
        let mut before = Counters::default();
        before[Scope::Major] = 5;
        let mut now = Counters::default();
        now[Scope::Rss] = 7;
        let d = now.since(&before);
        assert_eq!((d[Scope::Major], d[Scope::Rss]), (0, 7));
    }
}
