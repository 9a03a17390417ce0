//! Contended waits: which lock it was, whose it was, and who waited.
//!
//! How often two CPUs meet at a lock is not ours to say, so a load is repeated
//! until its floor is reached, at most [`ROUNDS`] times.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use faultscope::commands::session::Session;
use faultscope::model::{Model, TableId, Value};
use faultscope::sample::Scope;
use faultscope::sample::counters::{LOCK_CLASS_NAMES, LRU_LOCK, MMAP_LOCK};
use faultscope::sample::delta::{Lock, LockId};
use faultscope::symbol;

use crate::support::{
    self, Cgroup, Child, Link, Pages, Role, cpus, demand, demand_exactly, is_answered, is_rt, pin,
    process, session, tick,
};

/// Roles of the children of this file.
pub(crate) const ROLES: &[(&str, Role)] = &[
    ("lock_reclaim", reclaim),
    ("lock_fill", fill),
    ("lock_foreign_pages", foreign_pages),
    ("lock_mm", mm),
    ("lock_own_mm", own_mm),
    ("lock_protect", protect),
    ("lock_smaps", smaps),
];

/// Times a load is repeated at most.
const ROUNDS: usize = 40;
/// Waits for a lru_lock that a test needs.
const LRU_FLOOR: u64 = 50;
const ZONE_LOCK: usize = 2;
const PAGE_TABLE_LOCK: usize = 3;
const RT_MUTEX: usize = 7;

/// Lets every child do one load; what happened meanwhile.
fn round(session: &mut Session, children: &mut [Child]) -> Model {
    tick(session);
    for child in &mut *children {
        child.go();
    }
    for child in &mut *children {
        child.report();
    }
    tick(session)
}

/// A child whose pages are all charged to `cgroup`, on the CPU of its number.
fn start(role: &str, arguments: &[u64], cgroup: &Cgroup) -> Child {
    let mut child = Child::start_in(role, arguments, Some(cgroup));
    child.step();
    child
}

/// The other side of [`start`]: nothing is allocated before the child is moved.
fn moved(link: &mut Link, i: u64) {
    link.stop([0; 4]);
    pin(usize::try_from(i).expect("a CPU") % cpus());
}

fn pids(children: &[Child]) -> Vec<u32> {
    children.iter().map(Child::pid).collect()
}

/// Lock rows, call sites apart, of one class.
fn locks(model: &Model, class: usize) -> impl Iterator<Item = (&LockId, &Lock)> {
    let rows = model.delta().locks.iter();
    rows.filter(move |(id, _)| !id.is_site && id.class == class)
}

/// Demands that every contended wait of the processes is in a lock row, and the
/// other way round: two maps that different code fills.
fn demand_whole(model: &Model, pids: &[u32], class: usize) {
    let by_process: u64 = pids
        .iter()
        .map(|pid| process(model.delta(), *pid)[Scope::Waits(class)])
        .sum();
    let by_lock: u64 = locks(model, class).map(|(_, lock)| lock.waits).sum();
    assert_eq!(by_process, by_lock, "{}", LOCK_CLASS_NAMES[class]);
}

fn is_kernel_address(address: u64) -> bool {
    address >> 63 == 1
}

fn shown(path: &Path) -> String {
    let name = path.file_name().expect("a name").to_string_lossy();
    format!("/{name}")
}

#[test]
fn an_lru_lock_belongs_to_the_cgroup_of_its_pages_multi() {
    let cgroups = [Cgroup::new("one"), Cgroup::new("two")];
    for cgroup in &cgroups {
        cgroup.limit(40 << 20);
    }
    // Two on two CPUs seldom queue: the second waits on the pending bit, which has no
    // tracepoint (kernel/locking/qspinlock.c). So three of each cgroup, on three CPUs.
    let mut children: Vec<Child> = (0..6)
        .map(|i: u64| start("lock_reclaim", &[i / 2 + i % 2], &cgroups[(i % 2) as usize]))
        .collect();
    let pids = pids(&children);
    let mut session = session(&pids);
    session.show(TableId::Locks);
    let mut waits: BTreeMap<u64, u64> = BTreeMap::new();
    let floor = |waits: &BTreeMap<u64, u64>| {
        cgroups
            .iter()
            .all(|cgroup| waits.get(&cgroup.id()).is_some_and(|n| *n >= LRU_FLOOR / 2))
    };
    for _ in 0..ROUNDS {
        let model = round(&mut session, &mut children);
        demand_whole(&model, &pids, LRU_LOCK);
        for (id, lock) in locks(&model, LRU_LOCK) {
            assert_eq!(id.node, 0, "{id:?}");
            assert!(is_kernel_address(lock.address), "{lock:?}");
            *waits.entry(id.memcg).or_default() += lock.waits;
        }
        for cgroup in cgroups.iter().filter(|c| waits.contains_key(&c.id())) {
            if locks(&model, LRU_LOCK).any(|(id, _)| id.memcg == cgroup.id()) {
                let path = shown(cgroup.path());
                assert_eq!(*model.delta().cgroup_paths[&cgroup.id()], *path);
                let rows = &model.table(TableId::Locks).rows;
                let is_shown = |v: &Value| matches!(v, Value::Text(text) if *text == path);
                assert!(rows.iter().any(|row| row.cells.iter().any(is_shown)));
            }
        }
        if floor(&waits) {
            break;
        }
    }
    let mut ours = 0;
    for cgroup in &cgroups {
        let seen = waits.remove(&cgroup.id()).unwrap_or(0);
        demand(&shown(cgroup.path()), seen, LRU_FLOOR / 2);
        ours += seen;
    }
    // What the children touch of others: shared libraries, the test binary itself.
    let others = waits.values().sum::<u64>();
    println!("  lru_lock waits on pages of other cgroups: {others} {waits:?}");
    assert!(others * 10 <= ours, "waits on the locks of other cgroups");
}

#[test]
fn an_lru_lock_and_its_waiter_may_be_of_two_cgroups_multi() {
    let [waiters, pages] = [Cgroup::new("waiters"), Cgroup::new("pages")];
    let parent = u64::from(std::process::id());
    // One for each CPU, as above: of two on two CPUs few waits were seen.
    let owners: Vec<Child> = (0..4)
        .map(|i| start("lock_fill", &[parent, i], &pages))
        .collect();
    let mut children: Vec<Child> = (0..4)
        .map(|i| start("lock_foreign_pages", &[parent, i], &waiters))
        .collect();
    for i in 0..4 {
        // Open by now.
        std::fs::remove_file(shared_file(&[parent, i])).expect("the file");
    }
    let pids = pids(&children);
    let mut session = session(&pids);
    let (mut seen, mut own) = (0, 0);
    for _ in 0..ROUNDS {
        let model = round(&mut session, &mut children);
        demand_whole(&model, &pids, LRU_LOCK);
        for (id, lock) in locks(&model, LRU_LOCK) {
            if id.memcg == pages.id() {
                seen += lock.waits;
            } else {
                own += lock.waits;
            }
        }
        for (id, process) in &model.delta().processes {
            if pids.contains(&id.tgid) {
                assert_eq!(process.cgroup, waiters.id(), "{id:?} is in its own cgroup");
            }
        }
        let by_cgroup = |cgroup: &Cgroup| {
            let row = model.delta().cgroups.get(&cgroup.id());
            row.map_or(0, |row| row.counters[Scope::Waits(LRU_LOCK)])
        };
        let all: u64 = locks(&model, LRU_LOCK).map(|(_, lock)| lock.waits).sum();
        assert_eq!((by_cgroup(&waiters), by_cgroup(&pages)), (all, 0));
        if seen >= LRU_FLOOR {
            break;
        }
    }
    demand("waits for the lock of the other cgroup", seen, LRU_FLOOR);
    println!("  waits for other lru_locks: {own}");
    owners.into_iter().for_each(Child::finish);
}

#[test]
fn mm_locks_have_an_identity_and_a_call_site_multi() {
    let mut children = [Child::start("lock_mm", &[])];
    let pids = pids(&children);
    let mut session = session(&pids);
    session.show(TableId::LockSites);
    let mut seen: BTreeMap<usize, u64> = BTreeMap::new();
    let mut sites: BTreeMap<String, u64> = BTreeMap::new();
    // With PREEMPT_RT a page-table lock is not inside the page descriptor but apart
    // (ALLOC_SPLIT_PTLOCKS, include/linux/mm_types_task.h), and nothing tells it from others.
    let of_page_tables = if is_rt() { RT_MUTEX } else { PAGE_TABLE_LOCK };
    let floors = [(MMAP_LOCK, 50), (ZONE_LOCK, 5), (of_page_tables, 5)];
    for _ in 0..ROUNDS {
        let model = round(&mut session, &mut children);
        for class in 0..LOCK_CLASS_NAMES.len() {
            demand_whole(&model, &pids, class);
        }
        for (id, lock) in model.delta().locks.iter().filter(|(id, _)| !id.is_site) {
            *seen.entry(id.class).or_default() += lock.waits;
            assert!(is_kernel_address(lock.address), "{id:?} {lock:?}");
            match id.class {
                MMAP_LOCK => {
                    assert!(id.owner == pids[0] && is_kernel_address(id.id), "{id:?}");
                    assert!(id.mode == 2 || id.mode == 4, "{id:?}");
                    assert!((id.id..id.id + 4096).contains(&lock.address), "{id:?}");
                }
                ZONE_LOCK => {
                    assert!(id.node == 0 && is_kernel_address(id.id), "{id:?}");
                    assert!((id.id..id.id + 65536).contains(&lock.address), "{id:?}");
                }
                PAGE_TABLE_LOCK => assert_eq!((id.id, id.owner, id.memcg), (0, 0, 0)),
                _ => {}
            }
        }
        let table = model.table(TableId::LockSites);
        let column = |id| table.fields.iter().position(|field| field.id == id);
        let (site, waits) = (column("site"), column("waits"));
        for row in &table.rows {
            if let (Value::Text(site), Value::Count(waits)) = (
                &row.cells[site.expect("a site column")],
                &row.cells[waits.expect("a waits column")],
            ) {
                *sites.entry(site.clone()).or_default() += waits;
            }
        }
        let is_reached = |(class, floor)| seen.get(&class).is_some_and(|n| *n >= floor);
        if floors.into_iter().all(is_reached) {
            break;
        }
    }
    for (class, n) in &seen {
        println!("  {} waits: {n}", LOCK_CLASS_NAMES[*class]);
    }
    for (class, floor) in floors {
        let n = seen.get(&class).copied().unwrap_or(0);
        demand(LOCK_CLASS_NAMES[class], n, floor);
    }
    println!("  call sites: {sites:?}");
    let is_lock_code = |site: &str| {
        // An address, or no name at all.
        let is_nameless = site.starts_with('[') || site.starts_with("0x");
        is_nameless || symbol::is_lock_code(site)
    };
    let named = sites.iter().filter(|(site, _)| !is_lock_code(site));
    let named: u64 = named.map(|(_, waits)| waits).sum();
    let all: u64 = sites.values().sum();
    demand("waits whose call site is no lock code", named, all * 9 / 10);
}

#[test]
fn a_wait_for_ones_own_mmap_lock_names_the_owner() {
    let mut children = [Child::start("lock_own_mm", &[])];
    let pids = pids(&children);
    let mut session = session(&pids);
    let mut seen = 0;
    for _ in 0..ROUNDS {
        let model = round(&mut session, &mut children);
        demand_whole(&model, &pids, MMAP_LOCK);
        for (id, lock) in locks(&model, MMAP_LOCK) {
            assert_eq!(id.owner, pids[0], "{id:?}");
            seen += lock.waits;
        }
        if seen >= 50 {
            break;
        }
    }
    demand("waits for the own mmap_lock", seen, 50);
}

#[test]
fn a_wait_for_a_foreign_mmap_lock_names_owner_and_waiter() {
    let mut owner = Child::start("lock_protect", &[]);
    let mut readers = [Child::start("lock_smaps", &[u64::from(owner.pid())])];
    let reader = readers[0].pid();
    let mut session = session(&[reader]);
    owner.go();
    // The lock is recognised by the address space it lies in, with and without the
    // programs that note who asks for it.
    for table in [TableId::Locks, TableId::LockHolders] {
        session.show(table);
        tick(&mut session);
        foreign_waits(&mut session, &mut readers, &owner, table);
    }
    owner.go();
    let [calls, ..] = owner.report();
    demand("mprotect calls of the owner", calls, 1000);
    owner.report();
    owner.finish();
}

fn foreign_waits(session: &mut Session, readers: &mut [Child], owner: &Child, table: TableId) {
    let reader = readers[0].pid();
    let (mut seen, mut taken) = (0, 0);
    for _ in 0..ROUNDS {
        let model = round(session, readers);
        demand_whole(&model, &[reader], MMAP_LOCK);
        for (id, lock) in locks(&model, MMAP_LOCK) {
            // The reader's own mm is its alone: nobody makes it wait there.
            assert_eq!((id.owner, id.mode), (owner.pid(), 2), "{id:?}");
            seen += lock.waits;
        }
        for (id, taker) in &model.delta().takers {
            assert_eq!(id.tgid, reader, "the filter lets one process through");
            if taker.owner == owner.pid() {
                taken += taker.taken;
            }
        }
        if seen >= 20 {
            break;
        }
    }
    if table == TableId::LockHolders {
        demand("acquisitions of the foreign mmap_lock", taken, 100);
    } else {
        demand_exactly("takers that nothing notes", taken, 0);
    }
    demand("waits for the foreign mmap_lock", seen, 20);
}

/// Repeats a load each time the test says so; the test ends the child.
fn on_each_answer(link: &mut Link, mut load: impl FnMut()) {
    loop {
        link.stop([0; 4]);
        load();
    }
}

/// Anonymous pages that come and go or change lists, and a file larger than what is
/// left of the cgroup's limit, so that reclaim takes its pages.
fn reclaim(link: &mut Link, arguments: &[u64]) {
    moved(link, arguments[0]);
    let path = std::env::temp_dir().join(format!("faultscope-test-{}", std::process::id()));
    std::fs::write(&path, vec![1_u8; 16 << 20]).expect("a file");
    let file = std::fs::File::open(&path).expect("the file");
    // Unlinked at once: nothing stays behind however the child ends.
    std::fs::remove_file(&path).expect("the file");
    file.sync_all().expect("a disk");
    let mapped = {
        use std::os::fd::AsRawFd as _;
        Pages::map(4096, libc::MAP_PRIVATE, file.as_raw_fd())
    };
    let kept = Pages::new(1024);
    kept.touch();
    on_each_answer(link, || {
        for _ in 0..20 {
            let pages = Pages::new(64);
            pages.touch();
            pages.advise(libc::MADV_COLD);
        }
        // As long as the rest takes, so that processes meet in it.
        for _ in 0..50 {
            lock_and_unlock(&kept);
        }
        mapped.read();
        mapped.advise(libc::MADV_PAGEOUT);
    });
}

fn shared_file(arguments: &[u64]) -> PathBuf {
    format!("/dev/shm/faultscope-test-{}-{}", arguments[0], arguments[1]).into()
}

/// Charges a file in memory to its cgroup.
fn fill(link: &mut Link, arguments: &[u64]) {
    moved(link, arguments[1]);
    std::fs::write(shared_file(arguments), vec![1_u8; 8 << 20]).expect("a file in memory");
    link.stop([0; 4]);
}

/// Moves pages to the unevictable list and back.
fn lock_and_unlock(pages: &Pages) {
    let (start, bytes) = (pages.start().cast(), pages.bytes());
    // SAFETY: the mapping's own range, whose contents stay.
    assert_eq!(unsafe { libc::mlock(start, bytes) }, 0, "mlock");
    // SAFETY: as above.
    assert_eq!(unsafe { libc::munlock(start, bytes) }, 0, "munlock");
}

/// Does so with the pages of such a file.
fn foreign_pages(link: &mut Link, arguments: &[u64]) {
    moved(link, arguments[1]);
    use std::os::fd::AsRawFd as _;
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(shared_file(arguments))
        .expect("the file");
    let mapped = Pages::map(2048, libc::MAP_SHARED, file.as_raw_fd());
    on_each_answer(link, || {
        for _ in 0..20 {
            lock_and_unlock(&mapped);
        }
    });
}

/// Four threads that map, touch and unmap: beside each other in one page table,
/// and each its own. They begin together: who meets by chance alone seldom does so
/// where CPUs are emulated.
fn mm(link: &mut Link, _: &[u64]) {
    let shared = Pages::new(512 * 2);
    on_each_answer(link, || {
        let together = Barrier::new(4);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (shared, together) = (&shared, &together);
                scope.spawn(move || {
                    pin(thread % cpus());
                    for _ in 0..20 {
                        together.wait();
                        for page in (thread..1024).step_by(4) {
                            shared.touch_part(page, 1);
                        }
                        let own = Pages::new(256);
                        own.touch();
                        drop(own);
                        together.wait();
                        if thread == 0 {
                            shared.advise(libc::MADV_DONTNEED);
                        }
                        allocate_from_the_zone();
                    }
                });
            }
        });
    });
}

/// Allocations too large for the per-CPU lists take the zone's lock (order 4,
/// `pcp_allowed_order` in mm/page_alloc.c): the copy of an attribute's value,
/// whose name the file system then refuses.
fn allocate_from_the_zone() {
    static VALUE: [u8; 65536] = [0; 65536];
    for _ in 0..100 {
        // SAFETY: names end in NUL, the value is as long as told.
        let done = unsafe {
            libc::setxattr(
                c"/dev/shm".as_ptr(),
                c"faultscope.none".as_ptr(),
                (&raw const VALUE).cast(),
                VALUE.len(),
                0,
            )
        };
        assert_eq!(done, -1, "no file system has such attributes");
    }
}

/// One thread holds the lock for long to populate, the other wants it for write.
fn own_mm(link: &mut Link, _: &[u64]) {
    let page = Pages::new(1);
    pin(0);
    on_each_answer(link, || {
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pin(1);
                for _ in 0..20 {
                    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
                    drop(Pages::map(4096, flags, -1));
                }
                is_done.store(true, Ordering::Release);
            });
            let mut i = 0;
            while !is_done.load(Ordering::Acquire) {
                i += 1;
                change(&page, i);
            }
        });
    });
}

fn change(page: &Pages, i: u64) {
    let protection = [libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE][(i % 2) as usize];
    // SAFETY: the mapping's own range, which nothing accesses meanwhile.
    let done = unsafe { libc::mprotect(page.start().cast(), support::PAGE, protection) };
    assert_eq!(done, 0, "mprotect");
}

/// mprotect without end, until the test answers once more.
fn protect(link: &mut Link, _: &[u64]) {
    let page = Pages::new(1);
    // Many mappings make the reader's way long.
    let many: Vec<Pages> = (0..200)
        .map(|_| {
            let pages = Pages::new(2);
            pages.touch();
            change(&pages, 0);
            pages
        })
        .collect();
    link.stop([0; 4]);
    let mut calls = 0;
    while !is_answered() {
        for _ in 0..100 {
            calls += 1;
            change(&page, calls);
        }
    }
    link.stop([calls, 0, 0, 0]);
    drop(many);
    link.stop([0; 4]);
}

fn smaps(link: &mut Link, arguments: &[u64]) {
    let path = format!("/proc/{}/smaps", arguments[0]);
    on_each_answer(link, || {
        for _ in 0..20 {
            std::fs::read(&path).expect("the other process lives");
        }
    });
}
