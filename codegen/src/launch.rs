//! From a lowered module and machine code to a program that a machine can load.

use indexmap::IndexMap;
use ir::{Alloc, Arch, Index, Kernel, Mbarriers, Module, Name, Op, ThreadAxis};

use crate::device::{Launch, Program};

mod alignment;
mod maps;
mod tensor_memory;

pub(crate) use tensor_memory::TensorMemory;

pub use alignment::argument_alignment;
pub use maps::{DISTANCE_RULE, SIZE_RULE, SymbolicMap, tensor_maps};

/// Why a module cannot be launched for given sizes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum LaunchError {
    #[error("dimension `{name}` has no value")]
    NoSize { name: Name },
    #[error("dimension `{name}` is {value}, and sizes start at 1")]
    BadSize { name: Name, value: i64 },
    #[error(
        "kernel `{kernel}` would have {} on {}, and a launch has from 1 to {limit}",
        valued(extent, *value),
        axis.as_str()
    )]
    AxisTooLong { kernel: Name, axis: ThreadAxis, extent: Index, value: Option<i64>, limit: i64 },
    #[error("`{buffer}` would have {} elements, more than memory has addresses for", valued(len, *value))]
    TooLarge { buffer: Name, len: Index, value: Option<i64> },
    #[error("tensor map `{map}` of `{buffer}` would have {what}; the copy engine takes {rule}")]
    TensorMap { map: Name, buffer: Name, what: String, rule: &'static str },
}

/// An expression with its value. Without one it is past 64 bits.
fn valued(it: &Index, value: Option<i64>) -> String {
    match (it.as_int(), value) {
        (Some(it), _) => it.to_string(),
        (None, Some(value)) => format!("{it} = {value}"),
        (None, None) => format!("{it} (past 64 bits)"),
    }
}

impl LaunchError {
    /// The axis of the launch that the message is about.
    pub fn axis(&self) -> Option<ThreadAxis> {
        match self {
            LaunchError::AxisTooLong { axis, .. } => Some(*axis),
            LaunchError::NoSize { .. }
            | LaunchError::BadSize { .. }
            | LaunchError::TooLarge { .. }
            | LaunchError::TensorMap { .. } => None,
        }
    }

    /// The buffer that the message is about.
    pub fn buffer(&self) -> Option<&Name> {
        match self {
            LaunchError::TooLarge { buffer, .. } | LaunchError::TensorMap { buffer, .. } => Some(buffer),
            LaunchError::NoSize { .. } | LaunchError::BadSize { .. } | LaunchError::AxisTooLong { .. } => {
                None
            }
        }
    }

    /// What to do about it, if there is one thing to do.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            LaunchError::NoSize { .. } | LaunchError::BadSize { .. } => return None,
            LaunchError::AxisTooLong { axis: ThreadAxis::BlockX, .. } | LaunchError::TooLarge { .. } => {
                "give a smaller size"
            }
            LaunchError::AxisTooLong { axis, .. } if axis.is_thread() => {
                "split the loop by a constant and bind the inner part"
            }
            LaunchError::AxisTooLong { .. } => "bind the loop that grows to blockIdx.x",
            LaunchError::TensorMap { .. } => "choose sizes that it takes, or copy without the copy engine",
        };
        Some(help.to_owned())
    }
}

ir::codes!(LaunchError {
    NoSize = 2201,
    BadSize = 2202,
    AxisTooLong = 2203,
    TooLarge = 2204,
    TensorMap = 2205,
});

/// A program out of machine code for the module's kernels and values for its dimensions.
pub fn program(module: &Module, dims: &IndexMap<Name, i64>, binary: Vec<u8>) -> Result<Program, LaunchError> {
    for name in &module.dims {
        match dims.get(name) {
            None => return Err(LaunchError::NoSize { name: name.clone() }),
            Some(&value) if value < 1 => return Err(LaunchError::BadSize { name: name.clone(), value }),
            Some(_) => {}
        }
    }
    let size = |index: &Index| index.eval(&|name| dims.get(name).copied());

    let buffers = module.args.iter().map(|(name, arg)| {
        let value = size(&arg.elements());
        let bytes = value.and_then(|len| usize::try_from(len).ok()?.checked_mul(arg.dtype.bytes()));
        bytes.ok_or_else(|| LaunchError::TooLarge { buffer: name.clone(), len: arg.elements(), value })
    });
    let buffers = buffers.collect::<Result<_, _>>()?;
    let launches = module.kernels.iter().map(|kernel| {
        let fitting = |axis: ThreadAxis, extent: Index| {
            let limit = Arch::axis_limit(axis);
            let value = size(&extent);
            let fits = value.filter(|it| (1..=limit).contains(it)).and_then(|it| u32::try_from(it).ok());
            let kernel = kernel.name.clone();
            fits.ok_or(LaunchError::AxisTooLong { kernel, axis, extent, value, limit })
        };
        let [[gx, gy, gz], [bx, by, bz]] = [kernel.grid(), kernel.block()];
        let there = |it: &SymbolicMap| size(&module.args[it.buffer].elements());
        let maps = tensor_maps(module, kernel)?;
        let at = |name: &Name| module.args.get_index_of(name).expect("a kernel uses the module's arguments");
        Ok(Launch {
            kernel: crate::emit::symbol(&kernel.name).into_owned(),
            grid: [
                fitting(ThreadAxis::BlockX, gx)?,
                fitting(ThreadAxis::BlockY, gy)?,
                fitting(ThreadAxis::BlockZ, gz)?,
            ],
            block: [
                fitting(ThreadAxis::ThreadX, bx)?,
                fitting(ThreadAxis::ThreadY, by)?,
                fitting(ThreadAxis::ThreadZ, bz)?,
            ],
            shared_bytes: u32::try_from(shared_layout(kernel).1)
                .expect("lowering refuses more than there is"),
            programmatic: kernel.programmatic_launch,
            maps: maps.iter().map(|it| it.at(there(it), &size)).collect::<Result<_, _>>()?,
            buffers: kernel.args.keys().map(at).collect(),
            dims: module.dims.iter().map(|name| dims[name]).collect(),
        })
    });
    let zeroed = module.args.values().enumerate().filter(|(_, it)| it.zeroed).map(|(at, _)| at).collect();
    Ok(Program { binary, launches: launches.collect::<Result<_, _>>()?, buffers, zeroed })
}

/// The offset in bytes of each shared buffer of a kernel in its dynamic shared memory, and the bytes of all.
///
/// Buffers start at multiples of their alignment. Those without a place of their own stand
/// behind those with one, in the order of their allocation. Behind all of them are the mbarriers, and behind these what tensor memory takes.
pub fn shared_layout(kernel: &Kernel) -> (IndexMap<Name, i64>, i64) {
    let (offsets, end) = buffer_layout(kernel);
    let tensor = TensorMemory::of(kernel).map_or(0, |it| it.shared_bytes());
    let words = mbarrier_bytes(kernel) + tensor;
    (offsets, if words > 0 { first_mbarrier(end) + words } else { end })
}

/// The bytes of all mbarriers that a kernel names.
fn mbarrier_bytes(kernel: &Kernel) -> i64 {
    kernel.mbarriers.values().map(|it| it.slots * Mbarriers::BYTES).sum()
}

/// Where the mbarriers stand that tell when groups of products into tensor memory are over, and the address of that memory behind them.
pub(crate) fn tensor_memory_offset(kernel: &Kernel) -> i64 {
    first_mbarrier(buffer_layout(kernel).1) + mbarrier_bytes(kernel)
}

/// The offset in bytes of the mbarriers of each name of a kernel in its dynamic shared memory.
pub(crate) fn mbarrier_offsets(kernel: &Kernel) -> IndexMap<Name, i64> {
    let mut at = first_mbarrier(buffer_layout(kernel).1);
    let place = |(name, it): (&Name, &Mbarriers)| {
        let offset = at;
        at += it.slots * Mbarriers::BYTES;
        (name.clone(), offset)
    };
    kernel.mbarriers.iter().map(place).collect()
}

/// The first place for an mbarrier from an offset on.
const fn first_mbarrier(end: i64) -> i64 {
    (end + Mbarriers::BYTES - 1) / Mbarriers::BYTES * Mbarriers::BYTES
}

/// The offset of each shared buffer, and where the last one ends.
fn buffer_layout(kernel: &Kernel) -> (IndexMap<Name, i64>, i64) {
    let mut allocs = Vec::new();
    for op in &kernel.body {
        op.walk(&mut |op| {
            if let Op::Alloc(it) = op
                && it.scope.is_of_blocks()
            {
                allocs.push(it);
            }
        });
    }
    let placed = allocs.iter().filter_map(|it| Some(it.offset? + shared_bytes(it)));
    let mut end = placed.max().unwrap_or(0);
    let mut offsets = IndexMap::new();
    for it in allocs {
        let at = it.offset.unwrap_or(aligned(end, it));
        end = end.max(at + shared_bytes(it));
        offsets.insert(it.name.clone(), at);
    }
    (offsets, end)
}

/// The first place for a buffer from an offset on.
pub(crate) fn aligned(offset: i64, it: &Alloc) -> i64 {
    let align = it.align.max(Alloc::ALIGN);
    (offset + align - 1) / align * align
}

/// What the shared memory of a kernel has to start at a multiple of.
pub(crate) fn shared_alignment(kernel: &Kernel) -> i64 {
    let mut out = Alloc::ALIGN;
    for op in &kernel.body {
        op.walk(&mut |op| {
            if let Op::Alloc(it) = op
                && it.scope.is_of_blocks()
            {
                out = out.max(it.align);
            }
        });
    }
    out
}

/// The bytes that a shared buffer takes, up to where the next one may start.
pub(crate) fn shared_bytes(it: &Alloc) -> i64 {
    let bytes = it.elements() * it.dtype.bytes_i64();
    (bytes + 15) / 16 * 16
}
