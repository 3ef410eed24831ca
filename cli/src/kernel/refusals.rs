//! The words for calls that are refused.

use ir::{DType, Index, Name};

use super::{CallError, Place};
use crate::diagnostic::Diagnostic;

/// Extents as people write them.
pub(crate) fn words(extents: &[i64]) -> String {
    if extents.is_empty() {
        return "a single element".to_owned();
    }
    extents.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ")
}

pub(crate) fn other_type(name: &Name, wanted: DType, there: DType) -> Diagnostic {
    let title = format!("`{name}` has elements of type {wanted}, not {there}");
    let help = "compile the kernel for that type, or convert the array";
    Diagnostic::failed(CallError::ElementType, title).help(help.to_owned())
}

/// `here` are the extents at the sizes that the arrays before it have, where some are symbolic.
pub(crate) fn other_shape(name: &Name, wanted: &[Index], here: Option<&[i64]>, there: &[i64]) -> Diagnostic {
    let extents: Vec<_> = wanted.iter().map(ToString::to_string).collect();
    let wanted = if extents.is_empty() { "a single element".to_owned() } else { extents.join(" x ") };
    let at = here.map(|it| format!(", here {}", words(it))).unwrap_or_default();
    let title = format!("`{name}` is {wanted}{at}; this array is {}", words(there));
    let help = "sizes are parameters of the workload: give them when the kernel is compiled, or for any size a name, as `m=\"M\"`";
    Diagnostic::failed(CallError::Shape, title).help(here.is_none().then(|| help.to_owned()))
}

pub(crate) fn not_row_major(name: &Name, shape: &[i64], strides: &[i64]) -> Diagnostic {
    let shape = words(shape);
    let title =
        format!("`{name}` is row-major without gaps; this array of {shape} has the strides {strides:?}");
    let help = "make a contiguous copy, or store the workload's tensor in that order";
    Diagnostic::failed(CallError::Strides, title).help(help.to_owned())
}

pub(crate) fn misaligned(name: &Name, alignment: usize, address: usize) -> Diagnostic {
    let title =
        format!("`{name}` begins at a multiple of {alignment} bytes; this array begins at {address:#x}");
    let help = "copy it: what is no part of another array begins at a multiple of 64 bytes or more";
    Diagnostic::failed(CallError::Alignment, title).help(help.to_owned())
}

pub(crate) fn read_only(name: &Name) -> Diagnostic {
    Diagnostic::failed(CallError::Memory, format!("`{name}` is a result, and this array is read-only"))
}

pub(crate) fn shared(written: &Name, other: &Name) -> Diagnostic {
    let title = format!("the result `{written}` shares memory with `{other}`");
    Diagnostic::failed(CallError::Memory, title)
}

/// Where an array is, in words.
fn place_words(it: Place) -> String {
    match it {
        Place::Cpu => "in the memory of the CPU".to_owned(),
        Place::Gpu(at) => format!("on GPU {at}"),
    }
}

pub(crate) fn other_target(name: &Name, there: Place, target: &str) -> Diagnostic {
    let title = format!("`{name}` is {}, and the kernel was compiled for {target}", place_words(there));
    Diagnostic::failed(CallError::Device, title)
}

pub(crate) fn apart(name: &Name, there: Place, first: Place) -> Diagnostic {
    let title =
        format!("`{name}` is {}, and the arrays before it are {}", place_words(there), place_words(first));
    Diagnostic::failed(CallError::Device, title)
}
