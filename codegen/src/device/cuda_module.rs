//! Programs and memory in a context: modules, their functions, and what a launch needs of them.

#![expect(unsafe_code, reason = "the driver is called")]

use std::{ffi::CString, ptr};

use cudarc::driver::sys::{
    self, CUdevice, CUdevice_attribute_enum as Attribute, CUdeviceptr, CUfunction,
    CUfunction_attribute_enum as FunctionAttribute, CUmodule,
};
use ir::{Arch, Feature};

use super::{
    DeviceError, Launch, Program,
    cuda_driver::{attribute, check, natural},
    cuda_launch::{check_launch, launch_config},
};

/// A module with the functions of a program's launches.
pub(super) struct Kernels {
    module: CUmodule,
    /// In the order of the launches.
    pub(super) functions: Vec<(CUfunction, Launch)>,
    /// The bytes of each buffer.
    pub(super) sizes: Vec<usize>,
}

impl Kernels {
    /// Loads machine code on the device of the current context, for the launches of a program.
    pub(super) fn load(device: CUdevice, binary: &[u8], program: &Program) -> Result<Kernels, DeviceError> {
        let module = load_image(binary)?;
        let mut kernels = Kernels { module, functions: vec![], sizes: program.buffers.clone() };
        for launch in &program.launches {
            match prepared_function(device, module, program, launch) {
                Ok(function) => kernels.functions.push((function, launch.clone())),
                Err(err) => {
                    kernels.unload();
                    return Err(err);
                }
            }
        }
        Ok(kernels)
    }

    /// Takes the module out of the current context.
    pub(super) fn unload(self) {
        // SAFETY: the module is loaded, and this is the end of its functions.
        unsafe { sys::cuModuleUnload(self.module) };
    }

    /// The names of what is launched, for messages.
    pub(super) fn names(&self) -> String {
        let names: Vec<_> = self.functions.iter().map(|it| format!("`{}`", it.1.kernel)).collect();
        names.join(", ")
    }
}

/// Loads a cubin or PTX.
pub(super) fn load_image(image: &[u8]) -> Result<CUmodule, DeviceError> {
    let mut image = image.to_vec();
    // PTX is text, which must end with zero; after a cubin a zero does no harm.
    image.push(0);
    let mut module = ptr::null_mut();
    // SAFETY: the image is a cubin or PTX that ends with zero, and the module is valid for writes.
    check("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&raw mut module, image.as_ptr().cast()) })?;
    Ok(module)
}

/// The function of a name.
pub(super) fn function(module: CUmodule, name: &str) -> Result<CUfunction, DeviceError> {
    let text = CString::new(name)
        .map_err(|err| DeviceError::Call { call: "cuModuleGetFunction".into(), reason: err.to_string() })?;
    let mut function = ptr::null_mut();
    // SAFETY: the module is loaded, the name ends with zero, and the function is valid for writes.
    check(&format!("cuModuleGetFunction for `{name}`"), unsafe {
        sys::cuModuleGetFunction(&raw mut function, module, text.as_ptr())
    })?;
    Ok(function)
}

/// Memory on the device of the current context, aligned to at least 256 bytes.
pub(super) fn device_memory(bytes: usize) -> Result<CUdeviceptr, DeviceError> {
    let mut start = 0;
    // SAFETY: the address is valid for writes. None of no size is allowed.
    let result = unsafe { sys::cuMemAlloc_v2(&raw mut start, bytes.max(1)) };
    check(&format!("taking {bytes} bytes of GPU memory"), result)?;
    Ok(start)
}

/// The function of a launch, ready for the memory and threads it asks for.
fn prepared_function(
    device: CUdevice,
    module: CUmodule,
    program: &Program,
    launch: &Launch,
) -> Result<CUfunction, DeviceError> {
    let name = &launch.kernel;
    let function = function(module, name)?;
    let threads = function_attribute(function, FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
    let fixed = function_attribute(function, FunctionAttribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
    let most = attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    check_launch(launch, threads, fixed, most)?;

    // One kernel may stand in several launches: its limit is that of the largest.
    let same = program.launches.iter().filter(|it| it.kernel == *name);
    let shared = same.map(|it| it.shared_bytes).max().unwrap_or(0);
    if shared + fixed > Arch::DEFAULT_SHARED {
        let limit = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is loaded.
        check(&format!("cuFuncSetAttribute for `{name}`"), unsafe {
            sys::cuFuncSetAttribute(function, limit, shared.cast_signed())
        })?;
    }
    let generation = attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    if 10 * generation >= Feature::Clusters.least_sm() {
        allow_cluster(function, launch)?;
    }
    Ok(function)
}

/// Asks for clusters that not every GPU launches, and refuses those for which this one has no place. What the blocks of one are is in the machine code.
fn allow_cluster(function: CUfunction, launch: &Launch) -> Result<(), DeviceError> {
    let sides = [
        FunctionAttribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
        FunctionAttribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
        FunctionAttribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
    ];
    let mut blocks = 1;
    for it in sides {
        blocks *= function_attribute(function, it)?.max(1);
    }
    if blocks <= Arch::PORTABLE_CLUSTER {
        return Ok(());
    }
    let allowed = FunctionAttribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
    // SAFETY: the function is loaded.
    check("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(function, allowed, 1) })?;
    let config = launch_config(launch, ptr::null_mut(), &mut []);
    let mut clusters = 0;
    // SAFETY: the function is loaded, the number is valid for writes, and the configuration has no attributes.
    check("cuOccupancyMaxActiveClusters", unsafe {
        sys::cuOccupancyMaxActiveClusters(&raw mut clusters, function, &raw const config)
    })?;
    if clusters > 0 {
        return Ok(());
    }
    Err(DeviceError::Unsupported(format!(
        "`{}` has clusters of {blocks} blocks, and this GPU has nowhere so many multiprocessors side by side with room for them; {} run on every GPU that has clusters",
        launch.kernel,
        Arch::PORTABLE_CLUSTER
    )))
}

fn function_attribute(function: CUfunction, which: FunctionAttribute) -> Result<u32, DeviceError> {
    let mut value = 0;
    // SAFETY: the function is loaded, and the value is valid for writes.
    check("cuFuncGetAttribute", unsafe { sys::cuFuncGetAttribute(&raw mut value, which, function) })?;
    natural("cuFuncGetAttribute", value)
}
