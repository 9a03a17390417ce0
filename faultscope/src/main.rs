//! The `faultscope` binary: parse, dispatch, one message and a status.

use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;

use faultscope::cli::{Cli, ColorWhen, Command, DoctorArgs, TopArgs};
use faultscope::commands::session::Options;
use faultscope::commands::top::{self, Top};
use faultscope::commands::{consult_kernel, doctor};
use faultscope::error::{Exit, Failure, is_broken_pipe, message};
use faultscope::host::HostFacts;
use faultscope::tui::{self, ColorChoice};

fn main() -> ExitCode {
    let outcome = match Cli::from_args().command {
        Command::Doctor(args) => run_doctor(&args),
        Command::Top(args) => run_top(args),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) => {
            if !is_broken_pipe(&error) {
                // A closed standard error leaves nobody to tell.
                writeln!(io::stderr(), "faultscope: {}", message(&error)).ok();
            }
            Exit::of(&error).into()
        }
    }
}

fn run_doctor(args: &DoctorArgs) -> anyhow::Result<Exit> {
    let root = Path::new("/");
    let mut host = HostFacts::read(root);
    let probes = consult_kernel(root, &mut host);
    let mut trial = doctor::KernelTrial::new(args.bpf_object.as_deref(), &host.topology)?;
    let report = doctor::examine(
        &host,
        &probes,
        &doctor::Surroundings::read(root),
        &mut trial,
    );
    if let Some(error) = trial.unusable() {
        return Err(error.into());
    }
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        report.write_json(&mut out)?;
    } else {
        report.write_text(&mut out)?;
    }
    out.flush()?;
    Ok(report.exit())
}

fn run_top(args: TopArgs) -> anyhow::Result<Exit> {
    args.check().map_err(Failure::Usage)?;
    top::run(&Top {
        capture: Options {
            pids: args.pids,
            cgroups: args.cgroups,
            comms: args.comms,
            named: args.probes.into_iter().map(str::to_owned).collect(),
            bpf_object: args.bpf_object,
            ..Options::default()
        },
        is_batch: args.batch,
        count: args.count,
        interval: args.interval,
        format: args.format,
        top: args.top.map(|k| k as usize),
        screen: tui::Options {
            start: args.view,
            sort: args.sort.map(str::to_owned),
            filter: args.filter,
            color: match args.color {
                ColorWhen::Auto => ColorChoice::Auto,
                ColorWhen::Always => ColorChoice::Always,
                ColorWhen::Never => ColorChoice::Never,
            },
            ascii: args.ascii,
            mouse: !args.no_mouse,
        },
    })
}
