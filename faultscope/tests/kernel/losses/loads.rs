//! What the children do whose events are lost.

use std::sync::mpsc::{Receiver, Sender, channel};

use crate::support::{Child, Link, PAGE, Pages, own_faults, pin};

/// A child at the stop before its load, and the thread that will run it.
pub(super) fn start(role: &str, n: u64) -> (Child, u32) {
    let mut child = Child::start(role, &[n]);
    let [tid, ..] = child.step();
    (child, u32::try_from(tid).expect("a thread id"))
}

/// The other side of [`start`]. What the load calls is in memory afterwards.
pub(super) fn ready(link: &mut Link) {
    link.stop([own_faults().0, 0, 0, 0]);
    link.stop([u64::from(tid()), 0, 0, 0]);
}

/// Id of the calling thread; the harness does not run tests on the main thread.
pub(super) fn tid() -> u32 {
    // SAFETY: no arguments.
    u32::try_from(unsafe { libc::gettid() }).expect("ids are positive")
}

pub(super) fn touch(link: &mut Link, arguments: &[u64]) {
    let pages = Pages::new(usize::try_from(arguments[0]).expect("a size"));
    ready(link);
    let (before, _) = own_faults();
    pages.touch();
    let (after, _) = own_faults();
    link.stop([after - before, 0, 0, 0]);
}

pub(super) fn touch_twice(link: &mut Link, arguments: &[u64]) {
    let first = Pages::new(1);
    let pages = Pages::new(usize::try_from(arguments[0]).expect("a size"));
    ready(link);
    first.touch();
    link.stop([0; 4]);
    let (before, _) = own_faults();
    pages.touch();
    let (after, _) = own_faults();
    link.stop([after - before, 0, 0, 0]);
}

pub(super) fn futex(link: &mut Link, arguments: &[u64]) {
    let pages = Pages::new(1);
    // SAFETY: the mapping's own range, which nothing reads.
    let done = unsafe { libc::mprotect(pages.start().cast(), PAGE, libc::PROT_NONE) };
    assert_eq!(done, 0, "mprotect");
    let wait = || {
        // SAFETY: the kernel alone looks at the address, and refuses it.
        let done = unsafe {
            libc::syscall(
                libc::SYS_futex,
                pages.start(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                0,
                std::ptr::null::<libc::timespec>(),
            )
        };
        u64::from(done == -1)
    };
    ready(link);
    let calls = (0..arguments[0]).map(|_| wait()).sum();
    link.stop([calls, 0, 0, 0]);
}

pub(super) fn migrate(link: &mut Link, arguments: &[u64]) {
    let pages = Pages::new(usize::try_from(arguments[0]).expect("a size"));
    let last = Pages::new(1);
    pin(0);
    ready(link);
    let (before, _) = own_faults();
    pages.touch();
    let (after, _) = own_faults();
    pin(1);
    last.touch();
    link.stop([after - before, 0, 0, 0]);
}

pub(super) fn mprotect(link: &mut Link, arguments: &[u64]) {
    let pages = Pages::new(1);
    pages.touch();
    ready(link);
    for i in 0..arguments[0] {
        let protection = [libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE][(i % 2) as usize];
        // SAFETY: the mapping's own range, which nothing accesses meanwhile.
        let done = unsafe { libc::mprotect(pages.start().cast(), PAGE, protection) };
        assert_eq!(done, 0, "mprotect");
    }
    link.stop([arguments[0], 0, 0, 0]);
}

pub(super) fn madvise(link: &mut Link, arguments: &[u64]) {
    let pages = Pages::new(1);
    pages.touch();
    ready(link);
    for _ in 0..arguments[0] {
        pages.advise(libc::MADV_WILLNEED);
    }
    link.stop([arguments[0], 0, 0, 0]);
}

/// Makes this thread wait exactly so often for an inode's rwsem.
///
/// A second thread holds it inside write(2): its buffer is a page that is missing
/// until userfaultfd brings it, which a third thread does once this thread
/// sleeps uninterruptibly. The owner of the lock sleeps as well, so that the
/// waiter does not spin.
pub(super) fn inode_lock(link: &mut Link, arguments: &[u64]) {
    let n = usize::try_from(arguments[0]).expect("a count");
    let missing = Missing::new(n);
    // SAFETY: a name and no flags.
    let file = unsafe { libc::memfd_create(c"faultscope".as_ptr(), 0) };
    assert!(file >= 0, "memfd_create");
    let (hold, holds): (Sender<usize>, Receiver<usize>) = channel();
    let (held, is_held) = channel();
    let waiter = tid();
    std::thread::scope(|scope| {
        let missing = &missing;
        scope.spawn(move || {
            for page in holds {
                write_byte(file, missing.page(page));
            }
        });
        scope.spawn(move || {
            for _ in 0..n {
                let address = missing.wait();
                held.send(()).expect("the waiter listens");
                while !sleeps_uninterruptibly(waiter) {
                    std::thread::yield_now();
                }
                missing.bring(address);
            }
        });
        ready(link);
        for page in 0..n {
            hold.send(page).expect("the holder listens");
            is_held.recv().expect("the holder holds");
            write_byte(file, (&raw const waiter).cast());
        }
        drop(hold);
    });
    link.stop([arguments[0], 0, 0, 0]);
}

pub(super) fn write_byte(file: i32, from: *const u8) {
    // SAFETY: one byte; a page that is missing is the point.
    let written = unsafe { libc::pwrite(file, from.cast(), 1, 0) };
    assert_eq!(written, 1, "pwrite");
}

/// State of a thread of ours, whose names hold no parenthesis.
pub(super) fn sleeps_uninterruptibly(tid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat"));
    stat.is_ok_and(|stat| stat.contains(") D "))
}

/// Pages that userfaultfd brings one at a time (include/uapi/linux/userfaultfd.h).
pub(super) struct Missing {
    pages: Pages,
    file: i32,
}

impl Missing {
    const API: libc::c_ulong = 0xc018_aa3f;
    const REGISTER: libc::c_ulong = 0xc020_aa00;
    const ZEROPAGE: libc::c_ulong = 0xc020_aa04;

    pub(super) fn new(n: usize) -> Self {
        let pages = Pages::new(n);
        // SAFETY: a system call without pointers.
        let file = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
        let file = i32::try_from(file).expect("a descriptor");
        assert!(file >= 0, "SKIP: no userfaultfd");
        let new = Self { pages, file };
        new.order(Self::API, &mut [0xaa, 0, 0]);
        let (start, bytes) = (new.pages.start() as u64, new.pages.bytes() as u64);
        new.order(Self::REGISTER, &mut [start, bytes, 1, 0]);
        new
    }

    pub(super) fn order(&self, order: libc::c_ulong, words: &mut [u64]) {
        // SAFETY: the words are the structure the order reads and writes.
        let done = unsafe { libc::ioctl(self.file, order, words.as_mut_ptr()) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }

    pub(super) fn page(&self, page: usize) -> *const u8 {
        // SAFETY: inside the mapping.
        unsafe { self.pages.start().add(page * PAGE) }
    }

    /// Address of the next page that somebody waits for.
    pub(super) fn wait(&self) -> u64 {
        let mut message = [0_u64; 4];
        // SAFETY: a message has 32 bytes.
        let read = unsafe { libc::read(self.file, message.as_mut_ptr().cast(), 32) };
        assert_eq!(read, 32, "a message");
        message[2] & !(PAGE as u64 - 1)
    }

    pub(super) fn bring(&self, address: u64) {
        self.order(Self::ZEROPAGE, &mut [address, PAGE as u64, 0, 0]);
    }
}

impl Drop for Missing {
    fn drop(&mut self) {
        // SAFETY: our own descriptor.
        unsafe { libc::close(self.file) };
    }
}
