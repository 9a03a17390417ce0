//! One cell as text, and strings made safe and fitting for a fixed width.

use super::number::{format_bytes, format_ns, format_ratio, format_si};
use crate::model::{Field, Kind, Unit, Value};
use crate::name::{REPLACEMENT, is_unsafe};
use std::borrow::Cow;

#[cfg(test)]
thread_local! {
    /// Cells formatted by this thread; tests hold drawing to the visible rows.
    pub(crate) static FORMATTED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// What stands where nothing was measured.
pub const ABSENT: &str = "-";

/// The increment of a counter per second; `None` for other kinds and absence.
#[must_use]
pub fn per_second(field: &Field, value: &Value, interval_secs: f64) -> Option<f64> {
    match field.kind {
        Kind::Counter => value
            .number()
            .map(|n| n / interval_secs)
            .filter(|x| x.is_finite()),
        Kind::Key | Kind::Gauge => None,
    }
}

/// A cell as text: counters per second, gauges as they are, absence a dash.
///
/// Control and bidirectional characters are replaced, whatever was done
/// upstream.
#[must_use]
pub fn format_cell(field: &Field, value: &Value, interval_secs: f64) -> String {
    #[cfg(test)]
    FORMATTED.with(|n| n.set(n.get() + 1));
    if let Some(rate) = per_second(field, value, interval_secs) {
        return match field.unit {
            Unit::Ns => format!("{}/s", format_ns(rate)),
            Unit::Bytes => format!("{}/s", format_bytes(rate)),
            Unit::Ratio => format_ratio(rate),
            Unit::None | Unit::Events | Unit::Pages | Unit::PerSec | Unit::Number => {
                format_si(rate)
            }
        };
    }
    format_total(field, value)
}

/// A cell as it is: the increment of a counter, not its rate.
#[must_use]
pub fn format_total(field: &Field, value: &Value) -> String {
    match (value, value.number()) {
        (Value::Text(t), _) => scrub(t).into_owned(),
        // Ids and CPU numbers are read digit by digit.
        (Value::Count(n), _) if matches!(field.unit, Unit::Number | Unit::None) => n.to_string(),
        (_, Some(x)) => match field.unit {
            Unit::Ns => format_ns(x),
            Unit::Bytes => format_bytes(x),
            Unit::Ratio => format_ratio(x),
            Unit::None | Unit::Events | Unit::Pages | Unit::PerSec | Unit::Number => format_si(x),
        },
        (_, None) => ABSENT.to_owned(),
    }
}

/// True for columns whose text stands at the right edge.
#[must_use]
pub fn is_right_aligned(field: &Field) -> bool {
    field.unit != Unit::None
}

/// Replaces what [`crate::name`] calls unsafe; ordinary text is not copied.
///
/// Names were scrubbed where they entered. This is for the reader who finds the
/// one that was not: nothing reaches a terminal without passing here.
#[must_use]
pub fn scrub(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unsafe) {
        Cow::Owned(
            text.chars()
                .map(|c| if is_unsafe(c) { REPLACEMENT } else { c })
                .collect(),
        )
    } else {
        Cow::Borrowed(text)
    }
}

/// Terminal cells a string takes.
#[must_use]
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Cells of one character: 0 for combining marks, 2 for East Asian wide and
/// emoji blocks, else 1 (Unicode 16 EastAsianWidth.txt, by block).
fn char_width(c: char) -> usize {
    match c {
        ' '..='\u{2ff}' => 1,
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}' | '\u{20d0}'..='\u{20f0}' => 0,
        '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{33ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{a4cf}'
        | '\u{a960}'..='\u{a97c}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff01}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f900}'..='\u{1f9ff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// A string cut and padded to exactly `cells`; what is cut off is marked with
/// `mark`. Paths keep their end, other text its beginning.
#[must_use]
pub fn align(text: &str, cells: usize, right: bool, mark: char) -> String {
    let full = width(text);
    let shown = if full <= cells {
        text.to_owned()
    } else if text.starts_with('/') {
        cut_front(text, cells, mark)
    } else {
        cut_back(text, cells, mark)
    };
    let pad = " ".repeat(cells.saturating_sub(width(&shown)));
    if right { pad + &shown } else { shown + &pad }
}

fn cut_back(text: &str, cells: usize, mark: char) -> String {
    let room = cells.saturating_sub(1);
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += char_width(c);
        if used > room {
            break;
        }
        out.push(c);
    }
    if cells > 0 {
        out.push(mark);
    }
    out
}

fn cut_front(text: &str, cells: usize, mark: char) -> String {
    let room = cells.saturating_sub(1);
    let mut kept: Vec<char> = Vec::new();
    let mut used = 0;
    for c in text.chars().rev() {
        used += char_width(c);
        if used > room {
            break;
        }
        kept.push(c);
    }
    let mark = (cells > 0).then_some(mark);
    mark.into_iter().chain(kept.into_iter().rev()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::field;
    use proptest::prelude::*;

    #[test]
    fn counters_are_per_second_and_gauges_plain() {
        let two = 2.0;
        assert_eq!(
            format_cell(&field::FAULTS_N, &Value::Count(2468), two),
            "1.23k"
        );
        assert_eq!(
            format_cell(&field::WAIT_NS, &Value::Count(6_400_000), two),
            "3.20ms/s"
        );
        assert_eq!(
            format_cell(&field::MADV_BYTES, &Value::Count(4096), two),
            "2.00KiB/s"
        );
        assert_eq!(
            format_cell(&field::WAIT_MAX_NS, &Value::Count(6_400_000), two),
            "6.40ms"
        );
        assert_eq!(
            format_cell(&field::PID, &Value::Count(4_194_304), two),
            "4194304"
        );
        assert_eq!(
            format_total(&field::WAIT_NS, &Value::Count(6_400_000)),
            "6.40ms"
        );
        assert_eq!(format_cell(&field::SHARE, &Value::Real(0.5), two), "50%");
        assert_eq!(
            format_cell(&field::VALUE, &Value::Real(12_345.0), two),
            "12.3k"
        );
    }

    #[test]
    fn absence_is_a_dash_for_every_field() {
        for f in field::ALL {
            assert_eq!(format_cell(f, &Value::Absent, 1.0), ABSENT, "{}", f.id);
            assert_eq!(per_second(f, &Value::Absent, 1.0), None, "{}", f.id);
        }
        assert_eq!(format_cell(&field::FAULTS_N, &Value::Count(0), 1.0), "0");
    }

    #[test]
    fn hostile_text_is_replaced() {
        let bad = "a\u{1b}[31m\u{9b}2J\u{202e}b\r\n\u{7f}";
        assert_eq!(scrub(bad), "a�[31m�2J�b���");
        assert!(matches!(scrub("plain /path"), Cow::Borrowed(_)));
    }

    #[test]
    fn paths_keep_their_end() {
        assert_eq!(
            align("/system.slice/a.service", 12, false, '…'),
            "…e/a.service"
        );
        assert_eq!(align("long name here", 8, false, '~'), "long na~");
        assert_eq!(align("7", 3, true, '~'), "  7");
        assert_eq!(align("日本語", 4, false, '~'), "日~ ");
        assert_eq!(align("abc", 0, false, '~'), "");
    }

    proptest! {
        #[test]
        fn aligned_text_has_its_width(s in ".{0,20}", cells in 0_usize..30, right: bool) {
            prop_assert_eq!(width(&align(&scrub(&s), cells, right, '~')), cells);
        }

        #[test]
        fn scrubbed_text_holds_no_control(s in ".{0,40}") {
            prop_assert!(!scrub(&s).chars().any(is_unsafe));
        }
    }
}
