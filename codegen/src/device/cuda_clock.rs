//! The clock of the multiprocessors, from two counters that one thread reads: cycles and nanoseconds.
//!
//! The counter of nanoseconds moves in steps, of a microsecond on many GPUs. The kernel therefore begins at a step and ends
//! at a step, so that neither end is off by more than a turn of its loop.

#![expect(unsafe_code, reason = "the driver is called")]

use std::{ffi::c_void, ptr};

use cudarc::driver::sys::{self, CUdeviceptr, CUfunction, CUmodule};

use super::{
    DeviceError,
    cuda_driver::check,
    cuda_module::{device_memory, function, load_image},
    cuda_wait::Timer,
};

/// Spins for 100 microseconds and writes the nanoseconds and the cycles that it took. The driver translates this text,
/// so that no compiler has to be there. No counter can make it run for ever: it gives up after so many cycles, about ten
/// milliseconds.
const PTX: &str = "\
.version 6.3
.target sm_70
.address_size 64

.visible .entry tilewright_clock(.param .u64 out)
{
    .reg .pred %same, %soon, %again;
    .reg .u64 %at, %before, %start, %now, %time;
    .reg .u64 %first, %began, %ended, %cycles;

    ld.param.u64 %at, [out];
    cvta.to.global.u64 %at, %at;
    mov.u64 %first, %clock64;
    mov.u64 %before, %globaltimer;
STEP:
    mov.u64 %start, %globaltimer;
    mov.u64 %began, %clock64;
    sub.u64 %cycles, %began, %first;
    setp.eq.u64 %same, %start, %before;
    setp.lt.u64 %soon, %cycles, 20000000;
    and.pred %again, %same, %soon;
    @%again bra STEP;
SPIN:
    mov.u64 %now, %globaltimer;
    mov.u64 %ended, %clock64;
    sub.u64 %time, %now, %start;
    sub.u64 %cycles, %ended, %first;
    setp.lt.u64 %same, %time, 100000;
    setp.lt.u64 %soon, %cycles, 20000000;
    and.pred %again, %same, %soon;
    @%again bra SPIN;
    sub.u64 %cycles, %ended, %began;
    st.global.u64 [%at], %time;
    st.global.u64 [%at+8], %cycles;
    ret;
}
";

/// The kernel, loaded, and where it writes.
pub(super) struct Clock {
    module: CUmodule,
    function: CUfunction,
    memory: CUdeviceptr,
}

impl Clock {
    /// Loads the kernel in the current context.
    pub(super) fn new() -> Result<Clock, DeviceError> {
        let module = load_image(PTX.as_bytes())?;
        let rest = function(module, "tilewright_clock").and_then(|it| Ok((it, device_memory(16)?)));
        match rest {
            Ok((function, memory)) => Ok(Clock { module, function, memory }),
            Err(err) => {
                // SAFETY: the module is loaded, and nobody has its functions.
                unsafe { sys::cuModuleUnload(module) };
                Err(err)
            }
        }
    }

    /// The clock right now, in MHz; none where the counters do not move as they should.
    pub(super) fn mhz(&self, timer: &Timer) -> Result<Option<f64>, DeviceError> {
        timer.time(1, 1, "the clock's kernel", |_| {
            let mut memory = self.memory;
            let mut params: [*mut c_void; 1] = [(&raw mut memory).cast()];
            let (function, params, none) = (self.function, params.as_mut_ptr(), ptr::null_mut());
            // SAFETY: the function takes one address, of memory for two numbers; it outlives the call.
            check("launching the clock's kernel", unsafe {
                sys::cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, timer.stream, params, none)
            })
        })?;
        let mut counts = [0u64; 2];
        // SAFETY: both sides hold two numbers.
        check("cuMemcpyDtoH", unsafe {
            sys::cuMemcpyDtoH_v2(counts.as_mut_ptr().cast(), self.memory, size_of_val(&counts))
        })?;
        Ok(mhz(counts))
    }

    /// Gives all back to the current context.
    pub(super) fn destroy(self) {
        // SAFETY: the handles are alive, and this is the end of them.
        unsafe {
            sys::cuModuleUnload(self.module);
            sys::cuMemFree_v2(self.memory);
        }
    }
}

/// Cycles a microsecond, if the kernel ended by the timer and not by its limit.
fn mhz([nanoseconds, cycles]: [u64; 2]) -> Option<f64> {
    let whole = (100_000..10_000_000).contains(&nanoseconds) && cycles > 0;
    whole.then(|| cycles as f64 / nanoseconds as f64 * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_a_microsecond() {
        assert_eq!(mhz([100_000, 198_000]), Some(1980.0));
        // Ended by the limit of cycles, with a timer that stands still or leaps.
        assert_eq!([[0, 20_000_000], [64, 20_000_001], [u64::MAX, 5], [100_000, 0]].map(mhz), [None; 4]);
    }
}
