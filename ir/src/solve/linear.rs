//! Sums of variables with coefficients. Arithmetic that leaves the limits is `None`.

/// A variable, by its number.
pub(super) type Var = usize;

/// No coefficient and no constant of a row is larger, so that sums over ranges fit 128 bits.
const LARGEST: u64 = 1 << 58;
/// No value of a variable is larger.
pub(super) const FARTHEST: i64 = 1 << 62;
/// No row has more terms.
const LONGEST: usize = 32;

/// Variables; each may bring others along that stand for the same bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct VarSet(u64);

impl VarSet {
    /// No variable.
    pub(super) const NONE: VarSet = VarSet(0);
    /// Every variable.
    pub(super) const ALL: VarSet = VarSet(u64::MAX);

    /// Those of a row.
    pub(super) fn of(row: &Row) -> VarSet {
        row.terms.iter().fold(VarSet::NONE, |mut out, it| {
            out.insert(it.0);
            out
        })
    }

    /// One variable.
    pub(super) fn one(var: Var) -> VarSet {
        VarSet(1 << (var % 64))
    }

    /// Adds a variable.
    pub(super) fn insert(&mut self, var: Var) {
        self.0 |= VarSet::one(var).0;
    }

    /// Whether a variable may be in both.
    pub(super) fn meets(self, other: VarSet) -> bool {
        self.0 & other.0 != 0
    }
}

/// Least and greatest value, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Range {
    /// The least.
    pub(super) low: i64,
    /// The greatest.
    pub(super) high: i64,
}

impl Range {
    /// The value where there is exactly one.
    pub(super) fn fixed(self) -> Option<i64> {
        (self.low == self.high).then_some(self.low)
    }

    /// How many values, less one.
    pub(super) fn span(self) -> u64 {
        self.high.abs_diff(self.low)
    }
}

/// `constant + sum of coefficient * variable`: terms in order of variables, without zeros.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Row {
    /// The terms.
    pub(super) terms: Vec<(Var, i64)>,
    /// The rest.
    pub(super) constant: i64,
}

pub(super) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn bounded(value: i128) -> Option<i64> {
    i64::try_from(value).ok().filter(|it| it.unsigned_abs() <= LARGEST)
}

impl Row {
    /// A constant.
    pub(super) fn constant(value: i64) -> Option<Row> {
        Some(Row { terms: vec![], constant: bounded(value.into())? })
    }

    /// A variable.
    pub(super) fn var(var: Var) -> Row {
        Row { terms: vec![(var, 1)], constant: 0 }
    }

    /// The value where there is no variable.
    pub(super) fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// `self + by * other`.
    pub(super) fn plus(&self, other: &Row, by: i64) -> Option<Row> {
        let sum = |a: i64, b: i64| bounded(i128::from(a) + i128::from(b) * i128::from(by));
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let (var, coef) = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(a), Some(b)) if a.0 == b.0 => (a.0, sum(a.1, b.1)?),
                (Some(a), None) => (a.0, a.1),
                (Some(a), Some(b)) if a.0 < b.0 => (a.0, a.1),
                (_, Some(b)) => (b.0, sum(0, b.1)?),
            };
            left.next_if(|it| it.0 == var);
            right.next_if(|it| it.0 == var);
            if coef != 0 {
                terms.push((var, coef));
            }
        }
        (terms.len() <= LONGEST).then_some(())?;
        Some(Row { terms, constant: sum(self.constant, other.constant)? })
    }

    /// `self + value`.
    pub(super) fn plus_constant(mut self, value: i64) -> Option<Row> {
        self.constant = bounded(i128::from(self.constant) + i128::from(value))?;
        Some(self)
    }

    /// `by * self`.
    pub(super) fn scaled(&self, by: i64) -> Option<Row> {
        Row::default().plus(self, by)
    }

    /// The coefficient of a variable.
    pub(super) fn coef(&self, var: Var) -> i64 {
        self.terms.binary_search_by_key(&var, |it| it.0).map_or(0, |at| self.terms[at].1)
    }

    /// The row with another in the place of a variable.
    pub(super) fn replaced(&self, var: Var, by: &Row) -> Option<Row> {
        let Ok(at) = self.terms.binary_search_by_key(&var, |it| it.0) else { return Some(self.clone()) };
        let mut rest = self.clone();
        let (_, coef) = rest.terms.remove(at);
        rest.plus(by, coef)
    }

    /// The row with the values of the variables that have only one.
    pub(super) fn with_fixed(&self, ranges: &[Range]) -> Option<Row> {
        let mut constant = i128::from(self.constant);
        let mut terms = Vec::with_capacity(self.terms.len());
        for &(var, coef) in &self.terms {
            match ranges[var].fixed() {
                Some(value) => constant += i128::from(coef) * i128::from(value),
                None => terms.push((var, coef)),
            }
        }
        Some(Row { terms, constant: bounded(constant)? })
    }

    /// The greatest common divisor of the coefficients; 0 where there is no term.
    pub(super) fn divisor(&self) -> i64 {
        let mut out = 0;
        for it in &self.terms {
            out = gcd(out, it.1);
            if out == 1 {
                break;
            }
        }
        out
    }

    /// The greatest value of the row, or of minus the row, over ranges, each variable on its own.
    pub(super) fn most(&self, ranges: &[Range], sign: i64) -> i128 {
        self.terms.iter().fold(i128::from(self.constant * sign), |most, &(var, coef)| {
            let (coef, Range { low, high }) = (coef * sign, ranges[var]);
            most + i128::from(coef) * i128::from(if coef < 0 { low } else { high })
        })
    }

    /// The least and greatest value over ranges, each variable on its own.
    pub(super) fn range(&self, ranges: &[Range]) -> (i128, i128) {
        let mut out = (i128::from(self.constant), i128::from(self.constant));
        for &(var, coef) in &self.terms {
            let (low, high) = ends(coef, ranges[var]);
            out = (out.0 + low, out.1 + high);
        }
        out
    }
}

/// The least and greatest value of a term.
pub(super) fn ends(coef: i64, range: Range) -> (i128, i128) {
    let (low, high) = (i128::from(coef) * i128::from(range.low), i128::from(coef) * i128::from(range.high));
    if coef < 0 { (high, low) } else { (low, high) }
}

/// The value, as far as variables go.
pub(super) fn clamped(value: i128) -> i64 {
    let far = i128::from(FARTHEST);
    i64::try_from(value.clamp(-far, far)).expect("it was clamped to less than 64 bits")
}
