//! Proofs that different threads (or blocks, or iterations) touch different elements.

use std::collections::BTreeSet;

use crate::{Index, IndexKind, Name, arith::Bounds, solve::all_simplified_and_recombined};

/// Two accesses to one buffer by two units of execution, and what the units have in common.
pub struct Disjointness<'a> {
    /// The subscripts of the one.
    pub a: &'a [Index],
    /// The subscripts of the other.
    pub b: &'a [Index],
    /// What is known of every variable on either side.
    pub bounds: &'a Bounds,
    /// The variables with the same value on both sides. All others take their values independently: thread axes,
    /// say, since the accesses are made by any two threads.
    pub is_common: &'a dyn Fn(&Name) -> bool,
}

impl Disjointness<'_> {
    /// The variables that must be equal on both sides for the accesses to meet in one element.
    ///
    /// In each dimension the difference of the two subscripts is a sum of `coefficient * difference of two terms` for
    /// the terms that both have alike, and a bounded rest; two terms whose coefficient exceeds all that the smaller
    /// ones and the rest can make up must be equal. Terms found equal drop out of the other dimensions, until nothing more is found.
    pub fn separated(&self) -> BTreeSet<Name> {
        let mut dims: Vec<_> = self.dimensions().iter().filter_map(|(a, b)| self.parted(a, b)).collect();
        let mut equal = BTreeSet::new();
        loop {
            let before = equal.len();
            for it in &dims {
                self.separate(it, &mut equal);
            }
            if equal.len() == before {
                break;
            }
            dims.extend(self.joined(&equal).iter().filter_map(|it| self.parted(it, it)));
        }
        same(&equal).filter_map(|it| it.as_var().cloned()).collect()
    }

    /// Whether no element is touched by both accesses.
    pub fn disjoint(&self) -> bool {
        self.a.iter().zip(self.b).any(|(a, b)| {
            let slots = match (a.kind(), b.kind()) {
                (IndexKind::FloorMod(x, v), IndexKind::FloorMod(y, w)) if v == w => {
                    v.as_int().map(|v| (x, y, v))
                }
                _ => None,
            };
            if let Some((x, y, slots)) = slots {
                let same = |it: &Index| !it.any_var(&|name| !(self.is_common)(name));
                let distance = self.bounds.simplify(&(x - y)).as_int();
                return same(x) && same(y) && distance.is_some_and(|it| it % slots != 0);
            }
            self.rest(a, b, None).is_some_and(|(low, high)| low > 0 || high < 0)
        })
    }

    /// The dimensions, and what quotients and remainders in them make together: what is equal in each dimension is
    /// equal in any sum of them.
    fn dimensions(&self) -> Vec<(Index, Index)> {
        let dims: Vec<_> = self.a.iter().zip(self.b).collect();
        let is_common = |factor: &Index| !factor.any_var(&|name| !(self.is_common)(name));
        all_simplified_and_recombined(&dims, self.bounds, &is_common)
    }

    /// What is equal because its quotient and remainder are.
    fn joined(&self, equal: &BTreeSet<Match>) -> Vec<Index> {
        let divides_alike = |it: &&Index| match it.kind() {
            IndexKind::FloorDiv(_, by) => !by.any_var(&|name| !(self.is_common)(name)),
            _ => false,
        };
        let each = same(equal).filter(divides_alike);
        let each = each.flat_map(|high| same(equal).filter_map(move |low| join(high, low)));
        each.filter(|it| !equal.contains(&(it.clone(), it.clone()))).collect()
    }

    /// What two equal sums say of their terms, whatever is found equal.
    fn parted(&self, a: &Index, b: &Index) -> Option<Parted> {
        let mut found = Vec::new();
        let (low, high) = self.rest(a, b, Some(&mut found))?;
        let (mut single, mut alike) = (Vec::new(), Vec::new());
        for (factor, it) in found {
            match self.span(&it.0) {
                Some(0) => single.push(it),
                span => alike.push(Alike { factor, span, it }),
            }
        }
        alike.sort_by_key(|it| std::cmp::Reverse(it.factor.abs()));
        Some(Parted { single, alike, slack: low.abs().max(high.abs()) })
    }

    fn separate(&self, parted: &Parted, equal: &mut BTreeSet<Match>) {
        // What has a single value is equal, and tells nothing of the others.
        equal.extend(parted.single.iter().cloned());
        let alike: Vec<&Alike> = parted.alike.iter().filter(|it| !equal.contains(&it.it)).collect();
        for (at, Alike { factor, it, .. }) in alike.iter().enumerate() {
            let exceeds = |reach: Option<i64>| reach.is_some_and(|it| factor.abs() > it + parted.slack);
            let smaller = &alike[at + 1..];
            let each = smaller.iter().map(|it| Some(it.factor.abs() * it.span?));
            if !exceeds(each.sum()) && !exceeds(self.reach(smaller)) {
                break;
            }
            equal.insert(it.clone());
        }
    }

    /// How far the sums of these terms can be apart, by what is known of the sums: a guard may say more of them than of
    /// each term.
    fn reach(&self, terms: &[&Alike]) -> Option<i64> {
        let sum = |side: fn(&Match) -> &Index| {
            let sum = terms.iter().fold(Index::int(0), |sum, it| sum + side(&it.it).clone() * it.factor);
            let (low, high) = self.bounds.interval(&sum);
            Some((low?, high?))
        };
        let ((low_a, high_a), (low_b, high_b)) = (sum(|it| &it.0)?, sum(|it| &it.1)?);
        Some(high_a.checked_sub(low_b)?.max(high_b.checked_sub(low_a)?))
    }

    /// The bounds of `a - b` without the terms that both have alike: common ones cancel, others go to `alike`.
    ///
    /// Besides equal terms, two loops of the same range are alike, those of a writing and of a reading nest, say; or two remainders, or a loop and a remainder.
    fn rest(&self, a: &Index, b: &Index, alike: Option<&mut Vec<(i64, Match)>>) -> Option<(i64, i64)> {
        let (mut a, mut b) = (Terms::of(a), Terms::of(b));
        let varies = |it: &Index| it.any_var(&|name| !(self.is_common)(name));
        a.drop_matched(&mut b, &mut |a, b| a == b && !varies(a));
        if let Some(alike) = alike {
            let mut found = a.drop_matched(&mut b, &mut |a, b| a == b);
            found.extend(a.drop_matched(&mut b, &mut |a, b| {
                let vary = [a, b].iter().all(|it| varies(it));
                vary && self.bounds.interval(a) == self.bounds.interval(b) && self.span(a).is_some()
            }));
            alike.append(&mut found);
        }
        let (low_a, high_a) = self.range(&a)?;
        let (low_b, high_b) = self.range(&b)?;
        Some((low_a.checked_sub(high_b)?, high_a.checked_sub(low_b)?))
    }

    fn range(&self, terms: &Terms) -> Option<(i64, i64)> {
        if terms.terms.is_empty() {
            return Some((terms.constant, terms.constant));
        }
        let index =
            terms.terms.iter().fold(Index::int(terms.constant), |sum, (factor, atom)| sum + atom * *factor);
        let (low, high) = self.bounds.interval(&index);
        Some((low?, high?))
    }

    fn span(&self, atom: &Index) -> Option<i64> {
        let (low, high) = self.bounds.interval(atom);
        high?.checked_sub(low?)
    }
}

/// A term of one side and one of the other.
type Match = (Index, Index);

/// Two equal sums, taken apart.
struct Parted {
    /// The terms that both have alike and that have one value.
    single: Vec<Match>,
    /// The others that both have alike, those of large factors first.
    alike: Vec<Alike>,
    /// How far what is left of the one can be from what is left of the other.
    slack: i64,
}

/// A term that two sums have alike.
struct Alike {
    factor: i64,
    /// How far its values are apart, if that is known.
    span: Option<i64>,
    it: Match,
}

/// A sum of products with constant factors.
struct Terms {
    /// The factors and what they multiply: variables, or what is not linear.
    terms: Vec<(i64, Index)>,
    /// The rest.
    constant: i64,
}

impl Terms {
    /// Takes sums and constant factors apart. Like terms of a simplified index are merged already.
    fn of(index: &Index) -> Terms {
        let mut out = Terms { terms: Vec::new(), constant: 0 };
        out.add(1, index);
        out
    }

    /// Takes the terms of equal factors that match out of both sums.
    fn drop_matched(
        &mut self,
        other: &mut Terms,
        matches: &mut dyn FnMut(&Index, &Index) -> bool,
    ) -> Vec<(i64, Match)> {
        let mut out = Vec::new();
        self.terms.retain(|(factor, atom)| {
            let Some(at) = other.terms.iter().position(|it| it.0 == *factor && matches(atom, &it.1)) else {
                return true;
            };
            out.push((*factor, (atom.clone(), other.terms.remove(at).1)));
            false
        });
        out
    }

    fn add(&mut self, factor: i64, index: &Index) {
        match index.kind() {
            IndexKind::Int(value) => self.constant += factor * value,
            IndexKind::Add(a, b) => {
                self.add(factor, a);
                self.add(factor, b);
            }
            IndexKind::Mul(a, b) => match (a.as_int(), b.as_int()) {
                (Some(by), _) => self.add(factor * by, b),
                (_, Some(by)) => self.add(factor * by, a),
                (None, None) => self.terms.push((factor, index.clone())),
            },
            IndexKind::Var(_)
            | IndexKind::FloorDiv(..)
            | IndexKind::FloorMod(..)
            | IndexKind::Min(..)
            | IndexKind::Max(..)
            | IndexKind::Xor(..)
            | IndexKind::Element(..) => self.terms.push((factor, index.clone())),
        }
    }
}

/// What `high` and `low` are quotient and remainder of: `e` for `e floordiv c` and `e mod c`, `e floordiv c` for
/// `e floordiv (c*d)` and `(e floordiv c) mod d`.
fn join(high: &Index, low: &Index) -> Option<Index> {
    let (IndexKind::FloorDiv(e, whole), IndexKind::FloorMod(rest, c)) = (high.kind(), low.kind()) else {
        return None;
    };
    if rest == e && whole == c {
        return Some(e.clone());
    }
    match rest.kind() {
        IndexKind::FloorDiv(inner, by) if inner == e => {
            let product = by.as_int()?.checked_mul(c.as_int()?)?;
            (whole.as_int()? == product).then(|| rest.clone())
        }
        _ => None,
    }
}

/// The terms that both sides have.
fn same(equal: &BTreeSet<Match>) -> impl Iterator<Item = &Index> {
    equal.iter().filter(|(a, b)| a == b).map(|(a, _)| a)
}
