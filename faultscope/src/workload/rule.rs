//! Figures taken by a regular expression: `--metric NAME[:UNIT][:higher|lower]=REGEX`.

use std::str::FromStr;

use regex::{Regex, RegexBuilder};

use super::found::Format;
use super::metric::{Direction, Metric};
use super::number;

/// Most a compiled expression may take, bytes; a larger one is refused with the reason.
const SIZE_LIMIT: usize = 1 << 20;

/// A figure to take from output by its own expression.
#[derive(Debug, Clone)]
pub struct MetricRule {
    name: String,
    unit: String,
    direction: Option<Direction>,
    regex: Regex,
}

impl PartialEq for MetricRule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.unit == other.unit
            && self.direction == other.direction
            && self.regex.as_str() == other.regex.as_str()
    }
}

impl Eq for MetricRule {}

impl FromStr for MetricRule {
    type Err = String;

    /// Parses `NAME[:UNIT][:higher|lower]=REGEX`; `^` and `$` match at each line, the first group is the value.
    fn from_str(text: &str) -> Result<Self, String> {
        let form =
            "write NAME[:UNIT][:higher|lower]=REGEX, for example 'tps:1/s:higher=tps: ([0-9.]+)'";
        let (head, pattern) = text
            .split_once('=')
            .ok_or_else(|| format!("\"{text}\" has no \"=\"; {form}"))?;
        let parts: Vec<&str> = head.split(':').map(str::trim).collect();
        let (name, unit, direction) = match parts.as_slice() {
            [name] => (*name, "", None),
            [name, last] => match direction(last) {
                Some(direction) => (*name, "", Some(direction)),
                None => (*name, *last, None),
            },
            [name, unit, last] => {
                let direction = direction(last).ok_or_else(|| {
                    format!("\"{last}\" is no direction: \"higher\" or \"lower\" is better; {form}")
                })?;
                (*name, *unit, Some(direction))
            }
            _ => return Err(format!("\"{head}\" has more than three parts; {form}")),
        };
        if name.is_empty() {
            return Err(format!("the metric has no name; {form}"));
        }
        let regex = RegexBuilder::new(pattern)
            .multi_line(true)
            .size_limit(SIZE_LIMIT)
            .build()
            .map_err(|error| format!("the expression of \"{name}\" cannot be used: {error}"))?;
        if regex.captures_len() < 2 {
            return Err(format!(
                "the expression of \"{name}\" has no group; put parentheses around the number, as in ([0-9.]+)"
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            unit: unit.to_owned(),
            direction,
            regex,
        })
    }
}

fn direction(word: &str) -> Option<Direction> {
    match word {
        "higher" => Some(Direction::Higher),
        "lower" => Some(Direction::Lower),
        _ => None,
    }
}

impl MetricRule {
    /// Name of the figure.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes the figure from `output`.
    ///
    /// An expression may match more than once if every match gives the same value.
    ///
    /// # Errors
    /// A sentence, if nothing matches, matches differ, or the first group is no finite number.
    pub fn apply(&self, output: &str) -> Result<Metric, String> {
        let mut found: Option<(&str, number::Printed)> = None;
        for captures in self.regex.captures_iter(output) {
            let Some(group) = captures.get(1) else {
                continue;
            };
            let text = group.as_str().trim();
            let value = number::parse(text).map_err(|error| {
                format!(
                    "metric \"{}\": \"{}\" {}",
                    self.name,
                    excerpt(text),
                    error.reason()
                )
            })?;
            match found {
                None => found = Some((text, value)),
                // Printed alike or not, it is one value if it is equal.
                Some((_, first)) if (first.value - value.value).abs() == 0.0 => {}
                Some((first, _)) => {
                    return Err(format!(
                        "metric \"{}\": its expression matches \"{}\" and \"{}\"; make it match one of them only",
                        self.name,
                        excerpt(first),
                        excerpt(text)
                    ));
                }
            }
        }
        let (_, value) = found.ok_or_else(|| {
            format!(
                "metric \"{}\": its expression matches nothing in the output",
                self.name
            )
        })?;
        Ok(Metric {
            direction: self.direction,
            ..Metric::printed(Format::Rules, &self.name, value, &self.unit)
        })
    }
}

/// The start of foreign text, as a message may quote it.
fn excerpt(text: &str) -> String {
    let clean: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
    if clean.chars().count() < text.chars().count() {
        format!("{clean}...")
    } else {
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> MetricRule {
        text.parse().expect("a rule")
    }

    #[test]
    fn parts_of_a_rule() {
        let all = rule("queries/s:1/s:higher=qps: ([0-9.]+)");
        assert_eq!(
            (all.name(), all.unit.as_str(), all.direction),
            ("queries/s", "1/s", Some(Direction::Higher))
        );
        let bare = rule("tps=tps=([0-9]+)");
        assert_eq!((bare.unit.as_str(), bare.direction), ("", None));
        assert_eq!(
            bare.regex.as_str(),
            "tps=([0-9]+)",
            "only the first \"=\" divides"
        );
        assert_eq!(rule("t:lower=(x)").direction, Some(Direction::Lower));
        assert_eq!(rule("t:ms=(x)").unit, "ms");
    }

    #[test]
    fn what_is_refused_says_why() {
        for (text, phrase) in [
            ("tps", "has no \"=\""),
            ("=([0-9])", "has no name"),
            ("a:b:c=([0-9])", "\"c\" is no direction"),
            ("a:b:lower:d=([0-9])", "more than three parts"),
            ("a=[0-9]+", "has no group"),
            ("a=([0-9]", "cannot be used"),
            ("a=(\\w{1000}{1000})", "cannot be used"),
        ] {
            let error = text.parse::<MetricRule>().expect_err("refused");
            assert!(error.contains(phrase), "{text}: {error}");
        }
    }

    #[test]
    fn the_first_group_is_the_value() {
        let metric = rule("lat:ms:lower=^lat ([0-9.]+) (ms)")
            .apply("x\nlat 1.50 ms\n")
            .expect("found");
        assert!((metric.value - 1.5).abs() < 1e-12 && (metric.resolution - 0.01).abs() < 1e-12);
        assert_eq!(
            (metric.unit.as_str(), metric.direction, metric.work),
            ("ms", Some(Direction::Lower), None)
        );
        assert_eq!(metric.format, "regex");
    }

    #[test]
    fn matches_that_agree_are_one_value_and_others_are_ambiguous() {
        let tps = rule("tps=tps: ([0-9.]+)");
        assert!((tps.apply("tps: 5.0\ntps: 5.00").expect("equal").value - 5.0).abs() < 1e-12);
        let error = tps.apply("tps: 5\ntps: 6\n").expect_err("differ");
        assert!(error.contains("\"5\" and \"6\""), "{error}");
    }

    #[test]
    fn nothing_words_and_commas_are_reasons() {
        for (output, phrase) in [
            ("", "matches nothing"),
            ("v=abc", "\"abc\" is no number"),
            ("v=inf", "is no number"),
            ("v=0,80", "LC_ALL=C"),
        ] {
            let error = rule("v=v=(.*)").apply(output).expect_err("refused");
            assert!(error.contains(phrase), "{output}: {error}");
        }
        // A group that took no part in the match gives nothing.
        assert!(
            rule("v=a(b)?")
                .apply("a")
                .expect_err("refused")
                .contains("matches nothing")
        );
    }
}
