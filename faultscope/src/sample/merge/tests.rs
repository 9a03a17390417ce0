//! Sums do not depend on order or grouping.

use super::fixture::{all, interval, intervals, merge};
use super::*;
use crate::sample::Scope;
use proptest::prelude::*;

proptest! {
    #[test]
    fn the_order_is_irrelevant(mut deltas in intervals(), turn in 0_usize..6) {
        let sum = merge(&all(&deltas));
        deltas.reverse();
        prop_assert_eq!(&merge(&all(&deltas)), &sum);
        let n = deltas.len();
        deltas.rotate_left(turn % n);
        prop_assert_eq!(&merge(&all(&deltas)), &sum);
    }

    #[test]
    fn a_sum_of_one_is_itself(deltas in intervals()) {
        for delta in deltas {
            let once = merge(&[&delta]).delta;
            // Call chains have other numbers, and nothing else changes.
            prop_assert_eq!(&merge(&[&once]).delta, &once);
            let (mut bare, mut given) = (once.clone(), delta.clone());
            for d in [&mut bare, &mut given] {
                d.chains = Arc::default();
                d.takers.values_mut().for_each(|taker| taker.site = 0);
                d.locks.clear();
                d.blocked.clear();
            }
            prop_assert_eq!(bare, given);
        }
    }
}

#[test]
fn a_call_site_is_told_by_its_functions_and_the_most_held_one_stands() {
    // Slot 12 is site1 in the first interval and 22 is in the second; site2 held longer.
    let deltas = [
        interval(1, &[(5, 1, 100)]),
        interval(2, &[(5, 1, 100)]),
        interval(3, &[(5, 1, 10)]),
    ];
    let merged = merge(&all(&deltas));
    assert_eq!(merged.holds.len(), 1);
    assert_eq!(merged.holds[0].2, 210);
    let site = merged.delta.takers.values().map(|taker| taker.site).next();
    let chain = &merged.delta.chains[&site.expect("a taker")];
    assert_eq!(chain.site, "site1");
}

#[test]
fn samples_of_another_period_are_not_mixed() {
    let mut deltas = [interval(1, &[(14, 1, 900)]), interval(2, &[(14, 1, 50)])];
    deltas[1].budget.as_mut().expect("sampled").period_ns = 7;
    let budget = merge(&all(&deltas)).delta.budget.expect("sampled");
    assert_eq!((budget.period_ns, budget.samples), (1_003_009, 900));
}

#[test]
fn what_was_never_measured_stays_so_and_nothing_overflows() {
    let mut d = interval(1, &[(0, 1, u64::MAX), (6, 1, u64::MAX), (10, 1, u64::MAX)]);
    d.interval_ns = u64::MAX;
    let merged = merge(&[&d, &d]).delta;
    assert_eq!(merged.context_switches, None);
    assert_eq!(merged.budget, None);
    assert_eq!(merged.cpus[0].counters[Scope::Major], u64::MAX);
    assert_eq!(merge(&[]).delta, Delta::default());
}
