//! The conditions of a run: what two recordings must have in common before their numbers may be compared.
//!
//! Read once, at the start. Every condition is a value in words, or the reason why it is not known; nothing here
//! judges. What changes while a run goes on (huge pages in use, reclaim, steal) is in the increments.

mod config;
mod limits;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::file::{read_text, under};
use super::kernel::{Preemption, bracketed};
use super::{Fact, HostFacts};
use crate::name::scrub;

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Id; a sysctl's has its own name after `sysctl.`.
    pub id: String,
    /// Value in words.
    pub value: Fact<String>,
}

/// All conditions of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    /// In the order of the catalogue.
    pub all: Vec<Condition>,
    /// The kernel's build options, sorted by name; empty if the kernel does not tell.
    pub kernel_config: Vec<(String, String)>,
}

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

impl Conditions {
    /// Reads the conditions below `root`; `host` was read there just before.
    #[must_use]
    pub fn read(root: &Path, host: &HostFacts) -> Self {
        let config = config::read(root, &host.kernel.release);
        let mut all = Vec::new();
        let mut add = |id: &str, value: Fact<String>| {
            all.push(Condition {
                id: id.to_owned(),
                value,
            });
        };
        let cpuinfo = read_text(root, "/proc/cpuinfo").unwrap_or_default();
        add("host_id", host_id(read_text(root, "/etc/machine-id")));
        add("cpu_model", cpu_model(&cpuinfo));
        let online = host.topology.cpus.iter().filter(|c| c.is_online).count();
        add("cpus_online", Fact::Yes(online.to_string()));
        add("topology", Fact::Yes(topology(host)));
        add("memory_bytes", memory(root));
        add(
            "page_bytes",
            Fact::Yes(rustix::param::page_size().to_string()),
        );
        add("virtualisation", virtualisation(root, &cpuinfo));
        add("kernel_release", host.kernel.release.clone());
        add("kernel_version", host.kernel.version.clone());
        add("boot_arguments", host.kernel.cmdline.clone());
        add(
            "kernel_config",
            config
                .as_ref()
                .map_or_else(Fact::unknown, |c| Fact::Yes(digest(c))),
        );
        add(
            "preempt",
            preempt(root, host, config.as_deref().unwrap_or_default()),
        );
        let spinlock = host.spinlock.clone();
        add("spinlock", spinlock.map(|mode| mode.name().to_owned()));
        add("thp", host.kernel.thp.clone());
        for file in ["defrag", "shmem_enabled"] {
            add(
                &format!("thp_{file}"),
                choice(root, &format!("{THP}/{file}")),
            );
        }
        add(
            "thp_khugepaged_defrag",
            plain(root, &format!("{THP}/khugepaged/defrag")),
        );
        for size in &host.kernel.thp_sizes {
            add(
                &format!("thp_{}kB", size.size_kib),
                Fact::Yes(size.mode.clone()),
            );
        }
        add(
            "mglru",
            host.kernel.mglru.clone().map(|bits| format!("{bits:#06x}")),
        );
        add(
            "swap",
            read_text(root, "/proc/swaps")
                .map_or_else(unreadable("/proc/swaps"), |t| Fact::Yes(swap(&t))),
        );
        add("zswap", plain(root, "/sys/module/zswap/parameters/enabled"));
        add("ksm", plain(root, "/sys/kernel/mm/ksm/run"));
        add("smt", plain(root, "/sys/devices/system/cpu/smt/control"));
        add("governor", governor(root));
        add(
            "clocksource",
            plain(
                root,
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
        );
        for (id, value) in limits::read(root) {
            add(id, value);
        }
        for (name, value) in sysctls(root) {
            add(&format!("sysctl.{name}"), Fact::Yes(value));
        }
        Self {
            all,
            kernel_config: config.unwrap_or_default(),
        }
    }
}

/// A failed read as an unknown fact.
fn unreadable(file: &str) -> impl Fn(std::io::Error) -> Fact<String> {
    move |error| match error.kind() {
        std::io::ErrorKind::NotFound => Fact::no(format!("there is no \"{file}\"")),
        _ => Fact::unknown(format!("\"{file}\" cannot be read: {error}")),
    }
}

/// A file of one word.
fn plain(root: &Path, file: &str) -> Fact<String> {
    read_text(root, file).map_or_else(unreadable(file), |text| Fact::Yes(scrub(text.as_bytes())))
}

/// A file that marks one of several words.
fn choice(root: &Path, file: &str) -> Fact<String> {
    read_text(root, file).map_or_else(unreadable(file), |text| {
        Fact::Yes(scrub(bracketed(&text).unwrap_or(&text).as_bytes()))
    })
}

/// Names the machine without telling its id, which machine-id(5) asks not to be exposed.
fn host_id(machine_id: std::io::Result<String>) -> Fact<String> {
    match machine_id {
        Ok(id) if id.len() >= 32 => {
            Fact::Yes(hex(&Sha256::digest(format!("faultscope host {id}"))))
        }
        Ok(_) => Fact::unknown("\"/etc/machine-id\" is empty"),
        Err(error) => unreadable("/etc/machine-id")(error),
    }
}

/// The first sixteen digits: enough to tell machines and build options apart.
fn hex(digest: &[u8]) -> String {
    digest.iter().take(8).map(|b| format!("{b:02x}")).collect()
}

fn digest(config: &[(String, String)]) -> String {
    let mut hash = Sha256::new();
    for (name, value) in config {
        hash.update(format!("{name}={value}\n"));
    }
    hex(&hash.finalize())
}

fn cpu_model(cpuinfo: &str) -> Fact<String> {
    let field = |name: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim())
        })
    };
    let Some(model) = field("model name") else {
        return Fact::unknown("\"/proc/cpuinfo\" names no model");
    };
    let number = |name| field(name).unwrap_or("?");
    let text = format!(
        "{model} (family {}, model {}, stepping {})",
        number("cpu family"),
        number("model"),
        number("stepping")
    );
    Fact::Yes(scrub(text.as_bytes()))
}

/// CPUs of each last-level cache on each node, and how many cores they are.
fn topology(host: &HostFacts) -> String {
    let mut caches: BTreeMap<(u32, u32), (usize, Vec<u32>)> = BTreeMap::new();
    for place in host.topology.cpus.iter().filter(|c| c.is_online) {
        let (cpus, cores) = caches.entry((place.node, place.llc)).or_default();
        *cpus += 1;
        if !cores.contains(&place.core) {
            cores.push(place.core);
        }
    }
    let all = caches.iter().map(|((node, llc), (cpus, cores))| {
        format!("node {node} LLC {llc}: {cpus} CPUs, {} cores", cores.len())
    });
    all.collect::<Vec<_>>().join("; ")
}

fn memory(root: &Path) -> Fact<String> {
    let file = "/proc/meminfo";
    let total = |text: String| {
        let levels = super::system::parse_meminfo(&text);
        let total = levels.iter().find(|(key, _)| *key == "MemTotal");
        total.map_or_else(
            || Fact::unknown("\"/proc/meminfo\" has no MemTotal"),
            |(_, bytes)| Fact::Yes(bytes.to_string()),
        )
    };
    read_text(root, file).map_or_else(unreadable(file), total)
}

fn virtualisation(root: &Path, cpuinfo: &str) -> Fact<String> {
    match super::spinlock::parse_hypervisor_flag(cpuinfo) {
        None => Fact::unknown("\"/proc/cpuinfo\" shows no flags"),
        Some(false) => Fact::no("the CPU says it runs under no hypervisor"),
        Some(true) => {
            let dmi =
                |file| read_text(root, &format!("/sys/class/dmi/id/{file}")).unwrap_or_default();
            let words = [
                "a hypervisor".to_owned(),
                dmi("sys_vendor"),
                dmi("product_name"),
            ];
            let words: Vec<_> = words.into_iter().filter(|w| !w.is_empty()).collect();
            Fact::Yes(scrub(words.join(", ").as_bytes()))
        }
    }
}

/// What a kernel with PREEMPT_DYNAMIC does was chosen at boot or later; debugfs tells, else the boot arguments, else
/// the build options.
fn preempt(root: &Path, host: &HostFacts, config: &[(String, String)]) -> Fact<String> {
    let built = match &host.kernel.preemption {
        Fact::Yes(Preemption::Realtime) => return Fact::Yes("realtime".into()),
        Fact::Yes(Preemption::Full) => return Fact::Yes("full".into()),
        Fact::Yes(built) => *built,
        Fact::No(reason) => return Fact::No(reason.clone()),
        Fact::Unknown(reason) => return Fact::Unknown(reason.clone()),
    };
    if let Ok(text) = read_text(root, "/sys/kernel/debug/sched/preempt")
        && let Some((_, tail)) = text.split_once('(')
        && let Some((mode, _)) = tail.split_once(')')
    {
        return Fact::Yes(scrub(mode.as_bytes()));
    }
    let boot = host.kernel.cmdline.value().and_then(|line| {
        line.split_ascii_whitespace()
            .filter_map(|word| word.strip_prefix("preempt="))
            .next_back()
    });
    if let (Preemption::Dynamic, Some(mode)) = (built, boot) {
        return Fact::Yes(format!("{mode} (boot arguments)"));
    }
    let is_set = |name: &str| config.iter().any(|(n, v)| n == name && v == "y");
    let modes = [
        ("CONFIG_PREEMPT_LAZY", "lazy"),
        ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ("CONFIG_PREEMPT_NONE", "none"),
        ("CONFIG_PREEMPT", "full"),
    ];
    modes.iter().find(|(name, _)| is_set(name)).map_or_else(
        || Fact::unknown("neither debugfs nor the kernel's build options tell the mode"),
        |(_, mode)| Fact::Yes(format!("{mode} (as built)")),
    )
}

/// Kind, size and priority of each swap area; its path says nothing about speed, and use changes.
fn swap(swaps: &str) -> String {
    let areas: Vec<String> = swaps
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut fields = line.split_ascii_whitespace().rev();
            let priority = fields.next()?;
            let size = fields.nth(1)?;
            let kind = fields.next()?;
            Some(format!("{kind} {size} kB priority {priority}"))
        })
        .collect();
    if areas.is_empty() {
        "none".into()
    } else {
        scrub(areas.join(", ").as_bytes())
    }
}

/// The governors of all CPUs, each once.
fn governor(root: &Path) -> Fact<String> {
    let base = "/sys/devices/system/cpu/cpufreq";
    let mut all: Vec<String> = std::fs::read_dir(under(root, base))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            read_text(root, &format!("{base}/{name}/scaling_governor")).ok()
        })
        .map(|text| scrub(text.as_bytes()))
        .collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() {
        return Fact::no("this machine shows no frequency scaling");
    }
    Fact::Yes(all.join(", "))
}

/// Settings of memory management and of the scheduler, sorted; those that act when written are left out.
fn sysctls(root: &Path) -> Vec<(String, String)> {
    const ACTIONS: [&str; 3] = ["compact_memory", "drop_caches", "stat_refresh"];
    let mut all = Vec::new();
    for (directory, is_kept) in [
        ("vm", (|name| !ACTIONS.contains(&name)) as fn(&str) -> bool),
        ("kernel", |name| {
            name.starts_with("sched") || name.starts_with("numa_balancing")
        }),
    ] {
        let path = format!("/proc/sys/{directory}");
        for entry in std::fs::read_dir(under(root, &path))
            .into_iter()
            .flatten()
            .flatten()
        {
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if !is_kept(&name) {
                continue;
            }
            // Some can only be written.
            if let Ok(text) = read_text(root, &format!("{path}/{name}")) {
                // Some are lists, with tabs between.
                let words: Vec<&str> = text.split_whitespace().collect();
                let value = scrub(words.join(" ").as_bytes());
                all.push((format!("{directory}.{name}"), value));
            }
        }
    }
    all.sort_unstable();
    all
}
