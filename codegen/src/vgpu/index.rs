//! Indices over slots, evaluated for the 32 lanes of a warp at once.
//!
//! Only thread axes differ between the lanes of a warp, for all lanes of a loop are in the same iteration. So an
//! index is a scalar over the slots, a table over the threads that was filled once, and, rarely, something mixed.

use std::{collections::HashMap, sync::Arc};

use indexmap::IndexMap;
use ir::{Arch, Index, IndexKind, Module, Name};

/// How many threads run in lockstep.
pub(crate) const WARP: usize = Arch::WARP as usize;

/// One number a lane.
pub(crate) type LaneIndices = [i64; WARP];

/// The operations that are not sums.
#[derive(Clone, Debug)]
pub(crate) enum IndexOp {
    /// The element of an input at the first operand.
    Element(Arc<[i64]>),
    Mul,
    FloorDiv,
    FloorMod,
    Min,
    Max,
    Xor,
}

/// An index that is the same for all lanes: `constant + Σ factor * slot + Σ factor * operation`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scalar {
    constant: i64,
    terms: Vec<(i64, u32)>,
    ops: Vec<(i64, IndexOp, Box<[Scalar; 2]>)>,
}

/// An index: a scalar, a number for each thread, and operations on both.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexCode {
    scalar: Scalar,
    table: Option<u32>,
    mixed: Vec<(i64, IndexOp, Box<[IndexCode; 2]>)>,
}

/// The values of thread-dependent indices, one for each thread of a block, warps filled up.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    rows: Vec<Vec<i64>>,
    known: HashMap<Vec<i64>, u32>,
}

/// What names stand for.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// The symbolic dimensions.
    pub(crate) dims: HashMap<Name, i64>,
    /// Variables that all lanes agree on, and their slots. Later ones hide earlier ones.
    pub(crate) slots: Vec<(Name, u32)>,
    /// The thread axes: a value for each thread.
    pub(crate) threads: HashMap<Name, Vec<i64>>,
    /// How many threads there are, warps filled up.
    pub(crate) count: usize,
    /// What the inputs hold whose elements are indices.
    pub(crate) inputs: Arc<HashMap<Name, Arc<[i64]>>>,
    /// What was made.
    pub(crate) tables: Tables,
}

/// What the inputs hold whose elements are indices.
pub(crate) fn inputs(module: &Module, memory: &IndexMap<Name, Vec<f64>>) -> HashMap<Name, Arc<[i64]>> {
    let names = module.kernels.iter().flat_map(ir::Kernel::tables);
    #[expect(clippy::cast_possible_truncation, reason = "an input of integers holds integers")]
    let one = |name: Name| {
        let all = memory.get(&name)?.iter().map(|it| *it as i64).collect();
        Some((name, all))
    };
    names.filter_map(one).collect()
}

impl IndexOp {
    /// A divisor that is not positive, which verified programs do not have, gives a number that is in no buffer; so does a position that
    /// is not in an input.
    fn apply(&self, a: i64, b: i64) -> i64 {
        match self {
            IndexOp::Element(table) => {
                usize::try_from(a).ok().and_then(|it| table.get(it)).copied().unwrap_or(i64::MIN / 2)
            }
            IndexOp::Mul => a.wrapping_mul(b),
            IndexOp::FloorDiv | IndexOp::FloorMod if b <= 0 => i64::MIN / 2,
            IndexOp::FloorDiv => a.div_euclid(b),
            IndexOp::FloorMod => a.rem_euclid(b),
            IndexOp::Min => a.min(b),
            IndexOp::Max => a.max(b),
            IndexOp::Xor => a ^ b,
        }
    }
}

impl Tables {
    fn add(&mut self, row: Vec<i64>) -> u32 {
        let next = u32::try_from(self.rows.len()).expect("memory ends before");
        *self.known.entry(row).or_insert_with_key(|row| {
            self.rows.push(row.clone());
            next
        })
    }
}

impl Scalar {
    fn scaled(mut self, by: i64) -> Scalar {
        self.constant = self.constant.wrapping_mul(by);
        self.terms.iter_mut().for_each(|it| it.0 = it.0.wrapping_mul(by));
        self.ops.iter_mut().for_each(|it| it.0 = it.0.wrapping_mul(by));
        self
    }

    fn add(&mut self, other: Scalar) {
        self.constant = self.constant.wrapping_add(other.constant);
        for (factor, slot) in other.terms {
            match self.terms.iter_mut().find(|it| it.1 == slot) {
                Some(it) => it.0 = it.0.wrapping_add(factor),
                None => self.terms.push((factor, slot)),
            }
        }
        self.ops.extend(other.ops);
    }

    fn as_constant(&self) -> Option<i64> {
        (self.terms.is_empty() && self.ops.is_empty()).then_some(self.constant)
    }

    /// The value under the values of the slots.
    pub(crate) fn eval(&self, slots: &[i64]) -> i64 {
        let mut sum = self.constant;
        for (factor, slot) in &self.terms {
            sum = sum.wrapping_add(factor.wrapping_mul(slots[*slot as usize]));
        }
        for (factor, op, operands) in &self.ops {
            let value = op.apply(operands[0].eval(slots), operands[1].eval(slots));
            sum = sum.wrapping_add(factor.wrapping_mul(value));
        }
        sum
    }
}

impl IndexCode {
    /// Resolves an index; the first name that means nothing is the error.
    pub(crate) fn new(index: &Index, scope: &mut Scope) -> Result<IndexCode, Name> {
        let op = match index.kind() {
            IndexKind::Int(it) => return Ok(IndexCode::constant(it)),
            IndexKind::Var(name) => return IndexCode::variable(name, scope),
            IndexKind::Add(a, b) => {
                let mut sum = IndexCode::new(a, scope)?;
                let b = IndexCode::new(b, scope)?;
                sum.add(b, scope);
                return Ok(sum);
            }
            IndexKind::Mul(..) => IndexOp::Mul,
            IndexKind::FloorDiv(..) => IndexOp::FloorDiv,
            IndexKind::FloorMod(..) => IndexOp::FloorMod,
            IndexKind::Min(..) => IndexOp::Min,
            IndexKind::Max(..) => IndexOp::Max,
            IndexKind::Xor(..) => IndexOp::Xor,
            IndexKind::Element(table, ..) => {
                IndexOp::Element(scope.inputs.get(table).ok_or_else(|| table.clone())?.clone())
            }
        };
        let (IndexKind::Mul(a, b)
        | IndexKind::FloorDiv(a, b)
        | IndexKind::FloorMod(a, b)
        | IndexKind::Min(a, b)
        | IndexKind::Max(a, b)
        | IndexKind::Xor(a, b)
        | IndexKind::Element(_, a, b)) = index.kind()
        else {
            unreachable!("the others have returned");
        };
        let (a, b) = (IndexCode::new(a, scope)?, IndexCode::new(b, scope)?);
        Ok(IndexCode::operation(op, a, b, scope))
    }

    fn constant(value: i64) -> IndexCode {
        IndexCode { scalar: Scalar { constant: value, ..Scalar::default() }, ..IndexCode::default() }
    }

    fn variable(name: &Name, scope: &mut Scope) -> Result<IndexCode, Name> {
        if let Some((_, slot)) = scope.slots.iter().rev().find(|it| it.0 == *name) {
            let scalar = Scalar { terms: vec![(1, *slot)], ..Scalar::default() };
            return Ok(IndexCode { scalar, ..IndexCode::default() });
        }
        if let Some(row) = scope.threads.get(name) {
            let table = Some(scope.tables.add(row.clone()));
            return Ok(IndexCode { table, ..IndexCode::default() });
        }
        scope.dims.get(name).map(|it| IndexCode::constant(*it)).ok_or_else(|| name.clone())
    }

    fn operation(op: IndexOp, a: IndexCode, b: IndexCode, scope: &mut Scope) -> IndexCode {
        if let (Some(a), Some(b)) = (a.as_constant(), b.as_constant()) {
            return IndexCode::constant(op.apply(a, b));
        }
        match (&op, a.as_constant(), b.as_constant()) {
            (IndexOp::Mul, Some(by), _) => return b.scaled(by, scope),
            (IndexOp::Mul, _, Some(by)) => return a.scaled(by, scope),
            _ => {}
        }
        if a.is_uniform() && b.is_uniform() {
            let ops = vec![(1, op, Box::new([a.scalar, b.scalar]))];
            return IndexCode { scalar: Scalar { ops, ..Scalar::default() }, ..IndexCode::default() };
        }
        if let (Some(a), Some(b)) = (a.of_threads(scope), b.of_threads(scope)) {
            let row = a.iter().zip(&b).map(|(a, b)| op.apply(*a, *b)).collect();
            return IndexCode { table: Some(scope.tables.add(row)), ..IndexCode::default() };
        }
        IndexCode { mixed: vec![(1, op, Box::new([a, b]))], ..IndexCode::default() }
    }

    fn scaled(mut self, by: i64, scope: &mut Scope) -> IndexCode {
        self.scalar = self.scalar.scaled(by);
        self.table = self.table.map(|it| {
            let row = scope.tables.rows[it as usize].iter().map(|it| it.wrapping_mul(by)).collect();
            scope.tables.add(row)
        });
        self.mixed.iter_mut().for_each(|it| it.0 = it.0.wrapping_mul(by));
        self
    }

    fn add(&mut self, other: IndexCode, scope: &mut Scope) {
        self.scalar.add(other.scalar);
        self.table = match (self.table, other.table) {
            (Some(a), Some(b)) => {
                let (a, b) = (&scope.tables.rows[a as usize], &scope.tables.rows[b as usize]);
                let row = a.iter().zip(b).map(|(a, b)| a.wrapping_add(*b)).collect();
                Some(scope.tables.add(row))
            }
            (a, b) => a.or(b),
        };
        self.mixed.extend(other.mixed);
    }

    /// The value for each thread, if nothing else matters.
    fn of_threads(&self, scope: &Scope) -> Option<Vec<i64>> {
        let constant = self.scalar.as_constant().filter(|_| self.mixed.is_empty())?;
        Some(match self.table {
            Some(it) => scope.tables.rows[it as usize].iter().map(|it| it.wrapping_add(constant)).collect(),
            None => vec![constant; scope.count],
        })
    }

    /// The value, if it never changes.
    pub(crate) fn as_constant(&self) -> Option<i64> {
        self.scalar.as_constant().filter(|_| self.is_uniform())
    }

    /// Whether all lanes always agree.
    pub(crate) fn is_uniform(&self) -> bool {
        self.table.is_none() && self.mixed.is_empty()
    }

    /// Whether lanes differ by a table alone: always by the same.
    pub(crate) fn is_table(&self) -> bool {
        self.mixed.is_empty()
    }

    /// The value where all lanes agree.
    pub(crate) fn uniform(&self, slots: &[i64]) -> i64 {
        self.scalar.eval(slots)
    }

    /// The values for the warp whose first thread is `base`.
    pub(crate) fn eval(&self, slots: &[i64], tables: &Tables, base: usize, out: &mut LaneIndices) {
        let sum = self.scalar.eval(slots);
        match self.table {
            Some(it) => {
                let row = &tables.rows[it as usize][base..base + WARP];
                out.iter_mut().zip(row).for_each(|(out, it)| *out = sum.wrapping_add(*it));
            }
            None => out.fill(sum),
        }
        for (factor, op, operands) in &self.mixed {
            let (mut a, mut b) = ([0; WARP], [0; WARP]);
            operands[0].eval(slots, tables, base, &mut a);
            operands[1].eval(slots, tables, base, &mut b);
            for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(&b)) {
                *out = out.wrapping_add(factor.wrapping_mul(op.apply(*a, *b)));
            }
        }
    }
}
