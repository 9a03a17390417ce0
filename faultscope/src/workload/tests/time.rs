//! `time`, in its many dresses.

use super::*;

macro_rules! data {
    ($name:literal) => {
        include_str!(concat!(
            "../../../tests/data/workload/time-1.9-",
            $name,
            ".txt"
        ))
    };
}

const DEFAULT: &str = "0.12user 0.05system 1:02.10elapsed 80%CPU (0avgtext+0avgdata 1636maxresident)k\n\
                       0inputs+8outputs (3major+98minor)pagefaults 0swaps\n";

#[test]
fn the_default_format() {
    let all = found(DEFAULT);
    assert_eq!(
        names(&all.measurements[0]),
        [
            "user",
            "system",
            "elapsed",
            "cpu",
            "max rss",
            "major faults",
            "minor faults"
        ]
    );
    let elapsed = only(&all, "elapsed");
    assert_value(elapsed, 62.1);
    assert_eq!(
        (elapsed.unit.as_str(), elapsed.direction),
        ("s", Some(Direction::Lower))
    );
    assert!((elapsed.resolution - 0.01).abs() < 1e-12);
    assert_value(only(&all, "max rss"), 1636.0);
    assert_value(only(&all, "minor faults"), 98.0);
    assert_value(only(&all, "major faults"), 3.0);
    for damaged in by_mail(DEFAULT) {
        assert_eq!(found(&damaged).measurements, all.measurements, "{damaged}");
    }
}

#[test]
fn an_unknown_cpu_share_is_left_out() {
    let all = found(&DEFAULT.replace("80%CPU", "?%CPU"));
    assert!(!names(&all.measurements[0]).contains(&"cpu"));
    let all = found(&data!("verbose").replace("job got: 50%", "job got: ?%"));
    assert!(!names(&all.measurements[0]).contains(&"cpu"));
}

#[test]
fn the_verbose_format() {
    let all = found(data!("verbose"));
    assert_value(only(&all, "minor faults"), 72.0);
    assert_value(only(&all, "max rss"), 988.0);
    assert_value(only(&all, "voluntary switches"), 1.0);
    assert!((only(&all, "elapsed").resolution - 0.01).abs() < 1e-12);
    // An hour and more has no fraction, and the label holds colons itself.
    let long = found(&data!("verbose").replace("m:ss): 0:00.00", "m:ss): 1:02:03"));
    assert_value(only(&long, "elapsed"), 3723.0);
    assert!((only(&long, "elapsed").resolution - 1.0).abs() < 1e-12);
    for damaged in by_mail(data!("verbose")) {
        assert_eq!(found(&damaged).measurements, all.measurements, "{damaged}");
    }
    let text = data!("verbose");
    let cut = &text[..text.find("\tSwaps").expect("is in it")];
    assert!(refusal(cut).contains("line 2: this result of \"time -v\" is cut short"));
}

#[test]
fn a_command_that_ended_badly_is_told() {
    for text in [data!("verbose-status-3"), data!("default-status-1")] {
        let all = found(text);
        assert!(matches!(all.measurements[0].exit_status, Some(1 | 3)));
        assert!(all.reasons[0].contains("the timed command ended with status"));
    }
    // `Exit status: 0` after a signal is not true.
    let error = refusal(data!("verbose-signal-9"));
    assert!(
        error.contains("signal 9 ended the timed command"),
        "{error}"
    );
    let (metrics, reasons) = results(data!("verbose-signal-9"), &[]);
    assert_eq!((metrics.len(), reasons.len()), (0, 1));
}

#[test]
fn the_shells() {
    for (text, elapsed, resolution) in [
        (
            "real\t1m2.500s\nuser\t0m0.400s\nsys\t0m0.050s\n",
            62.5,
            0.001,
        ),
        ("real 62.50\nuser 0.40\nsys 0.05\n", 62.5, 0.01),
        (
            "    1m2.50s real     0m0.40s user     0m0.05s system\n",
            62.5,
            0.01,
        ),
        ("real 1h1m2.50s\nuser 0m0.40s\nsys 0m0.05s\n", 3662.5, 0.01),
    ] {
        let all = found(text);
        assert_value(only(&all, "elapsed"), elapsed);
        assert_value(only(&all, "user"), 0.4);
        assert_value(only(&all, "system"), 0.05);
        assert!(
            (only(&all, "elapsed").resolution - resolution).abs() < 1e-12,
            "{text}"
        );
    }
}

#[test]
fn a_decimal_comma_is_refused_with_the_reason() {
    for text in [
        "real\t0m1,500s\nuser\t0m0,400s\nsys\t0m0,050s\n",
        "    0m1,50s real     0m0,40s user     0m0,05s system\n",
        "real 1,50\nuser 0,40\nsys 0,05\n",
    ] {
        let error = refusal(text);
        assert!(
            error.contains("line 1") && error.contains("comma") && error.contains("LC_ALL=C"),
            "{error}"
        );
        assert_eq!(results(text, &[]).1.len(), 1);
    }
}

#[test]
fn words_alone_are_no_times() {
    for text in [
        "real work\nuser space\nsys call\n",
        "real 1.0\nsys 1.0\nuser 1.0\n",
        "real 1.0\n\nuser 1.0\nsys 1.0\n",
        "real 1.0 x\nuser 1.0\nsys 1.0\n",
        "superuser filesystem relapsed\n",
    ] {
        assert_eq!(auto(text), Err(Refusal::NotRecognised), "{text}");
    }
}
