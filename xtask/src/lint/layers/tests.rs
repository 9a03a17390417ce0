//! Each rule is shown to fail, and to let through what it should.

use super::*;

fn rules(path: &str, source: &str) -> Vec<&'static str> {
    with_edges(path, source, &[])
}

fn with_edges(path: &str, source: &str, edges: &[Edge]) -> Vec<&'static str> {
    check_source(&File::new(path, source), edges)
        .iter()
        .map(|v| v.rule)
        .collect()
}

const NONE: [&str; 0] = [];

#[test]
fn lower_layers_are_open_and_higher_ones_closed() {
    assert_eq!(
        rules(
            "faultscope/src/tui/mod.rs",
            "use crate::model::Model; use crate::units::Bytes;"
        ),
        NONE
    );
    assert_eq!(
        rules("faultscope/src/model/mod.rs", "use crate::tui::Screen;"),
        ["layer"]
    );
    assert_eq!(
        rules(
            "faultscope/src/host/btf.rs",
            "fn f() { crate::plan::choose() }"
        ),
        ["layer"]
    );
    assert_eq!(
        rules(
            "faultscope/src/host/btf.rs",
            "use super::super::plan::choose;"
        ),
        ["layer"]
    );
    assert_eq!(
        rules("faultscope/src/units.rs", "use super::model;"),
        ["layer"]
    );
}

#[test]
fn the_crate_path_of_the_library_is_a_layer_path() {
    assert_eq!(
        rules("faultscope/src/model/mod.rs", "use faultscope::cli::Top;"),
        ["layer"]
    );
}

#[test]
fn neighbours_in_a_layer_do_not_know_each_other() {
    assert_eq!(
        rules("faultscope/src/export/json.rs", "use crate::tui::theme;"),
        ["layer"]
    );
    assert_eq!(
        rules("faultscope/src/collect/mod.rs", "use crate::store::writer;"),
        ["layer"]
    );
    assert_eq!(
        rules("faultscope/src/collect/mod.rs", "use crate::model::Model;"),
        ["layer"]
    );
    assert_eq!(
        rules(
            "faultscope/src/collect/mod.rs",
            "use crate::collect::faults; use super::collect::x;"
        ),
        NONE
    );
}

#[test]
fn the_top_uses_everything() {
    assert_eq!(
        rules(
            "faultscope/src/main.rs",
            "use faultscope::commands; use faultscope::cli;"
        ),
        NONE
    );
    assert_eq!(
        rules(
            "faultscope/src/lib.rs",
            "pub mod cli; pub use crate::units::Bytes;"
        ),
        NONE
    );
}

#[test]
fn roundabout_names_of_the_root_are_refused() {
    assert_eq!(
        rules("faultscope/src/model/mod.rs", "use crate::*;"),
        ["layer"]
    );
    assert_eq!(rules("faultscope/src/units.rs", "use super::*;"), ["layer"]);
    assert_eq!(
        rules("faultscope/src/model/mod.rs", "use crate as us;"),
        ["layer"]
    );
    assert_eq!(
        rules("faultscope/src/model/mod.rs", "use crate::Bytes;"),
        ["layer"]
    );
    assert_eq!(
        rules("faultscope/src/model/mod.rs", "mod t { use super::*; }"),
        NONE
    );
}

#[test]
fn a_module_without_a_layer_is_refused() {
    assert_eq!(rules("faultscope/src/utils.rs", ""), ["layer"]);
    assert_eq!(rules("faultscope/src/helpers/mod.rs", ""), ["layer"]);
}

#[test]
fn crates_stay_at_home() {
    for (krate, home) in [
        ("aya", "bpf/load"),
        ("ratatui", "tui/mod"),
        ("crossterm", "tui/term"),
        ("clap", "cli/mod"),
        ("blazesym", "symbol/user"),
        ("rusqlite", "store/writer"),
        ("axum", "export/http"),
        ("arrow", "export/parquet"),
    ] {
        let source = format!("use {krate}::x;");
        assert_eq!(
            rules(&format!("faultscope/src/{home}.rs"), &source),
            NONE,
            "{krate} at home"
        );
        assert_eq!(
            rules("faultscope/src/commands/top.rs", &source),
            ["home"],
            "{krate} away"
        );
        let renamed = format!("use ::{krate} as other;");
        assert_eq!(
            rules("faultscope/src/commands/top.rs", &renamed),
            ["home"],
            "{krate} away under a name"
        );
    }
    assert_eq!(
        rules("faultscope/src/export/json.rs", "use axum::x;"),
        ["home"]
    );
    assert_eq!(
        rules(
            "faultscope/build.rs",
            "use aya::x; fn main() { std::fs::read(\"x\") }"
        ),
        NONE
    );
    assert_eq!(rules("faultscope/build.rs", "use clap::x;"), ["home"]);
}

#[test]
fn derives_and_test_modules_do_not_move_a_crate() {
    assert_eq!(
        rules(
            "faultscope/src/commands/top.rs",
            "#[derive(clap::Parser)] struct A;"
        ),
        ["home"]
    );
    assert_eq!(
        rules(
            "faultscope/src/model/mod.rs",
            "#[cfg(test)] mod tests { use aya::Ebpf; }"
        ),
        ["home"]
    );
}

#[test]
fn pure_modules_touch_nothing() {
    for name in ["plan", "sample", "workload", "model", "compare::stats"] {
        let file = format!("faultscope/src/{}.rs", name.replace("::", "/"));
        for bad in [
            "use std::fs;",
            "fn f() { std::fs::read(\"x\") }",
            "use std::{fs::File, fmt};",
            "use std::net::TcpStream;",
            "use std::process::Command;",
            "use std::time::Instant;",
            "use std::time::{Duration, SystemTime};",
            "use std::sync::{Arc, Mutex};",
            "use std::sync::RwLock;",
            "use std::time::*;",
            "use std::*;",
            "use tokio::sync::watch;",
        ] {
            assert_eq!(rules(&file, bad), ["pure"], "{bad} in {name}");
        }
        assert_eq!(
            rules(&file, "use std::time::Duration; use std::sync::Arc;"),
            NONE
        );
        assert_eq!(
            rules(&file, "#[cfg(test)] mod tests { use std::fs; }"),
            NONE
        );
    }
    assert_eq!(
        rules("faultscope/src/model/mod.rs", "use crate::collect::Faults;"),
        ["pure"]
    );
    assert_eq!(
        rules(
            "faultscope/src/collect/driver.rs",
            "use std::time::Instant;"
        ),
        NONE
    );
    assert_eq!(
        rules("faultscope/src/compare/load.rs", "use std::fs;"),
        NONE
    );
}

#[test]
fn wire_types_stop_at_collect() {
    assert_eq!(
        rules(
            "faultscope/src/collect/faults.rs",
            "use faultscope_common::fault::Row;"
        ),
        NONE
    );
    assert_eq!(
        rules(
            "faultscope/src/model/mod.rs",
            "use faultscope_common::fault::Row;"
        ),
        ["home"]
    );
    assert_eq!(
        rules(
            "faultscope/src/tui/mod.rs",
            "use faultscope_common::latency;"
        ),
        ["home"]
    );
    assert_eq!(
        rules(
            "faultscope/src/model/mod.rs",
            "use faultscope_common::latency::bounds;"
        ),
        NONE
    );
    assert_eq!(
        rules(
            "faultscope/src/sample/mod.rs",
            "use faultscope_common::{latency, lock};"
        ),
        ["home"]
    );
    assert_eq!(
        rules(
            "faultscope/src/model/mod.rs",
            "#[cfg(test)] use faultscope_common::lock;"
        ),
        NONE
    );
}

#[test]
fn an_edge_opens_just_what_it_says() {
    let text = format!(
        "{EDGES_MARK}\n\n| from | to | why |\n|---|---|---|\n| `host::btf` | `plan` | x |\n| tui | clap | y |\n"
    );
    let (edges, wrong) = parse_edges(&File::new("ARCHITECTURE.md", &text));
    assert!(wrong.is_empty());
    assert_eq!(
        with_edges("faultscope/src/host/btf.rs", "use crate::plan::x;", &edges),
        NONE
    );
    assert_eq!(
        with_edges(
            "faultscope/src/host/kernel.rs",
            "use crate::plan::x;",
            &edges
        ),
        ["layer"]
    );
    assert_eq!(
        with_edges("faultscope/src/tui/mod.rs", "use clap::x;", &edges),
        NONE
    );
    assert_eq!(
        with_edges("faultscope/src/export/mod.rs", "use clap::x;", &edges),
        ["home"]
    );
}

#[test]
fn an_edge_without_reason_or_a_document_without_table_is_refused() {
    let text = format!("{EDGES_MARK}\n| from | to | why |\n|---|---|---|\n| host | plan | |\n");
    let (edges, wrong) = parse_edges(&File::new("ARCHITECTURE.md", &text));
    assert!(edges.is_empty());
    assert_eq!(wrong.len(), 1);
    assert_eq!(
        parse_edges(&File::new("ARCHITECTURE.md", "# nothing"))
            .1
            .len(),
        1
    );
}

#[test]
fn our_crates_depend_downwards() {
    let rules = |path: &str, text: &str| check_manifest(&File::new(path, text)).len();
    assert_eq!(
        rules(
            "faultscope-common/Cargo.toml",
            "[dependencies]\nbytemuck.workspace = true\n"
        ),
        0
    );
    assert_eq!(
        rules(
            "faultscope-common/Cargo.toml",
            "[dependencies]\nfaultscope = { path = \"x\" }\n"
        ),
        1
    );
    assert_eq!(
        rules(
            "faultscope-ebpf/Cargo.toml",
            "[dependencies]\nfaultscope-common = { path = \"x\" }\n"
        ),
        0
    );
    assert_eq!(
        rules(
            "faultscope-ebpf/Cargo.toml",
            "[dependencies.faultscope]\npath = \"x\"\n"
        ),
        1
    );
    assert_eq!(
        rules(
            "faultscope/Cargo.toml",
            "[dev-dependencies]\nfaultscope-ebpf = { path = \"x\" }\n"
        ),
        1
    );
    assert_eq!(
        rules(
            "faultscope/Cargo.toml",
            "[dependencies]\nx = { package = \"faultscope-ebpf\", path = \"x\" }\n"
        ),
        1
    );
    assert_eq!(
        rules(
            "xtask/Cargo.toml",
            "[dependencies]\nfaultscope.workspace = true\n"
        ),
        1
    );
}
