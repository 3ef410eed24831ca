//! Which iterations of a loop change nothing: what a block stores under the assumption that some conditions are false.

use std::collections::BTreeMap;

use ir::{
    Access, BinaryOp, Block, DType, Func, Index, IterKind, Less, Literal, LoopKind, Name, Role, Stmt, Store,
    UnaryOp, Value,
    region::{self, Nest, Way, starts_anew},
};

use crate::{check::independent::covered_exactly, nest};

/// The end of the iterations of a loop that may change something, over the loops around it, if that is before its own; and why there is none.
///
/// Conditions of selections and guards become false where a loop goes far enough: `ko*64 + ki < q + 1`. For those that do so from the same
/// iteration on, the blocks are gone through with what is then known of their values: a maximum with `-inf`, a sum with zero and a
/// product with one are what they were. Zero times anything counts as zero, and `exp` of `-inf` as zero.
pub(crate) fn end(func: &Func, target: &Name) -> Result<Index, &'static str> {
    let it = func.find_loop(target).expect("the caller has looked");
    let blocks = it.body.blocks();
    let bounds = region::bounds_of(func, &nest::path(func, Some(target)));
    let mut ends: Vec<Index> = Vec::new();
    for block in &blocks {
        for condition in conditions(block) {
            let end = false_from(func, target, block, &condition);
            let new = end.filter(|end| !bounds.at_most(&it.extent, end) && !ends.contains(end));
            ends.extend(new);
        }
    }
    let mut why = "no condition in it is false from some iteration on";
    for end in ends {
        let mut walk = Walk { func, target, end: &end, known: BTreeMap::new() };
        match blocks.iter().try_for_each(|it| walk.block(it)) {
            Ok(()) => return Ok(end),
            Err(reason) => why = reason,
        }
    }
    Err(why)
}

/// The conditions under which a block runs, or takes one of two values.
fn conditions(block: &Block) -> Vec<Less> {
    let mut all = block.guards.clone();
    block.body.each_store(&mut |store| selections(&store.value, &mut all));
    all
}

fn selections(value: &Value, out: &mut Vec<Less>) {
    match value {
        Value::Const(_) | Value::Load(_) | Value::Index(..) => {}
        Value::Cast(_, a) | Value::Unary(_, a) => selections(a, out),
        Value::Binary(_, a, b) => {
            selections(a, out);
            selections(b, out);
        }
        Value::Where(c, a, b) => {
            for it in [c, a, b] {
                selections(it, out);
            }
        }
        Value::Select(conditions, a, b) => {
            out.extend(conditions.iter().cloned());
            selections(a, out);
            selections(b, out);
        }
    }
}

/// From which iteration of the loop on a condition of a block is false for all that threads and inner loops do, if it once is.
fn false_from(func: &Func, target: &Name, block: &Block, condition: &Less) -> Option<Index> {
    let nest = Nest::of(func, block);
    let mut bounds = nest.bounds().clone();
    block.body.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt {
            bounds.insert(&it.var, &it.extent);
        }
    });
    let binding = |var: &Name| block.find_iter(var).map(|it| it.binding.clone());
    let gap = bounds.simplify(&(condition.rhs.subst(&binding) - condition.lhs.subst(&binding)));
    let (by, rest) = bounds.linear_in(&gap, target)?;
    if by >= 0 {
        return None;
    }
    let at = nest.loops.iter().position(|it| it.var == *target)?;
    let is_outer = |name: &Name| {
        let mut around = nest.loops[..at].iter();
        func.dims.contains(name)
            || around
                .any(|it| it.var == *name && !matches!(it.kind, LoopKind::Bound(axis) if axis.is_thread()))
    };
    let (outer, inner) = bounds.split(&rest, &|name| !is_outer(name));
    let most = bounds.interval(&inner).1?;
    let end = (outer + most).ceil_div(&Index::int(-by));
    let known = region::bounds_of(func, &nest::path(func, Some(target)));
    Some(known.simplify(&end))
}

/// What is known of the elements of a temporary that this iteration has written.
#[derive(Clone, PartialEq)]
enum Known {
    /// All are this number.
    Number(f64),
    /// Each is the element at the same place of a buffer that no iteration here changes.
    Copy(Name),
    /// Nothing.
    Nothing,
}

/// What is known of a value.
#[derive(Clone, PartialEq)]
enum Found {
    Number(f64),
    /// It is that of elements that no iteration here changes.
    Kept(Value),
    Nothing,
}

/// The blocks of an iteration from `end` on, in their order.
struct Walk<'a> {
    func: &'a Func,
    target: &'a Name,
    end: &'a Index,
    known: BTreeMap<Name, Known>,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block) -> Result<(), &'static str> {
        if block.guards.iter().any(|it| self.is_false(block, it)) {
            return Ok(());
        }
        let init = block.init.as_ref().filter(|_| !self.has_begun(block));
        for stmt in init.into_iter().chain([&block.body]) {
            let mut stores: Vec<Store> = Vec::new();
            let mut others = false;
            stmt.each_store(&mut |it| stores.push(it.clone()));
            stmt.walk(&mut |it| others |= matches!(it, Stmt::Instr(_)));
            if others {
                return Err("instructions of kernels are in it");
            }
            stores.iter().try_for_each(|it| self.store(block, it))?;
        }
        Ok(())
    }

    /// Whether a reduction has started before, in the first iteration of the loop.
    fn has_begun(&self, block: &Block) -> bool {
        let nest = Nest::of(self.func, block);
        let bounds = nest.bounds();
        let mut reduced = block.iters.iter().filter(|it| it.kind == IterKind::Reduce);
        reduced.any(|it| {
            let found = bounds.linear_in(&bounds.simplify(&it.binding), self.target);
            found.is_some_and(|(by, rest)| by > 0 && bounds.interval(&rest).0.is_some_and(|least| least >= 0))
        })
    }

    fn store(&mut self, block: &Block, store: &Store) -> Result<(), &'static str> {
        let found = self.value(block, &store.value);
        let buffer = &store.place.buffer;
        if !self.is_of_iteration(buffer) {
            let same = Found::Kept(Value::Load(store.place.clone()));
            return if found == same { Ok(()) } else { Err("what it computes may change something") };
        }
        let new = match found {
            Found::Number(it) => Known::Number(it),
            Found::Kept(Value::Load(it)) if it.indices == store.place.indices => Known::Copy(it.buffer),
            Found::Kept(_) | Found::Nothing => Known::Nothing,
        };
        let before = self.known.get(buffer);
        let both = if before.is_none_or(|it| *it == new) { new } else { Known::Nothing };
        self.known.insert(buffer.clone(), both);
        Ok(())
    }

    /// Whether a buffer is of use in one iteration at a time: nothing outside of the loop uses it, and what is read of it was written before in
    /// the same iteration.
    fn is_of_iteration(&self, buffer: &Name) -> bool {
        let func = self.func;
        let level = nest::path(func, Some(self.target)).len();
        let is_inside = |it: &Nest<'_>| it.loops.get(level - 1).is_some_and(|it| it.var == *self.target);
        let nests = Nest::all(func);
        let users: Vec<&Nest<'_>> = nests.iter().filter(|it| it.uses(buffer)).collect();
        let is_covered = |first: &Nest<'_>, reader: &Nest<'_>| {
            let boxes = [(first, Way::Write), (reader, Way::Read)];
            let [written, read] = boxes.map(|(it, way)| it.touched_in_one(buffer, level, way));
            region::writes_box(first, reader.block, buffer, level)
                && region::covers(&written, &read, &func.buffers[buffer].shape, reader.bounds())
                || covered_exactly(func, first, reader, buffer)
        };
        let is_written = |(at, reader): (usize, &&Nest<'_>)| {
            !reader.reaches(buffer, Way::Read)
                || starts_anew(reader).is_some_and(|it| it >= level)
                || users[..at].iter().any(|it| is_covered(it, reader))
        };
        func.buffers[buffer].role == Role::Temp
            && users.iter().all(|it| is_inside(it))
            && users.iter().enumerate().all(is_written)
    }

    fn is_false(&self, block: &Block, condition: &Less) -> bool {
        false_from(self.func, self.target, block, condition).is_some_and(|it| it == *self.end)
    }

    fn value(&self, block: &Block, value: &Value) -> Found {
        match value {
            Value::Const(it) => Found::Number(it.to_f64()),
            Value::Index(..) => Found::Nothing,
            Value::Load(it) => self.load(it),
            Value::Select(conditions, a, b) => {
                if conditions.iter().any(|it| self.is_false(block, it)) {
                    return self.value(block, b);
                }
                alike(self.value(block, a), &self.value(block, b))
            }
            Value::Where(_, a, b) => alike(self.value(block, a), &self.value(block, b)),
            Value::Cast(to, _) if !to.is_float() => Found::Nothing,
            Value::Cast(to, a) => match self.value(block, a) {
                Found::Kept(it) => Found::Kept(Value::Cast(*to, it.into())),
                it @ (Found::Number(_) | Found::Nothing) => it,
            },
            Value::Unary(op, a) => match (op, self.value(block, a)) {
                (UnaryOp::Exp | UnaryOp::Exp2, Found::Number(0.0)) => Found::Number(1.0),
                (UnaryOp::Exp | UnaryOp::Exp2, Found::Number(f64::NEG_INFINITY)) => Found::Number(0.0),
                (UnaryOp::Neg, Found::Number(it)) => Found::Number(-it),
                (_, Found::Kept(it)) => Found::Kept(Value::Unary(*op, it.into())),
                (_, Found::Number(_) | Found::Nothing) => Found::Nothing,
            },
            Value::Binary(op, a, b) => self.binary(*op, self.value(block, a), self.value(block, b)),
        }
    }

    fn load(&self, access: &Access) -> Found {
        let buffer = &access.buffer;
        if self.func.buffers[buffer].role == Role::Input || !self.is_of_iteration(buffer) {
            return Found::Kept(Value::Load(access.clone()));
        }
        match self.known.get(buffer) {
            Some(Known::Number(it)) => Found::Number(*it),
            Some(Known::Copy(of)) => {
                Found::Kept(Value::Load(Access { buffer: of.clone(), ..access.clone() }))
            }
            Some(Known::Nothing) | None => Found::Nothing,
        }
    }

    fn binary(&self, op: BinaryOp, a: Found, b: Found) -> Found {
        use Found::{Kept, Nothing, Number};
        match (op, a, b) {
            (BinaryOp::Mul, Number(0.0), _) | (BinaryOp::Mul, _, Number(0.0)) => Number(0.0),
            (BinaryOp::Mul, Number(1.0), it)
            | (BinaryOp::Mul | BinaryOp::Div, it, Number(1.0))
            | (BinaryOp::Add, Number(0.0), it)
            | (BinaryOp::Add | BinaryOp::Sub, it, Number(0.0))
            | (BinaryOp::Max, Number(f64::NEG_INFINITY), it)
            | (BinaryOp::Max, it, Number(f64::NEG_INFINITY))
            | (BinaryOp::Min, Number(f64::INFINITY), it)
            | (BinaryOp::Min, it, Number(f64::INFINITY)) => it,
            (BinaryOp::Add, Number(a), Number(b)) => Number(a + b),
            (BinaryOp::Sub, Number(a), Number(b)) => Number(a - b),
            (BinaryOp::Mul, Number(a), Number(b)) => Number(a * b),
            (BinaryOp::Sub, Kept(a), Kept(b)) if a == b && self.is_bounded(&a) => Number(0.0),
            (BinaryOp::Sub, Number(f64::NEG_INFINITY), Kept(it)) if self.is_bounded(&it) => {
                Number(f64::NEG_INFINITY)
            }
            (op, Kept(a), Kept(b)) => Kept(Value::binary(op, a, b)),
            (op, Kept(a), Number(b)) => Kept(Value::binary(op, a, constant(b))),
            (op, Number(a), Kept(b)) => Kept(Value::binary(op, constant(a), b)),
            _ => Nothing,
        }
    }

    /// Whether a value is no infinity as long as it is a number: of what is only raised from a finite number on.
    fn is_bounded(&self, value: &Value) -> bool {
        let mut bounded = true;
        value.each_load(&mut |it| {
            let writers = self.func.writers(&it.buffer);
            bounded &= !writers.is_empty();
            for writer in writers {
                for stmt in writer.init.iter().chain([&writer.body]) {
                    let Stmt::Store(store) = stmt else {
                        bounded = false;
                        continue;
                    };
                    let own = Value::Load(store.place.clone());
                    bounded &= match &store.value {
                        Value::Const(it) => it.to_f64().is_finite(),
                        Value::Binary(BinaryOp::Max, a, b) => **a == own || **b == own,
                        _ => false,
                    };
                }
            }
        });
        bounded
    }
}

/// A number as a constant beside a value; its type does not matter to what two values have in common.
fn constant(number: f64) -> Value {
    Value::Const(Literal::from_f64(DType::F64, number))
}

fn alike(a: Found, b: &Found) -> Found {
    if a == *b { a } else { Found::Nothing }
}
