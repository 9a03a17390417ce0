//! Output formats by name.
//!
//! All commands share one list of names; a command names the ones it has when it is asked for another.

use super::choice;

/// Every format of any command, in the order of the documentation.
pub const NAMES: [&str; 8] = [
    "text",
    "csv",
    "jsonl",
    "json",
    "md",
    "html",
    "folded",
    "flamegraph",
];

/// The formats of `top`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopFormat {
    /// Aligned text for people.
    Text,
    /// Comma-separated values.
    Csv,
    /// One JSON object per interval.
    Jsonl,
}

const TOP: [(&str, TopFormat); 3] = [
    ("text", TopFormat::Text),
    ("csv", TopFormat::Csv),
    ("jsonl", TopFormat::Jsonl),
];

/// Parses the format of `top`.
///
/// # Errors
/// A sentence that tells a format `top` lacks from one that does not exist.
pub(super) fn parse_top(name: &str) -> Result<TopFormat, String> {
    if let Some((_, format)) = TOP.iter().find(|(known, _)| *known == name) {
        return Ok(*format);
    }
    let has = TOP.map(|(known, _)| known);
    Err(if NAMES.contains(&name) {
        format!("top does not write \"{name}\"; it writes {}", choice(&has))
    } else {
        format!("there is no format \"{name}\"; top writes {}", choice(&has))
    })
}
