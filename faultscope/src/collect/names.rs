//! Names of processes, cgroups and call chains, each looked up once.

use crate::{
    bpf::Maps,
    host::{cgroup::CgroupPaths, process},
    sample::{Delta, delta::CallChain},
    symbol::{KernelSymbols, call_site, is_paravirtual},
};
use std::{collections::HashMap, path::PathBuf, sync::Arc};

/// Names kept of processes that are gone, and of functions.
const MAX_NAMES: usize = 65_536;

/// Caches of names.
#[derive(Debug)]
pub(super) struct Names {
    root: PathBuf,
    cgroups: Option<CgroupPaths>,
    processes: HashMap<u32, Arc<str>>,
    chains: Arc<HashMap<u32, Arc<CallChain>>>,
    /// Functions by return address: making the symbol table anew takes longer than all else in a tick, and it is too
    /// large to keep.
    functions: HashMap<u64, Option<String>>,
    has_symbols: bool,
    is_paravirtual: Option<bool>,
    symbols_refused: Option<String>,
}

impl Names {
    /// `cgroups` is `None` where no hierarchy holds the memory controller;
    /// without `has_symbols` call chains are addresses.
    pub(super) fn new(root: PathBuf, cgroups: Option<CgroupPaths>, has_symbols: bool) -> Self {
        Self {
            root,
            cgroups,
            processes: HashMap::new(),
            chains: Arc::default(),
            functions: HashMap::new(),
            has_symbols,
            is_paravirtual: None,
            symbols_refused: None,
        }
    }

    /// Fills in the names of everything that has a row in `delta`.
    pub(super) fn fill(&mut self, maps: &Maps, delta: &mut Delta) {
        self.processes(delta);
        self.cgroups(delta);
        self.chains(maps, delta);
        delta.chains = Arc::clone(&self.chains);
        delta.is_paravirtual = self.is_paravirtual;
        delta.symbols_refused.clone_from(&self.symbols_refused);
    }

    fn processes(&mut self, delta: &mut Delta) {
        if self.processes.len() > MAX_NAMES {
            self.processes.clear();
        }
        let root = &self.root;
        let mut threads: HashMap<u32, Arc<str>> = HashMap::new();
        for (id, process) in &mut delta.processes {
            if !process.comm.is_empty() {
                self.processes.insert(id.tgid, Arc::clone(&process.comm));
            } else if !process.counters.is_zero() {
                // Only other threads than the first have a row.
                process.comm = Arc::clone(self.processes.entry(id.tgid).or_insert_with(|| {
                    process::read_comm(root, id.tgid).unwrap_or_default().into()
                }));
                if process.comm.is_empty() {
                    // Gone already: any thread's name is better than none.
                    if threads.is_empty() {
                        threads = delta
                            .threads
                            .values()
                            .map(|t| (t.process.tgid, Arc::clone(&t.comm)))
                            .collect();
                    }
                    process.comm = threads.get(&id.tgid).cloned().unwrap_or_default();
                }
            }
        }
        for tgid in delta.named_processes() {
            let name = self.processes.entry(tgid).or_insert_with(|| {
                process::read_comm(&self.root, tgid)
                    .unwrap_or_default()
                    .into()
            });
            delta.names.insert(tgid, Arc::clone(name));
        }
    }

    fn cgroups(&mut self, delta: &mut Delta) {
        let Some(paths) = &mut self.cgroups else {
            return;
        };
        paths.begin_tick();
        for id in delta.named_cgroups() {
            if let Some(name) = paths.name(id) {
                let path = if name.is_deleted {
                    format!("{} (deleted)", name.display)
                } else {
                    name.display.to_string()
                };
                delta.cgroup_paths.insert(id, path.into());
            }
        }
    }

    fn chains(&mut self, maps: &Maps, delta: &Delta) {
        let new: Vec<u32> = delta
            .named_chains()
            .into_iter()
            .filter(|slot| !self.chains.contains_key(slot))
            .collect();
        if new.is_empty() {
            return;
        }
        let frames: Vec<(u32, Vec<u64>)> = new
            .into_iter()
            .filter_map(|slot| {
                let row = maps.stacks.read(slot as usize - 1);
                let used = usize::try_from(row.frames_used).ok()?;
                let frames = row.frames.get(..used).unwrap_or(&row.frames);
                // One without frames is still being written; next tick.
                (!frames.is_empty()).then(|| (slot, frames.to_vec()))
            })
            .collect();
        let has_names = self.has_symbols && self.resolve(&frames);
        let mut chains = HashMap::clone(&self.chains);
        for (slot, frames) in frames {
            let names = has_names.then(|| {
                let name = |frame| self.functions.get(frame).cloned().flatten();
                frames.iter().map(name).collect::<Vec<_>>()
            });
            if let Some(path) = names.as_deref().and_then(is_paravirtual) {
                self.is_paravirtual = Some(path);
            }
            chains.insert(slot, Arc::new(chain(&frames, names)));
        }
        self.chains = Arc::new(chains);
    }

    /// Sees to it that the functions of the chains are known; false without kernel symbols, and why is kept.
    fn resolve(&mut self, chains: &[(u32, Vec<u64>)]) -> bool {
        if self.functions.len() > MAX_NAMES {
            self.functions.clear();
        }
        let mut new: Vec<u64> = chains
            .iter()
            .flat_map(|(_, frames)| frames)
            .filter(|frame| !self.functions.contains_key(*frame))
            .copied()
            .collect();
        new.sort_unstable();
        new.dedup();
        if new.is_empty() {
            return true;
        }
        match KernelSymbols::default().resolve(&new) {
            Ok(names) => {
                self.functions.extend(new.into_iter().zip(names));
                true
            }
            Err(reason) => {
                self.symbols_refused = Some(reason);
                false
            }
        }
    }
}

/// The call site and what lies around it. Without symbols the lock code cannot
/// be told from its callers: the chain is addresses and the site says so.
fn chain(frames: &[u64], names: Option<Vec<Option<String>>>) -> CallChain {
    let Some(names) = names else {
        return CallChain {
            site: "[symbols hidden]".into(),
            chain: frames.iter().map(|frame| format!("{frame:#x}")).collect(),
        };
    };
    let chain = call_site(&names);
    CallChain {
        site: chain
            .first()
            .cloned()
            .unwrap_or_else(|| "[lock code only]".into()),
        chain,
    }
}
