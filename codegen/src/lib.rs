//! Lowering, printers and devices.
