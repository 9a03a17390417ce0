//! Pseudo-random numbers for resampling: always the same for the same seed.

/// The generator `SplitMix64` of Steele, Lea and Flood (2014), "Fast splittable pseudorandom number generators".
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is above 0; the bias is below `end` / 2^64.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the upper half of the product is below `end`, a usize"
    )]
    pub(super) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}
