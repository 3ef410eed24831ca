//! Tensor intrinsics: what a warp makes of the registers of its lanes.

use ir::{
    DType,
    intrin::{Instruction, Intrinsic, LaneMap},
};

use super::{
    Finding,
    access::PARTIAL,
    exec::{Machine, Mask},
    index::WARP,
    program::{Place, ValueCode},
    value::Lanes,
};

/// An intrinsic with its operands resolved.
#[derive(Debug)]
pub(crate) struct TensorCode {
    pub(crate) intrinsic: &'static Intrinsic,
    pub(crate) operands: Vec<Place>,
    /// The type of the operands' elements.
    pub(crate) dtypes: Vec<DType>,
}

impl<'p> Machine<'p, '_, '_> {
    /// A store of what an intrinsic computes. All lanes must be there.
    pub(crate) fn tensor(&mut self, site: u32, place: &'p Place, code: &'p TensorCode, mask: Mask) {
        if mask != Mask::MAX {
            self.partial(site, mask, code.intrinsic.name);
        }
        let operands: Vec<Vec<Lanes>> = code.operands.iter().map(|it| self.operand(site, it, code)).collect();
        let mut parts = match (code.intrinsic.instruction, operands.as_slice()) {
            (Instruction::Mma { c, a, b, .. }, [own, left, right]) => product([c, a, b], [own, left, right]),
            (Instruction::Ldmatrix { matrices, transposed }, [rows]) => {
                let bytes = code.dtypes.first().map_or(2, |it| it.bytes());
                dealt(rows, matrices as usize, 4 / bytes, transposed)
            }
            // The compiler lets no other combination through.
            _ => vec![[f64::NAN; WARP]; place.lanes as usize],
        };
        parts.resize(place.lanes as usize, [f64::NAN; WARP]);
        self.assign(site, place, &mut parts, mask);
    }

    /// What each lane holds, or for a matrix load addresses: part by part, all lanes of each.
    fn operand(&mut self, site: u32, place: &'p Place, code: &TensorCode) -> Vec<Lanes> {
        // Lanes beyond the rows of a matrix load give addresses that nobody looks at.
        let mask = match code.intrinsic.instruction {
            Instruction::Ldmatrix { matrices: 1, .. } => 0xff,
            Instruction::Ldmatrix { matrices: 2, .. } => 0xffff,
            Instruction::Ldmatrix { .. } | Instruction::Mma { .. } | Instruction::Lanes(_) => Mask::MAX,
        };
        let mut parts = vec![[0.0; WARP]; place.lanes as usize];
        for (part, out) in (0..place.lanes).zip(&mut parts) {
            self.load(site, place, part, mask, out);
        }
        parts
    }

    #[cold]
    fn partial(&mut self, site: u32, mask: Mask, intrinsic: &'static str) {
        let key = self.key(PARTIAL, site, site);
        if !self.run.sink.count(key) {
            let lane = usize::try_from((!mask).trailing_zeros()).unwrap_or(0) % WARP;
            let access = self.describe(self.mark(site, lane));
            self.run.sink.keep(key, Finding::PartialWarp { intrinsic, access });
        }
    }
}

/// `C + A·B`, each element a sum without rounding until the end.
fn product(maps: [&'static LaneMap; 3], parts: [&Vec<Lanes>; 3]) -> Vec<Lanes> {
    let [c, a, b] = [0, 1, 2].map(|n| gathered(maps[n], parts[n]));
    let (rows, columns, depth) = (c.len(), c[0].len(), b.len());
    let mut out = c;
    for i in 0..rows {
        for j in 0..columns {
            out[i][j] += (0..depth).map(|k| a[i][k] * b[k][j]).sum::<f64>();
        }
    }
    let mut dealt = vec![[0.0; WARP]; parts[0].len()];
    each(maps[0], |lane, place, [i, j]| dealt[place][lane] = out[i][j]);
    dealt
}

/// The tile whose elements lanes hold.
fn gathered(map: &'static LaneMap, parts: &[Lanes]) -> Vec<Vec<f64>> {
    let [rows, columns] = map.tile.map(|it| usize::try_from(it).unwrap_or(0));
    let mut out = vec![vec![f64::NAN; columns]; rows];
    each(map, |lane, place, [i, j]| out[i][j] = parts.get(place).map_or(f64::NAN, |it| it[lane]));
    out
}

fn each(map: &'static LaneMap, mut f: impl FnMut(usize, usize, [usize; 2])) {
    let table = map.table();
    let own = table.len() / WARP;
    for (n, at) in table.iter().enumerate() {
        f(n / own, n % own, *at);
    }
}

/// What the lanes get of the rows that they address.
fn dealt(rows: &[Lanes], matrices: usize, each: usize, transposed: bool) -> Vec<Lanes> {
    let mut out = vec![[f64::NAN; WARP]; matrices * each];
    for (place, parts) in out.iter_mut().enumerate() {
        let (matrix, v) = (place / each, place % each);
        for (lane, value) in parts.iter_mut().enumerate() {
            let (row, column) =
                if transposed { (lane % 4 * each + v, lane / 4) } else { (lane / 4, lane % 4 * each + v) };
            *value = rows.get(column).map_or(f64::NAN, |it| it[matrix * 8 + row]);
        }
    }
    out
}

impl ValueCode {
    /// Whether all lanes of a warp must come together for it.
    pub(crate) fn converges(&self) -> bool {
        matches!(self, ValueCode::Tensor(_))
    }
}
