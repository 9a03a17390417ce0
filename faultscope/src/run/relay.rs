//! The process between a command and our standard output and error.
//!
//! It is forked before anything is attached and holds nothing but two pipes, our standard output and error, and a
//! mapping shared with us. So BPF programs end with us whatever becomes of it, and it goes on passing output while
//! anybody holds the other end of a pipe: a command whose recorder was killed, or a daemon the command left behind.
//! What standard output refuses is not read any more, so the command meets the closed pipe it would have met.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr::NonNull;
use std::time::Duration;

use super::kept::{Copy, Kept};
use super::signals::Signals;

/// Bytes passed on at once: what a pipe holds.
const PIECE: usize = 64 << 10;
/// Most that is passed on while somebody waits for the pipes to be empty: more than a pipe can hold.
const MOST_DRAINED: usize = 2 << 20;

/// Where the command writes to.
#[derive(Debug)]
pub struct Inlets {
    /// Its standard output.
    pub(super) stdout: PipeWriter,
    /// Its standard error.
    pub(super) stderr: PipeWriter,
}

/// What became of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// All writers are gone, and all they wrote is passed on and kept.
    Ended,
    /// All that was written so far is passed on and kept, and somebody still holds a pipe.
    StillOpen,
    /// Standard output takes no more, and a signal ended the wait.
    Interrupted,
}

/// The relay, seen from us.
#[derive(Debug)]
pub struct Relay {
    pid: libc::pid_t,
    control: UnixStream,
    copy: NonNull<Copy>,
}

impl Relay {
    /// Starts a relay to our standard output and error.
    ///
    /// To be called while there is one thread and nothing is attached.
    ///
    /// # Errors
    /// What the kernel refused: a pipe, memory or a process.
    pub fn start() -> io::Result<(Self, Inlets)> {
        Self::start_to([libc::STDOUT_FILENO, libc::STDERR_FILENO])
    }

    /// The same, but what the command writes is kept and shown to nobody.
    ///
    /// # Errors
    /// As [`Relay::start`].
    pub fn start_quiet() -> io::Result<(Self, Inlets)> {
        let null = File::options().write(true).open("/dev/null")?;
        Self::start_to([null.as_raw_fd(); 2])
    }

    /// The same with other outputs.
    pub(super) fn start_to(to: [RawFd; 2]) -> io::Result<(Self, Inlets)> {
        let (out, stdout) = io::pipe()?;
        let (err, stderr) = io::pipe()?;
        let (control, theirs) = UnixStream::pair()?;
        let copy = map_shared()?;
        // SAFETY: the new process makes only calls that are safe after a fork of a process with threads, and never
        // returns from `relay`.
        match unsafe { libc::fork() } {
            -1 => {
                let error = io::Error::last_os_error();
                unmap(copy);
                Err(error)
            }
            0 => relay([&out, &err], to, &theirs, copy.as_ptr()),
            pid => Ok((Self { pid, control, copy }, Inlets { stdout, stderr })),
        }
    }

    /// Waits until everything written so far is passed on and kept, or a signal comes.
    pub fn drain(&mut self, signals: &Signals) -> Drained {
        if self.control.write_all(&[0]).is_err() {
            return Drained::Ended;
        }
        let control = self.control.as_raw_fd();
        let [answered, _] = wait([control, signals.as_fd().as_raw_fd()], -1);
        if !answered {
            return Drained::Interrupted;
        }
        match self.control.read(&mut [0]) {
            Ok(1) => Drained::StillOpen,
            _ => Drained::Ended,
        }
    }

    /// Whether the output so far is nothing, or ends a line.
    #[must_use]
    pub fn is_at_line_start(&self) -> bool {
        // SAFETY: the mapping lives as long as we do.
        unsafe { Copy::is_at_line_start(self.copy.as_ptr()) }
    }

    /// Notes that a line of ours stands on the terminal, the cursor at its beginning: output is to take it away first.
    pub fn set_line_shown(&self) {
        // SAFETY: the mapping lives as long as we do.
        unsafe { Copy::swap_line(self.copy.as_ptr(), true) };
    }

    /// Whether that line still stands; it is ours to take away then.
    #[must_use]
    pub fn take_line_shown(&self) -> bool {
        // SAFETY: the mapping lives as long as we do.
        unsafe { Copy::swap_line(self.copy.as_ptr(), false) }
    }

    /// What was kept of the output so far.
    #[must_use]
    pub fn kept(&self) -> Kept {
        // SAFETY: the mapping lives as long as we do.
        unsafe { Copy::read(self.copy.as_ptr()) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // A relay that has ended is a zombie of ours; one that has not is nobody's business.
        // SAFETY: plain numbers; a null status is allowed.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::WNOHANG) };
        unmap(self.copy);
    }
}

fn map_shared() -> io::Result<NonNull<Copy>> {
    // SAFETY: a new anonymous mapping where the kernel likes.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size_of::<Copy>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

fn unmap(copy: NonNull<Copy>) {
    // SAFETY: our own mapping, of which nothing is borrowed.
    unsafe { libc::munmap(copy.as_ptr().cast(), size_of::<Copy>()) };
}

/// A pipe and where it leads; -1 once closed.
struct Stream {
    from: RawFd,
    to: RawFd,
}

/// The whole life of the relay. From here on no memory is allocated: the fork may have copied a held lock.
fn relay(pipes: [&PipeReader; 2], to: [RawFd; 2], control: &UnixStream, copy: *mut Copy) -> ! {
    let from = pipes.map(AsRawFd::as_raw_fd);
    let control = control.as_raw_fd();
    // SAFETY: plain numbers and static strings; nothing here runs any code of ours on a signal.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"faultscope-out".as_ptr());
        for signal in [
            libc::SIGINT,
            libc::SIGTERM,
            libc::SIGHUP,
            libc::SIGQUIT,
            libc::SIGPIPE,
        ] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // A daemon that holds the pipe must not keep a file system busy through us.
        libc::chdir(c"/".as_ptr());
    }
    close_all_but([from[0], from[1], to[0], to[1], control]);
    let streams = [0, 1].map(|i: usize| Stream {
        from: from[i],
        to: to[i],
    });
    pump(streams, control, copy);
    // SAFETY: ends this process without running what belongs to the other.
    unsafe { libc::_exit(0) }
}

/// Closes every file but these, our standard input among them.
fn close_all_but(mut kept: [RawFd; 5]) {
    kept.sort_unstable();
    let mut first: libc::c_uint = 0;
    for fd in kept {
        let fd = libc::c_uint::try_from(fd).unwrap_or(0);
        if fd > first {
            // SAFETY: closes numbers that nothing here uses.
            unsafe { libc::close_range(first, fd - 1, 0) };
        }
        first = first.max(fd + 1);
    }
    // SAFETY: as above.
    unsafe { libc::close_range(first, libc::c_uint::MAX, 0) };
}

fn pump(mut streams: [Stream; 2], mut control: RawFd, copy: *mut Copy) {
    let mut buffer = [0_u8; PIECE];
    while streams.iter().any(|s| s.from >= 0) {
        let [out, err, asked] = wait([streams[0].from, streams[1].from, control], -1);
        erase_line(&streams, [out, err], copy);
        for (stream, is_ready) in streams.iter_mut().zip([out, err]) {
            if is_ready {
                pass(stream, &mut buffer, copy);
            }
        }
        if asked {
            let mut byte = 0_u8;
            // SAFETY: one byte into a byte.
            let n = unsafe { libc::read(control, (&raw mut byte).cast(), 1) };
            if n == 1 {
                drain(&mut streams, &mut buffer, copy);
                if streams.iter().any(|s| s.from >= 0) {
                    // SAFETY: one byte from a byte; whoever asked may be gone.
                    unsafe { libc::write(control, (&raw const byte).cast(), 1) };
                }
            } else {
                // Nobody records any more.
                close(&mut control);
            }
        }
    }
}

/// Takes our line away before output comes in its place.
fn erase_line(streams: &[Stream; 2], is_ready: [bool; 2], copy: *mut Copy) {
    const ERASE: &[u8] = b"\r\x1b[K";
    let [_, error] = streams;
    // SAFETY: the shared mapping.
    let is_due = is_ready.contains(&true) && unsafe { Copy::swap_line(copy, false) };
    // SAFETY: as above. Behind output that does not end its line there is no line of ours.
    if is_due && unsafe { Copy::is_at_line_start(copy) } {
        write_all(error.to, ERASE);
    }
}

/// Passes on what is in the pipes.
fn drain(streams: &mut [Stream; 2], buffer: &mut [u8; PIECE], copy: *mut Copy) {
    let mut passed = 0;
    while passed < MOST_DRAINED && streams.iter().any(|s| s.from >= 0) {
        let ready = wait([streams[0].from, streams[1].from], 0);
        if ready == [false; 2] {
            return;
        }
        erase_line(streams, ready, copy);
        for (stream, is_ready) in streams.iter_mut().zip(ready) {
            if is_ready {
                passed += pass(stream, buffer, copy);
            }
        }
    }
}

/// Reads once, keeps and writes it; bytes read.
fn pass(stream: &mut Stream, buffer: &mut [u8; PIECE], copy: *mut Copy) -> usize {
    // SAFETY: a buffer of this length.
    let n = unsafe { libc::read(stream.from, buffer.as_mut_ptr().cast(), PIECE) };
    let Ok(n @ 1..) = usize::try_from(n) else {
        if n == 0 || !is_interrupted() {
            close(&mut stream.from);
        }
        return 0;
    };
    // SAFETY: the shared mapping; we are its only writer.
    unsafe { Copy::push(copy, &buffer[..n]) };
    if !write_all(stream.to, &buffer[..n]) {
        close(&mut stream.from);
    }
    n
}

/// Whether everything could be written.
fn write_all(to: RawFd, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        // SAFETY: a live slice.
        let n = unsafe { libc::write(to, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(n) {
            Ok(n) => bytes = &bytes[n..],
            Err(_) if errno() == libc::EAGAIN => {
                // Whoever shares our standard output has made it non-blocking.
                let mut poll = libc::pollfd {
                    fd: to,
                    events: libc::POLLOUT,
                    revents: 0,
                };
                // SAFETY: one live record.
                unsafe { libc::poll(&raw mut poll, 1, -1) };
            }
            Err(_) if is_interrupted() => {}
            Err(_) => return false,
        }
    }
    true
}

/// Waits until a file can be read or has ended, a signal handler ran or time is up; negative files never are.
#[must_use]
pub fn wait_readable<const N: usize>(files: [RawFd; N], timeout: Option<Duration>) -> [bool; N] {
    // Rounded up, or the last part of a millisecond would be spent in a loop.
    let timeout_ms = timeout.map_or(-1, |t| {
        i32::try_from(t.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
    });
    wait(files, timeout_ms)
}

/// The same in milliseconds, for ever if negative.
pub(super) fn wait<const N: usize>(files: [RawFd; N], timeout_ms: i32) -> [bool; N] {
    let mut polls = files.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: N live records.
    let n = unsafe { libc::poll(polls.as_mut_ptr(), N as libc::nfds_t, timeout_ms) };
    polls.map(|p| n > 0 && p.revents != 0)
}

fn close(file: &mut RawFd) {
    // SAFETY: a file of the relay's own, not used again.
    unsafe { libc::close(*file) };
    *file = -1;
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn is_interrupted() -> bool {
    errno() == libc::EINTR
}
