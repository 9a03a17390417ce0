//! What the command line accepts, and what it says to the rest.

use clap::{CommandFactory as _, Parser as _};

use super::*;
use crate::export::Format;
use crate::model::TableId;
use crate::model::finding::RULES;

fn top(args: &[&str]) -> Result<TopArgs, clap::Error> {
    let line = ["faultscope", "top"]
        .into_iter()
        .chain(args.iter().copied());
    match Cli::try_parse_from(line)?.command {
        Command::Top(args) => Ok(*args),
        _ => panic!("\"top\" was asked for"),
    }
}

fn refused(args: &[&str]) -> String {
    let error = top(args).expect_err("must be refused");
    assert_eq!(error.exit_code(), 2, "{args:?}");
    error.to_string()
}

#[test]
fn definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn defaults_of_top() {
    let args = top(&[]).expect("no argument is needed");
    assert_eq!(args.interval.as_millis(), 1000);
    assert_eq!((args.view, args.format), (TableId::Overview, Format::Text));
    assert!(!args.batch && args.count.is_none() && args.check().is_ok());
}

#[test]
fn batch_line_of_the_documentation() {
    let args = top(&[
        "-b", "-n", "3", "-d", "0.5", "--view", "holders", "--format", "jsonl", "--pid", "7",
        "--pid", "8",
    ])
    .expect("documented");
    assert_eq!((args.count, args.interval.as_millis()), (Some(3), 500));
    assert_eq!(
        (args.view, args.format),
        (TableId::LockHolders, Format::Jsonl)
    );
    assert_eq!(args.filters.pids, [7, 8]);
}

#[test]
fn interval_has_a_range() {
    for text in ["0.1", "60"] {
        assert!(top(&["-d", text]).is_ok(), "{text}");
    }
    for text in ["0.09", "60.1", "0", "inf", "NaN", "x", ""] {
        assert!(refused(&["-d", text]).contains("0.1 to 60"), "{text}");
    }
    assert!(top(&["-d", "-1"]).is_err());
}

#[test]
fn formats_that_top_lacks_are_told_from_unknown_ones() {
    let lacked = refused(&["--format", "flamegraph"]);
    assert!(
        lacked.contains("top does not write \"flamegraph\"; it writes text, csv or jsonl"),
        "{lacked}"
    );
    let unknown = refused(&["--format", "xml"]);
    assert!(unknown.contains("there is no format \"xml\""), "{unknown}");
    for name in Format::ALL.map(Format::id) {
        assert_eq!(
            top(&["--format", name]).is_ok(),
            ["text", "csv", "jsonl"].contains(&name),
            "{name}"
        );
    }
}

#[test]
fn views_go_by_table_or_by_tab() {
    for table in TableId::ALL {
        assert_eq!(top(&["--view", table.id()]).expect("a table").view, *table);
    }
    assert_eq!(
        top(&["--view", "Self"]).expect("a tab").view,
        TableId::Programs
    );
    assert!(
        refused(&["--view", "nosuch"]).contains("overview, findings, cpus"),
        "names the choices"
    );
    // The help lists the ids in prose.
    let help = Cli::command()
        .find_subcommand_mut("top")
        .expect("exists")
        .render_long_help()
        .to_string();
    let words: Vec<_> = help
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    for table in TableId::ALL {
        assert!(
            words.contains(&table.id()),
            "{} is not in the help",
            table.id()
        );
    }
}

#[test]
fn sort_must_be_a_field_of_the_view() {
    assert!(
        top(&["--view", "cpus", "--sort", "lock_wait_ns"])
            .expect("a field")
            .check()
            .is_ok()
    );
    let wrong = top(&["--view", "cpus", "--sort", "madvise_calls"])
        .expect("a field of another view")
        .check();
    assert!(
        wrong
            .expect_err("not in cpus")
            .contains("view \"cpus\" has no field \"madvise_calls\"")
    );
    assert!(refused(&["--sort", "nosuch"]).contains("there is no field \"nosuch\""));
}

#[test]
fn filters_that_can_never_match_are_refused() {
    assert!(refused(&["--comm", "sixteen-bytes-ok"]).contains("1 to 15 bytes"));
    assert!(top(&["--comm", "fifteen-bytes-x"]).is_ok());
    assert!(top(&["--pid", "0"]).is_err() && top(&["--pid", "-1"]).is_err());
    assert!(refused(&["--probe", "nosuch"]).contains("there is no program \"nosuch\""));
    assert_eq!(
        top(&["--probe", "sys_enter"]).expect("a program").probes,
        ["sys_enter"]
    );
}

#[test]
fn doctor_takes_its_switches() {
    let line = [
        "faultscope",
        "doctor",
        "--json",
        "--cost",
        "--bpf-object",
        "x.o",
    ];
    let Command::Doctor(args) = Cli::try_parse_from(line).expect("documented").command else {
        panic!("\"doctor\" was asked for");
    };
    assert!(args.json && args.cost);
    assert_eq!(
        args.bpf_object.as_deref(),
        Some(std::path::Path::new("x.o"))
    );
}

fn import(args: &[&str]) -> Result<ImportArgs, clap::Error> {
    let line = ["faultscope", "import"]
        .into_iter()
        .chain(args.iter().copied());
    match Cli::try_parse_from(line)?.command {
        Command::Import(args) => Ok(args),
        _ => panic!("\"import\" was asked for"),
    }
}

#[test]
fn import_takes_its_options() {
    let args = import(&[
        "-",
        "a.txt",
        "-o",
        "runs",
        "--format",
        "pft",
        "--metric",
        "tps:1/s:higher=tps: ([0-9]+)",
        "--label",
        "kernel=6.12=rc1",
        "--unit",
        "1/s",
        "--direction",
        "lower",
    ])
    .expect("documented");
    assert_eq!(args.files.len(), 2);
    assert_eq!(args.format, Choice::Only(crate::workload::Format::Pft));
    assert_eq!(args.labels, [("kernel".to_owned(), "6.12=rc1".to_owned())]);
    assert_eq!(
        (args.metrics[0].name(), args.direction.is_some()),
        ("tps", true)
    );
    assert_eq!(
        import(&["x"]).expect("one file is enough").format,
        Choice::Auto
    );
    for (wrong, phrase) in [
        (&["x", "--format", "xml"], "there is no format \"xml\""),
        (&["x", "--metric", "tps"], "has no \"=\""),
        (&["x", "--label", "a"], "is no KEY=VALUE"),
    ] {
        let error = import(wrong).expect_err("refused");
        assert!(
            error.exit_code() == 2 && error.to_string().contains(phrase),
            "{error}"
        );
    }
    assert!(import(&[]).is_err());
}

#[test]
fn help_tells_the_exit_codes() {
    for name in ["compare", "doctor", "top"] {
        let help = Cli::command()
            .find_subcommand_mut(name)
            .expect("exists")
            .render_help()
            .to_string();
        for code in ["  0  ", "  1  ", "  2  ", "  3  "] {
            assert!(help.contains(code), "{name} lacks {code:?} in {help}");
        }
    }
    assert_eq!(
        Cli::try_parse_from(["faultscope", "nosuch"])
            .expect_err("unknown")
            .exit_code(),
        2
    );
    assert_eq!(
        Cli::try_parse_from(["faultscope", "--help"])
            .expect_err("help")
            .exit_code(),
        0
    );
}

#[test]
fn sides_of_compare_are_told_apart() {
    let request = |args: &[&str]| {
        let line = ["faultscope", "compare"]
            .into_iter()
            .chain(args.iter().copied());
        match Cli::try_parse_from(line).map(|cli| cli.command) {
            Ok(Command::Compare(args)) => args.request(),
            Ok(_) => panic!("\"compare\" was asked for"),
            Err(error) => Err(error.to_string()),
        }
    };
    let two = request(&["a", "b", "--gate", "transactions/s=5%", "--gate", "a=b=1.5"])
        .expect("two sides");
    assert_eq!((two.before.len(), two.after.len()), (1, 1));
    let gates = [("transactions/s".to_owned(), 5.0), ("a=b".to_owned(), 1.5)];
    assert_eq!(two.options.gates, gates);
    let many = request(&["a", "b", "--against", "c", "d", "e"]).expect("two sides");
    assert_eq!((many.before.len(), many.after.len()), (2, 3));
    assert!(request(&["a", "b", "c", "--aa"]).is_ok_and(|r| r.after.is_empty()));
    for (args, phrase) in [
        (["a"].as_slice(), "name the other"),
        (
            &["a", "b", "c"],
            "faultscope compare BEFORE... --against AFTER...",
        ),
        (
            &["a", "b", "--vary", "moon"],
            "there is no key \"moon\"; use host",
        ),
        (&["a", "b", "--gate", "x"], "is no METRIC=PCT"),
        (&["a", "b", "--gate", "x=100"], "is no percentage"),
        (
            &["a", "b", "--style", "lkp", "--format", "json"],
            "--style is for --format text",
        ),
        (
            &["a", "b", "--per", "moon"],
            "use fault, transaction or second",
        ),
    ] {
        let refused = request(args).expect_err("must be refused");
        assert!(refused.contains(phrase), "{args:?}: {refused}");
    }
}

#[test]
fn choices_read_as_prose() {
    assert_eq!(
        [choice(&[]), choice(&["a"]), choice(&["a", "b", "c"])],
        ["", "a", "a, b or c"]
    );
}

#[test]
fn the_next_command_of_every_finding_exists() {
    let losses = "faultscope top --view losses";
    for next in RULES.iter().map(|rule| rule.next).chain([losses]) {
        let parsed = Cli::try_parse_from(next.split(' '));
        assert!(parsed.is_ok(), "{next}: {parsed:?}");
    }
}

#[test]
fn a_recording_is_shown_as_it_is() {
    let args =
        top(&["--replay", "run.fsc", "-b", "-n", "2", "--view", "locks"]).expect("documented");
    assert_eq!(
        args.replay.as_deref(),
        Some(std::path::Path::new("run.fsc"))
    );
    assert!(top(&["--demo"]).expect("documented").demo);
    for live in [
        ["-d", "1"],
        ["--pid", "7"],
        ["--cgroup", "/a"],
        ["--comm", "x"],
        ["--probe", "hold_release"],
        ["--refault-window", "1"],
        ["--bpf-object", "x"],
        ["--replay", "x"],
    ] {
        let message = refused(&["--demo", live[0], live[1]]);
        assert!(message.contains("cannot be used with"), "{message}");
        if live[0] != "--replay" {
            refused(&["--replay", "run.fsc", live[0], live[1]]);
        }
    }
}

fn record(args: &[&str]) -> Result<RecordArgs, clap::Error> {
    let line = ["faultscope", "record"]
        .into_iter()
        .chain(args.iter().copied());
    match Cli::try_parse_from(line)?.command {
        Command::Record(args) => Ok(*args),
        _ => panic!("\"record\" was asked for"),
    }
}

#[test]
fn what_follows_two_hyphens_is_the_command() {
    let args = record(&[
        "-o",
        "a.fsc",
        "--label",
        "patch=v3=x",
        "--",
        "sh",
        "-c",
        "x -o y",
    ])
    .expect("a whole command line");
    assert_eq!(args.command, ["sh", "-c", "x -o y"]);
    assert_eq!(args.labels, [("patch".to_owned(), "v3=x".to_owned())]);
    assert!(
        record(&["--duration", "0.5"])
            .expect("no command")
            .command
            .is_empty()
    );
    assert!(record(&["sh"]).is_err(), "a command without the hyphens");
}

#[test]
fn options_of_a_command_need_one() {
    for args in [
        &["--repeat", "3"][..],
        &["--alternate", "true"],
        &["--alternate-setup", "a", "b"],
        &["--metric", "x=(1)"],
    ] {
        assert!(record(args).is_err(), "{args:?}");
        let with = [args, &["--", "true"]].concat();
        assert!(record(&with).is_ok(), "{with:?}");
    }
    for wrong in [
        &["--alternate-setup", "a", "--", "true"][..],
        &["--repeat", "0", "--", "true"],
        &["--metric", "x=1", "--", "true"],
        &["--label", "x", "--", "true"],
        &["--duration", "0", "--", "true"],
    ] {
        assert!(record(wrong).is_err(), "{wrong:?}");
    }
}

fn report(args: &[&str]) -> Result<crate::commands::report::Request, String> {
    let line = ["faultscope", "report", "run.fsc"]
        .into_iter()
        .chain(args.iter().copied());
    match Cli::try_parse_from(line) {
        Ok(cli) => match cli.command {
            Command::Report(args) => args.request(),
            _ => panic!("\"report\" was asked for"),
        },
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn report_writes_every_format_and_says_what_does_not_go_together() {
    for format in Format::ALL.map(Format::id) {
        let line = ["--format", format, "--view", "locks"];
        let is_stacks = ["folded", "flamegraph"].contains(&format);
        assert_eq!(report(&line).is_ok(), !is_stacks, "{format}");
        assert!(
            report(&["--format", format, "--of", "hold"]).is_ok() == is_stacks,
            "{format}"
        );
    }
    for (line, part) in [
        (&["--format", "xml"][..], "there is no format \"xml\""),
        (&["--view", "nothing"], "there is no view"),
        (&["--of", "wait"], "--format folded"),
        (&["--format", "folded", "--of", "x"], "wait, hold or fault"),
        (&["--from", "soon"], "seconds after the start"),
        (&["--top", "0"], "1.."),
    ] {
        let error = report(line).expect_err("must be refused");
        assert!(error.contains(part), "{line:?}: {error}");
    }
    let request = report(&["--from", "1.5", "--to", "12:03", "--top", "3"]).expect("documented");
    assert_eq!((request.top, request.format), (Some(3), Format::Text));
}
