//! Tests over the whole screen.

mod grid;
mod pty;
mod replay;
mod screens;
mod updates;

use super::action::Outcome;
use super::state::State;
use super::theme::{ColorChoice, Environment, Theme};
use super::update::{arrive, resize};
use crate::model::{Model, TableId};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::sync::Arc;

fn theme() -> Theme {
    Theme::new(ColorChoice::Always, false, Environment::default())
}

fn no_color() -> Theme {
    let env = Environment {
        no_color: true,
        dumb: false,
    };
    Theme::new(ColorChoice::Auto, false, env)
}

/// A screen of this size that shows a table of a model.
fn showing(table: TableId, model: Option<Model>, width: u16, height: u16) -> State {
    let mut state = State::new(table);
    assert_eq!(resize(&mut state, width, height), Outcome::Repaint);
    if let Some(m) = model {
        assert_eq!(arrive(&mut state, Arc::new(m)), Outcome::Draw);
    }
    state
}

fn drawn(state: &State, theme: &Theme) -> Buffer {
    let area = Rect::new(0, 0, state.width, state.height);
    let mut buffer = Buffer::empty(area);
    super::screen::draw(state, theme, area, &mut buffer);
    buffer
}

fn text(buffer: &Buffer) -> String {
    super::run::buffer_text(buffer)
}
