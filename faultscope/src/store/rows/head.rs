//! The row of an interval itself.

use super::{
    keys::SpinlockKey,
    lists::{MapItem, MissingItem, NameItem, NoteItem, ProgramItem},
};
use crate::{
    sample::{Delta, Interval, Missing, delta::Program},
    store::codec::{Codec, Fault, Record, Text, damaged},
};
use std::sync::Arc;

/// Everything of an interval that has no rows of its own.
#[derive(Debug, Default)]
pub(in crate::store) struct Head {
    /// A delta without rows.
    bare: Delta,
    missing: Vec<MissingItem>,
    notes: Vec<NoteItem>,
    spinlock: SpinlockKey,
    pub(super) programs: Vec<ProgramItem>,
    pub(super) maps: Vec<MapItem>,
    pub(super) levels: Vec<NameItem>,
    pub(super) vmstat: Vec<NameItem>,
    pub(super) losses: u16,
    has_spin_waits: bool,
    /// Checksum of the rows, then of the row too.
    pub(super) check: u64,
}

fn name(name: &Text) -> NameItem {
    NameItem {
        name: Text::clone(name),
    }
}

fn program(program: &Program) -> ProgramItem {
    ProgramItem {
        name: Text::clone(&program.name),
        place: program.place.clone(),
        is_attached: program.is_attached,
        has_run_ns: program.run_ns.is_some(),
        has_runs: program.runs.is_some(),
        has_misses: program.misses.is_some(),
    }
}

/// What of a delta stands in its own row; the rest is left as it is.
fn bare(from: &Delta, to: &mut Delta) {
    to.t_mono_ns = from.t_mono_ns;
    to.t_real_ns = from.t_real_ns;
    to.interval_ns = from.interval_ns;
    to.is_first = from.is_first;
    to.is_paravirtual = from.is_paravirtual;
    to.symbols_refused.clone_from(&from.symbols_refused);
    to.regions_unpaired = from.regions_unpaired;
    to.lru_coverage = from.lru_coverage;
    to.mglru = from.mglru;
    to.refault_window_ns = from.refault_window_ns;
    to.unpaired_ends = from.unpaired_ends;
    to.mmap_unpaired = from.mmap_unpaired;
    to.compat_madvise = from.compat_madvise;
    to.context_switches = from.context_switches;
    to.memory_pressure_ns = from.memory_pressure_ns;
    to.own = from.own;
}

impl Head {
    /// The row of an interval whose rows have the checksum `check`.
    pub(super) fn of(interval: &Interval, check: u64) -> Self {
        let delta = &interval.delta;
        let mut head = Self {
            missing: interval
                .missing
                .iter()
                .map(|m| MissingItem {
                    signal: Text::clone(&m.signal),
                    reason: m.reason.clone(),
                })
                .collect(),
            notes: interval
                .notes
                .iter()
                .map(|text| NoteItem { text: text.clone() })
                .collect(),
            spinlock: SpinlockKey(interval.spinlock.clone()),
            programs: delta.programs.iter().map(program).collect(),
            maps: delta
                .maps
                .iter()
                .map(|map| MapItem {
                    name: Text::clone(&map.name),
                    capacity: map.capacity,
                })
                .collect(),
            levels: delta.levels.iter().map(|(n, _)| name(n)).collect(),
            vmstat: delta.vmstat.keys().map(name).collect(),
            losses: u16::try_from(delta.losses.len()).unwrap_or(u16::MAX),
            has_spin_waits: delta.spin_waits.is_some(),
            check,
            ..Self::default()
        };
        bare(delta, &mut head.bare);
        head
    }

    /// The interval whose rows are `delta`.
    pub(super) fn into_interval(self, mut delta: Delta) -> Interval {
        bare(&self.bare, &mut delta);
        if self.has_spin_waits {
            delta.spin_waits.get_or_insert_default();
        }
        Interval {
            delta: Arc::new(delta),
            missing: self
                .missing
                .into_iter()
                .map(|m| Missing {
                    signal: m.signal,
                    reason: m.reason,
                })
                .collect(),
            spinlock: self.spinlock.0,
            notes: self.notes.into_iter().map(|note| note.text).collect(),
        }
    }
}

impl Record for Head {
    const TABLE: &'static str = "interval";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        let d = &mut self.bare;
        c.reading(&mut d.t_mono_ns)?;
        c.reading(&mut d.t_real_ns)?;
        c.u64(&mut d.interval_ns)?;
        c.flag(&mut d.is_first)?;
        c.list(&mut self.missing)?;
        c.list(&mut self.notes)?;
        c.key(&mut self.spinlock)?;
        c.opt_flag(&mut d.is_paravirtual)?;
        let mut refused = d.symbols_refused.take().map(Text::from);
        c.opt_text(&mut refused)?;
        d.symbols_refused = refused.map(|text| text.to_string());
        c.flag(&mut self.has_spin_waits)?;
        let lru = &mut d.lru_coverage;
        c.u64s([
            &mut d.regions_unpaired,
            &mut lru.acquired,
            &mut lru.unended,
            &mut lru.releases,
            &mut lru.tested,
            &mut lru.uncovered,
        ])?;
        c.reading(&mut lru.sample)?;
        d.mglru.iter_mut().try_for_each(|n| c.opt_small(n))?;
        c.reading(&mut d.refault_window_ns)?;
        c.u64s([
            &mut d.unpaired_ends,
            &mut d.mmap_unpaired,
            &mut d.compat_madvise,
        ])?;
        c.opt_u64(&mut d.context_switches)?;
        let mut some = d.memory_pressure_ns.map(|(some, _)| some);
        let mut full = d.memory_pressure_ns.map(|(_, full)| full);
        c.opt_u64(&mut some)?;
        c.opt_u64(&mut full)?;
        d.memory_pressure_ns = match (some, full) {
            (Some(some), Some(full)) => Some((some, full)),
            (None, None) => None,
            _ => return Err(damaged("memory pressure is half there")),
        };
        c.opt_u64(&mut d.own.cpu_ns)?;
        c.opt_reading(&mut d.own.rss_bytes)?;
        c.opt_reading(&mut d.own.peak_rss_bytes)?;
        c.opt_reading(&mut d.own.map_bytes)?;
        c.u64(&mut d.own.overruns)?;
        c.list(&mut self.programs)?;
        c.list(&mut self.maps)?;
        c.list(&mut self.levels)?;
        c.list(&mut self.vmstat)?;
        c.small(&mut self.losses)?;
        c.check(&mut self.check)
    }
}
