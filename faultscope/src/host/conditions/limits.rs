//! Limits of the cgroup we, and so a command we start, are in.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::host::Fact;
use crate::host::file::{read_text, under};
use crate::host::mount::{Mount, read_mounts};
use crate::name::scrub;

/// Where a controller's cgroup is.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// Directory of the hierarchy, below the file-system root.
    mount: PathBuf,
    /// Our directories from the innermost outwards, the hierarchy's own last.
    own: Vec<PathBuf>,
    is_v2: bool,
}

/// Reads the limits; the tightest of our cgroup and those above it.
pub(super) fn read(root: &Path) -> Vec<(&'static str, Fact<String>)> {
    let mounts = read_mounts(root).unwrap_or_default();
    let membership = read_text(root, "/proc/self/cgroup").unwrap_or_default();
    let place = |controller: &str| find(root, controller, &membership, &mounts);
    let number = |file: &Path| -> Option<u64> {
        let text = std::fs::read_to_string(file).ok()?;
        // cgroup v1 says "no limit" with the largest number of whole pages.
        text.trim().parse().ok().filter(|n| *n < 1 << 62)
    };
    let tightest = |controller: &str, v1: &str, v2: &str| match place(controller) {
        None => no_cgroup(controller),
        Some(place) => {
            let file = if place.is_v2 { v2 } else { v1 };
            let limit = place.own.iter().filter_map(|d| number(&d.join(file))).min();
            Fact::Yes(limit.map_or_else(|| "none".into(), |n| n.to_string()))
        }
    };
    vec![
        ("cgroup", cgroup(&membership)),
        (
            "cgroup_memory_max",
            tightest("memory", "memory.limit_in_bytes", "memory.max"),
        ),
        (
            "cgroup_memory_high",
            tightest("memory", "memory.soft_limit_in_bytes", "memory.high"),
        ),
        (
            "cgroup_swap_max",
            tightest("memory", "memory.memsw.limit_in_bytes", "memory.swap.max"),
        ),
        (
            "cgroup_cpu_max",
            place("cpu").map_or_else(|| no_cgroup("cpu"), |p| Fact::Yes(cpu(&p))),
        ),
        (
            "cgroup_cpuset",
            place("cpuset").map_or_else(|| no_cgroup("cpuset"), |p| cpuset(&p)),
        ),
    ]
}

fn no_cgroup(controller: &str) -> Fact<String> {
    Fact::no(format!(
        "no cgroup hierarchy with the {controller} controller is mounted"
    ))
}

/// Our cgroup of the memory controller, or of the unified hierarchy.
fn cgroup(membership: &str) -> Fact<String> {
    let path = path_of("memory", membership).or_else(|| path_of("", membership));
    path.map_or_else(
        || Fact::unknown("\"/proc/self/cgroup\" names none"),
        |path| Fact::Yes(scrub(path.as_bytes())),
    )
}

/// The path in a line `hierarchy:controllers:path` with this controller.
fn path_of<'a>(controller: &str, membership: &'a str) -> Option<&'a str> {
    membership.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers
            .split(',')
            .any(|c| c == controller)
            .then_some(path)
    })
}

fn find(root: &Path, controller: &str, membership: &str, mounts: &[Mount]) -> Option<Place> {
    let v1 = mounts.iter().find(|mount| {
        mount.fs_type == "cgroup" && mount.super_options.split(',').any(|o| o == controller)
    });
    let (mount, path, is_v2) = match v1 {
        Some(mount) => (mount, path_of(controller, membership)?, false),
        None => {
            let mount = mounts.iter().find(|mount| mount.fs_type == "cgroup2")?;
            (mount, path_of("", membership)?, true)
        }
    };
    // Inside a container the mount shows a part of the hierarchy only.
    let shown = path
        .as_bytes()
        .strip_prefix(mount.root.as_slice())
        .unwrap_or(path.as_bytes());
    let shown = shown.strip_prefix(b"/").unwrap_or(shown);
    let point = under(root, &String::from_utf8_lossy(&mount.point));
    let innermost = point.join(OsStr::from_bytes(shown));
    let own = innermost
        .ancestors()
        .take_while(|d| d.starts_with(&point))
        .map(Path::to_owned)
        .collect();
    let place = Place {
        mount: point,
        own,
        is_v2,
    };
    let has_controller = |text: String| text.split_ascii_whitespace().any(|c| c == controller);
    let is_there = !is_v2
        || std::fs::read_to_string(place.mount.join("cgroup.controllers"))
            .is_ok_and(has_controller);
    is_there.then_some(place)
}

/// CPUs' worth of time allowed: the tightest quota over its period.
fn cpu(place: &Place) -> String {
    let quota = |directory: &PathBuf| -> Option<f64> {
        let text = |file: &str| std::fs::read_to_string(directory.join(file)).ok();
        let (quota, period) = if place.is_v2 {
            let text = text("cpu.max")?;
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?)
        } else {
            let number = |file| text(file)?.trim().parse::<f64>().ok();
            (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
        };
        (quota > 0.0 && period > 0.0).then_some(quota / period)
    };
    let tightest = place.own.iter().filter_map(quota).min_by(f64::total_cmp);
    tightest.map_or_else(|| "none".into(), |cpus| format!("{cpus:.2} CPUs"))
}

fn cpuset(place: &Place) -> Fact<String> {
    let files = [
        "cpuset.cpus.effective",
        "cpuset.effective_cpus",
        "cpuset.cpus",
    ];
    let text = place.own.iter().find_map(|directory| {
        files.iter().find_map(|file| {
            let text = std::fs::read_to_string(directory.join(file)).ok()?;
            let text = text.trim();
            (!text.is_empty()).then(|| scrub(text.as_bytes()))
        })
    });
    text.map_or_else(|| Fact::unknown("no cpuset file can be read"), Fact::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controllers_path_is_that_of_its_line() {
        let both = "4:memory:/a/b\n1:cpu,cpuacct:/c\n0::/u\n";
        assert_eq!(path_of("memory", both), Some("/a/b"));
        assert_eq!(path_of("cpu", both), Some("/c"));
        assert_eq!(path_of("", both), Some("/u"));
        assert_eq!(path_of("io", both), None);
    }

    #[test]
    fn the_tightest_limit_on_the_way_up_counts() {
        let root = std::env::temp_dir().join(format!("faultscope-limits-{}", std::process::id()));
        let group = root.join("cg/a/b");
        std::fs::create_dir_all(&group).expect("a directory");
        std::fs::create_dir_all(root.join("proc/self")).expect("a directory");
        let write = |file: &str, text: &str| std::fs::write(root.join(file), text).expect("a file");
        write(
            "proc/self/mountinfo",
            "30 1 0:26 / /cg rw - cgroup2 cgroup2 rw\n",
        );
        write("proc/self/cgroup", "0::/a/b\n");
        write("cg/cgroup.controllers", "cpu memory\n");
        write("cg/a/memory.max", "1000\n");
        write("cg/a/b/memory.max", "max\n");
        write("cg/a/b/cpu.max", "150000 100000\n");
        write("cg/a/cpu.max", "max 100000\n");
        let all = read(&root);
        let value = |id: &str| {
            all.iter()
                .find(|(known, _)| *known == id)
                .map(|(_, v)| v.clone())
        };
        assert_eq!(value("cgroup"), Some(Fact::Yes("/a/b".into())));
        assert_eq!(value("cgroup_memory_max"), Some(Fact::Yes("1000".into())));
        assert_eq!(value("cgroup_memory_high"), Some(Fact::Yes("none".into())));
        assert_eq!(value("cgroup_cpu_max"), Some(Fact::Yes("1.50 CPUs".into())));
        assert_eq!(value("cgroup_cpuset").map(|v| v.state()), Some("no"));
        std::fs::remove_dir_all(root).expect("just made");
    }
}
