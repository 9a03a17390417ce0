//! Folios that a case is about, and whether the machine's settings give them.

use crate::host::kernel::KernelFacts;

/// Where the settings are.
const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";
/// Size of a huge page, KiB.
const HUGE_KIB: u64 = 2048;

/// Folios that a case is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Base pages.
    Base,
    /// Huge pages.
    Huge,
    /// Folios of a size between, KiB.
    Size(u64),
}

impl Wanted {
    /// What the memory of the case may be given, in the kernel's words: a clause.
    pub(super) fn stated(self, kernel: &KernelFacts) -> String {
        if self == Self::Base {
            return "huge pages are off for the process".to_owned();
        }
        let global = kernel.thp.value().map_or("not known", String::as_str);
        let sizes: Vec<String> = kernel
            .thp_sizes
            .iter()
            .filter(|size| size.mode != "never")
            .map(|size| format!("{} KiB: {}", size.size_kib, size.mode))
            .collect();
        let by_size = if sizes.is_empty() {
            String::new()
        } else {
            format!(", by size {}", sizes.join(", "))
        };
        format!(
            "memory asks for huge pages (MADV_HUGEPAGE), and their setting is {global}{by_size}"
        )
    }

    /// Why this kernel, as it is set, gives no such folios to memory that asks for them.
    ///
    /// The kernel takes the largest size that is on and fits (`thp_vma_allowable_orders`, Linux 6.8), so larger ones must
    /// be off.
    pub(super) fn obstacle(self, kernel: &KernelFacts) -> Option<String> {
        let size_kib = match self {
            Self::Base => return None,
            Self::Huge => HUGE_KIB,
            Self::Size(kib) => kib,
        };
        let Some(global) = kernel.thp.value() else {
            let reason = kernel.thp.reason().unwrap_or_default();
            return Some(format!("no transparent huge pages: {reason}"));
        };
        let sizes = &kernel.thp_sizes;
        if sizes.is_empty() && size_kib == HUGE_KIB {
            // Before Linux 6.8 the one setting stands for huge pages.
            return (global == "never").then(|| off(HUGE_KIB, &format!("{DIRECTORY}/enabled")));
        }
        let Some(size) = sizes.iter().find(|size| size.size_kib == size_kib) else {
            return Some(format!(
                "this kernel has no folios of {size_kib} KiB: there is no {DIRECTORY}/hugepages-{size_kib}kB"
            ));
        };
        let file = |kib: u64| format!("{DIRECTORY}/hugepages-{kib}kB/enabled");
        let is_on = |mode: &str| mode != "never" && (mode != "inherit" || global != "never");
        if !is_on(&size.mode) {
            return Some(if size.mode == "inherit" {
                off(size_kib, &format!("{DIRECTORY}/enabled"))
            } else {
                off(size_kib, &file(size_kib))
            });
        }
        let larger: Vec<String> = sizes
            .iter()
            .filter(|other| other.size_kib > size_kib && is_on(&other.mode))
            .map(|other| file(other.size_kib))
            .collect();
        (!larger.is_empty()).then(|| {
            format!(
                "larger folios than {size_kib} KiB are on too, and the kernel takes the largest that fits; bench changes \
                 no setting: write \"never\" into {} meanwhile",
                larger.join(" and ")
            )
        })
    }
}

fn off(kib: u64, file: &str) -> String {
    format!(
        "folios of {kib} KiB are switched off, and bench changes no setting: write \"madvise\" into {file} to have them"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Fact;
    use crate::host::kernel::HugePageSize;

    fn kernel(thp: Fact<String>, sizes: &[(u64, &str)]) -> KernelFacts {
        let unknown = || Fact::unknown("not read");
        KernelFacts {
            release: unknown(),
            version: unknown(),
            cmdline: unknown(),
            btf_bytes: Fact::unknown("not read"),
            kallsyms: Fact::unknown("not read"),
            tracefs: unknown(),
            psi: Fact::unknown("not read"),
            thp,
            thp_sizes: sizes
                .iter()
                .map(|(size_kib, mode)| HugePageSize {
                    size_kib: *size_kib,
                    mode: (*mode).to_owned(),
                })
                .collect(),
            mglru: Fact::unknown("not read"),
            preemption: Fact::unknown("not read"),
        }
    }

    fn why(wanted: Wanted, thp: &str, sizes: &[(u64, &str)]) -> Option<String> {
        wanted.obstacle(&kernel(Fact::Yes(thp.to_owned()), sizes))
    }

    #[test]
    fn huge_pages_need_a_setting_that_lets_them() {
        let old: &[(u64, &str)] = &[];
        let new: &[(u64, &str)] = &[(64, "never"), (2048, "inherit")];
        for sizes in [old, new] {
            assert_eq!(why(Wanted::Huge, "madvise", sizes), None);
            assert_eq!(why(Wanted::Huge, "always", sizes), None);
            let off = why(Wanted::Huge, "never", sizes).expect("off");
            assert!(
                off.contains("\"madvise\" into /sys/kernel/mm/transparent_hugepage/enabled"),
                "{off}"
            );
        }
        let own = why(Wanted::Huge, "always", &[(2048, "never")]).expect("off");
        assert!(own.contains("hugepages-2048kB/enabled"), "{own}");
        let none = Wanted::Huge.obstacle(&kernel(Fact::no("not built"), &[]));
        assert_eq!(
            none.as_deref(),
            Some("no transparent huge pages: not built")
        );
        assert_eq!(why(Wanted::Base, "never", old), None);
    }

    #[test]
    fn settings_are_stated_in_the_kernels_words() {
        let set = kernel(
            Fact::Yes("madvise".to_owned()),
            &[(64, "never"), (2048, "inherit")],
        );
        assert_eq!(
            Wanted::Huge.stated(&set),
            "memory asks for huge pages (MADV_HUGEPAGE), and their setting is madvise, by size 2048 KiB: inherit"
        );
        assert!(Wanted::Base.stated(&set).contains("off for the process"));
    }

    #[test]
    fn smaller_folios_need_theirs_on_and_larger_ones_off() {
        let missing = why(Wanted::Size(64), "always", &[]).expect("none");
        assert!(missing.contains("no folios of 64 KiB"), "{missing}");
        let off = why(
            Wanted::Size(64),
            "always",
            &[(64, "never"), (2048, "never")],
        );
        let off = off.expect("off");
        assert!(off.contains("hugepages-64kB/enabled to have them"), "{off}");
        let both = [(64, "madvise"), (128, "never"), (2048, "inherit")];
        let larger = why(Wanted::Size(64), "madvise", &both).expect("huge pages come first");
        assert!(
            larger.contains(
                "\"never\" into /sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled"
            ),
            "{larger}"
        );
        assert_eq!(why(Wanted::Size(64), "never", &both), None);
        let smaller = [(16, "always"), (64, "madvise"), (2048, "never")];
        assert_eq!(why(Wanted::Size(64), "madvise", &smaller), None);
    }
}
