//! Several kernels of one program as a crate, which takes for each call the first that fits, or refuses it before anything is
//! launched.

mod alike;
mod cpu;
mod cuda;
mod text;

use ir::{Index, IndexKind, Name, Role, Target};
use serde_json::{Value, json};
use tuner::build::target_word;

use super::{
    bundle::{Files, part},
    common::TOOL,
    expr::{fill, words},
    name,
    spec::Spec,
    subject::Subject,
    write,
};
use crate::{diagnostic::Diagnostic, usage_error::UsageError};
use alike::expect_alike;

/// The most kernels of a crate: each is compiled with it.
const MOST_KERNELS: usize = 256;

/// The kernels of a crate in the order in which they are tried.
#[derive(Debug)]
pub(crate) struct Table {
    /// What the crate is called.
    pub(crate) name: String,
    /// The kernels: those for some sizes before those for all.
    pub(crate) kernels: Vec<Subject>,
}

impl Table {
    /// Of these kernels, each with the word that tells it from others. The crate is called `given`, or as the workload with `tilewright_`
    /// before it.
    ///
    /// # Errors
    /// Kernels that compute different things or are for different sorts of devices, and sizes that no tensor has.
    pub(crate) fn of(given: Option<&str>, kernels: Vec<(String, Subject)>) -> Result<Table, Diagnostic> {
        let wrong = |title: String| Err(Diagnostic::usage(UsageError::Options, title));
        let Some((first_word, first)) = kernels.first() else {
            return wrong("there is no kernel".to_owned());
        };
        if kernels.len() > MOST_KERNELS {
            return wrong(format!("{} kernels are more than the {MOST_KERNELS} of a crate", kernels.len()));
        }
        let name = name::of(given, &first.plain.name)?;
        for (word, it) in &kernels[1..] {
            if (first.target == Target::Cpu) != (it.target == Target::Cpu) {
                let (a, b) = (target_word(&first.target), target_word(&it.target));
                return wrong(format!(
                    "`{first_word}` is for {a} and `{word}` for {b}: a crate is for one of them"
                ));
            }
            expect_alike((first_word, &first.plain), (word, &it.plain))?;
        }
        let mut taken: Vec<String> = vec![];
        let mut all = vec![];
        for (at, (word, mut subject)) in kernels.into_iter().enumerate() {
            let wanted = Name::new(format!("{name}_{word}"));
            let is_fine = wanted.is_valid() && !taken.iter().any(|it| wanted == it.as_str());
            subject.name = if is_fine { wanted.to_string() } else { format!("{name}_{at}") };
            taken.push(subject.name.clone());
            all.push(subject);
        }
        // Stable: of several that fit, the first that was named is taken.
        all.sort_by_key(|it| !it.module.dims.is_empty());
        Ok(Table { name, kernels: all })
    }

    /// Where the files of a kernel are.
    pub(crate) fn folder(kernel: &Subject) -> String {
        format!("kernels/{}", kernel.name)
    }

    /// All files of the crate in the order of their names.
    pub(crate) fn files(&self) -> Result<Files, Diagnostic> {
        let mut specs = vec![];
        for it in &self.kernels {
            specs.push(Spec::of(it).map_err(|err| Diagnostic::launch(&it.plain, &err))?);
        }
        let dims: Vec<_> = specs.iter().map(axes_of_dims).collect::<Result<_, _>>()?;
        let mut all = vec![];
        for kernel in &self.kernels {
            let folder = Table::folder(kernel);
            let Files { all: files, .. } = part(kernel)?;
            all.extend(files.into_iter().map(|(name, bytes)| (format!("{folder}/{name}"), bytes)));
        }
        let mut own = match self.kernels[0].target {
            Target::Cpu => cpu::files(self, &specs),
            Target::Cuda(_) => cuda::files(self, &specs),
        };
        own.push(("table.rs", text::table(self, &specs, &dims)));
        own.push(("README.md", self.readme(&specs)));
        all.extend(own.into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes())));
        all.sort();
        let manifest = self.manifest(&specs, &all);
        all.push((write::MANIFEST.to_owned(), manifest.into_bytes()));
        all.sort();
        Ok(Files { all, compiled: super::manifest::Compiled::default(), left_out: vec![] })
    }

    /// A template with what all files of the crate say, and more.
    fn fill(&self, template: &str, more: Vec<(&str, String)>) -> String {
        let all = [
            ("FUNC", self.kernels[0].module.name.to_string()),
            ("TOOL", TOOL.to_owned()),
            ("CRATE", self.name.clone()),
            ("KERNEL_COUNT", self.kernels.len().to_string()),
        ];
        fill(template, &all.into_iter().chain(more).collect::<Vec<_>>())
    }

    /// The crate's `Cargo.toml`.
    fn cargo_toml(&self, build: &str, dependencies: String) -> String {
        let template = include_str!("../templates/table.toml.txt");
        self.fill(template, vec![("BUILD", build.to_owned()), ("DEPENDENCIES", dependencies)])
    }

    fn readme(&self, specs: &[Spec<'_>]) -> String {
        let row = |it: &Spec<'_>| {
            let shapes: Vec<_> = it.params().iter().map(shape_words).collect();
            format!("| `{}` | {} | {} |\n", it.name, shapes.join(", "), it.subject.origin.replace('|', "\\|"))
        };
        let (needs, device) = match self.kernels[0].target {
            Target::Cpu => (
                "; its build calls a C compiler, with the options of the machine that it is built on",
                ", by what the C compiler was allowed to use of its instruction set",
            ),
            Target::Cuda(_) => (
                ", no CUDA toolkit and no compiler: machine code is in it, and the driver is found at run time",
                ", by its compute capability and its driver",
            ),
        };
        self.fill(
            include_str!("../templates/README.table.md"),
            vec![
                ("TARGET", target_word(&self.kernels[0].target)),
                ("NEEDS", needs.to_owned()),
                ("DEVICE", device.to_owned()),
                ("ROWS", specs.iter().map(row).collect()),
            ],
        )
    }

    /// `kernel.json` of the crate: the records of the table.
    fn manifest(&self, specs: &[Spec<'_>], files: &[(String, Vec<u8>)]) -> String {
        let record = |it: &Spec<'_>| {
            let shapes: Vec<Value> = it.params().iter().map(|it| json!(shape_words(it))).collect();
            json!({
                "name": it.name,
                "folder": Table::folder(it.subject),
                "source_sha256": tuner::sha256(&it.subject.source),
                "target": target_word(&it.subject.target),
                "shapes": shapes,
                "is_general": !it.subject.module.dims.is_empty(),
                "origin": it.subject.origin,
            })
        };
        let shas: serde_json::Map<_, _> =
            files.iter().map(|(name, bytes)| (name.clone(), json!(tuner::sha256(bytes)))).collect();
        let all = json!({
            "schema": write::SCHEMA,
            "name": self.kernels[0].module.name,
            "interface": self.name,
            "table": specs.iter().map(record).collect::<Vec<_>>(),
            "sha256": shas,
        });
        serde_json::to_string_pretty(&all).expect("it is plain data") + "\n"
    }
}

/// `A: f32[64, k]`.
fn shape_words(it: &super::spec::Buffer) -> String {
    let shape: Vec<_> = it.shape.iter().map(words).collect();
    let role = if it.role == Role::Output { "-> " } else { "" };
    format!("{role}`{}: {}[{}]`", it.name, it.dtype, shape.join(", "))
}

/// Where each symbolic dimension of a kernel is found: a parameter, and one of its axes.
fn axes_of_dims(spec: &Spec<'_>) -> Result<Vec<(usize, usize)>, Diagnostic> {
    let is = |size: &Index, dim: &Name| matches!(size.kind(), IndexKind::Var(name) if name == dim);
    let place = |dim: &Name| {
        let mut all = spec.params().iter().enumerate();
        all.find_map(|(param, it)| Some((param, it.shape.iter().position(|size| is(size, dim))?)))
    };
    let found = spec.dims().map(|(dim, _)| {
        place(dim).ok_or_else(|| {
            let title = format!(
                "`{dim}` of `{}` is the size of no tensor, and a crate takes sizes from shapes",
                spec.name
            );
            Diagnostic::usage(UsageError::Dimension, title)
        })
    });
    found.collect()
}
