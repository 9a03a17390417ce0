//! SVG primitives: marks that stretch with the page, and no text in them.
//!
//! Plots hold no axes: labels are HTML beside them, so that they stay readable
//! when a narrow page shrinks the plot. Flame graphs hold their text in nested
//! frames that cut it off.

use crate::name::{REPLACEMENT, is_unsafe};
use std::fmt::Write as _;

/// Text as HTML or XML, for elements and quoted attributes alike.
///
/// Characters that XML forbids, and those that turn text around, are replaced.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Noncharacters are no XML.
            '\u{FFFE}' | '\u{FFFF}' => out.push(REPLACEMENT),
            c if is_unsafe(c) => out.push(REPLACEMENT),
            c => out.push(c),
        }
    }
    out
}

/// Steps of colour of a heat map, beside the blank of zero.
pub const LEVELS: usize = 7;

/// What a heat map shows.
#[derive(Debug, Clone)]
pub struct Heat {
    /// Cells by row and column; `None` was not measured and stays open.
    pub cells: Vec<Vec<Option<f64>>>,
    /// Bounds of the steps of colour: a cell has the step of the first bound that it
    /// does not exceed.
    pub bounds: [f64; LEVELS],
}

impl Heat {
    /// Steps of equal ratio up to the greatest cell, over at most `decades` decades.
    #[must_use]
    pub fn new(cells: Vec<Vec<Option<f64>>>, decades: f64) -> Self {
        let max = cells
            .iter()
            .flatten()
            .flatten()
            .copied()
            .fold(0.0_f64, f64::max);
        let min = cells
            .iter()
            .flatten()
            .flatten()
            .copied()
            .filter(|x| *x > 0.0)
            .fold(f64::INFINITY, f64::min);
        let span = (max / min).log10().clamp(0.3, decades);
        #[expect(clippy::cast_precision_loss, reason = "seven steps")]
        let bounds = std::array::from_fn(|i| {
            let below = (LEVELS - 1 - i) as f64 / LEVELS as f64;
            max / 10_f64.powf(span * below)
        });
        Self { cells, bounds }
    }

    /// The step of a value, 0 for nothing.
    fn level(&self, value: f64) -> usize {
        if value <= 0.0 {
            return 0;
        }
        let at = self.bounds.iter().position(|bound| value <= *bound);
        at.unwrap_or(LEVELS - 1) + 1
    }

    /// Whether nothing is above zero.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.cells.iter().flatten().flatten().all(|x| *x <= 0.0)
    }

    /// One path for each step of colour, of class `h1` to `h7`, and `h0` for zero;
    /// the first row is at the top.
    #[must_use]
    pub fn svg(&self, label: &str) -> String {
        let columns = self.cells.iter().map(Vec::len).max().unwrap_or(0);
        let mut paths: [String; LEVELS + 1] = Default::default();
        for (y, row) in self.cells.iter().enumerate() {
            let mut x = 0;
            while x < row.len() {
                let Some(level) = row[x].map(|value| self.level(value)) else {
                    x += 1;
                    continue;
                };
                let run = row[x..]
                    .iter()
                    .take_while(|cell| cell.map(|v| self.level(v)) == Some(level))
                    .count();
                write!(paths[level], "M{x} {y}h{run}v1h-{run}z").ok();
                x += run;
            }
        }
        let mut svg = open("heat", columns, self.cells.len(), label);
        for (level, path) in paths.iter().enumerate().filter(|(_, p)| !p.is_empty()) {
            write!(svg, "<path class=\"h{level}\" d=\"{path}\"/>").ok();
        }
        svg + "</svg>"
    }
}

/// An area over time, a step for each value; what was not measured is a gap.
#[must_use]
pub fn area(values: &[Option<f64>], label: &str) -> String {
    const HEIGHT: f64 = 100.0;
    let max = values.iter().flatten().copied().fold(0.0_f64, f64::max);
    let mut path = String::new();
    for (x, value) in values.iter().enumerate() {
        let Some(value) = value.filter(|v| *v > 0.0) else {
            continue;
        };
        // At least one unit: something is not nothing.
        let height = (value / max * HEIGHT).max(1.0);
        write!(path, "M{x} {HEIGHT}v-{height:.1}h1v{height:.1}z").ok();
    }
    let mut svg = open("area", values.len(), 100, label);
    if !path.is_empty() {
        write!(svg, "<path d=\"{path}\"/>").ok();
    }
    svg + "</svg>"
}

/// A curve of a plot.
#[derive(Debug, Clone)]
pub struct Line {
    class: &'static str,
    points: Vec<(f64, f64)>,
    is_joined: bool,
}

impl Line {
    /// Points that are joined, of a class that gives their colour.
    #[must_use]
    pub const fn new(class: &'static str, points: Vec<(f64, f64)>) -> Self {
        Self {
            class,
            points,
            is_joined: true,
        }
    }

    /// Points that stand alone; they are round whatever the plot's proportions, if their class has round caps.
    #[must_use]
    pub const fn dots(class: &'static str, points: Vec<(f64, f64)>) -> Self {
        Self {
            class,
            points,
            is_joined: false,
        }
    }
}

/// Curves over one another, from 0 up to `top`; the first and the last point of all are the sides.
#[must_use]
pub fn lines(all: &[Line], top: f64, label: &str) -> String {
    const WIDTH: f64 = 1000.0;
    const HEIGHT: f64 = 400.0;
    // Dots at the sides are not cut in half.
    const MARGIN: f64 = 12.0;
    let xs = all.iter().flat_map(|line| &line.points).map(|(x, _)| *x);
    let (low, high) = xs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
        (low.min(x), high.max(x))
    });
    let mut svg = open("curve", 1000, 400, label);
    for line in all {
        let mut path = String::new();
        for (x, y) in &line.points {
            let x = MARGIN + (x - low) / (high - low) * (WIDTH - 2.0 * MARGIN);
            let y = HEIGHT - y / top * HEIGHT;
            if !(x.is_finite() && y.is_finite()) {
                continue;
            }
            let verb = if path.is_empty() || !line.is_joined {
                'M'
            } else {
                'L'
            };
            write!(path, "{verb}{x:.1} {y:.1}").ok();
            if !line.is_joined {
                path.push_str("h0");
            }
        }
        if !path.is_empty() {
            write!(svg, "<path class=\"{}\" d=\"{path}\"/>", line.class).ok();
        }
    }
    svg + "</svg>"
}

fn open(class: &str, width: usize, height: usize, label: &str) -> String {
    format!(
        "<svg class=\"{class}\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\">",
        escape(label),
        width.max(1),
        height.max(1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hostile_text_cannot_leave_its_place() {
        assert_eq!(
            escape("<script>&\"'\u{1b}\u{202e}</script>"),
            "&lt;script&gt;&amp;&quot;&#39;\u{fffd}\u{fffd}&lt;/script&gt;"
        );
    }

    #[test]
    fn a_heat_map_joins_neighbours_of_one_step_and_leaves_gaps_open() {
        let heat = Heat::new(
            vec![
                vec![Some(0.0), Some(0.0), None, Some(1.0)],
                vec![Some(1000.0), Some(1000.0), Some(1000.0), Some(0.0)],
            ],
            3.0,
        );
        let svg = heat.svg("a \"plot\"");
        assert!(svg.contains("viewBox=\"0 0 4 2\"") && svg.contains("a &quot;plot&quot;"));
        assert!(
            svg.contains("<path class=\"h7\" d=\"M0 1h3v1h-3z\"/>"),
            "{svg}"
        );
        assert!(
            svg.contains("<path class=\"h0\" d=\"M0 0h2v1h-2zM3 1h1v1h-1z\"/>"),
            "{svg}"
        );
        assert!(
            svg.contains("<path class=\"h1\" d=\"M3 0h1v1h-1z\"/>"),
            "{svg}"
        );
        assert!(!heat.is_blank());
        assert!(Heat::new(vec![vec![Some(0.0), None]], 3.0).is_blank());
    }

    #[test]
    fn an_area_shows_the_least_value_and_no_gap() {
        let svg = area(&[Some(1e9), None, Some(1.0), Some(0.0)], "x");
        assert!(
            svg.contains("d=\"M0 100v-100.0h1v100.0zM2 100v-1.0h1v1.0z\""),
            "{svg}"
        );
        assert!(!area(&[None, Some(0.0)], "x").contains("<path"));
    }

    #[test]
    fn curves_fill_their_plot_and_dots_stand_alone() {
        let svg = lines(
            &[
                Line::new("line", vec![(0.0, 0.0), (1.0, 2.0), (f64::NAN, 1.0)]),
                Line::dots("dots", vec![(0.0, 4.0), (2.0, 1.0)]),
            ],
            4.0,
            "<x>",
        );
        assert!(
            svg.contains("<path class=\"line\" d=\"M12.0 400.0L500.0 200.0\"/>"),
            "{svg}"
        );
        assert!(
            svg.contains("<path class=\"dots\" d=\"M12.0 0.0h0M988.0 300.0h0\"/>"),
            "{svg}"
        );
        assert!(svg.contains("aria-label=\"&lt;x&gt;\""));
        assert!(!lines(&[Line::new("line", vec![(0.0, 0.0)])], 0.0, "").contains("<path"));
    }

    proptest! {
        #[test]
        fn steps_ascend_and_every_value_has_one(values in prop::collection::vec(prop::option::of(0.0_f64..1e12), 1..40)) {
            let heat = Heat::new(vec![values.clone()], 3.0);
            prop_assert!(heat.bounds.is_sorted());
            for v in values.into_iter().flatten() {
                let level = heat.level(v);
                prop_assert!(level <= LEVELS);
                prop_assert_eq!(level == 0, v <= 0.0);
            }
        }

        #[test]
        fn escaped_text_holds_no_markup(s in ".{0,40}") {
            let out = escape(&s);
            prop_assert!(!out.contains(['<', '>', '"', '\'']));
            prop_assert!(!out.chars().any(is_unsafe));
        }
    }
}
