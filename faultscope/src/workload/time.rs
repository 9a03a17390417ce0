//! GNU time (default, `-v`, `-p`) and the `time` of bash and of Korn shells.

use super::found::{Format, Found, Measurement, Outcome, Refusal};
use super::metric::{Direction, Metric};
use super::number::{self, NotANumber, Printed};

/// How the command ended, from the line that GNU time writes first if it was not well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Status(i32),
    Signal(i32),
}

/// Finds every result of a `time` in `text`.
pub(super) fn parse(text: &str) -> Outcome {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Found::default();
    let mut is_there = false;
    let mut ending = None;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if let Some(new) = parse_ending(line) {
            ending = Some(new);
        }
        let taken = if line.starts_with("User time (seconds): ") {
            Some(verbose(&lines[at..]))
        } else if is_short(line) {
            Some(short(&lines[at..]))
        } else {
            shell(&lines[at..])
        };
        let Some(taken) = taken else {
            at += 1;
            continue;
        };
        is_there = true;
        let (count, metrics) = match taken {
            Ok(taken) => taken,
            Err(reason) => {
                return Some(Err(Refusal::Line {
                    line: at + 1,
                    reason,
                }));
            }
        };
        let number = at + 1;
        match ending.take() {
            Some(Ending::Signal(signal)) => found.reasons.push(format!(
                "line {number}: signal {signal} ended the timed command, so its times are those of an unknown part of the work"
            )),
            Some(Ending::Status(status)) => {
                found.reasons.push(format!("line {number}: the timed command ended with status {status}"));
                found.measurements.push(Measurement {
                    exit_status: Some(status),
                    ..Measurement::new(Format::Time, metrics)
                });
            }
            None => found.measurements.push(Measurement::new(Format::Time, metrics)),
        }
        at += count.max(1);
    }
    is_there.then_some(Ok(found))
}

/// A result: how many lines it takes, and its figures; or why it cannot be read.
type Taken = Result<(usize, Vec<Metric>), String>;

fn parse_ending(line: &str) -> Option<Ending> {
    if let Some(status) = line.strip_prefix("Command exited with non-zero status ") {
        return status.parse().ok().map(Ending::Status);
    }
    let signal = line
        .strip_prefix("Command terminated by signal ")
        .or_else(|| line.strip_prefix("Command stopped by signal "))?;
    signal.parse().ok().map(Ending::Signal)
}

fn seconds(name: &str, value: Printed) -> Metric {
    Metric::printed(Format::Time, name, value, "s").better(Direction::Lower)
}

fn count(name: &str, text: &str) -> Option<Metric> {
    let value = number::parse(text).ok()?;
    Some(Metric::printed(Format::Time, name, value, "count"))
}

/// The labels of `-v` that are kept: name of the figure and unit.
const VERBOSE: &[(&str, &str, &str)] = &[
    ("User time (seconds)", "user", "s"),
    ("System time (seconds)", "system", "s"),
    ("Percent of CPU this job got", "cpu", "%"),
    (
        "Elapsed (wall clock) time (h:mm:ss or m:ss)",
        "elapsed",
        "s",
    ),
    ("Maximum resident set size (kbytes)", "max rss", "KiB"),
    ("Major (requiring I/O) page faults", "major faults", "count"),
    (
        "Minor (reclaiming a frame) page faults",
        "minor faults",
        "count",
    ),
    ("Voluntary context switches", "voluntary switches", "count"),
    (
        "Involuntary context switches",
        "involuntary switches",
        "count",
    ),
];

/// The block of `-v`, from its user time to its exit status.
fn verbose(lines: &[&str]) -> Taken {
    let mut metrics = Vec::new();
    let mut is_whole = false;
    let mut taken = 0;
    for line in lines {
        // A label may hold colons itself.
        let Some((label, value)) = line.rsplit_once(": ") else {
            break;
        };
        if taken > 0 && label == "User time (seconds)" {
            break;
        }
        taken += 1;
        if label == "Exit status" {
            is_whole = true;
            break;
        }
        let Some((_, name, unit)) = VERBOSE.iter().find(|(l, _, _)| *l == label) else {
            continue;
        };
        let value = value.strip_suffix('%').unwrap_or(value);
        // No CPU share can be told of a command that took no time.
        if value == "?" {
            continue;
        }
        let read = if *name == "elapsed" {
            clock(value)
        } else {
            number::parse(value)
        };
        let read = read.map_err(|error| format!("\"{label}\": \"{value}\" {}", error.reason()))?;
        metrics.push(match *unit {
            "s" => seconds(name, read),
            unit => Metric::printed(Format::Time, name, read, unit),
        });
    }
    if !is_whole || !metrics.iter().any(|m| m.name == "elapsed") {
        return Err("this result of \"time -v\" is cut short".to_owned());
    }
    Ok((taken, metrics))
}

/// Whether the line is the first of GNU time's default format.
fn is_short(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(4).collect();
    matches!(words.as_slice(), [user, system, elapsed, ..]
        if is_time(user, "user") && is_time(system, "system") && is_time(elapsed, "elapsed"))
}

fn is_time(word: &str, suffix: &str) -> bool {
    word.strip_suffix(suffix).is_some_and(starts_with_digit)
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// The two lines of the default format.
fn short(lines: &[&str]) -> Taken {
    let mut metrics = Vec::new();
    let first = lines.first().copied().unwrap_or_default();
    for word in first.split_whitespace() {
        let word = word.trim_matches(['(', ')']);
        let read = |text: &str, parse: fn(&str) -> Result<Printed, NotANumber>| {
            parse(text).map_err(|error| format!("\"{word}\" {}", error.reason()))
        };
        if let Some(text) = word.strip_suffix("user") {
            metrics.push(seconds("user", read(text, number::parse)?));
        } else if let Some(text) = word.strip_suffix("system") {
            metrics.push(seconds("system", read(text, number::parse)?));
        } else if let Some(text) = word.strip_suffix("elapsed") {
            metrics.push(seconds("elapsed", read(text, clock)?));
        } else if let Some(text) = word.strip_suffix("%CPU")
            && text != "?"
        {
            metrics.push(Metric::printed(
                Format::Time,
                "cpu",
                read(text, number::parse)?,
                "%",
            ));
        } else if let Some(text) = word
            .strip_suffix(")k")
            .unwrap_or(word)
            .strip_suffix("maxresident")
        {
            metrics.push(Metric::printed(
                Format::Time,
                "max rss",
                read(text, number::parse)?,
                "KiB",
            ));
        }
    }
    let second = lines.get(1).copied().unwrap_or_default();
    let mut taken = 1;
    if let Some(faults) = second
        .split_whitespace()
        .find_map(|w| w.strip_suffix("pagefaults"))
    {
        taken = 2;
        let (major, minor) = faults
            .trim_matches(['(', ')'])
            .split_once('+')
            .unwrap_or_default();
        let major = major
            .strip_suffix("major")
            .and_then(|n| count("major faults", n));
        let minor = minor
            .strip_suffix("minor")
            .and_then(|n| count("minor faults", n));
        metrics.extend(major.into_iter().chain(minor));
    }
    Ok((taken, metrics))
}

/// `real`, `user`, `sys` on a line each (bash, `-p`), or after their values on one line (Korn shells).
fn shell(lines: &[&str]) -> Option<Taken> {
    let words: Vec<&str> = lines[0].split_whitespace().take(7).collect();
    if let [real, "real", user, "user", system, "system"] = words.as_slice()
        && [real, user, system].iter().all(|v| starts_with_digit(v))
    {
        return Some(shell_values(1, real, user, system));
    }
    let labelled = |at: usize, label: &str| {
        let (word, value) = lines.get(at)?.split_once(char::is_whitespace)?;
        let value = value.trim();
        (word == label && starts_with_digit(value) && !value.contains(char::is_whitespace))
            .then_some(value)
    };
    let (real, user, system) = (
        labelled(0, "real")?,
        labelled(1, "user")?,
        labelled(2, "sys")?,
    );
    Some(shell_values(3, real, user, system))
}

fn shell_values(taken: usize, real: &str, user: &str, system: &str) -> Taken {
    let mut metrics = Vec::new();
    for (name, text) in [("elapsed", real), ("user", user), ("system", system)] {
        let read = shell_clock(text).map_err(|error| format!("\"{text}\" {}", error.reason()))?;
        metrics.push(seconds(name, read));
    }
    Ok((taken, metrics))
}

/// `1m2.345s`, `1h2m3.45s` or plain seconds.
fn shell_clock(text: &str) -> Result<Printed, NotANumber> {
    let (hours, rest) = text.split_once('h').unwrap_or(("0", text));
    let (minutes, rest) = rest.split_once('m').unwrap_or(("0", rest));
    sum(&[hours, minutes, rest.strip_suffix('s').unwrap_or(rest)])
}

/// `m:ss.cc` or `h:mm:ss`.
fn clock(text: &str) -> Result<Printed, NotANumber> {
    let parts: Vec<&str> = text.splitn(4, ':').collect();
    match parts.as_slice() {
        [_, _] | [_, _, _] => sum(&parts),
        _ => Err(NotANumber::Other),
    }
}

/// Hours, minutes and seconds, as many as there are, as seconds.
fn sum(parts: &[&str]) -> Result<Printed, NotANumber> {
    let mut total = Printed {
        value: 0.0,
        decimals: 0,
    };
    for part in parts {
        let part = number::parse(part)?;
        if part.value < 0.0 {
            return Err(NotANumber::Other);
        }
        total = Printed {
            value: total.value * 60.0 + part.value,
            decimals: part.decimals,
        };
    }
    if total.value.is_finite() {
        Ok(total)
    } else {
        Err(NotANumber::Other)
    }
}
