//! Aligned text tables.

use super::cell::{align, format_cell, is_right_aligned};
use super::columns::{Column, GAP, fit, measure};
use super::order::Sort;
use crate::model::Table;

/// A table cut to the rows and columns that are shown, as text.
#[derive(Debug)]
pub struct Grid {
    /// Columns from left to right.
    pub columns: Vec<Column>,
    /// One padded text per column.
    pub heads: Vec<String>,
    /// Rows of one padded text per column.
    pub rows: Vec<Vec<String>>,
}

/// How a grid is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Cells there are; `None` shows every column at its natural width.
    pub width: Option<usize>,
    /// Columns scrolled away to the left.
    pub scroll: usize,
    /// Column that bears the sort mark.
    pub sort: Option<Sort>,
    /// Marks for ascending and descending.
    pub marks: [char; 2],
    /// Mark where text is cut off.
    pub cut: char,
}

impl Layout {
    /// Every column in full, ASCII marks: the layout of batch text.
    pub const BATCH: Self = Self {
        width: None,
        scroll: 0,
        sort: None,
        marks: ['^', 'v'],
        cut: '~',
    };
}

/// Formats the rows at `indices`, and only those.
///
/// Screen and batch text both go through here. `is_absent` tells columns whose
/// signal this host lacks: they show dashes, whatever the cells say.
#[must_use]
pub fn grid(
    table: &Table,
    indices: &[usize],
    interval_secs: f64,
    layout: &Layout,
    is_absent: &dyn Fn(usize) -> bool,
) -> Grid {
    let absent: Vec<bool> = (0..table.fields.len()).map(is_absent).collect();
    let cells: Vec<Vec<String>> = indices
        .iter()
        .filter_map(|i| table.rows.get(*i))
        .map(|row| {
            table
                .fields
                .iter()
                .zip(&row.cells)
                .zip(&absent)
                .map(|((f, v), absent)| {
                    if *absent {
                        super::cell::ABSENT.to_owned()
                    } else {
                        format_cell(f, v, interval_secs)
                    }
                })
                .collect()
        })
        .collect();
    let sort = layout.sort.map(|s| s.field);
    let natural = measure(table.fields, &cells, sort);
    let available = layout.width.unwrap_or(usize::MAX);
    let columns = fit(table.fields, &natural, sort, layout.scroll, available);
    let heads = columns
        .iter()
        .map(|c| {
            let field = table.fields[c.field];
            let mark = layout.sort.filter(|s| s.field == c.field).map(|s| {
                let [up, down] = layout.marks;
                if s.ascending { up } else { down }
            });
            let title =
                mark.map_or_else(|| field.title.to_owned(), |m| format!("{}{m}", field.title));
            align(&title, c.width, is_right_aligned(field), layout.cut)
        })
        .collect();
    let rows = cells
        .iter()
        .map(|row| {
            columns
                .iter()
                .map(|c| {
                    let right = is_right_aligned(table.fields[c.field]);
                    let text = row.get(c.field).map_or("", String::as_str);
                    align(text, c.width, right, layout.cut)
                })
                .collect()
        })
        .collect();
    Grid {
        columns,
        heads,
        rows,
    }
}

impl Grid {
    /// Head and rows as lines without blanks at their ends.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        std::iter::once(&self.heads)
            .chain(&self.rows)
            .map(|cells| cells.join(&" ".repeat(GAP)).trim_end().to_owned())
    }
}
