//! Models as text, CSV and JSON lines.
//!
//! Owns the list of formats and the contracts of the machine-readable ones.
//! Writers take any [`std::io::Write`]; a broken pipe is
//! an I/O error that the caller maps to an exit.

mod csv;
mod jsonl;
pub mod report;
mod text;

use crate::model::{Model, Table, TableId};
use crate::render::order::{Sort, order};
use std::io::{self, Write};
use std::str::FromStr;

/// The formats of every command; each command rejects those it lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Aligned text for people.
    Text,
    /// Comma-separated values, RFC 4180.
    Csv,
    /// One JSON object per line.
    Jsonl,
    /// One JSON document.
    Json,
    /// Markdown.
    Md,
    /// One HTML page.
    Html,
    /// Folded stacks.
    Folded,
    /// A flame graph.
    Flamegraph,
}

impl Format {
    /// Every format, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Text,
        Self::Csv,
        Self::Jsonl,
        Self::Json,
        Self::Md,
        Self::Html,
        Self::Folded,
        Self::Flamegraph,
    ];

    /// The formats of `top`.
    pub const TOP: [Self; 3] = [Self::Text, Self::Csv, Self::Jsonl];

    /// Name on the command line.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
            Self::Json => "json",
            Self::Md => "md",
            Self::Html => "html",
            Self::Folded => "folded",
            Self::Flamegraph => "flamegraph",
        }
    }
}

/// Why a format cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FormatError {
    /// No format has this name.
    #[error(
        "unknown format {0:?}: use one of text, csv, jsonl, json, md, html, folded, flamegraph"
    )]
    Unknown(String),
    /// The format exists, but `top` does not write it.
    #[error(
        "top cannot write {:?}: it writes text, csv and jsonl, and lacks json, md, html, folded and flamegraph; use --format jsonl for a machine-readable stream",
        .0.id()
    )]
    NotInTop(Format),
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(s: &str) -> Result<Self, FormatError> {
        Self::ALL
            .into_iter()
            .find(|f| f.id() == s)
            .ok_or_else(|| FormatError::Unknown(s.to_owned()))
    }
}

/// What of each model is written.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Table to write.
    pub table: TableId,
    /// Sort; `None` keeps the table's own order.
    pub sort: Option<Sort>,
    /// Rows whose key text holds this word, in any case; empty for all.
    pub word: String,
    /// At most so many rows; the rest is counted as omitted.
    pub top: Option<usize>,
}

/// The rows of one interval that a selection leaves.
struct Chosen<'a> {
    table: &'a Table,
    rows: Vec<usize>,
    /// Rows cut by `top` and rows the bounded table left out itself.
    omitted: u64,
}

impl Selection {
    fn choose<'a>(&self, model: &'a Model) -> Chosen<'a> {
        let table = model.table(self.table);
        let mut rows = order(table, self.sort, &self.word);
        let cut = self.top.map_or(0, |k| rows.len().saturating_sub(k));
        rows.truncate(rows.len() - cut);
        Chosen {
            table,
            rows,
            omitted: table.omitted + cut as u64,
        }
    }
}

/// Writes models one after another in one format.
#[derive(Debug)]
pub struct Writer {
    format: TopFormat,
    selection: Selection,
    intervals: u64,
}

#[derive(Debug, Clone, Copy)]
enum TopFormat {
    Text,
    Csv,
    Jsonl,
}

impl Writer {
    /// A writer of `top`'s batch mode.
    ///
    /// # Errors
    /// [`FormatError::NotInTop`] for a format that only other commands have.
    pub fn new(format: Format, selection: Selection) -> Result<Self, FormatError> {
        let format = match format {
            Format::Text => TopFormat::Text,
            Format::Csv => TopFormat::Csv,
            Format::Jsonl => TopFormat::Jsonl,
            Format::Json | Format::Md | Format::Html | Format::Folded | Format::Flamegraph => {
                return Err(FormatError::NotInTop(format));
            }
        };
        Ok(Self {
            format,
            selection,
            intervals: 0,
        })
    }

    /// Writes one interval and flushes.
    ///
    /// # Errors
    /// Whatever `out` reports; [`io::ErrorKind::BrokenPipe`] if the reader left.
    pub fn write(&mut self, out: &mut dyn Write, model: &Model) -> io::Result<()> {
        let is_first = self.intervals == 0;
        self.intervals += 1;
        match self.format {
            TopFormat::Text => text::write(out, model, &self.selection, is_first)?,
            TopFormat::Csv => csv::write(out, model, &self.selection, is_first)?,
            TopFormat::Jsonl => jsonl::write(out, model, &self.selection)?,
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests;
