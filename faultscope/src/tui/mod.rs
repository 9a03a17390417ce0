//! The terminal screen of `top`: a sink that takes the latest model and draws.
//!
//! Owns the terminal, the keys and what is shown; never touches collection.
//! Pausing means not taking a new model. `update.rs` decides, `screen/` draws,
//! and only `run.rs`, `input.rs` and `term.rs` do I/O.

mod action;
mod input;
mod keys;
mod replay;
mod run;
mod screen;
mod state;
mod term;
mod theme;
mod update;
mod widget;

pub use keys::keys_markdown;
pub use replay::{Frame, Play, Position, Speed};
pub use run::run;
pub use theme::ColorChoice;

use crate::model::TableId;
use std::time::Duration;

/// How the screen starts.
#[derive(Debug, Clone)]
pub struct Options {
    /// Table shown first.
    pub start: TableId,
    /// Field id the first table is sorted by; `None` for the table's own order.
    pub sort: Option<String>,
    /// Word the rows are filtered by; `None` for all rows.
    pub filter: Option<String>,
    /// When to use colour.
    pub color: ColorChoice,
    /// Draw with ASCII characters alone.
    pub ascii: bool,
    /// Take wheel and clicks; the terminal's own selection then needs Shift.
    pub mouse: bool,
}

/// What the screen asks of the collector or the replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// This table is shown from now on; attach what it needs. Sent at the
    /// start and whenever the table changes.
    Show(TableId),
    /// Collect at this interval, 0.1 to 60 s.
    Interval(Duration),
    /// Play the recording so.
    Play(Play),
}

/// Why the screen ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The user quit, or no more models come.
    Quit,
    /// This signal asked for the end.
    Signal(i32),
    /// The terminal went away.
    TerminalGone,
}

#[cfg(test)]
mod tests;
