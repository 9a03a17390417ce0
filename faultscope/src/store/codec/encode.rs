//! Values of a row on their way into the file.

use super::{Caches, Codec, Entry, Fault, Item, Record, Text, mix_option};
use crate::store::{
    digest::{mix, of_bytes},
    schema::{ROW_BITS, statements},
};
use rusqlite::{Connection, params_from_iter, types::Value};

/// Takes a row's values.
#[derive(Debug)]
pub(in crate::store) struct Encoder<'a> {
    conn: &'a Connection,
    caches: &'a mut Caches,
    values: Vec<Value>,
    sum: u64,
}

impl<'a> Encoder<'a> {
    /// An encoder for rows of any place.
    pub(in crate::store) fn new(conn: &'a Connection, caches: &'a mut Caches) -> Self {
        Self {
            conn,
            caches,
            values: Vec::new(),
            sum: 0,
        }
    }

    /// Writes a row at a place; its checksum.
    pub(in crate::store) fn put<R: Record>(
        &mut self,
        place: &[i64],
        record: &mut R,
    ) -> Result<u64, Fault> {
        let statements = statements(R::TABLE);
        self.values.clear();
        self.values.extend(place.iter().map(|n| Value::Integer(*n)));
        self.sum = statements.tag;
        record.columns(self)?;
        self.conn
            .prepare_cached(&statements.insert)?
            .execute(params_from_iter(&self.values))?;
        Ok(self.sum)
    }

    /// Writes rows of an interval; the sum of their checksums.
    pub(in crate::store) fn put_all<R: Record>(
        &mut self,
        interval: i64,
        records: impl IntoIterator<Item = R>,
    ) -> Result<u64, Fault> {
        let mut sum = 0_u64;
        for (place, mut record) in (0..).zip(records) {
            if place >> ROW_BITS != 0 {
                return Err(Fault::TooMuch(format!(
                    "an interval has more than {} rows in the table \"{}\"",
                    1 << ROW_BITS,
                    R::TABLE
                )));
            }
            let at = (interval << ROW_BITS) + place;
            sum = sum.wrapping_add(self.put(&[at], &mut record)?);
        }
        Ok(sum)
    }

    /// Number and checksum of a text.
    fn string(&mut self, value: &Text) -> Result<(i64, u64), Fault> {
        if let Some(known) = self.caches.strings.written.get(value) {
            return Ok(*known);
        }
        let id = self.caches.strings.next();
        self.conn
            .prepare_cached(&statements("string").insert)?
            .execute((id, &**value))?;
        let sum = of_bytes(value.as_bytes());
        self.caches
            .strings
            .keep_written(Text::clone(value), id, sum);
        Ok((id, sum))
    }

    fn entry<K: Entry>(&mut self, value: &K) -> Result<(i64, u64), Fault> {
        if let Some(known) = K::cache(self.caches).written.get(value) {
            return Ok(*known);
        }
        let id = K::cache(self.caches).next();
        let mut copy = value.clone();
        let sum = Encoder::new(self.conn, self.caches).put(&[id], &mut copy)?;
        K::cache(self.caches).keep_written(copy, id, sum);
        Ok((id, sum))
    }

    /// Number and checksum of a list, 0 if it is empty.
    fn items<T: Item>(&mut self, mut values: Vec<T>) -> Result<(i64, u64), Fault> {
        if values.is_empty() {
            return Ok((0, 0));
        }
        if let Some(known) = T::cache(self.caches).written.get(&values) {
            return Ok(*known);
        }
        let id = T::cache(self.caches).next();
        let mut sum = values.len() as u64;
        for (position, item) in (0..).zip(&mut values) {
            let row = Encoder::new(self.conn, self.caches).put(&[id, position], item)?;
            sum = mix(sum, row);
        }
        T::cache(self.caches).keep_written(values, id, sum);
        Ok((id, sum))
    }

    fn push(&mut self, value: Value, sum: u64) {
        self.values.push(value);
        self.sum = mix(self.sum, sum);
    }

    fn push_option(&mut self, value: Option<(Value, u64)>) {
        self.sum = mix_option(self.sum, value.as_ref().map(|(_, sum)| *sum));
        self.values
            .push(value.map_or(Value::Null, |(value, _)| value));
    }
}

impl Codec for Encoder<'_> {
    fn int(&mut self, value: &mut i64) -> Result<(), Fault> {
        self.push(Value::Integer(*value), value.cast_unsigned());
        Ok(())
    }

    fn opt_int(&mut self, value: &mut Option<i64>) -> Result<(), Fault> {
        self.push_option(value.map(|n| (Value::Integer(n), n.cast_unsigned())));
        Ok(())
    }

    fn real(&mut self, value: &mut f64) -> Result<(), Fault> {
        self.push(Value::Real(*value), value.to_bits());
        Ok(())
    }

    fn own_text(&mut self, value: &mut String) -> Result<(), Fault> {
        self.push(Value::Text(value.clone()), of_bytes(value.as_bytes()));
        Ok(())
    }

    fn own_lines(&mut self, value: &mut String) -> Result<(), Fault> {
        self.own_text(value)
    }

    fn opt_own_text(&mut self, value: &mut Option<String>) -> Result<(), Fault> {
        let text = value.as_ref();
        self.push_option(text.map(|t| (Value::Text(t.clone()), of_bytes(t.as_bytes()))));
        Ok(())
    }

    fn text(&mut self, value: &mut Text) -> Result<(), Fault> {
        let (id, sum) = self.string(value)?;
        self.push(Value::Integer(id), sum);
        Ok(())
    }

    fn opt_text(&mut self, value: &mut Option<Text>) -> Result<(), Fault> {
        let known = value.as_ref().map(|text| self.string(text)).transpose()?;
        self.push_option(known.map(|(id, sum)| (Value::Integer(id), sum)));
        Ok(())
    }

    fn blob(&mut self, value: &mut Option<Vec<u8>>) -> Result<(), Fault> {
        let blob = value.as_ref();
        self.push_option(blob.map(|b| (Value::Blob(b.clone()), of_bytes(b))));
        Ok(())
    }

    fn key<K: Entry>(&mut self, value: &mut K) -> Result<(), Fault> {
        let (id, sum) = self.entry(value)?;
        self.push(Value::Integer(id), sum);
        Ok(())
    }

    fn opt_key<K: Entry>(&mut self, value: &mut Option<K>) -> Result<(), Fault> {
        let known = value.as_ref().map(|key| self.entry(key)).transpose()?;
        self.push_option(known.map(|(id, sum)| (Value::Integer(id), sum)));
        Ok(())
    }

    fn list<T: Item>(&mut self, value: &mut Vec<T>) -> Result<(), Fault> {
        let (id, sum) = self.items(std::mem::take(value))?;
        self.push(Value::Integer(id), sum);
        Ok(())
    }

    fn check(&mut self, value: &mut u64) -> Result<(), Fault> {
        *value = value.wrapping_add(self.sum);
        self.values.push(Value::Integer(value.cast_signed()));
        Ok(())
    }
}
