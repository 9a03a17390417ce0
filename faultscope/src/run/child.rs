//! The command itself: start, end, what it used.

use std::ffi::{CString, OsString};
use std::io::{self, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread::JoinHandle;

use thiserror::Error;

use super::relay::Inlets;
use super::signals::Signals;
use crate::host::usage::Usage;

/// A command to run.
#[derive(Debug, Clone, Default)]
pub struct Command {
    /// Arguments, the program first.
    pub argv: Vec<OsString>,
    /// Environment variables set on top of our own.
    pub environment: Vec<(String, String)>,
}

/// Why a command was not started.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// No such program in the path.
    #[error("command \"{program}\" was not found; give its path, or see that it is in PATH")]
    NotFound {
        /// What was asked for, scrubbed.
        program: String,
    },
    /// The program is there and cannot be run.
    #[error("command \"{program}\" cannot be run: {source}")]
    NotRunnable {
        /// What was asked for, scrubbed.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl SpawnError {
    /// Exit status as shells have it: 127 not found, 126 not runnable.
    #[must_use]
    pub const fn status(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotRunnable { .. } => 126,
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// When, by the clock the caller gave.
    pub at_ns: u64,
    /// Exit status, if it exited.
    pub code: Option<i32>,
    /// Signal that ended it, if one did.
    pub signal: Option<i32>,
    /// What it and its descendants that were waited for used; absent if somebody else reaped it.
    pub usage: Option<Usage>,
}

impl Ended {
    /// Exit status as shells have it: the command's, or 128 and the signal.
    #[must_use]
    pub fn status(&self) -> u8 {
        let status = self.code.or(self.signal.map(|n| 128 + n));
        // Somebody else took the status: what became of the command is not known.
        status.and_then(|n| u8::try_from(n).ok()).unwrap_or(125)
    }
}

/// A started command.
///
/// A thread waits for it, so that its end has an exact time however busy we are. Dropping this leaves the command
/// alone.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    started_ns: u64,
    /// Readable once the command has ended.
    told: UnixStream,
    waiter: Option<JoinHandle<Option<u64>>>,
}

impl Child {
    /// Starts a command in our place: our directory, standard input, process group and environment, with the
    /// additions of `command`. Its output goes into `inlets`; the signals we take are not blocked in it.
    ///
    /// # Errors
    /// [`SpawnError`] if there is nothing to run; a thread or socket that the kernel refused counts as such.
    pub fn start(
        command: &Command,
        inlets: Inlets,
        signals: &Signals,
        clock: fn() -> u64,
    ) -> Result<Self, SpawnError> {
        let program = command.argv.first().map_or(&b""[..], |p| p.as_bytes());
        let named = crate::name::scrub(program);
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => SpawnError::NotFound {
                program: named.clone(),
            },
            _ => SpawnError::NotRunnable {
                program: named.clone(),
                source,
            },
        };
        let (told, mut teller) = UnixStream::pair().map_err(refused)?;
        let (tell_pid, pid) = mpsc::channel();
        // Before the command, which must not run without somebody to wait for it.
        let waiter = std::thread::Builder::new()
            .name("waiter".into())
            .spawn(move || {
                wait_unreaped(pid.recv().ok()?);
                let at_ns = clock();
                // We are gone if nobody hears it.
                teller.write_all(&[0]).ok();
                Some(at_ns)
            })
            .map_err(refused)?;
        let started_ns = clock();
        let pid = spawn(command, &inlets, signals.before()).map_err(refused)?;
        drop(inlets);
        // The thread waits for just this.
        tell_pid.send(pid).ok();
        Ok(Self {
            pid,
            started_ns,
            told,
            waiter: Some(waiter),
        })
    }

    /// Process id.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// When it was started, by the clock given.
    #[must_use]
    pub const fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// Sends a signal; a command that has ended does not mind.
    pub fn signal(&self, number: i32) {
        // Until it is reaped, which only `end` does, the number is no other process's.
        if let Ok(pid) = libc::pid_t::try_from(self.pid)
            && self.waiter.is_some()
        {
            // SAFETY: plain numbers.
            unsafe { libc::kill(pid, number) };
        }
    }

    /// Waits for the end of the command, reaps it, and says how it ended.
    pub fn end(&mut self) -> Ended {
        let at_ns = self.waiter.take().and_then(|w| w.join().ok().flatten());
        // Nothing more is written there.
        self.told.read_exact(&mut [0]).ok();
        reap(self.pid, at_ns.unwrap_or_default())
    }
}

impl AsFd for Child {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }
}

/// Starts a program without copying our memory map, which is large while maps of BPF programs are in it; its id.
fn spawn(command: &Command, inlets: &Inlets, mask: &libc::sigset_t) -> io::Result<u32> {
    let argv = strings(command.argv.iter().map(|a| a.as_bytes().to_vec()))?;
    let is_replaced = |name: &[u8]| {
        command
            .environment
            .iter()
            .any(|(k, _)| k.as_bytes() == name)
    };
    let environment = std::env::vars_os()
        .filter(|(name, _)| !is_replaced(name.as_bytes()))
        .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat())
        .chain(
            command
                .environment
                .iter()
                .map(|(k, v)| format!("{k}={v}").into_bytes()),
        );
    let environment = strings(environment)?;
    let pointers = |strings: &[CString]| -> Vec<*mut libc::c_char> {
        let all = strings.iter().map(|s| s.as_ptr().cast_mut());
        all.chain([std::ptr::null_mut()]).collect()
    };
    let Some(program) = argv.first() else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let mut actions = MaybeUninit::<libc::posix_spawn_file_actions_t>::uninit();
    let mut attributes = MaybeUninit::<libc::posix_spawnattr_t>::uninit();
    let mut pid = 0;
    // SAFETY: both objects are initialised before use and destroyed after; the arrays end in null and, like the
    // strings they point to, outlive the call, which returns once the program runs or could not be run.
    let failed = unsafe {
        let (actions, attributes) = (actions.as_mut_ptr(), attributes.as_mut_ptr());
        libc::posix_spawn_file_actions_init(actions);
        libc::posix_spawnattr_init(attributes);
        let mut default = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(default.as_mut_ptr());
        // Ours is ignored, which a new program would inherit.
        libc::sigaddset(default.as_mut_ptr(), libc::SIGPIPE);
        libc::posix_spawnattr_setsigdefault(attributes, default.as_ptr());
        libc::posix_spawnattr_setsigmask(attributes, mask);
        let flags = libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK;
        // Both are single low bits.
        libc::posix_spawnattr_setflags(attributes, flags as libc::c_short);
        for (pipe, to) in [
            (&inlets.stdout, libc::STDOUT_FILENO),
            (&inlets.stderr, libc::STDERR_FILENO),
        ] {
            libc::posix_spawn_file_actions_adddup2(actions, pipe.as_raw_fd(), to);
        }
        let failed = libc::posix_spawnp(
            &raw mut pid,
            program.as_ptr(),
            actions,
            attributes,
            pointers(&argv).as_ptr(),
            pointers(&environment).as_ptr(),
        );
        libc::posix_spawn_file_actions_destroy(actions);
        libc::posix_spawnattr_destroy(attributes);
        failed
    };
    if failed != 0 {
        return Err(io::Error::from_raw_os_error(failed));
    }
    u32::try_from(pid).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Strings for the kernel; one with a NUL inside cannot be given to a program.
fn strings(all: impl Iterator<Item = Vec<u8>>) -> io::Result<Vec<CString>> {
    all.map(|bytes| CString::new(bytes).map_err(io::Error::from))
        .collect()
}

/// Waits for the end of a child and leaves it a zombie, so that its number stays its own.
fn wait_unreaped(pid: u32) {
    loop {
        let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
        // SAFETY: the kernel fills the record.
        let done = unsafe {
            libc::waitid(
                libc::P_PID,
                pid,
                info.as_mut_ptr(),
                libc::WEXITED | libc::WNOWAIT,
            )
        };
        if done == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}

fn reap(pid: u32, at_ns: u64) -> Ended {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let Ok(raw) = libc::pid_t::try_from(pid) else {
        return Ended::default();
    };
    loop {
        // SAFETY: a status word and a record for the kernel to fill.
        let done = unsafe { libc::wait4(raw, &raw mut status, 0, usage.as_mut_ptr()) };
        if done == raw {
            break;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Ended {
                at_ns,
                ..Ended::default()
            };
        }
    }
    // SAFETY: zeroed, then filled by the kernel.
    let usage = unsafe { usage.assume_init() };
    Ended {
        at_ns,
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        usage: Some(Usage::from(&usage)),
    }
}
