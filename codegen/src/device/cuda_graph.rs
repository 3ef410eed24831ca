//! Work that is recorded once and started as a whole.

#![expect(unsafe_code, reason = "the driver is called")]

use std::ptr;

use cudarc::driver::sys::{self, CUgraph, CUgraphExec, CUstream, CUstreamCaptureMode};

use super::{DeviceError, cuda_driver::check};

/// Pieces of work, one after the other: between them the device waits for no host. A launch takes the host two microseconds or more,
/// and a library's call longer, so that short kernels which are started one by one are timed as the host starts them.
pub(super) struct Graph(CUgraphExec);

impl Graph {
    /// The pieces that a function starts on a stream; none of them runs.
    ///
    /// # Errors
    /// What could not be started, or not while it is recorded.
    pub(super) fn record(
        stream: CUstream,
        start: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<Graph, DeviceError> {
        let scope = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        let (mut graph, mut out): (CUgraph, CUgraphExec) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the stream is alive, and the handles are valid for writes. What is begun is ended, whatever is started between.
        unsafe {
            check("cuStreamBeginCapture", sys::cuStreamBeginCapture_v2(stream, scope))?;
            let started = start();
            let ended = check("cuStreamEndCapture", sys::cuStreamEndCapture(stream, &raw mut graph));
            let made = started.and(ended).and_then(|()| {
                check("cuGraphInstantiate", sys::cuGraphInstantiateWithFlags(&raw mut out, graph, 0))
            });
            if !graph.is_null() {
                sys::cuGraphDestroy(graph);
            }
            made?;
        }
        let out = Graph(out);
        // SAFETY: graph and stream are alive.
        check("cuGraphUpload", unsafe { sys::cuGraphUpload(out.0, stream) })?;
        Ok(out)
    }

    /// Starts all of it.
    pub(super) fn start(&self, stream: CUstream) -> Result<(), DeviceError> {
        // SAFETY: graph and stream are alive.
        check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(self.0, stream) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the handle is ours. The driver keeps what still runs.
        unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}
