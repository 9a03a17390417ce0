//! Points in time as text, always UTC.

use jiff::Timestamp;

fn timestamp(t_real_ns: u64) -> Timestamp {
    // Every u64 of nanoseconds lies before the year 2555, which jiff holds.
    Timestamp::from_nanosecond(i128::from(t_real_ns)).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// RFC 3339 with nanoseconds, from ns since the Unix epoch.
#[must_use]
pub fn format_rfc3339(t_real_ns: u64) -> String {
    format!("{:.9}", timestamp(t_real_ns))
}

/// ns since the Unix epoch of a date and time with its zone; `None` for other text
/// and what lies before 1970.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let at: Timestamp = text.parse().ok()?;
    u64::try_from(at.as_nanosecond()).ok()
}

/// Time of day, `12:03:07Z`.
#[must_use]
pub fn format_clock(t_real_ns: u64) -> String {
    let whole = format!("{:.0}", timestamp(t_real_ns));
    whole
        .split_once('T')
        .map_or_else(String::new, |(_, clock)| clock.to_owned())
}

/// Minutes and seconds behind the present: `-00:42`, with hours once needed.
#[must_use]
pub fn format_behind(ns: u64) -> String {
    format!("-{}", format_span(ns))
}

/// Minutes and seconds: `00:42`, with hours once needed.
#[must_use]
pub fn format_span(ns: u64) -> String {
    let s = ns / 1_000_000_000;
    let (h, m, s) = (s / 3600, s / 60 % 60, s % 60);
    if h > 0 {
        format!("{h}:{m:02}:{s:02}")
    } else {
        format!("{m:02}:{s:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_spans() {
        let t = 1_700_000_000_123_456_789;
        assert_eq!(format_rfc3339(t), "2023-11-14T22:13:20.123456789Z");
        assert_eq!(parse_rfc3339(&format_rfc3339(t)), Some(t));
        assert_eq!(parse_rfc3339("1969-12-31T23:59:59Z"), None);
        assert_eq!(format_clock(t), "22:13:20Z");
        assert_eq!(format_behind(42_900_000_000), "-00:42");
        assert_eq!(format_behind(3_725_000_000_000), "-1:02:05");
        assert!(format_rfc3339(u64::MAX).starts_with("2554-"));
    }
}
