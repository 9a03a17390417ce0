use super::*;
use crate::store::Recording;

/// An empty directory that vanishes again.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("faultscope-import-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/workload")
        .join(name)
}

struct Outcome {
    exit: Exit,
    saved: Vec<(PathBuf, Run, Vec<Metric>)>,
    out: String,
    err: String,
}

fn import(options: &Options, input: &str) -> Outcome {
    let (mut saved, mut out, mut err) = (Vec::new(), Vec::new(), Vec::new());
    let exit = run(
        options,
        &mut input.as_bytes(),
        &mut |path, run, metrics| {
            saved.push((path.to_owned(), run.clone(), metrics.to_vec()));
            Ok(())
        },
        &mut out,
        &mut err,
    )
    .expect("a vector takes everything");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Outcome {
        exit,
        saved,
        out: text(out),
        err: text(err),
    }
}

fn of(files: &[PathBuf]) -> Options {
    Options {
        files: files.to_vec(),
        directory: PathBuf::from("out"),
        ..Options::default()
    }
}

#[test]
fn the_old_tables_become_runs() {
    let outcome = import(
        &of(&[
            data("pft-2004-sloppy.txt"),
            data("pft-2004-tasklist.txt"),
            data("sysbench-madvise-2007.tsv"),
            data("kernbench-mark-accessed-2004.tsv"),
        ]),
        "",
    );
    assert_eq!((outcome.exit, outcome.err.as_str()), (Exit::Done, ""));
    let lines: Vec<&str> = outcome.out.lines().collect();
    assert_eq!(
        lines,
        [
            "out/pft-2004-sloppy.fsc: pft, 320 figures, host unknown, pages of 16384 bytes",
            "out/pft-2004-tasklist.fsc: pft, 330 figures, host unknown, pages of 16384 bytes",
            "out/pft-2004-tasklist-2.fsc: pft, 20 figures, repetition 2, host unknown, pages of 16384 bytes",
            "out/sysbench-madvise-2007-vanilla.fsc: table, 5 figures, variant vanilla, host unknown",
            "out/sysbench-madvise-2007-new_glibc.fsc: table, 5 figures, variant new_glibc, host unknown",
            "out/sysbench-madvise-2007-madv_free.fsc: table, 5 figures, variant madv_free, host unknown",
            "out/sysbench-madvise-2007-madv_free_mmap_sem.fsc: table, 5 figures, variant madv_free_mmap_sem, host unknown",
            "out/kernbench-mark-accessed-2004-batched.fsc: table, 6 figures, variant batched, host stp8-002",
            "out/kernbench-mark-accessed-2004-vanilla.fsc: table, 6 figures, variant vanilla, host stp8-003",
        ]
    );
    let (_, run, _) = &outcome.saved[2];
    assert_eq!(run.labels.get("repetition").map(String::as_str), Some("2"));
    assert_eq!(run.facts[1].value.as_deref(), Ok("16384"));
    assert!(
        run.facts[0].value.is_err(),
        "a host that is not named is unknown"
    );
    let output = run.workload.as_ref().map(|w| w.output.text.as_str());
    assert_eq!(
        output,
        Some(include_str!(
            "../../../tests/data/workload/pft-2004-tasklist.txt"
        ))
    );
    let mut ids: Vec<&str> = outcome
        .saved
        .iter()
        .map(|(_, run, _)| run.id.as_str())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert!(ids.len() == 9 && ids.iter().all(|id| id.len() == 32));
}

#[test]
fn a_refused_file_does_not_stop_the_others() {
    let outcome = import(
        &of(&[
            PathBuf::from("-"),
            data("time-1.9-verbose.txt"),
            PathBuf::from("/nonexistent\u{1b}"),
        ]),
        "no result at all\n",
    );
    assert_eq!(outcome.exit, Exit::Error);
    assert_eq!(outcome.saved.len(), 1);
    let lines: Vec<&str> = outcome.err.lines().collect();
    assert!(
        lines[0].starts_with("faultscope: \"-\" was not imported: this is no output of"),
        "{}",
        outcome.err
    );
    assert!(
        lines[1].contains("it cannot be read: No such file"),
        "{}",
        outcome.err
    );
    assert!(!outcome.err.contains('\u{1b}'));
}

#[test]
fn reservations_are_told_and_counted_in_the_status() {
    let outcome = import(&of(&[data("time-1.9-default-status-1.txt")]), "");
    assert_eq!(outcome.exit, Exit::Incomplete);
    assert!(
        outcome
            .err
            .contains("the timed command ended with status 1"),
        "{}",
        outcome.err
    );
    assert_eq!(
        outcome.saved[0]
            .1
            .labels
            .get("exit_status")
            .map(String::as_str),
        Some("1")
    );
}

#[test]
fn rules_take_figures_of_text_in_any_format() {
    let rule = |text: &str| text.parse::<MetricRule>().expect("a rule");
    let mut options = of(&[PathBuf::from("-")]);
    options.rules = vec![
        rule("score:points:higher=score ([0-9]+)"),
        rule("none=none ([0-9]+)"),
    ];
    options
        .labels
        .insert("kernel".to_owned(), "6.12".to_owned());
    let outcome = import(&options, "> the score 42\n");
    assert_eq!(outcome.exit, Exit::Incomplete, "one rule found nothing");
    let (path, run, metrics) = &outcome.saved[0];
    assert_eq!(path, Path::new("out/stdin.fsc"));
    assert_eq!(
        (
            metrics.len(),
            metrics[0].name.as_str(),
            metrics[0].unit.as_str()
        ),
        (1, "score", "points")
    );
    let refused = run.workload.as_ref().map(|w| w.refused.join("; "));
    let reason = "metric \"none\": its expression matches nothing in the output";
    assert_eq!(
        refused.as_deref(),
        Some(reason),
        "the run says what it lacks"
    );
    assert!(outcome.err.contains(reason), "{}", outcome.err);
    assert_eq!(run.labels.get("kernel").map(String::as_str), Some("6.12"));
    assert_eq!(import(&options, "nothing\n").exit, Exit::Error);
    // Beside one run of a known format, but not beside several.
    let time = "real 1.00\nuser 0.50\nsys 0.25\n";
    assert_eq!(
        import(&options, &format!("{time}score 1\n")).saved[0]
            .2
            .len(),
        4
    );
    let several = import(&options, &format!("{time}{time}score 1\n"));
    assert!(several.err.contains("several runs"), "{}", several.err);
}

#[test]
fn what_is_saved_is_read_again() {
    let place = Place::new("saved");
    let options = Options {
        directory: place.0.clone(),
        ..of(&[data("pft-2004-tasklist.txt")])
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = run(&options, &mut io::empty(), &mut save, &mut out, &mut err)
        .expect("a vector takes everything");
    assert_eq!(exit, Exit::Done, "{}", String::from_utf8_lossy(&err));
    let mut names: Vec<_> = fs::read_dir(&place.0)
        .expect("readable")
        .map(|entry| entry.expect("readable").file_name())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["pft-2004-tasklist-2.fsc", "pft-2004-tasklist.fsc"],
        "no log is left"
    );
    let kept = Recording::open(&place.0.join("pft-2004-tasklist.fsc")).expect("a recording");
    assert!(kept.is_complete() && kept.is_empty());
    assert_eq!(kept.metrics().len(), 66 * 5);
    let text = include_str!("../../../tests/data/workload/pft-2004-tasklist.txt");
    let Some(workload) = &kept.run().workload else {
        panic!("the text is kept");
    };
    assert_eq!(workload.output.text, text);
    // The stored text gives the stored figures again.
    let again = workload::runs(
        workload::parse(text, &Defaults::default())
            .expect("parsed")
            .measurements,
    );
    assert_eq!(kept.metrics(), again[0].metrics);
}

#[test]
fn an_existing_file_is_kept_and_a_long_text_refused() {
    let place = Place::new("existing");
    fs::write(place.0.join("sysbench-madvise-2007-madv_free.fsc"), "mine").expect("writable");
    let options = Options {
        directory: place.0.clone(),
        ..of(&[data("sysbench-madvise-2007.tsv")])
    };
    let outcome = import(&options, "");
    assert_eq!(
        (outcome.exit, outcome.saved.len()),
        (Exit::Error, 0),
        "all or nothing of a file"
    );
    assert!(
        outcome.err.contains("exists and is not overwritten"),
        "{}",
        outcome.err
    );

    let long = "x".repeat(usize::try_from(MAX_TEXT).expect("fits") + 1);
    let outcome = import(&of(&[PathBuf::from("-")]), &long);
    assert!(
        outcome.err.contains("longer than 16 MiB"),
        "{}",
        outcome.err
    );
}

#[test]
fn what_is_for_tables_is_refused_elsewhere() {
    let mut options = of(&[
        data("time-1.9-verbose.txt"),
        data("sysbench-madvise-2007.tsv"),
    ]);
    options.defaults.unit = Some("1/s".to_owned());
    let outcome = import(&options, "");
    assert_eq!((outcome.exit, outcome.saved.len()), (Exit::Error, 4));
    assert!(outcome.err.contains("it is no table"), "{}", outcome.err);
}

#[test]
fn names_of_files_are_plain() {
    assert_eq!(plain("../a b/\u{e9}"), "_._a_b__");
    assert_eq!(plain("-o"), "_o");
    assert_eq!(plain("4.19-rc1"), "4.19-rc1");
}
