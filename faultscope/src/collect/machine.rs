//! CPU rows, losses and the machine's own counters.

use super::rows;
use crate::{
    bpf::Maps,
    host::{
        system::{CpuTimes, SystemReader, SystemSample},
        topology::Topology,
    },
    sample::{
        Counters, Delta,
        delta::{Cpu, CpuTime, Loss, LruCalls, Passes},
    },
};
use faultscope_common::{cpu::CpuRow, loss};
use std::{collections::BTreeMap, sync::Arc};

/// Reads what is not keyed by anything that comes and goes.
#[derive(Debug)]
pub(super) struct Machine {
    system: SystemReader,
    before: Option<SystemSample>,
    rows: Vec<Option<CpuRow>>,
    places: BTreeMap<u32, (u32, u32, u32)>,
    tick_ns: u64,
    names: BTreeMap<Box<str>, Arc<str>>,
}

fn loss_totals(rows: &[Option<CpuRow>]) -> [u64; loss::SLOTS] {
    let mut totals = [0; loss::SLOTS];
    for row in rows.iter().flatten() {
        for (total, n) in totals.iter_mut().zip(&row.losses) {
            *total += n;
        }
    }
    totals
}

impl Machine {
    pub(super) fn new(system: SystemReader, topology: &Topology, cpus: u32) -> Self {
        Self {
            system,
            before: None,
            rows: vec![None; cpus as usize],
            places: topology
                .cpus
                .iter()
                .map(|c| (c.cpu, (c.core, c.llc, c.node)))
                .collect(),
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            names: BTreeMap::new(),
        }
    }

    /// CPU rows and losses since the last call.
    pub(super) fn cpus(&mut self, maps: &Maps, delta: &mut Delta) {
        let losses_before = loss_totals(&self.rows);
        for cpu in 0..maps.sizes.cpus {
            let row = maps.cpus.read(cpu as usize);
            let before = self.rows[cpu as usize].replace(row);
            let since = |now: u64, f: fn(&CpuRow) -> u64| now - before.as_ref().map_or(0, f);
            let old = before.as_ref().map_or_else(Counters::default, rows::cpu);
            let pair = |now: [u64; 2], f: fn(&CpuRow) -> [u64; 2]| {
                let old = before.as_ref().map_or([0; 2], f);
                [now[0] - old[0], now[1] - old[1]]
            };
            let mut rss = row.rss;
            if let Some(before) = &before {
                for (now, old) in rss.iter_mut().zip(&before.rss) {
                    *now -= old;
                }
            }
            delta.unpaired_ends += since(row.unpaired_ends, |b| b.unpaired_ends);
            delta.mmap_unpaired += since(row.mmap_unpaired, |b| b.mmap_unpaired);
            delta.compat_madvise += since(row.compat_syscalls, |b| b.compat_syscalls);
            delta.cpus.push(Cpu {
                cpu,
                place: self.places.get(&cpu).copied(),
                counters: rows::cpu(&row).since(&old),
                rss,
                lru_insertions: since(row.lru_insertions, |b| b.lru_insertions),
                lru_activations: since(row.lru_activations, |b| b.lru_activations),
                lru: LruCalls::default(),
                mmap_handoffs: since(row.mmap_handoffs, |b| b.mmap_handoffs),
                mmap_failed: pair(row.mmap_failed, |b| b.mmap_failed),
                mmap_downgraded: since(row.mmap_downgraded, |b| b.mmap_downgraded),
                time: None,
                passes: Passes::default(),
            });
        }
        delta.losses = loss_totals(&self.rows)
            .iter()
            .zip(&losses_before)
            .take(loss::ALL.len())
            .map(|(now, before)| Loss {
                total: *now,
                increment: now - before,
            })
            .collect();
    }

    /// The kernel's own counters since the last call.
    pub(super) fn system(&mut self, delta: &mut Delta) {
        let now = self.system.read();
        if let Some(before) = &self.before {
            self.since(before, &now, delta);
            if let (Some(a), Some(b)) = (&before.vmstat, &now.vmstat) {
                let names = &mut self.names;
                // `nr_*` are levels, not counters; those of the TLB are events.
                let counters =
                    b.names.iter().zip(&b.values).filter(|(name, _)| {
                        !name.starts_with("nr_") || name.starts_with("nr_tlb_")
                    });
                for (name, value) in counters {
                    if let Some(old) = a.get(name) {
                        let name = names
                            .entry(name.clone())
                            .or_insert_with(|| Arc::from(&**name));
                        delta
                            .vmstat
                            .insert(Arc::clone(name), value.saturating_sub(old));
                    }
                }
            }
        }
        if let Some(own) = &now.own {
            delta.own.rss_bytes = own.rss_bytes;
            delta.own.peak_rss_bytes = own.peak_rss_bytes;
        }
        let mglru_before = self.before.as_ref().map_or(now.lru_gen, |b| b.lru_gen);
        delta.mglru = [mglru_before, now.lru_gen];
        levels(&now, delta);
        self.before = Some(now);
    }

    fn since(&self, before: &SystemSample, now: &SystemSample, delta: &mut Delta) {
        let ns = |now: u64, before: u64| now.saturating_sub(before).saturating_mul(self.tick_ns);
        if let (Some(a), Some(b)) = (&before.cpus, &now.cpus) {
            let old: BTreeMap<u32, &CpuTimes> = a.iter().map(|c| (c.cpu, c)).collect();
            for time in b {
                let (Some(old), Some(cpu)) = (
                    old.get(&time.cpu),
                    delta.cpus.iter_mut().find(|c| c.cpu == time.cpu),
                ) else {
                    continue;
                };
                let busy = |t: &CpuTimes| t.user + t.nice + t.system + t.irq + t.softirq;
                cpu.time = Some(CpuTime {
                    busy_ns: ns(busy(time), busy(old)),
                    idle_ns: ns(time.idle, old.idle),
                    iowait_ns: ns(time.iowait, old.iowait),
                    steal_ns: ns(time.steal, old.steal),
                });
            }
        }
        if let (Some(a), Some(b)) = (before.context_switches_total, now.context_switches_total) {
            delta.context_switches = Some(b.saturating_sub(a));
        }
        if let (Some(a), Some(b)) = (&before.memory_pressure, &now.memory_pressure) {
            let full =
                |p: &crate::host::system::Pressure| p.full.as_ref().map_or(0, |f| f.total_us);
            delta.memory_pressure_ns = Some((
                b.some
                    .total_us
                    .saturating_sub(a.some.total_us)
                    .saturating_mul(1000),
                full(b).saturating_sub(full(a)).saturating_mul(1000),
            ));
        }
        if let (Some(a), Some(b)) = (&before.own, &now.own) {
            delta.own.cpu_ns = Some(ns(
                b.utime_ticks + b.stime_ticks,
                a.utime_ticks + a.stime_ticks,
            ));
        }
        for size in &now.mthp {
            let old = before.mthp.iter().find(|m| m.size_kib == size.size_kib);
            for name in [
                "anon_fault_alloc",
                "anon_fault_fallback",
                "split",
                "swpin",
                "swpout",
            ] {
                if let (Some(b), Some(a)) = (size.get(name), old.and_then(|o| o.get(name))) {
                    delta.vmstat.insert(
                        format!("hugepages-{}kB {name}", size.size_kib).into(),
                        b.saturating_sub(a),
                    );
                }
            }
        }
    }
}

/// Levels worth a row.
fn levels(now: &SystemSample, delta: &mut Delta) {
    for key in [
        "MemTotal",
        "MemAvailable",
        "Cached",
        "AnonPages",
        "AnonHugePages",
        "FileHugePages",
        "ShmemHugePages",
        "SwapFree",
    ] {
        if let Some(bytes) = now.meminfo(key) {
            delta.levels.push((key.into(), bytes));
        }
    }
}
