//! Where a kernel function begins and ends.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

/// Addresses of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// First address.
    pub start: u64,
    /// Bytes to the next symbol of the text.
    pub bytes: u64,
}

/// The ranges of some functions, in the order asked for.
///
/// # Errors
/// One clause, if /proc/kallsyms cannot be read, hides its addresses, or lacks one of them.
pub fn ranges<const N: usize>(root: &Path, names: [&str; N]) -> Result<[Range; N], String> {
    let path = root.join("proc/kallsyms");
    let file = File::open(&path).map_err(|e| format!("\"{}\": {e}", path.display()))?;
    let found = parse_ranges(BufReader::with_capacity(1 << 16, file), names)
        .map_err(|e| format!("\"{}\": {e}", path.display()))?;
    let mut all = [Range { start: 0, bytes: 0 }; N];
    for ((range, found), name) in all.iter_mut().zip(found).zip(names) {
        *range = found.ok_or_else(|| {
            format!(
                "\"{}\" does not give the address of \"{name}\"",
                path.display()
            )
        })?;
    }
    Ok(all)
}

/// Lines are `address type name`, followed by a module where it is one's; a
/// function's end is the next greater address of the text.
fn parse_ranges<const N: usize>(
    mut lines: impl BufRead,
    names: [&str; N],
) -> io::Result<[Option<Range>; N]> {
    let mut starts = [None; N];
    let mut text: Vec<u64> = Vec::new();
    let mut line = String::new();
    while {
        line.clear();
        lines.read_line(&mut line)? > 0
    } {
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some("t" | "T"), Some(name)) =
            (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let Ok(address) = u64::from_str_radix(address, 16) else {
            continue;
        };
        if address == 0 {
            continue;
        }
        text.push(address);
        if let Some(at) = names.iter().position(|wanted| *wanted == name) {
            starts[at] = Some(address);
        }
    }
    Ok(starts.map(|start| {
        let start = start?;
        let end = text.iter().copied().filter(|at| *at > start).min()?;
        Some(Range {
            start,
            bytes: end - start,
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T _stext
ffffffff81000c60 T asm_exc_page_fault
ffffffff81000ca0 T asm_exc_int3
ffffffff82000000 D jiffies
ffffffff815ec900 T handle_mm_fault
ffffffff815ec900 t handle_mm_fault_alias
ffffffff815ecd00 t next_one
ffffffffc0000000 t f\t[module]
";

    #[test]
    fn a_function_ends_at_the_next_address_of_the_text() {
        let found = parse_ranges(
            TEXT.as_bytes(),
            ["handle_mm_fault", "asm_exc_page_fault", "absent"],
        )
        .expect("readable");
        assert_eq!(
            found,
            [
                Some(Range {
                    start: 0xffff_ffff_815e_c900,
                    bytes: 0x400
                }),
                Some(Range {
                    start: 0xffff_ffff_8100_0c60,
                    bytes: 0x40
                }),
                None
            ]
        );
    }

    #[test]
    fn hidden_addresses_and_rubbish_give_nothing() {
        for text in [
            "0000000000000000 T handle_mm_fault\n0000000000000000 T next\n",
            "zz T handle_mm_fault\n\n x\n",
            "",
        ] {
            let found = parse_ranges(text.as_bytes(), ["handle_mm_fault"]).expect("readable");
            assert_eq!(found, [None], "{text}");
        }
    }
}
