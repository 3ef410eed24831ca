//! Why a step that makes blocks of tiles, or pads what they work on, is refused.

use std::fmt;

use ir::{
    DType, Index, Name,
    intrin::{Extents, LaneMap, Mismatch},
};

use crate::{Blame, error_table::error_table};

error_table! {
    /// Why a primitive on tiles is refused.
    pub enum TileError {
        1301 NotOneBlock { loop_name: Name }
            ("loop `{loop_name}` holds several statements side by side, and one block is needed")
            names [loop_name]
            help "name a loop around one block only, or move the others out of it";
        1302 MarkedInside { block: Name, loop_name: Name, kind: &'static str }
            ("loop `{loop_name}`, which would come into block `{block}`, is {kind}")
            names [loop_name, block]
            help "the loops of a tile are serial; bind, vectorize and annotate those around it";
        1303 GuardInside { block: Name, loop_name: Name, guard: String }
            ("block `{block}` is guarded by `{guard}`, which is about a loop that would come into it")
            names [loop_name, block]
            help "use factors that divide the loops, or `pad_einsum` the block first";
        1304 NotATile { block: Name, iter: Name, binding: Index, loop_name: Name }
            (
                "iterator `{iter}` of block `{block}` is `{binding}`, which does not run through a tile from 0 on while `{loop_name}` and the loops in it run"
            )
            names [loop_name, block]
            help "split each loop by the size of the tile, and reorder the inner loops to be the innermost ones";
        1305 NotWhole { block: Name, iter: Name, tile: i64, what: &'static str, of: Index }
            ("tiles of {tile} do not divide {what} `{of}` of iterator `{iter}` of block `{block}`")
            names [block]
            at [Blame::Field("loop")]
            help "use factors that divide the loops, or `pad_einsum` the block first";
        1306 TensorizeWhat
            ("tensorize needs either a loop or, for an instruction, a block")
            names []
            help "write `loop: \"ii\"` or `block: \"C\"`";
        1307 Mismatch { block: Name, intrinsic: &'static str, mismatch: Mismatch }
            ("block `{block}` is not what `{intrinsic}` does: {mismatch}")
            names [block]
            help mismatch.help();
        1308 LaneTile { loop_name: Name, map: &'static LaneMap, found: Vec<Index> }
            (
                "loop `{loop_name}` and the loop in it are to be the {} rows and {} columns of {}, and run {} times", map.tile[0], map.tile[1], map.name, Extents(found.clone())
            )
            names [loop_name]
            help "split the two loops by the tile and reorder them: rows outside, columns inside";

        // Padding.
        1309 NotAnEinsum { block: Name, why: &'static str }
            ("block `{block}` cannot be padded: {why}")
            names [block];
        1310 NotAPadding { block: Name, why: &'static str }
            ("block `{block}` is no copy with padding: {why}")
            names [block]
            help "`pad_einsum` makes copies with padding";
        1311 NotAnIterator { block: Name, buffer: Name, index: Index }
            ("block `{block}` uses `{buffer}` at `{index}`, and only iterators alone, each once, can be padded")
            names [block, buffer];
        1312 NotNeutral { block: Name, iter: Name, why: &'static str }
            ("block `{block}` reduces over `{iter}`, and zeros beyond its end would change the result: {why}")
            names [iter, block]
            help "pad its other iterators only, or write the reduction as a sum of products";
        1313 NotALoop { block: Name, iter: Name, binding: Index }
            (
                "iterator `{iter}` of block `{block}` is `{binding}`, and each has to be a loop of its own, through all of its values"
            )
            names [iter, block]
            help "do this step before loops of the block are split, fused or shared";
        1314 PaddingCount { block: Name, given: usize, iters: usize }
            ("{given} paddings are given for the {iters} iterators of block `{block}`")
            names [block]
            help "give one number for each iterator, or a map from some of them";
        1315 PaddingRange { block: Name, iter: Name, padding: i64 }
            ("the padding of iterator `{iter}` of block `{block}` is {padding}, which is not within 1..={}", i32::MAX)
            names [iter, block]
            at [Blame::Field("padding")]
            help "the extent becomes a multiple of it; 1 leaves it as it is";

        1316 NoMember { block: Name, family: Name, types: Types }
            ("no `{family}` intrinsic has the types of block `{block}`, {types}")
            names [block]
            help "convert what it multiplies, or choose other types for the workload: `tilewright explain` lists the intrinsics";

        // Iterators fused, and buffers in their order.
        1317 EmptyGroup { block: Name, loop_name: Name }
            ("no iterator of block `{block}` is named to become `{loop_name}`")
            names [loop_name, block]
            help "name one at least; iterators that are not named stay as they are";
        1318 MixedGroup { block: Name, loop_name: Name, first: Name, other: Name }
            ("`{loop_name}` would run through `{first}` and `{other}` of block `{block}`, one of which is reduced over and one is not")
            names [loop_name, first, other, block]
            help "give each kind a loop of its own";
        1319 NotOnePlace { block: Name, buffer: Name, why: &'static str }
            ("block `{block}` has no copy of `{buffer}` in the order of its iterators: {why}")
            names [buffer, block];
        1320 NotItsPadding { block: Name, buffer: Name }
            ("buffer `{buffer}` is not what padding of block `{block}` would copy, or is not there before it")
            names [buffer, block]
            help "pad both blocks to the same multiples, before either is split or moved";
    }
}

/// The types of what a block writes and of what it reads beside that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Types(pub Vec<DType>);

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [sum, factors @ ..] = self.0.as_slice() else { return f.write_str("none") };
        let words: Vec<_> = factors.iter().map(|it| it.as_str()).collect();
        write!(f, "{sum} += {}", words.join(" * "))
    }
}
