//! Reads small files below a given root.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Returns `root` joined with an absolute path, which `Path::join` alone would let win.
pub(super) fn under(root: &Path, absolute: &str) -> PathBuf {
    root.join(absolute.trim_start_matches('/'))
}

/// Reads a whole file as bytes.
pub(super) fn read_bytes(root: &Path, absolute: &str) -> io::Result<Vec<u8>> {
    fs::read(under(root, absolute))
}

/// Reads a whole file as text, invalid bytes replaced and surrounding white space removed.
pub(super) fn read_text(root: &Path, absolute: &str) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&read_bytes(root, absolute)?)
        .trim()
        .to_owned())
}

/// Reads at most `limit` bytes from the start of a file.
pub(super) fn read_head(root: &Path, absolute: &str, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(under(root, absolute))?
        .take(limit)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a number in decimal; text that is none is an error of its own.
pub(super) fn read_number<T: std::str::FromStr>(root: &Path, absolute: &str) -> io::Result<T> {
    let text = read_text(root, absolute)?;
    text.parse().map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("\"{}\" is no number", crate::name::scrub(text.as_bytes())),
        )
    })
}
