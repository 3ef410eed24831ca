//! Stable numbers of refusals: `TW1001`.
//!
//! A code outlives the words of its message: it names the page that `tilewright explain` shows, and is what scripts look for
//! in `--json`. Each error enum has one table, written with [`codes!`](crate::codes); refusals that are mended in the
//! same way may share a code. A code that was released is never given to something else.
//!
//! | codes | what refuses |
//! | --- | --- |
//! | `TW01xx` | the text of a script, its knobs and expressions |
//! | `TW02xx` | a workload and its parameters |
//! | `TW03xx` | the text form of a program |
//! | `TW04xx` | the verifier of programs |
//! | `TW05xx` | the interpreter |
//! | `TW10xx` to `TW15xx` | a step: names and loops, blocks, layouts, tiles, reductions across blocks, pipelines |
//! | `TW20xx` to `TW22xx` | lowering, printing, launching |
//! | `TW23xx`, `TW24xx` | the virtual GPU: what it cannot run, what it finds |
//! | `TW25xx` | the proofs about mbarriers, groups and fences of a kernel |
//! | `TW30xx`, `TW31xx` | devices and compilers, measuring and verifying |
//! | `TW40xx` to `TW43xx` | logs, tuning, replaying, exporting |
//! | `TW45xx` | programs and records of TVM's |
//! | `TW50xx` | the command line |

use std::fmt;

/// The number of a refusal, printed as `TW1001`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Code(u16);

impl Code {
    /// A code of four digits.
    pub const fn new(number: u16) -> Code {
        assert!(number < 10_000, "a code has four digits");
        Code(number)
    }

    /// Reads `TW1001`, also in small letters.
    pub fn parse(word: &str) -> Option<Code> {
        let digits = word.strip_prefix("TW").or_else(|| word.strip_prefix("tw"))?;
        let is_number = digits.len() == 4 && digits.bytes().all(|it| it.is_ascii_digit());
        digits.parse().ok().filter(|_| is_number).map(Code)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TW{:04}", self.0)
    }
}

/// An error with a stable number.
pub trait Coded {
    /// The number.
    fn code(&self) -> Code;
}

impl Coded for Code {
    fn code(&self) -> Code {
        *self
    }
}

impl<T: Coded + ?Sized> Coded for &T {
    fn code(&self) -> Code {
        (**self).code()
    }
}

impl<T: Coded> Coded for Box<T> {
    fn code(&self) -> Code {
        (**self).code()
    }
}

/// Gives the variants of an error enum their codes, and lists them as `CODES`. Variants after `of` hold an error that has a
/// code of its own.
///
/// ```
/// # use tilewright_ir as ir;
/// #[derive(Debug)]
/// enum Inner { Small, Large(u32) }
/// enum Outer { Missing { name: String }, Inner(Inner) }
/// ir::codes!(Inner { Small = 9001, Large = 9002 });
/// ir::codes!(Outer { Missing = 9003 } of { Inner });
///
/// use ir::Coded;
/// assert_eq!(Outer::Inner(Inner::Large(3)).code().to_string(), "TW9002");
/// assert_eq!(Outer::CODES.len(), 1);
/// ```
#[macro_export]
macro_rules! codes {
    ($error:ident { $($variant:ident = $number:literal),* $(,)? } $(of { $($inner:ident),* $(,)? })?) => {
        impl $crate::Coded for $error {
            fn code(&self) -> $crate::Code {
                match self {
                    $($error::$variant { .. } => const { $crate::Code::new($number) },)*
                    $($($error::$inner(it) => $crate::Coded::code(it),)*)?
                }
            }
        }

        impl $error {
            /// The codes of its own variants, one each, in their order.
            pub const CODES: &'static [$crate::Code] = &[$($crate::Code::new($number)),*];
        }
    };
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn codes_are_words_of_six_letters() {
        assert_eq!(Code::parse("TW0101"), Some(Code::new(101)));
        assert_eq!(Code::parse("tw1502").map(|it| it.to_string()).as_deref(), Some("TW1502"));
        for wrong in ["1502", "TW15", "TW15021", "TW+502", "TWabcd", ""] {
            assert_eq!(Code::parse(wrong), None, "{wrong}");
        }
    }
}
