//! Attention by warpgroups, each with 64 rows of queries, and a role for the copy engine.

use ir::{Feature, Target};

use super::{
    Draft, Request,
    attention::{Attention, call},
    counted,
    model::{self, ceil_div, ranked, units},
    product::vector,
    size::Size,
};

/// The bytes of the widest copy, and of what rows begin at a multiple of for the copy engine.
const VECTOR: i64 = 16;

/// The rows of a warpgroup.
const ROWS: i64 = 64;

/// The fewest queries that are worth the rows of a warpgroup.
const MIN_QUERIES: i64 = 33;

/// How many warpgroups a block has at most and how many keys an iteration takes, by the most columns that a head may have, and the same where a mask ends loops
/// earlier: the sums, the scores and the weights are in registers. Measured on an H100 (`bench/results/2026-11-27-h100-attention-wgmma.jsonl`).
const TILES: [(i64, Tile, Tile); 3] = [
    (64, Tile { warpgroups: 3, keys: 128 }, Tile { warpgroups: 3, keys: 128 }),
    (128, Tile { warpgroups: 2, keys: 160 }, Tile { warpgroups: 2, keys: 128 }),
    (256, Tile { warpgroups: 2, keys: 64 }, Tile { warpgroups: 2, keys: 64 }),
];

/// What a block of threads has of attention.
#[derive(Clone, Copy)]
struct Tile {
    warpgroups: i64,
    keys: i64,
}

/// What one, two and three warpgroups reach of what a multiprocessor can do: they take turns at softmax and products.
const RATES: [f64; 3] = [0.65, 0.93, 1.0];

/// The kernel, without the tiles that a mask hides if it `skips` them; none if the target, the rows or the sums are not for it.
pub(super) fn draft(found: &Attention<'_>, request: &Request<'_>, skips: bool) -> Option<Draft> {
    let Target::Cuda(arch) = request.target else { return None };
    let begins = |depth: i64| depth * found.dtype.bytes_i64() % VECTOR == 0;
    if !arch.has(Feature::Wgmma) || !found.depths.iter().all(|it| begins(*it)) {
        return None;
    }
    let most = found.depths[0].max(found.depths[1]);
    let (_, plain, masked) = *TILES.iter().find(|it| most <= it.0)?;
    let widest = if skips { masked } else { plain };
    let [heads, queries] = [found.heads()?, found.queries().filter(|it| *it >= MIN_QUERIES)?];
    let counts = (1..=widest.warpgroups).zip(RATES);
    let (warpgroups, _) = *ranked(counts, |it| waves(heads, queries, *it, units(request))).first()?;
    let tile = Tile { warpgroups, ..widest };
    let about = "One kernel goes through the keys once: each warpgroup has rows of the scores in registers, and starts the next products before its softmax, which they hide.";
    let mut out = Draft::new("attention", about.to_owned(), &["std/attention"], request);
    let warpgroups = out.knob("warpgroups", tile.warpgroups, &[1, 2, 3]);
    let keys = out.knob("key_tile", tile.keys, &[64, 96, 128, 160]);
    let slots = out.knob("slots", 2, &[2, 3]);
    tile_of(found, request, &mut out, tile, (&warpgroups, &keys))?;
    let names = found.names();
    let tile_loop = found.bind_grid(request, &mut out)?;
    let quoted = |it: &str| format!("{it:?}");
    let of_scores = names.of(&["scores", "q", "k", "row", "column", "depth"]);
    let at = [
        ("at", quoted(tile_loop), "\"qo\""),
        ("vector", vector(found.depths[0], found.dtype, VECTOR).to_string(), "8"),
    ];
    out.step(call("attention_scores_wgmma", &[("warpgroups", &warpgroups)], of_scores.chain(at)));
    let of_softmax = names.of(&["max", "exps", "sum", "weights", "acc", "result", "row", "column"]);
    out.step(call("attention_softmax", &[("height", &ROWS.into())], of_softmax));
    out.step(call("attention_values_wgmma", &[], names.of(&["v"])));
    if skips {
        out.because(
            "Tiles of keys that the mask hides as a whole are left out, and the longest rows of tiles come first.",
            "remove_no_op(loop: \"ko\")",
        );
        out.step(format!("reverse(loop: {tile_loop:?})"));
    }
    let of_roles = names.of(&["scores", "max", "exps", "sum", "weights", "acc", "k", "v"]);
    let tile = [("tile", quoted(tile_loop), "")];
    out.because(
        "A warp of its own lets the copy engine bring keys and values.",
        call(
            "attention_roles",
            &[("warpgroups", &warpgroups), ("slots", &slots)],
            tile.into_iter().chain(of_roles),
        ),
    );
    Some(out)
}

/// The step that cuts attention into tiles.
fn tile_of(
    found: &Attention<'_>,
    request: &Request<'_>,
    out: &mut Draft,
    tile: Tile,
    (warpgroups, keys): (&Size, &Size),
) -> Option<()> {
    let names = found.names();
    // The widest swizzle that costs no padding, else that of an instruction.
    let unit = [64, 32].into_iter().find(|it| found.depths.iter().all(|depth| depth % it == 0));
    let [height, unit] = [ROWS, unit.unwrap_or(16)].map(Size::from);
    out.because(
        format!(
            "{} have {} rows of queries, and an iteration takes {}: sums of {} columns leave registers for no more.",
            counted(tile.warpgroups, "warpgroup"),
            tile.warpgroups * ROWS,
            counted(tile.keys, "key"),
            found.depths[1],
        ),
        call(
            "attention_tile",
            &[("warps", warpgroups), ("rows", &1.into()), ("keys", keys), ("height", &height), ("unit", &unit)],
            names
                .of(&["scores", "max", "exps", "sum", "weights", "acc", "result"])
                .chain(found.loops(request)?),
        ),
    );
    Some(())
}

/// How long so many warpgroups a block, at that rate, take for all tiles, in rows of one multiprocessor.
fn waves(heads: i64, queries: i64, (warpgroups, rate): (i64, f64), units: i64) -> f64 {
    let rows = warpgroups * ROWS;
    let tile = model::Tile { rows, columns: 1, rate };
    model::whole_waves(heads * ceil_div(queries, rows), tile, units)
}
