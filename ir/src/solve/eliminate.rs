//! Proofs that rows contradict each other, by elimination of one variable after the other.

use std::collections::BTreeMap;

use super::{
    linear::{Range, Row, Var, gcd},
    system::System,
};

/// A system with more rows is given up.
const MOST_ROWS: usize = 160;
/// So many pairs of rows are added up, all in all.
const MOST_PAIRS: usize = 3000;

/// Whether the rows of a system, and more rows that are not negative, have no common integer point in the ranges.
///
/// `true` is a proof; `false` says nothing. Rows that are zero are solved for a variable. Where no coefficient is 1,
/// the variable with the smallest is replaced by a sum that leaves smaller ones, as Euclid does. Of the others,
/// variables are eliminated by adding up each pair of rows that limits one from below and above; rounding the
/// constants to multiples of the coefficients' divisor keeps in mind that all are integers.
pub(super) fn is_impossible(system: &System, more: &[Row], ranges: &[Range]) -> bool {
    let end = Table::of(system, more, ranges).and_then(Table::run);
    matches!(end, Err(End::Contradiction))
}

/// Why an elimination stops early.
enum End {
    /// There is no point.
    Contradiction,
    /// A limit was reached.
    Limit,
}

/// Rows: zero ones, and those that are not negative, by their terms, with the least constant.
#[derive(Default)]
struct Table {
    zero: Vec<Row>,
    least: BTreeMap<Vec<(Var, i64)>, i64>,
    pairs: usize,
}

/// What the elimination of a variable from rows that are not negative costs.
#[derive(Default)]
struct Cost {
    below: usize,
    above: usize,
    /// Whether all its coefficients in the rows that limit it from below, or from above, are 1.
    units: (bool, bool),
}

impl Table {
    fn of(system: &System, more: &[Row], ranges: &[Range]) -> Result<Table, End> {
        let mut table = Table::default();
        let mut used = vec![false; ranges.len()];
        let mut rows = Vec::new();
        for row in &system.zero {
            table.zero.push(row.with_fixed(ranges).ok_or(End::Limit)?);
        }
        for row in system.least.iter().chain(more) {
            // A row that the ranges fulfil anyway is no news.
            if row.range(ranges).0 < 0 {
                rows.push(row.with_fixed(ranges).ok_or(End::Limit)?);
            }
        }
        for row in table.zero.iter().chain(&rows) {
            row.terms.iter().for_each(|it| used[it.0] = true);
        }
        for (var, range) in ranges.iter().enumerate().filter(|it| used[it.0]) {
            let ends = [(1, Row::constant(range.low)), (-1, Row::constant(range.high))];
            for (sign, end) in ends {
                // An end too far away to count with is no limit.
                rows.extend(end.and_then(|it| Row::var(var).plus(&it, -1)?.scaled(sign)));
            }
        }
        rows.into_iter().try_for_each(|row| table.insert(row))?;
        Ok(table)
    }

    /// Adds a row that is not negative.
    fn insert(&mut self, row: Row) -> Result<(), End> {
        let Row { mut terms, mut constant } = row;
        let divisor = terms.iter().fold(0, |out, it| gcd(out, it.1));
        if divisor == 0 {
            return if constant < 0 { Err(End::Contradiction) } else { Ok(()) };
        }
        if divisor > 1 {
            for it in &mut terms {
                it.1 /= divisor;
            }
            constant = constant.div_euclid(divisor);
        }
        let opposite: Vec<_> = terms.iter().map(|it| (it.0, -it.1)).collect();
        if let Some(other) = self.least.get(&opposite) {
            match constant + other {
                ..0 => return Err(End::Contradiction),
                0 => {
                    self.least.remove(&opposite);
                    self.zero.push(Row { terms, constant });
                    return Ok(());
                }
                1.. => {}
            }
        }
        let known = self.least.entry(terms).or_insert(constant);
        *known = constant.min(*known);
        if self.least.len() > MOST_ROWS { Err(End::Limit) } else { Ok(()) }
    }

    fn run(mut self) -> Result<(), End> {
        loop {
            while let Some(row) = self.take_zero() {
                self.solve(row)?;
            }
            let Some(var) = self.cheapest() else { return Ok(()) };
            self.eliminate(var)?;
        }
    }

    /// The zero row with the smallest coefficient.
    fn take_zero(&mut self) -> Option<Row> {
        let size = |row: &Row| row.terms.iter().map(|it| it.1.abs()).min().unwrap_or(0);
        let at = (0..self.zero.len()).min_by_key(|&at| size(&self.zero[at]))?;
        Some(self.zero.swap_remove(at))
    }

    /// Uses a row that is zero.
    fn solve(&mut self, mut row: Row) -> Result<(), End> {
        let divisor = row.divisor();
        if divisor == 0 {
            return if row.constant == 0 { Ok(()) } else { Err(End::Contradiction) };
        }
        if row.constant % divisor != 0 {
            return Err(End::Contradiction);
        }
        row.constant /= divisor;
        for it in &mut row.terms {
            it.1 /= divisor;
        }
        let (var, coef) = row.terms.iter().copied().min_by_key(|it| it.1.abs()).ok_or(End::Limit)?;
        // With a*x + c*y + ... = 0 and x = x' - round(c/a)*y - ...: a*x' + (c - a*round(c/a))*y + ... = 0.
        let round = |it: i64| (2 * it + coef.abs()).div_euclid(2 * coef.abs()) * coef.signum();
        let mut by = Row::constant(-round(row.constant)).ok_or(End::Limit)?;
        by.terms = row.terms.iter().filter(|it| it.0 != var).map(|it| (it.0, -round(it.1))).collect();
        by.terms.retain(|it| it.1 != 0);
        if coef.abs() != 1 {
            by = by.plus(&Row::var(var), 1).ok_or(End::Limit)?;
            self.zero.push(row);
            self.pairs += self.zero.len();
            if self.pairs > MOST_PAIRS {
                return Err(End::Limit);
            }
        }
        self.replace(var, &by)
    }

    fn replace(&mut self, var: Var, by: &Row) -> Result<(), End> {
        for row in &mut self.zero {
            *row = row.replaced(var, by).ok_or(End::Limit)?;
        }
        let (with, without) =
            std::mem::take(&mut self.least).into_iter().partition(|it| it.0.iter().any(|it| it.0 == var));
        let with: BTreeMap<_, _> = with;
        self.least = without;
        for (terms, constant) in with {
            let row = Row { terms, constant }.replaced(var, by).ok_or(End::Limit)?;
            self.insert(row)?;
        }
        Ok(())
    }

    /// The variable to eliminate next: exactly, if one can be, and with few new rows.
    fn cheapest(&self) -> Option<Var> {
        let mut costs: BTreeMap<Var, Cost> = BTreeMap::new();
        for &(var, coef) in self.least.keys().flatten() {
            let cost = costs.entry(var).or_insert(Cost { units: (true, true), ..Cost::default() });
            if coef > 0 {
                cost.below += 1;
                cost.units.0 &= coef == 1;
            } else {
                cost.above += 1;
                cost.units.1 &= coef == -1;
            }
        }
        let key = |it: &Cost| {
            let exact = it.units.0 || it.units.1;
            (!exact, (it.below * it.above).saturating_sub(it.below + it.above))
        };
        costs.iter().min_by_key(|it| key(it.1)).map(|it| *it.0)
    }

    fn eliminate(&mut self, var: Var) -> Result<(), End> {
        let (mut below, mut above) = (Vec::new(), Vec::new());
        let mut rest = BTreeMap::new();
        for (terms, constant) in std::mem::take(&mut self.least) {
            let row = Row { terms, constant };
            match row.coef(var) {
                0 => {
                    rest.insert(row.terms, row.constant);
                }
                1.. => below.push(row),
                ..0 => above.push(row),
            }
        }
        self.least = rest;
        self.pairs += below.len() * above.len();
        if self.pairs > MOST_PAIRS {
            return Err(End::Limit);
        }
        for a in &below {
            for b in &above {
                let (x, y) = (a.coef(var), -b.coef(var));
                let common = gcd(x, y);
                let sum = a.scaled(y / common).and_then(|it| it.plus(b, x / common));
                self.insert(sum.ok_or(End::Limit)?)?;
            }
        }
        Ok(())
    }
}
