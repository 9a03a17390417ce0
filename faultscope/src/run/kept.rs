//! The bounded copy of a command's output: its beginning and its end.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bytes kept from the beginning.
pub(super) const HEAD: usize = 64 << 10;
/// Bytes kept from the end.
pub(super) const TAIL: usize = 192 << 10;

/// Output as it was kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Bytes, cut between lines where some are left out.
    pub bytes: Vec<u8>,
    /// Bytes left out in the middle.
    pub dropped_bytes: u64,
}

/// Memory that the relay fills and we read: both see the same pages.
///
/// One writer. A reader that has heard from the writer since the last write sees all of it.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Copy {
    /// Bytes ever pushed.
    total: AtomicU64,
    /// The last byte pushed; 0 before the first.
    last: AtomicU32,
    /// 1 if a line of ours stands on the terminal, which output has to take away.
    line: AtomicU32,
    head: [u8; HEAD],
    tail: [u8; TAIL],
}

impl Copy {
    /// Appends output; the oldest of the tail makes room.
    ///
    /// # Safety
    /// `copy` is a live mapping of this type, and nobody else pushes.
    pub(super) unsafe fn push(copy: *mut Self, bytes: &[u8]) {
        // SAFETY: the caller's mapping; the total is an atomic of its own.
        let count = unsafe { &(*copy).total };
        let mut total = count.load(Ordering::Relaxed);
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = usize::try_from(total).unwrap_or(usize::MAX);
            let (start, room) = if at < HEAD {
                (at, HEAD - at)
            } else {
                let at = (at - HEAD) % TAIL;
                (HEAD + at, TAIL - at)
            };
            let n = room.min(rest.len());
            // SAFETY: head and tail follow one another without padding, and start + n is at most their length.
            unsafe {
                let data = (&raw mut (*copy).head).cast::<u8>();
                data.add(start).copy_from_nonoverlapping(rest.as_ptr(), n);
            }
            total += n as u64;
            rest = &rest[n..];
        }
        if let Some(last) = bytes.last() {
            // SAFETY: an atomic of its own in the caller's mapping.
            let kept = unsafe { &(*copy).last };
            kept.store(u32::from(*last), Ordering::Relaxed);
        }
        count.store(total, Ordering::Release);
    }

    /// Whether what was pushed so far is nothing, or ends a line.
    ///
    /// # Safety
    /// `copy` is a live mapping of this type.
    pub(super) unsafe fn is_at_line_start(copy: *const Self) -> bool {
        // SAFETY: as above.
        let last = unsafe { (*copy).last.load(Ordering::Acquire) };
        [0, u32::from(b'\n')].contains(&last)
    }

    /// Notes whether a line of ours stands on the terminal; whether one did before.
    ///
    /// # Safety
    /// `copy` is a live mapping of this type.
    pub(super) unsafe fn swap_line(copy: *const Self, is_shown: bool) -> bool {
        // SAFETY: as above.
        let line = unsafe { &(*copy).line };
        line.swap(u32::from(is_shown), Ordering::AcqRel) == 1
    }

    /// What is kept now.
    ///
    /// # Safety
    /// `copy` is a live mapping of this type. A writer that pushes meanwhile may leave a torn line at the end.
    pub(super) unsafe fn read(copy: *const Self) -> Kept {
        // SAFETY: as above.
        let total = unsafe { (*copy).total.load(Ordering::Acquire) };
        let total = usize::try_from(total).unwrap_or(usize::MAX);
        // SAFETY: bytes have no invalid values; another process may change them, so they are copied, not borrowed.
        let data = unsafe {
            let mut data = vec![0_u8; HEAD + TAIL];
            let from = (&raw const (*copy).head).cast::<u8>();
            data.as_mut_ptr()
                .copy_from_nonoverlapping(from, HEAD + TAIL);
            data
        };
        arrange(&data, total)
    }
}

const _: () = assert!(std::mem::offset_of!(Copy, tail) == std::mem::offset_of!(Copy, head) + HEAD);

/// Puts a filled copy into the order in which the bytes came.
fn arrange(data: &[u8], total: usize) -> Kept {
    if total <= HEAD + TAIL {
        return Kept {
            bytes: data[..total].to_vec(),
            dropped_bytes: 0,
        };
    }
    let (head, tail) = data.split_at(HEAD);
    let first = (total - HEAD) % TAIL;
    let tail = [&tail[first..], &tail[..first]].concat();
    // A number whose digits come from two lines would be a lie.
    let head_end = head
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    let tail_start = tail
        .iter()
        .position(|b| *b == b'\n')
        .map_or(TAIL, |at| at + 1);
    let bytes = [&head[..head_end], &tail[tail_start..]].concat();
    Kept {
        dropped_bytes: (total - bytes.len()) as u64,
        bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept(pushes: &[Vec<u8>]) -> Kept {
        let mut words = vec![0_u64; size_of::<Copy>() / 8];
        let copy = words.as_mut_ptr().cast::<Copy>();
        for bytes in pushes {
            // SAFETY: aligned zeroed memory of the right size, used by this thread alone.
            unsafe { Copy::push(copy, bytes) };
        }
        // SAFETY: as above.
        unsafe { Copy::read(copy) }
    }

    fn line(n: usize) -> Vec<u8> {
        format!("line {n}\n").into_bytes()
    }

    #[test]
    fn lines_begin_after_their_ends_and_at_the_beginning() {
        let mut words = vec![0_u64; size_of::<Copy>() / 8];
        let copy = words.as_mut_ptr().cast::<Copy>();
        for (bytes, is_start) in [
            (&b""[..], true),
            (b"a\n", true),
            (b"b", false),
            (b"", false),
            (b"\n", true),
        ] {
            // SAFETY: aligned zeroed memory of the right size, used by this thread alone.
            let is_at_start = unsafe {
                Copy::push(copy, bytes);
                Copy::is_at_line_start(copy)
            };
            assert_eq!(is_at_start, is_start, "{bytes:?}");
        }
    }

    #[test]
    fn little_output_is_kept_whole() {
        assert_eq!(kept(&[]), Kept::default());
        let all = kept(&[b"a\n".to_vec(), b"b".to_vec()]);
        assert_eq!((all.bytes.as_slice(), all.dropped_bytes), (&b"a\nb"[..], 0));
    }

    #[test]
    fn of_much_output_whole_lines_of_both_ends_are_kept() {
        let lines: Vec<_> = (0..100_000).map(line).collect();
        let total: usize = lines.iter().map(Vec::len).sum();
        let all = kept(&lines);
        let text = String::from_utf8(all.bytes).expect("ASCII");
        assert_eq!(text.len() as u64 + all.dropped_bytes, total as u64);
        assert!(text.starts_with("line 0\nline 1\n"), "the beginning");
        assert!(text.ends_with("line 99998\nline 99999\n"), "the end");
        let numbers: Vec<usize> = text
            .lines()
            .map(|l| {
                l.strip_prefix("line ")
                    .and_then(|n| n.parse().ok())
                    .expect("no torn line")
            })
            .collect();
        assert!(numbers.is_sorted());
        assert!(text.len() > HEAD + TAIL - 32);
    }

    #[test]
    fn a_line_without_end_is_dropped_rather_than_joined() {
        let all = kept(&[vec![b'7'; HEAD + TAIL + 1]]);
        assert_eq!(all.bytes, b"");
        assert_eq!(all.dropped_bytes, (HEAD + TAIL + 1) as u64);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn pieces_do_not_matter(sizes in proptest::collection::vec(1_usize..40_000, 1..20)) {
            let bytes: Vec<u8> = (0..sizes.iter().sum()).map(|i: usize| if i % 61 == 60 { b'\n' } else { b'a' + (i % 7) as u8 }).collect();
            let mut rest = bytes.as_slice();
            let mut pieces = Vec::new();
            for size in sizes {
                pieces.push(rest[..size].to_vec());
                rest = &rest[size..];
            }
            prop_assert_eq!(kept(&pieces), kept(&[bytes]));
        }
    }
}
