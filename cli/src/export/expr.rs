//! Sizes and subscripts as C and as Rust.
//!
//! What a caller's sizes go into is computed in arithmetic that notices when it overflows; subscripts of the
//! reference, whose sizes were found sound, are plain.

use std::fmt::Write as _;

use ir::{Index, IndexKind, Name};

/// A language of the bundle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lang {
    /// C11.
    C,
    /// Rust.
    Rust,
}

/// How variables are written.
pub(super) type Var<'a> = &'a dyn Fn(&Name) -> String;

/// How an element of an input of integers is loaded from a position.
pub(super) type Load<'a> = &'a dyn Fn(&Name, &str) -> String;

impl Lang {
    /// An index in checked arithmetic: in C a call with a flag `bad`, in Rust an expression with `?` on `Option`.
    pub(super) fn checked(self, index: &Index, var: Var<'_>) -> String {
        let two = |word: &str, a: &Index, b: &Index| {
            let (a, b) = (self.checked(a, var), self.checked(b, var));
            match self {
                Lang::C => format!("tw_size_{word}(&bad, {a}, {b})"),
                Lang::Rust => format!("({a}).checked_{word}({b})?"),
            }
        };
        let plain = |a: &Index, b: &Index| (self.checked(a, var), self.checked(b, var));
        match index.kind() {
            IndexKind::Int(it) => self.int(it),
            IndexKind::Var(name) => var(name),
            IndexKind::Add(a, b) => two("add", a, b),
            IndexKind::Mul(a, b) => two("mul", a, b),
            IndexKind::FloorDiv(a, b) => self.call("div", plain(a, b)),
            IndexKind::FloorMod(a, b) => self.call("mod", plain(a, b)),
            IndexKind::Min(a, b) => self.call("min", plain(a, b)),
            IndexKind::Max(a, b) => self.call("max", plain(a, b)),
            IndexKind::Xor(a, b) => infix("^", plain(a, b)),
            IndexKind::Element(..) => unreachable!("sizes are over dimensions alone"),
        }
    }

    /// An index in plain arithmetic; `element` loads an element of an input from a row-major position.
    pub(super) fn plain(self, index: &Index, var: Var<'_>, element: Load<'_>) -> String {
        let both = |a: &Index, b: &Index| (self.plain(a, var, element), self.plain(b, var, element));
        match index.kind() {
            IndexKind::Int(it) => self.int(it),
            IndexKind::Var(name) => var(name),
            IndexKind::Add(a, b) => infix("+", both(a, b)),
            IndexKind::Mul(a, b) => infix("*", both(a, b)),
            IndexKind::FloorDiv(a, b) => self.call("div", both(a, b)),
            IndexKind::FloorMod(a, b) => self.call("mod", both(a, b)),
            IndexKind::Min(a, b) => self.call("min", both(a, b)),
            IndexKind::Max(a, b) => self.call("max", both(a, b)),
            IndexKind::Xor(a, b) => infix("^", both(a, b)),
            IndexKind::Element(table, at, _) => element(table, &self.plain(at, var, element)),
        }
    }

    /// A whole number of 64 bits.
    pub(super) fn int(self, it: i64) -> String {
        match self {
            Lang::C if it == i64::MIN => "INT64_MIN".to_owned(),
            Lang::C if it < 0 => format!("(-INT64_C({}))", it.unsigned_abs()),
            Lang::C => format!("INT64_C({it})"),
            Lang::Rust if it < 0 => format!("({it}_i64)"),
            Lang::Rust => format!("{it}_i64"),
        }
    }

    fn call(self, word: &str, (a, b): (String, String)) -> String {
        let prefix = match self {
            Lang::C => "tw_",
            Lang::Rust => "size_",
        };
        format!("{prefix}{word}({a}, {b})")
    }
}

fn infix(sign: &str, (a, b): (String, String)) -> String {
    format!("({a} {sign} {b})")
}

/// An index as people and other tools read it: `m * 4096`, `ceildiv` written out.
pub(super) fn words(index: &Index) -> String {
    let both = |a: &Index, sign: &str, b: &Index| format!("{} {sign} {}", operand(a), operand(b));
    match index.kind() {
        IndexKind::Int(it) => it.to_string(),
        IndexKind::Var(name) => name.to_string(),
        IndexKind::Add(a, b) => both(a, "+", b),
        IndexKind::Mul(a, b) => both(a, "*", b),
        IndexKind::FloorDiv(a, b) => both(a, "/", b),
        IndexKind::FloorMod(a, b) => both(a, "%", b),
        IndexKind::Min(a, b) => format!("min({}, {})", words(a), words(b)),
        IndexKind::Max(a, b) => format!("max({}, {})", words(a), words(b)),
        IndexKind::Xor(a, b) => both(a, "^", b),
        IndexKind::Element(table, at, _) => format!("{table}[{}]", words(at)),
    }
}

fn operand(index: &Index) -> String {
    match index.kind() {
        IndexKind::Int(_)
        | IndexKind::Var(_)
        | IndexKind::Min(..)
        | IndexKind::Max(..)
        | IndexKind::Element(..) => words(index),
        IndexKind::Add(..)
        | IndexKind::Mul(..)
        | IndexKind::FloorDiv(..)
        | IndexKind::FloorMod(..)
        | IndexKind::Xor(..) => format!("({})", words(index)),
    }
}

/// The product of sizes; 1 for none.
pub(super) fn product(sizes: &[Index]) -> Index {
    sizes.iter().fold(Index::int(1), |all, it| all * it.clone())
}

/// A text with what stands between `@` replaced. Lines that consist of a hole alone vanish where that is empty.
pub(super) fn fill(template: &str, holes: &[(&str, String)]) -> String {
    let mut out = String::with_capacity(template.len() * 2);
    for line in template.lines() {
        let mut line = line.to_owned();
        let was_hole = line.starts_with('@') && line.ends_with('@');
        for (name, text) in holes {
            let hole = format!("@{name}@");
            if line.contains(&hole) {
                line = line.replace(&hole, text.trim_end_matches('\n'));
            }
        }
        if !(was_hole && line.is_empty()) {
            writeln!(out, "{line}").expect("writing to a string does not fail");
        }
    }
    out
}
