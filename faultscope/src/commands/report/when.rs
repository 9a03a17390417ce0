//! A point in time as a user writes it.

use std::str::FromStr;

use crate::render::time::parse_rfc3339;

/// ns in a second.
const SECOND: u64 = 1_000_000_000;
/// ns in a day.
const DAY: u64 = 86_400 * SECOND;

/// A point in time of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// After the start, ns.
    After(u64),
    /// Time of day, UTC, ns since midnight: the first such time from the start on.
    Clock(u64),
    /// ns since the Unix epoch.
    Real(u64),
}

impl When {
    /// ns after a start that was `start_real_ns` after the Unix epoch; what lies before
    /// is the start.
    #[must_use]
    pub fn after_start_ns(self, start_real_ns: u64) -> u64 {
        match self {
            Self::After(ns) => ns,
            Self::Clock(ns) => (ns + DAY - start_real_ns % DAY) % DAY,
            Self::Real(ns) => ns.saturating_sub(start_real_ns),
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        seconds(text)
            .map(Self::After)
            .or_else(|| clock(text).map(Self::Clock))
            .or_else(|| parse_rfc3339(text).map(Self::Real))
            .ok_or_else(|| {
                format!(
                    "\"{text}\" is no point in time: give seconds after the start (12.5), a time of day in UTC (12:03 or \
                     12:03:07), or both date and time (2026-11-30T12:03:07Z)"
                )
            })
    }
}

/// `12.5` or `12.5s`, at most ten years.
fn seconds(text: &str) -> Option<u64> {
    let number: f64 = text.strip_suffix('s').unwrap_or(text).parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in range"
    )]
    (0.0..=315_360_000.0)
        .contains(&number)
        .then_some((number * 1e9) as u64)
}

/// `12:03` or `12:03:07`.
fn clock(text: &str) -> Option<u64> {
    let parts: Vec<u64> = text
        .split(':')
        .map(|part| part.parse().ok().filter(|_| part.len() <= 2))
        .collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match parts[..] {
        [hours, minutes] => (hours, minutes, 0),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return None,
    };
    (hours < 24 && minutes < 60 && seconds < 60)
        .then(|| (hours * 3600 + minutes * 60 + seconds) * SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_times_of_day_and_dates_are_told_apart() {
        let start = 1_700_000_000 * SECOND; // 22:13:20 UTC
        for (text, after) in [
            ("0", 0),
            ("12.5", 12_500_000_000),
            ("90s", 90 * SECOND),
            ("22:14", 40 * SECOND),
            ("22:13:21", SECOND),
            ("00:00", 6_400 * SECOND),
            ("22:13", DAY - 20 * SECOND),
            ("2023-11-14T22:13:25Z", 5 * SECOND),
            ("2023-11-14T23:13:25+01:00", 5 * SECOND),
            ("2020-01-01T00:00:00Z", 0),
        ] {
            let when: When = text.parse().expect(text);
            assert_eq!(when.after_start_ns(start), after, "{text}");
        }
        for text in [
            "", "-1", "inf", "NaN", "1e99", "24:00", "1:2:3:4", "now", "12:003",
        ] {
            let error = text.parse::<When>().expect_err(text);
            assert!(error.contains("seconds after the start"), "{error}");
        }
    }
}
