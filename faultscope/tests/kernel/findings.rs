//! Findings that a load provokes, from signals of the running kernel.
//!
//! Each load is repeated until its finding holds for an interval, at most
//! [`ROUNDS`] times: how often threads meet is not ours to say.

use std::sync::atomic::{AtomicBool, Ordering};

use faultscope::commands::session::Session;
use faultscope::model::{Finding, Model, TableId, Value};

use crate::support::{Child, Link, PAGE, Pages, Role, pin, print_losses, session, tick, watch};

/// Roles of the children of this file.
pub(crate) const ROLES: &[(&str, Role)] = &[
    ("findings_protect", protect_and_fault),
    ("findings_idle", be_read),
];

/// Times a load is repeated at most.
const ROUNDS: usize = 20;
/// Pages of a mapping whose protection changes while another thread faults in it.
const PAGES: usize = 16_384;
/// Pages that fault again and again.
const FAULTING: usize = 64;
/// Write holds of one round.
const HOLDS: usize = 200;
/// Times smaps is read in one round.
const READS: usize = 50;

fn findings(pids: &[u32]) -> Session {
    let mut session = session(pids);
    session.show(TableId::Findings);
    session
}

fn find<'a>(model: &'a Model, id: &str) -> Option<&'a Finding> {
    model.findings().iter().find(|f| f.id == id)
}

/// The finding, from the first of [`ROUNDS`] intervals in which it holds.
fn found_in(id: &str, mut interval: impl FnMut() -> Model) -> Finding {
    let mut others = Vec::new();
    for _ in 0..ROUNDS {
        let model = interval();
        print_losses(&model);
        if let Some(finding) = find(&model, id) {
            println!("  {}", finding.text);
            return finding.clone();
        }
        others.extend(model.findings().iter().map(|f| f.text.clone()));
    }
    panic!("{id} not found in {ROUNDS} rounds, but {others:#?}");
}

fn text<'a>(finding: &'a Finding, name: &str) -> &'a str {
    let evidence = finding.evidence.iter().find(|e| e.name == name);
    match evidence.map(|e| &e.value) {
        Some(Value::Text(text)) => text,
        other => panic!("{name}: {other:?}"),
    }
}

/// One thread changes the protection of a mapping, the other faults in it.
fn protect_and_fault(link: &mut Link, _: &[u64]) {
    let memory = Pages::new(PAGES);
    memory.touch();
    let is_over = AtomicBool::new(false);
    loop {
        link.stop([0; 4]);
        is_over.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pin(1);
                while !is_over.load(Ordering::Relaxed) {
                    // SAFETY: the last pages of this mapping, which no reference points into.
                    let given_back = unsafe {
                        let first = memory.start().add((PAGES - FAULTING) * PAGE);
                        libc::madvise(first.cast(), FAULTING * PAGE, libc::MADV_DONTNEED)
                    };
                    assert_eq!(given_back, 0);
                    memory.touch_part(PAGES - FAULTING, FAULTING);
                }
            });
            pin(0);
            for hold in 0..HOLDS {
                let more = if hold % 2 == 0 { libc::PROT_EXEC } else { 0 };
                let flags = libc::PROT_READ | libc::PROT_WRITE | more;
                // SAFETY: this mapping, which stays readable and writable.
                let changed =
                    unsafe { libc::mprotect(memory.start().cast(), memory.bytes(), flags) };
                assert_eq!(changed, 0);
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_writer_that_blocks_faults_is_found() {
    let mut child = Child::start("findings_protect", &[]);
    let mut session = findings(&[child.pid()]);
    let found = found_in("mmap_lock_writers_block_faults", || {
        watch(&mut session, &mut child).0
    });
    assert_eq!(text(&found, "writer_syscall"), "mprotect");
    let writer = text(&found, "writer");
    assert!(writer.contains(&child.pid().to_string()), "{writer}");
}

fn be_read(link: &mut Link, _: &[u64]) {
    let memory = Pages::new(PAGES);
    memory.touch();
    loop {
        link.stop([0; 4]);
    }
}

#[test]
fn a_reader_of_smaps_is_found() {
    let child = Child::start("findings_idle", &[]);
    let mut session = findings(&[std::process::id()]);
    let smaps = format!("/proc/{}/smaps", child.pid());
    let found = found_in("outside_reader_holds_mmap_lock", || {
        tick(&mut session);
        for _ in 0..READS {
            let text = std::fs::read(&smaps).expect("our child's");
            assert!(!text.is_empty());
        }
        tick(&mut session)
    });
    for (name, pid) in [("reader", std::process::id()), ("owner", child.pid())] {
        let who = text(&found, name);
        assert!(who.contains(&pid.to_string()), "{name}: {who}");
    }
}

#[test]
fn pages_dropped_and_touched_again_are_found() {
    // 2,000 pages, 700 of them touched again at once.
    let arguments = [
        2_000,
        700,
        libc::MADV_DONTNEED.unsigned_abs().into(),
        2_000,
        0,
    ];
    let mut child = Child::start("give back", &arguments);
    let mut session = findings(&[child.pid()]);
    let found = found_in("refaults_after_dontneed", || {
        watch(&mut session, &mut child).0
    });
    let process = text(&found, "process");
    assert!(process.contains(&child.pid().to_string()), "{process}");
}
