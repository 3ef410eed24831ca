//! Temporaries that an iteration may leave unfilled: fills whose guards and extents depend on outer loops, so that what
//! an earlier iteration left is read. Whatever is done to such a program, an iteration must not take for its own what it
//! only may have written.
//!
//! `TILEWRIGHT_SEED` chooses other programs.

use std::fmt::Write as _;

use codegen::lower;
use indexmap::IndexMap;
use ir::{Func, Target, text};
use schedule::{Session, Step};

use super::{
    generate::Random,
    random::seed,
    run::{self, Expected},
};

/// How many programs are made.
const PROGRAMS: usize = 3000;
/// The size of each temporary.
const SIZE: i64 = 4;
/// What fills and readers call the loops around them.
const OUTER: [&str; 2] = ["i", "j"];

/// A program as text, with the names in it.
#[derive(Default)]
struct Program {
    trips: Vec<i64>,
    scopes: Vec<&'static str>,
    outputs: usize,
    body: String,
    blocks: Vec<String>,
    loops: Vec<String>,
}

impl Random {
    fn unfilled(&mut self) -> Program {
        let depth = self.pick(&[1, 1, 1, 2]);
        let scopes: &[&[&str]] = &[&[""], &[" @shared"], &[" @local"], &["", ""], &["", " @shared"]];
        let mut out = Program {
            trips: (0..depth).map(|_| 2 + self.below(3)).collect(),
            scopes: self.pick(scopes).to_vec(),
            loops: OUTER[..depth].iter().map(ToString::to_string).collect(),
            ..Program::default()
        };
        for (level, trips) in out.trips.clone().into_iter().enumerate() {
            let var = OUTER[level];
            writeln!(out.body, "{}for {var} in 0..{trips}", indent(level)).unwrap();
        }
        let outermost = if depth == 2 { self.below(2) } else { 0 };
        for buffer in 0..out.scopes.len() {
            let at = if self.chance(1, 4) { outermost } else { i64::try_from(depth).unwrap() };
            if usize::try_from(at).unwrap() == depth && self.chance(4, 5) {
                self.first_fill(&mut out, buffer);
            }
        }
        for _ in 0..=self.below(3) {
            let buffer = self.buffer_of(&out);
            self.fill(&mut out, buffer);
        }
        for _ in 0..=self.below(2) {
            let buffer = self.buffer_of(&out);
            self.read(&mut out, buffer);
            if self.chance(1, 4) {
                let buffer = self.buffer_of(&out);
                self.fill(&mut out, buffer);
            }
        }
        out
    }

    fn buffer_of(&mut self, program: &Program) -> usize {
        usize::try_from(self.below(i64::try_from(program.scopes.len()).unwrap())).unwrap()
    }

    /// Fills a temporary in the first iteration of all: so that each later read finds something.
    fn first_fill(&mut self, out: &mut Program, buffer: usize) {
        let first: Vec<_> = out.outer().iter().map(|it| format!("{it} < 1")).collect();
        let guard = if self.chance(1, 6) { String::new() } else { format!(" if {}", first.join(" && ")) };
        let value = self.below(8);
        out.statement(
            &[SIZE.to_string()],
            |e| (format!("v: {SIZE} = {}", e[0]), guard),
            &format!("B{buffer}[v] = A[v + {value}]"),
        );
    }

    /// Fills some of a temporary, or adds to it.
    fn fill(&mut self, out: &mut Program, buffer: usize) {
        let outer = out.outer();
        let var = self.pick(&outer);
        let trips = out.trips[outer.iter().position(|it| *it == var).unwrap()];
        let count = self.pick(&[0, 1, 1, 1, 2]);
        let extents: Vec<String> = (0..count).map(|at| self.extent(var, trips, at)).collect();
        let place = self.pick(&[
            "$e",
            "$e",
            "$e",
            "3 - $e",
            "($e + i) mod 4",
            "0",
            "$e floordiv 2",
            "$e*2 mod 4",
            "min($e + i, 3)",
        ]);
        let (chance, kind) = (self.chance(2, 5), self.below(6));
        let guard = if chance { format!(" if {}", self.guard(var, count)) } else { String::new() };
        let value = self.below(20);
        let reduces = count > 0 && kind < 2;
        let init = reduces && kind == 0;
        let factor = self.pick(&["$k", "$k", "$k + 1", "$k*2"]);
        let header = |loops: &[String]| {
            let e = loops.first().map_or("0", |it| it);
            let f = loops.get(1).map_or("0", |it| it);
            let place = place.replace("$e", e);
            let mut iters = format!("vi: {trips} = {var}, v: {SIZE} = {place}, w: {SIZE} = {f}");
            if reduces {
                let term_of = factor.replace("$k", if count == 2 { f } else { e });
                let place = if count == 1 { "0" } else { place.as_str() };
                iters = format!("vi: {trips} = {var}, v: {SIZE} = {place}, w: reduce 9 = {term_of}");
            }
            (iters, guard.replace("$e", e))
        };
        let term = format!("A[v + w + vi + {value}]");
        let body = match kind {
            0 | 1 if reduces => format!("B{buffer}[v] = B{buffer}[v] + {term}"),
            2 => format!("B{buffer}[v] = B{buffer}[v] + {term}"),
            3 => format!("for x in 0..vi mod 3\n  B{buffer}[(v + x) mod {SIZE}] = {term}"),
            _ => format!("B{buffer}[v] = {term}"),
        };
        let body = if init { format!("init\n  B{buffer}[v] = {value}.0f32\n{body}") } else { body };
        out.statement(&extents, header, &body);
    }

    fn extent(&mut self, var: &str, trips: i64, at: i64) -> String {
        match self.below(8) {
            0 => format!("({var} + {}) mod 3", self.below(3)),
            1 => format!("min({var} + 1, {SIZE})"),
            2 => var.to_string(),
            3 => format!("{trips} - {var}"),
            4 if at == 1 => "$e + 1".to_string(),
            5 => (1 + self.below(SIZE)).to_string(),
            _ => SIZE.to_string(),
        }
    }

    fn guard(&mut self, var: &str, count: i64) -> String {
        let c = self.below(SIZE + 1);
        let all = if count > 0 { 7 } else { 4 };
        match self.below(all) {
            0 => format!("{var} mod 2 < 1"),
            1 => format!("{var} < {c}"),
            2 => format!("{c} < {var} + 2"),
            3 => format!("({var} + {c}) mod 3 < 2"),
            4 => format!("$e < {c}"),
            5 => format!("$e < {} - {var}*{}", SIZE, 1 + self.below(2)),
            _ => format!("$e + {var} < {c}"),
        }
    }

    fn read(&mut self, out: &mut Program, buffer: usize) {
        let outer = out.outer();
        let output = out.outputs;
        out.outputs += 1;
        let place = self.pick(&["v", "v", "v", "3 - v", "(v + vi) mod 4", "0"]);
        let guard = if self.chance(1, 4) { format!(" if {}", self.guard("i", 1)) } else { String::new() };
        let iters: Vec<_> =
            outer.iter().zip(&out.trips).map(|(it, trips)| format!("v{it}: {trips} = {it}")).collect();
        let subscripts: Vec<_> = outer.iter().map(|it| format!("v{it}")).collect();
        let header = |e: &[String]| {
            (format!("{}, v: {SIZE} = {}", iters.join(", "), e[0]), guard.replace("$e", &e[0]))
        };
        // What a guard keeps from being written is given a number first.
        let zero = format!("C{output}[{}, v] = 0.0f32", subscripts.join(", "));
        let plain = |e: &[String]| (format!("{}, v: {SIZE} = {}", iters.join(", "), e[0]), String::new());
        out.statement(&[SIZE.to_string()], plain, &zero);
        let body = format!("C{output}[{}, v] = B{buffer}[{place}]", subscripts.join(", "));
        out.statement(&[SIZE.to_string()], header, &body);
    }

    /// A step at random; most are refused.
    fn unfilled_step(&mut self, session: &Session, blocks: &[String]) -> String {
        let loops: Vec<String> = session.func().loops().iter().map(|it| it.var.to_string()).collect();
        let any = |random: &mut Random, of: &[String]| {
            of[usize::try_from(random.below(i64::try_from(of.len()).unwrap())).unwrap()].clone()
        };
        let (block, var, other) = (any(self, blocks), any(self, &loops), any(self, &loops));
        match self.below(9) {
            0 => format!("compute_at(block: \"{block}\", loop: \"{var}\")"),
            1 => format!("reverse_compute_at(block: \"{block}\", loop: \"{var}\")"),
            2 => format!("reorder(order: [\"{var}\", \"{other}\"])"),
            3 => format!("split(loop: \"{var}\", into: {{\"{var}o\": None, \"{var}i\": 2}})"),
            4 => format!("cache_read(block: \"{block}\", buffer: \"B0\", scope: \"shared\")"),
            5 => format!("unroll(loop: \"{var}\", serpentine: \"{other}\")"),
            6 => format!("parallel(loop: \"{var}\")"),
            7 => format!("decompose_reduction(block: \"{block}\", loop: \"{var}\")"),
            _ => self.pipeline(session, &var),
        }
    }

    fn pipeline(&mut self, session: &Session, var: &str) -> String {
        let Some(it) = session.func().loops().into_iter().find(|it| it.var.as_str() == var).cloned() else {
            return String::new();
        };
        let names: Vec<String> = ir::pipeline::components(&it, &|_| false)
            .iter()
            .filter_map(|it| it.names.first().map(ToString::to_string))
            .collect();
        let mut stage = 0;
        let stages: Vec<_> = names
            .iter()
            .map(|it| {
                stage += self.below(2);
                format!("\"{it}\": {stage}")
            })
            .collect();
        format!("software_pipeline_stage(loop: \"{var}\", stages: {{{}}})", stages.join(", "))
    }
}

fn indent(level: usize) -> String {
    "  ".repeat(level + 1)
}

impl Program {
    fn outer(&self) -> Vec<&'static str> {
        OUTER[..self.trips.len()].to_vec()
    }

    /// A block in loops of its own, inside all outer loops.
    fn statement(
        &mut self,
        extents: &[String],
        header: impl FnOnce(&[String]) -> (String, String),
        body: &str,
    ) {
        let mut level = self.trips.len();
        let number = self.blocks.len();
        let mut vars: Vec<String> = Vec::new();
        for (at, extent) in extents.iter().enumerate() {
            let var = format!("{}{number}", ["e", "f"][at]);
            let extent = extent.replace("$e", vars.first().map_or("0", |it| it));
            writeln!(self.body, "{}for {var} in 0..{extent}", indent(level)).unwrap();
            self.loops.push(var.clone());
            vars.push(var);
            level += 1;
        }
        let (iters, guard) = header(&vars);
        writeln!(self.body, "{}block W{number}({iters}){guard}", indent(level)).unwrap();
        for line in body.lines() {
            writeln!(self.body, "{}{line}", indent(level + 1)).unwrap();
        }
        self.blocks.push(format!("W{number}"));
    }

    fn text(&self) -> String {
        let mut out = String::from("func f()\n  in A: f32[64]\n");
        for at in 0..self.outputs {
            let trips: Vec<_> = self.trips.iter().map(ToString::to_string).collect();
            writeln!(out, "  out C{at}: f32[{}, {SIZE}]", trips.join(", ")).unwrap();
        }
        for (at, scope) in self.scopes.iter().enumerate() {
            writeln!(out, "  temp B{at}: f32[{SIZE}]{scope}").unwrap();
        }
        out + "\n" + &self.body
    }
}

/// Whether a program computes what is expected, interpreted, and lowered for whatever target it can be; for how many it was.
pub(crate) fn check(what: &str, func: &Func, expected: &Expected) -> Result<usize, String> {
    expected.interpreter(what, func)?;
    let mut lowered = 0;
    for target in [Target::Cpu, run::target()] {
        let Ok(module) = lower::lower(func, &target, &mut |_, _| {}) else { continue };
        lowered += 1;
        expected
            .virtual_gpu(func, &module)
            .map_err(|err| format!("{what}, {target:?}: {err}\n{}\n{module}", run::text(func)))?;
    }
    Ok(lowered)
}

#[test]
fn what_an_iteration_may_leave_unfilled_is_not_its_own() {
    let mut random = Random(seed());
    let (mut defined, mut lowered, mut accepted) = (0, 0, 0);
    let mut wrong = Vec::new();
    for _ in 0..PROGRAMS {
        let program = random.unfilled();
        let text = program.text();
        let func = text::parse(&text).unwrap_or_else(|err| panic!("{err:?}\n{text}"));
        if ir::verify(&func).is_err() {
            continue;
        }
        let input = |_: usize, _: &[usize], at: usize| (at * at % 97) as f64;
        let Ok(expected) = Expected::new(&func, &IndexMap::new(), &input) else { continue };
        defined += 1;
        match check("as written", &func, &expected) {
            Ok(it) => lowered += it,
            Err(err) => {
                wrong.push(err);
                continue;
            }
        }
        let mut session = Session::new(func.clone(), Some(run::target()));
        let mut steps = String::new();
        for _ in 0..8 {
            let step = random.unfilled_step(&session, &program.blocks);
            let Ok(parsed) = Step::from_ron(&step) else { continue };
            if session.apply(&parsed).is_err() {
                continue;
            }
            accepted += 1;
            writeln!(steps, "{step}").unwrap();
            match check(&steps, session.func(), &expected) {
                Ok(it) => lowered += it,
                Err(err) => {
                    wrong.push(format!("{err}\n{text}"));
                    break;
                }
            }
        }
    }
    println!(
        "{defined} programs read only what is written, {lowered} lowered, {accepted} steps accepted, {} wrong",
        wrong.len()
    );
    wrong.sort_by_key(String::len);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(400)].join("\n-----\n"));
    assert!(
        defined >= PROGRAMS / 4 && lowered > defined && accepted > defined,
        "{defined} {lowered} {accepted}"
    );
}
