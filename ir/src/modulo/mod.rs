//! Modulo scheduling: stages, an order, slots and mechanisms for a loop, worked out from what its components do.
//!
//! The *initiation interval* is the time from one iteration to the next. It is at least what the busiest resource of the multiprocessor
//! takes for an iteration, and at least what a circle of dependences takes, divided by the iterations that it goes round. Orders of the
//! components are searched by branch and bound: an order leads to the least stages that keep every dependence, a copy runs
//! `ahead` steps before who waits for it, and from both follow the slots that it takes. What cannot fit into shared memory however it
//! goes on is cut off. The rest is played on a clock along one block of threads, where latencies that nothing
//! hides show, and ranked by the time that all blocks of a multiprocessor take. The copies need run no further ahead than
//! `latency / interval`, rounded up.
//!
//! Two components that do the same for the same ones stand together. Nothing here decides whether a pipeline is legal:
//! each candidate is judged by the rule of [`pipeline`](crate::pipeline).

mod barriers;
mod candidate;
mod elsewhere;
mod placement;
mod problem;
mod search;
#[cfg(test)]
mod tests;
mod threads;
mod work;

pub use candidate::{Bound, Candidate, Reason, assess, candidates};
pub use work::Resource;
