//! Attention by warps, each with rows of 16 queries.

use super::{
    Draft, Request,
    attention::{Attention, call},
    counted,
    product::vector,
};

/// The bytes of the widest copy, and the rows of an instruction.
const VECTOR: i64 = 16;
const ROWS: i64 = 16;

/// How many warps a block has, how many rows of instructions each has, how many keys an iteration takes, and whether the queries stay in registers:
/// by the most columns that a head may have. Sums in registers and tiles in shared memory leave no more. Measured on an H100
/// (`bench/results/2026-11-27-h100-attention.jsonl`).
const TILES: [(i64, Tile); 3] = [
    (64, Tile { warps: 4, rows: 1, keys: 64, keep: 1 }),
    (128, Tile { warps: 4, rows: 2, keys: 64, keep: 0 }),
    (256, Tile { warps: 4, rows: 1, keys: 32, keep: 0 }),
];

/// What a block of threads has of attention.
#[derive(Clone, Copy)]
struct Tile {
    warps: i64,
    rows: i64,
    keys: i64,
    keep: i64,
}

/// The kernel, without the tiles that a mask hides if it `skips` them; none if its sums are too wide.
pub(super) fn draft(found: &Attention<'_>, request: &Request<'_>, skips: bool) -> Option<Draft> {
    let most = found.depths[0].max(found.depths[1]);
    let (_, tile) = *TILES.iter().find(|it| most <= it.0)?;
    let about = "One kernel goes through the keys once: each warp has rows of the scores in registers, and the sums of values follow the maximum as it grows.";
    let mut out = Draft::new("attention", about.to_owned(), &["std/attention"], request);
    let warps = out.knob("warps", tile.warps, &[2, 4, 8]);
    let rows = out.knob("query_rows", tile.rows, &[1, 2]);
    let keys = out.knob("key_tile", tile.keys, &[32, 64, 128]);
    let keep = out.knob("keep", tile.keep, &[0, 1]);
    let names = found.names();
    out.because(
        format!(
            "{} by {} of instructions are {} rows of queries for a block, and an iteration takes {}: sums of {} columns leave registers for no more.",
            counted(tile.warps, "warp"),
            counted(tile.rows, "row"),
            tile.warps * tile.rows * ROWS,
            counted(tile.keys, "key"),
            found.depths[1],
        ),
        call(
            "attention_tile",
            &[("warps", &warps), ("rows", &rows), ("keys", &keys)],
            names
                .of(&["scores", "max", "exps", "sum", "weights", "acc", "result"])
                .chain(found.loops(request)?),
        ),
    );
    let wide = found.depths.map(|it| vector(it, found.dtype, VECTOR));
    let vectors = wide.map(|it| ("vector", it.to_string(), "8"));
    let of_scores = names.of(&["scores", "q", "k", "row", "column", "depth"]);
    out.because(
        format!(
            "Rows of queries and keys have {}, {} at once.",
            counted(found.depths[0], "element"),
            wide[0]
        ),
        call(
            "attention_scores",
            &[("warps", &warps), ("keep", &keep)],
            of_scores.chain([vectors[0].clone()]),
        ),
    );
    let of_softmax = names.of(&["max", "exps", "sum", "weights", "acc", "result", "row", "column"]);
    out.step(call("attention_softmax", &[], of_softmax));
    let of_values = names.of(&["weights", "v", "acc", "row", "column"]);
    out.step(call("attention_values", &[("warps", &warps)], of_values.chain([vectors[1].clone()])));
    found.bind_grid(request, &mut out)?;
    if skips {
        out.because(
            "Tiles of keys that the mask hides as a whole are left out.",
            "remove_no_op(loop: \"ko\")",
        );
    }
    let style = if skips { "\"peel_prologue\"" } else { "\"peel\"" };
    let of_pipeline = names.of(&["scores", "max", "exps", "sum", "weights", "acc", "k", "v"]);
    out.because(
        "The next keys and values come while these are used.",
        call("attention_pipeline", &[], of_pipeline.chain([("style", style.to_owned(), "\"peel\"")])),
    );
    Some(out)
}
