//! The whole screen: where things go, and drawing them. Drawing changes no state.

mod popup;

use super::action::{Action, Motion};
use super::keys::hints;
use super::state::{Popup, State};
use super::theme::{Role, Theme};
use super::widget::pen::Pen;
use super::widget::{detail, heatgrid, sparkline, table};
use crate::model::{Model, TableId, View};
use crate::render::cell::{scrub, width};
use crate::render::foot::{loss_line, missing_lines, omitted_line, spinlock_line};
use crate::render::header::{Segment, Tone, filter_line, header_lines};
use crate::render::time::format_behind;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Smallest screen with a header and a row.
const MIN_WIDTH: u16 = 20;
const MIN_HEIGHT: u16 = 5;

/// Rows a table keeps before lines under it are left out.
const FEW_ROWS: u16 = 3;

/// Lines of the fault-rate graph, its legend included.
const GRAPH_LINES: u16 = 5;

/// Lines for the finding under the cursor: with them 80 columns hold the longest.
const DETAIL_LINES: u16 = 9;

/// Rows a turn of the mouse wheel moves.
const WHEEL_ROWS: i16 = 3;

/// Where everything goes.
#[derive(Debug)]
struct Plan {
    header: Rect,
    filter: Rect,
    tabs: Rect,
    /// Graph of the Overview or grid of the CPUs; empty elsewhere.
    picture: Rect,
    table: Rect,
    /// The finding under the cursor; empty for other tables.
    detail: Rect,
    foot: Rect,
    hint: Rect,
}

/// Takes lines off the top of an area.
fn take(rest: &mut Rect, lines: u16) -> Rect {
    let lines = lines.min(rest.height);
    let taken = Rect {
        height: lines,
        ..*rest
    };
    rest.y += lines;
    rest.height -= lines;
    taken
}

fn plan(state: &State, area: Rect, foot_lines: usize) -> Plan {
    let mut rest = area;
    let header = take(&mut rest, 2);
    let roomy = area.height >= 8;
    let model = state.shown.as_deref();
    let has_filter = roomy && model.is_some_and(|m| !m.header.filter.is_empty());
    let filter = take(&mut rest, u16::from(has_filter));
    let tabs = take(&mut rest, u16::from(roomy));
    let hint_lines = u16::from(roomy || message_or_entry(state).is_some());
    let body = rest.height.saturating_sub(hint_lines);
    let spare = body.saturating_sub(table::HEAD_LINES + FEW_ROWS);
    let foot_lines = u16::try_from(foot_lines).unwrap_or(u16::MAX).min(spare);
    let body = body - foot_lines;
    let picture = take(&mut rest, picture_lines(state, area.width, body));
    let detail_lines = detail_lines(state, body - picture.height);
    let rows = body - picture.height - detail_lines;
    let table = take(&mut rest, rows);
    let detail = take(&mut rest, detail_lines);
    let foot = take(&mut rest, foot_lines);
    Plan {
        header,
        filter,
        tabs,
        picture,
        table,
        detail,
        foot,
        hint: rest,
    }
}

fn picture_lines(state: &State, width: u16, body: u16) -> u16 {
    let least = table::HEAD_LINES + 2 * FEW_ROWS;
    let room = body.saturating_sub(least);
    match state.view {
        View::Overview if state.table_id() == TableId::Findings => 0,
        View::Overview if room >= GRAPH_LINES && width >= 40 => GRAPH_LINES,
        View::Cpus if room >= 2 => state.table().map_or(0, |t| {
            heatgrid::wanted_lines(t, width).min(room.min(body / 2))
        }),
        _ => 0,
    }
}

/// Half the room under the heads is for the finding in full.
fn detail_lines(state: &State, room: u16) -> u16 {
    let room = room.saturating_sub(table::HEAD_LINES + FEW_ROWS);
    match state.table_id() {
        TableId::Findings => room.min(DETAIL_LINES),
        _ => 0,
    }
}

/// The lines under the table, the gravest first.
fn foot_lines(state: &State, model: &Model) -> Vec<(String, Role)> {
    let fields = state.fields();
    let missing = missing_lines(model, fields, state.sort_field());
    let more = missing.len().saturating_sub(2);
    let more = (more > 0).then(|| format!("- {more} more signals not measured: view 9"));
    let omitted = state.table().and_then(|t| omitted_line(t.omitted));
    let end = state.position.as_ref().filter(|p| p.is_end());
    let end = end.map(|p| {
        format!(
            "the recording ends here: {}; Space plays it again",
            scrub(&p.ending)
        )
    });
    let bad = loss_line(model).map(|l| (l, Role::Bad));
    let spinlocks = spinlock_line(model, state.table_id());
    let quiet = missing.into_iter().take(2).chain(more).chain(omitted);
    let quiet = quiet.chain(spinlocks);
    let notes = model.notes.iter().map(|n| scrub(n).into_owned());
    let end = end.map(|l| (l, Role::Title));
    bad.into_iter()
        .chain(end)
        .chain(quiet.chain(notes).map(|l| (l, Role::Note)))
        .collect()
}

/// What stands on the last line in place of the hints.
fn message_or_entry(state: &State) -> Option<(String, Role)> {
    match &state.popup {
        Some(Popup::Filter { text }) => Some((format!("filter: {text}_"), Role::Title)),
        Some(Popup::Interval { text }) => {
            Some((format!("interval in seconds: {text}_"), Role::Title))
        }
        Some(Popup::Time { text }) => Some((
            format!("go to (seconds or [h:]mm:ss from the start, or hh:mm:ssZ): {text}_"),
            Role::Title,
        )),
        _ => state.message.clone().map(|m| {
            let role = if m.starts_with('!') {
                Role::Bad
            } else {
                Role::Title
            };
            (m, role)
        }),
    }
}

/// Draws everything into `area`.
pub(crate) fn draw(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let mut pen = Pen::new(buffer, theme);
    let area = pen.clip(area);
    if area.width < MIN_WIDTH || area.height < MIN_HEIGHT {
        let text = format!(
            "{}x{} needs {MIN_WIDTH}x{MIN_HEIGHT}, q quits",
            area.width, area.height
        );
        pen.line(area, 0, &text, Role::Plain);
        return;
    }
    let foot = state
        .shown
        .as_deref()
        .map(|m| foot_lines(state, m))
        .unwrap_or_default();
    let plan = plan(state, area, foot.len());
    match state.shown.as_deref() {
        Some(model) => {
            for (y, line) in (0..).zip(header_lines(model, Some(badge(state)))) {
                pen.segments(plan.header, y, line);
            }
            if let Some(line) = filter_line(model) {
                pen.line(plan.filter, 0, &line, Role::Note);
            }
            draw_picture(state, model, plan.picture, &mut pen);
            table::draw(state, plan.table, &mut pen);
            detail::draw(state, plan.detail, &mut pen);
        }
        None => {
            pen.line(plan.header, 0, "faultscope", Role::Title);
            let text = "the first interval is running; numbers appear when it ends";
            pen.line(plan.table, 0, text, Role::Note);
        }
    }
    draw_tabs(state, plan.tabs, &mut pen);
    for (y, (line, role)) in (0..).zip(&foot) {
        pen.line(plan.foot, y, line, *role);
    }
    match message_or_entry(state) {
        Some((text, role)) => pen.line(plan.hint, 0, &text, role),
        None => draw_hints(state, plan.hint, &mut pen),
    }
    match &state.popup {
        Some(Popup::Help { top }) => popup::draw_help(*top, area, &mut pen),
        Some(Popup::SortMenu { cursor }) => popup::draw_sort(state, *cursor, area, &mut pen),
        Some(Popup::Filter { .. } | Popup::Interval { .. } | Popup::Time { .. }) | None => {}
    }
}

fn badge(state: &State) -> Segment {
    if let Some(position) = &state.position {
        let is_moving = position.is_playing && !position.is_end();
        Segment {
            text: position.badge(),
            tone: if is_moving { Tone::Live } else { Tone::Paused },
            rank: 0,
        }
    } else if state.is_paused {
        Segment {
            text: format!("PAUSED {}", format_behind(state.behind_ns())),
            tone: Tone::Paused,
            rank: 0,
        }
    } else {
        Segment {
            text: "LIVE".to_owned(),
            tone: Tone::Live,
            rank: 0,
        }
    }
}

fn draw_picture(state: &State, model: &Model, area: Rect, pen: &mut Pen<'_>) {
    if area.height == 0 {
        return;
    }
    match (state.view, state.table()) {
        (View::Overview, _) => sparkline::draw(&state.history, area, pen),
        (View::Cpus, Some(table)) => {
            let field = heatgrid::shown_field(state.sort_field());
            let selected = state.order.get(state.pane().cursor).copied();
            heatgrid::draw(table, field, model.interval_secs(), selected, area, pen);
        }
        _ => {}
    }
}

/// First column and text of every tab.
fn tabs() -> impl Iterator<Item = (u16, String, View)> {
    let mut x: u16 = 0;
    View::ALL.into_iter().map(move |view| {
        let text = format!("{} {}", view.digit(), view.title());
        let at = x;
        x += u16::try_from(width(&text) + 1).unwrap_or(0);
        (at, text, view)
    })
}

fn draw_tabs(state: &State, area: Rect, pen: &mut Pen<'_>) {
    for (x, text, view) in tabs() {
        let role = if view == state.view {
            Role::ActiveTab
        } else {
            Role::Tab
        };
        pen.put(area, x, 0, &text, role);
    }
}

fn draw_hints(state: &State, area: Rect, pen: &mut Pen<'_>) {
    let mut x = 0;
    for (key, word) in hints(state.position.is_some()) {
        let text = format!(" {word}  ");
        let end = usize::from(x) + width(&key) + width(text.trim_end());
        if end > area.width.into() {
            break;
        }
        x = pen.put(area, x, 0, &key, Role::Key);
        x = pen.put(area, x, 0, &text, Role::Note);
    }
}

fn current_plan(state: &State) -> Plan {
    let area = Rect::new(0, 0, state.width, state.height);
    let foot = state
        .shown
        .as_deref()
        .map_or(0, |m| foot_lines(state, m).len());
    plan(state, area, foot)
}

/// Rows of the table that the terminal has room for.
pub(crate) fn row_count(state: &State) -> usize {
    current_plan(state)
        .table
        .height
        .saturating_sub(table::HEAD_LINES)
        .into()
}

/// Lines inside an open popup.
pub(crate) fn popup_rows(state: &State) -> usize {
    popup::inner_lines(state, Rect::new(0, 0, state.width, state.height))
}

/// The furthest that the help scrolls.
pub(crate) fn help_last_top(state: &State) -> usize {
    popup::help_len().saturating_sub(popup_rows(state))
}

/// The topmost of `len` rows such that `cursor` is among the `rows` shown, as
/// near to `top` as can be.
pub(crate) fn visible_top(top: usize, cursor: usize, rows: usize, len: usize) -> usize {
    if rows == 0 {
        return cursor;
    }
    let least = (cursor + 1).saturating_sub(rows);
    let most = cursor.min(len.saturating_sub(rows));
    top.clamp(least.min(most), most)
}

/// What a mouse event asks for.
pub(crate) fn action_at(state: &State, theme: &Theme, event: &MouseEvent) -> Option<Action> {
    match event.kind {
        MouseEventKind::ScrollUp => Some(Action::Move(Motion::Lines(-WHEEL_ROWS))),
        MouseEventKind::ScrollDown => Some(Action::Move(Motion::Lines(WHEEL_ROWS))),
        MouseEventKind::Down(MouseButton::Left) if state.popup.is_none() => {
            let plan = current_plan(state);
            let at = ratatui::layout::Position::new(event.column, event.row);
            if plan.tabs.contains(at) {
                tabs()
                    .filter(|(x, _, _)| *x <= at.x)
                    .last()
                    .map(|(_, _, view)| Action::Show(view))
            } else if !plan.table.contains(at) {
                None
            } else if at.y == plan.table.y + table::HEAD_LINES - 1 {
                table::head_at(state, plan.table, at.x, &theme.glyphs).map(Action::SortField)
            } else {
                table::row_at(state, plan.table, at.y).map(Action::Select)
            }
        }
        _ => None,
    }
}
