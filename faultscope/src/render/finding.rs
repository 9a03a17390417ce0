//! A finding as text: its sentence, its numbers, and the next command.

use super::cell::{ABSENT, scrub, width};
use super::number::{format_bytes, format_ns, format_ratio, format_si};
use crate::model::finding::{Evidence, Finding};
use crate::model::{Unit, Value};

/// What a line of a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The title.
    Title,
    /// The sentence.
    Text,
    /// The numbers.
    Evidence,
    /// The next command.
    Next,
}

/// A finding in lines of at most `cells`, long words apart.
#[must_use]
pub fn lines(finding: &Finding, cells: usize) -> Vec<(Part, String)> {
    let numbers: Vec<String> = finding.evidence.iter().map(evidence).collect();
    let parts = [
        (Part::Title, finding.title.to_owned()),
        (Part::Text, finding.text.clone()),
        (Part::Evidence, numbers.join(", ")),
        (Part::Next, format!("next: {}", finding.next)),
    ];
    parts
        .into_iter()
        .flat_map(|(part, text)| {
            let lines = wrap(&scrub(&text), cells);
            lines.into_iter().map(move |line| (part, line))
        })
        .collect()
}

/// One number with its name: `fault_wait_ns` of 12,000,000 reads `fault wait 12.0ms`.
#[must_use]
pub fn evidence(evidence: &Evidence) -> String {
    let suffix = match evidence.unit {
        Unit::Ns => "_ns",
        Unit::Bytes => "_bytes",
        Unit::Ratio => "_ratio",
        _ => "",
    };
    let name = evidence.name.strip_suffix(suffix);
    let name = name.unwrap_or(evidence.name).replace('_', " ");
    let value = match (&evidence.value, evidence.value.number()) {
        (Value::Text(text), _) => text.clone(),
        (_, None) => ABSENT.to_owned(),
        (_, Some(x)) => match evidence.unit {
            Unit::Ns => format_ns(x),
            Unit::Bytes => format_bytes(x),
            Unit::Ratio => format_ratio(x),
            _ => format_si(x),
        },
    };
    format!("{name} {value}")
}

/// Breaks text at blanks into lines of at most `cells`; longer words stand alone.
#[must_use]
pub fn wrap(text: &str, cells: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= cells => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_to_the_width_and_lose_no_word() {
        let finding = Finding {
            id: "a",
            title: "a title",
            text: "one sentence with its numbers, long enough for two lines.".to_owned(),
            evidence: vec![
                Evidence {
                    name: "fault_wait_ns",
                    value: Value::Count(12_000_000),
                    unit: Unit::Ns,
                },
                Evidence {
                    name: "by_faults_ratio",
                    value: Value::Real(0.5),
                    unit: Unit::Ratio,
                },
                Evidence {
                    name: "writer",
                    value: Value::Text("a\u{1b}[31m".to_owned()),
                    unit: Unit::None,
                },
            ],
            next: "faultscope top --view blocked",
        };
        let made = lines(&finding, 30);
        assert!(made.iter().all(|(_, line)| width(line) <= 30), "{made:?}");
        let of = |part| {
            let lines = made.iter().filter(|(p, _)| *p == part);
            lines
                .map(|(_, line)| line.as_str())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(of(Part::Text), finding.text);
        assert_eq!(
            of(Part::Evidence),
            "fault wait 12.0ms, by faults 50%, writer a\u{fffd}[31m"
        );
        assert_eq!(of(Part::Next), "next: faultscope top --view blocked");
        assert_eq!(wrap("", 10), [""; 0]);
    }
}
