//! The fault time budget: shares of the fault path with their sampling error.

use super::{Cells, faults_shown, has, ratio};
use crate::{
    model::{Context, Value, field as f},
    sample::{
        Budget, Delta,
        budget::{KERNEL, UNTRAPPED, USER, interval},
    },
    symbol::FaultPart,
};

/// Samples below which no share and no time is derived: with 100 the interval
/// of a share is at most 20 points wide.
const FEWEST_SAMPLES: u64 = 100;

/// The parts, their sum, who faulted, and the other uses of CPU time.
pub(super) fn rows(delta: &Delta, context: &Context) -> Vec<Cells> {
    let Some(budget) = delta
        .budget
        .as_ref()
        .filter(|_| has(context, "fault_budget"))
    else {
        return Vec::new();
    };
    let all = budget.faults();
    let is_enough = all >= FEWEST_SAMPLES;
    let counted = budget.user + budget.kernel;
    let faults = has(context, "faults").then(|| faults_shown(delta, context));
    let share = |cells: Cells, n: u64| {
        let bounds = interval(n, all).filter(|_| is_enough);
        cells
            .real(&f::TIME_SHARE, ratio(n, all).filter(|_| is_enough))
            .real(&f::TIME_SHARE_LOW, bounds.map(|b| b.0))
            .real(&f::TIME_SHARE_HIGH, bounds.map(|b| b.1))
    };
    let row = |name: &str, n: u64, of: u64| {
        Cells::new(name.to_owned())
            .text(&f::PART, name)
            .count(&f::SAMPLES, n)
            .real(&f::CPU_SHARE, ratio(n, of).filter(|_| of >= FEWEST_SAMPLES))
            .count(&f::TIME_NS, n.saturating_mul(budget.period_ns))
    };
    let mut rows: Vec<Cells> = FaultPart::ALL
        .iter()
        .map(|part| {
            let n = budget.part(*part);
            let of_traps = n - budget.parts[*part as usize][UNTRAPPED];
            let function = budget.functions[*part as usize].as_ref();
            share(row(part.id(), n, counted), n)
                .set(&f::NS_A_FAULT, a_fault(of_traps, faults, budget))
                .set(
                    &f::FUNCTION,
                    function.map_or(Value::Absent, |name| Value::Text(name.to_string())),
                )
                .text(&f::COMMENT, part.description())
        })
        .collect();
    let of_traps = all - budget.origin(UNTRAPPED);
    rows.push(
        share(row("fault path", all, counted), all)
            .set(&f::NS_A_FAULT, a_fault(of_traps, faults, budget))
            .text(&f::COMMENT, sum_comment(budget, is_enough)),
    );
    for (origin, name, comment) in [
        (USER, "of it, user faults", "Trapped in user mode."),
        (
            KERNEL,
            "of it, kernel faults",
            "Trapped in the kernel, repaired ones included.",
        ),
        (
            UNTRAPPED,
            "of it, no trap",
            "MAP_POPULATE, mlock and get_user_pages: in no fault count, and in no time for a fault.",
        ),
    ] {
        let n = budget.origin(origin);
        rows.push(share(row(name, n, counted), n).text(&f::COMMENT, comment));
    }
    rows.extend(others(budget, all, counted, &row));
    rows.extend(unseen(budget, delta, &row));
    rows
}

/// The rest of the CPU time of the threads shown.
fn others(
    budget: &Budget,
    all: u64,
    counted: u64,
    row: &impl Fn(&str, u64, u64) -> Cells,
) -> [Cells; 2] {
    let mut comment = String::from("Outside the fault path");
    if budget.interrupted > 0 {
        comment.push_str(&format!(
            "; {} in interrupts of a fault",
            budget.interrupted
        ));
    }
    if budget.deep > 0 {
        comment.push_str(&format!("; {} too deep to tell", budget.deep));
    }
    comment.push('.');
    [
        row("kernel, other", budget.kernel.saturating_sub(all), counted).text(&f::COMMENT, comment),
        row("user mode", budget.user, counted).text(
            &f::COMMENT,
            "The exit of a fault, with interrupts off, is seen here.",
        ),
    ]
}

/// What has no thread, and what was not sampled; both of the whole machine.
fn unseen(budget: &Budget, delta: &Delta, row: &impl Fn(&str, u64, u64) -> Cells) -> [Cells; 2] {
    let due = delta
        .interval_ns
        .saturating_mul(budget.cpus)
        .checked_div(budget.period_ns)
        .unwrap_or(0);
    [
        row("idle", budget.idle, budget.samples).text(&f::COMMENT, "Never filtered."),
        row("missed", due.saturating_sub(budget.samples), due).text(
            &f::COMMENT,
            "Due but not taken: interrupts off for several periods, a halted virtual CPU, a BPF program at work.",
        ),
    ]
}

/// CPU time of one fault in ns; absent where either is too few.
fn a_fault(samples: u64, faults: Option<u64>, budget: &Budget) -> Value {
    let is_enough = budget.faults() - budget.origin(UNTRAPPED) >= FEWEST_SAMPLES;
    Value::count(
        faults
            .filter(|faults| is_enough && *faults >= FEWEST_SAMPLES)
            .and_then(|faults| samples.saturating_mul(budget.period_ns).checked_div(faults)),
    )
}

fn sum_comment(budget: &Budget, is_enough: bool) -> String {
    if is_enough {
        "The sum of the above.".to_owned()
    } else {
        format!(
            "The sum of the above: {} samples, and shares need {FEWEST_SAMPLES}; a longer interval (-d) has more.",
            budget.faults()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Model, Table, TableId};
    use crate::sample::{Scope, delta::Cpu};
    use std::sync::Arc;

    fn budget(clearing: u64, rest: u64) -> Budget {
        let mut budget = Budget {
            period_ns: 1_000_000,
            cpus: 2,
            samples: 4 * (clearing + rest) + 1000,
            idle: 1000,
            user: 2 * (clearing + rest),
            kernel: 2 * (clearing + rest),
            ..Budget::default()
        };
        budget.parts[FaultPart::PageClearing as usize] = [clearing, 0, 0];
        budget.parts[FaultPart::Rest as usize] = [0, 0, rest];
        budget.functions[0] = Some("clear_page_erms".into());
        budget
    }

    fn table(budget: Option<Budget>, faults: u64) -> Table {
        let mut cpu = Cpu::default();
        cpu.counters[Scope::User(0)] = faults;
        let delta = Delta {
            interval_ns: 1_000_000_000,
            cpus: vec![cpu],
            budget,
            ..Delta::default()
        };
        Model::new(Arc::new(delta), Arc::default())
            .table(TableId::Budget)
            .clone()
    }

    fn cell(table: &Table, row: &str, column: &str) -> Value {
        let at = table.position(column).expect("a column");
        let name = table.position("part").expect("a column");
        table
            .rows
            .iter()
            .find(|r| r.cells[name] == Value::Text(row.into()))
            .unwrap_or_else(|| panic!("no row says {row}"))
            .cells[at]
            .clone()
    }

    #[test]
    fn parts_add_up_to_the_fault_path() {
        let table = table(Some(budget(300, 100)), 1000);
        let mut samples = 0.0;
        let mut shares = 0.0;
        for part in FaultPart::ALL {
            samples += cell(&table, part.id(), "samples")
                .number()
                .expect("samples");
            shares += cell(&table, part.id(), "fault_time_ratio")
                .number()
                .expect("a share");
        }
        assert_eq!(
            Some(samples),
            cell(&table, "fault path", "samples").number()
        );
        assert!((shares - 1.0).abs() < 1e-12);
        assert_eq!(
            cell(&table, "page clearing", "fault_time_ratio"),
            Value::Real(0.75)
        );
        // 300 ms over 1,000 trapped faults; what trapped nowhere has no part in it.
        assert_eq!(
            cell(&table, "page clearing", "time_per_fault_ns"),
            Value::Count(300_000)
        );
        assert_eq!(
            cell(&table, "fault path", "time_per_fault_ns"),
            Value::Count(300_000)
        );
        assert_eq!(
            cell(&table, "fault path", "cpu_time_ratio"),
            Value::Real(0.25)
        );
        assert_eq!(
            cell(&table, "page clearing", "function"),
            Value::Text("clear_page_erms".into())
        );
    }

    #[test]
    fn few_samples_give_counts_and_no_shares() {
        let table = table(Some(budget(50, 49)), 1000);
        assert_eq!(cell(&table, "page clearing", "samples"), Value::Count(50));
        for column in [
            "fault_time_ratio",
            "fault_time_low_ratio",
            "time_per_fault_ns",
        ] {
            assert_eq!(cell(&table, "page clearing", column), Value::Absent);
        }
        let Value::Text(comment) = cell(&table, "fault path", "comment") else {
            panic!("a comment");
        };
        assert!(
            comment.contains("99 samples") && comment.contains("-d"),
            "{comment}"
        );
    }

    #[test]
    fn few_faults_give_no_time_for_one() {
        let table = table(Some(budget(300, 100)), 99);
        assert_eq!(
            cell(&table, "page clearing", "time_per_fault_ns"),
            Value::Absent
        );
    }

    #[test]
    fn no_samples_are_no_rows() {
        assert!(table(None, 1000).rows.is_empty());
    }
}
