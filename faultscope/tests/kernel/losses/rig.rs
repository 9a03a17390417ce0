//! Programs and maps of a test, filled before anything is attached.

use std::path::Path;
use std::sync::Arc;

use bytemuck::Zeroable as _;
use faultscope::bpf::load::load;
use faultscope::bpf::{Maps, Programs, Sizes, object};
use faultscope::collect::{CATALOG, Collector, Now, Settings};
use faultscope::commands::{consult_kernel, hook};
use faultscope::export::{Format, Selection, Writer};
use faultscope::host::{Fact, HostFacts};
use faultscope::model::{Context, Model, TableId};
use faultscope::plan::{self, Plan, Request, Set, probe};
use faultscope::sample::run::LossKind;
use faultscope_common::loss;
use faultscope_common::thread::ThreadRow;

use crate::support::{self, demand_exactly};

/// A tag no thread has: ids have 22 bits at most (PID_MAX_LIMIT, include/linux/threads.h).
pub(super) const NOBODY: u64 = 1 << 40;
/// Times a test is repeated because others lost events as well.
const TRIES: usize = 20;

/// Programs and maps without a session, so that a test fills the maps first.
pub(super) struct Rig {
    pub(super) host: HostFacts,
    /// The kernel keeps RSS changes in the thread and hands them on at every 64th
    /// fault, and the tracepoint has a count (`SPLIT_RSS_COUNTING`, mm/memory.c of 6.1;
    /// both are gone with f1a7941243c1, 6.2). Others: an update for each anonymous page.
    pub(super) hands_on_rss: bool,
    pub(super) programs: Programs,
    pub(super) maps: Maps,
}

impl Rig {
    /// Attaches `programs` once `fill` has seen the maps; rows are kept for `pid` alone.
    pub(super) fn new(
        pid: u32,
        programs: &[&str],
        resize: impl FnOnce(&mut Sizes),
        fill: impl FnOnce(&mut Maps),
    ) -> Self {
        let mut host = HostFacts::read(Path::new("/"));
        let Fact::Yes(facts) = consult_kernel(Path::new("/"), &mut host) else {
            panic!("SKIP: the kernel's BTF cannot be used");
        };
        let plan = plan::plan(
            &facts,
            &Request {
                sets: [
                    Set::Core,
                    Set::Taken,
                    Set::Mmap,
                    Set::Lru,
                    Set::Rss,
                    Set::Madvise,
                    Set::Budget,
                    Set::Blocked,
                ]
                .into(),
                ..Request::core()
            },
        );
        let cpus = host.topology.cpus.iter().map(|c| c.cpu + 1).max();
        let mut sizes = Sizes::for_machine(cpus.unwrap_or(1), 0);
        resize(&mut sizes);
        let mut globals = plan.globals.clone();
        globals.push(("FILTERS", 1));
        let object = object::read(support::object().as_deref()).expect("the object");
        let loaded = load(&object, &globals, sizes).expect("the object loads");
        let online = host.topology.cpus.iter().filter(|c| c.is_online);
        let (mut attached, mut maps) = Programs::split(loaded, online.map(|c| c.cpu).collect());
        maps.set_filters(&[pid], &[], &[]).expect("one filter");
        fill(&mut maps);
        for name in programs {
            let name = prototype(&plan, name);
            let probe = probe(name).expect("a program of the catalogue");
            attached
                .attach(name, hook(probe.attach))
                .expect("it attaches");
        }
        Self {
            hands_on_rss: facts.tracepoints["rss_stat"].len() == 3,
            host,
            programs: attached,
            maps,
        }
    }

    /// Reading of a loss counter since attach.
    pub(super) fn lost(&self, index: usize) -> u64 {
        let rows = 0..self.maps.sizes.cpus as usize;
        rows.map(|cpu| self.maps.cpus.read(cpu).losses[index]).sum()
    }

    /// The model of everything since attach.
    pub(super) fn model(self) -> Model {
        let settings = Settings {
            root: "/".into(),
            topology: self.host.topology,
            cgroups: None,
            has_symbols: false,
            places: Vec::new(),
        };
        let now = Now {
            mono_ns: 1,
            real_ns: 1,
            cpu_ns: 1,
        };
        let delta = Collector::new(self.programs, self.maps, settings)
            .tick(now)
            .expect("the maps can be read");
        let context = Context {
            losses: LossKind::list(&CATALOG),
            ..Context::default()
        };
        Model::new(Arc::new(delta), Arc::new(context))
    }

    /// Demands that the counter reads exactly `wanted`, and that models and JSON say so.
    pub(super) fn demand(self, index: usize, wanted: u64) {
        let (id, _) = loss::ALL[index];
        demand_exactly(id, self.lost(index), wanted);
        // A counter moves on while the model is made where others lose as well.
        assert!(demand_told(&self.model(), index) >= wanted, "{id}");
    }
}

/// Demands that the model, its header's sum and the JSON tell of the loss; the counter's reading.
pub(super) fn demand_told(model: &Model, index: usize) -> u64 {
    let (id, _) = loss::ALL[index];
    let lost = model.lost.iter().find(|l| *l.id == *id).expect("a counter");
    assert!(lost.total > 0 && lost.increment == lost.total, "{lost:?}");
    assert!(model.lost_total() >= lost.total && model.delta().is_lossy());
    let selection = Selection {
        table: TableId::Losses,
        sort: None,
        word: String::new(),
        top: None,
    };
    let mut json = Vec::new();
    Writer::new(Format::Jsonl, selection)
        .expect("a format of top")
        .write(&mut json, model)
        .expect("memory can be written");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["lost"][id]["total"].as_u64(), Some(lost.total));
    lost.total
}

/// The program of this name that fits the running kernel's prototypes.
pub(super) fn prototype(plan: &Plan, name: &str) -> &'static str {
    plan.chosen
        .iter()
        .map(|probe| probe.program)
        .find(|program| program.strip_suffix("_memcg").unwrap_or(program) == name)
        .unwrap_or_else(|| panic!("SKIP: this kernel has nothing for \"{name}\""))
}

/// Gives the thread's slot to nobody, so that the thread finds it taken.
pub(super) fn take_slot(maps: &Maps, tid: u32) {
    let slot = tid & (maps.sizes.threads - 1);
    maps.threads.write_word(slot as usize, 0, NOBODY);
}

/// Gives every slot but the thread's to nobody: only this thread has a row.
pub(super) fn take_other_slots(maps: &Maps, tid: u32) {
    let own = tid & (maps.sizes.threads - 1);
    for slot in (0..maps.sizes.threads).filter(|slot| *slot != own) {
        maps.threads.write_word(slot as usize, 0, NOBODY);
    }
}

/// Fills the fall-back map, made for one row.
pub(super) fn fill_overflow(maps: &mut Maps) {
    maps.overflow
        .insert(NOBODY, ThreadRow::zeroed())
        .expect("the map is empty");
}

/// Repeats `attempt`, which gives a rig and what was lost, until only the child lost events.
pub(super) fn until_alone(index: usize, attempt: impl Fn() -> (Rig, u64)) {
    for _ in 1..TRIES {
        let (rig, wanted) = attempt();
        let lost = rig.lost(index);
        if lost == wanted {
            rig.demand(index, wanted);
            return;
        }
        println!(
            "  {}: {lost} lost, {wanted} of them by the child; again",
            loss::ALL[index].0
        );
        assert!(lost > wanted, "a counter never reads too little");
    }
    let (rig, wanted) = attempt();
    rig.demand(index, wanted);
}
