//! Strategies, their simulation, and what is refused before it is tried.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

mod common;
mod filter;
mod strategies;
