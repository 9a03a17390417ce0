//! The memory controller's cgroup hierarchy, and the paths behind the cgroup ids that programs report.
//!
//! A cgroup's id is the inode number of its directory in the hierarchy that holds the memory controller,
//! v1 or v2 (`kn->id`; checked on 6.1, 6.12 and 6.18). Paths are relative to the mount. Names are chosen by
//! others: the raw bytes are kept for look-ups, only the scrubbed text is for display.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

use super::Fact;
use super::file::{read_text, under};
use super::mount::Mount;
use crate::name::scrub;

/// Directories visited by one walk; more are left out and counted.
pub const MAX_DIRECTORIES: usize = 200_000;
/// Longest path in bytes, the kernel's PATH_MAX; longer ones are left out and counted.
pub const MAX_PATH_BYTES: usize = 4096;
/// Names of deleted cgroups and ids without a directory that are remembered.
const MAX_REMEMBERED: usize = 65_536;

/// Version of a cgroup hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupVersion {
    /// One hierarchy a controller.
    V1,
    /// The unified hierarchy.
    V2,
}

/// Where the memory controller lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryHierarchy {
    /// Version.
    pub version: CgroupVersion,
    /// Mount point as seen by this process.
    pub mount: PathBuf,
    /// The mount shows the whole hierarchy; otherwise cgroups outside it have no path.
    pub is_whole: bool,
}

/// Finds the hierarchy of the memory controller.
#[must_use]
pub fn find_memory_hierarchy(root: &Path, mounts: &[Mount]) -> Fact<MemoryHierarchy> {
    let cgroups = read_text(root, "/proc/cgroups").ok();
    let listed = cgroups.as_deref().and_then(parse_memory_controller);
    if let Some(ControllerLine {
        is_enabled: false, ..
    }) = listed
    {
        return Fact::no(
            "the memory controller is switched off by the boot option \"cgroup_disable=memory\"",
        );
    }
    let v1 = best_mount(mounts, |mount| {
        mount.fs_type == "cgroup"
            && mount
                .super_options
                .split(',')
                .any(|option| option == "memory")
    });
    if let Some(mount) = v1 {
        return Fact::Yes(hierarchy(CgroupVersion::V1, mount));
    }
    if listed.is_some_and(|line| line.hierarchy != 0) {
        return Fact::no(
            "the memory controller is on a cgroup v1 hierarchy that is not mounted here",
        );
    }
    let Some(mount) = best_mount(mounts, |mount| mount.fs_type == "cgroup2") else {
        return match (&cgroups, listed) {
            (_, Some(_)) => Fact::no("no cgroup file system with the memory controller is mounted"),
            (Some(_), None) => Fact::no("this kernel has no memory controller (CONFIG_MEMCG)"),
            (None, None) => {
                Fact::unknown("neither \"/proc/cgroups\" nor a cgroup mount can be read")
            }
        };
    };
    let controllers = fs::read(under(root, &path_text(&mount.point)).join("cgroup.controllers"));
    match controllers {
        Ok(text) if names_memory(&text) => Fact::Yes(hierarchy(CgroupVersion::V2, mount)),
        Ok(_) => Fact::no("the mounted cgroup v2 hierarchy does not offer the memory controller"),
        Err(error) => Fact::unknown(format!(
            "\"cgroup.controllers\" of \"{}\" cannot be read: {error}",
            scrub(&mount.point)
        )),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ControllerLine {
    hierarchy: u32,
    is_enabled: bool,
}

/// Reads the memory line of `/proc/cgroups`: name, hierarchy (0 means v2), cgroups, enabled.
fn parse_memory_controller(text: &str) -> Option<ControllerLine> {
    let mut fields = text
        .lines()
        .find(|line| line.starts_with("memory\t"))?
        .split_ascii_whitespace();
    let hierarchy = fields.nth(1)?.parse().ok()?;
    let is_enabled = fields.nth(1)? == "1";
    Some(ControllerLine {
        hierarchy,
        is_enabled,
    })
}

/// Prefers a mount of the whole hierarchy.
fn best_mount(mounts: &[Mount], wanted: impl Fn(&Mount) -> bool) -> Option<&Mount> {
    mounts
        .iter()
        .filter(|mount| wanted(mount))
        .min_by_key(|mount| mount.root.len())
}

fn hierarchy(version: CgroupVersion, mount: &Mount) -> MemoryHierarchy {
    MemoryHierarchy {
        version,
        mount: PathBuf::from(OsStr::from_bytes(&mount.point)),
        is_whole: mount.root == b"/",
    }
}

/// Mount points that hold a cgroup file system are ASCII in practice; others are not found, not misread.
fn path_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A cgroup's path below the mount; the root is `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupName {
    /// The path's bytes as the kernel has them.
    pub raw: Box<[u8]>,
    /// The path made safe for display.
    pub display: Box<str>,
    /// The last walk did not find the directory any more.
    pub is_deleted: bool,
}

/// Why `--cgroup PATH` was refused.
#[derive(Debug, Error)]
pub enum CgroupFilterError {
    /// No such directory.
    #[error(
        "cgroup \"{path}\" does not exist in the memory hierarchy at \"{mount}\"; give a directory below it, or its \
         path as \"/proc/PID/cgroup\" shows it"
    )]
    Missing {
        /// What the user gave.
        path: String,
        /// The mount point.
        mount: String,
    },
    /// A path with `..`, which could leave the hierarchy.
    #[error("cgroup \"{path}\" holds \"..\"; give the plain path")]
    Parent {
        /// What the user gave.
        path: String,
    },
    /// A file of a cgroup, not a cgroup.
    #[error("\"{path}\" is a file, not a cgroup; give the directory it is in")]
    NotADirectory {
        /// What the user gave.
        path: String,
    },
    /// A cgroup v2 whose parent does not hand the memory controller down.
    #[error(
        "cgroup \"{path}\" has no memory controller, so its tasks count as those of the next cgroup above that has one; \
         give that one, or write \"+memory\" into \"cgroup.subtree_control\" of the directory above it"
    )]
    NoController {
        /// What the user gave.
        path: String,
    },
    /// The kernel refused to look.
    #[error("cgroup \"{path}\" cannot be read: {source}")]
    Unreadable {
        /// What the user gave.
        path: String,
        /// The reason.
        source: io::Error,
    },
}

/// Resolves cgroup ids to paths.
///
/// The hierarchy is walked at the first look-up, and again when an id is unknown, at most once per tick. An
/// id that a complete walk did not find later on is remembered as having no directory, so that it costs no
/// further walks. A deleted cgroup keeps its name; a cgroup made again under the same path has a new id and
/// an entry of its own.
#[derive(Debug)]
pub struct CgroupPaths {
    mount: PathBuf,
    shown_mount: PathBuf,
    names: HashMap<u64, CgroupName>,
    nameless: HashSet<u64>,
    has_walked: bool,
    omitted: u64,
    walks: u64,
}

impl CgroupPaths {
    /// Prepares a resolver; nothing is read yet.
    #[must_use]
    pub fn new(root: &Path, hierarchy: &MemoryHierarchy) -> Self {
        let relative = hierarchy
            .mount
            .strip_prefix("/")
            .unwrap_or(&hierarchy.mount);
        Self {
            mount: root.join(relative),
            shown_mount: hierarchy.mount.clone(),
            names: HashMap::new(),
            nameless: HashSet::new(),
            has_walked: false,
            omitted: 0,
            walks: 0,
        }
    }

    /// Starts a tick: the next unknown id may cause one walk.
    pub fn begin_tick(&mut self) {
        self.has_walked = false;
    }

    /// Returns the name of a cgroup id, walking the hierarchy if it is new.
    pub fn name(&mut self, id: u64) -> Option<&CgroupName> {
        if !self.names.contains_key(&id) && !self.has_walked && !self.nameless.contains(&id) {
            self.walk();
            if !self.names.contains_key(&id) && self.nameless.len() < MAX_REMEMBERED {
                self.nameless.insert(id);
            }
        }
        self.names.get(&id)
    }

    /// Directories the last walk left out because of [`MAX_DIRECTORIES`], [`MAX_PATH_BYTES`] or an error.
    #[must_use]
    pub const fn omitted(&self) -> u64 {
        self.omitted
    }

    /// Walks done so far.
    #[must_use]
    pub const fn walks(&self) -> u64 {
        self.walks
    }

    /// Turns the argument of `--cgroup` into an id.
    ///
    /// Accepts an absolute path below the mount, or a path relative to it with or without a leading slash.
    ///
    /// # Errors
    /// [`CgroupFilterError`] says what is wrong with the path.
    pub fn resolve_filter(&self, path: &Path) -> Result<u64, CgroupFilterError> {
        let shown = scrub(path.as_os_str().as_bytes());
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(CgroupFilterError::Parent { path: shown });
        }
        let relative = path
            .strip_prefix(&self.shown_mount)
            .or_else(|_| path.strip_prefix("/"))
            .unwrap_or(path);
        let directory = self.mount.join(relative);
        match fs::metadata(&directory) {
            Ok(data) if data.is_dir() && lacks_memory(&directory) => {
                Err(CgroupFilterError::NoController { path: shown })
            }
            Ok(data) if data.is_dir() => Ok(data.ino()),
            Ok(_) => Err(CgroupFilterError::NotADirectory { path: shown }),
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                Err(CgroupFilterError::Missing {
                    path: shown,
                    mount: scrub(self.shown_mount.as_os_str().as_bytes()),
                })
            }
            Err(source) => Err(CgroupFilterError::Unreadable {
                path: shown,
                source,
            }),
        }
    }

    fn walk(&mut self) {
        self.has_walked = true;
        self.walks += 1;
        let found = walk_directories(&self.mount);
        self.omitted = found.omitted;
        for (id, name) in &mut self.names {
            name.is_deleted = !found.names.contains_key(id);
        }
        if self.names.len() > found.names.len() + MAX_REMEMBERED {
            self.names.retain(|_, name| !name.is_deleted);
        }
        for (id, raw) in found.names {
            let display = scrub(&raw).into_boxed_str();
            self.names
                .entry(id)
                .and_modify(|name| {
                    if name.raw != raw {
                        // A v1 directory can be renamed and keeps its id.
                        name.raw.clone_from(&raw);
                        name.display.clone_from(&display);
                    }
                })
                .or_insert_with(|| CgroupName {
                    raw,
                    display,
                    is_deleted: false,
                });
        }
    }
}

/// Whether a cgroup v2 is without a memory controller of its own; v1 has no such file, and every directory one.
fn lacks_memory(directory: &Path) -> bool {
    let controllers = fs::read(directory.join("cgroup.controllers"));
    controllers.is_ok_and(|text| !names_memory(&text))
}

fn names_memory(controllers: &[u8]) -> bool {
    controllers
        .split(u8::is_ascii_whitespace)
        .any(|word| word == b"memory")
}

struct Walk {
    names: HashMap<u64, Box<[u8]>>,
    omitted: u64,
}

/// Visits every directory below `mount`; a directory that vanishes meanwhile is no error.
fn walk_directories(mount: &Path) -> Walk {
    let mut walk = Walk {
        names: HashMap::new(),
        omitted: 0,
    };
    match fs::metadata(mount) {
        Ok(data) => {
            walk.names.insert(data.ino(), b"/".as_slice().into());
        }
        Err(_) => walk.omitted += 1,
    }
    let mut pending: Vec<Vec<u8>> = vec![Vec::new()];
    while let Some(parent) = pending.pop() {
        let relative = parent.strip_prefix(b"/").unwrap_or(&parent);
        let entries = match fs::read_dir(mount.join(OsStr::from_bytes(relative))) {
            Ok(entries) => entries,
            Err(error) => {
                walk.omitted += u64::from(error.kind() != io::ErrorKind::NotFound);
                continue;
            }
        };
        for entry in entries.flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name();
            let length = parent.len() + 1 + name.len();
            if walk.names.len() >= MAX_DIRECTORIES || length > MAX_PATH_BYTES {
                walk.omitted += 1;
                continue;
            }
            let path = [parent.as_slice(), b"/", name.as_bytes()].concat();
            // The directory entry's number equals the inode's (kernfs_fop_readdir), which saves a stat.
            walk.names
                .insert(entry.ino(), path.clone().into_boxed_slice());
            pending.push(path);
        }
    }
    walk
}
