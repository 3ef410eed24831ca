//! Why the layout of a buffer stays as it is.

use ir::{DType, Name, Scope};

/// Why a step on the layout of a buffer is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum LayoutError {
    #[error("buffer `{name}` is in {scope} memory, and swizzles are for shared memory")]
    NotShared { name: Name, scope: Scope },
    #[error("buffer `{name}` is swizzled, and swizzles are for shared memory")]
    Swizzled { name: Name },
    #[error("the swizzle of buffer `{name}` needs either a mode, or all of bits, base and shift")]
    SwizzleWhat { name: Name },
    #[error("no swizzle of {dtype} has the bits, base and shift that are given for buffer `{name}`")]
    BadSwizzle { name: Name, dtype: DType },
}

impl LayoutError {
    /// The names that the message is about; the first is the culprit.
    pub fn names(&self) -> Vec<&Name> {
        match self {
            LayoutError::NotShared { name, .. }
            | LayoutError::Swizzled { name }
            | LayoutError::SwizzleWhat { name }
            | LayoutError::BadSwizzle { name, .. } => vec![name],
        }
    }

    /// What to try instead, if there is one thing to say.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            LayoutError::NotShared { .. } => "set_scope it to shared first",
            LayoutError::Swizzled { .. } => "swizzle it with the mode `none` first",
            LayoutError::SwizzleWhat { .. } => "write `mode: \"128B\"`, or nothing to have it chosen",
            LayoutError::BadSwizzle { .. } => {
                "1 <= bits <= shift, bits + base + shift <= 20, and a chunk of 1 << base bytes holds whole elements"
            }
        };
        Some(help.to_owned())
    }
}
