//! Names of figures in one word, short enough for a line and still told apart.

use std::collections::BTreeSet;

use super::super::super::headline::{Row, Shown};
use super::super::text::ascii;
use super::is_seconds;
use crate::model::Unit;
use crate::workload::unit_of;

/// What a figure is called in a table of one word per name.
pub(super) struct Name {
    /// In full: the workload's configuration, the figure, and its unit where the figure does not tell.
    pub(super) full: String,
}

impl Name {
    pub(super) fn new(row: &Row) -> Self {
        let (id, cell) = (id(row), row.cell.replace(", ", "."));
        let full = if cell.is_empty() {
            id
        } else {
            format!("{cell}.{id}")
        };
        Self { full: word(&full) }
    }

    /// The name of a row of a table of mmtests, as that has it: `faults/sec-4` is of 4 clients.
    pub(super) fn of_mmtests(row: &Row) -> Self {
        match statistic(row).and_then(|(_, rest)| rest.strip_prefix("clients ")) {
            Some(clients) if clients.bytes().all(|b| b.is_ascii_digit()) => Self {
                full: format!("{}-{clients}", word(&id(row))),
            },
            _ if statistic(row).is_some_and(|(_, rest)| rest.is_empty()) => Self {
                full: word(&id(row)),
            },
            _ => Self::new(row),
        }
    }
}

/// The statistic that a row is of, as `Hmean`, and the rest of its configuration; `None` if it is of none.
pub(super) fn statistic(row: &Row) -> Option<(&str, &str)> {
    let rest = row.cell.strip_prefix("statistic ")?;
    Some(rest.split_once(", ").unwrap_or((rest, "")))
}

/// The figure, with its unit where it does not tell.
fn id(row: &Row) -> String {
    let mut id = row.id.clone();
    if is_seconds(row) && id.ends_with("_ns") {
        id.truncate(id.len() - "_ns".len());
        id.push_str("_s");
    }
    let unit = match &row.shown {
        Shown::In(unit) => unit.as_str(),
        Shown::Of(Unit::Ns) if is_seconds(row) => "s",
        Shown::Of(Unit::Ns) => "ns",
        Shown::Of(Unit::Bytes) => "bytes",
        Shown::Of(Unit::PerSec) => "1/s",
        Shown::Of(_) => "",
    };
    // A count is what a name without unit is.
    let unit = if unit == "count" { "" } else { unit };
    if unit_of(&id) != unit {
        match unit {
            "1/s" => id.push_str("/s"),
            "%" => id.push('%'),
            "s" | "ms" | "us" | "ns" | "bytes" => {
                id.push('_');
                id.push_str(unit);
            }
            // A table of one word per name has no place for others.
            _ => {}
        }
    }
    id.replace(' ', "_")
}

/// One word that begins with a letter, and does not end as mmtests ends a number of clients.
fn word(name: &str) -> String {
    let mut made = ascii(name).replace(' ', "-");
    if !made.starts_with(|c: char| c.is_ascii_alphabetic()) {
        made.insert_str(0, "x.");
    }
    if let Some((head, tail)) = made.rsplit_once('-')
        && !tail.is_empty()
        && tail.bytes().all(|b| b.is_ascii_digit())
    {
        made = format!("{head}_{tail}");
    }
    made
}

/// Names shortened to what a line has room for: the middle of a long one is a `~`.
#[derive(Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
    /// What was shortened: the short name and the full one.
    pub(super) shortened: Vec<(String, String)>,
}

impl Names {
    /// The name in at most `room` columns, unlike every one given before.
    pub(super) fn fit(&mut self, name: &Name, room: usize) -> String {
        let full = &name.full;
        if full.len() <= room && self.taken.insert(full.clone()) {
            return full.clone();
        }
        for number in 1_usize.. {
            let mark = if number == 1 {
                "~".to_owned()
            } else {
                format!("~{number}~")
            };
            let kept = room.saturating_sub(mark.len()).max(2);
            // The end tells the figure and its unit.
            let head = (kept / 3).max(1).min(full.len());
            let tail = (kept - head).min(full.len() - head);
            let short = format!("{}{mark}{}", &full[..head], &full[full.len() - tail..]);
            if self.taken.insert(short.clone()) {
                self.shortened.push((short.clone(), full.clone()));
                return short;
            }
        }
        full.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_stay_apart_and_keep_their_units() {
        let mut names = Names::default();
        let name = |text: &str| Name { full: word(text) };
        let of_threads = |n: u32| format!("configuration a.threads-{n}.some long figure_ns");
        let made: Vec<String> = (100..140)
            .map(|n| names.fit(&name(&of_threads(n)), 24))
            .collect();
        let unique: BTreeSet<&String> = made.iter().collect();
        assert_eq!(unique.len(), made.len());
        for short in &made {
            assert!(short.len() <= 24 && short.contains('~'), "{short}");
            assert_eq!(unit_of(short), "ns", "{short}");
        }
        assert_eq!(names.shortened.len(), 40);
        assert_eq!(names.fit(&name("faults"), 24), "faults");
        // The same name twice is two figures.
        assert_ne!(names.fit(&name("faults"), 24), "faults");
    }

    #[test]
    fn a_name_is_one_word_that_no_parser_takes_for_another() {
        assert_eq!(word("threads 4.p 99"), "threads-4.p_99");
        assert_eq!(word("4k.faults"), "x.4k.faults");
        assert_eq!(word("gr\u{f6}\u{df}e"), "gr??e");
    }
}
