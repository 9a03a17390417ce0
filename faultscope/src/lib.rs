//! faultscope: page faults, mm locks and the LRU of a live kernel.
//!
//! The library behind the `faultscope` binary. ARCHITECTURE.md maps the modules
//! and the direction of their dependencies.

pub mod bpf;
pub mod cli;
pub mod collect;
pub mod commands;
pub mod compare;
pub mod error;
pub mod export;
pub mod host;
pub mod load;
pub mod model;
pub mod name;
pub mod plan;
pub mod render;
pub mod run;
pub mod sample;
pub mod store;
pub mod symbol;
pub mod tui;
pub mod units;
pub mod workload;
