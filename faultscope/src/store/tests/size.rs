//! How many bytes an interval takes on disk.

#![expect(clippy::print_stdout, reason = "a test says what it met")]

use super::{
    Scratch,
    fixture::{Random, end, run},
};
use crate::{
    sample::{
        Budget, Counters, Delta, Interval, Missing, Scope,
        counters::MMAP_LOCK,
        delta::{
            CallChain, Cpu, CpuTime, Lock, LockId, Madvise, MadviseId, MapFill, Moves, Own, Passes,
            Process, ProcessId, ProcessPasses, Program, Space, Taker, TakerId, Thread, ThreadId,
        },
        histogram::Histogram,
        refault::Refault,
    },
    store::{Recording, Writer, schema::tables},
};
use rusqlite::types::ValueRef;
use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

/// Processes there are, of which a tenth change in an interval.
const PROCESSES: u64 = 500;
const CHANGED: usize = 50;
/// Call sites and locks with waits in every interval, one in ten a lock.
const SITES: u32 = 200;
const CPUS: u32 = 8;

/// Some counts near 2^`log2`.
fn about(r: &mut Random, log2: u32) -> u64 {
    1 + r.below(2 << log2)
}

fn histogram(r: &mut Random, buckets: u64) -> Histogram {
    let mut histogram = Histogram::default();
    let first = 4 + r.below(10);
    for bucket in first..first + buckets {
        histogram.0[usize::try_from(bucket).expect("small")] = about(r, 3);
    }
    histogram
}

fn counters(r: &mut Random, maps: bool) -> Counters {
    let mut c = Counters::default();
    for class in [0, 1, 2, 5] {
        c[Scope::User(class)] = about(r, 8);
    }
    c[Scope::Kernel(1)] = about(r, 4);
    c[Scope::Rss] = about(r, 9);
    // Faults under the VMA lock take no mmap_lock: half map memory besides.
    if maps {
        for side in [0, 1] {
            c[Scope::MmapTaken(side)] = about(r, 7);
            c[Scope::MmapTakeNs(side)] = about(r, 17);
            c[Scope::MmapHoldNs(side)] = about(r, 20);
        }
    }
    if r.below(4) == 0 {
        c[Scope::Waits(MMAP_LOCK)] = about(r, 4);
        c[Scope::WaitNs(MMAP_LOCK)] = about(r, 20);
    }
    c
}

fn passes(r: &mut Random) -> Passes {
    let n = about(r, 9);
    Passes {
        began: n,
        faults: n,
        ns: n * 900,
        max_ns: about(r, 20),
        pages: n,
        histogram: histogram(r, 6),
        ..Passes::default()
    }
}

/// The second `t` of a busy server.
pub(super) fn second(t: u64) -> Interval {
    let r = &mut Random(t);
    let mut d = Delta {
        t_mono_ns: 3_600_000_000_000 + t * 1_000_000_000 + r.below(1_000_000),
        t_real_ns: 1_700_000_000_000_000_000 + t * 1_000_000_000 + r.below(1_000_000),
        interval_ns: 1_000_000_000 + r.below(1_000_000),
        is_paravirtual: Some(true),
        mglru: [Some(7), Some(7)],
        refault_window_ns: 1_000_000_000,
        losses: vec![Default::default(); 4],
        context_switches: Some(about(r, 14)),
        memory_pressure_ns: Some((0, 0)),
        own: Own {
            cpu_ns: Some(about(r, 23)),
            rss_bytes: Some(20_000_000 + about(r, 16)),
            peak_rss_bytes: Some(21_000_000),
            map_bytes: Some(30_000_000),
            overruns: 0,
        },
        ..Delta::default()
    };
    machine(r, &mut d);
    processes(r, &mut d);
    locks(r, &mut d);
    for tgid in d.named_processes() {
        d.names.insert(tgid, format!("process-{tgid}").into());
    }
    for id in d.named_cgroups() {
        let path = format!("/system.slice/service-{id}.service");
        d.cgroup_paths.insert(id, path.into());
    }
    let chains = d.named_chains().into_iter().map(|slot| {
        let chain = (0..12).map(|n| format!("kernel_function_{}", (slot + n) % 300));
        let chain = CallChain {
            site: format!("kernel_function_{}", slot % 300),
            chain: chain.collect(),
        };
        (slot, Arc::new(chain))
    });
    d.chains = Arc::new(chains.collect::<HashMap<_, _>>());
    Interval {
        delta: Arc::new(d),
        missing: Arc::new([Missing {
            signal: "lru_lock_exact_hold".into(),
            reason: "attached only by name".into(),
        }]),
        ..Interval::default()
    }
}

fn machine(r: &mut Random, d: &mut Delta) {
    for cpu in 0..CPUS {
        let busy_ns = about(r, 28);
        d.cpus.push(Cpu {
            cpu,
            place: Some((cpu, 0, 0)),
            counters: counters(r, true),
            rss: [about(r, 8), about(r, 8), 0, 0],
            lru_insertions: about(r, 9),
            mmap_handoffs: about(r, 4),
            time: Some(CpuTime {
                busy_ns,
                idle_ns: 1_000_000_000 - busy_ns,
                iowait_ns: 0,
                steal_ns: 10_000_000,
            }),
            passes: passes(r),
            ..Cpu::default()
        });
    }
    for backing in 0..4 {
        d.passes.insert((0, backing), passes(r));
        d.passes.insert((3, backing), passes(r));
    }
    d.levels = [
        "MemTotal",
        "MemAvailable",
        "Cached",
        "AnonPages",
        "AnonHugePages",
        "SwapFree",
    ]
    .map(|name| (name.into(), about(r, 33) / 4096 * 4096))
    .into();
    d.vmstat = (0..150)
        .map(|n| {
            let count = if n % 5 == 0 { about(r, 10) } else { 0 };
            (format!("counter_{n}").into(), count)
        })
        .collect();
    d.programs = (0..45)
        .map(|n| Program {
            name: format!("program_{n}").into(),
            place: "tp_btf/some_tracepoint".into(),
            is_attached: true,
            misses: Some(0),
            ..Program::default()
        })
        .collect();
    d.maps = (0..14)
        .map(|n| MapFill {
            name: format!("MAP_{n}").into(),
            entries: about(r, 8),
            capacity: 16_384,
        })
        .collect();
    for function in ["lru_add", "lru_activate", "lru_move_tail", "lru_deactivate"] {
        d.moves.insert(
            function.into(),
            Moves {
                batches: about(r, 6),
                folios: about(r, 10),
                sizes: std::array::from_fn(|n| u64::from(n == 15 || n == 31)),
                regions: about(r, 6),
                region_ns: about(r, 18),
                region_max_ns: about(r, 16),
                histogram: histogram(r, 4),
            },
        );
    }
    let mut budget = Budget {
        period_ns: 1_003_009,
        cpus: u64::from(CPUS),
        samples: 7_900,
        idle: about(r, 12),
        user: about(r, 11),
        kernel: about(r, 9),
        ..Budget::default()
    };
    for part in 0..8 {
        budget.parts[part][0] = about(r, 5);
        budget.functions[part] = Some(format!("kernel_function_{part}").into());
    }
    d.budget = Some(budget);
}

fn processes(r: &mut Random, d: &mut Delta) {
    let mut changed = BTreeSet::new();
    while changed.len() < CHANGED {
        changed.insert(u32::try_from(1_000 + r.below(PROCESSES)).expect("small"));
    }
    for (n, tgid) in changed.into_iter().enumerate() {
        let process = ProcessId {
            tgid,
            start_ns: 1_000_000_000 + u64::from(tgid) * 7_777,
        };
        let cgroup = u64::from(100 + tgid % 10);
        let mut all = Counters::default();
        // Every tenth has four threads at work, the others one.
        let threads = if n % 10 == 0 { 4 } else { 1 };
        for thread in 0..threads {
            let counters = counters(r, n % 2 == 0);
            all += &counters;
            let id = ThreadId {
                tid: tgid + thread * 10_000,
                start_ns: process.start_ns + u64::from(thread),
            };
            let row = Thread {
                process,
                comm: format!("process-{tgid}").into(),
                cgroup,
                counters,
            };
            d.threads.insert(id, row);
        }
        let row = Process {
            comm: format!("process-{tgid}").into(),
            cgroup,
            threads: u64::from(threads),
            is_workload: false,
            counters: all,
        };
        d.processes.insert(process, row);
        let cgroup = d.cgroups.entry(cgroup).or_default();
        cgroup.threads += u64::from(threads);
        cgroup.counters += &all;
        let mm = 0xffff_8881_0000_0000 + u64::from(tgid) * 1_088;
        d.spaces.insert(
            mm,
            Space {
                process: Some(process),
                by_cpu: [(tgid % CPUS, about(r, 8)), ((tgid + 1) % CPUS, about(r, 5))].into(),
                rss: all[Scope::Rss],
                ..Space::default()
            },
        );
        d.process_passes.insert(
            tgid,
            ProcessPasses {
                passes: Passes {
                    histogram: Histogram::default(),
                    ..passes(r)
                },
                paths: [about(r, 9), 0, 0, about(r, 5), 0, 0],
            },
        );
        for syscall in if n % 2 == 0 { [9, 11].as_slice() } else { &[] } {
            let id = TakerId {
                mm,
                tgid,
                syscall: *syscall,
                is_write: true,
            };
            let n = about(r, 5);
            let taker = Taker {
                owner: tgid,
                taken: n,
                take_ns: about(r, 14),
                take_max_ns: about(r, 13),
                holds: n,
                hold_ns: about(r, 19),
                hold_max_ns: about(r, 17),
                handoffs: [about(r, 4), 0, about(r, 2), 0, 0, 0],
                site: 1 + r.below(20) as u32,
                ..Taker::default()
            };
            d.takers.insert(id, taker);
        }
        if n % 5 == 0 {
            let id = MadviseId {
                tgid,
                advice: 4,
                is_remote: false,
            };
            d.madvise.insert(
                id,
                Madvise {
                    calls: about(r, 5),
                    bytes: about(r, 22),
                    ns: about(r, 18),
                    max_ns: about(r, 16),
                    ..Madvise::default()
                },
            );
            d.refaults.insert(
                id,
                Refault {
                    ranges: about(r, 5),
                    bytes: about(r, 22),
                    refaults: about(r, 6),
                    ns: about(r, 24),
                    after: histogram(r, 4),
                    ..Refault::default()
                },
            );
        }
    }
}

fn locks(r: &mut Random, d: &mut Delta) {
    for site in 0..SITES {
        let is_site = site % 10 != 0;
        let waits = about(r, 4);
        let id = LockId {
            is_site,
            class: (site % 7) as usize,
            mode: 0,
            node: 0,
            id: if is_site {
                0
            } else {
                0xffff_8881_0000_0000 + u64::from(site)
            },
            memcg: 0,
            stack: if is_site { site + 1 } else { 0 },
            owner: if site % 7 == 0 { 1_000 + site } else { 0 },
        };
        let mut handoffs = [0; 6];
        if !is_site {
            handoffs[0] = waits;
        }
        d.locks.insert(
            id,
            Lock {
                waits,
                wait_ns: waits * 4_000,
                max_ns: about(r, 18),
                handoffs,
                histogram: histogram(r, 3),
                traced: waits,
                address: if is_site { 0 } else { id.id },
            },
        );
    }
}

/// A second of the target: 500 processes of which 50 changed, and 200 lock sites.
#[test]
fn a_second_takes_less_than_twenty_kibibytes() {
    let seconds = 600_u64;
    let scratch = Scratch::new();
    let path = scratch.file();
    let mut writer = Writer::create(&path, &run()).expect("a new file");
    for t in 0..seconds {
        writer.append(&second(t)).expect("written");
    }
    writer.finish(&end()).expect("finished");
    let bytes = path.metadata().expect("there").len();
    let conn = rusqlite::Connection::open(&path).expect("a database");
    let mut statement = conn
        .prepare("SELECT name, sum(pgsize), sum(unused) FROM dbstat GROUP BY name ORDER BY 2 DESC")
        .expect("dbstat");
    let mut tables = String::new();
    let rows = statement.query_map((), |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, i64>(1)?,
            row.get::<_, i64>(2)?,
        ))
    });
    for (name, size, unused) in rows.expect("rows").map(|row| row.expect("a row")) {
        let (size, unused) = (size / seconds.cast_signed(), unused / seconds.cast_signed());
        writeln!(tables, "{name:16} {size:6} {unused:6}").expect("writing to a string");
    }
    let each = bytes / seconds;
    println!("{each} bytes an interval; by table, of them unused:\n{tables}");
    assert!(each < 20 * 1024, "{each} bytes an interval:\n{tables}");
    let mut recording = Recording::open(&path).expect("a recording");
    let read = recording.interval(17).expect("read").delta;
    assert_eq!(read, second(17).delta);
    let start = Instant::now();
    for interval in recording.intervals(0..usize::MAX) {
        interval.expect("read");
    }
    let read = start.elapsed();
    println!(
        "reading all intervals took {:.1} times a plain scan of the file",
        read.as_secs_f64() / scan(&conn).as_secs_f64()
    );
}

/// Time to step through every value of every table.
fn scan(conn: &rusqlite::Connection) -> Duration {
    let start = Instant::now();
    let mut bytes = 0;
    for table in tables() {
        let mut statement = conn
            .prepare(&format!("SELECT * FROM {}", table.name))
            .expect("a statement");
        let columns = statement.column_count();
        let mut rows = statement.query(()).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            for column in 0..columns {
                bytes += match row.get_ref(column).expect("a value") {
                    ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
                    _ => 8,
                };
            }
        }
    }
    assert!(bytes > 0);
    start.elapsed()
}
