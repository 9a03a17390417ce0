//! The table of mmap_lock waiters and holders, filled by the kernel on each CPU.
//!
//! A row without increments for a while is retired first, so that no program
//! matches it any more, and freed one tick later.

use crate::{
    bpf::Maps,
    name::scrub,
    sample::{
        Delta,
        blocked::{BlockedId, BlockedWaits, Held},
    },
};
use faultscope_common::{
    blocked::{BlockedKey, BlockedRow, READER, READERS, UNKNOWN_CALL, WRITER},
    lock::{ROW_RETIRED, flags},
};
use std::collections::HashMap;

/// Ticks without increments after which a row is retired.
const IDLE_TICKS: u32 = 60;

#[derive(Debug, Clone, Copy)]
struct Known {
    waits: BlockedWaits,
    idle: u32,
    is_retired: bool,
}

/// Reads the table and remembers what was read.
#[derive(Debug, Default)]
pub(super) struct BlockedTable {
    known: HashMap<usize, Known>,
    /// Greatest fill of any CPU's part.
    pub(super) fill: u64,
}

impl BlockedTable {
    /// Adds what happened since the last call.
    pub(super) fn read(&mut self, maps: &Maps, delta: &mut Delta) {
        let per_cpu = maps.sizes.blocked_rows as usize;
        let mut fill = vec![0_u64; maps.sizes.cpus as usize];
        for slot in 0..maps.blocked.len() {
            if maps.blocked.tag(slot) & 0xff == 0 {
                continue;
            }
            fill[slot / per_cpu] += 1;
            let row = maps.blocked.read(slot);
            if row.waits == 0 {
                continue;
            }
            let before = self.known.remove(&slot);
            let now = BlockedWaits {
                waits: row.waits,
                wait_ns: row.wait_ns,
                max_ns: row.max_ns,
            };
            let old = before.map_or_else(BlockedWaits::default, |b| b.waits);
            let moved = now.waits - old.waits;
            if moved > 0 {
                let sum = delta.blocked.entry(id(&row)).or_default();
                sum.waits += moved;
                sum.wait_ns += now.wait_ns - old.wait_ns;
                sum.max_ns = sum.max_ns.max(now.max_ns);
            }
            if before.is_some_and(|b| b.is_retired) {
                maps.blocked.free(slot);
                continue;
            }
            let idle = before.map_or(0, |b| b.idle + 1) * u32::from(moved == 0);
            let is_retired = idle > IDLE_TICKS;
            if is_retired {
                let tag = maps.blocked.tag(slot) | u64::from(ROW_RETIRED);
                maps.blocked.write_word(slot, 0, tag);
            }
            let known = Known {
                waits: now,
                idle,
                is_retired,
            };
            self.known.insert(slot, known);
        }
        self.fill = fill.into_iter().max().unwrap_or(0);
    }
}

fn id(row: &BlockedRow) -> BlockedId {
    let key: &BlockedKey = &row.key;
    let comm = row.comm.split(|byte| *byte == 0).next().unwrap_or(&[]);
    BlockedId {
        tgid: key.tgid,
        syscall: key.syscall,
        is_write: u32::from(key.mode) & flags::WRITE != 0,
        site: key.site,
        held: match key.holder_mode {
            WRITER => Held::Write,
            READER => Held::Read,
            READERS => Held::Readers,
            _ => Held::Unknown,
        },
        holder: key.holder,
        holder_tid: key.holder_tid,
        holder_comm: scrub(comm).into(),
        holder_syscall: (key.holder_syscall != UNKNOWN_CALL).then_some(key.holder_syscall),
        holder_site: key.holder_site,
        owner: key.owner,
    }
}
