//! `cargo xtask setup`: installs what building the BPF object and running the tests need.
//!
//! The tables here are the only list of system packages. Lint holds every program the tree starts against them.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::proc::{capture, run};
use crate::scipy;

/// A system package and the reason it is needed.
struct Package {
    name: &'static str,
    why: &'static str,
    /// Programs of it that the tree starts, as they are named there.
    provides: &'static [&'static str],
}

const PACKAGES: &[Package] = &[
    Package {
        name: "rustc-web",
        why: "compiles the BPF programs: a rustc whose LLVM is a system library with the BPF target",
        provides: &["/usr/bin/rustc"],
    },
    Package {
        name: "cargo-web",
        why: "builds the BPF programs with that rustc",
        provides: &["/usr/bin/cargo"],
    },
    Package {
        name: "rust-web-src",
        why: "the sources of core, which has no ready build for BPF",
        provides: &[],
    },
    Package {
        name: "llvm-22-dev",
        why: "bpf-linker links against the LLVM that rustc-web uses",
        provides: &["/usr/lib/llvm-22/bin/llvm-config"],
    },
    Package {
        name: "g++",
        why: "compiles libFuzzer, which `cargo xtask fuzz` links",
        provides: &["c++"],
    },
    Package {
        name: "tmux",
        why: "the terminal tests drive `top` in it",
        provides: &["tmux"],
    },
    Package {
        name: "chromium",
        why: "a test opens the page of `report` in it",
        provides: &["chromium"],
    },
    Package {
        name: "qemu-system-x86",
        why: "boots the kernels of `cargo xtask vm`",
        provides: &["qemu-system-x86_64"],
    },
    Package {
        name: "busybox-static",
        why: "the user space of those guests",
        provides: &["busybox"],
    },
    Package {
        name: "sqlite3",
        why: "the tests ask recordings what docs/recording-format.md says they answer",
        provides: &["sqlite3"],
    },
    Package {
        name: "python3-pandas",
        why: "the same from pandas and from Python's own sqlite3",
        provides: &["/usr/bin/python3"],
    },
    Package {
        name: "python3-venv",
        why: "the environment that SciPy is installed into; the statistics of `compare` are checked against it",
        provides: &[],
    },
    Package {
        name: "mariadb-server",
        why: "the server of the recorded database load",
        provides: &["mariadbd", "mariadb-install-db"],
    },
    Package {
        name: "mariadb-client",
        why: "sets that server up",
        provides: &["mariadb", "mariadb-admin"],
    },
    Package {
        name: "sysbench",
        why: "the recorded database load",
        provides: &["sysbench"],
    },
    Package {
        name: "libjemalloc2",
        why: "the allocator that gives memory back under that load",
        provides: &[],
    },
];

/// What only `bench overhead` needs: the peers it measures faultscope against.
const BENCH_PACKAGES: &[Package] = &[
    Package {
        name: "bpftrace",
        why: "a peer in the comparison of `cargo xtask bench overhead`",
        provides: &["bpftrace"],
    },
    Package {
        name: "linux-perf",
        why: "three peers in the comparison of `cargo xtask bench overhead`",
        provides: &["perf"],
    },
];

/// Programs of packages that every Debian system has, and of the Rust toolchain that runs this program.
const BASE: &[(&str, &[&str])] = &[
    ("apt", &["apt-get", "apt-cache"]),
    ("bash", &["bash"]),
    (
        "coreutils",
        &[
            "cat", "chmod", "cp", "date", "dd", "echo", "env", "false", "id", "kill", "ls",
            "mkdir", "nice", "nproc", "rm", "rmdir",
        ],
    ),
    (
        "coreutils",
        &[
            "sha256sum",
            "sleep",
            "stat",
            "stdbuf",
            "stty",
            "sync",
            "tail",
            "timeout",
            "touch",
            "true",
            "uname",
            "yes",
        ],
    ),
    ("dash", &["sh", "/bin/sh"]),
    ("dpkg", &["dpkg", "dpkg-query"]),
    ("libc-bin", &["ldd"]),
    ("mount", &["mount", "umount"]),
    (
        "util-linux",
        &[
            "chrt", "prlimit", "script", "setpriv", "setsid", "taskset", "unshare",
        ],
    ),
    ("Rust toolchain", &["cargo"]),
    ("C compiler, which the build needs", &["cc"]),
];

/// The version of bpf-linker that set-up installs and the build demands.
pub(crate) const BPF_LINKER: &str = "0.13.0";

/// The version of cargo-fuzz that set-up installs.
const CARGO_FUZZ: &str = "0.13.2";

/// Whether a package of the tables provides the program named so.
pub(crate) fn is_provided(program: &str) -> bool {
    let mut packages = PACKAGES.iter().chain(BENCH_PACKAGES);
    packages.any(|p| p.provides.contains(&program))
        || BASE.iter().any(|(_, names)| names.contains(&program))
}

/// Installs the packages that are missing, those of `bench overhead` if `with_bench`, then bpf-linker, cargo-fuzz and
/// SciPy; does nothing when all is there.
pub(crate) fn setup(root: &Path, with_bench: bool) -> Result<()> {
    let more = if with_bench { BENCH_PACKAGES } else { &[] };
    let wanted: Vec<_> = PACKAGES.iter().chain(more).collect();
    let missing = missing_packages(&wanted)?;
    if missing.is_empty() {
        println!("setup: all {} packages are installed", wanted.len());
    } else {
        install(&missing)?;
    }
    bpf_linker(root)?;
    tool(root, "cargo-fuzz", CARGO_FUZZ, &[])?;
    scipy::install(root)
}

fn missing_packages(wanted: &[&'static Package]) -> Result<Vec<&'static Package>> {
    let query = |package: &Package| {
        Command::new("dpkg-query")
            .args(["--show", "--showformat=${db:Status-Status}", package.name])
            .stderr(Stdio::null())
            .output()
    };
    let mut missing = Vec::new();
    for &package in wanted {
        match query(package) {
            Ok(output) if output.status.success() && output.stdout == b"installed" => {}
            Ok(_) => missing.push(package),
            Err(error) if error.kind() == ErrorKind::NotFound => bail!(not_debian()),
            Err(error) => return Err(error).context("starting \"dpkg-query\""),
        }
    }
    Ok(missing)
}

fn not_debian() -> String {
    let list: Vec<String> = PACKAGES
        .iter()
        .map(|p| format!("  {:<14} {}", p.name, p.why))
        .collect();
    format!(
        "this machine has no Debian package manager, so nothing was installed; install what corresponds to\n{}\n\
         `cargo build` needs none of them: the BPF object is in the repository",
        list.join("\n")
    )
}

fn install(missing: &[&Package]) -> Result<()> {
    let names: Vec<&str> = missing.iter().map(|p| p.name).collect();
    for package in missing {
        println!("setup: installing {} ({})", package.name, package.why);
    }
    // The owner of /proc/self is the effective user.
    let user = fs::metadata("/proc/self")
        .context("reading the owner of \"/proc/self\"")?
        .uid();
    if user != 0 {
        bail!(
            "installing packages needs root; run `apt-get install {}` as root, then this again",
            names.join(" ")
        );
    }
    let apt = || {
        let mut command = Command::new("apt-get");
        // Another apt may hold the lock, as on a machine that has just booted.
        command.env("DEBIAN_FRONTEND", "noninteractive").args([
            "-qq",
            "-o",
            "DPkg::Lock::Timeout=300",
        ]);
        command
    };
    run(apt().arg("update"))?;
    run(apt().args(["install", "--yes", "--no-install-recommends"]).args(&names)).with_context(|| {
        format!("installing {}; if a name is unknown, this Debian release lacks it: use Debian 12 or newer", names.join(", "))
    })
}

/// Builds bpf-linker into `target/tools` unless this version is there.
fn bpf_linker(root: &Path) -> Result<()> {
    let options = ["--no-default-features", "--features", "llvm-22"];
    tool(root, "bpf-linker", BPF_LINKER, &options)
}

/// Builds a program of crates.io into `target/tools` unless this version is there.
fn tool(root: &Path, name: &str, version: &str, options: &[&str]) -> Result<()> {
    let tools = root.join("target/tools");
    let program = tools.join("bin").join(name);
    if program.exists()
        && capture(Command::new(&program).arg("--version")).is_ok_and(|v| is_wanted(&v, version))
    {
        println!("setup: {name} {version} is in target/tools");
        return Ok(());
    }
    println!("setup: building {name} {version} into target/tools (about a minute)");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo)
        .env("LLVM_PREFIX", "/usr/lib/llvm-22")
        // Its own build directory: the workspace's flags and artefacts are not its business.
        .env("CARGO_TARGET_DIR", tools.join("build"))
        .args(["install", name, "--version", version])
        .args(options)
        .args(["--locked", "--force", "--root"])
        .arg(&tools))
}

fn is_wanted(version_line: &str, version: &str) -> bool {
    version_line.split_whitespace().last() == Some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_package_and_program_stands_once() {
        let packages = || PACKAGES.iter().chain(BENCH_PACKAGES);
        let programs = packages()
            .flat_map(|p| p.provides)
            .chain(BASE.iter().flat_map(|(_, names)| *names));
        let mut all: Vec<&str> = programs
            .chain(packages().map(|p| &p.name))
            .copied()
            .collect();
        all.sort_unstable();
        // The packages tmux, chromium, bpftrace, sqlite3 and sysbench share a name with their program.
        let count = all.len();
        all.dedup();
        assert_eq!(count - all.len(), 5, "{all:?}");
    }

    #[test]
    fn a_tool_of_another_version_is_replaced() {
        assert!(is_wanted("bpf-linker 0.13.0\n", "0.13.0"));
        assert!(!is_wanted("bpf-linker 0.12.0\n", "0.13.0"));
        assert!(!is_wanted("", "0.13.0"));
    }

    #[test]
    fn a_foreign_system_is_told_every_package() {
        let message = not_debian();
        assert!(
            PACKAGES
                .iter()
                .all(|p| message.contains(p.name) && message.contains(p.why)),
            "{message}"
        );
    }
}
