//! Memory given back by madvise, and faults on it.

use super::histogram::Histogram;

/// Memory a process gave back by one advice, and faults on it within the window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Refault {
    /// Ranges given back.
    pub ranges: u64,
    /// Their bytes, whole pages.
    pub bytes: u64,
    /// Bytes of ranges that were not followed to the end of their window.
    pub lost_bytes: u64,
    /// Faults on a page not present.
    pub refaults: u64,
    /// Time from the return of the call to the fault, sum, ns.
    pub ns: u64,
    /// The same as a histogram.
    pub after: Histogram,
}

impl Refault {
    /// Adds another CPU's.
    pub fn add(&mut self, other: &Self) {
        self.ranges = self.ranges.saturating_add(other.ranges);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.lost_bytes = self.lost_bytes.saturating_add(other.lost_bytes);
        self.refaults = self.refaults.saturating_add(other.refaults);
        self.ns = self.ns.saturating_add(other.ns);
        self.after.add(&other.after);
    }

    /// Whether nothing happened.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.ranges + self.lost_bytes + self.refaults == 0
    }
}
