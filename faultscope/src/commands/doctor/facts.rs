//! The host's facts as lines: state, what is lost, the fix.

use super::{FactLine, Level, Surroundings};
use crate::error::GRANT;
use crate::host::cgroup::CgroupVersion;
use crate::host::kernel::Preemption;
use crate::host::privilege::{Lockdown, PrivilegeFacts};
use crate::host::spinlock::SpinlockMode;
use crate::host::{Fact, HostFacts};
use crate::plan::{self, ProbeFacts};

const NO_NAMES: &str =
    "names of kernel functions: call sites of lock waits are shown as addresses or not at all";

/// Builds one line from a fact: `shown` is the text of a yes, `loss` what a no or unknown takes away.
fn line<T>(
    id: &str,
    fact: &Fact<T>,
    shown: impl FnOnce(&T) -> String,
    loss: Option<(&str, Option<&str>)>,
) -> FactLine {
    let (reason, loss) = match fact {
        Fact::Yes(value) => (shown(value), None),
        Fact::No(reason) | Fact::Unknown(reason) => (reason.clone(), loss),
    };
    FactLine {
        id: id.to_owned(),
        state: fact.state(),
        reason: (!reason.is_empty()).then_some(reason),
        level: if loss.is_some() {
            Level::Warn
        } else {
            Level::Ok
        },
        lost: loss.map(|(lost, _)| lost.to_owned()),
        fix: loss.and_then(|(_, fix)| fix).map(str::to_owned),
    }
}

impl FactLine {
    fn losing(mut self, level: Level, lost: impl Into<String>, fix: Option<&str>) -> Self {
        self.level = level;
        self.lost = Some(lost.into());
        self.fix = fix.map(str::to_owned);
        self
    }
}

/// All lines in the order they are shown.
pub(super) fn lines(
    host: &HostFacts,
    probes: &Fact<ProbeFacts>,
    around: &Surroundings,
) -> Vec<FactLine> {
    let kernel = &host.kernel;
    let mut lines = vec![line("kernel", &kernel.release, Clone::clone, None)];
    lines.extend(privileges(&host.privilege));
    lines.push(btf(host, probes));
    lines.push(lockdown(&host.privilege.lockdown));
    lines.extend(sysctls(&host.privilege));
    lines.push(kallsyms(host));
    lines.push(line(
        "tracefs",
        &kernel.tracefs,
        |point| format!("mounted at \"{point}\""),
        Some((
            "nothing that this version attaches: its probes need no tracefs; the kernel's list of traceable functions \
             cannot be read",
            kernel.tracefs.reason().and_then(quoted_command),
        )),
    ));
    lines.push(line(
        "preemption",
        &kernel.preemption,
        |model| preemption(*model).to_owned(),
        None,
    ));
    lines.push(spinlock(&host.spinlock));
    lines.push(mglru(&kernel.mglru));
    lines.push(line("thp", &kernel.thp, |mode| thp(mode, host), None));
    lines.push(line(
        "psi",
        &kernel.psi,
        |()| String::new(),
        Some((
            "pressure stall figures",
            Some("boot with \"psi=1\", on a kernel built with CONFIG_PSI"),
        )),
    ));
    lines.push(memory_cgroups(host));
    lines.push(line(
        "pid_namespace",
        &host.initial_pid_namespace,
        |()| "the host's own".to_owned(),
        Some((
            "process names and --pid may not match what programs see",
            Some("run in the host's pid namespace, for a container with \"--pid=host\""),
        )),
    ));
    lines.push(topology(host));
    lines.push(clock(&around.clocksource));
    lines.push(line("terminal", &around.terminal, Clone::clone, None));
    lines
}

fn privileges(privilege: &PrivilegeFacts) -> Vec<FactLine> {
    let stands_in = |holds: bool| {
        if holds {
            String::new()
        } else {
            "CAP_SYS_ADMIN is held and stands in for it".to_owned()
        }
    };
    let capability = |id: &str, fact: &Fact<()>, is_covered: bool, lost: &str| {
        if is_covered {
            return line(id, &Fact::Yes(()), |()| stands_in(fact.is_yes()), None);
        }
        line(id, fact, |()| String::new(), None).losing(Level::Fail, lost, Some(GRANT))
    };
    vec![
        capability(
            "cap_bpf",
            &privilege.cap_bpf,
            privilege.may_load_bpf(),
            "everything: the kernel loads no BPF program for this process",
        ),
        capability(
            "cap_perfmon",
            &privilege.cap_perfmon,
            privilege.may_trace(),
            "everything: the kernel attaches no tracing program for this process",
        ),
        line(
            "cap_syslog",
            &privilege.cap_syslog,
            |()| String::new(),
            None,
        ),
    ]
}

fn btf(host: &HostFacts, probes: &Fact<ProbeFacts>) -> FactLine {
    let base = line(
        "btf",
        probes,
        |_| {
            host.kernel
                .btf_bytes
                .value()
                .map_or_else(String::new, |bytes| format!("{bytes} bytes"))
        },
        None,
    );
    if probes.is_yes() {
        return base;
    }
    base.losing(
        Level::Fail,
        "everything: without the kernel's types no probe can be planned",
        Some(
            "run a kernel built with CONFIG_DEBUG_INFO_BTF=y, mount sysfs, and let this process read \
             \"/sys/kernel/btf/vmlinux\"",
        ),
    )
}

fn lockdown(fact: &Fact<Lockdown>) -> FactLine {
    let base = line(
        "lockdown",
        fact,
        |state| format!("{state:?}").to_lowercase(),
        None,
    );
    match fact {
        Fact::Yes(Lockdown::Confidentiality) => base.losing(
            Level::Fail,
            "programs that read kernel memory are refused: the identity of locks, mmap_lock holds",
            Some("boot with \"lockdown=integrity\" in place of \"lockdown=confidentiality\""),
        ),
        Fact::Unknown(reason) => {
            let fix = quoted_command(reason).map(str::to_owned);
            base.losing(
                Level::Warn,
                "nothing by this alone; if the state is confidentiality, programs that read kernel memory are refused",
                fix.as_deref(),
            )
        }
        Fact::Yes(_) | Fact::No(_) => base,
    }
}

fn sysctls(privilege: &PrivilegeFacts) -> Vec<FactLine> {
    let number = |id: &str, fact: &Fact<i64>| line(id, fact, i64::to_string, None);
    let kptr = number("kptr_restrict", &privilege.kptr_restrict);
    let kptr = match privilege.kptr_restrict {
        Fact::Yes(level) if level >= 2 => kptr.losing(
            Level::Warn,
            NO_NAMES,
            Some("sysctl -w kernel.kptr_restrict=1"),
        ),
        _ => kptr,
    };
    let stats = number("bpf_stats_enabled", &privilege.bpf_stats_enabled);
    let stats = if matches!(privilege.bpf_stats_enabled, Fact::Yes(1))
        || privilege.cap_sys_admin.is_yes()
    {
        stats
    } else {
        stats.losing(
            Level::Warn,
            "run time of our own programs: CAP_SYS_ADMIN could switch the kernel's statistics on",
            Some("sysctl -w kernel.bpf_stats_enabled=1"),
        )
    };
    let memlock = match privilege.memlock_limit_bytes {
        u64::MAX => "no limit".to_owned(),
        bytes => format!(
            "{bytes} bytes; counts against BPF maps only where the kernel has no memory cgroup accounting of them"
        ),
    };
    vec![
        kptr,
        number("perf_event_paranoid", &privilege.perf_event_paranoid),
        number(
            "unprivileged_bpf_disabled",
            &privilege.unprivileged_bpf_disabled,
        ),
        stats,
        line("memlock", &Fact::Yes(memlock), Clone::clone, None),
    ]
}

fn kallsyms(host: &HostFacts) -> FactLine {
    let privilege = &host.privilege;
    let fix = match privilege.kptr_restrict.value() {
        Some(level) if *level >= 2 => "sysctl -w kernel.kptr_restrict=1",
        _ if !privilege.cap_syslog.is_yes() => {
            "add CAP_SYSLOG: \"setcap cap_bpf,cap_perfmon,cap_syslog=ep $(command -v faultscope)\", \
             \"AmbientCapabilities=CAP_BPF CAP_PERFMON CAP_SYSLOG\" or \"--cap-add SYSLOG\""
        }
        _ => "let the container see the file, e.g. \"--security-opt systempaths=unconfined\"",
    };
    line(
        "kallsyms",
        &host.kernel.kallsyms,
        |()| String::new(),
        Some((NO_NAMES, Some(fix))),
    )
}

fn preemption(model: Preemption) -> &'static str {
    match model {
        Preemption::Realtime => {
            "PREEMPT_RT: a contended spinlock sleeps, its waits are counted, and split page-table locks are not told apart"
        }
        Preemption::Dynamic => "dynamic",
        Preemption::Full => "full",
        Preemption::NoneOrVoluntary => "none or voluntary",
    }
}

fn spinlock(fact: &Fact<SpinlockMode>) -> FactLine {
    let base = line(
        "spinlock_mode",
        fact,
        |mode| {
            match mode {
                SpinlockMode::Pv => "paravirtual queued locks: every contended wait is traced",
                SpinlockMode::Native => "native queued locks",
                SpinlockMode::TestAndSet => {
                    "test-and-set locks of a guest without paravirtual ones"
                }
            }
            .to_owned()
        },
        None,
    );
    match plan::spinlock(fact) {
        Some(lost) => base.losing(
            Level::Warn,
            lost,
            Some(
                "to measure every wait, where programs on kernel functions are allowed: --probe \
                 spin_slowpath_native_begin",
            ),
        ),
        None => base,
    }
}

fn mglru(fact: &Fact<u32>) -> FactLine {
    let base = line("mglru", fact, |bits| format!("on (0x{bits:04x})"), None);
    if fact.is_yes() {
        base.losing(
            Level::Warn,
            "activations: the multi-generational LRU does not activate folios, so lru_activations stays 0",
            Some("to compare with the two-list LRU: echo 0 > /sys/kernel/mm/lru_gen/enabled"),
        )
    } else {
        base
    }
}

fn thp(mode: &str, host: &HostFacts) -> String {
    let sizes: Vec<_> = host
        .kernel
        .thp_sizes
        .iter()
        .map(|size| format!("{} KiB {}", size.size_kib, size.mode))
        .collect();
    if sizes.is_empty() {
        mode.to_owned()
    } else {
        format!("{mode}; {}", sizes.join(", "))
    }
}

fn memory_cgroups(host: &HostFacts) -> FactLine {
    let base = line(
        "memory_cgroups",
        &host.memory_hierarchy,
        |hierarchy| {
            let version = match hierarchy.version {
                CgroupVersion::V1 => "v1",
                CgroupVersion::V2 => "v2",
            };
            format!(
                "{version} at \"{}\"",
                crate::name::scrub(hierarchy.mount.as_os_str().as_encoded_bytes())
            )
        },
        Some((
            "paths of cgroups: rows show ids only, and --cgroup cannot be used",
            None,
        )),
    );
    match host.memory_hierarchy.value() {
        Some(hierarchy) if !hierarchy.is_whole => base.losing(
            Level::Warn,
            "paths of cgroups outside the part of the hierarchy that is mounted here",
            Some("run in the host's cgroup namespace, for a container with \"--cgroupns=host\""),
        ),
        _ => base,
    }
}

fn topology(host: &HostFacts) -> FactLine {
    let topology = &host.topology;
    let distinct = |place: fn(&crate::host::topology::CpuPlace) -> u32| {
        let mut ids: Vec<_> = topology
            .cpus
            .iter()
            .filter(|cpu| cpu.is_online)
            .map(place)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids.len()
    };
    let text = format!(
        "CPUs {}, cores {}, last-level caches {}, NUMA nodes {}",
        distinct(|cpu| cpu.cpu),
        distinct(|cpu| cpu.core),
        distinct(|cpu| cpu.llc),
        distinct(|cpu| cpu.node)
    );
    let gaps: Vec<_> = [&topology.cores, &topology.caches, &topology.nodes]
        .iter()
        .filter_map(|fact| fact.reason())
        .collect();
    let fact = if gaps.is_empty() {
        Fact::Yes(text)
    } else {
        Fact::unknown(format!("{text}; {}", gaps.join("; ")))
    };
    line(
        "topology",
        &fact,
        Clone::clone,
        Some(("exact handoff distances", None)),
    )
}

/// The time-stamp counter is read in some ten cycles; the others are device reads of microseconds.
fn clock(fact: &Fact<String>) -> FactLine {
    let base = line(
        "clock",
        fact,
        |source| format!("monotonic, from \"{source}\""),
        None,
    );
    match fact.value().map(String::as_str) {
        Some("hpet" | "acpi_pm" | "jiffies") => base.losing(
            Level::Warn,
            "cheap time stamps: lock programs read a slow clock twice per acquisition",
            Some("boot with \"tsc=reliable\" if the machine's time-stamp counter is sound"),
        ),
        _ => base,
    }
}

/// The command that a reason of the host layer quotes, so that a fix is written down once.
fn quoted_command(reason: &str) -> Option<&str> {
    reason
        .split('"')
        .skip(1)
        .step_by(2)
        .find(|quoted| quoted.starts_with("mount "))
}
