//! Starting other programs, with errors that name them.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Runs a program to its end on this terminal; an exit status other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("starting {}", name(command)))?;
    if !status.success() {
        bail!(
            "{} failed ({status}); its own messages are above",
            name(command)
        );
    }
    Ok(())
}

/// Runs a program to its end and returns what it wrote to standard output.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("starting {}", name(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{} failed ({}): {}",
            name(command),
            output.status,
            said.trim()
        );
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("{} did not print UTF-8", name(command)))
}

/// The program and its arguments as one quoted text.
pub(crate) fn name(command: &Command) -> String {
    let words: Vec<_> = [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .map(|w| w.to_string_lossy())
        .collect();
    format!("\"{}\"", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_and_absence_are_told_apart() {
        let failed = run(&mut Command::new("false"))
            .expect_err("false fails")
            .to_string();
        assert!(
            failed.contains("\"false\" failed (exit status: 1)"),
            "{failed}"
        );
        let program = "./absent-program";
        let absent = run(&mut Command::new(program))
            .expect_err("there is no such program")
            .to_string();
        assert_eq!(absent, "starting \"./absent-program\"");
    }

    #[test]
    fn output_is_returned_whole() {
        assert_eq!(
            capture(Command::new("echo").arg("a b")).expect("echo works"),
            "a b\n"
        );
    }
}
