use super::*;

fn value<'a>(conditions: &'a Conditions, id: &str) -> &'a Fact<String> {
    let found = conditions.all.iter().find(|c| c.id == id);
    &found
        .unwrap_or_else(|| panic!("no condition is called {id}"))
        .value
}

fn of(root: &Path) -> Conditions {
    Conditions::read(root, &HostFacts::read(root))
}

#[test]
fn this_machine_tells_what_every_linux_tells() {
    let all = of(Path::new("/"));
    for id in [
        "cpu_model",
        "cpus_online",
        "topology",
        "memory_bytes",
        "page_bytes",
        "kernel_release",
        "swap",
        "sysctl.vm.swappiness",
    ] {
        assert!(value(&all, id).is_yes(), "{id}: {}", value(&all, id));
    }
    assert!(all.all.iter().all(|c| !c.id.contains("drop_caches")));
    // A list with tabs (vm.lowmem_reserve_ratio) is text too.
    let texts = all.all.iter().filter_map(|c| c.value.value());
    assert!(!texts.into_iter().any(|text| text.contains('\u{fffd}')));
    let mut ids: Vec<_> = all.all.iter().map(|c| &c.id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "ids are unique");
    if value(&all, "kernel_config").is_yes() {
        assert!(all.kernel_config.is_sorted() && all.kernel_config.len() > 1000);
    }
}

#[test]
fn an_empty_machine_is_unknown_and_never_zero() {
    let all = of(Path::new("/nonexistent"));
    for id in [
        "host_id",
        "cpu_model",
        "memory_bytes",
        "kernel_release",
        "swap",
        "governor",
        "cgroup_memory_max",
    ] {
        assert!(!value(&all, id).is_yes(), "{id}");
    }
    assert!(all.kernel_config.is_empty());
}

#[test]
fn fixtures_of_this_kernel_are_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/host-6.18");
    let all = of(&root);
    assert!(
        matches!(value(&all, "cpu_model"), Fact::Yes(model) if model.contains("(family 6, model "))
    );
    assert!(value(&all, "thp_64kB").is_yes());
}

#[test]
fn the_id_of_a_machine_does_not_tell_its_machine_id() {
    let id = "0123456789abcdef0123456789abcdef".to_owned();
    let Fact::Yes(hashed) = host_id(Ok(id.clone())) else {
        panic!("a machine id was given");
    };
    assert_eq!(hashed.len(), 16);
    assert!(!id.contains(&hashed));
    assert_eq!(host_id(Ok(String::new())).state(), "unknown");
}

#[test]
fn swap_is_told_by_kind_and_size() {
    let header = "Filename\tType\tSize\tUsed\tPriority\n";
    assert_eq!(swap(header), "none");
    let text =
        format!("{header}/swap\\040file file 2097148 100 -2\n/dev/zram0 partition 1048572 0 100\n");
    assert_eq!(
        swap(&text),
        "file 2097148 kB priority -2, partition 1048572 kB priority 100"
    );
}
