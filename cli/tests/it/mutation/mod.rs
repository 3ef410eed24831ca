//! Takes barriers, waits and commits out of lowered pipelines, one at a time, and demands that the virtual GPU sees
//! each that is missing.
//!
//! The kernels are those of `tests/mutation/scripts`, of the pipelined scripts and those with split sums in clusters in `tests/scripts`, of
//! `tests/pipeline/cases`, and of the ladders of products. The snapshot is the report: how many of how many, and by what they were
//! caught. What nobody misses must be in [`REDUNDANT`] with the reason. Kernels of clusters have mutants of their own ([`cluster`]).

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod cluster;
mod kernels;
mod mutate;
mod values;

use std::{collections::BTreeMap, fmt::Write as _};

use codegen::vgpu::{self, Settings};
use indexmap::IndexMap;
use ir::{Module, Name, Role};
use kernels::Subject;
use mutate::What;

/// Mutants that behave like the kernels that they were made of, by what the names of kernels begin with and mutation, and why.
const REDUNDANT: &[(&str, &str, &str)] = &[
    (
        "async_two_stages",
        "commit 1",
        "the first wait is for all groups, so that the first two may be one; later waits count from the youngest",
    ),
    ("matmul-blackwell 03_roles", "barrier 1", ONE_TILE),
    ("matmul-blackwell 04_persistent", "barrier 1", ONE_TILE),
    ("matmul-blackwell 05_accumulators", "barrier 1", ONE_TILE),
    ("matmul-blackwell 06_store", "barrier 3", ONE_TILE),
    ("matmul-blackwell 07_pairs", "barrier 3", ONE_TILE),
    ("matmul-blackwell 08_launch_control", "barrier 3", ONE_TILE),
    ("matmul-blackwell 08_launch_control", "barrier 4", ONE_TILE),
    ("matmul-blackwell-geforce 04_roles", "barrier 1", FEW_STEPS),
    ("matmul-blackwell-geforce 05_persistent", "barrier 1", FEW_STEPS),
];

/// Accumulators of several tiles a block are mutated in the tests of `codegen`.
const ONE_TILE: &str = "a block has one tile at this size, so that nobody waits until its accumulator, or an answer, is given back";

/// Rings that go round are mutated in the tests of `codegen`.
const FEW_STEPS: &str = "the sum has no more steps than slots at this size, so that none is filled again";

/// What came of the mutants of one kernel.
#[derive(Default)]
struct Tally {
    caught: BTreeMap<What, usize>,
    all: BTreeMap<What, usize>,
    /// By what they were caught.
    reasons: BTreeMap<&'static str, usize>,
    survivors: Vec<String>,
}

impl Tally {
    fn of(subject: &Subject) -> Tally {
        let mut tally = Tally::default();
        for mutant in mutate::mutants(&subject.module) {
            *tally.all.entry(mutant.what).or_default() += 1;
            match caught(subject, &mutant.module) {
                Some(reason) => {
                    *tally.caught.entry(mutant.what).or_default() += 1;
                    *tally.reasons.entry(reason).or_default() += 1;
                }
                None => tally.survivors.push(mutant.name),
            }
        }
        tally
    }

    fn add(&mut self, other: &Tally) {
        for (to, from) in [(&mut self.caught, &other.caught), (&mut self.all, &other.all)] {
            for (what, it) in from {
                *to.entry(*what).or_default() += it;
            }
        }
        for (what, it) in &other.reasons {
            *self.reasons.entry(what).or_default() += it;
        }
    }

    /// `barriers 3 of 3, commits 2 of 2`.
    fn words(&self) -> String {
        let count = |what: &What| self.caught.get(what).copied().unwrap_or(0);
        let words = self.all.iter().map(|(what, all)| format!("{} {} of {all}", what.plural(), count(what)));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// What the virtual GPU says about a mutant.
fn caught(subject: &Subject, mutant: &Module) -> Option<&'static str> {
    for settings in Settings::hostile(1) {
        for run in &subject.runs {
            let mut memory = run.inputs.clone();
            let report = vgpu::run(mutant, &run.dims, &mut memory, &settings).unwrap();
            if let Some(first) = report.findings.first() {
                return Some(first.finding.title());
            }
            if !subject.is_right(run, &memory) {
                return Some("wrong value");
            }
        }
    }
    None
}

impl Subject {
    fn is_right(&self, run: &kernels::Run, memory: &IndexMap<Name, Vec<f64>>) -> bool {
        let outputs = self.module.args.iter().filter(|(_, it)| it.role == Role::Output).map(|it| it.0);
        outputs.zip(&run.outputs).all(|(name, want)| memory[name] == *want)
    }
}

#[test]
fn every_mutant_is_caught() {
    let subjects = kernels::all();
    let mut report = String::new();
    let mut total = Tally::default();
    let mut unknown = vec![];
    let mut kernels = 0;
    for subject in &subjects {
        assert_eq!(caught(subject, &subject.module), None, "{} as it is\n{}", subject.name, subject.module);
        let tally = Tally::of(subject);
        if tally.all.is_empty() {
            continue;
        }
        kernels += 1;
        writeln!(report, "{}: {}", subject.name, tally.words()).unwrap();
        for it in &tally.survivors {
            match REDUNDANT.iter().find(|(name, mutant, _)| subject.name.starts_with(name) && mutant == it) {
                Some((.., reason)) => writeln!(report, "  {it}: {reason}").unwrap(),
                None => unknown.push(format!("{}: {it}\n{}", subject.name, subject.module)),
            }
        }
        total.add(&tally);
    }
    let sum = |it: &BTreeMap<What, usize>| it.values().sum::<usize>();
    let (caught, all) = (sum(&total.caught), sum(&total.all));
    writeln!(report, "\n{kernels} kernels: caught {caught} of {all}: {}", total.words()).unwrap();
    let reasons: Vec<_> = total.reasons.iter().map(|(what, it)| format!("{what} {it}")).collect();
    writeln!(report, "by: {}", reasons.join(", ")).unwrap();
    println!("{report}");
    assert!(kernels >= 20);
    assert!(unknown.is_empty(), "nobody misses these:\n\n{}\n{report}", unknown.join("\n\n"));
    insta::assert_snapshot!(report);
}

#[test]
fn kernels_are_read_back() {
    for subject in kernels::all() {
        let text = subject.module.to_string();
        let read =
            ir::text::parse_module(&text).unwrap_or_else(|err| panic!("{}: {err}\n{text}", subject.name));
        assert_eq!(read, subject.module, "{}", subject.name);
    }
}
