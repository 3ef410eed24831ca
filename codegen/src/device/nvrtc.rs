//! NVRTC, NVIDIA's CUDA C++ compiler as a library: source to machine code, on machines with and without a GPU.
//!
//! NVRTC is found in this order: the folder that `TILEWRIGHT_NVRTC_DIR` names (then nowhere else), `LD_LIBRARY_PATH`,
//! a CUDA toolkit (`CUDA_HOME`, `CUDA_PATH`, `/usr/local/cuda*`), the wheel `nvidia-cuda-nvrtc` of the active virtual
//! environment or of the `python3` on the path, the system's linker path.
//!
//! Its functions are looked up here rather than taken from `cudarc`, which searches by bare name (and so may take
//! another NVRTC than the one that was found) and panics when it finds none.

#![expect(unsafe_code, reason = "libraries are loaded and called")]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    path::PathBuf,
    ptr,
    sync::OnceLock,
};

use ir::{Arch, Feature};
use serde::Serialize;

use super::{
    DeviceError,
    locate::{Wanted, symbol},
    resources::{Resources, parse_log},
};

/// Where NVRTC is and which one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NvrtcInfo {
    /// The library; a bare name where the system's linker found it.
    pub path: PathBuf,
    /// Major and minor version, those of its CUDA toolkit.
    pub version: (u32, u32),
    /// The architectures it compiles for, as in [`Arch::sm`], ascending. Empty where it cannot tell.
    pub archs: Vec<u32>,
}

/// What NVRTC makes of a source.
#[derive(Clone, PartialEq, Debug)]
pub struct Compiled {
    /// The machine code.
    pub cubin: Vec<u8>,
    /// The assembly for the virtual machine, as text.
    pub ptx: String,
    /// What the compiler printed, less its timings, so that equal sources give equal logs.
    pub log: String,
    /// What each kernel needs, in the order of the log.
    pub resources: Vec<Resources>,
}

/// Finds NVRTC, once in a process.
///
/// # Errors
/// [`DeviceError::Missing`] with what to install.
pub fn find() -> Result<NvrtcInfo, DeviceError> {
    Ok(nvrtc()?.info.clone())
}

/// Compiles CUDA C++ for one architecture. `name` stands for the file in messages; `options` come after ours.
///
/// # Errors
/// [`DeviceError::Missing`], [`DeviceError::Unsupported`] for an architecture that this NVRTC does not know,
/// [`DeviceError::Compile`] with the compiler's words.
pub fn compile(source: &str, name: &str, arch: &Arch, options: &[&str]) -> Result<Compiled, DeviceError> {
    check_suffix(arch)?;
    let nvrtc = nvrtc()?;
    let (major, minor) = nvrtc.info.version;
    let known = &nvrtc.info.archs;
    if !known.is_empty() && !known.contains(&arch.sm) {
        let known: Vec<_> = known.iter().map(|it| format!("sm_{it}")).collect();
        let known = known.join(", ");
        return Err(DeviceError::Unsupported(format!(
            "NVRTC {major}.{minor} cannot compile for {arch}; it knows {known}"
        )));
    }

    let arch_option = format!("-arch={arch}");
    // Device code by default: emitted sources have no host code. `-v` makes ptxas tell what each kernel needs.
    let ours = [&*arch_option, "-std=c++17", "-default-device", "--ptxas-options=-v"];
    let options: Result<Vec<_>, _> = ours.iter().chain(options).map(|it| c_string(it)).collect();
    let (options, source, name) = (options?, c_string(source)?, c_string(name)?);
    let mut program = Compilation::new(&nvrtc.api, &source, &name)?;
    // What newer versions keep on the disk comes back without the log, and with it without what each kernel needs.
    let uncached = [options.as_slice(), &[NO_CACHE.to_owned()]].concat();
    let mut code = program.compile(&uncached);
    if code == INVALID_OPTION {
        program = Compilation::new(&nvrtc.api, &source, &name)?;
        code = program.compile(&options);
    }
    let log = without_timings(&program.text(nvrtc.api.log_size, nvrtc.api.log, "nvrtcGetProgramLog")?);
    match code {
        0 => {}
        COMPILATION => {
            return Err(DeviceError::Compile {
                compiler: format!("NVRTC {major}.{minor}"),
                log: complaints(&log),
            });
        }
        _ => {
            let reason = format!("{}: {}", nvrtc.api.describe(code), complaints(&log));
            return Err(DeviceError::Call { call: "nvrtcCompileProgram".into(), reason });
        }
    }
    let resources = parse_log(&log);
    Ok(Compiled {
        cubin: program.bytes(nvrtc.api.cubin_size, nvrtc.api.cubin, "nvrtcGetCUBIN")?,
        ptx: program.text(nvrtc.api.ptx_size, nvrtc.api.ptx, "nvrtcGetPTX")?,
        log,
        resources,
    })
}

/// Refuses a suffix that the architecture came too early for, which NVRTC tells in words about options.
fn check_suffix(arch: &Arch) -> Result<(), DeviceError> {
    let (feature, what) = match arch.suffix {
        Some('a') => (Feature::ArchCode, "features of its own"),
        Some('f') => (Feature::FamilyCode, "features of a family"),
        Some(_) | None => return Ok(()),
    };
    if arch.has(feature) {
        return Ok(());
    }
    let first = feature.least_sm();
    Err(DeviceError::Unsupported(format!(
        "there is no {arch}: sm_{} has no {what}, the first that has is sm_{first}",
        arch.sm
    )))
}

const NVRTC: Wanted = Wanted {
    what: "NVRTC, the CUDA C++ compiler library (libnvrtc),",
    help: "`pip install nvidia-cuda-nvrtc` in an active virtual environment, or install a CUDA toolkit, or let \
           TILEWRIGHT_NVRTC_DIR name the folder of libnvrtc.so",
    env: "TILEWRIGHT_NVRTC_DIR",
    file: "libnvrtc.so",
    needs: &["libnvrtc-builtins.so"],
    wheels: &["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"],
    sonames: &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"],
};

/// The code for an error in the source; others are errors of options or of the installation.
const COMPILATION: c_int = 6;

/// The code for an option that this version does not know.
const INVALID_OPTION: c_int = 5;

/// Versions that have a cache know it.
const NO_CACHE: &CStr = c"--no-cache";

struct Nvrtc {
    api: Api,
    info: NvrtcInfo,
}

type Handle = *mut c_void;
type SizeFn = unsafe extern "C" fn(Handle, *mut usize) -> c_int;
type FillFn = unsafe extern "C" fn(Handle, *mut c_char) -> c_int;
type Strings = *const *const c_char;

/// NVRTC's functions.
struct Api {
    create: unsafe extern "C" fn(*mut Handle, *const c_char, *const c_char, c_int, Strings, Strings) -> c_int,
    destroy: unsafe extern "C" fn(*mut Handle) -> c_int,
    compile: unsafe extern "C" fn(Handle, c_int, Strings) -> c_int,
    error: unsafe extern "C" fn(c_int) -> *const c_char,
    log_size: SizeFn,
    log: FillFn,
    cubin_size: SizeFn,
    cubin: FillFn,
    ptx_size: SizeFn,
    ptx: FillFn,
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    arch_count: unsafe extern "C" fn(*mut c_int) -> c_int,
    archs: unsafe extern "C" fn(*mut c_int) -> c_int,
}

fn nvrtc() -> Result<&'static Nvrtc, DeviceError> {
    static FOUND: OnceLock<Result<Nvrtc, DeviceError>> = OnceLock::new();
    FOUND.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Nvrtc, DeviceError> {
    let (path, lib) = NVRTC.load()?;
    // SAFETY: the fields of `Api` have the types of `nvrtc.h`, which are the same in CUDA 11.2 to 13.
    let api = unsafe {
        Api {
            create: symbol(lib, c"nvrtcCreateProgram")?,
            destroy: symbol(lib, c"nvrtcDestroyProgram")?,
            compile: symbol(lib, c"nvrtcCompileProgram")?,
            error: symbol(lib, c"nvrtcGetErrorString")?,
            log_size: symbol(lib, c"nvrtcGetProgramLogSize")?,
            log: symbol(lib, c"nvrtcGetProgramLog")?,
            cubin_size: symbol(lib, c"nvrtcGetCUBINSize")?,
            cubin: symbol(lib, c"nvrtcGetCUBIN")?,
            ptx_size: symbol(lib, c"nvrtcGetPTXSize")?,
            ptx: symbol(lib, c"nvrtcGetPTX")?,
            version: symbol(lib, c"nvrtcVersion")?,
            arch_count: symbol(lib, c"nvrtcGetNumSupportedArchs")?,
            archs: symbol(lib, c"nvrtcGetSupportedArchs")?,
        }
    };
    let (version, archs) = (api.version()?, api.supported());
    Ok(Nvrtc { api, info: NvrtcInfo { path, version, archs } })
}

impl Api {
    fn check(&self, call: &str, code: c_int) -> Result<(), DeviceError> {
        if code == 0 {
            Ok(())
        } else {
            Err(DeviceError::Call { call: call.into(), reason: self.describe(code) })
        }
    }

    fn describe(&self, code: c_int) -> String {
        // SAFETY: the answer is null or a string that lives as long as the library.
        unsafe {
            let text = (self.error)(code);
            if text.is_null() {
                return format!("code {code}");
            }
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }

    fn version(&self) -> Result<(u32, u32), DeviceError> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both are valid for writes.
        self.check("nvrtcVersion", unsafe { (self.version)(&raw mut major, &raw mut minor) })?;
        Ok((major.cast_unsigned(), minor.cast_unsigned()))
    }

    fn supported(&self) -> Vec<u32> {
        let mut count = 0;
        // SAFETY: the count is valid for writes, and the second call writes as many numbers as the first said.
        unsafe {
            if (self.arch_count)(&raw mut count) != 0 {
                return vec![];
            }
            let Ok(count) = usize::try_from(count) else { return vec![] };
            let mut archs = vec![0; count];
            if (self.archs)(archs.as_mut_ptr()) != 0 {
                return vec![];
            }
            archs.into_iter().filter_map(|it| u32::try_from(it).ok()).collect()
        }
    }
}

/// A program inside NVRTC, destroyed when dropped.
struct Compilation<'a> {
    api: &'a Api,
    handle: Handle,
}

impl<'a> Compilation<'a> {
    fn new(api: &'a Api, source: &CStr, name: &CStr) -> Result<Self, DeviceError> {
        let mut handle = ptr::null_mut();
        // SAFETY: both texts end with zero and are copied; there are no headers.
        let code = unsafe {
            let (source, name) = (source.as_ptr(), name.as_ptr());
            (api.create)(&raw mut handle, source, name, 0, ptr::null(), ptr::null())
        };
        api.check("nvrtcCreateProgram", code)?;
        Ok(Compilation { api, handle })
    }

    fn compile(&self, options: &[CString]) -> c_int {
        let pointers: Vec<_> = options.iter().map(|it| it.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).expect("a handful of options");
        // SAFETY: the handle is alive and `pointers` holds `count` texts that end with zero.
        unsafe { (self.api.compile)(self.handle, count, pointers.as_ptr()) }
    }

    fn bytes(&self, size: SizeFn, fill: FillFn, call: &str) -> Result<Vec<u8>, DeviceError> {
        let mut count = 0;
        // SAFETY: the handle is alive, and the second function writes as many bytes as the first says.
        unsafe {
            self.api.check(call, size(self.handle, &raw mut count))?;
            let mut out = vec![0u8; count];
            self.api.check(call, fill(self.handle, out.as_mut_ptr().cast()))?;
            Ok(out)
        }
    }

    fn text(&self, size: SizeFn, fill: FillFn, call: &str) -> Result<String, DeviceError> {
        let bytes = self.bytes(size, fill, call)?;
        // Logs of several stages are joined with their zeros between them.
        Ok(String::from_utf8_lossy(&bytes).replace('\0', ""))
    }
}

impl Drop for Compilation<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is alive and is not used afterwards. There is nothing to do about a failure.
        unsafe { (self.api.destroy)(&raw mut self.handle) };
    }
}

fn c_string(text: &str) -> Result<CString, DeviceError> {
    CString::new(text).map_err(|err| {
        DeviceError::Unsupported(format!("a zero byte at {} in text for the compiler", err.nul_position()))
    })
}

/// The log without the lines on how long ptxas took.
fn without_timings(log: &str) -> String {
    log.lines().filter(|it| !it.contains("Compile time =")).flat_map(|it| [it, "\n"]).collect()
}

/// The log without what the last stage tells of kernels that were fine; all of it if that is all.
fn complaints(log: &str) -> String {
    let is_tale = |it: &&str| it.starts_with("ptxas info") || it.starts_with("ptxas         .");
    let rest: Vec<_> = log.lines().filter(|it| !is_tale(it)).collect();
    let rest = rest.join("\n");
    if rest.trim().is_empty() { log.trim().to_owned() } else { rest.trim().to_owned() }
}
