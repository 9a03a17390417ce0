//! Every view as text, at the two sizes and in the states that matter.

use super::{drawn, no_color, showing, text, theme};
use crate::model::{TableId, View};
use crate::render::fixture;
use crate::tui::action::{Action, Motion};
use crate::tui::keys;
use crate::tui::state::State;
use crate::tui::theme::{ColorChoice, Environment, Theme};
use crate::tui::update::{arrive, update};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};
use std::sync::Arc;

/// The screen as ratatui's test backend prints it.
fn printed(state: &State, theme: &Theme) -> String {
    let backend = TestBackend::new(state.width, state.height);
    let mut terminal = Terminal::new(backend).expect("the test backend cannot fail");
    terminal
        .draw(|frame| {
            let area = frame.area();
            crate::tui::screen::draw(state, theme, area, frame.buffer_mut());
        })
        .expect("the test backend cannot fail");
    terminal.backend().to_string()
}

#[test]
fn every_table_at_both_sizes() {
    for table in TableId::ALL {
        for (width, height) in [(80, 24), (120, 40)] {
            let model = Some(fixture::sized(12));
            let state = showing(*table, model, width, height);
            let name = format!("{}_{width}x{height}", table.id());
            insta::assert_snapshot!(name, printed(&state, &theme()));
        }
    }
}

#[test]
fn overview_and_processes_in_every_state() {
    for table in [TableId::Overview, TableId::Processes] {
        let show = |m| showing(table, m, 80, 24);
        let mut paused = show(Some(fixture::full()));
        update(&mut paused, Action::Pause);
        let mut later = fixture::empty();
        later.t_mono_ns += 42_000_000_000;
        arrive(&mut paused, Arc::new(later));
        let mut filtered = show(Some(fixture::sized(12)));
        update(&mut filtered, Action::Filter);
        for c in "CC1".chars() {
            update(&mut filtered, Action::Input(c));
        }
        for (name, state) in [
            ("waiting", show(None)),
            ("empty", show(Some(fixture::empty()))),
            ("paused", paused),
            ("lossy", show(Some(fixture::lossy()))),
            ("degraded", show(Some(fixture::degraded()))),
            ("filtered", filtered),
        ] {
            let name = format!("{}_{name}", table.id());
            insta::assert_snapshot!(name, printed(&state, &theme()));
        }
        let ascii = Theme::new(ColorChoice::Never, true, Environment::default());
        let name = format!("{}_ascii", table.id());
        let screen = printed(&show(Some(fixture::lossy())), &ascii);
        assert!(screen.is_ascii(), "{screen}");
        insta::assert_snapshot!(name, screen);
    }
}

#[test]
fn findings_stand_in_the_overview_and_in_full_under_their_table() {
    for (width, height) in [(80, 24), (120, 40)] {
        for table in [TableId::Overview, TableId::Findings] {
            let state = showing(table, Some(fixture::found()), width, height);
            let name = format!("{}_found_{width}x{height}", table.id());
            insta::assert_snapshot!(name, printed(&state, &theme()));
        }
        let mut state = showing(TableId::Findings, Some(fixture::found()), width, height);
        update(&mut state, Action::Move(Motion::Down));
        let shown = text(&drawn(&state, &theme()));
        assert!(
            shown.contains("next: faultscope top --view budget"),
            "{shown}"
        );
    }
}

#[test]
fn popups_and_key_documentation() {
    let mut help = showing(TableId::Overview, Some(fixture::full()), 80, 24);
    update(&mut help, Action::Help);
    insta::assert_snapshot!("help", printed(&help, &theme()));
    update(&mut help, Action::Move(Motion::Last));
    insta::assert_snapshot!("help_end", printed(&help, &theme()));
    let mut menu = showing(TableId::Locks, Some(fixture::full()), 80, 24);
    update(&mut menu, Action::SortMenu);
    insta::assert_snapshot!("sort_menu", printed(&menu, &theme()));
    insta::assert_snapshot!("keys_markdown", keys::keys_markdown());
}

#[test]
fn the_help_lists_every_binding_and_scrolls_to_all() {
    let mut state = showing(TableId::Overview, Some(fixture::full()), 80, 24);
    update(&mut state, Action::Help);
    let mut seen = text(&drawn(&state, &theme()));
    update(&mut state, Action::Move(Motion::PageDown));
    seen += &text(&drawn(&state, &theme()));
    update(&mut state, Action::Move(Motion::PageDown));
    seen += &text(&drawn(&state, &theme()));
    for (keys, help) in keys::help_lines() {
        assert!(seen.contains(help), "{keys}: {help}");
    }
}

#[test]
fn without_colour_the_cursor_row_is_reversed_and_nothing_is_coloured() {
    for view in View::ALL {
        let table = view.tables().next().expect("a view has a table");
        let mut state = showing(table, Some(fixture::degraded()), 80, 24);
        update(&mut state, Action::Move(Motion::Down));
        let buffer = drawn(&state, &no_color());
        for cell in &buffer.content {
            assert_eq!(cell.fg, Color::Reset, "{view:?}");
            assert_eq!(cell.bg, Color::Reset, "{view:?}");
        }
        let reversed: Vec<u16> = (0..24)
            .filter(|y| {
                (0..80).all(|x| {
                    let cell = buffer.cell((x, *y));
                    cell.is_some_and(|c| c.modifier.contains(Modifier::REVERSED))
                })
            })
            .collect();
        assert_eq!(reversed.len(), 1, "{view:?}: rows {reversed:?}");
    }
}

#[test]
fn losses_are_red_only_when_there_are_any_and_never_by_colour_alone() {
    let quiet = showing(TableId::Overview, Some(fixture::full()), 120, 40);
    let lossy = showing(TableId::Overview, Some(fixture::lossy()), 120, 40);
    let red = |state: &State| {
        let buffer = drawn(state, &theme());
        let cells = buffer.content.iter();
        // The graph of major faults is red too; losses are reversed as well.
        cells
            .filter(|c| c.fg == Color::Red && c.modifier.contains(Modifier::REVERSED))
            .map(|c| c.symbol().to_owned())
            .collect::<String>()
    };
    assert_eq!(red(&quiet), "");
    let said = red(&lossy);
    assert!(said.contains("! drops 7"), "{said}");
    assert!(
        said.contains("! 7 events lost: thread_slot_collision 5 (+1)"),
        "{said}"
    );
    assert!(text(&drawn(&quiet, &theme())).contains("drops 0"));
}

#[test]
fn a_missing_signal_greys_its_columns_and_gives_the_reason() {
    let mut m = fixture::full();
    m.missing = fixture::missing();
    let mut state = showing(TableId::Processes, Some(m), 120, 40);
    update(&mut state, Action::SortBy(&["faults_major"]));
    let buffer = drawn(&state, &theme());
    let shown = text(&buffer);
    assert!(shown.contains("major_faults not measured: perf_event_open: Permission denied"));
    let (y, line) = shown
        .lines()
        .enumerate()
        .find(|(_, l)| l.contains("MAJOR"))
        .expect("a head line");
    let at = line.find("MAJOR").map_or(0, |b| line[..b].chars().count());
    let head = buffer.cell((
        u16::try_from(at).unwrap_or(0),
        u16::try_from(y).unwrap_or(0),
    ));
    assert_eq!(head.map(|c| c.fg), Some(Color::DarkGray));
}

#[test]
fn the_header_is_unfiltered_and_says_so() {
    let state = showing(TableId::Processes, Some(fixture::degraded()), 120, 40);
    let shown = text(&drawn(&state, &theme()));
    assert!(shown.contains("filter: pid=4200 comm=mysqld; header totals are unfiltered"));
}
