//! The table: title, heads, and as many rows as there is room for.

use super::pen::Pen;
use crate::model::Kind;
use crate::render::cell::scrub;
use crate::render::columns::GAP;
use crate::render::foot::missing_reason;
use crate::render::text::{Grid, Layout, grid};
use crate::tui::screen::visible_top;
use crate::tui::state::State;
use crate::tui::theme::{Glyphs, Role};
use ratatui::layout::Rect;

/// Lines above the first row: title and heads.
pub(crate) const HEAD_LINES: u16 = 2;

/// The rows shown in `height` lines, as places in the row order.
fn window(state: &State, height: u16) -> std::ops::Range<usize> {
    let rows = usize::from(height.saturating_sub(HEAD_LINES));
    let pane = state.pane();
    let top = visible_top(pane.top, pane.cursor, rows, state.order.len());
    top..(top + rows).min(state.order.len())
}

/// Formats the rows that are shown in `area`, and no others.
fn lay_out(state: &State, area: Rect, glyphs: &Glyphs) -> Option<Grid> {
    let model = state.shown.as_deref()?;
    let table = state.table()?;
    let layout = Layout {
        width: Some(area.width.into()),
        scroll: state.pane().scroll,
        sort: state.sort(),
        marks: glyphs.sort,
        cut: glyphs.cut,
    };
    let is_absent = |i: usize| missing_reason(model, table.fields[i]).is_some();
    let rows = &state.order[window(state, area.height)];
    Some(grid(
        table,
        rows,
        model.interval_secs(),
        &layout,
        &is_absent,
    ))
}

/// Draws the table shown.
pub(crate) fn draw(state: &State, area: Rect, pen: &mut Pen<'_>) {
    let Some(model) = state.shown.as_deref() else {
        return;
    };
    pen.line(area, 0, &title(state), Role::Title);
    let glyphs = pen.theme.glyphs;
    let Some(grid) = lay_out(state, area, &glyphs) else {
        return;
    };
    let fields = state.fields();
    let sorted = state.sort().map(|s| s.field);
    let roles: Vec<Role> = grid
        .columns
        .iter()
        .map(|c| {
            if missing_reason(model, fields[c.field]).is_some() {
                Role::Missing
            } else {
                Role::Plain
            }
        })
        .collect();
    let mut x = 0;
    for ((head, column), role) in grid.heads.iter().zip(&grid.columns).zip(&roles) {
        let role = match role {
            Role::Missing => Role::Missing,
            _ if Some(column.field) == sorted => Role::SortHead,
            _ => Role::Head,
        };
        pen.put(area, x, 1, head, role);
        x = x.saturating_add(step(column.width));
    }
    let first = window(state, area.height).start;
    for (line, cells) in grid.rows.iter().enumerate() {
        let y = u16::try_from(line)
            .unwrap_or(u16::MAX)
            .saturating_add(HEAD_LINES);
        let mut x = 0;
        for ((cell, column), role) in cells.iter().zip(&grid.columns).zip(&roles) {
            pen.put(area, x, y, cell, *role);
            x = x.saturating_add(step(column.width));
        }
        if first + line == state.pane().cursor {
            pen.tint(area, y, Role::Cursor);
        }
    }
    if grid.rows.is_empty() {
        let text = if state.word.is_empty() {
            "no rows in this interval"
        } else {
            "no row holds the word; Esc clears the filter"
        };
        pen.line(area, HEAD_LINES, text, Role::Note);
    }
}

fn step(width: usize) -> u16 {
    u16::try_from(width + GAP).unwrap_or(u16::MAX)
}

fn title(state: &State) -> String {
    let id = state.table_id();
    let all = state.table().map_or(0, |t| t.rows.len());
    let mut title = format!("{} ", id.title());
    if state.word.is_empty() {
        title.push_str(&format!("({all})"));
    } else {
        let word = scrub(&state.word);
        title.push_str(&format!("({} of {all} with \"{word}\")", state.order.len()));
    }
    if state.fields().iter().any(|f| f.kind == Kind::Counter) {
        title.push_str(" per second");
    }
    let others: Vec<&str> = state
        .view
        .tables()
        .filter(|t| *t != id)
        .map(|t| t.title())
        .collect();
    if !others.is_empty() {
        title.push_str(&format!("   o: {}", others.join(", ")));
    }
    title
}

/// The column head at column `x` of `area`, for clicks.
pub(crate) fn head_at(state: &State, area: Rect, x: u16, glyphs: &Glyphs) -> Option<usize> {
    let grid = lay_out(state, area, glyphs)?;
    let mut left = area.x;
    for c in &grid.columns {
        let right = left.saturating_add(step(c.width));
        if (left..right).contains(&x) {
            return Some(c.field);
        }
        left = right;
    }
    None
}

/// The place in the row order at line `y` of the screen, for clicks.
pub(crate) fn row_at(state: &State, area: Rect, y: u16) -> Option<usize> {
    let line = y.checked_sub(area.y.saturating_add(HEAD_LINES))?;
    let window = window(state, area.height);
    let place = window.start + usize::from(line);
    (place < window.end).then_some(place)
}
