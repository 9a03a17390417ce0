//! When to read: intervals at fixed times, and rows of the dead in between.

use std::time::{Duration, Instant};

/// Longest time between two readings of the thread rows.
const HARVEST: Duration = Duration::from_secs(1);
/// The same while a table fills up: many short processes.
const HARVEST_CROWDED: Duration = Duration::from_millis(100);

/// What is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tick {
    /// An interval is over; late by more than a tenth of it.
    Due {
        /// Late.
        is_late: bool,
    },
    /// Rows of dead threads are to be freed.
    Harvest,
}

/// Fixed times; a late interval is reported, a missed one skipped.
#[derive(Debug)]
pub(super) struct Schedule {
    length: Duration,
    due: Instant,
    harvest: Instant,
}

impl Schedule {
    /// The first interval begins now.
    pub(super) fn new(length: Duration, now: Instant) -> Self {
        Self {
            length,
            due: now + length,
            harvest: now + HARVEST,
        }
    }

    /// When to read next.
    pub(super) fn next(&self) -> Instant {
        self.due.min(self.harvest)
    }

    /// What is to be read now, if anything.
    pub(super) fn tick(&mut self, now: Instant) -> Option<Tick> {
        if now >= self.due {
            let late = now - self.due;
            while self.due <= now {
                self.due += self.length;
            }
            return Some(Tick::Due {
                is_late: late > self.length / 10,
            });
        }
        (now >= self.harvest).then_some(Tick::Harvest)
    }

    /// Notes that rows were read; they fill a table if it is crowded.
    pub(super) fn done(&mut self, now: Instant, is_crowded: bool) {
        self.harvest = now + if is_crowded { HARVEST_CROWDED } else { HARVEST };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_keep_their_times_and_late_ones_say_so() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut schedule = Schedule::new(Duration::from_millis(500), start);
        assert_eq!(schedule.next(), at(500));
        assert_eq!(schedule.tick(at(499)), None);
        assert_eq!(schedule.tick(at(510)), Some(Tick::Due { is_late: false }));
        assert_eq!(schedule.next(), at(1000));
        assert_eq!(schedule.tick(at(1700)), Some(Tick::Due { is_late: true }));
        // The one at 1500 is skipped; the next is where it always was.
        assert_eq!(schedule.tick(at(2000)), Some(Tick::Due { is_late: false }));
    }

    #[test]
    fn rows_are_read_between_long_intervals() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut schedule = Schedule::new(Duration::from_secs(60), start);
        assert_eq!(schedule.tick(at(1000)), Some(Tick::Harvest));
        schedule.done(at(1000), true);
        assert_eq!(schedule.next(), at(1100));
        schedule.done(at(1100), false);
        assert_eq!(schedule.next(), at(2100));
    }
}
