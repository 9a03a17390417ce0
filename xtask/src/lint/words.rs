//! What no file may hold: unfinished work, machine-dependent paths, over-long files.
//!
//! Every pattern is put together from pieces, so that the patterns themselves are not found.

use super::layers::is_test_file;
use super::token::{Token, split_tests, tokens};
use super::{File, Violation};

/// Lines a file may have before it has to be split.
const MAX_LINES: usize = 600;

/// Substrings that no file may hold, and what to write in their place.
fn banned() -> [(String, &'static str); 5] {
    [
        (
            ["/wo", "rk/"].concat(),
            "an absolute path of one machine; use a path relative to the repository",
        ),
        (
            ["spa", "rse+http"].concat(),
            "the address of a package registry; leave that to the user's configuration",
        ),
        (
            ["index.crates", ".io"].concat(),
            "the address of a package registry; leave that to the user's configuration",
        ),
        (
            ["static.crates", ".io"].concat(),
            "the address of a package registry; leave that to the user's configuration",
        ),
        (
            ["deb.deb", "ian.org"].concat(),
            "the address of a package archive; leave that to the user's configuration",
        ),
    ]
}

/// Words that mark unfinished work; allowed in code and scripts with an issue number on the same line.
fn markers() -> [String; 3] {
    [
        ["TO", "DO"].concat(),
        ["FIX", "ME"].concat(),
        ["XX", "X"].concat(),
    ]
}

/// Module names that say nothing about what is inside.
const NAMELESS: [&str; 6] = ["utils", "util", "helpers", "misc", "manager", "common"];

/// Checks a file of any kind.
pub(super) fn check(file: &File) -> Vec<Violation> {
    let mut found = Vec::new();
    let is_rust = file.path.ends_with(".rs");
    let is_script = file.path.ends_with(".sh") || file.text.starts_with("#!");
    for (index, line) in file.text.lines().enumerate() {
        let at = index + 1;
        for (word, instead) in banned() {
            if line.contains(&word) {
                found.push(file.violation(at, "machine", format!("\"{word}\" is {instead}")));
            }
        }
        if !file.path.ends_with(".md") && !has_issue(line) {
            for word in markers() {
                if words(line).any(|w| w == word) {
                    found.push(file.violation(
                        at,
                        "unfinished",
                        format!("\"{word}\" needs an issue number such as (#12) beside it"),
                    ));
                }
            }
        }
        let swallowed = ["||", " true"].concat();
        if is_script && line.trim_end().ends_with(&swallowed) {
            found.push(file.violation(
                at,
                "swallowed",
                format!("\"{swallowed}\" hides a failure; test for the case that may fail"),
            ));
        }
    }
    if is_rust {
        let mut names = file.path.trim_end_matches(".rs").split('/');
        if let Some(name) = names.find(|name| NAMELESS.contains(name)) {
            found.push(file.violation(
                1,
                "name",
                format!("\"{name}\" says nothing; name the noun it holds"),
            ));
        }
        found.extend(unfinished_code(file));
        found.extend(length(file));
    }
    found
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Whether a line names an issue: a hash and a number.
fn has_issue(line: &str) -> bool {
    line.split('#')
        .skip(1)
        .any(|after| after.starts_with(|c: char| c.is_ascii_digit()))
}

fn unfinished_code(file: &File) -> Vec<Violation> {
    let list = tokens(&file.text);
    let mut found = Vec::new();
    for window in list.windows(3) {
        let [first, second, third] = window else {
            continue;
        };
        if second.is('!') && matches!(first.ident(), Some("todo" | "unimplemented")) {
            found.push(file.violation(
                first.line,
                "unfinished",
                "a macro stands in for code; write the code or leave it out".to_owned(),
            ));
        }
        if first.is('#') && second.is('[') && third.ident() == Some("ignore") {
            let message =
                "a test is switched off; let it print a counted SKIP line with its reason"
                    .to_owned();
            found.push(file.violation(first.line, "ignored", message));
        }
    }
    found
}

/// Checks the length of product code; tests and generated files may be longer.
fn length(file: &File) -> Option<Violation> {
    let is_generated = file.text.lines().take(5).any(|l| l.contains("@generated"));
    if is_test_file(&file.path) || is_generated {
        return None;
    }
    let (_, tests) = split_tests(&tokens(&file.text));
    let span = |item: &Vec<Token>| {
        item.last().map_or(0, |t| t.line + 1) - item.first().map_or(0, |t| t.line)
    };
    let lines = file.text.lines().count() - tests.iter().map(span).sum::<usize>();
    (lines > MAX_LINES).then(|| {
        file.violation(
            MAX_LINES,
            "length",
            format!(
                "{lines} lines without tests are more than {MAX_LINES}; give each noun its file"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        check(&File::new(path, text))
            .iter()
            .map(|v| v.rule)
            .collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn machine_paths_and_registries_are_found_in_any_file() {
        for (word, _) in banned() {
            for path in [
                "README.md",
                "faultscope/src/host/kernel.rs",
                ".ci/run",
                "Cargo.toml",
            ] {
                assert_eq!(
                    rules(path, &format!("see {word}x")),
                    ["machine"],
                    "{word} in {path}"
                );
            }
        }
        assert_eq!(rules("README.md", "the works of a workshop"), NONE);
    }

    #[test]
    fn markers_need_an_issue() {
        for word in markers() {
            assert_eq!(
                rules("a.rs", &format!("// {word}: later")),
                ["unfinished"],
                "{word}"
            );
            assert_eq!(
                rules("a.sh", &format!("# {word} later")),
                ["unfinished"],
                "{word}"
            );
            assert_eq!(
                rules("a.rs", &format!("// {word}(#12): later")),
                NONE,
                "{word}"
            );
            assert_eq!(
                rules("a.rs", &format!("// {word}{word}")),
                NONE,
                "{word} doubled"
            );
        }
    }

    #[test]
    fn macros_in_place_of_code_are_found_and_their_names_are_not() {
        assert_eq!(rules("a.rs", "fn f() { todo!() }"), ["unfinished"]);
        assert_eq!(
            rules("a.rs", "fn f() { unimplemented!(\"x\") }"),
            ["unfinished"]
        );
        assert_eq!(rules("a.rs", "// todo!()\nlet todo = \"todo!()\";"), NONE);
    }

    #[test]
    fn switched_off_tests_are_found() {
        assert_eq!(rules("a.rs", "#[test]\n#[ignore]\nfn f() {}"), ["ignored"]);
        assert_eq!(
            rules("a.rs", "#[test]\n#[ignore = \"slow\"]\nfn f() {}"),
            ["ignored"]
        );
        assert_eq!(rules("a.rs", "fn ignore() {}"), NONE);
    }

    #[test]
    fn swallowed_failures_are_found_in_scripts() {
        let line = ["rm x |", "| true\n"].concat();
        assert_eq!(rules("a.sh", &line), ["swallowed"]);
        assert_eq!(
            rules(".ci/run", &format!("#!/bin/sh\n{line}")),
            ["swallowed"]
        );
        assert_eq!(rules("a.md", &line), NONE);
    }

    #[test]
    fn modules_are_named_after_what_they_hold() {
        assert_eq!(rules("faultscope/src/host/utils.rs", ""), ["name"]);
        assert_eq!(rules("faultscope/tests/common/mod.rs", ""), ["name"]);
        assert_eq!(rules("faultscope-common/src/lib.rs", ""), NONE);
    }

    #[test]
    fn long_files_are_split_and_long_tests_are_not() {
        let long = "fn f() {}\n".repeat(MAX_LINES);
        assert_eq!(rules("faultscope/src/units.rs", &long), NONE);
        assert_eq!(
            rules("faultscope/src/units.rs", &format!("{long}fn g() {{}}\n")),
            ["length"]
        );
        assert_eq!(
            rules("faultscope/src/units.rs", &format!("// @generated\n{long}")),
            NONE
        );
        assert_eq!(
            rules(
                "faultscope/tests/kernel/faults.rs",
                &format!("{long}{long}")
            ),
            NONE
        );
        let with_tests = format!("{long}#[cfg(test)]\nmod tests {{\n\n// why\n{long}}}\n");
        assert_eq!(rules("faultscope/src/units.rs", &with_tests), NONE);
        assert_eq!(
            rules(
                "faultscope/src/units.rs",
                &format!("fn g() {{}}\n{with_tests}")
            ),
            ["length"]
        );
    }
}
