//! The kernels of `tests/vgpu` that multiply matrices by `wgmma`: their numbers, and what becomes of them if anything is taken out.
//!
//! `// product: m=200 n=100 k=160 a=k b=mn` says what a kernel computes: `C = A·B`, and which dimension of each factor is
//! contiguous.

mod mutants;
pub(crate) mod subject;

use std::{collections::BTreeMap, fmt::Write as _};

use indexmap::IndexMap;
use ir::{Module, Name};
use tilewright_codegen::vgpu::{self, Report, Settings};

use self::subject::{Subject, subjects};

impl Subject {
    /// What the virtual GPU says of a kernel with these inputs, and whether its numbers are right.
    fn run(&self, module: &Module, settings: &Settings) -> Result<(Report, bool), vgpu::VgpuError> {
        let mut memory = self.inputs.clone();
        let report = vgpu::run(module, &IndexMap::new(), &mut memory, settings)?;
        let is_right = memory[&Name::new("C")] == self.product;
        Ok((report, is_right))
    }
}

#[test]
fn products_are_right_in_every_order() {
    for it in subjects() {
        for settings in Settings::hostile(1) {
            let (report, is_right) = it.run(&it.module, &settings).unwrap();
            let findings: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
            assert!(
                report.is_clean() && is_right,
                "{} {}: {is_right} {findings:#?}",
                it.name,
                settings.words()
            );
        }
    }
}

/// Why a mutant is not the kernel, by the first run that tells.
fn caught(subject: &Subject, module: &Module) -> Option<&'static str> {
    Settings::hostile(1).iter().find_map(|settings| match subject.run(module, settings) {
        // What cannot be run at all cannot be launched.
        Err(_) => Some("refused"),
        Ok((report, is_right)) => {
            let found = report.findings.first().map(|it| it.finding.title());
            found.or_else(|| (!is_right).then_some("wrong numbers"))
        }
    })
}

#[test]
fn every_mutant_is_caught() {
    let (mut told, mut survivors) = (String::new(), vec![]);
    for it in subjects() {
        let mut reasons = BTreeMap::<&str, usize>::new();
        let mutants = mutants::mutants(&it.module);
        for mutant in &mutants {
            match caught(&it, &mutant.module) {
                Some(reason) => *reasons.entry(reason).or_default() += 1,
                None => survivors.push(format!("{}: {}", it.name, mutant.name)),
            }
        }
        let reasons: Vec<_> = reasons.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        writeln!(told, "{}: {} mutants, by {}", it.name, mutants.len(), reasons.join(", ")).unwrap();
    }
    assert!(survivors.is_empty(), "nobody misses these:\n{}", survivors.join("\n"));
    insta::assert_snapshot!(told);
}
