//! Tests of whole recordings.

pub(crate) mod fixture;
mod hostile;
mod kill;
mod queries;
mod roundtrip;
mod size;

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

/// A directory of a test's own, removed at its end.
#[derive(Debug)]
struct Scratch(PathBuf);

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Scratch {
    fn new() -> Self {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("faultscope-store-{}-{n}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a new directory");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("run.fsc")
    }

    fn names(&self) -> Vec<String> {
        names(&self.0)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("the directory is ours");
    }
}

/// Names of the files in a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("readable");
    let mut names: Vec<String> = entries
        .map(|entry| {
            let name = entry.expect("readable").file_name();
            name.into_string().expect("our names are UTF-8")
        })
        .collect();
    names.sort();
    names
}
