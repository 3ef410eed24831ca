//! Programs on single elements that read an input across the rows that they write: transposes and other permutations.

use std::fmt::Write as _;

use ir::{Block, DType, Func, Index, IterKind, Name, Role, Stmt, Target};
use schedule::{Session, Step};

use super::{Draft, Request, columns::variables, counted, free, model::ceil_div, size::Size};

/// Threads of a block, where a tile has as many squares.
const THREADS: i64 = 256;

/// The bytes of a tile: enough loads in flight from a few blocks on a multiprocessor.
const TILE: i64 = 16 << 10;

/// The bytes that shared memory gives to a warp at once, the bytes of its banks, of what
/// global memory moves at least, and of the widest vectors.
const WAVEFRONT: i64 = 128;
const BANK: i64 = 4;
const SECTOR: i64 = 32;
const VECTOR: i64 = 16;

/// The bytes of a row of a tile on a CPU: two cache lines, which most CPUs fetch together. A square of such rows stays in the first cache.
const LINES: i64 = 128;

/// What a program is that permutes dimensions.
struct Permutation {
    /// The blocks before the last, which become part of it.
    inlined: Vec<Name>,
    block: Name,
    /// The loops of the last block in order.
    loops: Vec<Name>,
    /// The loops along which the output and the inputs lie in memory.
    along: Axis,
    across: Axis,
    inputs: Vec<Input>,
    out: DType,
}

/// A loop and its extent.
#[derive(Clone)]
struct Axis {
    name: Name,
    extent: i64,
}

/// An input that is read across.
struct Input {
    buffer: Name,
    dtype: DType,
    rank: usize,
    /// Its dimension along the rows of the output.
    along: usize,
}

/// The sizes of a tile: elements, elements of the vectors on both sides, and threads.
#[derive(Clone, Copy)]
struct Tile {
    across: i64,
    along: i64,
    across_vector: i64,
    along_vector: i64,
    /// The rows of a square, which a thread turns: as many as go into a vector that it stores.
    square: i64,
    threads: i64,
}

/// On a GPU by way of shared memory, with the widest vectors first, and by single elements where those are refused.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    let Some(found) = Permutation::of(request) else { return vec![] };
    match request.target {
        Target::Cpu => vec![found.in_cache(request)],
        Target::Cuda(_) => [VECTOR, 1].iter().map(|bytes| found.draft(request, *bytes)).collect(),
    }
}

impl Permutation {
    fn of(request: &Request<'_>) -> Option<Permutation> {
        let blocks = request.func.body.blocks();
        let (_, before) = blocks.split_last()?;
        let role = |it: &Name| request.func.buffers.get(it).map(|it| it.role);
        let is_plain =
            |it: &&Block| it.init.is_none() && it.iters.iter().all(|it| it.kind == IterKind::Spatial);
        let is_temp = |it: &&Block| it.writes().iter().all(|it| role(&it.buffer) == Some(Role::Temp));
        if !blocks.iter().all(is_plain) || !before.iter().all(is_temp) {
            return None;
        }
        let inlined: Vec<_> = before.iter().map(|it| it.name.clone()).collect();
        // What inputs are read once all is one stage, the steps themselves tell.
        let mut session = Session::new(request.func.clone(), Some(request.target.clone()));
        for it in &inlined {
            let step = Step::from_ron(&inline(it)).expect("the steps are written here");
            session.apply(&step).ok()?;
        }
        Permutation::of_one(session.func(), inlined)
    }

    /// The permutation that a program of one block is.
    fn of_one(func: &Func, inlined: Vec<Name>) -> Option<Permutation> {
        let blocks = func.body.blocks();
        let [block] = blocks.as_slice() else { return None };
        let Stmt::Store(store) = &block.body else { return None };
        let loops = func.loops_of(&block.name)?;
        let axis = |var: &Name| {
            let iter = block.iters.iter().find(|it| it.var == *var)?;
            let found = loops.iter().find(|it| iter.binding == Index::var(&it.var))?;
            Some(Axis { name: found.var.clone(), extent: found.extent.as_int()? })
        };
        let place = variables(&store.place)?;
        let along = *place.last()?;
        let mut inputs: Vec<Input> = vec![];
        let mut across = None;
        for read in block.reads() {
            let Some(buffer) = func.buffers.get(&read.buffer).filter(|it| it.role == Role::Input) else {
                continue;
            };
            let Some(vars) = variables(read) else { continue };
            let at = vars.iter().position(|it| *it == along);
            let Some((last, at)) = vars.last().copied().zip(at) else { continue };
            if last != along
                && *across.get_or_insert(last) == last
                && !inputs.iter().any(|it| it.buffer == read.buffer)
            {
                let (dtype, rank) = (buffer.dtype, vars.len());
                inputs.push(Input { buffer: read.buffer.clone(), dtype, rank, along: at });
            }
        }
        let is_alone = |it: &Input| block.reads().iter().filter(|read| read.buffer == it.buffer).count() == 1;
        (place.len() == loops.len() && inputs.iter().all(is_alone)).then_some(Permutation {
            inlined,
            block: block.name.clone(),
            loops: loops.iter().map(|it| it.var.clone()).collect(),
            along: axis(along)?,
            across: axis(across?)?,
            inputs,
            out: func.dtype_of(&store.place.buffer)?,
        })
    }

    /// The tile with vectors of up to so many bytes.
    fn tile(&self, bytes: i64) -> Tile {
        let read = self.inputs.iter().map(|it| it.dtype.bytes_i64()).max().unwrap_or(BANK);
        let widest = read.max(self.out.bytes_i64());
        let across_vector = vector(self.across.extent, bytes / read);
        let along_vector = vector(self.along.extent, bytes / widest);
        // As many rows of vectors as fill a wavefront, and rows of a wavefront.
        let rows = WAVEFRONT / (along_vector * read).max(BANK) * across_vector;
        let whole = |it: &Axis, vector: i64| ceil_div(it.extent, vector) * vector;
        let [most_across, most_along] =
            [whole(&self.across, across_vector), whole(&self.along, along_vector)].map(|it| it.min(1 << 12));
        let mut across = rows.min(most_across);
        let mut along = (WAVEFRONT / read).max(along_vector).min(most_along);
        while across * along * read < TILE {
            // The shorter side grows, unless it is whole.
            if across < most_across && (across <= along || along == most_along) {
                across = (across * 2).min(most_across);
            } else if along < most_along {
                along = (along * 2).min(most_along);
            } else {
                break;
            }
        }
        let squares = (across / across_vector) * (along / along_vector);
        let threads = THREADS.min(ceil_div(squares, 32) * 32);
        // Short rows are read as they lie, one behind the other.
        let square = if across * read < SECTOR { 1 } else { along_vector };
        Tile { across, along, across_vector, along_vector, square, threads }
    }

    /// How many rows a tile may have as well without lying otherwise in shared memory: a power of two times as many.
    fn other_rows(&self, tile: &Tile) -> Vec<i64> {
        let layouts = |across: i64| {
            let other = Tile { across, ..*tile };
            self.inputs.iter().map(|it| it.banks(&other)).collect::<Vec<_>>()
        };
        let all = [tile.across / 2, tile.across * 2, tile.across * 4].into_iter();
        let fits = |it: &i64| it % tile.across_vector == 0 && *it <= self.across.extent;
        all.filter(fits).filter(|it| *it > 0 && layouts(*it) == layouts(tile.across)).collect()
    }

    /// The order of loops with those two innermost.
    fn order(&self) -> Vec<&str> {
        let inner = [&self.across.name, &self.along.name];
        self.loops.iter().filter(|it| !inner.contains(it)).chain(inner).map(Name::as_str).collect()
    }

    /// On a CPU: square tiles that stay in the first cache, which the cores share.
    fn in_cache(&self, request: &Request<'_>) -> Draft {
        let about =
            "Tiles that stay in the first cache, read and written along rows of both sides.".to_owned();
        let mut out = Draft::new("transpose", about, &[], request);
        for it in &self.inlined {
            out.step(inline(it));
        }
        let widest = self.inputs.iter().map(|it| it.dtype).chain([self.out]).map(DType::bytes_i64).max();
        let edge = LINES / widest.unwrap_or(BANK);
        let size = out.knob("tile", edge, &[edge / 2, edge * 2]);
        let (across, along) = (self.across.name.as_str(), self.along.name.as_str());
        out.reason(format!(
            "The output lies along {along}, and what is read along {across}: a tile has {LINES} bytes of each row of either side."
        ));
        for it in [across, along] {
            out.step(format!("split(loop: {it:?}, into: {{\"{it}_tile\": None, \"{it}_in\": {size}}})"));
        }
        let order = self.order();
        let outer = &order[..order.len() - 2];
        let [tile, inner] = ["tile", "in"].map(|part| [across, along].map(|it| format!("{it}_{part}")));
        let loops: Vec<_> = outer.iter().map(ToString::to_string).chain(tile).chain(inner).collect();
        out.step(format!("reorder(order: {loops:?})"));
        let shared = &loops[..=outer.len()];
        let name = free(request.func, "shared").to_string();
        if shared.len() > 1 {
            out.step(format!("fuse(loops: {shared:?}, into: {name:?})"));
        }
        out.because(
            "The cores share the tiles.".to_owned(),
            format!("parallel(loop: {:?})", if shared.len() > 1 { &name } else { &shared[0] }),
        );
        out.step(format!("vectorize(loop: \"{along}_in\")"));
        out
    }

    fn draft(&self, request: &Request<'_>, bytes: i64) -> Draft {
        let about = "Tiles by way of shared memory, read and written along rows of both sides.".to_owned();
        let mut out = Draft::new("transpose", about, &["std/transpose"], request);
        let tile = self.tile(bytes);
        for it in &self.inlined {
            out.step(inline(it));
        }
        let threads = out.knob("threads", tile.threads, &[64, 128, 256, 512]);
        let rows = out.knob("rows", tile.across, &self.other_rows(&tile));
        let block = self.block.as_str();
        let (across, along) = (self.across.name.as_str(), self.along.name.as_str());
        let order = self.order();
        if order.len() > 2 {
            out.step(format!("reorder(order: {order:?})"));
        }
        let outer: Vec<_> = order[..order.len() - 2].iter().rev().collect();
        let outer = if outer.is_empty() { String::new() } else { format!(", outer: {outer:?}") };
        out.because(
            format!(
                "The output lies along {along}, and what is read along {across}: {} of {} go through shared memory, and are written {} at \
                 once.",
                counted(tile.across, "row"),
                counted(tile.along, "element"),
                counted(tile.along_vector, "element"),
            ),
            format!(
                "transpose_tiles(block: {block:?}, across: {across:?}, along: {along:?}, across_tile: {rows}, along_tile: {}, vector: {}, \
                 threads: {threads}{outer})",
                tile.along, tile.along_vector,
            ),
        );
        for (number, it) in self.inputs.iter().enumerate() {
            if number == 0 {
                out.reason(format!(
                    "They are read {} at once, and lie in shared memory so that neither side meets itself in a bank.",
                    counted(tile.across_vector, "element"),
                ));
            }
            out.step(it.step(block, &tile, &threads));
        }
        out
    }
}

impl Input {
    /// The call that copies its tiles.
    fn step(&self, block: &str, tile: &Tile, threads: &Size) -> String {
        let (along, across) = (self.along, self.rank - 1);
        let others: Vec<_> = (0..across).filter(|it| *it != along).collect();
        let order: Vec<_> = others.iter().copied().chain([across, along]).collect();
        let mut words = format!(
            "transpose_input(block: {block:?}, buffer: {:?}, along_vector: {}, across_vector: {}, threads: {threads}",
            self.buffer.as_str(),
            tile.square,
            tile.across_vector,
        );
        if self.rank > 2 {
            let _ = write!(
                words,
                ", along_axis: {along}, across_axis: {across}, others: {others:?}, order: {order:?}"
            );
        }
        let _ = write!(words, ", {})", self.banks(tile));
        words
    }

    /// How a tile lies in shared memory, so that neither reading it nor writing it asks one bank for several rows.
    ///
    /// A thread stores a vector for each row of its square, so its neighbours along the row that was read are `across_vector` rows of the tile
    /// apart. Each of them is to begin in another bank.
    fn banks(&self, tile: &Tile) -> String {
        let element = self.dtype.bytes_i64();
        let word = (tile.square * element).max(BANK);
        let at_once = WAVEFRONT / word;
        let neighbours = (tile.across / tile.across_vector).max(1);
        let row = tile.along * element;
        let whole = (0..32).map(|it| WAVEFRONT << it).find(|it| *it >= row).unwrap_or(row);
        if neighbours >= at_once && whole * tile.across <= 2 * TILE {
            let base = word.trailing_zeros();
            let shift = (whole * tile.across_vector).trailing_zeros() - base;
            let padding = if whole == row { String::new() } else { format!("factor: {}, ", whole / element) };
            return format!("{padding}bits: {}, base: {base}, shift: {shift}", at_once.trailing_zeros());
        }
        if row < WAVEFRONT {
            return "factor: 1".to_owned();
        }
        let factor = WAVEFRONT / element;
        // What is read at once has to begin at a multiple of itself.
        let least = ceil_div(at_once, neighbours) * word / element;
        let offset = ceil_div(least, tile.along_vector) * tile.along_vector;
        format!("factor: {factor}, offset: {offset}")
    }
}

fn inline(block: &Name) -> String {
    format!("compute_inline(block: {:?})", block.as_str())
}

/// The widest vector of at most so many elements that divides a row.
fn vector(row: i64, most: i64) -> i64 {
    let mut width = most.max(1);
    while row % width != 0 {
        width /= 2;
    }
    width
}
