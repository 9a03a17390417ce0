//! Batch text: the two header lines, the table, and what is lost or missing.

use super::Selection;
use crate::model::Model;
use crate::render::cell::scrub;
use crate::render::foot::{loss_line, missing_lines, missing_reason, omitted_line, spinlock_line};
use crate::render::header::{filter_line, header_lines, join};
use crate::render::text::{Layout, grid};
use std::io::{self, Write};

pub(super) fn write(
    out: &mut dyn Write,
    model: &Model,
    selection: &Selection,
    is_first: bool,
) -> io::Result<()> {
    if !is_first {
        writeln!(out)?;
    }
    for line in header_lines(model, None) {
        writeln!(out, "{}", join(&line))?;
    }
    if let Some(line) = filter_line(model) {
        writeln!(out, "{line}")?;
    }
    let chosen = selection.choose(model);
    let layout = Layout {
        sort: selection.sort,
        ..Layout::BATCH
    };
    let is_absent = |i: usize| missing_reason(model, chosen.table.fields[i]).is_some();
    let grid = grid(
        chosen.table,
        &chosen.rows,
        model.interval_secs(),
        &layout,
        &is_absent,
    );
    writeln!(out, "{}, counters per second", selection.table.title())?;
    for line in grid.lines() {
        writeln!(out, "{line}")?;
    }
    let first = selection
        .sort
        .and_then(|s| chosen.table.fields.get(s.field).copied());
    let foot = omitted_line(chosen.omitted)
        .into_iter()
        .chain(loss_line(model))
        .chain(missing_lines(model, chosen.table.fields, first))
        .chain(spinlock_line(model, selection.table).filter(|_| is_first))
        .chain(
            model
                .notes
                .iter()
                .filter(|n| is_first || !model.is_standing(n))
                .map(|n| scrub(n).into_owned()),
        );
    for line in foot {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
