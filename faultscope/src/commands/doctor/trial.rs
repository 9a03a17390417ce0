//! Tries the programs of a plan on the running kernel.

use std::borrow::Cow;
use std::path::Path;

use crate::bpf::load::load;
use crate::bpf::{LoadError, Programs, Sizes, object};
use crate::commands::hook;
use crate::host::topology::Topology;
use crate::plan::{Attached, Plan, Prober};

/// Attaches each program for an instant; everything is gone when the trial ends.
#[derive(Debug)]
pub struct KernelTrial {
    object: Cow<'static, [u8]>,
    online: Vec<u32>,
    sizes: Sizes,
    unusable: Option<LoadError>,
}

impl KernelTrial {
    /// Reads the object: the one at `path`, or the one built in.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn new(path: Option<&Path>, topology: &Topology) -> Result<Self, LoadError> {
        let possible = topology.cpus.last().map_or(1, |place| place.cpu + 1);
        Ok(Self {
            object: object::read(path)?,
            online: topology
                .cpus
                .iter()
                .filter(|place| place.is_online)
                .map(|place| place.cpu)
                .collect(),
            // Nothing is counted long enough to fill a map.
            sizes: Sizes::for_machine(possible, 0),
            unusable: None,
        })
    }

    /// Why the object itself cannot be used on any kernel, after a trial.
    #[must_use]
    pub fn unusable(self) -> Option<LoadError> {
        self.unusable
    }

    fn all_failed(plan: &Plan, reason: &str) -> Vec<Attached> {
        let failed = |program| Attached {
            program,
            outcome: Err(reason.to_owned()),
        };
        plan.chosen
            .iter()
            .map(|probe| failed(probe.program))
            .collect()
    }
}

impl Prober for KernelTrial {
    fn try_attach(&mut self, plan: &Plan) -> Vec<Attached> {
        let loaded = match load(&self.object, &plan.globals, self.sizes) {
            Ok(loaded) => loaded,
            Err(error) => {
                let results = Self::all_failed(plan, &error.to_string());
                if !matches!(error, LoadError::Refused(_)) {
                    self.unusable = Some(error);
                }
                return results;
            }
        };
        let (mut programs, maps) = Programs::split(loaded, self.online.clone());
        let mut results = Vec::with_capacity(plan.chosen.len());
        for probe in &plan.chosen {
            let outcome = programs.attach(probe.program, hook(probe.attach));
            // One at a time: the dearest programs then run for microseconds only.
            programs.detach(probe.program);
            results.push(Attached {
                program: probe.program,
                outcome,
            });
        }
        drop(maps);
        results
    }
}
