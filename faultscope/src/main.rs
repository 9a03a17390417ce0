//! The `faultscope` binary: parse, dispatch, one message and a status.

use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use faultscope::bpf::object;
use faultscope::cli::{
    BenchArgs, BenchLoadArgs, BenchRequest, Choice, Cli, ColorWhen, Command, CompareArgs,
    DoctorArgs, ImportArgs, RecordArgs, ReportArgs, TopArgs,
};
use faultscope::commands::record::{self, Record};
use faultscope::commands::session::Options;
use faultscope::commands::top::{self, From, Top};
use faultscope::commands::{bench, compare, consult_kernel, cost, doctor, import, report};
use faultscope::error::{Exit, Failure, is_broken_pipe, message};
use faultscope::host::{Fact, HostFacts};
use faultscope::tui::{self, ColorChoice};
use faultscope::workload::Defaults;

/// Status of `record` with a command for an error of our own.
const OWN_ERROR: u8 = 125;

fn main() -> ExitCode {
    let outcome = match Cli::from_args().command {
        Command::Bench(args) => return ended(run_bench(*args)),
        Command::BenchLoad(args) => return ended(run_bench_load(args)),
        Command::Compare(args) => return run_compare(*args),
        Command::Doctor(args) => run_doctor(&args),
        Command::Import(args) => run_import(args),
        Command::Report(args) => run_report(args),
        Command::Top(args) => run_top(*args),
        Command::Record(args) => return run_record(*args),
    };
    ended(outcome.map(|exit| exit as u8))
}

/// The status of a command, with one message for what ended it.
fn ended(outcome: anyhow::Result<u8>) -> ExitCode {
    match outcome {
        Ok(status) => status.into(),
        Err(error) => {
            if !is_broken_pipe(&error) {
                // A closed standard error leaves nobody to tell.
                writeln!(io::stderr(), "faultscope: {}", message(&error)).ok();
            }
            Exit::of(&error).into()
        }
    }
}

/// A status says what was found, so what kept us from finding it has one of its own.
fn run_compare(args: CompareArgs) -> ExitCode {
    let compared = args
        .request()
        .map_err(|reason| Failure::Usage(reason).into())
        .and_then(|request| compare::run(&request, &mut BufWriter::new(io::stdout().lock())));
    match compared {
        Ok(outcome) => ExitCode::from(outcome as u8),
        Err(error) if is_broken_pipe(&error) => Exit::Done.into(),
        Err(error) => {
            // A closed standard error leaves nobody to tell.
            writeln!(io::stderr(), "faultscope: {}", message(&error)).ok();
            Exit::Usage.into()
        }
    }
}

fn run_doctor(args: &DoctorArgs) -> anyhow::Result<Exit> {
    let root = Path::new("/");
    let mut host = HostFacts::read(root);
    let probes = consult_kernel(root, &mut host);
    let mut trial = doctor::KernelTrial::new(args.bpf_object.as_deref(), &host.topology)?;
    let mut report = doctor::examine(
        &host,
        &probes,
        &doctor::Surroundings::read(root),
        &mut trial,
    );
    if let Some(error) = trial.unusable() {
        return Err(error.into());
    }
    // With nothing attachable there is nothing to measure, and the report says why.
    let attachable = report.attachable();
    if args.cost
        && !attachable.is_empty()
        && let Fact::Yes(probes) = &probes
    {
        let object = object::read(args.bpf_object.as_deref())?;
        let costs = cost::measure(&host, probes, &object, &attachable, &mut |what| {
            // Somebody who waits half a minute wants to see it move; a closed standard error does not matter.
            if io::stderr().is_terminal() {
                writeln!(io::stderr(), "measuring {what}").ok();
            }
        })?;
        report.set_costs(costs);
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

/// A command's status comes first, so our own errors have another one than those of other subcommands.
fn run_record(args: RecordArgs) -> ExitCode {
    let has_command = !args.command.is_empty();
    let recorded = record::run(&Record {
        capture: Options {
            pids: args.filters.pids,
            cgroups: args.filters.cgroups,
            comms: args.filters.comms,
            named: args.probes.into_iter().map(str::to_owned).collect(),
            bpf_object: args.bpf_object,
            ..Options::default()
        },
        output: args.output,
        interval: args.interval,
        duration: args.duration,
        command: args.command,
        repeat: args.repeat,
        alternate: args.alternate,
        setups: args.alternate_setup,
        labels: args.labels.into_iter().collect(),
        metrics: args.metrics,
        is_strict: args.strict,
        is_quiet: false,
    });
    match recorded {
        Ok(status) => status.into(),
        Err(error) => {
            // A closed standard error leaves nobody to tell.
            writeln!(io::stderr(), "faultscope: {}", message(&error)).ok();
            if has_command {
                OWN_ERROR.into()
            } else {
                Exit::of(&error).into()
            }
        }
    }
}

fn run_bench(args: BenchArgs) -> anyhow::Result<u8> {
    // Rows are flushed one by one, so that a sweep can be watched.
    let mut out = BufWriter::new(io::stdout().lock());
    match args.request().map_err(Failure::Usage)? {
        BenchRequest::One(options) => bench::run(&options, &mut out, &mut io::stderr()),
        BenchRequest::Suite(all) => bench::run_suite(&all, &mut out, &mut io::stderr()),
        BenchRequest::List => {
            bench::list(&mut out)?;
            out.flush()?;
            Ok(0)
        }
    }
}

fn run_bench_load(args: BenchLoadArgs) -> anyhow::Result<u8> {
    bench::load(&args.job().map_err(Failure::Usage)?)
}

fn run_import(args: ImportArgs) -> anyhow::Result<Exit> {
    let options = import::Options {
        files: args.files,
        directory: args.output,
        format: match args.format {
            Choice::Auto => None,
            Choice::Only(format) => Some(format),
        },
        rules: args.metrics,
        labels: args.labels.into_iter().collect(),
        defaults: Defaults {
            name: args.name,
            unit: args.unit,
            direction: args.direction.map(Into::into),
        },
    };
    let (mut input, mut out) = (io::stdin().lock(), BufWriter::new(io::stdout().lock()));
    import::run(
        &options,
        &mut input,
        &mut import::save,
        &mut out,
        &mut io::stderr(),
    )
}

fn run_report(args: ReportArgs) -> anyhow::Result<Exit> {
    let request = args.request().map_err(Failure::Usage)?;
    report::run(&request, &mut BufWriter::new(io::stdout().lock()))
}

fn run_top(args: TopArgs) -> anyhow::Result<Exit> {
    args.check().map_err(Failure::Usage)?;
    let from = match args.replay {
        Some(path) => From::Recording(path),
        None if args.demo => From::Demo,
        None => From::Kernel(Box::new(Options {
            pids: args.filters.pids,
            cgroups: args.filters.cgroups,
            comms: args.filters.comms,
            named: args.probes.into_iter().map(str::to_owned).collect(),
            refault_window: Some(args.refault_window),
            bpf_object: args.bpf_object,
            ..Options::default()
        })),
    };
    top::run(&Top {
        from,
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
