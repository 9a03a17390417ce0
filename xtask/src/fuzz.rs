//! `cargo xtask fuzz`: every target of the crate `fuzz`, for some seconds each.
//!
//! libFuzzer on a stable compiler: its coverage counters are an LLVM pass that `RUSTC_BOOTSTRAP` lets cargo-fuzz ask for.
//! Without a sanitizer: the code has no `unsafe` worth one here, and a panic, a hang or too much memory is caught as well.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::proc;

/// What to fuzz, and how long.
#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// Give each target a minute in place of five seconds
    #[arg(long)]
    long: bool,
    /// Fuzz this target only; the names are those of the files in fuzz/fuzz_targets
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
}

/// Output of the build, corpus and findings, all below `target`.
const OUTPUT: &str = "target/fuzz";

/// Real input that every target starts from.
const SEEDS: &str = "faultscope/tests/data/workload";

/// Most memory a target may take, MiB, and most time one input may take, seconds.
const MEMORY: &str = "1024";
const SECONDS: &str = "10";

/// Fuzzes and returns how many targets passed.
///
/// # Errors
/// If a target cannot be built, or an input makes it panic, hang or eat memory; libFuzzer prints the path of the input.
pub(crate) fn fuzz(root: &Path, options: &Options) -> Result<u64> {
    let tool = root.join("target/tools/bin/cargo-fuzz");
    if !tool.exists() {
        bail!("\"target/tools/bin/cargo-fuzz\" is missing; run `cargo xtask setup`");
    }
    let mut targets = targets(root)?;
    if let Some(wanted) = &options.target {
        if !targets.contains(wanted) {
            bail!(
                "there is no target \"{wanted}\"; there are {}",
                targets.join(", ")
            );
        }
        targets.retain(|t| t == wanted);
    }
    let output = root.join(OUTPUT);
    let cargo_fuzz = |verb: &str| {
        let mut command = Command::new(&tool);
        command
            .current_dir(root)
            .env(
                "CARGO",
                env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
            )
            .env("RUSTC_BOOTSTRAP", "1")
            .args([
                "fuzz",
                verb,
                "--dev",
                "--sanitizer",
                "none",
                "--fuzz-dir",
                "fuzz",
                "--target-dir",
            ])
            .arg(&output);
        command
    };
    proc::run(&mut cargo_fuzz("build")).context("building the fuzz targets")?;
    let seconds = if options.long { 60 } else { 5 };
    let mut failed = Vec::new();
    for target in &targets {
        let corpus = output.join("corpus").join(target);
        let found = output.join("found").join(target);
        for dir in [&corpus, &found] {
            fs::create_dir_all(dir).with_context(|| format!("making \"{}\"", dir.display()))?;
        }
        println!("fuzz: {target}, {seconds} s");
        let mut command = cargo_fuzz("run");
        // The first directory takes new inputs, the second only gives them.
        command
            .arg(target)
            .arg(&corpus)
            .arg(root.join(SEEDS))
            .arg("--")
            .args([
                format!("-max_total_time={seconds}"),
                format!("-rss_limit_mb={MEMORY}"),
                format!("-timeout={SECONDS}"),
                format!("-artifact_prefix={}/", found.display()),
                "-verbosity=0".to_owned(),
                "-print_final_stats=1".to_owned(),
            ]);
        if let Err(error) = proc::run(&mut command) {
            println!(
                "fuzz: {target}: {error:#}; the input is in \"{}\"",
                found.display()
            );
            failed.push(target.as_str());
        }
    }
    if !failed.is_empty() {
        bail!(
            "inputs that break {} were found; their paths are above",
            failed.join(", ")
        );
    }
    Ok(targets.len() as u64)
}

/// The targets, one file each.
fn targets(root: &Path) -> Result<Vec<String>> {
    let dir = root.join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("reading \"{}\"", dir.display()))? {
        let path = entry
            .with_context(|| format!("reading \"{}\"", dir.display()))?
            .path();
        if path.extension().is_some_and(|e| e == "rs")
            && let Some(stem) = path.file_stem()
        {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;

    #[test]
    fn every_target_is_built() {
        let root = repository();
        let manifest = fs::read_to_string(root.join("fuzz/Cargo.toml")).expect("is there");
        let targets = targets(&root).expect("readable");
        assert!(targets.len() >= 6, "{targets:?}");
        for target in targets {
            let path = format!("path = \"fuzz_targets/{target}.rs\"");
            assert!(manifest.contains(&path), "fuzz/Cargo.toml lacks {path}");
        }
    }
}
