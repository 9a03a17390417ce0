//! What this process may do: capabilities, sysctls, lockdown, locked memory.
//!
//! Never "is it root": each capability is a fact of its own, so that a message can name the missing one.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use caps::{CapSet, Capability};
use rustix::process::{Resource, getrlimit};
use serde::Serialize;

use super::Fact;
use super::file::{read_number, read_text};

/// State of the lockdown security module, `/sys/kernel/security/lockdown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Lockdown {
    /// Nothing is locked down.
    None,
    /// The kernel image may not be changed; BPF reads of kernel memory still work.
    Integrity,
    /// Kernel memory may not be read either: kprobes and `bpf_probe_read_kernel` are refused.
    Confidentiality,
}

/// Rights and limits of this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PrivilegeFacts {
    /// CAP_BPF in the effective set (Linux 5.8).
    pub cap_bpf: Fact<()>,
    /// CAP_PERFMON in the effective set (Linux 5.8).
    pub cap_perfmon: Fact<()>,
    /// CAP_SYSLOG in the effective set: kernel addresses in kallsyms.
    pub cap_syslog: Fact<()>,
    /// CAP_DAC_READ_SEARCH in the effective set: files of others, tracefs.
    pub cap_dac_read_search: Fact<()>,
    /// CAP_SYS_PTRACE in the effective set: `/proc/PID` of other users, for user symbols.
    pub cap_sys_ptrace: Fact<()>,
    /// CAP_SYS_ADMIN in the effective set; the kernel lets it stand in for CAP_BPF and CAP_PERFMON.
    pub cap_sys_admin: Fact<()>,
    /// `kernel.kptr_restrict`: 0 to 2.
    pub kptr_restrict: Fact<i64>,
    /// `kernel.perf_event_paranoid`: -1 to 2, some distributions up to 4.
    pub perf_event_paranoid: Fact<i64>,
    /// `kernel.unprivileged_bpf_disabled`: 0 to 2.
    pub unprivileged_bpf_disabled: Fact<i64>,
    /// `kernel.bpf_stats_enabled`: 1 while the kernel counts runs and time of every BPF program.
    pub bpf_stats_enabled: Fact<i64>,
    /// Lockdown state.
    pub lockdown: Fact<Lockdown>,
    /// Soft limit of locked memory in bytes, `u64::MAX` for none; it bounds BPF maps before Linux 5.11.
    pub memlock_limit_bytes: u64,
}

impl PrivilegeFacts {
    /// Reads the facts; capabilities and limits are always those of the calling thread.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        let effective = caps::read(None, CapSet::Effective).map_err(|error| error.to_string());
        let cap = |capability| cap_fact(&effective, capability);
        let sysctl =
            |name: &str| sysctl_fact(name, read_number(root, &format!("/proc/sys/kernel/{name}")));
        Self {
            cap_bpf: cap(Capability::CAP_BPF),
            cap_perfmon: cap(Capability::CAP_PERFMON),
            cap_syslog: cap(Capability::CAP_SYSLOG),
            cap_dac_read_search: cap(Capability::CAP_DAC_READ_SEARCH),
            cap_sys_ptrace: cap(Capability::CAP_SYS_PTRACE),
            cap_sys_admin: cap(Capability::CAP_SYS_ADMIN),
            kptr_restrict: sysctl("kptr_restrict"),
            perf_event_paranoid: sysctl("perf_event_paranoid"),
            unprivileged_bpf_disabled: sysctl("unprivileged_bpf_disabled"),
            bpf_stats_enabled: sysctl("bpf_stats_enabled"),
            lockdown: lockdown_fact(root),
            memlock_limit_bytes: getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX),
        }
    }

    /// Returns true if the kernel's `bpf_capable()` holds: CAP_BPF, or CAP_SYS_ADMIN in its place.
    #[must_use]
    pub const fn may_load_bpf(&self) -> bool {
        self.cap_bpf.is_yes() || self.cap_sys_admin.is_yes()
    }

    /// Returns true if the kernel's `perfmon_capable()` holds: CAP_PERFMON, or CAP_SYS_ADMIN in its place.
    #[must_use]
    pub const fn may_trace(&self) -> bool {
        self.cap_perfmon.is_yes() || self.cap_sys_admin.is_yes()
    }
}

fn cap_fact(effective: &Result<HashSet<Capability>, String>, capability: Capability) -> Fact<()> {
    match effective {
        Ok(set) if set.contains(&capability) => Fact::Yes(()),
        Ok(_) => Fact::no(format!(
            "{capability} is not in the effective set of this process"
        )),
        Err(error) => Fact::unknown(format!(
            "the effective capabilities cannot be read: {error}"
        )),
    }
}

fn sysctl_fact(name: &str, value: io::Result<i64>) -> Fact<i64> {
    match value {
        Ok(value) => Fact::Yes(value),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Fact::no(format!("this kernel has no sysctl \"kernel.{name}\""))
        }
        Err(error) => Fact::unknown(format!("sysctl \"kernel.{name}\" cannot be read: {error}")),
    }
}

/// Parses `none [integrity] confidentiality`.
///
/// Returns `None` if no known word is in brackets.
#[must_use]
pub fn parse_lockdown(text: &str) -> Option<Lockdown> {
    match super::kernel::bracketed(text)? {
        "none" => Some(Lockdown::None),
        "integrity" => Some(Lockdown::Integrity),
        "confidentiality" => Some(Lockdown::Confidentiality),
        _ => None,
    }
}

fn lockdown_fact(root: &Path) -> Fact<Lockdown> {
    let file = "/sys/kernel/security/lockdown";
    match read_text(root, file) {
        Ok(text) => parse_lockdown(&text).map_or_else(
            || {
                Fact::unknown(format!(
                    "\"{file}\" holds \"{}\"",
                    crate::name::scrub(text.as_bytes())
                ))
            },
            Fact::Yes,
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mounts = super::mount::read_mounts(root).unwrap_or_default();
            if mounts.iter().any(|mount| mount.fs_type == "securityfs") {
                Fact::no("this kernel has no lockdown module")
            } else {
                // A kernel seen in practice was locked to integrity without this file being visible.
                Fact::unknown(
                    "securityfs is not mounted; \"mount -t securityfs securityfs /sys/kernel/security\" shows the state",
                )
            }
        }
        Err(error) => Fact::unknown(format!("\"{file}\" cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capability_facts_name_the_capability() {
        let set = Ok(HashSet::from([Capability::CAP_BPF]));
        assert_eq!(cap_fact(&set, Capability::CAP_BPF), Fact::Yes(()));
        let no = cap_fact(&set, Capability::CAP_PERFMON);
        assert!(no.reason().expect("no").contains("CAP_PERFMON"), "{no:?}");
        assert_eq!(
            cap_fact(&Err("x".into()), Capability::CAP_BPF).state(),
            "unknown"
        );
    }

    #[test]
    fn admin_stands_in_for_bpf_and_perfmon_and_unknown_never_does() {
        let mut facts = PrivilegeFacts::read(Path::new("/nonexistent"));
        facts.cap_bpf = Fact::no("x");
        facts.cap_perfmon = Fact::unknown("x");
        facts.cap_sys_admin = Fact::unknown("x");
        assert!(!facts.may_load_bpf() && !facts.may_trace());
        facts.cap_sys_admin = Fact::Yes(());
        assert!(facts.may_load_bpf() && facts.may_trace());
    }

    #[test]
    fn sysctls_absent_and_unreadable_are_told_apart() {
        let absent = sysctl_fact("x", Err(io::ErrorKind::NotFound.into()));
        assert_eq!(absent.state(), "no");
        assert_eq!(
            sysctl_fact("x", Err(io::ErrorKind::PermissionDenied.into())).state(),
            "unknown"
        );
        assert_eq!(sysctl_fact("x", Ok(-1)), Fact::Yes(-1));
    }

    #[test]
    fn lockdown_states() {
        assert_eq!(
            parse_lockdown("none [integrity] confidentiality"),
            Some(Lockdown::Integrity)
        );
        assert_eq!(
            parse_lockdown("[none] integrity confidentiality"),
            Some(Lockdown::None)
        );
        assert_eq!(
            parse_lockdown("none integrity [confidentiality]"),
            Some(Lockdown::Confidentiality)
        );
        assert_eq!(parse_lockdown("none integrity"), None);
    }
}
