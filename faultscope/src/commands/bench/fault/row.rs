//! Columns of `bench fault`, and its row in the layout of 2004.

use crate::commands::bench::columns::{self, counted};
use crate::commands::bench::point::Point;
use crate::commands::bench::table::Column;

/// A row of 2004: rates are of pages, as that program had them, for the size is all it knew.
pub(super) fn pft_row(point: &Point) -> Result<String, String> {
    let figure = |name: &str| {
        point
            .figure(name)
            .ok_or_else(|| format!("its process did not tell {name}"))
    };
    let (pages, faults) = (figure("pages")?, figure("faults")?);
    // The layout has no other number of faults than that of the pages.
    if (faults - pages).abs() > 0.001 * pages {
        return Err(format!(
            "{faults:.0} faults for {pages:.0} pages, and the layout of 2004 knows one fault a page only"
        ));
    }
    let (user, system, wall) = (figure("user")?, figure("system")?, figure("wall")?);
    Ok(format!(
        "{} {} {} {user:.3}s {system:.3}s {wall:.2}s {:.3} {:.3}",
        point.job.bytes >> 30,
        point.job.rounds,
        point.job.members,
        pages / (user + system),
        pages / wall
    ))
}

const fn seconds(title: &'static str, cell: fn(&Point, &[Point]) -> Option<String>) -> Column {
    Column {
        title,
        width: 9,
        signal: None,
        cell,
    }
}

pub(super) static LIVE: &[Column] = &[
    Column {
        title: "Gb",
        width: 6,
        signal: None,
        cell: |point, _| Some(gib(point.job.bytes)),
    },
    Column {
        title: "Rep",
        width: 3,
        signal: None,
        cell: |point, _| Some(point.job.rounds.to_string()),
    },
    columns::THREADS,
    seconds("User", |point, _| time(point, "user")),
    seconds("System", |point, _| time(point, "system")),
    seconds("Wall", |point, _| time(point, "wall")),
    Column {
        title: "flt/cpu/s",
        width: 12,
        signal: None,
        cell: |point, _| rate(point, "flt/cpu/s"),
    },
    Column {
        title: "fault/wsec",
        width: 12,
        signal: None,
        cell: |point, _| rate(point, "fault/wsec"),
    },
];

const fn count(
    title: &'static str,
    signal: Option<&'static str>,
    cell: fn(&Point, &[Point]) -> Option<String>,
) -> Column {
    Column {
        title,
        width: 10,
        signal,
        cell,
    }
}

pub(super) static COUNTS: &[Column] = &[
    columns::THREADS,
    count("probes", Some("faults"), |point, _| {
        counted(point.given("faults")?, point).map(|n| n.to_string())
    }),
    count("no trap", Some("fault_latency"), |point, _| {
        Some(point.given("fault_latency")?.untrapped().to_string())
    }),
    count("getrusage", None, |point, _| figure(point, "faults")),
    Column {
        title: "predicted",
        width: 14,
        signal: None,
        cell: |point, _| {
            let most = figure(point, "faults_predicted")?;
            Some(match figure(point, "faults_predicted_least") {
                Some(least) => format!("{least}-{most}"),
                None => most,
            })
        },
    },
    count("pages", None, |point, _| figure(point, "pages")),
    count("major", None, |point, _| figure(point, "major_faults")),
    count("page/wsec", None, |point, _| {
        point.figure("page/wsec").map(|n| format!("{n:.0}"))
    }),
];

pub(super) static SCALING: &[Column] = &[
    columns::THREADS,
    columns::EFFICIENCY,
    columns::GAIN,
    columns::RSS,
    columns::SHARING,
    columns::SHARING_BOUND,
    columns::VMA_LOCK,
];

fn figure(point: &Point, name: &str) -> Option<String> {
    point.figure(name).map(|n| format!("{n:.0}"))
}

fn time(point: &Point, name: &str) -> Option<String> {
    point.figure(name).map(|s| format!("{s:.3}s"))
}

fn rate(point: &Point, name: &str) -> Option<String> {
    point.figure(name).map(|n| format!("{n:.3}"))
}

/// GiB in as few digits as say it.
fn gib(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let gib = bytes as f64 / f64::from(1 << 30);
    if bytes.is_multiple_of(1 << 30) {
        format!("{gib:.0}")
    } else {
        format!("{gib:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::FAULT;
    use super::*;
    use crate::commands::bench::Job;
    use crate::workload::bench::BenchResult;
    use crate::workload::{Defaults, Format, parse_as};

    fn point(members: usize, faults: u64) -> Point {
        let job = Job {
            bench: &FAULT,
            case: &FAULT.cases[0],
            members,
            are_processes: false,
            bytes: 2 << 30,
            has_sizes: false,
            rounds: 3,
            repetition: 1,
            is_pinned: true,
            directory: None,
            cgroup: None,
        };
        let mut result = BenchResult::new("fault", &[]);
        // As of a machine: the shares of the CPU time have more digits than are shown.
        let share = f64::from(u32::try_from(members).expect("few"));
        result.add("user", 0.123_456_7 * share, "s", None);
        result.add("system", 1.987_654_3 * share, "s", None);
        result.add("wall", 2.345_678_9 / share, "s", None);
        result.count("pages", 3 << 19);
        result.count("faults", faults);
        Point {
            job,
            result,
            seen: None,
        }
    }

    #[test]
    fn the_layout_of_2004_is_imported_again() {
        let mut text = format!("{}\n", FAULT.pft.as_ref().expect("has it").header);
        for members in [1, 2, 4, 8] {
            text.push_str(&pft_row(&point(members, 3 << 19)).expect("a row"));
            text.push('\n');
        }
        assert!(text.contains("\n2 3 8 0.988s 15.901s 0.29s "), "{text}");
        let found = parse_as(&text, Format::Pft, &Defaults::default()).expect("is read back");
        assert_eq!(found.reasons, Vec::<String>::new());
        assert_eq!(found.measurements.len(), 4);
        for (measurement, members) in found.measurements.iter().zip(["1", "2", "4", "8"]) {
            assert_eq!(measurement.page_size, Some(4096));
            let wall = measurement
                .metrics
                .iter()
                .find(|m| m.name == "wall")
                .expect("Wall");
            assert!(
                (wall.resolution - 0.01).abs() < 1e-9,
                "a decimal of two digits"
            );
            let threads = wall
                .keys
                .iter()
                .find(|(k, _)| k == "threads")
                .expect("a key");
            assert_eq!(threads.1, members);
        }
    }

    #[test]
    fn fewer_faults_than_pages_have_no_row() {
        let reason = pft_row(&point(1, 3 << 10)).expect_err("huge pages");
        assert!(reason.contains("3072 faults for 1572864 pages"), "{reason}");
    }
}
