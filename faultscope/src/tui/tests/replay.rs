//! The screen while it shows a recording.

use super::{drawn, showing, text, theme};
use crate::model::TableId;
use crate::render::fixture;
use crate::tui::action::{Action, Outcome};
use crate::tui::keys::{Place, action_for};
use crate::tui::state::State;
use crate::tui::update::{arrive, update};
use crate::tui::{Control, Frame, Play, Position, Speed};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::sync::Arc;

fn frame(index: usize) -> Frame {
    let mut model = fixture::full();
    let at_ns = (index as u64 + 1) * 2_000_000_000;
    model.t_mono_ns += at_ns;
    model.header.minor_per_sec = Some(index as f64);
    Frame {
        model: Arc::new(model),
        position: Some(Position {
            name: "REPLAY",
            index,
            count: 30,
            at_ns,
            length_ns: 60_000_000_000,
            start_real_ns: 1_700_000_000_000_000_000,
            speed: Speed::default(),
            is_playing: true,
            ending: "the command ended".into(),
        }),
    }
}

fn at(index: usize) -> State {
    let mut state = showing(TableId::Processes, None, 80, 24);
    arrive(&mut state, frame(index));
    state
}

fn press(state: &mut State, c: char) -> Outcome {
    let event = KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
    let action = action_for(state.place(), &event).expect("a key of the table");
    update(state, action)
}

fn shown(state: &State) -> String {
    text(&drawn(state, &theme()))
}

#[test]
fn the_keys_play_the_recording() {
    let mut s = at(0);
    for (key, play) in [
        (' ', Play::Toggle),
        (',', Play::Step(-1)),
        ('.', Play::Step(1)),
        ('[', Play::First),
        (']', Play::Last),
        ('+', Play::Faster),
        ('-', Play::Slower),
    ] {
        assert_eq!(
            press(&mut s, key),
            Outcome::Send(Control::Play(play)),
            "{key}"
        );
    }
    assert!(!s.is_paused, "the replay pauses, not the screen");
    press(&mut s, 'd');
    assert!(shown(&s).contains("a replay has the intervals it was recorded with"));
}

#[test]
fn a_time_is_typed() {
    let mut s = at(0);
    press(&mut s, 't');
    assert_eq!(s.place(), Place::Entry);
    for c in "0:42".chars() {
        press(&mut s, c);
    }
    assert!(shown(&s).contains("or hh:mm:ssZ): 0:42_"));
    let play = Play::At(42_000_000_000);
    assert_eq!(
        update(&mut s, Action::Accept),
        Outcome::Send(Control::Play(play))
    );
    press(&mut s, 't');
    press(&mut s, 'x');
    update(&mut s, Action::Accept);
    assert!(shown(&s).contains("! \"x\" is no time"), "{}", shown(&s));
}

#[test]
fn without_a_recording_they_say_so() {
    let mut s = showing(TableId::Processes, Some(fixture::full()), 80, 24);
    for key in [',', '.', '[', ']', 't'] {
        assert_eq!(press(&mut s, key), Outcome::Draw);
        assert!(shown(&s).contains("only a replay has other times"), "{key}");
    }
}

#[test]
fn the_graph_follows_jumps_and_says_what_was_skipped() {
    let mut s = at(0);
    let graph = |s: &State| -> Vec<Option<f64>> {
        let rates = s.history.iter();
        rates.map(|r| r.map(|(minor, _)| minor)).collect()
    };
    for index in [1, 2, 2, 5] {
        arrive(&mut s, frame(index));
    }
    let some = |n| Some(f64::from(n));
    assert_eq!(graph(&s), [some(0), some(1), some(2), None, None, some(5)]);
    arrive(&mut s, frame(1));
    assert_eq!(graph(&s), [some(0), some(1)]);
    arrive(&mut s, frame(0));
    assert_eq!(graph(&s), [some(0)]);
    // Further back than the graph goes.
    let mut s = at(9);
    arrive(&mut s, frame(3));
    assert_eq!(graph(&s), [some(3)]);
}

#[test]
fn the_badge_and_the_foot_tell_where_it_stands() {
    for (width, height) in [(80, 24), (120, 40)] {
        let mut s = showing(TableId::Overview, None, width, height);
        arrive(&mut s, frame(5));
        let size = format!("{width}x{height}");
        insta::assert_snapshot!(format!("replay_{size}"), shown(&s));
        let mut paused = frame(5);
        if let Some(position) = &mut paused.position {
            position.is_playing = false;
        }
        arrive(&mut s, paused);
        assert!(
            shown(&s).starts_with("PAUSED 6/30 00:12/01:00"),
            "{}",
            shown(&s)
        );
        arrive(&mut s, frame(29));
        insta::assert_snapshot!(format!("replay_end_{size}"), shown(&s));
    }
}
