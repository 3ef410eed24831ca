//! The sources that are emitted for every script of this repository, by their hashes: a change of the compiler that
//! is not meant to change a kernel shows here if it does.
//!
//! `INSTA_UPDATE=always cargo test --test it sources::` writes the hashes anew; a difference that is meant belongs into the
//! message of its commit. Those of CPUs are of one width of vectors, whatever the host has.

#![allow(clippy::unwrap_used, reason = "a test says where by its panic")]

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use codegen::{compile_module, emit::emit, lower::set_vector_bytes};
use ir::{Arch, Coded as _, Func, Target};
use schedule::{Decisions, Script, Session, script::ScriptTarget, workload};
use tuner::sha256;

use crate::common::WIDTH;

/// The folders with scripts, in the repository.
const FOLDERS: [&str; 5] = [
    "workloads",
    "cli/tests/scripts",
    "cli/tests/mutation/scripts",
    "cli/tests/pipeline/cases",
    "schedule/tests/scripts",
];

#[test]
fn cuda_sources_are_those_recorded() {
    let archs = [Arch { sm: 80, suffix: None }, Arch { sm: 90, suffix: Some('a') }];
    let targets: Vec<_> = archs.into_iter().map(Target::Cuda).collect();
    insta::assert_snapshot!("cuda", hashes(&targets));
}

#[test]
fn cpu_sources_are_those_recorded() {
    set_vector_bytes(WIDTH);
    insta::assert_snapshot!(format!("cpu_{WIDTH}_byte_vectors"), hashes(&[Target::Cpu]));
}

/// A line for each script that is for one of the targets: its path, and the hash of its source for each of them.
fn hashes(targets: &[Target]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut out = String::new();
    for path in FOLDERS.iter().flat_map(|it| scripts(&root.join(it))) {
        let Some((func, is_cpu)) = scheduled(&path) else { continue };
        let name = path.strip_prefix(root).unwrap().display();
        for target in targets.iter().filter(|it| is_cpu == (**it == Target::Cpu)) {
            let source = source(&func, target);
            writeln!(out, "{source} {} {name}", told(target)).unwrap();
        }
    }
    assert!(out.lines().count() > 50, "{out}");
    out
}

fn told(target: &Target) -> String {
    match target {
        Target::Cpu => "cpu".to_owned(),
        Target::Cuda(arch) => arch.to_string(),
    }
}

/// The first half of the hash of the source, or what stands in the way of one.
fn source(func: &Func, target: &Target) -> String {
    let module = match compile_module(func, target) {
        Ok(it) => it,
        Err(err) => return err.code().to_string(),
    };
    match emit(&module, target) {
        Ok(it) => sha256(it)[..32].to_owned(),
        Err(err) => err.code().to_string(),
    }
}

/// The program that a script makes with the defaults of its knobs, and whether it is for the CPU; none for workloads
/// and for scripts that are refused.
fn scheduled(path: &Path) -> Option<(Func, bool)> {
    let text = tilewright::expand(path, &fs::read_to_string(path).unwrap()).ok()?;
    let script = Script::parse(&text).ok()?;
    let (func, params) = program(path, &script)?;
    let target = match script.target.as_ref().map(|it| it.value.clone()) {
        None => None,
        Some(ScriptTarget::Cpu) => Some(Target::Cpu),
        Some(ScriptTarget::Cuda(arch)) => Some(Target::Cuda(arch.unwrap_or(Arch { sm: 80, suffix: None }))),
    };
    let is_cpu = !matches!(target, Some(Target::Cuda(_)));
    let mut session = Session::new(func, target);
    for step in script.resolve(&params, &Decisions::new()).ok()? {
        session.apply(&step.value).ok()?;
    }
    Some((session.func().clone(), is_cpu))
}

type Params = indexmap::IndexMap<String, workload::Param>;

/// The program of a script: of a workload that ships, of a text beside it, or of one of the tests of schedules.
fn program(path: &Path, script: &Script) -> Option<(Func, Params)> {
    let (name, given) = (&script.workload.value, &script.params.value);
    let folder = path.parent().unwrap();
    let funcs = folder.join("../funcs").join(format!("{name}.txt"));
    if let Some(text) = [folder.join(name), funcs].iter().find_map(|it| fs::read_to_string(it).ok())
        && let Ok(func) = ir::text::parse(&text)
    {
        return Some((func, given.clone()));
    }
    let workload = workload::parse(workloads::find(name)?).ok()?;
    Some((workload.instantiate(given).ok()?, workload.complete(given).ok()?))
}

/// The files `*.ron` in a folder and the folders in it, sorted.
fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    let mut out = Vec::new();
    for path in paths {
        if path.is_dir() {
            out.extend(scripts(&path));
        } else if path.extension().is_some_and(|it| it == "ron") {
            out.push(path);
        }
    }
    out
}
