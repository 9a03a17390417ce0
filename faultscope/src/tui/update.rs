//! (state, action) → outcome. No I/O, no clock.

use super::action::{Action, Motion, Outcome};
use super::screen;
use super::state::{Popup, State};
use super::{Control, Frame, Play};
use crate::model::{Model, TableId, View};
use crate::render::columns::max_scroll;
use crate::render::order::{Sort, order};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// After the cursor moved, rows keep their order for so long, so that the row
/// one aims at stays under the cursor.
const FREEZE_NS: u64 = 3_000_000_000;

/// Steps of `+` and `-`, in ms.
const INTERVALS_MS: [u64; 9] = [100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];

/// Takes the model of a new interval, or another place of a replay.
pub(crate) fn arrive(state: &mut State, frame: impl Into<Frame>) -> Outcome {
    let Frame { model, position } = frame.into();
    let before = state.position.as_ref().map(|p| p.index);
    let now = position.as_ref().map(|p| p.index);
    state.position = position;
    match (before, now) {
        // The same interval: only the replay's state has changed.
        (Some(before), Some(now)) if now == before => return Outcome::Draw,
        (Some(before), Some(now)) if now < before => {
            // Back to what the graph has seen, or to a new beginning.
            state.forget(before - now + 1);
            state.frozen_until_ns = 0;
        }
        (Some(before), Some(now)) => state.skip(now - before - 1),
        _ => {}
    }
    state.remember(&model);
    state.latest = Some(Arc::clone(&model));
    if !state.is_paused || state.shown.is_none() {
        show(state, model);
    }
    Outcome::Draw
}

/// Takes the size of the terminal.
pub(crate) fn resize(state: &mut State, width: u16, height: u16) -> Outcome {
    state.width = width;
    state.height = height;
    settle(state);
    Outcome::Repaint
}

/// Does what the user asked for.
pub(crate) fn update(state: &mut State, action: Action) -> Outcome {
    if action != Action::Repaint {
        state.message = None;
    }
    match action {
        Action::Quit => Outcome::Quit,
        Action::QuitPrinting => Outcome::QuitPrinting,
        Action::Suspend => Outcome::Suspend,
        Action::Repaint => Outcome::Repaint,
        Action::Escape => escape(state),
        Action::Accept => accept(state),
        Action::Help => {
            state.popup = match state.popup {
                Some(Popup::Help { .. }) => None,
                _ => Some(Popup::Help { top: 0 }),
            };
            Outcome::Draw
        }
        Action::Move(motion) => motion_of(state, motion),
        Action::Select(place) => {
            state.pane_mut().cursor = place;
            freeze(state);
            settle(state);
            Outcome::Draw
        }
        Action::ScrollLeft => {
            let pane = state.pane_mut();
            pane.scroll = pane.scroll.saturating_sub(1);
            Outcome::Draw
        }
        Action::ScrollRight => {
            let most = max_scroll(state.fields());
            let pane = state.pane_mut();
            pane.scroll = (pane.scroll + 1).min(most);
            Outcome::Draw
        }
        Action::Show(view) => go(state, state.table_of(view)),
        Action::NextView => step_view(state, 1),
        Action::PreviousView => step_view(state, View::ALL.len() - 1),
        Action::NextTable => next_table(state),
        Action::Threads if state.view == View::Processes => next_table(state),
        Action::Threads => say(state, "threads are a table of view 3".to_owned()),
        Action::Pause => pause(state),
        Action::SortMenu => {
            let cursor = state.sort().map_or(0, |s| s.field);
            state.popup = Some(Popup::SortMenu { cursor });
            Outcome::Draw
        }
        Action::SortNext => step_sort(state, 1),
        Action::SortPrevious => step_sort(state, state.fields().len() - 1),
        Action::Reverse => match state.sort() {
            Some(s) => sort_by(
                state,
                Sort {
                    ascending: !s.ascending,
                    ..s
                },
            ),
            None => say(state, "choose a column to sort by first: s".to_owned()),
        },
        Action::SortField(field) => sort_field(state, field),
        Action::SortBy(ids) => {
            let fields = state.fields();
            let found = ids
                .iter()
                .find_map(|id| fields.iter().position(|f| f.id == *id));
            match found {
                Some(field) => sort_by(state, Sort::natural(fields, field)),
                None => {
                    let title = state.table_id().title();
                    say(state, format!("{title} has no such column"))
                }
            }
        }
        Action::Filter => {
            let text = state.word.clone();
            state.popup = Some(Popup::Filter { text });
            Outcome::Draw
        }
        Action::TypeInterval if state.position.is_some() => say(
            state,
            "a replay has the intervals it was recorded with; + and - change its speed".to_owned(),
        ),
        Action::TypeInterval => {
            let text = String::new();
            state.popup = Some(Popup::Interval { text });
            Outcome::Draw
        }
        Action::Play(_) | Action::TypeTime if state.position.is_none() => {
            say(state, "only a replay has other times to go to".to_owned())
        }
        Action::TypeTime => {
            let text = String::new();
            state.popup = Some(Popup::Time { text });
            Outcome::Draw
        }
        Action::Play(play) => Outcome::Send(Control::Play(play)),
        Action::Faster => step_interval(state, false),
        Action::Slower => step_interval(state, true),
        Action::Input(c) => edit(state, |text| text.push(c)),
        Action::Erase => edit(state, |text| {
            text.pop();
        }),
    }
}

fn say(state: &mut State, message: String) -> Outcome {
    state.message = Some(message);
    Outcome::Draw
}

/// Shows a model, keeping the order of rows while it is frozen.
fn show(state: &mut State, model: Arc<Model>) {
    let was = state.cursor_key();
    let is_frozen = model.t_mono_ns <= state.frozen_until_ns;
    let ranks: Option<HashMap<u64, usize>> = state.table().filter(|_| is_frozen).map(|table| {
        let keys = state.order.iter().filter_map(|i| table.rows.get(*i));
        keys.enumerate()
            .map(|(rank, row)| (row.key, rank))
            .collect()
    });
    state.shown = Some(model);
    sort_rows(state);
    if let (Some(ranks), Some(table)) = (
        ranks,
        state.shown.as_deref().map(|m| m.table(state.table_id())),
    ) {
        // New rows come after the known ones, in the order of the sort.
        let rank = |i: &usize| {
            ranks
                .get(&table.rows[*i].key)
                .copied()
                .unwrap_or(usize::MAX)
        };
        state.order.sort_by_key(rank);
        let place = state
            .order
            .iter()
            .position(|i| Some(table.rows[*i].key) == was);
        if let Some(place) = place {
            state.pane_mut().cursor = place;
        }
    }
    settle(state);
}

fn sort_rows(state: &mut State) {
    state.order = state
        .table()
        .map(|t| order(t, state.pane().sort, &state.word))
        .unwrap_or_default();
}

/// Brings cursor and top row inside the table.
fn settle(state: &mut State) {
    let rows = screen::row_count(state);
    let last = state.order.len().saturating_sub(1);
    let pane = state.pane_mut();
    pane.cursor = pane.cursor.min(last);
    pane.top = screen::visible_top(pane.top, pane.cursor, rows, last + 1);
}

fn freeze(state: &mut State) {
    if let Some(m) = &state.shown {
        state.frozen_until_ns = m.t_mono_ns.saturating_add(FREEZE_NS);
    }
}

fn motion_of(state: &mut State, motion: Motion) -> Outcome {
    let (at, last, page) = match &state.popup {
        Some(Popup::Help { top }) => (
            *top,
            screen::help_last_top(state),
            screen::popup_rows(state),
        ),
        Some(Popup::SortMenu { cursor }) => {
            (*cursor, state.fields().len() - 1, screen::popup_rows(state))
        }
        _ => (
            state.pane().cursor,
            state.order.len().saturating_sub(1),
            screen::row_count(state),
        ),
    };
    let to = moved(at, last, page.max(1), motion);
    match &mut state.popup {
        Some(Popup::Help { top }) => *top = to,
        Some(Popup::SortMenu { cursor }) => *cursor = to,
        _ => {
            state.pane_mut().cursor = to;
            freeze(state);
            settle(state);
        }
    }
    if at == to {
        Outcome::Unchanged
    } else {
        Outcome::Draw
    }
}

fn moved(at: usize, last: usize, page: usize, motion: Motion) -> usize {
    let half = (page / 2).max(1);
    let to = match motion {
        Motion::Up => at.saturating_sub(1),
        Motion::Down => at + 1,
        Motion::PageUp => at.saturating_sub(page),
        Motion::PageDown => at + page,
        Motion::HalfUp => at.saturating_sub(half),
        Motion::HalfDown => at + half,
        Motion::First => 0,
        Motion::Last => last,
        Motion::Lines(n) => at.saturating_add_signed(n.into()),
    };
    to.min(last)
}

fn escape(state: &mut State) -> Outcome {
    match state.popup.take() {
        Some(Popup::Filter { .. }) | None => {
            if !state.word.is_empty() {
                state.word.clear();
                sort_rows(state);
                settle(state);
            }
        }
        Some(_) => {}
    }
    Outcome::Draw
}

fn accept(state: &mut State) -> Outcome {
    match state.popup.take() {
        Some(Popup::SortMenu { cursor }) => sort_by(state, Sort::natural(state.fields(), cursor)),
        Some(Popup::Interval { text }) => match parse_interval(&text) {
            Some(d) => set_interval(state, d),
            None => say(
                state,
                format!(
                    "! interval {text:?} is not a number of seconds from 0.1 to 60; type it again: d"
                ),
            ),
        },
        Some(Popup::Time { text }) => {
            let position = state.position.as_ref();
            match position.and_then(|position| position.parse_time(&text)) {
                Some(ns) => Outcome::Send(Control::Play(Play::At(ns))),
                None => say(
                    state,
                    format!(
                        "! {text:?} is no time: seconds or [h:]mm:ss from the start, or hh:mm:ssZ; type it again: t"
                    ),
                ),
            }
        }
        Some(Popup::Filter { .. } | Popup::Help { .. }) | None => Outcome::Draw,
    }
}

fn edit(state: &mut State, change: impl Fn(&mut String)) -> Outcome {
    match &mut state.popup {
        Some(Popup::Filter { text }) => {
            change(text);
            state.word.clone_from(text);
            sort_rows(state);
            settle(state);
        }
        Some(Popup::Interval { text } | Popup::Time { text }) => change(text),
        Some(Popup::Help { .. } | Popup::SortMenu { .. }) | None => return Outcome::Unchanged,
    }
    Outcome::Draw
}

/// Shows another table and tells the collector, which attaches what it needs.
fn go(state: &mut State, id: TableId) -> Outcome {
    if id == state.table_id() {
        return Outcome::Unchanged;
    }
    state.set_table(id);
    state.frozen_until_ns = 0;
    sort_rows(state);
    settle(state);
    Outcome::Send(Control::Show(id))
}

fn step_view(state: &mut State, by: usize) -> Outcome {
    let next = View::ALL[(state.view as usize + by) % View::ALL.len()];
    go(state, state.table_of(next))
}

fn next_table(state: &mut State) -> Outcome {
    let id = state.table_id();
    let after = state.view.tables().skip_while(|t| *t != id).nth(1);
    match after.or_else(|| state.view.tables().next()) {
        Some(next) if next != id => go(state, next),
        _ => say(state, format!("{} has one table", state.view.title())),
    }
}

fn pause(state: &mut State) -> Outcome {
    if state.position.is_some() {
        return Outcome::Send(Control::Play(Play::Toggle));
    }
    state.is_paused = !state.is_paused;
    if let (false, Some(latest)) = (state.is_paused, state.latest.clone()) {
        show(state, latest);
    }
    Outcome::Draw
}

fn sort_by(state: &mut State, sort: Sort) -> Outcome {
    state.pane_mut().sort = Some(sort);
    state.frozen_until_ns = 0;
    sort_rows(state);
    settle(state);
    Outcome::Draw
}

/// Sorts by a field in its natural direction, or turns the sort by it.
fn sort_field(state: &mut State, field: usize) -> Outcome {
    let sort = match state.sort() {
        Some(s) if s.field == field => Sort {
            field,
            ascending: !s.ascending,
        },
        _ => Sort::natural(state.fields(), field),
    };
    sort_by(state, sort)
}

fn step_sort(state: &mut State, by: usize) -> Outcome {
    let n = state.fields().len();
    let at = state.sort().map_or(0, |s| s.field);
    sort_by(state, Sort::natural(state.fields(), (at + by) % n))
}

/// Seconds from 0.1 to 60, with a comma or a point.
pub(crate) fn parse_interval(text: &str) -> Option<Duration> {
    let secs: f64 = text.trim().replace(',', ".").parse().ok()?;
    (0.1..=60.0)
        .contains(&secs)
        .then(|| Duration::from_secs_f64(secs))
}

fn step_interval(state: &mut State, longer: bool) -> Outcome {
    if state.position.is_some() {
        let play = if longer { Play::Slower } else { Play::Faster };
        return Outcome::Send(Control::Play(play));
    }
    let shown = state
        .latest
        .as_deref()
        .map(|m| Duration::from_nanos(m.interval_ns));
    let now = state.interval.or(shown).unwrap_or(Duration::from_secs(1));
    // A tick is never exact: a twentieth off still is the same step.
    let (least, most) = (now.mul_f64(0.95), now.mul_f64(1.05));
    let steps = INTERVALS_MS.map(Duration::from_millis);
    let next = if longer {
        steps.iter().find(|s| **s > most)
    } else {
        steps.iter().rev().find(|s| **s < least)
    };
    match next {
        Some(d) => set_interval(state, *d),
        None => say(state, "the interval is 0.1 to 60 seconds".to_owned()),
    }
}

fn set_interval(state: &mut State, d: Duration) -> Outcome {
    state.interval = Some(d);
    state.message = Some(format!("interval {} s", d.as_secs_f64()));
    Outcome::Send(Control::Interval(d))
}
