//! Why the layout of a buffer stays as it is.

use ir::{DType, Index, Name, Scope};

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

    #[error("transform_layout of buffer `{name}` needs either an order or an index map")]
    TransformWhat { name: Name },
    #[error("the index map of buffer `{name}`: {message}")]
    MapSyntax { name: Name, message: String },
    #[error("buffer `{name}` has {rank} dimensions, and its index map takes {given} subscript{}", if *given == 1 { "" } else { "s" })]
    MapRank { name: Name, rank: usize, given: usize },
    #[error(
        "the values of `{index}` in the index map of buffer `{name}` are not known to be places of a dimension"
    )]
    MapRange { name: Name, index: Index },
    #[error(
        "how long the dimension `{var}` of buffer `{name}` is, is known when the program runs, and `{index}` does not \
         pass it on as it is"
    )]
    MapSymbolic { name: Name, var: Name, index: Index },
    #[error("the index map of buffer `{name}` forgets `{var}`")]
    MapForgets { name: Name, var: Name },
    #[error("the index map of buffer `{name}` takes {} elements to {} places", number_of(*elements), number_of(*places))]
    MapNotOnto { name: Name, elements: Option<i64>, places: Option<i64> },
    #[error("the index map of buffer `{name}` takes {first:?} and {second:?} to one place")]
    MapNotOneToOne { name: Name, first: Vec<i64>, second: Vec<i64> },
    #[error(
        "the index map of buffer `{name}` is not seen to tell all elements apart, and there are more than {limit} to try"
    )]
    MapUnproved { name: Name, limit: i64 },
}

ir::codes!(LayoutError {
    NotShared = 1201,
    Swizzled = 1202,
    SwizzleWhat = 1203,
    BadSwizzle = 1204,
    TransformWhat = 1205,
    MapSyntax = 1206,
    MapRank = 1207,
    MapRange = 1208,
    MapSymbolic = 1209,
    MapForgets = 1210,
    MapNotOnto = 1211,
    MapNotOneToOne = 1212,
    MapUnproved = 1213,
});

impl LayoutError {
    /// The names that the message is about; the first is the culprit.
    pub fn names(&self) -> Vec<&Name> {
        match self {
            LayoutError::NotShared { name, .. }
            | LayoutError::Swizzled { name }
            | LayoutError::SwizzleWhat { name }
            | LayoutError::BadSwizzle { name, .. }
            | LayoutError::TransformWhat { name }
            | LayoutError::MapSyntax { name, .. }
            | LayoutError::MapRank { name, .. }
            | LayoutError::MapRange { name, .. }
            | LayoutError::MapSymbolic { name, .. }
            | LayoutError::MapForgets { name, .. }
            | LayoutError::MapNotOnto { name, .. }
            | LayoutError::MapNotOneToOne { name, .. }
            | LayoutError::MapUnproved { name, .. } => vec![name],
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
            LayoutError::TransformWhat { .. } | LayoutError::MapSyntax { .. } => {
                "write `index_map: \"(i, k) -> (k floordiv 8, i, k mod 8)\"`, or `order: [1, 0]`"
            }
            LayoutError::MapNotOnto { .. } => "use factors that divide the dimensions, or pad them first",
            LayoutError::MapUnproved { .. } => {
                "use digits of one subscript, `x floordiv c` and `x mod c`; for an exclusive or there is `swizzle`"
            }
            LayoutError::MapSymbolic { .. } => "transform the other dimensions only",
            LayoutError::MapRank { .. }
            | LayoutError::MapRange { .. }
            | LayoutError::MapForgets { .. }
            | LayoutError::MapNotOneToOne { .. } => return None,
        };
        Some(help.to_owned())
    }
}

/// A number of elements or places, if it is one of 64 bits.
fn number_of(it: Option<i64>) -> String {
    it.map_or_else(|| "more than 2^63".to_owned(), |it| it.to_string())
}
