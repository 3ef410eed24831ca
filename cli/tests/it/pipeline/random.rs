//! Random annotations of random loops: the tool's verdict is that of brute force, and what it accepts is right.
//!
//! `TILEWRIGHT_SEED` chooses other loops.

use std::{collections::BTreeMap, fmt::Write as _};

use indexmap::IndexMap;
use ir::{Func, Name, text};
use schedule::{ScheduleError, Session, Step};

use super::{
    generate::Random,
    model::{BufferUse, Program, Trips, block_name, component_name, tile_name},
    nested::{Inner, Piece},
    oracle::{Oracle, Times, agree, input},
    run::{self, Expected},
};

/// How many annotations are judged.
const ANNOTATIONS: usize = 4800;
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
    /// Those of the kernels with a pipeline inside a pipeline, and those in which that one is in parts.
    nested: [usize; 2],
    /// Those of the kernels with asynchronous stages, and those with slots by force.
    special: [usize; 2],
}

/// An annotation.
#[derive(Default)]
pub(crate) struct Asked {
    /// Of each piece.
    pub(crate) times: Times,
    /// `peel` or `predicate`, if the script says so.
    pub(crate) style: Option<&'static str>,
    pub(crate) async_stages: Vec<i64>,
    /// How to copy, if the script says so.
    pub(crate) mechanism: Option<&'static str>,
    /// Blocks that shall have more slots of what they fill: component, block, how many.
    pub(crate) slots: Vec<(usize, usize, i64)>,
    /// The pipelines inside components, by component.
    pub(crate) inner: Vec<Option<Inner>>,
}

impl Asked {
    /// What has a time, in program order.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        let parts = |(component, it): (usize, &Option<Inner>)| match it {
            Some(it) if it.in_parts => (0..3).map(|part| Piece { component, part: Some(part) }).collect(),
            Some(_) | None => vec![Piece { component, part: None }],
        };
        self.inner.iter().enumerate().flat_map(parts).collect()
    }

    /// How many slots a component asks for a buffer.
    pub(crate) fn forced_slots(&self, program: &Program, component: usize, buffer: usize) -> i64 {
        let of = |it: &&(usize, usize, i64)| {
            it.0 == component && program.components[it.0].blocks[it.1].place.buffer == Some(buffer)
        };
        self.slots.iter().filter(of).map(|it| it.2).max().unwrap_or(1)
    }

    /// Whether parts of an inner pipeline run in another order than they were. Lowering gives the elements of a tile slots
    /// of a temporary in common, which then may be in use.
    fn turns_parts(&self) -> bool {
        let pieces = self.pieces();
        let mut pairs = pieces.iter().zip(&self.times).zip(pieces.iter().zip(&self.times).skip(1));
        pairs.any(|((a, first), (b, then))| a.component == b.component && first > then)
    }

    pub(crate) fn steps(&self) -> Vec<String> {
        let mut out = Vec::new();
        for (at, it) in self.inner.iter().enumerate() {
            let Some(it) = it else { continue };
            let names: Vec<_> = (0..it.times.len()).map(|block| block_name(at, block)).collect();
            out.extend(pipeline(&tile_name(at), &names, &it.times, None));
        }
        for (component, block, slots) in &self.slots {
            let name = block_name(*component, *block);
            out.push(format!("double_buffer_scope(block: \"{name}\", slots: {slots})"));
        }
        if !self.async_stages.is_empty() {
            let how = self.mechanism.map(|it| format!(", mechanism: \"{it}\"")).unwrap_or_default();
            out.push(format!(
                "software_pipeline_async_stages(loop: \"i\", stages: {:?}{how})",
                self.async_stages
            ));
        }
        let name = |it: Piece| match it.part {
            None => component_name(it.component),
            Some(part) => {
                format!("{}_{}", tile_name(it.component), ["prologue", "body", "epilogue"][part])
            }
        };
        let names: Vec<_> = self.pieces().into_iter().map(name).collect();
        out.extend(pipeline("i", &names, &self.times, self.style));
        out
    }
}

/// The steps that pipeline a loop.
fn pipeline(var: &str, names: &[String], times: &Times, style: Option<&str>) -> [String; 2] {
    let map = |of: &dyn Fn(&(i64, i64)) -> i64| {
        let pairs = names.iter().zip(times).map(|(name, it)| format!("\"{name}\": {}", of(it)));
        pairs.collect::<Vec<_>>().join(", ")
    };
    let style = style.map(|it| format!(", style: \"{it}\"")).unwrap_or_default();
    [
        format!("software_pipeline_stage(loop: \"{var}\", stages: {{{}}}{style})", map(&|it| it.0)),
        format!("software_pipeline_order(loop: \"{var}\", order: {{{}}})", map(&|it| it.1)),
    ]
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
    let mut violation = None;
    let mut right = true;
    for trips in program.all_trips() {
        match Oracle::arranged(program, trips, asked) {
            Ok(it) => {
                violation = violation.or_else(|| it.violation(&asked.times));
                let plain = Oracle::new(program, trips).result(None);
                right &= agree(&it.result(Some(&asked.times)), &plain);
            }
            Err(it) => violation = Some(it),
        }
    }
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
            execute(program, func, &after, asked, tally).unwrap_or_else(|err| panic!("{err}\n{}", story()));
        }
    }
}

/// Runs an annotated program in all its forms.
fn execute(
    program: &Program,
    before: &Func,
    after: &Func,
    asked: &Asked,
    tally: &mut Tally,
) -> Result<(), String> {
    let lowered = match run::lower(&run::bound(after)) {
        Ok(it) => it,
        Err(err) if asked.mechanism.is_none() && !asked.turns_parts() => {
            return Err(format!("not lowered: {err}"));
        }
        Err(err) => {
            *tally.not_lowered.entry(family(&err.to_string())).or_default() += 1;
            return Ok(());
        }
    };
    tally.kernels += 1;
    let inner = || asked.inner.iter().flatten();
    tally.nested[0] += usize::from(inner().next().is_some());
    tally.nested[1] += usize::from(inner().any(|it| it.in_parts));
    tally.special[0] += usize::from(!asked.async_stages.is_empty());
    tally.special[1] += usize::from(!asked.slots.is_empty());
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
    let seen = |it: &(usize, &super::model::Buffer)| !matches!(it.1.kind, BufferUse::Inner(_));
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
        let ([nested, parts], [copies, slots]) = (self.nested, self.special);
        writeln!(out, "of these {nested} nested, {parts} in parts, {copies} with asynchronous stages, {slots} with slots")
            .unwrap();
        for (kind, count) in &self.benign {
            writeln!(out, "{count} refused for a {kind} that no output shows").unwrap();
        }
        for (why, count) in &self.not_lowered {
            writeln!(out, "{count} not lowered: {why}").unwrap();
        }
        out
    }
}

pub(crate) fn seed() -> u64 {
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
            let asked = random.annotation(&program);
            judge(&program, &func, &asked, &mut tally);
        }
    }
    println!("{}", tally.report());
    for it in tally.wrongly_refused.iter().take(3) {
        println!("wrongly refused: {it}");
    }
    assert!(tally.wrongly_refused.is_empty(), "{}", tally.wrongly_refused[0]);
    let (accepted, refused) = (tally.accepted, tally.refused);
    assert_eq!(accepted + refused, ANNOTATIONS, "{}", tally.report());
    let least = [
        (accepted, ANNOTATIONS / 6),
        (refused, ANNOTATIONS / 4),
        (tally.kernels, ANNOTATIONS / 8),
        (tally.nested[0], ANNOTATIONS / 200),
        (tally.nested[1], ANNOTATIONS / 1000),
        (tally.special[0], ANNOTATIONS / 50),
        (tally.special[1], ANNOTATIONS / 50),
    ];
    assert!(least.iter().all(|(count, least)| count >= least), "{}", tally.report());
}
