//! The measured costs for people.

use std::io::{self, Write};

use super::{Costs, FEWEST_EVENTS, ProgramCost};

impl Costs {
    /// Writes the tables and what to read into them.
    ///
    /// # Errors
    /// What the writer says, a broken pipe included.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "Cost of one event in ns, less an empty program on the same hook"
        )?;
        writeln!(
            out,
            "  {:>8}  {:>8} {:>17} {:>8}  {:>9}  program",
            "stats", "stacked", "quartiles", "empty", "events"
        )?;
        for row in &self.cost {
            write_row(out, row)?;
        }
        if let Some(reason) = &self.no_statistics {
            writeln!(
                out,
                "  no run-time statistics: {reason}; they need CAP_SYS_ADMIN"
            )?;
        }
        writeln!(
            out,
            "  \"-\" is not measured (below {FEWEST_EVENTS} events, or see the note)"
        )?;
        if let Some(ns) = self.clock_ns {
            writeln!(
                out,
                "  one read of the clock takes {ns:.0} ns here, in programs that time something included above"
            )?;
        }
        if !self.effects.is_empty() {
            writeln!(
                out,
                "\nEffect on other work: time with the set / time without [95 % interval]"
            )?;
        }
        for effect in &self.effects {
            let (ratio, null) = (effect.time_ratio, effect.null_ratio);
            writeln!(
                out,
                "  {:<8} {:<14} {:.3} [{:.3}, {:.3}]; nothing against nothing {:.3} [{:.3}, {:.3}]; {} pairs",
                effect.set,
                effect.load,
                ratio.median,
                ratio.low,
                ratio.high,
                null.median,
                null.low,
                null.high,
                effect.pairs
            )?;
        }
        if !self.budgets.is_empty() {
            writeln!(out, "\nPrograms' share of a fault")?;
        }
        for budget in &self.budgets {
            writeln!(
                out,
                "  {:<8} {:<14} {:.1} ns of {:.0} ns: {:.2} %",
                budget.set,
                budget.load,
                budget.added_ns,
                budget.bare_ns,
                100.0 * budget.ratio
            )?;
        }
        Ok(())
    }
}

fn write_row(out: &mut dyn Write, row: &ProgramCost) -> io::Result<()> {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.1}"));
    let quartiles = row
        .iqr
        .map_or_else(String::new, |[low, high]| format!("[{low:.1}, {high:.1}]"));
    write!(
        out,
        "  {:>8}  {:>8} {quartiles:>17} {:>8}  {:>9}  {}",
        number(row.ns_stats),
        number(row.ns_stacked),
        number(row.empty_ns),
        row.events,
        row.program
    )?;
    if let Some(filter) = row.filter {
        write!(out, ", {filter} filter on")?;
    }
    match &row.note {
        Some(note) => writeln!(out, " ({note})"),
        None => writeln!(out),
    }
}
