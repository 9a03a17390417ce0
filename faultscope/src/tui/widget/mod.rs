//! Pieces of a screen; each draws into a rectangle and changes nothing else.

pub(crate) mod detail;
pub(crate) mod heatgrid;
pub(crate) mod pen;
pub(crate) mod sparkline;
pub(crate) mod table;
