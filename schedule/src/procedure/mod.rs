//! Procedures: named lists of steps with parameters. [`expand`] puts plain steps in place of their calls, before anything
//! else reads the script.
//!
//! ```text
//! schedule(
//!     use: ["std/copy"],                                          // procedures of libraries
//!     define: {                                                   // and own ones
//!         "by_lanes": procedure(
//!             about: "Gives the innermost iterations of a loop to the lanes of a warp.",
//!             params: ["loop", "vector"],
//!             defaults: {"vector": 4},
//!             steps: [
//!                 split(loop: "{loop}", into: {"{loop}_r": None, "{loop}_lane": 32, "{loop}_v": "{vector}"}),
//!                 bind(loop: "{loop}_lane", axis: "threadIdx.x"),
//!                 for_each(params: ["it"], in: ["r", "v"], steps: [unroll(loop: "{loop}_{it}")]),
//!             ],
//!         ),
//!     },
//!     workload: "elementwise",
//!     steps: [by_lanes(loop: "i")],
//! )
//! ```
//!
//! A parameter in braces stands in any text of the steps. A text that is nothing but `"{vector}"` becomes the argument itself,
//! which may be a number, a list or a map; within a longer text an argument is a name or a number, and an expression gets
//! parentheses. `for_each` repeats steps for the elements of a list, or for the keys and values of a map. So names of loops
//! and buffers are built from parameters; what depends on sizes or knobs is asked of `when` and `choose`, whose lists of
//! steps may hold calls, too.
//!
//! A file with procedures for several scripts is a library:
//!
//! ```text
//! library(
//!     about: "Copies by all threads of a block.",
//!     define: {"cooperative_fetch": procedure(…)},
//! )
//! ```
//!
//! An expansion is a text, too: of a script without calls it is the script itself. [`Expanded::frames`] leads from a
//! place in it to the line of the definition and to the calls around it.

mod already_read;
mod argument;
mod definition;
mod expand;
mod for_each;
mod manual;
mod origin;

pub use definition::{Definitions, FindLibrary, Procedure};
pub use expand::expand;
pub use origin::{Expanded, Frame, ProcedureError};

/// How deep calls of procedures may nest.
pub const MAX_CALL_DEPTH: usize = 16;

/// The most calls and repetitions that an expansion may have.
pub const MAX_CALLS: usize = 4096;

/// The most libraries that a script may use, those included that its libraries use.
pub const MAX_LIBRARIES: usize = 64;

/// The most bytes that all calls and their arguments may be written out to, before they become the expansion.
pub const MAX_WRITTEN: usize = 16 * crate::script::MAX_LENGTH;
