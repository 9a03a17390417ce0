//! Reads `/proc/self/mountinfo`.

use std::io;
use std::path::Path;

use super::file::read_bytes;

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Directory of the file system that is mounted; not `/` for a bind mount or inside a container.
    pub root: Vec<u8>,
    /// Where it is mounted.
    pub point: Vec<u8>,
    /// File system type.
    pub fs_type: String,
    /// Options of the file system; for cgroup v1 they name the controllers.
    pub super_options: String,
}

/// Reads `/proc/self/mountinfo` below `root`.
///
/// # Errors
/// The error of reading the file.
pub fn read_mounts(root: &Path) -> io::Result<Vec<Mount>> {
    Ok(parse_mounts(&read_bytes(root, "/proc/self/mountinfo")?))
}

/// Parses mountinfo (proc_pid_mountinfo(5)); malformed lines are skipped.
#[must_use]
pub fn parse_mounts(mountinfo: &[u8]) -> Vec<Mount> {
    mountinfo
        .split(|&byte| byte == b'\n')
        .filter_map(parse_mount)
        .collect()
}

fn parse_mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ');
    let root = unescape(fields.nth(3)?);
    let point = unescape(fields.next()?);
    // Optional fields end with a lone hyphen.
    fields.by_ref().find(|field| *field == b"-")?;
    let fs_type = String::from_utf8_lossy(fields.next()?).into_owned();
    let super_options = String::from_utf8_lossy(fields.nth(1)?).into_owned();
    Some(Mount {
        root,
        point,
        fs_type,
        super_options,
    })
}

/// Undoes the kernel's octal escapes of space, tab, newline and backslash.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'\\'
            && let [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] = tail
        {
            out.push(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'));
            rest = tail;
        } else {
            out.push(byte);
            rest = tail;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mountinfo_lines() {
        let plain = parse_mounts(
            b"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:4 master:1 - cgroup cgroup rw,memory\n",
        );
        assert_eq!(
            (plain[0].fs_type.as_str(), plain[0].super_options.as_str()),
            ("cgroup", "rw,memory")
        );
        let odd = parse_mounts(
            b"1 2 0:3 /a\\040b /mnt\\134x rw - ext4 /dev/x rw\nshort\n1 2 0:3 / /x rw shared:1\n",
        );
        assert_eq!(odd.len(), 1);
        assert_eq!(
            (odd[0].root.as_slice(), odd[0].point.as_slice()),
            (&b"/a b"[..], &b"/mnt\\x"[..])
        );
    }

    proptest! {
        #[test]
        fn any_mountinfo_is_survived(bytes in proptest::collection::vec(prop::sample::select(b"a/ -\\017\n,".to_vec()), 0..80)) {
            drop(parse_mounts(&bytes));
        }
    }
}
