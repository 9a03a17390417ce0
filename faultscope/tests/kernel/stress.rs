//! Every program attached, and everything it watches happening at once on all CPUs.
//!
//! Two processes in each of two memory cgroups, with less memory than they use, run
//! every load of `faultscope::load`; a fifth has nothing but threads that wait for
//! each other's mmap_lock. What was counted has to agree with the kernel's own
//! counts, the kernel's log has to be quiet, and nothing may stay attached.
//! `FAULTSCOPE_STRESS_SECONDS` says for how long.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use faultscope::commands::session::{Options, Session};
use faultscope::load::{
    Advices, Contention, EveryAdvice, FileReads, Forks, KernelFaults, Load, Mappings, Overcommit,
    Populates, ReadFaults, Rereads, SharedMappings, SystemCalls, WriteFaults,
};
use faultscope::model::{Model, TableId};
use faultscope::plan::PROBES;
use faultscope::sample::counters::LOCK_CLASS_NAMES;
use faultscope::sample::{Counters, Scope};

use crate::support::{
    self, Cgroup, Child, Link, Role, cpus, demand, demand_exactly, demand_gone, demand_near,
    has_vma_locks, held_by, is_answered, loss, own_faults, pin, process, tick,
};

pub(crate) const ROLES: &[(&str, Role)] = &[
    ("stress_all", all),
    ("stress_wait", wait),
    ("stress_exact", exact),
];

/// Seconds of a test that is not told otherwise.
const SECONDS: u64 = 10;
/// What the two processes of a cgroup keep together after reclaim: less than their files and what
/// else they have, and less than they write where there is swap.
const LIMIT: u64 = 16 << 20;
/// Pages of each process's file, 8 MiB, and of memory that is to be swapped out, 12 MiB.
const FILE_PAGES: usize = 2048;
const SWAP_PAGES: usize = 3072;
/// Contended waits without which a run proves little about locks.
const WAITS: u64 = 500;
/// The same where the emulator's CPUs take turns: they seldom meet.
const WAITS_IN_TURNS: u64 = 50;
/// Faults of each load process, at least.
const FAULTS: u64 = 2_000;
/// Faults a process takes beside its loads, at most.
const NOISE: u64 = 32;

/// How long a test is to go on.
fn duration() -> Duration {
    let seconds = std::env::var("FAULTSCOPE_STRESS_SECONDS").ok();
    let seconds = seconds.map_or(SECONDS, |text| text.parse().expect("a number of seconds"));
    Duration::from_secs(seconds)
}

/// Whether there is room for [`Overcommit`], which kills its process otherwise.
fn has_swap() -> bool {
    let text = std::fs::read_to_string("/proc/meminfo").expect("/proc/meminfo");
    let free = text.lines().find_map(|line| line.strip_prefix("SwapFree:"));
    let kib = free.and_then(|text| text.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.unwrap_or(0_u64) * 1024 >= 4 * (SWAP_PAGES * support::PAGE) as u64
}

/// Runs every load in turn on one CPU, from an answer to the next; reports minor and
/// major faults, populated pages and rounds.
fn all(link: &mut Link, arguments: &[u64]) {
    // Memory is charged to where the process is: it is in its cgroup after this.
    link.stop([0; 4]);
    pin(usize::try_from(arguments[0]).expect("a CPU"));
    let name = format!("stress-{}", std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let memory = "memory";
    let mut loads: Vec<Box<dyn Load>> = vec![
        Box::new(ReadFaults::new().expect(memory)),
        Box::new(WriteFaults::new().expect(memory)),
        Box::new(KernelFaults::new().expect(memory)),
        Box::new(Forks::new().expect(memory)),
        Box::new(Mappings),
        Box::new(Advices::new().expect(memory)),
        Box::new(EveryAdvice::new().expect(memory)),
        Box::new(Rereads::new().expect(memory)),
        Box::new(SystemCalls),
        Box::new(FileReads::new(&path, FILE_PAGES).expect("a file on a disk")),
    ];
    if arguments[1] == 1 {
        loads.push(Box::new(Overcommit::new(SWAP_PAGES).expect(memory)));
    }
    let mut populates = Populates::new().expect(memory);
    loop {
        link.stop([0; 4]);
        let before = own_faults();
        let (mut populated, mut rounds) = (0, 0);
        'rounds: loop {
            for load in &mut loads {
                load.run()
                    .unwrap_or_else(|e| panic!("{}: {e}", load.events()));
                // Each load has its turn, however short the time.
                if rounds > 0 && is_answered() {
                    break 'rounds;
                }
            }
            populated += populates.run().expect("pages can be populated");
            rounds += 1;
        }
        let after = own_faults();
        link.stop([after.0 - before.0, after.1 - before.1, populated, rounds]);
    }
}

/// Threads on two CPUs that wait for each other, reported as [`all`] does.
fn wait(link: &mut Link, arguments: &[u64]) {
    link.stop([0; 4]);
    let cpu = |index: usize| usize::try_from(arguments[index]).expect("a CPU");
    let mut load = Contention::new([cpu(0), cpu(1)]).expect("memory");
    let mut shared = SharedMappings;
    loop {
        link.stop([0; 4]);
        let before = own_faults();
        let mut rounds = 0;
        while !is_answered() {
            load.run().expect("two CPUs");
            shared.run().expect("memory");
            rounds += 1;
        }
        let after = own_faults();
        link.stop([after.0 - before.0, after.1 - before.1, 0, rounds]);
    }
}

/// A known number of faults, once.
fn exact(link: &mut Link, _: &[u64]) {
    let pages = support::Pages::new(2_000);
    own_faults();
    link.stop([0; 4]);
    let before = own_faults();
    pages.touch();
    let after = own_faults();
    link.stop([after.0 - before.0, after.1 - before.1, 0, 0]);
}

/// The processes of the load and their cgroups.
struct Storm {
    children: Vec<Child>,
    /// Removed after the children are gone: fields are dropped in order.
    _cgroups: [Cgroup; 2],
    seen: Vec<[u64; 4]>,
}

impl Storm {
    /// Starts the processes; they wait.
    fn new() -> Self {
        let cgroups = [Cgroup::new("stress-one"), Cgroup::new("stress-two")];
        for cgroup in &cgroups {
            cgroup.reclaim_above(LIMIT);
        }
        let cpus = cpus() as u64;
        let has_swap = u64::from(has_swap());
        println!("  {cpus} CPUs, swap: {has_swap}");
        let mut children: Vec<Child> = (0..4_u64)
            .map(|n| {
                // The two of a cgroup are on two CPUs.
                let place = (n / 2 + n % 2 * 2) % cpus;
                let cgroup = &cgroups[usize::try_from(n / 2).expect("0 or 1")];
                Child::start_in("stress_all", &[place, has_swap], Some(cgroup))
            })
            .collect();
        children.push(Child::start("stress_wait", &[0, cpus - 1]));
        for child in &mut children {
            child.step();
        }
        let seen = vec![[0; 4]; children.len()];
        Self {
            children,
            _cgroups: cgroups,
            seen,
        }
    }

    fn start(&mut self) {
        for child in &mut self.children {
            child.go();
        }
    }

    /// Stops the processes; what each did since the start is added to `seen`.
    fn stop(&mut self) -> Vec<[u64; 4]> {
        // They look for the answer after each load.
        for child in &mut self.children {
            child.go();
        }
        let reports: Vec<_> = self.children.iter_mut().map(Child::report).collect();
        for child in &mut self.children {
            child.report();
        }
        for (sum, report) in self.seen.iter_mut().zip(&reports) {
            for (sum, n) in sum.iter_mut().zip(report) {
                *sum += n;
            }
        }
        reports
    }
}

/// What was counted in some intervals.
struct Counted {
    /// Serviced faults of each process of the load.
    faults: Vec<u64>,
    machine: Counters,
    /// Passes that returned RETRY.
    retries: u64,
    lost: u64,
}

impl Counted {
    fn new(storm: &Storm) -> Self {
        Self {
            faults: vec![0; storm.children.len()],
            machine: Counters::default(),
            retries: 0,
            lost: 0,
        }
    }

    fn add(&mut self, storm: &Storm, model: &Model) {
        let delta = model.delta();
        for (sum, child) in self.faults.iter_mut().zip(&storm.children) {
            *sum += process(delta, child.pid()).faults();
        }
        self.machine += &delta.total();
        self.retries += delta.passes.values().map(|p| p.retries).sum::<u64>();
        self.lost += loss(model, "thread_overflow_full") + loss(model, "faults_unattributed");
        // What the views make of it must stand as well.
        for table in TableId::ALL {
            assert!(!model.table(*table).fields.is_empty());
        }
    }

    fn waits(&self) -> u64 {
        for (class, name) in LOCK_CLASS_NAMES.iter().enumerate() {
            let waits = self.machine[Scope::Waits(class)];
            println!("  {name} waits: {waits}");
        }
        self.machine.waits()
    }

    /// Demands that each process has the faults which the kernel counted for it.
    ///
    /// Populated pages are no faults to a tracepoint. A thousandth may be off for
    /// pages that get_user_pages brings back after they were swapped out.
    fn demand_reconciled(&self, reports: &[[u64; 4]]) {
        for (n, (seen, [minor, major, populated, rounds])) in
            self.faults.iter().zip(reports).enumerate()
        {
            println!("  process {n}: {rounds} rounds, {major} major faults");
            let wanted = minor + major - populated;
            demand_near(
                &format!("faults of process {n}, {} lost", self.lost),
                *seen,
                wanted,
                wanted / 1000 + NOISE + self.lost,
            );
        }
    }
}

/// Faults of the machine since boot as the kernel counts them, populated pages too.
fn pgfault() -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").expect("/proc/vmstat");
    let count = text.lines().find_map(|line| line.strip_prefix("pgfault "));
    count.expect("the line").parse().expect("a count")
}

/// A session with every program this kernel can have.
fn everything() -> Session {
    Session::start(&Options {
        named: PROBES.iter().map(|p| p.program.to_owned()).collect(),
        bpf_object: support::object(),
        ..Options::default()
    })
    .expect("the core set attaches; see `faultscope doctor`")
}

/// Programs and links of this process.
fn held() -> [BTreeSet<u32>; 2] {
    ["prog_id:", "link_id:"].map(|key| held_by(std::process::id(), key))
}

/// Drops a session and demands that the kernel has nothing left of it.
fn let_go(session: Session) {
    let [programs, links] = held();
    drop(session);
    demand_gone(&programs);
    let left = aya::programs::loaded_links()
        .flatten()
        .filter(|link| links.contains(&link.id()));
    demand_exactly("links left in the kernel", left.count() as u64, 0);
}

/// The kernel's log from now on.
struct Log(std::fs::File);

impl Log {
    fn open() -> Self {
        use std::io::Seek as _;
        let mut file = std::fs::File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg")
            .expect("the kernel's log can be read");
        file.seek(std::io::SeekFrom::End(0)).expect("its end");
        Self(file)
    }

    /// Demands that nothing in it tells of a kernel in trouble.
    fn demand_quiet(mut self) {
        const MARKS: [&str; 12] = [
            "cut here",
            "BUG:",
            "kernel BUG",
            "Oops",
            "general protection fault",
            "lockup",
            "LOCKUP",
            "detected stall",
            "detected expedited stall",
            "blocked for more than",
            "inconsistent lock state",
            "scheduling while atomic",
        ];
        let (mut records, mut bytes) = (0, [0; 8192]);
        loop {
            match self.0.read(&mut bytes) {
                // One record a time.
                Ok(n) => {
                    records += 1;
                    let text = String::from_utf8_lossy(&bytes[..n]);
                    let mark = MARKS.iter().find(|mark| text.contains(**mark));
                    assert!(mark.is_none(), "the kernel's log: {text}");
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                // Records came faster than they were read, or were overwritten.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(error) => panic!("the kernel's log: {error}"),
            }
        }
        println!("  records in the kernel's log: {records}, none of trouble");
    }
}

/// Demands that a session counts exactly what a process does now that all is quiet.
fn demand_exact(session: &mut Session) {
    let mut child = Child::start("stress_exact", &[]);
    let (model, [minor, major, ..]) = support::watch(session, &mut child);
    let seen = process(model.delta(), child.pid()).faults();
    demand_exactly("faults of a process afterwards", seen, minor + major);
    child.finish();
}

fn demand_load(storm: &Storm) {
    for (n, [minor, major, _, rounds]) in storm.seen.iter().enumerate() {
        let is_waiting = n + 1 == storm.seen.len();
        demand(&format!("rounds of process {n}"), *rounds, 1);
        if !is_waiting {
            demand(&format!("its faults ({n})"), minor + major, FAULTS);
        }
    }
}

/// Attached before the load begins, detached after its end.
#[test]
fn stress_multi() {
    let log = Log::open();
    let mut storm = Storm::new();
    let mut session = everything();
    for missing in session.named_missing() {
        println!("  {missing}");
    }
    // From here on nothing is attached or detached, whatever is shown.
    session.show(TableId::Overview);
    let attached = held()[0].len() as u64;
    demand("programs attached", attached, 20);
    tick(&mut session);
    let mut counted = Counted::new(&storm);
    let before = pgfault();
    storm.start();
    let until = Instant::now() + duration();
    // Run-time statistics, which that view turns on, patch code of the kernel.
    let views = TableId::ALL
        .iter()
        .filter(|view| **view != TableId::Programs);
    let mut views = views.cycle();
    while Instant::now() < until {
        session.show(*views.next().expect("views without end"));
        std::thread::sleep(Duration::from_secs(1));
        let model = tick(&mut session);
        counted.add(&storm, &model);
    }
    let reports = storm.stop();
    let model = tick(&mut session);
    let all = pgfault() - before;
    counted.add(&storm, &model);
    support::print_losses(&model);
    counted.demand_reconciled(&reports);
    // exec and others bring pages in without a fault, and the readings are some ms apart.
    let populated: u64 = reports.iter().map(|[_, _, populated, _]| populated).sum();
    // mm_account_fault() leaves passes that return RETRY out since 6.4, as per-VMA locks came.
    let retries = if has_vma_locks() { 0 } else { counted.retries };
    println!("  retries that the kernel counts as faults: {retries}");
    let seen = counted.machine.faults() + populated + retries;
    demand_near("faults of the machine", seen, all, all / 50);
    demand("contended waits", counted.waits(), WAITS);
    demand_load(&storm);
    drop(storm);
    demand_exact(&mut session);
    assert_eq!(held()[0].len() as u64, attached, "programs came or went");
    let_go(session);
    log.demand_quiet();
}

/// Attached and detached again and again while the load goes on.
#[test]
fn stress_single() {
    /// Views of one turn: each of so many.
    const EVERY: usize = 4;
    let log = Log::open();
    let mut storm = Storm::new();
    let mut all = 0;
    let mut turns = 0;
    let until = Instant::now() + duration();
    storm.start();
    while Instant::now() < until || turns < 2 {
        // Sets come and go one by one, then everything at once, all under load.
        let mut session = support::session(&[]);
        for view in TableId::ALL.iter().skip(turns % EVERY).step_by(EVERY) {
            session.show(*view);
            tick(&mut session);
        }
        drop(session);
        let mut session = everything();
        tick(&mut session);
        storm.stop();
        // From one halt to the next the counts are of the same time.
        tick(&mut session);
        let mut counted = Counted::new(&storm);
        storm.start();
        std::thread::sleep(Duration::from_secs(2));
        let model = tick(&mut session);
        counted.add(&storm, &model);
        let reports = storm.stop();
        let model = tick(&mut session);
        counted.add(&storm, &model);
        support::print_losses(&model);
        counted.demand_reconciled(&reports);
        all += counted.waits();
        storm.start();
        tick(&mut session);
        let_go(session);
        turns += 1;
    }
    storm.stop();
    demand("times everything came and went", turns as u64, 2);
    demand("contended waits", all, WAITS_IN_TURNS);
    demand_load(&storm);
    drop(storm);
    let mut session = everything();
    demand_exact(&mut session);
    let_go(session);
    log.demand_quiet();
}
