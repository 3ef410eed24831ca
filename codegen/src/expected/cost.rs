//! What an instruction that threads do themselves asks of the multiprocessor, for one warp.

use ir::{Access, BinaryOp, Effect, Instr, Mode, Name, Scope, UnaryOp, Value, intrin::Instruction};

use super::{
    accesses::{touched, wavefronts},
    rates::SECTOR,
};

/// For one warp, however many of its lanes do it.
#[derive(Clone, Default, Debug)]
pub(super) struct Cost {
    /// Issue slots.
    pub(super) issue: f64,
    /// Times that all banks of shared memory are kept.
    pub(super) wavefronts: f64,
    /// Bytes of the sectors that are loaded from global memory, and stored to it.
    pub(super) loaded: f64,
    pub(super) stored: f64,
    /// Whether each sector that is stored is written as a whole.
    pub(super) is_whole: bool,
    /// Whether shared memory is read, and whether by matrices.
    pub(super) reads_shared: bool,
    pub(super) reads_matrices: bool,
    /// Operations of tensor cores.
    pub(super) products: f64,
}

/// What a cost depends on.
pub(super) struct Place<'a> {
    /// The memory and the bytes of an element of a buffer.
    pub(super) memory: &'a dyn Fn(&Name) -> (Scope, i64),
    /// What a variable is in a lane of a warp.
    pub(super) value: &'a dyn Fn(&Name, i64) -> Option<i64>,
}

impl Place<'_> {
    /// The cost of an instruction.
    pub(super) fn cost(&self, it: &Instr) -> Cost {
        let mut out = Cost { is_whole: true, ..Cost::default() };
        let instruction = match it {
            Instr::Tensor(it) => Some(it.intrinsic.instruction),
            _ => None,
        };
        out.issue = match (it.assignment(), it) {
            (Some((place, value)), _) => f64::from(place.lanes) * slots(value),
            (None, Instr::WarpReduce(_)) => 10.0,
            (None, _) => 1.0,
        };
        if let Some(Instruction::Mma { a, b, .. }) = instruction {
            out.products = 2.0 * (a.tile[0] * a.tile[1] * b.tile[1]) as f64;
        }
        let matrices = match instruction {
            Some(Instruction::Ldmatrix { matrices, .. } | Instruction::Stmatrix { matrices, .. }) => {
                Some(matrices)
            }
            _ => None,
        };
        it.each_effect(&mut |effect| self.memory(&effect, matrices, &mut out));
        out
    }

    fn memory(&self, effect: &Effect<'_>, matrices: Option<u32>, out: &mut Cost) {
        let (scope, size) = (self.memory)(&effect.access.buffer);
        let width = i64::from(effect.access.lanes) * size;
        match scope {
            Scope::Local | Scope::Fragment | Scope::Tensor => {}
            Scope::Shared | Scope::Cluster => {
                out.issue += 1.0;
                out.reads_shared |= effect.mode == Mode::Read;
                match matrices {
                    // Eight rows of 16 bytes each, that conflict with nobody once they are permuted.
                    Some(count) => {
                        out.wavefronts += f64::from(count);
                        out.reads_matrices |= effect.mode == Mode::Read;
                    }
                    None => out.wavefronts += wavefronts(&self.starts(effect.access, size), width),
                }
            }
            Scope::Global => {
                out.issue += 2.0;
                let (sectors, is_whole) = sectors(&self.starts(effect.access, size), width);
                let bytes = (sectors * SECTOR) as f64;
                if effect.mode.writes() {
                    out.stored += bytes;
                    out.is_whole &= is_whole;
                } else {
                    out.loaded += bytes;
                }
            }
        }
    }

    /// Where each lane of a warp starts, in bytes.
    fn starts(&self, access: &Access, size: i64) -> Vec<i64> {
        let at = |lane: i64| access.indices.last()?.eval(&|name| (self.value)(name, lane));
        (0..32).filter_map(at).map(|it| it.saturating_mul(size)).collect()
    }
}

fn count(all: &[i64]) -> i64 {
    i64::try_from(all.len()).expect("a warp has 32 lanes")
}

/// How many sectors are touched, and whether all of each is.
fn sectors(starts: &[i64], width: i64) -> (i64, bool) {
    let all = count(&touched(starts, width, SECTOR));
    let bytes = count(&touched(starts, width, 1));
    (all, bytes == all * SECTOR)
}

/// Issue slots of computing a value once.
fn slots(value: &Value) -> f64 {
    match value {
        Value::Const(_) | Value::Load(_) => 0.0,
        Value::Index(..) => 1.0,
        // Two halves are converted at once.
        Value::Cast(to, a) => slots(a) + if to.bytes() < 4 { 0.5 } else { 1.0 },
        Value::Unary(UnaryOp::Neg, a) => slots(a),
        // A special function takes as long as four of the others, and is often some of them.
        Value::Unary(_, a) => 5.0 + slots(a),
        Value::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) => {
            let is_fused = [a, b].into_iter().any(|it| matches!(&**it, Value::Binary(BinaryOp::Mul, ..)));
            slots(a) + slots(b) + if is_fused { 0.0 } else { 1.0 }
        }
        Value::Binary(BinaryOp::Div, a, b) => 8.0 + slots(a) + slots(b),
        // Of each of four floats the bits, the magnitude and the sign.
        Value::Binary(BinaryOp::DotE2m1x2, a, b) => 24.0 + slots(a) + slots(b),
        Value::Binary(_, a, b) => 1.0 + slots(a) + slots(b),
        Value::Select(_, a, b) => 0.5 + slots(a).max(slots(b)),
        Value::Where(cond, a, b) => 1.0 + slots(cond) + slots(a) + slots(b),
    }
}
