//! Resources that tasks used, as getrusage(2) and wait4(2) have them.

use std::io;

/// Resources of a thread, of a process, or of a command and its descendants that were waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// User CPU time, ns.
    pub user_ns: u64,
    /// System CPU time, ns.
    pub system_ns: u64,
    /// Peak resident memory of the largest process, bytes.
    pub max_rss_bytes: u64,
    /// Minor faults.
    pub minor_faults: u64,
    /// Major faults.
    pub major_faults: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

impl Usage {
    /// Reads what `who` used so far: `RUSAGE_SELF`, `RUSAGE_THREAD` or `RUSAGE_CHILDREN`.
    ///
    /// # Errors
    /// What the kernel says; for these three it refuses nothing.
    pub fn read(who: libc::c_int) -> io::Result<Self> {
        // SAFETY: all bits zero is a valid rusage, and the call fills it.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: a valid pointer to a rusage.
        if unsafe { libc::getrusage(who, &raw mut usage) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self::from(&usage))
    }

    /// Minor and major faults.
    #[must_use]
    pub const fn faults(&self) -> u64 {
        self.minor_faults.saturating_add(self.major_faults)
    }
}

impl From<&libc::rusage> for Usage {
    fn from(usage: &libc::rusage) -> Self {
        let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
        let ns = |t: libc::timeval| count(t.tv_sec) * 1_000_000_000 + count(t.tv_usec) * 1000;
        Self {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            // In KiB (getrusage(2)).
            max_rss_bytes: count(usage.ru_maxrss) * 1024,
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_ns_and_bytes() {
        // SAFETY: all bits zero is a valid rusage.
        let mut raw: libc::rusage = unsafe { std::mem::zeroed() };
        raw.ru_utime.tv_sec = 2;
        raw.ru_utime.tv_usec = 3;
        raw.ru_maxrss = 4;
        raw.ru_minflt = 5;
        raw.ru_majflt = 6;
        let usage = Usage::from(&raw);
        assert_eq!((usage.user_ns, usage.system_ns), (2_000_003_000, 0));
        assert_eq!((usage.max_rss_bytes, usage.faults()), (4096, 11));
    }

    #[test]
    fn a_process_has_faulted() {
        let usage = Usage::read(libc::RUSAGE_SELF).expect("the kernel tells");
        assert!(usage.faults() > 0 && usage.max_rss_bytes > 0, "{usage:?}");
    }
}
