//! Random programs with random bindings: what lowering accepts has no finding on the virtual GPU, and computes what the
//! same program does with all its loops serial.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod generate;

use indexmap::IndexMap;
use ir::{Arch, Func, Module, Name, Role, Target};
use tilewright_codegen::{
    lower::lower,
    vgpu::{self, Settings},
};

use generate::{BLOCKS, CLUSTERS, Kind, Random, program};

const PROGRAMS: usize = 800;

#[derive(Default, Debug)]
struct Tally {
    /// Programs that are wrong however they are run: they read what nobody wrote.
    wrong: usize,
    refused: usize,
    accepted: usize,
    /// Those in which blocks of a cluster wait for each other.
    meeting: usize,
}

#[test]
fn what_is_accepted_runs_without_a_finding() {
    let tally = tried(&BLOCKS);
    assert!(tally.accepted * 4 > PROGRAMS && tally.refused * 20 > PROGRAMS, "{tally:?}");
}

/// The same where blocks of a cluster exchange data.
#[test]
fn clusters_run_without_a_finding() {
    let tally = tried(&CLUSTERS);
    assert!(tally.meeting * 8 > PROGRAMS && tally.refused * 20 > PROGRAMS, "{tally:?}");
}

fn tried(kind: &Kind) -> Tally {
    let seed = std::env::var("TILEWRIGHT_SEED").ok().and_then(|it| it.parse().ok());
    let mut random = Random(seed.unwrap_or(7));
    let mut tally = Tally::default();
    for number in 0..PROGRAMS {
        let made = program(&mut random, kind);
        let Some(expected) = made.serial_outputs() else {
            tally.wrong += 1;
            continue;
        };
        let Ok(module) = lower(&parsed(&made.bound), &target(), &mut |_, _| {}) else {
            tally.refused += 1;
            continue;
        };
        tally.accepted += 1;
        tally.meeting += usize::from(module.to_string().contains("barrier cluster"));
        for settings in Settings::hostile(1) {
            let found = outputs(&module, &settings);
            assert!(found.as_ref() == Ok(&expected), "{number}: {found:?}\n{}\n{module}", made.bound);
        }
    }
    tally
}

/// A program as text.
struct Made {
    /// With its bindings.
    bound: String,
    /// With one thread.
    serial: String,
}

impl Made {
    /// What it computes, if it is a program that reads nothing that was not written.
    fn serial_outputs(&self) -> Option<Outputs> {
        let module = lower(&parsed(&self.serial), &target(), &mut |_, _| {}).unwrap_or_else(|err| {
            panic!("one thread has nobody to meet: {err}\n{}", self.serial);
        });
        outputs(&module, &Settings::default()).ok()
    }
}

type Outputs = Vec<(Name, Vec<f64>)>;

fn target() -> Target {
    Target::Cuda(Arch { sm: 90, suffix: Some('a') })
}

fn parsed(text: &str) -> Func {
    ir::text::parse(text).unwrap_or_else(|err| panic!("{err:?}\n{text}"))
}

/// What a kernel leaves in its outputs, or the first finding.
fn outputs(module: &Module, settings: &Settings) -> Result<Outputs, String> {
    let mut memory = IndexMap::new();
    for (name, arg) in module.args.iter().filter(|(_, it)| it.role == Role::Input) {
        let len = arg.elements().as_int().unwrap();
        memory.insert(name.clone(), (1..=len).map(|it| it as f64).collect());
    }
    let report = vgpu::run(module, &IndexMap::new(), &mut memory, settings).unwrap();
    if let Some(it) = report.findings.first() {
        return Err(it.to_string());
    }
    let outputs = module.args.iter().filter(|(_, it)| it.role == Role::Output);
    Ok(outputs.map(|(name, _)| (name.clone(), memory[name].clone())).collect())
}
