//! Text as mail leaves it, made whole again before anything reads it.
//!
//! Undone are, in this order: quoted-printable, HTML entities, quote marks (`> `, `| `), carriage returns and no-break
//! spaces. Collapsed blanks cannot be undone, so parsers never rely on how many there are.

use std::borrow::Cow;

use crate::name::{REPLACEMENT, is_unsafe};

/// Length of lines that an encoder of quoted-printable breaks softly, from and to, without the mark.
const SOFT_BREAK: std::ops::RangeInclusive<usize> = 60..=76;

/// Longest entity between `&` and `;` worth a look.
const ENTITY: usize = 8;

/// Replaces what must not reach a screen; lines and tabs stay, and so does their number.
#[must_use]
pub fn scrub(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        out.extend(line.chars().map(|c| {
            if c != '\t' && is_unsafe(c) {
                REPLACEMENT
            } else {
                c
            }
        }));
        out.push('\n');
    }
    out
}

/// Undoes what mail does to text, and [`scrub`]s it. Line numbers stay: a line joined from two is followed by an empty one.
#[must_use]
pub fn undo(text: &str) -> String {
    let text = if is_quoted_printable(text) {
        Cow::Owned(decode_quoted_printable(text))
    } else {
        Cow::Borrowed(text)
    };
    let text = if text.contains('&') {
        Cow::Owned(decode_entities(&text))
    } else {
        text
    };
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim_end_matches('\r');
        out.extend(strip_marks(line).chars().map(|c| match c {
            '\u{a0}' => ' ',
            '\t' => c,
            c if is_unsafe(c) => REPLACEMENT,
            c => c,
        }));
        out.push('\n');
    }
    out
}

/// The line without the quote marks before it and the one blank after each.
fn strip_marks(line: &str) -> &str {
    let mut rest = line;
    loop {
        let inner = rest.trim_start_matches([' ', '\t']);
        let after = if let Some(after) = inner.strip_prefix('>') {
            after
        } else if let Some(after) = inner.strip_prefix('|')
            && after.chars().next().is_none_or(|c| " \t>|".contains(c))
        {
            after
        } else {
            return rest;
        };
        rest = after.strip_prefix([' ', '\t']).unwrap_or(after);
    }
}

/// Whether every `=` is one of quoted-printable and at least one can be nothing else.
///
/// `--threads=16` alone also looks like an escape; `=3D`, which stands for the sign itself, does not occur by chance.
fn is_quoted_printable(text: &str) -> bool {
    let mut is_certain = false;
    for line in text.split('\n') {
        let line = line.trim_end_matches('\r').as_bytes();
        let mut i = 0;
        while let Some(offset) = line[i..].iter().position(|&b| b == b'=') {
            let at = i + offset;
            match &line[at + 1..] {
                [] => {
                    is_certain |= SOFT_BREAK.contains(&at);
                    i = at + 1;
                }
                [high, low, rest @ ..] => {
                    let Some(byte) = hex_byte(*high, *low) else {
                        return false;
                    };
                    is_certain |= byte >= 0x80 || byte == b'=' || (byte == b' ' && rest.is_empty());
                    i = at + 3;
                }
                [_] => return false,
            }
        }
    }
    is_certain
}

fn decode_quoted_printable(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    // Breaks owed to the next hard one, so that line numbers stay.
    let mut owed = 0;
    for line in text.split_inclusive('\n') {
        let is_ended = line.ends_with('\n');
        let line = line.trim_end_matches(['\r', '\n']);
        let (line, is_soft) = match line.strip_suffix('=') {
            Some(line) if is_ended => (line, true),
            _ => (line, false),
        };
        let mut rest = line.as_bytes();
        while let Some((&first, tail)) = rest.split_first() {
            if first == b'='
                && let [high, low, after @ ..] = tail
                && let Some(byte) = hex_byte(*high, *low)
            {
                // A line that is broken inside is none of the text's lines.
                bytes.push(if byte.is_ascii_control() && byte != b'\t' {
                    b' '
                } else {
                    byte
                });
                rest = after;
            } else {
                bytes.push(first);
                rest = tail;
            }
        }
        if is_soft {
            owed += 1;
        } else if is_ended {
            bytes.resize(bytes.len() + 1 + owed, b'\n');
            owed = 0;
        }
    }
    if owed > 0 {
        let open = usize::from(!text.ends_with('\n'));
        bytes.resize(bytes.len() + owed + open, b'\n');
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Value of two upper-case hexadecimal digits, which is how the encoding writes them.
fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |b: u8| match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'A'..=b'F' => Some(b - b'A' + 10),
        _ => None,
    };
    Some(digit(high)? << 4 | digit(low)?)
}

fn decode_entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // Entities are ASCII, so the search may stop at the first other byte.
        let end = rest.bytes().take(ENTITY + 2).position(|b| b == b';');
        match end.and_then(|end| Some((entity(&rest[1..end])?, end))) {
            Some((c, end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            // A control character would not have survived the mail, nor is it wanted.
            char::from_u32(code).filter(|c| !c.is_control())?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quote_marks_go_and_text_stays() {
        for (damaged, whole) in [
            ("> 1 10 8", "1 10 8"),
            (">> > 1 10", "1 10"),
            ("  >  1 10", " 1 10"),
            ("| a", "a"),
            ("> | a", "a"),
            ("|", ""),
            ("0.374 |**   14", "0.374 |**   14"),
            ("|a", "|a"),
            ("a > b", "a > b"),
            ("x\r", "x"),
            ("a\u{a0}b", "a b"),
        ] {
            assert_eq!(undo(damaged), format!("{whole}\n"), "{damaged:?}");
        }
    }

    #[test]
    fn quoted_printable_is_decoded_only_where_it_is_certain() {
        assert_eq!(undo("tps=3D5 =C2=B1 2"), "tps=5 \u{b1} 2\n");
        assert_eq!(undo("a=20\nb"), "a \nb\n");
        // An option looks like an escape; a row of signs does not.
        for text in [
            "--threads=16 run",
            "a =\nb",
            "====\nx=3D",
            "=3D x=1g",
            "=3d",
        ] {
            assert_eq!(undo(text), format!("{text}\n"));
        }
    }

    #[test]
    fn soft_breaks_join_lines_and_keep_their_number() {
        let long = "x".repeat(75);
        assert_eq!(undo(&format!("{long}=\ny\nz")), format!("{long}y\n\nz\n"));
        assert_eq!(undo("=3D=\n=C2=B1"), "=\u{b1}\n\n");
        assert_eq!(undo("=3D=\nx=\n"), "=x\n\n");
        assert_eq!(undo("=3Da=0Ab"), "=a b\n", "no line comes of an escape");
    }

    #[test]
    fn entities_are_decoded_once() {
        assert_eq!(undo("&gt; 1&nbsp;2 &amp;lt; &#39;&#x41;"), "1 2 &lt; 'A\n");
        for text in [
            "&",
            "a & b;",
            "&#0;",
            "&#xffffffff;",
            "&unknown;",
            "&\u{e4}\u{e4}\u{e4};",
        ] {
            assert_eq!(undo(text), format!("{text}\n"));
        }
    }

    #[test]
    fn what_would_move_the_cursor_is_replaced() {
        assert_eq!(undo("a\u{1b}[2Jb\tc\r"), "a\u{fffd}[2Jb\tc\n");
        assert_eq!(scrub("> a\u{1b}\r\nb\tc"), "> a\u{fffd}\nb\tc\n");
    }

    #[test]
    fn whole_text_is_left_alone() {
        let text = "a\n\n\tb: c\n  0.00user\n";
        assert_eq!(undo(text), text);
        assert_eq!(undo(""), "");
    }
}
