//! Index expressions and conditions.

use ir::{Index, IndexKind, Less};

use super::{Printer, helper::Helper, literal::integer, names::identifier};

/// How tightly the outermost operator of an expression binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binds {
    Sum,
    Product,
    Quotient,
    Atom,
}

impl Printer<'_> {
    /// An index, fit to stand beside a `<` or in brackets.
    pub(super) fn index(&mut self, index: &Index) -> String {
        self.index_at(index).0
    }

    /// An index, fit to be the operand of any operator.
    pub(super) fn index_atom(&mut self, index: &Index) -> String {
        self.index_binding(index, Binds::Atom)
    }

    /// An index, fit to be a term of a sum.
    pub(super) fn index_term(&mut self, index: &Index) -> String {
        self.index_binding(index, Binds::Product)
    }

    /// The conditions joined by `&&`; no conditions always hold.
    pub(super) fn conditions(&mut self, cond: &[Less]) -> String {
        self.joined(cond, " && ")
    }

    /// The conditions of a choice. In CUDA C++ they are joined by `&` if some of them divide: behind a `&&` a compiler leaves the division in a
    /// branch, and computes it anew in each iteration of a loop although all have the same.
    pub(super) fn choice_conditions(&mut self, cond: &[Less]) -> String {
        let at_once = !self.dialect.is_c() && cond.iter().any(|it| divides(&it.lhs) || divides(&it.rhs));
        self.joined(cond, if at_once { " & " } else { " && " })
    }

    fn joined(&mut self, cond: &[Less], and: &str) -> String {
        let all = cond.iter().map(|it| format!("{} < {}", self.index(&it.lhs), self.index(&it.rhs)));
        let all: Vec<_> = all.collect();
        if all.is_empty() { "1".to_owned() } else { all.join(and) }
    }

    fn index_binding(&mut self, index: &Index, least: Binds) -> String {
        let (text, binds) = self.index_at(index);
        let negative = text.starts_with('-') && least > Binds::Sum;
        if binds < least || negative { ["(", &text, ")"].concat() } else { text }
    }

    fn index_at(&mut self, index: &Index) -> (String, Binds) {
        match index.kind() {
            IndexKind::Int(value) => (integer(value), Binds::Atom),
            IndexKind::Var(name) if self.frame.counters.contains(name) => (format!("tw_{name}"), Binds::Atom),
            IndexKind::Var(name) => (identifier(name).into_owned(), Binds::Atom),
            IndexKind::Add(a, b) => (self.sum(a, b), Binds::Sum),
            IndexKind::Mul(a, b) => {
                // A quotient on either side gets parentheses: truncation makes the order matter.
                let side = |it: &Index| match it.kind() {
                    IndexKind::Mul(..) => Binds::Product,
                    _ => Binds::Atom,
                };
                let (a, b) = (self.index_binding(a, side(a)), self.index_binding(b, side(b)));
                ([&a, " * ", &b].concat(), Binds::Product)
            }
            IndexKind::FloorDiv(a, b) => self.quotient(a, b, "/", Helper::FloorDiv),
            IndexKind::FloorMod(a, b) => self.quotient(a, b, "%", Helper::FloorMod),
            IndexKind::Min(a, b) => (self.call(Helper::IndexMin, a, b), Binds::Atom),
            IndexKind::Max(a, b) => (self.call(Helper::IndexMax, a, b), Binds::Atom),
            // The sign binds more loosely than any other that stands around it.
            IndexKind::Xor(a, b) => {
                (format!("({} ^ {})", self.index_atom(a), self.index_atom(b)), Binds::Atom)
            }
            IndexKind::Element(table, at, _) => {
                let (of, table) = (self.index_type(self.frame.wide), identifier(table).into_owned());
                (format!("({of}){table}[{}]", self.index(at)), Binds::Product)
            }
        }
    }

    /// `a + b`, and `a - b` where a term is negated.
    fn sum(&mut self, a: &Index, b: &Index) -> String {
        let (a, sign, b) = match (negated(a), negated(b)) {
            (_, Some(b)) => {
                (self.index_binding(a, Binds::Sum), " - ", self.index_binding(&b, Binds::Product))
            }
            (Some(a), None) => {
                (self.index_binding(b, Binds::Sum), " - ", self.index_binding(&a, Binds::Product))
            }
            (None, None) => (self.index_binding(a, Binds::Sum), " + ", self.index_binding(b, Binds::Sum)),
        };
        [a.as_str(), sign, &b].concat()
    }

    /// The machine's division truncates, which rounds down only where the dividend is not negative.
    fn quotient(&mut self, a: &Index, b: &Index, sign: &str, floor: fn(bool) -> Helper) -> (String, Binds) {
        let dividend = self.frame.bounds.interval(a).0;
        let proved = || self.frame.bounds.prove(&Less::new(Index::int(-1), a.clone())) == Some(true);
        if dividend.is_some_and(|it| it >= 0) || proved() {
            let (a, b) = (self.index_atom(a), self.index_atom(b));
            ([&a, " ", sign, " ", &b].concat(), Binds::Quotient)
        } else {
            (self.call(floor, a, b), Binds::Atom)
        }
    }

    fn call(&mut self, helper: fn(bool) -> Helper, a: &Index, b: &Index) -> String {
        let name = self.require(helper(self.frame.wide));
        format!("{name}({}, {})", self.index(a), self.index(b))
    }
}

/// The term without its sign, if it has one.
fn negated(index: &Index) -> Option<Index> {
    match index.kind() {
        IndexKind::Int(value) if value < 0 => value.checked_neg().map(Index::int),
        IndexKind::Mul(a, b) => match (a.as_int(), b.as_int()) {
            (_, Some(c)) if c < 0 => Some(a * c.checked_neg()?),
            (Some(c), _) if c < 0 => Some(b * c.checked_neg()?),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an index divides by something else than a power of two, which takes several instructions.
fn divides(index: &Index) -> bool {
    let is_shift = |by: &Index| by.as_int().is_some_and(|it| it > 0 && it & (it - 1) == 0);
    match index.kind() {
        IndexKind::Int(_) | IndexKind::Var(_) => false,
        IndexKind::FloorDiv(a, by) | IndexKind::FloorMod(a, by) => !is_shift(by) || divides(a),
        IndexKind::Add(a, b)
        | IndexKind::Mul(a, b)
        | IndexKind::Min(a, b)
        | IndexKind::Max(a, b)
        | IndexKind::Xor(a, b) => divides(a) || divides(b),
        IndexKind::Element(_, at, _) => divides(at),
    }
}
