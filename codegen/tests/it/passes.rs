//! Passes one by one, each started from a text of what the pass before it leaves.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

use ir::{Arch, Func, Name, Op, Target};
use tilewright_codegen::lower::{LowerError, PASSES, Pass, State, lower};

/// The target that the first line of a test names.
fn target(word: &str) -> Target {
    match word {
        "cpu" => Target::Cpu,
        "cuda" => Target::Cuda(Arch { sm: 80, suffix: None }),
        arch => Target::Cuda(Arch::parse(arch).unwrap_or_else(|| panic!("no target `{arch}`"))),
    }
}

fn print(state: &State) -> String {
    match state {
        State::Func(func) => ir::text::print(func).text,
        State::Module(module) => module.to_string(),
    }
}

fn parse(text: &str) -> State {
    if text.trim_start().starts_with("module") {
        let module = ir::text::parse_module(text).unwrap_or_else(|err| panic!("{err}\n{text}"));
        ir::verify_module(&module).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        State::Module(module)
    } else {
        State::Func(ir::text::parse(text).unwrap_or_else(|err| panic!("{err}\n{text}")))
    }
}

/// Each file of `tests/passes` names a pass and has its input: the snapshot is what the pass makes of it.
#[test]
fn from_texts() {
    insta::glob!("../passes", "*.tw", |path| {
        let text = fs::read_to_string(path).unwrap();
        let (head, program) = text.split_once('\n').unwrap();
        let (name, word) = head.trim_start_matches("test ").split_once(' ').unwrap();
        let pass = Pass::find(name).unwrap_or_else(|| panic!("no pass `{name}`"));
        let transcript = match pass.run(parse(program), &target(word)) {
            Ok(state) => print(&state),
            Err(err) => refusal(&err),
        };
        insta::assert_snapshot!(transcript);
    });
}

fn refusal(err: &LowerError) -> String {
    let mut out = format!("refused: {err}\nabout: {:?}\n", err.names());
    err.help().iter().for_each(|help| writeln!(out, "help: {help}").unwrap());
    out
}

#[test]
fn every_pass_has_a_text() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes");
    let heads = fs::read_dir(folder).unwrap().filter_map(|it| {
        let path = it.unwrap().path();
        let text =
            path.extension().is_some_and(|it| it == "tw").then(|| fs::read_to_string(path).unwrap())?;
        Some(text.split(' ').nth(1)?.to_owned())
    });
    let tested: BTreeSet<_> = heads.collect();
    let missing: Vec<_> = PASSES.iter().map(|it| it.name).filter(|it| !tested.contains(*it)).collect();
    assert!(missing.is_empty(), "no file in tests/passes is for {missing:?}");
}

/// All that a pass has to know is in the program: started from the printed input, it does the same.
#[test]
fn programs_between_passes_are_complete() {
    let mut count = 0;
    for_each_program(&mut |path, func, target| count += restarted(path, func, target));
    assert!(count > 1000, "{count} passes were started");
}

/// Passes hand on where instructions come from; remarks about memory are from nowhere.
#[test]
fn instructions_know_where_they_come_from() {
    for_each_program(&mut |path, func, target| {
        let names: BTreeSet<Name> = func.body.blocks().iter().map(|it| it.name.clone()).collect();
        let _ = lower(func, target, &mut |pass, after| {
            let State::Module(module) = after else { return };
            for op in module.kernels.iter().flat_map(|it| &it.body) {
                op.walk(&mut |op| {
                    let Op::Instr(it, origin) = op else { return };
                    let is_known =
                        origin.block().map_or_else(|| it.sync().is_some(), |it| names.contains(it));
                    let is_told = is_known && !origin.is_unknown() || it.is_remark();
                    assert!(is_told, "{}, after {}: `{it}` is of `{origin}`", path.display(), pass.name);
                });
            }
        });
    });
}

/// The programs of the tests of lowering, with their targets.
fn for_each_program(f: &mut dyn FnMut(&Path, &Func, &Target)) {
    for folder in ["lower", "mechanism"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|it| it == "tw") {
                let text = fs::read_to_string(&path).unwrap();
                let (head, program) = text.split_once('\n').unwrap();
                let word = head.rsplit(' ').next().unwrap();
                f(&path, &ir::text::parse(program).unwrap(), &target(word));
            }
        }
    }
}

/// How many passes were started again on the way of a program.
fn restarted(path: &Path, func: &Func, target: &Target) -> usize {
    let name = path.display();
    let mut before = State::Func(func.clone());
    let mut count = 0;
    // A refusal ends the way; what was passed before is compared.
    let _ = lower(func, target, &mut |pass, after| {
        let read = parse(&print(&before));
        assert!(
            read == before,
            "{name}, before {}: not read as it was printed:\n{}",
            pass.name,
            print(&before)
        );
        match pass.run(read, target) {
            Ok(again) => assert_eq!(print(&again), print(after), "{name}: {}", pass.name),
            Err(err) => panic!("{name}: {} refuses what it took before: {err}", pass.name),
        }
        before = after.clone();
        count += 1;
    });
    count
}
