//! What the rules found.

use super::Cells;
use crate::{
    model::{Context, field as f, finding::findings},
    sample::Delta,
};

/// One row for each finding, in the order of the rules.
pub(super) fn rows(delta: &Delta, context: &Context) -> Vec<Cells> {
    findings(delta, context)
        .into_iter()
        .map(|found| {
            Cells::new(found.id)
                .text(&f::FINDING, found.title)
                .text(&f::FINDING_TEXT, found.text)
                .text(&f::FINDING_NEXT, found.next)
        })
        .collect()
}
