//! Faults by kind, and the sharing proxy of address spaces.

use super::{Cells, comm, has, latency, per_sec, ratio};
use crate::{
    model::{Context, Value, field as f},
    sample::{Counters, Delta, Scope, delta::Space},
};

const ACCESS: [&str; 4] = ["read", "write", "exec", "exec"];

/// Faults by origin, access and cause; then what the tracepoints do not see.
pub(super) fn kinds(delta: &Delta, context: &Context) -> Vec<Cells> {
    if !has(context, "faults") {
        return Vec::new();
    }
    let total = delta.total();
    let all = total.faults();
    let mut rows = Vec::new();
    for (origin, pick) in [
        (
            "user",
            (|c, class| c[Scope::User(class)]) as fn(&Counters, usize) -> u64,
        ),
        ("kernel", |c, class| c[Scope::Kernel(class)]),
    ] {
        for class in [1, 0, 2, 5, 4, 6] {
            let n = pick(&total, class);
            rows.push(
                Cells::new((origin, class))
                    .text(&f::ORIGIN, origin)
                    .text(&f::ACCESS, ACCESS[class & 3])
                    .text(
                        &f::CAUSE,
                        if class & 4 == 0 {
                            "not present"
                        } else {
                            "protection"
                        },
                    )
                    .count(&f::FAULTS_N, n)
                    .real(&f::SHARE, ratio(n, all)),
            );
        }
    }
    let note = |origin: &str, value: Value, share: Option<f64>, comment: &str| {
        Cells::new(origin.to_owned())
            .text(&f::ORIGIN, origin)
            .set(&f::FAULTS_N, value)
            .real(&f::SHARE, share)
            .text(&f::COMMENT, comment)
    };
    let major = total[Scope::Major];
    let value = |signal, n| super::given(context, signal, n);
    rows.push(note(
        "major",
        value("major_faults", major),
        ratio(major, all),
        "of the above; perf software event, exact",
    ));
    rows.push(note(
        "fixed up",
        Value::Count(total[Scope::FixedUp]),
        None,
        "never serviced: page faults disabled or a kernel address",
    ));
    let without_trap = latency::untrapped(delta, context);
    rows.push(note(
        "populate",
        Value::count(without_trap.map(|[populate, _]| populate)),
        None,
        "no trap: MAP_POPULATE, mlock, MADV_POPULATE; from handle_mm_fault",
    ));
    rows.push(note(
        "get_user_pages",
        Value::count(without_trap.map(|[_, gup]| gup)),
        None,
        "no trap: direct I/O, ptrace, exec's arguments; from handle_mm_fault",
    ));
    let ended = latency::ended(delta, context);
    rows.push(note(
        "handle_mm_fault",
        Value::count(ended.map(|(faults, _)| faults)),
        None,
        "all faults it ended, with and without a trap; less the next row, ru_minflt + ru_majflt of everybody",
    ));
    rows.push(note(
        "errors",
        Value::count(ended.map(|(_, failed)| failed)),
        None,
        "of those: OOM, SIGBUS, SIGSEGV or HWPOISON",
    ));
    let seen = delta.vmstat.get("pgfault").copied();
    rows.push(note(
        "vmstat pgfault",
        Value::count(seen),
        None,
        "the kernel's own count, for comparison; before 6.4 it counts every pass, so retries too",
    ));
    let (counted, comment) = match (ended, without_trap) {
        (Some((faults, _)), _) => (
            faults,
            "pgfault less what handle_mm_fault ended; vmstat is read up to a tick earlier or later",
        ),
        (None, Some(without)) => (
            all + without.iter().sum::<u64>(),
            "pgfault less the above; vmstat is read up to a tick earlier or later",
        ),
        (None, None) => (
            all,
            "pgfault less the above: MAP_POPULATE, MADV_POPULATE and get_user_pages faults reach no tracepoint; vmstat is read up to a tick earlier or later",
        ),
    };
    rows.push(note(
        "not seen",
        Value::count(seen.map(|n| n.saturating_sub(counted))),
        None,
        comment,
    ));
    rows
}

/// Shares p_i of the CPUs: expected 1 - sum(p_i^2) and bound min(1, 2(1 - max p_i)).
pub(super) fn sharing(space: &Space) -> Option<(f64, f64)> {
    let total: u64 = space.by_cpu.values().sum();
    let shares: Vec<f64> = space
        .by_cpu
        .values()
        .filter_map(|n| ratio(*n, total))
        .collect();
    let greatest = shares.iter().copied().reduce(f64::max)?;
    let expected = 1.0 - shares.iter().map(|p| p * p).sum::<f64>();
    Some((expected.max(0.0), (2.0 * (1.0 - greatest)).min(1.0)))
}

/// Expected transfers per second of the hot lines of an address space.
pub(super) fn expected_per_sec(space: &Space, delta: &Delta) -> f64 {
    let faults: u64 = space.by_cpu.values().sum();
    sharing(space).map_or(0.0, |(expected, _)| expected * per_sec(faults, delta))
}

/// One row per address space with faults.
pub(super) fn spaces(delta: &Delta, context: &Context) -> Vec<Cells> {
    let mut takers: std::collections::HashMap<u64, (u64, u64)> = std::collections::HashMap::new();
    for (id, taker) in &delta.takers {
        let (moved, known) = takers.entry(id.mm).or_default();
        *moved += taker.handoffs[1..5].iter().sum::<u64>();
        *known += taker.handoffs[..5].iter().sum::<u64>();
    }
    delta
        .spaces
        .iter()
        .map(|(mm, space)| {
            let faults: u64 = space.by_cpu.values().sum();
            let sharing = sharing(space);
            let rate = |share: Option<f64>| share.map(|s| s * per_sec(faults, delta));
            let handoffs = takers
                .get(mm)
                .and_then(|(moved, known)| ratio(*moved, *known));
            let tgid = space.process.map_or(0, |p| p.tgid);
            let rss = has(context, "rss_stat")
                .then(|| ratio(space.rss, faults))
                .flatten();
            Cells::new(mm)
                .count(&f::PID, u64::from(tgid))
                .set(&f::COMM, comm(delta, tgid))
                .count(&f::FAULTS_N, faults)
                .count(&f::CPUS_USED, space.by_cpu.len() as u64)
                .real(&f::SHARE_EXPECTED_RATIO, sharing.map(|s| s.0))
                .real(&f::SHARE_BOUND_RATIO, sharing.map(|s| s.1))
                .real(
                    &f::SHARE_MEASURED,
                    ratio(space.window_handoffs, space.window_faults),
                )
                .count(&f::SHARE_WINDOW, space.window_faults)
                .real(&f::SHARE_EXPECTED, rate(sharing.map(|s| s.0)))
                .real(&f::SHARE_BOUND, rate(sharing.map(|s| s.1)))
                .real(&f::HANDOFF_RATIO, handoffs)
                .real(&f::RSS_PER_FAULT, rss)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(shares: &[u64]) -> Space {
        Space {
            by_cpu: (0..).zip(shares.iter().copied()).collect(),
            ..Space::default()
        }
    }

    #[test]
    fn one_cpu_shares_nothing_and_even_shares_follow_the_formula() {
        assert_eq!(sharing(&space(&[100])), Some((0.0, 0.0)));
        let (expected, bound) = sharing(&space(&[50, 50])).expect("shares");
        assert!((expected - 0.5).abs() < 1e-12 && (bound - 1.0).abs() < 1e-12);
        let (expected, bound) = sharing(&space(&[25, 25, 25, 25])).expect("shares");
        assert!((expected - 0.75).abs() < 1e-12 && (bound - 1.0).abs() < 1e-12);
        let (expected, bound) = sharing(&space(&[90, 10])).expect("shares");
        assert!((expected - 0.18).abs() < 1e-12 && (bound - 0.2).abs() < 1e-12);
        assert_eq!(sharing(&space(&[])), None);
    }
}
