//! What rows say of the ranges of their variables: intervals and congruences.

use super::{
    linear::{Range, Row, Var, VarSet, ends, gcd},
    system::{Product, System, times},
};

/// Ranges may shrink by ever smaller steps; after so many rounds the rest is left to others.
const ROUNDS: usize = 8;

/// The ranges contradict a row.
pub(super) struct Contradiction;

type Outcome = Result<(), Contradiction>;

/// Shrinks ranges to what the rows allow. All points of the system in the ranges stay in them.
///
/// Rows of which no variable is among the `news` are known to leave the ranges as they are. Returns whether all rows do
/// in the end.
pub(super) fn propagate(system: &System, ranges: &mut [Range], news: VarSet) -> Result<bool, Contradiction> {
    let mut state = State { ranges, changed: news };
    let mut before;
    for _ in 0..ROUNDS {
        if state.changed == VarSet::NONE {
            return Ok(true);
        }
        before = std::mem::replace(&mut state.changed, VarSet::NONE);
        // What has changed since a row was looked at has changed in the round before or in this one.
        for (row, of) in system.zero.iter().zip(&system.vars_of_zero) {
            if of.meets(before) || of.meets(state.changed) {
                state.zero(row)?;
            }
        }
        for (row, of) in system.least.iter().zip(&system.vars_of_least) {
            if of.meets(before) || of.meets(state.changed) {
                state.least(row, 1)?;
            }
        }
        for product in &system.products {
            state.product(product)?;
        }
        for [a, b] in &system.either {
            if a.range(state.ranges).1 < 0 {
                state.least(b, 1)?;
            } else if b.range(state.ranges).1 < 0 {
                state.least(a, 1)?;
            }
        }
    }
    Ok(state.changed == VarSet::NONE)
}

struct State<'a> {
    ranges: &'a mut [Range],
    /// The variables whose ranges have changed in this round.
    changed: VarSet,
}

impl State<'_> {
    fn at_least(&mut self, var: Var, value: i128) -> Outcome {
        let range = &mut self.ranges[var];
        if value > i128::from(range.high) {
            return Err(Contradiction);
        }
        if let Ok(value) = i64::try_from(value)
            && value > range.low
        {
            range.low = value;
            self.changed.insert(var);
        }
        Ok(())
    }

    fn at_most(&mut self, var: Var, value: i128) -> Outcome {
        let range = &mut self.ranges[var];
        if value < i128::from(range.low) {
            return Err(Contradiction);
        }
        if let Ok(value) = i64::try_from(value)
            && value < range.high
        {
            range.high = value;
            self.changed.insert(var);
        }
        Ok(())
    }

    /// `sign * row >= 0`.
    fn least(&mut self, row: &Row, sign: i64) -> Outcome {
        let most = row.most(self.ranges, sign);
        if most < 0 {
            return Err(Contradiction);
        }
        for &(var, coef) in &row.terms {
            let (coef, range) = (coef * sign, self.ranges[var]);
            // At its least the term leaves the row this much.
            if most - i128::from(coef.unsigned_abs()) * i128::from(range.span()) >= 0 {
                continue;
            }
            let (others, size) = (most - ends(coef, range).1, i128::from(coef.abs()));
            if coef > 0 {
                self.at_least(var, -others.div_euclid(size))?;
            } else {
                self.at_most(var, others.div_euclid(size))?;
            }
        }
        Ok(())
    }

    fn zero(&mut self, row: &Row) -> Outcome {
        self.least(row, 1)?;
        self.least(row, -1)?;
        self.congruent(row)
    }

    /// `a*x + (multiples of g) + k == 0` leaves `x` one remainder.
    fn congruent(&mut self, row: &Row) -> Outcome {
        let mut fixed = i128::from(row.constant);
        let (mut units, mut free, mut all) = (0, 0, 0);
        for &(var, coef) in &row.terms {
            if let Some(value) = self.ranges[var].fixed() {
                fixed += i128::from(coef) * i128::from(value);
            } else {
                free += 1;
                units += usize::from(coef.abs() == 1);
                all = gcd(all, coef);
            }
        }
        if free == 0 {
            return if fixed == 0 { Ok(()) } else { Err(Contradiction) };
        }
        if fixed % i128::from(all) != 0 {
            return Err(Contradiction);
        }
        if units > 1 || free == 1 {
            return Ok(());
        }
        for &(var, coef) in &row.terms {
            if self.ranges[var].fixed().is_some() || (units == 1 && coef.abs() != 1) {
                continue;
            }
            let others = row.terms.iter().filter(|it| it.0 != var && self.ranges[it.0].fixed().is_none());
            let modulus = others.fold(0, |out, it| gcd(out, it.1));
            self.remainder(var, coef, fixed, modulus)?;
        }
        Ok(())
    }

    /// `coef * x + fixed` is a multiple of the modulus.
    fn remainder(&mut self, var: Var, coef: i64, fixed: i128, modulus: i64) -> Outcome {
        let common = gcd(coef, modulus);
        let modulus = i128::from(modulus / common);
        if modulus <= 1 || fixed % i128::from(common) != 0 {
            return Ok(());
        }
        let inverse = inverse(i128::from(coef / common).rem_euclid(modulus), modulus);
        let value = ((-fixed / i128::from(common)).rem_euclid(modulus) * inverse).rem_euclid(modulus);
        let range = self.ranges[var];
        let (low, high) = (i128::from(range.low), i128::from(range.high));
        self.at_least(var, low + (value - low).rem_euclid(modulus))?;
        self.at_most(var, high - (high - value).rem_euclid(modulus))
    }

    fn product(&mut self, it: &Product) -> Outcome {
        let (a, b) = (self.ranges[it.a], self.ranges[it.b]);
        let (low, high) = times(a, b);
        self.at_least(it.result, low)?;
        self.at_most(it.result, high)?;
        self.factor(it.a, it.b, it.result)?;
        self.factor(it.b, it.a, it.result)
    }

    /// What the product and one factor say of the other factor, all of them positive or the one factor known.
    fn factor(&mut self, var: Var, other: Var, result: Var) -> Outcome {
        let (by, of) = (self.ranges[other], self.ranges[result]);
        let (least, most) = (i128::from(by.low), i128::from(by.high));
        if by.low <= 0 || (by.fixed().is_none() && (of.low < 0 || self.ranges[var].low < 0)) {
            return Ok(());
        }
        self.at_least(var, -(-i128::from(of.low)).div_euclid(most))?;
        self.at_most(var, i128::from(of.high).div_euclid(least))
    }
}

/// The number whose product with `value` has remainder 1, where the two have no common divisor.
fn inverse(value: i128, modulus: i128) -> i128 {
    let (mut old, mut new) = ((value, 1), (modulus, 0));
    while new.0 != 0 {
        let quotient = old.0 / new.0;
        (old, new) = (new, (old.0 - quotient * new.0, old.1 - quotient * new.1));
    }
    old.1.rem_euclid(modulus)
}
