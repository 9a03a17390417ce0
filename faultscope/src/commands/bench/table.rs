//! A table whose rows are printed as they come.

use std::io::{self, Write};

use super::columns::THREADS;
use super::point::Point;
use crate::render::cell::ABSENT;

/// A column of a bench's table.
pub(super) struct Column {
    /// Head.
    pub(super) title: &'static str,
    /// Cells, at least as many as the title has.
    pub(super) width: usize,
    /// Signal it is made of, whose absence is explained below the table.
    pub(super) signal: Option<&'static str>,
    /// The cell of a point among all points of the sweep so far; `None` shows a dash.
    pub(super) cell: fn(&Point, &[Point]) -> Option<String>,
}

/// A table at the end of a sweep.
pub(super) struct Section {
    /// Line above it.
    pub(super) title: &'static str,
    /// Columns after the point's own name.
    pub(super) columns: &'static [Column],
}

/// Cells of the name of a series.
const SERIES: usize = 22;

/// The head of a table.
pub(super) fn head(columns: &[Column]) -> String {
    let mut line = format!("{:SERIES$}", "Case");
    for column in columns {
        line.push_str(&format!(" {:>1$}", column.title, column.width));
    }
    line
}

/// The row of a point.
pub(super) fn row(columns: &[Column], point: &Point, all: &[Point]) -> String {
    let mut line = format!("{:SERIES$}", point.job.series());
    for column in columns {
        let cell = (column.cell)(point, all).unwrap_or_else(|| ABSENT.to_owned());
        line.push_str(&format!(" {cell:>0$}", column.width));
    }
    line
}

/// Whether some point has a value beside the number of its members.
pub(super) fn has_values(section: &Section, points: &[Point]) -> bool {
    let mut own = section.columns.iter().filter(|c| c.title != THREADS.title);
    own.any(|column| points.iter().any(|p| (column.cell)(p, points).is_some()))
}

/// Writes a table of all points.
pub(super) fn section(section: &Section, points: &[Point], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{}", section.title)?;
    writeln!(out, "{}", head(section.columns))?;
    for point in points {
        writeln!(out, "{}", row(section.columns, point, points))?;
    }
    Ok(())
}

/// Why columns have no values in some point: a sentence for each signal.
pub(super) fn reasons(sections: &[&[Column]], points: &[Point]) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let mut signals: Vec<&str> = Vec::new();
    for column in sections.iter().copied().flatten() {
        let Some(signal) = column.signal.filter(|signal| !signals.contains(signal)) else {
            continue;
        };
        signals.push(signal);
        let titles: Vec<&str> = sections
            .iter()
            .copied()
            .flatten()
            .filter(|c| c.signal == Some(signal))
            .map(|c| c.title)
            .collect();
        for point in points {
            let Some(reason) = point.seen.as_ref().and_then(|s| s.why_not(signal)) else {
                continue;
            };
            let sentence = format!("{}: not measured: {reason}", titles.join(", "));
            if !said.contains(&sentence) {
                said.push(sentence);
            }
        }
    }
    said
}
