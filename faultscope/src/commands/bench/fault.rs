//! `bench fault`: the page-fault test of 2004 on today's kernel.

mod folios;
mod predict;
mod row;

use std::path::{Path, PathBuf};

use rustix::param::page_size;

use self::folios::Wanted;
use self::predict::Predicted;
use self::row::{COUNTS, LIVE, SCALING, pft_row};
use super::columns;
use super::table::Section;
use super::{Bench, Case, Job, Pft, Short, Stop, Work};
use crate::host::HostFacts;
use crate::load::{Access, Backing, FaultIn, Faulted, Faults, Huge, State};
use crate::plan::Set;
use crate::workload::Direction;
use crate::workload::bench::BenchResult;

/// The bench.
pub(super) static FAULT: Bench = Bench {
    name: "fault",
    settles: "Do shared counters and the address-space lock stop page faults from scaling with threads?",
    cases: CASES,
    bytes: 256 << 20,
    rounds: 8,
    short: Short {
        cases: &["anon", "private-read", "tmpfs", "cow"],
        bytes: 32 << 20,
        rounds: 2,
    },
    sets: &[Set::Rss, Set::Latency, Set::Budget],
    rate: "fault/wsec",
    live: LIVE,
    sections: &[
        Section {
            title: "Faults of the measured part as the probes and getrusage(2) count them, and as predicted",
            columns: COUNTS,
        },
        Section {
            title: "Scaling: 1 is what the fewest threads do, thread by thread; proxies for bouncing cache lines",
            columns: SCALING,
        },
        columns::LOCK_WAITS,
        columns::BUDGET,
    ],
    summary: None,
    limit: None,
    pft: Some(Pft {
        header: "Gb Rep Threads User System Wall flt/cpu/s fault/wsec",
        row: pft_row,
    }),
};

/// What a case does.
struct Spec {
    backing: Backing,
    access: Access,
    huge: Wanted,
    fault_in: FaultIn,
    state: State,
}

/// Base pages of anonymous memory, written: what other cases differ from.
const ANON: Spec = Spec {
    backing: Backing::Anonymous,
    access: Access::Write,
    huge: Wanted::Base,
    fault_in: FaultIn::Touch,
    state: State::Separate,
};

const fn of(backing: Backing, access: Access) -> Spec {
    Spec {
        backing,
        access,
        ..ANON
    }
}

const fn folios(huge: Wanted, access: Access) -> Spec {
    Spec {
        access,
        huge,
        ..ANON
    }
}

const fn case(name: &'static str, what: &'static str, memory: u64, work: &'static Spec) -> Case {
    Case {
        name,
        what,
        is_default: false,
        memory,
        work,
    }
}

static CASES: &[Case] = &[
    Case {
        is_default: true,
        ..case(
            "anon",
            "private anonymous memory, written, base pages",
            1,
            &ANON,
        )
    },
    case(
        "anon-read",
        "the same, read: every page is the zero page",
        1,
        &of(Backing::Anonymous, Access::Read),
    ),
    case(
        "anon-line",
        "as anon, with the counts of all threads side by side in shared cache lines",
        1,
        &Spec {
            state: State::Shared,
            ..ANON
        },
    ),
    case(
        "anon-populate",
        "as anon, prefaulted by MAP_POPULATE and then touched",
        1,
        &Spec {
            fault_in: FaultIn::MapPopulate,
            ..ANON
        },
    ),
    case(
        "anon-madvise",
        "as anon, prefaulted by MADV_POPULATE_WRITE and then touched",
        1,
        &Spec {
            fault_in: FaultIn::AdvisePopulate,
            ..ANON
        },
    ),
    case(
        "anon-thp",
        "as anon, with MADV_HUGEPAGE: a fault for each huge page",
        1,
        &folios(Wanted::Huge, Access::Write),
    ),
    case(
        "anon-thp-read",
        "the same, read: the huge zero page",
        1,
        &folios(Wanted::Huge, Access::Read),
    ),
    case(
        "anon-16k",
        "with folios of 16 KiB",
        1,
        &folios(Wanted::Size(16), Access::Write),
    ),
    case(
        "anon-32k",
        "with folios of 32 KiB",
        1,
        &folios(Wanted::Size(32), Access::Write),
    ),
    case(
        "anon-64k",
        "with folios of 64 KiB",
        1,
        &folios(Wanted::Size(64), Access::Write),
    ),
    case(
        "anon-128k",
        "with folios of 128 KiB",
        1,
        &folios(Wanted::Size(128), Access::Write),
    ),
    case(
        "anon-256k",
        "with folios of 256 KiB",
        1,
        &folios(Wanted::Size(256), Access::Write),
    ),
    case(
        "anon-512k",
        "with folios of 512 KiB",
        1,
        &folios(Wanted::Size(512), Access::Write),
    ),
    case(
        "anon-1m",
        "with folios of 1 MiB",
        1,
        &folios(Wanted::Size(1024), Access::Write),
    ),
    case(
        "private",
        "a cached file, mapped privately, written: every page is copied",
        2,
        &of(Backing::PrivateFile, Access::Write),
    ),
    case(
        "private-read",
        "the same, read: pages around a fault are mapped with it",
        1,
        &of(Backing::PrivateFile, Access::Read),
    ),
    case(
        "shared",
        "a cached file, mapped shared, written: every page is made dirty",
        1,
        &of(Backing::SharedFile, Access::Write),
    ),
    case(
        "shared-read",
        "the same, read",
        1,
        &of(Backing::SharedFile, Access::Read),
    ),
    case(
        "tmpfs",
        "a file in memory, mapped shared, its pages made by writing",
        1,
        &of(Backing::Tmpfs, Access::Write),
    ),
    case(
        "tmpfs-read",
        "the same with its pages there, read",
        1,
        &of(Backing::Tmpfs, Access::Read),
    ),
    case(
        "cow",
        "anonymous memory of a parent process, written by a forked one: every page is copied",
        2,
        &of(Backing::CopyOnWrite, Access::Write),
    ),
];

impl Work for Spec {
    fn run(&self, job: &Job) -> Result<BenchResult, Stop> {
        let kernel = HostFacts::read(Path::new("/")).kernel;
        if let Some(reason) = self.huge.obstacle(&kernel) {
            return Err(Stop::Skip(reason));
        }
        let load = Faults {
            backing: self.backing,
            access: self.access,
            huge: match self.huge {
                Wanted::Base => Huge::Off,
                Wanted::Huge | Wanted::Size(_) => Huge::Advised,
            },
            fault_in: self.fault_in,
            state: self.state,
            bytes: usize::try_from(job.bytes)?,
            rounds: job.rounds,
            members: job.members,
            are_processes: job.are_processes,
            cpus: job.cpus()?,
            directory: job.directory.clone().unwrap_or_else(|| PathBuf::from(".")),
        };
        let done = load.run().map_err(|error| self.refused(error))?;
        let mut result = self.result(job, &load, &done);
        let pages = format!("pages of {} bytes", page_size());
        result
            .notes
            .push(format!("{pages}; {}", self.huge.stated(&kernel)));
        Ok(result)
    }
}

impl Spec {
    /// An error of the load, or why the case cannot be run here.
    fn refused(&self, error: std::io::Error) -> Stop {
        let is_file = matches!(self.backing, Backing::PrivateFile | Backing::SharedFile);
        match error.raw_os_error() {
            Some(libc::EINVAL) if self.fault_in == FaultIn::AdvisePopulate => {
                Stop::Skip("this kernel has no MADV_POPULATE_WRITE (Linux 5.14)".to_owned())
            }
            Some(libc::ENOSPC | libc::EACCES | libc::EROFS | libc::ENOENT) if is_file => {
                Stop::Skip(format!(
                    "the file to map cannot be made: {error}; name a directory with room with --files"
                ))
            }
            _ => Stop::Failed(error.into()),
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a run has far fewer than 2^53 faults or ns"
    )]
    fn result(&self, job: &Job, load: &Faults, done: &Faulted) -> BenchResult {
        let mut result = BenchResult::new(job.bench.name, &job.keys());
        let used = &done.used;
        let faults = used.faults();
        let secs = |ns: u64| ns as f64 / 1e9;
        let (higher, lower) = (Some(Direction::Higher), Some(Direction::Lower));
        result.add(
            "fault/wsec",
            faults as f64 / secs(used.wall_ns),
            "1/s",
            higher,
        );
        result.add(
            "flt/cpu/s",
            faults as f64 / secs(used.cpu_ns),
            "1/s",
            higher,
        );
        result.add(
            "page/wsec",
            done.pages as f64 / secs(used.wall_ns),
            "1/s",
            higher,
        );
        match used.user_and_system_ns() {
            Some((user, system)) => {
                result.add("user", secs(user), "s", lower);
                result.add("system", secs(system), "s", lower);
            }
            None => result
                .notes
                .push("too short for the kernel to tell user from system time".to_owned()),
        }
        result.add("cpu", secs(used.cpu_ns), "s", lower);
        result.add("wall", secs(used.wall_ns), "s", lower);
        result.count("faults", faults);
        result.count("major_faults", used.major_faults);
        result.count("other_faults", used.life_faults.saturating_sub(faults));
        result.count("pages", done.pages);
        result.count("page_size", page_size() as u64);
        for (pages, n) in done.folios.iter().flatten().filter(|(_, n)| *n > 0) {
            let kib = pages * page_size() as u64 / 1024;
            result.count(&format!("folios_{kib}k"), *n);
        }
        let predicted = self.predict(load, done, &mut result.notes);
        if let Some(Predicted { least, most }) = predicted {
            result.count("faults_predicted", most);
            if least < most {
                result.count("faults_predicted_least", least);
            }
        }
        result
    }
}
