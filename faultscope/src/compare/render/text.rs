//! The document as text that a mail carries unharmed: ASCII, at most 78 columns.

use std::io::{self, Write};

use super::WIDTH;
use super::document::{Block, Document};

pub(super) fn write(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    for block in &document.blocks {
        match block {
            Block::Title(text) => {
                writeln!(out)?;
                wrap(out, text, "", "")?;
            }
            Block::Line(text) => wrap(out, text, "", "")?,
            Block::Warning(text) => wrap(out, text, "! ", "  ")?,
            Block::Table { heads, rows } => table(out, heads, rows)?,
            Block::Plot(_) => {}
        }
    }
    Ok(())
}

/// Text in which every character but printable ASCII is a question mark.
pub(super) fn ascii(text: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_graphic() || c == ' ' {
            c
        } else {
            '?'
        }
    };
    text.chars().map(plain).collect()
}

/// Writes text in lines, those after the first indented by two blanks more than it; `first` stands before that one, `next`,
/// which is as long, before the others.
pub(super) fn wrap(out: &mut dyn Write, text: &str, first: &str, next: &str) -> io::Result<()> {
    let text = ascii(text);
    let indent = text.len() - text.trim_start().len();
    let below = format!("{next}{}", " ".repeat(indent + 2));
    let mut line = format!("{first}{}", " ".repeat(indent));
    let mut is_begun = false;
    let body = text.trim_start();
    for word in body.split(' ') {
        // What is longer than a line is cut into pieces.
        let mut rest = word;
        loop {
            let room = WIDTH.saturating_sub(line.len() + usize::from(is_begun));
            if rest.len() <= room {
                break;
            }
            let fits_below = rest.len() + below.len() <= WIDTH;
            if is_begun && (fits_below || room < 8) {
                writeln!(out, "{}", line.trim_end())?;
                line.clone_from(&below);
                is_begun = false;
                continue;
            }
            let (head, tail) = rest.split_at(room.max(1));
            if is_begun {
                line.push(' ');
            }
            line.push_str(head);
            writeln!(out, "{}", line.trim_end())?;
            line.clone_from(&below);
            is_begun = false;
            rest = tail;
        }
        if is_begun {
            line.push(' ');
        }
        line.push_str(rest);
        is_begun = true;
    }
    writeln!(out, "{}", line.trim_end())
}

/// Writes a table; a name too long for its column stands above its row.
fn table(out: &mut dyn Write, heads: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|c| ascii(c)).collect())
        .collect();
    let mut widths: Vec<usize> = heads.iter().map(|h| h.len()).collect();
    // What stands alone in its row may be as long as a line.
    let is_alone = |row: &[String]| row.iter().skip(1).all(String::is_empty);
    for row in rows.iter().filter(|row| !is_alone(row)) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.len());
        }
    }
    let others: usize = widths.iter().skip(1).map(|w| w + 1).sum();
    if let Some(first) = widths.first_mut() {
        *first = (*first).min(WIDTH.saturating_sub(others)).max(8);
    }
    let last = heads.len().saturating_sub(1);
    let heads: Vec<String> = heads.iter().map(|h| (*h).to_owned()).collect();
    for row in std::iter::once(&heads).chain(&rows) {
        if is_alone(row) {
            wrap(out, &row[0], "", "")?;
            continue;
        }
        let mut line = String::new();
        for (i, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            if i == 0 {
                // A long name has a line of its own.
                if cell.len() > width {
                    wrap(out, cell, "", "")?;
                }
                let shown = if cell.len() > width { "" } else { cell };
                line.push_str(&format!("{shown:<width$}"));
            } else if i == last && matches!(heads[i].as_str(), "verdict" | "") {
                line.push_str(&format!(" {cell}"));
            } else {
                line.push_str(&format!(" {cell:>width$}"));
            }
        }
        if line.trim_end().len() > WIDTH {
            wrap(out, &line, "", "")?;
        } else {
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        wrap(&mut out, text, "! ", "  ").expect("a vector takes all");
        String::from_utf8(out)
            .expect("ASCII")
            .lines()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn lines_are_short_and_ascii() {
        let long = format!(
            "{} {} end \u{2192} \u{1b}[31m",
            "word ".repeat(40),
            "x".repeat(200)
        );
        let found = lines(&long);
        assert!(found.len() > 4);
        for line in &found {
            assert!(line.len() <= WIDTH && line.is_ascii(), "{line}");
        }
        let all: String = found.join("").replace([' ', '!'], "");
        assert_eq!(all, ascii(&long).replace(' ', ""), "nothing is lost");
    }

    #[test]
    fn a_long_name_stands_above_its_row() {
        let mut out = Vec::new();
        let rows = [vec!["a".repeat(100), "1".repeat(30), "2".to_owned()]];
        table(&mut out, &["name", "value", "verdict"], &rows).expect("a vector takes all");
        let text = String::from_utf8(out).expect("ASCII");
        assert!(text.lines().all(|l| l.len() <= WIDTH), "{text}");
        // One more of "name" and of "value" each.
        assert_eq!(text.matches('a').count(), 102, "{text}");
    }
}
