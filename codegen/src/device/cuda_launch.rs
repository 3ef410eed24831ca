//! One launch of a CUDA kernel: its arguments, its limits and its start.

#![expect(unsafe_code, reason = "the driver is called")]

use std::{ffi::c_void, ptr};

use cudarc::driver::sys::{
    self, CUdeviceptr, CUfunction, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue,
    CUlaunchConfig, CUstream, CUtensorMap,
};
use ir::{Arch, ThreadAxis};

use super::{DeviceError, Launch, cuda_driver::check, tensor_map};

/// A launch with the values of its arguments: tensor maps, addresses, then dimensions.
pub(super) struct Prepared<'a> {
    function: CUfunction,
    launch: &'a Launch,
    maps: Box<[CUtensorMap]>,
    values: Vec<u64>,
}

impl<'a> Prepared<'a> {
    /// The launch with buffers at these addresses.
    pub(super) fn new(
        function: CUfunction,
        launch: &'a Launch,
        all: &[CUdeviceptr],
    ) -> Result<Self, DeviceError> {
        let maps = launch.maps.iter().map(|it| tensor_map::encode(it, all[it.buffer]));
        let maps = maps.collect::<Result<_, _>>()?;
        let addresses = launch.buffers.iter().map(|it| all[*it]);
        let values = addresses.chain(launch.dims.iter().map(|it| it.cast_unsigned())).collect();
        Ok(Prepared { function, launch, maps, values })
    }

    /// Where each argument lies: the driver reads them from there at every launch.
    pub(super) fn params(&mut self) -> Vec<*mut c_void> {
        let maps = self.maps.iter_mut().map(|it| ptr::from_mut(it).cast());
        maps.chain(self.values.iter_mut().map(|it| ptr::from_mut(it).cast())).collect()
    }

    pub(super) fn start(&self, params: &[*mut c_void], stream: CUstream) -> Result<(), DeviceError> {
        let params = params.as_ptr().cast_mut();
        let mut early = [programmatic_serialization()];
        let attributes = if self.launch.programmatic { &mut early[..] } else { &mut [] };
        let config = launch_config(self.launch, stream, attributes);
        // SAFETY: the function takes these arguments, which outlive the call; the buffers exist and are large enough. The attributes
        // are read during the call.
        let result =
            unsafe { sys::cuLaunchKernelEx(&raw const config, self.function, params, ptr::null_mut()) };
        match check("cuLaunchKernelEx", result) {
            Err(DeviceError::Call { reason, .. }) => Err(DeviceError::Call {
                call: format!("launching `{}` with {}", self.launch.kernel, dimensions(self.launch)),
                reason,
            }),
            other => other,
        }
    }
}

/// What the driver is told of a launch: its blocks, threads and shared memory, and attributes, which have to outlive the call that reads them.
pub(super) fn launch_config(
    launch: &Launch,
    stream: CUstream,
    attributes: &mut [CUlaunchAttribute],
) -> CUlaunchConfig {
    let Launch { grid: [gx, gy, gz], block: [bx, by, bz], shared_bytes, .. } = *launch;
    CUlaunchConfig {
        gridDimX: gx,
        gridDimY: gy,
        gridDimZ: gz,
        blockDimX: bx,
        blockDimY: by,
        blockDimZ: bz,
        sharedMemBytes: shared_bytes,
        hStream: stream,
        numAttrs: u32::try_from(attributes.len()).expect("attributes are few"),
        attrs: attributes.as_mut_ptr(),
    }
}

/// That a kernel may start before what is ahead of it in the stream has ended.
fn programmatic_serialization() -> CUlaunchAttribute {
    let mut out = CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value: CUlaunchAttributeValue { pad: [0; 64] },
    };
    out.value.programmaticStreamSerializationAllowed = 1;
    out
}

fn dimensions(it: &Launch) -> String {
    format!("{:?} blocks of {:?} threads and {} bytes of shared memory", it.grid, it.block, it.shared_bytes)
}

/// Refuses a launch that the device would refuse, in better words. `threads` is what the kernel's registers allow,
/// `fixed` what it declares, `most` what a block can have.
pub(super) fn check_launch(it: &Launch, threads: u32, fixed: u32, most: u32) -> Result<(), DeviceError> {
    let refuse = |why: String| Err(DeviceError::Unsupported(format!("`{}` {why}", it.kernel)));
    let total = it.block.iter().map(|it| u64::from(*it)).product::<u64>();
    let shared = u64::from(it.shared_bytes) + u64::from(fixed);
    if it.block.contains(&0) || it.grid.contains(&0) {
        return refuse(format!("has an empty launch: {}", dimensions(it)));
    }
    if total > u64::from(threads) {
        return refuse(format!(
            "asks for {total} threads a block; its registers allow {threads} on this GPU"
        ));
    }
    let most_deep = Arch::axis_limit(ThreadAxis::ThreadZ);
    if i64::from(it.block[2]) > most_deep {
        return refuse(format!("asks for {} threads on z; a block has at most {most_deep}", it.block[2]));
    }
    if shared > u64::from(most) {
        return refuse(format!("asks for {shared} bytes of shared memory a block; this GPU has {most}"));
    }
    let limits = [ThreadAxis::BlockX, ThreadAxis::BlockY, ThreadAxis::BlockZ].map(Arch::axis_limit);
    if it.grid.iter().zip(limits).any(|(it, limit)| i64::from(*it) > limit) {
        return refuse(format!("asks for {:?} blocks; a grid has at most {limits:?}", it.grid));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_launches() {
        let launch = |grid, block, shared_bytes| Launch {
            kernel: "k".into(),
            grid,
            block,
            shared_bytes,
            programmatic: false,
            maps: vec![],
            buffers: vec![],
            dims: vec![],
        };
        let cases = [
            launch([1, 1, 1], [128, 1, 1], 227 * 1024 - 512),
            launch([1, 1, 1], [128, 1, 1], 227 * 1024),
            launch([1, 1, 1], [32, 32, 1], 0),
            launch([1, 1, 1], [1, 1, 65], 0),
            launch([1, 70_000, 1], [32, 1, 1], 0),
            launch([0, 1, 1], [32, 1, 1], 0),
            launch([1, 1, 1], [u32::MAX, u32::MAX, 1], u32::MAX),
        ];
        let words: Vec<_> = cases
            .iter()
            .map(|it| match check_launch(it, 512, 512, 227 * 1024) {
                Ok(()) => "ok".into(),
                Err(err) => err.to_string(),
            })
            .collect();
        insta::assert_snapshot!(words.join("\n"));
    }
}
