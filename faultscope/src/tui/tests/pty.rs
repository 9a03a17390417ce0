//! The terminal is given back however the screen ends: the loop runs in a child
//! process whose terminal is a pty.

use crate::model::TableId;
use crate::render::fixture;
use crate::tui::{ColorChoice, Ended, Frame, Options};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Tells the child test that it is the child, and what to do.
const ROLE: &str = "FAULTSCOPE_PTY_CHILD";

const LEAVE_ALTERNATE: &str = "\u{1b}[?1049l";
const ENTER_ALTERNATE: &str = "\u{1b}[?1049h";
const SHOW_CURSOR: &str = "\u{1b}[?25h";

/// Longer than any machine takes to draw; a hang, not a measurement.
const PATIENCE: Duration = Duration::from_secs(30);

/// Not a test of its own, and done at once unless the tests below start it.
#[test]
fn child() -> anyhow::Result<()> {
    let Some(role) = std::env::var_os(ROLE) else {
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let model = Some(Frame::from(Arc::new(fixture::sized(40))));
    let (_models, receiver) = tokio::sync::watch::channel(model);
    let (control, _controls) = tokio::sync::mpsc::unbounded_channel();
    let options = Options {
        start: TableId::Overview,
        sort: None,
        filter: None,
        color: ColorChoice::Auto,
        ascii: false,
        mouse: true,
    };
    let ended = runtime.block_on(async {
        let screen = crate::tui::run(receiver, control, options);
        let crash = async {
            if role == "panic" {
                tokio::time::sleep(Duration::from_millis(300)).await;
                panic!("as asked");
            }
            std::future::pending::<()>().await;
        };
        tokio::select! { ended = screen => ended, () = crash => unreachable!() }
    })?;
    // The exit status carries what `run` said past the test harness.
    std::process::exit(match ended {
        Ended::Quit => 40,
        Ended::TerminalGone => 41,
        Ended::Signal(n) => 60 + n,
    });
}

struct Session {
    child: Child,
    /// `None` once the terminal is closed.
    master: Option<File>,
    reader: Option<JoinHandle<()>>,
    is_closed: Arc<AtomicBool>,
    output: Receiver<String>,
    seen: String,
    before: libc::termios,
    slave: File,
}

/// Passes on what the child prints; lets go of the terminal when told to.
struct Reader {
    master: File,
    is_closed: Arc<AtomicBool>,
    sender: Sender<String>,
}

impl Reader {
    fn run(mut self) {
        let mut buffer = [0; 4096];
        while !self.is_closed.load(Ordering::Relaxed) {
            let mut ready = libc::pollfd {
                fd: self.master.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: one valid pollfd is passed.
            if unsafe { libc::poll(&raw mut ready, 1, 20) } == 0 {
                continue;
            }
            let Ok(n @ 1..) = self.master.read(&mut buffer) else {
                return;
            };
            let text = String::from_utf8_lossy(&buffer[..n]).into_owned();
            if self.sender.send(text).is_err() {
                return;
            }
        }
    }
}

fn termios(of: &File) -> libc::termios {
    // SAFETY: `termios` is plain data for which all zeros is a value.
    let mut t: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open and `t` is a valid place to write to.
    let rc = unsafe { libc::tcgetattr(of.as_raw_fd(), &raw mut t) };
    assert_eq!(rc, 0, "tcgetattr: {}", io::Error::last_os_error());
    t
}

impl Session {
    fn start(role: &str) -> Self {
        Self::start_with(role, None)
    }

    /// Like `start`, with another standard input than the terminal.
    fn start_with(role: &str, input: Option<Stdio>) -> Self {
        // A fork between openpty and close-on-exec would hand this terminal to
        // the child of another test, and no hang-up would ever come.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock();
        let (mut master, mut slave) = (-1, -1);
        let mut size = libc::winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // SAFETY: the out-pointers are valid; name and termios may be null.
        let rc = unsafe {
            libc::openpty(
                &raw mut master,
                &raw mut slave,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                &raw mut size,
            )
        };
        assert_eq!(rc, 0, "openpty: {}", io::Error::last_os_error());
        for fd in [master, slave] {
            // SAFETY: the descriptor was just opened.
            let rc = unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
            assert_eq!(rc, 0, "fcntl: {}", io::Error::last_os_error());
        }
        // SAFETY: openpty opened both, and nothing else owns them.
        let (master, slave) =
            unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        let (master, slave) = (File::from(master), File::from(slave));
        let before = termios(&slave);
        let stdio = || Stdio::from(slave.try_clone().expect("dup"));
        let mut command = Command::new(std::env::current_exe().expect("the test binary"));
        command
            .args(["--exact", "tui::tests::pty::child", "--nocapture"])
            .args(["--test-threads", "1"])
            .env(ROLE, role)
            .env("NO_COLOR", "1")
            .stdin(input.unwrap_or_else(stdio))
            .stdout(stdio())
            .stderr(stdio());
        // A terminal that controls no session sends no SIGHUP.
        let is_controlling = role != "detached";
        // SAFETY: between fork and exec only setsid and ioctl are called, both
        // async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                let session = libc::setsid();
                if session < 0 || is_controlling && libc::ioctl(1, libc::TIOCSCTTY, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().expect("the test binary starts");
        let (sender, output) = channel();
        let is_closed = Arc::new(AtomicBool::new(false));
        let reader = Reader {
            master: master.try_clone().expect("dup"),
            is_closed: Arc::clone(&is_closed),
            sender,
        };
        let reader = std::thread::spawn(move || reader.run());
        Self {
            child,
            master: Some(master),
            reader: Some(reader),
            is_closed,
            output,
            seen: String::new(),
            before,
            slave,
        }
    }

    /// Reads until `word` has been printed, and forgets what came before it.
    fn wait_for(&mut self, word: &str) {
        loop {
            if let Some(at) = self.seen.find(word) {
                self.seen.drain(..at + word.len());
                return;
            }
            match self.output.recv_timeout(PATIENCE) {
                Ok(text) => self.seen.push_str(&text),
                Err(e) => panic!("{e} before {word:?} came; seen {:?}", self.seen),
            }
        }
    }

    fn resize(&self, columns: u16, rows: u16) {
        let size = libc::winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // SAFETY: TIOCSWINSZ reads one winsize, which is valid.
        let rc = unsafe { libc::ioctl(self.slave.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
        assert_eq!(rc, 0, "TIOCSWINSZ: {}", io::Error::last_os_error());
    }

    fn press(&mut self, keys: &str) {
        let master = self.master.as_mut().expect("the terminal is open");
        master.write_all(keys.as_bytes()).expect("keys are taken");
    }

    /// Closes every copy of the terminal's far end, as a lost connection does.
    fn close(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader ends");
        }
        self.master = None;
    }

    fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        // SAFETY: kill has no memory effects; the child is not reaped yet.
        let rc = unsafe { libc::kill(pid, signal) };
        assert_eq!(rc, 0, "kill: {}", io::Error::last_os_error());
    }

    /// Waits until the child has stopped (not ended).
    fn wait_stopped(&self) {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        let mut status = 0;
        // SAFETY: `status` is a valid place; WUNTRACED reports, reaps nothing
        // of a child that only stopped.
        let got = unsafe { libc::waitpid(pid, &raw mut status, libc::WUNTRACED) };
        assert_eq!(got, pid);
        assert!(libc::WIFSTOPPED(status), "status {status:#x}");
    }

    fn is_cooked(&self) -> bool {
        let now = termios(&self.slave);
        now.c_lflag == self.before.c_lflag && now.c_iflag == self.before.c_iflag
    }

    /// Waits for the end; gives the exit code.
    fn code(&mut self) -> Option<i32> {
        let status = self.child.wait().expect("the child is ours");
        assert_eq!(status.signal(), None, "killed; seen {:?}", self.seen);
        status.code()
    }

    fn assert_restored(&mut self) {
        self.wait_for(LEAVE_ALTERNATE);
        self.wait_for(SHOW_CURSOR);
        assert!(self.is_cooked(), "the terminal is still raw");
    }
}

fn shown(role: &str) -> Session {
    let mut s = Session::start(role);
    s.wait_for(ENTER_ALTERNATE);
    s.wait_for("LIVE");
    s.wait_for("drops");
    assert!(
        !s.is_cooked(),
        "the terminal is raw while the screen is shown"
    );
    s
}

#[test]
fn keys_quit_and_restore() {
    for keys in ["q", "\u{3}"] {
        let mut s = shown("run");
        s.press(keys);
        assert_eq!(s.code(), Some(40), "{keys:?}");
        s.assert_restored();
    }
}

#[test]
fn quitting_with_the_screen_kept_prints_it_after_the_terminal_is_restored() {
    let mut s = shown("run");
    s.press("Q");
    assert_eq!(s.code(), Some(40));
    s.assert_restored();
    s.wait_for("minor 12.3k/s");
}

#[test]
fn signals_end_and_restore() {
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
        let mut s = shown("run");
        s.signal(signal);
        assert_eq!(s.code(), Some(60 + signal));
        s.assert_restored();
    }
}

#[test]
fn a_panic_restores_before_its_message() {
    let mut s = shown("panic");
    s.wait_for(LEAVE_ALTERNATE);
    s.wait_for(SHOW_CURSOR);
    s.wait_for("as asked");
    assert!(s.is_cooked(), "the terminal is still raw");
    assert_eq!(s.code(), Some(101));
}

#[test]
fn stopping_gives_the_terminal_back_and_going_on_takes_it_again() {
    for by_key in [true, false] {
        let mut s = shown("run");
        if by_key {
            s.press("\u{1a}");
        } else {
            s.signal(libc::SIGTSTP);
        }
        s.wait_stopped();
        s.assert_restored();
        s.signal(libc::SIGCONT);
        s.wait_for(ENTER_ALTERNATE);
        s.wait_for("LIVE");
        assert!(!s.is_cooked());
        s.press("q");
        assert_eq!(s.code(), Some(40));
        s.assert_restored();
    }
}

#[test]
fn a_closed_terminal_ends_the_screen() {
    // Several times: whether the hang-up or the signal comes first is a race.
    for _ in 0..5 {
        let mut s = shown("run");
        s.close();
        let code = s.code();
        let either = [Some(41), Some(60 + libc::SIGHUP)];
        assert!(either.contains(&code), "{code:?}");
    }
}

#[test]
fn a_hang_up_ends_the_screen_also_where_no_signal_tells_of_it() {
    let mut s = shown("detached");
    s.close();
    assert_eq!(s.code(), Some(41));
}

#[test]
fn without_keys_the_terminal_is_not_raw_and_ctrl_c_is_a_signal() {
    let mut s = Session::start_with("run", Some(Stdio::null()));
    s.wait_for("drops");
    assert!(s.is_cooked());
    s.press("q\u{3}");
    assert_eq!(s.code(), Some(60 + libc::SIGINT));
    s.assert_restored();
}

#[test]
fn a_new_size_is_drawn_in_full() {
    let mut s = shown("run");
    s.resize(100, 30);
    s.wait_for("\u{1b}[2J");
    // The last line is the thirtieth now.
    s.wait_for("\u{1b}[30;1H");
    s.press("q");
    assert_eq!(s.code(), Some(40));
}
