//! Checksums of what was written, so that a changed bit is not taken for a number.
//!
//! Made for accidents and not against forgery. Each step is a bijection of the state for
//! a given word and of the word for a given state, so that one changed word always shows.

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The state after one more word.
pub(super) fn mix(state: u64, word: u64) -> u64 {
    let mixed = (state ^ word).wrapping_mul(FACTOR);
    mixed ^ (mixed >> 32)
}

/// The checksum of bytes.
pub(super) fn of_bytes(bytes: &[u8]) -> u64 {
    let mut state = mix(1, bytes.len() as u64);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        state = mix(
            state,
            u64::from_le_bytes(word.try_into().expect("eight bytes")),
        );
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    mix(state, u64::from_le_bytes(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_changed_bit_always_shows(mut bytes in prop::collection::vec(any::<u8>(), 1..100), at in any::<prop::sample::Index>(), bit in 0..8) {
            let before = of_bytes(&bytes);
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            prop_assert_ne!(of_bytes(&bytes), before);
        }
    }
}
