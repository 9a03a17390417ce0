//! The direction of dependencies: who may use whom, and who may use which crate.
//!
//! Everything is decided from paths in the source and from the dependency lists in the manifests. The tables below are the
//! rules; an exception is a row of the table in ARCHITECTURE.md, with its reason.

use super::paths::{Path, paths};
use super::token::{split_tests, tokens};
use super::{File, Violation};

/// Modules of `faultscope/src` from low to high: a module may use those of lower rows, not its neighbours in its own.
const LAYERS: &[&[&str]] = &[
    &["units", "error", "name"],
    &["host", "symbol"],
    &["plan"],
    &["bpf", "load", "run"],
    &["sample", "workload"],
    &["collect", "store"],
    &["model"],
    &["render"],
    &["tui", "export", "compare"],
    &["commands"],
    &["cli"],
    &["main", "lib"],
];

/// Crates that have one home each, and the places that are home.
const HOMES: &[(&str, &[&str])] = &[
    ("aya", &["bpf", "build"]),
    ("aya_obj", &["bpf", "build"]),
    ("aya_build", &["build"]),
    ("blazesym", &["symbol"]),
    ("rusqlite", &["store"]),
    ("ratatui", &["tui"]),
    ("crossterm", &["tui"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("arrow", &["export::parquet"]),
    ("parquet", &["export::parquet"]),
    ("axum", &["export::http"]),
    // Wire types stop where they are decoded.
    ("faultscope_common", &["bpf", "collect", "load"]),
    // The names of the globals a plan fills are the object's interface, not a wire type.
    (
        "faultscope_common::config",
        &["bpf", "collect", "load", "plan"],
    ),
    (
        "faultscope_common::latency",
        &["bpf", "collect", "load", "sample", "model"],
    ),
];

/// Modules that compute and do nothing else.
const PURE: &[&str] = &["plan", "sample", "workload", "model", "compare::stats"];

/// What a pure module must not name: input and output, clocks, locks, other processes.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::thread",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::sync::Mutex",
    "std::sync::RwLock",
    "std::sync::Condvar",
    "std::os::unix::net",
    "tokio",
    "crate::bpf",
    "crate::load",
    "crate::run",
    "crate::collect",
    "crate::store",
];

/// Dependencies each of our crates may have among our own.
const CRATES: &[(&str, &[&str])] = &[
    ("faultscope-common/Cargo.toml", &[]),
    ("faultscope-ebpf/Cargo.toml", &["faultscope-common"]),
    ("faultscope/Cargo.toml", &["faultscope-common"]),
    ("xtask/Cargo.toml", &[]),
];

const OUR_CRATES: &[&str] = &[
    "faultscope",
    "faultscope-common",
    "faultscope-ebpf",
    "xtask",
];

/// The line of ARCHITECTURE.md after which the table of extra edges stands.
pub(super) const EDGES_MARK: &str = "<!-- lint: extra layer edges -->";

/// An allowed exception: `from` may use `to`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edge {
    from: String,
    to: String,
}

/// Reads the extra edges out of ARCHITECTURE.md; a row without a reason is refused.
pub(super) fn parse_edges(architecture: &File) -> (Vec<Edge>, Vec<Violation>) {
    let (mut edges, mut wrong) = (Vec::new(), Vec::new());
    let mut lines = architecture
        .text
        .lines()
        .enumerate()
        .skip_while(|(_, l)| l.trim() != EDGES_MARK);
    if lines.next().is_none() {
        wrong.push(architecture.violation(
            1,
            "edges",
            format!("the line \"{EDGES_MARK}\" is missing; put it above the table"),
        ));
    }
    let table = lines
        .skip_while(|(_, l)| l.trim().is_empty())
        .take_while(|(_, l)| l.starts_with('|'));
    for (index, row) in table.skip(2) {
        let cells: Vec<&str> = row
            .trim_matches('|')
            .split('|')
            .map(|c| c.trim().trim_matches('`'))
            .collect();
        match cells.as_slice() {
            [from, to, reason] if !from.is_empty() && !to.is_empty() && !reason.is_empty() => {
                edges.push(Edge {
                    from: (*from).to_owned(),
                    to: (*to).to_owned(),
                });
            }
            _ => wrong.push(architecture.violation(
                index + 1,
                "edges",
                "a row needs from, to and a reason".to_owned(),
            )),
        }
    }
    (edges, wrong)
}

/// Checks one file of `faultscope/src` or its build script; other files pass.
pub(super) fn check_source(file: &File, edges: &[Edge]) -> Vec<Violation> {
    let Some(module) = module_of(&file.path) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let name = module.first().cloned().unwrap_or_default();
    if rank(&name).is_none() && name != "build" {
        let message =
            format!("module \"{name}\" has no layer; give it a row in xtask/src/lint/layers.rs");
        return vec![file.violation(1, "layer", message)];
    }
    let here = module.join("::");
    // The crate root is no module: `super` from a file right below `src` leads to it.
    let stands_at: Vec<String> = if rank(&name) == rank("lib") || name == "build" {
        Vec::new()
    } else {
        module
    };
    let (product, tests) = split_tests(&tokens(&file.text));
    let in_test_file = is_test_file(&file.path);
    for (list, is_test) in [(product, in_test_file), (tests.concat(), true)] {
        for path in paths(&list, &stands_at) {
            let Some((rule, message)) = judge(&here, &path, is_test, edges) else {
                continue;
            };
            found.push(file.violation(path.line, rule, message));
        }
    }
    found
}

/// Says what is wrong with `path` used from `here`, if anything.
fn judge(here: &str, path: &Path, is_test: bool, edges: &[Edge]) -> Option<(&'static str, String)> {
    let first = path.segments.first().map_or("", String::as_str);
    let named = format!(
        "{}{}",
        if path.is_ours { "crate::" } else { "" },
        path.segments.join("::")
    );
    let is_allowed = |to: &str| {
        edges
            .iter()
            .any(|e| within(here, &e.from) && within(to, &e.to))
    };
    let bare = path.segments.join("::");
    if is_allowed(&bare) {
        return None;
    }
    let top = here.split("::").next().unwrap_or_default();
    if path.is_ours && top != "build" && rank(top) != rank("lib") {
        if first == "*" || first.is_empty() {
            return Some((
                "layer",
                format!("\"{named}\" hides which module is used; name the module"),
            ));
        }
        let Some(theirs) = rank(first) else {
            return Some((
                "layer",
                format!(
                    "\"{named}\" names no module of the layer table; name the module it lives in"
                ),
            ));
        };
        let ours = rank(top).unwrap_or_default();
        if first != top && theirs >= ours {
            return Some((
                "layer",
                format!("\"{top}\" must not use \"{first}\": it is not in a lower layer"),
            ));
        }
    }
    if !path.is_ours
        && let Some(message) = homeless(here, &bare, is_test)
    {
        return Some(("home", message));
    }
    let is_pure = PURE.iter().any(|p| within(here, p));
    if is_pure && !is_test && IMPURE.iter().any(|i| within(&named, i)) {
        return Some((
            "pure",
            format!("\"{here}\" only computes; take the result of \"{named}\" as an argument"),
        ));
    }
    if is_pure
        && !is_test
        && IMPURE
            .iter()
            .any(|i| named.ends_with("::*") && within(i, named.trim_end_matches("::*")))
    {
        return Some((
            "pure",
            format!("\"{named}\" may bring in a clock or a lock; name what is used"),
        ));
    }
    None
}

/// Says why the crate in `path` must not be used from `here`, if it has a home elsewhere.
fn homeless(here: &str, path: &str, is_test: bool) -> Option<String> {
    // The longest matching row is the one that speaks about this path.
    let (krate, homes) = HOMES
        .iter()
        .filter(|(krate, _)| within(path, krate))
        .max_by_key(|(krate, _)| krate.len())?;
    let is_wire_test = is_test && within(path, "faultscope_common");
    let is_home = is_wire_test || homes.iter().any(|home| within(here, home));
    (!is_home).then(|| {
        format!(
            "\"{krate}\" is used in {} only, not in \"{here}\"",
            homes.join(", ")
        )
    })
}

/// Whether `path` is `root` or lies below it.
fn within(path: &str, root: &str) -> bool {
    path.strip_prefix(root)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn rank(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The module a file of the product holds, as names from the crate root; none for files of other crates and tests.
fn module_of(path: &str) -> Option<Vec<String>> {
    if path == "faultscope/build.rs" {
        return Some(vec!["build".to_owned()]);
    }
    let stem = path.strip_prefix("faultscope/src/")?.strip_suffix(".rs")?;
    let mut names: Vec<String> = stem.split('/').map(str::to_owned).collect();
    names.pop_if(|last| last == "mod");
    Some(names)
}

/// Whether a file is test code by its name.
pub(super) fn is_test_file(path: &str) -> bool {
    path.split('/')
        .any(|part| part == "tests" || part == "tests.rs" || part.ends_with("_tests.rs"))
}

/// Checks that a manifest of ours depends only on those of our crates it may know.
pub(super) fn check_manifest(file: &File) -> Vec<Violation> {
    let Some((_, allowed)) = CRATES.iter().find(|(path, _)| *path == file.path) else {
        return Vec::new();
    };
    let mut in_dependencies = false;
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if let Some(section) = line.trim().strip_prefix('[') {
            in_dependencies = section.contains("dependencies");
            // `[dependencies.name]` is a dependency in its header.
            let header = section
                .trim_end_matches(']')
                .rsplit('.')
                .next()
                .unwrap_or_default();
            if in_dependencies && OUR_CRATES.contains(&header) && !allowed.contains(&header) {
                found.push(file.violation(
                    index + 1,
                    "crate",
                    format!("this crate must not depend on \"{header}\""),
                ));
            }
        } else if in_dependencies {
            let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
            if OUR_CRATES.contains(&name) && !allowed.contains(&name) {
                found.push(file.violation(
                    index + 1,
                    "crate",
                    format!("this crate must not depend on \"{name}\""),
                ));
            }
            // `path` and `package` could smuggle one of ours in under another name.
            if line.contains("package")
                && OUR_CRATES
                    .iter()
                    .any(|c| line.contains(&format!("\"{c}\"")))
            {
                found.push(file.violation(
                    index + 1,
                    "crate",
                    "one of our crates must keep its name".to_owned(),
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
