//! Lowered pipelines, each with inputs and the right outputs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;
use ir::{Arch, Func, Index, Module, Name, Role, Target, Tensor, interp};
use schedule::{
    Decisions, Session, Step,
    script::{Script, ScriptTarget},
    workload::{self, Param},
};

use crate::common::expanded;

/// A kernel to make mutants of.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) module: Module,
    pub(crate) runs: Vec<Run>,
}

/// Inputs of a kernel and what it makes of them.
pub(crate) struct Run {
    pub(crate) dims: IndexMap<Name, i64>,
    pub(crate) inputs: IndexMap<Name, Vec<f64>>,
    pub(crate) outputs: Vec<Vec<f64>>,
}

/// What a script is for; an older GPU where it names none.
fn target(script: &Script) -> Target {
    match script.target.as_ref().map(|it| it.value.clone()) {
        Some(ScriptTarget::Cuda(Some(arch))) => Target::Cuda(arch),
        _ => Target::Cuda(Arch { sm: 80, suffix: None }),
    }
}

/// All of them.
pub(crate) fn all() -> Vec<Subject> {
    let mut out = vec![];
    for path in scripts("mutation/scripts") {
        out.extend(of_workload(&path, &[]));
    }
    let waits = |it: &&PathBuf| ["pipeline", "cluster_split_k"].iter().any(|of| stem(it).starts_with(of));
    for path in scripts("scripts").iter().filter(waits) {
        out.extend(of_workload(path, &cases(path)));
    }
    for path in scripts("pipeline/cases") {
        out.extend(of_program(&path));
    }
    for ladder in workloads::ladders().iter().filter(|it| it.workload.starts_with("matmul")) {
        for rung in ladder.rungs {
            let text = expanded(rung.text);
            let script = Script::parse(&text).unwrap();
            let pipelined = text.contains("software_pipeline_stage");
            if pipelined && script.target.as_ref().is_some_and(|it| it.value != ScriptTarget::Cpu) {
                // So deep that slots are filled again: what gives them back too early is only noticed then.
                // A slot of the products of warpgroups has 128 bytes of a row.
                let narrow = script.params.value.get("dtype") == Some(&Param::Text("i8".to_owned()));
                let depth = if !text.contains("wgmma") {
                    80
                } else if narrow {
                    672
                } else {
                    336
                };
                let size = [("m", 128), ("n", 128), ("k", depth)];
                let params = size.map(|(name, it)| (name.to_owned(), Param::Int(it))).into_iter().collect();
                let name = format!("{} {}", ladder.name, rung.name);
                out.extend(choices(&name, &script, &[Case { params, dims: IndexMap::new() }]));
            }
        }
    }
    out
}

/// Parameters of a workload, and values of its symbolic dimensions.
#[derive(Default)]
struct Case {
    params: IndexMap<String, Param>,
    dims: IndexMap<Name, i64>,
}

fn scripts(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.retain(|it| it.extension().is_some_and(|it| it == "ron"));
    paths.sort();
    paths
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

/// The cases that a script names: those with symbolic dimensions, or the largest.
fn cases(path: &Path) -> Vec<Case> {
    let text = fs::read_to_string(path).unwrap();
    let case = |line: &str| {
        let mut out = Case::default();
        for word in line.split_whitespace() {
            let (key, value) = word.split_once('=').unwrap();
            if let Some(dim) = key.strip_prefix('@') {
                out.dims.insert(Name::new(dim), value.parse().unwrap());
            } else {
                let text = Param::Text(value.to_owned());
                out.params.insert(key.to_owned(), value.parse().map_or(text, Param::Int));
            }
        }
        out
    };
    let mut all: Vec<_> = text.lines().filter_map(|it| it.strip_prefix("// case: ")).map(case).collect();
    if all.iter().all(|it| it.dims.is_empty()) {
        all.drain(..all.len() - 1);
    }
    all
}

fn of_workload(path: &Path, cases: &[Case]) -> Vec<Subject> {
    let script = Script::parse(&expanded(&fs::read_to_string(path).unwrap())).unwrap();
    if cases.is_empty() {
        choices(&stem(path), &script, &[Case::default()])
    } else {
        choices(&stem(path), &script, cases)
    }
}

/// A script on a workload that ships, with every choice for its knobs. Cases differ in dimensions alone.
fn choices(name: &str, script: &Script, cases: &[Case]) -> Vec<Subject> {
    let workload = workload::parse(workloads::find(&script.workload.value).unwrap()).unwrap();
    let mut params = script.params.value.clone();
    params.extend(cases[0].params.iter().map(|(name, it)| (name.clone(), it.clone())));
    let func = workload.instantiate(&params).unwrap();
    let dims: Vec<_> = cases.iter().map(|it| it.dims.clone()).collect();
    each_choice(name, script, &workload.complete(&params).unwrap(), &func, &dims).collect()
}

/// The program that a script is about at these sizes, and its kernels.
pub(crate) fn lowered(path: &Path, sizes: &[(&str, i64)]) -> (Func, Module) {
    let (func, after, target) = scheduled(path, sizes);
    let module =
        codegen::compile_module(&after, &target).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
    (func, module)
}

/// The program that a script is about at these sizes, what its steps make of it, and for what.
pub(crate) fn scheduled(path: &Path, sizes: &[(&str, i64)]) -> (Func, Func, Target) {
    let script = Script::parse(&expanded(&fs::read_to_string(path).unwrap())).unwrap();
    let workload = workload::parse(workloads::find(&script.workload.value).unwrap()).unwrap();
    let mut params = script.params.value.clone();
    params.extend(sizes.iter().map(|(name, it)| ((*name).to_owned(), Param::Int(*it))));
    let func = workload.instantiate(&params).unwrap();
    let steps = script.resolve(&workload.complete(&params).unwrap(), &Decisions::new()).unwrap();
    let target = target(&script);
    let after = apply(&stem(path), &func, &target, steps.into_iter().map(|it| it.value));
    (func, after, target)
}

/// A script on a program in the text form, which is run for up to nine iterations.
fn of_program(path: &Path) -> Vec<Subject> {
    let text = fs::read_to_string(path).unwrap();
    if !text.starts_with("// expect: accepted") {
        return vec![];
    }
    let script = Script::parse(&text).unwrap();
    let program = fs::read_to_string(path.parent().unwrap().join(&script.workload.value)).unwrap();
    let func = ir::text::parse(&program).unwrap();
    let one = |n: i64| func.dims.iter().map(|it| (it.clone(), n)).collect();
    let dims: Vec<_> = (1..=9).map(one).collect();
    each_choice(&stem(path), &script, &script.params.value, &func, &dims).collect()
}

fn each_choice<'a>(
    name: &'a str,
    script: &'a Script,
    params: &'a IndexMap<String, Param>,
    func: &'a Func,
    dims: &'a [IndexMap<Name, i64>],
) -> impl Iterator<Item = Subject> + 'a {
    let axes = script.axes(params).unwrap();
    let choices: Vec<Decisions> = match axes.first() {
        Some((name, all)) => {
            all.iter().map(|it| [(name.clone(), it.clone())].into_iter().collect()).collect()
        }
        None => vec![Decisions::new()],
    };
    choices.into_iter().map(move |choice| {
        let words = choice.iter().map(|(knob, it)| format!("{name} {knob}={it}")).next();
        let name = words.unwrap_or_else(|| name.to_owned());
        let steps = script.resolve(params, &choice).unwrap();
        let target = target(script);
        let after = apply(&name, func, &target, steps.into_iter().map(|it| it.value));
        let module = codegen::compile_module(&after, &target).unwrap_or_else(|err| panic!("{name}: {err}"));
        Subject { name, module, runs: dims.iter().map(|it| run(func, it)).collect() }
    })
}

fn apply(name: &str, func: &Func, target: &Target, steps: impl Iterator<Item = Step>) -> Func {
    let mut session = Session::new(func.clone(), Some(target.clone()));
    for step in steps {
        session.apply(&step).unwrap_or_else(|err| panic!("{name}: {}: {err}", step.to_ron()));
    }
    session.func().clone()
}

/// Small whole numbers, nearly all different, which every sum here has exactly.
pub(crate) fn run(func: &Func, dims: &IndexMap<Name, i64>) -> Run {
    let of_role = |role| func.buffers.iter().filter(move |(_, it)| it.role == role);
    let size = |it: &Index| usize::try_from(it.eval(&|name| dims.get(name).copied()).unwrap()).unwrap();
    let tensors: Vec<Tensor> = of_role(Role::Input)
        .zip(1..)
        .map(|((_, it), salt)| {
            let shape: Vec<usize> = it.shape.iter().map(size).collect();
            let count: usize = shape.iter().product();
            Tensor::new(it.dtype, &shape, (0..count).map(|at| ((at * 37 + salt * 101) % 251) as f64 - 125.0))
        })
        .collect();
    let outputs = interp::run(func, dims, &tensors).unwrap().into_iter().map(|it| it.data).collect();
    let names = of_role(Role::Input).map(|it| it.0.clone());
    let inputs = names.zip(tensors).map(|(name, it)| (name, it.data)).collect();
    Run { dims: dims.clone(), inputs, outputs }
}
