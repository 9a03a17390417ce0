//! What goes into each table, and how a delta is taken apart and put together again.

mod faults;
mod head;
mod keys;
mod lists;
mod locks;
mod machine;
mod names;
mod run;
mod scopes;

pub(super) use head::Head;
pub(super) use keys::{
    BlockedKey, LockKey, ProcessKey, SpaceKey, SpinlockKey, TakerKey, ThreadKey,
};
pub(super) use lists::{MapItem, MissingItem, NameItem, NoteItem, ProgramItem};
pub(super) use names::{Known, Named};
pub(super) use run::{read_run, write_end, write_facts, write_metrics, write_run, write_workload};

use super::codec::{Caches, Encoder, Fault, Left, Record, damaged, each};
use crate::sample::{Delta, Interval};
use rusqlite::Connection;

/// Takes the rows of an interval.
#[derive(Debug)]
struct Sink<'a> {
    encoder: Encoder<'a>,
    interval: i64,
    sum: u64,
}

impl Sink<'_> {
    fn put<R: Record>(&mut self, records: impl IntoIterator<Item = R>) -> Result<(), Fault> {
        let rows = self.encoder.put_all(self.interval, records)?;
        self.sum = self.sum.wrapping_add(rows);
        Ok(())
    }
}

/// Writes the interval numbered `index`.
pub(super) fn write(
    conn: &Connection,
    caches: &mut Caches,
    known: &mut Known,
    index: i64,
    interval: &Interval,
) -> Result<(), Fault> {
    let mut sink = Sink {
        encoder: Encoder::new(conn, caches),
        interval: index,
        sum: 0,
    };
    let delta = &interval.delta;
    scopes::write(&mut sink, delta)?;
    faults::write(&mut sink, delta)?;
    locks::write(&mut sink, delta)?;
    machine::write(&mut sink, delta)?;
    sink.sum = sink
        .sum
        .wrapping_add(known.write(&mut sink.encoder, index, delta)?);
    let mut head = Head::of(interval, sink.sum);
    sink.encoder.put(&[index], &mut head)?;
    Ok(())
}

/// Reads the interval numbered `index`; `None` if there is none.
pub(super) fn read(
    conn: &Connection,
    caches: &mut Caches,
    named: &mut Named,
    left: &mut Left,
    index: i64,
) -> Result<Option<Interval>, Fault> {
    let mut found = None;
    each::<Head>(conn, caches, left, Some(index), |head, sum| {
        found = Some((head, sum));
        Ok(())
    })?;
    let Some((head, sum)) = found else {
        return Ok(None);
    };
    let mut delta = Delta::default();
    let mut source = Source {
        conn,
        caches,
        left,
        interval: index,
        sum,
    };
    scopes::read(&mut source, &mut delta)?;
    faults::read(&mut source, &mut delta)?;
    locks::read(&mut source, &mut delta)?;
    machine::read(&mut source, &mut delta, &head)?;
    named.read(&mut source, &mut delta)?;
    if source.sum != head.check {
        return Err(damaged(
            "its rows do not add up to the checksum stored with them",
        ));
    }
    Ok(Some(head.into_interval(delta)))
}

/// Gives back the rows of an interval.
#[derive(Debug)]
struct Source<'a> {
    conn: &'a Connection,
    caches: &'a mut Caches,
    left: &'a mut Left,
    interval: i64,
    sum: u64,
}

impl Source<'_> {
    fn each<R: Record>(
        &mut self,
        mut take: impl FnMut(R) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let sum = &mut self.sum;
        each::<R>(
            self.conn,
            self.caches,
            self.left,
            Some(self.interval),
            |record, row| {
                *sum = sum.wrapping_add(row);
                take(record)
            },
        )
    }
}
