//! Indices and conditions of expressions as the IR has them.

use ir::{Index, IndexKind, Less, Name};

use super::{
    error::{Problem, WorkloadError},
    expr::{Expr, Node, Op, binary_of},
    form::{Form, ParamKind},
};

/// Whether an expression computes with axes and sizes alone, so that a conversion makes a value of it.
pub(super) fn is_index(form: &Form, expr: &Expr) -> bool {
    names_indices(form, expr, false) == Some(true)
}

/// Whether axes or sizes occur in an index, outside of subscripts; `None` for what computes with values.
///
/// Where `elements` is true, elements of inputs that say what they are below are indices, too.
fn names_indices(form: &Form, expr: &Expr, elements: bool) -> Option<bool> {
    let all = |of: &[Expr]| {
        of.iter().try_fold(false, |names, it| Some(names_indices(form, it, elements)? || names))
    };
    match &expr.node {
        Node::Int(_) => Some(false),
        Node::Name(name) if form.axes.contains_key(name) => Some(true),
        Node::Name(name) => match form.params.get(name)?.it {
            ParamKind::Size { .. } | ParamKind::Int { .. } => Some(true),
            ParamKind::Number { .. } | ParamKind::Type { .. } | ParamKind::Word { .. } => None,
        },
        Node::Access(tensor, _) => {
            let is_table = elements && form.tensors.get(tensor).is_some_and(|it| it.it.below.is_some());
            is_table.then_some(false)
        }
        Node::Float(_) => None,
        Node::Neg(a) => names_indices(form, a, elements),
        Node::Op(_, ab) => all(&ab[..]),
        Node::Call(name, args) => binary_of(name).filter(|it| it.is_extremum()).and_then(|_| all(args)),
    }
}

/// Whether a comparison is of indices: of axes and sizes, perhaps with a number.
pub(super) fn compares_indices(form: &Form, ab: &[Expr; 2]) -> bool {
    compares(form, ab, false)
}

fn compares(form: &Form, [a, b]: &[Expr; 2], elements: bool) -> bool {
    let names = |it| names_indices(form, it, elements);
    names(a).zip(names(b)).is_some_and(|(a, b)| a || b)
}

/// Whether an expression is a condition on indices alone, as `select` takes it: `j < length[i]` is one where `length` says what
/// its elements are below.
pub(super) fn is_condition(form: &Form, expr: &Expr) -> bool {
    match &expr.node {
        Node::Op(Op::And, ab) => ab.iter().all(|it| is_condition(form, it)),
        Node::Op(Op::NotEqual, _) => false,
        Node::Op(op, ab) => op.compares() && compares(form, ab, true),
        _ => false,
    }
}

/// What a leaf of an index stands for, a name or an element of a table; `None` for what is unknown.
pub(super) type Leaf<'a> = &'a dyn Fn(&Expr) -> Result<Option<Index>, WorkloadError>;

/// An index whose leaves `scope` knows. The expression was checked to be an index.
pub(super) fn index(expr: &Expr, scope: Leaf<'_>) -> Result<Index, WorkloadError> {
    let refuse = |what| Err(WorkloadError::new(Problem::NotAnIndex(what), expr.span.clone()));
    match &expr.node {
        Node::Int(it) => Ok(Index::int(*it)),
        Node::Name(_) | Node::Access(..) => scope(expr)?.map_or_else(|| refuse("this"), Ok),
        Node::Neg(a) => Ok(Index::int(0) - index(a, scope)?),
        Node::Op(op, ab) => {
            let (a, b) = (index(&ab[0], scope)?, index(&ab[1], scope)?);
            if matches!(op, Op::FloorDiv | Op::Mod)
                && let Some(divisor) = b.as_int().filter(|it| *it < 1)
            {
                let (what, value) = ("the divisor".to_owned(), divisor.to_string());
                return Err(WorkloadError::new(Problem::BadSize { what, value }, ab[1].span.clone()));
            }
            match op {
                Op::Add => Ok(a + b),
                Op::Sub => Ok(a - b),
                Op::Mul => Ok(a * b),
                Op::FloorDiv => Ok(a.floor_div(&b)),
                Op::Mod => Ok(a.floor_mod(&b)),
                Op::Div => refuse("`/`"),
                _ if op.is_condition() => refuse("a condition"),
                _ => refuse("an operator on bits"),
            }
        }
        Node::Call(name, args) => match (name.as_str(), args.as_slice()) {
            ("min", [a, b]) => Ok(index(a, scope)?.minimum(&index(b, scope)?)),
            ("max", [a, b]) => Ok(index(a, scope)?.maximum(&index(b, scope)?)),
            _ => refuse("a function of values"),
        },
        Node::Float(_) => refuse("a value"),
    }
}

/// The conditions joined by `&&`, each as `lhs < rhs`.
pub(super) fn conditions(expr: &Expr, scope: Leaf<'_>, out: &mut Vec<Less>) -> Result<(), WorkloadError> {
    let Node::Op(op, ab) = &expr.node else {
        return Err(WorkloadError::new(Problem::NotACondition, expr.span.clone()));
    };
    if *op == Op::And {
        return ab.iter().try_for_each(|it| conditions(it, scope, out));
    }
    let (a, b) = (index(&ab[0], scope)?, index(&ab[1], scope)?);
    match op {
        Op::Less => out.push(Less::new(a, b)),
        Op::Greater => out.push(Less::new(b, a)),
        Op::LessEqual => out.push(at_most(a, b)),
        Op::GreaterEqual => out.push(at_most(b, a)),
        Op::Equal => out.extend([at_most(a.clone(), b.clone()), at_most(b, a)]),
        _ => return Err(WorkloadError::new(Problem::NotACondition, expr.span.clone())),
    }
    Ok(())
}

/// `a <= b` without an odd constant: `0 <= i + j - 1` is `0 < i + j`.
fn at_most(a: Index, b: Index) -> Less {
    match (a.as_int(), b.kind()) {
        (Some(low), IndexKind::Add(rest, by)) if let Some(by) = by.as_int() => {
            Less::new(Index::int(low) - by - 1, rest.clone())
        }
        (Some(_), _) => Less::new(a - 1, b),
        (None, _) => Less::new(a, b + 1),
    }
}

/// The least and the greatest value of an index whose variables run from zero; `None` where they are not known.
///
/// What 128 bits do not hold is rounded to the last number that they do.
pub(super) fn range(index: &Index, extent: &dyn Fn(&Name) -> Option<i64>) -> Option<(i128, i128)> {
    let both = |a, b| Some((range(a, extent)?, range(b, extent)?));
    match index.kind() {
        IndexKind::Int(it) => Some((i128::from(it), i128::from(it))),
        IndexKind::Var(name) => extent(name).map(|it| (0, i128::from(it) - 1)),
        IndexKind::Add(a, b) => {
            let ((a, b), (c, d)) = both(a, b)?;
            Some((a.saturating_add(c), b.saturating_add(d)))
        }
        IndexKind::Mul(a, b) => {
            let ((a, b), (c, d)) = both(a, b)?;
            let ends = [(a, c), (a, d), (b, c), (b, d)].map(|(a, b)| a.saturating_mul(b));
            Some((ends.into_iter().min()?, ends.into_iter().max()?))
        }
        IndexKind::FloorDiv(a, b) => {
            let ((low, high), by) = (range(a, extent)?, b.as_int().filter(|it| *it > 0)?);
            Some((low.div_euclid(by.into()), high.div_euclid(by.into())))
        }
        IndexKind::FloorMod(_, b) => b.as_int().filter(|it| *it > 0).map(|by| (0, i128::from(by) - 1)),
        IndexKind::Min(a, b) => {
            let ((a, b), (c, d)) = both(a, b)?;
            Some((a.min(c), b.min(d)))
        }
        IndexKind::Max(a, b) => {
            let ((a, b), (c, d)) = both(a, b)?;
            Some((a.max(c), b.max(d)))
        }
        IndexKind::Element(_, _, below) => range(below, extent).map(|(_, high)| (0, high.saturating_sub(1))),
        // The expressions of workloads have none.
        IndexKind::Xor(..) => None,
    }
}

/// Whether some value on the way to that of an index is more than 64 bits hold.
///
/// The ends of a range are reached where each variable occurs once; like the range itself, this may refuse an index where
/// one occurs twice.
pub(super) fn overflows(index: &Index, extent: &dyn Fn(&Name) -> Option<i64>) -> bool {
    let fits = |it: i128| i64::try_from(it).is_ok();
    if range(index, extent).is_some_and(|(low, high)| !fits(low) || !fits(high)) {
        return true;
    }
    match index.kind() {
        IndexKind::Int(_) | IndexKind::Var(_) => false,
        IndexKind::Add(a, b)
        | IndexKind::Mul(a, b)
        | IndexKind::FloorDiv(a, b)
        | IndexKind::FloorMod(a, b)
        | IndexKind::Min(a, b)
        | IndexKind::Max(a, b)
        | IndexKind::Xor(a, b)
        | IndexKind::Element(_, a, b) => overflows(a, extent) || overflows(b, extent),
    }
}
