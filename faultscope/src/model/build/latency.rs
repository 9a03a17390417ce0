//! Passes of `handle_mm_fault` by path and backing, by process and by CPU.

use super::{Cells, average, comm, given, has, ratio};
use crate::{
    model::{Context, Value, field as f},
    sample::{
        Delta,
        delta::{FALL_BACK, FAULT_BACKINGS, FAULT_PATHS, GUP, POPULATE, Passes},
    },
};

/// Signal of passes, whatever program counts them.
const PASSES: &str = "populate_faults";
/// Signal of how a pass ended.
const OUTCOME: &str = "fault_latency";

/// Why there is nothing to show, as the one row of a table.
fn reason(context: &Context) -> Option<Vec<Cells>> {
    let missing = context.missing.iter().find(|m| *m.signal == *PASSES)?;
    Some(vec![
        Cells::new(PASSES)
            .text(&f::FAULT_PATH, "not measured")
            .text(&f::COMM, "not measured")
            .text(&f::COMMENT, missing.reason.as_str()),
    ])
}

/// The cells every table has.
fn cells(cells: Cells, passes: &Passes, context: &Context) -> Cells {
    let outcome = |n| given(context, OUTCOME, n);
    let quantile = |q| {
        has(context, OUTCOME)
            .then(|| passes.histogram.quantile_ns(q))
            .flatten()
    };
    let pages = given(context, "fault_pages", passes.pages);
    let per_fault = (pages != Value::Absent && has(context, OUTCOME))
        .then(|| ratio(passes.pages, passes.faults))
        .flatten();
    // Where the end is seen, a row's passes are those that ended as the row says.
    let ran = if has(context, OUTCOME) {
        passes.faults + passes.retries
    } else {
        passes.began
    };
    cells
        .count(&f::PASSES, ran)
        .set(&f::HANDLED, outcome(passes.faults))
        .set(&f::FAULT_P50_NS, Value::count(quantile(0.5)))
        .set(&f::FAULT_P99_NS, Value::count(quantile(0.99)))
        .set(
            &f::FAULT_AVG_NS,
            if has(context, OUTCOME) {
                average(passes.ns, passes.faults)
            } else {
                Value::Absent
            },
        )
        .set(&f::FAULT_MAX_NS, outcome(passes.max_ns))
        .set(&f::FAULT_NS, outcome(passes.ns))
        .set(&f::HANDLED_MAJOR, outcome(passes.majors))
        .set(&f::RETRIES, outcome(passes.retries))
        .set(&f::PAGES_MAPPED, pages)
        .real(&f::PAGES_PER_FAULT, per_fault)
}

fn errors(cells: Cells, passes: &Passes, context: &Context) -> Cells {
    let outcome = |n| given(context, OUTCOME, n);
    cells
        .set(&f::ERRORS_OOM, outcome(passes.errors[0]))
        .set(&f::ERRORS_SIGBUS, outcome(passes.errors[1]))
        .set(&f::ERRORS_SIGSEGV, outcome(passes.errors[2]))
        .set(&f::ERRORS_HWPOISON, outcome(passes.errors[3]))
        .set(&f::COMPLETED, outcome(passes.completed))
        .set(
            &f::LARGE_FOLIOS,
            if has(context, OUTCOME) {
                given(context, "fault_pages", passes.large)
            } else {
                Value::Absent
            },
        )
}

/// One row per path and backing.
pub(super) fn paths(delta: &Delta, context: &Context) -> Vec<Cells> {
    if let Some(rows) = reason(context) {
        return rows;
    }
    let is_shown = |passes: &Passes| {
        if has(context, OUTCOME) {
            passes.faults + passes.retries > 0
        } else {
            passes.began > 0
        }
    };
    delta
        .passes
        .iter()
        .filter(|(_, passes)| is_shown(passes))
        .map(|(id, passes)| {
            let (path, backing) = *id;
            let row = Cells::new(id)
                .text(&f::FAULT_PATH, FAULT_PATHS[path])
                .text(&f::BACKING, FAULT_BACKINGS[backing])
                .text(&f::COMMENT, comment(path));
            errors(cells(row, passes, context), passes, context)
        })
        .collect()
}

fn comment(path: usize) -> &'static str {
    match path {
        FALL_BACK => "mmap_lock after the attempt under the VMA lock returned RETRY",
        POPULATE => "no trap: mmap, mlock, madvise and the like populate",
        GUP => "no trap: direct I/O, ptrace, exec's arguments",
        _ => "",
    }
}

/// One row per process.
pub(super) fn processes(delta: &Delta, context: &Context) -> Vec<Cells> {
    if let Some(rows) = reason(context) {
        return rows;
    }
    delta
        .process_passes
        .iter()
        .map(|(tgid, process)| {
            let row = Cells::new(tgid)
                .count(&f::PID, u64::from(*tgid))
                .set(&f::COMM, comm(delta, *tgid));
            let mut row = cells(row, &process.passes, context).set(
                &f::FAULT_ERRORS,
                given(context, OUTCOME, process.passes.failed()),
            );
            for (field, n) in [
                &f::VIA_VMA_LOCK,
                &f::VIA_MMAP_LOCK,
                &f::VIA_FALL_BACK,
                &f::VIA_KERNEL,
                &f::VIA_POPULATE,
                &f::VIA_GUP,
            ]
            .into_iter()
            .zip(process.paths)
            {
                row = row.set(field, given(context, OUTCOME, n));
            }
            row
        })
        .collect()
}

/// One row per CPU.
pub(super) fn cpus(delta: &Delta, context: &Context) -> Vec<Cells> {
    if let Some(rows) = reason(context) {
        return rows;
    }
    delta
        .cpus
        .iter()
        .filter(|cpu| cpu.time.is_some() || cpu.passes.began > 0)
        .map(|cpu| {
            let row = Cells::new(cpu.cpu).count(&f::CPU, u64::from(cpu.cpu));
            errors(cells(row, &cpu.passes, context), &cpu.passes, context)
        })
        .collect()
}

/// Passes without a trap, by path, and what `handle_mm_fault` ended in all; `None`
/// where nothing counts them.
pub(super) fn untrapped(delta: &Delta, context: &Context) -> Option<[u64; 2]> {
    has(context, PASSES).then(|| {
        [POPULATE, GUP].map(|path| {
            delta
                .passes
                .iter()
                .filter(|((of, _), _)| *of == path)
                .map(|(_, passes)| {
                    if has(context, OUTCOME) {
                        passes.faults
                    } else {
                        passes.began
                    }
                })
                .sum()
        })
    })
}

/// Faults that `handle_mm_fault` ended, and those of them with an error; `None`
/// where its return is not seen.
pub(super) fn ended(delta: &Delta, context: &Context) -> Option<(u64, u64)> {
    has(context, OUTCOME).then(|| {
        delta.passes.values().fold((0, 0), |(faults, failed), p| {
            (faults + p.faults, failed + p.failed())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::{Missing, Model, TableId};
    use super::*;
    use crate::sample::delta::{Cpu, ProcessPasses};
    use std::sync::Arc;

    fn passes(began: u64, faults: u64, retries: u64) -> Passes {
        let mut passes = Passes {
            began,
            faults,
            retries,
            ns: faults * 1000,
            max_ns: 5000,
            pages: faults * 2,
            ..Passes::default()
        };
        passes.histogram.0[5] = faults;
        passes
    }

    fn delta() -> Delta {
        let mut delta = Delta {
            interval_ns: 1_000_000_000,
            ..Delta::default()
        };
        delta.passes.insert((0, 0), passes(102, 100, 2));
        delta.passes.insert((4, 0), passes(50, 50, 0));
        delta.process_passes.insert(
            9,
            ProcessPasses {
                passes: passes(152, 150, 2),
                paths: [100, 0, 0, 0, 50, 0],
            },
        );
        delta.cpus.push(Cpu {
            passes: passes(152, 150, 2),
            ..Cpu::default()
        });
        delta
    }

    fn cell(table: TableId, field: &str, missing: &[&'static str]) -> Value {
        let context = Context {
            missing: missing
                .iter()
                .map(|signal| Missing {
                    signal: (*signal).into(),
                    reason: format!("no {signal}"),
                })
                .collect(),
            ..Context::default()
        };
        let model = Model::new(Arc::new(delta()), Arc::new(context));
        let table = model.table(table);
        table.rows[0].cells[table.position(field).expect("a field of the table")].clone()
    }

    #[test]
    fn a_row_is_what_ended_that_way() {
        let table = TableId::FaultLatency;
        assert_eq!(cell(table, "passes", &[]), Value::Count(102));
        assert_eq!(cell(table, "handled", &[]), Value::Count(100));
        assert_eq!(cell(table, "retries", &[]), Value::Count(2));
        assert_eq!(cell(table, "fault_avg_ns", &[]), Value::Count(1000));
        assert_eq!(cell(table, "pages_per_fault", &[]), Value::Real(2.0));
        assert_eq!(cell(table, "fault_p50_ns", &[]), Value::Count(1280));
        let table = TableId::FaultProcesses;
        assert_eq!(cell(table, "via_populate", &[]), Value::Count(50));
        assert_eq!(cell(TableId::FaultCpus, "handled", &[]), Value::Count(150));
    }

    #[test]
    fn without_the_return_there_are_passes_and_nothing_else() {
        let missing = ["fault_latency"];
        let table = TableId::FaultLatency;
        assert_eq!(cell(table, "passes", &missing), Value::Count(102));
        for field in [
            "handled",
            "retries",
            "fault_p99_ns",
            "fault_max_ns",
            "pages_per_fault",
        ] {
            assert_eq!(cell(table, field, &missing), Value::Absent, "{field}");
        }
    }

    #[test]
    fn without_any_program_the_one_row_says_why() {
        let missing = ["populate_faults", "fault_latency"];
        for table in [
            TableId::FaultLatency,
            TableId::FaultProcesses,
            TableId::FaultCpus,
        ] {
            let reason = Value::Text("no populate_faults".into());
            assert_eq!(cell(table, "comment", &missing), reason);
            assert_eq!(cell(table, "passes", &missing), Value::Absent);
        }
    }
}
