//! Errors a user can act on, and the exit codes.
//!
//! Everything else is an `anyhow::Error` with context. Nothing here prints, and nothing knows the host: who finds
//! the cause builds the error.

use std::io;

/// How to grant the two capabilities, for the three ways programs are started.
pub const GRANT: &str = "grant both capabilities it needs: on the file with \"setcap cap_bpf,cap_perfmon=ep \
     $(command -v faultscope)\", in a systemd unit with \"AmbientCapabilities=CAP_BPF CAP_PERFMON\", or for a container \
     with \"--cap-add BPF --cap-add PERFMON\"";

/// Status of the process when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done; also when the reader of our output went away.
    Done = 0,
    /// An error.
    Error = 1,
    /// The command line is wrong; the argument parser uses the same number.
    Usage = 2,
    /// CAP_BPF, CAP_PERFMON or BTF is missing and nothing was attached.
    Refused = 3,
    /// Finished, but events were lost or a probe named by the user is missing.
    Incomplete = 4,
}

impl Exit {
    /// Status for an error that reached the top.
    ///
    /// A [`Failure`] anywhere in the chain decides; a broken pipe is [`Exit::Done`]; the rest is [`Exit::Error`].
    #[must_use]
    pub fn of(error: &anyhow::Error) -> Self {
        if is_broken_pipe(error) {
            return Self::Done;
        }
        error
            .chain()
            .find_map(|cause| cause.downcast_ref::<Failure>())
            .map_or(Self::Error, Failure::exit)
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// What keeps a command from its result, with the fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Neither CAP_BPF nor CAP_SYS_ADMIN is effective.
    #[error(
        "nothing was attached: this process lacks CAP_BPF, without which the kernel loads no BPF program; {GRANT}"
    )]
    NoCapBpf,
    /// Neither CAP_PERFMON nor CAP_SYS_ADMIN is effective.
    #[error(
        "nothing was attached: this process lacks CAP_PERFMON, without which the kernel attaches no tracing program; {GRANT}"
    )]
    NoCapPerfmon,
    /// The kernel's type information cannot be used.
    #[error(
        "nothing was attached: the kernel's BTF cannot be used: {reason}; run a kernel built with \
         CONFIG_DEBUG_INFO_BTF=y and let this process read \"/sys/kernel/btf/vmlinux\""
    )]
    NoBtf {
        /// What was found in its place.
        reason: String,
    },
    /// The command line asks for something that cannot be.
    #[error("{0}")]
    Usage(String),
    /// The command did its work, but the numbers are not whole.
    #[error("finished, but the numbers are incomplete: {0}")]
    Incomplete(String),
}

impl Failure {
    /// Status of the process that ends with this failure.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        match self {
            Self::NoCapBpf | Self::NoCapPerfmon | Self::NoBtf { .. } => Exit::Refused,
            Self::Usage(_) => Exit::Usage,
            Self::Incomplete(_) => Exit::Incomplete,
        }
    }
}

/// Returns true if the reader of our output went away, which is a quiet end and no error.
#[must_use]
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// An error with its causes on one line; a cause that the text before it already quotes is not repeated.
#[must_use]
pub fn message(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context as _, anyhow};

    #[test]
    fn each_refusal_names_what_is_missing_and_a_fix() {
        let no_btf = Failure::NoBtf {
            reason: "there is no file".into(),
        };
        for (failure, name, fix) in [
            (
                Failure::NoCapBpf,
                "lacks CAP_BPF",
                "setcap cap_bpf,cap_perfmon=ep",
            ),
            (
                Failure::NoCapPerfmon,
                "lacks CAP_PERFMON",
                "AmbientCapabilities=CAP_BPF CAP_PERFMON",
            ),
            (no_btf, "BTF", "CONFIG_DEBUG_INFO_BTF=y"),
        ] {
            let text = failure.to_string();
            assert!(text.contains(name) && text.contains(fix), "{text}");
            assert!(text.starts_with("nothing was attached"), "{text}");
            assert!(!text.contains('\n') && !text.contains("root"), "{text}");
            assert_eq!(failure.exit(), Exit::Refused);
        }
        assert!(
            Failure::NoCapBpf
                .to_string()
                .contains("--cap-add BPF --cap-add PERFMON")
        );
    }

    #[test]
    fn exit_codes_survive_context() {
        let wrapped = Err::<(), _>(Failure::NoCapPerfmon)
            .context("starting top")
            .expect_err("is an error");
        assert_eq!(Exit::of(&wrapped), Exit::Refused);
        assert_eq!(
            Exit::of(&Failure::Incomplete("x".into()).into()),
            Exit::Incomplete
        );
        assert_eq!(Exit::of(&Failure::Usage("x".into()).into()), Exit::Usage);
        assert_eq!(Exit::of(&anyhow!("disk on fire")), Exit::Error);
        let codes = [
            Exit::Done,
            Exit::Error,
            Exit::Usage,
            Exit::Refused,
            Exit::Incomplete,
        ];
        assert_eq!(codes.map(|code| code as u8), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn message_is_one_line_without_echo() {
        let inner = Err::<(), _>(anyhow!("no space")).context("cannot write: no space");
        let error = inner.context("recording").expect_err("is an error");
        assert_eq!(message(&error), "recording: cannot write: no space");
    }

    #[test]
    fn broken_pipe_is_a_quiet_end() {
        let broken = io::Error::from(io::ErrorKind::BrokenPipe);
        let error = Err::<(), _>(broken)
            .context("writing")
            .expect_err("is an error");
        assert!(is_broken_pipe(&error));
        assert_eq!(Exit::of(&error), Exit::Done);
        assert!(!is_broken_pipe(
            &io::Error::from(io::ErrorKind::NotFound).into()
        ));
    }
}
