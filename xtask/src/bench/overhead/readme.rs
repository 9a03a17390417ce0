//! The part of README.md that is measured, between two marks.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

const BEGIN: &str = "<!-- bench overhead: begin -->";
const END: &str = "<!-- bench overhead: end -->";

/// Puts `part` between the marks of the file.
pub(super) fn write(file: &Path, part: &str) -> Result<()> {
    let text =
        fs::read_to_string(file).with_context(|| format!("reading \"{}\"", file.display()))?;
    let text = replace(&text, part).with_context(|| {
        format!(
            "\"{}\" needs the lines \"{BEGIN}\" and \"{END}\", in this order",
            file.display()
        )
    })?;
    fs::write(file, text).with_context(|| format!("writing \"{}\"", file.display()))
}

fn replace(text: &str, part: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{part}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let text = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let new = replace(&text, "new\n").expect("both marks");
        assert_eq!(new, format!("a\n{BEGIN}\nnew\n{END}\nb\n"));
        assert_eq!(replace(&new, "new\n"), Some(new));
        assert_eq!(replace("no marks", "new\n"), None);
    }
}
