//! Strategies, their simulation, and what is refused before it is tried.

#![expect(clippy::unwrap_used, reason = "a test may stop")]
#![expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the numbers are small")]

mod common;
mod evolution;
mod filter;
mod recorded;
mod roofline;
mod rule;
mod scripts;
mod simulation;
mod strategies;
mod synthetic;
