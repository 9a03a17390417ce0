//! Output formats by name: the one list of `export`, less those a command lacks.

use crate::export::Format;

use super::choice;

/// Parses the format of `top`.
///
/// # Errors
/// A sentence that tells a format `top` lacks from one that does not exist.
pub(super) fn parse_top(name: &str) -> Result<Format, String> {
    let has = Format::TOP.map(Format::id);
    match name.parse::<Format>() {
        Ok(format) if Format::TOP.contains(&format) => Ok(format),
        Ok(_) => Err(format!(
            "top does not write \"{name}\"; it writes {}",
            choice(&has)
        )),
        Err(_) => Err(format!(
            "there is no format \"{name}\"; top writes {}",
            choice(&has)
        )),
    }
}

/// Parses the format of `report`, which writes all there are.
///
/// # Errors
/// A sentence with the formats.
pub(super) fn parse_report(name: &str) -> Result<Format, String> {
    name.parse().map_err(|_| {
        format!(
            "there is no format \"{name}\"; report writes {}",
            choice(&Format::ALL.map(Format::id))
        )
    })
}
