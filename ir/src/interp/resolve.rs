//! From a `Func` and the values of its dimensions to code.

use indexmap::IndexMap;

use super::{
    InterpError,
    code::{AccessCode, BlockCode, IndexCode, IndexOp, IterCode, LessCode, StmtCode, ValueCode},
    tables::Tables,
};
use crate::{
    Access, BinaryOp, Block, DType, Func, Index, IndexKind, IterKind, Less, Name, Stmt, Store, Value, number,
};

/// The most elements of a buffer that is held as a whole.
pub(crate) const MOST_HELD: i64 = 1 << 32;

/// The most elements of a buffer of which some are computed when they are asked for: all of them have offsets that are far from any limit.
pub(crate) const MOST_NAMED: i64 = 1 << 48;

/// The shape of each buffer under given dimensions, in buffer order; none has more than so many elements.
pub(crate) fn shapes(
    func: &Func,
    dims: &IndexMap<Name, i64>,
    most: i64,
) -> Result<Vec<Vec<usize>>, InterpError> {
    for name in &func.dims {
        match dims.get(name) {
            None => return Err(InterpError::NoDimension { name: name.clone() }),
            Some(value) if *value < 1 => {
                return Err(InterpError::BadDimension { name: name.clone(), value: *value });
            }
            Some(_) => {}
        }
    }
    if let Some(name) = dims.keys().find(|it| !func.dims.contains(it)) {
        return Err(InterpError::UnknownDimension { name: name.clone() });
    }
    let shape = |(name, buffer): (&Name, &crate::Buffer)| {
        let size: Vec<_> = buffer.shape.iter().map(|it| it.eval(&|dim| dims.get(dim).copied())).collect();
        let total = size.iter().try_fold(1, |total: i64, it| total.checked_mul((*it)?.max(0)));
        let sizes: Option<Vec<usize>> =
            size.iter().map(|it| it.and_then(|it| usize::try_from(it).ok())).collect();
        let fits = total.is_some_and(|it| 0 < it && it <= most);
        sizes.filter(|_| fits).ok_or(InterpError::BadSize { buffer: name.clone(), size })
    };
    func.buffers.iter().map(shape).collect()
}

/// A program with what is known of it before it runs.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) func: &'a Func,
    /// The values of the symbolic dimensions.
    pub(crate) dims: &'a IndexMap<Name, i64>,
    /// The shapes under them, in buffer order.
    pub(crate) shapes: &'a [Vec<usize>],
    pub(crate) tables: &'a Tables,
}

/// Resolves names. The scope grows inwards; a block hides the loop variables around it from its body.
pub(crate) struct Resolver<'a> {
    given: Given<'a>,
    scope: Vec<(Name, u32)>,
    block: Option<Name>,
    /// How many slots the environment needs.
    pub(crate) slots: usize,
    /// Whether the element that a store writes stands for the running value of a reduction in what it stores.
    pub(crate) carries: bool,
    carried: Option<Access>,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(given: Given<'a>) -> Self {
        Resolver { given, scope: Vec::new(), block: None, slots: 0, carries: false, carried: None }
    }

    pub(crate) fn stmt(&mut self, stmt: &Stmt) -> Result<StmtCode, InterpError> {
        match stmt {
            Stmt::Loop(it) => {
                let extent = self.index(&it.extent)?;
                let slot = self.declare(&it.var);
                let body = Box::new(self.stmt(&it.body)?);
                self.scope.pop();
                Ok(StmtCode::Loop { name: it.var.clone(), slot, extent, lets: Box::new([]), body })
            }
            Stmt::Block(it) => self.block(it).map(|it| StmtCode::Block(Box::new(it))),
            Stmt::Seq(stmts) => {
                stmts.iter().map(|it| self.stmt(it)).collect::<Result<_, _>>().map(StmtCode::Seq)
            }
            Stmt::Store(it) => self.store(it).map(|(place, value)| StmtCode::Store(place, value)),
            // One after the other, nobody has anything to wait for.
            Stmt::Instr(it) if it.effects().accesses.is_empty() => Ok(StmtCode::Seq(vec![])),
            Stmt::Instr(it) => Err(InterpError::Instruction { name: it.word(), block: self.block.clone() }),
        }
    }

    /// Gives a variable the next slot, innermost in scope.
    pub(crate) fn declare(&mut self, name: &Name) -> u32 {
        let slot = u32::try_from(self.slots).expect("a program in memory has fewer than 2^32 variables");
        self.slots += 1;
        self.scope.push((name.clone(), slot));
        slot
    }

    /// Names the block that messages are about.
    pub(crate) fn enter(&mut self, block: &Name) -> Option<Name> {
        self.block.replace(block.clone())
    }

    fn block(&mut self, block: &Block) -> Result<BlockCode, InterpError> {
        let outer_block = self.enter(&block.name);
        let guards = self.conditions(&block.guards)?;
        let bindings: Vec<_> =
            block.iters.iter().map(|it| self.index(&it.binding)).collect::<Result<_, _>>()?;
        let extents: Vec<_> =
            block.iters.iter().map(|it| self.index(&it.extent)).collect::<Result<_, _>>()?;

        let outer_scope = std::mem::take(&mut self.scope);
        let mut iters = Vec::new();
        for ((iter, binding), extent) in block.iters.iter().zip(bindings).zip(extents) {
            let slot = self.declare(&iter.var);
            let is_reduce = iter.kind == IterKind::Reduce;
            iters.push(IterCode { name: iter.var.clone(), slot, extent, binding, is_reduce });
        }
        let init = block.init.as_ref().map(|it| self.stmt(it)).transpose()?;
        let body = self.stmt(&block.body)?;
        self.scope = outer_scope;
        self.block = outer_block;
        Ok(BlockCode { name: block.name.clone(), guards, iters, lets: Box::new([]), init, body })
    }

    pub(crate) fn store(&mut self, store: &Store) -> Result<(AccessCode, ValueCode), InterpError> {
        let (place, expected) = self.access(&store.place)?;
        self.carried = self.carries.then(|| store.place.clone());
        let (value, found) = self.value(&store.value)?;
        self.expect(expected, found)?;
        Ok((place, value))
    }

    fn expect(&self, expected: DType, found: DType) -> Result<(), InterpError> {
        if expected == found {
            return Ok(());
        }
        Err(InterpError::Types { expected, found, block: self.block.clone() })
    }

    fn expect_takes(&self, op: &'static str, takes: bool, found: DType) -> Result<(), InterpError> {
        if takes { Ok(()) } else { Err(InterpError::Operand { op, found, block: self.block.clone() }) }
    }

    fn access(&self, access: &Access) -> Result<(AccessCode, DType), InterpError> {
        let (name, block) = (access.buffer.clone(), self.block.clone());
        let Some((buffer, _, declared)) = self.given.func.buffers.get_full(&access.buffer) else {
            return Err(InterpError::UnknownBuffer { name, block });
        };
        let (shape, given) = (&self.given.shapes[buffer], access.indices.len());
        if shape.len() != given {
            return Err(InterpError::Rank { buffer: name, expected: shape.len(), given, block });
        }
        if access.lanes != 1 {
            return Err(InterpError::Lanes { buffer: name, lanes: access.lanes, block });
        }
        let sizes = shape.iter().map(|it| i64::try_from(*it).expect("it came from one"));
        let subscripts = access.indices.iter().zip(sizes).map(|(it, size)| Ok((self.index(it)?, size)));
        let subscripts = subscripts.collect::<Result<_, _>>()?;
        Ok((AccessCode { buffer, subscripts }, declared.dtype))
    }

    /// The code of a value and the type that the program gives it.
    fn value(&self, value: &Value) -> Result<(ValueCode, DType), InterpError> {
        match value {
            // To bound errors a constant is one of its type: `0.1f32` is not a tenth.
            Value::Const(it) if self.carries && it.dtype.is_float() && it.to_f64().is_finite() => {
                Ok((ValueCode::Const(number::round(it.dtype, it.to_f64())), it.dtype))
            }
            Value::Const(it) => Ok((ValueCode::Const(it.to_f64()), it.dtype)),
            Value::Load(access) if self.carried.as_ref() == Some(access) => {
                let (_, dtype) = self.access(access)?;
                Ok((ValueCode::Carried, dtype))
            }
            Value::Load(access) => {
                let (access, dtype) = self.access(access)?;
                Ok((ValueCode::Load(access), dtype))
            }
            Value::Index(dtype, index) => Ok((ValueCode::Index(*dtype, self.index(index)?), *dtype)),
            Value::Cast(to, a) => {
                let (a, from) = self.value(a)?;
                Ok((ValueCode::Cast(from, *to, Box::new(a)), *to))
            }
            Value::Unary(op, a) => {
                let (a, dtype) = self.value(a)?;
                self.expect_takes(op.as_str(), op.takes(dtype), dtype)?;
                Ok((ValueCode::Unary(*op, dtype, Box::new(a)), dtype))
            }
            Value::Binary(op, a, b) => self.binary(*op, a, b),
            Value::Select(conditions, a, b) => {
                let conditions = self.conditions(conditions)?;
                let ((a, dtype), (b, other)) = (self.value(a)?, self.value(b)?);
                self.expect(dtype, other)?;
                Ok((ValueCode::Select(conditions, Box::new([a, b])), dtype))
            }
            Value::Where(cond, a, b) => {
                let ((cond, found), (a, dtype), (b, other)) =
                    (self.value(cond)?, self.value(a)?, self.value(b)?);
                self.expect(DType::Bool, found)?;
                self.expect(dtype, other)?;
                Ok((ValueCode::Where(Box::new([cond, a, b])), dtype))
            }
        }
    }

    fn binary(&self, op: BinaryOp, a: &Value, b: &Value) -> Result<(ValueCode, DType), InterpError> {
        let ((a, dtype), (b, other)) = (self.value(a)?, self.value(b)?);
        self.expect(dtype, other)?;
        self.expect_takes(op.as_str(), op.takes(dtype), dtype)?;
        Ok((ValueCode::Binary(op, dtype, Box::new([a, b])), op.result(dtype)))
    }

    fn conditions(&self, conditions: &[Less]) -> Result<Box<[LessCode]>, InterpError> {
        let code = |it: &Less| Ok(LessCode { lhs: self.index(&it.lhs)?, rhs: self.index(&it.rhs)? });
        conditions.iter().map(code).collect()
    }

    pub(crate) fn index(&self, index: &Index) -> Result<IndexCode, InterpError> {
        let op = |op: IndexOp, a: &Index, b: &Index| {
            let (a, b) = (self.index(a)?, self.index(b)?);
            Ok(affine(op, &a, &b).unwrap_or_else(|| IndexCode::Op(op, Box::new([a, b]))))
        };
        match index.kind() {
            IndexKind::Int(it) => Ok(constant(it)),
            IndexKind::Var(name) => self.variable(name),
            IndexKind::Add(a, b) => op(IndexOp::Add, a, b),
            IndexKind::Mul(a, b) => op(IndexOp::Mul, a, b),
            IndexKind::FloorDiv(a, b) => op(IndexOp::FloorDiv, a, b),
            IndexKind::FloorMod(a, b) => op(IndexOp::FloorMod, a, b),
            IndexKind::Min(a, b) => op(IndexOp::Min, a, b),
            IndexKind::Max(a, b) => op(IndexOp::Max, a, b),
            IndexKind::Xor(a, b) => op(IndexOp::Xor, a, b),
            IndexKind::Element(table, at, _) => {
                let (name, block) = (table.clone(), self.block.clone());
                let table = self.given.tables.get(table).ok_or(InterpError::UnknownBuffer { name, block })?;
                Ok(IndexCode::Element(table.clone(), Box::new(self.index(at)?)))
            }
        }
    }

    fn variable(&self, name: &Name) -> Result<IndexCode, InterpError> {
        if let Some((_, slot)) = self.scope.iter().rev().find(|(it, _)| it == name) {
            return Ok(IndexCode::Affine { constant: 0, terms: Box::new([(1, *slot)]) });
        }
        match self.given.dims.get(name) {
            Some(value) => Ok(constant(*value)),
            None => Err(InterpError::UnknownVariable { name: name.clone(), block: self.block.clone() }),
        }
    }
}

fn constant(value: i64) -> IndexCode {
    IndexCode::Affine { constant: value, terms: Box::new([]) }
}

/// The affine form of an operation on two affine forms, if it has one and its numbers do not overflow.
fn affine(op: IndexOp, a: &IndexCode, b: &IndexCode) -> Option<IndexCode> {
    let (IndexCode::Affine { constant: c, terms: p }, IndexCode::Affine { constant: d, terms: q }) = (a, b)
    else {
        return None;
    };
    match op {
        IndexOp::Add => {
            let mut terms = p.to_vec();
            for (factor, slot) in q {
                match terms.iter_mut().find(|it| it.1 == *slot) {
                    Some(it) => it.0 = it.0.checked_add(*factor)?,
                    None => terms.push((*factor, *slot)),
                }
            }
            terms.retain(|it| it.0 != 0);
            Some(IndexCode::Affine { constant: c.checked_add(*d)?, terms: terms.into() })
        }
        IndexOp::Mul if p.is_empty() => {
            let scale = |(factor, slot): &(i64, u32)| Some((factor.checked_mul(*c)?, *slot));
            let terms = q.iter().filter(|_| *c != 0).map(scale).collect::<Option<_>>()?;
            Some(IndexCode::Affine { constant: c.checked_mul(*d)?, terms })
        }
        IndexOp::Mul if q.is_empty() => affine(op, b, a),
        IndexOp::Mul | IndexOp::FloorDiv | IndexOp::FloorMod | IndexOp::Min | IndexOp::Max | IndexOp::Xor => {
            let both = p.is_empty() && q.is_empty();
            let op = IndexCode::Op(op, Box::new([constant(*c), constant(*d)]));
            both.then(|| op.eval(&[])).flatten().map(constant)
        }
    }
}
