//! The kernels of `tests/vgpu` that multiply matrices by `wgmma`: their numbers, and what becomes of them if anything is taken out.
//!
//! `// product: m=200 n=100 k=160 a=k b=mn` says what a kernel computes: `C = A·B`, and which dimension of each factor is
//! contiguous. With `scales=mx` each 32 elements of a row of a factor have a scale, and with
//! `scales=nvfp4` each 8 bytes, of two floats each, and with `scales=mxfp4` each 16.

mod mutants;
pub(crate) mod subject;

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use indexmap::IndexMap;
use ir::{Arch, Module, Name, Target};
use tilewright_codegen::{
    lower::{Pass, State},
    vgpu::{self, Report, Settings},
};

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

/// What the proofs about phases say of a kernel.
fn proved(module: &Module) -> Result<(), String> {
    let pass = Pass::find("check_phases").expect("it is in the table");
    let target = Target::Cuda(Arch { sm: 90, suffix: Some('a') });
    pass.run(State::Module(module.clone()), &target).map(drop).map_err(|err| err.to_string())
}

#[test]
fn what_is_right_is_proved() {
    for it in subjects() {
        assert_eq!(proved(&it.module), Ok(()), "{}", it.name);
    }
}

/// Each text of `tests/vgpu` that has mbarriers or products: what the virtual GPU finds in it stands in its name.
#[test]
fn what_the_virtual_gpu_finds_is_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vgpu");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    let mut told = String::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        if text.contains("mbarriers") || text.contains("wgmma") || text.contains("commit bulk") {
            let said = proved(&ir::text::parse_module(&text).unwrap()).err();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            writeln!(told, "{name}: {}", said.as_deref().unwrap_or("proved")).unwrap();
        }
    }
    insta::assert_snapshot!(told);
}

#[test]
fn every_mutant_is_caught() {
    let (mut told, mut survivors, mut unproved) = (String::new(), vec![], vec![]);
    for it in subjects() {
        let mut reasons = BTreeMap::<&str, (usize, usize)>::new();
        let mutants = mutants::mutants(&it.module);
        for mutant in &mutants {
            let is_refused = proved(&mutant.module).is_err();
            // Where hardware finds elements is none of its business, nor yet are the numbers of fills where warpgroups take turns.
            let has_turns = it.name.contains("ping_pong");
            // A pair of blocks that does not multiply as one does not meet at its end, either.
            let in_pairs = |module: &Module| module.kernels[0].multiplies_in_pairs();
            let is_parted = in_pairs(&it.module) && !in_pairs(&mutant.module);
            if is_refused == mutant.is_layout && (is_refused && !is_parted || !is_refused && !has_turns) {
                unproved.push(format!("{}: {}", it.name, mutant.name));
            }
            match caught(&it, &mutant.module) {
                Some(reason) => {
                    let (found, proved_wrong) = reasons.entry(reason).or_default();
                    *found += 1;
                    *proved_wrong += usize::from(is_refused);
                }
                None => survivors.push(format!("{}: {}", it.name, mutant.name)),
            }
        }
        let proved: usize = reasons.values().map(|it| it.1).sum();
        writeln!(told, "{}: {} mutants, {proved} of them found by the proof", it.name, mutants.len())
            .unwrap();
        for (reason, (found, proved)) in reasons {
            writeln!(told, "  {reason}: {found}, by the proof {proved}").unwrap();
        }
    }
    assert!(unproved.is_empty(), "the proof is wrong about these:\n{}", unproved.join("\n"));
    assert!(survivors.is_empty(), "nobody misses these:\n{}", survivors.join("\n"));
    insta::assert_snapshot!(told);
}
