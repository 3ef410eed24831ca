//! The text form: [`print()`] and [`parse()`], and `Display` for the parts of a program.
//!
//! The form itself is described at the top of this crate. `parse(print(f)) == f` for every verified function
//! whose nesting stays within [`MAX_DEPTH`]. The lowered form is printed in the same taste; [`parse_module()`] reads all
//! of it, where its instructions come from ([`Origin`](crate::Origin)) included.

mod bulk;
mod expr;
mod instr;
mod kernel;
mod lex;
mod literal;
mod parse;
mod parse_attrs;
mod parse_expr;
mod parse_kernel;
mod print;
mod tcgen05;
mod wgmma;

pub use kernel::{LineSource, ModuleListing, print_kernel, print_module};
pub use lex::{ParseError, ParseErrorKind};
pub use parse::parse;
pub use parse_kernel::parse_module;
pub use print::{Listing, Part, print};

/// How deep statements, and separately the operators of one expression, may nest in a parsed text.
///
/// Trees are walked and dropped by recursion; the limit keeps a hostile text from using up the stack.
pub const MAX_DEPTH: u32 = 256;
