//! What can be wrong with a call of a kernel.

/// The kinds of errors of calls. Their messages are written where they are raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallError {
    /// There are more or fewer arrays than the kernel takes, or some by other names.
    Arguments,
    /// An array has elements of another type.
    ElementType,
    /// An array has another number of dimensions or other extents, by itself or beside the others.
    Shape,
    /// The elements of an array do not follow each other in memory.
    Strides,
    /// An array is on another device, or the device is another than the kernel was compiled for.
    Device,
    /// An array begins at an address that the kernel cannot read or write from.
    Alignment,
    /// A result would be written where it must not be.
    Memory,
    /// An object gives no access to its memory.
    Exchange,
}

ir::codes!(CallError {
    Arguments = 5071,
    ElementType = 5072,
    Shape = 5073,
    Strides = 5074,
    Device = 5075,
    Alignment = 5076,
    Memory = 5077,
    Exchange = 5078,
});
