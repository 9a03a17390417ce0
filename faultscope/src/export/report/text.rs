//! A report as aligned text.

use super::document::{Block, Document, Found, Grid, Pair};
use crate::model::Field;
use crate::render::{
    cell::{align, is_right_aligned, width},
    columns::{GAP, fit, measure},
    finding::wrap,
};
use std::io::{self, Write};

/// Cells of a line.
const WIDTH: usize = 120;
/// Cells of a label.
const LABEL: usize = 36;

pub(super) fn write(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    writeln!(out, "{}", document.title)?;
    for warning in &document.warnings {
        lines(out, "! ", warning)?;
    }
    for section in &document.sections {
        writeln!(out, "\n== {} ==", section.title)?;
        for (i, block) in section.blocks.iter().enumerate() {
            if i > 0 {
                writeln!(out)?;
            }
            match block {
                Block::Pairs(pairs) => write_pairs(out, pairs)?,
                Block::Grid(grid) => write_grid(out, grid)?,
                Block::Lines(all) => {
                    for line in all {
                        lines(out, "- ", line)?;
                    }
                }
                Block::Findings(found) => write_findings(out, found)?,
            }
        }
    }
    Ok(())
}

/// A sentence behind a mark, its further lines below its text.
fn lines(out: &mut dyn Write, mark: &str, text: &str) -> io::Result<()> {
    for (i, line) in wrap(text, WIDTH - mark.len()).iter().enumerate() {
        if i == 0 {
            writeln!(out, "{mark}{line}")?;
        } else {
            writeln!(out, "{:1$}{line}", "", mark.len())?;
        }
    }
    Ok(())
}

fn write_pairs(out: &mut dyn Write, pairs: &[Pair]) -> io::Result<()> {
    let widest = pairs.iter().map(|p| width(&p.label)).max().unwrap_or(0);
    let label = widest.min(LABEL);
    // Values of one block begin at one column, comments too where values are short.
    let value = pairs
        .iter()
        .filter(|p| !p.comment.is_empty())
        .map(|p| width(&p.value))
        .max()
        .unwrap_or(0)
        .min(24);
    for pair in pairs {
        let head = align(&pair.label, label, false, '~');
        if pair.comment.is_empty() {
            let text = wrap(&pair.value, WIDTH - label - GAP);
            let indent = " ".repeat(label + GAP);
            writeln!(
                out,
                "{}",
                format!("{head}  {}", text.join(&format!("\n{indent}"))).trim_end()
            )?;
        } else {
            let shown = align(&pair.value, value.max(width(&pair.value)), true, '~');
            writeln!(out, "{head}  {shown}  {}", pair.comment)?;
        }
    }
    Ok(())
}

fn write_grid(out: &mut dyn Write, grid: &Grid) -> io::Result<()> {
    writeln!(out, "{}", grid.title)?;
    if grid.rows.is_empty() {
        writeln!(out, "  nothing")?;
    } else {
        let fields: &[&Field] = &grid.fields;
        let columns = fit(
            fields,
            &measure(fields, &grid.rows, None),
            None,
            0,
            WIDTH - GAP,
        );
        let heads: Vec<String> = fields.iter().map(|f| f.title.to_owned()).collect();
        for row in std::iter::once(&heads).chain(&grid.rows) {
            let cells: Vec<String> = columns
                .iter()
                .map(|c| {
                    align(
                        &row[c.field],
                        c.width,
                        is_right_aligned(fields[c.field]),
                        '~',
                    )
                })
                .collect();
            writeln!(out, "  {}", cells.join(&" ".repeat(GAP)).trim_end())?;
        }
    }
    for line in &grid.foot {
        lines(out, "  ", line)?;
    }
    Ok(())
}

fn write_findings(out: &mut dyn Write, found: &[Found]) -> io::Result<()> {
    for (i, finding) in found.iter().enumerate() {
        lines(out, &format!("{}. ", i + 1), finding.title)?;
        for text in [
            &finding.text,
            &finding.evidence,
            &format!("next: {}", finding.next),
        ] {
            lines(out, "   ", text)?;
        }
    }
    Ok(())
}
