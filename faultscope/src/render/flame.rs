//! Flame graphs as static SVG, and the folded stacks they are made of.
//!
//! Drawn here and not by a crate: what the usual tools write needs a script to
//! fit the text into its frame, and a report works without scripting. The folded
//! text is theirs, for those who want to click.

use super::svg::escape;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Height of a frame, pixels.
const ROW: usize = 18;
/// Frames of a smaller share are not drawn.
const LEAST: f64 = 0.001;
/// Deepest frame drawn: a hostile stack must not make a page of any height.
const DEEPEST: usize = 128;
/// Shades of frames.
const SHADES: u32 = 6;

/// Stacks with a weight each, outermost frame first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stacks(BTreeMap<Vec<String>, u64>);

impl Stacks {
    /// Adds a weight to a stack; nothing is added for none.
    pub fn add(&mut self, frames: Vec<String>, weight: u64) {
        if weight > 0 && !frames.is_empty() {
            let sum = self.0.entry(frames).or_default();
            *sum = sum.saturating_add(weight);
        }
    }

    /// Whether there is no stack.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All weights.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// The stacks, greatest weight first.
    #[must_use]
    pub fn greatest(&self) -> Vec<(&[String], u64)> {
        let mut stacks: Vec<(&[String], u64)> =
            self.0.iter().map(|(s, n)| (s.as_slice(), *n)).collect();
        stacks.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        stacks
    }

    /// One line for each stack: frames joined by `;`, a blank, the weight.
    #[must_use]
    pub fn folded(&self) -> String {
        let mut out = String::new();
        for (frames, weight) in &self.0 {
            let frames: Vec<String> = frames.iter().map(|frame| plain(frame)).collect();
            writeln!(out, "{} {weight}", frames.join(";")).ok();
        }
        out
    }
}

/// A frame without what separates frames, lines and weights.
fn plain(frame: &str) -> String {
    super::cell::scrub(frame).replace(';', ",")
}

#[derive(Debug, Default)]
struct Node<'a> {
    weight: u64,
    children: BTreeMap<&'a str, Node<'a>>,
}

impl<'a> Node<'a> {
    fn of(stacks: &'a Stacks) -> Self {
        let mut root = Self::default();
        for (frames, weight) in &stacks.0 {
            root.weight = root.weight.saturating_add(*weight);
            let mut node = &mut root;
            for frame in frames.iter().take(DEEPEST) {
                node = node.children.entry(frame).or_default();
                node.weight = node.weight.saturating_add(*weight);
            }
        }
        root
    }

    fn depth(&self) -> usize {
        self.children
            .values()
            .map(|child| 1 + child.depth())
            .max()
            .unwrap_or(0)
    }
}

/// What is drawn, and what is not.
#[derive(Debug)]
struct Drawing {
    out: String,
    total: f64,
    depth: usize,
    left_out: u64,
    format: fn(u64) -> String,
}

impl Drawing {
    /// Draws the frames above one that begins at `x` (a share of the width).
    #[expect(clippy::cast_precision_loss, reason = "a place on a screen")]
    fn above(&mut self, node: &Node<'_>, x: f64, level: usize) {
        let mut at = x;
        for (name, child) in &node.children {
            let share = child.weight as f64 / self.total;
            if share < LEAST {
                self.left_out += 1;
            } else {
                self.frame(name, child.weight, at, share, level);
                self.above(child, at, level + 1);
            }
            at += share;
        }
    }

    fn frame(&mut self, name: &str, weight: u64, x: f64, share: f64, level: usize) {
        let y = (self.depth - level) * ROW;
        let name = escape(name);
        write!(
            self.out,
            "<svg x=\"{:.3}%\" y=\"{y}\" width=\"{:.3}%\" height=\"{}\"><title>{name}: {}, {:.1} %</title>\
             <rect class=\"f{}\" width=\"100%\" height=\"100%\"/>",
            x * 100.0,
            share * 100.0,
            ROW - 1,
            escape(&(self.format)(weight)),
            share * 100.0,
            shade(&name),
        )
        .ok();
        // A frame too narrow for a letter has its title alone.
        if share > 0.01 {
            write!(self.out, "<text x=\"4\" y=\"13\">{name}</text>").ok();
        }
        self.out.push_str("</svg>\n");
    }
}

/// A shade by name, so that a function looks the same everywhere.
fn shade(name: &str) -> u32 {
    name.bytes()
        .fold(2_166_136_261_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(16_777_619)
        })
        .rotate_left(7)
        % SHADES
}

/// A flame graph of the width of its place: the outermost frame `root` at the
/// bottom. `format` words a weight, `label` says what is shown.
#[must_use]
pub fn flame(stacks: &Stacks, root: &str, label: &str, format: fn(u64) -> String) -> String {
    draw(stacks, root, label, format, "", "")
}

/// The same as a document of its own.
#[must_use]
pub fn flame_document(
    stacks: &Stacks,
    root: &str,
    label: &str,
    format: fn(u64) -> String,
) -> String {
    let style = format!(
        "<title>{}</title><style>{STYLE} svg{{font:12px monospace;background:#fff}}</style>\n",
        escape(label)
    );
    draw(
        stacks,
        root,
        label,
        format,
        " xmlns=\"http://www.w3.org/2000/svg\" width=\"1200\"",
        &style,
    ) + "\n"
}

/// Colours of frames; text on them is black in any theme.
pub const STYLE: &str = ".f0{fill:#f6c177}.f1{fill:#eba765}.f2{fill:#f2d398}.f3{fill:#e8936a}.f4{fill:#f5b48c}.f5{fill:#e9c46a}\
     .flame text{fill:#1b1b1b}";

fn draw(
    stacks: &Stacks,
    root: &str,
    label: &str,
    format: fn(u64) -> String,
    attributes: &str,
    style: &str,
) -> String {
    let tree = Node::of(stacks);
    let depth = tree.depth();
    #[expect(clippy::cast_precision_loss, reason = "a place on a screen")]
    let mut drawing = Drawing {
        out: String::new(),
        total: tree.weight.max(1) as f64,
        depth,
        left_out: 0,
        format,
    };
    drawing.frame(root, tree.weight, 0.0, 1.0, 0);
    drawing.above(&tree, 0.0, 1);
    let height = (depth + 1) * ROW;
    let left_out = match drawing.left_out {
        0 => String::new(),
        n => format!("; {n} frames below 0.1 % are not drawn"),
    };
    format!(
        "<svg{attributes} class=\"flame\" role=\"img\" aria-label=\"{}{left_out}\" height=\"{height}\">{style}{}</svg>",
        escape(label),
        drawing.out
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks() -> Stacks {
        let mut stacks = Stacks::default();
        for (frames, n) in [("a;b", 60), ("a;c", 30), ("d", 10)] {
            stacks.add(frames.split(';').map(str::to_owned).collect(), n);
        }
        stacks
    }

    #[test]
    fn folded_lines_have_frames_and_a_weight() {
        let mut s = stacks();
        s.add(vec!["x;y 7\n".into(), "<z>".into()], 5);
        s.add(vec!["never".into()], 0);
        assert_eq!(s.folded(), "a;b 60\na;c 30\nd 10\nx,y 7\u{fffd};<z> 5\n");
        assert_eq!(s.total(), 105);
        assert_eq!(s.greatest()[0].1, 60);
    }

    #[test]
    fn frames_lie_above_their_callers_and_are_as_wide_as_their_weight() {
        let svg = flame(&stacks(), "all", "waits", |n| format!("{n} ns"));
        // Two levels above the root: the innermost frame is at the top.
        for part in [
            "height=\"54\"",
            "<svg x=\"0.000%\" y=\"36\" width=\"100.000%\"",
            "<svg x=\"0.000%\" y=\"18\" width=\"90.000%\" height=\"17\"><title>a: 90 ns, 90.0 %</title>",
            "<svg x=\"60.000%\" y=\"0\" width=\"30.000%\" height=\"17\"><title>c: 30 ns, 30.0 %</title>",
            "<svg x=\"90.000%\" y=\"18\" width=\"10.000%\"",
        ] {
            assert!(svg.contains(part), "{part}\n{svg}");
        }
        assert!(!svg.contains("script"));
    }

    #[test]
    fn hostile_and_endless_stacks_stay_in_their_frames() {
        let mut s = Stacks::default();
        s.add(
            vec!["</title><script>alert(1)</script>".into(); 5_000],
            u64::MAX,
        );
        s.add(vec!["\"onload=\"x".into()], u64::MAX);
        let svg = flame_document(&s, "all", "x", |n| n.to_string());
        assert!(!svg.contains("<script") && !svg.contains("\"onload"));
        assert!(svg.matches("<rect").count() <= DEEPEST + 2);
    }
}
