//! MariaDB under sysbench, recorded: the load's own figure and the kernel's side of it, with two allocators.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, Stdio};
use std::time::{Duration, Instant};

use crate::record::{Directory, open, record};
use crate::support::{demand, feature, skip};

/// Longest wait for the server.
const PATIENCE: Duration = Duration::from_secs(120);
/// Runs made until one is without a deadlock.
const RUNS: u32 = 4;
/// Where Debian's libjemalloc2 has its library.
const JEMALLOC: &str = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
/// Advices that give memory back: `MADV_DONTNEED` and `MADV_FREE`.
const GIVEN_BACK: [i32; 2] = [4, 8];

/// A server of the test's own, on a socket in its directory.
struct Server {
    process: Process,
    directory: Directory,
}

impl Server {
    fn start(name: &str, environment: &[(&str, &str)]) -> Self {
        let directory = Directory::new(name);
        let data = directory.file("data");
        // A server of root's own refuses to run without this; nobody else can get at its directory.
        let user = "--user=root";
        quiet(
            Command::new("mariadb-install-db")
                .args([
                    "--no-defaults",
                    "--skip-test-db",
                    "--auth-root-authentication-method=normal",
                    user,
                ])
                .arg(option("--datadir", &data)),
        );
        let process = Command::new("mariadbd")
            .args([
                "--no-defaults",
                user,
                "--skip-networking",
                "--innodb-buffer-pool-size=64M",
                "--innodb-flush-log-at-trx-commit=0",
                // Fewer deadlocks, which sysbench reports as errors.
                "--transaction-isolation=READ-COMMITTED",
            ])
            .arg(option("--datadir", &data))
            .arg(option("--socket", &directory.file("socket")))
            .arg(option("--pid-file", &directory.file("pid")))
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("mariadbd runs; `cargo xtask setup` installs it");
        let server = Self { process, directory };
        let until = Instant::now() + PATIENCE;
        while !server
            .client("mariadb-admin")
            .arg("ping")
            .output()
            .is_ok_and(|o| o.status.success())
        {
            assert!(Instant::now() < until, "the server does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        quiet(
            server
                .client("mariadb")
                .args(["-e", "create database sbtest"]),
        );
        quiet(Command::new("sysbench").args(server.load()).arg("prepare"));
        server
    }

    fn client(&self, program: &str) -> Command {
        let mut command = match program {
            "mariadb" => Command::new("mariadb"),
            _ => Command::new("mariadb-admin"),
        };
        command
            .args(["--no-defaults", "--user=root"])
            .arg(option("--socket", &self.directory.file("socket")));
        command
    }

    fn load(&self) -> Vec<String> {
        let socket = self.directory.file("socket");
        let socket = format!("--mysql-socket={}", socket.display());
        [
            "oltp_read_write",
            "--db-driver=mysql",
            &socket,
            "--mysql-user=root",
            "--mysql-db=sbtest",
            "--tables=4",
            "--table-size=10000",
            "--rand-type=uniform",
        ]
        .map(str::to_owned)
        .into()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn option(name: &str, value: &Path) -> String {
    format!("{name}={}", value.display())
}

/// Runs to success; what it said otherwise.
fn quiet(command: &mut Command) {
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("it runs; `cargo xtask setup` installs it");
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// What a recording has of the server.
#[derive(Debug, Default)]
struct Seen {
    transactions: f64,
    faults: u64,
    /// mmap_lock acquisitions for write by system call.
    writers: BTreeMap<i32, u64>,
    /// Call sites of sampled holds, with the holds' takers.
    sites: BTreeMap<String, u64>,
    /// madvise calls by advice.
    advices: BTreeMap<i32, u64>,
}

impl Seen {
    fn given_back(&self) -> u64 {
        GIVEN_BACK
            .iter()
            .filter_map(|advice| self.advices.get(advice))
            .sum()
    }
}

/// Records one run of the load and reads what the kernel did for the server meanwhile.
fn measure(server: &Server, file: &Path, threads: u32) -> Seen {
    let load = server.load();
    let threads_option = format!("--threads={threads}");
    let mut arguments: Vec<&str> = vec!["--", "sysbench"];
    arguments.extend(load.iter().map(String::as_str));
    arguments.extend([&threads_option, "--time=5", "run"]);
    // A deadlock makes sysbench's figure none.
    let mut printed = String::new();
    for _ in 0..RUNS {
        drop(std::fs::remove_file(file));
        let output = record(file, &arguments).output().expect("the binary runs");
        println!("  {}", String::from_utf8_lossy(&output.stderr).trim_end());
        assert_eq!(output.status.code(), Some(0));
        printed = String::from_utf8(output.stdout).expect("ASCII");
        let mut words = printed.split_whitespace().skip_while(|w| *w != "errors:");
        if words.nth(1) == Some("0") {
            break;
        }
    }
    let line = printed
        .lines()
        .find(|l| l.trim_start().starts_with("transactions:"))
        .expect("sysbench says what it did");
    let (_, rate) = line.split_once('(').expect("a rate");
    let rate: f64 = rate
        .split_whitespace()
        .next()
        .and_then(|r| r.parse().ok())
        .expect("a number");
    let mut recording = open(file);
    assert!(recording.is_complete());
    let workload = recording.run().workload.clone().expect("a command");
    assert!(workload.output.text.contains(line), "the output is kept");
    let metric = recording
        .metrics()
        .iter()
        .find(|m| m.name == "transactions/s")
        .expect("a figure of sysbench");
    assert_eq!(
        metric.value.to_bits(),
        rate.to_bits(),
        "stored is what sysbench printed"
    );
    let count: f64 = line
        .split_whitespace()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("a number");
    let mut seen = Seen {
        transactions: count,
        ..Seen::default()
    };
    let pid = server.process.id();
    for index in 0..recording.len() {
        let delta = recording.interval(index).expect("an interval").delta;
        for (id, process) in &delta.processes {
            if id.tgid == pid {
                seen.faults += process.counters.faults();
                assert!(!process.is_workload, "the server is not the load's child");
            }
        }
        for (id, taker) in delta.takers.iter().filter(|(id, _)| id.tgid == pid) {
            if id.is_write {
                *seen.writers.entry(id.syscall).or_default() += taker.taken;
            }
            if let Some(chain) = delta.chains.get(&taker.site) {
                *seen.sites.entry(chain.site.clone()).or_default() += 1;
            }
        }
        for (id, calls) in delta.madvise.iter().filter(|(id, _)| id.tgid == pid) {
            *seen.advices.entry(id.advice).or_default() += calls.calls;
        }
    }
    println!(
        "  {threads} threads: {rate} transactions/s, {:.3} faults per transaction",
        seen.faults as f64 / seen.transactions
    );
    println!("    mmap_lock for write by system call: {:?}", seen.writers);
    println!("    call sites of holds: {:?}", seen.sites);
    println!("    madvise by advice: {:?}", seen.advices);
    seen
}

#[test]
fn a_database_server_under_load_is_told_by_system_call_and_advice() {
    let has = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|d| d.join(program).exists())
    };
    if !has("mariadbd") || !has("sysbench") || !PathBuf::from(JEMALLOC).exists() {
        return skip("MariaDB, sysbench and jemalloc are not on this machine");
    }
    let runs = Directory::new("sysbench");
    let glibc = {
        let server = Server::start("glibc", &[]);
        [1, 4, 8].map(|threads| {
            measure(
                &server,
                &runs.file(&format!("glibc-{threads}.fsc")),
                threads,
            )
        })
    };
    for seen in &glibc {
        assert!(seen.transactions > 0.0);
        demand("faults of the server", seen.faults, 1);
    }
    // One thread alone may find all the memory it needs.
    let writers: u64 = glibc.iter().flat_map(|s| s.writers.values()).sum();
    demand("mmap_lock acquisitions for write", writers, 1);
    let sites: usize = glibc.iter().map(|s| s.sites.len()).sum();
    demand("call sites of sampled holds", sites as u64, 1);
    // Every free page goes back at once.
    let jemalloc = {
        let settings = [
            ("LD_PRELOAD", JEMALLOC),
            ("MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0"),
        ];
        let server = Server::start("jemalloc", &settings);
        [1, 4, 8].map(|threads| {
            measure(
                &server,
                &runs.file(&format!("jemalloc-{threads}.fsc")),
                threads,
            )
        })
    };
    for (before, after) in glibc.iter().zip(&jemalloc) {
        let floor = 10 * before.given_back() + 100;
        demand(
            "madvise calls that give memory back, with jemalloc",
            after.given_back(),
            floor,
        );
        let rate = |seen: &Seen| seen.faults as f64 / seen.transactions;
        println!(
            "  faults per transaction: {:.3} with glibc, {:.3} with jemalloc",
            rate(before),
            rate(after)
        );
        assert!(
            rate(after) > 2.0 * rate(before),
            "memory given back has to be faulted in again"
        );
    }
    feature("MariaDB under sysbench, recorded", Ok(()));
}
