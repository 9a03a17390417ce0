//! Which interval of a recording is shown, and when the next is due. Pure.

use crate::tui::{Play, Speed};

/// The state of a replay.
#[derive(Debug)]
pub(super) struct Player {
    /// End of each interval, ns since the recording began; never empty.
    ends_ns: Vec<u64>,
    index: usize,
    speed: Speed,
    is_playing: bool,
}

impl Player {
    /// Plays from the first interval; `None` if there is none.
    pub(super) fn new(ends_ns: Vec<u64>) -> Option<Self> {
        (!ends_ns.is_empty()).then_some(Self {
            ends_ns,
            index: 0,
            speed: Speed::default(),
            is_playing: true,
        })
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn count(&self) -> usize {
        self.ends_ns.len()
    }

    pub(super) fn speed(&self) -> Speed {
        self.speed
    }

    pub(super) fn is_playing(&self) -> bool {
        self.is_playing
    }

    /// End of the interval shown, ns since the recording began.
    pub(super) fn at_ns(&self) -> u64 {
        self.ends_ns[self.index]
    }

    /// End of the last interval, ns since the recording began.
    pub(super) fn length_ns(&self) -> u64 {
        self.ends_ns[self.last()]
    }

    fn last(&self) -> usize {
        self.ends_ns.len() - 1
    }

    /// How long the interval shown stays, ns; `None` while paused and at the end.
    pub(super) fn stays_ns(&self) -> Option<u64> {
        let next = *self.ends_ns.get(self.index + 1)?;
        let recorded = next.saturating_sub(self.at_ns());
        self.is_playing.then(|| self.speed.scale(recorded))
    }

    /// Goes on to the next interval; false at the end.
    pub(super) fn advance(&mut self) -> bool {
        let is_more = self.index < self.last();
        self.index += usize::from(is_more);
        is_more
    }

    /// Does what the user asks for.
    pub(super) fn play(&mut self, play: Play) {
        match play {
            Play::Toggle if self.index == self.last() => {
                self.index = 0;
                self.is_playing = true;
            }
            Play::Toggle => self.is_playing = !self.is_playing,
            Play::Step(by) => {
                self.index = self.index.saturating_add_signed(by).min(self.last());
                self.is_playing = false;
            }
            Play::First => self.index = 0,
            Play::Last => self.index = self.last(),
            Play::At(ns) => {
                // The interval that ends at this time or first after it.
                let after = self.ends_ns.partition_point(|end| *end < ns);
                self.index = after.min(self.last());
            }
            Play::Faster => self.speed = self.speed.faster().unwrap_or(self.speed),
            Play::Slower => self.speed = self.speed.slower().unwrap_or(self.speed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Four intervals; the third is twice as long.
    fn player() -> Player {
        Player::new([1, 2, 4, 5].map(|s| s * SECOND).to_vec()).expect("intervals")
    }

    #[test]
    fn it_plays_at_the_recorded_speed_up_to_the_end() {
        let mut p = player();
        let mut seen = vec![(p.index(), p.stays_ns())];
        while p.advance() {
            seen.push((p.index(), p.stays_ns()));
        }
        let stays = [Some(SECOND), Some(2 * SECOND), Some(SECOND), None];
        assert_eq!(seen, (0..4).zip(stays).collect::<Vec<_>>());
        assert!(!p.advance());
        assert_eq!((p.at_ns(), p.length_ns()), (5 * SECOND, 5 * SECOND));
        assert!(Player::new(Vec::new()).is_none());
    }

    #[test]
    fn steps_pause_and_stay_inside() {
        let mut p = player();
        p.play(Play::Step(-1));
        assert_eq!((p.index(), p.is_playing(), p.stays_ns()), (0, false, None));
        p.play(Play::Step(2));
        assert_eq!(p.index(), 2);
        p.play(Play::Step(9));
        assert_eq!(p.index(), 3);
        p.play(Play::Step(isize::MIN));
        assert_eq!(p.index(), 0);
        p.play(Play::Toggle);
        assert_eq!(p.stays_ns(), Some(SECOND));
        p.play(Play::Faster);
        assert_eq!(p.stays_ns(), Some(SECOND / 2));
        p.play(Play::Slower);
        p.play(Play::Slower);
        assert_eq!(p.stays_ns(), Some(2 * SECOND));
    }

    #[test]
    fn jumps_go_to_the_interval_of_a_time_and_the_end_starts_again() {
        let mut p = player();
        for (ns, index) in [
            (0, 0),
            (SECOND, 0),
            (SECOND + 1, 1),
            (3 * SECOND, 2),
            (u64::MAX, 3),
        ] {
            p.play(Play::At(ns));
            assert_eq!(p.index(), index, "{ns}");
        }
        p.play(Play::Toggle);
        assert_eq!((p.index(), p.is_playing()), (0, true));
        p.play(Play::Last);
        assert_eq!((p.index(), p.is_playing()), (3, true));
        p.play(Play::First);
        assert_eq!(p.index(), 0);
    }
}
