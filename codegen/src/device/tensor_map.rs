//! Tensor maps as the driver encodes them.

#![expect(unsafe_code, reason = "the driver is called")]

use std::ffi::{CStr, c_void};

use cudarc::driver::sys::{
    self, CUdeviceptr, CUtensorMap, CUtensorMapDataType_enum as DataType,
    CUtensorMapFloatOOBfill_enum as Outside, CUtensorMapInterleave_enum as Interleave,
    CUtensorMapL2promotion_enum as Promotion, CUtensorMapSwizzle_enum as Swizzle,
};
use ir::{DType, TensorMap};

use super::{DeviceError, MapSpec, cuda_driver::check};

/// The call that encodes one.
const ENCODE: &CStr = c"cuTensorMapEncodeTiled";

/// What all maps have in common: elements are neighbours where they seem to be, whole lines are fetched into the second cache, and what lies outside is zero.
const INTERLEAVE: Interleave = Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE;
const PROMOTION: Promotion = Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
const OUTSIDE: Outside = Outside::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;

/// A constant of the driver's interface, for sources that others compile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriverWord {
    /// Its name in `cuda.h`.
    pub name: String,
    /// Its number there.
    pub number: u32,
}

/// The constants that a tensor map is encoded with, beside its sizes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapWords {
    /// The type of the elements.
    pub data_type: DriverWord,
    /// How elements are interleaved.
    pub interleave: DriverWord,
    /// How boxes are permuted in shared memory.
    pub swizzle: DriverWord,
    /// How much is fetched into the second cache at once.
    pub promotion: DriverWord,
    /// What is read outside of the tensor.
    pub fill: DriverWord,
}

impl MapWords {
    /// Those of maps of elements of a type, with a swizzle of rows of so many bytes, or without one for zero. `None` where the copy engine has
    /// no such swizzle.
    pub fn of(dtype: DType, swizzle: u32) -> Option<MapWords> {
        fn word(name: &impl std::fmt::Debug, number: u32) -> DriverWord {
            DriverWord { name: format!("{name:?}"), number }
        }
        let (data_type, swizzle) = (data_type(dtype), mode(swizzle)?);
        Some(MapWords {
            data_type: word(&data_type, data_type as u32),
            interleave: word(&INTERLEAVE, INTERLEAVE as u32),
            swizzle: word(&swizzle, swizzle as u32),
            promotion: word(&PROMOTION, PROMOTION as u32),
            fill: word(&OUTSIDE, OUTSIDE as u32),
        })
    }
}

/// A tensor map of a buffer that starts at an address, for the kernel to copy it: the driver that the context is of must be there.
///
/// # Errors
/// [`DeviceError::Missing`] where the driver is older than tensor maps, [`DeviceError::Call`] with the driver's own word.
pub(super) fn encode(spec: &MapSpec, start: CUdeviceptr) -> Result<CUtensorMap, DeviceError> {
    let MapSpec { name, buffer, dtype, dims, strides, tile, swizzle } = spec;
    let rank = dims.len();
    let refuse =
        |why: &str| DeviceError::Unsupported(format!("tensor map `{name}` of buffer {buffer} {why}"));
    if !(1..=TensorMap::MOST_DIMS).contains(&rank) || [strides.len(), tile.len()] != [rank; 2] {
        return Err(refuse("has other numbers of sizes, distances and sides than 1 to 5"));
    }
    let swizzle = mode(*swizzle).ok_or_else(|| refuse("has a swizzle that there is not"))?;
    require()?;
    // Innermost first; of the innermost the distance is not told.
    let reversed = |it: &[u64]| it.iter().rev().copied().collect::<Vec<_>>();
    let (dims, distances) = (reversed(dims), reversed(&strides[..rank - 1]));
    let sides: Vec<u32> = tile.iter().rev().copied().collect();
    let steps = [1u32; TensorMap::MOST_DIMS];
    let mut out = CUtensorMap { opaque: [0; 16] };
    // SAFETY: the map is valid for writes and aligned; each array has as many elements as the rank, or one fewer, asks for; the address is
    // only written down.
    let result = unsafe {
        sys::cuTensorMapEncodeTiled(
            &raw mut out,
            data_type(*dtype),
            u32::try_from(rank).expect("at most five"),
            start as *mut c_void,
            dims.as_ptr(),
            distances.as_ptr(),
            sides.as_ptr(),
            steps.as_ptr(),
            INTERLEAVE,
            swizzle,
            PROMOTION,
            OUTSIDE,
        )
    };
    let call = || {
        format!(
            "encoding tensor map `{name}` of buffer {buffer} with {dtype} sizes {:?}, distances in bytes {:?}, box {:?} and \
             swizzle {}",
            spec.dims, spec.strides, spec.tile, spec.swizzle
        )
    };
    check(&call(), result)?;
    Ok(out)
}

/// Refuses a driver that has no tensor maps: `cudarc` would panic.
fn require() -> Result<(), DeviceError> {
    // SAFETY: there is a context, and so the library; the symbol is only looked up.
    let found = unsafe { sys::culib().get::<*const ()>(ENCODE.to_bytes_with_nul()).is_ok() };
    if found {
        return Ok(());
    }
    Err(DeviceError::Missing {
        what: format!("`{}` in the CUDA driver", ENCODE.to_string_lossy()),
        help: "update NVIDIA's driver to one for CUDA 12.0 or later".into(),
    })
}

/// The type of the elements. What is copied stays as it is: of tf32 the low bits, too.
const fn data_type(of: DType) -> DataType {
    match of {
        DType::Bool | DType::I8 | DType::U8 | DType::F8e4m3 | DType::F8e5m2 | DType::F8e8m0 => {
            DataType::CU_TENSOR_MAP_DATA_TYPE_UINT8
        }
        DType::I16 | DType::U16 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        DType::I32 => DataType::CU_TENSOR_MAP_DATA_TYPE_INT32,
        DType::U32 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        DType::I64 => DataType::CU_TENSOR_MAP_DATA_TYPE_INT64,
        DType::F16 => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        DType::Bf16 => DataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        DType::Tf32 | DType::F32 => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        DType::F64 => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
    }
}

/// The swizzle whose rows have so many bytes; none with zero.
const fn mode(bytes: u32) -> Option<Swizzle> {
    Some(match bytes {
        0 => Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
        32 => Swizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        64 => Swizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        128 => Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
        _ => return None,
    })
}
