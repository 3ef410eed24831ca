//! Sibling pipelines under an outer loop that share a temporary in part: which of them may have their own is what brute
//! force says, and what is accepted is right.
//!
//! `TILEWRIGHT_SEED` chooses other programs.

use std::{collections::BTreeMap, fmt::Write as _};

use indexmap::IndexMap;
use ir::text;
use schedule::{ScheduleError, Session, Step};

use super::{
    generate::Random,
    random::seed,
    run::{self, Expected},
    unfilled::check,
};

/// How many programs are made.
const PROGRAMS: usize = 500;
/// The rows of the temporary.
const ROWS: i64 = 3;
/// The variables of the siblings.
const VARS: [&str; 2] = ["i", "j"];

/// A row of the temporary that a statement touches, as a text over the variable `v` and the outer loop `o`, and as a
/// function of their values.
type Row = (&'static str, fn(i64, i64) -> i64);
/// When a statement runs, likewise.
type Guard = (&'static str, fn(i64) -> bool);

const PLACES: [Row; 11] = [
    ("0", |_, _| 0),
    ("0", |_, _| 0),
    ("1", |_, _| 1),
    ("v mod 3", |v, _| v % 3),
    ("v mod 3", |v, _| v % 3),
    ("(v + 2) mod 3", |v, _| (v + 2) % 3),
    ("(v + 1) mod 3", |v, _| (v + 1) % 3),
    ("v mod 2", |v, _| v % 2),
    ("v mod 2 + 1", |v, _| v % 2 + 1),
    ("2 - v mod 3", |v, _| 2 - v % 3),
    ("(v + vo) mod 3", |v, o| (v + o) % 3),
];
const GUARDS: [Guard; 7] = [
    ("", |_| true),
    ("", |_| true),
    ("", |_| true),
    (" if 0 < v", |v| 0 < v),
    (" if 1 < v", |v| 1 < v),
    (" if v < 2", |v| v < 2),
    (" if v mod 2 < 1", |v| v % 2 < 1),
];

/// A row written from the input, or copied to an output.
#[derive(Clone, Copy)]
struct Statement {
    writes: bool,
    row: Row,
    guard: Guard,
    /// Its stage and its order, which is its place.
    time: (i64, i64),
}

/// An outer loop around two siblings, each with its statements.
struct Program {
    outer: i64,
    trips: [i64; 2],
    /// Whether something fills all rows before.
    filled: bool,
    siblings: [Vec<Statement>; 2],
}

/// A statement in one iteration: the outer iteration, the number of the sibling, its iteration, and the statement.
type Run = (i64, usize, i64, Statement);

impl Random {
    fn siblings(&mut self) -> Program {
        let statement = |random: &mut Random, writes| Statement {
            writes,
            row: random.pick(&PLACES),
            guard: random.pick(&GUARDS),
            time: (0, 0),
        };
        let siblings = [0, 1].map(|_| {
            let mut out = vec![statement(self, true), statement(self, false)];
            if self.chance(1, 4) {
                let writes = self.chance(1, 2);
                out.insert(1, statement(self, writes));
            }
            // Most first siblings are such that an iteration fills what it reads.
            if self.chance(1, 2) {
                let filled = Statement { writes: true, ..out[out.len() - 1] };
                out[0] = filled;
            }
            let mut stage = 0;
            for (it, order) in out.iter_mut().zip(0..) {
                it.time = (stage, order);
                stage += i64::from(self.chance(3, 4));
            }
            out
        });
        Program {
            outer: 1 + self.below(3),
            trips: [1 + self.below(6), 1 + self.below(6)],
            filled: self.chance(2, 3),
            siblings,
        }
    }
}

impl Program {
    fn text(&self) -> String {
        let Program { outer, trips: [a, b], .. } = self;
        let mut out = format!("func siblings\n  in A: f32[{outer}, 8, 4]\n");
        for (s, at) in self.statements(false) {
            writeln!(out, "  out C{s}_{at}: f32[{outer}, {}, 4]", self.trips[s]).unwrap();
        }
        writeln!(out, "  temp B: f32[{ROWS}, 4] @shared\n\n  for b in 0..1").unwrap();
        let mut lines = vec![];
        if self.filled {
            lines.push((2, format!("for r in 0..{ROWS}")));
            lines.extend(tile(3, "fill", &format!("vr: {ROWS} = r"), "", "B[vr, vt] = A[0, vr, vt]"));
        }
        for (s, at) in self.statements(false) {
            let name = format!("C{s}_{at}");
            lines.push((2, format!("for z_{name}_o in 0..{outer}")));
            lines.push((3, format!("for z_{name}_v in 0..{}", self.trips[s])));
            let iters = format!("vo: {outer} = z_{name}_o, v: {} = z_{name}_v", self.trips[s]);
            lines.extend(tile(4, &format!("z{name}"), &iters, "", &format!("{name}[vo, v, vt] = 0.0f32")));
        }
        lines.push((2, format!("for o in 0..{outer}")));
        for (s, trips) in [(0, a), (1, b)] {
            let var = VARS[s];
            lines.push((3, format!("for {var} in 0..{trips}")));
            for (at, it) in self.siblings[s].iter().enumerate() {
                let row = it.row.0;
                let body = if it.writes {
                    format!("B[{row}, vt] = A[vo, v + {at}, vt] * {}.5f32", s + 2)
                } else {
                    format!("C{s}_{at}[vo, v, vt] = B[{row}, 3 - vt]")
                };
                let guard = it.guard.0.replace('v', var);
                let iters = format!("vo: {outer} = o, v: {trips} = {var}");
                lines.extend(tile(4, &format!("S{s}_{at}"), &iters, &guard, &body));
            }
        }
        for (depth, line) in lines {
            writeln!(out, "{}{line}", "  ".repeat(depth)).unwrap();
        }
        out
    }

    /// The numbers of the statements that write, or of those that read.
    fn statements(&self, writes: bool) -> Vec<(usize, usize)> {
        let of = |s: usize| self.siblings[s].iter().enumerate().map(move |(at, it)| (s, at, it.writes));
        (0..2).flat_map(of).filter(|it| it.2 == writes).map(|it| (it.0, it.1)).collect()
    }

    /// The steps that pipeline a sibling.
    fn steps(&self, s: usize) -> [String; 2] {
        let map = |of: &dyn Fn(usize) -> i64| {
            let each = (0..self.siblings[s].len()).map(|at| format!("\"S{s}_{at}\": {}", of(at)));
            each.collect::<Vec<_>>().join(", ")
        };
        let (stages, orders) =
            (map(&|at| self.siblings[s][at].time.0), map(&|at| self.siblings[s][at].time.1));
        [
            format!("software_pipeline_stage(loop: \"{}\", stages: {{{stages}}})", VARS[s]),
            format!("software_pipeline_order(loop: \"{}\", order: {{{orders}}})", VARS[s]),
        ]
    }

    /// What runs, in program order.
    fn runs(&self) -> Vec<Run> {
        let mut out = Vec::new();
        for (o, s) in (0..self.outer).flat_map(|o| [(o, 0), (o, 1)]) {
            for v in 0..self.trips[s] {
                let runs = self.siblings[s].iter().filter(|it| (it.guard.1)(v));
                out.extend(runs.map(|it| (o, s, v, *it)));
            }
        }
        out
    }

    /// Whether a sibling may have a temporary of its own, slot by slot: each of its iterations writes what it reads
    /// before, and the rest reads nothing that it wrote last.
    fn has_its_own(&self, sibling: usize) -> bool {
        let mut last: BTreeMap<i64, (i64, usize, i64)> = BTreeMap::new();
        self.runs().into_iter().all(|(o, s, v, it)| {
            let row = (it.row.1)(v, o);
            if it.writes {
                last.insert(row, (o, s, v));
                return true;
            }
            let wrote = last.get(&row);
            if s == sibling { wrote == Some(&(o, s, v)) } else { wrote.is_none_or(|it| it.1 != sibling) }
        })
    }

    /// Whether the times of a sibling keep the order of accesses to a row, of those in one iteration alone where it has
    /// slots of its own.
    fn is_legal(&self, sibling: usize) -> bool {
        let own = self.has_its_own(sibling);
        let runs: Vec<Run> = self.runs().into_iter().filter(|it| it.1 == sibling).collect();
        let row = |it: &Run| (it.3.row.1)(it.2, it.0);
        let time = |it: &Run| (it.2 + it.3.time.0, it.3.time.1);
        runs.iter().enumerate().all(|(n, first)| {
            runs[n + 1..].iter().all(|then| {
                let depends = first.0 == then.0
                    && (!own || first.2 == then.2)
                    && (first.3.writes || then.3.writes)
                    && row(first) == row(then);
                !depends || time(first) < time(then)
            })
        })
    }
}

/// A block under a loop over threads, at a depth.
fn tile(depth: usize, name: &str, iters: &str, guard: &str, body: &str) -> Vec<(usize, String)> {
    vec![
        (depth, format!("for t_{name} in 0..4")),
        (depth + 1, format!("block {name}({iters}, vt: 4 = t_{name}){guard}")),
        (depth + 2, body.to_owned()),
    ]
}

#[test]
fn siblings_that_share_a_temporary_in_part() {
    let mut random = Random(seed());
    let (mut accepted, mut own, mut refused, mut lowered) = (0, 0, 0, 0);
    let mut wrong = Vec::new();
    for _ in 0..PROGRAMS {
        let program = random.siblings();
        let text = program.text();
        let func = text::parse(&text).unwrap_or_else(|err| panic!("{err:?}\n{text}"));
        ir::verify(&func).unwrap_or_else(|err| panic!("{}\n{text}", err[0]));
        let input = |_: usize, _: &[usize], at: usize| (at * at % 97) as f64;
        // Some read what nothing has written.
        let Ok(expected) = Expected::new(&func, &IndexMap::new(), &input) else { continue };
        for pipelined in [&[0][..], &[1], &[0, 1]] {
            let steps: Vec<_> = pipelined.iter().flat_map(|it| program.steps(*it)).collect();
            let story = format!("{}\n{text}", steps.join("\n"));
            let mut session = Session::new(func.clone(), Some(run::target()));
            let mut apply = |step: &String| session.apply(&Step::from_ron(step).unwrap()).map(drop);
            let verdict = steps.iter().try_for_each(&mut apply);
            let legal = pipelined.iter().all(|it| program.is_legal(*it));
            match verdict {
                Ok(()) => {
                    assert!(legal, "wrongly accepted\n{story}");
                    accepted += 1;
                    own += usize::from(pipelined.iter().any(|it| program.has_its_own(*it)));
                    for func in [session.func(), &run::bound(session.func())] {
                        lowered += check("pipelined", func, &expected)
                            .unwrap_or_else(|err| panic!("{err}\n{story}"));
                    }
                }
                Err(ScheduleError::Pipeline(_)) if !legal => refused += 1,
                Err(ScheduleError::Pipeline(err)) => wrong.push(format!("{err}\n{story}")),
                Err(err) => panic!("refused for another reason: {err}\n{story}"),
            }
        }
    }
    let tally = format!(
        "{accepted} accepted, {own} with a buffer of their own, {refused} refused, {} wrongly, {lowered} lowered",
        wrong.len()
    );
    println!("{tally}");
    assert!(wrong.is_empty(), "{tally}:\n{}", wrong[0]);
    assert!(own > PROGRAMS / 4 && accepted > own && refused > PROGRAMS / 4 && lowered > accepted, "{tally}");
}
