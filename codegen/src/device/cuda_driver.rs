//! The CUDA driver: whether it is there, what its errors mean, what it says about a device.

#![expect(unsafe_code, reason = "the driver is called")]

use std::{
    ffi::{CStr, c_int},
    ptr,
};

use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute_enum as Attribute, CUevent, CUresult};
use ir::{Arch, Feature};

use super::{DeviceError, MachineInfo, nvrtc};

/// What is called here and in the other modules of `cuda`. `cudarc` panics at the first call of a function that the driver lacks, so
/// all are looked up before.
const NEEDED: &[&CStr] = &[
    c"cuInit",
    c"cuDriverGetVersion",
    c"cuDeviceGet",
    c"cuDeviceGetCount",
    c"cuDeviceGetName",
    c"cuDeviceGetUuid_v2",
    c"cuDeviceGetAttribute",
    c"cuDevicePrimaryCtxRetain",
    c"cuDevicePrimaryCtxRelease_v2",
    c"cuCtxSetCurrent",
    c"cuCtxGetCurrent",
    c"cuCtxGetDevice",
    c"cuCtxPushCurrent_v2",
    c"cuCtxPopCurrent_v2",
    c"cuPointerGetAttribute",
    c"cuStreamCreate",
    c"cuStreamSynchronize",
    c"cuStreamDestroy_v2",
    c"cuEventCreate",
    c"cuEventRecord",
    c"cuEventQuery",
    c"cuEventSynchronize",
    c"cuEventElapsedTime",
    c"cuEventDestroy_v2",
    c"cuMemAlloc_v2",
    c"cuMemFree_v2",
    c"cuMemcpyHtoD_v2",
    c"cuMemcpyDtoH_v2",
    c"cuMemsetD8Async",
    c"cuModuleLoadData",
    c"cuModuleUnload",
    c"cuModuleGetFunction",
    c"cuFuncGetAttribute",
    c"cuFuncSetAttribute",
    c"cuLaunchKernel",
    c"cuLaunchKernelEx",
    c"cuStreamBeginCapture_v2",
    c"cuStreamEndCapture",
    c"cuGraphInstantiateWithFlags",
    c"cuGraphUpload",
    c"cuGraphLaunch",
    c"cuGraphDestroy",
    c"cuGraphExecDestroy",
    c"cuGetErrorName",
    c"cuGetErrorString",
    c"cuOccupancyMaxActiveBlocksPerMultiprocessor",
    c"cuOccupancyMaxActiveClusters",
];

/// Refuses where there is no driver, or one that is too old to call. Nothing of the driver may be called before.
pub(super) fn require() -> Result<(), DeviceError> {
    // SAFETY: it tries to load the library by its names, and nothing else.
    if !unsafe { sys::is_culib_present() } {
        return Err(DeviceError::Missing {
            what: "the CUDA driver (libcuda)".into(),
            help: "install NVIDIA's driver, or choose the target `cpu`; emitting and compiling CUDA need no driver"
                .into(),
        });
    }
    // SAFETY: the library is present, so that this does not panic; the symbols are only looked up.
    let missing = unsafe {
        let library = sys::culib();
        NEEDED.iter().find(|it| library.get::<*const ()>(it.to_bytes_with_nul()).is_err())
    };
    match missing {
        Some(name) => Err(DeviceError::Missing {
            what: format!("`{}` in the CUDA driver", name.to_string_lossy()),
            help: "update NVIDIA's driver to one for CUDA 11.8 or later".into(),
        }),
        None => Ok(()),
    }
}

/// The result of a call as ours.
pub(super) fn check(call: &str, result: CUresult) -> Result<(), DeviceError> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let reason = describe(result);
    let call = call.to_owned();
    // These leave the context unusable: every later call of this process fails the same way. 214: memory error;
    // 700: illegal address; 702: time-out; 709: context destroyed; 710: assertion; 714 to 719: traps of the hardware;
    // 721: tensor memory leak.
    match result as u32 {
        214 | 700 | 702 | 709 | 710 | 714..=719 | 721 => Err(DeviceError::Lost { call, reason }),
        34 | 100 => Err(DeviceError::Missing {
            what: "a CUDA device".into(),
            help: format!("check `nvidia-smi`, and that CUDA_VISIBLE_DEVICES hides no device ({reason})"),
        }),
        _ => Err(DeviceError::Call { call, reason }),
    }
}

/// The driver's name and sentence for a result.
fn describe(result: CUresult) -> String {
    let text = |ask: unsafe fn(CUresult, *mut *const std::ffi::c_char) -> CUresult| {
        let mut text = ptr::null();
        // SAFETY: the answer is null or a text that lives as long as the driver.
        unsafe {
            let known = ask(result, &raw mut text) == CUresult::CUDA_SUCCESS && !text.is_null();
            known.then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    };
    match (text(sys::cuGetErrorName), text(sys::cuGetErrorString)) {
        (Some(name), Some(words)) => format!("{name}: {words}"),
        (Some(words), None) | (None, Some(words)) => words,
        (None, None) => format!("code {}", result as u32),
    }
}

/// Starts the driver and gives the device of a number.
pub(super) fn device(ordinal: u32) -> Result<CUdevice, DeviceError> {
    require()?;
    let (mut device, mut count) = (0, 0);
    // SAFETY: the driver is present, and both are valid for writes.
    unsafe {
        check("cuInit", sys::cuInit(0))?;
        check("cuDeviceGetCount", sys::cuDeviceGetCount(&raw mut count))?;
        let Some(wanted) = c_int::try_from(ordinal).ok().filter(|it| *it < count) else {
            let words =
                format!("there is no CUDA device {ordinal}; this machine has {count}, counted from 0");
            return Err(DeviceError::Unsupported(words));
        };
        check("cuDeviceGet", sys::cuDeviceGet(&raw mut device, wanted))?;
    }
    Ok(device)
}

/// An attribute of a device.
pub(super) fn attribute(device: CUdevice, attribute: Attribute) -> Result<u32, DeviceError> {
    let mut value = 0;
    // SAFETY: the value is valid for writes.
    check("cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, device) })?;
    natural("cuDeviceGetAttribute", value)
}

/// An answer of the driver that cannot be less than zero.
pub(super) fn natural(call: &str, value: c_int) -> Result<u32, DeviceError> {
    let wrong = || DeviceError::Call { call: call.to_owned(), reason: format!("it answered {value}") };
    u32::try_from(value).map_err(|_| wrong())
}

/// The milliseconds between two events that have happened.
pub(super) fn elapsed_ms(start: CUevent, stop: CUevent) -> Result<f32, DeviceError> {
    type Function = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;
    let mut ms = 0.0;
    // `cudarc` knows this function by a second name, which drivers before CUDA 12.8 lack.
    // SAFETY: the first name has this type in every driver, and `require` has seen it.
    let result = unsafe {
        let found = sys::culib().get::<Function>(b"cuEventElapsedTime\0");
        let function = found.map_err(|err| DeviceError::Call {
            call: "cuEventElapsedTime".into(),
            reason: err.to_string(),
        })?;
        function(&raw mut ms, start, stop)
    };
    check("cuEventElapsedTime", result)?;
    Ok(ms)
}

/// What a device is. The figures are computed from clocks and widths that the driver reports.
pub(super) fn describe_device(device: CUdevice) -> Result<MachineInfo, DeviceError> {
    let ask = |it| attribute(device, it);
    let mut name = [0u8; 256];
    // SAFETY: the length is that of the array.
    check("cuDeviceGetName", unsafe { sys::cuDeviceGetName(name.as_mut_ptr().cast(), 255, device) })?;
    let name = CStr::from_bytes_until_nul(&name).map_or_else(|_| "CUDA".into(), CStr::to_string_lossy);

    let sm = 10 * ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?
        + ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    let units = ask(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    let clock_khz = f64::from(ask(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?);
    let memory_khz = f64::from(ask(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?);
    let bus_bytes = f64::from(ask(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?) / 8.0;
    let arch = native_arch(sm);
    let flops = f64::from(units * arch.caps().f32_lanes) * 2.0 * clock_khz * 1e3;
    // Data moves on both edges of the memory clock.
    let bytes = memory_khz * 1e3 * 2.0 * bus_bytes;
    Ok(MachineInfo {
        name: name.into_owned(),
        arch: arch.to_string(),
        units,
        peak_f32_gflops: (flops > 0.0).then_some(flops / 1e9),
        peak_gb_per_s: (bytes > 0.0).then_some(bytes / 1e9),
        cache_bytes: usize::try_from(ask(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?)
            .expect("32 bits fit"),
        versions: versions()?,
        id: Some(short_id(device)?),
    })
}

/// The first word of a device's UUID, by which people tell GPUs apart.
fn short_id(device: CUdevice) -> Result<String, DeviceError> {
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    // SAFETY: the UUID is valid for writes.
    check("cuDeviceGetUuid_v2", unsafe { sys::cuDeviceGetUuid_v2(&raw mut uuid, device) })?;
    let [a, b, c, d, ..] = uuid.bytes.map(|it| it.to_ne_bytes()[0]);
    Ok(format!("GPU-{:08x}", u32::from_be_bytes([a, b, c, d])))
}

fn versions() -> Result<Vec<(String, String)>, DeviceError> {
    let mut version = 0;
    // SAFETY: the version is valid for writes.
    check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&raw mut version) })?;
    let driver = format!("{}.{}", version / 1000, version % 1000 / 10);
    let nvrtc = nvrtc::find().ok().map(|it| format!("{}.{}", it.version.0, it.version.1));
    let mut out = vec![("CUDA driver".to_owned(), driver)];
    out.extend(nvrtc.map(|it| ("NVRTC".to_owned(), it)));
    Ok(out)
}

/// The architecture to compile for to use all of a device: with the suffix `a` from Hopper on.
fn native_arch(sm: u32) -> Arch {
    let plain = Arch { sm, suffix: None };
    Arch { suffix: plain.has(Feature::ArchCode).then_some('a'), ..plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_architectures() {
        let names: Vec<_> = [75, 80, 89, 90, 100, 120].map(|it| native_arch(it).to_string()).into();
        assert_eq!(names, ["sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"]);
    }
}
