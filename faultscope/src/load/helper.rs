//! Threads that do something else beside a team until it is done.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

use super::cpu;
use super::team::{Team, Used};

/// When helpers work.
#[derive(Debug, Default)]
pub(super) struct Signals {
    has_begun: AtomicBool,
    is_over: AtomicBool,
}

impl Signals {
    /// Lets the helpers begin; for the members of the team, at the beginning of their work.
    pub(super) fn begin(&self) {
        self.has_begun.store(true, Ordering::Release);
    }

    /// Whether a helper goes on.
    pub(super) fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Acquire)
    }

    fn wait(&self) {
        while !self.has_begun.load(Ordering::Acquire) && self.goes_on() {
            std::thread::yield_now();
        }
    }
}

/// Runs `main`, the work of `team`, with one thread for each of `names` beside it; what it used and the sum of what the
/// helpers returned.
///
/// Helpers take the CPUs after those of the members, in turn.
///
/// # Errors
/// What `main` or a helper said.
pub(super) fn beside(
    team: &Team,
    names: &[&str],
    help: impl Fn(usize, &Signals) -> io::Result<u64> + Sync,
    main: impl FnOnce(&Signals) -> io::Result<Used>,
) -> io::Result<(Used, u64)> {
    let signals = Signals::default();
    let helper = |n: usize| {
        if !team.cpus.is_empty() {
            cpu::pin(team.cpus[(team.members + n) % team.cpus.len()])?;
        }
        signals.wait();
        help(n, &signals)
    };
    std::thread::scope(|scope| {
        let helper = &helper;
        let started: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(n, name)| {
                Builder::new()
                    .name((*name).to_owned())
                    .spawn_scoped(scope, move || helper(n))
            })
            .collect();
        let used = main(&signals);
        signals.is_over.store(true, Ordering::Release);
        let helped = started.into_iter().map(|thread| {
            let died = |_| Err(io::Error::other("a helper of the load panicked"));
            thread.and_then(|thread| thread.join().unwrap_or_else(died))
        });
        // All are waited for, whatever the first said.
        let helped: Vec<io::Result<u64>> = helped.collect();
        let used = used?;
        Ok((used, helped.into_iter().sum::<io::Result<u64>>()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::team::Kind;

    #[test]
    fn helpers_work_until_the_team_is_done() {
        let team = Team {
            members: 2,
            kind: Kind::Threads,
            cpus: Vec::new(),
        };
        let help = |_: usize, signals: &Signals| {
            let mut turns = 1;
            while signals.goes_on() {
                turns += 1;
                std::thread::yield_now();
            }
            Ok(turns)
        };
        let (used, helped) = beside(&team, &["helper"; 3], help, |signals| {
            team.run(
                |_| Ok(()),
                |_, ()| {
                    signals.begin();
                    Ok(1)
                },
            )
        })
        .expect("threads run");
        assert_eq!(used.work, 2);
        assert!(helped >= 3, "{helped}");
    }

    #[test]
    fn a_team_that_fails_does_not_leave_helpers_waiting() {
        let team = Team {
            members: 1,
            kind: Kind::Threads,
            cpus: Vec::new(),
        };
        let error = beside(
            &team,
            &["helper"],
            |_, _| Ok(0),
            |_| Err(io::Error::from_raw_os_error(libc::ENOMEM)),
        );
        let error = error.expect_err("it failed");
        assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
    }
}
