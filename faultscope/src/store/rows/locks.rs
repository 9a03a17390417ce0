//! Locks: takers, contended waits, who held, what moved and held lru_lock.

use super::{
    Sink, Source,
    keys::{BlockedKey, LockKey, TakerKey},
};
use crate::{
    sample::{
        Delta,
        blocked::BlockedWaits,
        counters::LOCK_CLASSES,
        delta::{Lock, LruHold, LruLockId, Moves, SpinWaits, Taker},
    },
    store::codec::{Codec, Fault, Record, Text},
};

#[derive(Debug, Default)]
struct TakerRow {
    taker: TakerKey,
    row: Taker,
}

impl Record for TakerRow {
    const TABLE: &'static str = "mmap_taker";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.key(&mut self.taker)?;
        let row = &mut self.row;
        c.u64s([
            &mut row.taken,
            &mut row.downgraded,
            &mut row.failed,
            &mut row.take_ns,
            &mut row.take_max_ns,
            &mut row.slow_takes,
            &mut row.holds,
            &mut row.hold_ns,
            &mut row.hold_max_ns,
        ])?;
        c.small(&mut row.site)?;
        c.counts(&mut row.handoffs)
    }
}

#[derive(Debug, Default)]
struct LockRow {
    lock: LockKey,
    row: Lock,
}

impl Record for LockRow {
    const TABLE: &'static str = "lock_wait";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.key(&mut self.lock)?;
        let row = &mut self.row;
        // Zero as a rule, and zero takes no byte.
        let mut untraced = row.waits.wrapping_sub(row.traced);
        c.u64s([&mut row.waits, &mut row.wait_ns, &mut row.max_ns])?;
        c.word(&mut untraced)?;
        row.traced = row.waits.wrapping_sub(untraced);
        c.tally(row.traced)?;
        c.counts(&mut row.handoffs)?;
        c.counts(&mut row.histogram.0)
    }
}

#[derive(Debug, Default)]
struct SpinRow {
    class: usize,
    ended: u64,
    traced: u64,
}

impl Record for SpinRow {
    const TABLE: &'static str = "spin_wait";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.index(&mut self.class, LOCK_CLASSES)?;
        c.u64s([&mut self.ended, &mut self.traced])
    }
}

#[derive(Debug, Default)]
struct BlockedRow {
    id: BlockedKey,
    row: BlockedWaits,
}

impl Record for BlockedRow {
    const TABLE: &'static str = "blocked";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.key(&mut self.id)?;
        c.u64s([
            &mut self.row.waits,
            &mut self.row.wait_ns,
            &mut self.row.max_ns,
        ])
    }
}

#[derive(Debug, Default)]
struct MoveRow {
    function: Text,
    row: Moves,
}

impl Record for MoveRow {
    const TABLE: &'static str = "lru_move";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.text(&mut self.function)?;
        let row = &mut self.row;
        c.u64s([&mut row.batches, &mut row.folios])?;
        c.counts(&mut row.sizes)?;
        c.u64s([&mut row.regions, &mut row.region_ns, &mut row.region_max_ns])?;
        c.counts(&mut row.histogram.0)
    }
}

#[derive(Debug)]
struct HoldRow(LruLockId, LruHold);

impl Default for HoldRow {
    fn default() -> Self {
        Self(LruLockId { node: 0, memcg: 0 }, LruHold::default())
    }
}

impl Record for HoldRow {
    const TABLE: &'static str = "lru_hold";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        let Self(id, row) = self;
        c.small(&mut id.node)?;
        c.word(&mut id.memcg)?;
        c.u64s([&mut row.holds, &mut row.hold_ns, &mut row.max_ns])?;
        c.counts(&mut row.handoffs)?;
        c.counts(&mut row.histogram.0)?;
        c.word(&mut row.address)
    }
}

pub(super) fn write(sink: &mut Sink<'_>, delta: &Delta) -> Result<(), Fault> {
    sink.put(delta.takers.iter().map(|(id, row)| TakerRow {
        taker: TakerKey {
            id: *id,
            owner: row.owner,
        },
        row: row.clone(),
    }))?;
    sink.put(delta.locks.iter().map(|(id, row)| LockRow {
        lock: LockKey {
            id: *id,
            address: row.address,
        },
        row: row.clone(),
    }))?;
    if let Some(waits) = &delta.spin_waits {
        let classes = waits.ended.iter().zip(&waits.traced).enumerate();
        let waited = classes.filter(|(_, (ended, traced))| **ended > 0 || **traced > 0);
        sink.put(waited.map(|(class, (ended, traced))| SpinRow {
            class,
            ended: *ended,
            traced: *traced,
        }))?;
    }
    sink.put(delta.blocked.iter().map(|(id, row)| BlockedRow {
        id: BlockedKey(id.clone()),
        row: *row,
    }))?;
    sink.put(delta.moves.iter().map(|(function, row)| MoveRow {
        function: function.clone(),
        row: row.clone(),
    }))?;
    sink.put(
        delta
            .lru_holds
            .iter()
            .map(|(id, row)| HoldRow(*id, row.clone())),
    )
}

pub(super) fn read(source: &mut Source<'_>, delta: &mut Delta) -> Result<(), Fault> {
    source.each(|row: TakerRow| {
        let taker = Taker {
            owner: row.taker.owner,
            ..row.row
        };
        delta.takers.insert(row.taker.id, taker);
        Ok(())
    })?;
    source.each(|row: LockRow| {
        let lock = Lock {
            address: row.lock.address,
            ..row.row
        };
        delta.locks.insert(row.lock.id, lock);
        Ok(())
    })?;
    let spins = &mut delta.spin_waits;
    source.each(|row: SpinRow| {
        let waits = spins.get_or_insert_with(SpinWaits::default);
        waits.ended[row.class] = row.ended;
        waits.traced[row.class] = row.traced;
        Ok(())
    })?;
    source.each(|row: BlockedRow| {
        delta.blocked.insert(row.id.0, row.row);
        Ok(())
    })?;
    source.each(|row: MoveRow| {
        delta.moves.insert(row.function, row.row);
        Ok(())
    })?;
    source.each(|HoldRow(id, row)| {
        delta.lru_holds.insert(id, row);
        Ok(())
    })
}
