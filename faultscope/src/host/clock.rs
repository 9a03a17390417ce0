//! The only place of the host layer that reads a clock.

use rustix::time::{ClockId, Timespec, clock_gettime};

const NS_PER_SEC: u64 = 1_000_000_000;

/// Returns `CLOCK_MONOTONIC` in nanoseconds, the clock of the `bpf_ktime_get_ns` helper.
///
/// It does not advance while the machine is suspended.
#[must_use]
pub fn monotonic_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Monotonic))
}

/// Returns `CLOCK_REALTIME` in nanoseconds since 1970, leap seconds not counted; it may jump.
#[must_use]
pub fn realtime_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Realtime))
}

/// A time before the epoch, which no running kernel gives, reads as 0.
fn to_ns(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(NS_PER_SEC).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_is_exact_and_total() {
        assert_eq!(
            to_ns(Timespec {
                tv_sec: 3,
                tv_nsec: 7
            }),
            3_000_000_007
        );
        assert_eq!(
            to_ns(Timespec {
                tv_sec: -1,
                tv_nsec: 0
            }),
            0
        );
    }

    #[test]
    fn clocks_differ_and_do_not_run_backwards() {
        let first = monotonic_ns();
        assert!(monotonic_ns() >= first);
        // Later than 2020, which no machine has been up for.
        assert!(realtime_ns() > 1_577_836_800 * NS_PER_SEC);
    }
}
