//! Tests of the whole reader on the recorded and the hand-made host in `tests/data`.

use std::path::PathBuf;

use super::btf::Btf;
use super::cgroup::{CgroupPaths, CgroupVersion};
use super::kernel::Preemption;
use super::privilege::Lockdown;
use super::system::SystemReader;
use super::topology::Distance;
use super::*;

fn fixture(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    assert!(
        root.is_dir(),
        "the fixture \"{name}\" is part of the repository"
    );
    root
}

fn reason<T>(fact: &Fact<T>) -> &str {
    fact.reason().unwrap_or("yes")
}

#[test]
fn facts_serialise_as_state_and_detail() {
    let json = |fact: Fact<u32>| serde_json::to_string(&fact).expect("plain data");
    assert_eq!(json(Fact::Yes(7)), r#"{"state":"yes","detail":7}"#);
    assert_eq!(json(Fact::no("x")), r#"{"state":"no","detail":"x"}"#);
    assert_eq!(
        json(Fact::unknown("x")),
        r#"{"state":"unknown","detail":"x"}"#
    );
}

#[test]
fn unknown_never_counts_as_yes() {
    let fact: Fact<u32> = Fact::unknown("x");
    assert!(!fact.is_yes());
    assert_eq!(fact.value(), None);
    assert_eq!(fact.map(|value| value + 1), Fact::unknown("x"));
}

#[test]
fn recorded_hybrid_host() {
    let root = fixture("host-6.18");
    let facts = HostFacts::read(&root);
    let kernel = &facts.kernel;
    assert_eq!(kernel.release, Fact::Yes("6.18.44-fc-v657".into()));
    assert_eq!(kernel.preemption, Fact::Yes(Preemption::Dynamic));
    assert_eq!(kernel.kallsyms, Fact::Yes(()));
    assert!(
        reason(&kernel.tracefs).contains("mount -t tracefs"),
        "{:?}",
        kernel.tracefs
    );
    assert_eq!(kernel.psi, Fact::Yes(()));
    assert_eq!(kernel.thp, Fact::Yes("madvise".into()));
    let sizes: Vec<_> = kernel
        .thp_sizes
        .iter()
        .map(|size| (size.size_kib, size.mode.as_str()))
        .collect();
    assert_eq!(sizes, [(64, "never"), (2048, "inherit")]);
    assert!(reason(&kernel.mglru).starts_with("not built"));
    assert!(reason(&kernel.btf_bytes).contains("CONFIG_DEBUG_INFO_BTF"));
    assert_eq!(facts.privilege.perf_event_paranoid, Fact::Yes(2));
    assert!(reason(&facts.privilege.lockdown).contains("securityfs is not mounted"));
    let hierarchy = facts.memory_hierarchy.value().expect("mounted");
    assert_eq!(
        (hierarchy.version, hierarchy.is_whole),
        (CgroupVersion::V1, true)
    );
    assert_eq!(facts.topology.distance(0, 1), Some(Distance::Llc));
    assert_eq!(facts.spinlock_evidence.is_guest, Some(true));
    assert_eq!(facts.spinlock_evidence.possible_cpus, 2);
}

#[test]
fn hand_made_unified_host() {
    let root = fixture("host-unified");
    let facts = HostFacts::read(&root);
    let kernel = &facts.kernel;
    assert_eq!(kernel.preemption, Fact::Yes(Preemption::Realtime));
    assert!(reason(&kernel.kallsyms).contains("kptr_restrict"));
    assert_eq!(kernel.tracefs, Fact::Yes("/sys/kernel/tracing".into()));
    assert_eq!(kernel.mglru, Fact::Yes(7));
    assert!(kernel.thp_sizes.is_empty());
    assert_eq!(
        facts.privilege.lockdown,
        Fact::Yes(Lockdown::Confidentiality)
    );
    assert_eq!(facts.privilege.bpf_stats_enabled.state(), "no");
    assert_eq!(facts.initial_pid_namespace.state(), "unknown");
    assert!(facts.spinlock_evidence.has_nopvspin);
    assert_eq!(facts.spinlock_evidence.is_guest, Some(false));

    let topology = &facts.topology;
    for (to, distance) in [
        (0, Distance::Same),
        (1, Distance::Smt),
        (3, Distance::Llc),
        (4, Distance::Remote),
        (6, Distance::Remote),
    ] {
        assert_eq!(topology.distance(0, to), Some(distance), "0 to {to}");
    }
    let offline = topology.place(7).expect("possible");
    assert!(!offline.is_online);
    assert_eq!(topology.distance(0, 7), None);
    assert_eq!(topology.distance(7, 7), None);
    assert!(topology.cores.is_yes() && topology.caches.is_yes() && topology.nodes.is_yes());

    let hierarchy = facts.memory_hierarchy.value().expect("mounted");
    assert_eq!(hierarchy.version, CgroupVersion::V2);
    let mut paths = CgroupPaths::new(&root, hierarchy);
    let id = paths
        .resolve_filter(Path::new("/sys/fs/cgroup/system.slice/db.service"))
        .expect("exists");
    assert_eq!(
        paths.name(id).map(|name| &*name.display),
        Some("/system.slice/db.service")
    );
}

#[test]
fn system_sample_of_both_hosts() {
    let recorded = SystemReader::open(&fixture("host-6.18")).read();
    let vmstat = recorded.vmstat.as_ref().expect("recorded");
    assert!(vmstat.get("pgfault") > vmstat.get("pgmajfault"));
    assert_eq!(vmstat.get("nr_slab_reclaimable"), None, "not selected");
    assert_eq!(recorded.cpus.as_ref().map(Vec::len), Some(2));
    assert!(recorded.cpu_pressure.expect("recorded").full.is_some());
    assert_eq!(
        recorded
            .mthp
            .iter()
            .map(|size| size.size_kib)
            .collect::<Vec<_>>(),
        [64, 2048]
    );
    assert!(recorded.mthp[1].get("anon_fault_alloc").is_some());
    assert_eq!(recorded.own, None);

    let made = SystemReader::open(&fixture("host-unified")).read();
    let cpus = made.cpus.expect("made");
    assert_eq!(
        cpus.iter()
            .map(|times| (times.cpu, times.iowait, times.steal))
            .collect::<Vec<_>>(),
        [(0, 0, 0), (2, 4, 5)]
    );
    assert_eq!(made.context_switches_total, Some(77));
    assert_eq!(made.cpu_pressure.expect("made").full, None);
    assert_eq!(made.io_pressure, None);
    assert_eq!(made.vmstat, None);
}

#[test]
fn running_host_reads_and_consults_its_btf() {
    let mut facts = HostFacts::read(Path::new("/"));
    assert!(facts.kernel.release.is_yes() && facts.topology.nodes.is_yes());
    let image = std::fs::read("/sys/kernel/btf/vmlinux").expect("the tests need a kernel with BTF");
    assert_eq!(facts.kernel.btf_bytes, Fact::Yes(image.len() as u64));
    facts.consult_btf(&Btf::parse(image).expect("the running kernel's BTF"));
    assert!(facts.spinlock_evidence.pv_built.is_some());
    serde_json::to_string(&facts).expect("plain data");
}

/// The resolver takes ids from directory entries; programs report the kernel's id, which is what stat gives.
#[test]
fn directory_entries_of_the_running_hierarchy_carry_the_ids_that_stat_gives() {
    let root = Path::new("/");
    let facts = HostFacts::read(root);
    let Some(hierarchy) = facts.memory_hierarchy.value() else {
        assert!(
            facts
                .memory_hierarchy
                .reason()
                .is_some_and(|reason| !reason.is_empty())
        );
        return;
    };
    let mut paths = CgroupPaths::new(root, hierarchy);
    let top = paths.resolve_filter(Path::new("/")).expect("mounted");
    assert_eq!(paths.name(top).map(|name| &*name.raw), Some(&b"/"[..]));
    for entry in std::fs::read_dir(&hierarchy.mount)
        .expect("mounted")
        .flatten()
    {
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(id) = paths.resolve_filter(&entry.path())
        {
            let expected = [b"/", entry.file_name().as_encoded_bytes()].concat();
            paths.begin_tick();
            assert_eq!(
                paths.name(id).map(|name| &*name.raw),
                Some(expected.as_slice())
            );
        }
    }
}
