//! One guest from boot to power-off, watched.
//!
//! The kernel's console goes to a file and what runs in the guest to a port of its own, so that neither cuts into a
//! line of the other.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::console::{tail, trouble};
use super::image::END;
use super::kernel::Kernel;
use crate::proc;

/// Time between two looks at the console.
const LOOK: Duration = Duration::from_millis(500);

/// How the emulator runs the guest's CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Threads {
    /// All on one thread in turn: slow, and safe when probes come and go under load
    Single,
    /// One thread each: real contention, for probes that are there before the load
    ///
    /// Code patched under load crashes a guest of this mode ("Oops: int3" in a patched function): the emulator's fault.
    Multi,
}

impl Threads {
    fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Multi => "multi",
        }
    }
}

/// A guest to be run.
pub(super) struct Guest<'a> {
    pub(super) kernel: &'a Kernel,
    /// Names its files below `directory`.
    pub(super) name: String,
    pub(super) directory: &'a Path,
    pub(super) archive: &'a [u8],
    pub(super) threads: Threads,
    /// Longest time without a line from what runs in it.
    pub(super) silence: Duration,
    /// Longest time from boot to power-off.
    pub(super) limit: Duration,
}

impl Guest<'_> {
    fn file(&self, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", self.name))
    }

    /// QEMU with what every guest has; the second serial port is its own input and output.
    fn emulator(&self) -> Result<Command> {
        fs::create_dir_all(self.directory)
            .with_context(|| format!("making \"{}\"", self.directory.display()))?;
        let archive = self.file("initramfs");
        fs::write(&archive, self.archive)
            .with_context(|| format!("writing \"{}\"", archive.display()))?;
        // What an earlier run of the name left would be read as this one's.
        drop(fs::remove_file(self.file("console")));
        // An emulator does not outlive the one who watches it, whatever ends that one.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "qemu-system-x86_64"])
            .arg("-accel")
            .arg(format!("tcg,thread={}", self.threads.name()))
            // With the hypervisor bit a guest has test-and-set spinlocks, which show no contention.
            .args(["-cpu", "max,-hypervisor", "-smp", "4", "-m", "2048"])
            .arg("-kernel")
            .arg(self.kernel.image())
            .arg("-initrd")
            .arg(&archive)
            .arg("-append")
            .arg(kernel_line())
            .args(["-nodefaults", "-display", "none", "-no-reboot"])
            .arg("-serial")
            .arg(format!("file:{}", self.file("console").display()))
            // Keys that interrupt are the guest's.
            .args(["-chardev", "stdio,id=run,signal=off", "-serial"])
            .arg("chardev:run");
        Ok(command)
    }

    /// Leaves the second port to this terminal until the guest ends.
    pub(super) fn attend(&self) -> Result<()> {
        proc::run(&mut self.emulator()?)?;
        self.demand_quiet_console()
    }

    /// Runs it to its end, hands each line to `show`, and returns the exit status of what ran.
    ///
    /// # Errors
    /// A mark on the console, a hang, or an end without a status; with the lines of the console that tell.
    pub(super) fn run(&self, show: &mut dyn FnMut(&str)) -> Result<u8> {
        let mut command = self.emulator()?;
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("starting {}", proc::name(&command)))?;
        let watched = self.watch(&mut child, show);
        // It has ended by itself, or it is to end now; neither call then fails in a way that matters.
        drop(child.kill());
        drop(child.wait());
        drop(fs::remove_file(self.file("initramfs")));
        watched
    }

    fn watch(&self, child: &mut Child, show: &mut dyn FnMut(&str)) -> Result<u8> {
        let output = child.stdout.take().context("QEMU has no output")?;
        let (sender, lines) = mpsc::channel();
        // Ends with QEMU's output.
        thread::spawn(move || relay(output, &sender));
        let start = Instant::now();
        let (mut heard, mut looked) = (start, start);
        let mut status = None;
        loop {
            match lines.recv_timeout(LOOK) {
                Ok(line) => {
                    heard = Instant::now();
                    match line.split_once(END) {
                        None => show(&line),
                        Some((rest, number)) => {
                            if !rest.is_empty() {
                                show(rest);
                            }
                            status = number.trim().parse().ok();
                        }
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if looked.elapsed() < LOOK {
                continue;
            }
            looked = Instant::now();
            if trouble(&self.console()?).is_some() {
                // The rest of the message is on its way.
                thread::sleep(Duration::from_secs(10));
                break;
            }
            if heard.elapsed() > self.silence {
                bail!(
                    "the guest hangs: nothing heard for {} s; its console ends with\n{}",
                    self.silence.as_secs(),
                    tail(&self.console()?)
                );
            }
            if start.elapsed() > self.limit {
                bail!(
                    "the guest is not done after {} s; its console ends with\n{}",
                    self.limit.as_secs(),
                    tail(&self.console()?)
                );
            }
        }
        self.demand_quiet_console()?;
        status.with_context(|| {
            format!(
                "the guest ended without a result; its console ends with\n{}",
                self.console().map(|text| tail(&text)).unwrap_or_default()
            )
        })
    }

    fn demand_quiet_console(&self) -> Result<()> {
        match trouble(&self.console()?) {
            Some(excerpt) => bail!("the guest's kernel complains:\n{excerpt}"),
            None => Ok(()),
        }
    }

    fn console(&self) -> Result<String> {
        let path = self.file("console");
        let mut bytes = Vec::new();
        // QEMU makes the file at its start.
        if let Ok(mut file) = File::open(&path) {
            file.read_to_end(&mut bytes)
                .with_context(|| format!("reading \"{}\"", path.display()))?;
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The kernel's command line.
///
/// Level 5 prints warnings of the kernel, and a panic reboots, which ends QEMU. The rest is for a machine that has no
/// time for the emulator: there 6.1 panics early ("IO-APIC + timer doesn't work"), the frequency of the time-stamp
/// counter, which is the machine's own, comes out wrong (67 MHz for 2,300, so that clocks ran 34 times too fast and
/// stalls were seen), or the counter is given up for hpet, which leaves the emulated CPU for each reading.
fn kernel_line() -> String {
    // A CPU of the emulator may stand still for half a minute on a busy machine; a deadlock stands for ever, and is a
    // soft lockup after twice 60 s, well before the guest is given up as silent.
    let mut line =
        "console=ttyS0 loglevel=5 panic=-1 no_timer_check watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=120"
            .to_owned();
    if let Some(khz) = tsc_khz() {
        line += &format!(" tsc=reliable tsc_early_khz={khz}");
    }
    line
}

/// Frequency of the time-stamp counter, kHz, over a tenth of a second.
#[cfg(target_arch = "x86_64")]
fn tsc_khz() -> Option<u64> {
    // A reading that was interrupted belongs to no instant.
    let read = || {
        (0..1000).find_map(|_| {
            let before = Instant::now();
            // SAFETY: every x86-64 CPU has the instruction, and user space may use it unless a process forbids itself.
            let ticks = unsafe { std::arch::x86_64::_rdtsc() };
            (before.elapsed() < Duration::from_micros(10)).then_some((before, ticks))
        })
    };
    let (start, first) = read()?;
    thread::sleep(Duration::from_millis(100));
    let (end, last) = read()?;
    let micros = u64::try_from((end - start).as_micros()).ok()?;
    Some(last.checked_sub(first)? * 1000 / micros)
}

/// A guest of another architecture finds it out by itself.
#[cfg(not(target_arch = "x86_64"))]
fn tsc_khz() -> Option<u64> {
    None
}

/// Sends line after line until the pipe closes, and the name of a test as soon as it stands.
fn relay(mut pipe: impl Read, lines: &mpsc::Sender<String>) {
    let mut chunk = [0; 4096];
    let mut line = Vec::new();
    loop {
        let n = match pipe.read(&mut chunk) {
            Ok(n) if n > 0 => n,
            _ => break,
        };
        for &byte in &chunk[..n] {
            if byte != b'\n' {
                line.push(byte);
                let is_name = line.starts_with(b"test ") && line.ends_with(b" ... ");
                if !is_name {
                    continue;
                }
            }
            if lines.send(text(&line)).is_err() {
                return;
            }
            line.clear();
        }
    }
    if !line.is_empty() {
        drop(lines.send(text(&line)));
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line)
        .trim_end_matches('\r')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_has_one_frequency() {
        let (Some(a), Some(b)) = (tsc_khz(), tsc_khz()) else {
            return;
        };
        assert!(a.abs_diff(b) < a / 100, "{a} and {b} kHz");
    }

    #[test]
    fn the_name_of_a_test_is_sent_before_its_line_ends() {
        let (sender, lines) = mpsc::channel();
        relay(
            &b"running 1 test\r\ntest a ...   5 seen\nok\nrest"[..],
            &sender,
        );
        drop(sender);
        let lines: Vec<String> = lines.iter().collect();
        assert_eq!(
            lines,
            ["running 1 test", "test a ... ", "  5 seen", "ok", "rest"]
        );
    }
}
