//! Tables that rows refer to: what would be said again in every interval.

use super::{Column, Table, columns};

const ID: &[Column] = columns! {
    Int "id" "its number in this file";
};

const LIST: &[Column] = columns! {
    Int "list" "the list's number in this file";
    Int "position" "its place in the list, from 0";
};

const VALIDITY: &[Column] = columns! {
    Int "since" "the first interval in which it was so called";
};

pub(super) const TABLES: &[Table] = &[
    Table {
        name: "string",
        doc: "A text that others refer to.",
        key: 1,
        place: 1,
        groups: &[ID, columns! { Text "text" "the text"; }],
    },
    Table {
        name: "thread_id",
        doc: "A thread under a name and in a cgroup; another row when either changes.",
        key: 1,
        place: 1,
        groups: &[
            ID,
            columns! {
                Int "tid" "thread id";
                Int "start_ns" "its start, ns since boot";
                Int "tgid" "process id";
                Int "process_start_ns" "start of the process's leader, ns since boot";
                Int "comm" "its name: `string.id`";
                Int "cgroup" "memory cgroup, 0 unknown";
            },
        ],
    },
    Table {
        name: "process_id",
        doc: "A process under a name and in a cgroup; another row when either changes.",
        key: 1,
        place: 1,
        groups: &[
            ID,
            columns! {
                Int "tgid" "process id";
                Int "start_ns" "start of its leader, ns since boot";
                Int "comm" "name of the leader, empty if never seen: `string.id`";
                Int "cgroup" "memory cgroup of the thread read last";
            },
        ],
    },
    Table {
        name: "mm_id",
        doc: "An address space.",
        key: 1,
        place: 1,
        groups: &[
            ID,
            columns! {
                Int "mm" "its identity in the kernel";
                OptInt "tgid" "process that has it, NULL unknown";
                OptInt "start_ns" "start of that process, ns since boot";
            },
        ],
    },
    Table {
        name: "taker_id",
        doc: "A taker of an mmap_lock.",
        key: 1,
        place: 1,
        groups: &[
            ID,
            columns! {
                Int "mm" "identity of the address space in the kernel";
                Int "tgid" "taking process";
                Int "syscall" "system call (x86-64 number), -1 a fault, -2 a kernel thread, -3 a dying thread";
                Int "is_write" "1 for write";
                Int "owner" "process that owns the address space, 0 unknown";
            },
        ],
    },
    Table {
        name: "lock_id",
        doc: "A contended lock, or a call site at which locks were waited for.",
        key: 1,
        place: 1,
        groups: &[
            ID,
            columns! {
                Int "is_site" "1 for a call site; waits stand in both kinds of rows";
                Int "class" "0 mmap_lock, 1 lru_lock, 2 zone_lock, 3 page_table_lock, 4 spinlock, 5 rwsem, 6 mutex, 7 rt_mutex";
                Int "mode" "2 read, 4 write, 0 neither";
                Int "node" "NUMA node of an lru_lock or zone lock";
                Int "lock" "identity: the address space of an mmap_lock, the address of a zone";
                Int "memcg" "cgroup an lru_lock's pages are charged to, 0 the node's own";
                Int "chain" "`chain.id`, 0 none; without a row there: the stack was lost";
                Int "owner" "process that owns the address space";
                Int "address" "an address of the lock, 0 where kernel addresses are hidden";
            },
        ],
    },
    Table {
        name: "blocked_id",
        doc: "A waiter for an mmap_lock and who held it.",
        key: 1,
        place: 1,
        groups: &[
            ID,
            columns! {
                Int "tgid" "waiting process";
                Int "syscall" "its system call, as `taker_id.syscall`";
                Int "is_write" "1 if it wanted the lock for write";
                Int "chain" "`chain.id` of the waiter, 0 none";
                Int "held" "0 changing hands, 1 for write, 2 for read, 3 for read by threads without a name";
                Int "holder" "process that held it, 0 unknown";
                Int "holder_tid" "thread that held it, 0 unknown";
                Int "holder_comm" "its name, empty if unknown: `string.id`";
                OptInt "holder_syscall" "system call of the hold, NULL unknown";
                Int "holder_chain" "`chain.id` of where the hold ended, 0 unknown";
                Int "owner" "process that owns the address space, 0 unknown";
            },
        ],
    },
    Table {
        name: "chain",
        doc: "A kernel call chain, lock code stripped.",
        key: 1,
        place: 1,
        groups: &[
            ID,
            columns! {
                Int "since" "the first interval in which it was known";
                Int "site" "first function outside the lock code: `string.id`";
                Int "frames" "its functions: `name.list`, innermost first, 0 none";
            },
        ],
    },
    Table {
        name: "spinlock",
        doc: "Which spinlock waits are seen.",
        key: 1,
        place: 1,
        groups: &[
            ID,
            columns! {
                OptInt "mode" "pv, native or test-and-set: `string.id`, NULL unknown";
                Int "is_exact" "1 if every wait is measured in its slow path";
                Text "sentence" "what that means";
            },
        ],
    },
    Table {
        name: "missing",
        doc: "A signal without a value, in lists that intervals refer to.",
        key: 2,
        place: 2,
        groups: &[
            LIST,
            columns! {
                Int "signal" "the signal: `string.id`";
                Text "reason" "why";
            },
        ],
    },
    Table {
        name: "note",
        doc: "A sentence for the reader, in lists that intervals refer to.",
        key: 2,
        place: 2,
        groups: &[LIST, columns! { Text "text" "the sentence"; }],
    },
    Table {
        name: "name",
        doc: "A name, in lists that intervals and chains refer to.",
        key: 2,
        place: 2,
        groups: &[LIST, columns! { Int "name" "`string.id`"; }],
    },
    Table {
        name: "program",
        doc: "A program of the recorder, in lists that intervals refer to.",
        key: 2,
        place: 2,
        groups: &[
            LIST,
            columns! {
                Int "name" "its name: `string.id`";
                Text "place" "its hook, or why it is not attached";
                Int "is_attached" "1 if attached";
                Int "has_run_ns" "1 if its run time was read; without a row in `program_run` it is then 0";
                Int "has_runs" "1 if its runs were read";
                Int "has_misses" "1 if its misses were read";
            },
        ],
    },
    Table {
        name: "map",
        doc: "A BPF map of the recorder, in lists that intervals refer to.",
        key: 2,
        place: 2,
        groups: &[
            LIST,
            columns! {
                Int "name" "its name: `string.id`";
                Int "capacity" "entries it can hold";
            },
        ],
    },
    Table {
        name: "process_name",
        doc: "The name of a process that rows refer to by `tgid`, from an interval on.",
        key: 2,
        place: 2,
        groups: &[
            columns! { Int "tgid" "the process"; },
            VALIDITY,
            columns! { OptInt "name" "`string.id`, NULL from then on unknown"; },
        ],
    },
    Table {
        name: "cgroup_path",
        doc: "The path of a cgroup that rows refer to, from an interval on.",
        key: 2,
        place: 2,
        groups: &[
            columns! { Int "cgroup" "its id"; },
            VALIDITY,
            columns! { OptInt "path" "`string.id`, NULL from then on unknown"; },
        ],
    },
];
