//! Which lock it is, from its address and the kernel's own structures
//! (probes.md section 2), and from where it was asked for.

use crate::{
    globals::{self, get, member, peek},
    maps::{CONTROL, STACKS},
    mmap::launder_in,
    record::{cpu, exchange, lose},
    thread,
};
use aya_ebpf::{EbpfContext, helpers::generated::bpf_get_stack, maps::Array};
use core::ptr::{read_volatile, write_volatile};
use faultscope_common::{
    abi::{PROBES, STACK_SLOTS},
    config::ABSENT,
    lock::{DEPTH, FRAMES, LRU, LockKey, MMAP, MUTEX, PTL, ROW_LOCK, RT, RWSEM, SPIN, ZONE, flags},
    loss,
};

/// A node's zones lie inside its pglist_data, which is smaller than this.
const PGDAT_SPAN: u64 = 512 << 10;
/// Bytes of the page-descriptor array searched around a known descriptor: 16 TiB of memory.
const VMEMMAP_SPAN: u64 = 1 << 38;

/// A scratch stack for each CPU; programs that may interrupt each other have
/// each their own.
pub type Scratch = Array<[u64; FRAMES]>;

/// Names the lock. `stack` is part of the identity of locks known only by their
/// call site.
#[inline(always)]
pub fn identify(lock: u64, kind: u32, stack: u32, scratch: &'static Scratch) -> LockKey {
    let mode = (kind & (flags::READ | flags::WRITE)) as u8;
    let key = LockKey {
        row: ROW_LOCK,
        class: 0,
        mode,
        _pad: 0,
        node: 0,
        id: 0,
        memcg: 0,
        stack: 0,
        owner: 0,
    };
    let by_site = |class: u32| LockKey {
        class: class as u8,
        stack,
        ..key
    };
    if kind & flags::MUTEX != 0 {
        return by_site(MUTEX);
    }
    if kind & flags::PERCPU != 0 {
        return by_site(RT);
    }
    if kind & (flags::READ | flags::WRITE) != 0 || kind & flags::RT != 0 {
        if let Some((mm, is_inner)) = mmap_lock(lock, scratch) {
            if is_inner && is_waited_for(mm) {
                // PREEMPT_RT: the rt_mutex inside the rwsem, part of the outer wait.
                return LockKey {
                    class: RT as u8,
                    mode: 0,
                    ..key
                };
            }
            return LockKey {
                class: MMAP as u8,
                // With PREEMPT_RT a writer waits for another at the rt_mutex alone
                // (kernel/locking/rwbase_rt.c, rwbase_write_lock).
                mode: if is_inner { flags::WRITE as u8 } else { mode },
                id: mm,
                owner: owner(mm),
                ..key
            };
        }
    }
    // On PREEMPT_RT a spinlock is an rt_mutex: RT alone. Its inner raw lock has
    // the same address and is not a second wait.
    let is_rt_kernel = get(&globals::IS_RT) != 0;
    let is_spin = if is_rt_kernel {
        kind == flags::RT
    } else {
        kind & flags::SPIN != 0
    };
    if is_spin {
        if let Some((node, memcg)) = lruvec(lock) {
            return LockKey {
                class: LRU as u8,
                mode: 0,
                node,
                memcg,
                ..key
            };
        }
        if let Some((node, zone)) = zone(lock) {
            return LockKey {
                class: ZONE as u8,
                mode: 0,
                node,
                id: zone,
                ..key
            };
        }
        if is_page_table_lock(lock, scratch) {
            return LockKey {
                class: PTL as u8,
                mode: 0,
                ..key
            };
        }
    }
    if kind & flags::RT != 0 {
        by_site(RT)
    } else if kind & flags::SPIN != 0 {
        by_site(SPIN)
    } else {
        by_site(RWSEM)
    }
}

/// Whether the running thread is in a wait for the rwsem of `mm` already.
#[inline(always)]
fn is_waited_for(mm: u64) -> bool {
    let rwsem = mm.wrapping_add(get(&globals::OFF_MM_LOCK));
    match thread::pending() {
        Some(pending) => {
            (0..DEPTH).any(|i| (i as u64) < pending.sleep_depth && pending.sleeps[i].lock == rwsem)
        }
        None => false,
    }
}

/// The mm whose mmap_lock this is, and whether the address lies inside the
/// rwsem rather than at its start: the running task's, one whose owner says that it
/// is its own, or one the task is known to have asked for.
#[inline(always)]
pub fn mmap_lock(lock: u64, scratch: &'static Scratch) -> Option<(u64, bool)> {
    let offset = get(&globals::OFF_MM_LOCK);
    if offset == ABSENT {
        return None;
    }
    let size = get(&globals::SIZE_RWSEM);
    let own = launder_in(
        scratch,
        member::<*const u8>(thread::task(), &globals::OFF_TASK_MM)?,
    );
    let inside = |mm: u64| lock.wrapping_sub(mm.wrapping_add(offset));
    if own != 0 && inside(own) < size {
        return Some((own, inside(own) != 0));
    }
    let mm = lock.wrapping_sub(offset);
    if is_owned(mm) {
        return Some((mm, false));
    }
    // With PREEMPT_RT a writer waits for the rt_mutex in the rwsem.
    let inner = get(&globals::OFF_RWSEM_INNER);
    if inner != ABSENT && is_owned(mm.wrapping_sub(inner)) {
        return Some((mm.wrapping_sub(inner), true));
    }
    let pending = thread::pending()?;
    if pending.mmap_era != thread::mmap_era() {
        return None;
    }
    for i in 0..DEPTH {
        if (i as u64) < pending.mmap_depth {
            let mm = pending.mmap[i].mm;
            if mm != 0 && inside(mm) < size {
                return Some((mm, inside(mm) != 0));
            }
        }
    }
    None
}

/// Whether `mm` is an address space: the task it names as its owner lives in it.
#[inline(always)]
fn is_owned(mm: u64) -> bool {
    match peek::<u64>(mm, &globals::OFF_MM_OWNER) {
        Some(task) if is_kernel_pointer(task) => peek(task, &globals::OFF_TASK_MM) == Some(mm),
        _ => false,
    }
}

/// tgid of the mm's owner, 0 unknown.
#[inline(always)]
pub fn owner(mm: u64) -> u32 {
    match peek::<u64>(mm, &globals::OFF_MM_OWNER) {
        Some(task) if task != 0 => peek(task, &globals::OFF_TASK_TGID).unwrap_or(0),
        _ => 0,
    }
}

#[inline(always)]
fn is_kernel_pointer(p: u64) -> bool {
    p >> 63 != 0
}

/// Whether `p` is a node: its first zone points back at it (node_zones is the
/// first member of pglist_data).
#[inline(always)]
fn is_node(p: u64) -> bool {
    is_kernel_pointer(p) && peek::<u64>(p, &globals::OFF_ZONE_PGDAT) == Some(p)
}

/// Node and memcg (cgroup id, 0 for the node's own lruvec) of an lru_lock.
#[inline(always)]
pub fn lruvec(lock: u64) -> Option<(u32, u64)> {
    let offset = get(&globals::OFF_LRUVEC_LOCK);
    if offset == ABSENT {
        return None;
    }
    let lruvec = lock.wrapping_sub(offset);
    let node: u64 = peek(lruvec, &globals::OFF_LRUVEC_PGDAT)?;
    if !is_node(node) {
        return None;
    }
    let node_id: u32 = peek(node, &globals::OFF_PGDAT_NODE)?;
    let own = get(&globals::OFF_PGDAT_LRUVEC);
    if own != ABSENT && lruvec == node.wrapping_add(own) {
        return Some((node_id, 0));
    }
    Some((node_id, memcg_of(lruvec).unwrap_or(0)))
}

/// `css.serial_nr` of the memcg an lru_lock belongs to, 0 for the node's own
/// lruvec: three loads, for a lock that is known to be one.
#[inline(always)]
pub fn lruvec_serial(lruvec: u64) -> u64 {
    let own = get(&globals::OFF_PGDAT_LRUVEC);
    let node: u64 = peek(lruvec, &globals::OFF_LRUVEC_PGDAT).unwrap_or(0);
    let offset = get(&globals::OFF_MEMCG_NODE_LRUVEC);
    let css = get(&globals::OFF_MEMCG_CSS);
    if offset == ABSENT || css == ABSENT || (own != ABSENT && lruvec == node.wrapping_add(own)) {
        return 0;
    }
    match peek::<u64>(lruvec.wrapping_sub(offset), &globals::OFF_MEMCG_NODE_MEMCG) {
        Some(memcg) if is_kernel_pointer(memcg) => {
            peek(memcg.wrapping_add(css), &globals::OFF_CSS_SERIAL).unwrap_or(0)
        }
        _ => 0,
    }
}

#[inline(always)]
fn memcg_of(lruvec: u64) -> Option<u64> {
    let offset = get(&globals::OFF_MEMCG_NODE_LRUVEC);
    if offset == ABSENT {
        return None;
    }
    let memcg: u64 = peek(lruvec.wrapping_sub(offset), &globals::OFF_MEMCG_NODE_MEMCG)?;
    let css = get(&globals::OFF_MEMCG_CSS);
    if !is_kernel_pointer(memcg) || css == ABSENT {
        return None;
    }
    let cgroup: u64 = peek(memcg.wrapping_add(css), &globals::OFF_CSS_CGROUP)?;
    let node: u64 = peek(cgroup, &globals::OFF_CGROUP_KN)?;
    peek(node, &globals::OFF_KN_ID)
}

/// Node and address of a zone whose lock this is.
#[inline(always)]
fn zone(lock: u64) -> Option<(u32, u64)> {
    let offset = get(&globals::OFF_ZONE_LOCK);
    if offset == ABSENT {
        return None;
    }
    let zone = lock.wrapping_sub(offset);
    let node: u64 = peek(zone, &globals::OFF_ZONE_PGDAT)?;
    if !is_node(node) || lock.wrapping_sub(node) >= PGDAT_SPAN {
        return None;
    }
    Some((peek(node, &globals::OFF_PGDAT_NODE)?, zone))
}

/// Split locks lie in page descriptors, the others in the mm.
#[inline(always)]
fn is_page_table_lock(lock: u64, scratch: &'static Scratch) -> bool {
    let offset = get(&globals::OFF_MM_PTL);
    if offset != ABSENT {
        if let Some(mm) = member::<*const u8>(thread::task(), &globals::OFF_TASK_MM) {
            let mm = launder_in(scratch, mm);
            if mm != 0 && lock == mm.wrapping_add(offset) {
                return true;
            }
        }
    }
    let offset = get(&globals::OFF_PAGE_PTL);
    if offset == ABSENT {
        return false;
    }
    let Some(control) = CONTROL.get_ptr(0) else {
        return false;
    };
    // SAFETY: a live map value; a plain read.
    let known = unsafe { read_volatile(&raw const (*control).vmemmap) };
    let descriptor = lock.wrapping_sub(offset);
    known != 0
        && descriptor.wrapping_sub(known).wrapping_add(VMEMMAP_SPAN) < 2 * VMEMMAP_SPAN
        && descriptor.wrapping_sub(known) & (get(&globals::SIZE_PAGE) - 1) == 0
}

/// Takes the kernel call chain if it is wanted; returns its slot + 1, 0 if not
/// wanted or not kept.
#[inline(always)]
pub fn call_chain(ctx: &impl EbpfContext, scratch: &'static Scratch) -> u32 {
    if !are_chains_wanted() {
        return 0;
    }
    match scratch.get_ptr_mut(cpu()) {
        Some(frames) => take_chain(ctx, frames),
        None => 0,
    }
}

/// Whether user space shows call chains.
#[inline(always)]
pub fn are_chains_wanted() -> bool {
    match CONTROL.get_ptr(0) {
        // SAFETY: a live map value; a plain read.
        Some(control) => unsafe { read_volatile(&raw const (*control).stacks) != 0 },
        None => false,
    }
}

/// Takes the kernel call chain by way of `frames`, a buffer nobody else uses
/// meanwhile; returns its slot + 1, 0 if it is not kept.
#[inline(always)]
pub fn take_chain(ctx: &impl EbpfContext, frames: *mut [u64; FRAMES]) -> u32 {
    let frames = frames.cast::<u64>();
    // SAFETY: the buffer has FRAMES words.
    let bytes = unsafe { bpf_get_stack(ctx.as_ptr(), frames.cast(), (FRAMES * 8) as u32, 0) };
    if bytes <= 0 {
        lose(loss::STACKS_FULL, 1);
        return 0;
    }
    let used = (bytes as u64) / 8;
    let mut hash = used;
    for i in 0..FRAMES {
        if (i as u64) < used {
            // SAFETY: within the buffer.
            let frame = unsafe { read_volatile(frames.add(i)) };
            hash = (hash.rotate_left(7) ^ frame).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }
    keep(frames, used, hash | 1)
}

#[inline(always)]
fn keep(frames: *mut u64, used: u64, hash: u64) -> u32 {
    for i in 0..PROBES {
        let index = ((hash >> 40) as u32).wrapping_add(i) & (STACK_SLOTS - 1);
        let Some(row) = STACKS.get_ptr_mut(index) else {
            return 0;
        };
        // SAFETY: a live map value.
        let mut found = unsafe { read_volatile(&raw const (*row).hash) };
        if found == 0 {
            // SAFETY: as above.
            found = exchange(unsafe { &raw mut (*row).hash }, 0, hash);
            if found == 0 {
                // SAFETY: the slot is ours alone; `frames_used` last tells readers.
                unsafe {
                    let into = (&raw mut (*row).frames).cast::<u64>();
                    for i in 0..FRAMES {
                        write_volatile(into.add(i), read_volatile(frames.add(i)));
                    }
                    write_volatile(&raw mut (*row).frames_used, used);
                }
                return index + 1;
            }
        }
        if found == hash {
            return index + 1;
        }
    }
    lose(loss::STACKS_FULL, 1);
    0
}
