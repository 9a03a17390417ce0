//! What a recording says of its run: the machine, the programs, the command.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::Record;
use super::rounds::Item;
use crate::bpf::object;
use crate::commands::session::Session;
use crate::host::conditions::Conditions;
use crate::host::{Fact, HostFacts};
use crate::name::scrub;
use crate::run::{Child, Ended, Kept};
use crate::sample::run;
use crate::sample::run::{Round, Run, RunFact, Workload};

/// Set for every command: numbers and messages as programs write them by default, which parsers know.
const LOCALE: (&str, &str) = ("LC_ALL", "C");
/// Variables that change how a program uses memory: kept where they are set.
const NOTED: [&str; 14] = [
    "GLIBC_TUNABLES",
    "GOGC",
    "GOMEMLIMIT",
    "JAVA_TOOL_OPTIONS",
    "LD_PRELOAD",
    "MALLOC_ARENA_MAX",
    "MALLOC_CONF",
    "MALLOC_MMAP_MAX_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MIMALLOC_PURGE_DELAY",
    "OMP_NUM_THREADS",
    "TCMALLOC_RELEASE_RATE",
];

/// Environment set for a command.
pub(super) fn environment() -> Vec<(String, String)> {
    let noted = NOTED.iter().filter_map(|name| {
        let value = std::env::var_os(name)?;
        Some(((*name).to_owned(), value.to_string_lossy().into_owned()))
    });
    let (name, value) = LOCALE;
    std::iter::once((name.to_owned(), value.to_owned()))
        .chain(noted)
        .collect()
}

/// 32 hexadecimal digits nobody else has.
pub(in crate::commands) fn identity() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    // SAFETY: a buffer of this length.
    let n = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if usize::try_from(n) != Ok(bytes.len()) {
        return Err(io::Error::last_os_error());
    }
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// The run as it is known before its first reading.
pub(super) fn begin(
    record: &Record,
    item: &Item,
    series: &str,
    host: &HostFacts,
    session: &mut Session,
) -> anyhow::Result<Run> {
    let run = machine(record, item, series, host)?;
    let bpf_object = object::read(record.capture.bpf_object.as_deref())?;
    let own = RunFact {
        id: "bpf_object_sha256".into(),
        value: Ok(object::sha256(&bpf_object)),
    };
    let context = session.context().clone();
    Ok(Run {
        host: context.host.name.clone(),
        kernel: context.host.kernel.clone(),
        mglru: context.mglru,
        filter: context.filter,
        facts: run.facts.into_iter().chain([own]).collect(),
        losses: context.losses.to_vec(),
        probes: session.probes(),
        ..run
    })
}

/// The machine and the tool, without any probe.
pub(super) fn machine(
    record: &Record,
    item: &Item,
    series: &str,
    host: &HostFacts,
) -> anyhow::Result<Run> {
    let conditions = Conditions::read(Path::new("/"), host);
    let own = RunFact {
        id: "tool_version".into(),
        value: Ok(env!("CARGO_PKG_VERSION").to_owned()),
    };
    let facts = conditions.all.into_iter().map(|c| fact(&c.id, c.value));
    let uname = rustix::system::uname();
    Ok(Run {
        id: identity()?,
        tool_version: env!("CARGO_PKG_VERSION").into(),
        host: scrub(uname.nodename().to_bytes()),
        kernel: scrub(uname.release().to_bytes()),
        interval_ns: u64::try_from(record.interval.as_nanos()).unwrap_or(u64::MAX),
        labels: record.labels.clone(),
        round: item.round.map(|(number, side)| Round {
            series: series.to_owned(),
            number,
            side: side.to_owned(),
        }),
        facts: std::iter::once(own).chain(facts).collect(),
        kernel_config: conditions.kernel_config,
        ..Run::default()
    })
}

fn fact(id: &str, value: Fact<String>) -> RunFact {
    RunFact {
        id: id.to_owned(),
        value: match value {
            Fact::Yes(value) => Ok(value),
            Fact::No(reason) => Err(format!("no: {reason}")),
            Fact::Unknown(reason) => Err(reason),
        },
    }
}

/// The command as it is known once it runs.
pub(super) fn workload(argv: &[OsString], child: &Child) -> Workload {
    let directory = std::env::current_dir().unwrap_or_default();
    Workload {
        argv: argv
            .iter()
            .map(|a| a.to_string_lossy().into_owned())
            .collect(),
        directory: directory.to_string_lossy().into_owned(),
        environment: environment(),
        tgid: child.pid(),
        start_mono_ns: child.started_ns(),
        output: run::Output::default(),
        refused: Vec::new(),
        ended: None,
    }
}

/// How it ended, in the recording's words.
pub(super) fn ended(ended: &Ended) -> run::Ended {
    run::Ended {
        mono_ns: ended.at_ns,
        code: ended.code,
        signal: ended.signal,
        usage: ended.usage.unwrap_or_default(),
    }
}

/// Its output, lossy; control characters stay, for a parser wants what was written.
pub(super) fn output(kept: &Kept) -> run::Output {
    run::Output {
        text: String::from_utf8_lossy(&kept.bytes).into_owned(),
        dropped_bytes: kept.dropped_bytes,
    }
}

/// Name of a command in messages.
pub(super) fn shown(argv: &[OsString]) -> String {
    argv.first()
        .map(|a| scrub(a.as_encoded_bytes()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_drawn() {
        let (a, b) = (identity().expect("random"), identity().expect("random"));
        assert!(
            a.len() == 32 && a != b && a.bytes().all(|b| b.is_ascii_hexdigit()),
            "{a} {b}"
        );
    }

    #[test]
    fn the_locale_is_set_and_told() {
        assert_eq!(environment()[0], ("LC_ALL".to_owned(), "C".to_owned()));
        assert!(NOTED.is_sorted());
    }

    #[test]
    fn a_reason_is_kept_in_place_of_a_value() {
        assert_eq!(fact("a", Fact::Yes("1".into())).value, Ok("1".into()));
        assert_eq!(
            fact("a", Fact::no("not built")).value,
            Err("no: not built".into())
        );
    }
}
