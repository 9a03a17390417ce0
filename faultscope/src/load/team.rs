//! Threads or processes that begin at the same moment, each on a CPU of its own, and what they used meanwhile.
//!
//! Everything is made ready before the start: memory that members share, page tables of what is measured with, lazily
//! bound symbols. A member's resources are read right before and right after its work, so the start of a thread and
//! its end are not in the figures. This is the one place among the loads that reads clocks.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::cpu;
use crate::host::clock::monotonic_ns;
use crate::host::usage::Usage;

/// Name of a member's thread, by which recordings tell members from the rest of the process.
pub const MEMBER: &str = "fsb-member";

/// How members share memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Threads of this process: one address space.
    Threads,
    /// A process each, forked from this one.
    Processes,
    /// Threads of one process that is forked from this one: one address space whose pages this process has as well.
    ForkedThreads,
}

/// Who works, and where.
#[derive(Debug, Clone)]
pub struct Team {
    /// Members, at least 1.
    pub members: usize,
    /// Threads or processes.
    pub kind: Kind,
    /// CPUs the members are bound to in turn; empty to leave the choice to the kernel.
    pub cpus: Vec<usize>,
}

/// What all members together used from the start to the end of their work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// From the first member's start to the last one's end, ns.
    pub wall_ns: u64,
    /// CPU time, ns; exact.
    pub cpu_ns: u64,
    /// User part of the CPU time as the kernel splits it, ns; with accounting by ticks no finer than one.
    pub user_ns: u64,
    /// System part, likewise.
    pub system_ns: u64,
    /// `ru_minflt`.
    pub minor_faults: u64,
    /// `ru_majflt`.
    pub major_faults: u64,
    /// Faults of the members from their creation to their end.
    pub life_faults: u64,
    /// `ru_nvcsw`.
    pub voluntary_switches: u64,
    /// `ru_nivcsw`.
    pub involuntary_switches: u64,
    /// Sum of what the members' work returned.
    pub work: u64,
}

impl Used {
    /// Adds another round: times and counts add up.
    pub fn add(&mut self, other: &Self) {
        self.wall_ns += other.wall_ns;
        self.cpu_ns += other.cpu_ns;
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.life_faults += other.life_faults;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.work += other.work;
    }

    /// Minor and major faults.
    #[must_use]
    pub const fn faults(&self) -> u64 {
        self.minor_faults + self.major_faults
    }

    /// The exact CPU time split by the kernel's shares of user and system, ns; `None` if no tick struck, so that
    /// nothing is known of the shares.
    #[must_use]
    pub fn user_and_system_ns(&self) -> Option<(u64, u64)> {
        let ticked = u128::from(self.user_ns) + u128::from(self.system_ns);
        let user = (u128::from(self.cpu_ns) * u128::from(self.user_ns)).checked_div(ticked)?;
        let user = u64::try_from(user).unwrap_or(u64::MAX);
        Some((user, self.cpu_ns.saturating_sub(user)))
    }
}

/// What a member leaves behind, in memory that all of them share. Each has cache lines of its own.
#[derive(Debug)]
#[repr(C, align(128))]
struct Slot {
    begin_ns: AtomicU64,
    end_ns: AtomicU64,
    cpu_ns: AtomicU64,
    before: [AtomicU64; COUNTS],
    after: [AtomicU64; COUNTS],
    work: AtomicU64,
    /// errno of what failed; 0 if nothing did.
    errno: AtomicU32,
    /// The member has come to its end.
    is_done: AtomicU32,
}

/// Numbers of a [`usage`] reading.
const COUNTS: usize = 6;

/// Where members meet.
#[derive(Debug)]
#[repr(C, align(128))]
struct Gate {
    arrived: AtomicU32,
    failed: AtomicU32,
    /// Faults of all members from their creation to their end.
    life_faults: AtomicU64,
}

/// Gate and slots, in memory that forked processes share.
#[derive(Debug)]
struct Board {
    start: NonNull<u8>,
    members: usize,
}

// SAFETY: the mapping holds atomics only and lives as long as the value.
unsafe impl Sync for Board {}

impl Board {
    fn bytes(members: usize) -> usize {
        size_of::<Gate>() + members * size_of::<Slot>()
    }

    fn new(members: usize) -> io::Result<Self> {
        let start = super::mapping::map_shared(Self::bytes(members))?;
        Ok(Self { start, members })
    }

    fn gate(&self) -> &Gate {
        // SAFETY: the mapping begins with a gate; zeroed memory is a valid one.
        unsafe { self.start.cast::<Gate>().as_ref() }
    }

    fn slot(&self, index: usize) -> &Slot {
        let offset = size_of::<Gate>() + (index % self.members) * size_of::<Slot>();
        // SAFETY: inside the mapping, aligned as both sizes are multiples of the alignment; zeroed is valid.
        unsafe { self.start.add(offset).cast::<Slot>().as_ref() }
    }

    /// Waits until every member is here.
    ///
    /// # Errors
    /// If another one failed before it came.
    fn meet(&self) -> io::Result<()> {
        let gate = self.gate();
        gate.arrived.fetch_add(1, Ordering::AcqRel);
        let mut turns = 0_u32;
        while (gate.arrived.load(Ordering::Acquire) as usize) < self.members {
            if gate.failed.load(Ordering::Acquire) > 0 {
                return Err(io::Error::other("another member of the load failed"));
            }
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(256) {
                // In an emulated guest the one waited for may need this CPU.
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        Ok(())
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of which nothing is borrowed any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), Self::bytes(self.members)) };
    }
}

impl Team {
    /// Runs `work` in every member at the same time, after `prepare` in each; both get the member's number from 0.
    ///
    /// What `work` returns is added up. With processes, memory that is not shared is the member's own copy.
    ///
    /// # Errors
    /// What a member's `prepare` or `work` said, what the kernel said to a new thread or process, or that a member
    /// was killed.
    pub fn run<S>(
        &self,
        prepare: impl Fn(usize) -> io::Result<S> + Sync,
        work: impl Fn(usize, &mut S) -> io::Result<u64> + Sync,
    ) -> io::Result<Used> {
        let board = Board::new(self.members)?;
        let member = |index: usize| -> io::Result<()> {
            let done = self.member(&board, index, &prepare, &work);
            if let Err(error) = &done {
                let errno = error.raw_os_error().and_then(|n| u32::try_from(n).ok());
                board
                    .slot(index)
                    .errno
                    .store(errno.unwrap_or(u32::MAX), Ordering::Release);
                board.gate().failed.fetch_add(1, Ordering::AcqRel);
            }
            done
        };
        match self.kind {
            Kind::Threads => threads(&board, self.members, &member)?,
            Kind::Processes => {
                let before = faults(libc::RUSAGE_CHILDREN)?;
                processes(&board, self.members, &|index| {
                    // SAFETY: a static string, of which the kernel takes a copy.
                    unsafe { libc::prctl(libc::PR_SET_NAME, c"fsb-member".as_ptr()) };
                    member(index)
                })?;
                let life = faults(libc::RUSAGE_CHILDREN)?.saturating_sub(before);
                board.gate().life_faults.store(life, Ordering::Release);
            }
            Kind::ForkedThreads => {
                processes(&board, 1, &|_| threads(&board, self.members, &member))?;
            }
        }
        board.used()
    }

    fn member<S>(
        &self,
        board: &Board,
        index: usize,
        prepare: &impl Fn(usize) -> io::Result<S>,
        work: &impl Fn(usize, &mut S) -> io::Result<u64>,
    ) -> io::Result<()> {
        if !self.cpus.is_empty() {
            cpu::pin(self.cpus[index % self.cpus.len()])?;
        }
        let slot = board.slot(index);
        let mut state = prepare(index)?;
        // Whatever faults the first time it is used does so now.
        store(&slot.before, usage()?);
        slot.end_ns.store(0, Ordering::Relaxed);
        let (_, _) = (monotonic_ns(), thread_cpu_ns());
        // On its way back from a switch the kernel writes to the thread's own memory (rseq, 4.18), which a forked process
        // has to copy first.
        std::thread::sleep(Duration::from_micros(1));
        board.meet()?;
        let before = usage()?;
        let cpu_ns = thread_cpu_ns();
        let begin_ns = monotonic_ns();
        let done = work(index, &mut state)?;
        let end_ns = monotonic_ns();
        let cpu_ns = thread_cpu_ns().saturating_sub(cpu_ns);
        let after = usage()?;
        store(&slot.before, before);
        store(&slot.after, after);
        slot.begin_ns.store(begin_ns, Ordering::Relaxed);
        slot.end_ns.store(end_ns, Ordering::Relaxed);
        slot.cpu_ns.store(cpu_ns, Ordering::Relaxed);
        slot.work.store(done, Ordering::Relaxed);
        slot.is_done.store(1, Ordering::Release);
        Ok(())
    }
}

impl Board {
    /// What the members left, added up.
    fn used(&self) -> io::Result<Used> {
        let mut used = Used::default();
        let (mut begin, mut end) = (u64::MAX, 0);
        for index in 0..self.members {
            let slot = self.slot(index);
            if slot.is_done.load(Ordering::Acquire) == 0 {
                let errno = slot.errno.load(Ordering::Acquire);
                return Err(match i32::try_from(errno) {
                    Ok(errno @ 1..) => io::Error::from_raw_os_error(errno),
                    _ => io::Error::other("a member of the load did not come to its end"),
                });
            }
            let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
            begin = begin.min(word(&slot.begin_ns));
            end = end.max(word(&slot.end_ns));
            let before: [u64; COUNTS] = std::array::from_fn(|i| word(&slot.before[i]));
            let [user, system, minor, major, voluntary, involuntary]: [u64; COUNTS] =
                std::array::from_fn(|i| word(&slot.after[i]).saturating_sub(before[i]));
            used.add(&Used {
                wall_ns: 0,
                cpu_ns: word(&slot.cpu_ns),
                user_ns: user,
                system_ns: system,
                minor_faults: minor,
                major_faults: major,
                life_faults: 0,
                voluntary_switches: voluntary,
                involuntary_switches: involuntary,
                work: word(&slot.work),
            });
        }
        used.wall_ns = end.saturating_sub(begin);
        used.life_faults = self.gate().life_faults.load(Ordering::Acquire);
        Ok(used)
    }
}

fn store(to: &[AtomicU64; COUNTS], from: [u64; COUNTS]) {
    for (to, from) in to.iter().zip(from) {
        to.store(from, Ordering::Relaxed);
    }
}

/// Runs a thread for each member.
fn threads(
    board: &Board,
    members: usize,
    member: &(impl Fn(usize) -> io::Result<()> + Sync),
) -> io::Result<()> {
    // What this process faults while its other threads live, less what this thread does: theirs, to their very end.
    let others = || -> io::Result<u64> {
        Ok(faults(libc::RUSAGE_SELF)?.saturating_sub(faults(libc::RUSAGE_THREAD)?))
    };
    let before = others()?;
    run_threads(board, members, member)?;
    let life = others()?.saturating_sub(before);
    board.gate().life_faults.store(life, Ordering::Release);
    Ok(())
}

fn run_threads(
    board: &Board,
    members: usize,
    member: &(impl Fn(usize) -> io::Result<()> + Sync),
) -> io::Result<()> {
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..members)
            .map(|index| {
                let builder = std::thread::Builder::new().name(MEMBER.to_owned());
                let thread = builder.spawn_scoped(scope, move || member(index));
                if thread.is_err() {
                    board.gate().failed.fetch_add(1, Ordering::AcqRel);
                }
                thread
            })
            .collect();
        let mut first = Ok(());
        for thread in started {
            let ended = thread.and_then(|thread| {
                let died = |_| Err(io::Error::other("a thread of the load panicked"));
                thread.join().unwrap_or_else(died)
            });
            // The first failure is the cause; others were told of it.
            if first.is_ok() {
                first = ended;
            }
        }
        first
    })
}

/// Runs a process for each member; their errors are on the board.
fn processes(
    board: &Board,
    members: usize,
    member: &impl Fn(usize) -> io::Result<()>,
) -> io::Result<()> {
    let mut refused = Ok(());
    let mut children = 0;
    for index in 0..members {
        // SAFETY: this process has one thread, so the new one may do anything.
        match unsafe { libc::fork() } {
            -1 => {
                refused = Err(io::Error::last_os_error());
                board.gate().failed.fetch_add(1, Ordering::AcqRel);
                break;
            }
            0 => {
                // A member must not outlive who measures it.
                // SAFETY: plain numbers.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                let status = i32::from(member(index).is_err());
                // SAFETY: ends this process without running what belongs to the one it was forked from.
                unsafe { libc::_exit(status) }
            }
            _ => children += 1,
        }
    }
    while children > 0 {
        let mut status = 0;
        // SAFETY: a status word for the kernel to fill.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        if pid < 0 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        children -= 1;
        if libc::WIFSIGNALED(status) {
            board.gate().failed.fetch_add(1, Ordering::AcqRel);
            refused = Err(io::Error::other(format!(
                "a process of the load was killed by signal {}",
                libc::WTERMSIG(status)
            )));
        }
    }
    refused
}

/// User ns, system ns, minor and major faults, voluntary and involuntary switches of the calling thread.
fn usage() -> io::Result<[u64; COUNTS]> {
    let usage = Usage::read(libc::RUSAGE_THREAD)?;
    Ok([
        usage.user_ns,
        usage.system_ns,
        usage.minor_faults,
        usage.major_faults,
        usage.voluntary_switches,
        usage.involuntary_switches,
    ])
}

/// Minor and major faults of this thread, this process or the children it has waited for.
fn faults(who: libc::c_int) -> io::Result<u64> {
    Ok(Usage::read(who)?.faults())
}

/// CPU time of the calling thread so far, ns; exact, which getrusage(2) is not between two ticks.
fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn team(members: usize, kind: Kind) -> Team {
        Team {
            members,
            kind,
            cpus: Vec::new(),
        }
    }

    #[test]
    fn members_begin_together_and_their_work_adds_up() {
        let team = team(4, Kind::Threads);
        let running = AtomicU32::new(0);
        let used = team
            .run(
                |_| Ok(()),
                |index, ()| {
                    // Each waits for the others: this ends only if all run at once.
                    running.fetch_add(1, Ordering::AcqRel);
                    while running.load(Ordering::Acquire) < 4 {
                        std::thread::yield_now();
                    }
                    Ok(index as u64)
                },
            )
            .expect("threads run");
        assert_eq!(used.work, 1 + 2 + 3);
        assert!(used.wall_ns > 0 && used.cpu_ns > 0);
        assert!(used.life_faults >= used.faults());
    }

    #[test]
    fn one_that_fails_before_the_start_ends_all() {
        let error = team(3, Kind::Threads)
            .run(
                |index| {
                    if index == 1 {
                        return Err(io::Error::from_raw_os_error(libc::ENOMEM));
                    }
                    Ok(())
                },
                |_, ()| Ok(0),
            )
            .expect_err("one member failed");
        let text = error.to_string();
        assert!(
            error.raw_os_error() == Some(libc::ENOMEM) || text.contains("another member"),
            "{text}"
        );
    }

    #[test]
    fn exact_time_is_split_as_the_kernel_splits_it() {
        let used = Used {
            cpu_ns: 1_000,
            user_ns: 1_000_000,
            system_ns: 3_000_000,
            ..Used::default()
        };
        assert_eq!(used.user_and_system_ns(), Some((250, 750)));
        let short = Used {
            cpu_ns: 1_000,
            ..Used::default()
        };
        assert_eq!(short.user_and_system_ns(), None);
    }
}
