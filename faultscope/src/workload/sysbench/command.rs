//! What a command line of sysbench keeps constant; its output does not tell.

use crate::workload::found::Format;
use crate::workload::metric::{Direction, Metric, Work};
use crate::workload::number::parse_count;

/// Sets the kind of work of sysbench's figures from the command line that made them, where they do not have one.
///
/// `argv` is that of the workload. A shell's tells nothing, and neither does one without `--time` and `--events` (0.4:
/// `--max-time`, `--max-requests`), since versions differ in what they do then.
pub fn settle_work(argv: &[String], metrics: &mut [Metric]) {
    let is_sysbench = argv
        .first()
        .is_some_and(|program| program.rsplit('/').next() == Some("sysbench"));
    if !is_sysbench {
        return;
    }
    let option = |names: [&str; 2]| {
        let value = |word: &String| {
            let (name, value) = word.split_once('=')?;
            names.contains(&name).then(|| parse_count(value))?
        };
        // The last one counts, as with most programs.
        argv.iter().rev().find_map(value)
    };
    let limits = (
        option(["--time", "--max-time"]),
        option(["--events", "--max-requests"]),
    );
    let is_all = |limit: u64| {
        let mut counts = metrics
            .iter()
            .filter(|m| matches!(m.name.as_str(), "events" | "transactions"));
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts above 2^53 are none of a benchmark"
        )]
        counts.any(|m| m.format == Format::Sysbench.id() && (m.value - limit as f64).abs() < 0.5)
    };
    let work = match limits {
        (Some(1..), None | Some(0)) => Work::Timed,
        (Some(0), Some(1..)) => Work::Fixed,
        (Some(1..), Some(limit @ 1..)) if is_all(limit) => Work::Fixed,
        (Some(1..), Some(1..)) => Work::Timed,
        _ => return,
    };
    for metric in metrics {
        if metric.format != Format::Sysbench.id() || metric.work.is_some() {
            continue;
        }
        metric.work = Some(work);
        if metric.name == "total time" && work == Work::Fixed {
            metric.direction = Some(Direction::Lower);
        }
    }
}
