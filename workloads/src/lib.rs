//! The workloads and ladders that ship with tilewright.
