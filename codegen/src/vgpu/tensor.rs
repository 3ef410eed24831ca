//! Tensor intrinsics: what a warp makes of the registers of its lanes.

use ir::{
    DType,
    intrin::{Instruction, Intrinsic, LaneMap, matrix_element},
};

use super::{
    Finding,
    exec::{Machine, Mask},
    index::WARP,
    program::Elements,
    tell::PARTIAL,
    value::Lanes,
};

/// An intrinsic with its operands resolved.
#[derive(Debug)]
pub(crate) struct TensorCode {
    pub(crate) intrinsic: &'static Intrinsic,
    pub(crate) operands: Vec<Elements>,
    /// The tile of each operand of a product; of a matrix load, the matrix.
    tiles: Vec<Tile>,
}

impl TensorCode {
    /// `dtype` is the type of the first operand's elements, one that the intrinsic is for.
    pub(crate) fn new(intrinsic: &'static Intrinsic, operands: Vec<Elements>, dtype: DType) -> TensorCode {
        let tiles = match intrinsic.instruction {
            Instruction::Mma { c, a, b, .. } => [c, a, b].map(Tile::of_map).into(),
            Instruction::Ldmatrix { transposed, .. } | Instruction::Stmatrix { transposed, .. } => {
                vec![Tile::of_matrix(dtype, transposed)]
            }
            Instruction::Wgmma { .. }
            | Instruction::Tcgen05(_)
            | Instruction::TensorCopy
            | Instruction::TensorLoad(_)
            | Instruction::Lanes(_) => vec![],
        };
        TensorCode { intrinsic, operands, tiles }
    }
}

impl<'p> Machine<'p, '_, '_> {
    /// A store of what an intrinsic computes. All lanes must be there.
    pub(crate) fn tensor(&mut self, site: u32, place: &'p Elements, code: &'p TensorCode, mask: Mask) {
        if mask != Mask::MAX {
            self.partial(site, mask, code.intrinsic.name);
        }
        let operands: Vec<Vec<Lanes>> = code.operands.iter().map(|it| self.operand(site, it, code)).collect();
        let mut parts = match (code.intrinsic.instruction, operands.as_slice(), code.tiles.as_slice()) {
            (Instruction::Mma { .. }, [own, left, right], [c, a, b]) => {
                product([c, a, b], [own, left, right])
            }
            (Instruction::Ldmatrix { matrices, .. }, [rows], [matrix]) => {
                dealt(rows, matrices as usize, matrix)
            }
            (Instruction::TensorLoad(_), [rows], _) => rows.clone(),
            (Instruction::Stmatrix { matrices, .. }, [registers], [matrix]) => {
                gathered_rows(registers, matrices as usize, matrix)
            }
            // The compiler lets no other combination through.
            _ => vec![[f64::NAN; WARP]; place.lanes as usize],
        };
        parts.resize(place.lanes as usize, [f64::NAN; WARP]);
        let stored = match code.intrinsic.instruction {
            // Lanes beyond the rows give addresses that nobody looks at.
            Instruction::Stmatrix { matrices, .. } => mask & addressing(matrices),
            _ => mask,
        };
        self.assign(site, place, &mut parts, stored);
    }

    /// What each lane holds, or for a matrix load addresses: part by part, all lanes of each.
    fn operand(&mut self, site: u32, place: &'p Elements, code: &TensorCode) -> Vec<Lanes> {
        if matches!(code.intrinsic.instruction, Instruction::TensorLoad(_)) {
            return self.tensor_rows(site, place);
        }
        // Lanes beyond the rows of a matrix load give addresses that nobody looks at.
        let mask = match code.intrinsic.instruction {
            Instruction::Ldmatrix { matrices, .. } => addressing(matrices),
            Instruction::Wgmma { .. }
            | Instruction::Tcgen05(_)
            | Instruction::TensorCopy
            | Instruction::TensorLoad(_)
            | Instruction::Stmatrix { .. }
            | Instruction::Mma { .. }
            | Instruction::Lanes(_) => Mask::MAX,
        };
        let mut parts = vec![[0.0; WARP]; place.lanes as usize];
        for (part, out) in (0..place.lanes).zip(&mut parts) {
            self.load(site, place, part, mask, out);
        }
        parts
    }

    #[cold]
    pub(crate) fn partial(&mut self, site: u32, mask: Mask, intrinsic: &'static str) {
        let key = self.key(PARTIAL, site, site);
        if !self.run.sink.count(key) {
            let lane = (!mask).trailing_zeros() as usize % WARP;
            let access = self.describe(self.mark(site, lane));
            self.run.sink.keep(key, Finding::PartialWarp { intrinsic, access });
        }
    }
}

/// `C + A·B`, each element a sum without rounding until the end.
fn product(tiles: [&Tile; 3], parts: [&Vec<Lanes>; 3]) -> Vec<Lanes> {
    let [mut out, a, b] = [0, 1, 2].map(|n| tiles[n].gathered(parts[n]));
    for (row, left) in out.iter_mut().zip(&a) {
        for (j, sum) in row.iter_mut().enumerate() {
            *sum += left.iter().zip(&b).map(|(left, right)| left * right[j]).sum::<f64>();
        }
    }
    // As many as the map has: the access may be of another width in a kernel that somebody wrote by hand.
    let mut dealt = vec![[0.0; WARP]; tiles[0].places()];
    tiles[0].each(|lane, place, [i, j]| dealt[place][lane] = out[i][j]);
    dealt
}

/// What the lanes get of the rows that they address.
fn dealt(rows: &[Lanes], matrices: usize, matrix: &Tile) -> Vec<Lanes> {
    let own = matrix.places();
    let mut out = vec![[f64::NAN; WARP]; matrices * own];
    for (n, parts) in out.chunks_mut(own).enumerate() {
        matrix.each(|lane, v, [row, column]| {
            parts[v][lane] = rows.get(column).map_or(f64::NAN, |it| it[n * 8 + row]);
        });
    }
    out
}

/// The lanes that address the rows of so many matrices.
const fn addressing(matrices: u32) -> Mask {
    if matrices >= 4 { Mask::MAX } else { (1 << (matrices * 8)) - 1 }
}

/// The rows that the lanes address, of what all of them have.
fn gathered_rows(registers: &[Lanes], matrices: usize, matrix: &Tile) -> Vec<Lanes> {
    let own = matrix.places();
    let mut out = vec![[f64::NAN; WARP]; matrix.size[1]];
    for (n, parts) in registers.chunks(own).take(matrices).enumerate() {
        matrix.each(|lane, v, [row, column]| {
            if let (Some(out), Some(value)) = (out.get_mut(column), parts.get(v)) {
                out[n * 8 + row] = value[lane];
            }
        });
    }
    out
}

/// A tile, and where in it the elements of each lane are.
#[derive(Debug)]
pub(crate) struct Tile {
    size: [usize; 2],
    /// Rows and columns: lane by lane, place by place.
    table: Vec<[usize; 2]>,
}

impl Tile {
    fn of_map(map: &LaneMap) -> Tile {
        Tile { size: map.tile.map(size), table: map.table().to_vec() }
    }

    /// A matrix of a matrix load, 8 rows of 16 bytes.
    fn of_matrix(dtype: DType, transposed: bool) -> Tile {
        let each = 4 / dtype.bytes().min(4);
        let number = |it: usize| i64::try_from(it).expect("at most 32");
        let places = (0..WARP).flat_map(|lane| (0..each).map(move |v| (number(lane), number(v))));
        let element = |(lane, v)| matrix_element(lane, v, number(each), transposed).map(size);
        Tile { size: [8, 4 * each], table: places.map(element).collect() }
    }

    /// How many elements a lane has.
    fn places(&self) -> usize {
        self.table.len() / WARP
    }

    fn each(&self, mut f: impl FnMut(usize, usize, [usize; 2])) {
        let own = self.places();
        for (n, at) in self.table.iter().enumerate() {
            f(n / own, n % own, *at);
        }
    }

    /// The rows of the tile whose elements lanes hold.
    fn gathered(&self, parts: &[Lanes]) -> Vec<Vec<f64>> {
        let [rows, columns] = self.size;
        let mut out = vec![vec![f64::NAN; columns]; rows];
        self.each(|lane, place, [i, j]| out[i][j] = parts.get(place).map_or(f64::NAN, |it| it[lane]));
        out
    }
}

fn size(it: i64) -> usize {
    usize::try_from(it).expect("a place in a tile")
}
