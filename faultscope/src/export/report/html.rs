//! A report as one page: no script, no network, nothing beside the file.

use super::document::{Block, Document, Found, Grid, Pair};
use crate::model::Field;
use crate::render::{cell::is_right_aligned, flame, svg::escape};
use std::io::{self, Write};

/// Colours and layout.
const STYLE: &str = include_str!("page.css");
/// Text longer than this breaks into lines inside its cell.
const LONG: usize = 36;

/// Writes the page; `plots` gives the plots that stand first in the section of an id.
pub(super) fn write(
    out: &mut dyn Write,
    document: &Document,
    plots: &dyn Fn(&str) -> Vec<String>,
) -> io::Result<()> {
    // The policy holds even if a name found a way out of its element.
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>{STYLE}{}</style></head>\n<body>\n<h1>{title}</h1>\n",
        flame::STYLE,
        title = escape(&document.title),
    )?;
    for warning in &document.warnings {
        writeln!(out, "<p class=\"warn\">! {}</p>", escape(warning))?;
    }
    out.write_all(b"<nav>")?;
    for section in &document.sections {
        write!(
            out,
            "<a href=\"#{}\">{}</a> ",
            section.id,
            escape(section.title)
        )?;
    }
    out.write_all(b"</nav>\n<main>\n")?;
    for section in &document.sections {
        writeln!(
            out,
            "<section id=\"{}\"><h2>{}</h2>",
            section.id,
            escape(section.title)
        )?;
        for plot in plots(section.id) {
            out.write_all(plot.as_bytes())?;
        }
        for block in &section.blocks {
            match block {
                Block::Pairs(pairs) => write_pairs(out, pairs)?,
                Block::Grid(grid) => write_grid(out, grid)?,
                Block::Lines(lines) => {
                    out.write_all(b"<ul>")?;
                    for line in lines {
                        write!(out, "<li>{}</li>", escape(line))?;
                    }
                    out.write_all(b"</ul>\n")?;
                }
                Block::Findings(found) => write_findings(out, found)?,
            }
        }
        out.write_all(b"</section>\n")?;
    }
    out.write_all(b"</main>\n</body></html>\n")
}

fn write_pairs(out: &mut dyn Write, pairs: &[Pair]) -> io::Result<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    let has_comments = pairs.iter().any(|p| !p.comment.is_empty());
    let (three, class) = if has_comments {
        (" three", "v r")
    } else {
        ("", "w")
    };
    writeln!(out, "<div class=\"scroll\"><table class=\"pairs{three}\">")?;
    for pair in pairs {
        write!(
            out,
            "<tr><td>{}</td><td class=\"{class}\">{}</td>",
            escape(&pair.label),
            escape(&pair.value)
        )?;
        if has_comments {
            write!(out, "<td class=\"soft\">{}</td>", escape(&pair.comment))?;
        }
        out.write_all(b"</tr>\n")?;
    }
    out.write_all(b"</table></div>\n")
}

fn write_grid(out: &mut dyn Write, grid: &Grid) -> io::Result<()> {
    writeln!(
        out,
        "<h3 id=\"{}\">{}</h3>\n<p class=\"soft\">{}</p>",
        escape(&grid.id),
        escape(&grid.title),
        escape(&grid.description)
    )?;
    if grid.rows.is_empty() {
        out.write_all(b"<p>Nothing.</p>\n")?;
    } else {
        out.write_all(b"<div class=\"scroll\"><table class=\"grid\"><tr>")?;
        for field in &grid.fields {
            write!(
                out,
                "<th{} title=\"{}\">{}</th>",
                class(field, ""),
                escape(field.description),
                escape(field.title)
            )?;
        }
        out.write_all(b"</tr>\n")?;
        for row in &grid.rows {
            out.write_all(b"<tr>")?;
            for (field, text) in grid.fields.iter().zip(row) {
                write!(out, "<td{}>{}</td>", class(field, text), escape(text))?;
            }
            out.write_all(b"</tr>\n")?;
        }
        out.write_all(b"</table></div>\n")?;
    }
    for line in &grid.foot {
        writeln!(out, "<p class=\"soft\">{}</p>", escape(line))?;
    }
    Ok(())
}

fn class(field: &Field, text: &str) -> &'static str {
    if is_right_aligned(field) {
        " class=\"r\""
    } else if text.len() > LONG {
        " class=\"long\""
    } else {
        ""
    }
}

fn write_findings(out: &mut dyn Write, found: &[Found]) -> io::Result<()> {
    out.write_all(b"<ol>\n")?;
    for finding in found {
        writeln!(
            out,
            "<li><b>{}</b><br>{}<br><span class=\"soft\">{}<br>next: <code>{}</code></span></li>",
            escape(finding.title),
            escape(&finding.text),
            escape(&finding.evidence),
            escape(finding.next)
        )?;
    }
    out.write_all(b"</ol>\n")
}
