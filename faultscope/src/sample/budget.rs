//! Samples of the CPU clock: where the time of faults went.

use crate::symbol::{FAULT_PARTS, FaultPart};
use std::sync::Arc;

/// Index into a part's samples: faults from user mode.
pub const USER: usize = 0;
/// Index: faults the kernel took.
pub const KERNEL: usize = 1;
/// Index: populate and get_user_pages, which trap nowhere.
pub const UNTRAPPED: usize = 2;
/// Number of origins.
pub const ORIGINS: usize = 3;

/// Samples of one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budget {
    /// CPU time a sample stands for, ns.
    pub period_ns: u64,
    /// CPUs that gave samples.
    pub cpus: u64,
    /// All samples; never filtered.
    pub samples: u64,
    /// Of those, in the idle task; never filtered.
    pub idle: u64,
    /// In user mode, of the threads the filter lets through.
    pub user: u64,
    /// In the kernel outside the idle task, of the same threads.
    pub kernel: u64,
    /// Of `kernel`, with too many frames to tell.
    pub deep: u64,
    /// Of `kernel`, inside a fault that an interrupt interrupted: not fault time.
    pub interrupted: u64,
    /// Of `kernel`, in the fault path, by part and origin.
    pub parts: [[u64; ORIGINS]; FAULT_PARTS],
    /// The function in which the clock struck most often, by part.
    pub functions: [Option<Arc<str>>; FAULT_PARTS],
}

impl Budget {
    /// Samples in the fault path: the sum of the parts.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.parts.iter().flatten().sum()
    }

    /// Samples of a part, whoever faulted.
    #[must_use]
    pub fn part(&self, part: FaultPart) -> u64 {
        self.parts[part as usize].iter().sum()
    }

    /// Samples of an origin, in whatever part.
    #[must_use]
    pub fn origin(&self, origin: usize) -> u64 {
        self.parts.iter().map(|part| part[origin]).sum()
    }
}

/// Quantile of the normal distribution for 95 %, two-sided.
const Z: f64 = 1.959_963_984_540_054;

/// The 95 % interval of a share of which `n` in `of` samples were seen, taken as
/// independent: Wilson's score interval (E. B. Wilson, J. Am. Stat. Assoc. 22,
/// 1927, p. 209). It stays within 0 and 1 and holds for small counts. `None`
/// without samples.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of samples are far below 2^53"
)]
pub fn interval(n: u64, of: u64) -> Option<(f64, f64)> {
    if of == 0 || n > of {
        return None;
    }
    let (n, of) = (n as f64, of as f64);
    let share = n / of;
    let square = Z * Z;
    let middle = (share + square / (2.0 * of)) / (1.0 + square / of);
    let half =
        Z / (1.0 + square / of) * (share * (1.0 - share) / of + square / (4.0 * of * of)).sqrt();
    Some(((middle - half).max(0.0), (middle + half).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table I of R. G. Newcombe, Statistics in Medicine 17, 1998, p. 857.
    #[test]
    fn the_interval_is_wilsons() {
        for (n, of, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let (found_low, found_high) = interval(n, of).expect("samples");
            assert!((found_low - low).abs() < 1e-4, "{n}/{of}: {found_low}");
            assert!((found_high - high).abs() < 1e-4, "{n}/{of}: {found_high}");
        }
        assert_eq!(interval(0, 0), None);
        assert_eq!(interval(3, 2), None);
    }

    #[test]
    fn parts_and_origins_are_two_ways_to_cut_the_same_sum() {
        let mut budget = Budget::default();
        for (i, part) in budget.parts.iter_mut().enumerate() {
            *part = [i as u64, 2 * i as u64, 1];
        }
        let by_part: u64 = FaultPart::ALL.iter().map(|p| budget.part(*p)).sum();
        let by_origin: u64 = (0..ORIGINS).map(|o| budget.origin(o)).sum();
        assert_eq!(budget.faults(), by_part);
        assert_eq!(budget.faults(), by_origin);
    }
}
