//! Exact spinlock waits since the last call.

use crate::{
    bpf::Maps,
    sample::{Delta, counters::LOCK_CLASSES, delta::SpinWaits},
};
use faultscope_common::slowpath::SlowRow;

/// What was read last of each CPU.
#[derive(Debug, Default)]
pub(super) struct Slowpath {
    before: Vec<SlowRow>,
}

impl Slowpath {
    pub(super) fn collect(&mut self, maps: &Maps, delta: &mut Delta) {
        let rows: Vec<SlowRow> = (0..maps.slow.len())
            .map(|cpu| maps.slow.read(cpu))
            .collect();
        let mut waits = SpinWaits::default();
        for (cpu, row) in rows.iter().enumerate() {
            let before = self.before.get(cpu);
            for class in 0..LOCK_CLASSES {
                waits.ended[class] += row.ended[class] - before.map_or(0, |b| b.ended[class]);
                waits.traced[class] +=
                    row.ended_seen[class] - before.map_or(0, |b| b.ended_seen[class]);
            }
            delta.unpaired_ends += row.unpaired_ends - before.map_or(0, |b| b.unpaired_ends);
        }
        delta.spin_waits = Some(waits);
        self.before = rows;
    }
}
