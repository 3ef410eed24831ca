//! Why the layout of a buffer stays as it is.

use ir::{DType, Index, Name, Scope};

use crate::{Blame, error_table::error_table};

error_table! {
    /// Why a step on the layout of a buffer is refused.
    pub enum LayoutError {
        1201 NotShared { name: Name, scope: Scope }
            ("buffer `{name}` is in {scope} memory, and swizzles are for shared memory")
            buffer [name]
            help "set_scope it to shared first";
        1202 Swizzled { name: Name }
            ("buffer `{name}` is swizzled, and swizzles are for shared memory")
            buffer [name]
            help "swizzle it with the mode `none` first";
        1203 SwizzleWhat { name: Name }
            ("the swizzle of buffer `{name}` needs either a mode, or all of bits, base and shift")
            buffer [name]
            at [Blame::Field("bits")]
            help "write `mode: \"128B\"`, or nothing to have it chosen";
        1204 BadSwizzle { name: Name, dtype: DType }
            ("no swizzle of {dtype} has the bits, base and shift that are given for buffer `{name}`")
            buffer [name]
            at [Blame::Field("bits")]
            help "1 <= bits <= shift, bits + base + shift <= 20, and a chunk of 1 << base bytes holds whole elements";
        1205 TransformWhat { name: Name }
            ("transform_layout of buffer `{name}` needs either an order or an index map")
            buffer [name]
            help "write `index_map: \"(i, k) -> (k floordiv 8, i, k mod 8)\"`, or `order: [1, 0]`";
        1206 MapSyntax { name: Name, message: String }
            ("the index map of buffer `{name}`: {message}")
            buffer [name]
            at [Blame::Field("index_map")]
            help "write `index_map: \"(i, k) -> (k floordiv 8, i, k mod 8)\"`, or `order: [1, 0]`";
        1207 MapRank { name: Name, rank: usize, given: usize }
            (
                "buffer `{name}` has {rank} dimensions, and its index map takes {given} subscript{}", if *given == 1 { "" } else { "s" }
            )
            buffer [name]
            at [Blame::Field("index_map")];
        1208 MapRange { name: Name, index: Index }
            ("the values of `{index}` in the index map of buffer `{name}` are not known to be places of a dimension")
            buffer [name]
            at [Blame::Field("index_map")];
        1209 MapSymbolic { name: Name, var: Name, index: Index }
            (
                "how long the dimension `{var}` of buffer `{name}` is, is known when the program runs, and `{index}` does not pass it on as it is"
            )
            buffer [name]
            at [Blame::Field("index_map")]
            help "transform the other dimensions only";
        1210 MapForgets { name: Name, var: Name }
            ("the index map of buffer `{name}` forgets `{var}`")
            buffer [name]
            at [Blame::Field("index_map")];
        1211 MapNotOnto { name: Name, elements: Option<i64>, places: Option<i64> }
            (
                "the index map of buffer `{name}` takes {} elements to {} places", number_of(*elements), number_of(*places)
            )
            buffer [name]
            at [Blame::Field("index_map")]
            help "use factors that divide the dimensions, or pad them first";
        1212 MapNotOneToOne { name: Name, first: Vec<i64>, second: Vec<i64> }
            ("the index map of buffer `{name}` takes {first:?} and {second:?} to one place")
            buffer [name]
            at [Blame::Field("index_map")];
        1213 MapUnproved { name: Name, limit: i64 }
            (
                "the index map of buffer `{name}` is not seen to tell all elements apart, and there are more than {limit} to try"
            )
            buffer [name]
            at [Blame::Field("index_map")]
            help "use digits of one subscript, `x floordiv c` and `x mod c`; for an exclusive or there is `swizzle`";
    }
}

/// A number of elements or places, if it is one of 64 bits.
fn number_of(it: Option<i64>) -> String {
    it.map_or_else(|| "more than 2^63".to_owned(), |it| it.to_string())
}
