//! Names of madvise advices.

/// `(value, name)` as in include/uapi/asm-generic/mman-common.h.
const NAMES: &[(i32, &str)] = &[
    (0, "NORMAL"),
    (1, "RANDOM"),
    (2, "SEQUENTIAL"),
    (3, "WILLNEED"),
    (4, "DONTNEED"),
    (8, "FREE"),
    (9, "REMOVE"),
    (10, "DONTFORK"),
    (11, "DOFORK"),
    (12, "MERGEABLE"),
    (13, "UNMERGEABLE"),
    (14, "HUGEPAGE"),
    (15, "NOHUGEPAGE"),
    (16, "DONTDUMP"),
    (17, "DODUMP"),
    (18, "WIPEONFORK"),
    (19, "KEEPONFORK"),
    (20, "COLD"),
    (21, "PAGEOUT"),
    (22, "POPULATE_READ"),
    (23, "POPULATE_WRITE"),
    (24, "DONTNEED_LOCKED"),
    (25, "COLLAPSE"),
    (100, "HWPOISON"),
    (101, "SOFT_OFFLINE"),
    (102, "GUARD_INSTALL"),
    (103, "GUARD_REMOVE"),
];

/// The advice's name without `MADV_`; its number where it has none.
#[must_use]
pub fn name(advice: i32) -> String {
    NAMES
        .iter()
        .find(|(value, _)| *value == advice)
        .map_or_else(
            || {
                if advice < 0 {
                    "invalid".into()
                } else {
                    format!("unknown {advice}")
                }
            },
            |(_, name)| (*name).into(),
        )
}
