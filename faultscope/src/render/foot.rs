//! The lines under a table: losses, missing signals, rows left out, notes.

use super::cell::scrub;
use crate::model::{Field, Missing, Model, TableId};

/// What was lost since attach, by cause; `None` if nothing was.
#[must_use]
pub fn loss_line(model: &Model) -> Option<String> {
    let total = model.lost_total();
    if total == 0 {
        return None;
    }
    let causes: Vec<String> = model
        .lost
        .iter()
        .filter(|l| l.total > 0)
        .map(|l| format!("{} {} (+{})", l.id, l.total, l.increment))
        .collect();
    Some(format!("! {total} events lost: {}", causes.join(", ")))
}

/// Why the field has no values on this host; `None` if it may have some.
#[must_use]
pub fn missing_reason<'a>(model: &'a Model, field: &Field) -> Option<&'a Missing> {
    if field.signal.is_empty() {
        return None;
    }
    model.missing.iter().find(|m| *m.signal == *field.signal)
}

/// One line for every signal that a column of the table waits for in vain.
///
/// The signal of `first` (the column sorted by) comes first.
#[must_use]
pub fn missing_lines(model: &Model, fields: &[&Field], first: Option<&Field>) -> Vec<String> {
    let mut signals: Vec<&Missing> = Vec::new();
    for field in first.into_iter().chain(fields.iter().copied()) {
        if let Some(m) = missing_reason(model, field)
            && !signals.contains(&m)
        {
            signals.push(m);
        }
    }
    let titles = |m: &Missing| {
        let t: Vec<&str> = fields
            .iter()
            .filter(|f| *f.signal == *m.signal)
            .map(|f| f.title)
            .collect();
        t.join(", ")
    };
    signals
        .into_iter()
        .map(|m| {
            format!(
                "- {} not measured: {} ({})",
                m.signal,
                scrub(&m.reason),
                titles(m)
            )
        })
        .collect()
}

/// What the spinlock waits of a table of locks stand for; `None` for other tables.
#[must_use]
pub fn spinlock_line(model: &Model, table: TableId) -> Option<String> {
    let sentence = &model.header.spinlock.sentence;
    let has_locks = matches!(
        table,
        TableId::Locks | TableId::LockClasses | TableId::LockSites | TableId::LockWaiters
    );
    (has_locks && !sentence.is_empty()).then(|| format!("- {sentence}"))
}

/// Says how many rows a bounded table leaves out.
#[must_use]
pub fn omitted_line(omitted: u64) -> Option<String> {
    (omitted > 0).then(|| format!("{omitted} more rows not shown"))
}
