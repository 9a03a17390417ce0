//! Faults: user, kernel, major, unseen; by CPU and by thread.

use std::ffi::CString;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use faultscope::model::{Model, TableId, Value};
use faultscope::sample::Scope;

use crate::support::{
    Cgroup, Child, Link, PAGE, Pages, Role, demand, demand_exactly, demand_near, loss,
    memory_mount, own_faults, print_losses, process, session, tick, watch,
};

pub(crate) const ROLES: &[(&str, Role)] = &[
    ("touch", touch),
    ("read a dropped file", read_dropped_file),
    ("kernel faults", kernel_faults),
    ("populate", populate),
    ("short processes", short_processes),
];

/// Pages of the large loads.
const MANY: u64 = 200_000;
/// Pages of the exact ones.
const SOME: u64 = 2_000;
/// Faults a thread takes for its own stack, at most.
const THREAD_START: u64 = 32;

fn size(n: u64) -> usize {
    usize::try_from(n).expect("sizes fit")
}

/// Writes to `arguments[0]` fresh pages from `arguments[1]` threads; reports the
/// minor and major faults the kernel counted.
fn touch(link: &mut Link, arguments: &[u64]) {
    let (pages, threads) = (size(arguments[0]), size(arguments[1]));
    let memory = Pages::new(pages);
    link.stop([0; 4]);
    let before = own_faults();
    if threads == 1 {
        memory.touch();
    } else {
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let memory = &memory;
                let part = pages / threads;
                scope.spawn(move || memory.touch_part(thread * part, part));
            }
        });
    }
    let after = own_faults();
    link.stop([after.0 - before.0, after.1 - before.1, 0, 0]);
}

fn touched(threads: u64) {
    let mut child = Child::start("touch", &[MANY, threads]);
    let mut session = session(&[child.pid()]);
    let (model, [minor, ..]) = watch(&mut session, &mut child);
    let delta = model.delta();
    let counters = process(delta, child.pid());
    demand("minor faults the kernel counted", minor, MANY);
    demand_near("user faults", counters.user(), minor, MANY / 1000);
    let by_thread: u64 = delta
        .threads
        .values()
        .filter(|t| t.process.tgid == child.pid())
        .map(|t| t.counters.user())
        .sum();
    demand_exactly("sum over its threads", by_thread, counters.user());
    let by_cpu: u64 = delta
        .spaces
        .values()
        .filter(|s| s.process.is_some_and(|p| p.tgid == child.pid()))
        .flat_map(|s| s.by_cpu.values())
        .sum();
    demand_exactly("sum over its CPU shares", by_cpu, counters.faults());
    print_losses(&model);
    child.finish();
}

/// One thread's user faults are the minor faults the kernel counted.
#[test]
fn user_faults_of_one_thread_equal_minflt() {
    touched(1);
}

/// The same with four threads.
#[test]
fn user_faults_of_four_threads_equal_minflt() {
    touched(4);
}

/// Reads every page of a file that is not in the page cache.
fn read_dropped_file(link: &mut Link, arguments: &[u64]) {
    let pages = size(arguments[0]);
    let file = dropped_file(pages);
    let memory = Pages::map(pages, libc::MAP_SHARED, file.as_raw_fd());
    // Neither read-ahead nor fault-around: each page is a fault of its own.
    memory.advise(libc::MADV_RANDOM);
    link.stop([0; 4]);
    let before = own_faults();
    memory.read();
    let after = own_faults();
    link.stop([after.0 - before.0, after.1 - before.1, 0, 0]);
}

/// A file of `pages` pages on a real file system, its page cache dropped and its
/// name gone.
fn dropped_file(pages: usize) -> std::fs::File {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("dropped-{}", std::process::id()));
    std::fs::write(&path, vec![1_u8; pages * PAGE]).expect("the file can be written");
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .expect("the file can be opened");
    std::fs::remove_file(&path).expect("the file can be removed");
    file.sync_all().expect("the file reaches the disk");
    // SAFETY: advice on a descriptor.
    let done = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(done, 0, "dropping the page cache");
    file
}

/// A file whose page cache was dropped: every page is a major fault.
#[test]
fn major_faults_of_a_dropped_file_are_exact() {
    let mut child = Child::start("read a dropped file", &[SOME]);
    let mut session = session(&[child.pid()]);
    let (model, [_, major, ..]) = watch(&mut session, &mut child);
    demand_exactly("major faults the kernel counted", major, SOME);
    let counters = process(model.delta(), child.pid());
    demand_exactly("major faults", counters[Scope::Major], SOME);
    demand_near("user faults", counters.user(), SOME, THREAD_START);
    print_losses(&model);
    child.finish();
}

/// Faults taken by the kernel on behalf of `arguments[0]` untouched pages: by
/// read(2), by write(2) to memory and to a disk file, by a futex wait.
fn kernel_faults(link: &mut Link, arguments: &[u64]) {
    let pages = size(arguments[0]);
    let regions: Vec<Pages> = (0..4).map(|_| Pages::new(pages)).collect();
    let zero = std::fs::File::open("/dev/zero").expect("/dev/zero");
    // SAFETY: a literal name and no flags.
    let memory = unsafe { libc::memfd_create(c"faultscope".as_ptr(), 0) };
    assert!(memory >= 0, "memfd_create");
    let disk = dropped_file(1);
    link.stop([0; 4]);
    let bytes = pages * PAGE;
    let moved = |n: isize| assert_eq!(usize::try_from(n), Ok(bytes));
    // SAFETY: the region is this long.
    moved(unsafe { libc::read(zero.as_raw_fd(), regions[0].start().cast(), bytes) });
    link.stop([0; 4]);
    // SAFETY: as above.
    moved(unsafe { libc::write(memory, regions[1].start().cast(), bytes) });
    link.stop([0; 4]);
    // SAFETY: as above.
    moved(unsafe { libc::write(disk.as_raw_fd(), regions[2].start().cast(), bytes) });
    link.stop([0; 4]);
    for page in 0..pages {
        // The word reads 0, 1 is expected: the call returns at once.
        // SAFETY: an address inside the region.
        let done = unsafe {
            libc::syscall(
                libc::SYS_futex,
                regions[3].start().add(page * PAGE),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                1,
                std::ptr::null::<libc::timespec>(),
            )
        };
        assert_eq!(done, -1, "the futex has another value");
    }
    link.stop([0; 4]);
}

/// Kernel faults are those serviced; what the exception table repaired is apart.
#[test]
fn kernel_faults_are_serviced_ones_and_fixed_up_ones_apart() {
    let mut child = Child::start("kernel faults", &[SOME]);
    let mut session = session(&[child.pid()]);
    let mut step = |what: &str, fixed_up: std::ops::RangeInclusive<u64>| {
        let (model, _) = watch(&mut session, &mut child);
        let counters = process(model.delta(), child.pid());
        demand_exactly(&format!("{what}: serviced"), counters.kernel(), SOME);
        let seen = counters[Scope::FixedUp];
        println!("  {what}: fixed up: {seen} (within {fixed_up:?})");
        assert!(fixed_up.contains(&seen), "{what}: {seen} fixed up");
        print_losses(&model);
    };
    step("read(2) into untouched pages", 0..=0);
    // Whether the copy is tried before the page is there is the file system's choice.
    step("write(2) to memory", 0..=SOME);
    step("write(2) to a disk", 0..=SOME);
    step("futex wait", SOME..=SOME);
    child.finish();
}

/// Maps `arguments[0]` pages with MAP_POPULATE, `arguments[1]` times.
fn populate(link: &mut Link, arguments: &[u64]) {
    link.stop([0; 4]);
    let before = own_faults();
    for _ in 0..arguments[1] {
        drop(Pages::map(
            size(arguments[0]),
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
            -1,
        ));
    }
    let after = own_faults();
    link.stop([after.0 - before.0, 0, 0, 0]);
}

/// The `FaultKinds` row of `origin`: its count and its comment.
fn kind(model: &Model, origin: &str) -> (u64, String) {
    let table = model.table(TableId::FaultKinds);
    let cell = |row: &faultscope::model::Row, id: &str| {
        row.cells[table.position(id).unwrap_or_else(|| panic!("column {id}"))].clone()
    };
    let row = table
        .rows
        .iter()
        .find(|row| cell(row, "origin") == Value::Text(origin.into()))
        .unwrap_or_else(|| panic!("no row says {origin}"));
    match (cell(row, "faults"), cell(row, "comment")) {
        (Value::Count(n), Value::Text(comment)) => (n, comment),
        other => panic!("{origin}: {other:?}"),
    }
}

/// MAP_POPULATE reaches no fault tracepoint, and the output says so.
#[test]
fn populated_pages_are_said_to_be_unseen() {
    /// The row is the difference of two readings, some thousand faults apart on
    /// a machine that does other work: so many pages more.
    const TIMES: u64 = 50;
    let mut child = Child::start("populate", &[SOME, TIMES]);
    let mut session = session(&[child.pid()]);
    let (model, [minor, ..]) = watch(&mut session, &mut child);
    demand("minor faults the kernel counted", minor, SOME * TIMES);
    let seen = process(model.delta(), child.pid()).faults();
    println!("  faults seen: {seen} (at most {THREAD_START})");
    assert!(seen <= THREAD_START);
    let (unseen, comment) = kind(&model, "not seen");
    let floor = SOME * TIMES * 9 / 10;
    demand("faults said to be unseen", unseen, floor);
    assert!(comment.contains("MAP_POPULATE"), "{comment}");
    child.finish();
}

/// `arguments[0]` short processes: a third only faults, a third moves to the root
/// cgroup, a third runs another program.
fn short_processes(link: &mut Link, arguments: &[u64]) {
    const PAGES: usize = 50;
    const AT_ONCE: u64 = 10;
    let procs = memory_mount().join("cgroup.procs");
    let procs =
        CString::new(procs.into_os_string().into_encoded_bytes()).expect("a path without NUL");
    let memory = Pages::new(2 * PAGES);
    link.stop([0; 4]);
    for n in 0..arguments[0] {
        // SAFETY: this process has one thread; the child makes system calls only.
        match unsafe { libc::fork() } {
            -1 => panic!("fork: {}", std::io::Error::last_os_error()),
            0 => {
                memory.touch_part(0, PAGES);
                // SAFETY: literal or live C strings; nothing of the parent is used after.
                unsafe {
                    if n % 3 == 1 {
                        let file = libc::open(procs.as_ptr(), libc::O_WRONLY);
                        libc::write(file, c"0".as_ptr().cast(), 1);
                    }
                    if n % 3 == 2 {
                        libc::execl(
                            c"/bin/true".as_ptr(),
                            c"true".as_ptr(),
                            std::ptr::null::<libc::c_char>(),
                        );
                    }
                }
                memory.touch_part(PAGES, PAGES);
                // SAFETY: ends the child.
                unsafe { libc::_exit(0) }
            }
            _ => {}
        }
        if n % AT_ONCE == AT_ONCE - 1 {
            reap();
        }
    }
    reap();
    link.stop([0; 4]);
}

fn reap() {
    // SAFETY: no status is wanted.
    while unsafe { libc::wait(std::ptr::null_mut()) } > 0 {}
}

/// Serviced and major faults: by CPU, by process with losses, by thread with losses.
fn scopes(model: &Model) -> [i64; 3] {
    let delta = model.delta();
    let lost = loss(model, "thread_overflow_full") + loss(model, "faults_unattributed");
    let sum = |counters: &faultscope::sample::Counters| counters.faults() + counters[Scope::Major];
    let processes: u64 = delta.processes.values().map(|p| sum(&p.counters)).sum();
    let threads: u64 = delta.threads.values().map(|t| sum(&t.counters)).sum();
    [sum(&delta.total()), processes + lost, threads + lost]
        .map(|n| i64::try_from(n).expect("counts fit"))
}

/// The value most readings agree on.
fn agreed(mut readings: Vec<i64>) -> i64 {
    readings.sort_unstable();
    readings
        .chunk_by(|a, b| a == b)
        .max_by_key(|same| same.len())
        .map(|same| same[0])
        .expect("there are readings")
}

/// What the array by CPU holds is what the rows of threads and the losses hold,
/// while threads exit, run other programs and change their cgroup.
#[test]
fn cpu_totals_equal_thread_rows_and_losses() {
    const PROCESSES: u64 = 300;
    /// Rows and array are read some ms apart, and differ by what the rest of the
    /// machine does meanwhile: in moments without faults the readings agree.
    const READINGS: usize = 20;
    let cgroup = Cgroup::new("storm");
    let mut child = Child::start_in("short processes", &[PROCESSES], Some(&cgroup));
    let mut session = session(&[]);
    let mut sums = [0_i64; 3];
    let mut less_the_array = |sums: &mut [i64; 3]| {
        let mut readings = [Vec::new(), Vec::new()];
        for _ in 0..READINGS {
            let model = tick(&mut session);
            for (sum, n) in sums.iter_mut().zip(scopes(&model)) {
                *sum += n;
            }
            readings[0].push(sums[1] - sums[0]);
            readings[1].push(sums[2] - sums[0]);
            std::thread::sleep(Duration::from_millis(10));
        }
        readings.map(agreed)
    };
    let before = less_the_array(&mut sums);
    let base = sums[0];
    child.step();
    let after = less_the_array(&mut sums);
    let faults = u64::try_from(sums[0] - base).expect("counts grow");
    demand("faults by CPU", faults, PROCESSES * 100);
    for (what, before, after) in [
        ("processes", before[0], after[0]),
        ("threads", before[1], after[1]),
    ] {
        let off = after.abs_diff(before);
        println!("  rows of {what} and losses, less the array: {before} before, {after} after");
        assert!(
            off <= faults / 1000,
            "rows of {what} and losses are {off} of {faults} faults off the array by CPU"
        );
    }
    child.finish();
}
