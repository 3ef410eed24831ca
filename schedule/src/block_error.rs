//! Why a step that moves, copies or merges blocks is refused.

use ir::Name;

use crate::{Blame, error_table::error_table};

error_table! {
    /// Why a primitive on blocks is refused.
    pub enum BlockError {
        1101 DoesNotRead { block: Name, buffer: Name, reads: Vec<Name> }
            ("block `{block}` does not read buffer `{buffer}`")
            names [buffer, block]
            help format!("it reads {}", listed(reads));
        1102 WritesNothing { block: Name }
            ("block `{block}` writes no buffer")
            names [block];
        1103 NotOnlyWriter { block: Name, buffer: Name, other: Name }
            ("block `{block}` writes `{buffer}`, which `{other}` also writes")
            names [block, other, buffer]
            help "move the block before `decompose_reduction` makes two of it";
        1104 AlreadyUnder { block: Name, loop_name: Name }
            ("loop `{loop_name}` is already around block `{block}`")
            names [loop_name, block];
        1105 WritesOutput { block: Name, buffer: Name }
            ("block `{block}` writes `{buffer}`, an output, and only temporaries can be computed again or elsewhere")
            names [block, buffer]
            help format!("`cache_write` makes a temporary of `{block}`'s own, and that is moved");
        1106 NoReaders { block: Name }
            ("nothing reads what block `{block}` writes")
            names [block]
            help "`reverse_compute_at` moves a block under one whose results it reads";
        1107 NoProducers { block: Name }
            ("nothing that block `{block}` reads is computed by another block")
            names [block]
            help "`compute_at` moves a block under what reads it";
        1108 ReaderOutside { block: Name, other: Name, buffer: Name, loop_name: Name }
            ("`{other}` reads `{buffer}` of block `{block}` outside loop `{loop_name}`")
            names [loop_name, other, block, buffer]
            help "name a loop around all readers, or `cache_read` for one of them";
        1109 ProducerOutside { block: Name, other: Name, buffer: Name, loop_name: Name }
            ("`{other}` writes `{buffer}` for block `{block}` outside loop `{loop_name}`")
            names [loop_name, other, block, buffer]
            help format!("move `{other}` under the loop first");
        1110 OutOfOrder { block: Name, other: Name, buffer: Name }
            ("block `{block}` would run before `{other}` although it depends on it through `{buffer}`")
            names [block, other, buffer];
        1111 Uncovered { reader: Name, writer: Name, buffer: Name, is_moved: bool }
            (
                "there, block `{reader}` would read parts of `{buffer}` that `{writer}` has not yet written in the same iteration"
            )
            names [reader, writer, buffer]
            help uncovered_help(writer, *is_moved);
        1112 PartialResult { block: Name, producer: Name, loop_name: Name }
            ("loop `{loop_name}` is a reduction of `{producer}`: inside it `{block}` would read partial results")
            names [loop_name, block, producer]
            help format!("name a loop outside the reduction of `{producer}`");
        1113 RunsTwice { block: Name, loop_name: Name }
            ("block `{block}` reduces, and under loop `{loop_name}` some of its iterations might run twice")
            names [loop_name, block];
        1114 MarkedLoop { block: Name, loop_name: Name }
            ("loop `{loop_name}` of block `{block}` is bound or annotated, and moving the block would drop that")
            names [loop_name, block]
            help "move the block first, then bind, vectorize or annotate";
        1115 InlineReduction { block: Name }
            ("block `{block}` is a reduction, and only elementwise blocks can be inlined")
            names [block]
            help "move it instead: `compute_at` under its readers, `reverse_compute_at` under its producers";
        1116 InlineGuarded { block: Name }
            ("block `{block}` is guarded, and a guarded block cannot be inlined")
            names [block]
            help "inline it before its loops are split";
        1117 NotOneStore { block: Name }
            ("block `{block}` is more than one assignment, and only one can be put in the place of a read")
            names [block];
        1118 NotElementwise { block: Name, buffer: Name }
            (
                "which iteration of block `{block}` an element of `{buffer}` belongs to does not follow from its subscripts"
            )
            names [block, buffer];
        1119 ReadsItself { block: Name, buffer: Name }
            ("block `{block}` reads the buffer `{buffer}` that it writes")
            names [block, buffer]
            help "`cache_write` makes a copy of what a block has written";
        1120 OverwrittenLater { block: Name, buffer: Name, other: Name }
            ("`{other}` overwrites `{buffer}` after block `{block}` has read it")
            names [block, other, buffer];
        1121 SeveralProducers { block: Name, first: Name, second: Name }
            ("block `{block}` has several producers (`{first}`, `{second}`), and one is needed")
            names [block, first, second]
            help "`reverse_compute_at` moves it under a producer, `compute_inline` puts a producer into it";
        1122 OtherReader { block: Name, buffer: Name, other: Name }
            ("`{other}` also reads `{buffer}`, and then it cannot be merged away")
            names [block, other, buffer]
            help "`reverse_compute_at` moves it under a producer, `compute_inline` puts a producer into it";
        1123 OtherDomain { block: Name, producer: Name, buffer: Name }
            ("block `{block}` runs for elements of `{buffer}` that block `{producer}` does not compute")
            names [block, producer, buffer];
        1124 NoInit { block: Name }
            ("block `{block}` has no init to take out: it does not reduce, or is decomposed already")
            names [block];
        1125 NotAround { block: Name, loop_name: Name }
            ("loop `{loop_name}` is not around block `{block}`")
            names [loop_name, block]
            help "name a loop around the block";
        1126 ReductionOutside { block: Name, outer: Name, loop_name: Name }
            ("loop `{outer}`, a reduction of block `{block}`, is outside loop `{loop_name}`")
            names [loop_name, outer, block]
            help format!("name `{outer}` or a loop outside it");
        1127 MixedLoop { block: Name, loop_name: Name }
            ("loop `{loop_name}` drives spatial and reduction iterators of block `{block}` at once")
            names [loop_name, block]
            help "do this step before the loops are fused or shared";
        1128 NotReductionLoop { block: Name, loop_name: Name }
            ("loop `{loop_name}` is not a reduction of block `{block}`")
            names [loop_name, block];
        1129 NotReducer { block: Name }
            ("block `{block}` is not of the form `x = x op y` with a commutative op and its init")
            names [block]
            at [Blame::Field("loop")];
        1130 NotAlone { block: Name, loop_name: Name }
            ("other statements stand beside block `{block}` in loop `{loop_name}`")
            names [loop_name, block]
            help "do this step before the loops are fused or shared";
        1131 FactorAxis { block: Name, axis: i64, rank: i64 }
            ("the factor axis {axis} is outside -{rank}..={last}", last = *rank - 1)
            names [block]
            at [Blame::Field("factor_axis")];
        1132 PartOfDomain { block: Name }
            ("block `{block}` may run for some of the values of its iterators only")
            names [block]
            help "let the loops around it run through all values of its iterators";
        1133 InitNotFirst { block: Name, loop_name: Name }
            (
                "block `{block}` does not start each of its sums once, in the first iteration of what is in loop `{loop_name}`"
            )
            names [loop_name, block]
            help "name a loop inside, so that fewer iterations share one init";
        1134 NoTermsInLoop { block: Name, loop_name: Name }
            ("no block under loop `{loop_name}` reads what block `{block}` reduces")
            names [loop_name, block]
            help "name a loop of a block that reads the same terms, or move the producers of them later";
        1135 NotRolling { block: Name, other: Name, loop_name: Name, why: &'static str }
            ("`{other}` cannot follow block `{block}` while that reduces in loop `{loop_name}`: {why}")
            names [other, loop_name, block]
            help format!("what `{other}` adds up has to be a product with exp(t - m), t being a term of `{block}` and m its result");
        1136 NoNoOp { loop_name: Name, why: &'static str }
            ("no iterations of loop `{loop_name}` are known to change nothing: {why}")
            names [loop_name];
        1137 NotScan { block: Name, loop_name: Name }
            ("block `{block}` is no scan over loop `{loop_name}`")
            names [loop_name, block]
            help "a scan is spelled `Y[i, j] += select(k <= j, X[i, k], 0)`, or with `<`, `>=` or `>`, where `j` and `k` have the same extent and loops of their own";
        1138 ScanTerm { block: Name, loop_name: Name, along: Name }
            ("the terms of block `{block}` over loop `{loop_name}` are others for each value of `{along}`, so that one result does not follow from another")
            names [along, block, loop_name]
            at [Blame::Field("loop")];
    }
}

/// What to try where a block would read what `writer` has not written: moving that, unless the step did just that.
fn uncovered_help(writer: &Name, is_moved: bool) -> String {
    if is_moved {
        return "which part is needed is not known there: name a loop further out, or give symbolic sizes values".into();
    }
    format!("`compute_at` of `{writer}` moves as much as is read")
}

/// Names in one line.
fn listed(names: &[Name]) -> String {
    names.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ")
}
