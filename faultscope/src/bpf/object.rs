//! The compiled object: the embedded one, or a file an auditor names.

use faultscope_common::abi::ABI;
use sha2::{Digest, Sha256};
use std::{borrow::Cow, fmt::Write, path::Path};

use super::LoadError;

/// The object built by `cargo xtask ebpf` and committed with its SHA-256.
static EMBEDDED: &[u8] = aya::include_bytes_aligned!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/prebuilt/faultscope.bpf.o"
));

/// The bytes to load: `path` if given, else the embedded object.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: Option<&Path>) -> Result<Cow<'static, [u8]>, LoadError> {
    path.map_or(Ok(Cow::Borrowed(EMBEDDED)), |path| {
        std::fs::read(path)
            .map(Cow::Owned)
            .map_err(|source| LoadError::Unreadable {
                path: path.to_owned(),
                source,
            })
    })
}

/// SHA-256 of an object in lower-case hexadecimal.
#[must_use]
pub fn sha256(object: &[u8]) -> String {
    Sha256::digest(object)
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// What an object of another interface is told.
pub(super) fn wrong_abi() -> String {
    format!(
        "the object does not speak interface {ABI} of this faultscope; rebuild it with `cargo xtask ebpf` from the same source"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_object_is_the_one_whose_hash_is_committed() {
        let recorded = include_str!("../../prebuilt/faultscope.bpf.o.sha256");
        let recorded = recorded
            .split_whitespace()
            .next()
            .expect("the file holds a hash");
        assert_eq!(sha256(EMBEDDED), recorded);
    }
}
