//! Tensor maps with the sizes of a launch.

use ir::{Index, Module, Name, TensorMap, XorSwizzle};

use super::LaunchError;
use crate::device::MapSpec;

/// What distances between neighbours, and the rows of a box, are multiples of, in bytes (CUDA driver API, `cuTensorMapEncodeTiled`).
const UNIT: i64 = 16;

/// The largest size in a dimension, and what distances in bytes are below (the same).
const MOST: i64 = 1 << 32;
const FARTHEST: i64 = 1 << 40;

/// A tensor map as a machine encodes it, or why none can be.
pub(super) fn map_spec(
    module: &Module,
    (name, map): (&Name, &TensorMap),
    size: &dyn Fn(&Index) -> Option<i64>,
) -> Result<MapSpec, LaunchError> {
    let buffer = map.buffer.clone();
    let refuse = |what: String, rule: &'static str| LaunchError::TensorMap {
        map: name.clone(),
        buffer: buffer.clone(),
        what,
        rule,
    };
    let valued = |it: &Index, what: &str, is_right: &dyn Fn(i64) -> bool, rule: &'static str| {
        let value = size(it);
        let words = || refuse(format!("{what} {}", super::valued(it, value)), rule);
        value.filter(|it| is_right(*it)).ok_or_else(words)
    };
    let arg = module.args.get(&buffer).expect("a map is of an argument");
    let bytes = arg.dtype.bytes_i64();

    let (mut dims, mut strides, mut last) = (Vec::new(), Vec::new(), Some(0i64));
    for (at, (dim, stride)) in map.dims.iter().zip(&map.strides).enumerate() {
        let is_inner = at + 1 == map.dims.len();
        let dim = valued(dim, "a size of", &|it| (1..=MOST).contains(&it), "sizes from 1 to 2^32")?;
        let is_stride = |it: i64| is_inner || (it > 0 && it < FARTHEST && it % UNIT == 0);
        let rule = "multiples of 16 below 2^40";
        let stride = valued(&(stride * bytes), "neighbours at a distance in bytes of", &is_stride, rule)?;
        last = last.and_then(|it| it.checked_add((dim - 1).checked_mul(stride / bytes)?));
        dims.push(dim.cast_unsigned());
        strides.push(stride.cast_unsigned());
    }
    if last.zip(size(&arg.elements())).is_none_or(|(last, there)| last >= there) {
        return Err(refuse("elements beyond the end of the buffer".to_owned(), "what is in it"));
    }
    let row = map.tile.last().map_or(0, |it| it * bytes);
    let span = map.swizzle.map_or(i64::MAX, XorSwizzle::block_bytes);
    if row % UNIT != 0 || row > span {
        let rule = "multiples of 16, and with a swizzle no more than its own";
        return Err(refuse(format!("boxes with rows of {row} bytes"), rule));
    }
    Ok(MapSpec {
        name: name.to_string(),
        buffer: module.args.get_index_of(&buffer).expect("a map is of an argument"),
        dtype: arg.dtype,
        dims,
        strides,
        tile: map.tile.iter().map(|it| u32::try_from(*it).expect("a box has short sides")).collect(),
        swizzle: map
            .swizzle
            .map_or(0, |it| u32::try_from(it.block_bytes()).expect("a row of a swizzle is short")),
    })
}
