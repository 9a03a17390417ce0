//! The document as Markdown and as one page.

use std::io::{self, Write};

use super::document::{Block, Document};
use crate::render::svg::escape;

pub(super) fn write_markdown(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    writeln!(out, "# faultscope compare")?;
    let is_text = |block: &&Block| !matches!(block, Block::Plot(_));
    for block in document.blocks.iter().filter(is_text) {
        writeln!(out)?;
        match block {
            Block::Plot(_) => {}
            Block::Title(text) => writeln!(out, "## {}", markdown(text))?,
            Block::Line(text) => writeln!(out, "{}", markdown(text.trim_start()))?,
            Block::Warning(text) => writeln!(out, "> **!** {}", markdown(text))?,
            Block::Table { heads, rows } => {
                writeln!(out, "| {} |", heads.join(" | "))?;
                let rules: Vec<&str> = (0..heads.len())
                    .map(|i| if i == 0 { "---" } else { "---:" })
                    .collect();
                writeln!(out, "|{}|", rules.join("|"))?;
                for row in rows {
                    let cells: Vec<String> = row.iter().map(|c| markdown(c.trim_start())).collect();
                    writeln!(out, "| {} |", cells.join(" | "))?;
                }
            }
        }
    }
    Ok(())
}

/// Text that Markdown takes as text alone: no markup, no cell's end, no mention, no issue, no link.
fn markdown(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '&' => made.push_str("&amp;"),
            '<' => made.push_str("&lt;"),
            '>' => made.push_str("&gt;"),
            '@' => made.push_str("&#64;"),
            '#' => made.push_str("&#35;"),
            '|' => made.push_str("&#124;"),
            ':' if rest.peek() == Some(&'/') => made.push_str("&#58;"),
            '\\' | '`' | '*' | '[' | ']' | '~' | '$' | '!' | '_' => {
                made.push('\\');
                made.push(c);
            }
            '\n' | '\r' => made.push(' '),
            c => made.push(c),
        }
    }
    made
}

const STYLE: &str = "body{font:14px/1.5 sans-serif;max-width:70em;margin:1em auto;padding:0 1em}\
table{border-collapse:collapse;margin:.5em 0}th,td{padding:.1em .6em;text-align:right;border-bottom:1px solid #ccc;\
white-space:nowrap}th:first-child,td:first-child{text-align:left}p{margin:.2em 0;overflow-wrap:anywhere}\
.warn{font-weight:bold;color:#a00}div.t{overflow-x:auto}";

/// Layout of plots.
const PLOTS: &str = include_str!("plots.css");

/// One page without script or anything beside the file.
pub(super) fn write_html(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>faultscope compare</title>\n<style>{STYLE}{PLOTS}</style></head>\n<body>\n<h1>faultscope compare</h1>\n"
    )?;
    for block in &document.blocks {
        match block {
            Block::Title(text) => writeln!(out, "<h2>{}</h2>", escape(text))?,
            Block::Line(text) => writeln!(out, "<p>{}</p>", escape(text))?,
            Block::Warning(text) => writeln!(out, "<p class=\"warn\">! {}</p>", escape(text))?,
            Block::Plot(html) => out.write_all(html.as_bytes())?,
            Block::Table { heads, rows } => {
                out.write_all(b"<div class=\"t\"><table><tr>")?;
                for head in heads {
                    write!(out, "<th>{}</th>", escape(head))?;
                }
                out.write_all(b"</tr>\n")?;
                for row in rows {
                    out.write_all(b"<tr>")?;
                    for cell in row {
                        write!(out, "<td>{}</td>", escape(cell))?;
                    }
                    out.write_all(b"</tr>\n")?;
                }
                out.write_all(b"</table></div>\n")?;
            }
        }
    }
    out.write_all(b"</body></html>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        let document = Document {
            blocks: vec![
                Block::Line("<b>a|b</b> @me #1 [l](http://h) `c`".to_owned()),
                Block::Table {
                    heads: vec!["a"],
                    rows: vec![vec!["<script>|".to_owned()]],
                },
            ],
        };
        let mut out = Vec::new();
        write_markdown(&mut out, &document).expect("a vector takes all");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(
            text.contains("&lt;b&gt;a&#124;b")
                && text.contains("&#64;me &#35;1 \\[l\\](http&#58;//h)"),
            "{text}"
        );
        let mut out = Vec::new();
        write_html(&mut out, &document).expect("a vector takes all");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(
            !text.contains("<script") && text.contains("&lt;script&gt;|"),
            "{text}"
        );
    }
}
