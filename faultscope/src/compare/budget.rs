//! The time budget of a fault before and after: what each part changed by, adding up to the whole.

use super::observed::Observed;
use super::stats::median;

/// A part of the budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// CPU time of a fault before and after, ns: means over the runs.
    pub ns: [f64; 2],
}

impl Part {
    /// What it changed by, ns.
    #[must_use]
    pub fn change(&self) -> f64 {
        self.ns[1] - self.ns[0]
    }
}

/// CPU time of a fault by what it went to.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// The parts; the last is what is in no other.
    pub parts: Vec<Part>,
    /// Their sum.
    pub total: Part,
    /// Time in contended waits per fault of the whole machine, ns: sleeping in them takes no CPU time and is not in the
    /// sum. Medians.
    pub wait_ns: Option<[f64; 2]>,
}

/// Parts of the fault path that a part of the budget holds.
const PARTS: &[(&str, &[&str])] = &[
    ("lock", &["page-table lock", "other lock"]),
    ("clear", &["page clearing", "copy"]),
    ("alloc", &["allocation", "memcg charge"]),
    ("rmap/LRU", &["rmap/LRU"]),
    ("TLB", &["TLB flush"]),
    ("file", &["file map"]),
];

/// The budget of both sides; `None` unless every run sampled it.
#[must_use]
pub fn budget(sides: [&[Observed]; 2]) -> Option<Budget> {
    let runs = sides.map(|side| -> Vec<&[(String, f64)]> {
        let parts = |o: &'_ Observed| o.kernel.as_ref().map(|k| k.budget.len());
        if side.iter().any(|o| parts(o).is_none_or(|n| n == 0)) {
            return Vec::new();
        }
        side.iter()
            .filter_map(|o| o.kernel.as_ref())
            .map(|k| k.budget.as_slice())
            .collect()
    });
    if runs.iter().any(Vec::is_empty) {
        return None;
    }
    let mean = |side: &[&[(String, f64)]], is_in: &dyn Fn(&str) -> bool| {
        let sum: f64 = side
            .iter()
            .copied()
            .flatten()
            .filter(|(n, _)| is_in(n))
            .map(|(_, ns)| ns)
            .sum();
        sum / super::observed::real(side.len() as u64)
    };
    let part = |name, is_in: &dyn Fn(&str) -> bool| Part {
        name,
        ns: [mean(&runs[0], is_in), mean(&runs[1], is_in)],
    };
    let is_known = |name: &str| PARTS.iter().any(|(_, of)| of.contains(&name));
    let mut parts: Vec<Part> = PARTS
        .iter()
        .map(|(name, of)| part(*name, &|n| of.contains(&n)))
        .collect();
    parts.push(part("rest", &|n| !is_known(n)));
    let wait = sides.map(|side| {
        let readings = side.iter().filter_map(|o| {
            let kernel = o.kernel.as_ref()?;
            kernel
                .readings
                .iter()
                .find(|r| r.id == "lock_wait_per_fault_ns")
                .map(|r| r.value)
        });
        median(&readings.collect::<Vec<_>>())
    });
    Some(Budget {
        total: part("fault", &|_| true),
        parts,
        wait_ns: wait[0].zip(wait[1]).map(|(a, b)| [a, b]),
    })
}
