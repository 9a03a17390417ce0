//! Contended waits for mmap_lock by waiter and holder.

use super::{Cells, average, locks::site, process_name};
use crate::{
    model::{Value, field as f, syscall},
    sample::{
        Delta,
        blocked::{BlockedWaits, Held},
    },
};
use std::collections::HashMap;

fn held_for(held: Held) -> &'static str {
    match held {
        Held::Write => "write",
        Held::Read => "read",
        Held::Readers => "readers",
        Held::Unknown => "changing hands",
    }
}

fn named(delta: &Delta, tgid: u32) -> Value {
    if tgid == 0 {
        Value::Absent
    } else {
        Value::Text(process_name(delta, tgid))
    }
}

/// What a row shows of its identity; waits that differ in nothing shown are one row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Shown<'a> {
    waiter: u32,
    syscall: i32,
    is_write: bool,
    site: Option<&'a str>,
    held: Held,
    holder: u32,
    thread: &'a str,
    holder_syscall: Option<i32>,
    holder_site: Option<&'a str>,
    owner: u32,
}

/// One row per waiting process and call, and per holding process, thread name and call.
pub(super) fn rows(delta: &Delta) -> Vec<Cells> {
    let chain = |stack: u32| delta.chains.get(&stack).map(|chain| chain.site.as_str());
    let mut rows: HashMap<Shown<'_>, (BlockedWaits, [u32; 2])> = HashMap::new();
    for (id, waits) in &delta.blocked {
        let shown = Shown {
            waiter: id.tgid,
            syscall: id.syscall,
            is_write: id.is_write,
            site: chain(id.site),
            held: id.held,
            holder: id.holder,
            thread: &id.holder_comm,
            holder_syscall: id.holder_syscall,
            holder_site: chain(id.holder_site),
            owner: id.owner,
        };
        let (sum, sites) = rows.entry(shown).or_default();
        sum.waits += waits.waits;
        sum.wait_ns += waits.wait_ns;
        sum.max_ns = sum.max_ns.max(waits.max_ns);
        *sites = [id.site, id.holder_site];
    }
    rows.iter()
        .map(|(shown, (sum, sites))| {
            let thread = match shown.thread {
                "" => Value::Absent,
                name => Value::Text(name.to_owned()),
            };
            let call = shown.holder_syscall.map(syscall::name);
            Cells::new(shown)
                .text(&f::WAITER, process_name(delta, shown.waiter))
                .text(&f::MODE, if shown.is_write { "write" } else { "read" })
                .text(&f::WAITER_CALL, syscall::name(shown.syscall))
                .set(&f::WAITER_SITE, site(delta, sites[0]))
                .set(&f::BLOCKER, named(delta, shown.holder))
                .set(&f::BLOCKER_THREAD, thread)
                .text(&f::BLOCKER_MODE, held_for(shown.held))
                .set(&f::BLOCKER_CALL, call.map_or(Value::Absent, Value::Text))
                .set(&f::BLOCKER_SITE, site(delta, sites[1]))
                .text(&f::OWNER, process_name(delta, shown.owner))
                .count(&f::BLOCKED_WAITS, sum.waits)
                .count(&f::BLOCKED_NS, sum.wait_ns)
                .set(&f::BLOCKED_AVG_NS, average(sum.wait_ns, sum.waits))
                .count(&f::BLOCKED_MAX_NS, sum.max_ns)
        })
        .collect()
}
