//! kernbench, plain and with deviations.

use super::*;

/// The vanilla side of the mail of 2004, in the words kernbench printed then.
const PLAIN: &str = "\
Average Half Load -j 4 Run:
Elapsed Time 245.026
User Time 832.34
System Time 73.41
Percent CPU 373.6
Context Switches 13427.4
Sleeps 21642
";

/// Made by hand after kernbench 0.42, which averages earlier phases in: user times of the phases are 160.4, 170.4, 174.4.
const POOLED: &str = include_str!("../../../tests/data/workload/kernbench-0.42.txt");

fn keys(metric: &Metric) -> String {
    let keys: Vec<String> = metric
        .keys
        .iter()
        .map(|(k, v)| format!("{k} {v}"))
        .collect();
    keys.join(", ")
}

#[test]
fn a_plain_result_has_six_figures() {
    let plain = found(PLAIN);
    assert_eq!(
        names(&plain.measurements[0]),
        [
            "elapsed",
            "user",
            "system",
            "cpu",
            "context switches",
            "sleeps"
        ]
    );
    let elapsed = only(&plain, "elapsed");
    assert_value(elapsed, 245.026);
    assert_eq!(keys(elapsed), "load half, jobs 4");
    assert_eq!(
        (elapsed.direction, elapsed.work),
        (Some(Direction::Lower), Some(Work::Fixed))
    );
    for damaged in by_mail(PLAIN) {
        assert_eq!(found(&damaged).measurements, plain.measurements);
    }
}

#[test]
fn heads_differ_in_words_and_maximal_has_no_number() {
    for (head, expected) in [
        (
            "Average Half load -j 4 Run (std deviation):",
            "load half, jobs 4",
        ),
        ("Average Half -j 4 Load Run:", "load half, jobs 4"),
        (
            "Average Optimal load -j 64 Run (std deviation):",
            "load optimal, jobs 64",
        ),
        (
            "Average Maximal load -j Run (std deviation):",
            "load maximal",
        ),
        ("Average Maximum -j Load Run:", "load maximal"),
        ("Average Optimal Load Run:", "load optimal"),
    ] {
        let text = PLAIN.replace("Average Half Load -j 4 Run:", head);
        assert_eq!(keys(only(&found(&text), "elapsed")), expected, "{head}");
    }
    assert_eq!(
        auto("Average Whole Load Run:\nElapsed Time 1\n"),
        Err(Refusal::NotRecognised)
    );
}

#[test]
fn the_value_is_the_first_number_and_a_deviation_may_follow() {
    let text = PLAIN.replace("Percent CPU 373.6", "Percent CPU 373.6 (38.117)");
    assert_value(only(&found(&text), "cpu"), 373.6);
    let error = refusal(&PLAIN.replace("832.34", "832.34   833.63"));
    assert!(
        error.contains("line 3") && error.contains("two sides without their labels"),
        "{error}"
    );
}

#[test]
fn sides_beside_one_another_are_two_variants() {
    let other = PLAIN.replace("245.026", "274.916");
    let both: Vec<String> = PLAIN
        .lines()
        .zip(other.lines())
        .map(|(a, b)| format!("{a}      {b}"))
        .collect();
    let both = found(&both.join("\n"));
    let sides: Vec<(Option<&str>, f64)> = both
        .measurements
        .iter()
        .map(|m| (m.variant.as_deref(), metric(m, "elapsed").value))
        .collect();
    assert_eq!(
        sides,
        [(Some("column-1"), 245.026), (Some("column-2"), 274.916)]
    );
    let error = refusal(&PLAIN.replacen("Run:", "Run:   Average Half Load -j 4 Run:", 1));
    assert!(
        error.contains("has 1 values of \"Elapsed Time\", and the head above 2"),
        "{error}"
    );
}

#[test]
fn phases_that_were_averaged_in_are_taken_out_again() {
    let pooled = found(POOLED);
    let users: Vec<f64> = pooled
        .measurements
        .iter()
        .map(|m| metric(m, "user").value)
        .collect();
    for (user, expected) in users.iter().zip([160.4, 170.4, 174.4]) {
        assert!((user - expected).abs() < 1e-9, "{users:?}");
    }
    assert_value(metric(&pooled.measurements[1], "elapsed"), 90.1);
    let share = metric(&pooled.measurements[1], "cpu").value;
    assert!((share - 224.8).abs() < 1e-9, "{share}");
    // The third phase agrees with itself by chance, and is averaged all the same.
    assert_eq!(pooled.reasons.len(), 2, "{:?}", pooled.reasons);
    assert!(pooled.reasons.iter().all(|r| r.contains("taken out again")));
    // Printed with one digit, known to ten times that step.
    let user = metric(&pooled.measurements[1], "user");
    assert!((user.resolution - 1.0).abs() < 1e-12);
}

#[test]
fn a_second_result_begins_anew() {
    let twice = found(&format!("{POOLED}{POOLED}"));
    let runs = runs(twice.measurements);
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0].metrics, runs[1].metrics);
}

#[test]
fn a_share_that_nothing_explains_leaves_the_elapsed_time() {
    let odd = found(&POOLED.replace("Percent CPU 207.4", "Percent CPU 307.4"));
    assert_eq!(names(&odd.measurements[1]), ["elapsed"]);
    assert!(
        odd.reasons
            .iter()
            .any(|r| r.contains("line 9") && r.contains("only the elapsed time")),
        "{:?}",
        odd.reasons
    );
    // Without deviations every row is of its phase, and what it prints is kept.
    let plain = found(&PLAIN.replace("373.6", "473.6"));
    assert!(plain.reasons.is_empty());
}

#[test]
fn damage_is_refused() {
    assert!(
        refusal(&PLAIN.replace("Elapsed Time 245.026\n", "")).contains("without an elapsed time")
    );
    assert!(refusal(&PLAIN.replace("User Time 832.34", "User Time")).contains("no value"));
    assert!(refusal(&PLAIN.replace("832.34", "832,34")).contains("LC_ALL=C"));
    assert!(refusal(&PLAIN.replace("Sleeps", "User Time")).contains("stands twice"));
}
