//! Inside `handle_mm_fault`: entries against exits and the kernel's own counts,
//! path, backing, retries, errors, pages, and what is left without fentry.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd as _, FromRawFd as _};

use faultscope::commands::session::{Options, Session};
use faultscope::model::{Model, TableId, Value};
use faultscope::sample::delta::{
    FALL_BACK, FAULT_BACKINGS, FAULT_PATHS, GUP, POPULATE, Passes, ProcessPasses,
};

use crate::support::{
    Child, Link, PAGE, Pages, Role, demand, demand_exactly, demand_near, feature, has_vma_locks,
    loss, object, own_faults, print_losses, skip, tick, watch,
};

pub(crate) const ROLES: &[(&str, Role)] = &[
    ("backings", backings),
    ("beyond the end", beyond_the_end),
    ("user faults", user_faults),
    ("get user pages", get_user_pages),
];

/// Pages of the exact loads.
const SOME: u64 = 2_000;
/// Pages of the large ones.
const MANY: u64 = 20_000;
/// Faults of a process that are not of its load, at most: its own stack, data and
/// the code of its report.
pub(crate) const BESIDE: u64 = 40;
/// What the harness's row of the support table is called.
pub(crate) const FEATURE: &str = "fault latency, path and backing";

const VMA_LOCK: usize = 0;
const MMAP_LOCK: usize = 1;
const KERNEL: usize = 3;

pub(crate) fn size(n: u64) -> usize {
    usize::try_from(n).expect("sizes fit")
}

/// A session that shows fault latency; the end of the test, said and counted as a
/// skip, where the kernel does not let the programs in.
macro_rules! latency_or_return {
    ($pids:expr) => {{
        let mut session = $crate::support::session($pids);
        session.show(faultscope::model::TableId::FaultLatency);
        $crate::support::tick(&mut session);
        let model = $crate::support::tick(&mut session);
        match model.missing.iter().find(|m| &*m.signal == "fault_latency") {
            None => session,
            Some(missing) => {
                println!("  {}", missing.reason);
                $crate::support::feature($crate::latency::FEATURE, Err("fentry is refused"));
                $crate::support::skip("this kernel lets no fentry program in");
                return;
            }
        }
    }};
}
pub(crate) use latency_or_return;

fn of(model: &Model, pid: u32) -> ProcessPasses {
    model
        .delta()
        .process_passes
        .get(&pid)
        .cloned()
        .unwrap_or_default()
}

fn everything(model: &Model) -> Passes {
    let mut all = Passes::default();
    for passes in model.delta().passes.values() {
        all.add(passes);
    }
    all
}

/// Faults of the machine with a backing, over the paths.
pub(crate) fn backed(model: &Model, backing: &str) -> Passes {
    let index = FAULT_BACKINGS
        .iter()
        .position(|name| *name == backing)
        .expect("a backing");
    let mut all = Passes::default();
    for ((_, of), passes) in &model.delta().passes {
        if *of == index {
            all.add(passes);
        }
    }
    all
}

pub(crate) fn print_paths(model: &Model) {
    for ((path, backing), p) in &model.delta().passes {
        println!(
            "  {}/{}: {} began, {} faults, {} retries, {} majors, errors {:?}, {} pages, {} unpaired",
            FAULT_PATHS[*path],
            FAULT_BACKINGS[*backing],
            p.began,
            p.faults,
            p.retries,
            p.majors,
            p.errors,
            p.pages,
            p.unpaired
        );
    }
}

/// Page touches are entries, exits, the process's own minor faults, and vmstat's
/// faults: the first three exactly, vmstat within what the machine does between
/// two readings (1 % of the load here). Nothing is retried or lost.
#[test]
fn touched_pages_are_entries_exits_minflt_and_pgfault() {
    let mut child = Child::start("touch", &[MANY, 1]);
    let mut session = latency_or_return!(&[child.pid()]);
    let (model, [minor, ..]) = watch(&mut session, &mut child);
    print_paths(&model);
    let own = of(&model, child.pid());
    demand("minor faults the kernel counted", minor, MANY);
    demand_exactly(
        "entries, less exits",
        own.passes.began,
        own.passes.faults + own.passes.retries,
    );
    // The two getrusage calls are inside the interval, and so are a few faults of the report.
    demand_near("faults ended", own.passes.faults, minor, BESIDE);
    demand_near("retries", own.passes.retries, 0, BESIDE);
    demand_exactly(
        "values in its histogram",
        own.passes.histogram.count(),
        own.passes.faults,
    );
    let all = everything(&model);
    let pgfault = model
        .delta()
        .vmstat
        .get("pgfault")
        .copied()
        .expect("vmstat");
    // mm_account_fault() leaves passes that return RETRY out since 6.4, as per-VMA locks came.
    let wanted = if has_vma_locks() {
        all.faults
    } else {
        all.faults + all.retries
    };
    demand_near("vmstat pgfault", pgfault, wanted, MANY / 100);
    let table = model.table(TableId::FaultProcesses);
    let column = |id| table.position(id).expect("a column");
    let pid = Value::Count(u64::from(child.pid()));
    let row = table
        .rows
        .iter()
        .find(|row| row.cells[column("pid")] == pid);
    let row = row.expect("the process has a row");
    assert_eq!(
        row.cells[column("handled")],
        Value::Count(own.passes.faults)
    );
    demand_exactly("rows lost", loss(&model, "fault_latency_rows_full"), 0);
    print_losses(&model);
    feature(FEATURE, Ok(()));
    child.finish();
}

/// Nearly all faults on anonymous memory take the VMA lock where there is one,
/// and all take mmap_lock where there is none.
#[test]
fn anonymous_faults_take_the_vma_lock_where_there_is_one() {
    let mut child = Child::start("touch", &[MANY, 4]);
    let mut session = latency_or_return!(&[child.pid()]);
    let (model, _) = watch(&mut session, &mut child);
    print_paths(&model);
    let own = of(&model, child.pid());
    let user = own.paths[VMA_LOCK] + own.paths[MMAP_LOCK] + own.paths[FALL_BACK];
    print_losses(&model);
    // With PREEMPT_RT a thread may be preempted inside a program that the next one on its CPU is then denied.
    let skipped = loss(&model, "program_recursion");
    demand("user faults, and skipped runs", user + skipped, MANY);
    demand("user faults", user, MANY * 95 / 100);
    let has = has_vma_locks();
    if has {
        demand(
            "of them under the VMA lock",
            own.paths[VMA_LOCK],
            user * 99 / 100,
        );
        feature("faults under the VMA lock", Ok(()));
    } else {
        demand_exactly("of them under mmap_lock", own.paths[MMAP_LOCK], user);
        feature(
            "faults under the VMA lock",
            Err("the kernel has no per-VMA locks"),
        );
    }
    child.finish();
}

/// Populated pages are seen one by one, and so are those of `get_user_pages`.
#[test]
fn populated_pages_and_get_user_pages_are_seen() {
    let mut child = Child::start("populate", &[SOME, 1]);
    let mut session = latency_or_return!(&[child.pid()]);
    let (model, [minor, ..]) = watch(&mut session, &mut child);
    print_paths(&model);
    demand("minor faults the kernel counted", minor, SOME);
    let own = of(&model, child.pid());
    demand_exactly("pages populated", own.paths[POPULATE], SOME);
    demand_near("faults in all", own.passes.faults, minor, BESIDE);
    child.finish();

    let mut child = Child::start("get user pages", &[SOME]);
    let mut session = latency_or_return!(&[child.pid()]);
    let (model, [minor, ..]) = watch(&mut session, &mut child);
    demand("minor faults the kernel counted", minor, SOME);
    let own = of(&model, child.pid());
    demand_exactly("pages got", own.paths[GUP], SOME);
    child.finish();
}

/// Reads `arguments[0]` untouched pages of its own through process_vm_readv.
fn get_user_pages(link: &mut Link, arguments: &[u64]) {
    let pages = size(arguments[0]);
    let from = Pages::new(pages);
    let to = Pages::new(pages);
    to.touch();
    link.stop([0; 4]);
    let before = own_faults();
    // The kernel takes at most 16 pages of pinned memory at a time, which changes nothing in the count.
    let side = |memory: &Pages| libc::iovec {
        iov_base: memory.start().cast(),
        iov_len: memory.bytes(),
    };
    let (to, from_side) = (side(&to), side(&from));
    // SAFETY: two live mappings of this process.
    let read = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const to, 1, &raw const from_side, 1, 0)
    };
    let after = own_faults();
    assert_eq!(usize::try_from(read).ok(), Some(from.bytes()));
    link.stop([after.0 - before.0, 0, 0, 0]);
}

/// Faults each backing in turn, `arguments[0]` pages at each stop.
fn backings(link: &mut Link, arguments: &[u64]) {
    let pages = size(arguments[0]);
    let mut step = |work: &mut dyn FnMut()| {
        link.stop([0; 4]);
        let before = own_faults();
        work();
        let after = own_faults();
        link.stop([after.0 - before.0, after.1 - before.1, 0, 0]);
    };
    let anonymous = Pages::new(pages);
    // The zero page first, then a copy of it.
    step(&mut || anonymous.read());
    step(&mut || anonymous.touch());
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("backing-{}", std::process::id()));
    std::fs::write(&path, vec![1_u8; pages * PAGE]).expect("the file can be written");
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .expect("the file can be opened");
    std::fs::remove_file(&path).expect("the file can be removed");
    let shared = Pages::map(pages, libc::MAP_SHARED, file.as_raw_fd());
    step(&mut || shared.read());
    let private = Pages::map(pages, libc::MAP_PRIVATE, file.as_raw_fd());
    step(&mut || private.touch());
    let memory = Pages::map(pages, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1);
    step(&mut || memory.touch());
    // Out to swap where there is some, and back.
    anonymous.advise(libc::MADV_PAGEOUT);
    step(&mut || anonymous.read());
    link.stop([0; 4]);
}

/// Each backing is told, and exactly: zero page, copy, file with the pages around
/// it, private copy of a file, shared memory, swap.
#[test]
fn each_backing_is_told() {
    let mut child = Child::start("backings", &[SOME]);
    let mut session = latency_or_return!(&[child.pid()]);
    let mut next = |backing: &str| {
        let (model, [minor, major, ..]) = watch(&mut session, &mut child);
        println!("{backing}: {minor} minor, {major} major");
        print_paths(&model);
        // On to the next stop, where the next load is made ready.
        child.step();
        (model, minor + major)
    };
    let (model, faults) = next("anon");
    demand("faults the kernel counted", faults, SOME);
    demand("anon faults", backed(&model, "anon").faults, SOME);
    let (model, _) = next("cow");
    let cow = backed(&model, "cow");
    demand_near("copies of the zero page", cow.faults, SOME, BESIDE);
    demand_near("pages they made", cow.pages, SOME, 2 * BESIDE);
    let (model, _) = next("file");
    let file = backed(&model, "file");
    demand("file faults", file.faults, SOME / 64);
    demand_near(
        "pages they mapped, those around included",
        file.pages,
        SOME,
        SOME / 10,
    );
    assert!(
        file.faults < SOME / 2,
        "{} faults: nothing mapped around",
        file.faults
    );
    let (model, _) = next("cow");
    demand_near(
        "private copies of a file",
        backed(&model, "cow").faults,
        SOME,
        BESIDE,
    );
    let (model, _) = next("shmem");
    let shmem = backed(&model, "shmem");
    demand_near("shmem faults", shmem.faults, SOME, BESIDE);
    let (model, [minor, major, ..]) = watch(&mut session, &mut child);
    println!("swap: {minor} minor, {major} major");
    print_paths(&model);
    let swap = backed(&model, "swap");
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().count() > 1 {
        // Read-ahead brings neighbours in as well: a fault each all the same, most of them minor.
        demand_near("swap faults", swap.faults, SOME, SOME / 50);
        demand_near("major ones", everything(&model).majors, major, BESIDE);
        demand("of them", major, 1);
    } else {
        println!("  no swap area here: swap-ins are not checked");
    }
    child.step();
    child.finish();
}

/// Kernel reads of `arguments[0]` pages beyond the end of a file, and as many
/// processes as `arguments[1]` killed for one.
fn beyond_the_end(link: &mut Link, arguments: &[u64]) {
    let pages = size(arguments[0]);
    // SAFETY: a name, and a new descriptor that is ours.
    let file = unsafe {
        let file = libc::memfd_create(c"short".as_ptr(), 0);
        assert!(file >= 0, "memfd_create");
        std::fs::File::from_raw_fd(file)
    };
    let memory = Pages::map(pages, libc::MAP_SHARED, file.as_raw_fd());
    let mut pipe = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    link.stop([0; 4]);
    let mut failed = 0;
    for page in 0..pages {
        // SAFETY: the kernel reads an address of ours and finds nothing there.
        let wrote = unsafe { libc::write(pipe[1], memory.start().add(page * PAGE).cast(), 1) };
        failed += u64::from(wrote < 0);
    }
    for _ in 0..arguments[1] {
        // SAFETY: this process has one thread; the child touches a page and dies of it.
        match unsafe { libc::fork() } {
            -1 => panic!("fork: {}", std::io::Error::last_os_error()),
            0 => {
                // SAFETY: the mapping is there, its page is not: SIGBUS, which the child does not handle.
                unsafe {
                    libc::signal(libc::SIGBUS, libc::SIG_DFL);
                    memory.start().read_volatile();
                    libc::_exit(0);
                }
            }
            _ => {
                // SAFETY: no status is wanted.
                unsafe { libc::wait(std::ptr::null_mut()) };
            }
        }
    }
    link.stop([failed, 0, 0, 0]);
}

/// SIGBUS beyond the end of a file, for the kernel and for user mode.
#[test]
fn errors_are_told_by_their_bit() {
    const PROCESSES: u64 = 20;
    let mut child = Child::start("beyond the end", &[SOME, PROCESSES]);
    let mut session = latency_or_return!(&[]);
    let (model, [failed, ..]) = watch(&mut session, &mut child);
    print_paths(&model);
    demand("writes that failed", failed, SOME);
    let all = everything(&model);
    demand(
        "faults that returned SIGBUS",
        all.errors[1],
        SOME + PROCESSES,
    );
    let kernel: u64 = model
        .delta()
        .passes
        .iter()
        .filter(|((path, _), _)| *path == KERNEL)
        .map(|(_, p)| p.errors[1])
        .sum();
    demand("of them for the kernel", kernel, SOME);
    let shmem = backed(&model, "shmem");
    demand(
        "of them on shared memory",
        shmem.errors[1],
        SOME + PROCESSES,
    );
    let own = of(&model, child.pid());
    demand(
        "of them in the row of the process",
        own.passes.failed(),
        failed,
    );
    demand_exactly("other errors", all.failed() - all.errors[1], 0);
    child.finish();
}

/// `struct uffdio_api` and the like (include/uapi/linux/userfaultfd.h).
#[repr(C)]
struct UffdApi {
    api: u64,
    features: u64,
    ioctls: u64,
}
#[repr(C)]
struct UffdRegister {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}
#[repr(C)]
struct UffdZero {
    start: u64,
    len: u64,
    mode: u64,
    zeroed: i64,
}
const UFFD_API: libc::c_ulong = 0xc018_aa3f;
const UFFD_REGISTER: libc::c_ulong = 0xc020_aa00;
const UFFD_ZEROPAGE: libc::c_ulong = 0xc020_aa04;

/// Reads `arguments[0]` pages that another thread gives through a userfaultfd.
fn user_faults(link: &mut Link, arguments: &[u64]) {
    let pages = size(arguments[0]);
    let memory = Pages::new(pages);
    // SAFETY: a new descriptor that is ours.
    let mut file = unsafe {
        let file = libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC);
        assert!(
            file >= 0,
            "userfaultfd: {}",
            std::io::Error::last_os_error()
        );
        std::fs::File::from_raw_fd(i32::try_from(file).expect("a descriptor"))
    };
    let fd = file.as_raw_fd();
    let mut api = UffdApi {
        api: 0xaa,
        features: 0,
        ioctls: 0,
    };
    let mut register = UffdRegister {
        start: memory.start() as u64,
        len: memory.bytes() as u64,
        mode: 1,
        ioctls: 0,
    };
    // SAFETY: the two structures are what the calls take.
    unsafe {
        assert_eq!(libc::ioctl(fd, UFFD_API, &raw mut api), 0, "UFFDIO_API");
        assert_eq!(
            libc::ioctl(fd, UFFD_REGISTER, &raw mut register),
            0,
            "UFFDIO_REGISTER"
        );
    }
    let giver = std::thread::spawn(move || {
        use std::io::Read as _;
        let mut message = [0_u8; 32];
        for _ in 0..pages {
            file.read_exact(&mut message).expect("a fault to handle");
            let address = u64::from_le_bytes(message[16..24].try_into().expect("eight bytes"));
            let mut zero = UffdZero {
                start: address & !(PAGE as u64 - 1),
                len: PAGE as u64,
                mode: 0,
                zeroed: 0,
            };
            // SAFETY: the structure is what the call takes.
            let done = unsafe { libc::ioctl(file.as_raw_fd(), UFFD_ZEROPAGE, &raw mut zero) };
            assert_eq!(done, 0, "UFFDIO_ZEROPAGE");
        }
    });
    link.stop([0; 4]);
    let before = own_faults();
    memory.read();
    let after = own_faults();
    link.stop([after.0 - before.0, after.1 - before.1, 0, 0]);
    giver.join().expect("the giver ends");
}

/// A fault that a userfaultfd handles returns RETRY, and its second pass falls back
/// to mmap_lock: one fault, two passes.
#[test]
fn a_userfaultfd_makes_faults_fall_back() {
    const PAGES: u64 = 500;
    let mut child = Child::start("user faults", &[PAGES]);
    let mut session = latency_or_return!(&[child.pid()]);
    let (model, [minor, major, ..]) = watch(&mut session, &mut child);
    print_paths(&model);
    demand("faults the kernel counted", minor + major, PAGES);
    let own = of(&model, child.pid());
    demand("retries", own.passes.retries, PAGES);
    demand_near("faults ended", own.passes.faults, minor + major, BESIDE);
    // A second pass says TRIED after one under mmap_lock, and the kernel takes it for major then.
    demand_near("major ones", own.passes.majors, major, BESIDE);
    // The giver ends beside the reading, and may be inside a fault of its own then.
    demand_near(
        "passes",
        own.passes.began,
        own.passes.faults + own.passes.retries,
        1,
    );
    let has = has_vma_locks();
    if has {
        demand("faults that fell back", own.paths[FALL_BACK], PAGES);
    } else {
        demand_exactly("faults that fell back", own.paths[FALL_BACK], 0);
        demand("faults under mmap_lock", own.paths[MMAP_LOCK], PAGES);
    }
    child.finish();
}

/// Without fentry a kprobe counts passes by path; times and outcomes are absent.
#[test]
fn a_kprobe_counts_passes_where_fentry_is_refused() {
    const WHAT: &str = "fault paths by kprobe";
    let mut child = Child::start("populate", &[SOME, 1]);
    let forbidden: BTreeSet<String> = ["mm_fault_end", "mm_fault_begin"].map(str::to_owned).into();
    let mut session = Session::start(&Options {
        pids: vec![child.pid()],
        forbidden,
        bpf_object: object(),
        ..Options::default()
    })
    .expect("the core set attaches; see `faultscope doctor`");
    session.show(TableId::FaultLatency);
    tick(&mut session);
    let model = tick(&mut session);
    if model
        .missing
        .iter()
        .any(|m| &*m.signal == "populate_faults")
    {
        let table = model.table(TableId::FaultLatency);
        let comment = table.position("comment").expect("a column");
        println!("  the table says: {:?}", table.rows[0].cells[comment]);
        assert!(matches!(&table.rows[0].cells[comment], Value::Text(why) if !why.is_empty()));
        feature(WHAT, Err("kprobes are not built"));
        skip("this kernel has no kprobes");
        return;
    }
    let (model, [minor, ..]) = watch(&mut session, &mut child);
    print_paths(&model);
    demand("minor faults the kernel counted", minor, SOME);
    let populated: u64 = model
        .delta()
        .passes
        .iter()
        .filter(|((path, _), _)| *path == POPULATE)
        .map(|(_, p)| p.began)
        .sum();
    demand("passes that populate", populated, SOME);
    demand_near(
        "passes of the process",
        of(&model, child.pid()).passes.began,
        minor,
        BESIDE,
    );
    let table = model.table(TableId::FaultLatency);
    let column = |id| table.position(id).expect("a column");
    for row in &table.rows {
        assert_eq!(row.cells[column("handled")], Value::Absent);
        assert_eq!(row.cells[column("fault_p99_ns")], Value::Absent);
        assert_eq!(row.cells[column("retries")], Value::Absent);
    }
    demand("rows of the table", table.rows.len() as u64, 1);
    feature(WHAT, Ok(()));
    child.finish();
}
