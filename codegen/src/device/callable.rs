//! Programs that run on memory of their caller's: what a [`Machine`](super::Machine) is not for, since it owns its memory and waits.

#![expect(unsafe_code, reason = "memory and streams come as numbers, whose meaning the caller vouches for")]

use super::{DeviceError, Program};

/// Memory that somebody else owns, on the device that a program runs on, for one call of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Borrowed {
    pub(super) start: usize,
    pub(super) bytes: usize,
}

impl Borrowed {
    /// The memory from an address on.
    ///
    /// # Safety
    ///
    /// So many bytes are there, may be read, and written where the program writes this argument. They stay until the work of the call has
    /// ended, and until then nobody else writes what it reads, or touches what it writes. The address is a multiple of what
    /// [`argument_alignment`](crate::argument_alignment) says.
    pub const unsafe fn new(start: usize, bytes: usize) -> Borrowed {
        Borrowed { start, bytes }
    }

    /// Where it begins.
    pub const fn start(self) -> usize {
        self.start
    }

    /// Whether two have a byte in common.
    pub const fn overlaps(self, other: Borrowed) -> bool {
        let is_empty = self.bytes == 0 || other.bytes == 0;
        let (end, other_end) =
            (self.start.saturating_add(self.bytes), other.start.saturating_add(other.bytes));
        !is_empty && self.start < other_end && other.start < end
    }
}

/// A stream of a GPU that somebody else owns: work on it runs in the order in which it was started.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stream(pub(super) usize);

impl Stream {
    /// The one that waits for all others of its context, and all others for it.
    pub const DEFAULT: Stream = Stream(0);

    /// The default stream of the calling thread.
    pub(super) const PER_THREAD: Stream = Stream(2);

    /// A stream of the driver's or the runtime's, as its handle.
    ///
    /// # Safety
    ///
    /// The handle is of a stream that is alive until the work started on it has ended, and of the context that is current when a
    /// program is called on it; or 0, 1 or 2, which stand for the default streams.
    pub const unsafe fn new(handle: usize) -> Stream {
        Stream(handle)
    }
}

/// Refuses memory that is not as much as a program needs, in number and size; temporaries are not among it.
pub(super) fn check_memory(program: &Program, memory: &[Borrowed]) -> Result<(), DeviceError> {
    let needed = &program.buffers;
    if memory.len() > needed.len() {
        let words = format!("the program takes at most {} buffers, not {}", needed.len(), memory.len());
        return Err(DeviceError::Unsupported(words));
    }
    for (n, (there, needed)) in memory.iter().zip(needed).enumerate() {
        if there.bytes < *needed {
            let words =
                format!("the program's buffer {n} needs {needed} bytes, and {} are there", there.bytes);
            return Err(DeviceError::Unsupported(words));
        }
    }
    super::check_program(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_overlaps() {
        let at = |start, bytes| Borrowed { start, bytes };
        assert!(at(16, 8).overlaps(at(20, 1)) && at(20, 1).overlaps(at(16, 8)));
        assert!(!at(16, 8).overlaps(at(24, 8)) && !at(16, 8).overlaps(at(18, 0)));
        assert!(at(usize::MAX - 1, 8).overlaps(at(usize::MAX - 1, 1)));
    }
}
