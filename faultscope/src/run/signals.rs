//! Signals that would end us, as something to wait for.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Signals that are taken: those a user or a service manager ends a command with.
const SIGNALS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Its number.
    pub number: i32,
    /// A key of the terminal sent it: every process of the foreground has it already.
    pub is_terminals: bool,
}

impl Taken {
    /// The kernel's name of it: `SIGINT`.
    #[must_use]
    pub fn name(self) -> &'static str {
        signal_name(self.number)
    }
}

/// Name of a signal as messages have it; `a signal` for one without.
#[must_use]
pub(super) fn signal_name(number: i32) -> &'static str {
    match number {
        libc::SIGINT => "SIGINT",
        libc::SIGTERM => "SIGTERM",
        libc::SIGHUP => "SIGHUP",
        libc::SIGQUIT => "SIGQUIT",
        _ => "a signal",
    }
}

/// Signals blocked and readable; made before any thread, so that all threads block them.
#[derive(Debug)]
pub struct Signals {
    file: OwnedFd,
    before: libc::sigset_t,
}

impl Signals {
    /// Takes SIGINT, SIGTERM, SIGHUP and SIGQUIT of the whole process. A signal that is ignored, as under nohup,
    /// stays ignored; SIGCHLD does not, because the kernel would then forget how a command ended (wait(2)).
    ///
    /// # Errors
    /// What the kernel says.
    pub fn take() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: no handler is set; sigemptyset initialises the set, pthread_sigmask the old one; signalfd takes a
        // valid set.
        unsafe {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::sigemptyset(set.as_mut_ptr());
            for signal in SIGNALS {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            let file = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if file < 0 {
                return Err(io::Error::last_os_error());
            }
            let file = OwnedFd::from_raw_fd(file);
            let failed = libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
            if failed != 0 {
                return Err(io::Error::from_raw_os_error(failed));
            }
            Ok(Self {
                file,
                before: before.assume_init(),
            })
        }
    }

    /// The mask of before, for a program we start.
    pub(super) const fn before(&self) -> &libc::sigset_t {
        &self.before
    }

    /// The next signal that came, if one did.
    pub fn receive(&mut self) -> Option<Taken> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: a buffer of the record's size; the kernel writes whole records.
        let n = unsafe { libc::read(self.file.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        if usize::try_from(n) != Ok(size) {
            return None;
        }
        // SAFETY: written just now.
        let info = unsafe { info.assume_init() };
        Some(Taken {
            number: i32::try_from(info.ssi_signo).unwrap_or(0),
            // The terminal driver is the kernel (SI_KERNEL, include/uapi/asm-generic/siginfo.h).
            is_terminals: info.ssi_code == libc::SI_KERNEL,
        })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: the mask the kernel gave us.
        unsafe {
            libc::pthread_sigmask(
                libc::SIG_SETMASK,
                &raw const self.before,
                std::ptr::null_mut(),
            )
        };
    }
}
