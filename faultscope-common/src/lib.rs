//! Wire types and numbers shared by the BPF programs and user space.
//!
//! Everything here is `repr(C)`, `Copy`, made of fixed-width integers with
//! explicit padding, and depends on nothing of ours. Maps named "mmapable" are
//! plain arrays that user space reads in place; each row has one writer at a
//! time, so a plain add is exact (the exceptions say so).
#![no_std]

pub mod abi;
pub mod blocked;
pub mod budget;
pub mod config;
pub mod cpu;
pub mod latency;
pub mod lock;
pub mod loss;
pub mod lru;
pub mod madvise;
pub mod mm_fault;
pub mod mmap;
pub mod refault;
pub mod slowpath;
pub mod thread;
