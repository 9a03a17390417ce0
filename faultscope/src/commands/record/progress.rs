//! One line on the terminal while a recording goes on, and one at its end.

use std::ffi::OsStr;
use std::io::{self, IsTerminal as _, Write as _};
use std::mem::MaybeUninit;

use crate::render::time::format_span;
use crate::run::Relay;

/// Columns of a terminal that does not tell.
const COLUMNS: usize = 80;
/// Takes a line away, the cursor at its beginning afterwards.
const ERASE: &str = "\r\x1b[K";

/// What a recording has so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Time recorded, ns.
    pub(super) elapsed_ns: u64,
    /// Faults of the machine.
    pub(super) faults: u64,
    /// Events lost.
    pub(super) lost: u64,
    /// Size of the file, bytes.
    pub(super) bytes: u64,
}

impl Progress {
    /// `00:12, 48211 faults, 0 lost, 1.2 MiB`.
    pub(super) fn text(&self) -> String {
        format!(
            "{}, {} faults, {} lost, {:.1} MiB",
            format_span(self.elapsed_ns),
            self.faults,
            self.lost,
            self.bytes as f64 / f64::from(1 << 20)
        )
    }

    /// What fits into one line of a terminal, which must not go on to the next: that one would stay.
    fn line(&self, columns: usize) -> String {
        // In the last column some terminals go on to the next line at once.
        let room = columns.saturating_sub(1);
        let text = self.text();
        let long = format!("recording {text}");
        let mut line = if long.len() <= room { long } else { text };
        // ASCII, so bytes are columns.
        line.truncate(room);
        line
    }
}

/// The line on standard error, if that is a terminal.
#[derive(Debug)]
pub(super) struct Line {
    is_terminal: bool,
    is_shown: bool,
}

impl Line {
    pub(super) fn new() -> Self {
        Self {
            is_terminal: io::stderr().is_terminal() && can_erase(std::env::var_os("TERM")),
            is_shown: false,
        }
    }

    /// Shows the line in place of the last one, and leaves the cursor at its beginning.
    ///
    /// Not behind a line that the command has not ended, such as a question. What it writes next takes the line away.
    pub(super) fn show(&mut self, progress: &Progress, relay: Option<&Relay>) {
        let is_free = relay.is_none_or(Relay::is_at_line_start);
        if !(self.is_terminal && is_free && is_foreground()) {
            return;
        }
        let note = || {
            if let Some(relay) = relay {
                relay.set_line_shown();
            }
        };
        // Before and after: output that comes in between finds the line, or takes it away the next time.
        note();
        write!(io::stderr(), "{ERASE}{}\r", progress.line(columns())).ok();
        note();
        self.is_shown = true;
    }

    /// Takes the line away, unless what the command wrote has done so.
    pub(super) fn clear(&mut self, relay: Option<&Relay>) {
        let is_there = relay.is_none_or(Relay::take_line_shown);
        if std::mem::take(&mut self.is_shown) && is_there {
            write!(io::stderr(), "{ERASE}").ok();
        }
    }
}

/// Whether a terminal of this type has the sequence that takes a line away.
fn can_erase(term: Option<impl AsRef<OsStr>>) -> bool {
    term.is_some_and(|term| !term.as_ref().is_empty() && term.as_ref() != "dumb")
}

/// Whether the terminal is ours to write on; in the background it belongs to another command.
fn is_foreground() -> bool {
    // SAFETY: plain numbers.
    let (owner, own) = unsafe { (libc::tcgetpgrp(libc::STDERR_FILENO), libc::getpgrp()) };
    // A terminal that is not our controlling one does not tell.
    owner < 0 || owner == own
}

/// Width of the terminal now: it may change.
fn columns() -> usize {
    let mut size = MaybeUninit::<libc::winsize>::zeroed();
    // SAFETY: the kernel fills the record, or leaves it zero.
    let size = unsafe {
        libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, size.as_mut_ptr());
        size.assume_init()
    };
    match size.ws_col {
        0 => COLUMNS,
        columns => usize::from(columns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRESS: Progress = Progress {
        elapsed_ns: 72_000_000_000,
        faults: 48_211,
        lost: 3,
        bytes: 1_300_000,
    };

    #[test]
    fn a_line_has_time_faults_losses_and_size() {
        assert_eq!(PROGRESS.text(), "01:12, 48211 faults, 3 lost, 1.2 MiB");
    }

    #[test]
    fn a_line_never_reaches_the_last_column() {
        assert_eq!(
            PROGRESS.line(80),
            "recording 01:12, 48211 faults, 3 lost, 1.2 MiB"
        );
        assert_eq!(PROGRESS.line(40), "01:12, 48211 faults, 3 lost, 1.2 MiB");
        assert_eq!(PROGRESS.line(20), "01:12, 48211 faults");
        for columns in 0..100 {
            assert!(
                PROGRESS.line(columns).len() < columns.max(1),
                "{columns} columns"
            );
        }
    }

    #[test]
    fn a_terminal_that_cannot_erase_gets_no_line() {
        assert!(can_erase(Some("xterm")));
        assert!(!can_erase(Some("dumb")) && !can_erase(Some("")) && !can_erase(None::<&str>));
    }
}
