//! A memory cgroup of our own with a limit, so that a command runs short of memory and nobody else does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use crate::host::cgroup::{CgroupVersion, MemoryHierarchy};
use crate::name::scrub;

/// What the names of our cgroups begin with; the process id follows.
const PREFIX: &str = "faultscope-bench-";
/// Tries to remove a cgroup whose last process has just ended, and the pause between them.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// Why there is no cgroup with a limit.
#[derive(Debug, Error)]
pub enum LimitError {
    /// The directory cannot be made.
    #[error(
        "a memory cgroup cannot be made in \"{mount}\": {source}; run as root, where that directory may be written to"
    )]
    NotMade {
        /// Mount point of the hierarchy.
        mount: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The limit cannot be set.
    #[error("a limit of {bytes} bytes cannot be written to \"{file}\": {source}")]
    NotSet {
        /// The file of the limit.
        file: String,
        /// The limit.
        bytes: u64,
        /// What the kernel said.
        source: io::Error,
    },
    /// A cgroup v2 whose parent does not hand the memory controller down.
    #[error(
        "cgroups in \"{mount}\" have no memory controller; write \"+memory\" into \"cgroup.subtree_control\" there"
    )]
    NoController {
        /// Mount point of the hierarchy.
        mount: String,
    },
}

/// A memory cgroup with a limit, removed when dropped.
#[derive(Debug)]
pub struct MemoryLimit {
    path: PathBuf,
    mount: PathBuf,
}

impl MemoryLimit {
    /// Makes a cgroup at the top of the memory hierarchy that may have `bytes` bytes, and removes those that a
    /// process of ours left behind when it was killed.
    ///
    /// # Errors
    /// [`LimitError`]; nothing stays behind.
    pub fn new(hierarchy: &MemoryHierarchy, bytes: u64) -> Result<Self, LimitError> {
        Self::new_below(
            &hierarchy.mount,
            hierarchy.version,
            bytes,
            std::process::id(),
        )
    }

    fn new_below(
        mount: &Path,
        version: CgroupVersion,
        bytes: u64,
        pid: u32,
    ) -> Result<Self, LimitError> {
        let shown = |path: &Path| scrub(path.as_os_str().as_encoded_bytes());
        remove_orphans(mount);
        let path = mount.join(format!("{PREFIX}{pid}"));
        fs::create_dir(&path).map_err(|source| LimitError::NotMade {
            mount: shown(mount),
            source,
        })?;
        let limit = Self {
            path,
            mount: mount.to_owned(),
        };
        let file = limit.path.join(match version {
            CgroupVersion::V1 => "memory.limit_in_bytes",
            CgroupVersion::V2 => "memory.max",
        });
        if version == CgroupVersion::V2 && !file.exists() {
            return Err(LimitError::NoController {
                mount: shown(mount),
            });
        }
        match fs::write(&file, bytes.to_string()) {
            Ok(()) => Ok(limit),
            Err(source) => Err(LimitError::NotSet {
                file: shown(&file),
                bytes,
                source,
            }),
        }
    }

    /// Its directory, for [`join`](Self::join) in another process.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the calling process, all its threads, into the cgroup at `path`.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn join(path: &Path) -> io::Result<()> {
        fs::write(path.join("cgroup.procs"), std::process::id().to_string())
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // A task that has just ended may still be on its way out.
        for _ in 0..TRIES {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    let procs = self.path.join("cgroup.procs");
                    // Whoever is left is not ours any more; one that ended meanwhile cannot be moved.
                    for pid in fs::read_to_string(procs).unwrap_or_default().lines() {
                        fs::write(self.mount.join("cgroup.procs"), pid).ok();
                    }
                    std::thread::sleep(PAUSE);
                }
                // Removed, or not ours to remove.
                _ => return,
            }
        }
    }
}

/// Removes cgroups of processes that are gone.
fn remove_orphans(mount: &Path) {
    let entries = fs::read_dir(mount).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if let Some(Ok(pid)) = pid.map(str::parse::<u32>)
            && !Path::new(&format!("/proc/{pid}")).exists()
        {
            // One with a process left is no orphan.
            fs::remove_dir(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("faultscope-{name}-{}", std::process::id()));
        fs::create_dir(&path).expect("a directory");
        path
    }

    #[test]
    fn a_cgroup_has_its_limit_and_goes_with_the_value() {
        let mount = directory("limit");
        // No process has this number.
        let orphan = mount.join(format!("{PREFIX}4294967295"));
        fs::create_dir(&orphan).expect("a directory");
        let limit = MemoryLimit::new_below(&mount, CgroupVersion::V1, 4096, 1).expect("a limit");
        let file = limit.path().join("memory.limit_in_bytes");
        assert_eq!(fs::read_to_string(&file).expect("written"), "4096");
        assert!(!orphan.exists());
        // The kernel's files go with their directory, these do not.
        fs::remove_file(file).expect("a file");
        let path = limit.path().to_owned();
        drop(limit);
        assert!(!path.exists());
        fs::remove_dir(mount).expect("empty");
    }

    #[test]
    fn a_hierarchy_without_controller_or_permission_is_told() {
        let mount = directory("no-limit");
        let error = MemoryLimit::new_below(&mount, CgroupVersion::V2, 4096, 1);
        let error = error.expect_err("no memory.max").to_string();
        assert!(error.contains("+memory"), "{error}");
        assert_eq!(fs::read_dir(&mount).expect("a directory").count(), 0);
        fs::remove_dir(&mount).expect("empty");
        let error = MemoryLimit::new_below(&mount, CgroupVersion::V1, 4096, 1);
        let error = error.expect_err("no directory").to_string();
        assert!(
            error.contains("cannot be made") && error.contains("root"),
            "{error}"
        );
    }
}
