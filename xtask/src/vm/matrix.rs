//! The kernel tests on every kernel: what is booted for them, and what became of each.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};

use super::build::Binaries;
use super::console::is_stale_code;
use super::guest::{Guest, Threads};
use super::image::{self, Work};
use super::kernel::Kernel;
use super::report::{Outcome, Report, Test};
use super::skips;
use crate::proc::capture;

/// Longest silence of a guest; a test that waits says so more often.
pub(super) const SILENCE: Duration = Duration::from_secs(10 * 60);

/// Longest run of a guest, without what a stress test is told to take.
pub(super) const LIMIT: Duration = Duration::from_secs(45 * 60);

/// How the names of tests begin that get guests of their own.
const STRESS: &str = "stress_";

/// How the names of tests end that need CPUs which run at once, and so the emulator on many threads.
const MULTI: &str = "_multi";

/// Tells a stress test how long to go on.
pub(super) const STRESS_SECONDS: &str = "FAULTSCOPE_STRESS_SECONDS";

/// Guests at a time whose CPUs share a thread: one on each CPU of a small machine. Of the others there is one.
const AT_ONCE: usize = 2;

/// Tests of a kernel from which on two guests share them: whole kernels do not fill two CPUs evenly.
const HALVED: usize = 40;

/// Most failed tests of a guest that are run again, alone in a guest of their own: an emulator short of time breaks one
/// or two, a defect breaks them again. Never stress, nor a guest with a mark on its console, but for the one mark that
/// is the emulator's own ([`is_stale_code`]).
const SECOND_TRIES: usize = 3;

/// What to run, and where.
pub(super) struct Matrix<'a> {
    pub(super) directory: &'a Path,
    pub(super) kernels: &'a [Kernel],
    pub(super) binaries: &'a Binaries,
    /// Variables of the guests.
    pub(super) environment: &'a [(String, String)],
    /// Only tests with this in their name, and every line they print.
    pub(super) name: Option<&'a str>,
    /// In place of what the names of the tests ask for.
    pub(super) threads: Option<Threads>,
    /// Seconds of a stress test.
    pub(super) stress: Duration,
}

/// What became of one kernel.
pub(super) struct Verdict<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) report: Report,
    /// What is wrong beside tests that failed, a text each.
    pub(super) errors: Vec<String>,
}

impl Verdict<'_> {
    /// Tests that failed and passed at their second try.
    pub(super) fn unsteady(&self) -> Vec<&str> {
        let tests = self.report.tests.iter();
        tests
            .filter(|test| test.is_second && test.outcome != Outcome::Failed)
            .map(|test| test.name.as_str())
            .collect()
    }

    /// Tests that passed, that failed or are otherwise wrong, and that were skipped.
    pub(super) fn counts(&self) -> [u64; 3] {
        let mut counts = [0, self.errors.len() as u64, 0];
        for test in &self.report.tests {
            counts[match test.outcome {
                Outcome::Passed => 0,
                Outcome::Failed => 1,
                Outcome::Skipped(_) | Outcome::Ignored => 2,
            }] += 1;
        }
        counts
    }
}

/// One guest and its tests.
struct Job<'a> {
    kernel: &'a Kernel,
    /// Names its files and stands in its messages.
    name: String,
    tests: Vec<String>,
    threads: Threads,
}

impl Job<'_> {
    /// The same guest for those tests that are to have a second try, if any.
    fn second(&self, report: &Report, error: Option<&String>) -> Option<Self> {
        let is_stress = self
            .tests
            .iter()
            .any(|name| function(name).starts_with(STRESS));
        let tests = match error {
            Some(error) if self.threads == Threads::Multi && is_stale_code(error) => {
                self.tests.clone()
            }
            _ if is_stress => return None,
            // It did not come up.
            Some(_) if report.is_untouched() => self.tests.clone(),
            Some(_) => return None,
            None => report.failed(),
        };
        let is_few = (1..=SECOND_TRIES).contains(&tests.len()) || error.is_some();
        is_few.then(|| Self {
            kernel: self.kernel,
            name: format!("{}-again", self.name),
            tests,
            threads: self.threads,
        })
    }
}

impl Matrix<'_> {
    /// Runs all guests, prints a line for each test, and returns the kernels in order.
    pub(super) fn run(&self) -> Result<Vec<Verdict<'_>>> {
        let tests = self.listed()?;
        let done = Mutex::new(Vec::new());
        let (single, multi): (VecDeque<_>, VecDeque<_>) = self
            .jobs(&tests)
            .into_iter()
            .partition(|job| job.threads == Threads::Single);
        for (jobs, at_once) in [(single, AT_ONCE), (multi, 1)] {
            let jobs = Mutex::new(jobs);
            thread::scope(|scope| {
                for _ in 0..at_once {
                    scope.spawn(|| {
                        loop {
                            let next = lock(&jobs).pop_front();
                            let Some(job) = next else {
                                break;
                            };
                            let (report, error) = self.settle(&job);
                            lock(&done).push((job.kernel.flavour, report, error));
                        }
                    });
                }
            });
        }
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let verdicts = self.kernels.iter().map(|kernel| {
            let (mut report, mut errors) = (Report::default(), Vec::new());
            for (_, part, error) in done.iter().filter(|(f, ..)| *f == kernel.flavour) {
                report.add(part.clone());
                errors.extend(error.clone());
            }
            errors.append(&mut report.faults);
            // What broke off has not run all it lists.
            let is_whole = self.name.is_none() && errors.is_empty();
            errors.extend(skips::complaints(kernel.flavour, &report.tests, is_whole));
            Verdict {
                kernel,
                report,
                errors,
            }
        });
        Ok(verdicts.collect())
    }

    /// Names of the tests to run; listing them needs no kernel, so the binary does it here.
    fn listed(&self) -> Result<Vec<String>> {
        let mut command = Command::new(&self.binaries.tests);
        command.args(["--list", "--format=terse"]).args(self.name);
        let text = capture(&mut command)?;
        let names: Vec<String> = text
            .lines()
            .filter_map(|line| line.strip_suffix(": test"))
            .map(str::to_owned)
            .collect();
        match self.name {
            Some(name) if names.is_empty() => bail!(
                "no kernel test has \"{name}\" in its name; `cargo test -p faultscope --features kernel-tests --test \
                 kernel -- --list` lists them"
            ),
            _ => Ok(names),
        }
    }

    /// The long ones first, so that none of them runs alone at the end.
    fn jobs(&self, tests: &[String]) -> Vec<Job<'_>> {
        let groups = groups(tests);
        let each = groups.iter().flat_map(|group| {
            self.kernels.iter().map(move |kernel| Job {
                kernel,
                name: format!("{}-{}", kernel.flavour.name(), group.kind),
                tests: group.tests.clone(),
                threads: self.threads.unwrap_or(group.threads),
            })
        });
        each.collect()
    }

    /// Runs one guest, and once more what failed there and may have a second try.
    fn settle(&self, job: &Job<'_>) -> (Report, Option<String>) {
        let (mut report, error) = self.one(job);
        match job.second(&report, error.as_ref()) {
            None => (report, error),
            Some(second) => {
                if let Some(error) = error {
                    println!("vm: {error}");
                }
                let (again, error) = self.one(&second);
                report.settle(again);
                (report, error)
            }
        }
    }

    /// Runs one guest; an error is told with the test it came in.
    fn one(&self, job: &Job<'_>) -> (Report, Option<String>) {
        println!("vm: booting {} for {}", job.kernel.release, job.name);
        let mut report = Report::default();
        let ended = self.boot(job, &mut report);
        let error = match ended {
            Err(error) => Some(format!("{error:#}")),
            // libtest's own status says that tests failed, which the report has.
            Ok(_) if report.is_complete() => None,
            Ok(status) => Some(format!(
                "the test binary ended with status {status} before its last line"
            )),
        };
        let error = error.map(|error| {
            let mut text = format!("{}: {error}", job.name);
            if let Some((test, output)) = report.unfinished() {
                let _ = write!(text, "\nthis was in test {test}, which printed\n{output}");
            }
            text
        });
        (report, error)
    }

    fn boot(&self, job: &Job<'_>, report: &mut Report) -> Result<u8> {
        let mut words = vec![self.binaries.tests.to_string_lossy().into_owned()];
        words.extend(["--test-threads=1", "--nocapture", "--exact"].map(str::to_owned));
        words.extend(job.tests.iter().cloned());
        let archive = image::build(
            job.kernel,
            self.binaries,
            self.environment,
            &Work::Command(words),
        )?;
        let guest = Guest {
            kernel: job.kernel,
            name: job.name.clone(),
            directory: self.directory,
            archive: &archive,
            threads: job.threads,
            silence: SILENCE,
            limit: LIMIT + self.stress,
        };
        let flavour = job.kernel.flavour.name();
        guest.run(&mut |line| {
            if self.name.is_some() {
                println!("{flavour:<8} {line}");
            }
            if report.read(line)
                && let Some(test) = report.tests.last()
            {
                print(flavour, test, self.name.is_none());
            }
        })
    }
}

/// Tests that share a guest.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    kind: String,
    tests: Vec<String>,
    threads: Threads,
}

fn groups(tests: &[String]) -> Vec<Group> {
    let (stress, tests): (Vec<&String>, Vec<&String>) = tests
        .iter()
        .partition(|name| function(name).starts_with(STRESS));
    let (multi, single): (Vec<&String>, Vec<&String>) =
        tests.into_iter().partition(|name| name.ends_with(MULTI));
    let group = |kind: &str, names: &[&String], threads| Group {
        kind: kind.to_owned(),
        tests: names.iter().map(|name| (*name).clone()).collect(),
        threads,
    };
    // Every other test, as those of one module take alike.
    let halves = if single.len() < HALVED { 1 } else { 2 };
    let mut groups: Vec<Group> = (0..halves)
        .map(|half| {
            let names: Vec<&String> = single.iter().skip(half).step_by(halves).copied().collect();
            let kind = if halves == 1 {
                "tests".to_owned()
            } else {
                format!("tests-{}", half + 1)
            };
            group(&kind, &names, Threads::Single)
        })
        .collect();
    groups.push(group("multi", &multi, Threads::Multi));
    groups.extend(stress.into_iter().map(|name| {
        let threads = if name.ends_with(MULTI) {
            Threads::Multi
        } else {
            Threads::Single
        };
        group(&name.replace("::", "-"), &[name], threads)
    }));
    groups.retain(|group| !group.tests.is_empty());
    groups
}

/// A test's name without its modules.
fn function(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// The line of a test; its output too if it failed and was not seen before.
fn print(flavour: &str, test: &Test, has_output: bool) {
    let what = match &test.outcome {
        Outcome::Passed => "ok".to_owned(),
        Outcome::Failed => "FAILED".to_owned(),
        Outcome::Skipped(reason) => format!("SKIP {reason}"),
        Outcome::Ignored => "ignored".to_owned(),
    };
    let mut text = format!(
        "{flavour:<8} {} ... {what} in {:.1} s",
        test.name,
        test.took.as_secs_f64()
    );
    if has_output && test.outcome == Outcome::Failed {
        let _ = write!(text, "\n{}", test.output.trim_end());
    }
    println!("{text}");
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::kernel::Flavour;

    #[test]
    fn what_failed_has_a_second_try_but_not_stress_and_not_a_guest_that_broke() {
        let kernel = Kernel::none(Flavour::V6_1);
        let job = |name: &str| Job {
            kernel: &kernel,
            name: "6.1-tests".to_owned(),
            tests: vec![name.to_owned()],
            threads: Threads::Single,
        };
        let mut report = Report::default();
        report.read("test a::b ... FAILED");
        report.read("test result: FAILED. 0 passed; 1 failed; 0 ignored");
        let again = |job: Job<'_>, report, error: Option<String>| {
            job.second(report, error.as_ref()).map(|job| job.tests)
        };
        let b = || vec!["a::b".to_owned()];
        assert_eq!(again(job("a::b"), &report, None), Some(b()));
        assert_eq!(again(job("a::stress_b"), &report, None), None);
        let mark = || Some("a mark on the console".to_owned());
        assert_eq!(again(job("a::b"), &report, mark()), None);
        let untouched = Report::default();
        assert_eq!(again(job("a::b"), &untouched, mark()), Some(b()));
        let stale = || Some("Oops: int3: 0000 [#1] PREEMPT SMP".to_owned());
        assert_eq!(again(job("a::stress_b"), &report, stale()), None);
        let multi = Job {
            threads: Threads::Multi,
            ..job("a::stress_b")
        };
        let name = multi.tests.clone();
        assert_eq!(again(multi, &report, stale()), Some(name));
        let mut second = Report::default();
        second.read("test a::b ... ok");
        second.read("test result: ok. 1 passed; 0 failed; 0 ignored");
        report.settle(second);
        assert_eq!((report.tests.len(), report.failed().len()), (1, 0));
        assert!(report.tests[0].is_second);
    }

    #[test]
    fn stress_is_alone_and_what_needs_cpus_at_once_gets_them() {
        let names = [
            "faults::a",
            "locks::b_multi",
            "stress::stress_multi",
            "stress::stress_single",
            "faults::c",
        ];
        let groups = groups(&names.map(str::to_owned));
        let seen: Vec<_> = groups
            .iter()
            .map(|group| (group.kind.as_str(), group.tests.len(), group.threads))
            .collect();
        assert_eq!(
            seen,
            [
                ("tests", 2, Threads::Single),
                ("multi", 1, Threads::Multi),
                ("stress-stress_multi", 1, Threads::Multi),
                ("stress-stress_single", 1, Threads::Single),
            ]
        );
        assert!(super::groups(&[]).is_empty());
    }

    #[test]
    fn many_tests_are_shared_by_two_guests_and_none_is_lost() {
        let names: Vec<String> = (0..HALVED + 1)
            .map(|n| format!("faults::f{n:03}"))
            .collect();
        let groups = groups(&names);
        let kinds: Vec<&str> = groups.iter().map(|group| group.kind.as_str()).collect();
        assert_eq!(kinds, ["tests-1", "tests-2"]);
        assert!(groups[0].tests.len().abs_diff(groups[1].tests.len()) <= 1);
        let mut all: Vec<String> = groups.into_iter().flat_map(|group| group.tests).collect();
        all.sort();
        assert_eq!(all, names);
    }
}
