//! Numbers as programs print them: the value, and the smallest step the text can show.

/// A number read from text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Printed {
    /// Value; finite.
    pub(super) value: f64,
    /// Digits after the point; an exponent counts against them.
    pub(super) decimals: i32,
}

impl Printed {
    /// Smallest difference the text can show.
    pub(super) fn resolution(self) -> f64 {
        step(self.decimals)
    }
}

/// Why a text is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotANumber {
    /// It holds a comma, which some locales write for the point and others between thousands.
    Comma,
    /// It is something else.
    Other,
}

impl NotANumber {
    /// The reason as a clause that follows the quoted text.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Comma => {
                "has a comma: a locale's decimal point or thousands separator, and nothing tells which; run the \
                 program with LC_ALL=C"
            }
            Self::Other => "is no number",
        }
    }
}

/// Ten to the power of `-decimals`.
pub(super) fn step(decimals: i32) -> f64 {
    10_f64.powi(decimals.saturating_neg())
}

/// Reads a decimal number: sign, digits, point, digits, exponent. Words such as `inf` and `nan` are none.
pub(super) fn parse(text: &str) -> Result<Printed, NotANumber> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(NotANumber::Other);
    }
    if text.contains(',') && text.bytes().all(|b| b"0123456789.,+-".contains(&b)) {
        return Err(NotANumber::Comma);
    }
    let value: f64 = text.parse().map_err(|_| NotANumber::Other)?;
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let fraction = mantissa.split_once('.').map_or(0, |(_, f)| f.len());
    // A finite value has an exponent far inside this range; the fraction is as long as the text.
    let exponent: i32 = exponent.parse().map_err(|_| NotANumber::Other)?;
    let decimals = i32::try_from(fraction)
        .unwrap_or(i32::MAX)
        .saturating_sub(exponent);
    let number = Printed { value, decimals };
    // `0e999` is zero, to the nearest infinity.
    if value.is_finite() && number.resolution().is_finite() {
        Ok(number)
    } else {
        Err(NotANumber::Other)
    }
}

/// Reads a whole number of digits only.
pub(super) fn parse_count(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_and_resolution() {
        for (text, value, resolution) in [
            ("12", 12.0, 1.0),
            ("-0.50", -0.5, 0.01),
            ("1.23e+04", 12300.0, 100.0),
            ("5e-3", 0.005, 0.001),
            (".5", 0.5, 0.1),
        ] {
            let number = parse(text).expect("a number");
            assert!((number.value - value).abs() < 1e-12, "{text}");
            assert!(
                (number.resolution() / resolution - 1.0).abs() < 1e-9,
                "{text}: {}",
                number.resolution()
            );
        }
    }

    #[test]
    fn what_is_no_number() {
        for text in [
            "", "-", "inf", "nan", "NaN", "infinity", "1e999", "0e999", "0x10", "1.2.3", "12s",
            "e5",
        ] {
            assert_eq!(parse(text), Err(NotANumber::Other), "{text}");
        }
        for text in ["0,80", "1,234.5", "1,234,567"] {
            assert_eq!(parse(text), Err(NotANumber::Comma), "{text}");
        }
        assert_eq!(
            (parse_count("17"), parse_count(""), parse_count("1.0")),
            (Some(17), None, None)
        );
        assert_eq!(parse_count("99999999999999999999999"), None);
    }
}
