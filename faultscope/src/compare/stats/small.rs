//! What few runs allow to say, in sentences.

use super::{ALPHA, Design, shift};

/// Fewest runs that tell how far apart they lie by chance: only from four on do halves have an interval.
pub const MIN_ALIKE: usize = 8;

/// What a reader must know of a comparison of so few runs; `None` if there are enough.
///
/// `percent` is the difference of two single runs, in percent.
#[must_use]
pub fn small_n(design: Design, percent: Option<f64>) -> Option<String> {
    let floor = design.floor();
    let smaller = design.smaller();
    let (sides, unit, repeat) = match design {
        Design::Sides(n, m) if n == m => (
            "per side".to_owned(),
            "runs per side",
            "times per side, alternating kernels",
        ),
        Design::Sides(n, m) => (
            format!("on one side, {} on the other", n.max(m)),
            "runs per side",
            "times per side, alternating kernels",
        ),
        Design::Pairs(_) => ("paired".to_owned(), "pairs", "rounds"),
    };
    let runs = if smaller == 1 { "1 run" } else { "runs" };
    // Whatever is missing, the number to aim at is one.
    let enough = design.enough(ALPHA)?;
    if smaller == 1 {
        let difference = percent.map_or_else(String::new, |p| format!(" Difference {p:+.1} %."));
        return Some(format!(
            "{runs} {sides}: no noise estimate.{difference} No verdict possible. Repeat at least {enough} {repeat}."
        ));
    }
    if floor > ALPHA {
        return Some(format!(
            "{smaller} {runs} {sides}: values and range only, no interval; the smallest possible p is {floor:.2}. At least \
             {enough} {unit} are needed."
        ));
    }
    (smaller < enough).then(|| {
        format!(
            "{smaller} {runs} {sides}: one bad run decides; at least {enough} {unit} are safer."
        )
    })
}

/// How far apart two halves of one side may lie by chance: the larger end of the interval between every other run
/// and the rest, as a ratio (0.03 for 3 %). `values` are in order of start; `None` for fewer than
/// [`MIN_ALIKE`].
#[must_use]
pub fn aa_floor(values: &[f64]) -> Option<f64> {
    let half = |odd: usize| -> Vec<f64> { values.iter().skip(odd).step_by(2).copied().collect() };
    let found = shift(&half(0), &half(1))?;
    let (low, high) = found.percent_interval()?;
    Some(low.abs().max(high.abs()) / 100.0)
}

/// How far apart single runs may lie by chance: of 95 % of all pairs of `values` the larger is no further above the
/// smaller, as a ratio (0.03 for 3 %). `None` for fewer than [`MIN_ALIKE`], or with one that is not positive.
#[must_use]
pub fn single_floor(values: &[f64]) -> Option<f64> {
    if values.len() < MIN_ALIKE || values.iter().any(|v| *v <= 0.0) {
        return None;
    }
    let mut apart: Vec<f64> = values
        .iter()
        .enumerate()
        .flat_map(|(i, a)| values[..i].iter().map(move |b| (a / b).ln().abs()))
        .collect();
    apart.sort_by(f64::total_cmp);
    // The value that 95 % do not exceed: the smallest rank of at least that share.
    let rank = (apart.len() * 19).div_ceil(20);
    apart.get(rank - 1).map(|ln| ln.exp_m1())
}
