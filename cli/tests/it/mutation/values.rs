//! Changes numbers, subscripts and operators in the text of kernels, one at a time, and compares what the virtual GPU makes
//! of them with a reference, as `run KERNEL --target vgpu --reference SCRIPT` does. Without one, it sees what is wrong with how a kernel runs
//! and not what it computes.
//!
//! What the reference does not see either must have the same numbers as the kernel on other inputs as well, to the bit, or
//! be in [`ALLOWED`] with the reason. The snapshot is the report.

use std::{fmt::Write as _, path::Path};

use codegen::vgpu::{self, Settings};
use indexmap::IndexMap;
use ir::{Func, Module, Name, text};
use tuner::{Case, Expected, Oracle, Tensor};

use super::kernels;

/// The kernels: scripts of `tests/scripts` with sizes that tiles do not divide.
const KERNELS: [(&str, &[(&str, i64)]); 6] = [
    ("matmul_odd_tile_cuda", &[("m", 7), ("n", 7), ("k", 5)]),
    ("matmul_fused_everything_cuda", &[("m", 7), ("n", 8), ("k", 9)]),
    ("pipeline_two_stages_cuda", &[("m", 4), ("n", 9), ("k", 24)]),
    ("conv2d_three_channels_cuda", &[("height", 4), ("width", 5), ("channels", 3), ("filters", 3)]),
    ("row_sum_rows_in_blocks_cuda", &[("m", 11), ("n", 21)]),
    ("softmax_rows_in_blocks_cuda", &[("m", 2), ("n", 37)]),
];

/// Mutants with other numbers that are right all the same, by kernel and what is in the line, and why.
const ALLOWED: &[(&str, &str, &str)] = &[(
    "softmax_rows_in_blocks_cuda",
    "row_max",
    "the maximum only keeps exponentials from growing too large: any other element does on these inputs",
)];

/// A kernel with one thing changed.
struct Mutant {
    /// The line before and after.
    change: [String; 2],
    text: String,
}

/// Words and numbers of a line and where they begin; what is between them is a token for each character.
fn tokens(line: &str) -> Vec<(usize, &str)> {
    let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '.';
    let mut out: Vec<(usize, &str)> = vec![];
    let mut start = 0;
    while let Some(first) = line[start..].chars().next() {
        let len = if is_word(first) {
            line[start..].find(|it| !is_word(it)).unwrap_or(line.len() - start)
        } else {
            first.len_utf8()
        };
        out.push((start, &line[start..start + len]));
        start += len;
    }
    out
}

/// What may stand in the place of a token.
fn instead_of(token: &str, vars: &[String]) -> Vec<String> {
    if let Ok(number) = token.parse::<i64>() {
        return [number + 1, number - 1].iter().filter(|it| **it >= 0).map(ToString::to_string).collect();
    }
    if let Some(number) = token.strip_suffix("f32").and_then(|it| it.parse::<f64>().ok()) {
        return vec![format!("{:?}f32", number + 1.0)];
    }
    let one: &[&str] = match token {
        "+" => &["-", "*"],
        "-" | "*" => &["+"],
        "floordiv" => &["mod"],
        "mod" => &["floordiv"],
        "max" => &["min"],
        "min" => &["max"],
        "exp" => &["sqrt"],
        _ => {
            let at = vars.iter().position(|it| it == token);
            return at
                .map(|at| vars[(at + 1) % vars.len()].clone())
                .into_iter()
                .filter(|it| it != token)
                .collect();
        }
    };
    one.iter().map(ToString::to_string).collect()
}

/// All mutants of a kernel, in the order of its text, that are kernels.
fn mutants(module: &Module) -> Vec<(Mutant, Module)> {
    let whole = module.to_string();
    let lines: Vec<&str> = whole.lines().collect();
    let body = lines.iter().position(|it| it.trim_start().starts_with("kernel ")).unwrap();
    let mut vars: Vec<String> =
        ["blockIdx_x", "blockIdx_y", "threadIdx_x", "threadIdx_y"].map(str::to_owned).to_vec();
    vars.retain(|it| whole.contains(it.as_str()));
    let loops = lines.iter().filter_map(|it| it.trim_start().strip_prefix("for ")?.split_once(' '));
    vars.extend(loops.map(|it| it.0.to_owned()));
    vars.dedup();
    let mut out = vec![];
    for (number, line) in lines.iter().enumerate().skip(body) {
        // Where instructions come from, and what barriers are there for, means nothing to a kernel.
        if line.trim_start().starts_with("of ") {
            continue;
        }
        let code = line.split("//").next().unwrap().split('"').next().unwrap();
        for (start, token) in tokens(code) {
            for new in instead_of(token, &vars) {
                let changed = format!("{}{new}{}", &code[..start], &line[start + token.len()..]);
                let mut all: Vec<&str> = lines.clone();
                all[number] = &changed;
                let text = all.join("\n") + "\n";
                if let Ok(module) = text::parse_module(&text) {
                    let change = [line.trim().to_owned(), changed.trim().to_owned()];
                    out.push((Mutant { change, text }, module));
                }
            }
        }
    }
    out
}

/// A kernel with what tells its numbers.
struct Subject {
    module: Module,
    func: Func,
}

/// What is said about a mutant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MutantResult {
    /// Something is wrong with how it runs.
    Finding,
    /// Its numbers are not those of the reference.
    Wrong,
    /// Its numbers are near enough.
    Right,
}

/// What the reference says, and what is seen without it.
fn judge(module: &Module, inputs: &Inputs, expected: &[Expected], oracle: &mut dyn Oracle) -> MutantResult {
    let mut right = true;
    for settings in Settings::hostile(1) {
        let mut memory = inputs.clone();
        let report = vgpu::run(module, &IndexMap::new(), &mut memory, &settings);
        if report.is_err() || report.is_ok_and(|it| !it.findings.is_empty()) {
            return MutantResult::Finding;
        }
        let checks = expected.iter().map(|it| it.check_numbers(&memory[&it.buffer], oracle));
        right &= checks.into_iter().all(|it| it.wrong == 0);
    }
    if right { MutantResult::Right } else { MutantResult::Wrong }
}

impl Subject {
    fn load(name: &str, sizes: &[(&str, i64)]) -> Subject {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts").join(format!("{name}.ron"));
        let (func, module) = kernels::lowered(&path, sizes);
        let module = text::parse_module(&module.to_string()).unwrap();
        Subject { module, func }
    }

    fn case(&self, seed: u64) -> Case {
        Case::new(self.func.clone(), IndexMap::new(), seed).unwrap()
    }

    /// Whether a mutant has the numbers of the kernel, on other inputs than it was judged on.
    fn is_same(&self, module: &Module) -> bool {
        (2..6).all(|seed| {
            let inputs = numbers(&self.case(seed).inputs());
            let run = |module: &Module| {
                let mut memory = inputs.clone();
                vgpu::run(module, &IndexMap::new(), &mut memory, &Settings::default()).unwrap();
                let outputs = module.args.keys().filter(|it| !inputs.contains_key(*it));
                outputs.flat_map(|it| memory[it].iter().map(|it| it.to_bits())).collect::<Vec<_>>()
            };
            run(module) == run(&self.module)
        })
    }
}

type Inputs = IndexMap<Name, Vec<f64>>;

fn numbers(tensors: &IndexMap<Name, Tensor>) -> Inputs {
    tensors.iter().map(|(name, it)| (name.clone(), it.to_f64())).collect()
}

#[test]
fn a_reference_tells_every_other_value() {
    let (mut report, mut survivors) = (String::new(), String::new());
    let (mut total, mut unknown) = ([0; 4], vec![]);
    for (name, sizes) in KERNELS {
        let subject = Subject::load(name, sizes);
        let case = subject.case(1);
        let tensors = case.inputs();
        let inputs = numbers(&tensors);
        let mut oracle = case.reference(&tensors).unwrap();
        let expected = Expected::of(&case, &mut oracle).unwrap();
        assert_eq!(judge(&subject.module, &inputs, &expected, &mut oracle), MutantResult::Right, "{name}");
        let mut counts = [0; 4];
        for (mutant, module) in &mutants(&subject.module) {
            let at = match judge(module, &inputs, &expected, &mut oracle) {
                MutantResult::Finding => 0,
                MutantResult::Wrong => 1,
                MutantResult::Right if subject.is_same(module) => {
                    let [before, after] = &mutant.change;
                    writeln!(survivors, "{name}\n  {before}\n  {after}").unwrap();
                    2
                }
                MutantResult::Right => {
                    let known = ALLOWED.iter().any(|it| it.0 == name && mutant.change[1].contains(it.1));
                    if !known {
                        unknown.push(format!("{name}: nobody misses {:?}\n{}", mutant.change, mutant.text));
                    }
                    3
                }
            };
            counts[at] += 1;
            total[at] += 1;
        }
        writeln!(report, "{name}: {}", words(counts)).unwrap();
    }
    writeln!(report, "\nall: {}", words(total)).unwrap();
    println!("{survivors}{report}");
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    assert!(total[1] > total[2], "{report}");
    insta::assert_snapshot!(report);
}

fn words([finding, wrong, same, allowed]: [usize; 4]) -> String {
    let all = finding + wrong + same + allowed;
    format!(
        "{all} mutants, {finding} noticed alone, {wrong} by their reference, {same} with the same numbers, {allowed} allowed"
    )
}
