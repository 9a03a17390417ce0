//! What the running kernel is and which of its interfaces can be read.
//!
//! No version is ever compared: the release is carried for the report only. The spinlock mode has a file of
//! its own, `spinlock.rs`.

use std::io;
use std::path::Path;

use serde::Serialize;

use super::Fact;
use super::file::{read_head, read_text, under};
use super::mount::Mount;
use super::privilege::PrivilegeFacts;
use crate::name::scrub;

/// How the kernel preempts itself, as far as its version string says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Preemption {
    /// PREEMPT_RT: a contended `spinlock_t` sleeps, and its wait carries other contention flags.
    Realtime,
    /// PREEMPT_DYNAMIC: chosen at boot.
    Dynamic,
    /// Fully preemptible.
    Full,
    /// None or voluntary; the version string does not tell these two apart.
    NoneOrVoluntary,
}

/// One folio size of `/sys/kernel/mm/transparent_hugepage/hugepages-*kB`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HugePageSize {
    /// Size in KiB.
    pub size_kib: u64,
    /// Chosen mode: `always`, `inherit`, `madvise` or `never`.
    pub mode: String,
}

/// The kernel's identity and interfaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelFacts {
    /// `uname -r`, for reports only.
    pub release: Fact<String>,
    /// `uname -v`, the build string.
    pub version: Fact<String>,
    /// Boot command line.
    pub cmdline: Fact<String>,
    /// Size in bytes of the readable `/sys/kernel/btf/vmlinux`.
    pub btf_bytes: Fact<u64>,
    /// kallsyms shows real addresses to this process.
    pub kallsyms: Fact<()>,
    /// Where tracefs is mounted.
    pub tracefs: Fact<String>,
    /// Pressure stall information is on.
    pub psi: Fact<()>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub thp: Fact<String>,
    /// Multi-size THP, smallest first; empty before Linux 6.8.
    pub thp_sizes: Vec<HugePageSize>,
    /// Multi-generational LRU: the bits of `/sys/kernel/mm/lru_gen/enabled`, never 0.
    pub mglru: Fact<u32>,
    /// Preemption model.
    pub preemption: Fact<Preemption>,
}

impl KernelFacts {
    /// Reads the facts below `root`; `privilege` explains hidden addresses.
    #[must_use]
    pub fn read(root: &Path, privilege: &PrivilegeFacts, mounts: &[Mount]) -> Self {
        let version = text_fact(root, "/proc/sys/kernel/version");
        Self {
            preemption: version.clone().map(|text| parse_preemption(&text)),
            release: text_fact(root, "/proc/sys/kernel/osrelease"),
            version,
            cmdline: text_fact(root, "/proc/cmdline"),
            btf_bytes: btf_fact(root),
            kallsyms: kallsyms_fact(root, privilege),
            tracefs: tracefs_fact(root, mounts),
            psi: psi_fact(read_head(root, "/proc/pressure/memory", 512)),
            thp: thp_fact(root),
            thp_sizes: read_thp_sizes(root),
            mglru: mglru_fact(read_text(root, LRU_GEN_FILE)),
        }
    }
}

/// Returns the word in square brackets, the kernel's mark for the chosen one of several.
#[must_use]
pub fn bracketed(text: &str) -> Option<&str> {
    let (_, tail) = text.split_once('[')?;
    let (word, _) = tail.split_once(']')?;
    Some(word)
}

/// Reads the preemption model from the build string, e.g. `#1 SMP PREEMPT_DYNAMIC Debian ...`.
///
/// The words are those of `init/Makefile`'s UTS_VERSION.
#[must_use]
pub fn parse_preemption(version: &str) -> Preemption {
    let has = |word: &str| version.split_ascii_whitespace().any(|part| part == word);
    if has("PREEMPT_RT") {
        Preemption::Realtime
    } else if has("PREEMPT_DYNAMIC") {
        Preemption::Dynamic
    } else if has("PREEMPT") {
        Preemption::Full
    } else {
        Preemption::NoneOrVoluntary
    }
}

/// Returns true if any line of a kallsyms extract has an address other than 0.
///
/// Per-CPU symbols of x86 stand at 0 even for root, so one zero proves nothing.
#[must_use]
pub fn has_real_addresses(kallsyms: &[u8]) -> bool {
    kallsyms.split(|&byte| byte == b'\n').any(|line| {
        let address = line.split(|&byte| byte == b' ').next().unwrap_or_default();
        address.len() >= 8
            && address.iter().all(u8::is_ascii_hexdigit)
            && address.iter().any(|&byte| byte != b'0')
    })
}

fn text_fact(root: &Path, file: &str) -> Fact<String> {
    match read_text(root, file) {
        Ok(text) => Fact::Yes(scrub(text.as_bytes())),
        Err(error) => Fact::unknown(format!("\"{file}\" cannot be read: {error}")),
    }
}

fn btf_fact(root: &Path) -> Fact<u64> {
    let file = "/sys/kernel/btf/vmlinux";
    let opened = std::fs::File::open(under(root, file)).and_then(|file| file.metadata());
    match opened {
        Ok(data) if data.len() > 0 => Fact::Yes(data.len()),
        Ok(_) => Fact::no(format!("\"{file}\" is empty")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Fact::no(format!(
            "there is no \"{file}\": the kernel was built without CONFIG_DEBUG_INFO_BTF, or sysfs is not mounted"
        )),
        Err(error) => Fact::unknown(format!("\"{file}\" cannot be read: {error}")),
    }
}

/// The rule is `kallsyms_show_value()` in `kernel/ksyms_common.c`: at kptr_restrict 0 a
/// perf_event_paranoid of at most 1 suffices, at 0 and 1 CAP_SYSLOG does, at 2 nothing does.
fn kallsyms_fact(root: &Path, privilege: &PrivilegeFacts) -> Fact<()> {
    let head = match read_head(root, "/proc/kallsyms", 64 << 10) {
        Ok(head) => head,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Fact::no(
                "there is no \"/proc/kallsyms\": the kernel was built without CONFIG_KALLSYMS",
            );
        }
        Err(error) => return Fact::unknown(format!("\"/proc/kallsyms\" cannot be read: {error}")),
    };
    if has_real_addresses(&head) {
        return Fact::Yes(());
    }
    match privilege.kptr_restrict.value() {
        Some(level) if *level >= 2 => Fact::no(
            "sysctl \"kernel.kptr_restrict\" is 2, which hides addresses from everyone; set it to 1",
        ),
        _ if !privilege.cap_syslog.is_yes() => {
            Fact::no("addresses are hidden; CAP_SYSLOG would show them")
        }
        _ => Fact::no(
            "addresses are all zero although CAP_SYSLOG is held; a container runtime may mask the file",
        ),
    }
}

fn tracefs_fact(root: &Path, mounts: &[Mount]) -> Fact<String> {
    if let Some(mount) = mounts.iter().find(|mount| mount.fs_type == "tracefs") {
        return Fact::Yes(scrub(&mount.point));
    }
    match read_text(root, "/proc/filesystems") {
        Ok(text) if text.split_ascii_whitespace().any(|word| word == "tracefs") => Fact::no(
            "tracefs is not mounted; \"mount -t tracefs nodev /sys/kernel/tracing\" mounts it",
        ),
        Ok(_) => Fact::no("this kernel has no tracefs"),
        Err(error) => Fact::unknown(format!("\"/proc/filesystems\" cannot be read: {error}")),
    }
}

/// With `psi=0` the files are absent or reads fail with EOPNOTSUPP (`kernel/sched/psi.c`).
fn psi_fact(head: io::Result<Vec<u8>>) -> Fact<()> {
    match head {
        Ok(head) if head.starts_with(b"some ") => Fact::Yes(()),
        Ok(head) => Fact::unknown(format!(
            "\"/proc/pressure/memory\" holds \"{}\"",
            scrub(&head)
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Fact::no(
            "there is no \"/proc/pressure\": built without CONFIG_PSI, or off until booted with \"psi=1\"",
        ),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            Fact::no("pressure stall information is off; boot with \"psi=1\"")
        }
        Err(error) => Fact::unknown(format!("\"/proc/pressure/memory\" cannot be read: {error}")),
    }
}

fn thp_fact(root: &Path) -> Fact<String> {
    let file = "/sys/kernel/mm/transparent_hugepage/enabled";
    match read_text(root, file) {
        Ok(text) => bracketed(&text).map_or_else(
            || Fact::unknown(format!("\"{file}\" holds \"{}\"", scrub(text.as_bytes()))),
            |word| Fact::Yes(scrub(word.as_bytes())),
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Fact::no("this kernel has no transparent huge pages")
        }
        Err(error) => Fact::unknown(format!("\"{file}\" cannot be read: {error}")),
    }
}

/// Lists `hugepages-*kB` directories, smallest first, with their full names.
pub(super) fn list_thp_sizes(root: &Path) -> Vec<(u64, String)> {
    let base = "/sys/kernel/mm/transparent_hugepage";
    let entries = std::fs::read_dir(under(root, base))
        .into_iter()
        .flatten()
        .flatten();
    let mut sizes: Vec<(u64, String)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let size = name
                .strip_prefix("hugepages-")?
                .strip_suffix("kB")?
                .parse()
                .ok()?;
            Some((size, format!("{base}/{name}")))
        })
        .collect();
    sizes.sort_unstable();
    sizes
}

fn read_thp_sizes(root: &Path) -> Vec<HugePageSize> {
    list_thp_sizes(root)
        .into_iter()
        .filter_map(|(size_kib, path)| {
            let text = read_text(root, &format!("{path}/enabled")).ok()?;
            Some(HugePageSize {
                size_kib,
                mode: scrub(bracketed(&text)?.as_bytes()),
            })
        })
        .collect()
}

/// The switch of multi-generational LRU; root may write it at run time.
pub(super) const LRU_GEN_FILE: &str = "/sys/kernel/mm/lru_gen/enabled";

/// Reads the switch's hexadecimal bit mask (Documentation/admin-guide/mm/multigen_lru.rst).
#[must_use]
pub fn parse_lru_gen(text: &str) -> Option<u32> {
    u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
}

fn mglru_fact(text: io::Result<String>) -> Fact<u32> {
    match text {
        Ok(text) => match parse_lru_gen(&text) {
            Some(0) => Fact::no("multi-generational LRU is built but switched off"),
            Some(bits) => Fact::Yes(bits),
            None => Fact::unknown(format!(
                "\"lru_gen/enabled\" holds \"{}\"",
                scrub(text.as_bytes())
            )),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Fact::no("not built: this kernel has the two-list LRU only")
        }
        Err(error) => Fact::unknown(format!(
            "\"/sys/kernel/mm/lru_gen/enabled\" cannot be read: {error}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preemption_words() {
        assert_eq!(
            parse_preemption("#1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1"),
            Preemption::Dynamic
        );
        assert_eq!(
            parse_preemption("#1 SMP PREEMPT_RT Debian"),
            Preemption::Realtime
        );
        assert_eq!(parse_preemption("#1 SMP PREEMPT Debian"), Preemption::Full);
        assert_eq!(
            parse_preemption("#1 SMP Debian"),
            Preemption::NoneOrVoluntary
        );
    }

    #[test]
    fn zero_addresses_are_hidden_ones() {
        assert!(!has_real_addresses(
            b"0000000000000000 T _stext\n0000000000000000 T _text\n"
        ));
        assert!(has_real_addresses(
            b"0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\n"
        ));
        assert!(!has_real_addresses(b""));
        assert!(!has_real_addresses(b"garbage \xff\n"));
    }

    #[test]
    fn hidden_addresses_name_the_fix() {
        let root = tempdir("kallsyms");
        std::fs::create_dir_all(root.join("proc")).expect("temporary directory");
        std::fs::write(root.join("proc/kallsyms"), "0000000000000000 T _stext\n")
            .expect("temporary file");
        let mut privilege = PrivilegeFacts::read(&root);
        privilege.kptr_restrict = Fact::Yes(2);
        let reason = |privilege: &PrivilegeFacts| {
            kallsyms_fact(&root, privilege)
                .reason()
                .unwrap_or("")
                .to_owned()
        };
        assert!(reason(&privilege).contains("kptr_restrict"));
        privilege.kptr_restrict = Fact::Yes(1);
        privilege.cap_syslog = Fact::no("x");
        assert!(reason(&privilege).contains("CAP_SYSLOG would"));
        privilege.cap_syslog = Fact::Yes(());
        assert!(reason(&privilege).contains("although CAP_SYSLOG"));
        std::fs::remove_dir_all(root).expect("temporary directory");
    }

    fn tempdir(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("faultscope-{name}-{}", std::process::id()))
    }

    #[test]
    fn mglru_states() {
        assert_eq!(mglru_fact(Ok("0x0007".into())), Fact::Yes(7));
        assert_eq!(mglru_fact(Ok("0x0000".into())).state(), "no");
        assert_eq!(mglru_fact(Ok("y".into())).state(), "unknown");
        let absent = mglru_fact(Err(io::ErrorKind::NotFound.into()));
        assert!(absent.reason().expect("no").starts_with("not built"));
    }

    #[test]
    fn psi_states() {
        assert_eq!(psi_fact(Ok(b"some avg10=0.00".to_vec())), Fact::Yes(()));
        assert_eq!(psi_fact(Err(io::ErrorKind::NotFound.into())).state(), "no");
        assert_eq!(
            psi_fact(Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))).state(),
            "no"
        );
        assert_eq!(psi_fact(Ok(Vec::new())).state(), "unknown");
    }
}
