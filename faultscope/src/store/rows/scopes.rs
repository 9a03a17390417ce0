//! CPUs, threads, processes, cgroups and address spaces.

use super::{
    Sink, Source,
    faults::passes,
    keys::{ProcessKey, SpaceKey, ThreadKey},
};
use crate::{
    sample::{
        Counters, Delta, Scope,
        counters::{LRU_LOCK, MMAP_LOCK, WAIT_NS, WAITS},
        delta::{Cgroup, Cpu, CpuTime, Passes, Process, ProcessId, Space, Thread, ThreadId},
    },
    store::codec::{Codec, Fault, Record, damaged},
};
use std::collections::HashMap;

/// Counters with a column of their own, in the order of the columns.
const PLAIN: [Scope; 22] = [
    Scope::User(0),
    Scope::User(1),
    Scope::User(2),
    Scope::User(4),
    Scope::User(5),
    Scope::User(6),
    Scope::Kernel(0),
    Scope::Kernel(1),
    Scope::Kernel(2),
    Scope::Kernel(4),
    Scope::Kernel(5),
    Scope::Kernel(6),
    Scope::FixedUp,
    Scope::Major,
    Scope::Rss,
    Scope::Madvise,
    Scope::MmapTaken(0),
    Scope::MmapTaken(1),
    Scope::MmapTakeNs(0),
    Scope::MmapTakeNs(1),
    Scope::MmapHoldNs(0),
    Scope::MmapHoldNs(1),
];

fn counters<C: Codec>(c: &mut C, counters: &mut Counters) -> Result<(), Fault> {
    let mut rare = *counters;
    let mut plain = |c: &mut C, scope| {
        rare[scope] = 0;
        c.u64(&mut counters[scope])
    };
    for scope in PLAIN {
        plain(c, scope)?;
    }
    for class in [MMAP_LOCK, LRU_LOCK] {
        plain(c, Scope::Waits(class))?;
        plain(c, Scope::WaitNs(class))?;
    }
    // Sums for queries; each class stands in the list.
    c.word(&mut rare.0[WAITS].iter().fold(0, |sum, n| sum.wrapping_add(*n)))?;
    c.word(
        &mut rare.0[WAIT_NS]
            .iter()
            .fold(0, |sum, n| sum.wrapping_add(*n)),
    )?;
    c.counts(&mut rare.0)?;
    for (n, rare) in counters.0.iter_mut().zip(&rare.0) {
        *n |= rare;
    }
    Ok(())
}

/// `cpu_time`: every CPU of the interval.
#[derive(Debug, Default)]
struct TimeRow(Cpu);

impl Record for TimeRow {
    const TABLE: &'static str = "cpu_time";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        let Self(cpu) = self;
        c.small(&mut cpu.cpu)?;
        let mut place = match cpu.place {
            Some((core, llc, node)) => [Some(core), Some(llc), Some(node)],
            None => [None; 3],
        };
        place.iter_mut().try_for_each(|n| c.opt_small(n))?;
        cpu.place = match place {
            [Some(core), Some(llc), Some(node)] => Some((core, llc, node)),
            [None, None, None] => None,
            _ => return Err(damaged("a CPU's place is half there")),
        };
        let mut time = match cpu.time {
            Some(t) => [t.busy_ns, t.idle_ns, t.iowait_ns, t.steal_ns].map(Some),
            None => [None; 4],
        };
        time.iter_mut().try_for_each(|n| c.opt_u64(n))?;
        cpu.time = match time {
            [
                Some(busy_ns),
                Some(idle_ns),
                Some(iowait_ns),
                Some(steal_ns),
            ] => Some(CpuTime {
                busy_ns,
                idle_ns,
                iowait_ns,
                steal_ns,
            }),
            [None, None, None, None] => None,
            _ => return Err(damaged("a CPU's time is half there")),
        };
        Ok(())
    }
}

/// `cpu`: what happened on it.
#[derive(Debug, Default)]
struct CpuRow(Cpu);

impl Record for CpuRow {
    const TABLE: &'static str = "cpu";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        let Self(cpu) = self;
        c.small(&mut cpu.cpu)?;
        counters(c, &mut cpu.counters)?;
        cpu.rss.iter_mut().try_for_each(|n| c.u64(n))?;
        c.u64s([
            &mut cpu.lru_insertions,
            &mut cpu.lru_activations,
            &mut cpu.lru.mark_accessed,
            &mut cpu.lru.workingset_activations,
            &mut cpu.lru.refaults,
            &mut cpu.lru.drains,
            &mut cpu.mmap_handoffs,
        ])?;
        cpu.mmap_failed.iter_mut().try_for_each(|n| c.u64(n))?;
        c.u64(&mut cpu.mmap_downgraded)
    }
}

/// `cpu_fault`: passes of `handle_mm_fault` on it.
#[derive(Debug, Default)]
struct CpuFaultRow {
    cpu: u32,
    passes: Passes,
}

impl Record for CpuFaultRow {
    const TABLE: &'static str = "cpu_fault";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.small(&mut self.cpu)?;
        passes(c, &mut self.passes)
    }
}

#[derive(Debug, Default)]
struct ThreadRow {
    thread: ThreadKey,
    counters: Counters,
}

impl Record for ThreadRow {
    const TABLE: &'static str = "thread";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.key(&mut self.thread)?;
        counters(c, &mut self.counters)
    }
}

#[derive(Debug, Default)]
struct ProcessRow {
    process: ProcessKey,
    threads: u64,
    is_workload: bool,
    only_thread: Option<ThreadKey>,
    counters: Counters,
}

impl Record for ProcessRow {
    const TABLE: &'static str = "process";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.key(&mut self.process)?;
        c.u64(&mut self.threads)?;
        c.flag(&mut self.is_workload)?;
        c.opt_key(&mut self.only_thread)?;
        counters(c, &mut self.counters)
    }
}

#[derive(Debug, Default)]
struct CgroupRow {
    id: u64,
    row: Cgroup,
}

impl Record for CgroupRow {
    const TABLE: &'static str = "cgroup";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.word(&mut self.id)?;
        c.u64(&mut self.row.threads)?;
        counters(c, &mut self.row.counters)
    }
}

#[derive(Debug, Default)]
struct SpaceRow {
    mm: SpaceKey,
    row: Space,
}

impl Record for SpaceRow {
    const TABLE: &'static str = "space";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.key(&mut self.mm)?;
        c.u64s([
            &mut self.row.window_faults,
            &mut self.row.window_handoffs,
            &mut self.row.rss,
        ])?;
        c.sparse(&mut self.row.by_cpu)
    }
}

fn thread_key(id: ThreadId, thread: &Thread) -> ThreadKey {
    ThreadKey {
        id,
        process: thread.process,
        comm: thread.comm.clone(),
        cgroup: thread.cgroup,
    }
}

/// The thread of each process that has just one row, with the same increments.
fn only_threads(delta: &Delta) -> HashMap<ProcessId, ThreadId> {
    let mut only: HashMap<ProcessId, Option<ThreadId>> = HashMap::new();
    for (id, thread) in &delta.threads {
        only.entry(thread.process)
            .and_modify(|several| *several = None)
            .or_insert(Some(*id));
    }
    only.into_iter()
        .filter_map(|(process, thread)| {
            let thread = thread?;
            let all = &delta.processes.get(&process)?.counters;
            (*all == delta.threads[&thread].counters).then_some((process, thread))
        })
        .collect()
}

/// What of a CPU stands in `cpu`; `None` if nothing happened.
fn events(cpu: &Cpu) -> Option<CpuRow> {
    let bare = Cpu {
        place: None,
        time: None,
        passes: Passes::default(),
        ..cpu.clone()
    };
    let idle = Cpu {
        cpu: cpu.cpu,
        ..Cpu::default()
    };
    (bare != idle).then_some(CpuRow(bare))
}

pub(super) fn write(sink: &mut Sink<'_>, delta: &Delta) -> Result<(), Fault> {
    sink.put(delta.cpus.iter().map(|cpu| TimeRow(cpu.clone())))?;
    sink.put(delta.cpus.iter().filter_map(events))?;
    let faulted = |cpu: &&Cpu| cpu.passes != Passes::default();
    sink.put(delta.cpus.iter().filter(faulted).map(|cpu| CpuFaultRow {
        cpu: cpu.cpu,
        passes: cpu.passes.clone(),
    }))?;
    let only = only_threads(delta);
    sink.put(delta.processes.iter().map(|(id, process)| {
        let thread = only.get(id);
        ProcessRow {
            process: ProcessKey {
                id: *id,
                comm: process.comm.clone(),
                cgroup: process.cgroup,
            },
            threads: process.threads,
            is_workload: process.is_workload,
            only_thread: thread.map(|thread| thread_key(*thread, &delta.threads[thread])),
            counters: process.counters,
        }
    }))?;
    let several = |(id, thread): &(&ThreadId, &Thread)| only.get(&thread.process) != Some(*id);
    sink.put(
        delta
            .threads
            .iter()
            .filter(several)
            .map(|(id, thread)| ThreadRow {
                thread: thread_key(*id, thread),
                counters: thread.counters,
            }),
    )?;
    sink.put(delta.cgroups.iter().map(|(id, cgroup)| CgroupRow {
        id: *id,
        row: cgroup.clone(),
    }))?;
    sink.put(delta.spaces.iter().map(|(mm, space)| SpaceRow {
        mm: SpaceKey {
            mm: *mm,
            process: space.process,
        },
        row: space.clone(),
    }))
}

pub(super) fn read(source: &mut Source<'_>, delta: &mut Delta) -> Result<(), Fault> {
    let mut cpus: HashMap<u32, Cpu> = HashMap::new();
    source.each(|TimeRow(cpu)| {
        cpus.insert(cpu.cpu, cpu);
        Ok(())
    })?;
    source.each(|CpuRow(row)| {
        let cpu = cpus
            .get_mut(&row.cpu)
            .ok_or_else(|| damaged("a CPU that is not there did something"))?;
        *cpu = Cpu {
            place: cpu.place,
            time: cpu.time,
            ..row
        };
        Ok(())
    })?;
    source.each(|row: CpuFaultRow| {
        let cpu = cpus
            .get_mut(&row.cpu)
            .ok_or_else(|| damaged("a CPU that is not there did something"))?;
        cpu.passes = row.passes;
        Ok(())
    })?;
    delta.cpus = cpus.into_values().collect();
    delta.cpus.sort_unstable_by_key(|cpu| cpu.cpu);
    let threads = &mut delta.threads;
    let mut put = |key: ThreadKey, counters| {
        let thread = Thread {
            process: key.process,
            comm: key.comm,
            cgroup: key.cgroup,
            counters,
        };
        threads.insert(key.id, thread);
    };
    source.each(|row: ProcessRow| {
        if let Some(thread) = row.only_thread {
            put(thread, row.counters);
        }
        let process = Process {
            comm: row.process.comm,
            cgroup: row.process.cgroup,
            threads: row.threads,
            is_workload: row.is_workload,
            counters: row.counters,
        };
        delta.processes.insert(row.process.id, process);
        Ok(())
    })?;
    source.each(|row: ThreadRow| {
        put(row.thread, row.counters);
        Ok(())
    })?;
    source.each(|row: CgroupRow| {
        delta.cgroups.insert(row.id, row.row);
        Ok(())
    })?;
    source.each(|row: SpaceRow| {
        let space = Space {
            process: row.mm.process,
            ..row.row
        };
        delta.spaces.insert(row.mm.mm, space);
        Ok(())
    })
}
