//! A live capture: host facts, plan, attached programs, one model per tick.

mod filter;
mod shown;
mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use self::filter::Filter;
use self::shown::{Shown, named_sets, with_needs};
use self::start::{Start, attach_plan, learn, release_memory, threads_now};
use super::consult_kernel;
use super::spinlocks::Spinlocks;
use crate::bpf::{Sizes, object};
use crate::collect::{CATALOG, Collector, DEFAULT_REFAULT_WINDOW_NS, Now, Settings};
use crate::host::cgroup::CgroupPaths;
use crate::host::{Fact, HostFacts, clock};
use crate::model::{Context, HostLine, Missing, Model, Spinlock, TableId};
use crate::name::scrub;
use crate::plan::{self, Attached, PROBES, Plan, ProbeFacts, Request, Set, Why};
use crate::sample::{
    Interval,
    run::{LossKind, RunProbe},
};

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
    /// Sets that a recording has beside the core set; all that are not attached by name only if not given.
    pub recorded: Option<Vec<Set>>,
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
            sets: with_needs(named_sets(&options.named).chain([Set::Core, Set::Learn])),
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
        self.measure_also(&Shown::table(table));
    }

    /// Attaches what a recording holds: everything but what is attached by name only, with the process tree of a
    /// command if it is `with_workload`.
    pub fn record_all(&mut self, with_workload: bool) {
        self.measure_also(&Shown::recording(with_workload));
    }

    /// Attaches what a recording of `options` holds.
    pub fn record(&mut self, options: &Options, with_workload: bool) {
        match &options.recorded {
            None => self.record_all(with_workload),
            Some(sets) => self.measure_also(&Shown::of_sets(sets, with_workload)),
        }
    }

    fn measure_also(&mut self, shown: &Shown) {
        let sets = shown.sets.iter().copied();
        let named = named_sets(&self.request.named);
        let wanted = with_needs(sets.chain(named).chain([Set::Core]));
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
        self.collector.set_stacks(shown.stacks);
        self.collector.set_sharing(shown.sharing);
        self.no_budget = self
            .collector
            .set_budget(shown.budget && self.plan.has("budget"))
            .err();
        // Without the right to it, run times are absent; `doctor` says so.
        self.is_measured = self.collector.set_statistics(shown.statistics).is_ok();
    }

    /// Runs `start`, and marks every process it starts, with its descendants, as the workload of this capture.
    ///
    /// # Errors
    /// What bpf(2) says; `start` is not run then.
    pub fn mark<T>(&mut self, start: impl FnOnce() -> T) -> anyhow::Result<T> {
        self.collector.set_workload(true)?;
        let started = start();
        self.collector.set_workload(false)?;
        Ok(started)
    }

    /// Says which process is the command of this capture.
    pub fn set_workload_root(&mut self, tgid: u32) {
        self.collector.set_workload_root(tgid);
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
        let interval = self.interval()?;
        let context = Context {
            missing: interval.missing,
            spinlock: interval.spinlock,
            ..self.context.clone()
        };
        Ok(Model::new(interval.delta, Arc::new(context)))
    }

    /// The increments since the last call, and what goes with them.
    ///
    /// # Errors
    /// A map that cannot be read.
    pub fn interval(&mut self) -> anyhow::Result<Interval> {
        let delta = self.collector.tick(now())?;
        let interval = Interval {
            missing: self.missing().into(),
            spinlock: self.spinlocks.after(&delta),
            notes: self.context.notes.clone(),
            delta: Arc::new(delta),
        };
        self.whole = self.request.sets.clone();
        Ok(interval)
    }

    /// What holds for the whole capture.
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// What became of each program of the catalogue, in its order.
    #[must_use]
    pub fn probes(&mut self) -> Vec<RunProbe> {
        let programs = self.collector.programs();
        let is_attached: Vec<bool> = PROBES
            .iter()
            .map(|probe| programs.is_attached(probe.program))
            .collect();
        let first = |probe: &plan::Probe| {
            let same_part = PROBES.iter().find(|p| p.part == probe.part && p.way == 0)?;
            (probe.way > 0).then(|| same_part.program.to_owned())
        };
        PROBES
            .iter()
            .zip(is_attached)
            .map(|(probe, is_attached)| RunProbe {
                program: probe.program.to_owned(),
                signal: probe.signal.to_owned(),
                is_attached,
                place: self.place(probe, is_attached),
                substitutes: first(probe).filter(|_| is_attached),
            })
            .collect()
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
        shown::add_unattached(&self.whole, &mut missing);
        missing
    }

    fn tell_places(&mut self) {
        for probe in PROBES {
            let is_attached = self.collector.programs().is_attached(probe.program);
            let place = self.place(probe, is_attached);
            self.collector.set_place(probe.program, place);
        }
    }

    /// Hook of a program, or why it is not attached.
    fn place(&self, probe: &plan::Probe, is_attached: bool) -> String {
        if is_attached {
            return probe.attach.hook();
        }
        if let Some(reason) = self.request.refused.get(probe.program) {
            return reason.clone();
        }
        if probe.set == Set::Learn {
            return "detached: needed at the start only".into();
        }
        let omission = self
            .plan
            .omissions
            .iter()
            .find(|o| o.program == Some(probe.program));
        omission.map_or_else(
            || "not attached".into(),
            |o| match o.why {
                Why::NotRequested => "attached while a view shows it".into(),
                _ => o.reason.clone(),
            },
        )
    }
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
