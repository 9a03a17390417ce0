//! The live machine as a source of `top`: a session and its ticks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep_until;

use super::schedule::{Schedule, Tick};
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

/// Ticks at fixed times; a late one is reported, a missed one skipped.
struct Ticks(Schedule);

impl Ticks {
    fn new(length: Duration) -> Self {
        Self(Schedule::new(length, Instant::now()))
    }

    /// Waits for whichever is next.
    async fn next(&mut self) -> Tick {
        loop {
            sleep_until(self.0.next().into()).await;
            if let Some(tick) = self.0.tick(Instant::now()) {
                return tick;
            }
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
        self.0.done(Instant::now(), session.is_crowded());
        model
    }
}
