//! Reads the running kernel's BTF: member offsets, sizes, enumerators, tracepoint prototypes.
//!
//! Rust programs get no CO-RE relocations, so user space looks every offset up here and patches it into a
//! read-only global before the program is loaded. A name that is missing, ambiguous or a bit field gives
//! `None`; the caller then does not plan the probe. The input is treated as hostile: every access is
//! length-checked, and walks have a step limit.
//!
//! The format is that of `include/uapi/linux/btf.h` (Linux 6.18). Only the byte order of this machine is
//! read. Not here: split BTF of modules, and relocations.

mod format;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

pub use format::BtfError;
use format::{Kind, Member, Type, hash, sections, u32_at};

/// Modifiers, typedefs and nested anonymous members followed before a chain counts as broken.
const MAX_DEPTH: u32 = 32;
/// Members looked at in one path look-up; the largest kernel struct has a few hundred.
const MAX_STEPS: u32 = 1 << 13;

/// A parsed BTF image with an index of its types and names.
///
/// Holds the image itself plus 4 bytes a type and 8 bytes a named type: 7 MB for a 5.5 MB image. Look up
/// what is needed and drop it.
#[derive(Debug)]
pub struct Btf {
    image: Vec<u8>,
    types: std::ops::Range<usize>,
    strings: std::ops::Range<usize>,
    /// Offset of each type in the type section, by id; entry 0 stands for `void`.
    offsets: Vec<u32>,
    /// Ids of all enums, anonymous ones included.
    enums: Vec<u32>,
    /// (hash of the name, type id), sorted.
    names: Vec<(u32, u32)>,
}

impl Btf {
    /// Checks the image and indexes it.
    ///
    /// # Errors
    /// [`BtfError`] when the image is cut, of another byte order or version, or holds an unknown kind.
    pub fn parse(image: Vec<u8>) -> Result<Self, BtfError> {
        let (types, strings) = sections(&image)?;
        let mut btf = Self {
            image,
            types,
            strings,
            offsets: Vec::new(),
            enums: Vec::new(),
            names: Vec::new(),
        };
        btf.index()?;
        Ok(btf)
    }

    fn index(&mut self) -> Result<(), BtfError> {
        let len = self.image.len();
        // Kernel types take 24 to 32 bytes on average; growing twice costs less than a wrong guess holds.
        let mut offsets = Vec::with_capacity(self.types.len() / 32 + 1);
        let mut names = Vec::with_capacity(self.types.len() / 48);
        let mut enums = Vec::new();
        offsets.push(0);
        let mut at = 0;
        while at < self.types.len() {
            let id = u32::try_from(offsets.len()).unwrap_or(u32::MAX);
            let cut = BtfError::Truncated {
                part: "a type",
                len,
            };
            let info = u32_at(self.type_bytes(), at + 4).ok_or(cut.clone())?;
            let number = ((info >> 24) & 0x1F) as u8;
            let kind = Kind::from_number(number).ok_or(BtfError::Kind { id, kind: number })?;
            let next = at + 12 + kind.extra_len((info & 0xFFFF) as usize);
            if next > self.types.len() {
                return Err(cut);
            }
            let name = u32_at(self.type_bytes(), at).ok_or(cut)?;
            if matches!(kind, Kind::Enum | Kind::Enum64) {
                enums.push(id);
            }
            if name != 0 && kind.is_indexed() {
                names.push((hash(self.string(name).unwrap_or_default()), id));
            }
            offsets.push(u32::try_from(at).unwrap_or(u32::MAX));
            at = next;
        }
        names.sort_unstable();
        self.offsets = offsets;
        self.enums = enums;
        self.names = names;
        Ok(())
    }

    /// Number of types, `void` not counted.
    #[must_use]
    pub fn type_count(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Returns the offset in bytes of a member of a struct or union.
    ///
    /// `path` is dotted (`"thread_info.status"`); members of anonymous structs and unions are found without
    /// naming those. `None` if a part is missing, is a bit field, or if two definitions of the struct
    /// disagree.
    #[must_use]
    pub fn member_offset(&self, aggregate: &str, path: &str) -> Option<u32> {
        let mut found = None;
        for (id, _) in self
            .named(aggregate)
            .filter(|(_, ty)| ty.kind.is_aggregate())
        {
            let Some(offset) = self.path_offset(id, path) else {
                continue;
            };
            if found.is_some_and(|other| other != offset) {
                return None;
            }
            found = Some(offset);
        }
        found
    }

    /// Returns the size in bytes of a struct, union, enum, integer, float or typedef.
    ///
    /// `None` if no such type exists, or if two definitions disagree.
    #[must_use]
    pub fn size_of(&self, name: &str) -> Option<u32> {
        let mut found = None;
        for (id, _) in self.named(name).filter(|(_, ty)| ty.kind != Kind::Func) {
            let Some(size) = self.type_size(id, 0) else {
                continue;
            };
            if found.is_some_and(|other| other != size) {
                return None;
            }
            found = Some(size);
        }
        found
    }

    /// Returns the value of an enumerator of any enum, anonymous ones included.
    ///
    /// An enum without the signed flag is read as unsigned. `None` if no enum has it, if two enums disagree,
    /// or if an unsigned 64-bit value is above `i64::MAX`.
    #[must_use]
    pub fn enum_value(&self, name: &str) -> Option<i64> {
        let mut found = None;
        for &id in &self.enums {
            let Some(ty) = self.get(id) else { continue };
            let stride = match ty.kind {
                Kind::Enum => 8,
                Kind::Enum64 => 12,
                _ => continue,
            };
            for index in 0..ty.vlen {
                let at = ty.data + index * stride;
                if !self.is_named(self.word(at)?, name.as_bytes()) {
                    continue;
                }
                let low = self.word(at + 4)?;
                let value = match (ty.kind, ty.kind_flag) {
                    (Kind::Enum, true) => Some(i64::from(low.cast_signed())),
                    (Kind::Enum, false) => Some(i64::from(low)),
                    (_, signed) => {
                        let wide = (u64::from(self.word(at + 8)?) << 32) | u64::from(low);
                        if signed {
                            Some(wide.cast_signed())
                        } else {
                            i64::try_from(wide).ok()
                        }
                    }
                };
                if found.is_some_and(|other| Some(other) != value) {
                    return None;
                }
                found = Some(value?);
            }
        }
        found
    }

    /// Returns the argument types of a tracepoint, as a `tp_btf` program sees them.
    ///
    /// They come from `typedef void (*btf_trace_NAME)(void *, ...)`; the leading `void *` is the probe's
    /// private data and is dropped. Types are rendered without the words struct, union and enum:
    /// `"mm_struct *"`, `"bool"`. `None` if this kernel has no such tracepoint.
    #[must_use]
    pub fn tracepoint_args(&self, tracepoint: &str) -> Option<Vec<String>> {
        let name = format!("btf_trace_{tracepoint}");
        let (_, typedef) = self.named(&name).find(|(_, ty)| ty.kind == Kind::Typedef)?;
        let pointer = self
            .get(typedef.size_or_type)
            .filter(|ty| ty.kind == Kind::Ptr)?;
        let proto = self
            .get(pointer.size_or_type)
            .filter(|ty| ty.kind == Kind::FuncProto)?;
        (1..proto.vlen)
            .map(|index| {
                let mut text = String::new();
                self.render(self.word(proto.data + index * 8 + 4)?, 0, &mut text);
                Some(text)
            })
            .collect()
    }

    /// Returns the number of arguments of a function; `None` if the kernel's BTF has none of this name.
    #[must_use]
    pub fn function_args(&self, name: &str) -> Option<usize> {
        self.named(name)
            .find(|(_, ty)| ty.kind == Kind::Func)
            .and_then(|(_, ty)| self.get(ty.size_or_type))
            .filter(|proto| proto.kind == Kind::FuncProto)
            .map(|proto| proto.vlen)
    }

    /// Returns true if the kernel has a function of this name in its BTF.
    ///
    /// That alone does not make it attachable: inlined and `notrace` functions are listed too.
    #[must_use]
    pub fn has_function(&self, name: &str) -> bool {
        self.named(name).any(|(_, ty)| ty.kind == Kind::Func)
    }

    fn type_bytes(&self) -> &[u8] {
        &self.image[self.types.clone()]
    }

    fn word(&self, at: usize) -> Option<u32> {
        u32_at(self.type_bytes(), at)
    }

    fn string(&self, offset: u32) -> Option<&[u8]> {
        let tail = self.image[self.strings.clone()].get(offset as usize..)?;
        tail.split(|&byte| byte == 0).next()
    }

    /// Compares without looking for the end of the stored name first; enum look-ups spend their time here.
    fn is_named(&self, offset: u32, name: &[u8]) -> bool {
        let tail = self.image[self.strings.clone()]
            .get(offset as usize..)
            .unwrap_or_default();
        tail.strip_prefix(name)
            .is_some_and(|rest| rest.first() == Some(&0))
    }

    fn get(&self, id: u32) -> Option<Type> {
        if id == 0 {
            return None;
        }
        let at = *self.offsets.get(id as usize)? as usize;
        let info = self.word(at + 4)?;
        Some(Type {
            name: self.word(at)?,
            kind: Kind::from_number(((info >> 24) & 0x1F) as u8)?,
            vlen: (info & 0xFFFF) as usize,
            kind_flag: info >> 31 == 1,
            size_or_type: self.word(at + 8)?,
            data: at + 12,
        })
    }

    /// Iterates over the indexed types of this name, with their ids.
    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (u32, Type)> + 'a {
        let key = hash(name.as_bytes());
        let start = self.names.partition_point(|&(hash, _)| hash < key);
        self.names[start..]
            .iter()
            .take_while(move |&&(hash, _)| hash == key)
            .filter_map(|&(_, id)| Some((id, self.get(id)?)))
            .filter(move |(_, ty)| self.is_named(ty.name, name.as_bytes()))
    }

    fn member(&self, ty: &Type, index: usize) -> Option<Member> {
        let at = ty.data + index * 12;
        let packed = self.word(at + 8)?;
        let (bit_offset, bit_size) = if ty.kind_flag {
            (packed & 0x00FF_FFFF, packed >> 24)
        } else {
            (packed, 0)
        };
        Some(Member {
            name: self.word(at)?,
            type_id: self.word(at + 4)?,
            bit_offset,
            bit_size,
        })
    }

    /// Follows typedefs and qualifiers to the type itself.
    fn peel(&self, mut id: u32) -> Option<(u32, Type)> {
        for _ in 0..MAX_DEPTH {
            let ty = self.get(id)?;
            match ty.kind {
                Kind::Typedef | Kind::Volatile | Kind::Const | Kind::Restrict | Kind::TypeTag => {
                    id = ty.size_or_type;
                }
                _ => return Some((id, ty)),
            }
        }
        None
    }

    fn path_offset(&self, mut id: u32, path: &str) -> Option<u32> {
        let mut bytes = 0u32;
        for part in path.split('.') {
            let mut steps = MAX_STEPS;
            let (offset, member) = self.find_member(id, part.as_bytes(), 0, &mut steps)?;
            if member.bit_size != 0 || offset % 8 != 0 || self.is_old_bit_field(member.type_id) {
                return None;
            }
            bytes = bytes.checked_add(offset / 8)?;
            id = member.type_id;
        }
        Some(bytes)
    }

    /// Finds a member by name, also inside anonymous members; the offset is in bits from `id`'s start.
    fn find_member(
        &self,
        id: u32,
        name: &[u8],
        depth: u32,
        steps: &mut u32,
    ) -> Option<(u32, Member)> {
        let (_, ty) = self.peel(id)?;
        if depth > MAX_DEPTH || name.is_empty() || !ty.kind.is_aggregate() {
            return None;
        }
        for index in 0..ty.vlen {
            *steps = steps.checked_sub(1)?;
            let member = self.member(&ty, index)?;
            let this = self.string(member.name)?;
            if this == name {
                return Some((member.bit_offset, member));
            }
            if this.is_empty()
                && let Some((inner, found)) =
                    self.find_member(member.type_id, name, depth + 1, steps)
            {
                return Some((member.bit_offset.checked_add(inner)?, found));
            }
        }
        None
    }

    /// Bit fields of structs without the kind flag are integers narrower than their storage.
    fn is_old_bit_field(&self, id: u32) -> bool {
        let Some((_, ty)) = self.peel(id) else {
            return false;
        };
        let Some(encoding) = self.word(ty.data) else {
            return false;
        };
        ty.kind == Kind::Int
            && ((encoding >> 16) & 0xFF != 0 || encoding & 0xFF != ty.size_or_type.wrapping_mul(8))
    }

    fn type_size(&self, id: u32, depth: u32) -> Option<u32> {
        let (_, ty) = self.peel(id)?;
        match ty.kind {
            Kind::Int | Kind::Struct | Kind::Union | Kind::Enum | Kind::Enum64 | Kind::Float => {
                Some(ty.size_or_type)
            }
            // The kernel and this program run on the same machine; only 64-bit kernels are supported.
            Kind::Ptr => Some(8),
            Kind::Array if depth < MAX_DEPTH => {
                let element = self.type_size(self.word(ty.data)?, depth + 1)?;
                element.checked_mul(self.word(ty.data + 8)?)
            }
            _ => None,
        }
    }

    fn render(&self, id: u32, depth: u32, out: &mut String) {
        if id == 0 {
            out.push_str("void");
            return;
        }
        let Some(ty) = self.get(id).filter(|_| depth < MAX_DEPTH) else {
            out.push('?');
            return;
        };
        match ty.kind {
            Kind::Ptr => {
                self.render(ty.size_or_type, depth + 1, out);
                out.push_str(if out.ends_with('*') { "*" } else { " *" });
            }
            Kind::Const => {
                out.push_str("const ");
                self.render(ty.size_or_type, depth + 1, out);
            }
            Kind::Volatile | Kind::Restrict | Kind::TypeTag => {
                self.render(ty.size_or_type, depth + 1, out);
            }
            Kind::Array => {
                self.render(self.word(ty.data).unwrap_or(0), depth + 1, out);
                // Writing to a String cannot fail.
                _ = write!(out, "[{}]", self.word(ty.data + 8).unwrap_or(0));
            }
            Kind::FuncProto => out.push_str("function"),
            _ => match self.string(ty.name) {
                Some(name) if !name.is_empty() => {
                    out.push_str(&crate::name::scrub_capped(name, 128));
                }
                _ => out.push_str("anonymous"),
            },
        }
    }
}
