//! Numbers with three significant digits and a unit.

const SI: &[&str] = &["", "k", "M", "G", "T", "P", "E"];
const TIME: &[&str] = &["ns", "us", "ms", "s"];
const BYTES: &[&str] = &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// A number in decimal thousands: 1234 reads `1.23k`.
#[must_use]
pub fn format_si(x: f64) -> String {
    scaled(x, 1000.0, SI)
}

/// A time given in ns: 3,200,000 reads `3.20ms`; seconds are not scaled on.
#[must_use]
pub fn format_ns(ns: f64) -> String {
    scaled(ns, 1000.0, TIME)
}

/// Bytes in binary steps: 1,268,777 reads `1.21MiB`.
#[must_use]
pub fn format_bytes(bytes: f64) -> String {
    scaled(bytes, 1024.0, BYTES)
}

/// A share as percent: 0.125 reads `12.5%`.
#[must_use]
pub fn format_ratio(ratio: f64) -> String {
    let pct = ratio * 100.0;
    if pct.abs() < 999.5 {
        format!("{}%", digits(pct, true))
    } else {
        format!("{pct:.0}%")
    }
}

fn scaled(x: f64, base: f64, units: &[&str]) -> String {
    if !x.is_finite() {
        return "-".to_owned();
    }
    let mut v = x;
    let mut step = 0;
    // 999.5 and more would round to four digits.
    while v.abs() >= 999.5 && step + 1 < units.len() {
        v /= base;
        step += 1;
    }
    // Beyond the last step by far: no quantity, but it has to fit.
    if v.abs() >= 1e9 {
        return format!("{x:.2e}{}", units.first().copied().unwrap_or_default());
    }
    let unit = units.get(step).copied().unwrap_or_default();
    format!("{}{unit}", digits(v, step == 0))
}

/// Three significant digits; whole numbers stay whole where `exact` says that
/// nothing was divided away.
fn digits(v: f64, exact: bool) -> String {
    let a = v.abs();
    if exact && v.fract().abs() < 1e-9 {
        // Adding zero turns a negative zero into a plain one.
        return format!("{:.0}", v + 0.0);
    }
    if a < 0.005 {
        "<0.01".to_owned()
    } else if a < 9.995 {
        format!("{v:.2}")
    } else if a < 99.95 {
        format!("{v:.1}")
    } else {
        format!("{v:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_at_every_step() {
        let si: Vec<_> = [
            0.0, 0.001, 0.5, 5.0, 12.34, 999.4, 999.5, 1000.0, 1234.0, 999_600.0, 2e9, 1.8e19,
            1e300,
        ]
        .iter()
        .map(|x| format_si(*x))
        .collect();
        assert_eq!(
            si,
            [
                "0", "<0.01", "0.50", "5", "12.3", "999", "1.00k", "1.00k", "1.23k", "1.00M",
                "2.00G", "18.0E", "1.00e300"
            ]
        );
    }

    #[test]
    fn times_bytes_and_shares() {
        assert_eq!(format_ns(0.0), "0ns");
        assert_eq!(format_ns(850.0), "850ns");
        assert_eq!(format_ns(3_200_000.0), "3.20ms");
        assert_eq!(format_ns(7.2e12), "7200s");
        assert_eq!(format_bytes(1023.0), "1.00KiB");
        assert_eq!(format_bytes(1_268_777.0), "1.21MiB");
        assert_eq!(format_ratio(0.125), "12.5%");
        assert_eq!(format_ratio(1.0), "100%");
        assert_eq!(format_ratio(0.0), "0%");
        assert_eq!(format_ratio(64.0), "6400%");
    }

    #[test]
    fn what_is_no_number_is_a_dash() {
        assert_eq!(format_si(f64::NAN), "-");
        assert_eq!(format_ns(f64::INFINITY), "-");
    }
}
