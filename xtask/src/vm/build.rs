//! Static builds of the binaries a guest runs: it has no libraries for them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::proc;

/// The host's own target, named so that build scripts and procedural macros stay dynamic.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What goes into a guest, at the paths they have here: the tests know the binary's path from their build.
pub(super) struct Binaries {
    pub(super) faultscope: PathBuf,
    pub(super) tests: PathBuf,
    /// The object to load in place of the embedded one.
    pub(super) object: Option<PathBuf>,
    /// The directory that tests put files into, `CARGO_TARGET_TMPDIR` of their build.
    pub(super) scratch: PathBuf,
}

/// How the binaries are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Profile {
    /// Optimised, which all tests together repay: in a guest `doctor` takes 4 s of user time instead of 17.
    Guest,
    /// Quick to build again, for a single test or command.
    Dev,
}

/// Builds `faultscope` and the kernel tests.
pub(super) fn binaries(root: &Path, object: Option<&Path>, profile: Profile) -> Result<Binaries> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(root)
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .args(["test", "--no-run", "--target", TARGET, "--profile"])
        .arg(match profile {
            Profile::Guest => "guest",
            Profile::Dev => "dev",
        })
        .args(["-p", "faultscope", "--features", "kernel-tests"])
        .args(["--test", "kernel"])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit());
    let output = command
        .output()
        .with_context(|| format!("starting {}", proc::name(&command)))?;
    if !output.status.success() {
        bail!(
            "{} failed ({}); its own messages are above",
            proc::name(&command),
            output.status
        );
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let built = |kind: &str, name: &str| {
        executable(&messages, kind, name)
            .with_context(|| format!("cargo named no executable for the {kind} \"{name}\""))
    };
    let faultscope = built("bin", "faultscope")?;
    let target = faultscope
        .ancestors()
        .nth(2)
        .context("the binary is not in a target directory")?;
    Ok(Binaries {
        scratch: target.join("tmp"),
        tests: built("test", "kernel")?,
        faultscope,
        object: object.map(Path::to_owned),
    })
}

/// The executable of a target in cargo's messages.
fn executable(messages: &str, kind: &str, name: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name && message["target"]["kind"][0] == kind)
        .find_map(|message| Some(PathBuf::from(message["executable"].as_str()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_by_kind_and_name() {
        let messages = r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"faultscope"},"executable":null}
{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"faultscope"},"executable":"/t/faultscope"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(
            executable(messages, "bin", "faultscope"),
            Some(PathBuf::from("/t/faultscope"))
        );
        assert_eq!(executable(messages, "lib", "faultscope"), None);
        assert_eq!(executable(messages, "test", "kernel"), None);
    }
}
