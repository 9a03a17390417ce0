//! The same lock on two kernels: what names of its class and call site have in common.

/// A lock class in a mode, at a call site.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Class {
    /// Lock class, in today's name.
    pub lock: String,
    /// `read`, `write`, `spin`, `mutex` or `rt`; empty if the lock has one mode.
    pub mode: String,
    /// Function that waited, without what compilers add, in today's name; empty for all of them.
    pub site: String,
}

/// Names that locks had and have.
const LOCKS: &[(&str, &str)] = &[
    ("mmap_sem", "mmap_lock"),
    ("zone_lru_lock", "lru_lock"),
    ("pgdat_lru_lock", "lru_lock"),
    ("lruvec_lock", "lru_lock"),
];

/// Functions that became others: the new name does the work of the old one.
const FUNCTIONS: &[(&str, &str)] = &[
    ("mark_page_accessed", "folio_mark_accessed"),
    ("activate_page", "folio_activate"),
    ("pagevec_lru_move_fn", "folio_batch_move_lru"),
    ("__pagevec_lru_add", "folio_batch_move_lru"),
    ("lru_cache_add", "folio_add_lru"),
    ("release_pages", "folios_put_refs"),
    ("do_user_addr_fault", "exc_page_fault"),
    ("__do_page_fault", "exc_page_fault"),
    ("do_page_fault", "exc_page_fault"),
];

impl Class {
    /// The class of these names.
    #[must_use]
    pub fn new(lock: &str, mode: &str, site: &str) -> Self {
        let today = |names: &[(&str, &str)], name: &str| {
            let known = names.iter().find(|(old, _)| *old == name);
            known.map_or(name, |(_, new)| *new).to_owned()
        };
        let mode = if mode == "-" { "" } else { mode };
        Self {
            lock: today(LOCKS, lock),
            mode: mode.to_owned(),
            site: today(FUNCTIONS, plain(site)),
        }
    }

    /// As `mmap_lock write munmap`; a mode that a class always has is not told.
    #[must_use]
    pub fn name(&self) -> String {
        let mode = match self.mode.as_str() {
            "spin" | "mutex" | "rt" => "",
            mode => mode,
        };
        let words = [self.lock.as_str(), mode, self.site.as_str()];
        let given: Vec<&str> = words.into_iter().filter(|w| !w.is_empty()).collect();
        given.join(" ")
    }
}

/// A function in today's name, without what compilers add.
pub(super) fn function(site: &str) -> String {
    Class::new("", "", site).site
}

/// A function's name without offset and without the suffixes of clones and parts.
fn plain(site: &str) -> &str {
    let site = site.split_once("+0x").map_or(site, |(name, _)| name);
    let cut = [".isra.", ".constprop.", ".part.", ".cold", ".llvm."]
        .iter()
        .filter_map(|suffix| site.find(suffix))
        .min();
    &site[..cut.unwrap_or(site.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_and_old_names_do_not_set_classes_apart() {
        let site = |name| Class::new("lru_lock", "spin", name).site;
        for name in [
            "folio_mark_accessed",
            "mark_page_accessed",
            "folio_mark_accessed.isra.0",
            "folio_mark_accessed.constprop.0.isra.3",
            "folio_mark_accessed.cold",
            "folio_mark_accessed+0x5e",
            "folio_mark_accessed.part.0+0x12/0x40",
        ] {
            assert_eq!(site(name), "folio_mark_accessed", "{name}");
        }
        assert_eq!(
            Class::new("mmap_sem", "write", "__vm_munmap").name(),
            "mmap_lock write __vm_munmap"
        );
        assert_eq!(Class::new("spinlock", "-", "").name(), "spinlock");
    }
}
