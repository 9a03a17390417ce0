//! Values of a row on their way out of the file, none of them trusted.

use super::{Caches, Codec, Entry, Fault, Item, MAX_READING, Record, Text, damaged, mix_option};
use crate::{
    name::scrub,
    store::{
        digest::{mix, of_bytes},
        schema::statements,
    },
};
use rusqlite::{Connection, Row, types::ValueRef};

/// What may still be read.
#[derive(Debug)]
pub(in crate::store) struct Left {
    rows: u64,
    /// How much the counters may still come to.
    counts: u64,
}

impl Left {
    /// At most `rows`, with counters that come to at most `counts`.
    pub(in crate::store) fn new(rows: u64, counts: u64) -> Self {
        Self { rows, counts }
    }

    /// How much more the counters may come to.
    pub(in crate::store) fn counts(&self) -> u64 {
        self.counts
    }

    fn take(&mut self) -> Result<(), Fault> {
        self.rows = self.rows.checked_sub(1).ok_or_else(|| {
            Fault::TooMuch("it holds more rows than any recorder writes there".into())
        })?;
        Ok(())
    }
}

/// Gives back a row's values.
#[derive(Debug)]
struct Decoder<'a, 'row> {
    conn: &'a Connection,
    caches: &'a mut Caches,
    left: &'a mut Left,
    row: &'a Row<'row>,
    column: usize,
    sum: u64,
}

/// Hands every row of a place to `each`, with its checksum.
pub(in crate::store) fn each<R: Record>(
    conn: &Connection,
    caches: &mut Caches,
    left: &mut Left,
    place: Option<i64>,
    mut each: impl FnMut(R, u64) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let statements = statements(R::TABLE);
    let mut statement = conn.prepare_cached(&statements.select)?;
    let mut rows = match place {
        Some(place) => statement.query((place,))?,
        None => statement.query(())?,
    };
    while let Some(row) = rows.next()? {
        left.take()?;
        let mut record = R::default();
        let mut decoder = Decoder {
            conn,
            caches,
            left,
            row,
            column: 0,
            sum: statements.tag,
        };
        record.columns(&mut decoder)?;
        each(record, decoder.sum)?;
    }
    Ok(())
}

/// The text with a number, and its checksum.
pub(in crate::store) fn string(
    conn: &Connection,
    caches: &mut Caches,
    id: i64,
) -> Result<(Text, u64), Fault> {
    if let Some((text, sum)) = caches.strings.read.get(&id) {
        return Ok((Text::clone(text), *sum));
    }
    let mut statement = conn.prepare_cached(&statements("string").select)?;
    let mut rows = statement.query((id,))?;
    let row = rows
        .next()?
        .ok_or_else(|| damaged("a row refers to a text that is not there"))?;
    let ValueRef::Text(bytes) = row.get_ref(0)? else {
        return Err(damaged("a text is no text"));
    };
    let (text, sum) = (Text::from(scrub(bytes)), of_bytes(bytes));
    caches.strings.keep_read(id, Text::clone(&text), sum);
    Ok((text, sum))
}

/// The list with a number, and its checksum.
fn items<T: Item>(
    conn: &Connection,
    caches: &mut Caches,
    left: &mut Left,
    id: i64,
) -> Result<(Vec<T>, u64), Fault> {
    if id == 0 {
        return Ok((Vec::new(), 0));
    }
    if let Some((items, sum)) = T::cache(caches).read.get(&id) {
        return Ok((items.clone(), *sum));
    }
    let mut items = Vec::new();
    let mut sums = Vec::new();
    each::<T>(conn, caches, left, Some(id), |item, sum| {
        items.push(item);
        sums.push(sum);
        Ok(())
    })?;
    let sum = sums
        .iter()
        .fold(sums.len() as u64, |all, one| mix(all, *one));
    T::cache(caches).keep_read(id, items.clone(), sum);
    Ok((items, sum))
}

/// Text of several lines, each scrubbed; tabs stay.
fn scrub_lines(bytes: &[u8]) -> String {
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| {
        let cells: Vec<String> = line.split(|byte| *byte == b'\t').map(scrub).collect();
        cells.join("\t")
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl<'a> Decoder<'a, '_> {
    fn next(&mut self) -> Result<ValueRef<'a>, Fault> {
        let row: &'a Row<'_> = self.row;
        let value = row.get_ref(self.column)?;
        self.column += 1;
        Ok(value)
    }

    fn number(&mut self) -> Result<Option<i64>, Fault> {
        match self.next()? {
            ValueRef::Integer(n) => Ok(Some(n)),
            ValueRef::Null => Ok(None),
            _ => Err(damaged("a number is no number")),
        }
    }

    fn required(&mut self) -> Result<i64, Fault> {
        self.number()?.ok_or_else(|| damaged("a number is missing"))
    }

    fn bytes(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        match self.next()? {
            ValueRef::Text(bytes) => Ok(Some(bytes)),
            ValueRef::Null => Ok(None),
            _ => Err(damaged("a text is no text")),
        }
    }

    fn entry<K: Entry>(&mut self, id: i64) -> Result<(K, u64), Fault> {
        if let Some((key, sum)) = K::cache(self.caches).read.get(&id) {
            return Ok((key.clone(), *sum));
        }
        let mut found = None;
        each::<K>(self.conn, self.caches, self.left, Some(id), |key, sum| {
            found = Some((key, sum));
            Ok(())
        })?;
        let (key, sum) = found.ok_or_else(|| damaged("a row refers to one that is not there"))?;
        K::cache(self.caches).keep_read(id, key.clone(), sum);
        Ok((key, sum))
    }
}

impl Codec for Decoder<'_, '_> {
    fn int(&mut self, value: &mut i64) -> Result<(), Fault> {
        *value = self.required()?;
        self.sum = mix(self.sum, value.cast_unsigned());
        Ok(())
    }

    fn opt_int(&mut self, value: &mut Option<i64>) -> Result<(), Fault> {
        *value = self.number()?;
        self.sum = mix_option(self.sum, value.map(i64::cast_unsigned));
        Ok(())
    }

    fn real(&mut self, value: &mut f64) -> Result<(), Fault> {
        let ValueRef::Real(real) = self.next()? else {
            return Err(damaged("a number is no number"));
        };
        *value = real;
        self.sum = mix(self.sum, real.to_bits());
        Ok(())
    }

    fn own_text(&mut self, value: &mut String) -> Result<(), Fault> {
        let bytes = self.bytes()?.ok_or_else(|| damaged("a text is missing"))?;
        *value = scrub(bytes);
        self.sum = mix(self.sum, of_bytes(bytes));
        Ok(())
    }

    fn own_lines(&mut self, value: &mut String) -> Result<(), Fault> {
        let bytes = self.bytes()?.ok_or_else(|| damaged("a text is missing"))?;
        *value = scrub_lines(bytes);
        self.sum = mix(self.sum, of_bytes(bytes));
        Ok(())
    }

    fn opt_own_text(&mut self, value: &mut Option<String>) -> Result<(), Fault> {
        let bytes = self.bytes()?;
        *value = bytes.map(scrub);
        self.sum = mix_option(self.sum, bytes.map(of_bytes));
        Ok(())
    }

    fn text(&mut self, value: &mut Text) -> Result<(), Fault> {
        let id = self.required()?;
        let (text, sum) = string(self.conn, self.caches, id)?;
        *value = text;
        self.sum = mix(self.sum, sum);
        Ok(())
    }

    fn opt_text(&mut self, value: &mut Option<Text>) -> Result<(), Fault> {
        let id = self.number()?;
        let known = id
            .map(|id| string(self.conn, self.caches, id))
            .transpose()?;
        self.sum = mix_option(self.sum, known.as_ref().map(|(_, sum)| *sum));
        *value = known.map(|(text, _)| text);
        Ok(())
    }

    fn blob(&mut self, value: &mut Option<Vec<u8>>) -> Result<(), Fault> {
        let bytes = match self.next()? {
            ValueRef::Blob(bytes) => Some(bytes),
            ValueRef::Null => None,
            _ => return Err(damaged("a list of counts is no blob")),
        };
        self.sum = mix_option(self.sum, bytes.map(of_bytes));
        *value = bytes.map(<[u8]>::to_vec);
        Ok(())
    }

    fn key<K: Entry>(&mut self, value: &mut K) -> Result<(), Fault> {
        let id = self.required()?;
        let (key, sum) = self.entry(id)?;
        *value = key;
        self.sum = mix(self.sum, sum);
        Ok(())
    }

    fn opt_key<K: Entry>(&mut self, value: &mut Option<K>) -> Result<(), Fault> {
        let id = self.number()?;
        let known = id.map(|id| self.entry(id)).transpose()?;
        self.sum = mix_option(self.sum, known.as_ref().map(|(_, sum)| *sum));
        *value = known.map(|(key, _)| key);
        Ok(())
    }

    fn list<T: Item>(&mut self, value: &mut Vec<T>) -> Result<(), Fault> {
        let id = self.required()?;
        let (list, sum) = items(self.conn, self.caches, self.left, id)?;
        *value = list;
        self.sum = mix(self.sum, sum);
        Ok(())
    }

    fn check(&mut self, value: &mut u64) -> Result<(), Fault> {
        *value = self.required()?.cast_unsigned();
        Ok(())
    }

    fn tally(&mut self, count: u64) -> Result<(), Fault> {
        self.left.counts = self
            .left
            .counts
            .checked_sub(count)
            .ok_or_else(|| damaged("its counters are larger than any kernel's"))?;
        Ok(())
    }

    fn bound(&mut self, reading: u64) -> Result<(), Fault> {
        if reading < MAX_READING {
            Ok(())
        } else {
            Err(damaged("a clock or a level is larger than any kernel's"))
        }
    }
}
