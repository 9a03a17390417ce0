//! Where each CPU sits: core, last-level cache, NUMA node.
//!
//! Used to say how far a lock travelled between two CPUs. Read once at start; CPU hotplug after that is not
//! followed.

use std::path::Path;

use serde::Serialize;

use super::Fact;
use super::file::{read_number, read_text, under};

/// The place of one possible CPU.
///
/// Ids of core and cache are the lowest CPU number that shares them, which is unique on the machine, unlike
/// `core_id`, which repeats in every package. For an offline CPU only the number is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CpuPlace {
    /// CPU number.
    pub cpu: u32,
    /// Lowest CPU of the same core (SMT siblings).
    pub core: u32,
    /// Lowest CPU of the same last-level cache.
    pub llc: u32,
    /// NUMA node.
    pub node: u32,
    /// Physical package.
    pub package: u32,
    /// The CPU was online when read.
    pub is_online: bool,
}

/// How far apart two CPUs are; greater is farther.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Distance {
    /// The same CPU.
    Same,
    /// Another thread of the same core.
    Smt,
    /// Another core below the same last-level cache.
    Llc,
    /// Another last-level cache of the same NUMA node.
    Node,
    /// Another NUMA node.
    Remote,
}

/// All possible CPUs in ascending order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// One entry for each possible CPU.
    pub cpus: Vec<CpuPlace>,
    /// Cores are known; otherwise each CPU counts as a core of its own.
    pub cores: Fact<()>,
    /// Last-level caches are known; otherwise they are taken to span a package.
    pub caches: Fact<()>,
    /// NUMA nodes are known; otherwise everything is node 0.
    pub nodes: Fact<()>,
}

impl Topology {
    /// Reads `/sys/devices/system/{cpu,node}` below `root`.
    ///
    /// Total: without sysfs the result is one CPU on one node, with the reasons.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        let list = |file: &str| {
            read_text(root, file)
                .ok()
                .as_deref()
                .and_then(parse_cpu_list)
        };
        let online = list("/sys/devices/system/cpu/online");
        let possible = list("/sys/devices/system/cpu/possible")
            .or_else(|| online.clone())
            .unwrap_or_else(|| vec![0]);
        let mut unknown_cores = 0usize;
        let mut unknown_caches = 0usize;
        let mut cpus = Vec::with_capacity(possible.len());
        for &cpu in &possible {
            let is_online = online
                .as_ref()
                .is_none_or(|list| list.binary_search(&cpu).is_ok());
            let base = format!("/sys/devices/system/cpu/cpu{cpu}");
            // An offline CPU has no topology directory; that is no gap in our knowledge of the others.
            let siblings = list(&format!("{base}/topology/core_cpus_list"))
                .or_else(|| list(&format!("{base}/topology/thread_siblings_list")));
            unknown_cores += usize::from(is_online && siblings.is_none());
            let package =
                read_number(root, &format!("{base}/topology/physical_package_id")).unwrap_or(0);
            let llc = read_llc(root, &base);
            unknown_caches += usize::from(is_online && llc.is_none());
            cpus.push(CpuPlace {
                cpu,
                core: first_or(siblings.as_deref(), cpu),
                llc: llc.unwrap_or(u32::MAX),
                node: 0,
                package,
                is_online,
            });
        }
        span_packages(&mut cpus);
        let nodes = assign_nodes(root, &mut cpus);
        Self {
            cpus,
            cores: coverage(unknown_cores, "core"),
            caches: coverage(unknown_caches, "cache"),
            nodes,
        }
    }

    /// Returns the place of a CPU.
    #[must_use]
    pub fn place(&self, cpu: u32) -> Option<&CpuPlace> {
        self.cpus
            .binary_search_by_key(&cpu, |place| place.cpu)
            .ok()
            .map(|index| &self.cpus[index])
    }

    /// Returns how far `a` is from `b`; `None` if either was not online when read.
    ///
    /// The kernel shows no place for an offline CPU, and a wrong distance would be worse than none.
    #[must_use]
    pub fn distance(&self, a: u32, b: u32) -> Option<Distance> {
        let place = |cpu| self.place(cpu).filter(|place| place.is_online);
        let (a, b) = (place(a)?, place(b)?);
        Some(if a.cpu == b.cpu {
            Distance::Same
        } else if a.core == b.core {
            Distance::Smt
        } else if a.llc == b.llc {
            Distance::Llc
        } else if a.node == b.node {
            Distance::Node
        } else {
            Distance::Remote
        })
    }
}

/// Parses a CPU list like `0-3,8`, as sorted distinct numbers; an empty text is an empty list.
///
/// `None` if it is malformed or holds a number above 65,535, far above the kernel's NR_CPUS.
#[must_use]
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > 0xFFFF {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

fn first_or(list: Option<&[u32]>, otherwise: u32) -> u32 {
    list.and_then(|list| list.first().copied())
        .unwrap_or(otherwise)
}

/// Returns the lowest CPU that shares the highest-level cache of this CPU.
fn read_llc(root: &Path, base: &str) -> Option<u32> {
    let (_, index) = (0..16)
        .filter_map(|index| {
            let level: u32 = read_number(root, &format!("{base}/cache/index{index}/level")).ok()?;
            Some((level, index))
        })
        .max()?;
    let shared = read_text(root, &format!("{base}/cache/index{index}/shared_cpu_list")).ok()?;
    parse_cpu_list(&shared)?.first().copied()
}

/// Gives CPUs without cache information the lowest CPU of their package as cache id.
fn span_packages(cpus: &mut [CpuPlace]) {
    for index in 0..cpus.len() {
        if cpus[index].llc == u32::MAX {
            let package = cpus[index].package;
            let first = cpus
                .iter()
                .find(|place| place.package == package)
                .map_or(0, |place| place.cpu);
            cpus[index].llc = first;
        }
    }
}

fn assign_nodes(root: &Path, cpus: &mut [CpuPlace]) -> Fact<()> {
    let base = "/sys/devices/system/node";
    let entries = match std::fs::read_dir(under(root, base)) {
        Ok(entries) => entries,
        Err(error) => {
            return Fact::unknown(format!(
                "\"{base}\" cannot be read ({error}); all CPUs are shown on node 0"
            ));
        }
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(node) = name
            .to_str()
            .and_then(|name| name.strip_prefix("node")?.parse::<u32>().ok())
        else {
            continue;
        };
        let Ok(text) = read_text(root, &format!("{base}/node{node}/cpulist")) else {
            continue;
        };
        for cpu in parse_cpu_list(&text).unwrap_or_default() {
            if let Ok(index) = cpus.binary_search_by_key(&cpu, |place| place.cpu) {
                cpus[index].node = node;
            }
        }
    }
    Fact::Yes(())
}

fn coverage(unknown: usize, what: &str) -> Fact<()> {
    if unknown == 0 {
        Fact::Yes(())
    } else {
        Fact::unknown(format!(
            "sysfs does not give the {what} of {unknown} online CPUs"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cpu_lists() {
        assert_eq!(parse_cpu_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_cpu_list("8,0-1,1"), Some(vec![0, 1, 8]));
        assert_eq!(parse_cpu_list(""), Some(vec![]));
        assert_eq!(parse_cpu_list("3-1"), None);
        assert_eq!(parse_cpu_list("0-4294967295"), None);
        assert_eq!(parse_cpu_list("x"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived_and_sorted(text in "[0-9,\\-x]{0,20}") {
            if let Some(list) = parse_cpu_list(&text) {
                prop_assert!(list.is_sorted());
            }
        }
    }

    fn place(cpu: u32, core: u32, llc: u32, node: u32) -> CpuPlace {
        CpuPlace {
            cpu,
            core,
            llc,
            node,
            package: node,
            is_online: true,
        }
    }

    #[test]
    fn distances() {
        let topology = Topology {
            cpus: vec![
                place(0, 0, 0, 0),
                place(1, 0, 0, 0),
                place(2, 2, 0, 0),
                place(3, 3, 3, 0),
                place(4, 4, 4, 1),
            ],
            cores: Fact::Yes(()),
            caches: Fact::Yes(()),
            nodes: Fact::Yes(()),
        };
        let from_zero: Vec<_> = (0..6).map(|cpu| topology.distance(0, cpu)).collect();
        assert_eq!(
            from_zero,
            [
                Some(Distance::Same),
                Some(Distance::Smt),
                Some(Distance::Llc),
                Some(Distance::Node),
                Some(Distance::Remote),
                None
            ]
        );
        assert!(Distance::Same < Distance::Smt && Distance::Node < Distance::Remote);
    }

    #[test]
    fn no_sysfs_is_one_node_and_says_so() {
        let topology = Topology::read(Path::new("/nonexistent"));
        assert_eq!(topology.cpus.len(), 1);
        for fact in [&topology.cores, &topology.caches, &topology.nodes] {
            assert_eq!(fact.state(), "unknown");
        }
    }
}
