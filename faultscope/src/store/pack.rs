//! Short lists of counts as blobs of variable-length integers.
//!
//! Counts that are not zero stand in runs of neighbours. A run is the number of zeros since
//! the run before it, its length, and its counts, each in LEB128: seven bits a byte, the
//! lowest first, the top bit set on all bytes but the last. A list of zeros is no blob at
//! all (NULL).

/// Longest index of a list that is not of fixed length.
const MAX_INDEX: u64 = u32::MAX as u64;

fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    out.push((n & 0x7f) as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        n |= bits << shift;
        if byte & 0x80 == 0 {
            // One way to write a number, so that a blob that differs means something else.
            return (bits != 0 || shift == 0).then_some(n);
        }
    }
    None
}

/// The blob of `(index, count)` in rising order of the index; `None` if all counts are zero.
pub(super) fn pack(counts: impl IntoIterator<Item = (u32, u64)>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut run: Vec<u64> = Vec::new();
    // The index after the present run, and after the one before.
    let (mut next, mut end) = (0_u64, 0_u64);
    let close = |out: &mut Vec<u8>, run: &mut Vec<u64>, next: u64, end: u64| {
        if !run.is_empty() {
            put(out, next - run.len() as u64 - end);
            put(out, run.len() as u64);
            run.drain(..).for_each(|count| put(out, count));
        }
    };
    for (index, count) in counts {
        if count == 0 {
            continue;
        }
        let index = u64::from(index);
        if index != next && !run.is_empty() {
            close(&mut out, &mut run, next, end);
            end = next;
        }
        run.push(count);
        next = index + 1;
    }
    close(&mut out, &mut run, next, end);
    (!out.is_empty()).then_some(out)
}

/// Hands each `(index, count)` of a blob to `each`; `None` if the blob is not one of [`pack`]
/// or `each` refuses an index.
pub(super) fn unpack(mut bytes: &[u8], mut each: impl FnMut(u32, u64) -> Option<()>) -> Option<()> {
    let mut next = 0_u64;
    while !bytes.is_empty() {
        let gap = take(&mut bytes)?;
        let length = take(&mut bytes)?;
        // Neighbours are one run, and a run has a byte for each count.
        if (gap == 0 && next > 0) || length == 0 || length > bytes.len() as u64 {
            return None;
        }
        next = next.checked_add(gap)?;
        for _ in 0..length {
            let count = take(&mut bytes)?;
            if count == 0 || next > MAX_INDEX {
                return None;
            }
            each(u32::try_from(next).ok()?, count)?;
            next += 1;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn read(bytes: &[u8]) -> Option<BTreeMap<u32, u64>> {
        let mut map = BTreeMap::new();
        unpack(bytes, |index, count| {
            map.insert(index, count);
            Some(())
        })?;
        Some(map)
    }

    #[test]
    fn a_list_of_zeros_is_no_blob() {
        assert_eq!(pack([(0, 0), (7, 0)]), None);
    }

    #[test]
    fn the_documented_example() {
        let blob = pack([(0, 0), (3, 1), (4, 300)]).expect("not empty");
        assert_eq!(blob, [3, 2, 1, 0xac, 0x02]);
    }

    proptest! {
        #[test]
        fn what_was_packed_is_unpacked(map in prop::collection::btree_map(any::<u32>(), 1..=u64::MAX, 1..40)) {
            let blob = pack(map.clone()).expect("not empty");
            prop_assert_eq!(read(&blob), Some(map));
        }

        #[test]
        fn any_bytes_are_read_or_refused_and_read_the_same_again(bytes in prop::collection::vec(any::<u8>(), 1..60)) {
            if let Some(map) = read(&bytes) {
                prop_assert_eq!(pack(map), Some(bytes));
            }
        }
    }
}
