//! The live machine as a source of `top`: a session and its ticks.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until};

use super::session::Session;
use super::top::Source;
use crate::model::Model;
use crate::tui::{Control, Frame};

/// A session that is read at fixed times.
pub(super) struct Live {
    session: Session,
    ticks: Ticks,
}

impl Live {
    /// Ticks from now on.
    pub(super) fn new(session: Session, interval: Duration) -> Self {
        Self {
            session,
            ticks: Ticks::new(interval),
        }
    }

    /// Begins the first interval now.
    ///
    /// # Errors
    /// A map that cannot be read.
    pub(super) fn discard(&mut self) -> anyhow::Result<()> {
        self.session.tick().map(drop)
    }
}

impl Source for Live {
    async fn next(&mut self) -> anyhow::Result<Option<Frame>> {
        loop {
            let tick = self.ticks.next().await;
            if let Some(model) = self.ticks.run(tick, &mut self.session)? {
                return Ok(Some(Arc::new(model).into()));
            }
        }
    }

    fn control(&mut self, request: Control) -> anyhow::Result<Option<Frame>> {
        match request {
            Control::Show(table) => self.session.show(table),
            Control::Interval(length) => self.ticks = Ticks::new(length),
            // The screen asks it of replays only.
            Control::Play(_) => {}
        }
        Ok(None)
    }
}

/// Longest time between two readings of the thread rows.
const HARVEST: Duration = Duration::from_secs(1);
/// The same while a table fills up: many short processes.
const HARVEST_CROWDED: Duration = Duration::from_millis(100);

/// Ticks at fixed times; a late one is reported, a missed one skipped.
struct Ticks {
    interval: Interval,
    harvest_at: Instant,
    length: Duration,
}

impl Ticks {
    fn new(length: Duration) -> Self {
        let mut interval = interval_at(Instant::now() + length, length);
        interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Self {
            interval,
            harvest_at: Instant::now() + HARVEST,
            length,
        }
    }

    /// Waits for whichever is next.
    async fn next(&mut self) -> Tick {
        tokio::select! {
            biased;
            due = self.interval.tick() => Tick::Due { is_late: due.elapsed() > self.length / 10 },
            () = sleep_until(self.harvest_at) => Tick::Harvest,
        }
    }

    /// Does what a tick is for; the model if an interval is over.
    fn run(&mut self, tick: Tick, session: &mut Session) -> anyhow::Result<Option<Model>> {
        let model = match tick {
            Tick::Harvest => session.harvest().map(|()| None),
            Tick::Due { is_late } => {
                if is_late {
                    session.overrun();
                }
                session.tick().map(Some)
            }
        };
        let pause = if session.is_crowded() {
            HARVEST_CROWDED
        } else {
            HARVEST
        };
        self.harvest_at = Instant::now() + pause;
        model
    }
}

/// What a tick is for.
#[derive(Debug, Clone, Copy)]
enum Tick {
    /// An interval is over; late by more than a tenth of it.
    Due {
        /// Late.
        is_late: bool,
    },
    /// Rows of dead threads are to be freed.
    Harvest,
}
