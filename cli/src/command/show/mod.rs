//! `tilewright show`: what a schedule makes of a program, in every form that it has on its way to a machine.
//!
//! What is printed is a function of the script, its parameters and the architecture, so that two people see the same; only
//! what a compiler says differs from one compiler to the next. `html/` is the same as one page.

mod assembly;
pub(crate) mod deps;
pub(crate) mod form;
pub(crate) mod html;
mod kernel;
mod mix;
pub(crate) mod resources;
mod sass;
pub(crate) mod space;
pub(crate) mod steps;

use std::path::{Path, PathBuf};

use ir::{Arch, Func, Name, Target};
use schedule::{script::ScriptTarget, workload::Param};
use tuner::build::target_word;

use form::{Emit, Form, Machine};

use crate::{
    build::{compile_cuda, expect_gpu, found_arch, lower, source},
    constant::True,
    diagnostic::Diagnostic,
    plan::{Plan, parse_arch, parse_dim, parse_param},
    term::shell::Shell,
    term::table::counted,
    timeline, tvm,
    usage_error::UsageError,
};

/// Show what a schedule makes of a program: after some steps, lowered, as source, compiled, or all of it as a page
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The schedule script, or a program in the text form, named `.tw`
    script: PathBuf,
    /// What to show
    #[arg(long, value_enum, default_value_t = Emit::Ir)]
    emit: Emit,
    /// Stop after this many steps
    #[arg(long, value_name = "N")]
    until: Option<usize>,
    /// Show the program after this step; with `--emit diff` what this step changes
    #[arg(long, value_name = "N", conflicts_with = "until")]
    step: Option<usize>,
    /// With `--emit diff`: how many unchanged lines to show around each change
    #[arg(long, value_name = "LINES", default_value_t = 2)]
    context: usize,
    /// The GPU architecture to compile for; else the script's, that of the GPU at hand, or sm_80
    #[arg(long, value_parser = parse_arch)]
    arch: Option<Arch>,
    /// With `--emit pipeline`: draw the timelines into this file as well
    #[arg(long, value_name = "FILE", group = "file")]
    svg: Option<PathBuf>,
    /// Write a page that has everything: each step with what it changes, the code, the timelines
    #[arg(long, value_name = "FILE", conflicts_with_all = ["emit", "svg", "step"], group = "file")]
    html: Option<PathBuf>,
    /// Overwrite the file of `--html` even if it is no such page, and that of `--svg` if there is one
    #[arg(long, requires = "file")]
    force: bool,
    /// The value of a symbolic dimension, for `--emit resources` and `--html`: n=512
    #[arg(long = "dim", value_name = "NAME=VALUE", value_parser = parse_dim)]
    dims: Vec<(Name, i64)>,
    /// A parameter of the workload or a knob, instead of the script's: m=512
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    params: Vec<(String, Param)>,
    /// Run again whenever the script or its workload changes, until Ctrl-C
    #[arg(long)]
    watch: bool,
}

impl Show {
    /// Whether a compiler has a part in it.
    pub(crate) fn is_compiled(&self) -> bool {
        self.html.is_some() || self.emit.is_compiled()
    }

    /// The files to watch, if that is wanted.
    pub(crate) fn watched(&self) -> Option<Vec<&Path>> {
        self.watch.then(|| vec![self.script.as_path()])
    }

    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        if self.svg.is_some() && self.emit != Emit::Pipeline {
            return Err(Diagnostic::usage(UsageError::Options, "only `--emit pipeline` draws an SVG"));
        }
        if kernel::is_module(&self.script)? {
            self.expect_nothing_of_a_schedule()?;
            return kernel::show(&self.script, self.emit, shell);
        }
        let mut plan = Plan::load_any(&self.script, &self.params)?;
        plan.dims = self.dims.iter().cloned().collect();
        if !plan.dims.is_empty() {
            plan.expect_dims()?;
        }
        let until = self.until(&plan)?;
        let target = self.target(&plan);
        if let Some(out) = &self.html {
            return html::write(&plan, &target, until, out, self.force, shell);
        }
        match self.emit {
            Emit::Space => return space::show(&plan, shell),
            Emit::Diff => return steps::show(&plan, &target, until, self.step, self.context, shell),
            Emit::Steps
            | Emit::Ir
            | Emit::Tvmscript
            | Emit::Trace
            | Emit::Kernel
            | Emit::Cuda
            | Emit::C
            | Emit::Pipeline
            | Emit::Deps
            | Emit::Ptx
            | Emit::Sass
            | Emit::Resources => {}
        }
        let session = plan.schedule(&target, until)?;
        let (text, notes) = match self.emit {
            Emit::Steps => (plan.plain_script(&target, until), vec![]),
            Emit::Ir | Emit::Diff | Emit::Space => (ir::text::print(session.func()).text, vec![]),
            Emit::Trace => (trace(&plan, &target, until)?, vec![]),
            Emit::Tvmscript => (tvm::written(session.func())?, vec![]),
            Emit::Kernel => {
                let (module, notes) = lower(session.func(), &target)?;
                (module.to_string(), notes)
            }
            Emit::Cuda | Emit::C => {
                let (module, notes) = lower(session.func(), &target)?;
                (source(session.func(), &module, &target)?, notes)
            }
            Emit::Ptx => ptx(session.func(), &target)?,
            Emit::Sass => return sass::show(session.func(), &target, shell),
            Emit::Deps => return deps::show(session.func(), shell),
            Emit::Pipeline => {
                let svg = self.svg.as_deref().map(|it| (it, self.force));
                return timeline::show(session.func(), &target, svg, shell);
            }
            Emit::Resources => return resources::show(&plan, session.func(), &target, shell),
        };
        let (target, notes) = (Some(target_word(&target)), Some(notes.as_slice()));
        shell.report(&Form { ok: True, emit: self.emit, text: &text, target, notes, tool: None })
    }

    /// Refuses what only a program has that is not lowered yet.
    fn expect_nothing_of_a_schedule(&self) -> Result<(), Diagnostic> {
        let title = match self {
            _ if self.html.is_some() => {
                "a lowered kernel has no page: `--html` is of the steps of a schedule"
            }
            _ if self.until.is_some() || self.step.is_some() => "a lowered kernel has no steps",
            _ if !self.params.is_empty() || !self.dims.is_empty() => {
                "a lowered kernel has no parameters, and its dimensions get values when it runs"
            }
            _ if self.arch.is_some() => "a lowered kernel is for the architecture that it was lowered for",
            _ => return Ok(()),
        };
        Err(Diagnostic::usage(UsageError::Options, title)
            .help("name the script that it was lowered from, or leave the option out".to_owned()))
    }

    /// How many steps to apply; all if that is not said.
    fn until(&self, plan: &Plan) -> Result<Option<usize>, Diagnostic> {
        let count = plan.steps.len();
        let (least, asked) = match (self.step, self.until) {
            (Some(step), _) => (1, step),
            // None at all is the program before the first step.
            (None, Some(until)) => (0, until),
            (None, None) => return Ok(None),
        };
        if (least..=count).contains(&asked) {
            return Ok(Some(asked));
        }
        let title = format!("there is no step {asked}: the script has {}", counted(count, "step"));
        Err(Diagnostic::usage(UsageError::Options, title).help("steps are counted from 1".to_owned()))
    }

    /// `cuda`, `ptx`, `sass` and `resources` are for a GPU and `c` is for the cpu, whatever the script says.
    fn target(&self, plan: &Plan) -> Target {
        let cuda = ScriptTarget::Cuda(self.arch.clone());
        let script = plan.script.target.as_ref().map(|it| &it.value);
        let asked = match (self.emit.machine(), &self.arch, script) {
            (Machine::Cpu, _, _) => Some(ScriptTarget::Cpu),
            (Machine::Any, None, _) | (Machine::Gpu, None, Some(ScriptTarget::Cuda(_))) => None,
            (Machine::Any | Machine::Gpu, Some(_), _)
            | (Machine::Gpu, None, Some(ScriptTarget::Cpu) | None) => Some(cuda),
        };
        // Only what is compiled asks for the GPU at hand: the rest should not differ from machine to machine.
        let is_compiled = self.emit.is_compiled() && self.html.is_none();
        plan.target(asked.as_ref(), is_compiled.then(found_arch).flatten())
    }
}

fn ptx(func: &Func, target: &Target) -> Result<(String, Vec<String>), Diagnostic> {
    let arch = expect_gpu(target)?;
    let (module, notes) = lower(func, target)?;
    let text = source(func, &module, target)?;
    Ok((compile_cuda(&text, func, arch)?.ptx, notes))
}

/// The steps as a trace of TVM's.
fn trace(plan: &Plan, target: &Target, until: Option<usize>) -> Result<String, Diagnostic> {
    let mut writer = tvm::Writer::default();
    let mut refused = None;
    plan.walk(target, until, &mut |step, session| {
        let before = session.before().expect("a step was applied");
        if refused.is_none() {
            refused = writer.add(step, before, session).err();
        }
    })?;
    refused.map_or(Ok(()), |it| Err(Diagnostic::trace(&it)))?;
    Ok(format!("{}\n", writer.trace()))
}
