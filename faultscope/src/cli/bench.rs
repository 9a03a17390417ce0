//! Arguments of `bench`, and of the process that does the work of a point.

use std::path::PathBuf;

use clap::Args;

use super::choice;
use crate::commands::bench::{self, Bench, Case, Job, Options, Style};

/// Exit codes of `bench`.
pub(super) const EXIT_CODES: &str = "\
Exit status:
  0    Every point was made.
  1    A point failed, or an error, named on standard error; other points were made.
  2    The command line is wrong.
  3    CAP_BPF, CAP_PERFMON or the kernel's BTF is missing; nothing was run. --bare needs none of them.
  4    Every point was made, but more than 0.1 % of events were lost or a recording is not whole.
  5    Points were skipped that cannot be run here; the others were made.
  130  Ctrl-C, or 128 and the number of another signal: the points made before it are kept and shown.";

/// Largest number of threads that can be asked for: as many as the kernel has CPUs at most.
const MOST_MEMBERS: usize = 8192;

/// Arguments of `bench`.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// Names the bench: fault, madvise, accessed or mmap; suite runs all of them at small sizes.
    #[arg(value_name = "NAME", required_unless_present = "list", value_parser = parse_chosen)]
    pub bench: Option<Chosen>,
    /// Lists the benches, what each settles, and their cases.
    #[arg(long, conflicts_with = "bench")]
    pub list: bool,
    /// Runs these cases, "all" of them, or by default those that --list marks.
    #[arg(long = "case", value_name = "CASE,…", value_delimiter = ',')]
    pub cases: Vec<String>,
    /// Runs so many threads in one address space; by default 1, 2, 4 and on up to the CPUs there are.
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = parse_members)]
    pub threads: Vec<usize>,
    /// Runs so many processes, each in an address space of its own; beside --threads as further points.
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = parse_members)]
    pub processes: Vec<usize>,
    /// Makes every point so many times, from 1 to 1000; the points take turns.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub reps: u32,
    /// Sets the memory of a point, of all its threads together: a number with K, M, G or T; several are further points.
    #[arg(long = "size", value_name = "SIZE,…", value_delimiter = ',', value_parser = parse_size)]
    pub sizes: Vec<u64>,
    /// Does the work of a point so many times over, from 1 to 1000000; in the column Rep.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rounds: Option<u32>,
    /// Writes the runs into this directory, which is made; by default faultscope-bench-NAME-TIME.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Runs without any probe, for machines without BPF and to see what probes cost.
    #[arg(long, conflicts_with_all = ["core", "bpf_object"])]
    pub bare: bool,
    /// Attaches the core probes only, those that top always has.
    #[arg(long)]
    pub core: bool,
    /// Lays the table out in all columns (table), or as the page-fault test of 2004 did (pft), which import reads.
    #[arg(long, value_name = "STYLE", default_value = "table", value_parser = parse_style)]
    pub style: Style,
    /// Leaves it to the kernel where threads run, in place of a CPU for each.
    #[arg(long)]
    pub no_pin: bool,
    /// Makes files that the work needs in this directory; by default the current one.
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// Uses this compiled BPF object in place of the one built in.
    #[arg(long, value_name = "PATH")]
    pub bpf_object: Option<PathBuf>,
}

/// What a name on the command line stands for.
#[derive(Debug, Clone, Copy)]
pub enum Chosen {
    /// One bench.
    One(&'static Bench),
    /// All of them.
    Suite,
}

/// What `bench` does.
#[derive(Debug, Clone)]
pub enum BenchRequest {
    /// Says what there is.
    List,
    /// Runs one bench.
    One(Options),
    /// Runs all of them.
    Suite(Vec<Options>),
}

impl BenchArgs {
    /// What to do.
    ///
    /// # Errors
    /// A sentence for a case that the bench does not have, and for options that the suite does not take.
    pub fn request(self) -> Result<BenchRequest, String> {
        match self.bench {
            None => Ok(BenchRequest::List),
            Some(Chosen::One(bench)) => self.options(bench).map(BenchRequest::One),
            Some(Chosen::Suite) => {
                if !self.cases.is_empty() || self.style != Style::Table {
                    return Err(
                        "the suite has cases of its own and one style; --case and --style go with one bench".to_owned(),
                    );
                }
                let all = bench::BENCHES.iter().map(|bench| {
                    let short = &bench.short;
                    let mut options = Self {
                        cases: short.cases.iter().map(|case| (*case).to_owned()).collect(),
                        rounds: self.rounds.or(Some(short.rounds)),
                        ..self.clone()
                    };
                    if options.sizes.is_empty() {
                        options.sizes.push(short.bytes);
                    }
                    options.options(bench)
                });
                all.collect::<Result<_, _>>().map(BenchRequest::Suite)
            }
        }
    }

    fn options(self, bench: &'static Bench) -> Result<Options, String> {
        let mut cases = Vec::new();
        for name in &self.cases {
            if name == "all" {
                cases.extend(bench.cases.iter());
            } else {
                cases.push(find_case(bench, name)?);
            }
        }
        Ok(Options {
            bench,
            cases,
            threads: self.threads,
            processes: self.processes,
            sizes: self.sizes,
            rounds: self.rounds,
            repetitions: self.reps,
            output: self.output,
            files: self.files,
            is_bare: self.bare,
            is_core: self.core,
            is_pinned: !self.no_pin,
            style: self.style,
            bpf_object: self.bpf_object,
        })
    }
}

/// Arguments of the process that does the work of a point, as [`Job::arguments`] writes them.
#[derive(Debug, Clone, Args)]
pub struct BenchLoadArgs {
    /// Names the bench.
    #[arg(value_name = "NAME", value_parser = parse_bench)]
    pub bench: &'static Bench,
    /// Its case.
    #[arg(long = "case", value_name = "CASE")]
    pub case: String,
    /// Threads.
    #[arg(long, value_name = "N", value_parser = parse_members, required_unless_present = "processes")]
    pub threads: Option<usize>,
    /// Processes.
    #[arg(long, value_name = "N", value_parser = parse_members, conflicts_with = "threads")]
    pub processes: Option<usize>,
    /// Memory of all of them together.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: u64,
    /// Times the work is done.
    #[arg(long, value_name = "N")]
    pub rounds: u32,
    /// Nobody is bound to a CPU.
    #[arg(long)]
    pub no_pin: bool,
    /// Memory cgroup in which the work is done.
    #[arg(long, value_name = "DIR")]
    pub cgroup: Option<PathBuf>,
    /// Directory for files.
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
}

impl BenchLoadArgs {
    /// The point.
    ///
    /// # Errors
    /// A sentence for a case that the bench does not have.
    pub fn job(self) -> Result<Job, String> {
        Ok(Job {
            bench: self.bench,
            case: find_case(self.bench, &self.case)?,
            members: self.threads.or(self.processes).unwrap_or(1),
            are_processes: self.processes.is_some(),
            bytes: self.size,
            has_sizes: false,
            rounds: self.rounds,
            repetition: 1,
            is_pinned: !self.no_pin,
            cgroup: self.cgroup,
            directory: self.files,
        })
    }
}

fn parse_bench(name: &str) -> Result<&'static Bench, String> {
    bench::find(name).ok_or_else(|| {
        let names: Vec<&str> = bench::BENCHES.iter().map(|b| b.name).collect();
        format!("there is no bench \"{name}\"; use {}", choice(&names))
    })
}

fn parse_chosen(name: &str) -> Result<Chosen, String> {
    if name == bench::SUITE {
        return Ok(Chosen::Suite);
    }
    bench::find(name).map(Chosen::One).ok_or_else(|| {
        let names: Vec<&str> = bench::BENCHES.iter().map(|b| b.name).collect();
        format!(
            "there is no bench \"{name}\"; use {}, or {} for all of them",
            choice(&names),
            bench::SUITE
        )
    })
}

fn find_case(bench: &'static Bench, name: &str) -> Result<&'static Case, String> {
    bench
        .cases
        .iter()
        .find(|case| case.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = bench.cases.iter().map(|c| c.name).collect();
            format!(
                "bench {} has no case \"{name}\"; it has {}, and \"all\" for all of them",
                bench.name,
                names.join(", ")
            )
        })
}

fn parse_members(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=MOST_MEMBERS) => Ok(n),
        _ => Err(format!(
            "a number of threads or processes is from 1 to {MOST_MEMBERS}, for example 1,2,4"
        )),
    }
}

fn parse_style(name: &str) -> Result<Style, String> {
    match name {
        "table" => Ok(Style::Table),
        "pft" => Ok(Style::Pft),
        _ => Err(format!("there is no style \"{name}\"; use table or pft")),
    }
}

/// `64M` as bytes; whole pages of 4 KiB at least.
fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "\"{text}\" is no size: a whole number, with K, M, G or T for KiB, MiB, GiB or TiB, and at least 4K"
        )
    };
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "k" | "KiB" => 10,
        "M" | "m" | "MiB" => 20,
        "G" | "g" | "GiB" => 30,
        "T" | "t" | "TiB" => 40,
        _ => return Err(wrong()),
    };
    let n: u64 = digits.parse().map_err(|_| wrong())?;
    n.checked_mul(1 << shift)
        .filter(|bytes| *bytes >= 4096 && *bytes % 4096 == 0)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_pages() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("64M"), Ok(64 << 20));
        assert_eq!(parse_size("2GiB"), Ok(2 << 30));
        for wrong in [
            "",
            "M",
            "1",
            "4097",
            "0",
            "-1M",
            "1.5G",
            "64MB",
            "99999999T",
        ] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
