//! Preconditions that several primitives share.

pub(crate) mod affine;
pub(crate) mod chain;
mod deeper;
pub(crate) mod independent;
pub(crate) mod once;
pub(crate) mod overwrites;
pub(crate) mod pipeline;
pub(crate) mod repeat;
pub(crate) mod serpentine;
