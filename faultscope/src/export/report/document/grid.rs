//! Tables of the model as text: totals, the columns and rows that say something.

use super::{Block, Grid};
use crate::export::report::Report;
use crate::model::{Field, Kind, Row, Table, TableId, Unit, Value, field};
use crate::render::{
    cell::{format_total, is_right_aligned},
    foot::{missing_lines, omitted_line, spinlock_line},
};

/// Rows of a sorted table unless the user chose.
const ROWS: usize = 10;
/// Rows of a table with an order of its own unless the user chose: a part of it
/// would mislead.
const ROWS_IN_ORDER: usize = 64;

/// A first counter per million faults, beside it.
static PER_MFAULT: Field = Field {
    id: "per_mfault",
    title: "/MFAULT",
    unit: Unit::Number,
    kind: Kind::Gauge,
    priority: 1,
    signal: "",
    description: "The counter to the left per million serviced faults.",
};

/// Tables whose first counter also stands per million faults.
const PER_FAULT: &[(TableId, &Field)] = &[
    (TableId::LockWaiters, &field::WAITS),
    (TableId::LockHolders, &field::ACQUISITIONS),
    (TableId::LockBlocked, &field::BLOCKED_WAITS),
    (TableId::LockSites, &field::WAITS),
    (TableId::Locks, &field::WAITS),
    (TableId::Madvise, &field::CALLS),
];

/// A table with the columns that say something; totals, not rates.
pub(super) fn grid(report: &Report, id: TableId) -> Block {
    let model = &report.model;
    let table = model.table(id);
    let usual = if id.is_sorted() { ROWS } else { ROWS_IN_ORDER };
    let is_whole = table.rows.iter().filter(|row| is_shown(id, table, row));
    let kept: Vec<&Row> = is_whole.collect();
    let blank = table.rows.len() - kept.len();
    let shown = report.top.unwrap_or(usual).min(kept.len());
    let columns: Vec<usize> = (0..table.fields.len())
        .filter(|i| says_something(table, *i))
        .collect();
    let faults = model.delta().total().faults();
    let per_fault = PER_FAULT.iter().find(|(of, _)| *of == id);
    let mut fields = Vec::new();
    let mut rows = vec![Vec::new(); shown];
    for column in columns {
        let field = table.fields[column];
        fields.push(field);
        let extra = per_fault.is_some_and(|(_, of)| of.id == field.id);
        if extra {
            fields.push(&PER_MFAULT);
        }
        for (row, cells) in kept.iter().zip(&mut rows) {
            let value = &row.cells[column];
            cells.push(format_total(field, value));
            if extra {
                let rate = value.number().map(|n| {
                    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
                    let faults = faults as f64;
                    n / faults * 1e6
                });
                cells.push(format_total(&PER_MFAULT, &Value::real(rate)));
            }
        }
    }
    let omitted = table.omitted + (kept.len() - shown) as u64;
    let blank = (blank > 0).then(|| format!("{blank} rows without an event left out"));
    let foot = omitted_line(omitted)
        .into_iter()
        .chain(blank)
        .chain(missing_lines(model, table.fields, None))
        .chain(spinlock_line(model, id))
        .collect();
    Block::Grid(Grid {
        id: id.id().to_owned(),
        title: id.title().to_owned(),
        description: id.description().to_owned(),
        fields,
        rows,
        foot,
    })
}

/// Rows without an event are left out where they would only be read past.
fn is_shown(id: TableId, table: &Table, row: &Row) -> bool {
    let is_list = matches!(id, TableId::Budget | TableId::FaultKinds | TableId::Losses);
    !is_list
        || table.fields.iter().zip(&row.cells).any(|(of, cell)| {
            // Totals too: the entries of a map, what was lost before the range.
            let counts = of.kind == Kind::Counter || of.id == field::LOST_TOTAL.id;
            counts && cell.number().is_some_and(|n| n != 0.0)
        })
}

/// Names always do; numbers do unless all are absent or zero.
fn says_something(table: &Table, column: usize) -> bool {
    let field = table.fields[column];
    let mut cells = table.rows.iter().map(|row| &row.cells[column]);
    cells.any(|cell| match cell {
        Value::Absent => false,
        Value::Text(text) => !text.is_empty(),
        // The first figure of a table is shown even if it is zero.
        number => {
            field.kind == Kind::Key
                || field.priority == 0
                || !is_right_aligned(field)
                || number.number().is_some_and(|n| n != 0.0)
        }
    })
}
