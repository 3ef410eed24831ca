//! What callers of an exported kernel need to know: parameters, sizes, launches. Derived from the lowered program.

use std::collections::BTreeSet;

use codegen::{emit::symbol, shared_layout};
use indexmap::IndexMap;
use ir::{DType, Index, Kernel, Module, Name, Op, Role, Target, ThreadAxis};

use super::{expr::product, subject::Subject};

/// The interface of a kernel.
#[derive(Debug)]
pub(super) struct Spec<'a> {
    /// What it was made of.
    pub(super) subject: &'a Subject,
    /// What all functions of the bundle begin with: `tilewright_matmul`.
    pub(super) name: String,
    /// Inputs and outputs in parameter order, then temporaries that kernels share.
    pub(super) buffers: Vec<Buffer>,
    /// How many of them are inputs and outputs.
    pub(super) params: usize,
    /// The launches in order.
    pub(super) launches: Vec<Launch>,
    idents: IndexMap<Name, String>,
}

/// A buffer in global memory.
#[derive(Debug)]
pub(super) struct Buffer {
    /// Its name in the program.
    pub(super) name: Name,
    /// Its name in C and in Rust.
    pub(super) ident: String,
    /// The type of its elements.
    pub(super) dtype: DType,
    /// Its size in each dimension; one for temporaries.
    pub(super) shape: Vec<Index>,
    /// Who owns it.
    pub(super) role: Role,
    /// Whether a kernel writes it.
    pub(super) is_written: bool,
    /// What its address must be a multiple of.
    pub(super) align: usize,
    /// Whether it must hold zeros before the first run; every run leaves it so.
    pub(super) zeroed: bool,
}

/// One kernel of the source.
#[derive(Debug)]
pub(super) struct Launch {
    /// Its function.
    pub(super) symbol: String,
    /// Its buffers by number; the symbolic dimensions follow them.
    pub(super) buffers: Vec<usize>,
    /// Blocks on x, y and z.
    pub(super) grid: [Index; 3],
    /// Threads on x, y and z.
    pub(super) block: [Index; 3],
    /// The bytes of its dynamic shared memory.
    pub(super) shared_bytes: i64,
}

impl Buffer {
    /// How many elements it has.
    pub(super) fn elements(&self) -> Index {
        product(&self.shape)
    }

    /// How many bytes it has.
    pub(super) fn bytes(&self) -> Index {
        self.elements() * self.dtype.bytes_i64()
    }
}

impl<'a> Spec<'a> {
    pub(super) fn of(subject: &'a Subject) -> Spec<'a> {
        let module = &subject.module;
        let idents = idents(module);
        let buffer = |(name, arg): (&Name, &ir::Arg)| Buffer {
            name: name.clone(),
            ident: idents[name].clone(),
            dtype: arg.dtype,
            shape: match subject.plain.buffers.get(name).filter(|_| arg.role != Role::Temp) {
                Some(it) => it.shape.clone(),
                None => vec![arg.len.clone()],
            },
            role: arg.role,
            is_written: module.kernels.iter().any(|it| it.args.get(name) == Some(&true)),
            align: alignment(module, &subject.target, name, arg.dtype),
            zeroed: arg.zeroed,
        };
        Spec {
            subject,
            name: format!("tilewright_{}", module.name),
            buffers: module.args.iter().map(buffer).collect(),
            params: module.args.values().filter(|it| it.role != Role::Temp).count(),
            launches: module.kernels.iter().map(|it| launch(module, it)).collect(),
            idents,
        }
    }

    /// The symbolic dimensions with the names that they have in C and in Rust, in parameter order.
    pub(super) fn dims(&self) -> impl Iterator<Item = (&Name, &str)> {
        self.subject.module.dims.iter().map(|it| (it, self.idents[it].as_str()))
    }

    /// The inputs and outputs.
    pub(super) fn params(&self) -> &[Buffer] {
        &self.buffers[..self.params]
    }

    /// The temporaries that kernels share.
    pub(super) fn workspace(&self) -> &[Buffer] {
        &self.buffers[self.params..]
    }

    /// The value of an index at the sizes that the bundle's own launcher takes by itself.
    pub(super) fn value(&self, index: &Index) -> Option<i64> {
        index.eval(&|name| self.subject.dims.get(name).copied())
    }

    /// A dimension as an element of the array `dims`.
    pub(super) fn dim_at(&self, name: &Name) -> String {
        let at = self.subject.module.dims.iter().position(|it| it == name);
        at.map_or_else(|| name.to_string(), |at| format!("dims[{at}]"))
    }
}

fn launch(module: &Module, kernel: &Kernel) -> Launch {
    let on = |axis: ThreadAxis| kernel.launch.get(&axis).cloned().unwrap_or_else(|| Index::int(1));
    let at = |name: &Name| module.args.get_index_of(name).expect("a kernel uses the module's arguments");
    Launch {
        symbol: symbol(&kernel.name).into_owned(),
        buffers: kernel.args.keys().map(at).collect(),
        grid: [ThreadAxis::BlockX, ThreadAxis::BlockY, ThreadAxis::BlockZ].map(on),
        block: [ThreadAxis::ThreadX, ThreadAxis::ThreadY, ThreadAxis::ThreadZ].map(on),
        shared_bytes: shared_layout(kernel).1,
    }
}

/// What the address of a buffer must be a multiple of: its widest access on a GPU; its elements' size in C, whose
/// vectors may start at any element.
fn alignment(module: &Module, target: &Target, name: &Name, dtype: DType) -> usize {
    let mut lanes = 1;
    let mut see = |access: &ir::Access| {
        if access.buffer == *name {
            lanes = lanes.max(access.lanes as usize);
        }
    };
    if *target != Target::Cpu {
        let ops = module.kernels.iter().flat_map(|it| &it.body);
        ops.for_each(|op| {
            op.walk(&mut |op: &Op| {
                if let Some((place, value)) = op.assignment() {
                    see(place);
                    value.each_load(&mut see);
                }
            });
        });
    }
    dtype.bytes() * lanes
}

/// Words that a parameter must not be named in C or in Rust: those of Rust, and what the launchers use.
const TAKEN: &[&str] = &[
    "Kernel",
    "Option",
    "Result",
    "Self",
    "Some",
    "None",
    "Ok",
    "Err",
    "String",
    "Vec",
    "abstract",
    "alone",
    "all",
    "args",
    "as",
    "async",
    "await",
    "bad",
    "become",
    "box",
    "bytes",
    "check",
    "code",
    "crate",
    "data",
    "dyn",
    "each",
    "error",
    "final",
    "fn",
    "handle",
    "i",
    "impl",
    "in",
    "is_inside",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "options",
    "out",
    "override",
    "pool",
    "priv",
    "pub",
    "r",
    "ref",
    "run",
    "self",
    "span",
    "stream",
    "super",
    "threads",
    "together",
    "trait",
    "type",
    "unsized",
    "use",
    "where",
    "worker",
    "yield",
];

/// A name in C and in Rust for each argument and dimension.
fn idents(module: &Module) -> IndexMap<Name, String> {
    let mut used: BTreeSet<String> = TAKEN.iter().map(|it| (*it).to_owned()).collect();
    let mut out = IndexMap::new();
    for name in module.args.keys().chain(&module.dims) {
        let mut ident = symbol(name).into_owned();
        // The launchers' own names begin like this, and so do those of the C library and of emitted functions.
        let is_ours = ident.starts_with("tw_") || ident.starts_with("tilewright") || ident.starts_with('_');
        if is_ours {
            ident = format!("arg_{ident}");
        }
        while !used.insert(ident.clone()) {
            ident.push('_');
        }
        out.insert(name.clone(), ident);
    }
    out
}

/// The type of an element in the C interface.
pub(super) const fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::U8 | DType::F8e4m3 | DType::F8e5m2 => "uint8_t",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int32_t",
        DType::I64 => "int64_t",
        DType::U16 | DType::F16 | DType::Bf16 => "uint16_t",
        DType::U32 => "uint32_t",
        DType::Tf32 | DType::F32 => "float",
        DType::F64 => "double",
    }
}

/// The type of an element in Rust.
pub(super) const fn rust_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::U8 | DType::F8e4m3 | DType::F8e5m2 => "u8",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::I64 => "i64",
        DType::U16 => "u16",
        DType::U32 => "u32",
        DType::F16 => "half::f16",
        DType::Bf16 => "half::bf16",
        DType::Tf32 | DType::F32 => "f32",
        DType::F64 => "f64",
    }
}
