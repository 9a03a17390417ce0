//! One line on the terminal while a recording goes on, and one at its end.

use std::io::{self, IsTerminal as _, Write as _};

use crate::render::time::format_span;

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
            is_terminal: io::stderr().is_terminal(),
            is_shown: false,
        }
    }

    /// Shows the line in place of the last one, and leaves the cursor at its beginning: what the command writes
    /// next takes its place. To be called only while the command is silent.
    pub(super) fn show(&mut self, progress: &Progress) {
        if self.is_terminal {
            write!(io::stderr(), "\r\x1b[Krecording {}\r", progress.text()).ok();
            self.is_shown = true;
        }
    }

    /// Takes the line away.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            write!(io::stderr(), "\r\x1b[K").ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_time_faults_losses_and_size() {
        let progress = Progress {
            elapsed_ns: 72_000_000_000,
            faults: 48_211,
            lost: 3,
            bytes: 1_300_000,
        };
        assert_eq!(progress.text(), "01:12, 48211 faults, 3 lost, 1.2 MiB");
    }
}
