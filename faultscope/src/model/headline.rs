//! The figures that say first how a run went: faults against time, CPU time and
//! the workload's own work, and lock waits against faults.

use super::{Model, Unit, Value, build};
use crate::sample::{
    Scope,
    counters::{LRU_LOCK, MMAP_LOCK},
    histogram::Histogram,
    run::Run,
};
use crate::workload::Metric;

/// A figure with a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// JSON key, with its unit as suffix.
    pub id: &'static str,
    /// What it is.
    pub label: String,
    /// Its value.
    pub value: Value,
    /// Unit of the value.
    pub unit: Unit,
    /// How it was made, or why it is absent; may be empty.
    pub comment: String,
}

/// Work that faults are divided by, the first one that the workload reports.
const WORK: &[(&str, &str)] = &[
    ("transactions", "faults_per_transaction"),
    ("queries", "faults_per_query"),
    ("events", "faults_per_event"),
];

/// The figures, in the order in which they are read.
///
/// `model` is that of the whole range; rusage and results of the workload are of
/// its whole run, so with `is_part` nothing is divided by them.
#[must_use]
pub fn headline(model: &Model, run: &Run, metrics: &[Metric], is_part: bool) -> Vec<Figure> {
    let mut figures = faults(model);
    figures.extend(workload(run, is_part));
    figures.extend(work(model, metrics, is_part));
    figures.extend(locks(model));
    figures
}

fn figure(
    id: &'static str,
    label: impl Into<String>,
    value: Value,
    unit: Unit,
    comment: impl Into<String>,
) -> Figure {
    Figure {
        id,
        label: label.into(),
        value,
        unit,
        comment: comment.into(),
    }
}

fn why_not(model: &Model, signal: &str) -> Option<String> {
    if model.interval_ns == 0 {
        return Some("not measured: there is no interval".to_owned());
    }
    let missing = model.missing.iter().find(|m| *m.signal == *signal)?;
    Some(format!("not measured: {}", missing.reason))
}

/// A count of a signal with a comment; absent with its reason.
fn given(model: &Model, signal: &str, n: u64, comment: &str) -> (Value, String) {
    match why_not(model, signal) {
        Some(reason) => (Value::Absent, reason),
        None => (Value::Count(n), comment.to_owned()),
    }
}

/// The same for a ratio.
fn over(model: &Model, signal: &str, ratio: Option<f64>, comment: &str) -> (Value, String) {
    match why_not(model, signal) {
        Some(reason) => (Value::Absent, reason),
        None => (Value::real(ratio), comment.to_owned()),
    }
}

fn faults(model: &Model) -> Vec<Figure> {
    let delta = model.delta();
    let total = delta.total();
    let n = total.faults();
    let busy_ns: u64 = delta
        .cpus
        .iter()
        .filter_map(|cpu| cpu.time)
        .fold(0, |sum, time| sum.saturating_add(time.busy_ns));
    let seconds = model.interval_secs();
    let all = given(model, "faults", n, "serviced, of the whole machine");
    let major = given(
        model,
        "major_faults",
        total[Scope::Major],
        "waited for a page to be read",
    );
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let wall = over(
        model,
        "faults",
        Some(n as f64 / seconds),
        "pft's fault/wsec",
    );
    let cpu = over(
        model,
        "faults",
        build::ratio(n, busy_ns).map(|x| x * 1e9),
        "per second in which a CPU was busy",
    );
    vec![
        figure("faults", "faults", all.0, Unit::Events, all.1),
        figure(
            "faults_major",
            "of them major",
            major.0,
            Unit::Events,
            major.1,
        ),
        figure(
            "faults_per_sec",
            "faults per second",
            wall.0,
            Unit::PerSec,
            wall.1,
        ),
        figure(
            "faults_per_cpu_sec",
            "faults per CPU-second",
            cpu.0,
            Unit::PerSec,
            cpu.1,
        ),
    ]
}

/// What the kernel says of the command and its children.
fn workload(run: &Run, is_part: bool) -> Option<Figure> {
    let usage = run.workload.as_ref()?.ended.as_ref()?.usage;
    let cpu_ns = usage.user_ns.saturating_add(usage.system_ns);
    let rate = build::ratio(usage.faults(), cpu_ns).map(|x| x * 1e9);
    (!is_part).then(|| {
        figure(
            "workload_faults_per_cpu_sec",
            "the command's faults per CPU-second",
            Value::real(rate),
            Unit::PerSec,
            "pft's flt/cpu/s: faults over user and system time of the command and its children (rusage)",
        )
    })
}

/// Faults for a piece of the workload's own work.
fn work(model: &Model, metrics: &[Metric], is_part: bool) -> Option<Figure> {
    if is_part {
        return None;
    }
    let faults = model.delta().total().faults();
    let (metric, id) = WORK.iter().find_map(|(name, id)| {
        let mut of_name = metrics.iter().filter(|m| m.name == *name && m.value >= 1.0);
        // Of several configurations none stands for the run.
        match (of_name.next(), of_name.next()) {
            (Some(metric), None) => Some((metric, *id)),
            _ => None,
        }
    })?;
    let one = metric.name.trim_end_matches('s');
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    let (value, comment) = over(
        model,
        "faults",
        Some(faults as f64 / metric.value),
        "faults of the whole machine over what the workload counted",
    );
    Some(figure(
        id,
        format!("faults per {one}"),
        value,
        Unit::Number,
        comment,
    ))
}

fn locks(model: &Model) -> Vec<Figure> {
    let delta = model.delta();
    let total = delta.total();
    let n = total.faults();
    let mut latency = Histogram::default();
    for passes in delta.passes.values() {
        latency.add(&passes.histogram);
    }
    let p = |q: f64| {
        latency.quantile_ns(q).map(|ns| {
            #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
            let ns = ns as f64;
            ns
        })
    };
    let p50 = over(model, "fault_latency", p(0.5), "inside handle_mm_fault");
    let p99 = over(model, "fault_latency", p(0.99), "inside handle_mm_fault");
    let per_fault = |ns: u64| over(model, "contention", build::ratio(ns, n), "");
    let mmap = per_fault(total[Scope::WaitNs(MMAP_LOCK)]);
    let lru = per_fault(total[Scope::WaitNs(LRU_LOCK)]);
    let waits = over(
        model,
        "contention",
        build::ratio(total.waits(), n).map(|x| x * 1e6),
        "contended waits for any lock",
    );
    vec![
        figure(
            "fault_p50_ns",
            "half of the faults within",
            p50.0,
            Unit::Ns,
            p50.1,
        ),
        figure(
            "fault_p99_ns",
            "99 % of the faults within",
            p99.0,
            Unit::Ns,
            p99.1,
        ),
        figure(
            "lock_waits_per_mfault",
            "lock waits per million faults",
            waits.0,
            Unit::Number,
            waits.1,
        ),
        figure(
            "mmap_lock_wait_per_fault_ns",
            "mmap_lock wait per fault",
            mmap.0,
            Unit::Ns,
            mmap.1,
        ),
        figure(
            "lru_lock_wait_per_fault_ns",
            "lru_lock wait per fault",
            lru.0,
            Unit::Ns,
            lru.1,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::usage::Usage;
    use crate::model::{Context, Missing};
    use crate::sample::{
        Delta,
        delta::{Cpu, CpuTime},
        run::{Ended, Workload},
    };
    use std::sync::Arc;

    fn model(context: Context) -> Model {
        let mut cpu = Cpu {
            time: Some(CpuTime {
                busy_ns: 4_000_000_000,
                ..CpuTime::default()
            }),
            ..Cpu::default()
        };
        cpu.counters[Scope::User(1)] = 8_000;
        cpu.counters[Scope::WaitNs(MMAP_LOCK)] = 16_000;
        cpu.counters[Scope::Waits(MMAP_LOCK)] = 8;
        let delta = Delta {
            interval_ns: 10_000_000_000,
            cpus: vec![cpu],
            ..Delta::default()
        };
        Model::new(Arc::new(delta), Arc::new(context))
    }

    fn metric(name: &str, value: f64) -> Metric {
        Metric {
            name: name.into(),
            value,
            unit: "count".into(),
            direction: None,
            work: None,
            resolution: 0.0,
            format: "sysbench".into(),
            keys: Vec::new(),
        }
    }

    fn run() -> Run {
        let usage = Usage {
            user_ns: 500_000_000,
            system_ns: 1_500_000_000,
            minor_faults: 5_990,
            major_faults: 10,
            ..Usage::default()
        };
        Run {
            workload: Some(Workload {
                ended: Some(Ended {
                    usage,
                    ..Ended::default()
                }),
                ..Workload::default()
            }),
            ..Run::default()
        }
    }

    fn value(figures: &[Figure], id: &str) -> Option<f64> {
        let figure = figures.iter().find(|f| f.id == id)?;
        figure.value.number()
    }

    #[test]
    fn faults_stand_against_time_cpu_time_and_work() {
        let metrics = [metric("queries", 9.0), metric("transactions", 2_000.0)];
        let figures = headline(&model(Context::default()), &run(), &metrics, false);
        for (id, expected) in [
            ("faults", 8_000.0),
            ("faults_per_sec", 800.0),
            ("faults_per_cpu_sec", 2_000.0),
            ("workload_faults_per_cpu_sec", 3_000.0),
            ("faults_per_transaction", 4.0),
            ("lock_waits_per_mfault", 1_000.0),
            ("mmap_lock_wait_per_fault_ns", 2.0),
            ("lru_lock_wait_per_fault_ns", 0.0),
        ] {
            let found = value(&figures, id).unwrap_or(f64::NAN);
            assert!((found - expected).abs() < 1e-9, "{id}: {found}");
        }
        // Nothing was timed inside handle_mm_fault.
        assert_eq!(value(&figures, "fault_p50_ns"), None);
    }

    #[test]
    fn a_part_of_the_run_is_divided_by_nothing_of_the_whole() {
        let metrics = [metric("transactions", 2_000.0)];
        let figures = headline(&model(Context::default()), &run(), &metrics, true);
        assert!(figures.iter().all(|f| f.id != "faults_per_transaction"));
        assert!(
            figures
                .iter()
                .all(|f| f.id != "workload_faults_per_cpu_sec")
        );
    }

    #[test]
    fn what_is_missing_is_absent_with_its_reason() {
        let context = Context {
            missing: Arc::new([Missing {
                signal: "faults".into(),
                reason: "no tracepoint".into(),
            }]),
            ..Context::default()
        };
        let figures = headline(&model(context), &Run::default(), &[], false);
        let faults = &figures[0];
        assert_eq!(faults.value, Value::Absent);
        assert_eq!(faults.comment, "not measured: no tracepoint");
    }
}
