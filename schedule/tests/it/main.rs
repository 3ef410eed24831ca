//! Schedules through their public items: scripts, workloads, random steps.

mod bindings;
mod builders;
mod common;
mod expressions;
mod format;
mod hostile;
mod manual;
mod procedures;
mod propose;
mod random;
mod scripts;
mod workload;
