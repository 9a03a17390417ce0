//! The terminal: taken over by a guard, given back however the program ends.

use crossterm::cursor::Show;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, style};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::io::{self, Stdout, Write};
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// True while the screen is ours; a panic at another time leaves the terminal alone.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while the screen is ours; `Drop` restores it.
pub(crate) struct Term {
    /// Never dropped: ratatui's destructor reports a terminal that is gone by
    /// `eprintln!`, which panics when standard error is that terminal.
    pub(crate) terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    has_keys: bool,
    has_mouse: bool,
}

impl Term {
    /// Takes the terminal over: alternate screen, and where there are keys, raw
    /// mode and the mouse if asked. Without keys Ctrl-C has to stay a signal.
    ///
    /// # Errors
    /// If standard output is no terminal, or it went away.
    pub(crate) fn take(has_keys: bool, has_mouse: bool) -> io::Result<Self> {
        restore_on_panic();
        // crossterm drops colour, and reverse video with it, when NO_COLOR is
        // set; the theme decides about colour alone.
        style::force_color_output(true);
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let mut term = Self {
            terminal: ManuallyDrop::new(terminal),
            has_keys,
            has_mouse: has_mouse && has_keys,
        };
        term.enter()?;
        Ok(term)
    }

    /// Takes the terminal again, after a stop; harmless if it is ours already.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        IS_TAKEN.store(true, Ordering::SeqCst);
        if self.has_keys {
            enable_raw_mode()?;
        }
        execute!(io::stdout(), EnterAlternateScreen)?;
        if self.has_mouse {
            execute!(io::stdout(), EnableMouseCapture)?;
        }
        self.repaint()
    }

    /// Clears the terminal, so that the next draw writes every cell.
    ///
    /// `Terminal::clear` would ask the terminal where its cursor is and wait
    /// for an answer that the event stream may take.
    pub(crate) fn repaint(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    /// Gives the terminal back, before a stop.
    pub(crate) fn leave(&mut self) {
        restore();
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        restore();
    }
}

/// Every step is tried, whatever the others did: the terminal may be gone.
fn restore() {
    IS_TAKEN.store(false, Ordering::SeqCst);
    let mut out = io::stdout();
    let steps = [
        execute!(out, DisableMouseCapture),
        execute!(out, LeaveAlternateScreen),
        execute!(out, Show),
        disable_raw_mode(),
        out.flush(),
    ];
    // Nothing can be done about a terminal that does not take its restoring.
    for step in steps {
        step.unwrap_or(());
    }
}

/// Restores the terminal before the message of a panic is printed.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let next = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if IS_TAKEN.load(Ordering::SeqCst) {
                restore();
            }
            next(info);
        }));
    });
}
