//! The running thread's row: look-up, claim, identity, filter.
//!
//! Fast path: one array look-up and a comparison of the cached identity. The
//! walk to the cgroup and the filter run only when the identity changed.

use crate::{
    globals::{self, get, member},
    maps::{
        CONTROL, FILTER_CGROUPS, FILTER_COMMS, FILTER_PIDS, OVERFLOW, PENDING, RETIRED, SPACE_LAST,
        SPACES, THREADS, ZERO,
    },
    record::{add, exchange, lose},
};
use aya_ebpf::helpers::{
    bpf_get_current_comm, bpf_get_current_pid_tgid, bpf_ktime_get_ns,
    generated::bpf_get_current_task_btf,
};
use core::ptr::{read_volatile, write_volatile};
use faultscope_common::{
    abi::LAST_SLOTS,
    cpu::FAULT_CLASSES,
    loss,
    thread::{COLUMN_WORDS, COUNTED, DEAD, Pending, RetiredKey, SpaceKey, ThreadRow},
};

/// The task is past `exit_signals` (include/linux/sched.h).
const PF_EXITING: u32 = 0x4;
/// The task is a kernel thread.
const PF_KTHREAD: u32 = 0x0020_0000;
/// Levels of cgroups searched for a filter's cgroup.
const CGROUP_LEVELS: usize = 32;

/// The running task as a BTF pointer.
#[inline(always)]
pub fn task() -> *const u8 {
    // SAFETY: no arguments; never null in a tracing program.
    unsafe { bpf_get_current_task_btf() as *const u8 }
}

/// Thread id of the running task, 0 for the idle task.
#[inline(always)]
pub fn tid() -> u64 {
    bpf_get_current_pid_tgid() & 0xffff_ffff
}

/// The running task and its thread id, by one helper call where BTF gives the latter.
#[inline(always)]
fn running() -> (*const u8, u64) {
    let task = task();
    let tid = match member::<u32>(task, &globals::OFF_TASK_PID) {
        Some(pid) => u64::from(pid),
        None => tid(),
    };
    (task, tid)
}

/// What keeps a task from being in a system call of its own.
pub enum Special {
    /// It has none.
    KernelThread,
    /// It is past `exit_signals`, whatever call it died in.
    Exiting,
    /// Nothing.
    No,
}

/// Tells tasks that are not in a system call of their own.
#[inline(always)]
pub fn special(task: *const u8) -> Special {
    let flags = member::<u32>(task, &globals::OFF_TASK_FLAGS).unwrap_or(0);
    if flags & (PF_KTHREAD | PF_EXITING) == 0 {
        Special::No
    } else if flags & PF_KTHREAD != 0 {
        Special::KernelThread
    } else {
        Special::Exiting
    }
}

/// Whether the running thread is past `exit_signals`.
#[inline(always)]
pub fn is_exiting() -> bool {
    member::<u32>(task(), &globals::OFF_TASK_FLAGS).unwrap_or(0) & PF_EXITING != 0
}

/// Whether a map row may be inserted or deleted here: no bucket lock can be
/// held by this CPU (probes.md 9d).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// A context that may sleep.
    MaySleep,
    /// Anything else: look up, claim an array slot, never insert.
    Atomic,
}

#[inline(always)]
fn exec_and_tgid(task: *const u8, pid_tgid: u64) -> u64 {
    let exec: u32 = member(task, &globals::OFF_TASK_EXEC_ID).unwrap_or(0);
    (pid_tgid & 0xffff_ffff_0000_0000) | u64::from(exec)
}

/// `Control::mmap_era`.
#[inline(always)]
pub fn mmap_era() -> u64 {
    match CONTROL.get_ptr(0) {
        // SAFETY: a live map value; a plain read.
        Some(control) => unsafe { read_volatile(&raw const (*control).mmap_era) },
        None => 0,
    }
}

/// `Control::epoch` and `Control::window_until_ns`.
#[inline(always)]
fn control() -> (u64, u64) {
    match CONTROL.get_ptr(0) {
        // SAFETY: a live map value; plain reads of two words.
        Some(c) => unsafe { ((*c).epoch, (*c).window_until_ns) },
        None => (0, 0),
    }
}

/// Whether the row was made for this life of the thread: no exit, exec or
/// rename since where those are traced, else the same start and exec number.
#[inline(always)]
fn is_same_life(row: &ThreadRow, task: *const u8) -> bool {
    if get(&globals::SCOPES_TRACED) != 0 {
        return row.flags & DEAD == 0;
    }
    row.start_ns == member(task, &globals::OFF_TASK_START).unwrap_or(0)
        && row.exec_and_tgid == exec_and_tgid(task, bpf_get_current_pid_tgid())
}

/// Whether the row is that of the running thread `tid` and its cached identity holds.
#[inline(always)]
fn is_current(row: &ThreadRow, epoch: u64, task: *const u8, tid: u64) -> bool {
    row.tag == tid
        && row.css_set == member(task, &globals::OFF_TASK_CGROUPS).unwrap_or(0)
        && row.epoch == epoch
        && is_same_life(row, task)
}

/// The row of a thread in either map: the running one's, or one that is gone.
#[inline(always)]
pub fn of(tid: u64) -> Option<&'static mut ThreadRow> {
    let row = THREADS.get_ptr_mut(slot(tid))?;
    // SAFETY: a live map value.
    let row = unsafe { &mut *row };
    if row.tag == tid {
        return Some(row);
    }
    // SAFETY: as above.
    OVERFLOW.get_ptr_mut(&tid).map(|p| unsafe { &mut *p })
}

#[inline(always)]
fn slot(tid: u64) -> u32 {
    (tid & get(&globals::THREAD_MASK)) as u32
}

/// The running thread's row in either map, its identity brought up to date
/// where the context allows. `None` for the idle task and for threads that have
/// no row and may not get one here.
#[inline(always)]
pub fn row(context: Context) -> Option<&'static mut ThreadRow> {
    row_and_window(context).map(|(row, _)| row)
}

/// The row as [`row`] gives it, and `Control::window_until_ns`.
#[inline(always)]
pub fn row_and_window(context: Context) -> Option<(&'static mut ThreadRow, u64)> {
    let (epoch, window) = control();
    let (task, tid) = running();
    if tid == 0 {
        return None;
    }
    let row = THREADS.get_ptr_mut(slot(tid))?;
    // SAFETY: a live map value; all words are plain integers.
    let found = unsafe { &mut *row };
    if is_current(found, epoch, task, tid) {
        return Some((found, window));
    }
    slow(row, context == Context::MaySleep).map(|row| (row, window))
}

/// The row as [`row`] gives it, and what [`pending`] gives, with one look-up of the slot.
#[inline(always)]
pub fn row_and_pending(
    context: Context,
) -> (Option<&'static mut ThreadRow>, Option<&'static mut Pending>) {
    let epoch = control().0;
    let (task, tid) = running();
    let Some(row) = THREADS.get_ptr_mut(slot(tid)) else {
        return (None, None);
    };
    if tid == 0 {
        return (None, None);
    }
    // SAFETY: a live map value; all words are plain integers.
    let found = unsafe { &mut *row };
    let found = if is_current(found, epoch, task, tid) {
        Some(found)
    } else {
        slow(row, context == Context::MaySleep)
    };
    (found, pending_at(row, tid))
}

/// The row as [`present`] gives it, and what [`pending`] gives, with one look-up of the slot.
#[inline(always)]
pub fn present_and_pending() -> (Option<&'static mut ThreadRow>, Option<&'static mut Pending>) {
    let tid = tid();
    let Some(row) = THREADS.get_ptr_mut(slot(tid)) else {
        return (None, None);
    };
    match pending_at(row, tid) {
        // SAFETY: a live map value.
        Some(pending) => (Some(unsafe { &mut *row }), Some(pending)),
        None if tid == 0 => (None, None),
        // SAFETY: as above.
        None => (OVERFLOW.get_ptr_mut(&tid).map(|p| unsafe { &mut *p }), None),
    }
}

/// The running thread's row as it stands, without claim or change of identity.
#[inline(always)]
pub fn present() -> Option<&'static mut ThreadRow> {
    let tid = tid();
    if tid == 0 {
        return None;
    }
    of(tid)
}

/// Another thread's row in the array; `None` if its slot is not its own.
#[inline(always)]
pub fn row_of(tid: u64) -> Option<*mut ThreadRow> {
    let row = THREADS.get_ptr_mut(slot(tid))?;
    // SAFETY: a live map value.
    if tid == 0 || unsafe { read_volatile(&raw const (*row).tag) } != tid {
        return None;
    }
    Some(row)
}

/// What another thread has begun and not ended; `None` if it has no slot.
#[inline(always)]
pub fn pending_of(tid: u64) -> Option<*mut Pending> {
    row_of(tid)?;
    PENDING.get_ptr_mut(slot(tid))
}

/// What the running thread has begun and not ended; `None` if its slot belongs
/// to another thread.
#[inline(always)]
pub fn pending() -> Option<&'static mut Pending> {
    let tid = tid();
    pending_at(THREADS.get_ptr_mut(slot(tid))?, tid)
}

#[inline(always)]
fn pending_at(row: *mut ThreadRow, tid: u64) -> Option<&'static mut Pending> {
    // SAFETY: a live map value.
    if tid == 0 || unsafe { (*row).tag } != tid {
        return None;
    }
    // SAFETY: the slot's owner is the running thread, the only writer but for marks.
    PENDING.get_ptr_mut(slot(tid)).map(|p| unsafe { &mut *p })
}

#[inline(always)]
fn slow(row: *mut ThreadRow, may_sleep: bool) -> Option<&'static mut ThreadRow> {
    let pid_tgid = bpf_get_current_pid_tgid();
    let tid = pid_tgid & 0xffff_ffff;
    // SAFETY: a live map value.
    let row = unsafe { &mut *row };
    let mut tag = row.tag;
    if tag == 0 {
        tag = exchange(&raw mut row.tag, 0, tid);
        if tag == 0 {
            if let Some(p) = PENDING.get_ptr_mut(slot(tid)) {
                // SAFETY: a live map value; the slot is ours now.
                unsafe {
                    write_volatile(&raw mut (*p).mmap_depth, 0);
                    write_volatile(&raw mut (*p).sleep_depth, 0);
                    write_volatile(&raw mut (*p).madvise_start_ns, 0);
                    write_volatile(&raw mut (*p).blocked.lock, 0);
                }
            }
            identify(row, pid_tgid);
            return Some(row);
        }
    }
    if tag == tid {
        return refresh(row, pid_tgid, may_sleep);
    }
    if let Some(p) = OVERFLOW.get_ptr_mut(&tid) {
        // SAFETY: a live map value, written by the running thread only.
        return refresh(unsafe { &mut *p }, pid_tgid, may_sleep);
    }
    if !may_sleep {
        return None;
    }
    let zero = ZERO.get_ptr(0)?;
    // SAFETY: a live map value that nobody writes.
    OVERFLOW.insert(&tid, unsafe { &*zero }, 0).ok()?;
    // SAFETY: a live map value, written by the running thread only.
    let row = unsafe { &mut *OVERFLOW.get_ptr_mut(&tid)? };
    row.tag = tid;
    identify(row, pid_tgid);
    Some(row)
}

/// Brings a row of the running thread up to date after exec, cgroup move,
/// rename or reuse of the tid.
#[inline(always)]
fn refresh(
    row: &'static mut ThreadRow,
    pid_tgid: u64,
    may_sleep: bool,
) -> Option<&'static mut ThreadRow> {
    let task = task();
    let mm: u64 = member(task, &globals::OFF_TASK_MM).unwrap_or(0);
    let start: u64 = member(task, &globals::OFF_TASK_START).unwrap_or(0);
    if row.start_ns != start
        || row.exec_and_tgid != exec_and_tgid(task, pid_tgid)
        // A dying thread has given its address space back and stays what it was.
        || (mm != 0 && row.mm != mm)
        || row.memcg != memcg(task)
    {
        if !may_sleep {
            // The counts stay with the old identity until a context that may
            // sleep; a reused tid must not add to a dead thread's row.
            return if row.start_ns == start {
                Some(row)
            } else {
                None
            };
        }
        flush(row);
        let key = RetiredKey {
            tid: row.tag,
            start_ns: row.start_ns,
            generation: row.generation,
        };
        if RETIRED.insert(&key, &*row, 0).is_err() {
            lose(loss::RETIRED_FULL, 1);
            return Some(row);
        }
        // A reader must not take the zeroes for the old identity's.
        let sequence = row.sequence;
        // SAFETY: a word of a live map value; volatile keeps the order on x86.
        unsafe { write_volatile(&raw mut row.sequence, sequence | 1) };
        let columns = (&raw mut row.columns).cast::<u64>();
        for i in 0..COLUMN_WORDS {
            // SAFETY: within the columns; volatile, or it becomes a call of memset.
            unsafe { write_volatile(columns.add(i), 0) };
        }
        row.flushed = 0;
        row.generation += 1;
    }
    identify(row, pid_tgid);
    Some(row)
}

/// Writes the identity of the running thread into its row.
#[inline(always)]
fn identify(row: &mut ThreadRow, pid_tgid: u64) {
    let task = task();
    let sequence = row.sequence;
    // SAFETY: a word of a live map value; volatile keeps the order on x86.
    unsafe { write_volatile(&raw mut row.sequence, sequence | 1) };
    let tgid = (pid_tgid >> 32) as u32;
    row.css_set = member(task, &globals::OFF_TASK_CGROUPS).unwrap_or(0);
    row.exec_and_tgid = exec_and_tgid(task, pid_tgid);
    row.epoch = control().0;
    let mm: u64 = member(task, &globals::OFF_TASK_MM).unwrap_or(0);
    if mm != 0 {
        row.mm = mm;
    }
    row.memcg = memcg(task);
    row.leader_start_ns = leader_start(task);
    row.comm = bpf_get_current_comm().unwrap_or([0; 16]);
    let counted = if passes(task, tgid, &row.comm) {
        COUNTED
    } else {
        0
    };
    row.flags = counted | if is_exiting() { DEAD } else { 0 };
    row.start_ns = member(task, &globals::OFF_TASK_START).unwrap_or(0);
    // SAFETY: as above.
    unsafe { write_volatile(&raw mut row.sequence, (sequence | 1) + 1) };
}

#[inline(always)]
fn leader_start(task: *const u8) -> u64 {
    match member::<*const u8>(task, &globals::OFF_TASK_LEADER) {
        Some(leader) if !leader.is_null() => member(leader, &globals::OFF_TASK_START).unwrap_or(0),
        _ => 0,
    }
}

/// The task's css of the memory controller, null where there is none.
#[inline(always)]
fn css(task: *const u8) -> *const u8 {
    let subsys = get(&globals::MEMCG_SUBSYS);
    if subsys == faultscope_common::config::ABSENT {
        return core::ptr::null();
    }
    let Some(set) = member::<*const u8>(task, &globals::OFF_TASK_CGROUPS) else {
        return core::ptr::null();
    };
    if set.is_null() {
        return set;
    }
    let offset = get(&globals::OFF_CSS_SET_SUBSYS) + 8 * subsys;
    // SAFETY: the verifier checks the member against the kernel's type.
    unsafe { read_volatile(set.add(offset as usize).cast()) }
}

#[inline(always)]
fn cgroup_id(css: *const u8) -> u64 {
    let Some(cgroup) = member::<*const u8>(css, &globals::OFF_CSS_CGROUP) else {
        return 0;
    };
    if cgroup.is_null() {
        return 0;
    }
    let Some(node) = member::<*const u8>(cgroup, &globals::OFF_CGROUP_KN) else {
        return 0;
    };
    if node.is_null() {
        return 0;
    }
    member(node, &globals::OFF_KN_ID).unwrap_or(0)
}

/// Cgroup id (directory inode) of the memory controller's cgroup, 0 unknown.
#[inline(always)]
fn memcg(task: *const u8) -> u64 {
    let css = css(task);
    if css.is_null() { 0 } else { cgroup_id(css) }
}

/// The filter: every kind in use must match, any value of a kind will do.
#[inline(always)]
fn passes(task: *const u8, tgid: u32, comm: &[u8; 16]) -> bool {
    let filters = get(&globals::FILTERS);
    // SAFETY: a look-up; the value is not read.
    if filters & 1 != 0 && unsafe { FILTER_PIDS.get(&tgid) }.is_none() {
        return false;
    }
    // SAFETY: as above.
    if filters & 4 != 0 && unsafe { FILTER_COMMS.get(comm) }.is_none() {
        return false;
    }
    filters & 2 == 0 || in_filtered_cgroup(task)
}

#[inline(always)]
fn in_filtered_cgroup(task: *const u8) -> bool {
    let mut css = css(task);
    for _ in 0..CGROUP_LEVELS {
        if css.is_null() {
            return false;
        }
        let id = cgroup_id(css);
        // SAFETY: a look-up; the value is not read.
        if unsafe { FILTER_CGROUPS.get(&id) }.is_some() {
            return true;
        }
        css = member(css, &globals::OFF_CSS_PARENT).unwrap_or(core::ptr::null());
    }
    false
}

/// Faults of the row so far.
#[inline(always)]
fn faults(row: &ThreadRow) -> u64 {
    let mut sum = 0;
    for i in 0..FAULT_CLASSES {
        sum += row.columns.user[i] + row.columns.kernel[i];
    }
    sum
}

/// Adds the faults since the thread came to `row.cpu` to the address space's share.
#[inline(always)]
fn flush(row: &mut ThreadRow) {
    let total = faults(row);
    let n = total - row.flushed;
    if n == 0 {
        return;
    }
    let key = SpaceKey {
        mm: row.mm,
        leader_start_ns: row.leader_start_ns,
        cpu: row.cpu,
        tgid: (row.exec_and_tgid >> 32) as u32,
    };
    row.flushed = total;
    if let Some(share) = SPACES.get_ptr_mut(&key) {
        add(share, n);
    } else if SPACES.insert(&key, &n, 1).is_err() {
        // BPF_NOEXIST: another thread of the process may have been first.
        match SPACES.get_ptr_mut(&key) {
            Some(share) => add(share, n),
            None => lose(loss::SPACES_FULL, n),
        }
    }
}

/// Notes a serviced fault's CPU: shares of the address space, and the handoff
/// inside the measuring window. Called before the fault is added to the row.
#[inline(always)]
pub fn place(row: &mut ThreadRow, cpu: u32, until: u64) {
    if row.cpu != cpu {
        flush(row);
        row.cpu = cpu;
    }
    // SAFETY: no arguments.
    if until == 0 || unsafe { bpf_ktime_get_ns() } > until {
        return;
    }
    if let Some(last) = SPACE_LAST.get_ptr_mut(hash(row.mm)) {
        let now = pack(row.mm, cpu);
        // SAFETY: a live map value; a race mislabels one fault of the window.
        let before = unsafe { read_volatile(last) };
        row.columns.window_faults += 1;
        if before != now {
            if before >> 16 == now >> 16 {
                row.columns.window_handoffs += 1;
            }
            // SAFETY: as above.
            unsafe { write_volatile(last, now) };
        }
    }
}

/// A pointer's low 48 bits over a CPU number.
#[inline(always)]
pub fn pack(pointer: u64, cpu: u32) -> u64 {
    (pointer << 16) | u64::from(cpu & 0xffff)
}

/// Slot of a pointer in the `*_LAST` arrays (Fibonacci hashing).
#[inline(always)]
pub fn hash(pointer: u64) -> u32 {
    ((pointer.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u32) & (LAST_SLOTS - 1)
}
