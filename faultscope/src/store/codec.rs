//! How a row goes into the file and out of it again.
//!
//! A record names its columns once, in [`Record::columns`]; an [`Encoder`] takes their
//! values, a [`Decoder`] puts them back. Both sum up what passes through them, so that
//! reading can tell whether it got what was written.

mod decode;
mod encode;

pub(super) use decode::{Left, each, string};
pub(super) use encode::Encoder;

use super::{digest::mix, pack::unpack};
use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    sync::Arc,
};

/// Entries of a dictionary kept in memory; beyond it they are written or looked up anew.
const MAX_CACHED: usize = 1 << 16;

/// Clocks and levels are below it: 146 years in ns, 4 EiB.
const MAX_READING: u64 = 1 << 62;

/// The most that the counters of a recording add up to: 292 years in ns. Every sum of some of them is exact.
pub(super) const MAX_TOTAL: u64 = 1 << 63;

/// What keeps a row from being written or read.
#[derive(Debug)]
pub(super) enum Fault {
    /// SQLite says no.
    Sql(rusqlite::Error),
    /// The file does not hold what a recording holds.
    Damaged(String),
    /// The file holds more than a reader takes.
    TooMuch(String),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// What is wrong with a column.
pub(super) fn damaged(what: impl Into<String>) -> Fault {
    Fault::Damaged(what.into())
}

/// A row of a table.
pub(super) trait Record: Default {
    /// The table.
    const TABLE: &'static str;

    /// Passes every column but those of the place, in order.
    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault>;
}

/// A row that others refer to by its number.
pub(super) trait Entry: Record + Clone + Eq + Hash {
    /// Its dictionary.
    fn cache(caches: &mut Caches) -> &mut Cache<Self>;
}

/// A row of a list that others refer to by the list's number.
pub(super) trait Item: Record + Clone + Eq + Hash {
    /// The dictionary of lists.
    fn cache(caches: &mut Caches) -> &mut Cache<Vec<Self>>;
}

/// Numbers of values, and values of numbers.
#[derive(Debug)]
pub(super) struct Cache<T> {
    /// Number and checksum of what was written.
    written: HashMap<T, (i64, u64)>,
    /// What was read, and its checksum.
    read: HashMap<i64, (T, u64)>,
    /// Number of the latest.
    latest: i64,
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self {
            written: HashMap::new(),
            read: HashMap::new(),
            latest: 0,
        }
    }
}

impl<T: Eq + Hash> Cache<T> {
    fn next(&mut self) -> i64 {
        self.latest += 1;
        self.latest
    }

    fn keep_written(&mut self, value: T, id: i64, sum: u64) {
        if self.written.len() >= MAX_CACHED {
            self.written.clear();
        }
        self.written.insert(value, (id, sum));
    }

    fn keep_read(&mut self, id: i64, value: T, sum: u64) {
        if self.read.len() >= MAX_CACHED {
            self.read.clear();
        }
        self.read.insert(id, (value, sum));
    }
}

/// Text without a copy in every row.
pub(super) type Text = Arc<str>;

macro_rules! caches {
    ($($field:ident: $type:ty,)*) => {
        /// All dictionaries.
        #[derive(Debug, Default)]
        pub(super) struct Caches {
            $(pub(super) $field: Cache<$type>,)*
        }

        impl Caches {
            /// Forgets what was written, for it may not have been kept; numbers are not given again.
            pub(super) fn forget(&mut self) {
                $(self.$field.written.clear();)*
            }
        }
    };
}

caches! {
    strings: Text,
    threads: super::rows::ThreadKey,
    processes: super::rows::ProcessKey,
    spaces: super::rows::SpaceKey,
    takers: super::rows::TakerKey,
    locks: super::rows::LockKey,
    blocked: super::rows::BlockedKey,
    spinlocks: super::rows::SpinlockKey,
    missing: Vec<super::rows::MissingItem>,
    notes: Vec<super::rows::NoteItem>,
    names: Vec<super::rows::NameItem>,
    programs: Vec<super::rows::ProgramItem>,
    maps: Vec<super::rows::MapItem>,
}

/// One direction of a row's values.
pub(super) trait Codec {
    /// An integer.
    fn int(&mut self, value: &mut i64) -> Result<(), Fault>;
    /// An integer or NULL.
    fn opt_int(&mut self, value: &mut Option<i64>) -> Result<(), Fault>;
    /// A number.
    fn real(&mut self, value: &mut f64) -> Result<(), Fault>;
    /// A text in the row itself.
    fn own_text(&mut self, value: &mut String) -> Result<(), Fault>;
    /// A text in the row itself, lines and tabs kept.
    fn own_lines(&mut self, value: &mut String) -> Result<(), Fault>;
    /// A text or NULL in the row itself.
    fn opt_own_text(&mut self, value: &mut Option<String>) -> Result<(), Fault>;
    /// A text in the dictionary.
    fn text(&mut self, value: &mut Text) -> Result<(), Fault>;
    /// A text in the dictionary, or NULL.
    fn opt_text(&mut self, value: &mut Option<Text>) -> Result<(), Fault>;
    /// A blob or NULL.
    fn blob(&mut self, value: &mut Option<Vec<u8>>) -> Result<(), Fault>;
    /// An entry of a dictionary.
    fn key<K: Entry>(&mut self, value: &mut K) -> Result<(), Fault>;
    /// An entry of a dictionary, or NULL.
    fn opt_key<K: Entry>(&mut self, value: &mut Option<K>) -> Result<(), Fault>;
    /// A list of a dictionary.
    fn list<T: Item>(&mut self, value: &mut Vec<T>) -> Result<(), Fault>;

    /// The last column: the checksum of the columns before it, added to `value`.
    fn check(&mut self, value: &mut u64) -> Result<(), Fault>;

    /// Takes note of a counter: a reader's are refused if their sum may overflow.
    fn tally(&mut self, _count: u64) -> Result<(), Fault> {
        Ok(())
    }

    /// Takes note of a reading: a reader's are refused from [`MAX_READING`] on.
    fn bound(&mut self, _reading: u64) -> Result<(), Fault> {
        Ok(())
    }

    /// Any 64 bits: an address, an id, a difference; one of 2^63 or more is stored as the negative number of the same
    /// bits.
    fn word(&mut self, value: &mut u64) -> Result<(), Fault> {
        let mut raw = value.cast_signed();
        self.int(&mut raw)?;
        *value = raw.cast_unsigned();
        Ok(())
    }

    /// A clock or a level, which nobody adds up.
    fn reading(&mut self, value: &mut u64) -> Result<(), Fault> {
        self.word(value)?;
        self.bound(*value)
    }

    /// A counter.
    fn u64(&mut self, value: &mut u64) -> Result<(), Fault> {
        self.word(value)?;
        self.tally(*value)
    }

    /// Counters.
    fn u64s<const N: usize>(&mut self, values: [&mut u64; N]) -> Result<(), Fault> {
        values.into_iter().try_for_each(|value| self.u64(value))
    }

    /// Any 64 bits or NULL.
    fn opt_word(&mut self, value: &mut Option<u64>) -> Result<(), Fault> {
        let mut raw = value.map(u64::cast_signed);
        self.opt_int(&mut raw)?;
        *value = raw.map(i64::cast_unsigned);
        Ok(())
    }

    /// A clock, a level or NULL.
    fn opt_reading(&mut self, value: &mut Option<u64>) -> Result<(), Fault> {
        self.opt_word(value)?;
        value.map_or(Ok(()), |reading| self.bound(reading))
    }

    /// A counter or NULL.
    fn opt_u64(&mut self, value: &mut Option<u64>) -> Result<(), Fault> {
        self.opt_word(value)?;
        value.map_or(Ok(()), |count| self.tally(count))
    }

    /// A number of a smaller type.
    fn small<T: Copy + TryFrom<i64> + Into<i64>>(&mut self, value: &mut T) -> Result<(), Fault> {
        let mut raw: i64 = (*value).into();
        self.int(&mut raw)?;
        *value = T::try_from(raw).map_err(|_| damaged("a number is out of its range"))?;
        Ok(())
    }

    /// A number of a smaller type or NULL.
    fn opt_small<T: Copy + TryFrom<i64> + Into<i64>>(
        &mut self,
        value: &mut Option<T>,
    ) -> Result<(), Fault> {
        let mut raw: Option<i64> = value.map(Into::into);
        self.opt_int(&mut raw)?;
        *value = match raw {
            Some(raw) => {
                Some(T::try_from(raw).map_err(|_| damaged("a number is out of its range"))?)
            }
            None => None,
        };
        Ok(())
    }

    /// Yes or no.
    fn flag(&mut self, value: &mut bool) -> Result<(), Fault> {
        let mut raw = i64::from(*value);
        self.int(&mut raw)?;
        *value = flag(raw)?;
        Ok(())
    }

    /// Yes, no or NULL.
    fn opt_flag(&mut self, value: &mut Option<bool>) -> Result<(), Fault> {
        let mut raw = value.map(i64::from);
        self.opt_int(&mut raw)?;
        *value = raw.map(flag).transpose()?;
        Ok(())
    }

    /// An index below `limit`.
    fn index(&mut self, value: &mut usize, limit: usize) -> Result<(), Fault> {
        let mut raw = i64::try_from(*value).unwrap_or(i64::MAX);
        self.int(&mut raw)?;
        *value = usize::try_from(raw)
            .ok()
            .filter(|index| *index < limit)
            .ok_or_else(|| damaged("a number is out of its range"))?;
        Ok(())
    }

    /// Counts by index, most of them zero.
    fn counts(&mut self, values: &mut [u64]) -> Result<(), Fault> {
        let mut blob = super::pack::pack((0..).zip(values.iter().copied()));
        self.blob(&mut blob)?;
        values.fill(0);
        let put = |index: u32, count| {
            *values.get_mut(usize::try_from(index).ok()?)? = count;
            Some(())
        };
        unpack(blob.as_deref().unwrap_or_default(), put)
            .ok_or_else(|| damaged("a list of counts cannot be read"))?;
        values.iter().try_for_each(|count| self.tally(*count))
    }

    /// Counts by number.
    fn sparse(&mut self, values: &mut BTreeMap<u32, u64>) -> Result<(), Fault> {
        let mut blob = super::pack::pack(values.iter().map(|(i, n)| (*i, *n)));
        self.blob(&mut blob)?;
        values.clear();
        let put = |index, count| {
            values.insert(index, count);
            Some(())
        };
        unpack(blob.as_deref().unwrap_or_default(), put)
            .ok_or_else(|| damaged("a list of counts cannot be read"))?;
        values.values().try_for_each(|count| self.tally(*count))
    }
}

fn flag(raw: i64) -> Result<bool, Fault> {
    match raw {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(damaged("a flag is neither 0 nor 1")),
    }
}

/// Stands for NULL in checksums.
const NULL: u64 = 0x6e75_6c6c;

/// The checksum with an optional word.
fn mix_option(state: u64, word: Option<u64>) -> u64 {
    match word {
        Some(word) => mix(mix(state, 1), word),
        None => mix(state, NULL),
    }
}
