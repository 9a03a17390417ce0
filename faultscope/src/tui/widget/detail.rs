//! The finding under the cursor in full.

use super::pen::Pen;
use crate::render::finding::{Part, lines};
use crate::tui::state::State;
use crate::tui::theme::Role;
use ratatui::layout::Rect;

/// Draws as many lines of it as there is room for.
pub(crate) fn draw(state: &State, area: Rect, pen: &mut Pen<'_>) {
    let row = state.order.get(state.pane().cursor);
    let Some(finding) = state
        .shown
        .as_deref()
        .zip(row)
        .and_then(|(model, row)| model.findings().get(*row))
    else {
        return;
    };
    for (y, (part, line)) in (0..).zip(lines(finding, area.width.into())) {
        let role = match part {
            Part::Title => Role::Title,
            Part::Text => Role::Plain,
            Part::Evidence => Role::Note,
            Part::Next => Role::Key,
        };
        pen.line(area, y, &line, role);
    }
}
