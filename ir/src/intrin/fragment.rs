//! How the elements of fragments lie in the registers of a warp, derived from the intrinsics that use them.

use indexmap::IndexMap;

use super::{Instruction, Intrinsic, LaneMap, Mismatch, WARP, matched};
use crate::{Func, Index, Name, Scope};

/// How a fragment is spread over the lanes of a warp.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// The map of each tile.
    pub map: &'static LaneMap,
    /// Which dimensions of the buffer are the rows and the columns of the map; all others count tiles.
    pub dims: [usize; 2],
    /// In which of the two a lane's elements of neighbouring tiles are neighbours in its registers.
    pub inner: usize,
}

/// Why a fragment has no place in registers.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum FragmentError {
    #[error("block `{block}` no longer computes what `{intrinsic}` does: {mismatch}")]
    Changed { block: Name, intrinsic: &'static str, mismatch: Mismatch },
    #[error(
        "no tensor intrinsic computes with `{buffer}`, so nothing says which lane has which of its elements"
    )]
    Unknown { buffer: Name },
    #[error(
        "`{buffer}` is {first} in block `{first_block}` and {second} in block `{second_block}`, and those spread its elements in different ways"
    )]
    Conflict {
        buffer: Name,
        first: &'static str,
        first_block: Name,
        second: &'static str,
        second_block: Name,
    },
    #[error(
        "`{buffer}` has {extent} elements in dimension {dim}, which is no constant, and is to be a multiple of the {tile} of a tile of {map}"
    )]
    Ragged { buffer: Name, dim: usize, extent: Index, tile: i64, map: &'static str },
}

crate::codes!(FragmentError {
    Changed = 601,
    Unknown = 602,
    Conflict = 603,
    Ragged = 604,
});

impl FragmentError {
    /// The names in the program that the message is about; the first is the culprit.
    pub fn names(&self) -> Vec<&Name> {
        match self {
            FragmentError::Changed { block, .. } => vec![block],
            FragmentError::Unknown { buffer } | FragmentError::Ragged { buffer, .. } => vec![buffer],
            FragmentError::Conflict { buffer, first_block, second_block, .. } => {
                vec![buffer, first_block, second_block]
            }
        }
    }

    /// The buffer, where the message is about one first: a block may have the same name.
    pub fn buffer(&self) -> Option<&Name> {
        match self {
            FragmentError::Changed { .. } => None,
            FragmentError::Unknown { buffer }
            | FragmentError::Ragged { buffer, .. }
            | FragmentError::Conflict { buffer, .. } => Some(buffer),
        }
    }

    /// What to try instead, if there is one thing to say.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            FragmentError::Changed { .. } => Some("tensorize after the other steps on the block"),
            FragmentError::Unknown { .. } => Some(
                "tensorize the block that computes with it by an `mma_` or `wgmma_` intrinsic, or that loads it by `tcgen05_ld`",
            ),
            FragmentError::Conflict { first_block, second_block, .. } if first_block == second_block => Some(
                "give the workload a second tensor, a copy of the first, and each of the two its fragment",
            ),
            FragmentError::Conflict { .. } => Some(
                "give each of the two a fragment of its own: cache_read for one of them, `readers: [\"…\"]`, then for the other",
            ),
            FragmentError::Ragged { .. } => Some(
                "compute it at the loop over its tiles by compute_at or reverse_compute_at: it shrinks to one",
            ),
        }
    }
}

/// How each fragment of a program is spread over lanes.
pub fn fragments(func: &Func) -> Result<IndexMap<Name, Fragment>, FragmentError> {
    let mut out: IndexMap<Name, (Fragment, Name)> = IndexMap::new();
    for block in func.body.blocks() {
        let Some(intrinsic) = block.attrs.tensorize else { continue };
        let maps = match intrinsic.instruction {
            Instruction::Mma { c, a, b, .. } => [Some(c), Some(a), Some(b)],
            Instruction::Wgmma { sum, left, .. } => [Some(sum), left, None],
            Instruction::TensorLoad(map) => [Some(map), None, None],
            Instruction::Ldmatrix { .. }
            | Instruction::Stmatrix { .. }
            | Instruction::Tcgen05(_)
            | Instruction::TensorCopy
            | Instruction::Lanes(_) => continue,
        };
        let found = matched(intrinsic, func, block).map_err(|mismatch| FragmentError::Changed {
            block: block.name.clone(),
            intrinsic: intrinsic.name,
            mismatch,
        })?;
        for (operand, map) in found.operands.iter().zip(maps) {
            // Operands in shared or tensor memory are nobody's registers.
            let Some(map) = map else { continue };
            let dims = [operand.dims[0], operand.dims[1]];
            // The columns of B are what neighbouring instructions differ in; of A and C it matters to nobody.
            let fragment = Fragment { map, dims, inner: dims[1] };
            let known = out.entry(operand.buffer.clone()).or_insert((fragment.clone(), block.name.clone()));
            if (known.0.map, known.0.dims) != (map, dims) {
                return Err(FragmentError::Conflict {
                    buffer: operand.buffer.clone(),
                    first: known.0.map.name,
                    first_block: known.1.clone(),
                    second: map.name,
                    second_block: block.name.clone(),
                });
            }
        }
    }
    while let Some((name, fragment)) = assigned(func, &out) {
        out.insert(name, fragment);
    }
    for (name, buffer) in func.buffers.iter().filter(|(_, it)| it.scope == Scope::Fragment) {
        let Some((fragment, _)) = out.get(name) else {
            return Err(FragmentError::Unknown { buffer: name.clone() });
        };
        for (dim, tile) in fragment.dims.into_iter().zip(fragment.map.tile) {
            let extent = buffer.shape[dim].clone();
            // Of a last tile that is not full, lanes have registers for all of it.
            if extent.as_int().is_none() {
                let (buffer, map) = (name.clone(), fragment.map.name);
                return Err(FragmentError::Ragged { buffer, dim, extent, tile, map });
            }
        }
    }
    let mut out: IndexMap<_, _> = out.into_iter().map(|(name, (it, _))| (name, it)).collect();
    for block in func.body.blocks() {
        prefer_inner(func, block, &mut out);
    }
    Ok(out)
}

/// A fragment that no instruction computes with, and that is assigned from one of which it is known how it is spread: it is spread
/// alike. That each lane then has what it assigns is proved where its elements become registers.
fn assigned(func: &Func, known: &IndexMap<Name, (Fragment, Name)>) -> Option<(Name, (Fragment, Name))> {
    let is_open = |name: &Name| {
        let is_fragment = func.buffers.get(name).is_some_and(|it| it.scope == Scope::Fragment);
        is_fragment && !known.contains_key(name)
    };
    let mut found = None;
    for block in func.body.blocks().into_iter().filter(|it| it.attrs.tensorize.is_none()) {
        block.body.each_store(&mut |store| {
            if !is_open(&store.place.buffer) {
                return;
            }
            store.value.each_load(&mut |load| {
                let fragment = known.get(&load.buffer);
                let (from, to) = (load.indices.len(), store.place.indices.len());
                if let Some(fragment) = fragment.and_then(|it| it.0.behind_slots(from, to)) {
                    found.get_or_insert((store.place.buffer.clone(), (fragment, block.name.clone())));
                }
            });
        });
    }
    found
}

/// Lets a matrix load that fills several tiles fill neighbouring registers.
fn prefer_inner(func: &Func, block: &crate::Block, all: &mut IndexMap<Name, Fragment>) {
    let Some(intrinsic) = block.attrs.tensorize else { return };
    let Instruction::Ldmatrix { .. } = intrinsic.instruction else { return };
    let Ok(found) = matched(intrinsic, func, block) else { return };
    let to = &found.operands[0];
    let Some(fragment) = all.get_mut(&to.buffer) else { return };
    for (dim, size) in to.dims.iter().zip(&to.tile) {
        let tile = fragment.dims.iter().position(|it| it == dim).map(|at| fragment.map.tile[at]);
        if tile.is_some_and(|tile| *size > tile) {
            fragment.inner = *dim;
        }
    }
}

impl Fragment {
    /// The same of a buffer of another rank, where one of the two has slots of a pipeline as its first dimensions.
    fn behind_slots(&self, from: usize, to: usize) -> Option<Fragment> {
        let moved = |dim: usize| (dim + to).checked_sub(from);
        let dims = [moved(self.dims[0])?, moved(self.dims[1])?];
        Some(Fragment { map: self.map, dims, inner: moved(self.inner)? })
    }

    /// The sizes of the register array that a lane has for a fragment of a shape: the tiles in each dimension, those
    /// of [`Fragment::inner`] last, then the elements of a tile.
    pub fn shape(&self, shape: &[Index]) -> Vec<Index> {
        let tile = |dim: usize| self.dims.iter().position(|it| *it == dim).map_or(1, |at| self.map.tile[at]);
        let count = |dim: usize| shape[dim].ceil_div(&Index::int(tile(dim)));
        let counts: Vec<Index> = (0..shape.len()).map(count).collect();
        self.ordered(counts, Index::int(self.map.elements()))
    }

    /// The lane that has an element, and the subscripts of the register that it has it in.
    pub fn position(&self, indices: &[Index]) -> (Index, Vec<Index>) {
        let tile = |at: usize| Index::int(self.map.tile[at]);
        let within = [0, 1].map(|at| indices[self.dims[at]].floor_mod(&tile(at)));
        let (lane, place) = self.map.position(&within[0], &within[1]);
        let mut counts = indices.to_vec();
        for at in [0, 1] {
            counts[self.dims[at]] = indices[self.dims[at]].floor_div(&tile(at));
        }
        (lane, self.ordered(counts, place))
    }

    fn ordered(&self, mut counts: Vec<Index>, last: Index) -> Vec<Index> {
        let inner = counts.remove(self.inner);
        counts.extend([inner, last]);
        counts
    }
}

/// What the lanes of a matrix load address: the first element of a row each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rows {
    /// For the rows and the columns of the map, where the row of memory starts that a lane addresses: over the variable
    /// `lane`.
    pub start: [Index; 2],
}

/// Why a matrix load cannot fill a fragment.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum LdmatrixError {
    #[error("the tile of {rows} x {columns} is not whole tiles of {} ({} x {})", map.name, map.tile[0], map.tile[1])]
    Tile { rows: i64, columns: i64, map: &'static LaneMap },
    #[error(
        "lane {lane} would get other elements than {} has there{}", map.name,
        if *transposed { ": without `_trans` it may fit" } else { ": with `_trans` it may fit" }
    )]
    Order { lane: i64, map: &'static LaneMap, transposed: bool },
    #[error(
        "its tile runs over dimensions {} and {} of the fragment, and {} over {} and {}",
        found[0], found[1], map.name, needed[0], needed[1]
    )]
    Dims { found: [usize; 2], needed: [usize; 2], map: &'static LaneMap },
}

impl LdmatrixError {
    /// What to try instead.
    pub const fn help(&self) -> &'static str {
        match self {
            LdmatrixError::Tile { .. } | LdmatrixError::Order { .. } => {
                "`explain` draws which lane gets what; the order of dimensions in shared memory decides on `_trans`"
            }
            LdmatrixError::Dims { .. } => {
                "tensorize the loops over the dimensions that the `mma_` intrinsic takes its tiles in"
            }
        }
    }
}

/// The rows that lanes must address for a matrix load to fill whole tiles of a map.
///
/// Matrix `g` of the instruction goes to the `g`th 4 bytes of each lane, which [`matrix_element`] deals out. `size` is
/// the tile as rows and columns of the map, `contiguous` which of the two is contiguous in shared memory, `inner` in
/// which of the two tiles are neighbours in registers, and an element has `bytes`.
pub fn rows(
    intrinsic: &Intrinsic,
    map: &'static LaneMap,
    size: [i64; 2],
    contiguous: usize,
    inner: usize,
    bytes: i64,
) -> Result<Rows, LdmatrixError> {
    let (Instruction::Ldmatrix { matrices, transposed } | Instruction::Stmatrix { matrices, transposed }) =
        intrinsic.instruction
    else {
        return Err(LdmatrixError::Tile { rows: size[0], columns: size[1], map });
    };
    let tiles = [0, 1].map(|at| size[at] / map.tile[at]);
    let whole = [0, 1].iter().all(|at| size[*at] % map.tile[*at] == 0);
    if !whole || tiles[1 - inner] != 1 {
        return Err(LdmatrixError::Tile { rows: size[0], columns: size[1], map });
    }
    let (other, each) = (1 - contiguous, 4 / bytes);
    let table = map.table();
    // The element of the tile that a lane has at a place of the registers that the load fills.
    let element = |lane: i64, place: i64| {
        let number = usize::try_from(lane * map.elements() + place % map.elements());
        let found = number.ok().and_then(|it| table.get(it)).expect("a table has all lanes and places");
        let mut at = found.map(|it| i64::try_from(it).expect("a tile is small"));
        at[inner] += place / map.elements() * map.tile[inner];
        at
    };
    // How much further down or right each warp of a warpgroup has what the first one has.
    let second = element(WARP.min(map.lanes - 1), 0);
    let step = if map.lanes > WARP { [0, 1].map(|at| second[at] - element(0, 0)[at]) } else { [0, 0] };
    let mut starts = Vec::new();
    for matrix in 0..i64::from(matrices) {
        let start = element(0, matrix * each);
        for lane in 0..map.lanes {
            for v in 0..each {
                let [row, column] = matrix_element(lane % WARP, v, each, transposed);
                let mut wanted = [0, 1].map(|at| start[at] + lane / WARP * step[at]);
                wanted[other] += row;
                wanted[contiguous] += column;
                if element(lane, matrix * each + v) != wanted {
                    return Err(LdmatrixError::Order { lane, map, transposed });
                }
            }
        }
        starts.push(start);
    }
    Ok(addressed(&starts, other, map.lanes, step))
}

/// The row and the column in its matrix of the `v`th element that a lane gets of a matrix load, where 4 bytes hold
/// `each` elements.
///
/// Lane `4*r + c` gets the `c`th 4 bytes of row `r`; with `.trans`, which is for two elements in 4 bytes, it gets
/// elements `2*c` and `2*c + 1` of column `r` (PTX ISA, `ldmatrix`).
pub const fn matrix_element(lane: i64, v: i64, each: i64, transposed: bool) -> [i64; 2] {
    let (outer, inner) = (lane / 4, lane % 4 * each + v);
    if transposed { [inner, outer] } else { [outer, inner] }
}

/// The row that each lane addresses, given where the matrices start: lane `8*g + r` has row `r` of matrix `g`.
fn addressed(starts: &[[i64; 2]], other: usize, lanes: i64, warps: [i64; 2]) -> Rows {
    let all = Index::var(&Name::new("lane"));
    let warp = Index::int(WARP);
    let lane = if lanes > WARP { all.floor_mod(&warp) } else { all.clone() };
    let step = |matrix: usize, at: usize| starts.get(matrix).map_or(0, |it| it[at] - starts[0][at]);
    let start = [0, 1].map(|at| {
        let second = lane.floor_div(&Index::int(8)).floor_mod(&Index::int(2)) * step(1, at);
        let fourth = lane.floor_div(&Index::int(16)) * step(2, at);
        let row = if at == other { lane.floor_mod(&Index::int(8)) } else { Index::int(0) };
        let own = second + fourth + row;
        if warps[at] == 0 { own } else { own + all.floor_div(&warp) * warps[at] }
    });
    Rows { start }
}
