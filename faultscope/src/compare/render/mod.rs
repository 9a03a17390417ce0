//! A comparison as text, Markdown, HTML, CSV and JSON, and in the styles of LKP and mmtests.
//!
//! [`Document`] is what people read, whatever the format; JSON and CSV have the numbers behind it.

mod cells;
mod csv;
mod details;
mod document;
mod json;
mod locks;
mod markup;
mod plots;
mod styles;
mod sweeps;
mod text;

use std::io::{self, Write};

use super::Report;
use document::Document;

/// How a comparison is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Text of at most 78 columns, ASCII: fit for a mail.
    Text,
    /// As the kernel test robot writes its mails.
    Lkp,
    /// As mmtests compares.
    Mmtests,
    /// Markdown.
    Md,
    /// One page.
    Html,
    /// A row for each figure.
    Csv,
    /// One document of schema `faultscope.compare/1`.
    Json,
}

/// Columns of text.
pub const WIDTH: usize = 78;

/// Writes the comparison.
///
/// # Errors
/// Whatever `out` reports.
pub fn write(report: &Report, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    match layout {
        Layout::Text => text::write(out, &Document::new(report)),
        // A refusal has no figures for a style to hold.
        Layout::Lkp | Layout::Mmtests if report.is_refused() => {
            text::write(out, &Document::new(report))
        }
        Layout::Lkp => styles::write_lkp(out, report),
        Layout::Mmtests => styles::write_mmtests(out, report),
        Layout::Md => markup::write_markdown(out, &Document::new(report)),
        Layout::Html => markup::write_html(out, &Document::new(report)),
        Layout::Csv => csv::write(out, report),
        Layout::Json => json::write(out, report),
    }
    .and_then(|()| out.flush())
}
