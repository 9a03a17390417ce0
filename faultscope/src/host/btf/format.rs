//! The BTF file format: header, kinds and the records of `include/uapi/linux/btf.h` (Linux 6.18).

use std::ops::Range;

use thiserror::Error;

pub(super) const MAGIC: u16 = 0xEB9F;
const HEADER_LEN: usize = 24;

/// Why a BTF image was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BtfError {
    /// The image ends before the part named here.
    #[error("BTF image of {len} bytes ends inside {part}")]
    Truncated {
        /// Part of the format that was cut.
        part: &'static str,
        /// Length of the image in bytes.
        len: usize,
    },
    /// The first two bytes are not the BTF magic in this machine's byte order.
    #[error("BTF magic is {0:#06x}, not 0xeb9f: no BTF, or of another byte order")]
    Magic(u16),
    /// The format version is not 1.
    #[error("BTF version is {0}, this reader knows version 1")]
    Version(u8),
    /// A type of a kind this reader does not know, whose length is therefore unknown too.
    #[error("BTF type {id} has kind {kind}, which this version of faultscope does not know")]
    Kind {
        /// Type id.
        id: u32,
        /// Kind number found.
        kind: u8,
    },
}

/// Kinds of `enum { BTF_KIND_* }`, with the number of bytes that follow the common 12.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Ptr,
    Array,
    Struct,
    Union,
    Enum,
    Fwd,
    Typedef,
    Volatile,
    Const,
    Restrict,
    Func,
    FuncProto,
    Var,
    DataSec,
    Float,
    DeclTag,
    TypeTag,
    Enum64,
}

impl Kind {
    pub(super) const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Int,
            2 => Self::Ptr,
            3 => Self::Array,
            4 => Self::Struct,
            5 => Self::Union,
            6 => Self::Enum,
            7 => Self::Fwd,
            8 => Self::Typedef,
            9 => Self::Volatile,
            10 => Self::Const,
            11 => Self::Restrict,
            12 => Self::Func,
            13 => Self::FuncProto,
            14 => Self::Var,
            15 => Self::DataSec,
            16 => Self::Float,
            17 => Self::DeclTag,
            18 => Self::TypeTag,
            19 => Self::Enum64,
            _ => return None,
        })
    }

    pub(super) const fn extra_len(self, vlen: usize) -> usize {
        match self {
            Self::Int | Self::Var | Self::DeclTag => 4,
            Self::Array => 12,
            Self::Struct | Self::Union | Self::DataSec | Self::Enum64 => 12 * vlen,
            Self::Enum | Self::FuncProto => 8 * vlen,
            Self::Ptr
            | Self::Fwd
            | Self::Typedef
            | Self::Volatile
            | Self::Const
            | Self::Restrict
            | Self::Func
            | Self::Float
            | Self::TypeTag => 0,
        }
    }

    /// Kinds that are looked up by name.
    pub(super) const fn is_indexed(self) -> bool {
        matches!(
            self,
            Self::Int
                | Self::Struct
                | Self::Union
                | Self::Enum
                | Self::Enum64
                | Self::Typedef
                | Self::Func
                | Self::Float
        )
    }

    pub(super) const fn is_aggregate(self) -> bool {
        matches!(self, Self::Struct | Self::Union)
    }
}

/// The common head of one type, decoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Type {
    pub(super) name: u32,
    pub(super) kind: Kind,
    pub(super) vlen: usize,
    pub(super) kind_flag: bool,
    /// Size in bytes or the referred type id, depending on the kind.
    pub(super) size_or_type: u32,
    /// Where the kind's own data starts in the type section.
    pub(super) data: usize,
}

/// One member of a struct or union.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub(super) name: u32,
    pub(super) type_id: u32,
    pub(super) bit_offset: u32,
    pub(super) bit_size: u32,
}

/// Returns where the type and the string section lie in the image.
pub(super) fn sections(image: &[u8]) -> Result<(Range<usize>, Range<usize>), BtfError> {
    let len = image.len();
    let cut = |part| BtfError::Truncated { part, len };
    if len < HEADER_LEN {
        return Err(cut("the header"));
    }
    let magic = u16::from_ne_bytes([image[0], image[1]]);
    if magic != MAGIC {
        return Err(BtfError::Magic(magic));
    }
    if image[2] != 1 {
        return Err(BtfError::Version(image[2]));
    }
    let field = |at| {
        u32_at(image, at)
            .map(|value| value as usize)
            .ok_or_else(|| cut("the header"))
    };
    let base = field(4)?;
    if base < HEADER_LEN {
        return Err(cut("the header"));
    }
    let section = |offset: usize, length: usize, part| {
        let start = base.checked_add(offset).ok_or_else(|| cut(part))?;
        let end = start.checked_add(length).ok_or_else(|| cut(part))?;
        if end <= len {
            Ok(start..end)
        } else {
            Err(cut(part))
        }
    };
    let types = section(field(8)?, field(12)?, "the type section")?;
    let strings = section(field(16)?, field(20)?, "the string section")?;
    Ok((types, strings))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*word))
}

/// FNV-1a, 32 bits; collisions are resolved by comparing the names.
pub(super) fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0x811C_9DC5, |state, &byte| {
        (state ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}
