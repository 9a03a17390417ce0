//! A report as Markdown, for pasting.

use super::document::{Block, Document, Grid, Pair};
use super::escape::markdown;
use crate::render::{
    cell::is_right_aligned,
    columns::{fit, measure},
};
use std::io::{self, Write};

/// Cells of a table's row: more is not read in a mail or an issue.
const WIDTH: usize = 140;

pub(super) fn write(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    writeln!(out, "# {}", markdown(&document.title))?;
    for warning in &document.warnings {
        writeln!(out, "\n> **!** {}", markdown(warning))?;
    }
    for section in &document.sections {
        writeln!(out, "\n## {}", section.title)?;
        for block in &section.blocks {
            writeln!(out)?;
            match block {
                Block::Pairs(pairs) => write_pairs(out, pairs)?,
                Block::Grid(grid) => write_grid(out, grid)?,
                Block::Lines(lines) => {
                    for line in lines {
                        writeln!(out, "- {}", markdown(line))?;
                    }
                }
                Block::Findings(found) => {
                    for f in found {
                        writeln!(
                            out,
                            "- **{}**: {} ({}). Next: `{}`",
                            markdown(f.title),
                            markdown(&f.text),
                            markdown(&f.evidence),
                            f.next
                        )?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn write_pairs(out: &mut dyn Write, pairs: &[Pair]) -> io::Result<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    let has_comments = pairs.iter().any(|p| !p.comment.is_empty());
    let (head, rule) = if has_comments {
        ("| what | value | note |", "|---|---|---|")
    } else {
        ("| what | value |", "|---|---|")
    };
    writeln!(out, "{head}\n{rule}")?;
    for pair in pairs {
        let (label, value) = (markdown(&pair.label), markdown(&pair.value));
        if has_comments {
            writeln!(out, "| {label} | {value} | {} |", markdown(&pair.comment))?;
        } else {
            writeln!(out, "| {label} | {value} |")?;
        }
    }
    Ok(())
}

fn write_grid(out: &mut dyn Write, grid: &Grid) -> io::Result<()> {
    writeln!(out, "### {}\n", markdown(&grid.title))?;
    if grid.rows.is_empty() {
        writeln!(out, "Nothing.")?;
    } else {
        let fields = grid.fields.as_slice();
        let columns = fit(fields, &measure(fields, &grid.rows, None), None, 0, WIDTH);
        for column in &columns {
            write!(out, "| {} ", fields[column.field].title)?;
        }
        writeln!(out, "|")?;
        for column in &columns {
            let rule = if is_right_aligned(fields[column.field]) {
                "|---:"
            } else {
                "|---"
            };
            write!(out, "{rule}")?;
        }
        writeln!(out, "|")?;
        for row in &grid.rows {
            for column in &columns {
                write!(out, "| {} ", markdown(&row[column.field]))?;
            }
            writeln!(out, "|")?;
        }
    }
    for line in &grid.foot {
        writeln!(out, "\n{}", markdown(line))?;
    }
    Ok(())
}
