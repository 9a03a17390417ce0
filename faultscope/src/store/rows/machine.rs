//! Losses, the machine's own counters, and the recorder itself.

use super::{
    Head, Sink, Source,
    lists::{NameItem, ProgramItem},
};
use crate::{
    sample::{
        Delta,
        delta::{Loss, MapFill, Program},
    },
    store::codec::{Codec, Fault, Record, Text, damaged},
};

#[derive(Debug, Default)]
struct LossRow {
    loss: u32,
    row: Loss,
}

impl Record for LossRow {
    const TABLE: &'static str = "loss";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.small(&mut self.loss)?;
        c.reading(&mut self.row.total)?;
        c.u64(&mut self.row.increment)
    }
}

#[derive(Debug, Default)]
struct VmstatRow {
    name: Text,
    increment: u64,
}

impl Record for VmstatRow {
    const TABLE: &'static str = "vmstat";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.text(&mut self.name)?;
        c.u64(&mut self.increment)
    }
}

#[derive(Debug, Default)]
struct LevelRow {
    position: u32,
    bytes: u64,
}

impl Record for LevelRow {
    const TABLE: &'static str = "level";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.small(&mut self.position)?;
        c.reading(&mut self.bytes)
    }
}

#[derive(Debug, Default)]
struct ProgramRow {
    position: u32,
    run_ns: u64,
    runs: u64,
    misses: u64,
}

impl Record for ProgramRow {
    const TABLE: &'static str = "program_run";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.small(&mut self.position)?;
        c.u64s([&mut self.run_ns, &mut self.runs, &mut self.misses])
    }
}

#[derive(Debug, Default)]
struct FillRow {
    position: u32,
    entries: u64,
}

impl Record for FillRow {
    const TABLE: &'static str = "map_fill";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.small(&mut self.position)?;
        c.reading(&mut self.entries)
    }
}

pub(super) fn write(sink: &mut Sink<'_>, delta: &Delta) -> Result<(), Fault> {
    let losses = (0..).zip(&delta.losses);
    let lost = losses.filter(|(_, row)| **row != Loss::default());
    sink.put(lost.map(|(loss, row)| LossRow { loss, row: *row }))?;
    let moved = delta.vmstat.iter().filter(|(_, increment)| **increment > 0);
    sink.put(moved.map(|(name, increment)| VmstatRow {
        name: name.clone(),
        increment: *increment,
    }))?;
    let levels = (0..).zip(&delta.levels);
    sink.put(levels.map(|(position, (_, bytes))| LevelRow {
        position,
        bytes: *bytes,
    }))?;
    let programs = (0..)
        .zip(&delta.programs)
        .map(|(position, program)| ProgramRow {
            position,
            run_ns: program.run_ns.unwrap_or_default(),
            runs: program.runs.unwrap_or_default(),
            misses: program.misses.unwrap_or_default(),
        });
    sink.put(programs.filter(|row| [row.run_ns, row.runs, row.misses] != [0; 3]))?;
    let maps = (0..).zip(&delta.maps).filter(|(_, map)| map.entries > 0);
    sink.put(maps.map(|(position, map)| FillRow {
        position,
        entries: map.entries,
    }))
}

fn program(item: &ProgramItem) -> Program {
    Program {
        name: item.name.clone(),
        place: item.place.clone(),
        is_attached: item.is_attached,
        run_ns: item.has_run_ns.then_some(0),
        runs: item.has_runs.then_some(0),
        misses: item.has_misses.then_some(0),
    }
}

/// The item at a position.
fn at<T>(list: &mut [T], position: u32) -> Result<&mut T, Fault> {
    usize::try_from(position)
        .ok()
        .and_then(|position| list.get_mut(position))
        .ok_or_else(|| damaged("a row refers to no item of its list"))
}

pub(super) fn read(source: &mut Source<'_>, delta: &mut Delta, head: &Head) -> Result<(), Fault> {
    // The count is not trusted with memory.
    let losses = usize::from(head.losses);
    delta.losses = vec![Loss::default(); losses];
    source.each(|row: LossRow| {
        *at(&mut delta.losses, row.loss)? = row.row;
        Ok(())
    })?;
    let absent = |NameItem { name }: &NameItem| (name.clone(), 0);
    delta.vmstat = head.vmstat.iter().map(absent).collect();
    source.each(|row: VmstatRow| {
        delta.vmstat.insert(row.name, row.increment);
        Ok(())
    })?;
    delta.levels = head.levels.iter().map(absent).collect();
    source.each(|row: LevelRow| {
        at(&mut delta.levels, row.position)?.1 = row.bytes;
        Ok(())
    })?;
    delta.programs = head.programs.iter().map(program).collect();
    source.each(|row: ProgramRow| {
        let program = at(&mut delta.programs, row.position)?;
        for (value, read) in [
            (&mut program.run_ns, row.run_ns),
            (&mut program.runs, row.runs),
            (&mut program.misses, row.misses),
        ] {
            if let Some(value) = value {
                *value = read;
            }
        }
        Ok(())
    })?;
    delta.maps = head
        .maps
        .iter()
        .map(|item| MapFill {
            name: item.name.clone(),
            entries: 0,
            capacity: item.capacity,
        })
        .collect();
    source.each(|row: FillRow| {
        at(&mut delta.maps, row.position)?.entries = row.entries;
        Ok(())
    })
}
