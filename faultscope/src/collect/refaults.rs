//! Ranges given back by madvise and faults on them, by process and advice.

use crate::{
    bpf::Maps,
    sample::{Delta, delta::MadviseId, histogram::Histogram, refault::Refault},
};
use faultscope_common::{
    latency::BUCKETS,
    refault::{REFAULT_ROWS, RETIRED_REFAULT, RefaultRow, unpack_refault_tag},
};
use std::collections::HashMap;

/// Ticks without increments after which a row is retired.
const IDLE_TICKS: u32 = 60;

#[derive(Debug)]
struct Known {
    row: RefaultRow,
    idle: u32,
    is_retired: bool,
}

/// Reads the rows of all CPUs and remembers what was read.
#[derive(Debug, Default)]
pub(super) struct Refaults {
    rows: HashMap<usize, Known>,
    /// Greatest fill of any CPU's part of the table.
    pub(super) fill: u64,
}

impl Refaults {
    /// Everything since the last call.
    pub(super) fn collect(&mut self, maps: &Maps, delta: &mut Delta) {
        let mut fill = vec![0_u64; maps.refaults.len().div_ceil(REFAULT_ROWS as usize)];
        for slot in 0..maps.refaults.len() {
            if maps.refaults.tag(slot) == 0 {
                continue;
            }
            fill[slot / REFAULT_ROWS as usize] += 1;
            let before = self.rows.remove(&slot);
            let mut row = maps.refaults.read(slot);
            if let Some(before) = &before {
                // A retired row has lost its tag.
                row.tag = before.row.tag;
            }
            let increment = since(&row, before.as_ref().map(|b| &b.row));
            let has_moved = !increment.is_zero();
            if has_moved {
                let (tgid, advice, is_remote) = unpack_refault_tag(row.tag);
                let id = MadviseId {
                    tgid,
                    advice,
                    is_remote,
                };
                delta.refaults.entry(id).or_default().add(&increment);
            }
            let idle = before.as_ref().map_or(0, |b| b.idle + 1) * u32::from(!has_moved);
            if before.is_some_and(|b| b.is_retired) {
                maps.refaults.free(slot);
                continue;
            }
            let is_retired = idle > IDLE_TICKS;
            if is_retired {
                maps.refaults.write_word(slot, 0, RETIRED_REFAULT);
            }
            let known = Known {
                row,
                idle,
                is_retired,
            };
            self.rows.insert(slot, known);
        }
        self.fill = fill.into_iter().max().unwrap_or(0);
    }
}

fn since(row: &RefaultRow, before: Option<&RefaultRow>) -> Refault {
    let old = |f: fn(&RefaultRow) -> u64| before.map_or(0, f);
    let mut after = Histogram::default();
    for bucket in 0..BUCKETS {
        // The kernel's buckets wrap at 2^32.
        let n = row.histogram[bucket].wrapping_sub(before.map_or(0, |b| b.histogram[bucket]));
        after.0[bucket] = u64::from(n);
    }
    Refault {
        ranges: row.ranges - old(|b| b.ranges),
        bytes: row.bytes - old(|b| b.bytes),
        lost_bytes: row.lost_bytes - old(|b| b.lost_bytes),
        refaults: row.refaults - old(|b| b.refaults),
        ns: row.ns - old(|b| b.ns),
        after,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable as _;

    #[test]
    fn increments_are_since_the_last_reading_and_buckets_wrap() {
        let mut before = RefaultRow::zeroed();
        (before.ranges, before.refaults, before.histogram[3]) = (2, 5, u32::MAX);
        let mut now = before;
        (now.ranges, now.refaults, now.histogram[3]) = (3, 7, 1);
        let increment = since(&now, Some(&before));
        assert_eq!((increment.ranges, increment.refaults), (1, 2));
        assert_eq!(increment.after.count(), 2);
        assert!(since(&now, Some(&now)).is_zero());
        assert_eq!(since(&now, None).ranges, 3);
    }
}
