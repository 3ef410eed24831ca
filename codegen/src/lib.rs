//! Lowering, printers and devices.

pub mod device;
