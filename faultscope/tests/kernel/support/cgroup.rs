//! Memory cgroups of a test's own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use faultscope::host::{Fact, HostFacts};

/// Root of the hierarchy that has the memory controller.
pub(crate) fn memory_mount() -> PathBuf {
    match HostFacts::read(Path::new("/")).memory_hierarchy {
        Fact::Yes(hierarchy) => hierarchy.mount,
        other => {
            println!("SKIP a test with cgroups: {other:?}");
            panic!("no memory cgroup hierarchy");
        }
    }
}

/// A memory cgroup of this test's own, removed when dropped.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
    mount: PathBuf,
}

impl Cgroup {
    /// Makes a cgroup at the root of the hierarchy that has the memory controller.
    pub(crate) fn new(name: &str) -> Self {
        let mount = memory_mount();
        let path = mount.join(format!("faultscope-test-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).expect("a cgroup can be made");
        Self { path, mount }
    }

    /// Makes a cgroup in this one, which may have no process of its own: in version 2
    /// a controller is handed down by none that has.
    pub(crate) fn make_inside(&self, name: impl AsRef<Path>) -> Self {
        let control = self.path.join("cgroup.subtree_control");
        if control.exists() {
            std::fs::write(control, "+memory").expect("the controller is handed down");
        }
        let path = self.path.join(name);
        std::fs::create_dir(&path).expect("a cgroup can be made");
        Self {
            path,
            mount: self.mount.clone(),
        }
    }

    /// Its directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its id: the inode of its directory.
    pub(crate) fn id(&self) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata(&self.path)
            .expect("the cgroup exists")
            .ino()
    }

    /// Limits its memory.
    pub(crate) fn limit(&self, bytes: u64) {
        let v1 = self.path.join("memory.limit_in_bytes");
        let v2 = self.path.join("memory.max");
        let file = if v1.exists() { v1 } else { v2 };
        std::fs::write(file, bytes.to_string()).expect("a limit can be set");
    }

    /// Has the kernel reclaim its memory above `bytes`, and kill somebody only far above; cgroup v2 alone can.
    ///
    /// A hard limit alone has killed processes that touched pages faster than emulated CPUs, which take turns, reclaim.
    pub(crate) fn reclaim_above(&self, bytes: u64) {
        std::fs::write(self.path.join("memory.high"), bytes.to_string())
            .expect("a threshold can be set");
        self.limit(2 * bytes);
    }

    /// Moves a process into it.
    pub(crate) fn take(&self, pid: u32) {
        std::fs::write(self.path.join("cgroup.procs"), pid.to_string())
            .expect("a process can be moved");
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Whoever is left goes to the root; a process that ended meanwhile cannot.
        let left = std::fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        for pid in left.lines() {
            drop(std::fs::write(self.mount.join("cgroup.procs"), pid));
        }
        // A task that just ended may still be on its way out.
        for _ in 0..1000 {
            if std::fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        println!("  cgroup {} stays", self.path.display());
    }
}
