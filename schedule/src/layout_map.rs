//! Where each element of a buffer goes: the index maps of `transform_layout`.
//!
//! A map says for the subscripts of an element what its new ones are: `(i, k) -> (k floordiv 8, i, k mod 8)`. It is
//! accepted if it is one to one from the elements of the buffer onto those of the new shape. That no two elements come
//! to one place is proved by reading the new subscripts as mixed-radix numbers, or else tried; that no place is left
//! follows, for then there are as many of them as elements.

use std::collections::BTreeSet;

use ir::{Block, Func, Index, IndexKind, Iter, IterKind, Name, Stmt, arith::Bounds, text::ParseError};

use crate::{LayoutError, check::affine::tells_apart};

/// With more elements than this, a map that is not proved to tell them apart is refused.
const MOST_TRIED: i64 = 1 << 20;
/// For how many elements expressions are computed at a time.
const AT_ONCE: usize = 4096;

/// A map from subscripts to subscripts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LayoutMap {
    /// What the map calls the old subscripts.
    inputs: Vec<Name>,
    /// The new subscripts over those.
    outputs: Vec<Index>,
}

impl LayoutMap {
    /// Reads `(i, k) -> (k floordiv 8, i, k mod 8)`; `buffer` is who it is for.
    pub(crate) fn parse(text: &str, buffer: &Name) -> Result<LayoutMap, LayoutError> {
        let wrong = |message: String| LayoutError::MapSyntax { name: buffer.clone(), message };
        let sides = text.split_once("->").ok_or_else(|| wrong("there is no `->`".to_owned()))?;
        let inside = |side: &str| {
            let inner = side.trim().strip_prefix('(').and_then(|it| it.strip_suffix(')'));
            inner.map(str::to_owned).ok_or_else(|| wrong(format!("`{}` is in no parentheses", side.trim())))
        };
        let (left, right) = (inside(sides.0)?, inside(sides.1)?);
        let mut inputs: Vec<Name> = Vec::new();
        for word in items(&left) {
            let name = Name::from(word);
            if !name.is_valid() || ir::is_reserved(word) {
                return Err(wrong(format!("`{word}` is no name")));
            }
            if inputs.contains(&name) {
                return Err(wrong(format!("`{word}` stands twice")));
            }
            inputs.push(name);
        }
        let mut outputs: Vec<Index> = Vec::new();
        for word in items(&right) {
            let read = word.parse::<Index>();
            let index = read.map_err(|err: ParseError| wrong(format!("`{word}`: {}", err.kind)))?;
            if let Some(name) = index.vars().into_iter().find(|it| !inputs.contains(it)) {
                return Err(wrong(format!("`{word}` speaks of `{name}`, which is no subscript")));
            }
            outputs.push(index);
        }
        Ok(LayoutMap { inputs, outputs })
    }

    /// The map that puts dimensions in another order; `None` where that does not name each of them once.
    pub(crate) fn permutation(order: &[usize], rank: usize, func: &Func) -> Option<LayoutMap> {
        let distinct: BTreeSet<_> = order.iter().copied().filter(|it| *it < rank).collect();
        if distinct.len() != rank || order.len() != rank {
            return None;
        }
        let fresh = |at: usize| Name::fresh(&format!("old_{at}"), |it| func.dims.contains(it));
        let inputs: Vec<_> = (0..rank).map(fresh).collect();
        let outputs = order.iter().map(|at| Index::var(&inputs[*at])).collect();
        Some(LayoutMap { inputs, outputs })
    }

    /// The shape of a buffer after the map, if it is one to one.
    pub(crate) fn shape(&self, func: &Func, name: &Name, old: &[Index]) -> Result<Vec<Index>, LayoutError> {
        if self.inputs.len() != old.len() {
            let (rank, given) = (old.len(), self.inputs.len());
            return Err(LayoutError::MapRank { name: name.clone(), rank, given });
        }
        if let Some(var) = self.inputs.iter().find(|it| func.dims.contains(it)) {
            let message = format!("`{var}` is a dimension of the program, and no name for a subscript");
            return Err(LayoutError::MapSyntax { name: name.clone(), message });
        }
        let mut bounds = Bounds::of_dims(func);
        self.inputs.iter().zip(old).for_each(|(var, extent)| bounds.insert(var, extent));
        let mut shape = Vec::new();
        for index in &self.outputs {
            shape.push(match self.passed(index) {
                Some(at) => old[at].clone(),
                None => self.extent(index, name, old, &bounds)?,
            });
        }
        self.expect_onto(name, old, &shape)?;
        self.expect_one_to_one(name, old, &bounds)?;
        Ok(shape)
    }

    /// The new subscripts of an access.
    pub(crate) fn apply(&self, old: &[Index], bounds: &Bounds) -> Vec<Index> {
        let of = |name: &Name| {
            let at = self.inputs.iter().position(|it| it == name)?;
            old.get(at).cloned()
        };
        let new = |it: &Index| match it.as_var().and_then(of) {
            Some(old) => old,
            None => bounds.simplify(&it.subst(&of)),
        };
        self.outputs.iter().map(new).collect()
    }

    /// The old subscript that a new one is, where no other speaks of that.
    fn passed(&self, index: &Index) -> Option<usize> {
        let var = index.as_var()?;
        let uses = self.outputs.iter().filter(|it| it.any_var(&|name| name == var)).count();
        self.inputs.iter().position(|it| it == var).filter(|_| uses == 1)
    }

    /// The subscripts that are not passed on as they are, and the new ones that they make.
    fn mixed(&self) -> (Vec<usize>, Vec<&Index>) {
        let passed: BTreeSet<_> = self.outputs.iter().filter_map(|it| self.passed(it)).collect();
        let inputs = (0..self.inputs.len()).filter(|at| !passed.contains(at)).collect();
        (inputs, self.outputs.iter().filter(|it| self.passed(it).is_none()).collect())
    }

    fn extent(
        &self,
        index: &Index,
        name: &Name,
        old: &[Index],
        bounds: &Bounds,
    ) -> Result<Index, LayoutError> {
        let symbolic = |var: &&Name| {
            let at = self.inputs.iter().position(|it| it == *var);
            at.is_some_and(|at| old[at].as_int().is_none())
        };
        if let Some(var) = index.vars().iter().find(symbolic) {
            let (name, var, index) = (name.clone(), var.clone(), index.clone());
            return Err(LayoutError::MapSymbolic { name, var, index });
        }
        match bounds.interval(index) {
            (Some(0..), Some(most)) if most < i64::MAX => Ok(Index::int(most + 1)),
            _ => Err(LayoutError::MapRange { name: name.clone(), index: index.clone() }),
        }
    }

    /// Refuses a shape with more or fewer places than there are elements.
    fn expect_onto(&self, name: &Name, old: &[Index], new: &[Index]) -> Result<(), LayoutError> {
        let (inputs, _) = self.mixed();
        if let Some(at) = inputs.iter().find(|at| old[**at].as_int().is_none()) {
            return Err(LayoutError::MapForgets { name: name.clone(), var: self.inputs[*at].clone() });
        }
        let product =
            |all: Vec<&Index>| all.iter().try_fold(1i64, |product, it| product.checked_mul(it.as_int()?));
        let elements = product(inputs.iter().map(|at| &old[*at]).collect());
        let kept = self.outputs.iter().zip(new).filter(|it| self.passed(it.0).is_none());
        let places = product(kept.map(|it| it.1).collect());
        if elements.is_some() && elements == places {
            return Ok(());
        }
        Err(LayoutError::MapNotOnto { name: name.clone(), elements, places })
    }

    fn expect_one_to_one(&self, name: &Name, old: &[Index], bounds: &Bounds) -> Result<(), LayoutError> {
        let (inputs, outputs) = self.mixed();
        let iters = outputs.iter().enumerate().map(|(at, index)| Iter {
            var: Name::fresh(&format!("new_{at}"), |it| self.inputs.contains(it)),
            extent: Index::int(1),
            kind: IterKind::Spatial,
            binding: (*index).clone(),
        });
        let block = Block {
            name: name.clone(),
            iters: iters.collect(),
            guards: vec![],
            attrs: ir::BlockAttrs::default(),
            init: None,
            body: Stmt::Seq(vec![]),
        };
        if inputs.iter().all(|at| tells_apart(&block, &self.inputs[*at], bounds, &|_| true)) {
            return Ok(());
        }
        let extents: Option<Vec<i64>> = inputs.iter().map(|at| old[*at].as_int()).collect();
        let count = |all: &[i64]| all.iter().try_fold(1i64, |product, it| product.checked_mul(*it));
        let counted = extents.and_then(|it| Some((count(&it)?, it)));
        let Some((count, extents)) = counted.filter(|it| it.0 <= MOST_TRIED) else {
            return Err(LayoutError::MapUnproved { name: name.clone(), limit: MOST_TRIED });
        };
        let points = Points { names: inputs.iter().map(|at| &self.inputs[*at]).collect(), extents };
        match points.meeting(&outputs, count, bounds) {
            Met::Never => Ok(()),
            Met::NoValue => Err(LayoutError::MapRange { name: name.clone(), index: outputs[0].clone() }),
            Met::At(first, second) => {
                let (first, second) = (points.digits(first), points.digits(second));
                Err(LayoutError::MapNotOneToOne { name: name.clone(), first, second })
            }
        }
    }
}

/// All elements of a buffer, by their number: what its subscripts are called, and how many values each has.
struct Points<'a> {
    names: Vec<&'a Name>,
    extents: Vec<i64>,
}

/// Whether two elements come to one place.
enum Met {
    Never,
    /// These two do.
    At(i64, i64),
    /// A place could not be computed.
    NoValue,
}

impl Points<'_> {
    /// Looks for two elements of the first `count` with the same values of all `outputs`: marks the place of each.
    ///
    /// There are as many places as elements. Expressions are computed for many elements at a time, so that going through
    /// [`MOST_TRIED`] of them takes milliseconds.
    fn meeting(&self, outputs: &[&Index], count: i64, bounds: &Bounds) -> Met {
        let extents: Option<Vec<i64>> =
            outputs.iter().map(|it| bounds.interval(it).1?.checked_add(1)).collect();
        let Some(extents) = extents else { return Met::NoValue };
        let mut taken = vec![false; usize::try_from(count).expect("extents are at least 1")];
        for start in (0..count).step_by(AT_ONCE) {
            let Some(places) = self.places(outputs, &extents, start, count) else { return Met::NoValue };
            for (n, place) in (start..).zip(places) {
                let Some(taken) = usize::try_from(place).ok().and_then(|it| taken.get_mut(it)) else {
                    return Met::NoValue;
                };
                if std::mem::replace(taken, true) {
                    return self
                        .first_at(place, outputs, &extents, n)
                        .map_or(Met::NoValue, |it| Met::At(it, n));
                }
            }
        }
        Met::Never
    }

    /// The first element before `end` at a place.
    fn first_at(&self, place: i64, outputs: &[&Index], extents: &[i64], end: i64) -> Option<i64> {
        (0..end).step_by(AT_ONCE).find_map(|start| {
            let places = self.places(outputs, extents, start, end)?;
            (start..).zip(places).find(|(_, it)| *it == place).map(|(n, _)| n)
        })
    }

    /// The numbers of the places of the elements from `start` on, some at once and none from `end` on.
    fn places(&self, outputs: &[&Index], extents: &[i64], start: i64, end: i64) -> Option<Vec<i64>> {
        let elements: Vec<i64> = (start..end).take(AT_ONCE).collect();
        let (mut columns, mut below) = (Vec::new(), 1);
        for extent in self.extents.iter().rev() {
            columns.push(elements.iter().map(|n| n / below % extent).collect::<Vec<i64>>());
            below *= extent;
        }
        columns.reverse();
        let mut places = vec![0; elements.len()];
        for (index, extent) in outputs.iter().zip(extents) {
            for (place, value) in places.iter_mut().zip(self.values(index, &columns, elements.len())?) {
                *place = i64::checked_mul(*place, *extent)?.checked_add(value)?;
            }
        }
        Some(places)
    }

    /// The values of an expression for some elements, of which the subscripts stand in columns.
    fn values(&self, index: &Index, columns: &[Vec<i64>], rows: usize) -> Option<Vec<i64>> {
        let both = |a: &Index, b: &Index, f: &dyn Fn(i64, i64) -> Option<i64>| {
            let (a, b) = (self.values(a, columns, rows)?, self.values(b, columns, rows)?);
            a.into_iter().zip(b).map(|(a, b)| f(a, b)).collect()
        };
        match index.kind() {
            IndexKind::Int(value) => Some(vec![value; rows]),
            IndexKind::Var(name) => {
                let at = self.names.iter().position(|it| *it == name)?;
                columns.get(at).cloned()
            }
            IndexKind::Add(a, b) => both(a, b, &i64::checked_add),
            IndexKind::Mul(a, b) => both(a, b, &i64::checked_mul),
            IndexKind::FloorDiv(a, b) => {
                both(a, b, &|a, b| if b > 0 { a.checked_div_euclid(b) } else { None })
            }
            IndexKind::FloorMod(a, b) => {
                both(a, b, &|a, b| if b > 0 { a.checked_rem_euclid(b) } else { None })
            }
            IndexKind::Min(a, b) => both(a, b, &|a, b| Some(a.min(b))),
            IndexKind::Max(a, b) => both(a, b, &|a, b| Some(a.max(b))),
            IndexKind::Xor(a, b) => both(a, b, &|a, b| Some(a ^ b)),
            IndexKind::Element(..) => None,
        }
    }

    /// The subscripts of an element, the last fastest.
    fn digits(&self, mut number: i64) -> Vec<i64> {
        let mut out = vec![0; self.extents.len()];
        for (digit, extent) in out.iter_mut().zip(&self.extents).rev() {
            *digit = number % extent;
            number /= extent;
        }
        out
    }
}

/// The parts between commas that are in no parentheses, without blanks around them.
fn items(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut out) = (0i32, 0, Vec::new());
    for (at, sign) in text.char_indices() {
        match sign {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() || !out.is_empty() {
        out.push(last);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(map: &str, shape: &str) -> Result<String, String> {
        let text = format!("func f(n)\n  out C: f32[{shape}]\n\n  block C()\n    C[] = 0.0f32\n");
        let func = ir::text::parse(&text).unwrap();
        let name = Name::new("C");
        let map = LayoutMap::parse(map, &name).map_err(|err| err.to_string())?;
        let new = map.shape(&func, &name, &func.buffers["C"].shape).map_err(|err| err.to_string())?;
        Ok(new.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn maps_that_are_one_to_one() {
        for (map, old, new) in [
            ("(i, k) -> (k, i)", "6, 8", "8, 6"),
            ("(i, k) -> (k floordiv 8, i, k mod 8)", "64, 32", "4, 64, 8"),
            ("(i, k) -> (k floordiv 8, i, k mod 8)", "n, 32", "4, n, 8"),
            ("(i, k) -> (i*32 + k)", "64, 32", "2048"),
            ("(x) -> (x floordiv 12, x floordiv 4 mod 3, x mod 4)", "4096*12", "4096, 3, 4"),
            ("(i, k) -> (i, xor(k floordiv 8, i mod 4)*8 + k mod 8)", "64, 32", "64, 32"),
            ("(i, k) -> (i, (k + i) mod 32)", "64, 32", "64, 32"),
            ("() -> ()", "", ""),
            ("(i, k) -> (k + i*8, 0)", "8, 8", "64, 1"),
            ("(a, b) -> ((a + b*b) mod 1000, b)", "1000, 1000", "1000, 1000"),
            ("(i, k) -> (xor(i, k mod 4), xor(k, xor(i, k mod 4)*4 mod 1024))", "512, 1024", "512, 1024"),
        ] {
            assert_eq!(shape(map, old), Ok(new.to_owned()), "{map}");
        }
    }

    #[test]
    fn maps_that_are_not() {
        let refused = |map: &str, old: &str| shape(map, old).unwrap_err();
        insta::assert_snapshot!(
            [
                refused("(i, k) => (k, i)", "6, 8"),
                refused("i, k -> (k, i)", "6, 8"),
                refused("(i, i) -> (i)", "6, 8"),
                refused("(i, 3) -> (i)", "6, 8"),
                refused("(i, k) -> (i, j)", "6, 8"),
                refused("(n, k) -> (n, k)", "6, 8"),
                refused("(i, k) -> (i, k +)", "6, 8"),
                refused("(i, k,) -> (i, k)", "6, 8"),
                refused("(i) -> (i)", "6, 8"),
                refused("(i, k) -> (i)", "6, 8"),
                refused("(i, k) -> (i, k, k mod 2)", "6, 8"),
                refused("(i, k) -> (i - k + 7, k)", "6, 8"),
                refused("(i, k) -> (k floordiv 8, i, k mod 8)", "6, 12"),
                refused("(i, k) -> (k floordiv 8, i, k mod 8)", "6, n"),
                refused("(i, k) -> (k)", "n, 6"),
                refused("(i, k) -> (i - 9, k)", "6, 8"),
                refused("(i, k) -> (i, k floordiv 0)", "6, 8"),
                refused("(i, k) -> (i, (k*2 + i mod 2) mod 8)", "6, 8"),
                refused("(i, k) -> (i, xor(k, i mod 8))", "4096, 4096"),
                refused("(a, b) -> ((a + b*b) mod 1000, (a*a + b) mod 1000)", "1000, 1000"),
            ]
            .join("\n")
        );
    }
}
