//! Which iteration of a block an access belongs to: subscripts solved for the iterators in them.
//!
//! A subscript is read as a number written in mixed radix, such as `i*8 + j` with `j < 8`, and a quotient or remainder as a
//! digit of what is divided. So the value of a subscript gives those of its digits, and all digits of an iterator (or
//! of a sum of iterators, as where several dimensions are flattened and cut up again) give that iterator. A digit
//! that no subscript has is free: any value of it leads to the same place.
//!
//! How a solution was found proves nothing. It is kept only where putting the subscripts into it gives the iterator back.

use ir::{Access, Block, Func, Index, IndexKind, Name, arith::Bounds};

use crate::BlockError;

/// The iterators of a block, each over the subscripts of a place.
pub(crate) struct Inverse {
    iters: Vec<(Name, Index)>,
    free: Vec<Free>,
}

/// A digit that the subscripts do not tell.
struct Free {
    /// What solutions call it.
    name: Name,
    /// How many values it may have.
    extent: Index,
    /// What it is, over the iterators.
    meaning: Index,
}

impl Inverse {
    /// Solves subscripts over the iterators of a block for as many of them as possible.
    pub(crate) fn of(func: &Func, block: &Block, subscripts: &[Index]) -> Inverse {
        let mut bounds = Bounds::of_dims(func);
        block.iters.iter().for_each(|it| bounds.insert(&it.var, &it.extent));
        let mut solver = Solver { block, bounds, found: vec![], digits: vec![], free: vec![] };
        for (at, subscript) in subscripts.iter().enumerate() {
            solver.equation(&solver.bounds.simplify(subscript), Index::var(&place(at)));
        }
        while solver.assemble(false) || solver.assemble(true) {}
        let Solver { bounds, mut found, free, .. } = solver;
        let back = |name: &Name| {
            let place = (0..subscripts.len()).find(|at| place(*at) == *name).map(|at| subscripts[at].clone());
            place.or_else(|| free.iter().find(|it| it.name == *name).map(|it| it.meaning.clone()))
        };
        let known = |name: &Name| back(name).is_some() || func.dims.contains(name);
        found.retain(|(var, it)| {
            !it.any_var(&|name| !known(name)) && bounds.equal(&it.subst(&back), &Index::var(var))
        });
        // An iterator of one iteration is known without being looked for.
        for it in block.iters.iter().filter(|it| it.extent.as_int() == Some(1)) {
            if !found.iter().any(|(var, _)| *var == it.var) {
                found.push((it.var.clone(), Index::int(0)));
            }
        }
        Inverse { iters: found, free }
    }

    /// As [`Inverse::of`] the subscripts of an access, each place of which must belong to one iteration at most.
    pub(crate) fn unique(func: &Func, block: &Block, access: &Access) -> Result<Inverse, BlockError> {
        let inverse = Inverse::of(func, block, &access.indices);
        if block.iters.iter().all(|it| inverse.tells(&it.var)) {
            return Ok(inverse);
        }
        Err(BlockError::NotElementwise { block: block.name.clone(), buffer: access.buffer.clone() })
    }

    /// Whether the subscripts determine an iterator.
    pub(crate) fn tells(&self, iter: &Name) -> bool {
        let is_free = |name: &Name| self.free.iter().any(|it| it.name == *name);
        self.iters.iter().any(|(it, index)| it == iter && !index.any_var(&is_free))
    }

    /// The value of an iterator at a place, over the free digits as well; `None` if the subscripts do not tell.
    pub(crate) fn at(&self, iter: &Name, subscripts: &[Index]) -> Option<Index> {
        let (_, found) = self.iters.iter().find(|(it, _)| it == iter)?;
        Some(found.subst(&|name| {
            let mut places = subscripts.iter().enumerate();
            places.find(|(at, _)| place(*at) == *name).map(|(_, it)| it.clone())
        }))
    }

    /// The free digits, and how many values each may have.
    pub(crate) fn free(&self) -> impl Iterator<Item = (&Name, &Index)> {
        self.free.iter().map(|it| (&it.name, &it.extent))
    }
}

/// What a solution calls a subscript. No program has a name with a dot.
fn place(at: usize) -> Name {
    Name::new(format!("place.{at}"))
}

/// `(of floordiv lower) mod extent`, without the `mod` where there is no extent, and its value.
struct Digit {
    of: Index,
    lower: Index,
    extent: Option<Index>,
    value: Index,
}

struct Solver<'a> {
    block: &'a Block,
    bounds: Bounds,
    found: Vec<(Name, Index)>,
    digits: Vec<Digit>,
    free: Vec<Free>,
}

impl Solver<'_> {
    fn has_iterator(&self, index: &Index) -> bool {
        index.any_var(&|name| self.block.find_iter(name).is_some())
    }

    /// Takes into account that an expression has a value.
    fn equation(&mut self, expr: &Index, value: Index) {
        match expr.kind() {
            IndexKind::Var(name) => {
                if self.has_iterator(expr) && !self.found.iter().any(|(it, _)| it == name) {
                    self.found.push((name.clone(), value));
                }
            }
            IndexKind::Add(..) | IndexKind::Mul(..) => self.sum(expr, &value),
            IndexKind::FloorDiv(..) | IndexKind::FloorMod(..) if self.has_iterator(expr) => {
                let (of, lower, extent) = digit(expr);
                self.digits.push(Digit { of, lower, extent, value });
            }
            IndexKind::FloorDiv(..)
            | IndexKind::FloorMod(..)
            | IndexKind::Int(_)
            | IndexKind::Min(..)
            | IndexKind::Max(..)
            | IndexKind::Xor(..)
            | IndexKind::Element(..) => {}
        }
    }

    /// Reads the value of a sum as a number whose digits are its terms.
    fn sum(&mut self, sum: &Index, value: &Index) {
        let (mut terms, mut constant) = (Vec::new(), Index::int(0));
        self.terms(sum, &Index::int(1), &mut terms, &mut constant);
        // A digit that counts downwards is one that counts upwards, seen from its other end.
        let mut upward = Vec::new();
        for (scale, term) in terms {
            let falls = scale.as_int().is_some_and(|it| it < 0);
            let Some(last) = (if falls { self.last(&term) } else { Some(Index::int(0)) }) else { return };
            constant = constant + &last * &scale;
            upward.push(if falls { (scale.negated(), term, Some(last)) } else { (scale, term, None) });
        }
        let mut rest = self.bounds.simplify(&(value - &constant));
        while !upward.is_empty() {
            let greatest = upward
                .iter()
                .position(|(scale, ..)| upward.iter().all(|(other, ..)| self.bounds.at_most(other, scale)));
            let Some(greatest) = greatest else { return };
            let (scale, term, last) = upward.remove(greatest);
            let digit = rest.floor_div(&scale);
            rest = rest.floor_mod(&scale);
            self.equation(&term, last.map_or_else(|| digit.clone(), |last| last - digit.clone()));
        }
    }

    /// The scaled terms of a sum that have iterators, and the sum of the others.
    fn terms(&self, sum: &Index, scale: &Index, out: &mut Vec<(Index, Index)>, constant: &mut Index) {
        match sum.kind() {
            _ if !self.has_iterator(sum) => *constant = &*constant + &(sum * scale),
            IndexKind::Add(a, b) => {
                self.terms(a, scale, out, constant);
                self.terms(b, scale, out, constant);
            }
            IndexKind::Mul(a, b) if !self.has_iterator(a) => self.terms(b, &(scale * a), out, constant),
            IndexKind::Mul(a, b) if !self.has_iterator(b) => self.terms(a, &(scale * b), out, constant),
            _ => out.push((scale.clone(), sum.clone())),
        }
    }

    /// The greatest value of a term that is never negative.
    fn last(&self, term: &Index) -> Option<Index> {
        if let Some(extent) = term.as_var().and_then(|it| self.bounds.extent(it)) {
            return Some(extent - 1);
        }
        match self.bounds.interval(term) {
            (Some(0..), Some(most)) => Some(Index::int(most)),
            _ => None,
        }
    }

    /// Puts together the digits of one thing of which they are known; of one with free digits only if that is allowed.
    /// Whether there was one.
    fn assemble(&mut self, free: bool) -> bool {
        for at in 0..self.digits.len() {
            let of = self.digits[at].of.clone();
            let Some((value, filled)) = self.assembled(&of, free) else { continue };
            self.digits.retain(|it| it.of != of);
            self.free.extend(filled);
            self.equation(&of, value);
            return true;
        }
        false
    }

    /// What has these digits, and the free ones among them.
    fn assembled(&self, of: &Index, may_fill: bool) -> Option<(Index, Vec<Free>)> {
        let count = self.last(of)? + 1;
        let digits = || self.digits.iter().filter(|it| it.of == *of);
        let (mut value, mut reached, mut filled) = (Index::int(0), Index::int(1), Vec::new());
        // Between two digits, before the first and after the last there is one free digit at most.
        for _ in 0..2 * self.digits.len() + 2 {
            if self.bounds.at_most(&count, &reached) {
                break;
            }
            let here = digits().find(|it| self.bounds.equal(&it.lower, &reached));
            let (digit, extent) = if let Some(it) = here {
                (it.value.clone(), it.extent.clone())
            } else {
                let digit = self.free_digit(of, &count, &reached, filled.len())?;
                let (name, extent) = (Index::var(&digit.name), digit.extent.clone());
                filled.push(digit);
                (name, Some(extent))
            };
            value = value + digit * reached.clone();
            match extent {
                Some(extent) => reached = self.bounds.simplify(&(reached * extent)),
                None => break,
            }
        }
        (may_fill || filled.is_empty()).then_some((value, filled))
    }

    /// The digit between what is reached and the next that is known, or the end.
    fn free_digit(&self, of: &Index, count: &Index, reached: &Index, more: usize) -> Option<Free> {
        let mut lowers = self.digits.iter().filter(|it| it.of == *of).map(|it| &it.lower);
        let above = lowers.find(|it| !self.bounds.at_most(it, reached)).unwrap_or(count);
        let extent = self.bounds.simplify(&above.ceil_div(reached));
        let name = Name::new(format!("free.{}", self.free.len() + more));
        let meaning = of.floor_div(reached).floor_mod(&extent);
        Some(Free { name, extent, meaning }).filter(|it| it.extent.as_int() != Some(1))
    }
}

/// What a quotient or remainder is a digit of, where that digit begins, and how many values it has if it has an end.
fn digit(index: &Index) -> (Index, Index, Option<Index>) {
    match index.kind() {
        IndexKind::FloorDiv(a, by) => {
            let (of, lower, extent) = digit(a);
            match extent {
                None => (of, &lower * by, None),
                // `(v mod m) floordiv d` is `(v floordiv d) mod (m/d)` where `d` divides `m`.
                Some(extent) => match (extent.as_int(), by.as_int()) {
                    (Some(m), Some(d)) if d > 0 && m % d == 0 => (of, &lower * by, Some(Index::int(m / d))),
                    _ => (a.clone(), by.clone(), None),
                },
            }
        }
        IndexKind::FloorMod(a, by) => match digit(a) {
            (of, lower, None) => (of, lower, Some(by.clone())),
            (_, _, Some(_)) => (a.clone(), Index::int(1), Some(by.clone())),
        },
        IndexKind::Int(_)
        | IndexKind::Var(_)
        | IndexKind::Add(..)
        | IndexKind::Mul(..)
        | IndexKind::Min(..)
        | IndexKind::Max(..)
        | IndexKind::Xor(..)
        | IndexKind::Element(..) => (index.clone(), Index::int(1), None),
    }
}
