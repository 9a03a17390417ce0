//! The loop: one select over keys, frames and signals, and a draw after each.

use super::action::{Action, Outcome};
use super::input::Input;
use super::state::State;
use super::term::Term;
use super::theme::{Environment, Theme};
use super::{Control, Ended, Frame, Options, keys, screen, update};
use crate::render::order::Sort;
use anyhow::{Context, bail};
use crossterm::event::{Event, KeyEventKind};
use ratatui::buffer::Buffer;
use std::io::{self, Write};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Frames are at least this far apart: at most ten in a second.
const FRAME: Duration = Duration::from_millis(100);

/// Shows the frames as they come until the user, a signal or the terminal ends it.
///
/// The terminal is restored on return, on an error and on a panic. Stopping
/// (Ctrl-Z, SIGTSTP) gives the terminal back and takes it again on SIGCONT.
///
/// # Errors
/// If `options.sort` names no field of the start table, if the terminal cannot
/// be taken over, or if signal handlers cannot be installed.
pub async fn run(
    frames: watch::Receiver<Option<Frame>>,
    control: mpsc::UnboundedSender<Control>,
    options: Options,
) -> anyhow::Result<Ended> {
    let theme = Theme::new(options.color, options.ascii, Environment::read());
    let state = start(&options)?;
    let signals = Signals::install().context("cannot install signal handlers")?;
    let term =
        Term::take(Input::has_keys(), options.mouse).context("cannot take over the terminal")?;
    let mut screen = Screen {
        state,
        theme,
        term: Some(term),
        control,
        is_stopped: false,
        is_dirty: true,
        next_frame: Instant::now(),
    };
    screen.tell(Control::Show(options.start));
    let ended = screen.run(frames, signals).await;
    match ended {
        // A terminal that hung up shows as an I/O error on it.
        Err(e) if is_gone(&e) => Ok(Ended::TerminalGone),
        other => other.context("cannot draw on the terminal"),
    }
}

fn is_gone(e: &io::Error) -> bool {
    use rustix::io::Errno;
    e.kind() == io::ErrorKind::BrokenPipe
        || [Errno::IO, Errno::NXIO, Errno::NODEV]
            .iter()
            .any(|errno| e.raw_os_error() == Some(errno.raw_os_error()))
}

/// The state that the options ask for.
fn start(options: &Options) -> anyhow::Result<State> {
    let mut state = State::new(options.start);
    if let Some(id) = &options.sort {
        let fields = options.start.fields();
        let Some(field) = fields.iter().position(|f| f.id == id) else {
            let ids: Vec<&str> = fields.iter().map(|f| f.id).collect();
            bail!(
                "cannot sort \"{}\" by {id:?}: it has no such field; use one of {}",
                options.start.id(),
                ids.join(", ")
            );
        };
        state.pane_mut().sort = Some(Sort::natural(fields, field));
    }
    if let Some(word) = &options.filter {
        state.word.clone_from(word);
    }
    Ok(state)
}

struct Signals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
    stop: Signal,
    go_on: Signal,
    resize: Signal,
}

/// What a signal asks for.
enum Asked {
    End(SignalKind),
    Stop,
    GoOn,
    Resize,
}

impl Signals {
    fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            stop: signal(SignalKind::from_raw(libc::SIGTSTP))?,
            go_on: signal(SignalKind::from_raw(libc::SIGCONT))?,
            resize: signal(SignalKind::window_change())?,
        })
    }

    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::End(SignalKind::terminate()),
            _ = self.hangup.recv() => Asked::End(SignalKind::hangup()),
            _ = self.interrupt.recv() => Asked::End(SignalKind::interrupt()),
            _ = self.stop.recv() => Asked::Stop,
            _ = self.go_on.recv() => Asked::GoOn,
            _ = self.resize.recv() => Asked::Resize,
        }
    }
}

struct Screen {
    state: State,
    theme: Theme,
    /// `None` once the terminal is given back for good.
    term: Option<Term>,
    control: mpsc::UnboundedSender<Control>,
    /// The terminal is the shell's until SIGCONT comes.
    is_stopped: bool,
    is_dirty: bool,
    next_frame: Instant,
}

impl Screen {
    async fn run(
        &mut self,
        mut frames: watch::Receiver<Option<Frame>>,
        mut signals: Signals,
    ) -> io::Result<Ended> {
        let mut input = Input::start()?;
        self.resize()?;
        frames.mark_changed();
        loop {
            if self.may_draw() && Instant::now() >= self.next_frame {
                self.draw()?;
            }
            let is_waiting = self.may_draw();
            let outcome = tokio::select! {
                changed = frames.changed() => {
                    if changed.is_err() {
                        return Ok(Ended::Quit);
                    }
                    let frame = frames.borrow_and_update().clone();
                    frame.map_or(Outcome::Unchanged, |f| update::arrive(&mut self.state, f))
                }
                event = input.next() => match event {
                    Some(event) => self.event(&event),
                    None => return Ok(Ended::TerminalGone),
                },
                asked = signals.next() => match asked {
                    Asked::End(kind) => return Ok(Ended::Signal(kind.as_raw_value())),
                    Asked::Stop => Outcome::Suspend,
                    Asked::GoOn => {
                        self.take_again()?;
                        Outcome::Repaint
                    }
                    Asked::Resize => self.resize()?,
                },
                () = tokio::time::sleep_until(self.next_frame), if is_waiting => Outcome::Draw,
            };
            match outcome {
                Outcome::Unchanged => {}
                Outcome::Draw => self.is_dirty = true,
                Outcome::Repaint => {
                    if let Some(term) = &mut self.term {
                        term.repaint()?;
                    }
                    self.is_dirty = true;
                }
                Outcome::Send(control) => {
                    self.tell(control);
                    self.is_dirty = true;
                }
                Outcome::Suspend => self.suspend()?,
                Outcome::Quit => return Ok(Ended::Quit),
                Outcome::QuitPrinting => {
                    self.print_last()?;
                    return Ok(Ended::Quit);
                }
            }
        }
    }

    fn resize(&mut self) -> io::Result<Outcome> {
        let Some(term) = &self.term else {
            return Ok(Outcome::Unchanged);
        };
        let size = term.terminal.size()?;
        Ok(update::resize(&mut self.state, size.width, size.height))
    }

    fn event(&mut self, event: &Event) -> Outcome {
        let action = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                keys::action_for(self.state.place(), key)
            }
            Event::Mouse(mouse) => screen::action_at(&self.state, &self.theme, mouse),
            _ => None,
        };
        action.map_or(Outcome::Unchanged, |a: Action| {
            update::update(&mut self.state, a)
        })
    }

    /// A collector that is gone ends the model channel; that ends the loop.
    fn tell(&self, control: Control) {
        self.control.send(control).unwrap_or(());
    }

    fn may_draw(&self) -> bool {
        self.is_dirty && !self.is_stopped
    }

    fn draw(&mut self) -> io::Result<()> {
        let (state, theme) = (&self.state, &self.theme);
        if let Some(term) = &mut self.term {
            term.terminal.draw(|frame| {
                let area = frame.area();
                screen::draw(state, theme, area, frame.buffer_mut());
            })?;
        }
        self.is_dirty = false;
        self.next_frame = Instant::now() + FRAME;
        Ok(())
    }

    /// Gives the terminal back and stops; SIGCONT takes it again.
    ///
    /// The stop may reach another thread first and this one a little later,
    /// so nothing here may follow it.
    fn suspend(&mut self) -> io::Result<()> {
        if let Some(term) = &mut self.term {
            term.leave();
        }
        self.is_stopped = true;
        // SIGTSTP itself is caught, so the stop has to be one that is not.
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
        Ok(())
    }

    fn take_again(&mut self) -> io::Result<()> {
        if let Some(term) = &mut self.term {
            term.enter()?;
        }
        self.is_stopped = false;
        self.is_dirty = true;
        Ok(())
    }

    /// Leaves the last screen as text where the shell goes on.
    fn print_last(&mut self) -> io::Result<()> {
        let Some(mut term) = self.term.take() else {
            return Ok(());
        };
        let (state, theme) = (&self.state, &self.theme);
        let frame = term.terminal.draw(|frame| {
            let area = frame.area();
            screen::draw(state, theme, area, frame.buffer_mut());
        })?;
        let text = buffer_text(frame.buffer);
        drop(term);
        io::stdout().write_all(text.as_bytes())
    }
}

/// The characters of a buffer, line by line.
pub(crate) fn buffer_text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut line = String::new();
        for x in buffer.area.left()..buffer.area.right() {
            line.push_str(buffer.cell((x, y)).map_or(" ", |c| c.symbol()));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
