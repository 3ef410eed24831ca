//! From expressions to rows.

use super::{
    Problem,
    linear::{FARTHEST, Range, Row, Var, VarSet, clamped, gcd},
};
use crate::{Index, IndexKind, Name};

/// No system has more variables.
const MOST_VARS: usize = 64;
/// The largest coefficient that a row about products gets from the end of a range.
const LARGEST_END: i64 = 1 << 20;

/// Rows that hold at every point of a problem, and what rows cannot say.
///
/// The first variables are the problem's, in its order; each further one has one value where these have theirs.
pub(super) struct System {
    /// The values that the variables may have.
    pub(super) ranges: Vec<Range>,
    /// How many variables are the problem's own.
    pub(super) own: usize,
    /// Rows that are zero.
    pub(super) zero: Vec<Row>,
    /// Rows that are zero or positive.
    pub(super) least: Vec<Row>,
    /// The variables of each row that is zero.
    pub(super) vars_of_zero: Vec<VarSet>,
    /// The variables of each row that is zero or positive.
    pub(super) vars_of_least: Vec<VarSet>,
    /// Variables that are products.
    pub(super) products: Vec<Product>,
    /// Of two rows, one is zero or positive.
    pub(super) either: Vec<[Row; 2]>,
}

/// A variable that is the product of two.
pub(super) struct Product {
    /// The one, itself maybe a product.
    pub(super) a: Var,
    /// The other, which is no product.
    pub(super) b: Var,
    /// The product.
    pub(super) result: Var,
    /// All factors that are no products, in order.
    factors: Vec<Var>,
}

struct Builder<'a> {
    names: Vec<&'a Name>,
    system: System,
    quotients: Vec<(Row, i64, Var)>,
    extremes: Vec<(Row, Row, bool, Var)>,
}

impl System {
    /// The rows of a problem. `None` where it leaves the limits.
    pub(super) fn of(problem: &Problem) -> Option<System> {
        let ranges: Option<Vec<Range>> =
            problem.vars.iter().map(|it| range(it.1.into(), it.2.into())).collect();
        let system = System {
            own: problem.vars.len(),
            ranges: ranges?,
            zero: vec![],
            least: vec![],
            vars_of_zero: vec![],
            vars_of_least: vec![],
            products: vec![],
            either: vec![],
        };
        let names = problem.vars.iter().map(|it| &it.0).collect();
        let mut builder = Builder { names, system, quotients: vec![], extremes: vec![] };
        for (a, b) in &problem.equal {
            let row = builder.row(a)?.plus(&builder.row(b)?, -1)?;
            builder.system.zero.push(row);
        }
        for it in &problem.less {
            let row = builder.row(&it.rhs)?.plus(&builder.row(&it.lhs)?, -1)?.plus_constant(-1)?;
            builder.system.least.push(row);
        }
        builder.about_products();
        let mut system = builder.system;
        system.vars_of_zero = system.zero.iter().map(VarSet::of).collect();
        system.vars_of_least = system.least.iter().map(VarSet::of).collect();
        Some(system)
    }
}

fn range(low: i128, high: i128) -> Option<Range> {
    let far = i128::from(FARTHEST);
    (-far <= low && high <= far).then(|| Range { low: clamped(low), high: clamped(high) })
}

impl Builder<'_> {
    fn row(&mut self, index: &Index) -> Option<Row> {
        match index.kind() {
            IndexKind::Int(value) => Row::constant(value),
            IndexKind::Var(name) => self.names.iter().position(|it| *it == name).map(Row::var),
            IndexKind::Add(a, b) => self.row(a)?.plus(&self.row(b)?, 1),
            IndexKind::Mul(a, b) => {
                let (a, b) = (self.row(a)?, self.row(b)?);
                self.product(&a, &b)
            }
            IndexKind::FloorDiv(a, b) => {
                let (a, b) = (self.row(a)?, self.row(b)?);
                self.quotient(&a, &b)
            }
            IndexKind::FloorMod(a, b) => {
                let (a, b) = (self.row(a)?, self.row(b)?);
                let quotient = self.quotient(&a, &b)?;
                a.plus(&self.product(&quotient, &b)?, -1)
            }
            IndexKind::Min(a, b) => {
                let (a, b) = (self.row(a)?, self.row(b)?);
                self.extreme(a, b, true)
            }
            IndexKind::Max(a, b) => {
                let (a, b) = (self.row(a)?, self.row(b)?);
                self.extreme(a, b, false)
            }
            // Nothing linear says what the bits are, or what an input holds; not to know is always an answer.
            IndexKind::Xor(..) | IndexKind::Element(..) => None,
        }
    }

    fn fresh(&mut self, (low, high): (i128, i128)) -> Option<Var> {
        let out = self.system.ranges.len();
        (out < MOST_VARS).then_some(())?;
        self.system.ranges.push(Range { low: clamped(low), high: clamped(high) });
        Some(out)
    }

    fn product(&mut self, a: &Row, b: &Row) -> Option<Row> {
        if let Some(by) = b.as_constant() {
            return a.scaled(by);
        }
        if let Some(by) = a.as_constant() {
            return b.scaled(by);
        }
        let mut out = b.scaled(a.constant)?;
        out = out.plus(&Row { constant: 0, ..a.clone() }, b.constant)?;
        for (x, c) in &a.terms {
            for (y, d) in &b.terms {
                let mut factors = [self.factors(*x), self.factors(*y)].concat();
                factors.sort_unstable();
                let term = Row::var(self.monomial(&factors)?);
                out = out.plus(&term, c.checked_mul(*d)?)?;
            }
        }
        Some(out)
    }

    fn factors(&self, var: Var) -> Vec<Var> {
        let product = self.system.products.iter().find(|it| it.result == var);
        product.map_or_else(|| vec![var], |it| it.factors.clone())
    }

    /// The variable for a product of several.
    fn monomial(&mut self, factors: &[Var]) -> Option<Var> {
        let (&b, rest) = factors.split_last()?;
        if rest.is_empty() {
            return Some(b);
        }
        if let Some(it) = self.system.products.iter().find(|it| it.factors == factors) {
            return Some(it.result);
        }
        let a = self.monomial(rest)?;
        let result = self.fresh(times(self.system.ranges[a], self.system.ranges[b]))?;
        self.system.products.push(Product { a, b, result, factors: factors.to_vec() });
        Some(result)
    }

    fn quotient(&mut self, a: &Row, b: &Row) -> Option<Row> {
        let Some(by) = b.as_constant() else { return self.quotient_by_row(a, b) };
        (by > 0).then_some(())?;
        // What is a multiple of the divisor comes out: `(8*i + x) floordiv 8` is `i + x floordiv 8`.
        let mut out = Row { terms: vec![], constant: a.constant.div_euclid(by) };
        let mut rest = Row { terms: vec![], constant: a.constant.rem_euclid(by) };
        for &(var, coef) in &a.terms {
            if coef / by != 0 {
                out.terms.push((var, coef / by));
            }
            if coef % by != 0 {
                rest.terms.push((var, coef % by));
            }
        }
        let common = gcd(rest.divisor(), by);
        for it in &mut rest.terms {
            it.1 /= common;
        }
        rest.constant = rest.constant.div_euclid(common);
        let by = by / common;
        let (low, high) = rest.range(&self.system.ranges);
        let (low, high) = (low.div_euclid(by.into()), high.div_euclid(by.into()));
        if low == high {
            return out.plus_constant(i64::try_from(low).ok()?);
        }
        let known = self.quotients.iter().find(|it| it.1 == by && it.0 == rest);
        let var = match known {
            Some(it) => it.2,
            None => self.fresh_quotient(rest, by, (low, high))?,
        };
        out.plus(&Row::var(var), 1)
    }

    fn fresh_quotient(&mut self, of: Row, by: i64, range: (i128, i128)) -> Option<Var> {
        let var = self.fresh(range)?;
        let left = of.plus(&Row::var(var), by.checked_neg()?)?;
        self.system.least.push(left.scaled(-1)?.plus_constant(by - 1)?);
        self.system.least.push(left);
        self.quotients.push((of, by, var));
        Some(var)
    }

    /// `q` with `0 <= a - q*b < b`, where `b` must be positive.
    fn quotient_by_row(&mut self, a: &Row, b: &Row) -> Option<Row> {
        let (low, high) = a.range(&self.system.ranges);
        let var = Row::var(self.fresh((low.min(0), high.max(0)))?);
        let left = a.plus(&self.product(&var, b)?, -1)?;
        let below = b.plus(&left, -1)?.plus_constant(-1)?;
        self.system.least.extend([b.clone().plus_constant(-1)?, left, below]);
        Some(var)
    }

    fn extreme(&mut self, a: Row, b: Row, smaller: bool) -> Option<Row> {
        let known = self.extremes.iter().find(|it| it.2 == smaller && it.0 == a && it.1 == b);
        if let Some(it) = known {
            return Some(Row::var(it.3));
        }
        let (x, y) = (a.range(&self.system.ranges), b.range(&self.system.ranges));
        let range = if smaller { (x.0.min(y.0), x.1.min(y.1)) } else { (x.0.max(y.0), x.1.max(y.1)) };
        let var = self.fresh(range)?;
        let sign = if smaller { 1 } else { -1 };
        let over = |it: &Row| it.plus(&Row::var(var), -1)?.scaled(sign);
        let (a_over, b_over) = (over(&a)?, over(&b)?);
        self.system.either.push([a_over.scaled(-1)?, b_over.scaled(-1)?]);
        self.system.least.extend([a_over, b_over]);
        self.extremes.push((a, b, smaller, var));
        Some(Row::var(var))
    }

    /// Rows that hold for products: of the ranges of their factors, and of a row and a variable, as far as all the
    /// products that come up are there. `i < j` and `1 <= n` make `n*i + n <= n*j`.
    fn about_products(&mut self) {
        let mut found = Vec::new();
        for it in &self.system.products {
            let (a, b) = (self.system.ranges[it.a], self.system.ranges[it.b]);
            found.extend(box_row(it, a.low, b.low, 1));
            found.extend(box_row(it, a.high, b.high, 1));
            found.extend(box_row(it, a.high, b.low, -1));
            found.extend(box_row(it, a.low, b.high, -1));
        }
        for row in &self.system.least {
            let mut factors: Vec<Var> =
                self.system.products.iter().flat_map(|it| it.factors.clone()).collect();
            factors.sort_unstable();
            factors.dedup();
            found.extend(factors.into_iter().filter_map(|it| self.multiplied(row, it)));
        }
        self.system.least.extend(found);
    }

    /// The row times a variable that is not negative, where the products are there.
    fn multiplied(&self, row: &Row, by: Var) -> Option<Row> {
        (self.system.ranges[by].low >= 0).then_some(())?;
        let mut out = Row::var(by).scaled(row.constant)?;
        for &(var, coef) in &row.terms {
            let mut factors = self.factors(var);
            factors.push(by);
            factors.sort_unstable();
            let product = self.system.products.iter().find(|it| it.factors == factors)?;
            out = out.plus(&Row::var(product.result), coef)?;
        }
        Some(out)
    }
}

/// `(a - x) * (b - y)` has a known sign where `x` and `y` are ends of the ranges of `a` and `b`.
fn box_row(it: &Product, x: i64, y: i64, sign: i64) -> Option<Row> {
    (x.abs() <= LARGEST_END && y.abs() <= LARGEST_END).then_some(())?;
    let row = Row::var(it.result).plus(&Row::var(it.a), -y)?.plus(&Row::var(it.b), -x)?;
    row.plus_constant(x.checked_mul(y)?)?.scaled(sign)
}

/// The values of a product.
pub(super) fn times(a: Range, b: Range) -> (i128, i128) {
    let product = |x: i64, y: i64| i128::from(x) * i128::from(y);
    let corners =
        [product(a.low, b.low), product(a.low, b.high), product(a.high, b.low), product(a.high, b.high)];
    corners.into_iter().fold((corners[0], corners[0]), |(low, high), it| (low.min(it), high.max(it)))
}
