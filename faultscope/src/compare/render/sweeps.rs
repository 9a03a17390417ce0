//! A sweep in the document: ratios by configuration and by number, efficiency, the scalability law.

use super::super::Report;
use super::super::headline::Role;
use super::super::stats::MIN_RESAMPLED;
use super::super::sweep::{AtCount, Curves, Sweep};
use super::cells::figure;
use super::document::{Block, Document};

/// Points of efficiency that are printed.
const EFFICIENCIES: usize = 24;

/// Curves of which the law, or why there is none, is printed.
const CURVES: usize = 3;

impl Document {
    pub(super) fn sweep(&mut self, report: &Report, sweep: &Sweep) {
        self.title(&format!(
            "{} by configuration: no single verdict",
            sweep.metric
        ));
        if !report.options.is_by_threads || sweep.by_count.is_empty() {
            let rows = report.rows.iter().filter(|r| r.role == Role::Primary);
            self.blocks.push(Block::Table {
                heads: vec![
                    "cell", "before", "after", "change", "95% CI", "adj.p", "verdict",
                ],
                rows: rows
                    .map(|row| {
                        let mut cells = figure(row);
                        cells[0].clone_from(&row.cell);
                        cells
                    })
                    .collect(),
            });
        }
        if !sweep.by_count.is_empty() {
            self.title(&format!(
                "ratio by {}, after / before; above 1 is better",
                sweep.over
            ));
            let row = |at: &AtCount| {
                let interval = at.interval.map_or_else(
                    || "none".to_owned(),
                    |(low, high)| format!("[{low:.3},{high:.3}]"),
                );
                vec![
                    at.count.to_string(),
                    format!("{:.3}", at.ratio),
                    interval,
                    at.cells.to_string(),
                ]
            };
            self.blocks.push(Block::Table {
                heads: vec![sweep.over, "ratio", "95% CI", "cells"],
                rows: sweep.by_count.iter().map(row).collect(),
            });
        }
        self.curves(sweep);
        match &sweep.geomean {
            None => self.line("no geometric mean: a cell is 0 or below"),
            Some(mean) => {
                let interval = mean.interval.map_or_else(
                    || format!(", no interval (fewer than {MIN_RESAMPLED} runs of a cell)"),
                    |(low, high)| {
                        let word = if mean.is_approximate {
                            " approximate"
                        } else {
                            ""
                        };
                        format!(", 95 %{word} [{low:.4}, {high:.4}]")
                    },
                );
                let name = |at: usize| {
                    let mut rows = report.rows.iter().filter(|r| r.role == Role::Primary);
                    rows.nth(at).map_or("", |r| r.cell.as_str())
                };
                self.line(format!(
                    "geometric mean {:.4}{interval} over {} cells; min {:.2} ({}), max {:.2} ({})",
                    mean.ratio,
                    mean.cells,
                    mean.worst.1,
                    name(mean.worst.0),
                    mean.best.1,
                    name(mean.best.0)
                ));
            }
        }
        for (side, cells) in ["before", "after"].iter().zip(&sweep.one_sided) {
            if !cells.is_empty() {
                self.line(format!("only {side}: {}", cells.join("; ")));
            }
        }
    }

    /// Efficiency, and the terms of the scalability law where it may be fitted.
    fn curves(&mut self, sweep: &Sweep) {
        let mut rows = Vec::new();
        for curves in &sweep.curves {
            for (n, [before, after]) in &curves.efficiency {
                let name = if curves.name.is_empty() {
                    format!("{} {n}", curves.over)
                } else {
                    format!("{}, {} {n}", curves.name, curves.over)
                };
                rows.push(vec![
                    name,
                    format!("{before:.2}"),
                    format!("{after:.2}"),
                    format!("{:+.2}", after - before),
                ]);
            }
        }
        if rows.is_empty() {
            return;
        }
        self.title(&format!(
            "efficiency: throughput of n {} / n times that of the first",
            sweep.over
        ));
        if rows.len() > EFFICIENCIES {
            self.line(format!("{} points; --format json has them all", rows.len()));
        } else {
            self.blocks.push(Block::Table {
                heads: vec!["cell", "before", "after", "change"],
                rows,
            });
        }
        let unfitted = sweep.curves.iter().filter(|c| c.law.is_none()).count();
        let is_few = sweep.curves.len() <= CURVES;
        for curves in sweep.curves.iter().filter(|c| is_few || c.law.is_some()) {
            self.law(curves);
        }
        if !is_few && unfitted > 0 {
            self.line(format!(
                "the scalability law is not fitted to {unfitted} of {} curves; --format json says why",
                sweep.curves.len()
            ));
        }
    }

    fn law(&mut self, curves: &Curves) {
        let name = if curves.name.is_empty() {
            "law"
        } else {
            &curves.name
        };
        if let Some([before, after]) = curves.law {
            let weak = if curves.doubts.is_empty() {
                ""
            } else {
                ", weak"
            };
            self.line(format!(
                "{name}: contention s {:.3} -> {:.3} ({:+.3}), coherence k {:.4} -> {:.4} ({:+.4}){weak}",
                before.0,
                after.0,
                after.0 - before.0,
                before.1,
                after.1,
                after.1 - before.1
            ));
        } else {
            self.line(format!("{name}: the scalability law is not fitted"));
        }
        for doubt in &curves.doubts {
            self.line(format!("  {doubt}"));
        }
    }
}
