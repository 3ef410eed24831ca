//! Random annotations of random loops: the tool's verdict is that of brute force, and what it accepts is right.
//!
//! `TILEWRIGHT_SEED` chooses other loops.

use std::{collections::BTreeMap, fmt::Write as _};

use indexmap::IndexMap;
use ir::{Func, Name, text};
use schedule::{ScheduleError, Session, Step};

use crate::{
    generate::Random,
    model::{Kind, Program, Trips, component_name},
    oracle::{Oracle, Times, agree, input},
    run::{self, Expected},
};

/// How many annotations are judged.
const ANNOTATIONS: usize = 2400;
/// How many annotations each loop gets.
const EACH: usize = 6;

/// What is counted.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    pub(crate) accepted: usize,
    pub(crate) refused: usize,
    /// Illegal, but the values are right all the same: the kind of the dependence that is turned around.
    pub(crate) benign: BTreeMap<&'static str, usize>,
    /// Legal, and refused by the tool: its reason.
    pub(crate) wrongly_refused: Vec<String>,
    /// Legal and accepted, but refused by the lowering: its reason.
    pub(crate) not_lowered: BTreeMap<String, usize>,
    pub(crate) kernels: usize,
}

/// An annotation.
pub(crate) struct Asked {
    pub(crate) times: Times,
    /// `peel` or `predicate`, if the script says so.
    pub(crate) style: Option<&'static str>,
    pub(crate) async_stages: Vec<i64>,
}

impl Asked {
    pub(crate) fn steps(&self) -> Vec<String> {
        let map = |of: &dyn Fn(&(i64, i64)) -> i64| {
            let pairs = self
                .times
                .iter()
                .enumerate()
                .map(|(at, it)| format!("\"{}\": {}", component_name(at), of(it)));
            pairs.collect::<Vec<_>>().join(", ")
        };
        let style = self.style.map(|it| format!(", style: \"{it}\"")).unwrap_or_default();
        let mut out = Vec::new();
        if !self.async_stages.is_empty() {
            out.push(format!("software_pipeline_async_stages(loop: \"i\", stages: {:?})", self.async_stages));
        }
        out.push(format!("software_pipeline_stage(loop: \"i\", stages: {{{}}}{style})", map(&|it| it.0)));
        out.push(format!("software_pipeline_order(loop: \"i\", order: {{{}}})", map(&|it| it.1)));
        out
    }
}

/// The annotated program, or why the annotation is refused.
pub(crate) fn annotate(func: &Func, asked: &Asked) -> Result<Func, ScheduleError> {
    let mut session = Session::new(func.clone(), Some(run::target()));
    for step in asked.steps() {
        session.apply(&Step::from_ron(&step).unwrap_or_else(|err| panic!("{step}: {err}")))?;
    }
    Ok(session.func().clone())
}

/// Judges an annotation by brute force and by the tool, and runs what both accept.
pub(crate) fn judge(program: &Program, func: &Func, asked: &Asked, tally: &mut Tally) {
    let story = || format!("{}\n{}", asked.steps().join("\n"), program.text());
    let oracles: Vec<_> = program.all_trips().into_iter().map(|it| Oracle::new(program, it)).collect();
    let violation = oracles.iter().find_map(|it| it.violation(&asked.times));
    let right = oracles.iter().all(|it| agree(&it.result(Some(&asked.times)), &it.result(None)));
    assert!(right || violation.is_some(), "no dependence is broken, and the values differ\n{}", story());
    if let (true, Some(it)) = (right, violation) {
        *tally.benign.entry(it.kind).or_default() += 1;
    }
    match (annotate(func, asked), violation) {
        (Ok(_), Some(it)) => panic!("wrongly accepted: {}\n{}", it.text(), story()),
        (Err(ScheduleError::Pipeline(_)), Some(_)) => tally.refused += 1,
        (Err(ScheduleError::Pipeline(err)), None) => {
            tally.wrongly_refused.push(format!("{err}\n{}", story()));
        }
        (Err(err), _) => panic!("refused for another reason: {err}\n{}", story()),
        (Ok(after), None) => {
            tally.accepted += 1;
            execute(program, func, &after, tally).unwrap_or_else(|err| panic!("{err}\n{}", story()));
        }
    }
}

/// Runs an annotated program in all its forms.
fn execute(program: &Program, before: &Func, after: &Func, tally: &mut Tally) -> Result<(), String> {
    let lowered = match run::lower(&run::bound(after)) {
        Ok(it) => it,
        Err(err) => {
            *tally.not_lowered.entry(family(&err.to_string())).or_default() += 1;
            return Ok(());
        }
    };
    tally.kernels += 1;
    let trips: &[i64] = match program.trips {
        Trips::Constant(it) => &[it],
        Trips::Symbolic => &[1, 2, 3, 5, 9],
    };
    for trips in trips {
        let expected = expected(program, before, *trips)?;
        let about =
            |err| format!("{trips} iterations: {err}\n{}\n{}", run::text(&lowered.expanded), lowered.module);
        expected.interpreter("after the steps", after).map_err(about)?;
        if lowered.is_for_interpreter() {
            expected.interpreter("after the expansion", &lowered.expanded).map_err(about)?;
        }
        expected.virtual_gpu(before, &lowered.module).map_err(about)?;
    }
    Ok(())
}

/// What the interpreter makes of a program, which is what this test's own execution makes of it.
fn expected(program: &Program, func: &Func, trips: i64) -> Result<Expected, String> {
    let dims: IndexMap<Name, i64> = func.dims.iter().map(|it| (it.clone(), trips)).collect();
    let element = |_: usize, shape: &[usize], at: usize| {
        let (row, column) = (at / shape[1], at % shape[1]);
        input(i64::try_from(row).unwrap(), i64::try_from(column).unwrap())
    };
    let out = Expected::new(func, &dims, &element)?;
    let own = Oracle::new(program, trips).result(None);
    let seen = |it: &(usize, &crate::model::Buffer)| !matches!(it.1.kind, Kind::Inner(_));
    for ((buffer, _), tensor) in program.buffers.iter().enumerate().filter(seen).zip(&out.outputs) {
        for (at, got) in tensor.data.iter().enumerate() {
            let (row, column) = (at / tensor.shape[1], at % tensor.shape[1]);
            let want = own[&(buffer, None, i64::try_from(row).unwrap(), i64::try_from(column).unwrap())];
            if (got - want).abs() > 1e-3 * want.abs().max(1.0) {
                return Err(format!("the interpreter gives B{buffer}[{row}, {column}] = {got}, not {want}"));
            }
        }
    }
    Ok(out)
}

/// A message without the names and numbers in it.
fn family(message: &str) -> String {
    let words = message.split('`').enumerate().map(|(at, it)| if at % 2 == 1 { "…" } else { it });
    words.collect::<String>().replace(|it: char| it.is_ascii_digit(), "")
}

pub(crate) fn parse(program: &Program) -> Func {
    let text = program.text();
    let func = text::parse(&text).unwrap_or_else(|err| panic!("{err:?}\n{text}"));
    ir::verify(&func).unwrap_or_else(|err| panic!("{}\n{text}", err[0]));
    func
}

impl Tally {
    pub(crate) fn report(&self) -> String {
        let mut out = format!(
            "{} accepted, {} refused, {} wrongly refused, {} kernels run\n",
            self.accepted,
            self.refused,
            self.wrongly_refused.len(),
            self.kernels
        );
        for (kind, count) in &self.benign {
            writeln!(out, "{count} refused for a {kind} that no output shows").unwrap();
        }
        for (why, count) in &self.not_lowered {
            writeln!(out, "{count} not lowered: {why}").unwrap();
        }
        out
    }
}

fn seed() -> u64 {
    std::env::var("TILEWRIGHT_SEED").map_or(1, |it| it.parse().unwrap())
}

#[test]
fn random_annotations_are_judged_exactly() {
    let mut random = Random(seed());
    let mut tally = Tally::default();
    for _ in 0..ANNOTATIONS / EACH {
        let program = random.program();
        let func = parse(&program);
        for _ in 0..EACH {
            let asked = random.annotation(program.components.len());
            judge(&program, &func, &asked, &mut tally);
        }
    }
    println!("{}", tally.report());
    for it in tally.wrongly_refused.iter().take(3) {
        println!("wrongly refused: {it}");
    }
    assert!(tally.wrongly_refused.is_empty(), "{}", tally.wrongly_refused[0]);
    assert!(tally.accepted > ANNOTATIONS / 8, "{}", tally.report());
}
