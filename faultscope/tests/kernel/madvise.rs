//! madvise and process_madvise by advice, with bytes and failures.

use faultscope::commands::session::{Options, Session};
use faultscope::model::TableId;
use faultscope::sample::delta::{Madvise, MadviseId};

use crate::mmap_lock::taker;
use crate::support::{
    Child, Link, PAGE, Pages, Role, demand_exactly, object, print_losses, session, watch,
};

pub(crate) const ROLES: &[(&str, Role)] = &[("advise", advise), ("advise another", advise_another)];

/// Calls of each kind.
const CALLS: u64 = 1_000;
/// Pages of the range.
const PAGES: u64 = 4;
/// Advices that succeed on private anonymous memory.
const ADVICES: [(&str, i32); 5] = [
    ("NORMAL", libc::MADV_NORMAL),
    ("WILLNEED", libc::MADV_WILLNEED),
    ("DONTNEED", libc::MADV_DONTNEED),
    ("FREE", libc::MADV_FREE),
    ("COLD", libc::MADV_COLD),
];
/// No advice of the kernel has this number; small enough to be told apart.
const NO_ADVICE: i32 = 77;
/// Out of the range in which numbers are told apart.
const WILD_ADVICE: i32 = 100_000;

fn size(n: u64) -> usize {
    usize::try_from(n).expect("sizes fit")
}

/// Each advice `CALLS` times, then as many of a bad range and of bad advices.
fn advise(link: &mut Link, _: &[u64]) {
    let memory = Pages::new(size(PAGES));
    memory.touch();
    let advise = |offset: usize, advice: i32| {
        // SAFETY: this mapping's range or one the kernel refuses; nothing borrows from it.
        unsafe { libc::madvise(memory.start().add(offset).cast(), memory.bytes(), advice) }
    };
    link.stop([0; 4]);
    for (name, advice) in ADVICES {
        for _ in 0..CALLS {
            assert_eq!(advise(0, advice), 0, "{name}");
        }
    }
    link.stop([0; 4]);
    for _ in 0..CALLS {
        assert_eq!(advise(1, libc::MADV_COLD), -1, "not on a page's border");
        assert_eq!(advise(0, NO_ADVICE), -1);
        assert_eq!(advise(0, WILD_ADVICE), -1);
    }
    link.stop([0; 4]);
}

fn demand_row(what: &str, row: &Madvise, failures: u64, bytes: u64) {
    demand_exactly(&format!("{what}: calls"), row.calls, CALLS);
    demand_exactly(&format!("{what}: failures"), row.failures, failures);
    demand_exactly(&format!("{what}: bytes"), row.bytes, bytes);
}

/// Five advices, a bad range and two bad advices, all counted exactly.
#[test]
fn madvise_calls_bytes_and_failures_are_exact() {
    let mut child = Child::start("advise", &[]);
    let tgid = child.pid();
    let mut session = session(&[tgid]);
    session.show(TableId::Madvise);
    let row = |delta: &faultscope::sample::Delta, advice: i32| {
        let id = MadviseId {
            tgid,
            advice,
            is_remote: false,
        };
        delta.madvise.get(&id).copied().unwrap_or_default()
    };
    let (model, _) = watch(&mut session, &mut child);
    for (name, advice) in ADVICES {
        let bytes = CALLS * PAGES * PAGE as u64;
        demand_row(name, &row(model.delta(), advice), 0, bytes);
    }
    demand_exactly("rows", model.delta().madvise.len() as u64, 5);
    print_losses(&model);
    let (model, _) = watch(&mut session, &mut child);
    for (what, advice) in [
        ("bad range", libc::MADV_COLD),
        ("bad advice", NO_ADVICE),
        ("wild advice", -1),
    ] {
        demand_row(what, &row(model.delta(), advice), CALLS, 0);
    }
    print_losses(&model);
    child.finish();
}

/// process_madvise(COLD) of `arguments[2]` bytes at `arguments[1]` of process
/// `arguments[0]`, `CALLS` times.
fn advise_another(link: &mut Link, arguments: &[u64]) {
    // SAFETY: numbers only.
    let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, arguments[0], 0) };
    assert!(pidfd >= 0, "pidfd_open");
    let range = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(size(arguments[1])),
        iov_len: size(arguments[2]),
    };
    link.stop([0; 4]);
    for _ in 0..CALLS {
        // SAFETY: one live iovec; the range is another process's.
        let advised = unsafe {
            libc::syscall(
                libc::SYS_process_madvise,
                pidfd,
                &raw const range,
                1,
                libc::MADV_COLD,
                0,
            )
        };
        assert_eq!(u64::try_from(advised), Ok(arguments[2]));
    }
    link.stop([0; 4]);
}

/// Advice to another process: counted with its bytes for the adviser, and the
/// lock row names the owner of the memory.
#[test]
fn process_madvise_names_the_adviser_and_the_owner() {
    let victim = Child::start("hold memory", &[PAGES]);
    let [start, bytes, ..] = victim.first();
    let mut adviser = Child::start("advise another", &[u64::from(victim.pid()), start, bytes]);
    // Its set comes along, whatever is shown.
    let mut session = Session::start(&Options {
        pids: vec![adviser.pid()],
        named: ["mmap_released".to_owned()].into(),
        bpf_object: object(),
        ..Options::default()
    })
    .expect("the core set attaches; see `faultscope doctor`");
    session.show(TableId::Madvise);
    let (model, _) = watch(&mut session, &mut adviser);
    let id = MadviseId {
        tgid: adviser.pid(),
        advice: libc::MADV_COLD,
        is_remote: true,
    };
    let row = model.delta().madvise.get(&id).copied().unwrap_or_default();
    demand_row("process_madvise", &row, 0, CALLS * bytes);
    let taker = taker(
        model.delta(),
        adviser.pid(),
        libc::SYS_process_madvise,
        false,
    );
    demand_exactly("its mmap_lock acquisitions", taker.taken, CALLS);
    demand_exactly(
        "owner of the lock",
        u64::from(taker.owner),
        u64::from(victim.pid()),
    );
    print_losses(&model);
    adviser.finish();
    victim.finish();
}
