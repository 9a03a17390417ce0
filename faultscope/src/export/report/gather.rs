//! Makes a report from the intervals of a recording, one by one.

use super::{BINS, Range, Report};
use crate::model::{Context, Missing, Model, Spinlock, TableId, scale::AllSeries};
use crate::sample::{Interval, merge::Merger, run::Run, series::Series};
use crate::workload::Metric;
use std::sync::Arc;

/// Takes intervals in order of time; holds sums, never the intervals.
#[derive(Debug)]
pub struct Gather {
    merger: Merger,
    series: Series,
    intervals: u64,
    /// Signals that were missing, the latest reason, and in how many intervals.
    missing: Vec<(Missing, u64)>,
    spinlock: Spinlock,
    notes: Vec<String>,
    /// End of the latest interval, monotonic ns.
    end_ns: u64,
}

/// What a report holds beside the intervals.
#[derive(Debug, Default)]
pub struct Beside {
    /// Name of the file, as the user wrote it.
    pub file: String,
    /// The run.
    pub run: Run,
    /// What the workload said of itself.
    pub metrics: Vec<Metric>,
    /// Why to read on with care, beside what run and intervals tell: a sentence each.
    pub warnings: Vec<String>,
    /// Whether intervals of the run were left out because the user asked for it.
    pub is_part: bool,
    /// Tables asked for; empty for all that a report has.
    pub tables: Vec<TableId>,
    /// Rows of a table at most.
    pub top: Option<usize>,
}

impl Default for Gather {
    fn default() -> Self {
        Self {
            merger: Merger::default(),
            series: Series::new(BINS),
            intervals: 0,
            missing: Vec::new(),
            spinlock: Spinlock::default(),
            notes: Vec::new(),
            end_ns: 0,
        }
    }
}

impl Gather {
    /// Adds the interval that follows those added.
    pub fn add(&mut self, interval: &Interval) {
        self.merger.add(&interval.delta);
        self.series.add(&interval.delta);
        self.intervals += 1;
        self.end_ns = interval.delta.t_mono_ns;
        for missing in interval.missing.iter() {
            let known = self
                .missing
                .iter_mut()
                .find(|(m, _)| m.signal == missing.signal);
            match known {
                Some((m, n)) => {
                    *n += 1;
                    if m.reason != missing.reason {
                        m.reason.clone_from(&missing.reason);
                    }
                }
                None => self.missing.push((missing.clone(), 1)),
            }
        }
        if self.spinlock != interval.spinlock {
            self.spinlock = interval.spinlock.clone();
        }
        for note in &interval.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
    }

    /// The report.
    #[must_use]
    pub fn finish(self, beside: Beside) -> Report {
        let run = beside.run;
        let mut notes = self.notes;
        // A signal that some intervals have is there; what they lack is said.
        let (always, sometimes): (Vec<_>, Vec<_>) = self
            .missing
            .into_iter()
            .partition(|(_, n)| *n == self.intervals);
        notes.extend(sometimes.iter().map(|(m, n)| {
            format!(
                "{} was not measured in {n} of {} intervals: {}",
                m.signal, self.intervals, m.reason
            )
        }));
        let interval = Interval {
            missing: always.into_iter().map(|(m, _)| m).collect(),
            spinlock: self.spinlock,
            notes,
            ..Interval::default()
        };
        let context = Context::of(&run, &interval);
        let merged = self.merger.finish();
        let scaling = AllSeries::new([(&run, beside.metrics.as_slice())]);
        let model = Model::new(Arc::new(merged.delta.clone()), Arc::new(context));
        let range = Range {
            from_ns: merged.start_mono_ns.saturating_sub(run.start_mono_ns),
            to_ns: self.end_ns.saturating_sub(run.start_mono_ns),
            is_part: beside.is_part,
        };
        Report {
            file: beside.file,
            run,
            metrics: beside.metrics,
            warnings: beside.warnings,
            merged,
            model,
            series: self.series,
            scaling,
            range,
            tables: beside.tables,
            top: beside.top,
        }
    }
}
