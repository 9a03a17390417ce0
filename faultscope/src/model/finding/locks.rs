//! Rules about locks: who waits, who holds.

use super::{FEWEST_WAITS, Look, MOST, Match, OF_CPU, count, ns, part, percent, real, share, text};
use crate::model::syscall;
use crate::sample::blocked::Held;
use crate::sample::counters::{LRU_LOCK, MMAP_LOCK};
use crate::sample::delta::LockId;
use crate::units::{format_ns, format_si};
use std::collections::{BTreeSet, HashMap};

/// "System call" of a fault from user mode, as in `TakerId`.
const FAULT: i32 = -1;
/// `LockId::mode` of a wait for read.
const READ: u8 = 2;

/// Faults waited for mmap_lock, and mostly for writers.
pub(super) fn writers_block_faults(look: &Look<'_>) -> Option<Match> {
    if look.has("blocked") {
        by_holder(look)
    } else if look.has("mmap_lock_hold") && look.has("contention") {
        by_taker(look)
    } else {
        None
    }
}

/// The same where each wait is known with its holder.
fn by_holder(look: &Look<'_>) -> Option<Match> {
    let mut waits = 0;
    let mut wait_ns = 0;
    let mut write_ns = 0;
    let mut writers: HashMap<(u32, Option<i32>), (u64, u32)> = HashMap::new();
    for (id, waited) in &look.delta.blocked {
        if id.is_write || id.syscall != FAULT {
            continue;
        }
        waits += waited.waits;
        wait_ns += waited.wait_ns;
        if id.held == Held::Write {
            write_ns += waited.wait_ns;
            let (sum, site) = writers.entry((id.holder, id.holder_syscall)).or_default();
            *sum += waited.wait_ns;
            // Any of them will do, but always the same.
            *site = id.holder_site.max(*site);
        }
    }
    let written = share(write_ns, wait_ns);
    if waits < FEWEST_WAITS || look.of_cpu(wait_ns) < OF_CPU || written < MOST {
        return None;
    }
    // The number breaks ties, so that the same increments give the same words.
    let ((holder, call), (top_ns, site)) = writers
        .into_iter()
        .max_by_key(|((holder, call), (ns, _))| (*ns, *holder, *call))?;
    let call = call.map_or_else(|| "an unknown call".to_owned(), syscall::name);
    let who = match holder {
        0 => "an unknown process".to_owned(),
        tgid => look.process(tgid),
    };
    let mut evidence = vec![
        ns("fault_wait_ns", wait_ns),
        count("fault_waits", waits),
        part("behind_writers_ratio", written),
        text("writer", who.as_str()),
        text("writer_syscall", call.as_str()),
        ns("behind_writer_ns", top_ns),
    ];
    if let Some(chain) = look.delta.chains.get(&site) {
        evidence.push(text("writer_site", chain.site.as_str()));
    }
    let sentence = format!(
        "{} faults waited {} for mmap_lock, {} of it while a writer held it; {call} of {who} alone blocked {}.",
        format_si(real(waits)),
        format_ns(real(wait_ns)),
        percent(write_ns, wait_ns),
        percent(top_ns, wait_ns),
    );
    Some(Match::new(sentence, evidence))
}

/// The same from contended waits by lock and acquisitions by taker.
fn by_taker(look: &Look<'_>) -> Option<Match> {
    let mut waited: HashMap<u32, (u64, u64)> = HashMap::new();
    for (id, lock) in &look.delta.locks {
        if !id.is_site && id.class == MMAP_LOCK && id.mode == READ {
            let (waits, wait_ns) = waited.entry(id.owner).or_default();
            *waits += lock.waits;
            *wait_ns += lock.wait_ns;
        }
    }
    let (owner, (waits, wait_ns)) = waited
        .into_iter()
        .max_by_key(|(owner, (_, ns))| (*ns, *owner))?;
    if waits < FEWEST_WAITS || look.of_cpu(wait_ns) < OF_CPU {
        return None;
    }
    let mut slow = [0_u64; 2];
    let mut taken = 0;
    let mut writers: HashMap<(u32, i32), (u64, u64)> = HashMap::new();
    for (id, taker) in look.delta.takers.iter().filter(|(_, t)| t.owner == owner) {
        if id.is_write {
            taken += taker.taken;
            let sum = writers.entry((id.tgid, id.syscall)).or_default();
            sum.0 += taker.hold_ns;
            sum.1 += taker.taken;
        } else {
            slow[usize::from(id.syscall == FAULT)] += taker.slow_takes;
        }
    }
    let by_faults = share(slow[1], slow[0] + slow[1]);
    if by_faults < MOST {
        return None;
    }
    let ((tgid, call), (hold_ns, times)) = writers
        .into_iter()
        .max_by_key(|(id, (hold_ns, times))| (*hold_ns, *times, *id))?;
    if times == 0 {
        return None;
    }
    let call = syscall::name(call);
    let who = look.process(tgid);
    let mut evidence = vec![
        ns("read_wait_ns", wait_ns),
        count("read_waits", waits),
        part("by_faults_ratio", by_faults),
        text("writer", who.as_str()),
        text("writer_syscall", call.as_str()),
        count("writer_acquisitions", times),
        count("write_acquisitions", taken),
    ];
    if hold_ns > 0 {
        evidence.push(ns("writer_hold_ns", hold_ns));
    }
    let sentence = format!(
        "readers waited {} for mmap_lock of {}, {} of the slow ones in faults; of its {} writes, {} were {call} of {who}.",
        format_ns(real(wait_ns)),
        look.process(owner),
        percent(slow[1], slow[0] + slow[1]),
        format_si(real(taken)),
        percent(times, taken),
    );
    Some(Match::new(sentence, evidence))
}

/// Functions that empty a CPU's batch into the LRU lists (mm/swap.c).
const DRAIN: [&str; 4] = [
    "folio_batch_move_lru",
    "pagevec_lru_move_fn",
    "lru_add_drain",
    "__pagevec_lru_add",
];
/// Functions whose batches move pages that are on a list already.
const MOVERS: [&str; 5] = [
    "folio_activate",
    "folio_mark_accessed",
    "folio_deactivate",
    "folio_mark_lazyfree",
    "folio_rotate_reclaimable",
];

/// lru_lock is contended where batches of new pages are drained.
pub(super) fn lru_waits_from_drain(look: &Look<'_>) -> Option<Match> {
    if !look.has("contention") {
        return None;
    }
    let is_site = |id: &LockId| id.is_site && id.class == LRU_LOCK;
    let mut waits = 0;
    let mut wait_ns = 0;
    let mut drain_ns = 0;
    let mut sites: HashMap<&str, u64> = HashMap::new();
    for (id, lock) in look.delta.locks.iter().filter(|(id, _)| is_site(id)) {
        waits += lock.waits;
        wait_ns += lock.wait_ns;
        let Some(chain) = look.delta.chains.get(&id.stack) else {
            continue;
        };
        let calls = |names: &[&str]| {
            let all = chain.chain.iter().chain([&chain.site]);
            all.into_iter()
                .any(|call| names.iter().any(|name| call.starts_with(name)))
        };
        if calls(&DRAIN) && !calls(&MOVERS) {
            drain_ns += lock.wait_ns;
            *sites.entry(&chain.site).or_default() += lock.wait_ns;
        }
    }
    if waits < FEWEST_WAITS || look.of_cpu(wait_ns) < OF_CPU || share(drain_ns, wait_ns) < MOST {
        return None;
    }
    let (site, site_ns) = sites.into_iter().max_by_key(|(site, ns)| (*ns, *site))?;
    let mut evidence = vec![
        ns("lru_lock_wait_ns", wait_ns),
        count("lru_lock_waits", waits),
        ns("drain_wait_ns", drain_ns),
        text("site", site),
        ns("site_wait_ns", site_ns),
    ];
    let mut sentence = format!(
        "{} of {} waited for lru_lock passed where a CPU drains its batch of new pages, mostly in {site}",
        percent(drain_ns, wait_ns),
        format_ns(real(wait_ns)),
    );
    if let Some(added) = look.delta.moves.get("lru_add").filter(|m| m.batches > 0)
        && look.has("batches")
    {
        let folios = real(added.folios) / real(added.batches);
        sentence.push_str(&format!("; a batch had {} folios", format_si(folios)));
        evidence.push(count("batches", added.batches));
        evidence.push(count("batched_folios", added.folios));
    }
    sentence.push('.');
    Some(Match::new(sentence, evidence))
}

/// System calls in which one process reads or advises another's address space:
/// read, pread64, ioctl, readv, sendfile, ptrace, migrate_pages, splice,
/// move_pages, preadv, process_vm_readv, process_vm_writev, preadv2,
/// process_madvise (arch/x86/entry/syscalls/syscall_64.tbl).
const OUTSIDE: [i32; 14] = [
    0, 16, 17, 19, 40, 101, 256, 275, 279, 295, 310, 311, 327, 440,
];
/// Fewest holds of an outside reader: a small /proc file takes a few.
const FEWEST_HOLDS: u64 = 10;

/// Processes of one name that hold the same lock in the same call.
#[derive(Default)]
struct Reader {
    hold_ns: u64,
    holds: u64,
    tgids: BTreeSet<u32>,
}

/// A process holds another's mmap_lock for read.
pub(super) fn outside_reader(look: &Look<'_>) -> Option<Match> {
    if !look.has("mmap_lock_hold") {
        return None;
    }
    // A script starts a process for each reading: those of one name are one reader.
    let mut readers: HashMap<(&str, u32, i32), Reader> = HashMap::new();
    for (id, taker) in &look.delta.takers {
        let is_outside = taker.owner != 0 && id.tgid != taker.owner;
        if is_outside && !id.is_write && OUTSIDE.contains(&id.syscall) {
            let name = look.delta.names.get(&id.tgid).map_or("", |name| &**name);
            let sum = readers.entry((name, taker.owner, id.syscall)).or_default();
            sum.hold_ns += taker.hold_ns;
            sum.holds += taker.holds;
            sum.tgids.insert(id.tgid);
        }
    }
    let ((_, owner, call), reader) = readers
        .into_iter()
        .max_by_key(|(id, reader)| (reader.hold_ns, *id))?;
    let Reader {
        hold_ns,
        holds,
        tgids,
    } = reader;
    if holds < FEWEST_HOLDS || look.of_cpu(hold_ns) < OF_CPU {
        return None;
    }
    let mut who = look.process(*tgids.first()?);
    if tgids.len() > 1 {
        who.push_str(&format!(" and {} more", tgids.len() - 1));
    }
    let owner = look.process(owner);
    let name = syscall::name(call);
    let mut evidence = vec![
        ns("hold_ns", hold_ns),
        part("held_ratio", look.of_cpu(hold_ns)),
        count("holds", holds),
        text("reader", who.as_str()),
        text("reader_syscall", name.as_str()),
        text("owner", owner.as_str()),
    ];
    let mut sentence = format!(
        "{who} held mmap_lock of {owner} for read {} of the time, {} times, in {name}",
        percent(hold_ns, look.delta.interval_ns),
        format_si(real(holds)),
    );
    if look.has("blocked") {
        let behind = look
            .delta
            .blocked
            .iter()
            .filter(|(id, _)| tgids.contains(&id.holder) && id.holder_syscall == Some(call));
        let waited = behind.map(|(_, waits)| waits.wait_ns).sum();
        evidence.push(ns("waited_behind_ns", waited));
        sentence.push_str(&format!(
            "; others waited {} for it",
            format_ns(real(waited))
        ));
    }
    sentence.push('.');
    Some(Match::new(sentence, evidence))
}
