//! Children with a role, the hand-shake with them, and sessions that watch them.
//!
//! A child is this test binary run again for the one test [`child_role`], on its
//! main thread alone, so that nothing but the role's own load happens between two
//! reports. Reports and answers pass through a socket on its standard input, from
//! memory touched before, and take no mmap_lock.

mod cgroup;

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use faultscope::commands::session::{Options, Session};
use faultscope::host::HostFacts;
use faultscope::host::kernel::Preemption;
use faultscope::model::Model;
use faultscope::sample::{Counters, Delta, delta::Process};

pub(crate) use cgroup::{Cgroup, memory_mount};

/// Names the role in the child's environment; its arguments follow in
/// [`ARGUMENTS`], separated by blanks.
const ROLE: &str = "FAULTSCOPE_TEST_ROLE";
const ARGUMENTS: &str = "FAULTSCOPE_TEST_ARGUMENTS";
/// Longest time a child may take over one step, below what a guest may be silent: an emulated CPU of a busy machine
/// needs minutes for what takes a second elsewhere.
const PATIENCE: Duration = Duration::from_secs(540);

/// Time the kernel may take to free what nobody holds any more.
const RELEASE: Duration = Duration::from_secs(60);

/// Bytes of a page on x86-64.
pub(crate) const PAGE: usize = 4096;

/// What a child reports at each stop.
pub(crate) type Report = [u64; 4];

/// The far end of a child's hand-shake, inside the child.
#[derive(Debug)]
pub(crate) struct Link(UnixStream);

impl Link {
    /// Reports and waits until the test answers.
    pub(crate) fn stop(&mut self, report: Report) {
        let mut bytes = [0; 32];
        for (to, from) in bytes.chunks_exact_mut(8).zip(report) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        self.0.write_all(&bytes).expect("the test reads reports");
        self.0.read_exact(&mut [0]).expect("the test answers");
    }
}

/// Whether the test has answered before the child asked.
pub(crate) fn is_answered() -> bool {
    let mut poll = libc::pollfd {
        fd: 0,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one live pollfd; descriptor 0 is the child's end of the hand-shake.
    unsafe { libc::poll(&raw mut poll, 1, 0) > 0 }
}

/// A role: what a child does, with its arguments.
pub(crate) type Role = fn(&mut Link, &[u64]);

/// Runs as the child of the other tests; passes at once on its own.
#[test]
fn child_role() {
    let Ok(name) = std::env::var(ROLE) else {
        return;
    };
    let arguments: Vec<u64> = std::env::var(ARGUMENTS)
        .unwrap_or_default()
        .split_ascii_whitespace()
        .map(|word| word.parse().expect("arguments are numbers"))
        .collect();
    let role = crate::ROLES
        .iter()
        .flat_map(|roles| roles.iter())
        .find(|(known, _)| *known == name)
        .unwrap_or_else(|| panic!("no role is called {name}"))
        .1;
    // SAFETY: plain numbers; a role's own memory never comes as a huge page.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    // SAFETY: descriptor 0 is the socket the parent put there, used once.
    let socket = unsafe { OwnedFd::from_raw_fd(0) };
    let mut link = Link(UnixStream::from(socket));
    role(&mut link, &arguments);
}

/// This binary, to be run for one role; the hand-shake is on descriptor 0.
fn command(role: &str, arguments: &[u64]) -> Command {
    let words: Vec<String> = arguments.iter().map(u64::to_string).collect();
    let mut command = Command::new(std::env::current_exe().expect("the path of this binary"));
    command
        .args([
            "--exact",
            "support::child_role",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(ROLE, role)
        .env(ARGUMENTS, words.join(" "));
    command
}

/// Replaces this child's program by itself in another role.
pub(crate) fn run_anew(role: &str, arguments: &[u64]) -> ! {
    use std::os::unix::process::CommandExt as _;
    let error = command(role, arguments).exec();
    panic!("exec of this binary: {error}")
}

/// A child that plays a role; killed if the test ends first.
#[derive(Debug)]
pub(crate) struct Child {
    child: std::process::Child,
    socket: UnixStream,
    first: Report,
}

impl Child {
    /// Starts a child and waits for its first stop.
    pub(crate) fn start(role: &str, arguments: &[u64]) -> Self {
        Self::start_in(role, arguments, None)
    }

    /// The same, in a cgroup from before its first stop.
    pub(crate) fn start_in(role: &str, arguments: &[u64], cgroup: Option<&Cgroup>) -> Self {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        ours.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let child = command(role, arguments)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()
            .expect("this binary runs again");
        let mut child = Self {
            child,
            socket: ours,
            first: [0; 4],
        };
        if let Some(cgroup) = cgroup {
            cgroup.take(child.pid());
        }
        child.first = child.report();
        child
    }

    /// What it reported at its first stop.
    pub(crate) fn first(&self) -> Report {
        self.first
    }

    /// Process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets the child go on from its stop.
    pub(crate) fn go(&mut self) {
        self.socket.write_all(&[1]).expect("the child listens");
    }

    /// Waits for the child's next stop.
    pub(crate) fn report(&mut self) -> Report {
        let mut bytes = [0; 32];
        self.socket
            .read_exact(&mut bytes)
            .expect("the child reports; see its message above");
        let mut report = [0; 4];
        for (to, from) in report.iter_mut().zip(bytes.chunks_exact(8)) {
            *to = u64::from_le_bytes(from.try_into().expect("eight bytes"));
        }
        report
    }

    /// From one stop to the next.
    pub(crate) fn step(&mut self) -> Report {
        self.go();
        self.report()
    }

    /// Lets the child end from its last stop and demands that it ends well. A child
    /// with a stop left fails instead of waiting for ever.
    pub(crate) fn finish(mut self) {
        self.go();
        self.socket
            .shutdown(std::net::Shutdown::Write)
            .expect("the child listens");
        let status = self.child.wait().expect("the child can be waited for");
        assert!(status.success(), "the child failed: {status}");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // An ended child cannot be killed; both results say nothing then.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The object under test.
pub(crate) fn object() -> Option<PathBuf> {
    std::env::var_os("FAULTSCOPE_BPF_OBJECT").map(PathBuf::from)
}

/// A session that counts these processes only; all if there are none.
pub(crate) fn session(pids: &[u32]) -> Session {
    Session::start(&Options {
        pids: pids.to_vec(),
        bpf_object: object(),
        ..Options::default()
    })
    .expect("the core set attaches; see `faultscope doctor`")
}

/// One tick.
pub(crate) fn tick(session: &mut Session) -> Model {
    session.tick().expect("the maps can be read")
}

/// What happened from the child's present stop to its next one.
pub(crate) fn watch(session: &mut Session, child: &mut Child) -> (Model, Report) {
    tick(session);
    let report = child.step();
    (tick(session), report)
}

/// The counters of a process, zero if it has no row.
pub(crate) fn process(delta: &Delta, pid: u32) -> Counters {
    let mut sum = Counters::default();
    for (_, Process { counters, .. }) in delta.processes.iter().filter(|(id, _)| id.tgid == pid) {
        sum += counters;
    }
    sum
}

/// Increment of a loss counter.
pub(crate) fn loss(model: &Model, id: &str) -> u64 {
    model
        .lost
        .iter()
        .find(|lost| *lost.id == *id)
        .unwrap_or_else(|| panic!("no loss counter is called {id}"))
        .increment
}

/// Prints the loss counters that moved. They are of the whole machine, so a test
/// of one process does not fail for them: its exact counts say what it lost.
pub(crate) fn print_losses(model: &Model) {
    for lost in model.lost.iter().filter(|l| l.increment > 0) {
        println!("  lost on this machine: {} {}", lost.id, lost.increment);
    }
}

/// States whether the running kernel gives a signal: a cell of `docs/kernels.md`.
///
/// `what` is the name of the row, the same words on every kernel. A test says yes
/// after its last demand, and no, with the reason shown there, before it returns;
/// a row that a kernel does not state has a dash.
pub(crate) fn feature(what: &str, has: Result<(), &str>) {
    assert!(!what.contains(':'), "\"{what}\" would not parse");
    match has {
        Ok(()) => println!("feature: {what}: yes"),
        Err(reason) => println!("feature: {what}: no: {reason}"),
    }
}

/// Says that a test cannot run on this kernel; the caller returns.
///
/// It is counted, and in the guests of `cargo xtask vm` it has to stand in the
/// table of `xtask/src/vm/skips.rs`.
pub(crate) fn skip(reason: &str) {
    println!("SKIP {reason}");
}

/// Whether this is a kernel with PREEMPT_RT, where spinlocks and rwsems are rt_mutexes.
pub(crate) fn is_rt() -> bool {
    let kernel = HostFacts::read(Path::new("/")).kernel;
    kernel.preemption.value() == Some(&Preemption::Realtime)
}

/// Whether this kernel handles faults under locks of their VMAs (since 6.4).
pub(crate) fn has_vma_locks() -> bool {
    std::fs::read_to_string("/proc/kallsyms")
        .expect("kernel symbols can be read")
        .lines()
        .any(|line| line.ends_with(" lock_vma_under_rcu"))
}

/// Whether the CPUs are an emulator's: slow, and in turns of many ms each.
pub(crate) fn is_emulated() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("QEMU TCG"))
}

/// CPUs that this thread may run on; ask before it is pinned.
pub(crate) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Says in a guest that a test is left to real machines: what faultscope does with files, commands and terminals is the
/// same on every kernel, and takes an emulated machine minutes. The caller returns.
pub(crate) fn left_to_real_machines() -> bool {
    let is_left = is_emulated();
    if is_left {
        skip("no different on another kernel, and minutes on an emulated machine");
    }
    is_left
}

/// Prints what was seen and demands a floor of it.
pub(crate) fn demand(what: &str, seen: u64, floor: u64) {
    println!("  {what}: {seen} (floor {floor})");
    assert!(seen >= floor, "{what}: {seen} seen, {floor} needed");
}

/// Prints both and demands that they are equal.
pub(crate) fn demand_exactly(what: &str, seen: u64, wanted: u64) {
    println!("  {what}: {seen} (exactly {wanted})");
    assert_eq!(seen, wanted, "{what}");
}

/// Prints both and demands that they differ by at most `within`.
pub(crate) fn demand_near(what: &str, seen: u64, wanted: u64, within: u64) {
    println!("  {what}: {seen} (wanted {wanted}, at most {within} off)");
    assert!(
        seen.abs_diff(wanted) <= within,
        "{what}: {seen} seen, {wanted} wanted, at most {within} off"
    );
}

/// A pseudo-terminal of 30 lines: our end, the program's end.
pub(crate) fn terminal(columns: u16) -> (OwnedFd, OwnedFd) {
    let (mut ours, mut theirs) = (-1, -1);
    let mut size = libc::winsize {
        ws_row: 30,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: two places for descriptors, no name, default modes, a size.
    let done = unsafe {
        libc::openpty(
            &raw mut ours,
            &raw mut theirs,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            &raw mut size,
        )
    };
    assert_eq!(done, 0, "openpty");
    for end in [ours, theirs] {
        // A program that holds our end never sees it close.
        // SAFETY: a fresh descriptor.
        let done = unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) };
        assert_eq!(done, 0, "fcntl");
    }
    // SAFETY: fresh descriptors, owned by nobody else.
    unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

/// Ids of the BPF programs that descriptors of a process hold.
pub(crate) fn programs_of(pid: u32) -> BTreeSet<u32> {
    held_by(pid, "prog_id:")
}

/// Ids after `key` in the kernel's description of a process's descriptors.
pub(crate) fn held_by(pid: u32, key: &str) -> BTreeSet<u32> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("the process lives");
    files
        .flatten()
        .filter_map(|file| std::fs::read_to_string(file.path()).ok())
        .filter_map(|text| {
            text.lines()
                .find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
        })
        .collect()
}

/// Demands that the kernel's list has none of these programs any more.
pub(crate) fn demand_gone(programs: &BTreeSet<u32>) {
    let until = Instant::now() + RELEASE;
    loop {
        let left: BTreeSet<u32> = aya::programs::loaded_programs()
            .flatten()
            .map(|program| program.id())
            .filter(|id| programs.contains(id))
            .collect();
        if left.is_empty() || Instant::now() > until {
            demand_exactly("programs left in the kernel", left.len() as u64, 0);
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Private anonymous pages, never huge, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Pages {
    start: *mut u8,
    bytes: usize,
}

impl Pages {
    /// `n` untouched pages.
    pub(crate) fn new(n: usize) -> Self {
        Self::map(n, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    /// `n` pages of what `flags` and `file` say, readable and writable.
    pub(crate) fn map(n: usize, flags: i32, file: i32) -> Self {
        let bytes = n * PAGE;
        // SAFETY: a new mapping where the kernel likes.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                file,
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED, "mmap of {n} pages");
        Self {
            start: start.cast(),
            bytes,
        }
    }

    /// Address.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Length in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes to every page.
    pub(crate) fn touch(&self) {
        self.touch_part(0, self.bytes / PAGE);
    }

    /// Writes to `n` pages from page `first` on.
    pub(crate) fn touch_part(&self, first: usize, n: usize) {
        assert!((first + n) * PAGE <= self.bytes);
        for page in first..first + n {
            // SAFETY: inside the mapping.
            unsafe { self.start.add(page * PAGE).write_volatile(1) };
        }
    }

    /// Reads every page.
    pub(crate) fn read(&self) {
        for page in 0..self.bytes / PAGE {
            // SAFETY: inside the mapping.
            unsafe { self.start.add(page * PAGE).read_volatile() };
        }
    }

    /// madvise of all of it; demands that it succeeds.
    pub(crate) fn advise(&self, advice: i32) {
        // SAFETY: this mapping's own range, which no reference points into.
        let done = unsafe { libc::madvise(self.start.cast(), self.bytes, advice) };
        assert_eq!(done, 0, "madvise {advice}");
    }
}

// SAFETY: plain memory, accessed through raw pointers only.
unsafe impl Sync for Pages {}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: our own mapping; nothing borrows from it.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

/// Minor and major faults of this process so far, as the kernel counts them.
pub(crate) fn own_faults() -> (u64, u64) {
    // SAFETY: a zeroed rusage is valid and getrusage fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &raw mut usage), 0);
        usage
    };
    let count = |n: libc::c_long| u64::try_from(n).expect("counts are positive");
    (count(usage.ru_minflt), count(usage.ru_majflt))
}

/// Keeps the calling thread on one CPU.
pub(crate) fn pin(cpu: usize) {
    // SAFETY: a zeroed set is empty; the kernel copies it.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    assert_eq!(done, 0, "pinning to CPU {cpu}");
}

/// A setting of the kernel, put back when dropped.
#[derive(Debug)]
pub(crate) struct Setting {
    path: &'static str,
    before: String,
}

impl Setting {
    /// `None` where the kernel has no such setting, or it may not be changed.
    pub(crate) fn set(path: &'static str, value: &str) -> Option<Self> {
        let before = std::fs::read_to_string(path).ok()?;
        // A choice shows all values, the one in force in brackets.
        let before = before
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'))
            .map_or(before.trim(), |(chosen, _)| chosen)
            .to_owned();
        std::fs::write(path, value).ok()?;
        Some(Self { path, before })
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        drop(std::fs::write(self.path, &self.before));
    }
}
