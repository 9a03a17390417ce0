//! Parses the text of `/proc/vmstat`, `/proc/stat`, `/proc/pressure/*`, `/proc/meminfo` and `status`.
//!
//! All functions are pure and total; an unknown line is skipped, a missing one is `None`.

use std::sync::Arc;

/// Counters of `/proc/vmstat` that are kept, by exact name.
const VMSTAT_NAMES: [&str; 22] = [
    "allocstall_movable",
    "allocstall_normal",
    "compact_fail",
    "compact_stall",
    "compact_success",
    "drop_pagecache",
    "kswapd_high_wmark_hit_quickly",
    "kswapd_low_wmark_hit_quickly",
    "oom_kill",
    "pageoutrun",
    "pgactivate",
    "pgdeactivate",
    "pgfault",
    "pgfree",
    "pglazyfree",
    "pglazyfreed",
    "pgmajfault",
    "pgrefill",
    "pgrotated",
    "pswpin",
    "pswpout",
    "numa_hint_faults",
];

/// Counters that are kept by prefix; which members exist depends on the kernel.
const VMSTAT_PREFIXES: [&str; 10] = [
    "nr_free_pages",
    // Events, in spite of the name; with CONFIG_DEBUG_TLBFLUSH only (mm/vmstat.c).
    "nr_tlb_",
    "pgdemote_",
    "pgmigrate_",
    "pgscan_",
    "pgsteal_",
    "swap_ra",
    "thp_",
    "vma_lock_",
    "workingset_",
];

/// Selected keys of `/proc/meminfo`; all are in kB there.
const MEMINFO_KEYS: [&str; 18] = [
    "Active(anon)",
    "Active(file)",
    "AnonHugePages",
    "AnonPages",
    "Buffers",
    "Cached",
    "Dirty",
    "FileHugePages",
    "Inactive(anon)",
    "Inactive(file)",
    "Mapped",
    "MemAvailable",
    "MemFree",
    "MemTotal",
    "PageTables",
    "ShmemHugePages",
    "SwapFree",
    "SwapTotal",
];

/// Returns true if a counter of `/proc/vmstat` is kept.
#[must_use]
pub fn is_selected_vmstat(name: &str) -> bool {
    VMSTAT_NAMES.contains(&name)
        || VMSTAT_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// Selected counters of `/proc/vmstat`, in pages or events as the kernel counts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmStat {
    /// Names in the kernel's order, shared between samples.
    pub names: Arc<[Box<str>]>,
    /// Values in the order of `names`.
    pub values: Vec<u64>,
}

impl VmStat {
    /// Parses the file; `known`, the names of an earlier sample, are reused if the lines are still the same.
    #[must_use]
    pub fn parse(text: &str, known: &Arc<[Box<str>]>) -> Self {
        let mut values = Vec::with_capacity(known.len());
        let mut is_same = true;
        for (name, value) in selected(text) {
            is_same &= known
                .get(values.len())
                .is_some_and(|known| **known == *name);
            values.push(value);
        }
        let names = if is_same && values.len() == known.len() {
            Arc::clone(known)
        } else {
            selected(text).map(|(name, _)| Box::from(name)).collect()
        };
        Self { names, values }
    }

    /// Returns a counter by its kernel name; `None` if this kernel lacks it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        let index = self.names.iter().position(|known| **known == *name)?;
        self.values.get(index).copied()
    }
}

fn selected(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        if !is_selected_vmstat(name) {
            return None;
        }
        Some((name, value.trim().parse().ok()?))
    })
}

/// Time of one CPU since boot, in clock ticks (USER_HZ, 100 per second).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTimes {
    /// CPU number.
    pub cpu: u32,
    /// User mode; guest time is included.
    pub user: u64,
    /// User mode with positive nice.
    pub nice: u64,
    /// Kernel mode.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle with a task of this CPU waiting for a disk.
    pub iowait: u64,
    /// Hard interrupts.
    pub irq: u64,
    /// Soft interrupts.
    pub softirq: u64,
    /// The hypervisor ran something else.
    pub steal: u64,
}

/// Parses `/proc/stat` into the lines of single CPUs and the number of context switches.
#[must_use]
pub fn parse_cpu_times(text: &str) -> (Vec<CpuTimes>, Option<u64>) {
    let mut cpus = Vec::new();
    let mut switches = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("cpu") {
            // The line "cpu " is the sum; it has no number and fails to parse.
            cpus.extend(parse_cpu_line(rest));
        } else if let Some(rest) = line.strip_prefix("ctxt ") {
            switches = rest.trim().parse().ok();
        }
    }
    (cpus, switches)
}

fn parse_cpu_line(rest: &str) -> Option<CpuTimes> {
    let (cpu, rest) = rest.split_once(' ')?;
    let cpu = cpu.parse().ok()?;
    let mut fields = rest.split_ascii_whitespace().map(str::parse);
    let mut next = || fields.next()?.ok();
    Some(CpuTimes {
        cpu,
        user: next()?,
        nice: next()?,
        system: next()?,
        idle: next()?,
        iowait: next()?,
        irq: next()?,
        softirq: next()?,
        steal: next()?,
    })
}

/// One line of a pressure file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PressureLine {
    /// Share of the last ten seconds, 0 to 1.
    pub avg10_ratio: f64,
    /// Stalled time since boot in microseconds.
    pub total_us: u64,
}

/// Pressure on one resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pressure {
    /// At least one task was stalled.
    pub some: PressureLine,
    /// All non-idle tasks were stalled; not given for the CPU before Linux 5.13.
    pub full: Option<PressureLine>,
}

/// Parses a `/proc/pressure` file; `None` without a well-formed `some` line.
#[must_use]
pub fn parse_pressure(text: &str) -> Option<Pressure> {
    let line = |word: &str| {
        let fields = text
            .lines()
            .find_map(|line| line.strip_prefix(word)?.strip_prefix(' '))?;
        let field = |key: &str| {
            fields
                .split_ascii_whitespace()
                .find_map(|field| field.strip_prefix(key))
        };
        let avg10_pct: f64 = field("avg10=")?
            .parse()
            .ok()
            .filter(|value: &f64| value.is_finite())?;
        Some(PressureLine {
            avg10_ratio: avg10_pct / 100.0,
            total_us: field("total=")?.parse().ok()?,
        })
    };
    Some(Pressure {
        some: line("some")?,
        full: line("full"),
    })
}

/// Parses `/proc/meminfo` into bytes of the selected keys, in the file's order.
#[must_use]
pub fn parse_meminfo(text: &str) -> Vec<(&'static str, u64)> {
    text.lines()
        .filter_map(|line| {
            let (key, value) = line.split_once(':')?;
            let key = MEMINFO_KEYS.iter().find(|known| **known == key)?;
            Some((*key, parse_kib(value)?))
        })
        .collect()
}

/// Returns the bytes of the `VmHWM` line of `/proc/PID/status`.
#[must_use]
pub fn parse_vm_hwm(status: &str) -> Option<u64> {
    parse_kib(
        status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))?,
    )
}

/// Parses `  1748 kB` into bytes.
fn parse_kib(value: &str) -> Option<u64> {
    value
        .trim()
        .strip_suffix("kB")?
        .trim_end()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn empty() -> Arc<[Box<str>]> {
        Arc::from([])
    }

    #[test]
    fn vmstat_keeps_the_selected_and_shares_names() {
        let text = "nr_dirty 7\npgfault 100\npgscan_kswapd 5\nthp_fault_alloc 2\nhtlb_buddy_alloc_fail 1\n";
        let first = VmStat::parse(text, &empty());
        assert_eq!(first.values, [100, 5, 2]);
        assert_eq!(
            (
                first.get("pgfault"),
                first.get("nr_dirty"),
                first.get("pswpin")
            ),
            (Some(100), None, None)
        );
        let second = VmStat::parse(&text.replace("100", "101"), &first.names);
        assert!(Arc::ptr_eq(&first.names, &second.names));
        let other = VmStat::parse("pgfault 1\npgmajfault 2\npgscan_kswapd 3\n", &first.names);
        assert_eq!(other.get("pgmajfault"), Some(2));
        assert_eq!(other.get("thp_fault_alloc"), None);
        let fewer = VmStat::parse("pgfault 1\n", &first.names);
        assert_eq!(fewer.get("pgscan_kswapd"), None);
    }

    #[test]
    fn cpu_lines_skip_the_sum() {
        let text = "cpu  3 0 4 10 1 0 0 2 0 0\ncpu0 1 0 2 5 1 0 0 1 0 0\ncpu12 2 0 2 6 0 0 0 3\nintr 5 0 0\nctxt 99\n";
        let (cpus, switches) = parse_cpu_times(text);
        let seen: Vec<_> = cpus
            .iter()
            .map(|times| (times.cpu, times.user, times.idle, times.steal))
            .collect();
        assert_eq!(seen, [(0, 1, 5, 1), (12, 2, 6, 3)]);
        assert_eq!(switches, Some(99));
        assert_eq!(parse_cpu_times("cpu0 1 2\n"), (vec![], None));
    }

    #[test]
    fn pressure_lines() {
        let text = "some avg10=12.50 avg60=0.93 avg300=1.99 total=20260873\nfull avg10=0.00 avg60=0 avg300=0 total=7\n";
        let pressure = parse_pressure(text).expect("well formed");
        assert!((pressure.some.avg10_ratio - 0.125).abs() < 1e-9);
        assert_eq!(
            (
                pressure.some.total_us,
                pressure.full.map(|line| line.total_us)
            ),
            (20_260_873, Some(7))
        );
        let old =
            parse_pressure("some avg10=0.00 avg60=0 avg300=0 total=1\n").expect("well formed");
        assert_eq!(old.full, None);
        assert_eq!(parse_pressure("full avg10=0.00 total=1\n"), None);
        assert_eq!(parse_pressure("some avg10=NaN total=1\n"), None);
    }

    #[test]
    fn meminfo_is_in_bytes() {
        let text =
            "MemTotal:       2 kB\nActive(anon):   3 kB\nHugePages_Total:       0\nMemFree: x kB\n";
        assert_eq!(
            parse_meminfo(text),
            [("MemTotal", 2048), ("Active(anon)", 3072)]
        );
        assert_eq!(
            parse_vm_hwm("Name:\tx\nVmHWM:\t    1748 kB\n"),
            Some(1748 * 1024)
        );
        assert_eq!(parse_vm_hwm("Name:\tVmHWM: 1 kB\n"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(cpu|some|full|avg10=|total=|pgfault|kB|:|[0-9]|[ \n]|.){0,40}") {
            drop(parse_cpu_times(&text));
            drop(parse_meminfo(&text));
            drop(VmStat::parse(&text, &empty()));
            _ = parse_pressure(&text);
            _ = parse_vm_hwm(&text);
        }
    }
}
