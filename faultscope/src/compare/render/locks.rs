//! Lock classes in the document.

use super::super::locks::Locks;
use super::super::stats::Presence;
use super::cells::{counted, lock};
use super::document::{Block, DIFFERENCES, Document};
use crate::units::format_ratio;

/// Lock classes that are printed.
const CLASSES: usize = 20;

impl Document {
    pub(super) fn locks(&mut self, locks: &Locks) {
        let sites = if locks.has_sites { " by call site" } else { "" };
        self.title(&format!(
            "lock classes{sites}: {} tested, {} filtered ({} of wait), BH q=0.10",
            locks.tested,
            locks.filtered,
            format_ratio(locks.filtered_share)
        ));
        if let Some(sentence) = &locks.too_small {
            self.line(sentence.clone());
        }
        let shown = &locks.rows[..locks.rows.len().min(CLASSES)];
        let rows: Vec<Vec<String>> = shown.iter().flat_map(|row| lock(row, locks.per)).collect();
        if rows.is_empty() {
            self.line("no lock was waited for");
        } else {
            self.blocks.push(Block::Table {
                heads: vec![
                    "class", "before", "after", "change", "95% CI", "q", "verdict",
                ],
                rows,
            });
            let (divided, counted): (Vec<_>, Vec<_>) =
                shown.iter().partition(|r| r.presence == Presence::Both);
            if !divided.is_empty() {
                self.line(format!(
                    "first line: wait per {}; waits{}: how many of them; p99: tail of a run; of fault time: wait over the time \
                     inside handle_mm_fault",
                    locks.per.id(),
                    locks.per.waits_per()
                ));
            }
            if !counted.is_empty() {
                self.line("waits a run: their mean number with its exact 95 % Poisson interval, of what is too rare for a percentage");
            }
        }
        if let Some(more) = locks.rows.len().checked_sub(CLASSES).filter(|n| *n > 0) {
            self.line(format!(
                "and {} with less wait; --format json has them all",
                counted(more, "class")
            ));
        }
        for (side, names) in ["before", "after"].iter().zip(&locks.unmatched) {
            if !names.is_empty() {
                let shown = names.len().min(DIFFERENCES);
                let more = if names.len() > shown {
                    format!(" and {} more", names.len() - shown)
                } else {
                    String::new()
                };
                self.line(format!(
                    "waited for only {side}: {}{more}",
                    names[..shown].join(", ")
                ));
            }
        }
    }
}
