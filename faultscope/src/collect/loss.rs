//! The loss catalogue for sinks.

/// `(id, description)` of every loss counter, in the order of `Delta::losses`.
pub const CATALOG: &[(&str, &str)] = faultscope_common::loss::ALL;

/// Position of the counter called `id`.
#[must_use]
pub fn id_of(id: &str) -> Option<usize> {
    CATALOG.iter().position(|(known, _)| *known == id)
}
