//! Loops that run backwards in every other iteration of a loop around them.

/// The annotation that makes an unrolled loop run backwards in odd iterations of the loop that is so many loops further
/// out.
///
/// A number and not a name, because passes that copy loops rename them.
pub const SERPENTINE: &str = "serpentine";
