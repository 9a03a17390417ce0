//! The two header lines, as segments with a meaning and a rank.

use super::cell::{ABSENT, align, scrub, width};
use super::number::{format_bytes, format_ns, format_ratio, format_si};
use super::time::format_clock;
use crate::model::Model;

/// What a piece of text means; the terminal theme gives it a style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// An ordinary figure.
    Plain,
    /// The running screen's badge.
    Live,
    /// The paused screen's badge.
    Paused,
    /// A loss or another reason for distrust; its text begins with `!`.
    Bad,
}

/// A piece of a header line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Text without blanks at its ends.
    pub text: String,
    /// Meaning.
    pub tone: Tone,
    /// 0 stays longest when the line is narrow.
    pub rank: u8,
}

/// Blank cells between two segments.
pub const GAP: usize = 2;

fn plain(rank: u8, text: String) -> Segment {
    Segment {
        text,
        tone: Tone::Plain,
        rank,
    }
}

fn figure(v: Option<f64>, format: impl Fn(f64) -> String) -> String {
    v.map_or_else(|| ABSENT.to_owned(), format)
}

/// The two lines that stand above every view, machine-wide and unfiltered.
///
/// `badge` says whether the numbers are live; batch text has none.
#[must_use]
pub fn header_lines(model: &Model, badge: Option<Segment>) -> [Vec<Segment>; 2] {
    let h = &model.header;
    let rate = |x: f64| format!("{}/s", format_si(x));
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let bytes = |n: Option<u64>| figure(n.map(|n| n as f64), format_bytes);
    let first = badge
        .into_iter()
        .chain([
            plain(4, align_max(&scrub(&model.host.name), 24)),
            plain(6, align_max(&scrub(&model.host.kernel), 24)),
            plain(5, format_clock(model.t_real_ns)),
            plain(1, format!("minor {}", figure(h.minor_per_sec, rate))),
            plain(1, format!("major {}", figure(h.major_per_sec, rate))),
        ])
        .collect();
    let lost = model.lost_total();
    let drops = if lost > 0 {
        Segment {
            text: format!("! drops {lost}"),
            tone: Tone::Bad,
            rank: 0,
        }
    } else {
        plain(0, "drops 0".to_owned())
    };
    let mut second = vec![
        plain(
            2,
            format!(
                "lock wait/s: mmap {}",
                figure(h.mmap_lock_wait_ns_per_sec, format_ns)
            ),
        ),
        plain(
            3,
            format!("lru {}", figure(h.lru_lock_wait_ns_per_sec, format_ns)),
        ),
        plain(3, format!("own {}", figure(h.own_cpu_ratio, format_ratio))),
        plain(5, format!("bpf {}", figure(h.own_bpf_ratio, format_ratio))),
        plain(6, format!("rss {}", bytes(h.own_rss_bytes))),
        drops,
    ];
    let mode = h.spinlock.mode.as_deref().unwrap_or(ABSENT);
    let exact = if h.spinlock.is_exact { ", exact" } else { "" };
    second.push(plain(7, format!("spinlocks {mode}{exact}")));
    if h.overruns > 0 {
        second.push(plain(7, format!("late ticks {}", h.overruns)));
    }
    if h.own_map_bytes.is_some() {
        second.push(plain(8, format!("maps {}", bytes(h.own_map_bytes))));
    }
    [first, second]
}

fn align_max(text: &str, max: usize) -> String {
    align(text, width(text).min(max), false, '~')
}

/// Leaves out the segments of the greatest rank until the line fits.
#[must_use]
pub fn fit_segments(mut line: Vec<Segment>, available: usize) -> Vec<Segment> {
    while line.len() > 1 && line_width(&line) > available {
        let last = (0..line.len()).max_by_key(|i| (line[*i].rank, *i));
        if let Some(i) = last {
            line.remove(i);
        }
    }
    line
}

fn line_width(line: &[Segment]) -> usize {
    line.iter().map(|s| width(&s.text) + GAP).sum::<usize>() - GAP.min(line.len() * GAP)
}

/// The line as text.
#[must_use]
pub fn join(line: &[Segment]) -> String {
    let texts: Vec<&str> = line.iter().map(|s| s.text.as_str()).collect();
    texts.join(&" ".repeat(GAP))
}

/// Says which kernel-side filter narrows the rows; the header it does not.
#[must_use]
pub fn filter_line(model: &Model) -> Option<String> {
    let filter = scrub(&model.header.filter);
    (!filter.is_empty()).then(|| format!("filter: {filter}; header totals are unfiltered"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_line_keeps_the_lowest_ranks() {
        let line = vec![
            plain(4, "host".into()),
            plain(0, "drops 0".into()),
            plain(1, "minor 1/s".into()),
        ];
        assert_eq!(
            join(&fit_segments(line.clone(), 80)),
            "host  drops 0  minor 1/s"
        );
        assert_eq!(join(&fit_segments(line.clone(), 20)), "drops 0  minor 1/s");
        assert_eq!(join(&fit_segments(line, 3)), "drops 0");
        assert!(fit_segments(Vec::new(), 3).is_empty());
    }
}
