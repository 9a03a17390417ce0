//! The loss catalogue for sinks.

use faultscope_common::loss;

/// Loss counters of the programs, then the kernel's own.
const COUNT: usize = loss::ALL.len() + 1;

/// `(id, description)` of every loss counter, in the order of `Delta::losses`.
pub const CATALOG: [(&str, &str); COUNT] = {
    let mut all = [("", ""); COUNT];
    let mut i = 0;
    while i < loss::ALL.len() {
        all[i] = loss::ALL[i];
        i += 1;
    }
    all[i] = (
        "program_recursion",
        "Events the kernel skipped because the program was already running on that CPU.",
    );
    all
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_described() {
        for (i, (id, description)) in CATALOG.iter().enumerate() {
            assert!(!id.is_empty() && description.ends_with('.'), "{id}");
            assert!(
                CATALOG[..i].iter().all(|(other, _)| other != id),
                "{id} stands twice"
            );
        }
    }
}
