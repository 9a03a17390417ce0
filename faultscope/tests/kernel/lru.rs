//! LRU functions against the kernel's own rules: marks, activations, batches,
//! drains and refaults, with multi-generational LRU off and on.
//!
//! # How often the kernel marks a page accessed
//!
//! read(2) marks a folio when a read begins in another folio than the one in which
//! the read before it ended (`filemap_read`, mm/filemap.c: `pos_same_folio` of the
//! position and `ra->prev_pos - 1`), and each further folio of the same read. A file
//! of N pages in folios of one page, read in order in pieces that divide a page, is
//! N marks, whatever the size of the pieces. A large folio would be one mark for
//! all its pages; the file systems of the guests make none.
//!
//! A mapping marks nothing when it is read. It marks when it ends: `zap_pte_range`
//! (mm/memory.c) calls it for each entry of a file's page that is young, once for
//! all entries of a large folio in a row since 6.9. On x86 every entry is made
//! young, those that fault-around adds too (`arch_wants_old_prefaulted_pte` is
//! false there). So N pages mapped, read and unmapped are N marks.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use faultscope::commands::session::{Options, Session};
use faultscope::model::{Model, TableId, Value};
use faultscope::sample::{Delta, delta::LruCalls};

use crate::support::{
    Cgroup, Child, Link, PAGE, Pages, Role, demand, demand_exactly, demand_near, feature, object,
    print_losses, skip, tick,
};

pub(crate) const ROLES: &[(&str, Role)] = &[
    ("lru_read", read),
    ("lru_map", map),
    ("lru_touch", touch),
    ("lru_refault", read),
];

/// Pages of the file that is read.
const PAGES: u64 = 4000;
/// Marks of the rest of the machine that a count may contain.
const STRAY: u64 = 20;

fn size(n: u64) -> usize {
    usize::try_from(n).expect("sizes fit")
}

/// A file of a process of this test, on a file system with a disk below it.
fn path(parent: u64, number: u64) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("faultscope-lru-{parent}-{number}"))
}

/// A file in the page cache, clean, none of its pages in a batch; removed when dropped.
struct Cached {
    path: PathBuf,
    arguments: [u64; 4],
}

impl Cached {
    /// `pages` pages, of which children read `piece` bytes at a time.
    fn new(number: u64, pages: u64, piece: u64) -> Self {
        let parent = u64::from(std::process::id());
        let path = path(parent, number);
        let file = File::create(&path).expect("a file can be made");
        let page = [1_u8; PAGE];
        for n in 0..pages {
            file.write_all_at(&page, n * PAGE as u64).expect("a write");
        }
        file.sync_all().expect("written to the disk");
        drain();
        Self {
            path,
            arguments: [parent, number, pages, piece],
        }
    }

    /// Takes its pages out of the page cache.
    fn evict(&self) {
        use std::os::fd::AsRawFd as _;
        let file = File::open(&self.path).expect("just made");
        // SAFETY: numbers only.
        let done =
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        assert_eq!(done, 0, "posix_fadvise");
    }
}

impl Drop for Cached {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }
}

/// Empties the batches of every CPU: `compact_nodes` begins with `lru_add_drain_all`.
fn drain() {
    std::fs::write("/proc/sys/vm/compact_memory", "1").expect("memory can be compacted");
}

/// Reads the file in pieces, from one stop to the next.
fn read(link: &mut Link, arguments: &[u64]) {
    let file = File::open(path(arguments[0], arguments[1])).expect("the test made it");
    let mut piece = vec![0_u8; size(arguments[3])];
    link.stop([0; 4]);
    for _ in 0..2 {
        let mut at = 0;
        while at < arguments[2] * PAGE as u64 {
            at += file.read_at(&mut piece, at).expect("a read") as u64;
        }
        link.stop([at, 0, 0, 0]);
    }
}

/// Maps the file, reads every page and unmaps it, from one stop to the next.
fn map(link: &mut Link, arguments: &[u64]) {
    use std::os::fd::AsRawFd as _;
    let file = File::options()
        .read(true)
        .write(true)
        .open(path(arguments[0], arguments[1]))
        .expect("the test made it");
    link.stop([0; 4]);
    for _ in 0..2 {
        let pages = Pages::map(size(arguments[2]), libc::MAP_SHARED, file.as_raw_fd());
        pages.read();
        drop(pages);
        link.stop([0; 4]);
    }
}

/// Touches pages and gives them back, `arguments[1]` times.
fn touch(link: &mut Link, arguments: &[u64]) {
    let pages = Pages::new(size(arguments[0]));
    link.stop([0; 4]);
    for _ in 0..arguments[1] {
        pages.touch();
        pages.advise(libc::MADV_DONTNEED);
    }
    link.stop([0; 4]);
}

/// A session that shows the LRU view; `None`, said and counted, where a signal is missing.
fn session(signal: &str, row: &str, forbidden: &[&str]) -> Option<Session> {
    let mut session = Session::start(&Options {
        forbidden: forbidden.iter().map(|name| (*name).to_owned()).collect(),
        bpf_object: object(),
        ..Options::default()
    })
    .expect("the core set attaches; see `faultscope doctor`");
    session.show(TableId::Lru);
    tick(&mut session);
    let model = tick(&mut session);
    let Some(missing) = model.missing.iter().find(|m| *m.signal == *signal) else {
        return Some(session);
    };
    feature(row, Err("the kernel takes no programs on its functions"));
    skip(&missing.reason);
    None
}

fn calls(delta: &Delta) -> LruCalls {
    let mut sum = LruCalls::default();
    for cpu in &delta.cpus {
        sum.mark_accessed += cpu.lru.mark_accessed;
        sum.workingset_activations += cpu.lru.workingset_activations;
        sum.refaults += cpu.lru.refaults;
        sum.drains += cpu.lru.drains;
    }
    sum
}

fn activations(delta: &Delta) -> u64 {
    delta.cpus.iter().map(|cpu| cpu.lru_activations).sum()
}

/// A cell of the LRU table.
fn cell(model: &Model, subject: &str, field: &str) -> Value {
    let table = model.table(TableId::Lru);
    let row = table
        .rows
        .iter()
        .find(|row| matches!(&row.cells[0], Value::Text(text) if text == subject))
        .unwrap_or_else(|| panic!("no row \"{subject}\""));
    row.cells[table.position(field).expect("a column")].clone()
}

fn comment(model: &Model, subject: &str) -> String {
    match cell(model, subject, "comment") {
        Value::Text(text) => text,
        other => panic!("{subject}: {other:?}"),
    }
}

fn step(session: &mut Session, child: &mut Child) -> Model {
    tick(session);
    child.step();
    tick(session)
}

/// N marks for each pass, by read(2) of a page, by read(2) of a quarter page, and by mapping.
fn demand_marks(session: &mut Session) {
    for (number, (what, role, piece)) in [
        ("read(2) of a page at a time", "lru_read", PAGE),
        ("read(2) of a quarter page at a time", "lru_read", PAGE / 4),
        ("mapped, read and unmapped", "lru_map", PAGE),
    ]
    .into_iter()
    .enumerate()
    {
        let file = Cached::new(number as u64, PAGES, piece as u64);
        let mut child = Child::start(role, &file.arguments);
        for pass in ["first", "second"] {
            let model = step(session, &mut child);
            let marks = calls(model.delta()).mark_accessed;
            demand(&format!("{what}, {pass} time: marks"), marks, PAGES);
            demand_near(&format!("{what}, {pass} time"), marks, PAGES, STRAY);
            assert_eq!(cell(&model, "mark accessed", "events"), Value::Count(marks));
        }
        child.finish();
    }
}

#[test]
fn a_page_read_again_is_marked_as_often_as_the_kernel_says() {
    let row = "pages marked accessed";
    let Some(mut session) = session("mark_accessed", row, &[]) else {
        return;
    };
    demand_marks(&mut session);
    feature(row, Ok(()));
}

/// The second way gives the same numbers.
#[test]
fn marks_are_counted_by_a_kprobe_where_fentry_is_forbidden() {
    let row = "pages marked accessed, by kprobe";
    let Some(mut session) = session("mark_accessed", row, &["mark_accessed"]) else {
        return;
    };
    let programs: Vec<String> = session
        .collector()
        .programs()
        .attached()
        .map(str::to_owned)
        .collect();
    assert!(programs.iter().any(|name| name == "mark_accessed_kprobe"));
    assert!(!programs.iter().any(|name| name == "mark_accessed"));
    demand_marks(&mut session);
    feature(row, Ok(()));
}

/// The switch of multi-generational LRU, as it was when dropped.
pub(crate) struct Switch {
    before: String,
}

impl Switch {
    const FILE: &str = "/sys/kernel/mm/lru_gen/enabled";

    /// `None` where the kernel is built without it.
    pub(crate) fn new() -> Option<Self> {
        let before = std::fs::read_to_string(Self::FILE).ok()?;
        Some(Self { before })
    }

    pub(crate) fn set(on: bool) {
        std::fs::write(Self::FILE, if on { "7" } else { "0" }).expect("root may switch it");
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        drop(std::fs::write(Self::FILE, self.before.trim()));
    }
}

/// Reads a file twice; the model of the second time, its activations drained.
fn read_twice(session: &mut Session, number: u64) -> Model {
    let file = Cached::new(number, PAGES, PAGE as u64);
    let mut child = Child::start("lru_read", &file.arguments);
    step(session, &mut child);
    drain();
    tick(session);
    child.step();
    drain();
    let model = tick(session);
    child.finish();
    model
}

/// Two-list LRU activates what is marked twice, multi-generational LRU nothing,
/// and the output says which it is, also when it was switched meanwhile.
#[test]
fn activations_follow_the_mglru_switch() {
    let row = "activations asked for, and the MGLRU switch";
    let Some(mut session) = session("workingset_activation", row, &[]) else {
        return;
    };
    let Some(switch) = Switch::new() else {
        println!("  this kernel is built without multi-generational LRU");
        let model = read_twice(&mut session, 10);
        demand("activations", activations(model.delta()), PAGES * 9 / 10);
        feature(row, Ok(()));
        return;
    };
    println!("  the switch was {}", switch.before.trim());
    Switch::set(true);
    tick(&mut session);
    Switch::set(false);
    let model = tick(&mut session);
    let text = comment(&model, "folio activations");
    assert!(text.contains("was switched off"), "{text}");
    let model = read_twice(&mut session, 11);
    let off = calls(model.delta());
    demand("off: marks", off.mark_accessed, PAGES);
    demand(
        "off: calls of workingset_activation",
        off.workingset_activations,
        PAGES * 9 / 10,
    );
    demand(
        "off: activations",
        activations(model.delta()),
        PAGES * 9 / 10,
    );
    let text = comment(&model, "folio activations");
    assert!(text.contains("is off"), "{text}");
    Switch::set(true);
    tick(&mut session);
    let model = read_twice(&mut session, 12);
    let on = calls(model.delta());
    demand("on: marks", on.mark_accessed, PAGES);
    demand_exactly(
        "on: calls of workingset_activation",
        on.workingset_activations,
        0,
    );
    demand_exactly("on: activations", activations(model.delta()), 0);
    let text = comment(&model, "folio activations");
    assert!(
        text.contains("is on (0x0007)") && text.contains("activations stay 0"),
        "{text}"
    );
    print_losses(&model);
    feature(row, Ok(()));
}

/// Every page that comes goes to its list in a batch; giving pages back drains.
#[test]
fn batches_and_drains_are_counted_with_their_sizes() {
    const ROUNDS: u64 = 200;
    const TOUCHED: u64 = 200;
    let row = "batch sizes and drains of the LRU lists";
    let Some(mut session) = session("batches", row, &[]) else {
        return;
    };
    let mut child = Child::start("lru_touch", &[TOUCHED, ROUNDS]);
    let model = step(&mut session, &mut child);
    child.finish();
    let delta = model.delta();
    // zap_page_range_single (mm/memory.c) drains this CPU's batches first.
    demand("drains", calls(delta).drains, ROUNDS);
    let mut folios = 0;
    for (name, moves) in delta.moves.iter().filter(|(_, m)| m.batches > 0) {
        let text = comment(&model, &format!("batches, {name}"));
        println!("  {name}: {} batches, {text}", moves.batches);
        assert_eq!(moves.sizes.iter().sum::<u64>(), moves.batches, "{name}");
        let by_size: u64 = (0_u64..).zip(&moves.sizes).map(|(size, n)| size * n).sum();
        assert_eq!(by_size, moves.folios, "{name}");
        // `lru_add_fn` until 6.10.
        if name.starts_with("lru_add") {
            folios += moves.folios;
            let largest = (0_u64..).zip(&moves.sizes).filter(|(_, n)| **n > 0).last();
            let (largest, _) = largest.expect("there are batches");
            // PAGEVEC_SIZE (include/linux/pagevec.h): 15, since 6.9 31.
            assert!([15, 31].contains(&largest), "a full batch has {largest}");
            demand("batches of new pages", moves.batches, ROUNDS * TOUCHED / 31);
        }
    }
    demand("folios in batches of new pages", folios, ROUNDS * TOUCHED);
    let inserted: u64 = delta.cpus.iter().map(|cpu| cpu.lru_insertions).sum();
    demand_near("the same by tracepoint", inserted, folios, STRAY);
    print_losses(&model);
    feature(row, Ok(()));
}

/// A file three times as large as the memory cgroup that reads it twice.
#[test]
fn refaults_of_a_small_memory_cgroup_are_counted() {
    const LARGE: u64 = 6000;
    let row = "workingset refaults by CPU";
    let Some(mut session) = session("workingset_refault", row, &[]) else {
        return;
    };
    let file = Cached::new(20, LARGE, 64 * 1024);
    file.evict();
    let cgroup = Cgroup::new("refault");
    std::fs::write(cgroup.path().join("memory.max"), (8_u64 << 20).to_string())
        .expect("a limit can be set");
    let mut child = Child::start_in("lru_refault", &file.arguments, Some(&cgroup));
    let first = step(&mut session, &mut child);
    println!("  first time: {} refaults", calls(first.delta()).refaults);
    let model = step(&mut session, &mut child);
    child.finish();
    let refaults = calls(model.delta()).refaults;
    demand("second time: refaults", refaults, LARGE / 2);
    let by_kernel: u64 = ["workingset_refault_file", "workingset_refault_anon"]
        .into_iter()
        .filter_map(|name| model.delta().vmstat.get(name))
        .sum();
    println!("  by vmstat: {by_kernel}");
    // vmstat counts after checks that some calls do not pass.
    assert!(by_kernel > 0 && by_kernel <= refaults + STRAY);
    assert_eq!(
        cell(&model, "workingset refaults", "events"),
        Value::Count(refaults)
    );
    print_losses(&model);
    feature(row, Ok(()));
}
