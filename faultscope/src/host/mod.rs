//! What is known about the machine before anything is attached, and what the kernel's files say each tick.
//!
//! Every fact is yes, no or unknown, and the last two carry a sentence for the user. Parsers are pure
//! functions on text or bytes; readers are thin and take the file-system root, so that tests pass a
//! directory. Nothing here loads BPF, prints, or decides what to attach.

pub mod btf;

use std::fmt;

use serde::Serialize;

/// One thing the host has, has not, or would not tell.
///
/// `Unknown` never counts as yes: [`Fact::is_yes`] and [`Fact::value`] treat it like `No`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "detail", rename_all = "lowercase")]
pub enum Fact<T> {
    /// The host has it; the value says which or how much.
    Yes(T),
    /// The host lacks it; the sentence says why and, where there is one, names the fix.
    No(String),
    /// It could not be determined; the sentence says what stood in the way.
    Unknown(String),
}

impl<T> Fact<T> {
    /// Builds a [`Fact::No`] from any text.
    pub fn no(reason: impl Into<String>) -> Self {
        Self::No(reason.into())
    }

    /// Builds a [`Fact::Unknown`] from any text.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown(reason.into())
    }

    /// Returns true only for [`Fact::Yes`].
    pub const fn is_yes(&self) -> bool {
        matches!(self, Self::Yes(_))
    }

    /// Returns the value of a [`Fact::Yes`].
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Yes(value) => Some(value),
            Self::No(_) | Self::Unknown(_) => None,
        }
    }

    /// Returns the sentence of a [`Fact::No`] or [`Fact::Unknown`].
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Yes(_) => None,
            Self::No(reason) | Self::Unknown(reason) => Some(reason),
        }
    }

    /// Returns `"yes"`, `"no"` or `"unknown"`, the words of the JSON output.
    pub const fn state(&self) -> &'static str {
        match self {
            Self::Yes(_) => "yes",
            Self::No(_) => "no",
            Self::Unknown(_) => "unknown",
        }
    }

    /// Applies `convert` to the value and keeps the reasons.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Yes(value) => Fact::Yes(convert(value)),
            Self::No(reason) => Fact::No(reason),
            Self::Unknown(reason) => Fact::Unknown(reason),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Fact<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yes(value) => write!(f, "{value}"),
            Self::No(reason) => write!(f, "no: {reason}"),
            Self::Unknown(reason) => write!(f, "unknown: {reason}"),
        }
    }
}
