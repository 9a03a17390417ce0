//! The tables, for a terminal and for README.md.

use std::fmt::Write as _;

use super::load::LOADS;
use super::stats::Spread;
use super::{Effect, Measured, Row};

/// What stands where there is no figure.
const NONE: &str = "-";

/// Cells of a row after its name.
fn cells(effect: &Effect) -> [String; 4] {
    let spread = |spread: Option<Spread>, values: &[f64]| match (spread, values) {
        (Some(s), _) => format!("{:.3} [{:.3}, {:.3}]", s.median, s.low, s.high),
        // Too few for an interval; the values themselves are few enough to show.
        (None, []) => NONE.to_owned(),
        (None, values) => {
            let values: Vec<String> = values.iter().map(|v| format!("{v:.3}")).collect();
            values.join(", ")
        }
    };
    let computed = effect.computed.as_ref().map_or_else(
        || [NONE.to_owned(), NONE.to_owned()],
        |c| {
            [
                format!("{:.3}", c.throughput),
                format!("{:.0} ns in {:.2} runs", c.ns, c.runs),
            ]
        },
    );
    let [ratio, programs] = computed;
    [
        spread(effect.throughput(), &effect.throughput),
        spread(effect.by_cpu(), &effect.by_cpu),
        ratio,
        programs,
    ]
}

const HEADS: [&str; 4] = [
    "throughput",
    "by CPU time",
    "computed",
    "BPF programs for an event",
];

/// What each program of a tool takes, for the terminal.
fn programs(measured: &Measured, load: usize) -> String {
    let mut text = String::new();
    for row in &measured.rows {
        for ran in row.effects[load].computed.iter().flat_map(|c| &c.programs) {
            // Writing to a string cannot fail.
            let _written = writeln!(
                text,
                "    {:<34} {:<16} {:>5.2} runs an event, {:>5.0} ns a run",
                row.tool.name, ran.name, ran.runs, ran.ns_a_run
            );
        }
    }
    text
}

/// Why a row has no figures, or not all of them.
fn note(row: &Row, effect: &Effect) -> Option<String> {
    let reason = row.missing.as_ref()?;
    Some(match effect.throughput.len() {
        0 => format!("missing: {reason}"),
        pairs => format!("ended after {pairs} pairs: {reason}"),
    })
}

fn bare(measured: &Measured, load: usize) -> String {
    let (wall, cpu) = measured.bare[load];
    let event = LOADS[load].event;
    format!(
        "bare: {:.0} {event}s a second, {cpu:.0} ns of CPU time a {event}",
        1e9 / wall
    )
}

/// Rows that could not be measured, or not to the end.
fn missing(measured: &Measured) -> String {
    let all = measured.rows.len();
    let gone = measured.rows.iter().filter(|r| r.missing.is_some()).count();
    match gone {
        0 => format!("all {all} rows were measured"),
        _ => format!("{gone} of {all} rows are missing or incomplete"),
    }
}

fn statistics(measured: &Measured) -> String {
    match &measured.statistics {
        Ok(ns) => format!(
            "computed = bare / (bare + ns in BPF programs), less the {ns:.0} ns a run of the statistics themselves"
        ),
        Err(reason) => format!("nothing computed, as there are no run-time statistics: {reason}"),
    }
}

/// The tables for a terminal.
pub(super) fn text(measured: &Measured) -> String {
    let mut text = format!(
        "throughput with the tool / without, paired, median [95 % interval by the sign test]\n\
         kernel {}, {}; {}\n",
        measured.kernel,
        measured.date,
        measured.versions.join(", ")
    );
    for (index, load) in LOADS.iter().enumerate() {
        let pairs = measured
            .rows
            .iter()
            .map(|row| row.effects[index].throughput.len());
        let pairs = pairs.max().unwrap_or(0);
        let mut lines = format!(
            "\n{}; {pairs} pairs\n  {}\n",
            load.title,
            bare(measured, index)
        );
        let mut line = |name: &str, cells: [&str; 4]| {
            let [a, b, c, d] = cells;
            lines += format!("  {name:<36} {a:<22} {b:<22} {c:<9} {d}").trim_end();
            lines.push('\n');
        };
        line("", HEADS);
        for row in &measured.rows {
            let effect = &row.effects[index];
            if !effect.throughput.is_empty() {
                let cells = cells(effect);
                line(row.tool.name, [&cells[0], &cells[1], &cells[2], &cells[3]]);
            }
            if let Some(note) = note(row, effect) {
                line(row.tool.name, [&note, "", "", ""]);
            }
        }
        lines += &programs(measured, index);
        text += &lines;
    }
    text + &format!("\n{}\n{}\n", statistics(measured), missing(measured))
}

/// The tables for README.md.
pub(super) fn markdown(measured: &Measured) -> String {
    let mut text = format!(
        "\nMeasured on {}, kernel {}, by `{}`; {}. Ratios are throughput with the tool over throughput without, in\n\
         interleaved pairs: the median and its 95 % interval.\n",
        measured.date,
        measured.kernel,
        measured.command,
        measured.versions.join(", ")
    );
    for (index, load) in LOADS.iter().enumerate() {
        // Writing to a string cannot fail.
        let _written = write!(
            text,
            "\n**{}** ({}; {} pairs)\n\n| with | {} |\n|---|---|---|---|---|\n",
            upper(load.title),
            bare(measured, index),
            measured
                .rows
                .iter()
                .map(|r| r.effects[index].throughput.len())
                .max()
                .unwrap_or(0),
            HEADS.join(" | ")
        );
        for row in &measured.rows {
            let effect = &row.effects[index];
            let cells = match note(row, effect) {
                Some(note) if effect.throughput.is_empty() => format!("{note} | | | "),
                Some(note) => format!("{}; {note}", cells(effect).join(" | ")),
                None => cells(effect).join(" | "),
            };
            let _written = writeln!(text, "| {} | {cells} |", row.tool.name);
        }
    }
    text + &format!(
        "\n{}. {}.\n",
        upper(&statistics(measured)),
        upper(&missing(measured))
    )
}

fn upper(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::super::tool::Tool;
    use super::super::{Computed, Ran};
    use super::*;

    fn measured() -> Measured {
        let mut there = Row::new(Tool::absent("there"));
        for effect in &mut there.effects {
            effect.throughput = vec![0.9; 6];
            effect.by_cpu = vec![0.8; 6];
        }
        there.effects[0].computed = Some(Computed {
            runs: 2.0,
            ns: 50.0,
            throughput: 0.95,
            programs: vec![Ran {
                name: "counter".to_owned(),
                runs: 2.0,
                ns_a_run: 25.0,
            }],
        });
        let mut gone = Row::new(Tool::absent("gone"));
        gone.missing = Some("\"gone\" is not installed".to_owned());
        Measured {
            rows: vec![there, gone],
            bare: [(1000.0, 900.0), (5000.0, 9000.0)],
            statistics: Ok(30.0),
            command: "cargo xtask bench overhead".to_owned(),
            kernel: "6.12".to_owned(),
            date: "1 May 2026".to_owned(),
            versions: vec!["perf 6.1".to_owned()],
        }
    }

    #[test]
    fn a_missing_row_is_shown_and_counted() {
        for text in [text(&measured()), markdown(&measured())] {
            for part in [
                "0.900 [0.900, 0.900]",
                "0.800 [0.800, 0.800]",
                "50 ns in 2.00 runs",
                "missing: \"gone\" is not installed",
                "1 of 2 rows are missing or incomplete",
                "1000000 faults a second, 900 ns of CPU time a fault",
            ] {
                assert!(text.contains(part), "{part}\n{text}");
            }
        }
    }

    #[test]
    fn every_row_of_the_markdown_has_five_cells() {
        let text = markdown(&measured());
        for line in text.lines().filter(|line| line.starts_with('|')) {
            assert_eq!(line.matches('|').count(), 6, "{line}");
        }
    }

    #[test]
    fn programs_stand_below_the_terminals_table() {
        let text = text(&measured());
        let lines = text.lines().filter(|line| line.contains("counter"));
        let lines: Vec<_> = lines.collect();
        assert!(lines.len() == 1 && lines[0].ends_with("2.00 runs an event,    25 ns a run"));
    }

    #[test]
    fn few_pairs_show_their_values() {
        let mut measured = measured();
        measured.rows[0].effects[0].throughput.truncate(2);
        assert!(text(&measured).contains("0.900, 0.900  "));
    }
}
