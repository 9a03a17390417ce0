//! CSV (RFC 4180): one line per row and interval, the header line once.
//!
//! Columns: `t_real`, the catalogue ids (increments for counters), then
//! `<id>_per_sec` for every counter. An absent cell is empty.

use super::Selection;
use crate::model::{Kind, Model, Value};
use crate::render::cell::per_second;
use crate::render::time::format_rfc3339;
use std::borrow::Cow;
use std::io::{self, Write};

pub(super) fn write(
    out: &mut dyn Write,
    model: &Model,
    selection: &Selection,
    is_first: bool,
) -> io::Result<()> {
    let chosen = selection.choose(model);
    let fields = chosen.table.fields;
    if is_first {
        let ids = fields.iter().map(|f| f.id.to_owned());
        let rates = fields
            .iter()
            .filter(|f| f.kind == Kind::Counter)
            .map(|f| format!("{}_per_sec", f.id));
        let names: Vec<String> = ids.chain(rates).collect();
        write!(out, "t_real,{}\r\n", names.join(","))?;
    }
    let time = format_rfc3339(model.t_real_ns);
    let secs = model.interval_secs();
    for row in chosen.rows.iter().map(|i| &chosen.table.rows[*i]) {
        write!(out, "{time}")?;
        for value in &row.cells {
            match value {
                Value::Absent => write!(out, ",")?,
                Value::Text(t) => write!(out, ",{}", quote(t))?,
                Value::Count(n) => write!(out, ",{n}")?,
                Value::Real(x) if x.is_finite() => write!(out, ",{x}")?,
                Value::Real(_) => write!(out, ",")?,
            }
        }
        for (field, value) in fields.iter().zip(&row.cells) {
            if field.kind == Kind::Counter {
                match per_second(field, value, secs) {
                    Some(rate) => write!(out, ",{rate}")?,
                    None => write!(out, ",")?,
                }
            }
        }
        write!(out, "\r\n")?;
    }
    Ok(())
}

/// A cell with the marks that it needs.
pub(super) fn quote(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\r', '\n']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}
