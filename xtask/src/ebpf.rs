//! `cargo xtask ebpf`: builds the BPF object, and keeps the committed copy honest.
//!
//! The object in `faultscope/prebuilt` is what a plain `cargo build` embeds. Beside it stand its SHA-256 and the versions
//! that made it: with the same versions, the same sources must give the same bytes.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::elf;
use crate::proc::{capture, run};
use crate::setup::BPF_LINKER;

const OBJECT: &str = "faultscope.bpf.o";
const HASH: &str = "faultscope.bpf.o.sha256";
const TOOLCHAIN: &str = "TOOLCHAIN";

/// The object that the kernel tests load, relative to the repository.
pub(crate) const REBUILT: &str = "target/bpf/faultscope.bpf.o";

/// Builds the object. With `is_check` it leaves the committed files alone and holds them against the result.
pub(crate) fn ebpf(root: &Path, is_check: bool) -> Result<()> {
    let rebuilt = root.join(REBUILT);
    if rebuilt.exists() {
        // After a failed build the kernel tests must find nothing, not the object of the last good one.
        fs::remove_file(&rebuilt).with_context(|| format!("removing \"{}\"", rebuilt.display()))?;
    }
    let present = toolchain(root)?;
    let built = build(root, is_check)?;
    let bytes = fs::read(&built).with_context(|| format!("reading \"{}\"", built.display()))?;
    describe(&bytes)?;
    write(&rebuilt, &bytes)?;
    let prebuilt = root.join("faultscope/prebuilt");
    let recorded = fs::read_to_string(prebuilt.join(TOOLCHAIN)).ok();
    if let Some(recorded) = recorded.as_deref().filter(|r| *r != present) {
        println!("ebpf: this toolchain differs from the one that made the committed object:");
        for line in differences(recorded, &present) {
            println!("  {line}");
        }
    }
    if is_check {
        check(&prebuilt, &bytes, recorded.as_deref(), &present)
    } else {
        write(&prebuilt.join(OBJECT), &bytes)?;
        write(&prebuilt.join(TOOLCHAIN), present.as_bytes())?;
        let hash = capture(Command::new("sha256sum").arg(OBJECT).current_dir(&prebuilt))?;
        write(&prebuilt.join(HASH), hash.as_bytes())?;
        println!("ebpf: wrote faultscope/prebuilt; commit it together with the sources");
        Ok(())
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)
            .with_context(|| format!("making directory \"{}\"", directory.display()))?;
    }
    fs::write(path, bytes).with_context(|| format!("writing \"{}\"", path.display()))
}

/// Holds the committed object against its hash and, where that means something, against the bytes just built.
fn check(prebuilt: &Path, built: &[u8], recorded: Option<&str>, present: &str) -> Result<()> {
    let committed = fs::read(prebuilt.join(OBJECT)).context(
        "there is no committed BPF object; run `cargo xtask ebpf` and commit faultscope/prebuilt",
    )?;
    run(Command::new("sha256sum")
        .args(["--check", "--strict", HASH])
        .current_dir(prebuilt))
    .context("the committed BPF object is not the one that was hashed; run `cargo xtask ebpf`")?;
    match judge(&committed, built, recorded, present) {
        Verdict::Same => println!("ebpf: the sources give the committed object, byte for byte"),
        Verdict::NotCompared => {
            println!("ebpf: not compared with the committed object, the toolchains differ");
        }
        Verdict::Stale => bail!(
            "the sources do not give the committed object, though the toolchain is the same; \
             run `cargo xtask ebpf` and commit faultscope/prebuilt"
        ),
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    Stale,
    NotCompared,
}

fn judge(committed: &[u8], built: &[u8], recorded: Option<&str>, present: &str) -> Verdict {
    if recorded != Some(present) {
        Verdict::NotCompared
    } else if committed == built {
        Verdict::Same
    } else {
        Verdict::Stale
    }
}

/// Compiles the programs with Debian's toolchain and returns where the object is.
fn build(root: &Path, is_check: bool) -> Result<PathBuf> {
    let directory = root.join("faultscope-ebpf");
    let mut search = vec![root.join("target/tools/bin")];
    search.extend(env::var_os("PATH").iter().flat_map(env::split_paths));
    let mut command = Command::new("/usr/bin/cargo");
    for (name, _) in env::vars_os().filter(|(name, _)| is_of_our_cargo(name)) {
        command.env_remove(name);
    }
    command
        .current_dir(&directory)
        .env("PATH", env::join_paths(search).context("extending PATH")?)
        .env("RUSTC", "/usr/bin/rustc")
        // The BPF target has no ready core, and building core is unstable in every stable compiler.
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["build", "--release"]);
    if is_check {
        command.arg("--locked");
    }
    run(&mut command)?;
    Ok(directory.join("target/bpfel-unknown-none/release/faultscope"))
}

/// Whether a variable speaks to the cargo that started us, and would mislead the other one.
///
/// `cargo run` under rustup hands its toolchain, its flags and its package down to us. Where packages are fetched from and
/// cached stays.
fn is_of_our_cargo(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    let is_kept = [
        "CARGO_HOME",
        "CARGO_HTTP_",
        "CARGO_NET_",
        "CARGO_REGISTR",
        "CARGO_SOURCE_",
        "CARGO_TERM_",
    ]
    .iter()
    .any(|kept| name.starts_with(kept));
    name == "LD_LIBRARY_PATH"
        || (name.starts_with("CARGO") && !is_kept)
        || (name.starts_with("RUST") && name != "RUST_BACKTRACE")
}

/// The versions that decide the bytes of the object, one a line.
fn toolchain(root: &Path) -> Result<String> {
    let advice = "run `cargo xtask setup` first";
    let rustc = capture(Command::new("/usr/bin/rustc").arg("--version")).context(advice)?;
    let llvm = capture(Command::new("/usr/lib/llvm-22/bin/llvm-config").arg("--version"))
        .context(advice)?;
    let linker = capture(Command::new(root.join("target/tools/bin/bpf-linker")).arg("--version"))
        .context(advice)?;
    if linker.split_whitespace().last() != Some(BPF_LINKER) {
        bail!(
            "target/tools holds \"{}\", not version {BPF_LINKER}; {advice}",
            linker.trim()
        );
    }
    let lock = fs::read_to_string(root.join("faultscope-ebpf/Cargo.lock"))
        .context("reading faultscope-ebpf/Cargo.lock")?;
    let aya = locked_version(&lock, "aya-ebpf")
        .context("faultscope-ebpf/Cargo.lock holds no aya-ebpf")?;
    Ok(format!(
        "{}\nllvm {}\n{}\naya-ebpf {aya}\n",
        rustc.trim(),
        llvm.trim(),
        linker.trim()
    ))
}

/// The version of a package in the text of a Cargo.lock.
fn locked_version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    lines
        .nth(1)?
        .strip_prefix("version = \"")?
        .strip_suffix('"')
}

fn differences(recorded: &str, present: &str) -> Vec<String> {
    let of = |text: &str, tool: &str| {
        let line = text.lines().find(|l| l.split(' ').next() == Some(tool));
        line.map_or_else(|| "none".to_owned(), |l| l[tool.len()..].trim().to_owned())
    };
    let mut tools: Vec<&str> = recorded
        .lines()
        .chain(present.lines())
        .filter_map(|l| l.split(' ').next())
        .collect();
    tools.sort_unstable();
    tools.dedup();
    let differ = tools
        .into_iter()
        .filter(|tool| of(recorded, tool) != of(present, tool));
    differ
        .map(|tool| {
            format!(
                "{tool}: {} made it, {} is here",
                of(recorded, tool),
                of(present, tool)
            )
        })
        .collect()
}

fn describe(object: &[u8]) -> Result<()> {
    let summary = elf::summarize(object)
        .context("the built object is no ELF file this program understands")?;
    println!(
        "ebpf: bytes {}, sections {}, programs {}",
        object.len(),
        summary.sections,
        summary.programs.len()
    );
    for program in &summary.programs {
        println!(
            "  {:<32} {:<40} {:>5} instructions",
            program.name,
            program.section,
            program.bytes / 8
        );
    }
    if summary.programs.is_empty() {
        bail!("the built object holds no program");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_compared_only_under_the_same_toolchain() {
        assert_eq!(judge(b"a", b"a", Some("v1"), "v1"), Verdict::Same);
        assert_eq!(judge(b"a", b"b", Some("v1"), "v1"), Verdict::Stale);
        assert_eq!(judge(b"a", b"b", Some("v1"), "v2"), Verdict::NotCompared);
        assert_eq!(judge(b"a", b"b", None, "v2"), Verdict::NotCompared);
    }

    #[test]
    fn a_damaged_committed_object_is_refused_even_if_not_compared() {
        let directory = env::temp_dir().join(format!("faultscope-xtask-{}", std::process::id()));
        let object = directory.join(OBJECT);
        write(&object, b"object").expect("the temporary directory is writable");
        let hash = capture(
            Command::new("sha256sum")
                .arg(OBJECT)
                .current_dir(&directory),
        )
        .expect("sha256sum works");
        write(&directory.join(HASH), hash.as_bytes()).expect("the temporary directory is writable");
        let before = check(&directory, b"other", Some("v1"), "v2").is_ok();
        write(&object, b"damaged").expect("the temporary directory is writable");
        let after = check(&directory, b"other", Some("v1"), "v2").is_ok();
        fs::remove_dir_all(&directory).expect("the temporary directory can be removed");
        assert_eq!((before, after), (true, false));
    }

    #[test]
    fn only_variables_that_choose_a_toolchain_are_hidden() {
        let hidden = |name: &str| is_of_our_cargo(&OsString::from(name));
        for name in [
            "CARGO",
            "CARGO_MANIFEST_DIR",
            "CARGO_TARGET_DIR",
            "RUSTUP_TOOLCHAIN",
            "RUSTFLAGS",
            "RUSTC_WRAPPER",
            "LD_LIBRARY_PATH",
        ] {
            assert!(hidden(name), "{name}");
        }
        for name in [
            "CARGO_HOME",
            "CARGO_NET_OFFLINE",
            "PATH",
            "HOME",
            "CARGO_HTTP_CAINFO",
        ] {
            assert!(!hidden(name), "{name}");
        }
    }

    #[test]
    fn versions_come_from_the_lock_file_and_their_differences_are_named() {
        let lock = "[[package]]\nname = \"aya-ebpf-macros\"\nversion = \"9.9.9\"\n\n[[package]]\nname = \"aya-ebpf\"\nversion = \"0.2.1\"\n";
        assert_eq!(locked_version(lock, "aya-ebpf"), Some("0.2.1"));
        assert_eq!(locked_version(lock, "aya"), None);
        let said = differences(
            "rustc 1.96.0\nllvm 22.1.8\n",
            "rustc 1.97.0\nllvm 22.1.8\nbpf-linker 1\n",
        );
        assert_eq!(
            said,
            [
                "bpf-linker: none made it, 1 is here",
                "rustc: 1.96.0 made it, 1.97.0 is here"
            ]
        );
    }
}
