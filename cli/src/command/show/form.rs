//! The forms of a program that `show` prints.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    constant::True,
    diagnostic::Diagnostic,
    term::{code::Lang, report::Report, shell::Shell},
};

/// What to show of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Emit {
    /// The program after the steps
    Ir,
    /// The steps alone, as a script: no procedures, knobs and expressions left
    Steps,
    /// The program after the steps, as TVM writes it
    Tvmscript,
    /// The steps as a trace of TVM's
    Trace,
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
    /// The dependences between the blocks, as a graph for Graphviz
    Deps,
    /// PTX, through NVRTC
    Ptx,
    /// Machine code, through NVRTC and nvdisasm or cuobjdump, with the source lines it came from
    Sass,
    /// Registers, spills, shared memory and occupancy of each kernel, through NVRTC
    Resources,
    /// The knobs of the script, its constraints, and how many points they leave
    Space,
}

/// The machines that something is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Machine {
    Any,
    Gpu,
    Cpu,
}

impl Emit {
    pub(super) const fn machine(self) -> Machine {
        match self {
            Emit::C => Machine::Cpu,
            Emit::Cuda | Emit::Ptx | Emit::Sass | Emit::Resources => Machine::Gpu,
            Emit::Ir
            | Emit::Tvmscript
            | Emit::Trace
            | Emit::Steps
            | Emit::Diff
            | Emit::Kernel
            | Emit::Pipeline
            | Emit::Deps
            | Emit::Space => Machine::Any,
        }
    }

    /// Whether a compiler has a part in it.
    pub(super) const fn is_compiled(self) -> bool {
        match self {
            Emit::Pipeline | Emit::Ptx | Emit::Sass | Emit::Resources => true,
            Emit::Ir
            | Emit::Tvmscript
            | Emit::Trace
            | Emit::Steps
            | Emit::Diff
            | Emit::Kernel
            | Emit::Cuda
            | Emit::C
            | Emit::Deps
            | Emit::Space => false,
        }
    }

    pub(super) const fn lang(self) -> Lang {
        match self {
            Emit::Diff => Lang::Diff,
            Emit::Steps | Emit::Trace => Lang::Ron,
            Emit::Tvmscript => Lang::Python,
            Emit::Cuda | Emit::C => Lang::C,
            Emit::Deps => Lang::Dot,
            Emit::Ptx => Lang::Ptx,
            Emit::Sass => Lang::Sass,
            Emit::Ir | Emit::Kernel | Emit::Pipeline | Emit::Resources | Emit::Space => Lang::Ir,
        }
    }
}

/// A program in one of its forms.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "text")]
pub(crate) struct Form<'a> {
    pub(super) ok: True,
    /// Which form: ir, tvmscript, trace, steps, kernel, cuda, c, ptx, sass.
    #[schemars(with = "String")]
    pub(super) emit: Emit,
    /// The program.
    pub(super) text: &'a str,
    /// cpu, or cuda with its architecture: cuda:sm_90a
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
    /// What the script asks for in vain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) notes: Option<&'a [String]>,
    /// The disassembler, with `--emit sass`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<&'static str>,
}

impl Report for Form<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        self.notes.into_iter().flatten().for_each(|it| shell.note(it));
        shell.code(self.text, self.emit.lang())
    }
}
