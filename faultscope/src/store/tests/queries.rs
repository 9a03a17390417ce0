//! The document of the format: its tables are the program's, and its queries work.

#![expect(clippy::print_stdout, reason = "a test says what it met")]

use super::{
    Scratch,
    fixture::{end, run},
    size::second,
};
use crate::store::{
    Recording, Writer,
    schema::{Kind, tables},
};
use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const BEGIN: &str = "<!-- tables: begin -->\n";
const END: &str = "<!-- tables: end -->\n";

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/recording-format.md")
}

fn reference() -> String {
    let mut made = String::new();
    for table in tables() {
        write!(
            made,
            "\n### `{}`\n\n{}\n\n| column | type | meaning |\n|---|---|---|\n",
            table.name, table.doc
        )
        .expect("writing to a string");
        for (place, column) in table.columns().enumerate() {
            let kind = match column.kind {
                Kind::Int => "integer",
                Kind::OptInt => "integer or NULL",
                Kind::Text => "text",
                Kind::OptText => "text or NULL",
                Kind::Real => "real",
                Kind::Counts => "list of counts",
                Kind::Sum(_) => "computed",
            };
            let key = if place < table.key { ", key" } else { "" };
            writeln!(made, "| `{}` | {kind}{key} | {} |", column.name, column.doc)
                .expect("writing to a string");
        }
    }
    made.push('\n');
    made
}

#[test]
fn the_document_has_every_table_and_column() {
    let text = std::fs::read_to_string(document()).expect("readable");
    let (before, rest) = text.split_once(BEGIN).expect("a begin");
    let (_, after) = rest.split_once(END).expect("an end");
    let made = format!("{before}{BEGIN}{}{END}{after}", reference());
    if std::env::var_os("FAULTSCOPE_WRITE_DOCS").is_some() {
        std::fs::write(document(), &made).expect("docs are writable");
    }
    let text = std::fs::read_to_string(document()).expect("readable");
    assert!(
        text == made,
        "docs/recording-format.md is stale; run the tests once with FAULTSCOPE_WRITE_DOCS=1 and commit it"
    );
}

/// Code of the document in a language, in order.
fn blocks(language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(document()).expect("readable");
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1);
    let code = blocks.filter_map(|rest| rest.split_once("\n```"));
    code.map(|(code, _)| format!("{code}\n")).collect()
}

/// What a program says of a recording when it gets `code`.
fn answer(mut program: Command, directory: &Path, code: &str) -> String {
    let mut child = program
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(code.as_bytes()).expect("written");
    drop(stdin);
    let out = child.wait_with_output().expect("ended");
    let error = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && error.is_empty(), "{code}\n{error}");
    String::from_utf8(out.stdout).expect("UTF-8")
}

fn has(program: &str, arguments: &[&str]) -> bool {
    let mut command = match program {
        "sqlite3" => Command::new("sqlite3"),
        _ => Command::new("/usr/bin/python3"),
    };
    let quiet = command
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let has = quiet.status().is_ok_and(|status| status.success());
    if !has {
        println!("SKIP {program} {} does not run here", arguments.join(" "));
    }
    has
}

#[test]
fn documented_queries_are_answered() {
    let scratch = Scratch::new();
    let path = scratch.file();
    let mut writer = Writer::create(&path, &run()).expect("a new file");
    for t in 0..10 {
        writer.append(&second(t)).expect("written");
    }
    writer.finish(&end()).expect("finished");
    let mut recording = Recording::open(&path).expect("a recording");

    let mut faults = 0_u64;
    for interval in recording.intervals(0..10) {
        faults += interval.expect("read").delta.total().faults();
    }
    let sql = blocks("sql");
    assert!(sql.len() >= 5, "{} queries", sql.len());
    if has("sqlite3", &["--version"]) {
        let answers = sql.iter().map(|code| {
            let mut shell = Command::new("sqlite3");
            shell.args(["-readonly", "-bail", "run.fsc"]);
            answer(shell, &scratch.0, code)
        });
        let answers: Vec<String> = answers.collect();
        for (code, answer) in sql.iter().zip(&answers) {
            assert!(!answer.trim().is_empty(), "no answer to\n{code}");
        }
        let rows = answers[0]
            .lines()
            .map(|line| line.split('|').collect::<Vec<_>>());
        let found: u64 = rows
            .map(|row| row[2].parse::<u64>().expect("a number"))
            .sum();
        assert_eq!(found, faults, "faults");
    }
    let python = blocks("python");
    assert_eq!(python.len(), 2);
    if has("/usr/bin/python3", &["-c", "import sqlite3"]) {
        let histogram = answer(Command::new("/usr/bin/python3"), &scratch.0, &python[0]);
        let found: u64 = histogram
            .lines()
            .map(|line| line.rsplit(' ').next().expect("a word"))
            .map(|n| n.parse::<u64>().expect("a number"))
            .sum();
        let mut timed = 0;
        for interval in recording.intervals(0..10) {
            let delta = interval.expect("read").delta;
            timed += delta
                .passes
                .values()
                .map(|p| p.histogram.count())
                .sum::<u64>();
        }
        assert_eq!(found, timed, "{histogram}");
    }
    if has("/usr/bin/python3", &["-c", "import pandas"]) {
        let table = answer(Command::new("/usr/bin/python3"), &scratch.0, &python[1]);
        assert!(table.contains("mean"), "{table}");
    }
    let bounds: Vec<u64> = (0..52)
        .map(faultscope_common::latency::lower_bound)
        .collect();
    assert_eq!((bounds[1], bounds[51]), (256, 1 << 33), "as documented");
}
