//! Which way a table is to be read: columns, wall time and page size, decided together by what must add up.
//!
//! Faults are bytes by page size, and also rate by time. Only a reading for which both agree in every row is taken.

use super::row::Row;

/// How the digits of `Wall` are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// As a decimal number.
    Decimal,
    /// As seconds and centiseconds padded to three digits: what the program of 2004 printed.
    Padded,
}

/// Which columns the whole numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bytes that one unit of the first column stands for.
    pub(super) unit: Unit,
    pub(super) repetitions: Option<usize>,
    pub(super) threads: usize,
    pub(super) cache_line: Option<usize>,
}

/// Unit of the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Gib,
    Mib,
}

impl Unit {
    /// Name of the key.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Gib => "gib",
            Self::Mib => "mib",
        }
    }

    const fn bytes(self) -> f64 {
        match self {
            Self::Gib => 1_073_741_824.0,
            Self::Mib => 1_048_576.0,
        }
    }
}

impl Layout {
    /// 2004: `Gb Rep Threads`.
    pub(super) const REPEATED: Self = Self {
        unit: Unit::Gib,
        repetitions: Some(1),
        threads: 2,
        cache_line: None,
    };
    /// Later: `Gb Thr CLine`.
    pub(super) const SINGLE: Self = Self {
        unit: Unit::Gib,
        repetitions: None,
        threads: 1,
        cache_line: Some(2),
    };
    /// 2005: `Gb Rep Thr CLine`.
    pub(super) const BOTH: Self = Self {
        unit: Unit::Gib,
        repetitions: Some(1),
        threads: 2,
        cache_line: Some(3),
    };

    /// Bytes touched in all, 0 if the size was printed as 0; `None` if a column is not there.
    fn bytes(self, row: &Row) -> Option<f64> {
        let repetitions = match self.repetitions {
            Some(at) => *row.counts.get(at)?,
            None => 1,
        };
        Some(as_f64(*row.counts.first()?) * self.unit.bytes() * as_f64(repetitions))
    }
}

/// A way to read a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) layout: Layout,
    pub(super) reading: Reading,
    /// Page size as a power of two.
    pub(super) page_shift: i32,
}

/// Page sizes that are tried: 4 KiB to 1 GiB.
const SHIFTS: std::ops::RangeInclusive<i32> = 12..=30;

/// Steps of the last digit by which user and system time together may be off: three times cut off, or rounded.
const CPU_STEPS: f64 = 3.0;

/// Wall time of the row in s, and the smallest difference it can show; `None` if it cannot be read so.
pub(super) fn wall(row: &Row, reading: Reading) -> Option<(f64, f64)> {
    match reading {
        Reading::Decimal => Some((row.wall.decimal.value, row.wall.decimal.resolution())),
        Reading::Padded => Some((row.wall.padded?, 0.01)),
    }
}

/// Whether the size of the row was printed, so that it can be checked.
pub(super) fn is_verifiable(row: &Row) -> bool {
    row.counts.first().is_some_and(|size| *size > 0)
}

/// The ways to read this row that add up.
pub(super) fn ways(row: &Row, layouts: &[Layout]) -> Vec<Way> {
    let mut ways = Vec::new();
    for &layout in layouts {
        for reading in [Reading::Padded, Reading::Decimal] {
            for page_shift in SHIFTS {
                let way = Way {
                    layout,
                    reading,
                    page_shift,
                };
                if adds_up(row, way) {
                    ways.push(way);
                }
            }
        }
    }
    ways
}

fn adds_up(row: &Row, way: Way) -> bool {
    let (Some(bytes), Some((wall, step))) = (way.layout.bytes(row), wall(row, way.reading)) else {
        return false;
    };
    if !is_verifiable(row) {
        // Nothing to check against; three padded digits decide.
        return (way.reading == Reading::Padded) == row.wall.padded.is_some();
    }
    let faults = bytes / 2_f64.powi(way.page_shift);
    let elapsed = faults / row.rate.value;
    // What the last printed digit of the rate leaves open.
    let slack = elapsed * row.rate.resolution() / row.rate.value + 1e-6;
    let off = elapsed - wall;
    // Cut off by the old program, rounded by a decimal one.
    let low = match way.reading {
        Reading::Padded => -slack,
        Reading::Decimal => -step / 2.0 - slack,
    };
    let cpu = faults / row.cpu_rate.value;
    let cpu_slack = cpu * row.cpu_rate.resolution() / row.cpu_rate.value
        + CPU_STEPS * row.user.resolution().max(row.system.resolution());
    (low..step + slack).contains(&off)
        && (cpu - row.user.value - row.system.value).abs() <= cpu_slack
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes above 2^53 GiB are none of a machine"
)]
const fn as_f64(count: u64) -> f64 {
    count as f64
}
