//! Typed access to every map.

use super::{
    load::{LoadError, Sizes, chain},
    table::Table,
};
use aya::{
    Ebpf,
    maps::{HashMap, Map, MapData, MapError},
};
use bytemuck::Pod;
use faultscope_common::{
    abi::{STACK_SLOTS, map},
    blocked::BlockedRow,
    budget::{self, ChainRow, ClockRow, Code},
    config::Control,
    cpu::CpuRow,
    lock::{LockRow, StackRow},
    lru::{HoldRow, LruRow},
    madvise::{MadviseKey, MadviseRow},
    mm_fault::{MmThreadRow, PathRow, ROWS},
    mmap::{MMAP_SLOTS, MmapRow},
    refault::{REFAULT_ROWS, RefaultRow},
    slowpath::SlowRow,
    thread::{RetiredKey, SpaceKey, ThreadRow},
};

/// A wire type as aya wants it; the orphan rule forbids the marker elsewhere.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub struct Wire<T>(pub T);

// SAFETY: any bytes are a valid T, which is what aya's marker asks for.
unsafe impl<T: Pod> aya::Pod for Wire<T> {}

/// A BPF hash that user space drains or prunes.
#[derive(Debug)]
pub struct Hash<K, V> {
    map: HashMap<MapData, Wire<K>, Wire<V>>,
    /// Most entries it can hold.
    pub capacity: u32,
}

impl<K: Pod, V: Pod> Hash<K, V> {
    /// All entries; those inserted or deleted meanwhile may be missed.
    ///
    /// # Errors
    /// What bpf(2) says.
    pub fn entries(&self) -> Result<Vec<(K, V)>, MapError> {
        let mut all = Vec::new();
        for entry in &self.map {
            match entry {
                Ok((k, v)) => all.push((k.0, v.0)),
                // Deleted between the key and its look-up.
                Err(MapError::KeyNotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// Deletes an entry; one that is gone already is no error.
    pub fn remove(&mut self, key: &K) {
        // Only an entry another deletion took can be missing, which is what we want.
        let _gone = self.map.remove(&Wire(*key));
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// What bpf(2) says, e.g. E2BIG for a full map.
    pub fn insert(&mut self, key: K, value: V) -> Result<(), MapError> {
        self.map.insert(Wire(key), Wire(value), 0)
    }
}

/// Every map user space reads or writes.
#[derive(Debug)]
pub struct Maps {
    /// Entries of each map.
    pub sizes: Sizes,
    /// Totals by CPU.
    pub cpus: Table<CpuRow>,
    /// Thread rows.
    pub threads: Table<ThreadRow>,
    /// Thread rows of threads whose slot is taken.
    pub overflow: Hash<u64, ThreadRow>,
    /// Rows of before an exec or cgroup move.
    pub retired: Hash<RetiredKey, ThreadRow>,
    /// Faults of address spaces by CPU.
    pub spaces: Hash<SpaceKey, u64>,
    /// mmap_lock takers.
    pub mmap: Table<MmapRow>,
    /// Contended waits.
    pub locks: Table<LockRow>,
    /// Call chains.
    pub stacks: Table<StackRow>,
    /// Exact spinlock waits by CPU.
    pub slow: Table<SlowRow>,
    /// mmap_lock waiters and holders.
    pub blocked: Table<BlockedRow>,
    /// madvise rows.
    pub madvise: Hash<MadviseKey, MadviseRow>,
    /// LRU totals by CPU.
    pub lru: Table<LruRow>,
    /// lru_lock holds.
    pub lru_holds: Table<HoldRow>,
    /// Passes of `handle_mm_fault` by CPU, path and backing.
    pub mm_paths: Table<PathRow>,
    /// Threads while the fault-latency programs run.
    pub mm_threads: Table<MmThreadRow>,
    /// Memory given back and refaults, `REFAULT_ROWS` for each CPU.
    pub refaults: Table<RefaultRow>,
    /// Switches.
    pub control: Table<Control>,
    /// Samples of the CPU clock.
    pub clock: Table<ClockRow>,
    /// Which functions make a stack a fault's.
    pub fault_code: Table<Code>,
    /// Call chains of the fault path.
    pub fault_chains: Table<ChainRow>,
    /// Samples of each chain, `budget::SLOTS` rows per CPU.
    pub fault_hits: Table<u64>,
    /// Processes of a recorded command by tgid, with their start, ns.
    pub workload: Hash<u32, u64>,
    places: Table<u64>,
    filter_pids: Hash<u32, u8>,
    filter_cgroups: Hash<u64, u8>,
    filter_comms: Hash<[u8; 16], u8>,
    /// Memory of all maps as the kernel accounts it, in bytes; `None` if it does not say.
    pub memory_bytes: Option<u64>,
}

impl Maps {
    pub(super) fn take(ebpf: &mut Ebpf, sizes: Sizes) -> Result<Self, LoadError> {
        let memory_bytes = memory(ebpf);
        Ok(Self {
            cpus: table(ebpf, map::CPUS, sizes.cpus)?,
            threads: table(ebpf, map::THREADS, sizes.threads)?,
            overflow: hash(ebpf, map::OVERFLOW, sizes.overflow)?,
            retired: hash(ebpf, map::RETIRED, sizes.retired)?,
            spaces: hash(ebpf, map::SPACES, sizes.spaces)?,
            mmap: table(ebpf, map::MMAP, MMAP_SLOTS)?,
            locks: table(ebpf, map::LOCKS, sizes.lock_rows * sizes.cpus)?,
            stacks: table(ebpf, map::STACKS, STACK_SLOTS)?,
            slow: table(ebpf, map::SLOW, sizes.cpus)?,
            blocked: table(ebpf, map::BLOCKED, sizes.blocked_rows * sizes.cpus)?,
            madvise: hash(ebpf, map::MADVISE, sizes.madvise)?,
            lru: table(ebpf, map::LRU, sizes.cpus)?,
            lru_holds: table(ebpf, map::LRU_HOLDS, sizes.hold_rows * sizes.cpus)?,
            mm_paths: table(ebpf, map::MM_PATHS, sizes.cpus * ROWS)?,
            mm_threads: table(ebpf, map::MM_THREADS, sizes.mm_threads)?,
            refaults: table(ebpf, map::REFAULTS, REFAULT_ROWS * sizes.cpus)?,
            control: table(ebpf, map::CONTROL, 1)?,
            clock: table(ebpf, map::BUDGET_CLOCK, sizes.cpus)?,
            fault_code: table(ebpf, map::BUDGET_CODE, 1)?,
            fault_chains: table(ebpf, map::BUDGET_CHAINS, budget::SLOTS)?,
            fault_hits: table(ebpf, map::BUDGET_HITS, budget::SLOTS * sizes.cpus)?,
            workload: hash(ebpf, map::WORKLOAD, sizes.workload)?,
            places: table(ebpf, map::PLACES, sizes.cpus)?,
            filter_pids: hash(ebpf, map::FILTER_PIDS, 1024)?,
            filter_cgroups: hash(ebpf, map::FILTER_CGROUPS, 1024)?,
            filter_comms: hash(ebpf, map::FILTER_COMMS, 1024)?,
            memory_bytes,
            sizes,
        })
    }

    /// Tells the programs where each CPU is: CPU, core, LLC and node.
    pub fn set_places(&self, places: &[(u32, u16, u16, u16)]) {
        for &(cpu, core, llc, node) in places {
            let packed = u64::from(core) | u64::from(llc) << 16 | u64::from(node) << 32;
            self.places.write_word(cpu as usize, 0, packed);
        }
    }

    /// Fills the filter maps; the globals say which kinds are in force.
    ///
    /// # Errors
    /// What bpf(2) says; E2BIG above 1,024 of a kind.
    pub fn set_filters(
        &mut self,
        pids: &[u32],
        cgroups: &[u64],
        comms: &[[u8; 16]],
    ) -> Result<(), MapError> {
        for pid in pids {
            self.filter_pids.insert(*pid, 1)?;
        }
        for id in cgroups {
            self.filter_cgroups.insert(*id, 1)?;
        }
        for comm in comms {
            self.filter_comms.insert(*comm, 1)?;
        }
        Ok(())
    }
}

fn missing(name: &'static str) -> LoadError {
    LoadError::Map {
        name,
        reason: "not in the object".into(),
    }
}

fn data(ebpf: &mut Ebpf, name: &'static str) -> Result<Map, LoadError> {
    ebpf.take_map(name).ok_or_else(|| missing(name))
}

fn table<T: Pod>(ebpf: &mut Ebpf, name: &'static str, rows: u32) -> Result<Table<T>, LoadError> {
    let Map::Array(data) = data(ebpf, name)? else {
        return Err(LoadError::Map {
            name,
            reason: "not an array".into(),
        });
    };
    Table::map(data, rows).map_err(|e| LoadError::Map {
        name,
        reason: e.to_string(),
    })
}

fn hash<K: Pod, V: Pod>(
    ebpf: &mut Ebpf,
    name: &'static str,
    capacity: u32,
) -> Result<Hash<K, V>, LoadError> {
    let map = HashMap::try_from(data(ebpf, name)?).map_err(|e| LoadError::Map {
        name,
        reason: chain(&e),
    })?;
    Ok(Hash { map, capacity })
}

/// What the kernel accounts for the maps (`memlock` of their fdinfo).
fn memory(ebpf: &Ebpf) -> Option<u64> {
    use std::os::fd::{AsFd, AsRawFd};
    ebpf.maps()
        .map(|(_, map)| {
            let fd = match map {
                Map::Array(data) | Map::HashMap(data) => data.fd().as_fd().as_raw_fd(),
                _ => return None,
            };
            fdinfo(fd, "memlock:")
        })
        .sum()
}

/// A number from our own fdinfo.
pub(super) fn fdinfo(fd: std::os::fd::RawFd, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
}
