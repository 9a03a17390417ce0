//! Tests of the hierarchy search, the id resolver and the filter argument on ordinary directories.

use super::*;
use crate::host::mount::parse_mounts;

const HYBRID: &[u8] = b"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
    34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n\
    35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:4 master:1 - cgroup cgroup rw,memory\n\
    41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

/// A directory removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("faultscope-cgroup-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("temporary directory");
        Self(path)
    }

    fn make(&self, path: &str) -> u64 {
        let path = self.0.join(path);
        fs::create_dir_all(&path).expect("temporary directory");
        fs::metadata(path).expect("just made").ino()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("has one")).expect("temporary directory");
        fs::write(path, text).expect("temporary file");
    }

    fn resolver(&self) -> CgroupPaths {
        let hierarchy = MemoryHierarchy {
            version: CgroupVersion::V2,
            mount: PathBuf::from("/cg"),
            is_whole: true,
        };
        CgroupPaths::new(&self.0, &hierarchy)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn hybrid_host_has_memory_on_v1() {
    let scratch = Scratch::new("hybrid");
    scratch.write(
        "proc/cgroups",
        "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t4\t9\t1\n",
    );
    let fact = find_memory_hierarchy(&scratch.0, &parse_mounts(HYBRID));
    let found = fact.value().expect("mounted");
    assert_eq!(
        (found.version, found.mount.as_path()),
        (CgroupVersion::V1, Path::new("/sys/fs/cgroup/memory"))
    );
    let unmounted: Vec<Mount> = parse_mounts(HYBRID)
        .into_iter()
        .filter(|mount| mount.super_options != "rw,memory")
        .collect();
    assert_eq!(find_memory_hierarchy(&scratch.0, &unmounted).state(), "no");
}

#[test]
fn unified_host_has_memory_on_v2_only_if_offered() {
    let scratch = Scratch::new("unified");
    let mounts = parse_mounts(b"30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
    scratch.write("proc/cgroups", "memory\t0\t80\t1\n");
    assert_eq!(
        find_memory_hierarchy(&scratch.0, &mounts).state(),
        "unknown"
    );
    scratch.write(
        "sys/fs/cgroup/cgroup.controllers",
        "cpuset cpu io memory pids\n",
    );
    let fact = find_memory_hierarchy(&scratch.0, &mounts);
    assert_eq!(
        fact.value().map(|found| found.version),
        Some(CgroupVersion::V2)
    );
    scratch.write("sys/fs/cgroup/cgroup.controllers", "cpu\n");
    assert_eq!(find_memory_hierarchy(&scratch.0, &mounts).state(), "no");
    scratch.write("proc/cgroups", "memory\t0\t1\t0\n");
    let off = find_memory_hierarchy(&scratch.0, &mounts);
    assert!(off.reason().expect("no").contains("cgroup_disable"));
}

#[test]
fn ids_resolve_and_hostile_names_are_scrubbed() {
    let scratch = Scratch::new("names");
    let root = scratch.make("cg");
    let inner = scratch.make("cg/a/b");
    let hostile = scratch.make("cg/\x1b[2J\u{202E}x");
    let mut paths = scratch.resolver();
    assert_eq!(paths.name(root).map(|name| &*name.display), Some("/"));
    assert_eq!(paths.name(inner).map(|name| &*name.raw), Some(&b"/a/b"[..]));
    let name = paths.name(hostile).expect("walked");
    assert_eq!(&*name.display, "/\u{FFFD}[2J\u{FFFD}x");
    assert_eq!(&*name.raw, "/\x1b[2J\u{202E}x".as_bytes());
    assert_eq!((paths.walks(), paths.omitted()), (1, 0));
}

#[test]
fn a_miss_walks_at_most_once_per_tick_and_never_again_for_a_lost_id() {
    let scratch = Scratch::new("miss");
    scratch.make("cg");
    let mut paths = scratch.resolver();
    assert_eq!(paths.name(u64::MAX), None);
    let late = scratch.make("cg/late");
    assert_eq!(paths.name(late), None, "this tick's walk is spent");
    assert_eq!(paths.walks(), 1);
    paths.begin_tick();
    assert_eq!(paths.name(u64::MAX), None);
    assert_eq!(paths.walks(), 1, "known to have no directory");
    assert!(paths.name(late).is_some());
    assert_eq!(paths.walks(), 2);
}

#[test]
fn a_cgroup_made_again_has_two_ids_and_one_path() {
    let scratch = Scratch::new("again");
    let old = scratch.make("cg/job");
    let mut paths = scratch.resolver();
    assert!(paths.name(old).is_some_and(|name| !name.is_deleted));
    // The file system may hand the inode number out again at once; another directory takes it first.
    fs::rename(scratch.0.join("cg/job"), scratch.0.join("kept")).expect("same file system");
    let new = scratch.make("cg/job");
    assert_ne!(old, new);
    paths.begin_tick();
    assert_eq!(
        paths.name(new).map(|name| (&*name.raw, name.is_deleted)),
        Some((&b"/job"[..], false))
    );
    assert_eq!(
        paths.name(old).map(|name| (&*name.raw, name.is_deleted)),
        Some((&b"/job"[..], true))
    );
}

#[test]
fn filters_take_absolute_and_relative_paths() {
    let scratch = Scratch::new("filter");
    let id = scratch.make("cg/a/b");
    scratch.write("cg/a/tasks", "");
    let paths = scratch.resolver();
    for path in ["/cg/a/b", "/a/b", "a/b", "a/b/"] {
        assert_eq!(paths.resolve_filter(Path::new(path)).expect(path), id);
    }
    let text = |path: &str| {
        paths
            .resolve_filter(Path::new(path))
            .expect_err(path)
            .to_string()
    };
    assert!(text("a/\x1bc").contains("\"a/\u{FFFD}c\" does not exist"));
    assert!(text("a/../b").contains("\"..\""));
    assert!(text("a/tasks").contains("is a file"));
    assert!(text("a/tasks/x").contains("cannot be read"));
    scratch.write("cg/a/cgroup.controllers", "cpu memory pids\n");
    scratch.write("cg/a/b/cgroup.controllers", "cpu memory.x\n");
    assert!(paths.resolve_filter(Path::new("a")).is_ok());
    assert!(text("a/b").contains("no memory controller"));
}
