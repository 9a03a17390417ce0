//! `top`: the live view or a replay, on a screen or as batch output.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};

use super::live::Live;
use super::replay::Replay;
use super::session::{Options, Session};
use crate::error::{Exit, Failure};
use crate::export::{Format, Selection, Writer};
use crate::model::Model;
use crate::render::order::Sort;
use crate::tui::{self, Control, Frame};

/// Where `top` has its numbers from.
#[derive(Debug)]
pub enum From {
    /// The live kernel.
    Kernel(Box<Options>),
    /// A recording.
    Recording(PathBuf),
    /// The recording that ships with the tool.
    Demo,
}

/// What `top` is asked for.
#[derive(Debug)]
pub struct Top {
    /// Where the numbers come from.
    pub from: From,
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
/// [`Failure`] as in [`Session::start`], a recording that cannot be read, and what
/// reading or writing refused;
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
    let mut replay = match &top.from {
        From::Kernel(options) => return live(options, top, is_batch),
        From::Recording(path) => Replay::open(path, !is_batch)?,
        From::Demo => Replay::demo(!is_batch)?,
    };
    let lost = runtime()?.block_on(async {
        if is_batch {
            batch(&mut replay, top).await
        } else {
            // What the recording lost is on the screen; looking at it lost nothing.
            screen(&mut replay, top).await.map(|_| Vec::new())
        }
    })?;
    incomplete(&[], &lost)
}

/// `top` of the live kernel.
fn live(options: &Options, top: &Top, is_batch: bool) -> anyhow::Result<Exit> {
    let mut session = Session::start(options)?;
    if is_batch {
        for message in session.messages(top.screen.start) {
            writeln!(io::stderr(), "faultscope: {message}").ok();
        }
    }
    let named = session.named_missing();
    let lost = runtime()?.block_on(async {
        if is_batch {
            session.show(top.screen.start);
            let mut live = Live::new(session, top.interval);
            // What the base reading and the choice of a table took belongs to no interval.
            live.discard()?;
            batch(&mut live, top).await
        } else {
            screen(&mut Live::new(session, top.interval), top).await
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

/// Where frames come from.
pub(super) trait Source {
    /// The next frame, once it is due; `None` when there will be no other.
    ///
    /// May be given up while it waits, without loss.
    async fn next(&mut self) -> anyhow::Result<Option<Frame>>;

    /// Does what the screen asks for; the frame to show at once, if there is one.
    fn control(&mut self, request: Control) -> anyhow::Result<Option<Frame>>;
}

/// Writes frames until there are enough, there are no more, or a signal comes.
async fn batch(source: &mut impl Source, top: &Top) -> anyhow::Result<Vec<(Arc<str>, u64)>> {
    let table = top.screen.start;
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
    let mut lost = Vec::new();
    let mut written = 0;
    while top.count.is_none_or(|n| written < n) {
        tokio::select! {
            frame = source.next() => {
                let Some(frame) = frame? else { break };
                lost = losses(&frame.model);
                writer.write(&mut io::stdout().lock(), &frame.model).context("writing to standard output")?;
                written += 1;
            }
            () = stop.wait() => break,
        }
    }
    Ok(lost)
}

/// Shows frames until the user, a signal or the terminal ends it.
async fn screen(source: &mut impl Source, top: &Top) -> anyhow::Result<Vec<(Arc<str>, u64)>> {
    let (frames, shown) = watch::channel(None);
    let (asked, mut control) = mpsc::unbounded_channel();
    let (tell_end, mut end) = oneshot::channel();
    let options = top.screen.clone();
    // A terminal that takes no output must not hold up the collector.
    let screen = std::thread::Builder::new()
        .name("screen".into())
        .spawn(move || {
            let ended = runtime().and_then(|r| r.block_on(tui::run(shown, asked, options)));
            // Nobody listens only if the source failed, which is the error then.
            tell_end.send(ended).ok();
        })
        .context("starting the screen's thread")?;
    let mut lost = Vec::new();
    let ended = loop {
        let frame = tokio::select! {
            ended = &mut end => break ended.context("the screen ended without a word")?,
            Some(request) = control.recv() => source.control(request),
            frame = source.next() => frame,
        };
        match frame {
            Ok(Some(frame)) => {
                lost = losses(&frame.model);
                // The screen has ended if nobody watches; the next turn sees it.
                frames.send(Some(frame)).ok();
            }
            Ok(None) => {}
            Err(error) => break Err(error),
        }
    };
    // Without frames the screen ends and restores the terminal before any message.
    drop(frames);
    screen
        .join()
        .map_err(|_| anyhow::anyhow!("the screen's thread panicked"))?;
    ended.map(|_| lost)
}
