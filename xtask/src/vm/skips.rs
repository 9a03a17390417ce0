//! Tests that a kernel of the matrix cannot run, with the reasons: any other skip fails, and so does one that ran.

use super::kernel::Flavour;
use super::report::{Outcome, Test};

/// A test that says `SKIP` on some kernels.
struct Skip {
    test: &'static str,
    kernels: &'static [Flavour],
    reason: &'static str,
}

/// The emulator gives its CPUs many ms each, so their threads do not fault at the same time.
const EMULATED: &str = "emulated CPUs do not fault at the same time";

/// Files, commands and terminals: the machine that runs the guests has tested these.
const SAME: &str = "no different on another kernel, and minutes on an emulated machine";

const SKIPS: &[Skip] = &[
    Skip {
        test: "bench_mm::a_suite_runs_every_bench_and_sums_up",
        kernels: &Flavour::ALL,
        reason: SAME,
    },
    Skip {
        test: "compare::freeing_in_place_of_dropping_improves_and_refaults_explain_it",
        kernels: &[Flavour::V6_12, Flavour::V6_12Rt],
        reason: "one emulated kernel does, for minutes",
    },
    Skip {
        test: "compare::two_halves_of_one_side_have_no_confirmed_regression",
        kernels: &Flavour::ALL,
        reason: SAME,
    },
    Skip {
        test: "record::runs_in_turn_have_their_round_and_side",
        kernels: &Flavour::ALL,
        reason: SAME,
    },
    Skip {
        test: "record::strict_demands_the_figures_that_were_named",
        kernels: &Flavour::ALL,
        reason: SAME,
    },
    Skip {
        test: "progress::the_line_on_a_terminal_leaves_what_the_command_writes_alone",
        kernels: &Flavour::ALL,
        reason: SAME,
    },
    Skip {
        test: "progress::no_line_goes_into_a_file",
        kernels: &Flavour::ALL,
        reason: SAME,
    },
    Skip {
        test: "record::a_parent_that_ignores_its_children_does_not_hide_the_status",
        kernels: &Flavour::ALL,
        reason: SAME,
    },
    Skip {
        test: "record::statuses_of_commands_are_kept",
        kernels: &Flavour::ALL,
        reason: SAME,
    },
    Skip {
        test: "record::signals_reach_the_command_and_end_a_recording_without_one",
        kernels: &Flavour::ALL,
        reason: SAME,
    },
    Skip {
        test: "record::a_full_disk_ends_the_recording_and_not_the_command",
        kernels: &Flavour::ALL,
        reason: SAME,
    },
    Skip {
        test: "top::hostile_names_stay_names",
        kernels: &Flavour::ALL,
        reason: SAME,
    },
    Skip {
        test: "slowpath::waits_that_nest_on_rt_are_counted_once_multi",
        kernels: &[Flavour::V6_1, Flavour::V6_12],
        reason: "only with PREEMPT_RT do waits for spinlocks sleep, and so nest",
    },
    Skip {
        test: "mariadb::a_database_server_under_load_is_told_by_system_call_and_advice",
        kernels: &Flavour::ALL,
        reason: "no database server fits into the guests' initramfs",
    },
    Skip {
        test: "folios::large_folios_are_told",
        kernels: &[Flavour::V6_1, Flavour::V6_12Rt],
        reason: "large anonymous folios came with 6.8, and need transparent huge pages",
    },
    Skip {
        test: "folios::huge_pages_are_told",
        kernels: &[Flavour::V6_12Rt],
        reason: "transparent huge pages are not built with PREEMPT_RT",
    },
    Skip {
        test: "bench::huge_pages_fault_once_each",
        kernels: &[Flavour::V6_12Rt],
        reason: "transparent huge pages are not built with PREEMPT_RT",
    },
    Skip {
        test: "bench::folios_of_64_kib_fault_once_each",
        kernels: &[Flavour::V6_1, Flavour::V6_12Rt],
        reason: "large anonymous folios came with 6.8, and need transparent huge pages",
    },
    Skip {
        test: "sharing::one_faulting_thread_shares_nothing",
        kernels: &Flavour::ALL,
        reason: EMULATED,
    },
    Skip {
        test: "sharing::two_faulting_threads_share_as_expected_multi",
        kernels: &Flavour::ALL,
        reason: EMULATED,
    },
    Skip {
        test: "sharing::four_faulting_threads_share_as_expected_multi",
        kernels: &Flavour::ALL,
        reason: EMULATED,
    },
    Skip {
        test: "sharing::uneven_shares_bound_the_handoffs_multi",
        kernels: &Flavour::ALL,
        reason: EMULATED,
    },
];

/// What is wrong with the skips of a run, a sentence each; `is_whole` if no test was left out of it.
pub(super) fn complaints(flavour: Flavour, tests: &[Test], is_whole: bool) -> Vec<String> {
    compare(SKIPS, flavour, tests, is_whole)
}

fn compare(list: &[Skip], flavour: Flavour, tests: &[Test], is_whole: bool) -> Vec<String> {
    let listed = |test: &str| {
        list.iter()
            .find(|skip| skip.test == test && skip.kernels.contains(&flavour))
    };
    let mut complaints: Vec<String> = tests
        .iter()
        .filter_map(|test| match (&test.outcome, listed(&test.name)) {
            (Outcome::Skipped(reason), None) => Some(format!(
                "{} was skipped ({reason}) and is not listed for {} in xtask/src/vm/skips.rs",
                test.name,
                flavour.name()
            )),
            (Outcome::Passed | Outcome::Failed, Some(skip)) => Some(format!(
                "{} ran on {} though xtask/src/vm/skips.rs lists it as skipped ({}); take it out there",
                test.name,
                flavour.name(),
                skip.reason
            )),
            _ => None,
        })
        .collect();
    if is_whole {
        let gone = list
            .iter()
            .filter(|skip| skip.kernels.contains(&flavour))
            .filter(|skip| !tests.iter().any(|test| test.name == skip.test))
            .map(|skip| {
                format!(
                    "{} of xtask/src/vm/skips.rs is no test on {}; rename it there or take it out",
                    skip.test,
                    flavour.name()
                )
            });
        complaints.extend(gone);
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const LIST: &[Skip] = &[Skip {
        test: "a",
        kernels: &[Flavour::V6_1],
        reason: "no per-VMA locks",
    }];

    fn test(name: &str, outcome: Outcome) -> Test {
        Test {
            name: name.to_owned(),
            outcome,
            took: Duration::ZERO,
            output: String::new(),
            is_second: false,
        }
    }

    #[test]
    fn a_listed_skip_is_in_order_and_any_other_is_not() {
        let skipped = |name| test(name, Outcome::Skipped("why".to_owned()));
        assert!(compare(LIST, Flavour::V6_1, &[skipped("a")], true).is_empty());
        assert_eq!(
            compare(LIST, Flavour::V6_12, &[skipped("a")], true).len(),
            1
        );
        let both = [skipped("a"), skipped("b")];
        assert_eq!(compare(LIST, Flavour::V6_1, &both, true).len(), 1);
    }

    #[test]
    fn a_listed_skip_that_ran_is_an_error() {
        for outcome in [Outcome::Passed, Outcome::Failed] {
            let ran = [test("a", outcome)];
            let complaints = compare(LIST, Flavour::V6_1, &ran, true);
            assert_eq!(complaints.len(), 1, "{complaints:?}");
            assert!(complaints[0].contains("no per-VMA locks"), "{complaints:?}");
        }
    }

    #[test]
    fn a_listed_test_must_exist_where_all_ran() {
        assert_eq!(compare(LIST, Flavour::V6_1, &[], true).len(), 1);
        assert!(compare(LIST, Flavour::V6_1, &[], false).is_empty());
        assert!(compare(LIST, Flavour::V6_12, &[], true).is_empty());
    }
}
