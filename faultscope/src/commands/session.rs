//! A live capture: host facts, plan, attached programs, one model per tick.

mod filter;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use self::filter::Filter;
use super::spinlocks::Spinlocks;
use super::{consult_kernel, hook};
use crate::bpf::{Maps, Programs, Sizes, load::load, object};
use crate::collect::{CATALOG, Collector, DEFAULT_REFAULT_WINDOW_NS, Now, Settings};
use crate::host::cgroup::CgroupPaths;
use crate::host::{Fact, HostFacts, clock};
use crate::model::{ATTACHED_ONLY, Context, HostLine, Missing, Model, Spinlock, TableId};
use crate::name::scrub;
use crate::plan::{self, Attached, PROBES, Plan, ProbeFacts, Request, Set, Why};
use crate::sample::run::LossKind;

/// Views that show what the set of LRU programs counts.
const LRU_VIEWS: &str = "LRU or CPUs";
/// Views that show takes and holds of mmap_lock.
const MMAP_VIEWS: &str = "holders, blocked, processes, threads, cgroups, spaces or findings";
const EXACT_HOLDS_BY_NAME: &str = "attached only by name, with \"--probe hold_release\" (\"hold_release_rt\" on \
     PREEMPT_RT): its programs run at every release of a spinlock";
/// Times a plan is made anew without what the kernel refused.
const REPLANS: usize = 4;

/// What is captured.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Processes, by id.
    pub pids: Vec<u32>,
    /// Memory cgroups and their descendants.
    pub cgroups: Vec<PathBuf>,
    /// Thread names, exact.
    pub comms: Vec<String>,
    /// Programs that must attach.
    pub named: BTreeSet<String>,
    /// Programs that must not be planned.
    pub forbidden: BTreeSet<String>,
    /// How long after memory was given back a fault on it counts; a second if not given.
    pub refault_window: Option<Duration>,
    /// The object to load in place of the embedded one.
    pub bpf_object: Option<PathBuf>,
    /// Map sizes in place of those for this machine.
    pub sizes: Option<Sizes>,
}

/// Programs attached, counters running.
#[derive(Debug)]
pub struct Session {
    collector: Collector,
    facts: ProbeFacts,
    request: Request,
    plan: Plan,
    attached: Vec<Attached>,
    /// Sets attached during the whole of the present interval.
    whole: BTreeSet<Set>,
    context: Context,
    spinlocks: Spinlocks,
    is_measured: bool,
    /// Why clock samples cannot be told apart, if they cannot.
    no_budget: Option<String>,
}

impl Session {
    /// Reads the host at `/`, attaches the core set and takes the base reading.
    ///
    /// # Errors
    /// [`Failure`](crate::error::Failure) for a missing right or BTF and for a filter that names
    /// nothing; otherwise what the kernel refused. Nothing stays attached.
    pub fn start(options: &Options) -> anyhow::Result<Self> {
        let root = Path::new("/");
        let mut host = HostFacts::read(root);
        let probes = consult_kernel(root, &mut host);
        Self::start_on(root, &host, probes, options)
    }

    /// The same with facts from elsewhere, so that tests can take rights away.
    ///
    /// # Errors
    /// As [`Session::start`].
    pub fn start_on(
        root: &Path,
        host: &HostFacts,
        probes: Fact<ProbeFacts>,
        options: &Options,
    ) -> anyhow::Result<Self> {
        if let Some(failure) = plan::refusal(host, &probes) {
            return Err(failure.into());
        }
        let Fact::Yes(facts) = probes else {
            anyhow::bail!("the kernel's BTF was refused without a reason");
        };
        let cgroups = host
            .memory_hierarchy
            .value()
            .map(|h| CgroupPaths::new(root, h));
        let filter = Filter::resolve(root, options, cgroups.as_ref())?;
        let request = Request {
            sets: named_sets(&options.named)
                .chain([Set::Core, Set::Learn])
                .collect(),
            named: options.named.clone(),
            forbidden: options.forbidden.clone(),
            refused: BTreeMap::new(),
        };
        let object = object::read(options.bpf_object.as_deref())?;
        let possible = host
            .topology
            .cpus
            .iter()
            .map(|c| c.cpu + 1)
            .max()
            .unwrap_or(1);
        let sizes = options
            .sizes
            .unwrap_or_else(|| Sizes::for_machine(possible, threads_now(root)));
        let mut start = Start {
            facts: &facts,
            request,
            object: &object,
            sizes,
            host,
            options,
            filter: &filter,
        };
        let (mut programs, maps, plan, attached) = start.run()?;
        let request = start.request;
        learn(&mut programs, &maps);
        programs.forget_btf();
        release_memory();
        let settings = Settings {
            root: root.to_owned(),
            topology: host.topology.clone(),
            cgroups,
            has_symbols: host.kernel.kallsyms.is_yes(),
            places: Vec::new(),
        };
        let mut session = Self {
            collector: Collector::new(programs, maps, settings),
            facts,
            request,
            plan,
            attached,
            whole: BTreeSet::new(),
            context: context(host, options),
            spinlocks: Spinlocks::new(host),
            is_measured: false,
            no_budget: None,
        };
        let window = refault_window_ns(options);
        session.collector.set_refault_window(window);
        session.request.sets.remove(&Set::Learn);
        session.whole = session.request.sets.clone();
        session.tell_places();
        session.collector.tick(now())?;
        Ok(session)
    }

    /// Attaches what `table` shows and detaches what nothing shows.
    pub fn show(&mut self, table: TableId) {
        let wanted: BTreeSet<Set> = sets(table)
            .iter()
            .copied()
            .chain(named_sets(&self.request.named))
            .chain([Set::Core])
            .collect();
        if wanted != self.request.sets {
            let mut request = Request {
                sets: wanted.clone(),
                ..self.request.clone()
            };
            let next = plan::plan(&self.facts, &request);
            let is_paired = |sets: &BTreeSet<Set>| sets.contains(&Set::Mmap);
            if is_paired(&wanted) && !is_paired(&self.request.sets) {
                self.collector.begin_mmap_era();
            }
            let programs = self.collector.programs();
            // What begins something goes before what ends it, or ends would be missed.
            for probe in PROBES.iter().rev() {
                if !next.has(probe.program) {
                    programs.detach(probe.program);
                }
            }
            let (next, attached) = attach_plan(programs, &self.facts, &mut request, next);
            programs.forget_btf();
            release_memory();
            self.plan = next;
            self.attached = attached;
            if !is_paired(&wanted) && is_paired(&self.request.sets) {
                self.collector.begin_mmap_era();
            }
            self.request = request;
            self.whole.retain(|set| wanted.contains(set));
            self.tell_places();
        }
        let is_findings = table == TableId::Findings;
        let is_locks = matches!(
            table,
            TableId::Locks | TableId::LockSites | TableId::LockHolders | TableId::LockBlocked
        );
        self.collector.set_stacks(is_locks || is_findings);
        self.collector
            .set_sharing(table == TableId::AddressSpaces || is_findings);
        self.no_budget = self
            .collector
            .set_budget((table == TableId::Budget || is_findings) && self.plan.has("budget"))
            .err();
        // Without the right to it, run times are absent; `doctor` says so.
        self.is_measured = self
            .collector
            .set_statistics(table == TableId::Programs)
            .is_ok();
    }

    /// Counts a tick that began late.
    pub fn overrun(&mut self) {
        self.collector.overrun();
    }

    /// Frees the rows of dead threads; to be called every second of a longer interval.
    ///
    /// # Errors
    /// A map that cannot be read.
    pub fn harvest(&mut self) -> anyhow::Result<()> {
        self.collector.harvest()
    }

    /// Whether rows of dead threads and takers should be freed again soon.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.collector.is_crowded()
    }

    /// The model of the time since the last call.
    ///
    /// # Errors
    /// A map that cannot be read.
    pub fn tick(&mut self) -> anyhow::Result<Model> {
        let delta = self.collector.tick(now())?;
        let context = Context {
            missing: self.missing().into(),
            spinlock: self.spinlocks.after(&delta),
            ..self.context.clone()
        };
        self.whole = self.request.sets.clone();
        Ok(Model::new(Arc::new(delta), Arc::new(context)))
    }

    /// Programs the user named that are not attached, with the reason.
    #[must_use]
    pub fn named_missing(&self) -> Vec<String> {
        self.plan
            .named_missing()
            .map(|o| {
                let program = o.program.unwrap_or(o.signal);
                format!(
                    "program \"{program}\", named with --probe, is not attached: {}",
                    o.reason
                )
            })
            .collect()
    }

    /// What the user of `table` is told once: signals of its columns that this
    /// host does not give, names that are hidden.
    #[must_use]
    pub fn messages(&self, table: TableId) -> Vec<String> {
        let mut missing = plan::missing(&self.plan, &self.attached);
        missing.retain(|m| table.fields().iter().any(|f| f.signal == m.signal));
        plan::status_line(&missing)
            .into_iter()
            .chain(self.context.notes.iter().cloned())
            .collect()
    }

    /// The collector, for tests that read rows.
    pub fn collector(&mut self) -> &mut Collector {
        &mut self.collector
    }

    /// Signals without a value in this interval.
    fn missing(&self) -> Vec<Missing> {
        let mut missing: Vec<Missing> = plan::missing(&self.plan, &self.attached)
            .into_iter()
            .map(|m| Missing {
                signal: m.signal.into(),
                reason: m.reason,
            })
            .collect();
        if let Some(reason) = &self.no_budget {
            missing.push(Missing {
                signal: "fault_budget".into(),
                reason: format!("kernel functions cannot be told: {reason}"),
            });
        }
        for (set, signal, view) in [
            (Set::Mmap, "mmap_lock_hold", MMAP_VIEWS),
            (Set::Lru, "lru", LRU_VIEWS),
            (Set::Lru, "mark_accessed", LRU_VIEWS),
            (Set::Lru, "workingset_activation", LRU_VIEWS),
            (Set::Lru, "workingset_refault", LRU_VIEWS),
            (Set::Lru, "drains", LRU_VIEWS),
            (Set::Lru, "batches", LRU_VIEWS),
            (Set::Holds, "lru_lock_hold", "lru_holds"),
            (Set::Rss, "rss_stat", "processes, CPUs or LRU"),
            (Set::Madvise, "madvise", "madvise"),
            (Set::Latency, "populate_faults", "faults"),
            (Set::Latency, "fault_latency", "faults"),
            (Set::Latency, "fault_backing", "faults"),
            (Set::Latency, "fault_pages", "faults"),
            (Set::Blocked, "blocked", "blocked"),
            (Set::Budget, "fault_budget", "budget"),
            (Set::Refaults, "refaults", "refaults"),
        ] {
            if !self.whole.contains(&set) && missing.iter().all(|m| *m.signal != *signal) {
                let reason = format!("{ATTACHED_ONLY} while a view that shows it is open ({view})");
                missing.push(Missing {
                    signal: signal.into(),
                    reason,
                });
            }
        }
        let signal = "lru_lock_exact_hold";
        if !self.whole.contains(&Set::ExactHolds) && missing.iter().all(|m| *m.signal != *signal) {
            let reason = EXACT_HOLDS_BY_NAME.to_owned();
            missing.push(Missing {
                signal: signal.into(),
                reason,
            });
        }
        missing
    }

    fn tell_places(&mut self) {
        for probe in PROBES {
            let place = if self.collector.programs().is_attached(probe.program) {
                probe.attach.hook()
            } else if let Some(reason) = self.request.refused.get(probe.program) {
                reason.clone()
            } else if probe.set == Set::Learn {
                "detached: needed at the start only".into()
            } else {
                self.plan
                    .omissions
                    .iter()
                    .find(|o| o.program == Some(probe.program))
                    .map_or_else(
                        || "not attached".into(),
                        |o| match o.why {
                            Why::NotRequested => "attached while a view shows it".into(),
                            _ => o.reason.clone(),
                        },
                    )
            };
            self.collector.set_place(probe.program, place);
        }
    }
}

/// Sets whose signals a table shows.
fn sets(table: TableId) -> &'static [Set] {
    match table {
        TableId::Cpus | TableId::Lru => &[Set::Lru, Set::Rss],
        TableId::Processes | TableId::Threads | TableId::Cgroups | TableId::AddressSpaces => {
            &[Set::Mmap, Set::Rss]
        }
        TableId::Madvise => &[Set::Madvise],
        // Ranges are kept by the programs that count the calls.
        TableId::Refaults => &[Set::Madvise, Set::Refaults],
        TableId::LruHolds => &[Set::Holds],
        TableId::FaultKinds
        | TableId::FaultLatency
        | TableId::FaultProcesses
        | TableId::FaultCpus => &[Set::Latency],
        TableId::LockHolders => &[Set::Mmap],
        // Holders are found among the holds that are being paired.
        TableId::LockBlocked => &[Set::Mmap, Set::Blocked],
        TableId::Budget => &[Set::Budget],
        // Whatever a rule looks at.
        TableId::Findings => &[
            Set::Mmap,
            Set::Blocked,
            Set::Latency,
            Set::Lru,
            Set::Madvise,
            Set::Refaults,
            Set::Budget,
        ],
        _ => &[],
    }
}

/// Sets of the programs the user named: attached whatever is shown.
fn named_sets(named: &BTreeSet<String>) -> impl Iterator<Item = Set> {
    named
        .iter()
        .filter_map(|name| plan::probe(name))
        .flat_map(|probe| match probe.set {
            Set::Refaults => vec![Set::Madvise, Set::Refaults],
            Set::Blocked => vec![Set::Mmap, Set::Blocked],
            set => vec![set],
        })
}

/// What it takes to bring the programs into the kernel.
struct Start<'a> {
    facts: &'a ProbeFacts,
    request: Request,
    object: &'a [u8],
    sizes: Sizes,
    host: &'a HostFacts,
    options: &'a Options,
    filter: &'a Filter,
}

impl Start<'_> {
    /// Loads the object for a plan and attaches it; starts over, without what the
    /// kernel refused, if that changes what the others may rely on (their globals).
    fn run(&mut self) -> anyhow::Result<(Programs, Maps, Plan, Vec<Attached>)> {
        loop {
            let plan = plan::plan(self.facts, &self.request);
            let wanted = plan.globals.clone();
            let (mut programs, maps) = self.load(&plan)?;
            let (plan, attached) = attach_plan(&mut programs, self.facts, &mut self.request, plan);
            if plan.globals == wanted {
                return Ok((programs, maps, plan, attached));
            }
        }
    }

    fn load(&self, plan: &Plan) -> anyhow::Result<(Programs, Maps)> {
        let mut globals = plan.globals.clone();
        globals.push(("FILTERS", self.filter.kinds()));
        globals.push(("REFAULT_WINDOW_NS", refault_window_ns(self.options)));
        let loaded = load(self.object, &globals, self.sizes)?;
        let cpus = &self.host.topology.cpus;
        let online = cpus.iter().filter(|c| c.is_online).map(|c| c.cpu).collect();
        let (programs, mut maps) = Programs::split(loaded, online);
        let place = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
        let places: Vec<_> = cpus
            .iter()
            .map(|c| (c.cpu, place(c.core), place(c.llc), place(c.node)))
            .collect();
        maps.set_places(&places);
        maps.set_filters(&self.options.pids, &self.filter.cgroups, &self.filter.comms)
            .context("writing the filters into the BPF maps")?;
        Ok((programs, maps))
    }
}

/// Attaches a plan; what the kernel refuses is kept in the request, with its reason, and planned around.
fn attach_plan(
    programs: &mut Programs,
    facts: &ProbeFacts,
    request: &mut Request,
    mut plan: Plan,
) -> (Plan, Vec<Attached>) {
    let mut attached: Vec<Attached> = Vec::new();
    for _ in 0..REPLANS {
        attached.clear();
        let mut parts: BTreeSet<&str> = BTreeSet::new();
        for probe in &plan.chosen {
            let outcome = programs.attach(probe.program, hook(probe.attach));
            if outcome.is_err() {
                parts.insert(probe.part);
            }
            attached.push(Attached {
                program: probe.program,
                outcome,
            });
        }
        if parts.is_empty() {
            break;
        }
        // A part counts only as a whole.
        for probe in plan.chosen.iter().filter(|p| parts.contains(p.part)) {
            programs.detach(probe.program);
        }
        for failed in &attached {
            if let Err(reason) = &failed.outcome {
                request
                    .refused
                    .insert(failed.program.to_owned(), reason.clone());
            }
        }
        plan = plan::plan(facts, request);
    }
    (plan, attached)
}

/// Runs the program that learns one page descriptor's address, then removes it.
fn learn(programs: &mut Programs, maps: &Maps) {
    const PAGES: usize = 64;
    if !programs.is_attached("learn_page") {
        return;
    }
    for _ in 0..8 {
        // Touching fresh pages allocates them.
        std::hint::black_box(vec![1_u8; PAGES * 4096]);
        if maps.control.read(0).vmemmap != 0 {
            break;
        }
    }
    programs.detach("learn_page");
}

fn context(host: &HostFacts, options: &Options) -> Context {
    let mut filter: Vec<String> = Vec::new();
    filter.extend(options.pids.iter().map(|pid| format!("pid {pid}")));
    filter.extend(
        options
            .cgroups
            .iter()
            .map(|p| format!("cgroup {}", scrub(p.as_os_str().as_encoded_bytes()))),
    );
    filter.extend(
        options
            .comms
            .iter()
            .map(|c| format!("comm {}", scrub(c.as_bytes()))),
    );
    Context {
        host: Arc::new(HostLine {
            name: scrub(rustix::system::uname().nodename().to_bytes()),
            kernel: scrub(rustix::system::uname().release().to_bytes()),
        }),
        missing: Arc::from([]),
        filter: filter.join(", "),
        mglru: super::mglru_sentence(&host.kernel.mglru),
        spinlock: Spinlock::default(),
        notes: hidden_symbols(&host.kernel.kallsyms).into_iter().collect(),
        losses: LossKind::list(&CATALOG),
    }
}

fn refault_window_ns(options: &Options) -> u64 {
    let window = options.refault_window.map(|window| window.as_nanos());
    window.map_or(DEFAULT_REFAULT_WINDOW_NS, |ns| {
        u64::try_from(ns).unwrap_or(u64::MAX)
    })
}

/// Why call sites have no names, if they have none.
fn hidden_symbols(kallsyms: &Fact<()>) -> Option<String> {
    kallsyms.reason().map(|reason| {
        format!("call sites have no names: {reason}; \"faultscope doctor\" names the fix")
    })
}

fn threads_now(root: &Path) -> u32 {
    // "0.00 0.01 0.05 1/234 5678": running/all.
    std::fs::read_to_string(root.join("proc/loadavg"))
        .ok()
        .and_then(|text| {
            text.split_whitespace()
                .nth(3)?
                .split_once('/')?
                .1
                .parse()
                .ok()
        })
        .unwrap_or(0)
}

/// Gives freed memory back: the kernel's type information is tens of megabytes.
fn release_memory() {
    // SAFETY: takes a number, touches only the allocator's own state.
    unsafe {
        libc::malloc_trim(0);
    }
}

fn now() -> Now {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let ns = |t: rustix::time::Timespec| {
        u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0)
    };
    Now {
        mono_ns: clock::monotonic_ns(),
        real_ns: clock::realtime_ns(),
        cpu_ns: ns(cpu),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_takes_and_holds_attaches_what_measures_them() {
        for table in TableId::ALL {
            let mut fields = table.fields().iter();
            let is_shown = fields.any(|field| field.signal == "mmap_lock_hold");
            assert_eq!(
                sets(*table).contains(&Set::Mmap),
                is_shown || matches!(table, TableId::LockBlocked | TableId::Findings),
                "{table:?}"
            );
        }
    }

    #[test]
    fn a_named_program_brings_the_sets_it_relies_on() {
        let named = BTreeSet::from(["blocked_begin".to_owned(), "mmap_start".to_owned()]);
        let sets: BTreeSet<Set> = named_sets(&named).collect();
        assert_eq!(sets, BTreeSet::from([Set::Mmap, Set::Blocked]));
    }
}
