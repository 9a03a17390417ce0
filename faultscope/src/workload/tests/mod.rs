//! Every trap of the formats, one by one.

mod bench;
mod kernbench;
mod lkp;
mod mmtests;
mod perf;
mod pft;
mod reaim;
mod stress_ng;
mod sysbench;
mod table;
mod time;
mod will_it_scale;

use super::*;

fn auto(text: &str) -> Result<Found, Refusal> {
    parse(text, &Defaults::default())
}

fn found(text: &str) -> Found {
    auto(text).expect("recognised")
}

fn refusal(text: &str) -> String {
    auto(text).expect_err("must be refused").to_string()
}

/// The metric named so of the only measurement.
fn only<'a>(found: &'a Found, name: &str) -> &'a Metric {
    assert_eq!(found.measurements.len(), 1, "{found:#?}");
    metric(&found.measurements[0], name)
}

fn metric<'a>(measurement: &'a Measurement, name: &str) -> &'a Metric {
    let mut all = measurement.metrics.iter();
    all.find(|m| m.name == name)
        .unwrap_or_else(|| panic!("\"{name}\" is not in {measurement:#?}"))
}

#[track_caller]
fn assert_value(metric: &Metric, value: f64) {
    assert!(
        (metric.value - value).abs() <= 1e-9 * value.abs(),
        "{metric:?} is not {value}"
    );
}

fn names(measurement: &Measurement) -> Vec<&str> {
    measurement
        .metrics
        .iter()
        .map(|m| m.name.as_str())
        .collect()
}

/// As a mail quotes it: marks before each line, blanks collapsed, entities and quoted-printable.
fn by_mail(text: &str) -> Vec<String> {
    let collapsed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let each = |f: &dyn Fn(&str) -> String| text.lines().map(|l| f(l) + "\n").collect::<String>();
    vec![
        each(&|l| format!("> {l}")),
        each(&|l| format!("> > {}", collapsed(l))),
        each(&|l| format!("| {l}")),
        each(&|l| format!("&gt; {}", l.replace(' ', "&nbsp;"))),
        each(&|l| format!("{l}\r")),
        format!(
            "> On some day somebody wrote: a=3Db\n{}",
            each(&|l| format!("> {}=20", l.replace('=', "=3D")))
        ),
        format!(
            "Hello,\n\nhere it is:\n{}\nRegards\n",
            each(&|l| format!("  {l}"))
        ),
    ]
}

#[test]
fn text_in_no_format_is_not_recognised() {
    for text in [
        "",
        "\n\n",
        "hello world\n",
        "1 2 3\n4 5 6\n",
        "total time: 5s\n",
        "real life\nuser mode\nsys admin\n",
    ] {
        assert_eq!(auto(text), Err(Refusal::NotRecognised), "{text:?}");
        assert_eq!(results(text, &[]), (vec![], vec![]), "{text:?}");
    }
}

#[test]
fn text_in_two_formats_is_ambiguous_and_time_beside_one_is_not() {
    let sysbench = include_str!("../../../tests/data/workload/sysbench-1.0.20-threads.txt");
    let pft = include_str!("../../../tests/data/workload/pft-2004-sloppy.txt");
    let time = "real\t0m1.000s\nuser\t0m0.500s\nsys\t0m0.250s\n";
    assert!(
        refusal(&format!("{sysbench}{pft}"))
            .contains("it reads as sysbench and as pft; say which with --format")
    );

    let both = found(&format!("{sysbench}\n{time}"));
    assert_eq!(both.measurements.len(), 2);
    assert_eq!(runs(both.measurements).len(), 1, "one run, timed");

    let twice = refusal(&format!("{sysbench}\n{time}\n{time}"));
    assert!(
        twice.contains("1 results of sysbench and 2 of time"),
        "{twice}"
    );
    let chosen = parse_as(
        &format!("{sysbench}\n{time}\n{time}"),
        Format::Time,
        &Defaults::default(),
    );
    assert_eq!(chosen.expect("chosen").measurements.len(), 2);
}

#[test]
fn a_format_that_is_asked_for_and_not_there_is_named() {
    for format in [Format::Sysbench, Format::Pft, Format::Time] {
        assert_eq!(
            parse_as("hello", format, &Defaults::default()),
            Err(Refusal::NotThis(format))
        );
    }
    for format in Format::ALL {
        assert_eq!(format.id().parse(), Ok(format));
    }
    assert!(
        "xml"
            .parse::<Format>()
            .expect_err("unknown")
            .contains("sysbench, pft, time, bench, will-it-scale")
    );
}

#[test]
fn one_run_has_one_value_of_each_figure() {
    let time = "real 1.00\nuser 0.50\nsys 0.25\n";
    let rules = [
        "n=n=([0-9]+)".parse::<MetricRule>().expect("a rule"),
        "no=no=(.)".parse().expect("a rule"),
    ];
    let (metrics, reasons) = results(&format!("{time}n=5\n"), &rules);
    assert_eq!(
        metrics.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(),
        ["elapsed", "user", "system", "n"]
    );
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].contains("\"no\""));

    let (metrics, reasons) = results(&format!("{time}{time}"), &[]);
    assert_eq!(metrics, []);
    assert_eq!(
        reasons.len(),
        1,
        "one sentence, not one for each figure: {reasons:?}"
    );
    assert!(
        reasons[0].contains("time: 2 results in one run"),
        "{reasons:?}"
    );
}

#[test]
fn repetitions_are_runs_of_their_own() {
    let time = "real 1.00\nuser 0.50\nsys 0.25\n";
    let all = found(&format!("{time}{time}{time}"));
    let runs = runs(all.measurements);
    assert_eq!(
        runs.iter().map(|r| r.repetition).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert!(runs.iter().all(|r| r.metrics.len() == 3));
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    /// Lines that look like something, and damage.
    fn line() -> impl Strategy<Value = String> {
        let known = prop::sample::select(
            [
                include_str!("../../../tests/data/workload/sysbench-1.0.20-cpu-checkpoints.txt"),
                include_str!("../../../tests/data/workload/sysbench-1.0.20-memory.txt"),
                include_str!("../../../tests/data/workload/pft-2004-sloppy.txt"),
                include_str!("../../../tests/data/workload/time-1.9-verbose.txt"),
                include_str!("../../../tests/data/workload/sysbench-madvise-2007.tsv"),
                include_str!("../../../tests/data/workload/will-it-scale-page_fault1.csv"),
                include_str!("../../../tests/data/workload/kernbench-0.42.txt"),
                include_str!("../../../tests/data/workload/stress-ng-0.15.06-metrics.txt"),
                include_str!("../../../tests/data/workload/stress-ng-0.15.06.yaml"),
                include_str!("../../../tests/data/workload/mmtests-pft.txt"),
                include_str!("../../../tests/data/workload/lkp-will-it-scale.txt"),
                include_str!("../../../tests/data/workload/reaim.txt"),
                include_str!("../../../tests/data/workload/perf-6.1-lock-contention.txt"),
                include_str!("../../../tests/data/workload/perf-6.1-stat.txt"),
            ]
            .concat()
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>(),
        );
        let cut = (known.clone(), 0_usize..80, "\\PC{0,3}").prop_map(|(line, at, junk)| {
            let at = line
                .char_indices()
                .map(|(i, _)| i)
                .nth(at)
                .unwrap_or(line.len());
            format!("{}{junk}{}", &line[..at], &line[at..])
        });
        prop_oneof![3 => known, 2 => cut, 1 => "\\PC{0,40}"]
    }

    proptest! {
        #[test]
        fn every_parser_is_total(lines in prop::collection::vec(line(), 0..40)) {
            let text = lines.join("\n");
            let defaults = Defaults::default();
            let all = Format::ALL.map(|f| parse_as(&text, f, &defaults)).into_iter();
            for found in all.chain([parse(&text, &defaults)]).flatten() {
                let metrics: Vec<&Metric> = found.measurements.iter().flat_map(|m| &m.metrics).collect();
                prop_assert!(!metrics.is_empty());
                prop_assert!(metrics.iter().all(|m| m.value.is_finite() && m.resolution.is_finite() && m.resolution >= 0.0));
                let count = metrics.len();
                prop_assert_eq!(runs(found.measurements).iter().map(|r| r.metrics.len()).sum::<usize>(), count);
            }
            let (metrics, _) = results(&text, &[]);
            let mut seen: Vec<String> = metrics.iter().map(Metric::identity).collect();
            seen.sort_unstable();
            let all = seen.len();
            seen.dedup();
            prop_assert_eq!(seen.len(), all, "one value of each figure");
        }

        #[test]
        fn mail_keeps_the_number_of_lines(text in "(\\PC|\n|=|=3D|=\n|&gt;|> ){0,200}") {
            prop_assert_eq!(mail::undo(&text).lines().count(), text.lines().count());
        }
    }
}
