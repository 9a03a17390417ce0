//! Faults on memory given back by madvise, against the kernel's own count of the child's faults.

use std::path::Path;
use std::time::Duration;

use faultscope::commands::session::{Options, Session};
use faultscope::model::{Model, TableId};
use faultscope::sample::delta::MadviseId;
use faultscope::sample::refault::Refault;

use crate::support::{
    Child, Link, PAGE, Pages, Role, demand, demand_exactly, demand_near, feature, loss, object,
    own_faults, print_losses, watch,
};

pub(crate) const ROLES: &[(&str, Role)] = &[
    ("give back", give_back),
    ("give back a file", give_back_file),
    ("page out another", page_out_another),
];

/// Pages of each range.
const PAGES: u64 = 2_000;
/// Pages touched again.
const TOUCHED: u64 = 700;
/// Pages that one piece of a piecemeal return has: few enough pieces for every granule.
const PIECE: u64 = 16;
/// Longer than any step of these tests.
const LONG: Duration = Duration::from_secs(60);
/// Room for what the harness itself faults.
const SLACK: u64 = 3;

fn size(n: u64) -> usize {
    usize::try_from(n).expect("sizes fit")
}

/// Faults of this process while `work` runs.
fn faults_of(work: impl FnOnce()) -> u64 {
    let (minor, major) = own_faults();
    work();
    let (minor_after, major_after) = own_faults();
    minor_after + major_after - minor - major
}

fn advise(memory: &Pages, first: usize, pages: usize, advice: i32) {
    assert!((first + pages) * PAGE <= memory.bytes());
    // SAFETY: inside this mapping, which no reference points into.
    let done = unsafe {
        libc::madvise(
            memory.start().add(first * PAGE).cast(),
            pages * PAGE,
            advice,
        )
    };
    assert_eq!(done, 0, "madvise {advice}");
}

/// Writes `pages` pages, gives them back by `advice` in pieces of `piece`, sleeps `ms`, writes the first `touched`.
/// Reports the faults of the latter.
fn give_back(link: &mut Link, arguments: &[u64]) {
    let &[pages, touched, advice, piece, ms] = arguments else {
        panic!("five arguments");
    };
    // A piece must not straddle a granule, so the pages begin on the border of one.
    let room = Pages::new(size(pages) + 32);
    let first = (room.start().align_offset(32 * PAGE)) / PAGE;
    let advice = i32::try_from(advice).expect("advices are small");
    link.stop([0; 4]);
    loop {
        room.touch_part(first, size(pages));
        for part in 0..size(pages / piece) {
            advise(&room, first + part * size(piece), size(piece), advice);
        }
        std::thread::sleep(Duration::from_millis(ms));
        let faults = faults_of(|| room.touch_part(first, size(touched)));
        link.stop([faults, 0, 0, 0]);
    }
}

fn refaults_session(pids: &[u32], window: Duration) -> Session {
    let mut session = Session::start(&Options {
        pids: pids.to_vec(),
        refault_window: Some(window),
        bpf_object: object(),
        ..Options::default()
    })
    .expect("the core set attaches; see `faultscope doctor`");
    session.show(TableId::Refaults);
    session
}

fn row_of(model: &Model, tgid: u32, advice: i32, is_remote: bool) -> Refault {
    let id = MadviseId {
        tgid,
        advice,
        is_remote,
    };
    model.delta().refaults.get(&id).cloned().unwrap_or_default()
}

/// Gives `PAGES` pages back and touches `TOUCHED`: the row, and the faults the kernel counted.
fn given_back(advice: i32, piece: u64, ms: u64, window: Duration) -> (Refault, u64) {
    let advice_word = u64::from(advice.unsigned_abs());
    let mut child = Child::start("give back", &[PAGES, TOUCHED, advice_word, piece, ms]);
    let mut session = refaults_session(&[child.pid()], window);
    let (model, [faults, ..]) = watch(&mut session, &mut child);
    print_losses(&model);
    let row = row_of(&model, child.pid(), advice, false);
    demand_exactly("ranges", row.ranges, PAGES / piece);
    demand_exactly("bytes", row.bytes, PAGES * PAGE as u64);
    demand_exactly("bytes not followed", row.lost_bytes, 0);
    demand_exactly("refaults with a time", row.after.count(), row.refaults);
    (row, faults)
}

/// One long range and many short ones: each page touched again counts once.
#[test]
fn pages_dropped_and_touched_again_are_exact() {
    for piece in [PAGES, PIECE] {
        let (row, faults) = given_back(libc::MADV_DONTNEED, piece, 0, LONG);
        demand_exactly("refaults", row.refaults, TOUCHED);
        demand_near("faults of the touches", faults, TOUCHED, SLACK);
    }
    feature("refaults after MADV_DONTNEED", Ok(()));
}

/// A page given back by MADV_FREE that nobody reclaimed is taken again without a fault.
#[test]
fn pages_freed_lazily_come_back_without_a_fault() {
    let (row, faults) = given_back(libc::MADV_FREE, PAGES, 0, LONG);
    demand_exactly("refaults", row.refaults, 0);
    demand_near("faults of the touches", faults, 0, SLACK);
    feature("refaults after MADV_FREE", Ok(()));
}

/// Anonymous pages go to swap and fault when they are touched; without swap they stay.
#[test]
fn pages_paged_out_refault_where_there_is_swap() {
    let swaps = std::fs::read_to_string("/proc/swaps").expect("the kernel has swap built in");
    let has_swap = swaps.lines().count() > 1;
    let (row, faults) = given_back(libc::MADV_PAGEOUT, PAGES, 0, LONG);
    println!("  swap: {has_swap}");
    if has_swap {
        demand("refaults", row.refaults, TOUCHED / 2);
    } else {
        demand_exactly("refaults", row.refaults, 0);
    }
    demand_near("faults of the touches", faults, row.refaults, SLACK);
    feature("refaults after MADV_PAGEOUT of anonymous memory", Ok(()));
}

/// What is touched after the window does not count.
#[test]
fn touches_after_the_window_are_no_refaults() {
    let window = Duration::from_millis(100);
    let (row, faults) = given_back(libc::MADV_DONTNEED, PAGES, 300, window);
    demand_exactly("refaults", row.refaults, 0);
    demand_near("faults of the touches", faults, TOUCHED, SLACK);
}

/// More ranges in one place than are kept: each page is a refault or was said not to be followed.
#[test]
fn ranges_that_were_overwritten_are_counted() {
    const EACH: u64 = 1;
    let advice = u64::from(libc::MADV_DONTNEED.unsigned_abs());
    let mut child = Child::start("give back", &[PAGES, PAGES, advice, EACH, 0]);
    let mut session = refaults_session(&[child.pid()], LONG);
    let (model, [faults, ..]) = watch(&mut session, &mut child);
    let row = row_of(&model, child.pid(), libc::MADV_DONTNEED, false);
    let lost_pages = row.lost_bytes / PAGE as u64;
    demand_exactly("ranges", row.ranges, PAGES);
    demand_near("faults of the touches", faults, PAGES, SLACK);
    // 32 pages of a granule, of which the newest 8 are kept.
    demand("pages not followed", lost_pages, PAGES / 2);
    demand("refaults", row.refaults, PAGES / 8);
    demand_exactly("both together", row.refaults + lost_pages, PAGES);
    demand_exactly("losses", loss(&model, "given_back_overwritten"), lost_pages);
    // What is given back whole takes the place of its parts, so nothing more is lost.
    drop(session);
    let (row, _) = given_back(libc::MADV_DONTNEED, PAGES, 0, LONG);
    demand_exactly("refaults after it", row.refaults, TOUCHED);
}

/// The same range given back twice has one place, and counts each time.
#[test]
fn a_range_given_back_again_counts_again() {
    let advice = u64::from(libc::MADV_DONTNEED.unsigned_abs());
    let mut child = Child::start("give back", &[PAGES, TOUCHED, advice, PIECE, 0]);
    let mut session = refaults_session(&[child.pid()], LONG);
    // From the second round on the rest is touched first, in the window of the round before.
    for wanted in [TOUCHED, PAGES, PAGES] {
        let (model, _) = watch(&mut session, &mut child);
        let row = row_of(&model, child.pid(), libc::MADV_DONTNEED, false);
        demand_exactly("bytes not followed", row.lost_bytes, 0);
        demand_exactly("refaults", row.refaults, wanted);
    }
}

/// Two processes, of which only one is in the filter, then both.
#[test]
fn processes_are_kept_apart() {
    let advice = u64::from(libc::MADV_DONTNEED.unsigned_abs());
    let mut children =
        [300, 500].map(|touched| Child::start("give back", &[PAGES, touched, advice, PAGES, 0]));
    let pids = children.each_ref().map(Child::pid);
    for watched in [&pids[..1], &pids[..]] {
        let mut session = refaults_session(watched, LONG);
        crate::support::tick(&mut session);
        for child in &mut children {
            child.step();
        }
        let model = crate::support::tick(&mut session);
        for (pid, touched) in pids.into_iter().zip([300, 500]) {
            let row = row_of(&model, pid, libc::MADV_DONTNEED, false);
            let wanted = if watched.contains(&pid) { touched } else { 0 };
            demand_exactly(&format!("refaults of {pid}"), row.refaults, wanted);
        }
    }
}

/// Maps a file of `arguments[0]` pages; whoever is asked pages it out, this process (`arguments[1]` is 1) or another
/// one; then touches every 20th page, farther apart than the kernel maps around a fault.
fn give_back_file(link: &mut Link, arguments: &[u64]) {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    let pages = size(arguments[0]);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("faultscope-refaults-{}", std::process::id()));
    let mut file = std::fs::File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .expect("a file can be made");
    std::fs::remove_file(&path).expect("the file was just made");
    for _ in 0..pages {
        file.write_all(&[1; PAGE]).expect("the disk has room");
    }
    file.sync_all().expect("the disk takes it");
    let memory = Pages::map(pages, libc::MAP_SHARED, file.as_raw_fd());
    memory.advise(libc::MADV_RANDOM);
    memory.read();
    link.stop([memory.start() as u64, memory.bytes() as u64, 0, 0]);
    if arguments[1] != 0 {
        memory.advise(libc::MADV_PAGEOUT);
    }
    let touched = faults_of(|| {
        for page in (0..pages).step_by(20) {
            // SAFETY: inside the mapping.
            unsafe { memory.start().add(page * PAGE).read_volatile() };
        }
    });
    link.stop([touched, 0, 0, 0]);
    link.stop([0; 4]);
}

/// Pages of a file that were paged out are read again.
#[test]
fn pages_of_a_file_paged_out_refault() {
    let mut child = Child::start("give back a file", &[PAGES, 1]);
    let mut session = refaults_session(&[child.pid()], LONG);
    let (model, [faults, ..]) = watch(&mut session, &mut child);
    print_losses(&model);
    let row = row_of(&model, child.pid(), libc::MADV_PAGEOUT, false);
    demand_exactly("ranges", row.ranges, 1);
    demand_exactly("bytes", row.bytes, PAGES * PAGE as u64);
    demand("refaults", row.refaults, PAGES / 20 / 2);
    demand_near("faults of the touches", faults, row.refaults, SLACK);
    child.step();
    child.finish();
    feature("refaults after MADV_PAGEOUT of file pages", Ok(()));
}

/// process_madvise(PAGEOUT) of `arguments[2]` bytes at `arguments[1]` of process `arguments[0]`, in `arguments[3]`
/// ranges of one call.
fn page_out_another(link: &mut Link, arguments: &[u64]) {
    let &[pid, start, bytes, parts] = arguments else {
        panic!("four arguments");
    };
    // SAFETY: numbers only.
    let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    assert!(pidfd >= 0, "pidfd_open");
    let part = bytes / PAGE as u64 / parts * PAGE as u64;
    let vector: Vec<libc::iovec> = (0..parts)
        .map(|i| libc::iovec {
            iov_base: std::ptr::without_provenance_mut(size(start + i * part)),
            iov_len: size(part),
        })
        .collect();
    link.stop([0; 4]);
    // SAFETY: live iovecs; the ranges are another process's.
    let advised = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            pidfd,
            vector.as_ptr(),
            vector.len(),
            libc::MADV_PAGEOUT,
            0,
        )
    };
    assert_eq!(u64::try_from(advised), Ok(part * parts));
    link.stop([0; 4]);
}

/// Memory of another process: its refaults are in the row of whoever gave it back.
#[test]
fn memory_of_another_process_counts_for_the_adviser() {
    const PARTS: u64 = 4;
    let mut victim = Child::start("give back a file", &[PAGES, 0]);
    let [start, bytes, ..] = victim.first();
    let arguments = [u64::from(victim.pid()), start, bytes, PARTS];
    let mut adviser = Child::start("page out another", &arguments);
    let mut session = refaults_session(&[adviser.pid()], LONG);
    crate::support::tick(&mut session);
    adviser.step();
    let [faults, ..] = victim.step();
    let model = crate::support::tick(&mut session);
    print_losses(&model);
    let row = row_of(&model, adviser.pid(), libc::MADV_PAGEOUT, true);
    demand_exactly("ranges", row.ranges, PARTS);
    demand_exactly("bytes", row.bytes, bytes);
    demand("refaults", row.refaults, PAGES / 20 / 2);
    demand_near("faults of the victim", faults, row.refaults, SLACK);
    feature("refaults after process_madvise of another process", Ok(()));
}

/// Only the first four ranges of a call are followed; the rest is said to be lost.
#[test]
fn ranges_past_the_fourth_of_a_vector_are_lost() {
    const PARTS: u64 = 10;
    let victim = Child::start("give back a file", &[PAGES, 0]);
    let [start, bytes, ..] = victim.first();
    let arguments = [u64::from(victim.pid()), start, bytes, PARTS];
    let mut adviser = Child::start("page out another", &arguments);
    let mut session = refaults_session(&[adviser.pid()], LONG);
    let (model, _) = watch(&mut session, &mut adviser);
    let row = row_of(&model, adviser.pid(), libc::MADV_PAGEOUT, true);
    demand_exactly("ranges", row.ranges, 4);
    demand_exactly("bytes", row.bytes, bytes);
    demand_exactly("bytes not followed", row.lost_bytes, bytes / PARTS * 6);
    demand_exactly("losses", loss(&model, "given_back_unread"), 1);
}
