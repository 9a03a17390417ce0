//! Tests of the BTF reader on a built image, on damaged ones and on the running kernel.

use super::format::MAGIC;
use super::*;
use proptest::prelude::*;

/// Builds a BTF image type by type; ids count from 1 in the order of the calls.
#[derive(Default)]
struct Builder {
    types: Vec<u8>,
    strings: Vec<u8>,
    count: u32,
}

impl Builder {
    fn new() -> Self {
        Self {
            strings: vec![0],
            ..Self::default()
        }
    }

    fn name(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let at = u32::try_from(self.strings.len()).expect("small");
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        at
    }

    fn add(
        &mut self,
        name: &str,
        kind: u32,
        flag: bool,
        vlen: u32,
        size_or_type: u32,
        extra: &[u32],
    ) -> u32 {
        let name = self.name(name);
        let info = (u32::from(flag) << 31) | (kind << 24) | vlen;
        for word in [name, info, size_or_type].iter().chain(extra) {
            self.types.extend_from_slice(&word.to_ne_bytes());
        }
        self.count += 1;
        self.count
    }

    fn aggregate(
        &mut self,
        name: &str,
        kind: u32,
        flag: bool,
        size: u32,
        members: &[(&str, u32, u32)],
    ) -> u32 {
        let extra: Vec<u32> = members
            .iter()
            .flat_map(|&(name, id, offset)| [self.name(name), id, offset])
            .collect();
        let vlen = u32::try_from(members.len()).expect("small");
        self.add(name, kind, flag, vlen, size, &extra)
    }

    fn build(self) -> Vec<u8> {
        let length = |part: &[u8]| u32::try_from(part.len()).expect("small");
        let mut image = Vec::new();
        image.extend_from_slice(&MAGIC.to_ne_bytes());
        image.extend_from_slice(&[1, 0]);
        for word in [
            24,
            0,
            length(&self.types),
            length(&self.types),
            length(&self.strings),
        ] {
            image.extend_from_slice(&word.to_ne_bytes());
        }
        image.extend_from_slice(&self.types);
        image.extend_from_slice(&self.strings);
        image
    }
}

fn sample() -> Vec<u8> {
    let mut b = Builder::new();
    let int = b.add("int", 1, false, 0, 4, &[32 | (1 << 24)]);
    let flag = b.add("_Bool", 1, false, 0, 1, &[8]);
    let narrow = b.add("narrow", 1, false, 0, 4, &[3]);
    let bool_type = b.add("bool", 8, false, 0, flag, &[]);
    // struct inner { int a; int b; } with plain offsets
    let inner = b.aggregate(
        "inner",
        4,
        false,
        8,
        &[("a", int, 0), ("b", int, 32), ("old", narrow, 40)],
    );
    // union { int x; struct inner y; }
    let anonymous = b.aggregate("", 5, false, 8, &[("x", int, 0), ("y", inner, 0)]);
    let constant = b.add("", 10, false, 0, inner, &[]);
    // struct outer { int head; union {...}; const struct inner tail; int bits : 3; } with the kind flag
    let outer = b.aggregate(
        "outer",
        4,
        true,
        24,
        &[
            ("head", int, 0),
            ("", anonymous, 64),
            ("tail", constant, 128),
            ("bits", int, (3 << 24) | 176),
        ],
    );
    let pointer = b.add("", 2, false, 0, outer, &[]);
    let void_pointer = b.add("", 2, false, 0, 0, &[]);
    let const_inner_pointer = b.add("", 2, false, 0, constant, &[]);
    let double = b.add("", 2, false, 0, const_inner_pointer, &[]);
    let proto = b.add(
        "",
        13,
        false,
        5,
        0,
        &[0, void_pointer, 0, pointer, 0, bool_type, 0, double, 0, int],
    );
    let proto_pointer = b.add("", 2, false, 0, proto, &[]);
    b.add("btf_trace_thing", 8, false, 0, proto_pointer, &[]);
    b.add("do_thing", 12, false, 1, proto, &[]);
    b.add("array", 3, false, 0, 0, &[int, int, 10]);
    b.add("table_t", 8, false, 0, 17, &[]);
    let names = ["ONE", "MINUS", "BIG", "HUGE", "TWICE"].map(|name| b.name(name));
    b.add("", 6, false, 2, 4, &[names[0], 1, names[4], 5]);
    b.add("signed", 6, true, 1, 4, &[names[1], u32::MAX]);
    b.add(
        "wide",
        19,
        false,
        2,
        8,
        &[names[2], 1, 2, names[3], u32::MAX, u32::MAX],
    );
    b.add("other", 6, false, 1, 4, &[names[4], 6]);
    // Two structs of one name that disagree.
    b.aggregate("twin", 4, false, 8, &[("same", int, 0), ("moved", int, 32)]);
    b.aggregate(
        "twin",
        4,
        false,
        12,
        &[("same", int, 0), ("moved", int, 64)],
    );
    // struct loop { struct loop; } only possible in a hostile image
    let next = b.count + 1;
    b.aggregate("loop", 4, false, 8, &[("", next, 0), ("", next, 0)]);
    b.build()
}

#[test]
fn offsets_follow_paths_and_anonymous_members() {
    let btf = Btf::parse(sample()).expect("valid");
    assert_eq!(btf.member_offset("outer", "head"), Some(0));
    assert_eq!(btf.member_offset("outer", "x"), Some(8));
    assert_eq!(btf.member_offset("outer", "y.b"), Some(12));
    assert_eq!(btf.member_offset("outer", "tail.b"), Some(20));
    assert_eq!(btf.member_offset("inner", "b"), Some(4));
}

#[test]
fn missing_bit_fields_and_ambiguous_members_are_none() {
    let btf = Btf::parse(sample()).expect("valid");
    for (aggregate, path) in [
        ("outer", "absent"),
        ("absent", "head"),
        ("outer", ""),
        ("outer", "head.x"),
        ("outer", "tail."),
        ("outer", "bits"),
        ("inner", "old"),
        ("twin", "moved"),
        ("loop", "x"),
        ("int", "x"),
    ] {
        assert_eq!(
            btf.member_offset(aggregate, path),
            None,
            "{aggregate}.{path}"
        );
    }
    assert_eq!(btf.member_offset("twin", "same"), Some(0));
}

#[test]
fn sizes_enumerators_and_functions() {
    let btf = Btf::parse(sample()).expect("valid");
    assert_eq!(btf.size_of("outer"), Some(24));
    assert_eq!(btf.size_of("bool"), Some(1));
    assert_eq!(btf.size_of("table_t"), Some(40));
    assert_eq!(btf.size_of("twin"), None);
    assert_eq!(btf.size_of("do_thing"), None);
    assert_eq!(btf.enum_value("ONE"), Some(1));
    assert_eq!(btf.enum_value("MINUS"), Some(-1));
    assert_eq!(btf.enum_value("BIG"), Some((2 << 32) | 1));
    assert_eq!(btf.enum_value("HUGE"), None);
    assert_eq!(btf.enum_value("TWICE"), None);
    assert_eq!(btf.enum_value("ABSENT"), None);
    assert!(btf.has_function("do_thing"));
    assert!(!btf.has_function("outer"));
}

#[test]
fn tracepoint_arguments_are_rendered_without_the_private_data() {
    let btf = Btf::parse(sample()).expect("valid");
    let args = btf.tracepoint_args("thing").expect("present");
    assert_eq!(args, ["outer *", "bool", "const inner **", "int"]);
    assert_eq!(btf.tracepoint_args("absent"), None);
}

#[test]
fn damaged_images_say_what_is_wrong() {
    let image = sample();
    assert!(matches!(
        Btf::parse(Vec::new()),
        Err(BtfError::Truncated {
            part: "the header",
            ..
        })
    ));
    assert!(matches!(
        Btf::parse(image[..image.len() - 1].to_vec()),
        Err(BtfError::Truncated {
            part: "the string section",
            ..
        })
    ));
    let mut swapped = image.clone();
    swapped.swap(0, 1);
    assert_eq!(Btf::parse(swapped).err(), Some(BtfError::Magic(0x9FEB)));
    let mut version = image.clone();
    version[2] = 9;
    assert_eq!(Btf::parse(version).err(), Some(BtfError::Version(9)));
    let mut kind = image;
    kind[24 + 7] = 31;
    assert_eq!(
        Btf::parse(kind).err(),
        Some(BtfError::Kind { id: 1, kind: 31 })
    );
}

fn ask_everything(btf: &Btf) {
    for path in ["head", "x", "y.b", "tail.b", "bits", "same", "absent"] {
        for aggregate in ["outer", "inner", "twin"] {
            _ = btf.member_offset(aggregate, path);
        }
    }
    _ = btf.member_offset("loop", "absent");
    for name in ["outer", "table_t", "bool", "wide", "ONE", "TWICE", "BIG"] {
        _ = (
            btf.size_of(name),
            btf.enum_value(name),
            btf.has_function(name),
        );
    }
    drop(btf.tracepoint_args("thing"));
}

proptest! {
    #[test]
    fn any_mutation_is_survived(edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
        let mut image = sample();
        for (at, value) in edits {
            let at = at.index(image.len());
            image[at] = value;
        }
        if let Ok(btf) = Btf::parse(image) {
            ask_everything(&btf);
        }
    }

    #[test]
    fn any_bytes_after_a_good_header_are_survived(body in proptest::collection::vec(any::<u8>(), 0..300), split in 0usize..300) {
        let split = split.min(body.len());
        let builder = Builder { types: body[..split].to_vec(), strings: body[split..].to_vec(), count: 0 };
        if let Ok(btf) = Btf::parse(builder.build()) {
            ask_everything(&btf);
        }
    }
}

/// The figures were read with an independent tool on the 6.18.44 kernel of the `host-6.18` fixture.
#[test]
fn running_kernel_gives_the_known_answers() {
    let image = std::fs::read("/sys/kernel/btf/vmlinux").expect("the tests need a kernel with BTF");
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("proc is mounted");
    let btf = Btf::parse(image).expect("the running kernel's BTF");
    assert!(btf.type_count() > 10_000, "{}", btf.type_count());
    assert_eq!(
        btf.tracepoint_args("page_fault_user")
            .map(|args| args.len()),
        Some(3)
    );
    assert!(btf.enum_value("memory_cgrp_id").is_some());
    assert!(btf.has_function("handle_mm_fault"));
    // Four on every kernel of docs/compatibility.md.
    assert_eq!(btf.function_args("handle_mm_fault"), Some(4));
    assert_eq!(btf.function_args("no_such_function"), None);
    assert_eq!(
        btf.member_offset("task_struct", "thread_info.no_such_member"),
        None
    );
    if !release.starts_with("6.18.44-fc") {
        return;
    }
    for (aggregate, path, offset) in [
        ("task_struct", "mm", 1136),
        ("mm_struct", "mmap_lock", 184),
        ("lruvec", "lru_lock", 80),
        ("lruvec", "pgdat", 136),
        ("zone", "lock", 1672),
        ("zone", "zone_pgdat", 104),
        ("ptdesc", "ptl", 40),
    ] {
        assert_eq!(
            btf.member_offset(aggregate, path),
            Some(offset),
            "{aggregate}.{path}"
        );
    }
    assert_eq!(
        btf.tracepoint_args("mmap_lock_acquire_returned")
            .expect("built in"),
        ["mm_struct *", "bool", "bool"]
    );
}
