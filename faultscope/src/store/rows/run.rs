//! What is said once: the run, its workload, its end and its metrics.

use crate::{
    sample::run::{End, Ended, LossKind, Round, Run, RunFact, RunProbe, Workload},
    store::{
        codec::{Caches, Codec, Encoder, Fault, Left, MAX_TOTAL, Record, Text, damaged, each},
        digest::{mix, of_bytes},
    },
    symbol::FaultPart,
    workload::{Direction, Metric, Work},
};
use rusqlite::{Connection, OptionalExtension as _};
use std::mem::take;

/// Rows of a table of the run that a reader takes.
const MAX_ROWS: u64 = 1 << 17;

#[derive(Debug, Default)]
struct RunRow(Run);

impl Record for RunRow {
    const TABLE: &'static str = "run";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        let Self(run) = self;
        c.own_text(&mut run.id)?;
        c.own_text(&mut run.tool_version)?;
        c.own_text(&mut run.host)?;
        c.own_text(&mut run.kernel)?;
        c.own_text(&mut run.mglru)?;
        c.reading(&mut run.start_real_ns)?;
        c.reading(&mut run.start_mono_ns)?;
        c.reading(&mut run.interval_ns)?;
        c.own_text(&mut run.filter)?;
        let mut series = run.round.as_ref().map(|round| round.series.clone());
        let mut number = run.round.as_ref().map(|round| round.number);
        let mut side = run.round.as_ref().map(|round| round.side.clone());
        c.opt_own_text(&mut series)?;
        c.opt_small(&mut number)?;
        c.opt_own_text(&mut side)?;
        run.round = match (series, number, side) {
            (Some(series), Some(number), Some(side)) => Some(Round {
                series,
                number,
                side,
            }),
            (None, None, None) => None,
            _ => return Err(damaged("a round is half there")),
        };
        Ok(())
    }
}

macro_rules! texts {
    ($type:ident, $table:literal, $($field:tt),*) => {
        impl Record for $type {
            const TABLE: &'static str = $table;

            fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
                $(c.own_text(&mut self.$field)?;)*
                Ok(())
            }
        }
    };
}

#[derive(Debug, Default)]
struct EndRow(End);

impl Record for EndRow {
    const TABLE: &'static str = "run_end";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.reading(&mut self.0.mono_ns)?;
        c.own_text(&mut self.0.reason)
    }
}

#[derive(Debug, Default)]
struct Label(String, String);
texts!(Label, "label", 0, 1);

#[derive(Debug, Default)]
struct ConfigRow(String, String);
texts!(ConfigRow, "kernel_config", 0, 1);

#[derive(Debug, Default)]
struct LossKindRow(String, String);
texts!(LossKindRow, "loss_kind", 0, 1);

#[derive(Debug, Default)]
struct PartName(String);
texts!(PartName, "part", 0);

#[derive(Debug, Default)]
struct Argument(String);
texts!(Argument, "workload_argument", 0);

#[derive(Debug, Default)]
struct Refused(String);
texts!(Refused, "result_refused", 0);

#[derive(Debug, Default)]
struct Variable(String, String);
texts!(Variable, "workload_variable", 0, 1);

#[derive(Debug, Default)]
struct FactRow {
    id: String,
    is_known: bool,
    value: String,
}

impl Record for FactRow {
    const TABLE: &'static str = "fact";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.own_text(&mut self.id)?;
        c.flag(&mut self.is_known)?;
        c.own_text(&mut self.value)
    }
}

#[derive(Debug, Default)]
struct ProbeRow {
    program: String,
    signal: String,
    is_attached: bool,
    place: String,
    substitutes: Option<String>,
}

impl Record for ProbeRow {
    const TABLE: &'static str = "probe";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.own_text(&mut self.program)?;
        c.own_text(&mut self.signal)?;
        c.flag(&mut self.is_attached)?;
        c.own_text(&mut self.place)?;
        c.opt_own_text(&mut self.substitutes)
    }
}

#[derive(Debug, Default)]
struct WorkloadRow(Workload);

impl Record for WorkloadRow {
    const TABLE: &'static str = "workload";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        let Self(workload) = self;
        c.own_text(&mut workload.directory)?;
        c.small(&mut workload.tgid)?;
        c.reading(&mut workload.start_mono_ns)?;
        c.own_lines(&mut workload.output.text)?;
        c.reading(&mut workload.output.dropped_bytes)?;
        let mut end = workload.ended.as_ref().map(|ended| ended.mono_ns);
        c.opt_reading(&mut end)?;
        let mut ended = workload.ended.take().unwrap_or_default();
        c.opt_small(&mut ended.code)?;
        c.opt_small(&mut ended.signal)?;
        let usage = &mut ended.usage;
        c.u64s([&mut usage.user_ns, &mut usage.system_ns])?;
        c.reading(&mut usage.max_rss_bytes)?;
        c.u64s([
            &mut usage.minor_faults,
            &mut usage.major_faults,
            &mut usage.voluntary_switches,
            &mut usage.involuntary_switches,
        ])?;
        workload.ended = end.map(|mono_ns| Ended { mono_ns, ..ended });
        Ok(())
    }
}

#[derive(Debug)]
struct MetricRow(Metric);

impl Default for MetricRow {
    fn default() -> Self {
        Self(Metric {
            name: String::new(),
            value: 0.0,
            unit: String::new(),
            direction: None,
            work: None,
            resolution: 0.0,
            format: String::new(),
            keys: Vec::new(),
        })
    }
}

const DIRECTIONS: [(Direction, &str); 2] =
    [(Direction::Higher, "higher"), (Direction::Lower, "lower")];
const WORKS: [(Work, &str); 2] = [(Work::Fixed, "fixed"), (Work::Timed, "timed")];

/// A value that is written as a word.
fn word<C: Codec, T: Copy + PartialEq>(
    c: &mut C,
    value: &mut Option<T>,
    words: &[(T, &str)],
) -> Result<(), Fault> {
    let of = |value: T| words.iter().find(|(v, _)| *v == value);
    let mut text = value.and_then(of).map(|(_, word)| (*word).to_owned());
    c.opt_own_text(&mut text)?;
    *value = match text {
        None => None,
        Some(text) => Some(
            words
                .iter()
                .find(|(_, word)| *word == text)
                .ok_or_else(|| damaged("a word is not known"))?
                .0,
        ),
    };
    Ok(())
}

impl Record for MetricRow {
    const TABLE: &'static str = "metric";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        let Self(metric) = self;
        c.own_text(&mut metric.name)?;
        c.real(&mut metric.value)?;
        c.own_text(&mut metric.unit)?;
        word(c, &mut metric.direction, &DIRECTIONS)?;
        word(c, &mut metric.work, &WORKS)?;
        c.real(&mut metric.resolution)?;
        c.own_text(&mut metric.format)
    }
}

#[derive(Debug, Default)]
struct MetricKey {
    metric: u32,
    name: String,
    value: String,
}

impl Record for MetricKey {
    const TABLE: &'static str = "metric_key";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.small(&mut self.metric)?;
        c.own_text(&mut self.name)?;
        c.own_text(&mut self.value)
    }
}

/// Writes all of a table in place of what it held.
fn replace<R: Record>(
    conn: &Connection,
    caches: &mut Caches,
    rows: impl IntoIterator<Item = R>,
) -> Result<(), Fault> {
    conn.execute(&format!("DELETE FROM {}", R::TABLE), ())?;
    let mut encoder = Encoder::new(conn, caches);
    let mut sum = of_bytes(R::TABLE.as_bytes());
    for (position, mut row) in (0..).zip(rows) {
        sum = mix(sum, encoder.put(&[position], &mut row)?);
    }
    conn.execute("DELETE FROM checksum WHERE name = ?1", (R::TABLE,))?;
    conn.execute(
        "INSERT INTO checksum (name, digest) VALUES (?1, ?2)",
        (R::TABLE, sum.cast_signed()),
    )?;
    Ok(())
}

/// Reads all of a table; what was never written is empty.
fn all<R: Record>(conn: &Connection, caches: &mut Caches) -> Result<Vec<R>, Fault> {
    let mut rows = Vec::new();
    let mut sum = of_bytes(R::TABLE.as_bytes());
    each::<R>(
        conn,
        caches,
        &mut Left::new(MAX_ROWS, MAX_TOTAL),
        None,
        |row, of| {
            sum = mix(sum, of);
            rows.push(row);
            Ok(())
        },
    )?;
    match checksum::<R>(conn)? {
        None if rows.is_empty() => Ok(rows),
        Some(wanted) if wanted == sum.cast_signed() => Ok(rows),
        _ => Err(damaged(format!(
            "the table \"{}\" does not add up to its checksum",
            R::TABLE
        ))),
    }
}

/// Checksum of a table as it was written; `None` if it never was.
fn checksum<R: Record>(conn: &Connection) -> Result<Option<i64>, Fault> {
    let digest = conn
        .query_row(
            "SELECT digest FROM checksum WHERE name = ?1",
            (R::TABLE,),
            |row| row.get(0),
        )
        .optional()?;
    Ok(digest)
}

/// Reads all of a table that early files do not have; one that was written must be there.
fn later<R: Record>(conn: &Connection, caches: &mut Caches) -> Result<Vec<R>, Fault> {
    let is_there: bool = conn.query_row(
        "SELECT count(*) > 0 FROM main.sqlite_schema WHERE name = ?1",
        (R::TABLE,),
        |row| row.get(0),
    )?;
    if is_there {
        all(conn, caches)
    } else if checksum::<R>(conn)?.is_none() {
        Ok(Vec::new())
    } else {
        Err(damaged(format!("it has no table \"{}\"", R::TABLE)))
    }
}

fn pair<T: From<(String, String)>>((a, b): &(String, String)) -> T {
    T::from((a.clone(), b.clone()))
}

macro_rules! from_pair {
    ($($type:ident)*) => {$(
        impl From<(String, String)> for $type {
            fn from((a, b): (String, String)) -> Self {
                Self(a, b)
            }
        }
    )*};
}
from_pair!(Label ConfigRow Variable);

/// Writes what is known at the start.
pub(in crate::store) fn write_run(
    conn: &Connection,
    caches: &mut Caches,
    run: &Run,
) -> Result<(), Fault> {
    let row = Run {
        labels: Default::default(),
        facts: Vec::new(),
        kernel_config: Vec::new(),
        losses: Vec::new(),
        probes: Vec::new(),
        workload: None,
        end: None,
        ..run.clone()
    };
    replace(conn, caches, [RunRow(row)])?;
    let labels = run.labels.iter().map(|(k, v)| Label(k.clone(), v.clone()));
    replace(conn, caches, labels)?;
    write_facts(conn, caches, &run.facts)?;
    replace(
        conn,
        caches,
        run.kernel_config.iter().map(pair::<ConfigRow>),
    )?;
    let losses = run
        .losses
        .iter()
        .map(|kind| LossKindRow(kind.id.to_string(), kind.description.to_string()));
    replace(conn, caches, losses)?;
    let probes = run.probes.iter().map(|probe| ProbeRow {
        program: probe.program.clone(),
        signal: probe.signal.clone(),
        is_attached: probe.is_attached,
        place: probe.place.clone(),
        substitutes: probe.substitutes.clone(),
    });
    replace(conn, caches, probes)?;
    let parts = FaultPart::ALL.iter().map(|part| PartName(part.id().into()));
    replace(conn, caches, parts)?;
    if let Some(workload) = &run.workload {
        write_workload(conn, caches, workload)?;
    }
    if let Some(end) = &run.end {
        write_end(conn, caches, end)?;
    }
    Ok(())
}

/// Writes the facts in place of earlier ones.
pub(in crate::store) fn write_facts(
    conn: &Connection,
    caches: &mut Caches,
    facts: &[RunFact],
) -> Result<(), Fault> {
    let rows = facts.iter().map(|fact| FactRow {
        id: fact.id.clone(),
        is_known: fact.value.is_ok(),
        value: match &fact.value {
            Ok(value) | Err(value) => value.clone(),
        },
    });
    replace(conn, caches, rows)
}

/// Writes the workload in place of what was known of it.
pub(in crate::store) fn write_workload(
    conn: &Connection,
    caches: &mut Caches,
    workload: &Workload,
) -> Result<(), Fault> {
    let row = Workload {
        argv: Vec::new(),
        environment: Vec::new(),
        refused: Vec::new(),
        ..workload.clone()
    };
    replace(conn, caches, [WorkloadRow(row)])?;
    let arguments = workload.argv.iter().map(|a| Argument(a.clone()));
    replace(conn, caches, arguments)?;
    let variables = workload.environment.iter().map(pair::<Variable>);
    replace(conn, caches, variables)?;
    let refused = workload.refused.iter().map(|r| Refused(r.clone()));
    replace(conn, caches, refused)
}

/// Writes how the run ended.
pub(in crate::store) fn write_end(
    conn: &Connection,
    caches: &mut Caches,
    end: &End,
) -> Result<(), Fault> {
    replace(conn, caches, [EndRow(end.clone())])
}

/// Writes the workload's figures in place of earlier ones.
pub(in crate::store) fn write_metrics(
    conn: &Connection,
    caches: &mut Caches,
    metrics: &[Metric],
) -> Result<(), Fault> {
    let rows = metrics.iter().map(|metric| {
        MetricRow(Metric {
            keys: Vec::new(),
            ..metric.clone()
        })
    });
    replace(conn, caches, rows)?;
    let keys = (0..).zip(metrics).flat_map(|(metric, row)| {
        row.keys.iter().map(move |(name, value)| MetricKey {
            metric,
            name: name.clone(),
            value: value.clone(),
        })
    });
    replace(conn, caches, keys)
}

/// Reads the run and its metrics; `None` if nothing was written.
pub(in crate::store) fn read_run(
    conn: &Connection,
    caches: &mut Caches,
) -> Result<Option<(Run, Vec<Metric>)>, Fault> {
    let Some(RunRow(mut run)) = all(conn, caches)?.pop() else {
        return Ok(None);
    };
    let labels = all(conn, caches)?.into_iter();
    run.labels = labels.map(|Label(key, value)| (key, value)).collect();
    let facts = all(conn, caches)?.into_iter();
    run.facts = facts
        .map(|row: FactRow| RunFact {
            id: row.id,
            value: if row.is_known {
                Ok(row.value)
            } else {
                Err(row.value)
            },
        })
        .collect();
    let options = all(conn, caches)?.into_iter();
    run.kernel_config = options
        .map(|ConfigRow(name, value)| (name, value))
        .collect();
    let losses = all(conn, caches)?.into_iter();
    run.losses = losses
        .map(|LossKindRow(id, description)| LossKind {
            id: Text::from(id),
            description: Text::from(description),
        })
        .collect();
    let probes = all(conn, caches)?.into_iter();
    run.probes = probes
        .map(|row: ProbeRow| RunProbe {
            program: row.program,
            signal: row.signal,
            is_attached: row.is_attached,
            place: row.place,
            substitutes: row.substitutes,
        })
        .collect();
    if let Some(WorkloadRow(mut workload)) = all(conn, caches)?.pop() {
        let arguments = all(conn, caches)?.into_iter();
        workload.argv = arguments.map(|Argument(value)| value).collect();
        let variables = all(conn, caches)?.into_iter();
        workload.environment = variables.map(|Variable(n, v)| (n, v)).collect();
        let refused = later(conn, caches)?.into_iter();
        workload.refused = refused.map(|Refused(reason)| reason).collect();
        run.workload = Some(workload);
    }
    run.end = all(conn, caches)?.pop().map(|EndRow(end)| end);
    let rows = all(conn, caches)?.into_iter();
    let mut metrics: Vec<Metric> = rows.map(|MetricRow(metric)| metric).collect();
    for mut key in all::<MetricKey>(conn, caches)? {
        let metric = usize::try_from(key.metric)
            .ok()
            .and_then(|metric| metrics.get_mut(metric))
            .ok_or_else(|| damaged("a key refers to no metric"))?;
        metric
            .keys
            .push((take(&mut key.name), take(&mut key.value)));
    }
    Ok(Some((run, metrics)))
}
