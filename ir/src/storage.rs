//! `Storage`: where the elements of a buffer lie in memory.
//!
//! Elements are counted from the start of the buffer. Row-major order, the padding of `storage_align`, and a swizzle
//! decide where each one is; nothing else in tilewright adds up strides.

use crate::{Alloc, Buffer, DType, Index, Layout, Role, Swizzle, XorSwizzle};

/// How a buffer lies in memory.
#[derive(Clone, Debug)]
pub struct Storage {
    /// The distance in elements of neighbours in each dimension, padding included.
    pub strides: Vec<Index>,
    /// How many elements the buffer takes.
    pub len: Index,
    /// How its elements are permuted; a swizzle that is still open permutes nothing.
    swizzle: Option<XorSwizzle>,
    /// The bytes of an element.
    bytes: i64,
}

impl Storage {
    /// The row-major strides of a buffer, each widened as `storage_align` asks where the buffer is ours, and its swizzle.
    pub fn of(buffer: &Buffer) -> Storage {
        Storage::new(buffer.dtype, &buffer.shape, &buffer.layout, buffer.role)
    }

    /// How a buffer of a type, a shape and a layout lies in memory of its owner.
    pub fn new(dtype: DType, shape: &[Index], layout: &Layout, role: Role) -> Storage {
        let mut strides = vec![Index::int(1); shape.len()];
        let mut len = Index::int(1);
        for (axis, extent) in shape.iter().enumerate().rev() {
            let aligned = layout.align.iter().find(|it| it.axis == axis && role == Role::Temp);
            if let Some(align) = aligned {
                len = &len + &(Index::int(align.offset) - len.clone()).floor_mod(&Index::int(align.factor));
            }
            strides[axis] = len.clone();
            len = len * extent.clone();
        }
        let swizzle = match layout.swizzle {
            Some(Swizzle::Xor(it)) => Some(it),
            Some(Swizzle::Auto | Swizzle::None) | None => None,
        };
        Storage { strides, len, swizzle, bytes: dtype.bytes_i64() }
    }

    /// The offset in elements of a place before it is swizzled: sums of offsets are offsets of sums.
    pub fn linear(&self, indices: &[Index]) -> Index {
        let terms = indices.iter().zip(&self.strides).map(|(index, stride)| index * stride);
        terms.reduce(|a, b| a + b).unwrap_or_else(|| Index::int(0))
    }

    /// The offset in elements of a place as accesses have it.
    pub fn element(&self, indices: &[Index]) -> Index {
        let offset = self.linear(indices);
        match &self.swizzle {
            Some(it) => it.element(&offset, self.bytes),
            None => offset,
        }
    }

    /// The bytes of an element.
    pub const fn element_bytes(&self) -> i64 {
        self.bytes
    }

    /// How many adjacent bytes a swizzle leaves together, if there is one.
    pub fn chunk_bytes(&self) -> Option<i64> {
        self.swizzle.map(XorSwizzle::chunk_bytes)
    }

    /// How many elements apart rows start: what the last dimension spans, padding included.
    pub fn row(&self) -> Index {
        let row = self.strides.len().checked_sub(2).map(|at| &self.strides[at]);
        row.unwrap_or(&self.len).clone()
    }

    /// What the start of the buffer is a multiple of, in bytes: where it is swizzled, the period of its pattern, so that
    /// the pattern is one of addresses, as copies of tiles by the hardware have it. Longer periods than those come to no
    /// more than theirs.
    pub fn alignment(&self) -> i64 {
        const LONGEST_PERIOD: i64 = 1024;
        match &self.swizzle {
            Some(it) => it.period_bytes().clamp(Alloc::ALIGN, LONGEST_PERIOD),
            None => Alloc::ALIGN,
        }
    }
}
