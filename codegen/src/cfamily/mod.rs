//! The one printer of C and CUDA C++.
//!
//! The languages differ in how a kernel begins ([`c`], [`cuda`]), in how lanes are written (vector types here,
//! aligned structs there) and in what types they have; statements, indices and values are printed by one code.
//! What the source uses beyond its language is defined in a prelude, and only where used ([`helper`]).

use indexmap::IndexMap;
use ir::{Caps, Feature, Kernel, Module, Target, text::LineSource};

use crate::device::CPU_ABI_HEADER;

mod across;
mod builtin;
mod bulk;
mod c;
mod claim;
mod cluster;
mod convert;
mod copy;
mod cuda;
mod frame;
mod helper;
mod index;
mod integer;
mod lines;
mod literal;
mod names;
mod ptx;
mod stmt;
mod tcgen05;
mod team;
mod tensor;
mod types;
mod value;
mod warp_reduce;
mod wgmma;
mod words;

pub(crate) use frame::memory;
pub use names::symbol;
pub(crate) use team::{NAMED_BARRIERS, named_barriers};

use frame::Frame;
use helper::Helper;
use lines::Lines;

/// The language of the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Dialect {
    /// C with the vector extensions of GCC and Clang.
    C,
    /// CUDA C++ for NVRTC without headers, for an architecture that can do so much.
    Cuda(&'static Caps),
}

impl Dialect {
    /// Whether it is for an architecture with an instruction.
    const fn has(self, feature: Feature) -> bool {
        matches!(self, Dialect::Cuda(caps) if caps.features.has(feature))
    }

    const fn is_c(self) -> bool {
        matches!(self, Dialect::C)
    }
}

/// The source as it grows.
struct Printer<'a> {
    dialect: Dialect,
    module: &'a Module,
    /// The definitions of what was used, each after what it needs.
    prelude: IndexMap<Helper, String>,
    /// Functions that are finished.
    functions: Lines,
    /// The function that is being printed.
    out: Lines,
    /// What is being printed, for the reader who wants to know what a line stands for.
    line_source: Option<LineSource>,
    /// The number of the kernel that is being printed, and of the next statement.
    at: (usize, usize),
    depth: usize,
    /// How many bodies of parallel loops are functions of their own.
    bodies: usize,
    frame: Frame,
}

/// The source of a module, and what each of its lines was printed from; see [`crate::emit::emit`], which checks it first.
pub(crate) fn print(module: &Module, target: &Target) -> (String, Vec<Option<LineSource>>) {
    let dialect = match target {
        Target::Cpu => Dialect::C,
        Target::Cuda(arch) => Dialect::Cuda(arch.caps()),
    };
    let mut printer = Printer {
        dialect,
        module,
        prelude: IndexMap::new(),
        functions: Lines::default(),
        out: Lines::default(),
        line_source: None,
        at: (0, 0),
        depth: 0,
        bodies: 0,
        frame: Frame::default(),
    };
    for (number, kernel) in module.kernels.iter().enumerate() {
        printer.at.0 = number;
        printer.kernel(kernel);
    }
    printer.finish()
}

impl Printer<'_> {
    fn kernel(&mut self, kernel: &Kernel) {
        self.frame = Frame::of(self.dialect, self.module, kernel);
        match self.dialect {
            Dialect::C => self.c_kernel(kernel),
            Dialect::Cuda(_) => self.cuda_kernel(kernel),
        }
    }

    fn finish(self) -> (String, Vec<Option<LineSource>>) {
        let (language, header) = match self.dialect {
            Dialect::C => ("C", CPU_ABI_HEADER),
            Dialect::Cuda(_) => ("CUDA C++", ""),
        };
        let inline = match self.dialect {
            _ if !self.prelude.values().any(|it| it.starts_with("TW_INLINE")) => "",
            Dialect::C => "#define TW_INLINE static inline __attribute__((always_inline))\n",
            Dialect::Cuda(_) => "#define TW_INLINE static __device__ __forceinline__\n",
        };
        let definitions: String = self.prelude.into_values().collect();
        let Lines { text, line_sources } = self.functions;
        let parts = [header.to_owned(), format!("{inline}{definitions}"), text];
        let parts: Vec<_> = parts.iter().map(|it| it.trim_end()).filter(|it| !it.is_empty()).collect();
        let source =
            format!("// {}: {language} by tilewright.\n\n{}\n", self.module.name, parts.join("\n\n"));
        // The functions come last.
        let (all, own) = (source.lines().count(), parts.last().map_or(0, |it| it.lines().count()));
        let before = std::iter::repeat_n(None, all - own);
        (source, before.chain(line_sources.into_iter().take(own)).collect())
    }

    /// One line of the function that is being printed.
    fn line(&mut self, text: &str) {
        for line in text.lines() {
            let is_directive = line.starts_with('#') && self.dialect.is_c();
            let indent = if is_directive { 0 } else { self.depth };
            self.out.push(&[&"  ".repeat(indent), line].concat(), self.line_source);
        }
    }

    /// Lines one level deeper, between braces. The closing brace stands for nothing.
    fn nest(&mut self, head: &str, body: impl FnOnce(&mut Self)) {
        self.line(format!("{head} {{").trim_start());
        self.depth += 1;
        body(self);
        self.depth -= 1;
        let line_source = self.line_source.take();
        self.line("}");
        self.line_source = line_source;
    }

    /// The type of indices.
    fn index_type(&self, wide: bool) -> &'static str {
        match self.dialect {
            Dialect::C => "int64_t",
            Dialect::Cuda(_) if wide => "long long",
            Dialect::Cuda(_) => "int",
        }
    }
}
