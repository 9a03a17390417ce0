//! What a key, a click or a model does, and what the loop has to do about it.

use super::{Control, Play};
use crate::model::View;

/// A step of the cursor, or of the text in a popup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Motion {
    Up,
    Down,
    PageUp,
    PageDown,
    HalfUp,
    HalfDown,
    First,
    Last,
    /// So many rows down, or up if negative.
    Lines(i16),
}

/// Fields behind one sort letter, the preferred first.
pub(crate) type SortLetter = &'static [&'static str];

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Quit,
    QuitPrinting,
    Escape,
    Help,
    Move(Motion),
    ScrollLeft,
    ScrollRight,
    Show(View),
    NextView,
    PreviousView,
    NextTable,
    Threads,
    Pause,
    SortMenu,
    SortPrevious,
    SortNext,
    Reverse,
    SortBy(SortLetter),
    /// Sort by this field, or turn the order if it is the sort already (a
    /// click on a head).
    SortField(usize),
    /// Put the cursor on this place of the row order (a click on a row).
    Select(usize),
    Filter,
    Faster,
    Slower,
    TypeInterval,
    /// Ask this of a replay.
    Play(Play),
    TypeTime,
    Accept,
    Erase,
    Input(char),
    Repaint,
    Suspend,
}

/// What the loop has to do after a change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing that is seen has changed.
    Unchanged,
    /// Draw.
    Draw,
    /// Clear the terminal and draw everything.
    Repaint,
    /// Tell the collector, and draw.
    Send(Control),
    /// Give the terminal back and stop, as after Ctrl-Z.
    Suspend,
    /// End.
    Quit,
    /// End and leave the last screen on the terminal.
    QuitPrinting,
}
