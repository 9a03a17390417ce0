//! Keys and clicks, read by a thread of their own.
//!
//! Not crossterm's `EventStream`: crossterm 0.29 reads a terminal that hung up
//! in an endless loop (event/source/unix/mio.rs, `try_read`), and its stream
//! does so on the thread that polls it, where no signal is handled any more.

use crossterm::event::{Event, poll, read};
use std::io::{self, IsTerminal};
use std::os::fd::AsRawFd;
use std::time::Duration;
use tokio::sync::mpsc;

/// What the terminal sends.
pub(crate) struct Input {
    /// `None` where standard input is no terminal: then there are no keys.
    events: Option<mpsc::UnboundedReceiver<Event>>,
}

impl Input {
    /// True if keys can be read, that is, standard input is a terminal.
    pub(crate) fn has_keys() -> bool {
        io::stdin().is_terminal()
    }

    /// Starts reading. The thread ends with the terminal or the process.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start() -> io::Result<Self> {
        if !Self::has_keys() {
            return Ok(Self { events: None });
        }
        let (sender, events) = mpsc::unbounded_channel();
        std::thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || forward(&sender))?;
        Ok(Self {
            events: Some(events),
        })
    }

    /// The next event; `None` once the terminal is gone.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        match &mut self.events {
            Some(events) => events.recv().await,
            None => std::future::pending().await,
        }
    }
}

/// Sends events on until the terminal hangs up or nobody listens.
fn forward(sender: &mpsc::UnboundedSender<Event>) {
    while wait_for_input() {
        loop {
            let Ok(event) = read() else { return };
            if sender.send(event).is_err() {
                return;
            }
            // One read may have brought several events, which wait inside crossterm.
            match poll(Duration::ZERO) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => return,
            }
        }
    }
}

/// Waits for bytes on standard input; false once it hung up.
fn wait_for_input() -> bool {
    let mut input = libc::pollfd {
        fd: io::stdin().as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    loop {
        // SAFETY: one valid pollfd is passed, and outlives the call.
        let ready = unsafe { libc::poll(&raw mut input, 1, -1) };
        if ready < 0 {
            if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return false;
        }
        let gone = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
        return input.revents & gone == 0;
    }
}
