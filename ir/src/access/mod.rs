//! What a program touches, whether two accesses conflict, and whether one covers what another reads.
//!
//! An access is a relation between points of loops and elements of a buffer ([`AccessRelation`]). [`accesses`] collects those
//! of a program. Who asks whether two of them meet in an element (races, dependences between iterations, blocks that overtake
//! each other) says in a [`Conflict`] which variables both have in common; [`Disjointness`] is the fast half of that question.
//! Who asks whether all that is read was written (region cover, allocation scopes, private buffers) asks [`covers`], or, where
//! several writes share in it, [`never_missed`].
//!
//! What is asked of boxes, not of elements, is in [`region`](crate::region), which stands above this module.

mod conflict;
mod cover;
mod disjointness;
mod func_access;
mod pair;
mod relation;
#[cfg(test)]
mod tests;

pub use conflict::{Conflict, Iteration};
pub use cover::{covers, never_missed};
pub use disjointness::Disjointness;
pub use func_access::{Axes, FuncAccess, accesses, accesses_of};
pub use pair::{bounds_of_both, has_same, never_meet};
pub use relation::AccessRelation;
