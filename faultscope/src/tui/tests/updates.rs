//! What each action does to the state.

use super::showing;
use crate::model::{Model, TableId, Value, View};
use crate::render::fixture;
use crate::render::order::Sort;
use crate::tui::Control;
use crate::tui::action::{Action, Motion, Outcome};
use crate::tui::keys::Place;
use crate::tui::screen::{action_at, visible_top};
use crate::tui::state::{Popup, State};
use crate::tui::update::{arrive, parse_interval, update};
use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

fn processes(rows: u64) -> State {
    showing(TableId::Processes, Some(fixture::sized(rows)), 80, 24)
}

fn later(mut model: Model, secs: u64) -> Arc<Model> {
    model.t_mono_ns += secs * 1_000_000_000;
    Arc::new(model)
}

fn column(state: &State, id: &str) -> usize {
    let found = state.fields().iter().position(|f| f.id == id);
    found.expect("a field of the table")
}

/// Keys of the rows in display order.
fn keys_in_order(state: &State) -> Vec<u64> {
    let table = state.table().expect("a model is shown");
    state.order.iter().map(|i| table.rows[*i].key).collect()
}

#[test]
fn quitting_suspending_and_repainting_change_nothing_else() {
    let mut s = processes(4);
    assert_eq!(update(&mut s, Action::Quit), Outcome::Quit);
    assert_eq!(update(&mut s, Action::QuitPrinting), Outcome::QuitPrinting);
    assert_eq!(update(&mut s, Action::Suspend), Outcome::Suspend);
    assert_eq!(update(&mut s, Action::Repaint), Outcome::Repaint);
    assert_eq!(s.table_id(), TableId::Processes);
}

#[test]
fn motions_stay_inside_the_rows() {
    let mut s = processes(100);
    let page = crate::tui::screen::row_count(&s);
    assert!(page > 5, "{page} rows");
    let mut at = |m: Motion| {
        update(&mut s, Action::Move(m));
        let pane = *s.pane();
        assert!(pane.top <= pane.cursor && pane.cursor < pane.top + page);
        pane.cursor
    };
    assert_eq!(at(Motion::Up), 0);
    assert_eq!(at(Motion::Down), 1);
    assert_eq!(at(Motion::PageDown), 1 + page);
    assert_eq!(at(Motion::HalfDown), 1 + page + page / 2);
    assert_eq!(at(Motion::HalfUp), 1 + page);
    assert_eq!(at(Motion::PageUp), 1);
    assert_eq!(at(Motion::Last), 99);
    assert_eq!(at(Motion::Down), 99);
    assert_eq!(at(Motion::Lines(-3)), 96);
    assert_eq!(at(Motion::Lines(30)), 99);
    assert_eq!(at(Motion::First), 0);
}

#[test]
fn motions_without_rows_or_model_do_nothing() {
    for model in [None, Some(fixture::empty())] {
        let mut s = showing(TableId::Processes, model, 80, 24);
        for m in [Motion::Down, Motion::PageDown, Motion::Last, Motion::HalfUp] {
            assert_eq!(update(&mut s, Action::Move(m)), Outcome::Unchanged);
        }
        assert_eq!(s.pane().cursor, 0);
    }
}

#[test]
fn columns_scroll_and_stop_at_the_last() {
    let mut s = processes(4);
    update(&mut s, Action::ScrollLeft);
    assert_eq!(s.pane().scroll, 0);
    for _ in 0..100 {
        update(&mut s, Action::ScrollRight);
    }
    let most = crate::render::columns::max_scroll(s.fields());
    assert_eq!(s.pane().scroll, most);
    update(&mut s, Action::ScrollLeft);
    assert_eq!(s.pane().scroll, most - 1);
}

#[test]
fn views_and_tables_tell_the_collector_what_is_shown() {
    let mut s = processes(4);
    let sent = |id| Outcome::Send(Control::Show(id));
    assert_eq!(
        update(&mut s, Action::Show(View::Processes)),
        Outcome::Unchanged
    );
    assert_eq!(update(&mut s, Action::Threads), sent(TableId::Threads));
    assert_eq!(update(&mut s, Action::NextView), sent(TableId::Cgroups));
    assert_eq!(update(&mut s, Action::PreviousView), sent(TableId::Threads));
    assert_eq!(update(&mut s, Action::Threads), sent(TableId::Processes));
    assert_eq!(
        update(&mut s, Action::Show(View::Locks)),
        sent(TableId::Locks)
    );
    assert_eq!(
        update(&mut s, Action::NextTable),
        sent(TableId::LockHolders)
    );
    assert_eq!(update(&mut s, Action::NextTable), sent(TableId::LockSites));
    assert_eq!(
        update(&mut s, Action::NextTable),
        sent(TableId::LockWaiters)
    );
    assert_eq!(update(&mut s, Action::NextTable), sent(TableId::LruHolds));
    assert_eq!(
        update(&mut s, Action::NextTable),
        sent(TableId::LockBlocked)
    );
    assert_eq!(
        update(&mut s, Action::NextTable),
        sent(TableId::LockClasses)
    );
    assert_eq!(update(&mut s, Action::NextTable), sent(TableId::Locks));
    assert_eq!(update(&mut s, Action::Threads), Outcome::Draw);
    assert!(s.message.is_some());
    assert_eq!(
        update(&mut s, Action::Show(View::Own)),
        sent(TableId::Programs)
    );
    assert_eq!(update(&mut s, Action::NextView), sent(TableId::Overview));
    assert_eq!(
        update(&mut s, Action::PreviousView),
        sent(TableId::Programs)
    );
    assert_eq!(update(&mut s, Action::Show(View::Lru)), sent(TableId::Lru));
    assert_eq!(update(&mut s, Action::NextTable), Outcome::Draw);
    assert!(s.message.is_some(), "one table says so");
}

#[test]
fn each_table_keeps_its_place_and_sort() {
    let mut s = processes(50);
    update(&mut s, Action::Move(Motion::Last));
    update(&mut s, Action::SortBy(&["faults_major"]));
    update(&mut s, Action::Show(View::Cgroups));
    assert_eq!(s.pane().cursor, 0);
    assert_eq!(s.pane().sort, None);
    update(&mut s, Action::Show(View::Processes));
    assert_eq!(s.pane().cursor, 49);
    assert_eq!(s.sort_field().map(|f| f.id), Some("faults_major"));
}

#[test]
fn pause_freezes_the_model_and_nothing_else() {
    let mut s = processes(4);
    update(&mut s, Action::Pause);
    arrive(&mut s, later(fixture::sized(2), 42));
    assert_eq!(s.order.len(), 4, "dead rows stay");
    assert_eq!(s.behind_ns(), 42_000_000_000);
    assert_eq!(s.history.len(), 2, "the graph goes on");
    update(&mut s, Action::Move(Motion::Last));
    update(&mut s, Action::Pause);
    assert_eq!(s.order.len(), 2, "live shows the newest");
    assert_eq!(s.pane().cursor, 1);
    assert_eq!(s.behind_ns(), 0);
}

#[test]
fn pausing_before_the_first_model_still_shows_it() {
    let mut s = showing(TableId::Processes, None, 80, 24);
    update(&mut s, Action::Pause);
    arrive(&mut s, Arc::new(fixture::full()));
    assert_eq!(s.order.len(), 4);
}

#[test]
fn sorting_by_letter_column_menu_and_click() {
    let mut s = processes(4);
    let sorted = |s: &State| s.sort().map(|x| (s.fields()[x.field].id, x.ascending));
    assert_eq!(sorted(&s), Some(("faults", false)), "the table's own sort");
    update(&mut s, Action::SortNext);
    assert_eq!(sorted(&s), Some(("faults_major", false)));
    update(&mut s, Action::SortPrevious);
    update(&mut s, Action::SortPrevious);
    assert_eq!(sorted(&s), Some(("comm", true)), "names ascend");
    update(&mut s, Action::Reverse);
    assert_eq!(sorted(&s), Some(("comm", false)));
    update(&mut s, Action::SortBy(&["no such", "madvise_calls"]));
    assert_eq!(sorted(&s), Some(("madvise_calls", false)));
    assert_eq!(keys_in_order(&s), [1000, 1001, 1002, 1003]);
    update(&mut s, Action::Reverse);
    assert_eq!(keys_in_order(&s), [1003, 1002, 1001, 1000]);
    let field = column(&s, "faults");
    update(&mut s, Action::SortField(field));
    assert_eq!(sorted(&s), Some(("faults", false)));
    update(&mut s, Action::SortField(field));
    assert_eq!(sorted(&s), Some(("faults", true)));
    update(&mut s, Action::SortMenu);
    assert_eq!(s.place(), Place::Popup);
    update(&mut s, Action::Move(Motion::First));
    assert_eq!(update(&mut s, Action::Accept), Outcome::Draw);
    assert_eq!(sorted(&s), Some(("pid", true)));
    assert_eq!(s.popup, None);
}

#[test]
fn a_letter_without_a_column_says_so_and_keeps_the_sort() {
    let mut s = showing(TableId::Lru, Some(fixture::full()), 80, 24);
    let before = s.sort();
    update(&mut s, Action::SortBy(&["faults_major"]));
    assert_eq!(s.sort(), before);
    assert_eq!(s.message.as_deref(), Some("LRU has no such column"));
    update(&mut s, Action::Move(Motion::Up));
    assert_eq!(s.message, None, "the next key clears it");
}

#[test]
fn the_overview_keeps_its_order_until_a_sort_is_chosen() {
    let mut s = showing(TableId::Overview, Some(fixture::full()), 80, 24);
    assert_eq!(s.sort(), None);
    update(&mut s, Action::Reverse);
    assert!(s.message.is_some());
    update(&mut s, Action::SortBy(&["value"]));
    assert_eq!(s.sort_field().map(|f| f.id), Some("value"));
}

/// The fixture with its rows' faults turned round.
fn turned() -> Model {
    fixture::edited(&fixture::full(), |_, t| {
        let Some(at) = t.position("faults") else {
            return;
        };
        for (row, n) in t.rows.iter_mut().zip(1_u64..) {
            row.cells[at] = Value::Count(n);
        }
    })
}

#[test]
fn order_freezes_while_the_cursor_moves() {
    let mut s = processes(4);
    let field = column(&s, "faults");
    update(&mut s, Action::SortBy(&["faults"]));
    assert_eq!(
        s.pane().sort,
        Some(Sort {
            field,
            ascending: false
        })
    );
    update(&mut s, Action::Move(Motion::Down));
    arrive(&mut s, later(turned(), 2));
    assert_eq!(keys_in_order(&s), [1000, 1001, 1002, 1003], "frozen");
    assert_eq!(s.cursor_key(), Some(1001));
    arrive(&mut s, later(turned(), 4));
    assert_eq!(keys_in_order(&s), [1003, 1002, 1001, 1000], "sorted again");
}

#[test]
fn while_frozen_new_rows_come_last_and_the_cursor_keeps_its_row() {
    let mut s = processes(4);
    update(&mut s, Action::Move(Motion::Lines(2)));
    assert_eq!(s.cursor_key(), Some(1002));
    let m = fixture::edited(&fixture::sized(6), |_, t| {
        t.rows.remove(0);
        t.rows.reverse();
    });
    arrive(&mut s, later(m, 1));
    assert_eq!(keys_in_order(&s), [1001, 1002, 1003, 1005, 1004]);
    assert_eq!(s.cursor_key(), Some(1002));
}

#[test]
fn the_word_filter_works_as_it_is_typed_and_escape_clears_it() {
    let mut s = processes(12);
    update(&mut s, Action::Move(Motion::Last));
    update(&mut s, Action::Filter);
    assert_eq!(s.place(), Place::Entry);
    for c in "CC1PLUSx".chars() {
        update(&mut s, Action::Input(c));
    }
    assert!(s.order.is_empty());
    update(&mut s, Action::Erase);
    assert_eq!(keys_in_order(&s), [1001, 1005, 1009]);
    assert_eq!(s.pane().cursor, 0, "brought inside the rows left");
    update(&mut s, Action::Accept);
    assert_eq!((s.place(), s.word.as_str()), (Place::Main, "CC1PLUS"));
    update(&mut s, Action::Escape);
    assert_eq!((s.order.len(), s.word.as_str()), (12, ""));
}

#[test]
fn escape_closes_a_popup_before_it_clears_the_filter() {
    let mut s = processes(12);
    s.word = "cc1".to_owned();
    update(&mut s, Action::Help);
    update(&mut s, Action::Escape);
    assert_eq!((s.popup.is_none(), s.word.as_str()), (true, "cc1"));
    assert_eq!(update(&mut s, Action::Escape), Outcome::Draw);
    assert_eq!(s.word, "");
    assert_eq!(update(&mut s, Action::Escape), Outcome::Draw, "never quits");
}

#[test]
fn help_opens_scrolls_and_closes() {
    let mut s = processes(4);
    update(&mut s, Action::Help);
    update(&mut s, Action::Move(Motion::Last));
    let Some(Popup::Help { top }) = s.popup else {
        panic!("help is not open: {:?}", s.popup);
    };
    assert_eq!(top, crate::tui::screen::help_last_top(&s));
    assert!(top > 0);
    update(&mut s, Action::Help);
    assert_eq!(s.popup, None);
}

#[test]
fn the_interval_steps_and_stops_at_its_limits() {
    let mut s = processes(4);
    let sent = |ms| Outcome::Send(Control::Interval(Duration::from_millis(ms)));
    assert_eq!(
        update(&mut s, Action::Faster),
        sent(1000),
        "the model has 2 s"
    );
    assert_eq!(update(&mut s, Action::Faster), sent(500));
    assert_eq!(update(&mut s, Action::Slower), sent(1000));
    for _ in 0..10 {
        update(&mut s, Action::Faster);
    }
    assert_eq!(s.interval, Some(Duration::from_millis(100)));
    assert_eq!(update(&mut s, Action::Faster), Outcome::Draw);
    for _ in 0..10 {
        update(&mut s, Action::Slower);
    }
    assert_eq!(s.interval, Some(Duration::from_secs(60)));
}

#[test]
fn a_typed_interval_is_checked() {
    let mut s = processes(4);
    let mut typed = |text: &str| {
        update(&mut s, Action::TypeInterval);
        for c in text.chars() {
            update(&mut s, Action::Input(c));
        }
        let outcome = update(&mut s, Action::Accept);
        (outcome, s.message.clone().unwrap_or_default())
    };
    let sent = Outcome::Send(Control::Interval(Duration::from_millis(2500)));
    assert_eq!(typed("2.5").0, sent);
    let (outcome, message) = typed("90");
    assert_eq!(outcome, Outcome::Draw);
    assert!(
        message.starts_with('!') && message.contains("0.1 to 60"),
        "{message}"
    );
    assert_eq!(parse_interval("0,1"), Some(Duration::from_millis(100)));
    for bad in ["", "0", "0.09", "61", "-1", "nan", "inf", "1e9", "x"] {
        assert_eq!(parse_interval(bad), None, "{bad}");
    }
}

#[test]
fn clicks_choose_tabs_heads_and_rows() {
    let mut s = processes(4);
    let press = |column, row| MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column,
        row,
        modifiers: KeyModifiers::NONE,
    };
    let theme = super::theme();
    let shown = super::text(&super::drawn(&s, &theme));
    let find = |word: &str| {
        let hit = shown.lines().enumerate().find_map(|(y, l)| {
            let at = l.find(word).map(|b| l[..b].chars().count())?;
            Some((u16::try_from(at).ok()?, u16::try_from(y).ok()?))
        });
        hit.expect("the word is on the screen")
    };
    let (x, y) = find("7 Locks");
    assert_eq!(
        action_at(&s, &theme, &press(x + 3, y)),
        Some(Action::Show(View::Locks))
    );
    let (x, y) = find("MAJOR");
    let major = column(&s, "faults_major");
    assert_eq!(
        action_at(&s, &theme, &press(x, y)),
        Some(Action::SortField(major))
    );
    let (x, y) = find("kswapd0");
    assert_eq!(action_at(&s, &theme, &press(x, y)), Some(Action::Select(2)));
    update(&mut s, Action::Select(2));
    assert_eq!(s.cursor_key(), Some(1002));
    assert_eq!(action_at(&s, &theme, &press(0, 0)), None);
    assert_eq!(action_at(&s, &theme, &press(0, 15)), None, "below the rows");
    let wheel = MouseEvent {
        kind: MouseEventKind::ScrollDown,
        ..press(0, 0)
    };
    assert_eq!(
        action_at(&s, &theme, &wheel),
        Some(Action::Move(Motion::Lines(3)))
    );
    update(&mut s, Action::Help);
    assert_eq!(
        action_at(&s, &theme, &press(x, y)),
        None,
        "a popup is over it"
    );
}

proptest! {
    #[test]
    fn the_cursor_is_always_in_sight(top in 0_usize..300, len in 1_usize..200, at in 0_usize..200, rows in 1_usize..60) {
        let cursor = at.min(len - 1);
        let top = visible_top(top, cursor, rows, len);
        prop_assert!(top <= cursor && cursor < top + rows);
        prop_assert!(top == 0 || top + rows <= len.max(rows), "no room is wasted");
    }
}
