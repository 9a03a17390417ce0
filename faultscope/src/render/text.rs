//! Aligned text tables.

use super::cell::{ABSENT, align, format_cell, is_right_aligned};
use super::columns::{Column, GAP, fit, measure};
use super::number::{format_bytes, format_ns};
use super::order::Sort;
use crate::model::{Field, Row, Table, Value, field};

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
        .map(|row| format_row(table.fields, row, interval_secs, &absent))
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

/// The cells of a row; those marked absent are dashes, whatever they hold.
fn format_row(fields: &[&Field], row: &Row, interval_secs: f64, absent: &[bool]) -> Vec<String> {
    let mut texts: Vec<String> = fields
        .iter()
        .zip(&row.cells)
        .zip(absent)
        .map(|((f, v), absent)| {
            if *absent {
                ABSENT.to_owned()
            } else {
                format_cell(f, v, interval_secs)
            }
        })
        .collect();
    // The Overview names the unit of its figure in a cell of its own; people
    // read 3.20ms /s where machines get 3200000 ns/s.
    let at = |field: &Field| fields.iter().position(|f| *f == field);
    if let (Some(value), Some(unit)) = (at(&field::VALUE), at(&field::UNIT_NAME))
        && let Some(x) = row.cells.get(value).and_then(Value::number)
    {
        let scaled = match texts[unit].as_str() {
            "ns/s" => Some(format_ns(x)),
            "bytes/s" => Some(format_bytes(x)),
            _ => None,
        };
        if let Some(scaled) = scaled {
            texts[value] = scaled;
            texts[unit] = "/s".to_owned();
        }
    }
    texts
}

impl Grid {
    /// Head and rows as lines without blanks at their ends.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        std::iter::once(&self.heads)
            .chain(&self.rows)
            .map(|cells| cells.join(&" ".repeat(GAP)).trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_of_the_overview_is_scaled_by_its_unit() {
        let shown = |value: Value, unit: &str| {
            let cells = field::OVERVIEW
                .iter()
                .map(|f| match f.id {
                    "value" => value.clone(),
                    "unit" => Value::Text(unit.to_owned()),
                    id => Value::Text(id.to_owned()),
                })
                .collect();
            let row = Row { key: 1, cells };
            let texts = format_row(field::OVERVIEW, &row, 1.0, &[false; 5]);
            format!("{} {}", texts[2], texts[3])
        };
        assert_eq!(shown(Value::Real(3_200_000.0), "ns/s"), "3.20ms /s");
        assert_eq!(shown(Value::Real(4096.0), "bytes/s"), "4.00KiB /s");
        assert_eq!(shown(Value::Real(1234.0), "/s"), "1.23k /s");
        assert_eq!(shown(Value::Absent, "ns/s"), "- ns/s");
    }
}
