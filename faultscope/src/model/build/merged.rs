//! Tables of a sum of intervals.

use super::*;
use crate::model::Model;
use crate::sample::merge::fixture::{all, intervals, merge};
use proptest::prelude::*;
use std::sync::Arc;

fn sum_of(model: &Model, table: TableId, field: &str) -> f64 {
    let table = model.table(table);
    let at = table.position(field).expect("a field of the table");
    table.rows.iter().filter_map(|r| r.cells[at].number()).sum()
}

fn model(delta: Delta) -> Model {
    Model::new(
        Arc::new(delta),
        Arc::new(Context {
            losses: crate::sample::run::LossKind::list(&[("a", "A."), ("b", "B.")]),
            ..Context::default()
        }),
    )
}

proptest! {
    #[test]
    fn the_tables_of_a_sum_of_one_are_its_own(deltas in intervals()) {
        for delta in deltas {
            let once = merge(&[&delta]).delta;
            let (a, b) = (model(once), model(delta));
            for id in TableId::ALL {
                let rows = |m: &Model| {
                    let mut rows: Vec<String> = m.table(*id).rows.iter().map(|r| format!("{:?}", r.cells)).collect();
                    rows.sort_unstable();
                    rows
                };
                prop_assert_eq!(rows(&a), rows(&b), "{}", id.id());
            }
        }
    }

    #[test]
    fn totals_of_tables_are_the_sums_of_the_intervals(deltas in intervals()) {
        let sum = model(merge(&all(&deltas)).delta);
        let each: Vec<Model> = deltas.into_iter().map(model).collect();
        for (table, field) in [
            (TableId::Processes, "faults"),
            (TableId::Threads, "faults"),
            (TableId::Cgroups, "lock_waits"),
            (TableId::Cpus, "faults"),
            (TableId::AddressSpaces, "faults"),
            (TableId::FaultLatency, "passes"),
            (TableId::FaultProcesses, "passes"),
            (TableId::Locks, "wait_ns"),
            (TableId::LockSites, "waits"),
            (TableId::LockHolders, "hold_ns"),
            (TableId::LockBlocked, "blocked_ns"),
            (TableId::Madvise, "calls"),
            (TableId::Refaults, "given_back_bytes"),
            (TableId::Programs, "runs"),
            (TableId::Budget, "samples"),
        ] {
            let whole = sum_of(&sum, table, field);
            let parts: f64 = each.iter().map(|m| sum_of(m, table, field)).sum();
            let missed = if table == TableId::Budget { f64::MAX } else { 0.5 };
            prop_assert!((whole - parts).abs() < missed, "{} {field}: {whole} for {parts}", table.id());
        }
    }
}
