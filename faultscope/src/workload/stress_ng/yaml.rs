//! The file that `stress-ng --yaml` writes: lines of `key: value` in sections. Its date is no ISO date and is not read.

use super::{INSTANCES, STRESSOR, figure, unit_of};
use crate::workload::found::{Format, Found, Measurement, Refusal};
use crate::workload::metric::{Direction, Metric};
use crate::workload::number;

/// Keys with a name of their own: figure, unit, direction.
const NAMED: &[(&str, &str, &str, Option<Direction>)] = &[
    ("bogo-ops", "bogo-ops", "count", None),
    (
        "bogo-ops-per-second-real-time",
        "bogo-ops/s",
        "1/s",
        Some(Direction::Higher),
    ),
    (
        "bogo-ops-per-second-usr-sys-time",
        "bogo-ops/cpu-s",
        "1/s",
        Some(Direction::Higher),
    ),
    ("wall-clock-time", "real", "s", None),
    ("user-time", "user", "s", None),
    ("system-time", "system", "s", None),
    ("cpu-usage-per-instance", "cpu", "%", None),
    ("max-rss", "max rss", "KiB", None),
];

/// The stressor of a line that begins an entry.
pub(super) fn entry(line: &str) -> Option<&str> {
    line.trim().strip_prefix("- stressor:").map(str::trim)
}

/// Reads the section of metrics.
pub(super) fn parse(text: &str) -> Result<Found, Refusal> {
    let mut all: Vec<Metric> = Vec::new();
    let mut host = None;
    let mut section = "";
    let mut keys: Vec<(String, String)> = Vec::new();
    let mut first = 0;
    for (at, line) in text.lines().enumerate() {
        // Mails may have lost the indentation.
        if let Some(name) = line.trim().strip_suffix(':') {
            section = name;
            continue;
        }
        if let ("metrics", Some(name)) = (section, entry(line)) {
            keys = vec![(STRESSOR.to_owned(), name.to_owned())];
            first = all.len();
            continue;
        }
        let Some((key, value)) = line.trim().split_once(':') else {
            continue;
        };
        let value = value.trim();
        match section {
            "system-info" if key == "nodename" => host = Some(value.trim_matches('\'').to_owned()),
            "metrics" if keys.is_empty() => {}
            "metrics" if key == INSTANCES => {
                // Figures before it are of the same entry.
                let count = (INSTANCES.to_owned(), value.to_owned());
                for metric in &mut all[first..] {
                    metric.keys.push(count.clone());
                }
                keys.push(count);
            }
            "metrics" => {
                let value = number::parse(value).map_err(|error| Refusal::Line {
                    line: at + 1,
                    reason: format!("\"{value}\" {}", error.reason()),
                })?;
                let named = NAMED.iter().find(|(of, ..)| *of == key);
                all.push(match named {
                    Some((_, name, unit, direction)) => {
                        figure(keys.clone(), name, value, unit, *direction)
                    }
                    None => {
                        let name = key.replace('-', " ");
                        figure(keys.clone(), &name, value, unit_of(&name), None)
                    }
                });
            }
            _ => {}
        }
    }
    let mut found = Found::default();
    if !all.is_empty() {
        found.measurements.push(Measurement {
            host,
            ..Measurement::new(Format::StressNg, all)
        });
    }
    Ok(found)
}
