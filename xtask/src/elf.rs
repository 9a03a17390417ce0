//! As much of ELF as it takes to say what is in a BPF object.

/// What is in an object.
pub(crate) struct Summary {
    /// Sections with a name, bookkeeping ones included.
    pub(crate) sections: usize,
    pub(crate) programs: Vec<Program>,
}

/// A BPF program: a global function in an executable section of its own.
pub(crate) struct Program {
    pub(crate) name: String,
    /// The section, which names the program type and the attach point.
    pub(crate) section: String,
    /// Length in bytes; eight make an instruction.
    pub(crate) bytes: u64,
}

struct Section {
    name: u64,
    kind: u64,
    flags: u64,
    offset: u64,
    size: u64,
    link: u64,
}

const SYMBOL_TABLE: u64 = 2;
const EXECUTABLE: u64 = 4;
const SYMBOL_BYTES: u64 = 24;
/// `st_info` of a global function.
const GLOBAL_FUNCTION: u64 = 0x12;
/// Functions that programs call; no programs themselves.
const SUBPROGRAMS: &str = ".text";

/// Reads a 64-bit little-endian object; none if it is anything else or cut short.
pub(crate) fn summarize(object: &[u8]) -> Option<Summary> {
    if object.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let table = int(object, 0x28, 8)?;
    let (entry, count, names) = (
        int(object, 0x3a, 2)?,
        int(object, 0x3c, 2)?,
        int(object, 0x3e, 2)?,
    );
    let mut sections = Vec::new();
    for index in 0..count {
        sections.push(section(
            object,
            table.checked_add(index.checked_mul(entry)?)?,
        )?);
    }
    let names = sections.get(usize::try_from(names).ok()?)?.offset;
    let mut programs = Vec::new();
    for symbols in sections.iter().filter(|s| s.kind == SYMBOL_TABLE) {
        let strings = sections.get(usize::try_from(symbols.link).ok()?)?.offset;
        for index in 0..symbols.size / SYMBOL_BYTES {
            let at = symbols
                .offset
                .checked_add(index.checked_mul(SYMBOL_BYTES)?)?;
            let home = usize::try_from(int(object, at.checked_add(6)?, 2)?).ok()?;
            let is_function = int(object, at.checked_add(4)?, 1)? == GLOBAL_FUNCTION;
            let Some(home) = sections
                .get(home)
                .filter(|s| is_function && s.flags & EXECUTABLE != 0)
            else {
                continue;
            };
            let section = text(object, names.checked_add(home.name)?)?;
            if section != SUBPROGRAMS {
                let name = text(object, strings.checked_add(int(object, at, 4)?)?)?;
                programs.push(Program {
                    name,
                    section,
                    bytes: int(object, at.checked_add(16)?, 8)?,
                });
            }
        }
    }
    programs.sort_by(|a, b| (&a.section, &a.name).cmp(&(&b.section, &b.name)));
    Some(Summary {
        sections: sections.iter().filter(|s| s.name != 0).count(),
        programs,
    })
}

fn section(object: &[u8], at: u64) -> Option<Section> {
    let field = |offset: u64, width| int(object, at.checked_add(offset)?, width);
    Some(Section {
        name: field(0, 4)?,
        kind: field(4, 4)?,
        flags: field(8, 8)?,
        offset: field(24, 8)?,
        size: field(32, 8)?,
        link: field(40, 4)?,
    })
}

fn int(object: &[u8], at: u64, width: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = object.get(at..at.checked_add(width)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)),
    )
}

fn text(object: &[u8], at: u64) -> Option<String> {
    let rest = object.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed() -> Vec<u8> {
        let path = crate::repository().join("faultscope/prebuilt/faultscope.bpf.o");
        std::fs::read(path).expect("the committed object is readable")
    }

    #[test]
    fn the_committed_object_holds_programs_of_whole_instructions() {
        let summary = summarize(&committed()).expect("the committed object is ELF");
        assert!(!summary.programs.is_empty());
        for program in &summary.programs {
            let Program {
                name,
                section,
                bytes,
            } = program;
            assert!(
                *bytes > 0 && bytes.is_multiple_of(8),
                "{name}: {bytes} bytes"
            );
            assert!(
                !name.is_empty() && section != SUBPROGRAMS,
                "{name} in \"{section}\""
            );
        }
    }

    #[test]
    fn no_cut_or_damage_makes_it_panic() {
        let whole = committed();
        for length in (0..whole.len()).step_by(1 + whole.len() / 500) {
            assert!(summarize(&whole[..length]).is_none_or(|s| s.sections > 0));
        }
        for at in 0..whole.len().min(4096) {
            let mut damaged = whole.clone();
            damaged[at] = 0xff;
            drop(summarize(&damaged));
        }
        assert!(summarize(b"not an object").is_none());
    }
}
