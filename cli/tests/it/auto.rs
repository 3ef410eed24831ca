//! First schedules without search: each is legal, becomes a kernel, and computes what its workload says.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use std::{fmt::Write as _, fs, path::Path};

use codegen::lower::set_vector_bytes;
use indexmap::IndexMap;
use ir::{Arch, Target};
use schedule::workload::{self, Param};
use tilewright::{Automatic, Plan};
use tuner::{
    Space,
    build::{BuildError, Problem, generate},
};

use super::end_to_end::check::Case;
use crate::common::{WIDTH, tilewright};

/// What is tried: a workload, targets, how far elements may be off, and parameters. `*` stands for each word that the workload takes
/// there, and `a|b` for one after the other.
const CASES: &str = include_str!("../auto_cases.txt");

/// One of the cases.
pub(crate) struct Subject {
    pub(crate) what: String,
    workload: String,
    pub(crate) target: Target,
    tolerance: f64,
    params: IndexMap<String, Param>,
    dims: IndexMap<ir::Name, i64>,
}

fn target(word: &str) -> Target {
    if word == "cpu" { Target::Cpu } else { Target::Cuda(Arch::parse(word).unwrap()) }
}

/// The words that a workload takes for a parameter.
fn words(workload: &str, param: &str) -> Vec<String> {
    let workload = workload::parse(workloads::find(workload).unwrap()).unwrap();
    let given = [(param.to_owned(), Param::Text("no_such_word".to_owned()))].into_iter().collect();
    let refused = workload.instantiate(&given).unwrap_err().to_string();
    let (_, all) = refused.split_once("not one of ").unwrap_or_else(|| panic!("{refused}"));
    all.split(", ").map(str::to_owned).collect()
}

/// All combinations of the alternatives of a line.
pub(crate) fn subjects(line: &str) -> Vec<Subject> {
    let mut fields = line.split_whitespace();
    let (workload, targets) = (fields.next().unwrap(), fields.next().unwrap());
    let tolerance = fields.next().unwrap().parse().unwrap();
    let mut choices: Vec<Vec<(String, String)>> = vec![vec![]];
    for field in fields {
        let (name, value) = field.split_once('=').unwrap();
        let values: Vec<_> = match value {
            "*" => words(workload, name),
            _ => value.split('|').map(str::to_owned).collect(),
        };
        let with = |it: &Vec<(String, String)>, value: &String| {
            it.iter().cloned().chain([(name.to_owned(), value.clone())]).collect()
        };
        choices = choices
            .iter()
            .flat_map(|it| values.iter().map(|value| with(it, value)).collect::<Vec<_>>())
            .collect();
    }
    let one = |word: &str, choice: &Vec<(String, String)>| {
        let said: Vec<_> = choice.iter().map(|(name, it)| format!("{name}={it}")).collect();
        let (dims, params): (Vec<_>, Vec<_>) = choice.iter().partition(|it| it.0.starts_with('@'));
        let param = |it: &str| it.parse().map_or(Param::Text(it.to_owned()), Param::Int);
        Subject {
            what: format!("{workload} {word} {}", said.join(" ")),
            workload: workload.to_owned(),
            target: target(word),
            tolerance,
            params: params.iter().map(|(name, it)| (name.clone(), param(it))).collect(),
            dims: dims.iter().map(|(name, it)| (ir::Name::new(&name[1..]), it.parse().unwrap())).collect(),
        }
    };
    targets.split(',').flat_map(|word| choices.iter().map(move |it| one(word, it))).collect()
}

impl Subject {
    /// What decides the results, whatever the target.
    fn sizes(&self) -> String {
        format!("{} {:?} {:?} {}", self.workload, self.params, self.dims, self.tolerance)
    }

    pub(crate) fn made(&self) -> Automatic {
        tilewright::auto(&self.workload, &self.params, &self.target, None)
            .unwrap_or_else(|err| panic!("{}: {err}", self.what))
    }

    pub(crate) fn case(&self, made: &Automatic) -> Case {
        Case {
            what: format!("{}\n{}", self.what, made.script),
            text: made.script.clone(),
            params: vec![],
            dims: self.dims.clone(),
            tolerance: self.tolerance,
        }
    }
}

/// Makes, schedules, lowers, prints and runs every case of the sizes whose number leaves `part` when divided by `parts`. One in three is
/// interpreted before it is lowered.
fn expect_right(part: usize, parts: usize) {
    set_vector_bytes(WIDTH);
    let mut sizes: IndexMap<String, Vec<Subject>> = IndexMap::new();
    for it in CASES.lines().filter(|it| !it.is_empty()).flat_map(subjects) {
        sizes.entry(it.sizes()).or_default().push(it);
    }
    let mut number = 0;
    for subjects in sizes.values().skip(part).step_by(parts) {
        // All targets are expected to compute the same.
        let mut expected = None;
        for subject in subjects {
            let case = subject.case(&subject.made());
            let scheduled = case.schedule();
            let expected = expected.get_or_insert_with(|| case.expected(&scheduled));
            if number % 3 == 0 {
                case.interpret(&scheduled, expected);
            }
            number += 1;
            let module = case.check_kernels(&scheduled, expected);
            codegen::emit::emit(&module, &scheduled.target)
                .unwrap_or_else(|err| panic!("{}: {err}", case.what));
        }
    }
}

#[test]
fn they_compute_what_workloads_say_0() {
    expect_right(0, 2);
}

#[test]
fn they_compute_what_workloads_say_1() {
    expect_right(1, 2);
}

/// The first point of a space is the schedule that is made without search.
#[test]
fn spaces_begin_with_the_schedule() {
    let all = CASES.lines().filter(|it| !it.is_empty()).flat_map(subjects);
    for it in all.step_by(3) {
        let space = tilewright::auto_space(&it.workload, &it.params, &it.target, None).unwrap();
        let scheduled = |text: &str| {
            let plan = Plan::parse("auto.ron".as_ref(), text, &[]);
            let plan = plan.unwrap_or_else(|err| panic!("{}: {}\n{text}", it.what, err.message()));
            plan.schedule(&it.target, None).unwrap().func().clone()
        };
        assert_eq!(scheduled(&space.script), scheduled(&it.made().script), "{}", it.what);
    }
}

/// Whatever one knob of a space is set to, the steps are legal if the constraints admit it; memory may still be short.
#[test]
fn choices_of_spaces_are_legal() {
    set_vector_bytes(WIDTH);
    for (workload, word, text) in [
        ("matmul", "sm_90a", "m=1000 n=1000 k=1000"),
        ("matmul", "sm_90a", "m=1000 n=96 k=9000"),
        ("matmul", "sm_90a", "m=1000 n=1000 k=1000 dtype=f16"),
        ("matmul", "sm_80", "m=96 n=96 k=9001 dtype=f16"),
        ("matmul", "sm_90a", "m=1000 n=1000 k=1000 dtype=bf16 out=bf16"),
        ("matmul", "sm_90a", "m=1000 n=1000 k=1000 dtype=bf16"),
        ("matmul", "sm_90a", "m=2049 n=2049 k=2049 dtype=f16"),
        ("matmul", "sm_80", "m=2049 n=2049 k=2049 dtype=bf16 layout=NT"),
        ("matmul", "sm_80", "m=2049 n=2049 k=2049 dtype=f32"),
        ("batch_matmul", "sm_90a", "batch=8 m=1000 n=1000 k=1001 dtype=f16"),
        ("grouped_matmul", "sm_90a", "tiles=8 tile=1000 n=1000 k=1000 dtype=f16 out=f16"),
        ("gated_matmul", "sm_90a", "m=1000 n=1000 k=1000 dtype=f16"),
        ("gated_matmul", "sm_80", "m=1000 n=1000 k=1000 dtype=f16"),
        ("matmul_bias_gelu_residual", "sm_90a", "m=1000 n=1000 k=1000 dtype=f16"),
        ("conv2d", "sm_80", "batch=4 height=28 width=28 channels=64 filters=64 dtype=f16"),
        ("conv2d", "sm_90a", "batch=4 height=28 width=28 channels=64 filters=64"),
        ("matmul", "sm_90a", "m=1 n=4096 k=4096 dtype=f16 layout=NT"),
        ("matmul", "sm_80", "m=2 n=4096 k=4096"),
        ("matmul", "cpu", "m=100 n=100 k=100"),
        ("conv2d", "cpu", "batch=2 height=8 width=8 channels=20 filters=40"),
        ("elementwise", "sm_80", "n=1000"),
        ("softmax", "sm_80", "m=100 n=100"),
        ("softmax", "sm_90a", "m=10 n=4096 dtype=f16"),
        ("softmax", "sm_90a", "m=10 n=50000"),
        ("row_sum", "sm_80", "m=10 n=70001"),
        ("layer_norm", "sm_90a", "m=10 n=2056 dtype=f16"),
        ("col_sum", "sm_80", "m=3000 n=100"),
        ("transpose", "sm_90a", "m=300 n=200 dtype=f16"),
    ] {
        let subject = subjects(&format!("{workload} {word} 0 {text}")).remove(0);
        let made = tilewright::auto_space(workload, &subject.params, &subject.target, None).unwrap();
        let source = workload::parse(workloads::find(workload).unwrap()).unwrap();
        let script = tilewright::expand("auto.ron".as_ref(), &made.script).unwrap();
        let script = schedule::Script::parse(&script).unwrap();
        let space = Space::of(&script, &source.complete(&subject.params).unwrap()).unwrap();
        let func = source.instantiate(&subject.params).unwrap();
        let problem = Problem::new(func, IndexMap::new(), 1, subject.target.clone()).unwrap();
        let mut tried = 0;
        for (knob, choices) in space.axes().values().enumerate() {
            for choice in 0..choices.len() {
                let mut digits = vec![0; space.axes().len()];
                digits[knob] = choice;
                if space.admits_digits(&digits).is_ok() {
                    let made = generate(&problem, &space.steps(space.index(&digits)).unwrap());
                    assert!(!matches!(made, Err(BuildError::Schedule { .. })), "{}: {made:?}", subject.what);
                    tried += 1;
                }
            }
        }
        // The registers of this machine's CPU decide how many there are at least.
        assert!(tried >= 5, "{}: {tried}", subject.what);
    }
}

/// Which rule knows what, and that no shipped workload is left out of the table.
#[test]
fn rules_know_their_programs() {
    set_vector_bytes(WIDTH);
    let mut printed = String::new();
    for line in CASES.lines().filter(|it| !it.is_empty()) {
        writeln!(printed, "{line}").unwrap();
        let mut before = String::new();
        for subject in subjects(line) {
            let rule = subject.made().rule;
            if rule != before {
                writeln!(printed, "    {rule}: {}", subject.what).unwrap();
                rule.clone_into(&mut before);
            }
        }
    }
    for it in workloads::all() {
        assert!(
            CASES.lines().any(|line| line.starts_with(&format!("{} ", it.name))),
            "{} is in no case",
            it.name
        );
    }
    insta::assert_snapshot!(printed);
}

/// What the command prints in a folder with `mine.ron` and more.
fn told(folder: &Path, requests: &[&str]) -> String {
    let one = |it: &&str| {
        let arguments: Vec<_> = it.split_whitespace().collect();
        format!("$ tilewright {it}\n{}\n", tilewright(folder, &arguments))
    };
    requests.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// A sum of all elements, which has nothing that threads could share.
const TOTAL: &str = r#"workload(
    name: "total",
    about: "The sum of a vector.",
    params: {"n": size(default: 100)},
    axes: {"i": "n"},
    tensors: {"X": input(dtype: "f32", shape: ["n"]), "S": output(dtype: "f32", shape: [])},
    stages: ["S[] += X[i]"],
)
"#;

const TEXT_FORM: &str = "func product(m)
  in A: f16[m, 30]
  in B: f16[30, 40]
  out C: f32[m, 40]

  for i in 0..m
    for j in 0..40
      for k in 0..30
        block C(vi: m = i, vj: 40 = j, vk: reduce 30 = k)
          init
            C[vi, vj] = 0.0f32
          C[vi, vj] = C[vi, vj] + f32(A[vi, vk]) * f32(B[vk, vj])
";

#[test]
fn scripts_say_why() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(told(
        folder.path(),
        &[
            "auto matmul --target cuda:sm_90a --param m=1500 --param n=1500 --param k=1500",
            "auto matmul --target cuda:sm_90a --param m=4096 --param n=4096 --param k=4096 --param dtype=bf16 --param out=bf16 --param layout=NT",
            "auto matmul --target cuda:sm_90a --param m=4097 --param n=4097 --param k=4097 --param dtype=f16 --param out=f16",
            "auto matmul --target cuda:sm_80 --param m=4097 --param n=4097 --param k=4097 --param dtype=f16 --param out=f16",
            "auto matmul --target cuda:sm_90a --param m=4097 --param n=4097 --param k=4097",
            "auto matmul --target cuda:sm_90a --param m=1500 --param n=1500 --param k=1500 --explain",
            "auto matmul --target cuda:sm_80 --param m=1 --param n=1 --param dtype=f16 --units 1 --explain",
            "auto matmul --target cuda:sm_90a --param m=1 --param n=4096 --param k=4096 --param dtype=f16 --param out=f16 --param layout=NT",
            "auto matmul_bias_relu --target cuda:sm_80 --param m=1 --param n=4096 --param k=4096",
            "auto softmax --target cuda:sm_90a --param m=16 --param n=65536",
            "auto conv2d --target cpu --param height=14 --param width=14 --param channels=64 --param filters=128",
            "auto transpose --target cpu --param m=300 --param n=200",
            "auto elementwise --target cuda:sm_80 --param n=1001 --explain",
            "auto matmul --target cuda:sm_80 --param m=50 --param n=60 --param k=70 --param dtype=f16 --space",
            "auto batch_matmul --target cuda:sm_80 --space --out space.ron",
            "show space.ron --emit space",
        ]
    ));
}

#[test]
fn programs_in_files_and_what_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("total.ron", TOTAL);
    write("own.tw", TEXT_FORM);
    write("taken.ron", "");
    fs::create_dir_all(folder.path().join("schedules/cpu")).unwrap();
    insta::assert_snapshot!(told(
        folder.path(),
        &[
            "auto ./own.tw --target cuda:sm_80",
            "auto ./own.tw --target cuda:sm_80 --param m=3",
            "auto ./total.ron --target cpu --out schedules/cpu/total.ron",
            "check schedules/cpu/total.ron",
            "auto ./total.ron --target cpu --out beside.ron",
            "check beside.ron",
            "auto ./total.ron --target cuda:sm_80",
            "auto total --target cpu",
            "auto ./nothing.ron --target cpu",
            "auto matmul --target cpu --param rows=3",
            "auto matmul --target cpu --param m=0",
            "auto matmul --target cpu --param dtype=f7",
            "auto matmul --target cpu --units 0",
            "auto matmul --target cuda:sm_1",
            "auto matmul --target cpu --out taken.ron",
            "auto matmul --target cpu --out taken.ron --explain",
            "auto matmul --target cpu --force",
            "auto matmul --target cpu --out no/such/folder.ron",
            "auto matmul --target cpu --out taken.ron --force",
        ]
    ));
}
