//! Which slow path a contended kernel spinlock takes, and so what the contention tracepoint can see.
//!
//! On x86 three exist. `native` queued locks do not trace the first waiter (about 60 % of the waits are
//! seen); `pv` queued locks trace every waiter; a `test-and-set` guest returns before the tracepoint, so
//! spinlock waits are silent (counted on 6.12 and 6.18). User space cannot read the choice itself. It can
//! repeat the kernel's decision, `kvm_spinlock_init()` in `arch/x86/kernel/kvm.c` (Linux 6.18), from the same
//! inputs; where one is missing the answer is unknown and a sampled contention stack has to tell. On
//! PREEMPT_RT all this concerns raw spinlocks only; a contended `spinlock_t` sleeps there.

use std::path::Path;

use serde::Serialize;

use super::Fact;
use super::file::read_text;

/// The slow path of contended spinlocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpinlockMode {
    /// Paravirtualised queued locks: every contended wait is traced.
    Pv,
    /// Plain queued locks: the first waiter of a lock is not traced.
    Native,
    /// A hypervisor guest without PV locks: spinlock waits are not traced at all.
    TestAndSet,
}

/// Waits after which a tracepoint that saw none of them is taken for silent: of native locks it sees more than
/// every fourth.
const SILENT_WAITS: u64 = 100;

/// What contended waits showed of the slow path since start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpinlockSeen {
    /// The innermost lock frame of a wait was the paravirtual slow path's, or the native one's.
    pub is_paravirtual: Option<bool>,
    /// Waits measured in the slow path; 0 while it is not probed.
    pub waits: u64,
    /// Of those, the ones the contention tracepoint saw as well.
    pub traced: u64,
}

impl SpinlockMode {
    /// The mode's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pv => "pv",
            Self::Native => "native",
            Self::TestAndSet => "test-and-set",
        }
    }
}

impl SpinlockSeen {
    /// The mode that the waits show, or else the one decided from what the CPU says.
    ///
    /// Test-and-set locks are taken in the native slow path, before its tracepoint: a traced wait there is one for
    /// a queued lock.
    #[must_use]
    pub fn mode(&self, decided: &Fact<SpinlockMode>) -> Fact<SpinlockMode> {
        match self.is_paravirtual {
            Some(true) => Fact::Yes(SpinlockMode::Pv),
            Some(false) if self.waits == 0 || self.traced > 0 => Fact::Yes(SpinlockMode::Native),
            Some(false) if self.waits >= SILENT_WAITS => Fact::Yes(SpinlockMode::TestAndSet),
            _ => decided.clone(),
        }
    }
}

/// Feature words of CPUID leaf 0x40000001 of a KVM host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KvmFeatures {
    /// EAX: KVM_FEATURE_PV_UNHALT is bit 7.
    pub features: u32,
    /// EDX: KVM_HINTS_REALTIME is bit 0.
    pub hints: u32,
}

/// What the decision is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SpinlockEvidence {
    /// The CPU says it runs under a hypervisor; `None` if it could not be read.
    pub is_guest: Option<bool>,
    /// The KVM features, if the hypervisor calls itself KVM.
    pub kvm: Option<KvmFeatures>,
    /// `nopvspin` is on the boot command line.
    pub has_nopvspin: bool,
    /// Possible CPUs; 0 if unknown.
    pub possible_cpus: usize,
    /// The kernel has `__pv_queued_spin_lock_slowpath`; `None` until its BTF was asked.
    pub pv_built: Option<bool>,
}

const PV_UNHALT: u32 = 1 << 7;
const HINTS_REALTIME: u32 = 1;

impl SpinlockEvidence {
    /// Reads what files and the CPUID instruction say; `pv_built` stays open.
    #[must_use]
    pub fn read(root: &Path, cmdline: Option<&str>, possible_cpus: usize) -> Self {
        let cpuinfo = read_text(root, "/proc/cpuinfo").ok();
        Self {
            is_guest: cpuinfo.as_deref().and_then(parse_hypervisor_flag),
            kvm: read_kvm_features(),
            has_nopvspin: cmdline
                .is_some_and(|line| line.split_ascii_whitespace().any(|word| word == "nopvspin")),
            possible_cpus,
            pv_built: None,
        }
    }

    /// Repeats the kernel's decision.
    #[must_use]
    pub fn decide(&self) -> Fact<SpinlockMode> {
        if !cfg!(target_arch = "x86_64") {
            return Fact::unknown(
                "the decision is only known for x86; elsewhere queued locks leave the first waiter untraced",
            );
        }
        match self.is_guest {
            None => {
                return Fact::unknown(
                    "\"/proc/cpuinfo\" shows no flags, so a hypervisor cannot be excluded",
                );
            }
            Some(false) => return Fact::Yes(SpinlockMode::Native),
            Some(true) => {}
        }
        let Some(kvm) = self.kvm else {
            return Fact::unknown(
                "this is a guest of a hypervisor other than KVM; without PV locks spinlock waits are not traced",
            );
        };
        if kvm.features & PV_UNHALT == 0 {
            return Fact::Yes(SpinlockMode::TestAndSet);
        }
        match self.pv_built {
            None => {
                return Fact::unknown(
                    "the KVM host offers PV locks; whether this kernel has them was not looked up",
                );
            }
            Some(false) => {
                return Fact::unknown(
                    "this kernel has no PV locks: test-and-set if built with CONFIG_PARAVIRT, and spinlock waits are \
                     then not traced, else native",
                );
            }
            Some(true) => {}
        }
        if kvm.hints & HINTS_REALTIME != 0 || self.has_nopvspin || self.possible_cpus == 1 {
            return Fact::Yes(SpinlockMode::Native);
        }
        Fact::Yes(SpinlockMode::Pv)
    }
}

/// Looks for `hypervisor` among the flags of `/proc/cpuinfo`; `None` if there is no flags line.
#[must_use]
pub fn parse_hypervisor_flag(cpuinfo: &str) -> Option<bool> {
    let (_, flags) = cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == "flags")?;
    Some(
        flags
            .split_ascii_whitespace()
            .any(|flag| flag == "hypervisor"),
    )
}

/// Asks the CPU for KVM's leaves (Documentation/virt/kvm/x86/cpuid.rst).
#[cfg(target_arch = "x86_64")]
fn read_kvm_features() -> Option<KvmFeatures> {
    use std::arch::x86_64::__cpuid;

    // Bit 31 of ECX of leaf 1 is the hypervisor bit; without it the 0x4000_0000 leaves mean nothing.
    if __cpuid(1).ecx >> 31 == 0 {
        return None;
    }
    let signature = __cpuid(0x4000_0000);
    let is_kvm = [signature.ebx, signature.ecx, signature.edx]
        .map(u32::to_le_bytes)
        .concat()
        == b"KVMKVMKVM\0\0\0";
    if !is_kvm {
        return None;
    }
    let leaf = __cpuid(0x4000_0001);
    Some(KvmFeatures {
        features: leaf.eax,
        hints: leaf.edx,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn read_kvm_features() -> Option<KvmFeatures> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_show_goes_before_what_the_cpu_says() {
        let seen = |is_paravirtual, waits, traced| SpinlockSeen {
            is_paravirtual,
            waits,
            traced,
        };
        let unknown = Fact::unknown("no idea");
        for (seen, mode) in [
            (seen(Some(true), 0, 0), Some(SpinlockMode::Pv)),
            (seen(Some(false), 0, 0), Some(SpinlockMode::Native)),
            (seen(Some(false), 900, 500), Some(SpinlockMode::Native)),
            (seen(Some(false), 900, 0), Some(SpinlockMode::TestAndSet)),
            (seen(Some(false), 9, 0), None),
            (seen(None, 900, 0), None),
        ] {
            assert_eq!(seen.mode(&unknown).value(), mode.as_ref(), "{seen:?}");
        }
        let decided = Fact::Yes(SpinlockMode::TestAndSet);
        assert_eq!(SpinlockSeen::default().mode(&decided), decided);
    }

    #[test]
    fn hypervisor_flag_is_a_whole_word() {
        assert_eq!(
            parse_hypervisor_flag("model name : x\nflags\t\t: fpu hypervisor lahf_lm\n"),
            Some(true)
        );
        assert_eq!(
            parse_hypervisor_flag("flags : fpu nohypervisor\n"),
            Some(false)
        );
        assert_eq!(parse_hypervisor_flag("Features : fp asimd\n"), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn decision_repeats_the_kernels_order() {
        let pv = SpinlockEvidence {
            is_guest: Some(true),
            kvm: Some(KvmFeatures {
                features: PV_UNHALT,
                hints: 0,
            }),
            has_nopvspin: false,
            possible_cpus: 4,
            pv_built: Some(true),
        };
        assert_eq!(pv.decide(), Fact::Yes(SpinlockMode::Pv));
        let bare = SpinlockEvidence {
            is_guest: Some(false),
            ..pv
        };
        assert_eq!(bare.decide(), Fact::Yes(SpinlockMode::Native));
        let forced = SpinlockEvidence {
            has_nopvspin: true,
            ..pv
        };
        assert_eq!(forced.decide(), Fact::Yes(SpinlockMode::Native));
        let single = SpinlockEvidence {
            possible_cpus: 1,
            ..pv
        };
        assert_eq!(single.decide(), Fact::Yes(SpinlockMode::Native));
        let dedicated = SpinlockEvidence {
            kvm: Some(KvmFeatures {
                features: PV_UNHALT,
                hints: 1,
            }),
            ..pv
        };
        assert_eq!(dedicated.decide(), Fact::Yes(SpinlockMode::Native));
        // Without host support the kernel leaves early, before it looks at "nopvspin".
        let plain = SpinlockEvidence {
            kvm: Some(KvmFeatures {
                features: 0,
                hints: 0,
            }),
            has_nopvspin: true,
            ..pv
        };
        assert_eq!(plain.decide(), Fact::Yes(SpinlockMode::TestAndSet));
        for open in [
            SpinlockEvidence {
                is_guest: None,
                ..pv
            },
            SpinlockEvidence { kvm: None, ..pv },
            SpinlockEvidence {
                pv_built: None,
                ..pv
            },
            SpinlockEvidence {
                pv_built: Some(false),
                ..pv
            },
        ] {
            assert_eq!(open.decide().state(), "unknown", "{open:?}");
        }
    }
}
