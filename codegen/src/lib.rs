//! Lowering, printers and devices.

mod cfamily;
pub mod device;
pub mod emit;
pub mod lower;
