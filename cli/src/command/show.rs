//! `tilewright show`.

use std::path::PathBuf;

use codegen::device::{Limit, occupancy};
use ir::{Arch, Func, Target};
use schedule::{Session, script::ScriptTarget, workload::Param};
use serde_json::{Value, json};

use crate::{
    build::{build, compile_cuda, found_arch, lower, source},
    command::space,
    command::timeline,
    diagnostic::Diagnostic,
    plan::{Plan, parse_arch, parse_param},
    term::shell::Shell,
    term::table::Table,
    trouble::Trouble,
};

/// Show what a schedule makes of a program: after some steps, lowered, as source, compiled
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The schedule script
    script: PathBuf,
    /// What to show
    #[arg(long, value_enum, default_value_t = Emit::Ir)]
    emit: Emit,
    /// Stop after this many steps
    #[arg(long, value_name = "N")]
    until: Option<usize>,
    /// The GPU architecture to compile for; else the script's, that of the GPU at hand, or sm_80
    #[arg(long, value_parser = parse_arch)]
    arch: Option<Arch>,
    /// With `--emit pipeline`: draws the timelines into this file as well
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// A parameter of the workload or a knob, instead of the script's: m=512
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    params: Vec<(String, Param)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Emit {
    /// The program after the steps
    Ir,
    /// What each step changes
    Diff,
    /// The lowered kernels
    Kernel,
    /// CUDA C++
    Cuda,
    /// C for the cpu
    C,
    /// The timeline of each software pipeline, and what its slots cost
    Pipeline,
    /// PTX, through NVRTC
    Ptx,
    /// Registers, spills, shared memory and occupancy of each kernel, through NVRTC
    Resources,
    /// The knobs of the script, its constraints, and how many points they leave
    Space,
}

impl Show {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        if self.svg.is_some() && self.emit != Emit::Pipeline {
            return Err(Diagnostic::usage(Trouble::Options, "only `--emit pipeline` draws an SVG"));
        }
        let plan = Plan::load(&self.script, &self.params)?;
        if self.emit == Emit::Space {
            return space::show(&plan, shell);
        }
        let target = self.target(&plan);
        if self.emit == Emit::Diff {
            return self.diffs(&plan, &target, shell);
        }
        let session = plan.schedule(&target, self.until)?;
        let (text, notes) = match self.emit {
            Emit::Ir | Emit::Diff | Emit::Space => (ir::text::print(session.func()).text, vec![]),
            Emit::Kernel => {
                let (module, notes) = lower(session.func(), &target)?;
                (module.to_string(), notes)
            }
            Emit::Cuda | Emit::C => {
                let (module, notes) = lower(session.func(), &target)?;
                (source(&module, &target)?, notes)
            }
            Emit::Ptx => ptx(session.func(), &target)?,
            Emit::Pipeline => {
                return timeline::show(session.func(), &target, self.svg.as_deref(), shell);
            }
            Emit::Resources => return resources(&plan, session.func(), &target, shell),
        };
        if shell.json {
            let emit = format!("{:?}", self.emit).to_lowercase();
            let target = words(&target);
            return shell
                .json(&json!({"ok": true, "emit": emit, "target": target, "text": text, "notes": notes}));
        }
        for it in &notes {
            shell.note(it);
        }
        writeln!(shell.out, "{}", text.trim_end_matches('\n'))?;
        Ok(())
    }

    /// `cuda`, `ptx` and `resources` are for a GPU and `c` is for the cpu, whatever the script says.
    fn target(&self, plan: &Plan) -> Target {
        let cuda = ScriptTarget::Cuda(self.arch.clone());
        let script = plan.script.target.as_ref().map(|it| &it.value);
        let asked = match (self.emit, &self.arch, script) {
            (Emit::C, _, _) => Some(ScriptTarget::Cpu),
            (Emit::Ir | Emit::Diff | Emit::Kernel | Emit::Pipeline | Emit::Space, None, _)
            | (_, None, Some(ScriptTarget::Cuda(_))) => None,
            (Emit::Cuda | Emit::Ptx | Emit::Resources, None, Some(ScriptTarget::Cpu) | None)
            | (
                Emit::Ir
                | Emit::Diff
                | Emit::Kernel
                | Emit::Cuda
                | Emit::Pipeline
                | Emit::Ptx
                | Emit::Resources
                | Emit::Space,
                Some(_),
                _,
            ) => Some(cuda),
        };
        // Only what is compiled asks for the GPU at hand: the rest should not differ from machine to machine.
        let compiles = matches!(self.emit, Emit::Pipeline | Emit::Ptx | Emit::Resources);
        plan.target(asked.as_ref(), compiles.then(found_arch).flatten())
    }

    fn diffs(&self, plan: &Plan, target: &Target, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        // All steps are applied first, so that a refusal shows no half of the story on standard output.
        plan.schedule(target, self.until)?;
        let mut session = Session::new(plan.func.clone(), Some(target.clone()));
        let count = self.until.unwrap_or(usize::MAX);
        for (n, step) in plan.steps.iter().take(count).enumerate() {
            if session.apply(step).is_err() {
                break;
            }
            let (word, diff) = (step.to_ron(), session.last_diff(2));
            if shell.json {
                shell.json(&json!({"ok": true, "step": n + 1, "text": word, "diff": diff}))?;
            } else {
                let blank = if n == 0 { "" } else { "\n" };
                writeln!(shell.out, "{blank}step {}: {word}\n{}", n + 1, diff.trim_end_matches('\n'))?;
            }
        }
        Ok(())
    }
}

/// A target as users write it.
pub(crate) fn words(target: &Target) -> String {
    match target {
        Target::Cpu => "cpu".to_owned(),
        Target::Cuda(arch) => format!("cuda:{arch}"),
    }
}

fn ptx(func: &Func, target: &Target) -> Result<(String, Vec<String>), Diagnostic> {
    let Target::Cuda(arch) = target else { return Err(not_cuda()) };
    let (module, notes) = lower(func, target)?;
    let text = source(&module, target)?;
    Ok((compile_cuda(&text, func, arch)?.ptx, notes))
}

fn not_cuda() -> Diagnostic {
    Diagnostic::usage(Trouble::Options, "only a GPU's program has PTX and resources")
}

const HEADS: [&str; 10] = [
    "kernel",
    "threads",
    "registers",
    "spilled bytes",
    "stack bytes",
    "shared bytes",
    "barriers",
    "blocks per SM",
    "warps",
    "limited by",
];

fn resources(plan: &Plan, func: &Func, target: &Target, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let Target::Cuda(arch) = target else { return Err(not_cuda()) };
    let built = build(func, target, &plan.dims)?;
    let mut table = Table::new(HEADS);
    let mut data: Vec<Value> = vec![];
    for launch in &built.program.launches {
        let Some(it) = built.resources.iter().find(|it| it.kernel == launch.kernel) else { continue };
        let (threads, dynamic) = (launch.block.iter().product(), launch.shared_bytes);
        let full = occupancy(it, threads, dynamic, arch);
        let unknown = || "—".to_owned();
        table.row([
            it.kernel.clone(),
            threads.to_string(),
            it.registers.to_string(),
            (it.spill_store_bytes + it.spill_load_bytes).to_string(),
            it.stack_bytes.to_string(),
            (it.static_shared_bytes + dynamic).to_string(),
            it.barriers.to_string(),
            full.as_ref().map_or_else(unknown, |it| it.blocks.to_string()),
            full.as_ref().map_or_else(unknown, |it| format!("{} of {}", it.warps, it.max_warps)),
            full.as_ref().map(|it| limits(&it.limited_by)).unwrap_or_default(),
        ]);
        data.push(json!({"resources": it, "launch": launch, "occupancy": full}));
    }
    let swizzles = codegen::lower::swizzles(func, target).unwrap_or_default();
    if shell.json {
        let all = json!({
            "ok": true, "emit": "resources", "target": words(target), "kernels": data, "swizzles": swizzles,
        });
        return shell.json(&all);
    }
    table.print(shell.out)?;
    for it in &swizzles {
        writeln!(shell.out, "{it}")?;
    }
    for it in &built.resources {
        for warning in &it.warnings {
            writeln!(shell.out, "{}: {warning}", it.kernel)?;
        }
    }
    Ok(())
}

fn limits(limits: &[Limit]) -> String {
    let word = |it: &Limit| match it {
        Limit::Registers => "registers",
        Limit::Shared => "shared memory",
        Limit::Threads => "threads",
        Limit::Blocks => "blocks",
        Limit::Barriers => "barriers",
    };
    limits.iter().map(word).collect::<Vec<_>>().join(", ")
}
