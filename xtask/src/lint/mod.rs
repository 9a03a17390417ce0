//! `cargo xtask lint`: the project's own rules, on source text alone.
//!
//! The rules are tables: layers and crates in `layers`, words and lengths in `words`, programs in `programs`.

mod layers;
mod paths;
mod programs;
mod token;
mod words;

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// A file as the rules see it.
struct File {
    /// Relative to the repository, with slashes.
    path: String,
    text: String,
}

impl File {
    #[cfg(test)]
    fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn violation(&self, line: usize, rule: &'static str, message: String) -> Violation {
        Violation {
            path: self.path.clone(),
            line,
            rule,
            message,
        }
    }
}

/// A broken rule, printed as editors expect it.
#[derive(Debug)]
struct Violation {
    path: String,
    line: usize,
    rule: &'static str,
    message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {} [{}]",
            self.path, self.line, self.message, self.rule
        )
    }
}

/// Checks every text file below `root`; an error says how many rules are broken after each was printed.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut files = Vec::new();
    read_tree(root, root, &mut files)?;
    let found = check(&files);
    for violation in &found {
        println!("{violation}");
    }
    if !found.is_empty() {
        bail!(
            "{} broken rules; each line above says what to do",
            found.len()
        );
    }
    println!("lint: {} files, no rule broken", files.len());
    Ok(())
}

fn check(files: &[File]) -> Vec<Violation> {
    let (edges, mut found) = match files.iter().find(|f| f.path == "ARCHITECTURE.md") {
        Some(architecture) => layers::parse_edges(architecture),
        None => (Vec::new(), Vec::new()),
    };
    for file in files {
        found.extend(layers::check_source(file, &edges));
        found.extend(layers::check_manifest(file));
        found.extend(words::check(file));
        found.extend(programs::check(file));
    }
    found
}

/// Reads all text files below `dir`; build output, version control and what is no UTF-8 are left out.
fn read_tree(root: &Path, dir: &Path, files: &mut Vec<File>) -> Result<()> {
    let entries =
        fs::read_dir(dir).with_context(|| format!("reading directory \"{}\"", dir.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(
            entry
                .with_context(|| format!("reading directory \"{}\"", dir.display()))?
                .path(),
        );
    }
    paths.sort();
    for path in paths {
        let is_skipped = path
            .file_name()
            .is_some_and(|n| n == "target" || n == ".git");
        if is_skipped || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            read_tree(root, &path, files)?;
            continue;
        }
        let bytes = fs::read(&path).with_context(|| format!("reading \"{}\"", path.display()))?;
        if let (Ok(text), Ok(relative)) = (String::from_utf8(bytes), path.strip_prefix(root)) {
            files.push(File {
                path: relative.to_string_lossy().into_owned(),
                text,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_rule_is_reached_from_the_top() {
        let files = [
            File::new("ARCHITECTURE.md", "no table"),
            File::new("faultscope/src/model/mod.rs", "use crate::tui::x;"),
            File::new(
                "faultscope-common/Cargo.toml",
                "[dependencies]\nxtask = \"1\"\n",
            ),
            File::new("run.sh", &["a |", "| true"].concat()),
            File::new(
                "faultscope/tests/x.rs",
                "fn f() { Command::new(\"no-such-program\"); }",
            ),
        ];
        let rules: Vec<_> = check(&files).iter().map(|v| v.rule).collect();
        assert_eq!(rules, ["edges", "layer", "crate", "swallowed", "program"]);
    }

    #[test]
    fn this_repository_keeps_its_rules() {
        let root = crate::repository();
        let mut files = Vec::new();
        read_tree(&root, &root, &mut files).expect("the repository is readable");
        assert!(
            files.iter().any(|f| f.path == "xtask/src/lint/mod.rs"),
            "the walk must reach this file"
        );
        let found: Vec<String> = check(&files).iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
