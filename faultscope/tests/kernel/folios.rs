//! Faults that map more than a page: huge pages, large folios, hugetlb.

use crate::latency::{BESIDE, backed, latency_or_return, print_paths, size};
use crate::support::{
    Child, Link, PAGE, Pages, Role, Setting, demand, demand_exactly, demand_near, feature, skip,
    watch,
};

pub(crate) const ROLES: &[(&str, Role)] = &[("huge pages", huge_pages), ("hugetlb", hugetlb)];

/// Touches `arguments[0]` huge pages.
fn huge_pages(link: &mut Link, arguments: &[u64]) {
    const HUGE: usize = 512 * PAGE;
    let pages = size(arguments[0]);
    // SAFETY: plain numbers.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 0, 0, 0, 0) };
    let memory = Pages::new((pages + 1) * 512);
    // Refused where huge pages are not built, which the test finds out by itself.
    // SAFETY: this mapping's own range.
    unsafe { libc::madvise(memory.start().cast(), memory.bytes(), libc::MADV_HUGEPAGE) };
    let first = memory.start().align_offset(HUGE) / PAGE;
    link.stop([0; 4]);
    for page in 0..pages {
        memory.touch_part(first + page * 512, 1);
    }
    link.stop([0; 4]);
}

/// A huge page is one fault and 512 pages.
#[test]
fn huge_pages_are_told() {
    const PAGES: u64 = 32;
    let mut child = Child::start("huge pages", &[PAGES]);
    let mut session = latency_or_return!(&[child.pid()]);
    let (model, _) = watch(&mut session, &mut child);
    print_paths(&model);
    let Some(made) = model.delta().vmstat.get("thp_fault_alloc").copied() else {
        feature(
            "huge pages told among faults",
            Err("the kernel has no transparent huge pages"),
        );
        skip("this kernel has no transparent huge pages");
        child.finish();
        return;
    };
    let thp = backed(&model, "thp");
    demand("huge pages the kernel made", made, PAGES / 2);
    demand_near("faults that made one", thp.faults, made, 2);
    demand_near("pages they mapped", thp.pages, made * 512, 1024);
    feature("huge pages told among faults", Ok(()));
    child.finish();
}

/// A folio of 16 pages is one fault and 16 pages, and no huge page.
#[test]
fn large_folios_are_told() {
    const WHAT: &str = "order of large folios (mTHP) told among faults";
    const SIZE: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
    const HUGE: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";
    const FOLIOS: u64 = 32;
    let mut child = Child::start("huge pages", &[FOLIOS]);
    let mut session = latency_or_return!(&[child.pid()]);
    let (Some(_size), Some(_huge)) = (Setting::set(SIZE, "always"), Setting::set(HUGE, "never"))
    else {
        feature(WHAT, Err("the kernel has huge pages of one size only"));
        skip("this kernel has no large anonymous folios but huge pages");
        return;
    };
    let (model, _) = watch(&mut session, &mut child);
    print_paths(&model);
    let anon = backed(&model, "anon");
    demand_near("faults that made a large folio", anon.large, FOLIOS, 2);
    demand_near("pages they mapped", anon.pages, FOLIOS * 16, 2 * BESIDE);
    demand_exactly("huge pages", backed(&model, "thp").faults, 0);
    feature(WHAT, Ok(()));
    child.finish();
}

/// Touches `arguments[0]` pages of hugetlb.
fn hugetlb(link: &mut Link, arguments: &[u64]) {
    let pages = size(arguments[0]);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB;
    let memory = Pages::map(pages * 512, flags, -1);
    link.stop([0; 4]);
    for page in 0..pages {
        memory.touch_part(page * 512, 1);
    }
    link.stop([0; 4]);
}

/// hugetlb pages are told from transparent ones.
#[test]
fn hugetlb_pages_are_told() {
    const PAGES: u64 = 8;
    let mut session = latency_or_return!(&[]);
    let _pool = Setting::set("/proc/sys/vm/nr_hugepages", "16").expect("hugetlb is built");
    let mut child = Child::start("hugetlb", &[PAGES]);
    let (model, _) = watch(&mut session, &mut child);
    print_paths(&model);
    demand_exactly("hugetlb faults", backed(&model, "hugetlb").faults, PAGES);
    demand_exactly("huge pages", backed(&model, "thp").faults, 0);
    child.finish();
}
