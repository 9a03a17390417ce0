//! Reads `/proc/PID`: names, times, state.
//!
//! Names are scrubbed here; a process can put any bytes into `comm` and `cmdline`. Not here: memory maps
//! and anything else that takes a lock of the process looked at.

use std::io;
use std::path::Path;

use super::Fact;
use super::file::{read_bytes, read_head, under};
use crate::name::{scrub, scrub_capped};

/// Characters of a command line that are kept.
pub const MAX_CMDLINE_CHARS: usize = 4096;

/// Inode number of the initial pid namespace, PROC_PID_INIT_INO of `include/uapi/linux/nsfs.h`.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// What `/proc/PID/stat` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessStat {
    /// Process id (of the thread, if a thread's file was read).
    pub pid: u32,
    /// Name, scrubbed; at most 15 bytes for user processes, longer for kernel workers.
    pub comm: String,
    /// State letter of proc_pid_stat(5): `R`, `S`, `D`, `Z`, ...
    pub state: char,
    /// Parent's process id, 0 for none.
    pub ppid: u32,
    /// Minor faults of all threads, dead ones included.
    pub minor_faults_total: u64,
    /// Major faults of all threads, dead ones included.
    pub major_faults_total: u64,
    /// CPU time in user mode, in clock ticks (100 per second on Linux).
    pub utime_ticks: u64,
    /// CPU time in the kernel, in clock ticks.
    pub stime_ticks: u64,
    /// Threads.
    pub threads: u64,
    /// Start after boot, in clock ticks; with the pid it identifies the process.
    pub start_ticks: u64,
    /// Resident set in pages, not exact (`mm/` batches the counters).
    pub rss_pages: u64,
}

/// Parses `/proc/PID/stat`.
///
/// The name stands in parentheses, is not escaped and may hold parentheses, spaces and newlines itself; it
/// ends at the last closing one. `None` if a field is missing or no number.
#[must_use]
pub fn parse_stat(bytes: &[u8]) -> Option<ProcessStat> {
    let open = bytes.iter().position(|&byte| byte == b'(')?;
    let close = bytes.iter().rposition(|&byte| byte == b')')?;
    let comm = bytes.get(open + 1..close)?;
    let pid = number(bytes.get(..open)?.trim_ascii())?;
    let tail = std::str::from_utf8(bytes.get(close + 1..)?).ok()?;
    // Field numbers of proc_pid_stat(5) start at 1; the tail begins with field 3.
    let mut fields = tail.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let ppid = fields.next()?.parse().ok()?; // 4
    let minor_faults_total = fields.nth(5)?.parse().ok()?; // 10
    let major_faults_total = fields.nth(1)?.parse().ok()?; // 12
    let utime_ticks = fields.nth(1)?.parse().ok()?; // 14
    let stime_ticks = fields.next()?.parse().ok()?; // 15
    let threads = fields.nth(4)?.parse().ok()?; // 20
    let start_ticks = fields.nth(1)?.parse().ok()?; // 22
    let rss_pages = fields.nth(1)?.parse().ok()?; // 24
    Some(ProcessStat {
        pid,
        comm: scrub(comm),
        state,
        ppid,
        minor_faults_total,
        major_faults_total,
        utime_ticks,
        stime_ticks,
        threads,
        start_ticks,
        rss_pages,
    })
}

/// Joins the NUL-separated words of `/proc/PID/cmdline` by spaces, scrubbed and capped.
///
/// Empty for kernel threads and zombies.
#[must_use]
pub fn parse_cmdline(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    let spaced: Vec<u8> = bytes[..end]
        .iter()
        .map(|&byte| if byte == 0 { b' ' } else { byte })
        .collect();
    scrub_capped(&spaced, MAX_CMDLINE_CHARS)
}

/// Reads `/proc/PID/stat` below `root`.
///
/// # Errors
/// `NotFound` if the process is gone, `InvalidData` if the file is malformed.
pub fn read_stat(root: &Path, pid: u32) -> io::Result<ProcessStat> {
    let bytes = read_bytes(root, &format!("/proc/{pid}/stat"))?;
    parse_stat(&bytes).ok_or_else(|| {
        let text = format!(
            "\"/proc/{pid}/stat\" holds \"{}\"",
            scrub_capped(&bytes, 80)
        );
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

/// Reads `/proc/PID/comm` below `root`, scrubbed.
///
/// # Errors
/// `NotFound` if the process is gone.
pub fn read_comm(root: &Path, pid: u32) -> io::Result<String> {
    let bytes = read_bytes(root, &format!("/proc/{pid}/comm"))?;
    Ok(scrub(bytes.strip_suffix(b"\n").unwrap_or(&bytes)))
}

/// Reads `/proc/PID/cmdline` below `root`, as [`parse_cmdline`] makes it.
///
/// # Errors
/// `NotFound` if the process is gone.
pub fn read_cmdline(root: &Path, pid: u32) -> io::Result<String> {
    let limit = 4 * MAX_CMDLINE_CHARS as u64;
    Ok(parse_cmdline(&read_head(
        root,
        &format!("/proc/{pid}/cmdline"),
        limit,
    )?))
}

/// Lists the process ids below `root`, ascending.
///
/// # Errors
/// The error of reading `/proc`.
pub fn list_pids(root: &Path) -> io::Result<Vec<u32>> {
    let mut pids: Vec<u32> = std::fs::read_dir(under(root, "/proc"))?
        .flatten()
        .filter_map(|entry| number(entry.file_name().as_encoded_bytes()))
        .collect();
    pids.sort_unstable();
    Ok(pids)
}

/// Returns the id of this process as the mounted procfs counts.
///
/// It equals the id in BPF programs only if [`initial_pid_namespace`] is yes.
#[must_use]
pub fn own_tgid(root: &Path) -> Option<u32> {
    number(
        std::fs::read_link(under(root, "/proc/self"))
            .ok()?
            .as_os_str()
            .as_encoded_bytes(),
    )
}

/// Tells whether this process is in the initial pid namespace, the one whose ids BPF programs see.
#[must_use]
pub fn initial_pid_namespace(root: &Path) -> Fact<()> {
    match std::fs::read_link(under(root, "/proc/self/ns/pid")) {
        Ok(link) if link.as_os_str() == INITIAL_PID_NAMESPACE => Fact::Yes(()),
        Ok(_) => Fact::no(
            "this is a container's pid namespace: programs see the host's process ids, so \"--pid\" and names from \
             \"/proc\" do not match; run with the host's pid namespace",
        ),
        Err(error) => Fact::unknown(format!("\"/proc/self/ns/pid\" cannot be read: {error}")),
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    // `parse` alone would take a leading plus sign.
    if !bytes.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TAIL: &[u8] = b" S 7 1 1 0 -1 4194560 29105 2537563 3 400 55 229 10991 1504 20 0 14 0 24 43712512 2910 18446744073709551615 1 1\n";

    fn stat(comm: &[u8]) -> Vec<u8> {
        [b"4242 (", comm, b")", TAIL].concat()
    }

    #[test]
    fn fields_are_the_right_ones() {
        let parsed = parse_stat(&stat(b"process_api")).expect("well formed");
        assert_eq!(
            parsed,
            ProcessStat {
                pid: 4242,
                comm: "process_api".into(),
                state: 'S',
                ppid: 7,
                minor_faults_total: 29105,
                major_faults_total: 3,
                utime_ticks: 55,
                stime_ticks: 229,
                threads: 14,
                start_ticks: 24,
                rss_pages: 2910,
            }
        );
    }

    #[test]
    fn hostile_names_do_not_shift_fields() {
        for (comm, shown) in [
            (&b"a) R 1 ("[..], "a) R 1 ("),
            (b"((", "(("),
            (b"", ""),
            (b"\x1b]0;x\x07\xff", "\u{FFFD}]0;x\u{FFFD}\u{FFFD}"),
            (b"x\ny", "x\u{FFFD}y"),
        ] {
            let parsed = parse_stat(&stat(comm)).expect("well formed");
            assert_eq!(
                (parsed.comm.as_str(), parsed.start_ticks, parsed.state),
                (shown, 24, 'S')
            );
        }
    }

    #[test]
    fn cut_lines_are_refused() {
        let whole = stat(b"x");
        let fields = whole
            .windows(5)
            .position(|window| window == b" 2910")
            .expect("present");
        assert_eq!(parse_stat(&whole[..fields]), None);
        assert_eq!(parse_stat(b""), None);
        assert_eq!(parse_stat(b")("), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            drop((parse_stat(&bytes), parse_cmdline(&bytes)));
        }

        #[test]
        fn any_name_keeps_the_numbers(comm in proptest::collection::vec(any::<u8>(), 0..16)) {
            let parsed = parse_stat(&stat(&comm)).expect("well formed");
            prop_assert_eq!((parsed.pid, parsed.utime_ticks, parsed.rss_pages), (4242, 55, 2910));
        }
    }

    #[test]
    fn command_lines() {
        assert_eq!(parse_cmdline(b"ls\0-l\0\0\0"), "ls -l");
        assert_eq!(parse_cmdline(b"a\0\0b\0"), "a  b");
        assert_eq!(parse_cmdline(b"\x1b[31mx\0"), "\u{FFFD}[31mx");
        assert_eq!(parse_cmdline(b"\0"), "");
    }

    #[test]
    fn own_process_is_found() {
        let root = Path::new("/");
        let own = own_tgid(root).expect("proc is mounted");
        assert_eq!(own, std::process::id());
        assert!(list_pids(root).expect("proc is mounted").contains(&own));
        let stat = read_stat(root, own).expect("alive");
        assert_eq!(stat.comm, read_comm(root, own).expect("alive"));
        assert!(stat.threads >= 1 && stat.start_ticks > 0);
        assert!(!read_cmdline(root, own).expect("alive").is_empty());
    }
}
