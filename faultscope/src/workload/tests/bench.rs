//! Results of the built-in benches.

use super::super::bench::{BenchResult, read};
use super::super::*;

fn result() -> BenchResult {
    let mut result = BenchResult::new(
        "fault",
        &[("case", "anon".to_owned()), ("threads", "2".to_owned())],
    );
    result.add("fault/wsec", 369_606.184, "1/s", Some(Direction::Higher));
    result.add("wall", 0.012_345_678, "s", Some(Direction::Lower));
    result.count("faults", 16_384);
    result.count("page_size", 4096);
    result.add("never", f64::NAN, "s", None);
    result.notes.push("one line\nand another".to_owned());
    result
}

#[test]
fn what_is_printed_is_read_back() {
    let text = format!("before\n{}after\n", result().to_text());
    let read = read(&text).expect("a result");
    let mut wanted = result();
    wanted.notes = vec!["one line and another".to_owned()];
    assert_eq!(read, [wanted]);
    assert_eq!(read[0].events("faults"), Some(16_384));
    assert_eq!(read[0].get("never"), None);
}

#[test]
fn its_figures_are_those_of_a_workload() {
    let (metrics, reasons) = results(&result().to_text(), &[]);
    assert!(reasons.is_empty(), "{reasons:?}");
    let rate = metrics
        .iter()
        .find(|m| m.name == "fault/wsec")
        .expect("is there");
    assert_eq!(rate.format, "bench");
    assert_eq!(rate.direction, Some(Direction::Higher));
    assert_eq!(rate.work, Some(Work::Fixed));
    let keys: Vec<&str> = rate.keys.iter().map(|(k, _)| k.as_str()).collect();
    assert_eq!(keys, ["bench", "case", "threads"]);
    let found = parse(&result().to_text(), &Defaults::default()).expect("by itself");
    assert_eq!(found.measurements[0].page_size, Some(4096));
}

#[test]
fn a_result_that_is_cut_off_or_damaged_is_refused() {
    let text = result().to_text();
    let refusal = |text: &str| {
        parse_as(text, Format::Bench, &Defaults::default())
            .expect_err("must be refused")
            .to_string()
    };
    let cut = text.trim_end().trim_end_matches("end");
    assert!(refusal(cut).contains("was cut off"));
    assert!(refusal(&text.replace("369606.184", "369,6")).contains("LC_ALL=C"));
    assert!(refusal(&text.replace("figure faults", "figures faults")).starts_with("line 6"));
    assert!(refusal(&format!("{cut}{text}")).contains("before the one above it ended"));
    assert!(refusal("faultscope-bench fault\nend\n").contains("has no figure"));
    assert_eq!(refusal("hello"), "there is no bench result in it");
}
