//! Reads a recording.

use super::{
    codec::{Caches, Fault, Left, MAX_TOTAL, damaged},
    error::Error,
    open::{Opened, open, open_bytes},
    rows::{self, Named},
};
use crate::{
    sample::{
        Interval,
        delta::Loss,
        run::{LossKind, Run},
    },
    workload::Metric,
};
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use std::{
    collections::HashMap,
    ops::Range,
    path::{Path, PathBuf},
};

/// Intervals of a recording: a month and a half at one a second.
const MAX_INTERVALS: usize = 1 << 22;
/// Rows of an interval, those it refers to included: more than the recorder's maps have
/// entries.
const MAX_ROWS: u64 = 1 << 20;

/// Bytes of a recording that is unpacked in memory.
const MAX_UNPACKED: usize = 64 << 20;

/// When an interval was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalTime {
    /// Its end on the monotonic clock, ns.
    pub end_mono_ns: u64,
    /// Its end, ns since the Unix epoch.
    pub end_real_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
}

/// A recording that is read.
///
/// Memory is bounded by the largest interval and by what names the latest ones, whatever the
/// size of the file. Every interval is held against its checksum.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    opened: Opened,
    caches: Caches,
    named: Named,
    run: Run,
    metrics: Vec<Metric>,
    times: Vec<IntervalTime>,
    /// What the counters of each interval came to when it was read.
    counts: HashMap<usize, u64>,
    /// Their sum.
    counted: u64,
}

impl Recording {
    /// Opens the recording at `path`, which may be one that is still written or whose recorder
    /// was killed. The file is not changed.
    ///
    /// # Errors
    /// Says what the file is in place of a recording, or what is wrong with it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::read(path, open(path)?)
    }

    /// Opens a recording that is in memory, packed as a zlib stream (RFC 1950); messages call
    /// it `name`.
    ///
    /// # Errors
    /// As [`Recording::open`], and if no temporary file can be made.
    pub fn from_packed(name: &str, packed: &[u8]) -> Result<Self, Error> {
        let name = Path::new(name);
        let bytes = decompress_to_vec_zlib_with_limit(packed, MAX_UNPACKED).map_err(|error| {
            Error::Damaged {
                path: name.to_owned(),
                reason: format!("it cannot be unpacked: {error}"),
            }
        })?;
        Self::read(name, open_bytes(name, &bytes)?)
    }

    fn read(path: &Path, opened: Opened) -> Result<Self, Error> {
        let mut caches = Caches::default();
        let run = rows::read_run(&opened.conn, &mut caches)
            .and_then(|run| run.ok_or_else(|| damaged("it does not say what was recorded")));
        let (run, metrics) = run.map_err(|fault| Error::reading(path, "the run", &fault))?;
        let mut recording = Self {
            path: path.to_owned(),
            opened,
            caches,
            named: Named::default(),
            run,
            metrics,
            times: Vec::new(),
            counts: HashMap::new(),
            counted: 0,
        };
        recording.times = recording
            .read_times()
            .map_err(|fault| Error::reading(path, "the list of intervals", &fault))?;
        Ok(recording)
    }

    fn read_times(&self) -> Result<Vec<IntervalTime>, Fault> {
        let mut statement = self.opened.conn.prepare(
            "SELECT interval, t_mono_ns, t_real_ns, interval_ns FROM interval ORDER BY interval",
        )?;
        let mut rows = statement.query(())?;
        let mut times = Vec::new();
        while let Some(row) = rows.next()? {
            if times.len() >= MAX_INTERVALS {
                return Err(Fault::TooMuch(format!(
                    "it holds more than {MAX_INTERVALS} intervals"
                )));
            }
            if usize::try_from(row.get::<_, i64>(0)?).ok() != Some(times.len()) {
                return Err(damaged("an interval is not there"));
            }
            let word = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
            times.push(IntervalTime {
                end_mono_ns: word(1)?,
                end_real_ns: word(2)?,
                length_ns: word(3)?,
            });
        }
        Ok(times)
    }

    /// What the recording says beside its increments.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The figures that the workload reported about itself.
    #[must_use]
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// Whether the recorder ended it; otherwise it was killed, or still runs.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.run.end.is_some()
    }

    /// Number of intervals.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is no interval.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// When each interval was, in order.
    #[must_use]
    pub fn times(&self) -> &[IntervalTime] {
        &self.times
    }

    /// The interval with a number from 0 on.
    ///
    /// # Errors
    /// If its rows are not those that were written; other intervals may still be read.
    pub fn interval(&mut self, index: usize) -> Result<Interval, Error> {
        // However often it is read, it counts once.
        let others = self.counted - self.counts.get(&index).copied().unwrap_or_default();
        let mut left = Left::new(MAX_ROWS, MAX_TOTAL - others);
        let read = i64::try_from(index)
            .map_err(|_| damaged("it is not there"))
            .and_then(|index| {
                rows::read(
                    &self.opened.conn,
                    &mut self.caches,
                    &mut self.named,
                    &mut left,
                    index,
                )
            })
            .and_then(|interval| interval.ok_or_else(|| damaged("it is not there")));
        if read.is_ok() {
            self.counted = MAX_TOTAL - left.counts();
            self.counts.insert(index, self.counted - others);
        }
        let interval = read.and_then(|interval| {
            // The catalogue names them.
            if interval.delta.losses.len() > self.run.losses.len() {
                return Err(damaged("it has loss counters without a name"));
            }
            Ok(interval)
        });
        interval.map_err(|fault| Error::reading(&self.path, &format!("interval {index}"), &fault))
    }

    /// The intervals of a range of numbers, read one by one.
    pub fn intervals(
        &mut self,
        range: Range<usize>,
    ) -> impl Iterator<Item = Result<Interval, Error>> {
        let range = range.start..range.end.min(self.len());
        range.map(|index| self.interval(index))
    }

    /// Every way to lose events, with what was lost from the first interval to the last.
    ///
    /// # Errors
    /// As [`Recording::interval`], of the last.
    pub fn losses(&mut self) -> Result<Vec<(LossKind, u64)>, Error> {
        let totals = match self.len().checked_sub(1) {
            Some(last) => self.interval(last)?.delta.losses.clone(),
            None => Vec::new(),
        };
        let totals = totals.iter().map(|loss: &Loss| loss.total);
        let kinds = self.run.losses.iter().cloned();
        Ok(kinds.zip(totals.chain(std::iter::repeat(0))).collect())
    }
}
