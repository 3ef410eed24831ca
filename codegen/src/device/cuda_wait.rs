//! Starting work on a stream, waiting for its end, and its time.
//!
//! With a deadline the end is asked for again and again, for a call that waits cannot be given up. Times are those
//! between two events on the device, whichever way the host waits.

#![expect(unsafe_code, reason = "the driver is called")]

use std::{
    hint, ptr, thread,
    time::{Duration, Instant},
};

use cudarc::driver::sys::{self, CUevent, CUresult, CUstream};

use super::{
    DeviceError,
    cuda_driver::{check, elapsed_ms},
    cuda_graph::Graph,
};

/// How many pieces of work make a window, or the next multiple of what a call has. Where there are several windows, each is started as
/// one graph.
///
/// The driver blocks in a launch once about a thousand are waiting, which a hang would turn into waiting for ever. So with
/// a deadline at most three windows are under way. The next is started when the first of them has ended: two are
/// still to run, so the device never waits for the host.
const WINDOW: usize = 64;

/// How long the host asks without a pause. Most programs of a tuning run end sooner.
const SPIN: Duration = Duration::from_micros(200);

/// The pause between two questions after that.
const PAUSE: Duration = Duration::from_micros(20);

/// A stream, and the events that time what runs on it.
pub(super) struct Timer {
    /// The stream that everything of a machine runs on.
    pub(super) stream: CUstream,
    /// What one timed run may take, in seconds.
    pub(super) deadline: Option<f64>,
    begin: CUevent,
    end: CUevent,
    marks: [CUevent; 2],
}

/// When to give up.
struct Limit<'a> {
    begun: Instant,
    seconds: f64,
    what: &'a str,
}

impl Timer {
    /// A timer that has nothing yet, for [`Timer::make`] to fill and [`Timer::destroy`] to empty.
    pub(super) fn empty() -> Timer {
        let none = ptr::null_mut();
        Timer { stream: ptr::null_mut(), deadline: None, begin: none, end: none, marks: [none; 2] }
    }

    /// Makes stream and events in the current context.
    pub(super) fn make(&mut self) -> Result<(), DeviceError> {
        let events = [&mut self.begin, &mut self.end].into_iter().chain(&mut self.marks);
        // SAFETY: the handles are valid for writes. The stream must wait for the default one (flag 0): a copy from
        // pageable memory returns once its last part is staged, and a stream apart from it would start a kernel
        // whose first results that part then overwrites. Events with flag 0 have timing.
        unsafe {
            check("cuStreamCreate", sys::cuStreamCreate(&raw mut self.stream, 0))?;
            for event in events {
                check("cuEventCreate", sys::cuEventCreate(event, 0))?;
            }
        }
        Ok(())
    }

    /// Gives stream and events back to the current context.
    pub(super) fn destroy(&mut self) {
        // SAFETY: each handle is alive or null, and is null afterwards.
        unsafe {
            for event in [self.begin, self.end].iter().chain(&self.marks).filter(|it| !it.is_null()) {
                sys::cuEventDestroy_v2(*event);
            }
            if !self.stream.is_null() {
                sys::cuStreamDestroy_v2(self.stream);
            }
        }
        *self = Timer::empty();
    }

    /// Starts so many calls of so many pieces of work each one after the other, waits, and gives the seconds between the start of
    /// the first and the end of the last. `what` says what ran. `start` is given the number of the piece in its call.
    ///
    /// # Errors
    /// [`DeviceError::Hang`] after the deadline, with work still under way; else what failed, with none under way.
    pub(super) fn time(
        &self,
        calls: usize,
        pieces: usize,
        what: &str,
        start: impl Fn(usize) -> Result<(), DeviceError>,
    ) -> Result<f64, DeviceError> {
        let window = WINDOW.div_ceil(pieces.max(1));
        let several = |calls| (0..calls).try_for_each(|_| (0..pieces).try_for_each(&start));
        // What cannot be recorded is started piece by piece.
        let graph =
            (calls >= 2 * window).then(|| Graph::record(self.stream, || several(window)).ok()).flatten();
        let start = |calls| match &graph {
            Some(graph) if calls == window => graph.start(self.stream),
            _ => several(calls),
        };
        let limit = self.deadline.map(|seconds| Limit { begun: Instant::now(), seconds, what });
        self.record(self.begin)?;
        let started = self.start(calls, window, limit.as_ref(), start);
        if let Err(DeviceError::Hang { .. }) = started {
            return started.map(|()| 0.0);
        }
        let recorded = self.record(self.end);
        // Waits even if a launch was refused, so that nothing runs on when the error is seen.
        let waited = wait(self.end, what, limit.as_ref());
        match waited {
            Err(DeviceError::Hang { .. }) => waited?,
            _ => started.and(recorded).and(waited)?,
        }
        Ok(f64::from(elapsed_ms(self.begin, self.end)?) / 1e3)
    }

    /// Starts so many calls, a window of them at a time.
    fn start(
        &self,
        calls: usize,
        window: usize,
        limit: Option<&Limit>,
        start: impl Fn(usize) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        for (windows, first) in (0..calls).step_by(window).enumerate() {
            if let Some(limit) = limit.filter(|_| windows > 0) {
                // The mark of two windows ago was recorded in the event that the next mark takes.
                let mark = self.marks[windows % 2];
                if windows > 2 {
                    wait(mark, limit.what, Some(limit))?;
                }
                self.record(mark)?;
            }
            start(window.min(calls - first))?;
        }
        Ok(())
    }

    fn record(&self, event: CUevent) -> Result<(), DeviceError> {
        // SAFETY: event and stream are alive.
        check("cuEventRecord", unsafe { sys::cuEventRecord(event, self.stream) })
    }
}

/// Waits for an event that was recorded.
fn wait(event: CUevent, what: &str, limit: Option<&Limit>) -> Result<(), DeviceError> {
    let call = format!("running {what}");
    let Some(limit) = limit else {
        // SAFETY: the event is alive.
        return check(&call, unsafe { sys::cuEventSynchronize(event) });
    };
    let began = Instant::now();
    loop {
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(event) } {
            CUresult::CUDA_ERROR_NOT_READY => {}
            result => return check(&call, result),
        }
        if limit.begun.elapsed().as_secs_f64() > limit.seconds {
            return Err(DeviceError::Hang { what: limit.what.into(), seconds: limit.seconds });
        }
        if began.elapsed() < SPIN { hint::spin_loop() } else { thread::sleep(PAUSE) }
    }
}
