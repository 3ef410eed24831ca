//! How sums follow a maximum that is not yet complete: what `exp(t - M)` becomes when `M` grows.

use std::collections::BTreeSet;

use ir::{
    Access, BinaryOp, Block, DType, Func, Index, IterKind, Less, Literal, Name, Reducer, Stmt, Store,
    UnaryOp, Value, arith::Bounds,
};

use crate::inverse::Inverse;

/// A maximum or minimum whose readers see it grow.
pub(crate) struct Extremum<'a> {
    func: &'a Func,
    block: &'a Block,
    reducer: &'a Reducer,
    /// The buffers whose elements depend on it, one by one.
    dependent: &'a BTreeSet<Name>,
}

/// By what a sum is multiplied when the extremum goes from one value to the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rescale {
    /// The factor, over the iterators of the extremum's block: it reads the extremum where the new value goes in, and
    /// [`PREVIOUS`] where the old one does.
    pub(crate) factor: Value,
    /// The element of the extremum that the sum goes by, over the iterators of the sum's block.
    pub(crate) at: Vec<Index>,
    /// Where there is such an element; elsewhere the sum is zero.
    pub(crate) when: Vec<Less>,
}

/// What stands for the buffer of old values. No program has a name with a dot.
pub(crate) const PREVIOUS: &str = "extremum.old";

/// How a value goes by the extremum.
#[derive(Clone, PartialEq, Eq)]
enum Scaling {
    /// It is zero, which goes by anything.
    Zero,
    /// Not at all.
    Constant,
    /// All of it is multiplied.
    By(Rescale),
}

impl Extremum<'_> {
    pub(crate) fn new<'a>(
        func: &'a Func,
        block: &'a Block,
        reducer: &'a Reducer,
        dependent: &'a BTreeSet<Name>,
    ) -> Extremum<'a> {
        Extremum { func, block, reducer, dependent }
    }

    /// By what a sum of such terms has to be multiplied; `None` if it does not go by the extremum.
    ///
    /// # Errors
    /// The reason why there is no such factor.
    pub(crate) fn rescale(&self, sum: &Block, term: &Value) -> Result<Option<Rescale>, &'static str> {
        match self.scaling(sum, term)? {
            Scaling::By(it) => Ok(Some(it)),
            Scaling::Zero | Scaling::Constant => Ok(None),
        }
    }

    fn depends(&self, value: &Value) -> bool {
        let mut found = false;
        value.each_load(&mut |it| found |= self.is_own(it) || self.dependent.contains(&it.buffer));
        found
    }

    fn is_own(&self, access: &Access) -> bool {
        access.buffer == self.reducer.place.buffer
    }

    fn scaling(&self, sum: &Block, value: &Value) -> Result<Scaling, &'static str> {
        if !self.depends(value) {
            let is_zero = matches!(value, Value::Const(it) if it.to_f64() == 0.0);
            return Ok(if is_zero { Scaling::Zero } else { Scaling::Constant });
        }
        match value {
            Value::Load(it) if self.is_own(it) => Err("it reads the extremum outside of an exponential"),
            Value::Load(it) => self.scaling(sum, &self.definition(sum, it)?),
            Value::Cast(to, a) if to.is_float() => self.scaling(sum, a),
            Value::Unary(UnaryOp::Neg, a) => self.scaling(sum, a),
            Value::Unary(op @ (UnaryOp::Exp | UnaryOp::Exp2), a) => {
                let (exponent, at) = self.exponent(sum, a, false)?;
                Ok(Scaling::By(Rescale { factor: Value::Unary(*op, exponent.into()), at, when: vec![] }))
            }
            Value::Binary(BinaryOp::Mul, a, b) => product(self.scaling(sum, a)?, self.scaling(sum, b)?),
            Value::Binary(BinaryOp::Div, a, b) if !self.depends(b) => self.scaling(sum, a),
            Value::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) => {
                alike(self.scaling(sum, a)?, self.scaling(sum, b)?)
            }
            Value::Select(conditions, a, b) => match (self.scaling(sum, a)?, self.scaling(sum, b)?) {
                (Scaling::By(mut it), Scaling::Zero) => {
                    it.when.extend(conditions.iter().filter(|it| is_spatial(sum, it)).cloned());
                    Ok(Scaling::By(it))
                }
                (a, b) => alike(a, b),
            },
            Value::Where(cond, a, b) if !self.depends(cond) => {
                alike(self.scaling(sum, a)?, self.scaling(sum, b)?)
            }
            _ => Err("it goes by the extremum in another way than by a factor exp(t - extremum)"),
        }
    }

    /// What stands for `c*(t - M)` or `c*t - c*M`, `t` being a term of `M`: the same of the old value. So no exponent is ever above zero.
    fn exponent(
        &self,
        sum: &Block,
        value: &Value,
        negated: bool,
    ) -> Result<(Value, Vec<Index>), &'static str> {
        match value {
            Value::Load(it) if !self.is_own(it) => self.exponent(sum, &self.definition(sum, it)?, negated),
            Value::Cast(to, a) if to.is_float() => {
                let (inner, at) = self.exponent(sum, a, negated)?;
                Ok((Value::Cast(*to, inner.into()), at))
            }
            Value::Unary(UnaryOp::Neg, a) => {
                let (inner, at) = self.exponent(sum, a, !negated)?;
                Ok((Value::Unary(UnaryOp::Neg, inner.into()), at))
            }
            Value::Binary(op @ (BinaryOp::Mul | BinaryOp::Div), a, b) => {
                let (rest, by) = match (constant(a), constant(b)) {
                    (_, Some(_)) => (a, b),
                    (Some(_), None) if *op == BinaryOp::Mul => (b, a),
                    _ => return Err("what it multiplies the exponent by is no constant"),
                };
                let is_negative = constant(by).is_some_and(|it| it < 0.0);
                let (inner, at) = self.exponent(sum, rest, negated != is_negative)?;
                Ok((Value::binary(*op, inner, Value::clone(by)), at))
            }
            Value::Binary(BinaryOp::Sub, a, b) => self.difference(sum, a, b, negated),
            _ => Err("its exponent is no difference of a term and the extremum"),
        }
    }

    /// `t - M` or `M - t`, or both times one constant: `old - M` or `M - old` times that.
    fn difference(
        &self,
        sum: &Block,
        a: &Value,
        b: &Value,
        negated: bool,
    ) -> Result<(Value, Vec<Index>), &'static str> {
        let (a, b, by) = match (times(a), times(b)) {
            // A constant beyond one might make an infinity of the number that the extremum starts from.
            (Some((a, x)), Some((b, y)))
                if x == y && constant(x).is_some_and(|it| (0.0..=1.0).contains(&it)) =>
            {
                (a, b, Some(x))
            }
            _ => (a, b, None),
        };
        let is_first = !self.depends_directly(b);
        let (extremum, term) = if is_first { (a, b) } else { (b, a) };
        if (self.reducer.op == BinaryOp::Max) == (is_first != negated) {
            return Err(
                "its exponents would be above zero, and might be too large before the extremum is complete",
            );
        }
        let (new, at) = self.own_load(extremum)?;
        self.expect_term(sum, term, &at)?;
        let old = previous(&new);
        let scaled = |it: Value| match by {
            Some(by) => Value::binary(BinaryOp::Mul, it, by.clone()),
            None => it,
        };
        let (a, b) = if is_first { (new, old) } else { (old, new) };
        Ok((Value::binary(BinaryOp::Sub, scaled(a), scaled(b)), at))
    }

    fn depends_directly(&self, value: &Value) -> bool {
        let mut found = false;
        value.each_load(&mut |it| found |= self.is_own(it));
        found
    }

    /// The extremum with casts around it, over the iterators of its own block, and the element that was read.
    fn own_load(&self, value: &Value) -> Result<(Value, Vec<Index>), &'static str> {
        match value {
            Value::Load(it) if self.is_own(it) => {
                Ok((Value::Load(self.reducer.place.clone()), it.indices.clone()))
            }
            Value::Cast(to, a) if to.is_float() => {
                let (inner, at) = self.own_load(a)?;
                Ok((Value::Cast(*to, inner.into()), at))
            }
            _ => Err("its exponent is no difference of a term and the extremum"),
        }
    }

    /// The value is a term of that element of the extremum, with casts around it.
    fn expect_term(&self, sum: &Block, value: &Value, at: &[Index]) -> Result<(), &'static str> {
        let other = "its exponents take the extremum from something else than the terms of it";
        let inverse = Inverse::of(self.func, self.block, &self.reducer.place.indices);
        let spatial = |var: &Name| if self.is_reduced(var) { None } else { inverse.at(var, at) };
        let mut reduced: Vec<(Name, Index)> = Vec::new();
        let pattern = self.reducer.term.subst(&spatial);
        let mut value = self.written_out(sum, value);
        while let (Value::Cast(to, a), true) = (&value, !matches!(pattern, Value::Cast(..))) {
            if !to.is_float() {
                return Err(other);
            }
            value = Value::clone(a);
        }
        let pattern = self.written_out(self.block, &pattern);
        if !unified(&pattern, &value, &|var| self.is_reduced(var), &mut reduced) {
            return Err(other);
        }
        let bound = |var: &Name| reduced.iter().find(|it| it.0 == *var).map(|it| it.1.clone());
        let mut bounds = Bounds::of_dims(self.func);
        sum.iters.iter().for_each(|it| bounds.insert(&it.var, &it.extent));
        if same(&pattern.subst(&bound), &value, &bounds) { Ok(()) } else { Err(other) }
    }

    fn is_reduced(&self, var: &Name) -> bool {
        self.block.find_iter(var).is_some_and(|it| it.kind == IterKind::Reduce)
    }

    /// A value in which reads of what depends on the extremum are written out.
    fn written_out(&self, sum: &Block, value: &Value) -> Value {
        value.map_loads(&mut |it| match self.definition(sum, it) {
            Ok(value) if self.dependent.contains(&it.buffer) => value,
            Ok(_) | Err(_) => Value::Load(it.clone()),
        })
    }

    /// What an element of a dependent buffer is, over the iterators of the block that reads it.
    fn definition(&self, reader: &Block, access: &Access) -> Result<Value, &'static str> {
        let writers = self.func.writers(&access.buffer);
        let [writer] = writers.as_slice() else { return Err("several blocks compute what it adds up") };
        let (Some(store), true) = (elementwise(writer), self.dependent.contains(&access.buffer)) else {
            return Err("what it adds up is no elementwise function of the extremum");
        };
        let inverse = Inverse::unique(self.func, writer, &store.place)
            .map_err(|_| "which element of what it adds up goes by which of the extremum does not follow")?;
        let mut bounds = Bounds::of_dims(self.func);
        reader.iters.iter().for_each(|it| bounds.insert(&it.var, &it.extent));
        let at = |index: &Index| bounds.simplify(&index.subst(&|var| inverse.at(var, &access.indices)));
        Ok(store.value.map_indices(&mut |it| at(it)))
    }
}

/// The old value where the new one stands.
fn previous(new: &Value) -> Value {
    let name = Name::new(PREVIOUS);
    new.map_loads(&mut |it| Value::Load(Access { buffer: name.clone(), ..it.clone() }))
}

/// The other factor of a product with a constant.
fn times(value: &Value) -> Option<(&Value, &Value)> {
    let Value::Binary(BinaryOp::Mul, a, b) = value else { return None };
    match (constant(a), constant(b)) {
        (_, Some(_)) => Some((a, b)),
        (Some(_), None) => Some((b, a)),
        (None, None) => None,
    }
}

/// About what a product of constants is.
fn constant(value: &Value) -> Option<f64> {
    match value {
        Value::Const(it) => Some(it.to_f64()),
        Value::Binary(BinaryOp::Mul, a, b) => Some(constant(a)? * constant(b)?),
        Value::Binary(BinaryOp::Div, a, b) => Some(constant(a)? / constant(b)?),
        Value::Unary(UnaryOp::Neg, a) => Some(-constant(a)?),
        _ => None,
    }
}

/// The one store of a block that neither reduces nor updates.
pub(crate) fn elementwise(block: &Block) -> Option<&Store> {
    let Stmt::Store(store) = &block.body else { return None };
    let reduces = block.init.is_some() || block.iters.iter().any(|it| it.kind == IterKind::Reduce);
    let mut own = false;
    store.value.each_load(&mut |it| own |= it.buffer == store.place.buffer);
    (!reduces && !own).then_some(store)
}

/// Whether a condition says which sum it is, and nothing of its terms.
fn is_spatial(sum: &Block, condition: &Less) -> bool {
    let is_term = |var: &Name| sum.find_iter(var).is_some_and(|it| it.kind == IterKind::Reduce);
    !condition.lhs.any_var(&is_term) && !condition.rhs.any_var(&is_term)
}

fn product(a: Scaling, b: Scaling) -> Result<Scaling, &'static str> {
    match (a, b) {
        (Scaling::Zero, _) | (_, Scaling::Zero) => Ok(Scaling::Zero),
        (Scaling::Constant, it) | (it, Scaling::Constant) => Ok(it),
        (Scaling::By(a), Scaling::By(b)) if a.at == b.at => {
            let (factor, when) =
                (Value::binary(BinaryOp::Mul, a.factor, b.factor), [a.when, b.when].concat());
            Ok(Scaling::By(Rescale { factor, at: a.at, when }))
        }
        (Scaling::By(_), Scaling::By(_)) => Err("it goes by several elements of the extremum"),
    }
}

fn alike(a: Scaling, b: Scaling) -> Result<Scaling, &'static str> {
    match (a, b) {
        (Scaling::Zero, it) | (it, Scaling::Zero) => Ok(it),
        (a, b) if a == b => Ok(a),
        _ => Err("parts of what it adds up go by the extremum in different ways"),
    }
}

/// Whether a pattern is the value for some indices in the place of its variables, which are noted.
fn unified(
    pattern: &Value,
    value: &Value,
    is_free: &dyn Fn(&Name) -> bool,
    found: &mut Vec<(Name, Index)>,
) -> bool {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    pattern.each_index(&mut |it| left.push(it));
    value.each_index(&mut |it| right.push(it));
    for (a, b) in left.iter().zip(&right) {
        if let Some(var) = a.as_var().filter(|it| is_free(it))
            && !found.iter().any(|it| it.0 == *var)
        {
            found.push((var.clone(), (*b).clone()));
        }
    }
    left.len() == right.len()
}

/// Whether two values are written alike, but for how their indices are.
fn same(a: &Value, b: &Value, bounds: &Bounds) -> bool {
    let normal = |it: &Value| it.map_indices(&mut |index| bounds.simplify(index));
    normal(a) == normal(b)
}

/// What an extremum may start from so that its difference to itself is a number: the least or the largest finite one in
/// place of an infinity.
pub(crate) fn finite_start(start: Literal) -> Literal {
    let largest = |dtype: DType| Literal::from_f64(dtype, dtype.largest_finite());
    match start.to_f64() {
        it if it == f64::NEG_INFINITY => Literal::from_f64(start.dtype, -largest(start.dtype).to_f64()),
        it if it == f64::INFINITY => largest(start.dtype),
        _ => start,
    }
}
