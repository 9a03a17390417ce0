//! The kernel's console: lines that say that the guest is broken.

/// What a kernel prints when something is wrong, as the sources of 6.1 and 6.12 spell it.
///
/// A warning has "cut here" above it; the word alone also stands in harmless lines of the boot.
const MARKS: &[&str] = &[
    "Kernel panic",
    "Oops:",
    "BUG:",
    "kernel BUG at",
    "------------[ cut here ]------------",
    "general protection fault",
    "Unable to handle kernel",
    "unable to handle page fault",
    "soft lockup",
    "hard LOCKUP",
    "detected stall",
    "detected expedited stall",
    "blocked for more than",
    "Out of memory: Killed",
    "possible recursive locking",
    "inconsistent lock state",
    "scheduling while atomic",
    "sleeping function called from invalid context",
    "unregister_netdevice: waiting",
    "Kernel stack is corrupted",
    "Rebooting in",
];

/// Lines shown from the first mark on.
const EXCERPT_LINES: usize = 60;

/// The console from its first bad line on; nothing if all is well.
pub(super) fn trouble(console: &str) -> Option<String> {
    let lines: Vec<&str> = console.lines().map(str::trim_end).collect();
    let first = lines
        .iter()
        .position(|line| MARKS.iter().any(|mark| line.contains(mark)))?;
    let excerpt = &lines[first..lines.len().min(first + EXCERPT_LINES)];
    Some(excerpt.join("\n"))
}

/// Whether the trouble is a breakpoint that nobody set: a CPU of the emulator ran code from before it was patched.
///
/// The kernel puts a breakpoint at the place while it patches code (`text_poke_bp`), takes it away once every CPU has
/// been told, and dies of one it meets afterwards. With a thread for each CPU the emulator may run a translation that
/// has it still, where a real CPU may not.
pub(super) fn is_stale_code(trouble: &str) -> bool {
    trouble.contains("int3: 0000 [#1]")
}

/// The last lines of a console, for a guest that stopped without a word.
pub(super) fn tail(console: &str) -> String {
    let lines: Vec<&str> = console.lines().map(str::trim_end).collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breakpoint_that_nobody_set_is_the_emulators() {
        let console = "[  179.5] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI\r\n[  179.5] CPU: 3 UID: 0 PID: 185\r\n";
        assert!(is_stale_code(&trouble(console).expect("a mark")));
        let other = "[    9.1] Oops: Oops: 0002 [#1] PREEMPT SMP NOPTI\r\n";
        assert!(!is_stale_code(&trouble(other).expect("a mark")));
    }

    #[test]
    fn a_lock_up_is_found_and_shown_from_its_first_line() {
        let console = "[    0.1] Spectre V2 : WARNING: Unprivileged eBPF is enabled\r\n\
            [   61.2] watchdog: BUG: soft lockup - CPU#2 stuck for 26s! [kernel:90]\r\n\
            [   61.2] Modules linked in:\r\n";
        let text = trouble(console).expect("a mark");
        assert!(text.starts_with("[   61.2] watchdog: BUG"), "{text}");
        assert!(text.ends_with("Modules linked in:"), "{text}");
    }

    #[test]
    fn stalls_hung_tasks_and_warnings_are_found() {
        for line in [
            "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
            "rcu: INFO: rcu_preempt self-detected stall on CPU",
            "INFO: task kernel:88 blocked for more than 120 seconds.",
            "------------[ cut here ]------------",
            "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b",
        ] {
            assert!(trouble(line).is_some(), "{line}");
        }
    }

    #[test]
    fn a_clean_boot_is_clean() {
        let console = "Linux version 6.12\nSpectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on\n";
        assert_eq!(trouble(console), None);
        assert_eq!(trouble(""), None);
    }

    #[test]
    fn the_tail_is_short() {
        let console = "a\n".repeat(50);
        assert_eq!(tail(&console).lines().count(), 20);
    }
}
