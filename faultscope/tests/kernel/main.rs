//! Tests against the running kernel, bracketed by the kernel's own counters.
//!
//! Needs CAP_BPF and CAP_PERFMON, and is run one test at a time:
//! `cargo test --features kernel-tests --test kernel -- --test-threads=1 --nocapture`.
//! `FAULTSCOPE_BPF_OBJECT` names the object to load in place of the embedded one.
//! Every test prints how many events it saw and demands a floor of them; a test
//! that cannot run says `SKIP` with the reason and fails.
#![expect(
    clippy::print_stdout,
    reason = "a test prints what it saw; the harness owns the output"
)]

mod bench;
mod bench_mm;
mod blocked;
mod budget;
mod compare;
mod faults;
mod filters;
mod findings;
mod folios;
mod idle;
mod latency;
mod locks;
mod losses;
mod lru;
mod lru_holds;
mod madvise;
mod mariadb;
mod mmap_lock;
mod programs;
mod progress;
mod record;
mod refaults;
mod replay;
mod rights;
mod sharing;
mod slowpath;
mod stress;
mod support;
mod top;
mod witness;
mod workload;

/// What children do, by the name a test starts them under.
const ROLES: &[&[(&str, support::Role)]] = &[
    blocked::ROLES,
    budget::ROLES,
    faults::ROLES,
    filters::ROLES,
    findings::ROLES,
    folios::ROLES,
    latency::ROLES,
    locks::ROLES,
    losses::ROLES,
    lru::ROLES,
    lru_holds::ROLES,
    madvise::ROLES,
    mmap_lock::ROLES,
    refaults::ROLES,
    sharing::ROLES,
    slowpath::ROLES,
    stress::ROLES,
    top::ROLES,
    workload::ROLES,
];
