//! Reads the machine's own counters each tick: vmstat, CPU time, pressure, memory, huge pages, self.
//!
//! Everything is cumulative as the kernel has it; rates belong to the model. [`SystemReader`] keeps files
//! open and its buffer, because a tick must stay far below 0.5 % of one CPU. Absent is `None`, never 0. The
//! parsers are in `system_text.rs`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use super::file::under;
use super::kernel::{LRU_GEN_FILE, list_thp_sizes, parse_lru_gen};
use super::process::parse_stat;
pub use super::system_text::{
    CpuTimes, Pressure, PressureLine, VmStat, is_selected_vmstat, parse_cpu_times, parse_meminfo,
    parse_pressure, parse_vm_hwm,
};

/// Counters of `hugepages-*kB/stats` that are read; the kernel has 16, of which these move in practice.
pub const MTHP_COUNTERS: [&str; 6] = [
    "anon_fault_alloc",
    "anon_fault_fallback",
    "nr_anon",
    "split",
    "swpin",
    "swpout",
];

/// One folio size's counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MthpStats {
    /// Folio size in KiB.
    pub size_kib: u64,
    /// Values in the order of [`MTHP_COUNTERS`]; `None` where the kernel lacks one.
    pub counters: [Option<u64>; MTHP_COUNTERS.len()],
}

impl MthpStats {
    /// Returns a counter by its name in [`MTHP_COUNTERS`].
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        let index = MTHP_COUNTERS.iter().position(|known| *known == name)?;
        self.counters[index]
    }
}

/// What this process itself uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelfUse {
    /// CPU time in user mode, in clock ticks (100 per second).
    pub utime_ticks: u64,
    /// CPU time in the kernel, in clock ticks.
    pub stime_ticks: u64,
    /// Resident memory in bytes.
    pub rss_bytes: Option<u64>,
    /// Highest resident memory so far, in bytes.
    pub peak_rss_bytes: Option<u64>,
}

/// Everything [`SystemReader::read`] reads in one tick.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemSample {
    /// `/proc/vmstat`, selected counters.
    pub vmstat: Option<VmStat>,
    /// `/proc/stat`, one entry for each online CPU, ascending.
    pub cpus: Option<Vec<CpuTimes>>,
    /// Context switches since boot.
    pub context_switches_total: Option<u64>,
    /// `/proc/pressure/memory`.
    pub memory_pressure: Option<Pressure>,
    /// `/proc/pressure/cpu`.
    pub cpu_pressure: Option<Pressure>,
    /// `/proc/pressure/io`.
    pub io_pressure: Option<Pressure>,
    /// `/proc/meminfo`, selected keys with bytes.
    pub meminfo_bytes: Option<Vec<(&'static str, u64)>>,
    /// Bits of `/sys/kernel/mm/lru_gen/enabled`, 0 switched off; absent where
    /// multi-generational LRU is not built.
    pub lru_gen: Option<u32>,
    /// Counters of each folio size, smallest first; empty before Linux 6.8.
    pub mthp: Vec<MthpStats>,
    /// This process.
    pub own: Option<SelfUse>,
}

impl SystemSample {
    /// Returns bytes of a selected `/proc/meminfo` key.
    #[must_use]
    pub fn meminfo(&self, key: &str) -> Option<u64> {
        self.meminfo_bytes
            .as_ref()?
            .iter()
            .find(|(known, _)| *known == key)
            .map(|&(_, bytes)| bytes)
    }
}

#[derive(Debug)]
struct MthpFiles {
    size_kib: u64,
    files: [Option<File>; MTHP_COUNTERS.len()],
}

/// Keeps the files open from one tick to the next.
///
/// A file that could not be opened at start stays absent for the reader's life.
#[derive(Debug)]
pub struct SystemReader {
    buffer: Vec<u8>,
    vmstat: Option<File>,
    stat: Option<File>,
    pressure: [Option<File>; 3],
    meminfo: Option<File>,
    lru_gen: Option<File>,
    mthp: Vec<MthpFiles>,
    own_stat: Option<File>,
    own_statm: Option<File>,
    own_status: Option<File>,
    page_bytes: u64,
    vmstat_names: Arc<[Box<str>]>,
}

impl SystemReader {
    /// Opens the files below `root`.
    #[must_use]
    pub fn open(root: &Path) -> Self {
        let open = |file: &str| File::open(under(root, file)).ok();
        let mthp = list_thp_sizes(root)
            .into_iter()
            .map(|(size_kib, path)| MthpFiles {
                size_kib,
                files: MTHP_COUNTERS.map(|counter| open(&format!("{path}/stats/{counter}"))),
            })
            .filter(|size| size.files.iter().any(Option::is_some))
            .collect();
        Self {
            buffer: Vec::with_capacity(16 << 10),
            vmstat: open("/proc/vmstat"),
            stat: open("/proc/stat"),
            pressure: ["memory", "cpu", "io"]
                .map(|resource| open(&format!("/proc/pressure/{resource}"))),
            meminfo: open("/proc/meminfo"),
            lru_gen: open(LRU_GEN_FILE),
            mthp,
            own_stat: open("/proc/self/stat"),
            own_statm: open("/proc/self/statm"),
            own_status: open("/proc/self/status"),
            page_bytes: rustix::param::page_size() as u64,
            vmstat_names: Arc::from([]),
        }
    }

    /// Reads everything once.
    pub fn read(&mut self) -> SystemSample {
        let buffer = &mut self.buffer;
        let vmstat =
            text(self.vmstat.as_ref(), buffer).map(|text| VmStat::parse(text, &self.vmstat_names));
        if let Some(vmstat) = &vmstat {
            self.vmstat_names = Arc::clone(&vmstat.names);
        }
        let stat = text(self.stat.as_ref(), buffer).map(parse_cpu_times);
        let [memory_pressure, cpu_pressure, io_pressure] = [0, 1, 2]
            .map(|index: usize| parse_pressure(text(self.pressure[index].as_ref(), buffer)?));
        let meminfo_bytes = text(self.meminfo.as_ref(), buffer).map(parse_meminfo);
        let lru_gen = text(self.lru_gen.as_ref(), buffer).and_then(parse_lru_gen);
        let mthp = self
            .mthp
            .iter()
            .map(|size| MthpStats {
                size_kib: size.size_kib,
                counters: size
                    .files
                    .each_ref()
                    .map(|file| text(file.as_ref(), buffer)?.trim().parse().ok()),
            })
            .collect();
        let own = bytes(self.own_stat.as_ref(), buffer)
            .and_then(parse_stat)
            .map(|stat| SelfUse {
                utime_ticks: stat.utime_ticks,
                stime_ticks: stat.stime_ticks,
                rss_bytes: text(self.own_statm.as_ref(), buffer)
                    .and_then(|text| text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok())
                    .and_then(|pages| pages.checked_mul(self.page_bytes)),
                peak_rss_bytes: text(self.own_status.as_ref(), buffer).and_then(parse_vm_hwm),
            });
        let (cpus, context_switches_total) =
            stat.map_or((None, None), |(cpus, switches)| (Some(cpus), switches));
        SystemSample {
            vmstat,
            cpus,
            context_switches_total,
            memory_pressure,
            cpu_pressure,
            io_pressure,
            meminfo_bytes,
            lru_gen,
            mthp,
            own,
        }
    }
}

/// Fills `buffer` with the whole file; `None` if it is absent or a read fails.
fn bytes<'a>(file: Option<&File>, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let file = file?;
    if buffer.is_empty() {
        buffer.resize(buffer.capacity().max(4 << 10), 0);
    }
    let mut length = 0;
    loop {
        match file.read_at(&mut buffer[length..], length as u64) {
            Ok(0) => return Some(&buffer[..length]),
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
        if length == buffer.len() {
            buffer.resize(length * 2, 0);
        }
    }
}

/// Like [`bytes`]; a file that is no UTF-8 counts as absent.
fn text<'a>(file: Option<&File>, buffer: &'a mut Vec<u8>) -> Option<&'a str> {
    std::str::from_utf8(bytes(file, buffer)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_kernel_gives_every_basic_part() {
        let mut reader = SystemReader::open(Path::new("/"));
        let first = reader.read();
        let second = reader.read();
        let faults = |sample: &SystemSample| {
            sample
                .vmstat
                .as_ref()
                .and_then(|vmstat| vmstat.get("pgfault"))
        };
        assert!(
            faults(&second).expect("every kernel counts faults")
                >= faults(&first).expect("as above")
        );
        let cpus = second.cpus.as_ref().expect("every kernel has /proc/stat");
        assert!(!cpus.is_empty() && cpus.is_sorted_by_key(|times| times.cpu));
        assert!(second.context_switches_total >= first.context_switches_total);
        assert!(second.meminfo("MemTotal").expect("always there") > 1 << 20);
        let own = second.own.expect("proc is mounted");
        assert!(own.peak_rss_bytes >= Some(1 << 16) && own.rss_bytes >= Some(1 << 16));
        let names = |sample: &SystemSample| {
            Arc::as_ptr(&sample.vmstat.as_ref().expect("read").names).cast::<u8>()
        };
        assert_eq!(
            names(&first),
            names(&second),
            "names are shared, not rebuilt"
        );
    }

    #[test]
    fn no_proc_is_absent_not_zero() {
        let sample = SystemReader::open(Path::new("/nonexistent")).read();
        assert_eq!(sample.vmstat, None);
        assert_eq!(sample.cpus, None);
        assert_eq!(sample.own, None);
        assert_eq!(sample.lru_gen, None);
        assert!(sample.mthp.is_empty());
        assert_eq!(sample.meminfo("MemTotal"), None);
    }

    #[test]
    fn a_file_longer_than_the_buffer_is_read_whole() {
        let path = std::env::temp_dir().join(format!("faultscope-long-{}", std::process::id()));
        let content: String = (0..40_000u32)
            .map(|index| char::from(b'a' + (index % 26) as u8))
            .collect();
        std::fs::write(&path, &content).expect("temporary file");
        let file = File::open(&path).expect("just written");
        let mut buffer = Vec::with_capacity(100);
        for _ in 0..2 {
            assert_eq!(text(Some(&file), &mut buffer), Some(content.as_str()));
        }
        std::fs::remove_file(path).expect("just written");
    }
}
