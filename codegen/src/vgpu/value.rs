//! Values for the lanes of a warp at once.

use ir::{BinaryOp, DType, UnaryOp, number};

use super::{
    exec::{Machine, Mask, lanes},
    findings::Finding,
    index::WARP,
    program::ValueCode,
};

/// One number a lane.
pub(crate) type Lanes = [f64; WARP];

impl<'p> Machine<'p, '_, '_> {
    /// Evaluates a value for some lanes; `part` says which of adjacent elements is meant. Other lanes hold anything.
    pub(crate) fn value(&mut self, site: u32, code: &'p ValueCode, part: u32, mask: Mask, out: &mut Lanes) {
        match code {
            ValueCode::Const(it) => out.fill(*it),
            ValueCode::Load(place) => self.load(site, place, part, mask, out),
            ValueCode::Index(dtype, index) => {
                let mut lanes = [0; WARP];
                self.index(index, &mut lanes);
                let cast = |it: i64| number::cast(DType::I64, *dtype, it as f64);
                out.iter_mut().zip(lanes).for_each(|(out, it)| *out = cast(it));
            }
            ValueCode::Cast(from, to, a) => {
                self.value(site, a, part, mask, out);
                for it in out.iter_mut() {
                    *it = number::cast(*from, *to, *it);
                }
            }
            ValueCode::Unary(op, dtype, a) => {
                self.value(site, a, part, mask, out);
                unary(*op, *dtype, mask, out);
            }
            ValueCode::Binary(op, dtype, operands) => {
                let mut other = [0.0; WARP];
                self.value(site, &operands[0], part, mask, out);
                self.value(site, &operands[1], part, mask, &mut other);
                if let Some(lane) = binary(*op, *dtype, mask, out, &other) {
                    self.division_by_zero(site, lane);
                }
            }
            ValueCode::Where(operands) => {
                let [mut cond, mut other] = [[0.0; WARP]; 2];
                self.value(site, &operands[0], part, mask, &mut cond);
                self.value(site, &operands[1], part, mask, out);
                self.value(site, &operands[2], part, mask, &mut other);
                lanes(mask).filter(|lane| cond[*lane] == 0.0).for_each(|lane| out[lane] = other[lane]);
            }
            ValueCode::Select(cond, operands) => {
                let chosen = self.holds(cond, mask);
                if chosen != 0 {
                    self.value(site, &operands[0], part, chosen, out);
                }
                if mask & !chosen != 0 {
                    let mut other = [0.0; WARP];
                    self.value(site, &operands[1], part, mask & !chosen, &mut other);
                    lanes(!chosen).for_each(|lane| out[lane] = other[lane]);
                }
            }
        }
    }

    #[cold]
    fn division_by_zero(&mut self, site: u32, lane: usize) {
        let mark = self.mark(site, lane);
        let key = self.key(super::tell::DIVISION, site, site);
        if !self.run.sink.count(key) {
            let access = self.describe(mark);
            self.run.sink.keep(key, Finding::DivisionByZero { access });
        }
    }
}

fn unary(op: UnaryOp, dtype: DType, mask: Mask, out: &mut Lanes) {
    if op == UnaryOp::Neg && dtype.is_float() {
        for it in out {
            *it = -*it;
        }
    } else {
        lanes(mask).for_each(|lane| out[lane] = number::unary(op, dtype, out[lane]));
    }
}

/// Combines two operands into the first; a lane that divides an integer by zero, if there is one.
pub(crate) fn binary(
    op: BinaryOp,
    dtype: DType,
    mask: Mask,
    out: &mut Lanes,
    other: &Lanes,
) -> Option<usize> {
    #[expect(clippy::cast_possible_truncation, reason = "rounding is the meaning here")]
    let narrow = |it: f64| f64::from(it as f32);
    match (dtype, op) {
        (DType::F32, BinaryOp::Add) => each(out, other, |a, b| narrow(a + b)),
        (DType::F32, BinaryOp::Mul) => each(out, other, |a, b| narrow(a * b)),
        _ => {
            let mut zero = None;
            for lane in lanes(mask) {
                match number::binary(op, dtype, out[lane], other[lane]) {
                    Some(it) => out[lane] = it,
                    None => zero = Some(lane),
                }
            }
            return zero;
        }
    }
    None
}

#[inline]
fn each(out: &mut Lanes, other: &Lanes, f: impl Fn(f64, f64) -> f64) {
    out.iter_mut().zip(other).for_each(|(a, b)| *a = f(*a, *b));
}
