//! What keeps a recording from being written or read, in words that say what to do.

use super::codec::Fault;
use crate::name::scrub_capped;
use rusqlite::ErrorCode;
use std::{
    io,
    path::{Path, PathBuf},
};

/// Characters of a message of SQLite that are passed on: it may quote the file.
const MAX_QUOTED: usize = 200;

/// An error of a recording.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something is there already.
    #[error(
        "\"{}\" exists and is not overwritten; give another name with -o, or remove it",
        path.display()
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The system says no.
    #[error("cannot {doing} \"{}\": {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried, a verb.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The file could not be begun; nothing is left of it.
    #[error("cannot begin \"{}\": {reason}; nothing was recorded", path.display())]
    Begin {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The file could not be written; what was committed before is kept.
    #[error(
        "cannot write \"{}\": {reason}; the intervals recorded before are kept, in it and in the file beside it whose \
         name ends in -wal",
        path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Not a recording at all.
    #[error("\"{}\" is no recording: {reason}; `faultscope record` makes one", path.display())]
    NotARecording {
        /// The file.
        path: PathBuf,
        /// What was found in its place.
        reason: String,
    },
    /// Made by a later version.
    #[error(
        "\"{}\" has schema version {found}, and this version of faultscope reads {known}; use the version that recorded it, \
         or a later one",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i32,
        /// Ours.
        known: i32,
    },
    /// Holds what a recording does not hold.
    #[error("\"{}\" is damaged or was not made by faultscope: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Holds more than a reader takes.
    #[error("\"{}\" is too large to read: {reason}", path.display())]
    TooMuch {
        /// The file.
        path: PathBuf,
        /// What is too large.
        reason: String,
    },
}

/// What a failed call of SQLite means, without a byte of the file that could harm a terminal.
pub(super) fn reason(error: &rusqlite::Error) -> String {
    let text = match error {
        rusqlite::Error::SqliteFailure(failure, text) => match failure.code {
            ErrorCode::DiskFull => "no space is left on the device".into(),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
                "another process has it open for writing".into()
            }
            _ => match text {
                Some(text) => format!("{text} (SQLite {})", failure.extended_code),
                None => failure.to_string(),
            },
        },
        other => other.to_string(),
    };
    scrub_capped(text.as_bytes(), MAX_QUOTED)
}

impl Error {
    /// An error of reading a recording.
    pub(super) fn reading(path: &Path, what: &str, fault: &Fault) -> Self {
        let path = path.to_owned();
        let at = |reason: &str| {
            if what.is_empty() {
                reason.to_owned()
            } else {
                format!("{what}: {reason}")
            }
        };
        match fault {
            Fault::TooMuch(reason) => Self::TooMuch {
                path,
                reason: at(reason),
            },
            Fault::Damaged(reason) => Self::Damaged {
                path,
                reason: at(reason),
            },
            Fault::Sql(error) => match error.sqlite_error_code() {
                Some(ErrorCode::TooBig | ErrorCode::OutOfMemory) => Self::TooMuch {
                    path,
                    reason: at(&reason(error)),
                },
                _ => Self::Damaged {
                    path,
                    reason: at(&reason(error)),
                },
            },
        }
    }
}
