//! Tensor maps of kernels: with sizes as expressions, for launchers that others compile, and with the sizes of a launch.

use ir::{DType, Index, Kernel, Module, Name, TensorMap, XorSwizzle};

use super::{LaunchError, valued};
use crate::device::MapSpec;

/// The sizes that the copy engine takes, in words: see [`TensorMap::LARGEST`].
pub const SIZE_RULE: &str = "sizes from 1 to 2^32";

/// The distances between neighbours that it takes, in words: see [`TensorMap::UNIT`] and [`TensorMap::FARTHEST`].
pub const DISTANCE_RULE: &str = "multiples of 16 below 2^40";

/// A tensor map of a kernel before its sizes are known, as a launcher evaluates and encodes it. Dimensions are in the order of their
/// strides, the innermost last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SymbolicMap {
    /// Its name in the kernel.
    pub name: Name,
    /// Which of the module's arguments it starts with.
    pub buffer: usize,
    /// The name of that.
    pub tensor: Name,
    /// The type of the elements.
    pub dtype: DType,
    /// How many elements there are in each dimension.
    pub dims: Vec<Index>,
    /// The bytes between neighbours in each dimension; in the last, those of an element.
    pub strides: Vec<Index>,
    /// How many elements a box has in each dimension.
    pub tile: Vec<u32>,
    /// The bytes of the rows that a swizzle permutes chunks within, in shared memory; zero for none.
    pub swizzle: u32,
}

/// The tensor maps that a kernel takes, in their order.
///
/// # Errors
/// [`LaunchError::TensorMap`] for a box that the copy engine does not take, whatever the sizes.
pub fn tensor_maps(module: &Module, kernel: &Kernel) -> Result<Vec<SymbolicMap>, LaunchError> {
    kernel.maps.iter().map(|(name, map)| SymbolicMap::of(module, name, map)).collect()
}

impl SymbolicMap {
    fn of(module: &Module, name: &Name, map: &TensorMap) -> Result<SymbolicMap, LaunchError> {
        let (buffer, tensor, arg) = module.args.get_full(&map.buffer).expect("a map is of an argument");
        let bytes = arg.dtype.bytes_i64();
        let span = map.swizzle.map(XorSwizzle::block_bytes);
        let out = SymbolicMap {
            name: name.clone(),
            buffer,
            tensor: tensor.clone(),
            dtype: arg.dtype,
            dims: map.dims.clone(),
            strides: map.strides.iter().map(|it| it * bytes).collect(),
            tile: map.tile.iter().map(|it| u32::try_from(*it).expect("a box has short sides")).collect(),
            swizzle: span.map_or(0, |it| u32::try_from(it).expect("a row of a swizzle is short")),
        };
        let row = map.tile.last().map_or(0, |it| it * bytes);
        if row % TensorMap::UNIT != 0 || span.is_some_and(|it| row > it) {
            let rule = "multiples of 16, and with a swizzle no more than its own";
            return Err(out.refused(format!("boxes with rows of {row} bytes"), rule));
        }
        Ok(out)
    }

    /// The map as a machine encodes it, or why none can be. `there` is how many elements its buffer has.
    pub(super) fn at(
        &self,
        there: Option<i64>,
        size: &dyn Fn(&Index) -> Option<i64>,
    ) -> Result<MapSpec, LaunchError> {
        let checked = |it: &Index, what: &str, is_right: &dyn Fn(i64) -> bool, rule: &'static str| {
            let value = size(it);
            let words = || self.refused(format!("{what} {}", valued(it, value)), rule);
            value.filter(|it| is_right(*it)).ok_or_else(words)
        };
        let (mut dims, mut strides, mut last) = (Vec::new(), Vec::new(), Some(0i64));
        for (at, (dim, stride)) in self.dims.iter().zip(&self.strides).enumerate() {
            let is_inner = at + 1 == self.dims.len();
            let is_size = |it: i64| (1..=TensorMap::LARGEST).contains(&it);
            let dim = checked(dim, "a size of", &is_size, SIZE_RULE)?;
            let is_stride =
                |it: i64| is_inner || it > 0 && it < TensorMap::FARTHEST && it % TensorMap::UNIT == 0;
            let stride = checked(stride, "neighbours at a distance in bytes of", &is_stride, DISTANCE_RULE)?;
            let each = stride / self.dtype.bytes_i64();
            last = last.and_then(|it| it.checked_add((dim - 1).checked_mul(each)?));
            dims.push(dim.cast_unsigned());
            strides.push(stride.cast_unsigned());
        }
        if last.zip(there).is_none_or(|(last, there)| last >= there) {
            return Err(self.refused("elements beyond the end of the buffer".to_owned(), "what is in it"));
        }
        let SymbolicMap { name, buffer, dtype, tile, swizzle, .. } = self;
        let (name, tile) = (name.to_string(), tile.clone());
        Ok(MapSpec { name, buffer: *buffer, dtype: *dtype, dims, strides, tile, swizzle: *swizzle })
    }

    fn refused(&self, what: String, rule: &'static str) -> LaunchError {
        LaunchError::TensorMap { map: self.name.clone(), buffer: self.tensor.clone(), what, rule }
    }
}
