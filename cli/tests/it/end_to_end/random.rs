//! Random schedules: whatever is accepted and lowers, computes the same as the unscheduled program.
//!
//! `TILEWRIGHT_SEED` chooses other schedules.

use std::{fmt::Write as _, fs, process::Command};

use codegen::device::{CpuMachine, Machine as _};
use indexmap::IndexMap;
use ir::{Arch, Func, LoopKind, Module, Name, Target, text};
use schedule::{Session, Step, primitive::Bind};

use super::{
    check::{self, Expected},
    cpu,
    propose::{Dice, propose},
};

const PROGRAMS: [&str; 7] = ["matmul", "row_sum", "matmul_relu", "stencil", "argmax", "gather", "lengths"];

/// A program scheduled at random, with what it must compute.
struct Sample {
    module: Module,
    expected: Expected,
    story: String,
}

/// Random numbers: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn program(name: &str) -> Func {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../schedule/tests/funcs");
    text::parse(&fs::read_to_string(format!("{folder}/{name}.txt")).unwrap()).unwrap()
}

/// So many programs that were accepted and lowered, each after three steps or more.
fn samples(target: &Target, wanted: usize) -> Vec<Sample> {
    let seed = std::env::var("TILEWRIGHT_SEED").map_or(1, |it| it.parse().unwrap());
    let mut random = Random(seed);
    let (mut out, mut refused) = (Vec::new(), 0);
    while out.len() < wanted {
        assert!(refused < 40 * wanted, "most schedules are refused by the lowering");
        let name = PROGRAMS[out.len() % PROGRAMS.len()];
        let before = program(name);
        let mut session = Session::new(before.clone(), Some(target.clone()));
        for _ in 0..4 + random.next() % 20 {
            if let Some(step) = propose(session.func(), Dice(random.next())) {
                // A refused step is as good as none.
                drop(session.apply(&step));
            }
        }
        if *target != Target::Cpu {
            bind(&mut session);
        }
        let mut after = session.func().clone();
        after.name = Name::new(format!("{name}_{}", out.len()));
        match codegen::compile_module(&after, target) {
            Ok(module) if session.trace().count() >= 3 => {
                let dims = after.dims.iter().map(|it| (it.clone(), 5)).collect::<IndexMap<_, _>>();
                let mut story = String::new();
                session.trace().for_each(|it| writeln!(story, "{}", it.to_ron()).unwrap());
                write!(story, "{}\n{module}", check::text(&after)).unwrap();
                out.push(Sample { module, expected: Expected::new(&before, &dims, 1e-5), story });
            }
            Ok(_) | Err(_) => refused += 1,
        }
    }
    out
}

/// Binds the outermost loop of each nest that no thread runs yet.
fn bind(session: &mut Session) {
    let blocks: Vec<Name> = session.func().body.blocks().into_iter().map(|it| it.name.clone()).collect();
    for block in blocks {
        let Some(loops) = session.func().loops_of(&block) else { continue };
        let bound = loops.iter().any(|it| matches!(it.kind, LoopKind::Bound(_)));
        let targets: Vec<Name> = loops.iter().map(|it| it.var.clone()).collect();
        for (target, axis) in targets.into_iter().zip(["blockIdx.x", "threadIdx.x"]).filter(|_| !bound) {
            drop(session.apply(&Step::Bind(Bind { target, axis: axis.into() })));
        }
    }
}

#[test]
fn on_the_virtual_gpu() {
    for it in samples(&Target::Cuda(Arch { sm: 80, suffix: None }), 150) {
        it.expected.virtual_gpu(&it.module).unwrap_or_else(|err| panic!("{err}\n{}", it.story));
    }
}

/// All of them in one library, for starting the compiler takes longer than compiling.
#[test]
fn on_the_cpu() {
    let Some(compiler) = cpu::compiler() else { return };
    let samples = samples(&Target::Cpu, 60);
    let folder = tempfile::tempdir().unwrap();
    let files = samples.iter().enumerate().map(|(n, it)| {
        let source = codegen::emit::emit(&it.module, &Target::Cpu).unwrap();
        let file = format!("{n}.c");
        fs::write(folder.path().join(&file), source).unwrap();
        file
    });
    let files: Vec<_> = files.collect();
    let mut command = Command::new(&compiler.command[0]);
    command.args(&compiler.command[1..]).args([
        "-std=gnu11",
        "-O1",
        "-w",
        "-shared",
        "-fPIC",
        "-o",
        "all.so",
    ]);
    assert!(command.args(files).arg("-lm").current_dir(folder.path()).status().unwrap().success());
    let binary = fs::read(folder.path().join("all.so")).unwrap();
    let mut machine = CpuMachine::open().unwrap();
    machine.set_threads(3);
    for it in &samples {
        let program = codegen::program(&it.module, &it.expected.dims, binary.clone()).unwrap();
        cpu::execute(&mut machine, &it.module, &program, &it.expected)
            .unwrap_or_else(|err| panic!("{err}\n{}", it.story));
    }
}
