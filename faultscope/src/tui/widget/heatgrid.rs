//! One digit per CPU, grouped by NUMA node and last-level cache.

use super::pen::Pen;
use crate::model::{Field, Kind, Table, Unit, Value, field};
use crate::render::cell::format_cell;
use crate::tui::theme::Role;
use ratatui::layout::Rect;

/// A line of the grid: what its CPUs share, and their rows in the table.
struct GridLine {
    label: String,
    rows: Vec<usize>,
}

/// The figure the grid shows: the sort column if it is one, else faults.
pub(crate) fn shown_field(sort: Option<&'static Field>) -> &'static Field {
    sort.filter(|f| f.kind != Kind::Key && f.unit != Unit::None)
        .unwrap_or(&field::FAULTS_N)
}

/// CPUs in the order of node, LLC and number, cut into lines of `width`.
fn lines(table: &Table, width: u16) -> Vec<GridLine> {
    let at = |id| table.position(id);
    let (cpu, node, llc) = (at("cpu"), at("node"), at("llc"));
    let number = |row: usize, column: Option<usize>| match column
        .and_then(|c| table.rows[row].cells.get(c))
    {
        Some(Value::Count(n)) => Some(*n),
        _ => None,
    };
    let mut cpus: Vec<usize> = (0..table.rows.len()).collect();
    cpus.sort_by_key(|r| (number(*r, node), number(*r, llc), number(*r, cpu)));
    let name = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let mut out = Vec::new();
    for group in cpus
        .chunk_by(|a, b| number(*a, node) == number(*b, node) && number(*a, llc) == number(*b, llc))
    {
        let Some(first) = group.first() else { continue };
        let label = format!(
            "node {} LLC {:<4}",
            name(number(*first, node)),
            name(number(*first, llc))
        );
        let room = usize::from(width).saturating_sub(label.len() + 1).max(1);
        for (i, part) in group.chunks(room).enumerate() {
            out.push(GridLine {
                label: if i == 0 { label.clone() } else { String::new() },
                rows: part.to_vec(),
            });
        }
    }
    out
}

/// Lines the grid would like: a legend and one or more per LLC.
pub(crate) fn wanted_lines(table: &Table, width: u16) -> u16 {
    u16::try_from(lines(table, width).len() + 1).unwrap_or(u16::MAX)
}

/// Draws the grid; the CPU in row `selected` of the table is marked and kept
/// in sight.
pub(crate) fn draw(
    table: &Table,
    field: &'static Field,
    interval_secs: f64,
    selected: Option<usize>,
    area: Rect,
    pen: &mut Pen<'_>,
) {
    let Some(column) = table.position(field.id) else {
        return;
    };
    let value = |row: usize| table.rows[row].cells.get(column).unwrap_or(&Value::Absent);
    let top = (0..table.rows.len())
        .filter(|r| value(*r).number().is_some_and(|x| x > 0.0))
        .max_by(|a, b| {
            let number = |r: &usize| value(*r).number().unwrap_or(0.0);
            number(a).total_cmp(&number(b))
        });
    let max = top.and_then(|r| value(r).number()).unwrap_or(0.0);
    // Times and bytes carry their "/s" already.
    let is_bare = field.kind == Kind::Counter && matches!(field.unit, Unit::Events | Unit::Pages);
    let unit = if is_bare { "/s" } else { "" };
    let greatest = top.map_or_else(
        || "nothing yet".to_owned(),
        |r| format!("9 = {}{unit}", format_cell(field, value(r), interval_secs)),
    );
    pen.line(
        area,
        0,
        &format!(
            "{} by CPU   . = 0, 1-9 ninths, {greatest}, - not measured",
            field.title
        ),
        Role::Title,
    );
    let lines = lines(table, area.width);
    let room = usize::from(area.height.saturating_sub(1));
    let chosen = lines
        .iter()
        .position(|l| l.rows.iter().any(|r| Some(*r) == selected))
        .unwrap_or(0);
    let first = crate::tui::screen::visible_top(0, chosen, room, lines.len());
    for (y, line) in (1_u16..).zip(lines.iter().skip(first).take(room)) {
        pen.put(area, 0, y, &line.label, Role::Note);
        // Continued lines stand under the cells of the first.
        let mut x = LABEL_WIDTH;
        for row in &line.rows {
            let level = level(value(*row), max);
            let (text, role) = match level {
                None => ("-".to_owned(), Role::Missing),
                Some(0) => (".".to_owned(), Role::Heat(0)),
                Some(n) => (n.to_string(), Role::Heat(n)),
            };
            let role = if Some(*row) == selected {
                Role::Cursor
            } else {
                role
            };
            x = pen.put(area, x, y, &text, role);
        }
    }
    let hidden = lines.len().saturating_sub(first + room);
    if hidden > 0 && room > 0 {
        let text = format!(" +{hidden} lines");
        let at = area
            .width
            .saturating_sub(u16::try_from(text.len()).unwrap_or(0));
        pen.put(area, at, area.height - 1, &text, Role::Note);
    }
}

/// `node 0 LLC 0` with room for four digits of LLC, and a blank.
const LABEL_WIDTH: u16 = 16;

/// Ninths of the greatest value, rounded up: only a true zero is 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 1..=9"
)]
fn level(value: &Value, max: f64) -> Option<u8> {
    let x = value.number().filter(|x| x.is_finite())?;
    if x <= 0.0 || max <= 0.0 {
        return Some(0);
    }
    Some((x / max * 9.0).ceil().clamp(1.0, 9.0) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zero_is_cold_and_only_absence_is_a_dash() {
        assert_eq!(level(&Value::Count(0), 90.0), Some(0));
        assert_eq!(level(&Value::Count(1), 90.0), Some(1));
        assert_eq!(level(&Value::Count(90), 90.0), Some(9));
        assert_eq!(level(&Value::Absent, 90.0), None);
        assert_eq!(level(&Value::Real(f64::NAN), 90.0), None);
    }

    #[test]
    fn every_cpu_stands_in_one_line() {
        for width in [1, 17, 40, 80, 300] {
            let model = crate::render::fixture::sized(512);
            let table = model.table(crate::model::TableId::Cpus);
            let lines = lines(table, width);
            let mut rows: Vec<usize> = lines.iter().flat_map(|l| l.rows.clone()).collect();
            rows.sort_unstable();
            assert_eq!(rows, (0..512).collect::<Vec<_>>(), "at width {width}");
        }
    }
}
