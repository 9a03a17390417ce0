//! Names of the system calls that take mmap_lock, x86-64.

/// `(number, name)` from arch/x86/entry/syscalls/syscall_64.tbl, in order.
const NAMES: &[(i32, &str)] = &[
    (0, "read"),
    (1, "write"),
    (3, "close"),
    (7, "poll"),
    (8, "lseek"),
    (9, "mmap"),
    (10, "mprotect"),
    (11, "munmap"),
    (12, "brk"),
    (15, "rt_sigreturn"),
    (16, "ioctl"),
    (17, "pread64"),
    (18, "pwrite64"),
    (19, "readv"),
    (20, "writev"),
    (21, "access"),
    (23, "select"),
    (24, "sched_yield"),
    (25, "mremap"),
    (26, "msync"),
    (27, "mincore"),
    (28, "madvise"),
    (30, "shmat"),
    (35, "nanosleep"),
    (39, "getpid"),
    (40, "sendfile"),
    (44, "sendto"),
    (45, "recvfrom"),
    (46, "sendmsg"),
    (47, "recvmsg"),
    (56, "clone"),
    (57, "fork"),
    (58, "vfork"),
    (59, "execve"),
    (60, "exit"),
    (61, "wait4"),
    (67, "shmdt"),
    (76, "truncate"),
    (77, "ftruncate"),
    (82, "rename"),
    (83, "mkdir"),
    (87, "unlink"),
    (101, "ptrace"),
    (135, "personality"),
    (149, "mlock"),
    (150, "munlock"),
    (151, "mlockall"),
    (152, "munlockall"),
    (157, "prctl"),
    (158, "arch_prctl"),
    (202, "futex"),
    (216, "remap_file_pages"),
    (217, "getdents64"),
    (230, "clock_nanosleep"),
    (231, "exit_group"),
    (232, "epoll_wait"),
    (237, "mbind"),
    (239, "get_mempolicy"),
    (256, "migrate_pages"),
    (257, "openat"),
    (262, "newfstatat"),
    (270, "pselect6"),
    (271, "ppoll"),
    (272, "unshare"),
    (275, "splice"),
    (278, "vmsplice"),
    (279, "move_pages"),
    (281, "epoll_pwait"),
    (285, "fallocate"),
    (298, "perf_event_open"),
    (308, "setns"),
    (310, "process_vm_readv"),
    (311, "process_vm_writev"),
    (312, "kcmp"),
    (317, "seccomp"),
    (318, "getrandom"),
    (319, "memfd_create"),
    (321, "bpf"),
    (322, "execveat"),
    (323, "userfaultfd"),
    (324, "membarrier"),
    (325, "mlock2"),
    (326, "copy_file_range"),
    (329, "pkey_mprotect"),
    (332, "statx"),
    (334, "rseq"),
    (426, "io_uring_enter"),
    (427, "io_uring_register"),
    (435, "clone3"),
    (440, "process_madvise"),
    (448, "process_mrelease"),
    (450, "set_mempolicy_home_node"),
    (451, "cachestat"),
    (453, "map_shadow_stack"),
    (462, "mseal"),
];

/// The call's name, `fault` outside system calls, `kernel thread`, `exit` of a
/// dying thread, or its number.
#[must_use]
pub fn name(number: i32) -> String {
    match number {
        -1 => "fault".into(),
        -2 => "kernel thread".into(),
        -3 => "exit".into(),
        _ => NAMES
            .binary_search_by_key(&number, |(n, _)| *n)
            .map_or_else(|_| format!("syscall {number}"), |i| NAMES[i].1.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_says_what_the_kernel_says() {
        assert!(NAMES.is_sorted_by_key(|(n, _)| *n));
        assert_eq!(name(9), "mmap");
        assert_eq!(name(10), "mprotect");
        assert_eq!(name(11), "munmap");
        assert_eq!(name(28), "madvise");
        assert_eq!(name(-1), "fault");
        assert_eq!(name(-3), "exit");
        assert_eq!(name(9999), "syscall 9999");
    }
}
