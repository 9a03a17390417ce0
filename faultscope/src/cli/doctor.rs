//! Arguments of `doctor`.

use std::path::PathBuf;

use clap::Args;

/// Exit codes of `doctor`.
pub(super) const EXIT_CODES: &str = "\
Exit status:
  0  The probes this kernel offers can be attached; what the kernel itself lacks is no failure.
  1  An error, named on standard error.
  2  The command line is wrong.
  3  A privilege, mount or sysctl refuses something this kernel offers; the output names the fix.";

/// Arguments of `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct DoctorArgs {
    /// Prints one JSON document (schema faultscope.doctor/1) in place of text.
    #[arg(long)]
    pub json: bool,
    /// Also measures what each program costs per event; this drives a load for some seconds.
    #[arg(long)]
    pub cost: bool,
    /// Uses this compiled BPF object in place of the one built in.
    #[arg(long, value_name = "PATH")]
    pub bpf_object: Option<PathBuf>,
}
