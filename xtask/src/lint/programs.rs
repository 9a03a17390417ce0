//! Every program the tree starts is one that set-up installs or that every machine has.

use super::token::{Kind, Token, tokens};
use super::{File, Violation};
use crate::setup;

/// Checks the names in `Command::new("…")`; a name made at run time is out of sight.
pub(super) fn check(file: &File) -> Vec<Violation> {
    if !file.path.ends_with(".rs") {
        return Vec::new();
    }
    let list = tokens(&file.text);
    list.windows(6)
        .filter_map(|window| {
            let (name, line) = spawned(window)?;
            let message = format!("no package of set-up provides \"{name}\"; add it to the table in xtask/src/setup.rs");
            (!setup::is_provided(name)).then(|| file.violation(line, "program", message))
        })
        .collect()
}

/// The program named by `Command :: new ( "…"`, and its line.
fn spawned(window: &[Token]) -> Option<(&str, usize)> {
    match window {
        [command, sep, new, open, name, _]
            if command.ident() == Some("Command")
                && sep.kind == Kind::PathSep
                && new.ident() == Some("new")
                && open.is('(') =>
        {
            match &name.kind {
                Kind::Str(text) => Some((text, name.line)),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(source: &str) -> usize {
        check(&File::new("x.rs", source)).len()
    }

    #[test]
    fn a_program_of_no_package_is_found() {
        assert_eq!(
            count("fn f() { Command::new(\"no-such-program\").status(); }"),
            1
        );
        assert_eq!(
            count("fn f() { std::process::Command::new(\n\"no-such-program\").status(); }"),
            1
        );
    }

    #[test]
    fn programs_of_the_table_and_of_the_base_system_pass() {
        assert_eq!(
            count(
                "fn f() { Command::new(\"tmux\"); Command::new(\"sh\"); Command::new(\"/usr/bin/rustc\"); }"
            ),
            0
        );
    }

    #[test]
    fn other_constructors_and_names_made_at_run_time_pass() {
        assert_eq!(
            count("fn f() { clap::Command::new(name); Other::new(\"no-such-program\"); }"),
            0
        );
    }
}
