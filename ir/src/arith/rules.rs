//! The rules by which egg looks for a cheaper form, each with its side condition.
//!
//! There is no commutativity, associativity or distributivity: the normal form has sorted the sum. A rule that looks
//! at two adjacent terms therefore stands twice, for the head of a sum and for its tail `(x + a) + b`.
//! The condition of a rule sees which operands are constants and the interval of each; it may make new constants for
//! the right-hand side. Every rule is tried on random values in `tests::rules`.

use std::{fmt, str::FromStr, sync::LazyLock};

use egg::{
    Analysis, Applier, DidMerge, EGraph, Id, Language, Pattern, PatternAst, Rewrite, Subst, Symbol, Var,
    define_language,
};

use super::bounds::Range;

define_language! {
    /// An index as egg sees it.
    pub(super) enum Node {
        Int(i64),
        "+" = Add([Id; 2]),
        "*" = Mul([Id; 2]),
        "/" = Div([Id; 2]),
        "%" = Mod([Id; 2]),
        "min" = Min([Id; 2]),
        "max" = Max([Id; 2]),
        "xor" = Xor([Id; 2]),
        Var(VarNumber),
    }
}

/// A variable by its number in the order of first use, so that nothing depends on how names are interned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct VarNumber(pub(super) u32);

impl fmt::Display for VarNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

impl FromStr for VarNumber {
    type Err = ();

    fn from_str(text: &str) -> Result<VarNumber, ()> {
        text.strip_prefix('v').and_then(|it| it.parse().ok()).map(VarNumber).ok_or(())
    }
}

/// The analysis: the interval of each class, from that of each variable.
#[derive(Default)]
pub(super) struct Intervals(pub(super) Vec<Range>);

impl Analysis<Node> for Intervals {
    type Data = Range;

    fn make(egraph: &mut EGraph<Node, Self>, node: &Node, _: Id) -> Range {
        let of = |it: &Id| egraph[*it].data;
        match node {
            Node::Int(value) => Range::exactly(*value),
            Node::Add([a, b]) => of(a).plus(of(b)),
            Node::Mul([a, b]) => of(a).times(of(b)),
            Node::Div([a, b]) => of(a).over(of(b)),
            Node::Mod([a, b]) => of(a).modulo(of(b)),
            Node::Min([a, b]) => of(a).minimum(of(b)),
            Node::Max([a, b]) => of(a).maximum(of(b)),
            Node::Xor([a, b]) => of(a).xor(of(b)),
            Node::Var(slot) => egraph.analysis.0.get(slot.0 as usize).copied().unwrap_or_default(),
        }
    }

    fn merge(&mut self, a: &mut Range, b: Range) -> DidMerge {
        let both = a.meet(b);
        let out = DidMerge(both != *a, both != b);
        *a = both;
        out
    }

    fn modify(egraph: &mut EGraph<Node, Self>, id: Id) {
        if let Some(value) = egraph[id].data.constant() {
            let constant = egraph.add(Node::Int(value));
            egraph.union(id, constant);
        }
    }
}

/// What a condition sees: the interval of each operand by its letter.
pub(super) type See<'a> = &'a dyn Fn(char) -> Range;

/// A rule. Operands are letters; capital ones are constants that the condition makes.
pub(super) struct Rule {
    /// The name.
    pub(super) name: &'static str,
    /// What is replaced.
    pub(super) from: &'static str,
    /// What it is equal to.
    pub(super) to: &'static str,
    /// Under which condition; the answer is the value of `K`, anything where there is none.
    pub(super) given: fn(See) -> Option<i64>,
}

/// Every rule. What the normal form resolves, such as `(a/b)/c`, needs none here.
pub(super) const RULES: &[Rule] = &[
    Rule { name: "add-zero", from: "(+ ?a 0)", to: "?a", given: |_| Some(0) },
    Rule { name: "mul-one", from: "(* ?a 1)", to: "?a", given: |_| Some(0) },
    Rule {
        name: "quotient-and-remainder",
        from: "(+ (/ ?a ?c) (% ?a ?c))",
        to: "(+ ?a (* (/ ?a ?c) ?K))",
        given: |see| less_periods(1, see('c'), 1),
    },
    Rule {
        name: "strided-quotient-and-remainder",
        from: "(+ (* (/ ?a ?c) ?m) (% ?a ?c))",
        to: "(+ ?a (* (/ ?a ?c) ?K))",
        given: |see| less_periods(see('m').constant()?, see('c'), 1),
    },
    Rule {
        name: "quotient-and-strided-remainder",
        from: "(+ (/ ?a ?c) (* (% ?a ?c) ?k))",
        to: "(+ (* ?a ?k) (* (/ ?a ?c) ?K))",
        given: |see| less_periods(1, see('c'), see('k').constant()?),
    },
    Rule {
        name: "strided-quotient-and-strided-remainder",
        from: "(+ (* (/ ?a ?c) ?m) (* (% ?a ?c) ?k))",
        to: "(+ (* ?a ?k) (* (/ ?a ?c) ?K))",
        given: |see| less_periods(see('m').constant()?, see('c'), see('k').constant()?),
    },
    Rule {
        name: "tail-quotient-and-remainder",
        from: "(+ (+ ?x (/ ?a ?c)) (% ?a ?c))",
        to: "(+ (+ ?x ?a) (* (/ ?a ?c) ?K))",
        given: |see| less_periods(1, see('c'), 1),
    },
    Rule {
        name: "tail-strided-quotient-and-remainder",
        from: "(+ (+ ?x (* (/ ?a ?c) ?m)) (% ?a ?c))",
        to: "(+ (+ ?x ?a) (* (/ ?a ?c) ?K))",
        given: |see| less_periods(see('m').constant()?, see('c'), 1),
    },
    Rule {
        name: "tail-quotient-and-strided-remainder",
        from: "(+ (+ ?x (/ ?a ?c)) (* (% ?a ?c) ?k))",
        to: "(+ (+ ?x (* ?a ?k)) (* (/ ?a ?c) ?K))",
        given: |see| less_periods(1, see('c'), see('k').constant()?),
    },
    Rule {
        name: "tail-strided-quotient-and-strided-remainder",
        from: "(+ (+ ?x (* (/ ?a ?c) ?m)) (* (% ?a ?c) ?k))",
        to: "(+ (+ ?x (* ?a ?k)) (* (/ ?a ?c) ?K))",
        given: |see| less_periods(see('m').constant()?, see('c'), see('k').constant()?),
    },
    Rule {
        name: "common-factor",
        from: "(+ (* ?a ?c) (* ?b ?c))",
        to: "(* (+ ?a ?b) ?c)",
        given: |_| Some(0),
    },
    Rule {
        name: "tail-common-factor",
        from: "(+ (+ ?x (* ?a ?c)) (* ?b ?c))",
        to: "(+ ?x (* (+ ?a ?b) ?c))",
        given: |_| Some(0),
    },
];

/// `K = m - c*k` for a positive constant `c`: `(a/c)*m + (a%c)*k` is `a*k + (a/c)*(m - c*k)`.
fn less_periods(m: i64, c: Range, k: i64) -> Option<i64> {
    let c = c.constant().filter(|it| *it > 0)?;
    m.checked_sub(c.checked_mul(k)?)
}

/// Puts the right-hand side of a rule where its condition holds.
struct Conditional {
    rule: &'static Rule,
    to: PatternAst<Node>,
    made: Var,
    operands: Vec<(char, Var)>,
}

impl Applier<Node, Intervals> for Conditional {
    fn apply_one(
        &self,
        egraph: &mut EGraph<Node, Intervals>,
        class: Id,
        subst: &Subst,
        _: Option<&PatternAst<Node>>,
        _: Symbol,
    ) -> Vec<Id> {
        let see = |letter: char| {
            let operand = self.operands.iter().find(|it| it.0 == letter);
            operand.and_then(|it| subst.get(it.1)).map(|it| egraph[*it].data).unwrap_or_default()
        };
        let Some(made) = (self.rule.given)(&see) else { return Vec::new() };
        let mut subst = subst.clone();
        subst.insert(self.made, egraph.add(Node::Int(made)));
        let id = egraph.add_instantiation(&self.to, &subst);
        if egraph.union(class, id) { vec![class] } else { Vec::new() }
    }
}

/// The rules as egg wants them; building them costs more than using them once.
static REWRITES: LazyLock<Vec<Rewrite<Node, Intervals>>> =
    LazyLock::new(|| RULES.iter().map(rewrite).collect());

fn rewrite(rule: &'static Rule) -> Rewrite<Node, Intervals> {
    let pattern =
        |text: &str| -> Pattern<Node> { text.parse().expect("the patterns of the table are well formed") };
    let from = pattern(rule.from);
    let letters = rule.from.split('?').skip(1).filter_map(|it| it.chars().next());
    let variable = |letter: char| -> Var { format!("?{letter}").parse().expect("a letter is a variable") };
    let operands = letters.map(|it| (it, variable(it))).collect();
    let applier = Conditional { rule, to: pattern(rule.to).ast, made: variable('K'), operands };
    Rewrite::new(rule.name, from, applier).expect("a conditional rule asks for no variables of its own")
}

/// More nodes than this end the search.
const NODE_LIMIT: usize = 2000;

/// After this many rounds the search ends.
const ROUND_LIMIT: usize = 8;

/// The clock that egg looks at to log how long its work took. It stands still: the first look at a real one takes
/// milliseconds, as many as all of a small schedule, because its library then compares the counter of the processor with the
/// time of the system.
static CLOCK: LazyLock<quanta::Clock> = LazyLock::new(|| quanta::Clock::mock().0);

/// Applies the rules until nothing new is found or a limit is reached; never by the clock.
pub(super) fn saturate(egraph: &mut EGraph<Node, Intervals>) {
    quanta::with_clock(&CLOCK, || apply(egraph));
}

fn apply(egraph: &mut EGraph<Node, Intervals>) {
    egraph.rebuild();
    for _ in 0..ROUND_LIMIT {
        let found: Vec<_> = REWRITES.iter().map(|it| (it, it.search(egraph))).collect();
        let mut changed = false;
        for (rewrite, matches) in found {
            if !matches.is_empty() {
                changed |= !rewrite.apply(egraph, &matches).is_empty();
            }
        }
        egraph.rebuild();
        if !changed || egraph.total_number_of_nodes() > NODE_LIMIT {
            break;
        }
    }
}

/// What the operation of a node costs, where `divisor` is that of a quotient or remainder, if it is a constant.
///
/// An addition is 2, a multiplication 3, a division 20; by a power of two it is a shift or a mask.
pub(super) fn own_cost(node: &Node, divisor: Option<i64>) -> u64 {
    match node {
        Node::Int(_) | Node::Var(_) => 1,
        Node::Add(_) | Node::Min(_) | Node::Max(_) | Node::Xor(_) => 2,
        Node::Mul(_) => 3,
        Node::Div(_) | Node::Mod(_) if divisor.is_some_and(|it| it > 0 && it.count_ones() == 1) => 2,
        Node::Div(_) | Node::Mod(_) => 20,
    }
}

/// The cost of a node's operation and of its operands.
pub(super) struct Cost<'a>(pub(super) &'a EGraph<Node, Intervals>);

impl egg::CostFunction<Node> for Cost<'_> {
    type Cost = u64;

    fn cost<C: FnMut(Id) -> u64>(&mut self, node: &Node, mut costs: C) -> u64 {
        let divisor = match node {
            Node::Div([_, b]) | Node::Mod([_, b]) => self.0[*b].data.constant(),
            Node::Int(_)
            | Node::Var(_)
            | Node::Add(_)
            | Node::Mul(_)
            | Node::Min(_)
            | Node::Max(_)
            | Node::Xor(_) => None,
        };
        node.fold(own_cost(node, divisor), |sum, it| sum.saturating_add(costs(it)))
    }
}
