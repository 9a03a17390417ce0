//! Interrupts that `/proc/interrupts` counts.

use std::path::Path;

use super::file::read_text;

/// TLB shootdowns: interrupts by which CPUs were told to flush, of all CPUs since boot.
///
/// `None` where the kernel has no such line: one without SMP. A CPU that flushes its own TLB, or those of others
/// without an interrupt, is not counted (arch/x86/kernel/irq.c, `irq_tlb_count`).
#[must_use]
pub fn tlb_shootdowns(root: &Path) -> Option<u64> {
    parse_tlb_shootdowns(&read_text(root, "/proc/interrupts").ok()?)
}

/// Reads the line `TLB:`, one count for each online CPU.
fn parse_tlb_shootdowns(text: &str) -> Option<u64> {
    let counts = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("TLB:"))?;
    let mut numbers = counts
        .split_ascii_whitespace()
        .map_while(|word| word.parse::<u64>().ok())
        .peekable();
    numbers.peek()?;
    Some(numbers.fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shootdowns_of_all_cpus_are_summed() {
        let text = "            CPU0       CPU1\n  0:         22          0   IO-APIC   2-edge      timer\nCAL:    1 2  Function call interrupts\nTLB:    5229494    1938908   TLB shootdowns\n";
        assert_eq!(parse_tlb_shootdowns(text), Some(7_168_402));
        assert_eq!(parse_tlb_shootdowns("  0: 22 timer\n"), None);
        assert_eq!(parse_tlb_shootdowns("TLB:  TLB shootdowns\n"), None);
    }
}
