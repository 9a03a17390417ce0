//! The options the kernel was built with.

use std::path::Path;

use crate::host::Fact;
use crate::host::file::{read_bytes, read_head};

/// Longest text of build options; today's are a quarter of a megabyte.
const MAX_BYTES: usize = 4 << 20;

/// Reads `/proc/config.gz`, or the file beside the kernel's image; options sorted by name.
pub(super) fn read(root: &Path, release: &Fact<String>) -> Result<Vec<(String, String)>, String> {
    let packed = read_head(root, "/proc/config.gz", MAX_BYTES as u64);
    if let Ok(packed) = packed {
        let text = unpack(&packed).map_err(|why| format!("\"/proc/config.gz\" {why}"))?;
        return Ok(parse(&text));
    }
    let Some(release) = release.value().filter(|r| !r.contains('/')) else {
        return Err(
            "there is no \"/proc/config.gz\", and the kernel's release is not known".into(),
        );
    };
    let file = format!("/boot/config-{release}");
    let text = read_bytes(root, &file).map_err(|error| {
        format!("there is no \"/proc/config.gz\", and \"{file}\" cannot be read: {error}")
    })?;
    Ok(parse(&text))
}

/// Undoes gzip (RFC 1952); the kernel's file has no optional header fields.
fn unpack(packed: &[u8]) -> Result<Vec<u8>, String> {
    const HEADER: usize = 10;
    let [0x1f, 0x8b, 8, 0, ..] = packed else {
        return Err("is no plain gzip file".into());
    };
    let deflated = packed.get(HEADER..).unwrap_or_default();
    miniz_oxide::inflate::decompress_to_vec_with_limit(deflated, MAX_BYTES)
        .map_err(|error| format!("cannot be unpacked: {error}"))
}

/// Reads `CONFIG_X=value` lines and `# CONFIG_X is not set`, which reads as `n`.
fn parse(text: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(text);
    let mut all: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| {
            let unset = line
                .strip_prefix("# ")
                .and_then(|l| l.strip_suffix(" is not set"));
            let (name, value) =
                unset.map_or_else(|| line.split_once('='), |name| Some((name, "n")))?;
            let is_option = name.starts_with("CONFIG_") && !name.contains(char::is_whitespace);
            is_option.then(|| (name.to_owned(), crate::name::scrub(value.as_bytes())))
        })
        .collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sorted_and_unset_ones_read_n() {
        let text = b"#\n# Automatically generated file; DO NOT EDIT.\nCONFIG_Z=y\n# CONFIG_A is not set\nCONFIG_B=\"a=b\"\njunk\n# x is not set\n";
        let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            parse(text),
            [
                option("CONFIG_A", "n"),
                option("CONFIG_B", "\"a=b\""),
                option("CONFIG_Z", "y")
            ]
        );
    }

    #[test]
    fn what_is_no_gzip_is_refused() {
        assert!(unpack(b"").is_err());
        assert!(unpack(b"CONFIG_X=y\n").is_err());
        let damaged = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xff];
        assert!(unpack(&damaged).expect_err("damaged").contains("unpacked"));
    }
}
