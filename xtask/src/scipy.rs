//! SciPy beside the statistics of `compare`: other random data each time, the same answers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::proc::{capture, run};

/// What the virtual environment holds.
const PINS: &[&str] = &["scipy==1.16.3", "numpy==2.4.6"];

/// Seeds of the data; that of the committed file is another one.
const SEEDS: &[&str] = &["1", "2", "3"];

fn python(root: &Path) -> PathBuf {
    root.join("target/scipy/bin/python")
}

/// Installs the pinned SciPy into `target/scipy` unless it is there.
pub(crate) fn install(root: &Path) -> Result<()> {
    let python = python(root);
    let list = "import importlib.metadata as m; print(*(f'{p}=={m.version(p)}' for p in ('scipy', 'numpy')))";
    if python.exists()
        && capture(Command::new(&python).args(["-c", list]))
            .is_ok_and(|found| found.split_whitespace().eq(PINS.iter().copied()))
    {
        println!("setup: {} are in target/scipy", PINS.join(" and "));
        return Ok(());
    }
    println!("setup: installing {} into target/scipy", PINS.join(" and "));
    run(Command::new("/usr/bin/python3")
        .args(["-m", "venv", "--clear"])
        .arg(root.join("target/scipy")))?;
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(PINS))
    .context("installing SciPy from PyPI; without it the committed answers in faultscope/tests/stats are all there is")
}

/// Has SciPy answer on new data, and returns the files.
pub(crate) fn vectors(root: &Path) -> Result<Vec<PathBuf>> {
    let script = root.join("faultscope/tests/stats/vectors.py");
    let mut files = Vec::new();
    for seed in SEEDS {
        let text = capture(Command::new(python(root)).arg(&script).arg(seed))?;
        let file = root.join(format!("target/scipy/vectors-{seed}.json"));
        fs::write(&file, text).with_context(|| format!("writing \"{}\"", file.display()))?;
        files.push(file);
    }
    Ok(files)
}
