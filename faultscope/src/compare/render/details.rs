//! What stands behind the lock classes, and quantiles, in the document.

use super::super::aspect::{Details, Told};
use super::super::locks::Per;
use super::super::quantile::Durations;
use super::cells::{brief, change, counted};
use super::document::{Block, Document};
use crate::units::{format_ns, format_ratio};

/// Rows of one aspect that are printed.
const ROWS: usize = 8;

/// Histograms whose quantiles are printed.
const HISTOGRAMS: usize = 8;

impl Document {
    /// Latencies and waits by quantile.
    pub(super) fn quantiles(&mut self, all: &[Durations]) {
        if all.is_empty() {
            return;
        }
        self.title("durations by quantile: one value a run, known to a quarter");
        let mut rows = Vec::new();
        for durations in all.iter().take(HISTOGRAMS) {
            let (told, few): (Vec<_>, Vec<_>) = durations
                .quantiles
                .iter()
                .partition(|q| q.comparison.is_some());
            for quantile in told {
                let Some(comparison) = &quantile.comparison else {
                    continue;
                };
                let (moved, interval) = change(comparison, &format_ns);
                rows.push(vec![
                    format!("{} {}", durations.name, quantile.name),
                    format_ns(comparison.before),
                    format_ns(comparison.after),
                    moved,
                    interval,
                ]);
            }
            if !few.is_empty() {
                let needs: Vec<String> = few
                    .iter()
                    .map(|q| format!("{} needs {}", q.name, q.needed))
                    .collect();
                let mut cells = vec![format!(
                    "  {}: {} in each run, the fewest are {}",
                    durations.name,
                    needs.join(", "),
                    durations.fewest
                )];
                cells.resize(5, String::new());
                rows.push(cells);
            }
        }
        self.blocks.push(Block::Table {
            heads: vec!["duration", "before", "after", "change", "95% CI"],
            rows,
        });
        if let Some(more) = all.len().checked_sub(HISTOGRAMS).filter(|n| *n > 0) {
            self.line(format!(
                "and {}; --format json has them all",
                counted(more, "other histogram")
            ));
        }
    }

    /// Nodes, cgroups, holders and distances.
    pub(super) fn details(&mut self, details: &Details, per: Per) {
        for told in &details.told {
            self.told(told, per);
        }
        if !details.bounces.is_empty() {
            self.title("handoffs by distance, share of all");
            let rows = details.bounces.iter().map(|bounce| {
                let (moved, interval) = change(&bounce.comparison, &format_ratio);
                vec![
                    format!("{}: {}", bounce.class.name(), bounce.distance),
                    format_ratio(bounce.comparison.before),
                    format_ratio(bounce.comparison.after),
                    moved,
                    interval,
                ]
            });
            self.blocks.push(Block::Table {
                heads: vec!["lock", "before", "after", "change", "95% CI"],
                rows: rows.collect(),
            });
        }
        let is_told = !details.told.is_empty() || !details.bounces.is_empty();
        if is_told && !details.unmeasured.is_empty() {
            let titles: Vec<&str> = details.unmeasured.iter().map(|a| a.title()).collect();
            self.line(format!("not measured by every run: {}", titles.join("; ")));
        }
    }

    fn told(&mut self, told: &Told, per: Per) {
        self.title(&format!("{}, not tested", told.aspect.title()));
        let shown = &told.rows[..told.rows.len().min(ROWS)];
        let rows = shown
            .iter()
            .flat_map(|row| brief(row, per, told.aspect.counted()));
        // There is no q here, and the word of a class that one side lacks stands in its place.
        let rows = rows.map(|mut cells| {
            cells.remove(5);
            cells
        });
        self.blocks.push(Block::Table {
            heads: vec!["what", "before", "after", "change", "95% CI", ""],
            rows: rows.collect(),
        });
        let mut left = Vec::new();
        if let Some(more) = told.rows.len().checked_sub(ROWS).filter(|n| *n > 0) {
            left.push(format!("{} in --format json", counted(more, "more row")));
        }
        if told.filtered > 0 {
            left.push(format!(
                "{} left out ({} of the time)",
                counted(told.filtered, "small row"),
                format_ratio(told.filtered_share)
            ));
        }
        if !left.is_empty() {
            self.line(left.join("; "));
        }
    }
}
