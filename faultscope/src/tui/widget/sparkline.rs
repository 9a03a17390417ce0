//! The fault rate over time: minor faults stacked on major ones.

use super::pen::Pen;
use crate::render::number::format_si;
use crate::tui::state::Rates;
use crate::tui::theme::Role;
use ratatui::layout::Rect;
use std::collections::VecDeque;

/// Draws the newest intervals at the right; the first line is the legend.
pub(crate) fn draw(history: &VecDeque<Rates>, area: Rect, pen: &mut Pen<'_>) {
    let shown: Vec<Rates> = history
        .iter()
        .rev()
        .take(area.width.into())
        .copied()
        .collect();
    let max = shown
        .iter()
        .flatten()
        .map(|(minor, major)| minor + major)
        .fold(0.0, f64::max);
    let glyphs = pen.theme.glyphs;
    pen.line(
        area,
        0,
        &format!(
            "faults/s, full height {}   {} minor  {} major",
            format_si(max),
            glyphs.bars[7],
            glyphs.major
        ),
        Role::Title,
    );
    let height = area.height.saturating_sub(1);
    for (back, rates) in (0_u16..).zip(&shown) {
        let Some(x) = area.width.checked_sub(back + 1) else {
            return;
        };
        let Some((minor, major)) = rates else {
            pen.put(area, x, area.height.saturating_sub(1), "-", Role::Missing);
            continue;
        };
        let all = eighths(minor + major, max, height);
        let major_cells = eighths(*major, max, height).div_ceil(8);
        for cell in 0..height {
            let y = area.height - 1 - cell;
            let filled = all.saturating_sub(cell * 8).min(8);
            if filled == 0 {
                break;
            }
            // Any major fault gets a cell: one of them costs as much as many minor ones.
            if cell < major_cells {
                pen.put(area, x, y, &glyphs.major.to_string(), Role::GraphMajor);
            } else {
                let bar = glyphs.bars[usize::from(filled) - 1];
                pen.put(area, x, y, &bar.to_string(), Role::Graph);
            }
        }
    }
}

/// Height of a bar in eighths of a cell; any rate above 0 has at least one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 8 times the height, saturating"
)]
fn eighths(value: f64, max: f64, height: u16) -> u16 {
    if !(value > 0.0 && max > 0.0) {
        return 0;
    }
    let full = f64::from(height) * 8.0;
    ((value / max * full).round() as u16).clamp(1, height.saturating_mul(8).max(1))
}
