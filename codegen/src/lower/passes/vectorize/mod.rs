//! Turns vectorised loops into accesses of several lanes.

pub(crate) mod lanes;
mod width;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ir::{DType, For, ForKind, Index, Instr, Module, Name, Op, Target, Value, arith::Bounds};

use crate::lower::{
    analysis::{bounds::kernel_bounds, names},
    passes::vectorize::lanes::Lanes,
};

pub use width::{VECTOR_BYTES, set_vector_bytes, vector_bytes};

/// Longer loops of vectors stay loops.
const MAX_WRITTEN_OUT: i64 = 16;

/// Replaces each vectorised loop by statements on lanes, or by an unrolled loop under a comment that says why not.
///
/// ```text
/// for j in 0..16 @vectorized { C[i*16 + j] = A[j] * B[i] }
/// ->
/// for j in 0..2 @unrolled { C[i*16 + j*8 ..8] = A[j*8 ..8] * B[i] }
/// ```
///
/// The width is the greatest power of two that divides the extent, fits the target's vectors, makes every
/// subscript advance by one or stay, and on a GPU starts every access at a multiple of itself. A guard that
/// depends on the lane at every width splits the statement: lanes where all pass, one by one where not.
pub(crate) fn vectorize(mut module: Module, target: &Target) -> Module {
    let args: BTreeMap<_, _> = module.args.iter().map(|(name, arg)| (name.clone(), arg.dtype)).collect();
    for at in 0..module.kernels.len() {
        let bounds = kernel_bounds(&module, &module.kernels[at]);
        let body = std::mem::take(&mut module.kernels[at].body);
        let mut pass =
            Vectorizer { target, types: args.clone(), bounds, taken: names::taken(&module.dims, &body) };
        pass.add_types(&body);
        module.kernels[at].body = pass.ops(body);
    }
    module
}

struct Vectorizer<'a> {
    target: &'a Target,
    types: BTreeMap<Name, DType>,
    bounds: Bounds,
    taken: BTreeSet<Name>,
}

impl Vectorizer<'_> {
    fn add_types(&mut self, body: &[Op]) {
        for op in body {
            op.walk(&mut |op| {
                if let Op::Alloc(it) = op {
                    self.types.insert(it.name.clone(), it.dtype);
                }
            });
        }
    }

    fn ops(&mut self, ops: Vec<Op>) -> Vec<Op> {
        ops.into_iter().flat_map(|op| self.op(op)).collect()
    }

    fn op(&mut self, op: Op) -> Vec<Op> {
        match op {
            Op::For(it) => {
                let it = Arc::unwrap_or_clone(it);
                if it.kind == ForKind::Vectorized { self.vectorized(it) } else { vec![self.inside(it)] }
            }
            Op::If(cond, body) => {
                let outside = self.bounds.clone();
                for less in &cond {
                    self.bounds.assume(less);
                }
                let body = self.ops(body);
                self.bounds = outside;
                vec![Op::If(cond, body)]
            }
            op => vec![op.map_children(&mut |body| self.ops(body))],
        }
    }

    fn inside(&mut self, it: For) -> Op {
        let outside = self.bounds.clone();
        self.bounds.insert(&it.var, &it.extent);
        let body = self.ops(it.body);
        self.bounds = outside;
        Op::For(Arc::new(For { body, ..it }))
    }

    fn vectorized(&mut self, it: For) -> Vec<Op> {
        let widths = self.widths(&it);
        let mut reason = "no power of two divides its extent".to_owned();
        for splits_guards in [false, true] {
            for width in &widths {
                match self.at_width(&it, *width, splits_guards) {
                    Ok(ops) => return ops,
                    Err(why) => reason = why,
                }
            }
        }
        let is_short = it.extent.as_int().is_some_and(|it| it <= MAX_WRITTEN_OUT);
        let kind = if is_short { ForKind::Unrolled } else { ForKind::Serial };
        let origin = it.body.iter().find_map(Op::first_origin).cloned().unwrap_or_default();
        let comment = Op::comment(format!("`{}` does not become lanes: {reason}.", it.var), origin);
        vec![comment, self.inside(For { kind, ..it })]
    }

    /// The loop as statements of `width` lanes, or why not.
    fn at_width(&mut self, it: &For, width: u32, splits_guards: bool) -> Result<Vec<Op>, String> {
        let count = self.bounds.simplify(&it.extent.floor_div(&Index::from(i64::from(width))));
        let mut bounds = self.bounds.clone();
        let first = if count.as_int() == Some(1) {
            Index::int(0)
        } else {
            bounds.insert(&it.var, &count);
            Index::var(&it.var) * i64::from(width)
        };
        let lane = Name::fresh(&format!("{}_lane", it.var), |it| self.taken.contains(it));
        let aligned = matches!(self.target, Target::Cuda(_));
        let mut lanes = Lanes { width, lane: lane.clone(), bounds, aligned, splits_guards };
        lanes.bounds.insert(&lane, &Index::from(i64::from(width)));
        let place = &first + &Index::var(&lane);
        let replace = |name: &Name| (*name == it.var).then(|| place.clone());
        let body = it.body.iter().map(|op| lanes.op(&op.subst(&replace))).collect::<Result<Vec<_>, _>>()?;
        let body: Vec<_> = body.into_iter().flatten().collect();
        if splits_guards {
            self.taken.insert(lane);
        }
        Ok(match count.as_int() {
            Some(1) => body,
            Some(2..=MAX_WRITTEN_OUT) => vec![for_loop(it, count, ForKind::Unrolled, body)],
            _ => vec![for_loop(it, count, ForKind::Serial, body)],
        })
    }

    /// The widths to try, widest first.
    fn widths(&self, it: &For) -> Vec<u32> {
        let mut bytes = 1;
        for op in &it.body {
            op.each_instr(&mut |it| bytes = bytes.max(self.lane_bytes(it)));
        }
        let most = u32::try_from(vector_bytes(self.target) / bytes).expect("a vector is a few bytes");
        let widths = (1..=6).rev().map(|power| 1u32 << power).filter(|it| *it <= most);
        widths.filter(|width| self.bounds.divides(i64::from(*width), &it.extent)).collect()
    }

    /// The size of the widest element that an instruction moves, or on a CPU computes with.
    fn lane_bytes(&self, it: &Instr) -> usize {
        let Some((place, value)) = it.assignment() else { return 1 };
        let of = |name: &Name| self.types.get(name).map_or(4, |it| it.bytes());
        let mut bytes = of(&place.buffer);
        match self.target {
            Target::Cuda(_) => value.each_load(&mut |access| bytes = bytes.max(of(&access.buffer))),
            Target::Cpu => bytes = bytes.max(self.computed_bytes(value)),
        }
        bytes
    }

    fn computed_bytes(&self, value: &Value) -> usize {
        let own = value.dtype(&|name| self.types.get(name).copied()).map_or(4, DType::bytes);
        match value {
            Value::Const(_) | Value::Load(_) | Value::Index(..) => own,
            Value::Cast(_, a) => own.max(self.computed_bytes(a)),
            // The narrow floats compute in f32.
            Value::Unary(_, a) => own.max(4).max(self.computed_bytes(a)),
            Value::Binary(_, a, b) => {
                let is_float =
                    value.dtype(&|name| self.types.get(name).copied()).is_some_and(DType::is_float);
                let own = if is_float { own.max(4) } else { own };
                own.max(self.computed_bytes(a)).max(self.computed_bytes(b))
            }
            Value::Select(_, a, b) => own.max(self.computed_bytes(a)).max(self.computed_bytes(b)),
            Value::Where(cond, a, b) => {
                [cond, a, b].into_iter().fold(own, |most, it| most.max(self.computed_bytes(it)))
            }
        }
    }
}

fn for_loop(it: &For, extent: Index, kind: ForKind, body: Vec<Op>) -> Op {
    Op::For(Arc::new(For::new(it.var.clone(), extent, kind, body)))
}
