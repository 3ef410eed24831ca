//! From a lowered program to source text.

use std::collections::BTreeSet;

use ir::{Alloc, Module, Name, Op, Target, text::LineSource};

mod available;

pub use crate::cfamily::symbol;

/// The most private memory that a CPU kernel takes from a thread's stack, in bytes.
pub const MAX_STACK_BYTES: i64 = 512 * 1024;

/// Why a program has no source.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EmitError {
    /// Buffers that are private to a thread are too large for its stack.
    #[error(
        "kernel `{kernel}` needs {bytes} bytes of private memory for each thread, `{buffer}` among it; at most {limit} fit the stack"
    )]
    StackTooLarge {
        /// The kernel.
        kernel: Name,
        /// The largest of the buffers.
        buffer: Name,
        /// What all that live at the same time need.
        bytes: i64,
        /// What there is.
        limit: i64,
    },
    /// A statement accesses a buffer that is neither an argument nor allocated: a bug in a pass.
    #[error("kernel `{kernel}` accesses `{buffer}`, which is neither an argument nor allocated")]
    UnknownBuffer {
        /// The kernel.
        kernel: Name,
        /// The buffer.
        buffer: Name,
    },
    /// A kernel has something that its target has no instruction for: the passes for that target were left out.
    #[error("kernel `{kernel}` has what {} has no instruction for: {what}", word(target))]
    NoInstruction {
        /// The kernel.
        kernel: Name,
        /// What, in words.
        what: String,
        /// The target.
        target: Target,
    },
}

/// The target in a sentence.
fn word(target: &Target) -> String {
    match target {
        Target::Cpu => "a CPU".to_owned(),
        Target::Cuda(arch) => arch.to_string(),
    }
}

ir::codes!(EmitError {
    StackTooLarge = 2101,
    UnknownBuffer = 2102,
    NoInstruction = 2103,
});

impl EmitError {
    /// The buffer that the message is about, if there is one.
    pub fn buffer(&self) -> Option<&Name> {
        match self {
            EmitError::StackTooLarge { buffer, .. } | EmitError::UnknownBuffer { buffer, .. } => Some(buffer),
            EmitError::NoInstruction { .. } => None,
        }
    }

    /// What to do about it, if there is one thing to do.
    pub fn help(&self) -> Option<String> {
        match self {
            EmitError::StackTooLarge { .. } => {
                Some("compute the buffer for one tile at a time, or leave it in global memory".to_owned())
            }
            EmitError::UnknownBuffer { .. } | EmitError::NoInstruction { .. } => None,
        }
    }
}

/// The source of a program: C for a CPU, CUDA C++ for a GPU. Deterministic.
///
/// A kernel's function is named [`symbol`] of its name. The module is one that was lowered for this target: of a kernel's text only
/// the passes make what printers rely on, and the command refuses to print one.
pub fn emit(module: &Module, target: &Target) -> Result<String, EmitError> {
    Ok(emit_traced(module, target)?.0)
}

/// The same source, with what each of its lines was printed from. A line that belongs to no statement has nothing.
pub fn emit_traced(module: &Module, target: &Target) -> Result<(String, Vec<Option<LineSource>>), EmitError> {
    for kernel in &module.kernels {
        let mut known: Vec<_> = kernel.args.keys().collect();
        check_buffers(&kernel.body, &mut known)
            .map_err(|buffer| EmitError::UnknownBuffer { kernel: kernel.name.clone(), buffer })?;
        available::check_instructions(module, kernel, target)?;
        if *target != Target::Cpu {
            continue;
        }
        let bytes = stack_bytes(&kernel.body);
        if let Some(largest) = largest(&kernel.body).filter(|_| bytes > MAX_STACK_BYTES) {
            let (kernel, buffer) = (kernel.name.clone(), largest.name.clone());
            return Err(EmitError::StackTooLarge { kernel, buffer, bytes, limit: MAX_STACK_BYTES });
        }
    }
    Ok(crate::cfamily::print(module, target))
}

fn bytes_of(it: &Alloc) -> i64 {
    it.elements().saturating_mul(it.dtype.bytes_i64())
}

/// The private memory that statements need at once: their own allocations and the most that any of them needs.
fn stack_bytes(ops: &[Op]) -> i64 {
    let (mut own, mut inner) = (0i64, 0);
    for op in ops {
        match op {
            Op::Alloc(it) => own = own.saturating_add(bytes_of(it)),
            Op::For(it) => inner = stack_bytes(&it.body).max(inner),
            Op::If(_, body) | Op::Leader(_, body) | Op::Role(_, body) => inner = stack_bytes(body).max(inner),
            Op::Instr(..) => {}
        }
    }
    own.saturating_add(inner)
}

fn largest(ops: &[Op]) -> Option<&Alloc> {
    let mut out: Option<&Alloc> = None;
    for op in ops {
        op.walk(&mut |op| {
            if let Op::Alloc(it) = op
                && out.is_none_or(|best| bytes_of(it) > bytes_of(best))
            {
                out = Some(it);
            }
        });
    }
    out
}

/// Refuses with the first buffer that is accessed where it is not known.
fn check_buffers<'a>(ops: &'a [Op], known: &mut Vec<&'a Name>) -> Result<(), Name> {
    let outside = known.len();
    for op in ops {
        match op {
            Op::Alloc(it) => known.push(&it.name),
            Op::For(it) => check_buffers(&it.body, known)?,
            Op::If(_, body) | Op::Leader(_, body) | Op::Role(_, body) => check_buffers(body, known)?,
            Op::Instr(it, _) => {
                let mut unknown = None;
                it.each_access(&mut |access, _| {
                    if !known.contains(&&access.buffer) {
                        unknown.get_or_insert(access.buffer.clone());
                    }
                });
                let mut tables = BTreeSet::new();
                op.tables(&mut tables);
                let table = tables.into_iter().find(|it| !known.contains(&it));
                unknown.or(table).map_or(Ok(()), Err)?;
            }
        }
    }
    known.truncate(outside);
    Ok(())
}
