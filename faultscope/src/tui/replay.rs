//! Where a replay stands, and what the user may ask of it.

use crate::model::Model;
use crate::render::time::format_span;
use std::sync::Arc;

/// One thing to show: a model, and where it stands if it is replayed.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The model.
    pub model: Arc<Model>,
    /// Its place in the recording; `None` for a live one.
    pub position: Option<Position>,
}

impl From<Arc<Model>> for Frame {
    fn from(model: Arc<Model>) -> Self {
        Self {
            model,
            position: None,
        }
    }
}

/// A place in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// What the badge calls it while it plays.
    pub name: &'static str,
    /// Place of the interval, from 0.
    pub index: usize,
    /// Intervals there are.
    pub count: usize,
    /// End of the interval, ns since the recording began.
    pub at_ns: u64,
    /// End of the last interval, ns since the recording began.
    pub length_ns: u64,
    /// When the recording began, ns since the Unix epoch.
    pub start_real_ns: u64,
    /// How fast it plays.
    pub speed: Speed,
    /// Plays, or is paused.
    pub is_playing: bool,
    /// Why there is nothing after the last interval, a clause.
    pub ending: Arc<str>,
}

impl Position {
    /// Whether this is the last interval.
    #[must_use]
    pub fn is_end(&self) -> bool {
        self.index + 1 >= self.count
    }

    /// State, place and time: `REPLAY 12/60 00:12/01:00 x2`.
    #[must_use]
    pub fn badge(&self) -> String {
        let state = match (self.is_end(), self.is_playing) {
            (true, _) => "END",
            (_, true) => self.name,
            (_, false) => "PAUSED",
        };
        let mut text = format!(
            "{state} {}/{} {}/{}",
            self.index + 1,
            self.count,
            format_span(self.at_ns),
            format_span(self.length_ns)
        );
        if self.speed != Speed::default() {
            text.push_str(&format!(" {}", self.speed.label()));
        }
        text
    }

    /// The offset a typed time stands for, ns: seconds or `[h:]mm:ss` since the
    /// beginning, or a time of day in UTC, `22:13:20Z`.
    #[must_use]
    pub fn parse_time(&self, text: &str) -> Option<u64> {
        let text = text.trim();
        let (text, is_clock) = match text.strip_suffix(['Z', 'z']) {
            Some(text) => (text, true),
            None => (text, false),
        };
        let mut parts = text.rsplit(':');
        let seconds: f64 = parts.next()?.replace(',', ".").parse().ok()?;
        let mut ns = seconds_ns(seconds)?;
        for unit in [60, 3600] {
            if let Some(part) = parts.next() {
                let n: u64 = part.parse().ok()?;
                ns = ns.checked_add(n.checked_mul(unit * 1_000_000_000)?)?;
            }
        }
        if parts.next().is_some() {
            return None;
        }
        if is_clock {
            const DAY: u64 = 86_400_000_000_000;
            // A recording of more than a day: the first such time.
            ns = (ns % DAY + DAY - self.start_real_ns % DAY) % DAY;
        }
        Some(ns)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to lie between 0 and 2^53 ns, which are 104 days"
)]
fn seconds_ns(seconds: f64) -> Option<u64> {
    let ns = seconds * 1e9;
    (0.0..9e15).contains(&ns).then_some(ns as u64)
}

/// Quarters of the speed at which it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speed {
    quarters: u32,
}

impl Default for Speed {
    fn default() -> Self {
        Self { quarters: 4 }
    }
}

impl Speed {
    /// Slowest and fastest.
    const RANGE: [u32; 2] = [1, 64];

    /// Twice as fast; `None` at the fastest.
    #[must_use]
    pub fn faster(self) -> Option<Self> {
        let quarters = self.quarters * 2;
        (quarters <= Self::RANGE[1]).then_some(Self { quarters })
    }

    /// Half as fast; `None` at the slowest.
    #[must_use]
    pub fn slower(self) -> Option<Self> {
        let quarters = self.quarters / 2;
        (quarters >= Self::RANGE[0]).then_some(Self { quarters })
    }

    /// Time that a recorded time takes, ns.
    #[must_use]
    pub fn scale(self, ns: u64) -> u64 {
        ns.saturating_mul(4) / u64::from(self.quarters)
    }

    /// `x2`, `x1/4`.
    #[must_use]
    pub fn label(self) -> String {
        match self.quarters {
            n if n >= 4 => format!("x{}", n / 4),
            n => format!("x1/{}", 4 / n),
        }
    }
}

/// What the user asks of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Play {
    /// Pause or go on; at the end, start again.
    Toggle,
    /// So many intervals on, or back if negative; pauses.
    Step(isize),
    /// To the first interval.
    First,
    /// To the last interval.
    Last,
    /// To the interval in which this time lies, ns since the beginning.
    At(u64),
    /// Twice as fast.
    Faster,
    /// Half as fast.
    Slower,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position() -> Position {
        Position {
            name: "REPLAY",
            index: 11,
            count: 60,
            at_ns: 12_400_000_000,
            length_ns: 60_000_000_000,
            // 22:13:20Z.
            start_real_ns: 1_700_000_000_000_000_000,
            speed: Speed::default(),
            is_playing: true,
            ending: "the command ended".into(),
        }
    }

    #[test]
    fn the_badge_tells_state_place_time_and_speed() {
        let mut p = position();
        assert_eq!(p.badge(), "REPLAY 12/60 00:12/01:00");
        p.is_playing = false;
        assert_eq!(p.badge(), "PAUSED 12/60 00:12/01:00");
        p.speed = Speed { quarters: 8 };
        p.index = 59;
        assert_eq!(p.badge(), "END 60/60 00:12/01:00 x2");
        p.speed = Speed { quarters: 1 };
        assert!(p.badge().ends_with(" x1/4"), "{}", p.badge());
    }

    #[test]
    fn times_are_offsets_or_times_of_day() {
        let p = position();
        for (text, seconds) in [
            ("0", 0.0),
            ("90.5", 90.5),
            (" 1,5 ", 1.5),
            ("1:30", 90.0),
            ("1:02:03", 3723.0),
            ("22:13:20Z", 0.0),
            ("22:14:00Z", 40.0),
            ("00:13:20Z", 7200.0),
        ] {
            let ns = p.parse_time(text).unwrap_or_else(|| panic!("{text}"));
            assert!((ns as f64 / 1e9 - seconds).abs() < 1e-6, "{text}: {ns}");
        }
        for text in [
            "", "x", "-1", "1:x", "1:2:3:4", "nan", "inf", "1e30", "1:-2",
        ] {
            assert_eq!(p.parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn speeds_double_and_halve_within_bounds() {
        let mut speed = Speed::default();
        assert_eq!(speed.scale(1_000), 1_000);
        let mut labels = vec![speed.label()];
        while let Some(next) = speed.faster() {
            speed = next;
            labels.push(speed.label());
        }
        assert_eq!(labels, ["x1", "x2", "x4", "x8", "x16"]);
        assert_eq!(speed.scale(1_600), 100);
        while let Some(next) = speed.slower() {
            speed = next;
        }
        assert_eq!((speed.label().as_str(), speed.scale(100)), ("x1/4", 400));
        assert_eq!(Speed { quarters: 2 }.label(), "x1/2");
    }
}
