//! What callers of an exported kernel need to know: parameters, sizes, launches. Derived from the lowered program.

use codegen::{LaunchError, SymbolicMap, argument_alignment, emit::symbol, shared_layout, tensor_maps};
use ir::{Arch, DType, Index, Kernel, Name, Role, Target};
use tuner::build::target_word;

use super::{common::TOOL, expr::product, subject::Subject};

/// The interface of a kernel.
#[derive(Debug)]
pub(super) struct Spec<'a> {
    /// What it was made of.
    pub(super) subject: &'a Subject,
    /// What functions, header and library of the bundle are called: `tilewright_matmul`.
    pub(super) name: &'a str,
    /// The name with a hash of what the bundle computes and how: what a linker sees of it begins with this, since no
    /// other bundle has it, and nothing else in a program.
    pub(super) unique: String,
    /// Inputs and outputs in parameter order, then temporaries that kernels share.
    pub(super) buffers: Vec<Buffer>,
    /// How many of them are inputs and outputs.
    pub(super) params: usize,
    /// The launches in order.
    pub(super) launches: Vec<Launch>,
    /// The tensor maps of all launches.
    pub(super) maps: Vec<SymbolicMap>,
}

/// A buffer in global memory.
#[derive(Debug)]
pub(super) struct Buffer {
    /// Its name in the program.
    pub(super) name: Name,
    /// Its name in the sources of every language: `in_A`, `out_C`. See [`dim_ident`].
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
    /// What its elements are less than, where reads go through them.
    pub(super) below: Option<Index>,
}

/// One kernel of the source.
#[derive(Debug)]
pub(super) struct Launch {
    /// Its function.
    pub(super) symbol: String,
    /// Its tensor maps by number, which it takes first, by value.
    pub(super) maps: Vec<usize>,
    /// Its buffers by number; the symbolic dimensions follow them.
    pub(super) buffers: Vec<usize>,
    /// Blocks on x, y and z.
    pub(super) grid: [Index; 3],
    /// Threads on x, y and z.
    pub(super) block: [Index; 3],
    /// The bytes of its dynamic shared memory.
    pub(super) shared_bytes: i64,
    /// Whether its clusters have more blocks than every GPU with clusters launches.
    pub(super) large_cluster: bool,
    /// Whether it starts before what is ahead of it in the stream has ended, and waits for that by itself.
    pub(super) programmatic: bool,
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
    /// # Errors
    /// [`LaunchError::TensorMap`] for a map that no launcher can encode.
    pub(super) fn of(subject: &'a Subject) -> Result<Spec<'a>, LaunchError> {
        let module = &subject.module;
        let unique = format!("{}_{}", subject.name, hash(subject));
        let buffer = |(name, arg): (&Name, &ir::Arg)| Buffer {
            name: name.clone(),
            ident: match arg.role {
                Role::Input => format!("in_{name}"),
                Role::Output => format!("out_{name}"),
                Role::Temp => format!("temp_{name}"),
            },
            dtype: arg.dtype,
            shape: match subject.plain.buffers.get(name).filter(|_| arg.role != Role::Temp) {
                Some(it) => it.shape.clone(),
                None => vec![arg.elements()],
            },
            role: arg.role,
            is_written: module.kernels.iter().any(|it| it.args.get(name) == Some(&true)),
            align: argument_alignment(module, &subject.target, name),
            zeroed: arg.zeroed,
            below: arg.below.clone(),
        };
        let (mut maps, mut launches) = (Vec::new(), Vec::new());
        for kernel in &module.kernels {
            let first = maps.len();
            maps.extend(tensor_maps(module, kernel)?);
            launches.push(launch(subject, &unique, kernel, (first..maps.len()).collect()));
        }
        Ok(Spec {
            subject,
            name: &subject.name,
            buffers: module.args.iter().map(buffer).collect(),
            params: module.args.values().filter(|it| it.role != Role::Temp).count(),
            launches,
            maps,
            unique,
        })
    }

    /// Whether any launch starts before what is ahead of it in the stream has ended.
    pub(super) fn is_early(&self) -> bool {
        self.launches.iter().any(|it| it.programmatic)
    }

    /// The symbolic dimensions with the names that they have in the sources, in parameter order.
    pub(super) fn dims(&self) -> impl Iterator<Item = (&Name, String)> {
        self.subject.module.dims.iter().map(|it| (it, dim_ident(it)))
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

/// The name of a symbolic dimension in the sources: `dim_m`.
///
/// Every name of the user's that stands in a source begins with `in_`, `out_` or `dim_`, and nothing else in the templates
/// does: no name can be one of ours, a keyword, a macro of a header, or another name of the user's.
pub(super) fn dim_ident(name: &Name) -> String {
    format!("dim_{name}")
}

/// The first digits of a hash over what a bundle computes and how.
fn hash(subject: &Subject) -> String {
    let program = ir::text::print(&subject.plain).text;
    let all = [TOOL, &target_word(&subject.target), &program, &subject.source].join("\0");
    tuner::sha256(all)[..12].to_owned()
}

/// A GPU's kernels are found in a module of their own; a processor's meet all symbols of a program.
fn launch(subject: &Subject, unique: &str, kernel: &Kernel, maps: Vec<usize>) -> Launch {
    let module = &subject.module;
    let function = symbol(&kernel.name);
    let at = |name: &Name| module.args.get_index_of(name).expect("a kernel uses the module's arguments");
    Launch {
        symbol: match subject.target {
            Target::Cpu => format!("{unique}_{function}"),
            Target::Cuda(_) => function.into_owned(),
        },
        maps,
        buffers: kernel.args.keys().map(at).collect(),
        grid: kernel.grid(),
        block: kernel.block(),
        shared_bytes: shared_layout(kernel).1,
        large_cluster: kernel.cluster_blocks() > i64::from(Arch::PORTABLE_CLUSTER),
        programmatic: kernel.programmatic_launch,
    }
}

/// The type of an element in the C interface.
pub(super) const fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::U8 | DType::F8e4m3 | DType::F8e5m2 | DType::F8e8m0 => "uint8_t",
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
        DType::Bool | DType::U8 | DType::F8e4m3 | DType::F8e5m2 | DType::F8e8m0 => "u8",
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

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    #[test]
    fn only_names_of_the_user_begin_as_such() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/export/templates");
        for entry in fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            let text = fs::read_to_string(&path).expect("it is text");
            let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
            let taken: Vec<_> = text
                .split(|it| !is_word(it))
                .filter(|it| {
                    ["in_", "out_", "dim_", "temp_"]
                        .iter()
                        .any(|start| it.len() > start.len() && it.starts_with(start))
                })
                .collect();
            assert!(taken.is_empty(), "{}: {taken:?}", path.display());
        }
    }
}
