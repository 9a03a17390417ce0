//! Passes of `handle_mm_fault`, madvise, refaults and the fault time budget.

use super::{Sink, Source};
use crate::{
    sample::{
        Budget, Delta,
        budget::ORIGINS,
        delta::{FAULT_BACKINGS, FAULT_PATHS, Madvise, MadviseId, Passes, ProcessPasses},
        refault::Refault,
    },
    store::codec::{Codec, Fault, Record, Text, damaged},
    symbol::FAULT_PARTS,
};

pub(super) fn passes<C: Codec>(c: &mut C, passes: &mut Passes) -> Result<(), Fault> {
    let ended = |passes: &Passes| passes.faults.wrapping_add(passes.retries);
    // Zero as a rule, and zero takes no byte.
    let mut open = passes.began.wrapping_sub(ended(passes));
    let mut more_pages = passes.pages.wrapping_sub(passes.faults);
    c.word(&mut open)?;
    c.u64s([
        &mut passes.faults,
        &mut passes.retries,
        &mut passes.majors,
        &mut passes.ns,
        &mut passes.max_ns,
    ])?;
    c.word(&mut more_pages)?;
    passes.began = open.wrapping_add(ended(passes));
    passes.pages = more_pages.wrapping_add(passes.faults);
    c.tally(passes.began)?;
    c.tally(passes.pages)?;
    let [oom, sigbus, sigsegv, hwpoison] = passes.errors;
    let mut rare = [
        passes.completed,
        oom,
        sigbus,
        sigsegv,
        hwpoison,
        passes.large,
        passes.unpaired,
    ];
    c.counts(&mut rare)?;
    let [completed, oom, sigbus, sigsegv, hwpoison, large, unpaired] = rare;
    passes.completed = completed;
    passes.errors = [oom, sigbus, sigsegv, hwpoison];
    passes.large = large;
    passes.unpaired = unpaired;
    c.counts(&mut passes.histogram.0)
}

#[derive(Debug, Default)]
struct KindRow {
    path: usize,
    backing: usize,
    passes: Passes,
}

impl Record for KindRow {
    const TABLE: &'static str = "fault_kind";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.index(&mut self.path, FAULT_PATHS.len())?;
        c.index(&mut self.backing, FAULT_BACKINGS.len())?;
        passes(c, &mut self.passes)
    }
}

#[derive(Debug, Default)]
struct ProcessFaultRow {
    tgid: u32,
    row: ProcessPasses,
}

impl Record for ProcessFaultRow {
    const TABLE: &'static str = "process_fault";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.small(&mut self.tgid)?;
        passes(c, &mut self.row.passes)?;
        self.row.paths.iter_mut().try_for_each(|n| c.u64(n))
    }
}

const NO_ADVICE: MadviseId = MadviseId {
    tgid: 0,
    advice: 0,
    is_remote: false,
};

fn advice<C: Codec>(c: &mut C, id: &mut MadviseId) -> Result<(), Fault> {
    c.small(&mut id.tgid)?;
    c.small(&mut id.advice)?;
    c.flag(&mut id.is_remote)
}

#[derive(Debug)]
struct MadviseRow(MadviseId, Madvise);

impl Default for MadviseRow {
    fn default() -> Self {
        Self(NO_ADVICE, Madvise::default())
    }
}

impl Record for MadviseRow {
    const TABLE: &'static str = "madvise";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        let Self(id, row) = self;
        advice(c, id)?;
        c.u64s([
            &mut row.calls,
            &mut row.failures,
            &mut row.bytes,
            &mut row.ns,
            &mut row.max_ns,
        ])
    }
}

#[derive(Debug)]
struct RefaultRow(MadviseId, Refault);

impl Default for RefaultRow {
    fn default() -> Self {
        Self(NO_ADVICE, Refault::default())
    }
}

impl Record for RefaultRow {
    const TABLE: &'static str = "refault";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        let Self(id, row) = self;
        advice(c, id)?;
        c.u64s([
            &mut row.ranges,
            &mut row.bytes,
            &mut row.lost_bytes,
            &mut row.refaults,
            &mut row.ns,
        ])?;
        c.counts(&mut row.after.0)
    }
}

#[derive(Debug, Default)]
struct BudgetRow(Budget);

impl Record for BudgetRow {
    const TABLE: &'static str = "budget";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        let Self(budget) = self;
        c.reading(&mut budget.period_ns)?;
        c.reading(&mut budget.cpus)?;
        c.u64s([
            &mut budget.samples,
            &mut budget.idle,
            &mut budget.user,
            &mut budget.kernel,
            &mut budget.deep,
            &mut budget.interrupted,
        ])
    }
}

#[derive(Debug, Default)]
struct PartRow {
    part: usize,
    samples: [u64; ORIGINS],
    function: Option<Text>,
}

impl Record for PartRow {
    const TABLE: &'static str = "budget_part";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.index(&mut self.part, FAULT_PARTS)?;
        self.samples.iter_mut().try_for_each(|n| c.u64(n))?;
        c.opt_text(&mut self.function)
    }
}

pub(super) fn write(sink: &mut Sink<'_>, delta: &Delta) -> Result<(), Fault> {
    // The map has every kind that ever was.
    let moved = delta
        .passes
        .iter()
        .filter(|(_, passes)| **passes != Passes::default());
    sink.put(moved.map(|((path, backing), passes)| KindRow {
        path: *path,
        backing: *backing,
        passes: passes.clone(),
    }))?;
    sink.put(
        delta
            .process_passes
            .iter()
            .map(|(tgid, row)| ProcessFaultRow {
                tgid: *tgid,
                row: row.clone(),
            }),
    )?;
    sink.put(delta.madvise.iter().map(|(id, row)| MadviseRow(*id, *row)))?;
    sink.put(
        delta
            .refaults
            .iter()
            .map(|(id, row)| RefaultRow(*id, row.clone())),
    )?;
    let Some(budget) = &delta.budget else {
        return Ok(());
    };
    sink.put([BudgetRow(budget.clone())])?;
    let parts = budget.parts.iter().zip(&budget.functions).enumerate();
    let sampled = parts.filter(|(_, (n, function))| **n != [0; ORIGINS] || function.is_some());
    sink.put(sampled.map(|(part, (samples, function))| PartRow {
        part,
        samples: *samples,
        function: function.clone(),
    }))
}

pub(super) fn read(source: &mut Source<'_>, delta: &mut Delta) -> Result<(), Fault> {
    source.each(|row: KindRow| {
        delta.passes.insert((row.path, row.backing), row.passes);
        Ok(())
    })?;
    source.each(|row: ProcessFaultRow| {
        delta.process_passes.insert(row.tgid, row.row);
        Ok(())
    })?;
    source.each(|MadviseRow(id, row)| {
        delta.madvise.insert(id, row);
        Ok(())
    })?;
    source.each(|RefaultRow(id, row)| {
        delta.refaults.insert(id, row);
        Ok(())
    })?;
    source.each(|BudgetRow(budget)| {
        delta.budget = Some(budget);
        Ok(())
    })?;
    source.each(|row: PartRow| {
        let budget = delta
            .budget
            .as_mut()
            .ok_or_else(|| damaged("samples are there of a clock that is not"))?;
        budget.parts[row.part] = row.samples;
        budget.functions[row.part] = row.function;
        Ok(())
    })
}
