//! Wire types.
#![no_std]
