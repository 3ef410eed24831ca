//! The tool as its users run it, its library, its book, and the rules of this repository.

extern crate schedule as tilewright_schedule; // as `propose` calls it, a file of that crate's tests

mod auto;
mod auto_sizes;
mod book;
mod cli;
mod common;
mod compare;
mod contract;
mod cuda;
mod defaults;
mod end_to_end;
mod export;
mod fmt;
mod guard;
mod hostile;
mod imports;
mod in_rust;
mod learn;
mod libraries;
mod log;
mod lsp;
mod machines;
mod mutation;
mod own_programs;
mod phases;
mod pipeline;
mod procedures;
mod refusals;
mod report;
mod show;
mod sources;
mod spaces;
mod studio;
mod sweep;
mod tidy;
mod timeline;
mod tokens;
mod tune;
mod tutorial;
mod tvm;
mod watch;
mod worker;
