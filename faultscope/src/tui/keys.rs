//! The one table of keys; dispatch, help, hints and documentation come from it.

use super::Play;
use super::action::{Action, Motion};
use crate::model::View;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Where a binding holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// No popup is open.
    Main,
    /// Help or a menu is open.
    Popup,
    /// Text is being typed.
    Entry,
}

/// A key without the modifiers that its code already tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    code: KeyCode,
    ctrl: bool,
}

const fn ch(c: char) -> Key {
    Key {
        code: KeyCode::Char(c),
        ctrl: false,
    }
}

const fn ctrl(c: char) -> Key {
    Key {
        code: KeyCode::Char(c),
        ctrl: true,
    }
}

const fn key(code: KeyCode) -> Key {
    Key { code, ctrl: false }
}

impl Key {
    fn matches(self, event: &KeyEvent) -> bool {
        let held = event.modifiers;
        self.code == event.code
            && self.ctrl == held.contains(KeyModifiers::CONTROL)
            && !held.contains(KeyModifiers::ALT)
    }

    fn label(self) -> String {
        let name = match self.code {
            KeyCode::Char(' ') => "Space".to_owned(),
            KeyCode::Char(c) if self.ctrl => c.to_ascii_uppercase().to_string(),
            KeyCode::Char(c) => c.to_string(),
            KeyCode::F(n) => format!("F{n}"),
            KeyCode::BackTab => "Shift-Tab".to_owned(),
            KeyCode::PageUp => "PgUp".to_owned(),
            KeyCode::PageDown => "PgDn".to_owned(),
            code => format!("{code:?}"),
        };
        if self.ctrl {
            format!("Ctrl-{name}")
        } else {
            name
        }
    }
}

/// One line of the key table.
#[derive(Debug)]
pub(crate) struct Binding {
    places: &'static [Place],
    keys: &'static [Key],
    action: Action,
    help: &'static str,
    /// Word on the hint line; empty to leave the key out there.
    hint: &'static str,
}

const ANY: &[Place] = &[Place::Main, Place::Popup, Place::Entry];
const READ: &[Place] = &[Place::Main, Place::Popup];
const MAIN: &[Place] = &[Place::Main];
const ASKED: &[Place] = &[Place::Popup, Place::Entry];

macro_rules! bindings {
    ($($places:ident [$($key:expr),*] $action:expr, $hint:literal, $help:literal;)*) => {
        /// Every binding, in the order of the help.
        pub(crate) static BINDINGS: &[Binding] = &[$(Binding {
            places: $places, keys: &[$($key),*], action: $action, hint: $hint, help: $help,
        },)*];
    };
}

bindings! {
    READ [ch('q')] Action::Quit, "quit", "quit";
    ANY [ctrl('c')] Action::Quit, "", "quit";
    READ [ch('Q')] Action::QuitPrinting, "", "quit and leave the last screen printed";
    ANY [key(KeyCode::Esc)] Action::Escape, "", "close the popup, else clear the filter; never quits";
    READ [ch('?'), key(KeyCode::F(1)), ch('h')] Action::Help, "help", "this help";
    MAIN [ch('1')] Action::Show(View::Overview), "", "Overview; findings";
    MAIN [ch('2')] Action::Show(View::Cpus), "", "CPUs";
    MAIN [ch('3')] Action::Show(View::Processes), "", "Processes and threads";
    MAIN [ch('4')] Action::Show(View::Cgroups), "", "Memory cgroups";
    MAIN [ch('5')] Action::Show(View::Faults), "", "Faults, address spaces, latency, time budget";
    MAIN [ch('6')] Action::Show(View::Lru), "", "LRU and RSS counters";
    MAIN [ch('7')] Action::Show(View::Locks), "", "Locks, takers, call sites, holds, who blocks whom";
    MAIN [ch('8')] Action::Show(View::Madvise), "", "madvise by process and advice; refaults";
    MAIN [ch('9')] Action::Show(View::Own), "", "Self: programs, losses, maps";
    MAIN [key(KeyCode::Tab)] Action::NextView, "view", "next view";
    MAIN [key(KeyCode::BackTab)] Action::PreviousView, "", "previous view";
    MAIN [ch('o')] Action::NextTable, "table", "next table of the view";
    MAIN [ch('y')] Action::Threads, "", "processes or threads (view 3)";
    MAIN [ch(' ')] Action::Pause, "pause", "pause or go on; live collection never stops";
    MAIN [ch('/'), ch('f')] Action::Filter, "filter", "show only rows whose name holds a word";
    MAIN [ch('s'), key(KeyCode::F(6))] Action::SortMenu, "sort", "choose the column to sort by";
    MAIN [ch('<')] Action::SortPrevious, "", "sort by the column to the left";
    MAIN [ch('>')] Action::SortNext, "", "sort by the column to the right";
    MAIN [ch('r')] Action::Reverse, "", "reverse the order";
    MAIN [ch('M')] Action::SortBy(&["faults_major"]), "", "sort by major faults";
    MAIN [ch('W')] Action::SortBy(&["lock_wait_ns", "wait_ns", "mmap_lock_wait_ns", "take_wait_ns"]), "", "sort by lock wait";
    MAIN [ch('D')] Action::SortBy(&["madvise_calls", "calls"]), "", "sort by madvise calls";
    MAIN [ch('B')] Action::SortBy(&["mmap_lock_handoffs", "mmap_lock_handoff_ratio", "handoff_remote", "sharing_expected_per_sec"]), "", "sort by bounces between CPUs (proxies)";
    MAIN [ch('C')] Action::SortBy(&["cpu_busy_ratio", "run_ratio"]), "", "sort by CPU use";
    READ [key(KeyCode::Up), ch('k')] Action::Move(Motion::Up), "", "up";
    READ [key(KeyCode::Down), ch('j')] Action::Move(Motion::Down), "", "down";
    READ [key(KeyCode::PageUp)] Action::Move(Motion::PageUp), "", "page up";
    READ [key(KeyCode::PageDown)] Action::Move(Motion::PageDown), "", "page down";
    READ [ctrl('u')] Action::Move(Motion::HalfUp), "", "half a page up";
    READ [ctrl('d')] Action::Move(Motion::HalfDown), "", "half a page down";
    READ [key(KeyCode::Home), ch('g')] Action::Move(Motion::First), "", "first row";
    READ [key(KeyCode::End), ch('G')] Action::Move(Motion::Last), "", "last row";
    MAIN [key(KeyCode::Left)] Action::ScrollLeft, "", "scroll the columns left";
    MAIN [key(KeyCode::Right)] Action::ScrollRight, "", "scroll the columns right";
    MAIN [ch('+')] Action::Faster, "", "shorter interval; replay: faster";
    MAIN [ch('-')] Action::Slower, "", "longer interval; replay: slower";
    MAIN [ch('d')] Action::TypeInterval, "", "type the interval in seconds, 0.1 to 60";
    MAIN [ch(',')] Action::Play(Play::Step(-1)), "", "replay: one interval back, and pause";
    MAIN [ch('.')] Action::Play(Play::Step(1)), "step", "replay: one interval on, and pause";
    MAIN [ch('[')] Action::Play(Play::First), "", "replay: to the start";
    MAIN [ch(']')] Action::Play(Play::Last), "", "replay: to the end";
    MAIN [ch('t')] Action::TypeTime, "go to", "replay: type a time to go to";
    ASKED [key(KeyCode::Enter)] Action::Accept, "", "accept what is chosen or typed";
    ASKED [key(KeyCode::Backspace)] Action::Erase, "", "erase a character that was typed";
    ANY [ctrl('l')] Action::Repaint, "", "redraw the screen";
    ANY [ctrl('z')] Action::Suspend, "", "suspend; `fg` comes back";
}

/// The action behind a key press, if it has one here.
pub(crate) fn action_for(place: Place, event: &KeyEvent) -> Option<Action> {
    let bound = BINDINGS
        .iter()
        .find(|b| b.places.contains(&place) && b.keys.iter().any(|k| k.matches(event)));
    if let Some(b) = bound {
        return Some(b.action);
    }
    match event.code {
        KeyCode::Char(c)
            if place == Place::Entry
                && !event
                    .modifiers
                    .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) =>
        {
            Some(Action::Input(c))
        }
        _ => None,
    }
}

/// Keys and meaning of every binding.
pub(crate) fn help_lines() -> impl Iterator<Item = (String, &'static str)> {
    BINDINGS.iter().map(|b| (labels(b), b.help))
}

fn labels(b: &Binding) -> String {
    let keys: Vec<String> = b.keys.iter().map(|k| k.label()).collect();
    keys.join(" ")
}

/// The short line at the foot of the screen: key and word, most needed first;
/// the keys of a replay only where there is one.
pub(crate) fn hints(is_replay: bool) -> impl Iterator<Item = (String, &'static str)> {
    let is_of_replay = |b: &Binding| matches!(b.action, Action::Play(_) | Action::TypeTime);
    BINDINGS
        .iter()
        .filter(move |b| !b.hint.is_empty() && (is_replay || !is_of_replay(b)))
        .filter_map(|b| b.keys.first().map(|k| (k.label(), b.hint)))
}

/// The key table as Markdown, for the documentation.
#[must_use]
pub fn keys_markdown() -> String {
    let mut out = String::from("| keys | action |\n|---|---|\n");
    for b in BINDINGS {
        let keys: Vec<String> = b.keys.iter().map(|k| format!("`{}`", k.label())).collect();
        out.push_str(&format!("| {} | {} |\n", keys.join(" "), b.help));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_bound_twice_in_one_place() {
        for place in ANY {
            let mut seen: Vec<Key> = Vec::new();
            for b in BINDINGS.iter().filter(|b| b.places.contains(place)) {
                for k in b.keys {
                    assert!(!seen.contains(k), "{} twice in {place:?}", k.label());
                    seen.push(*k);
                }
            }
        }
    }

    #[test]
    fn digits_show_the_views_they_belong_to() {
        for v in View::ALL {
            let event = KeyEvent::new(KeyCode::Char(v.digit()), KeyModifiers::NONE);
            assert_eq!(action_for(Place::Main, &event), Some(Action::Show(v)));
        }
    }

    #[test]
    fn shift_is_told_by_the_character_and_typing_is_input() {
        let press = |c, m| KeyEvent::new(KeyCode::Char(c), m);
        let g = press('G', KeyModifiers::SHIFT);
        assert_eq!(
            action_for(Place::Main, &g),
            Some(Action::Move(Motion::Last))
        );
        let q = press('q', KeyModifiers::NONE);
        assert_eq!(action_for(Place::Entry, &q), Some(Action::Input('q')));
        let c = press('c', KeyModifiers::CONTROL);
        assert_eq!(action_for(Place::Entry, &c), Some(Action::Quit));
        assert_eq!(
            action_for(Place::Main, &press('a', KeyModifiers::CONTROL)),
            None
        );
        assert_eq!(
            action_for(Place::Entry, &press('a', KeyModifiers::ALT)),
            None
        );
    }

    #[test]
    fn every_sort_letter_finds_a_field_somewhere() {
        for b in BINDINGS {
            if let Action::SortBy(ids) = b.action {
                for id in ids {
                    let known = crate::model::field::ALL.iter().any(|f| f.id == *id);
                    assert!(known, "{id} is no field");
                }
            }
        }
    }
}
