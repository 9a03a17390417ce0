//! faultscope.
