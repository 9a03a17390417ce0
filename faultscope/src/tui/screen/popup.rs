//! Boxes over the view: help and the sort menu.

use super::visible_top;
use crate::render::cell::align;
use crate::tui::keys::help_lines;
use crate::tui::state::{Popup, State};
use crate::tui::theme::Role;
use crate::tui::widget::pen::Pen;
use ratatui::layout::Rect;

/// Cells of the key names in the help.
const KEYS_WIDTH: usize = 14;

const HELP_WIDTH: u16 = 72;
const SORT_WIDTH: u16 = 76;

/// A box of `lines` lines inside, in the middle of `area` and never beyond it.
fn place(area: Rect, width: u16, lines: usize) -> Rect {
    let width = width.min(area.width);
    let height = u16::try_from(lines + 2)
        .unwrap_or(u16::MAX)
        .min(area.height);
    Rect::new(
        area.x + (area.width - width) / 2,
        area.y + (area.height - height) / 2,
        width,
        height,
    )
}

/// Lines of the help.
pub(super) fn help_len() -> usize {
    help_lines().count()
}

/// Lines inside the popup that is open.
pub(super) fn inner_lines(state: &State, area: Rect) -> usize {
    let lines = match state.popup {
        Some(Popup::Help { .. }) => help_len(),
        _ => state.fields().len(),
    };
    usize::from(place(area, HELP_WIDTH, lines).height).saturating_sub(2)
}

pub(super) fn draw_help(top: usize, area: Rect, pen: &mut Pen<'_>) {
    let lines = help_len();
    let inside = pen.frame(
        place(area, HELP_WIDTH, lines),
        "Keys: arrows scroll, Esc closes",
    );
    let rows = usize::from(inside.height);
    let top = top.min(lines.saturating_sub(rows));
    for (y, (keys, help)) in (0..).zip(help_lines().skip(top).take(rows)) {
        let keys = align(&keys, KEYS_WIDTH, false, pen.theme.glyphs.cut);
        let x = pen.put(inside, 0, y, &keys, Role::Key);
        pen.put(inside, x.saturating_add(1), y, help, Role::Plain);
    }
}

pub(super) fn draw_sort(state: &State, cursor: usize, area: Rect, pen: &mut Pen<'_>) {
    let fields = state.fields();
    let inside = pen.frame(
        place(area, SORT_WIDTH, fields.len()),
        "Sort by: Enter chooses, Esc closes",
    );
    let rows = usize::from(inside.height);
    let top = visible_top(0, cursor, rows, fields.len());
    for (y, (i, field)) in (0..).zip(fields.iter().enumerate().skip(top).take(rows)) {
        let title = align(field.title, KEYS_WIDTH, false, pen.theme.glyphs.cut);
        pen.line(
            inside,
            y,
            &format!("{title} {}", field.description),
            Role::Plain,
        );
        if i == cursor {
            pen.tint(inside, y, Role::Cursor);
        }
    }
}
