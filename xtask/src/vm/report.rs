//! What a run of the kernel tests says, read from its lines.
//!
//! With one thread and without capture a test's name, what it prints and its result come in this order, so each line
//! belongs to the test named last. Beside libtest's own lines there are those of `faultscope/tests/kernel/support.rs`:
//! `SKIP reason`, `feature: what: yes`, `feature: what: no: reason` and `program: name insns N load_us N`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    /// It cannot run on this kernel, for this reason.
    Skipped(String),
    Ignored,
}

/// A test that ended.
#[derive(Debug, Clone)]
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
    /// Time since the test before it ended: its own first line only comes when it is full.
    pub(crate) took: Duration,
    /// All it printed.
    pub(crate) output: String,
    /// It failed at first.
    pub(crate) is_second: bool,
}

/// What the verifier said of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verified {
    /// Instructions it read on all paths; nothing where the kernel does not count them.
    pub(crate) instructions: Option<u64>,
    pub(crate) load_us: u64,
}

/// Results of a run, complete once [`Report::is_complete`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub(crate) tests: Vec<Test>,
    /// Signals the kernel gives, or the reason why not.
    pub(crate) features: BTreeMap<String, Result<(), String>>,
    pub(crate) programs: BTreeMap<String, Verified>,
    /// Lines that contradict others or cannot be read.
    pub(crate) faults: Vec<String>,
    current: Option<Current>,
    /// When a test ended last, or the first line came.
    ended: Option<Instant>,
    /// Tests that libtest says it ran.
    total: Option<usize>,
}

#[derive(Debug, Clone)]
struct Current {
    name: String,
    output: String,
    skip: Option<String>,
}

impl Report {
    /// Takes one line; returns true if a test ended with it.
    pub(crate) fn read(&mut self, line: &str) -> bool {
        let since = *self.ended.get_or_insert_with(Instant::now);
        if let Some(result) = line.strip_prefix("test result: ") {
            self.total = Some(ran(result));
            return false;
        }
        let mut rest = line;
        if let Some((name, output)) = line
            .strip_prefix("test ")
            .and_then(|named| named.split_once(" ... "))
            .filter(|(name, _)| !name.contains(' '))
        {
            if let Some(lost) = self.current.take() {
                self.faults
                    .push(format!("test {} has no result", lost.name));
            }
            self.current = Some(Current {
                name: name.to_owned(),
                output: String::new(),
                skip: None,
            });
            rest = output;
        }
        let outcome = match rest {
            "ok" => Outcome::Passed,
            "FAILED" => Outcome::Failed,
            _ if rest.starts_with("ignored") => Outcome::Ignored,
            _ => {
                self.output(rest);
                return false;
            }
        };
        let Some(current) = self.current.take() else {
            return false;
        };
        self.ended = Some(Instant::now());
        self.tests.push(Test {
            outcome: match (outcome, current.skip) {
                (Outcome::Passed, Some(reason)) => Outcome::Skipped(reason),
                (outcome, _) => outcome,
            },
            name: current.name,
            took: since.elapsed(),
            output: current.output,
            is_second: false,
        });
        true
    }

    /// Takes the results of another run on the same kernel.
    pub(crate) fn add(&mut self, other: Self) {
        self.tests.extend(other.tests);
        self.faults.extend(other.faults);
        self.programs.extend(other.programs);
        for (what, has) in other.features {
            self.feature(what, has);
        }
    }

    /// Names of the tests that failed.
    pub(crate) fn failed(&self) -> Vec<String> {
        let failed = self.tests.iter().filter(|t| t.outcome == Outcome::Failed);
        failed.map(|test| test.name.clone()).collect()
    }

    /// Returns true if no test has begun.
    pub(crate) fn is_untouched(&self) -> bool {
        self.tests.is_empty() && self.current.is_none()
    }

    /// Takes the results of a second try in place of those it had.
    pub(crate) fn settle(&mut self, mut second: Self) {
        for test in &mut second.tests {
            let failed = |first: &Test| first.name == test.name && first.outcome == Outcome::Failed;
            let broke = self.unfinished().is_some_and(|(name, _)| name == test.name);
            test.is_second = broke || self.tests.iter().any(failed);
        }
        let is_new = |first: &Test| second.tests.iter().all(|test| test.name != first.name);
        self.tests.retain(is_new);
        self.add(second);
    }

    /// Returns true if libtest came to its last line and every test has a result.
    pub(crate) fn is_complete(&self) -> bool {
        self.current.is_none() && self.total == Some(self.tests.len())
    }

    /// The test that was running when the lines ended.
    pub(crate) fn unfinished(&self) -> Option<(&str, &str)> {
        self.current
            .as_ref()
            .map(|current| (current.name.as_str(), current.output.as_str()))
    }

    fn output(&mut self, line: &str) {
        if let Some(text) = line.strip_prefix("feature: ") {
            match parse_feature(text) {
                Some((what, has)) => self.feature(what, has),
                None => self.faults.push(format!("unreadable line \"{line}\"")),
            }
        } else if let Some(text) = line.strip_prefix("program: ") {
            match parse_program(text) {
                Some((name, verified)) => drop(self.programs.insert(name, verified)),
                None => self.faults.push(format!("unreadable line \"{line}\"")),
            }
        }
        if let Some(current) = &mut self.current {
            if let Some(reason) = line.strip_prefix("SKIP ") {
                current.skip = Some(reason.to_owned());
            }
            current.output.push_str(line);
            current.output.push('\n');
        }
    }

    fn feature(&mut self, what: String, has: Result<(), String>) {
        if let Some(before) = self.features.get(&what)
            && before.is_ok() != has.is_ok()
        {
            self.faults.push(format!(
                "feature \"{what}\" is stated as there and as absent"
            ));
        }
        self.features.insert(what, has);
    }
}

fn parse_feature(text: &str) -> Option<(String, Result<(), String>)> {
    let (what, has) = text.split_once(": ")?;
    let has = match has.strip_prefix("no: ") {
        Some(reason) => Err(reason.to_owned()),
        None if has == "yes" => Ok(()),
        None => return None,
    };
    Some((what.to_owned(), has))
}

fn parse_program(text: &str) -> Option<(String, Verified)> {
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        [name, "insns", instructions, "load_us", load_us] => {
            let instructions = match instructions {
                "-" => None,
                number => Some(number.parse().ok()?),
            };
            let load_us = load_us.parse().ok()?;
            Some((
                name.to_owned(),
                Verified {
                    instructions,
                    load_us,
                },
            ))
        }
        _ => None,
    }
}

/// Tests that passed, failed or were ignored, of libtest's last line.
fn ran(result: &str) -> usize {
    result
        .split([';', '.'])
        .filter_map(|part| {
            let (number, what) = part.trim().split_once(' ')?;
            ["passed", "failed", "ignored"]
                .contains(&what)
                .then(|| number.parse::<usize>().ok())?
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Report {
        let mut report = Report::default();
        for line in text.lines() {
            report.read(line);
        }
        report
    }

    #[test]
    fn names_outputs_and_results_are_told_apart() {
        let report = read(
            "running 4 tests\n\
             test a::one ... ok\n\
             test a::two ...   seen: 5 (floor 3)\n\
             feature: fault latency: yes\n\
             ok\n\
             test a::three ... SKIP no userfaultfd\n\
             feature: userfaultfd: no: it is not built\n\
             ok\n\
             test a::four ... \n\
             thread 'a::four' panicked at x.rs:1:1:\n\
             FAILED\n\n\
             failures:\n    a::four\n\n\
             test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 9 filtered out; finished in 2.00s\n",
        );
        let outcomes: Vec<_> = report.tests.iter().map(|t| t.outcome.clone()).collect();
        assert_eq!(
            outcomes,
            [
                Outcome::Passed,
                Outcome::Passed,
                Outcome::Skipped("no userfaultfd".to_owned()),
                Outcome::Failed
            ]
        );
        assert!(
            report.is_complete() && report.faults.is_empty(),
            "{report:?}"
        );
        assert_eq!(report.features["fault latency"], Ok(()));
        assert_eq!(
            report.features["userfaultfd"],
            Err("it is not built".to_owned())
        );
        assert!(report.tests[3].output.contains("panicked"), "{report:?}");
    }

    #[test]
    fn a_run_that_breaks_off_is_incomplete_and_names_its_test() {
        let report = read("running 2 tests\ntest one ... ok\ntest two ...   so far\n");
        assert!(!report.is_complete());
        assert_eq!(report.unfinished(), Some(("two", "  so far\n")));
    }

    #[test]
    fn programs_and_contradictions_are_read() {
        let report = read(
            "test x ... program: fault_user insns 812 load_us 4100\n\
             program: other insns - load_us 9\n\
             feature: a: yes\nfeature: a: no: gone\nfeature: b: perhaps\nok\n",
        );
        assert_eq!(
            report.programs["fault_user"],
            Verified {
                instructions: Some(812),
                load_us: 4100
            }
        );
        assert_eq!(report.programs["other"].instructions, None);
        assert_eq!(report.faults.len(), 2, "{:?}", report.faults);
    }

    #[test]
    fn reports_of_one_kernel_add_up() {
        let mut all = read("test x ... feature: a: yes\nok\n");
        all.add(read("test y ... feature: a: no: gone\nok\n"));
        assert_eq!((all.tests.len(), all.faults.len()), (2, 1));
    }
}
