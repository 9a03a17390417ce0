//! The guest's root: an archive the kernel unpacks into memory, in cpio's "newc" format.
//!
//! It holds busybox, the modules of two RAM disks, `setpriv`, the binaries under test where their build put them, and
//! the script that is process 1.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::build::Binaries;
use super::kernel::Kernel;
use crate::proc::capture;

/// Modules the guest loads, in this order, with what they need; built-in ones are passed over.
const MODULES: &[&str] = &["crc32c_generic", "ext4", "brd"];

/// Programs of the machine that tests start and busybox has not, or not with the options they use.
const TOOLS: &[&str] = &["/usr/bin/setpriv"];

/// Where a guest finds the BPF object under test, if it is not the embedded one.
pub(super) const OBJECT: &str = "/faultscope.bpf.o";

/// What ends the output of a run, before its exit status; no program prints it by chance.
pub(super) const END: &str = "\u{1}vm-status=";

/// Directories that are there before the script starts.
const DIRECTORIES: &[&str] = &[
    "bin", "dev", "etc", "proc", "root", "run", "sys", "tmp", "usr/bin", "var/tmp",
];

/// Mounts all a Debian system has that matters here; ttyS0 is the kernel's console, ttyS1 belongs to the run.
///
/// Root file systems in memory have no major faults and no swap, so there are a swap area and a file system on RAM
/// disks. Only controllers that are asked for reach the cgroups below the root.
const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/usr/bin:/bin HOME=/root TERM="${TERM:-linux}" RUST_BACKTRACE=0
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
for where in /dev/shm /run /tmp; do mount -t tmpfs -o mode=1777 tmpfs $where; done
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo '+cpu +memory' > /sys/fs/cgroup/cgroup.subtree_control
mount -t tracefs tracefs /sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug
mount -t bpf bpf /sys/fs/bpf
mount -t securityfs securityfs /sys/kernel/security
hostname guest
ip link set lo up
while read -r module arguments; do insmod /modules/$module $arguments; done < /modules/list
mkswap /dev/ram0 > /dev/null && swapon /dev/ram0
mkdir -p "$DISK" && mke2fs /dev/ram1 > /dev/null && mount -t ext4 /dev/ram1 "$DISK"
cd /root
"#;

/// What a guest is to do.
pub(super) enum Work {
    /// A shell for a person, on a terminal of this size.
    Shell { rows: u32, columns: u32 },
    /// A program with its arguments; its exit status ends the run.
    Command(Vec<String>),
}

/// Makes the archive of a guest.
pub(super) fn build(
    kernel: &Kernel,
    binaries: &Binaries,
    environment: &[(String, String)],
    work: &Work,
) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for directory in DIRECTORIES {
        archive.directory(directory);
    }
    archive.host_file(Path::new("/bin/busybox"), "bin/busybox")?;
    for tool in TOOLS {
        archive.tool(tool)?;
    }
    modules(&mut archive, kernel)?;
    for binary in [&binaries.faultscope, &binaries.tests] {
        archive.host_file(binary, inside(binary)?)?;
    }
    archive.link("bin/faultscope", &binaries.faultscope);
    if let Some(object) = &binaries.object {
        archive.host_file(object, inside(Path::new(OBJECT))?)?;
    }
    archive.file("etc/passwd", 0o644, b"root:x:0:0:root:/root:/bin/sh\n");
    archive.file("etc/group", 0o644, b"root:x:0:\n");
    let script = script(&binaries.scratch, environment, work);
    archive.file("init", 0o755, script.as_bytes());
    Ok(archive.finish())
}

fn inside(path: &Path) -> Result<&str> {
    path.to_str()
        .and_then(|path| path.strip_prefix('/'))
        .with_context(|| format!("\"{}\" is no absolute path in UTF-8", path.display()))
}

/// Process 1 of the guest.
fn script(disk: &Path, environment: &[(String, String)], work: &Work) -> String {
    let run = match work {
        // The size lasts as long as the port is open.
        Work::Shell { rows, columns } => format!(
            "setsid -c sh -c 'stty sane rows {rows} cols {columns}; exec sh' < /dev/ttyS1 > /dev/ttyS1 2>&1\n"
        ),
        Work::Command(words) => {
            let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
            format!(
                "stty -F /dev/ttyS1 raw -echo\n{{ {}; }} < /dev/null > /dev/ttyS1 2>&1\nprintf '\\001vm-status=%d\\n' $? > /dev/ttyS1\n",
                words.join(" ")
            )
        }
    };
    let (head, body) = INIT.split_once('\n').unwrap_or(("", INIT));
    let disk = quote(&disk.to_string_lossy());
    let exports: String = environment
        .iter()
        .map(|(name, value)| format!("export {name}={}\n", quote(value)))
        .collect();
    // Without `sync` the last bytes may still be on their way to the port.
    format!("{head}\nDISK={disk}\n{body}{exports}{run}sync\npoweroff -f\n")
}

/// A word as the shell reads it back.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Adds the modules and the list the script loads them by.
fn modules(archive: &mut Archive, kernel: &Kernel) -> Result<()> {
    let directory = kernel.modules();
    let mut files = Vec::new();
    list_modules(&directory.join("kernel"), &mut files)?;
    let mut order = Vec::new();
    for name in MODULES {
        load_order(name, &files, &mut order)?;
    }
    archive.directory("modules");
    let mut list = String::new();
    for (name, content) in &order {
        archive.file(&format!("modules/{name}.ko"), 0o644, content);
        list.push_str(name);
        // Two disks of 512 MiB, in KiB.
        list.push_str(match name.as_str() {
            "brd" => ".ko rd_nr=2 rd_size=524288\n",
            _ => ".ko\n",
        });
    }
    archive.file("modules/list", 0o644, list.as_bytes());
    Ok(())
}

fn list_modules(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("listing \"{}\"", directory.display()))?;
    for entry in entries {
        let path = entry
            .with_context(|| format!("listing \"{}\"", directory.display()))?
            .path();
        if path.is_dir() {
            list_modules(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Appends a module behind those it needs; one without a file is built in.
fn load_order(name: &str, files: &[PathBuf], order: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    if order.iter().any(|(known, _)| known == name) {
        return Ok(());
    }
    let is_named = |path: &&PathBuf| {
        path.file_name()
            .and_then(|file| file.to_str()?.split_once(".ko"))
            .is_some_and(|(stem, _)| stem.replace('-', "_") == name)
    };
    let Some(path) = files.iter().find(is_named) else {
        return Ok(());
    };
    let content = match path.extension().and_then(|e| e.to_str()) {
        Some("ko") => fs::read(path).with_context(|| format!("reading \"{}\"", path.display()))?,
        Some("xz") => unpack(path)?,
        _ => bail!(
            "module \"{}\" is packed in a way unknown here",
            path.display()
        ),
    };
    for needed in needs(&content) {
        load_order(&needed, files, order)?;
    }
    order.push((name.to_owned(), content));
    Ok(())
}

fn unpack(path: &Path) -> Result<Vec<u8>> {
    let output = Command::new("busybox")
        .arg("xzcat")
        .arg(path)
        .output()
        .context("starting \"busybox xzcat\"")?;
    if !output.status.success() {
        bail!(
            "\"busybox xzcat {}\" failed ({})",
            path.display(),
            output.status
        );
    }
    Ok(output.stdout)
}

/// The modules that a module's own information section says it needs.
fn needs(module: &[u8]) -> Vec<String> {
    let key = b"\0depends=";
    let Some(start) = module.windows(key.len()).position(|bytes| bytes == key) else {
        return Vec::new();
    };
    let text = &module[start + key.len()..];
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&text[..end])
        .split(',')
        .filter(|name| !name.is_empty())
        .map(|name| name.replace('-', "_"))
        .collect()
}

/// A cpio archive in the making; kernel document `driver-api/early-userspace/buffer-format.rst` has the format.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    made: BTreeSet<String>,
}

impl Archive {
    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let length = content.len();
        let header = format!(
            // Magic, inode, mode, owner, group, links, time, size, two devices, length of the name, no check sum.
            "070701{:08X}{mode:08X}{:08X}{:08X}{:08X}{:08X}{length:08X}{:032X}{:08X}{:08X}",
            self.entries,
            0,
            0,
            1,
            0,
            0,
            name.len() + 1,
            0
        );
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Makes a directory and those above it.
    fn directory(&mut self, path: &str) {
        if path.is_empty() || self.made.contains(path) {
            return;
        }
        if let Some((above, _)) = path.rsplit_once('/') {
            self.directory(above);
        }
        self.entry(path, 0o040_755, b"");
        self.made.insert(path.to_owned());
    }

    fn file(&mut self, path: &str, mode: u32, content: &[u8]) {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.directory(above);
        }
        if self.made.insert(path.to_owned()) {
            self.entry(path, 0o100_000 | mode, content);
        }
    }

    fn link(&mut self, path: &str, target: &Path) {
        self.entry(path, 0o120_777, target.as_os_str().as_encoded_bytes());
    }

    /// Adds an executable file of this machine.
    fn host_file(&mut self, from: &Path, to: &str) -> Result<()> {
        let content = fs::read(from)
            .with_context(|| format!("reading \"{}\" for a guest", from.display()))?;
        self.file(to, 0o755, &content);
        Ok(())
    }

    /// Adds a program of this machine with the libraries it needs.
    fn tool(&mut self, path: &str) -> Result<()> {
        self.host_file(Path::new(path), inside(Path::new(path))?)?;
        let libraries = capture(Command::new("ldd").arg(path))?;
        for library in libraries
            .split_whitespace()
            .filter(|word| word.starts_with('/'))
        {
            self.host_file(Path::new(library), inside(Path::new(library))?)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, b"");
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_what_cpio_reads() {
        let mut archive = Archive::default();
        archive.file("a/b/c", 0o644, b"12345");
        let bytes = archive.finish();
        let text = String::from_utf8_lossy(&bytes);
        // Directories come before what is in them, each header begins at a multiple of four.
        let headers: Vec<usize> = text.match_indices("070701").map(|(at, _)| at).collect();
        assert_eq!(headers.len(), 4, "{text}");
        assert!(headers.iter().all(|at| at % 4 == 0), "{headers:?}");
        assert_eq!(&bytes[headers[0] + 110..headers[0] + 112], b"a\0");
        assert_eq!(&bytes[headers[2] + 54..headers[2] + 62], b"00000005");
        assert_eq!(&bytes[headers[2] + 110..headers[2] + 116], b"a/b/c\0");
        assert_eq!(&bytes[headers[2] + 116..headers[2] + 121], b"12345");
    }

    #[test]
    fn words_survive_the_shell() {
        let text = script(
            Path::new("/tmp/disk"),
            &[("A".to_owned(), "b c".to_owned())],
            &Work::Command(vec!["echo".to_owned(), "it's".to_owned()]),
        );
        assert!(
            text.starts_with("#!/bin/busybox sh\nDISK='/tmp/disk'\n"),
            "{text}"
        );
        assert!(text.contains("export A='b c'\n"), "{text}");
        assert!(
            text.contains(r"{ 'echo' 'it'\''s'; } < /dev/null"),
            "{text}"
        );
    }

    #[test]
    fn a_module_says_what_it_needs() {
        assert_eq!(
            needs(b"x\0license=GPL\0depends=jbd2,crc-16\0more"),
            ["jbd2", "crc_16"]
        );
        assert!(needs(b"x\0depends=\0").is_empty());
        assert!(needs(b"nothing").is_empty());
    }
}
