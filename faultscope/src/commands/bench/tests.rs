//! The table of benches, and what a sweep plans.

use super::plan::{Room, jobs, obstacle};
use super::*;

fn options() -> Options {
    Options {
        bench: BENCHES[0],
        cases: Vec::new(),
        threads: Vec::new(),
        processes: Vec::new(),
        sizes: vec![64 << 20],
        rounds: Some(2),
        repetitions: 1,
        output: None,
        files: None,
        is_bare: false,
        is_core: false,
        is_pinned: true,
        style: Style::Table,
        bpf_object: None,
    }
}

#[test]
fn names_are_words_and_each_bench_has_a_default_case() {
    let is_word = |name: &str| {
        let mut letters = name.bytes();
        letters.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    for bench in BENCHES {
        assert!(is_word(bench.name), "{}", bench.name);
        assert!(std::ptr::eq(
            find(bench.name).expect("is in the table"),
            *bench
        ));
        assert!(bench.cases.iter().any(|c| c.is_default), "{}", bench.name);
        let mut names: Vec<&str> = bench.cases.iter().map(|c| c.name).collect();
        assert!(names.iter().all(|n| is_word(n) && *n != "all"), "{names:?}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), bench.cases.len(), "{}", bench.name);
    }
}

#[test]
fn a_list_names_every_bench_and_case() {
    let mut text = Vec::new();
    list(&mut text).expect("written to memory");
    let text = String::from_utf8(text).expect("text");
    for bench in BENCHES {
        assert!(text.contains(bench.settles));
        for case in bench.cases {
            assert!(text.contains(&format!(" {} ", case.name)), "{}", case.name);
        }
    }
}

#[test]
fn columns_are_as_wide_as_their_titles() {
    for bench in BENCHES {
        let sections = bench.sections.iter().flat_map(|s| s.columns);
        for column in bench.live.iter().chain(sections) {
            assert!(column.title.len() <= column.width, "{}", column.title);
        }
    }
}

#[test]
fn repetitions_go_round_all_points_and_back() {
    let sweep = Options {
        threads: vec![1, 2],
        processes: vec![2],
        repetitions: 2,
        ..options()
    };
    let jobs = jobs(&sweep, 8);
    let names: Vec<String> = jobs.iter().map(Job::file_name).collect();
    assert_eq!(
        names,
        [
            "fault-anon-1t-64m-1.fsc",
            "fault-anon-2t-64m-1.fsc",
            "fault-anon-2p-64m-1.fsc",
            "fault-anon-2p-64m-2.fsc",
            "fault-anon-2t-64m-2.fsc",
            "fault-anon-1t-64m-2.fsc",
        ]
    );
    assert_eq!(jobs[1].title(), "anon, 2 threads, 64.0MiB");
    assert_eq!(jobs[0].title(), "anon, 1 thread, 64.0MiB");
    assert_eq!(jobs[2].title(), "anon, 2 processes, 64.0MiB");
}

#[test]
fn each_size_is_a_series_of_its_own() {
    let sweep = Options {
        threads: vec![1, 2],
        sizes: vec![64 << 20, 1 << 30, 64 << 20],
        ..options()
    };
    let jobs = jobs(&sweep, 8);
    let named: Vec<(String, String)> = jobs.iter().map(|j| (j.series(), j.file_name())).collect();
    let expected = [
        ("anon/64m", "fault-anon-1t-64m-1.fsc"),
        ("anon/64m", "fault-anon-2t-64m-1.fsc"),
        ("anon/1024m", "fault-anon-1t-1024m-1.fsc"),
        ("anon/1024m", "fault-anon-2t-1024m-1.fsc"),
    ];
    assert_eq!(
        named,
        expected.map(|(series, file)| (series.to_owned(), file.to_owned()))
    );
}

#[test]
fn what_is_named_twice_is_one_point() {
    let sweep = Options {
        cases: [options().bench.cases, options().bench.cases]
            .iter()
            .flat_map(|cases| cases.iter())
            .collect(),
        threads: vec![1, 2, 1],
        processes: vec![2, 2],
        ..options()
    };
    let names: Vec<String> = jobs(&sweep, 8).iter().map(Job::file_name).collect();
    assert_eq!(names.len(), 3 * options().bench.cases.len());
    let mut one = names.clone();
    one.sort();
    one.dedup();
    assert_eq!(one.len(), names.len(), "each has a file of its own");
}

#[test]
fn a_sweep_without_counts_doubles_up_to_the_cpus() {
    let members: Vec<usize> = jobs(&options(), 6).iter().map(|j| j.members).collect();
    assert_eq!(members, [1, 2, 4, 6]);
}

#[test]
fn what_does_not_fit_the_machine_says_why() {
    let sweep = Options {
        threads: vec![2],
        ..options()
    };
    let jobs = jobs(&sweep, 2);
    let room = |cpus, memory_bytes| Room { cpus, memory_bytes };
    let why = |cpus, memory| obstacle(&jobs[0], room(cpus, memory));
    assert_eq!(why(2, Some(64 << 20)), None);
    assert_eq!(why(2, None), None);
    let one = why(1, None).expect("one CPU for two threads");
    assert!(one.contains("1 CPU may be used here"), "{one}");
    let small = why(2, Some(1 << 20)).expect("too large");
    assert!(
        small.contains("64.0MiB") && small.contains("1.00MiB"),
        "{small}"
    );
}

#[test]
fn a_point_goes_through_the_command_line_of_its_process() {
    let sweep = Options {
        threads: vec![3],
        files: Some("/somewhere".into()),
        is_pinned: false,
        ..options()
    };
    let words = jobs(&sweep, 4)[0].arguments();
    assert_eq!(
        words,
        [
            "bench-load",
            "fault",
            "--case",
            "anon",
            "--threads",
            "3",
            "--size",
            "67108864",
            "--rounds",
            "2",
            "--no-pin",
            "--files",
            "/somewhere"
        ]
    );
}
