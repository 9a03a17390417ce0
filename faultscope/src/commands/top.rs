//! `top`: the live view, or batch output.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until};

use super::session::{Options, Session};
use crate::error::{Exit, Failure};
use crate::export::{Format, Selection, Writer};
use crate::model::Model;
use crate::render::order::Sort;
use crate::tui::{self, Control};

/// What `top` is asked for.
#[derive(Debug)]
pub struct Top {
    /// What is captured.
    pub capture: Options,
    /// Batch output rather than a screen.
    pub is_batch: bool,
    /// Intervals to write in batch mode; `None`: until a signal.
    pub count: Option<u64>,
    /// Length of an interval.
    pub interval: Duration,
    /// Format of batch output.
    pub format: Format,
    /// Rows of batch output at most.
    pub top: Option<usize>,
    /// The screen.
    pub screen: tui::Options,
}

/// Runs `top` until it is done, a signal comes or the user quits.
///
/// # Errors
/// [`Failure`] as in [`Session::start`], and what reading or writing refused;
/// a broken pipe is an error that ends quietly.
pub fn run(top: &Top) -> anyhow::Result<Exit> {
    let is_batch = top.is_batch || !io::stdout().is_terminal();
    if is_batch && !top.is_batch {
        // Nobody reads standard error: the output is right all the same.
        writeln!(
            io::stderr(),
            "faultscope: standard output is no terminal: batch mode"
        )
        .ok();
    }
    let mut session = Session::start(&top.capture)?;
    if is_batch {
        for message in session.messages(top.screen.start) {
            writeln!(io::stderr(), "faultscope: {message}").ok();
        }
    }
    let named = session.named_missing();
    let lost = runtime()?.block_on(async {
        if is_batch {
            batch(&mut session, top).await
        } else {
            screen(&mut session, top).await
        }
    })?;
    incomplete(&named, &lost)
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the event loop")
}

/// Status 4 with one message where something is missing.
fn incomplete(named: &[String], lost: &[(Arc<str>, u64)]) -> anyhow::Result<Exit> {
    let mut reasons = named.to_vec();
    reasons.extend(lost.iter().map(|(id, n)| format!("{n} lost ({id})")));
    if reasons.is_empty() {
        return Ok(Exit::Done);
    }
    Err(Failure::Incomplete(reasons.join("; ")).into())
}

fn losses(model: &Model) -> Vec<(Arc<str>, u64)> {
    model
        .lost
        .iter()
        .filter(|l| l.total > 0)
        .map(|l| (Arc::clone(&l.id), l.total))
        .collect()
}

/// Signals that end batch output.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Stop {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

async fn batch(session: &mut Session, top: &Top) -> anyhow::Result<Vec<(Arc<str>, u64)>> {
    let table = top.screen.start;
    session.show(table);
    let sort = top
        .screen
        .sort
        .as_deref()
        .and_then(|id| table.fields().iter().position(|f| f.id == id))
        .map(|field| Sort::natural(table.fields(), field));
    let selection = Selection {
        table,
        sort,
        word: top.screen.filter.clone().unwrap_or_default(),
        top: top.top,
    };
    let mut writer = Writer::new(top.format, selection)?;
    let mut stop = Stop::new().context("installing signal handlers")?;
    let mut ticks = Ticks::new(top.interval);
    // What the base reading and the choice of a table took belongs to no interval.
    session.tick()?;
    let mut lost = Vec::new();
    let mut written = 0;
    while top.count.is_none_or(|n| written < n) {
        tokio::select! {
            tick = ticks.next() => if let Some(model) = ticks.run(tick, session)? {
                lost = losses(&model);
                writer.write(&mut io::stdout().lock(), &model).context("writing to standard output")?;
                written += 1;
            },
            () = stop.wait() => break,
        }
    }
    Ok(lost)
}

async fn screen(session: &mut Session, top: &Top) -> anyhow::Result<Vec<(Arc<str>, u64)>> {
    let (models, shown) = watch::channel(None);
    let (asked, mut control) = mpsc::unbounded_channel();
    let (tell_end, mut end) = oneshot::channel();
    let options = top.screen.clone();
    // A terminal that takes no output must not hold up the collector.
    let screen = std::thread::Builder::new()
        .name("screen".into())
        .spawn(move || {
            let ended = runtime().and_then(|r| r.block_on(tui::run(shown, asked, options)));
            // Nobody listens only if the collector failed, which is the error then.
            tell_end.send(ended).ok();
        })
        .context("starting the screen's thread")?;
    let mut ticks = Ticks::new(top.interval);
    let mut lost = Vec::new();
    let ended = loop {
        tokio::select! {
            ended = &mut end => break ended.context("the screen ended without a word")?,
            Some(request) = control.recv() => match request {
                Control::Show(table) => session.show(table),
                Control::Interval(length) => ticks = Ticks::new(length),
            },
            tick = ticks.next() => match ticks.run(tick, session) {
                Ok(Some(model)) => {
                    lost = losses(&model);
                    // The screen has ended if nobody watches; the next turn sees it.
                    models.send(Some(Arc::new(model))).ok();
                }
                Ok(None) => {}
                Err(error) => break Err(error),
            },
        }
    };
    // Without models the screen ends and restores the terminal before any message.
    drop(models);
    screen
        .join()
        .map_err(|_| anyhow::anyhow!("the screen's thread panicked"))?;
    ended.map(|_| lost)
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
