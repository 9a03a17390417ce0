//! A recording as a source of `top`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tokio::time::{Instant, sleep_until};

use super::player::Player;
use super::top::Source;
use crate::model::{Context, Model};
use crate::sample::run::Run;
use crate::store::Recording;
use crate::tui::{Control, Frame, Position};

/// The recording that ships with the tool; `demo/README.md` tells how it was made.
static DEMO: &[u8] = include_bytes!("../../demo/demo.fsc.z");

/// Intervals of a recording, at their times or without waiting.
pub(super) struct Replay {
    recording: Recording,
    player: Player,
    name: &'static str,
    ending: Arc<str>,
    pace: Pace,
}

/// When the next interval comes.
enum Pace {
    /// The first one has not been shown.
    Start,
    /// So long after this one was shown as it took to record.
    Timed(Instant),
    /// At once, batch output: whether the first one was written.
    AtOnce(bool),
}

impl Replay {
    /// Opens the recording at `path`; `is_paced` for a screen.
    ///
    /// # Errors
    /// What [`Recording::open`] refuses, and a recording without intervals.
    pub(super) fn open(path: &Path, is_paced: bool) -> anyhow::Result<Self> {
        Self::new(Recording::open(path)?, "REPLAY", is_paced)
            .with_context(|| format!("replaying \"{}\"", path.display()))
    }

    /// The recording built into the tool.
    ///
    /// # Errors
    /// If no temporary file can be made.
    pub(super) fn demo(is_paced: bool) -> anyhow::Result<Self> {
        Self::new(Recording::from_packed("the demo", DEMO)?, "DEMO", is_paced)
    }

    fn new(recording: Recording, name: &'static str, is_paced: bool) -> anyhow::Result<Self> {
        let start = recording.run().start_mono_ns;
        let ends = recording
            .times()
            .iter()
            .map(|time| time.end_mono_ns.saturating_sub(start))
            .collect();
        let player = Player::new(ends)
            .ok_or_else(|| anyhow!("it holds no interval: it ended before the first was over"))?;
        Ok(Self {
            ending: ending(recording.run()).into(),
            recording,
            player,
            name,
            pace: if is_paced {
                Pace::Start
            } else {
                Pace::AtOnce(false)
            },
        })
    }

    fn frame(&mut self) -> anyhow::Result<Frame> {
        let interval = self.recording.interval(self.player.index())?;
        let run = self.recording.run();
        let context = Context::of(run, &interval);
        let position = Position {
            name: self.name,
            index: self.player.index(),
            count: self.player.count(),
            at_ns: self.player.at_ns(),
            length_ns: self.player.length_ns(),
            start_real_ns: run.start_real_ns,
            speed: self.player.speed(),
            is_playing: self.player.is_playing(),
            ending: Arc::clone(&self.ending),
        };
        Ok(Frame {
            model: Arc::new(Model::new(interval.delta, Arc::new(context))),
            position: Some(position),
        })
    }
}

/// Why nothing follows the last interval.
fn ending(run: &Run) -> String {
    match &run.end {
        Some(end) => end.reason.clone(),
        None => "its end was not written: the recorder was killed, or still runs".to_owned(),
    }
}

impl Source for Replay {
    async fn next(&mut self) -> anyhow::Result<Option<Frame>> {
        match self.pace {
            Pace::Start => self.pace = Pace::Timed(Instant::now()),
            Pace::Timed(shown) => {
                let Some(stays) = self.player.stays_ns() else {
                    return std::future::pending().await;
                };
                sleep_until(shown + Duration::from_nanos(stays)).await;
                self.player.advance();
                self.pace = Pace::Timed(Instant::now());
            }
            Pace::AtOnce(false) => self.pace = Pace::AtOnce(true),
            Pace::AtOnce(true) => {
                if !self.player.advance() {
                    return Ok(None);
                }
            }
        }
        self.frame().map(Some)
    }

    fn control(&mut self, request: Control) -> anyhow::Result<Option<Frame>> {
        let Control::Play(play) = request else {
            // Everything recorded is there, at the interval it was recorded with.
            return Ok(None);
        };
        let before = self.player.index();
        let was_playing = self.player.is_playing();
        self.player.play(play);
        let goes_on = self.player.is_playing() && !was_playing;
        if self.player.index() != before || goes_on {
            self.pace = Pace::Timed(Instant::now());
        }
        self.frame().map(Some)
    }
}

#[cfg(test)]
mod tests;
