//! No size makes drawing panic, and drawing formats only what is seen.

use super::{drawn, no_color, showing, text, theme};
use crate::model::{Missing, Model, TableId, Value, View};
use crate::render::cell::FORMATTED;
use crate::render::fixture;
use crate::tui::action::{Action, Motion, Outcome};
use crate::tui::screen;
use crate::tui::state::State;
use crate::tui::update::{arrive, resize, update};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::sync::Arc;

/// Widths and heights of ecosystem rule 1; all of them with FAULTSCOPE_LONG=1,
/// else every seventh of the long axes beside the short ones.
fn sizes() -> Vec<(u16, u16)> {
    let is_long = is_long();
    let keep = |n: u16| is_long || n <= 30 || n.is_multiple_of(7);
    let wide = (1..=300)
        .filter(|w| keep(*w))
        .flat_map(|w| [1, 2, 3, 5, 10, 24, 100].map(|h| (w, h)));
    let high = (1..=100)
        .filter(|h| keep(*h))
        .flat_map(|h| [1, 2, 3, 10, 40, 80, 300].map(|w| (w, h)));
    wide.chain(high).collect()
}

fn is_long() -> bool {
    std::env::var_os("FAULTSCOPE_LONG").is_some_and(|v| v == "1")
}

/// Every state of the screen that draws something of its own.
fn states(table: TableId) -> Vec<State> {
    let with = |model: Option<Model>, actions: &[Action]| {
        let mut s = showing(table, model, 80, 24);
        for a in actions {
            update(&mut s, *a);
        }
        s
    };
    let mut paused = with(Some(fixture::sized(40)), &[Action::Pause]);
    arrive(&mut paused, Arc::new(fixture::lossy()));
    vec![
        with(None, &[]),
        with(Some(fixture::empty()), &[]),
        with(Some(fixture::sized(40)), &[Action::Move(Motion::Last)]),
        paused,
        with(Some(fixture::degraded()), &[Action::ScrollRight]),
        with(
            Some(fixture::full()),
            &[Action::Help, Action::Move(Motion::Last)],
        ),
        with(
            Some(fixture::full()),
            &[Action::SortMenu, Action::Move(Motion::Down)],
        ),
        with(None, &[Action::SortMenu]),
        with(Some(fixture::full()), &[Action::Filter, Action::Input('x')]),
    ]
}

fn tables() -> Vec<TableId> {
    if is_long() {
        TableId::ALL.to_vec()
    } else {
        View::ALL.iter().filter_map(|v| v.tables().next()).collect()
    }
}

#[test]
fn no_size_makes_a_view_panic() {
    let sizes = sizes();
    let theme = theme();
    let mut frames = 0_u64;
    for table in tables() {
        for mut state in states(table) {
            for (width, height) in &sizes {
                resize(&mut state, *width, *height);
                let buffer = drawn(&state, &theme);
                frames += 1;
                let first = buffer.cell((0, 0)).map(|c| c.symbol().to_owned());
                assert!(
                    first.is_some_and(|s| s != " "),
                    "{table:?} {width}x{height}"
                );
            }
        }
    }
    assert!(frames > 50_000, "only {frames} frames");
}

#[test]
fn a_buffer_smaller_than_the_area_is_drawn_as_far_as_it_goes() {
    for table in TableId::ALL {
        for mut state in states(*table) {
            resize(&mut state, 120, 40);
            for (w, h) in [(0, 0), (1, 1), (30, 6), (119, 39), (120, 3)] {
                let mut buffer = Buffer::empty(Rect::new(0, 0, w, h));
                screen::draw(&state, &theme(), Rect::new(0, 0, 120, 40), &mut buffer);
            }
        }
    }
}

#[test]
fn a_screen_too_small_says_what_it_needs() {
    let mut state = showing(TableId::Overview, Some(fixture::full()), 60, 4);
    assert!(text(&drawn(&state, &theme())).contains("60x4 needs 20x5, q quits"));
    assert_eq!(update(&mut state, Action::Quit), Outcome::Quit);
}

#[test]
fn only_visible_rows_are_formatted() {
    for table in [TableId::Threads, TableId::Cpus, TableId::Cgroups] {
        let mut state = showing(table, Some(fixture::sized(20_000)), 120, 40);
        update(&mut state, Action::Move(Motion::Last));
        FORMATTED.with(|n| n.set(0));
        let buffer = drawn(&state, &theme());
        let cells = FORMATTED.with(std::cell::Cell::get);
        let most = 40 * table.fields().len();
        assert!(
            cells > 0 && cells <= most,
            "{cells} cells of {table:?}, {most} fit"
        );
        let last = match table {
            TableId::Cgroups => "build-19999.service".to_owned(),
            TableId::Threads => (4200 + 7 * 19_999).to_string(),
            _ => "19999".to_owned(),
        };
        assert!(
            text(&buffer).contains(&last),
            "{table:?} does not show {last}"
        );
    }
}

#[test]
fn hostile_names_do_not_reach_the_buffer() {
    let evil = "a\u{1b}]52;c;eA==\u{7}\u{1b}[2J\u{9b}31m\r\u{202e}b\u{2066}";
    for table in TableId::ALL {
        let mut m = fixture::degraded();
        m.host = Arc::new(crate::model::HostLine {
            name: evil.to_owned(),
            kernel: evil.to_owned(),
        });
        m.header.filter = evil.to_owned();
        m.notes = vec![evil.to_owned()];
        m.missing = m
            .missing
            .iter()
            .map(|x| Missing {
                reason: evil.to_owned(),
                ..x.clone()
            })
            .collect();
        let m = fixture::edited(&m, |_, t| {
            for value in t.rows.iter_mut().flat_map(|r| &mut r.cells) {
                if matches!(value, Value::Text(_)) {
                    *value = Value::Text(evil.to_owned());
                }
            }
        });
        let mut state = showing(*table, Some(m), 300, 100);
        update(&mut state, Action::Filter);
        for c in evil.chars() {
            update(&mut state, Action::Input(c));
        }
        for theme in [theme(), no_color()] {
            let all = text(&drawn(&state, &theme)).replace('\n', "");
            let bad = all.chars().find(|c| crate::name::is_unsafe(*c));
            assert_eq!(bad, None, "{table:?}");
        }
    }
}

#[test]
fn widths_agree_with_the_terminal_library() {
    for s in ["plain", "日本語", "é", "e\u{301}", "…▲", "🙂", "ｆｕｌｌ"] {
        let ours = crate::render::cell::width(s);
        assert_eq!(ours, ratatui::text::Span::raw(s).width(), "{s}");
    }
}
