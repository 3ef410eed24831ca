//! Memory for programs on a CPU.

#![expect(unsafe_code, reason = "memory is taken raw")]

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    fs, slice,
};

use super::DeviceError;

/// Zeroed memory aligned to 256 bytes. Zeroed, because it is readable from Rust, and so that its pages exist before
/// anything is timed.
pub(super) struct Memory {
    pub(super) start: *mut u8,
    pub(super) bytes: usize,
    layout: Layout,
}

// SAFETY: nobody else has it, and no thread is special to it.
unsafe impl Send for Memory {}

impl Memory {
    pub(super) fn new(bytes: usize) -> Result<Memory, DeviceError> {
        let refuse =
            |reason: String| DeviceError::Call { call: format!("taking {bytes} bytes of memory"), reason };
        if let Some(available) = available_bytes().filter(|it| *it < bytes) {
            return Err(refuse(format!("only {available} bytes are available")));
        }
        let layout = Layout::from_size_align(bytes.max(1), 256).map_err(|err| refuse(err.to_string()))?;
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            return Err(refuse("the system refused".into()));
        }
        Ok(Memory { start, bytes, layout })
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        // SAFETY: the memory is ours, initialised and so large; kernels only write to it inside `run`.
        unsafe { slice::from_raw_parts(self.start, self.bytes) }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else looks while we are borrowed.
        unsafe { slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was taken with this layout.
        unsafe { dealloc(self.start, self.layout) }
    }
}

/// What the system says can be taken without swapping. Linux promises more and ends the process later.
fn available_bytes() -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|it| it.strip_prefix("MemAvailable:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
