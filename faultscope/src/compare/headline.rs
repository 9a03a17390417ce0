//! The figures of two sides as rows: which of them decide, and what each is worth.

use std::collections::BTreeMap;

use super::cell::{cell, statistic};
use super::floor::{Floor, NoFloor};
use super::observed::Observed;
use super::stats::{
    self, ALPHA, Comparison, Direction, Margin, Verdict, clusters, compare, compare_pairs, drift,
    holm, outliers,
};
use crate::model::Unit;
use crate::workload::{self, Metric};

/// What a row decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one metric that is tested alone.
    Primary,
    /// A metric of the family that Holm's method corrects.
    Headline,
    /// Told with its interval, not tested.
    Context,
}

/// One figure on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Name in JSON and for `--gate`.
    pub id: String,
    /// What it is.
    pub title: String,
    /// Configuration that it was measured in, as `threads 8`; empty if there is one.
    pub cell: String,
    /// How to print its values.
    pub shown: Shown,
    /// Which way it should go.
    pub direction: Direction,
    /// What it decides.
    pub role: Role,
    /// Value and start (ns since the epoch, 0 unknown) of each run before.
    pub before: Vec<(f64, u64)>,
    /// The same after.
    pub after: Vec<(f64, u64)>,
    /// The sides compared.
    pub comparison: Comparison,
    /// How far apart it lies by chance; `None` if that was not learnt.
    pub floor: Option<Floor>,
    /// The smallest difference that matters.
    pub margin: Margin,
    /// p, adjusted for the family; `None` for context.
    pub adjusted_p: Option<f64>,
    /// The verdict; `None` for context.
    pub verdict: Option<Verdict>,
    /// What is odd about the values: outliers, clusters, drift.
    pub flags: Vec<String>,
    /// Whether values are means over runs that nobody counted: there is no verdict on those.
    pub is_summary: bool,
    /// Standard deviations of such means before and after, percent, if a side has one; LKP prints none of 2 % or less.
    pub deviations: Option<[Option<f64>; 2]>,
}

/// How values are printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// A figure of the model.
    Of(Unit),
    /// A figure of a workload, in its own unit.
    In(String),
}

/// Figures of the kernel with a direction; the first ones are headline metrics.
const KERNEL: &[(&str, Direction, Role)] = &[
    (
        "system_per_fault_ns",
        Direction::LowerIsBetter,
        Role::Headline,
    ),
    ("fault_p50_ns", Direction::LowerIsBetter, Role::Headline),
    ("fault_p99_ns", Direction::LowerIsBetter, Role::Headline),
    (
        "lock_wait_per_fault_ns",
        Direction::LowerIsBetter,
        Role::Headline,
    ),
    (
        "refaults_per_mfault",
        Direction::LowerIsBetter,
        Role::Headline,
    ),
    ("faults_per_transaction", Direction::None, Role::Context),
    ("faults_per_query", Direction::None, Role::Context),
    ("faults_per_event", Direction::None, Role::Context),
    ("faults", Direction::None, Role::Context),
    ("faults_major", Direction::None, Role::Context),
    ("faults_per_sec", Direction::None, Role::Context),
    (
        "lock_waits_per_mfault",
        Direction::LowerIsBetter,
        Role::Context,
    ),
    (
        "mmap_lock_wait_per_fault_ns",
        Direction::LowerIsBetter,
        Role::Context,
    ),
    (
        "lru_lock_wait_per_fault_ns",
        Direction::LowerIsBetter,
        Role::Context,
    ),
    ("command_user_ns", Direction::LowerIsBetter, Role::Context),
    ("command_system_ns", Direction::LowerIsBetter, Role::Context),
];

/// Share of a quantile of a log-linear histogram that is its resolution.
const BUCKET: f64 = 0.25;

/// What rows are made with.
#[derive(Debug, Clone, Default)]
pub struct Making<'a> {
    /// Smallest difference that matters, as a ratio.
    pub min_effect: f64,
    /// Pairs of runs: places before and after; `None` for independent sides.
    pub pairs: Option<&'a [(usize, usize)]>,
    /// Runs that differ in nothing, from which margins are learnt; empty for none.
    pub alike: &'a [Observed],
    /// Whether those are the sides themselves, which have no margin from it.
    pub is_halved: bool,
    /// Figures that are gated, and so tested.
    pub gated: &'a [String],
}

/// A figure before it is compared.
struct Draft {
    id: String,
    title: String,
    cell: String,
    shown: Shown,
    direction: Direction,
    role: Role,
    resolution: f64,
    /// By run of each side.
    values: [Vec<Option<f64>>; 2],
    is_summary: bool,
    deviations: [Option<f64>; 2],
}

impl Draft {
    /// Whether it is the same figure as another draft of that name and configuration.
    fn is_like(&self, other: &Self) -> bool {
        self.shown == other.shown && self.direction == other.direction
    }

    fn is_named(&self, other: &Self) -> bool {
        self.id == other.id && self.cell == other.cell
    }

    /// Name and configuration.
    fn full_name(&self) -> String {
        if self.cell.is_empty() {
            self.title.clone()
        } else {
            format!("{}, {}", self.title, self.cell)
        }
    }

    fn is_on(&self, side: usize) -> bool {
        self.values[side].iter().any(Option::is_some)
    }

    /// Its unit and its better direction, in words.
    fn nature(&self) -> String {
        let unit = match &self.shown {
            Shown::In(unit) if unit.is_empty() => "no unit".to_owned(),
            Shown::In(unit) => format!("in {unit}"),
            Shown::Of(unit) => format!("in {unit:?}").to_lowercase(),
        };
        let way = match self.direction {
            Direction::HigherIsBetter => ", better if higher",
            Direction::LowerIsBetter => ", better if lower",
            Direction::None => "",
        };
        format!("{unit}{way}")
    }
}

/// What was made of the figures.
#[derive(Debug, Clone, Default)]
pub struct Made {
    /// Every figure that both sides have, the primary first.
    pub rows: Vec<Row>,
    /// A sentence for each that is not the same on both.
    pub unlike: Vec<String>,
    /// Primary figures for which a floor was to be learnt and could not, by reason.
    pub without_floor: BTreeMap<NoFloor, Vec<String>>,
}

/// The figures of two sides.
#[must_use]
pub fn rows(before: &[Observed], after: &[Observed], making: &Making<'_>) -> Made {
    let sides = [before, after];
    let starts = sides.map(|side| side.iter().map(|o| o.run.start_real_ns).collect::<Vec<_>>());
    let floors = floors(making.alike);
    let drafts = drafts(sides);
    let mut made = Made {
        unlike: unlike(&drafts),
        ..Made::default()
    };
    for draft in drafts {
        let is_it = |(other, _): &&(Draft, Result<Floor, NoFloor>)| {
            draft.is_named(other) && draft.is_like(other)
        };
        let floor = floors.iter().find(is_it).map(|(_, floor)| *floor);
        let floor = floor.unwrap_or(Err(NoFloor::Absent));
        let (name, role) = (draft.full_name(), draft.role);
        let Some(row) = row(draft, &starts, making, floor.ok()) else {
            continue;
        };
        if let Err(why) = floor
            && role == Role::Primary
            && !making.alike.is_empty()
        {
            made.without_floor.entry(why).or_default().push(name);
        }
        made.rows.push(row);
    }
    adjust(&mut made.rows);
    made.rows.sort_by_key(|row| match row.role {
        Role::Primary => 0,
        Role::Headline => 1,
        Role::Context => 2,
    });
    made
}

/// Figures of one name that differ in unit or direction, so that they were not compared; once for each name.
fn unlike(drafts: &[Draft]) -> Vec<String> {
    let mut told: BTreeMap<&str, String> = BTreeMap::new();
    for before in drafts.iter().filter(|d| !d.is_on(1)) {
        let is_other = |d: &&Draft| !d.is_on(0) && d.is_named(before) && !d.is_like(before);
        if let Some(after) = drafts.iter().find(is_other) {
            told.entry(&before.id).or_insert_with(|| {
                format!(
                    "{} is {} before and {} after: not compared",
                    before.id,
                    before.nature(),
                    after.nature()
                )
            });
        }
    }
    told.into_values().collect()
}

/// The figures of both sides, or of either.
fn drafts(sides: [&[Observed]; 2]) -> Vec<Draft> {
    let mut drafts = workload(sides);
    if !drafts.iter().any(|d| d.role == Role::Primary) {
        drafts.insert(0, elapsed(sides));
    }
    drafts.extend(kernel(sides));
    drafts
}

/// What runs that differ in nothing say of each figure.
fn floors(alike: &[Observed]) -> Vec<(Draft, Result<Floor, NoFloor>)> {
    drafts([alike, &[]])
        .into_iter()
        .map(|draft| {
            let values: Vec<f64> = draft.values[0].iter().flatten().copied().collect();
            let floor = Floor::of(&values);
            (draft, floor)
        })
        .collect()
}

/// Adjusts p within the families, and gives verdicts.
fn adjust(rows: &mut [Row]) {
    for role in [Role::Primary, Role::Headline] {
        let of_role: Vec<usize> = (0..rows.len()).filter(|&i| rows[i].role == role).collect();
        let p: Vec<f64> = of_role.iter().map(|&i| rows[i].comparison.test.p).collect();
        // A sweep has a primary for each configuration; these are a family of their own.
        for (&i, p) in of_role.iter().zip(holm(&p)) {
            let row = &mut rows[i];
            if row.is_summary {
                row.verdict = Some(Verdict::Inconclusive);
                continue;
            }
            row.adjusted_p = Some(p);
            row.verdict = Some(row.comparison.verdict(p, ALPHA, row.direction, row.margin));
        }
    }
}

fn row(
    draft: Draft,
    starts: &[Vec<u64>; 2],
    making: &Making<'_>,
    floor: Option<Floor>,
) -> Option<Row> {
    let side = |i: usize| -> Vec<(f64, u64)> {
        let values = draft.values[i].iter().zip(&starts[i]);
        values
            .filter_map(|(value, start)| Some(((*value)?, *start)))
            .collect()
    };
    let (before, after) = (side(0), side(1));
    let plain = |side: &[(f64, u64)]| -> Vec<f64> { side.iter().map(|(v, _)| *v).collect() };
    let comparison = match making.pairs {
        Some(pairs) => {
            let pair = |(a, b): &(usize, usize)| {
                Some(((*draft.values[0].get(*a)?)?, (*draft.values[1].get(*b)?)?))
            };
            compare_pairs(&pairs.iter().filter_map(pair).collect::<Vec<_>>())
        }
        None => compare(&plain(&before), &plain(&after)),
    }?;
    let margin = floor
        .filter(|_| !making.is_halved)
        .map_or(0.0, |f| f.halves);
    let min_effect = margin.max(making.min_effect);
    let is_gated = making
        .gated
        .iter()
        .any(|name| *name == draft.id || *name == draft.title);
    let role = match draft.role {
        Role::Context if is_gated => Role::Headline,
        role => role,
    };
    let mut flags = flags("before", &before, draft.resolution, &draft.shown);
    flags.extend(self::flags("after", &after, draft.resolution, &draft.shown));
    let margin = Margin::new(min_effect, draft.resolution, comparison.before);
    if margin.is_coarse() && matches!(draft.shown, Shown::In(_)) {
        flags.push(format!(
            "printed in steps of {}: changes below {:.1} % cannot be told",
            draft.shown.value(draft.resolution),
            100.0 * margin.relative()
        ));
    }
    Some(Row {
        floor,
        margin,
        id: draft.id,
        title: draft.title,
        cell: draft.cell,
        shown: draft.shown,
        direction: draft.direction,
        role,
        before,
        after,
        comparison,
        adjusted_p: None,
        verdict: None,
        flags,
        is_summary: draft.is_summary,
        deviations: draft
            .deviations
            .iter()
            .any(Option::is_some)
            .then_some(draft.deviations),
    })
}

/// What is odd about the values of a side.
fn flags(side: &str, values: &[(f64, u64)], resolution: f64, shown: &Shown) -> Vec<String> {
    let (plain, starts): (Vec<f64>, Vec<u64>) = values.iter().copied().unzip();
    let mut found: Vec<String> = outliers(&plain, resolution)
        .iter()
        .map(|o| {
            let at = match starts[o.index] {
                0 => String::new(),
                ns => format!(", started {}", crate::render::time::format_clock(ns)),
            };
            format!(
                "outlier {side}: run {} of {}, {}{at}",
                o.index + 1,
                plain.len(),
                shown.value(o.value)
            )
        })
        .collect();
    if let Some(two) = clusters(&plain, resolution) {
        found.push(format!("{side} {}", two.sentence(|v| shown.value(v))));
    }
    if let Some(drift) = drift(&plain, &starts).filter(stats::Drift::is_flagged) {
        let way = if drift.tau > 0.0 { "rises" } else { "falls" };
        found.push(format!(
            "{side} {way} with the start time (tau {:+.2}, p {:.3})",
            drift.tau, drift.p
        ));
    }
    found
}

impl Shown {
    /// A value with three digits and its unit.
    #[must_use]
    pub fn value(&self, value: f64) -> String {
        use crate::units::{format_bytes, format_ns, format_ratio, format_si};
        match self {
            Self::Of(Unit::Ns) => format_ns(value),
            Self::Of(Unit::Bytes) => format_bytes(value),
            Self::Of(Unit::Ratio) => format_ratio(value),
            Self::Of(_) => format_si(value),
            Self::In(unit) if unit == "s" && value < 1000.0 => format_ns(value * 1e9),
            Self::In(unit) if unit == "ms" => format_ns(value * 1e6),
            Self::In(_) => format_si(value),
        }
    }
}

/// Names by which workloads call the time that the whole took.
pub(super) const ELAPSED: [&str; 6] = [
    "elapsed",
    "elapsed_s",
    "real",
    "wall",
    "total time",
    "Elapsed",
];

/// Which way a figure goes: as its format says, or for times of the whole as its name does.
fn direction(metric: &Metric) -> Direction {
    match metric.direction {
        Some(workload::Direction::Higher) => Direction::HigherIsBetter,
        Some(workload::Direction::Lower) => Direction::LowerIsBetter,
        None if ELAPSED.contains(&metric.name.as_str()) => Direction::LowerIsBetter,
        None => Direction::None,
    }
}

/// The smallest step between two values of a figure; counts are exact.
fn resolution(metric: &Metric) -> f64 {
    if metric.unit == "count" {
        0.0
    } else {
        metric.resolution
    }
}

fn workload(sides: [&[Observed]; 2]) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    for (i, side) in sides.into_iter().enumerate() {
        for (at, run) in side.iter().enumerate() {
            for metric in &run.metrics {
                let cell = cell(metric);
                // Of another unit or direction it is another figure, whatever its name.
                let (shown, way) = (Shown::In(metric.unit.clone()), direction(metric));
                let is_it = |d: &Draft| {
                    d.id == metric.name && d.cell == cell && d.shown == shown && d.direction == way
                };
                let place = drafts.iter().position(is_it).unwrap_or_else(|| {
                    drafts.push(Draft {
                        id: metric.name.clone(),
                        title: metric.name.clone(),
                        cell,
                        shown: Shown::In(metric.unit.clone()),
                        direction: direction(metric),
                        role: Role::Context,
                        resolution: resolution(metric),
                        values: sides.map(|side| vec![None; side.len()]),
                        is_summary: metric.is_summary(),
                        deviations: [None; 2],
                    });
                    drafts.len() - 1
                });
                let draft = &mut drafts[place];
                draft.values[i][at] = Some(metric.value);
                // "10" among "9.81" has lost no digits but its zeros.
                draft.resolution = draft.resolution.min(resolution(metric));
                // Of several tables none has the deviation of all.
                draft.deviations[i] = metric.deviation_pct().filter(|_| side.len() == 1);
            }
        }
    }
    let name =
        |is_it: &dyn Fn(&Draft) -> bool| drafts.iter().find(|d| is_it(d)).map(|d| d.id.clone());
    let is_rate = |d: &Draft| {
        let is_rate = |text: &str| text.contains("/s") || text.contains("/wsec");
        let unit = match &d.shown {
            Shown::In(unit) => unit.as_str(),
            Shown::Of(_) => "",
        };
        d.direction == Direction::HigherIsBetter && (is_rate(unit) || is_rate(&d.id))
    };
    let primary = name(&is_rate)
        .or_else(|| name(&|d| d.direction == Direction::HigherIsBetter))
        .or_else(|| name(&|d| ELAPSED.contains(&d.id.as_str())));
    // Figures of no direction at all: the first stands for what was measured.
    let primary = primary.or_else(|| {
        let is_alone = drafts
            .iter()
            .all(|d| Some(&d.id) == drafts.first().map(|f| &f.id));
        drafts.first().filter(|_| is_alone).map(|d| d.id.clone())
    });
    // A spread under the same name, as mmtests prints it, goes no way and is no rate.
    let way = drafts
        .iter()
        .filter(|d| Some(&d.id) == primary.as_ref())
        .map(|d| d.direction)
        .find(|way| *way != Direction::None)
        .unwrap_or(Direction::None);
    for draft in &mut drafts {
        if Some(&draft.id) == primary.as_ref() && draft.direction == way {
            draft.role = Role::Primary;
        }
    }
    once(&mut drafts);
    let ids: Vec<String> = drafts.iter().map(|d| d.id.clone()).collect();
    let place = |draft: &Draft| ids.iter().position(|id| *id == draft.id);
    drafts.sort_by(|a, b| {
        place(a)
            .cmp(&place(b))
            .then_with(|| super::cell::order(&a.cell, &b.cell))
    });
    drafts
}

/// Of several statistics of one figure the first mean counts alone.
fn once(drafts: &mut [Draft]) {
    let mut best: BTreeMap<String, usize> = BTreeMap::new();
    let of_role = |d: &&Draft| d.role == Role::Primary;
    for draft in drafts.iter().filter(of_role) {
        let (cell, rank) = statistic(&draft.cell);
        let least = best.entry(cell).or_insert(rank);
        *least = rank.min(*least);
    }
    for draft in drafts.iter_mut() {
        let (cell, rank) = statistic(&draft.cell);
        if draft.role == Role::Primary && best.get(&cell).is_some_and(|least| *least < rank) {
            draft.role = Role::Context;
        }
    }
}

/// Elapsed time of the command: the primary metric of what reports no figure of its own.
fn elapsed(sides: [&[Observed]; 2]) -> Draft {
    Draft {
        id: "elapsed_ns".to_owned(),
        title: "elapsed".to_owned(),
        cell: String::new(),
        shown: Shown::Of(Unit::Ns),
        direction: Direction::LowerIsBetter,
        role: Role::Primary,
        resolution: 0.0,
        values: sides.map(|side| {
            side.iter()
                .map(|o| o.elapsed_ns().map(super::observed::real))
                .collect()
        }),
        is_summary: false,
        deviations: [None; 2],
    }
}

fn kernel(sides: [&[Observed]; 2]) -> Vec<Draft> {
    let all = || {
        sides
            .iter()
            .flat_map(|side| side.iter())
            .filter_map(|o| o.kernel.as_ref())
    };
    KERNEL
        .iter()
        .filter_map(|(id, direction, role)| {
            let first = all().flat_map(|k| &k.readings).find(|r| r.id == *id)?;
            let values = sides.map(|side| -> Vec<Option<f64>> {
                let value = |o: &Observed| {
                    let readings = &o.kernel.as_ref()?.readings;
                    readings.iter().find(|r| r.id == *id).map(|r| r.value)
                };
                side.iter().map(value).collect()
            });
            let typical = values
                .iter()
                .flatten()
                .flatten()
                .copied()
                .fold(0.0, f64::max);
            let is_quantile = id.starts_with("fault_p");
            Some(Draft {
                id: (*id).to_owned(),
                title: first.title.clone(),
                cell: String::new(),
                shown: Shown::Of(first.unit),
                direction: *direction,
                role: *role,
                resolution: if is_quantile { BUCKET * typical } else { 0.0 },
                values,
                is_summary: false,
                deviations: [None; 2],
            })
        })
        .collect()
}
