//! Log-linear buckets for durations, shared by both sides.
//!
//! Two buckets per power of two from 256 ns to 2^33 ns (8.6 s): the midpoint of
//! a bucket is off by at most 25 % of the value.

/// First power of two with buckets of its own.
pub const FIRST_LOG2: u32 = 8;
/// Powers of two covered.
pub const OCTAVES: u32 = 25;
/// Buckets: one below, two per octave, one above.
pub const BUCKETS: usize = 2 * OCTAVES as usize + 2;
/// Words kept for buckets: a power of two, so that a mask bounds the index.
pub const SLOTS: usize = 64;

/// Bucket of a duration in ns.
#[must_use]
#[inline(always)]
pub const fn bucket(ns: u64) -> u32 {
    if ns < 1 << FIRST_LOG2 {
        return 0;
    }
    let mut log2 = 0;
    let mut rest = ns;
    // Branches in place of `leading_zeros`, which the BPF target lowers to a long sequence.
    if rest >> 32 != 0 {
        return BUCKETS as u32 - 1 - (((rest >> 33) == 0) as u32) * (2 - ((ns >> 31) & 1) as u32);
    }
    if rest >> 16 != 0 {
        log2 += 16;
        rest >>= 16;
    }
    if rest >> 8 != 0 {
        log2 += 8;
        rest >>= 8;
    }
    if rest >> 4 != 0 {
        log2 += 4;
        rest >>= 4;
    }
    if rest >> 2 != 0 {
        log2 += 2;
        rest >>= 2;
    }
    if rest >> 1 != 0 {
        log2 += 1;
    }
    let half = (ns >> (log2 - 1)) & 1;
    1 + 2 * (log2 - FIRST_LOG2) + half as u32
}

/// Lower bound of a bucket in ns.
#[must_use]
pub const fn lower_bound(bucket: u32) -> u64 {
    if bucket == 0 {
        return 0;
    }
    let log2 = FIRST_LOG2 + (bucket - 1) / 2;
    let half = ((bucket - 1) % 2) as u64;
    (1 << log2) + (half << (log2 - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_exactly_its_range() {
        for b in 0..BUCKETS as u32 {
            assert_eq!(bucket(lower_bound(b)), b, "lower bound of {b}");
            if b > 0 {
                assert_eq!(bucket(lower_bound(b) - 1), b - 1, "just below {b}");
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS as u32 - 1);
    }
}
