//! Memory given back by madvise, and how much of it was touched again at once.

use super::{Cells, average, comm, ratio};
use crate::{
    model::{Value, advice, field as f},
    sample::{Delta, refault::Refault},
};

/// Bytes of a base page on x86-64.
const PAGE_BYTES: u64 = 4096;

/// One row for each process and advice that gave back or faulted in the interval.
pub(super) fn rows(delta: &Delta) -> Vec<Cells> {
    delta
        .refaults
        .iter()
        .map(|(id, refault)| {
            let after = |q| Value::count(refault.after.quantile_ns(q));
            Cells::new(id)
                .count(&f::PID, u64::from(id.tgid))
                .set(&f::COMM, comm(delta, id.tgid))
                .text(&f::ADVICE, advice::name(id.advice))
                .text(
                    &f::CALL,
                    if id.is_remote {
                        "process_madvise"
                    } else {
                        "madvise"
                    },
                )
                .count(&f::GIVEN_RANGES, refault.ranges)
                .count(&f::GIVEN_BYTES, refault.bytes)
                .count(&f::REFAULTS, refault.refaults)
                .count(&f::REFAULT_BYTES, refault.refaults * PAGE_BYTES)
                .real(
                    &f::REFAULT_RATIO,
                    ratio(refault.refaults * PAGE_BYTES, refault.bytes),
                )
                .count(&f::GIVEN_LOST_BYTES, refault.lost_bytes)
                .set(&f::REFAULT_AVG_NS, average(refault.ns, refault.refaults))
                .set(&f::REFAULT_P50_NS, after(0.5))
                .set(&f::REFAULT_P99_NS, after(0.99))
                .count(&f::REFAULT_WINDOW_NS, delta.refault_window_ns)
                .text(&f::COMMENT, comment(refault, id.advice))
        })
        .collect()
}

/// What the share of a row is worth.
fn comment(refault: &Refault, advice: i32) -> &'static str {
    /// `MADV_FREE` (include/uapi/asm-generic/mman-common.h).
    const FREE: i32 = 8;
    if refault.lost_bytes > 0 {
        "at least: not every range was followed to the end of the window"
    } else if advice == FREE {
        "every range was followed; a page touched before it was reclaimed does not fault"
    } else {
        "every range was followed"
    }
}
