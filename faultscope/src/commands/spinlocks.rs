//! The spinlock mode of a capture: what the host says, corrected by what waits show.

use crate::host::kernel::Preemption;
use crate::host::spinlock::{SpinlockMode, SpinlockSeen};
use crate::host::{Fact, HostFacts};
use crate::model::Spinlock;
use crate::plan;
use crate::sample::Delta;

/// What is known of the slow path of spinlocks.
#[derive(Debug)]
pub(super) struct Spinlocks {
    decided: Fact<SpinlockMode>,
    is_rt: bool,
    seen: SpinlockSeen,
}

impl Spinlocks {
    /// What the host says before any wait was seen.
    pub(super) fn new(host: &HostFacts) -> Self {
        Self {
            decided: host.spinlock.clone(),
            is_rt: host.kernel.preemption.value() == Some(&Preemption::Realtime),
            seen: SpinlockSeen::default(),
        }
    }

    /// What spinlock waits mean, with what this interval showed.
    pub(super) fn after(&mut self, delta: &Delta) -> Spinlock {
        self.seen.is_paravirtual = delta.is_paravirtual;
        if let Some(waits) = &delta.spin_waits {
            self.seen.waits += waits.ended.iter().sum::<u64>();
            self.seen.traced += waits.traced.iter().sum::<u64>();
        }
        let mode = self.seen.mode(&self.decided);
        let is_exact = delta.spin_waits.is_some();
        Spinlock {
            mode: mode.value().map(|mode| mode.name().into()),
            is_exact,
            sentence: plan::spinlock_sentence(&mode, is_exact, self.is_rt),
        }
    }
}
