//! Which runs are made, in which order, into which files.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::Record;

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) struct Item {
    /// Its file.
    pub(in crate::commands) path: PathBuf,
    /// Its round from 1, and side, among several.
    pub(in crate::commands) round: Option<(u32, &'static str)>,
    /// The command, empty for none.
    pub(in crate::commands) command: Vec<OsString>,
    /// Shell command to run before.
    pub(in crate::commands) setup: Option<String>,
}

/// All runs in order; `default` names the file if the user does not.
pub(super) fn items(record: &Record, default: &Path) -> Vec<Item> {
    let base = record.output.as_deref().unwrap_or(default);
    let [setup_a, setup_b] = [0, 1].map(|i: usize| record.setups.get(i).cloned());
    let is_alternating = record.alternate.is_some() || setup_b.is_some();
    if !is_alternating {
        let Some(runs) = record.repeat else {
            return vec![Item {
                path: base.to_owned(),
                round: None,
                command: record.command.clone(),
                setup: None,
            }];
        };
        return (1..=runs)
            .map(|n| Item {
                path: numbered(base, &n.to_string()),
                round: Some((n, "")),
                command: record.command.clone(),
                setup: None,
            })
            .collect();
    }
    let item = |n: u32, side: &'static str| {
        let is_b = side == "B";
        let other = record.alternate.as_deref().filter(|_| is_b).map(shell);
        Item {
            path: numbered(base, &format!("{n}{side}")),
            round: Some((n, side)),
            command: other.unwrap_or_else(|| record.command.clone()),
            setup: if is_b {
                setup_b.clone()
            } else {
                setup_a.clone()
            },
        }
    };
    // Whatever drifts while the runs go on meets both sides alike.
    (1..=record.repeat.unwrap_or(1))
        .flat_map(|n| {
            if n % 2 == 1 {
                [item(n, "A"), item(n, "B")]
            } else {
                [item(n, "B"), item(n, "A")]
            }
        })
        .collect()
}

/// A shell command as arguments.
pub(super) fn shell(command: &str) -> Vec<OsString> {
    ["sh", "-c", command].map(OsString::from).into()
}

/// `out.fsc` with `1A` is `out.1A.fsc`.
fn numbered(base: &Path, number: &str) -> PathBuf {
    let mut name = base.file_stem().unwrap_or_default().to_owned();
    name.push(".");
    name.push(number);
    if let Some(extension) = base.extension() {
        name.push(OsStr::new("."));
        name.push(extension);
    }
    base.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn record() -> Record {
        Record {
            capture: crate::commands::session::Options::default(),
            output: Some("dir/out.fsc".into()),
            interval: Duration::from_secs(1),
            duration: None,
            command: vec!["true".into()],
            repeat: None,
            alternate: None,
            setups: Vec::new(),
            labels: std::collections::BTreeMap::new(),
            metrics: Vec::new(),
            is_strict: false,
            is_quiet: false,
        }
    }

    fn names(record: &Record) -> Vec<String> {
        let items = items(record, Path::new("default.fsc"));
        items.iter().map(|i| i.path.display().to_string()).collect()
    }

    #[test]
    fn one_run_has_the_name_given() {
        assert_eq!(names(&record()), ["dir/out.fsc"]);
        let unnamed = Record {
            output: None,
            ..record()
        };
        assert_eq!(names(&unnamed), ["default.fsc"]);
    }

    #[test]
    fn repeated_runs_are_numbered() {
        let repeated = Record {
            repeat: Some(3),
            output: Some("out".into()),
            ..record()
        };
        assert_eq!(names(&repeated), ["out.1", "out.2", "out.3"]);
    }

    #[test]
    fn sides_alternate_and_swap_each_round() {
        let alternating = Record {
            repeat: Some(2),
            alternate: Some("false | cat".into()),
            ..record()
        };
        assert_eq!(
            names(&alternating),
            [
                "dir/out.1A.fsc",
                "dir/out.1B.fsc",
                "dir/out.2B.fsc",
                "dir/out.2A.fsc"
            ]
        );
        let items = items(&alternating, Path::new(""));
        assert_eq!(items[0].command, ["true"]);
        assert_eq!(items[1].command, ["sh", "-c", "false | cat"]);
        assert_eq!(items[2].round, Some((2, "B")));
    }

    #[test]
    fn a_setup_goes_before_its_side() {
        let record = Record {
            setups: vec!["a".into(), "b".into()],
            repeat: Some(2),
            ..record()
        };
        let setups: Vec<_> = items(&record, Path::new(""))
            .into_iter()
            .filter_map(|i| i.setup)
            .collect();
        assert_eq!(setups, ["a", "b", "b", "a"]);
    }
}
