//! The process that does the work of a point and prints what came of it.

use std::io::{self, Write as _};

use super::{Job, Stop};
use crate::error::message;

/// Status of a process whose point cannot be run here: what test harnesses take for a skip.
pub(super) const SKIPPED: u8 = 77;
/// Begins the line that says why.
pub(super) const SKIP: &str = "faultscope-bench-skip";

/// Does the work of a point and prints its result; the status to end with.
///
/// # Errors
/// What the work met, and a closed standard output.
pub fn load(job: &Job) -> anyhow::Result<u8> {
    let mut out = io::stdout().lock();
    match job.case.work.run(job) {
        Ok(result) => {
            out.write_all(result.to_text().as_bytes())?;
            out.flush()?;
            Ok(0)
        }
        Err(Stop::Skip(reason)) => {
            writeln!(out, "{SKIP} {}", reason.replace('\n', " "))?;
            Ok(SKIPPED)
        }
        Err(Stop::Failed(error)) => {
            writeln!(io::stderr(), "{}", message(&error)).ok();
            Ok(1)
        }
    }
}
