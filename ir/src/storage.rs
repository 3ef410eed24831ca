//! `Storage`: where the elements of a buffer lie in memory.
//!
//! Elements are counted from the start of the buffer. Row-major order, the padding of `storage_align`, panels and a swizzle
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
    pub swizzle: Option<XorSwizzle>,
    /// The bytes of an element.
    bytes: i64,
    /// The elements of a row of a panel, and of a whole panel, where the last dimension is cut into some.
    panel: Option<(i64, Index)>,
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
        let panel = layout.panel.zip(shape.len().checked_sub(2)).map(|(width, rows)| {
            strides[rows] = Index::int(width);
            (width, &shape[rows] * width)
        });
        Storage { strides, len, swizzle, bytes: dtype.bytes_i64(), panel }
    }

    /// The offset in elements of a place before it is swizzled: sums of offsets are offsets of sums.
    pub fn linear(&self, indices: &[Index]) -> Index {
        let mut terms: Vec<Index> =
            indices.iter().zip(&self.strides).map(|(index, stride)| index * stride).collect();
        if let (Some((width, panel)), Some(last)) = (&self.panel, terms.last_mut()) {
            let width = Index::int(*width);
            *last = last.floor_div(&width) * panel.clone() + last.floor_mod(&width);
        }
        terms.into_iter().reduce(|a, b| a + b).unwrap_or_else(|| Index::int(0))
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

    /// The elements of a whole panel, where the last dimension is cut into some.
    pub fn panel(&self) -> Option<&Index> {
        self.panel.as_ref().map(|it| &it.1)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every element has a place of its own within the length, with panels and without, before a swizzle and after it; and what
        /// is left of the length is padding.
        #[test]
        fn elements_have_places_of_their_own(
            slots in 1..3i64,
            groups in 1..3i64,
            (panels, bits) in (1..4i64, 0..3u32),
            is_cut: bool,
            is_swizzled: bool,
            padding in prop_oneof![Just(None), Just(Some(24))],
        ) {
            let (rows, swizzle) = (groups * 8, XorSwizzle::MODES[bits as usize].1);
            let width = swizzle.block_bytes() / 2;
            let shape = [slots, rows, panels * width];
            let align = padding.filter(|_| !is_cut && !is_swizzled);
            let align = align.map(|factor| crate::StorageAlign { axis: 1, factor, offset: 8 });
            let layout = Layout {
                align: align.into_iter().collect(),
                swizzle: is_swizzled.then_some(Swizzle::Xor(swizzle)),
                panel: is_cut.then_some(width),
            };
            let extents = shape.map(Index::int);
            let storage = Storage::new(DType::Bf16, &extents, &layout, Role::Temp);
            let len = storage.len.as_int().unwrap();
            let (mut linear, mut swizzled) = (BTreeSet::new(), BTreeSet::new());
            for at in 0..shape.iter().product::<i64>() {
                let place = [at / (shape[1] * shape[2]), at / shape[2] % shape[1], at % shape[2]];
                let indices = place.map(Index::int);
                let of = |it: Index| it.eval(&|_| None).unwrap();
                let offset = of(storage.linear(&indices));
                if is_cut {
                    let [slot, row, column] = place;
                    let panel = slot * panels + column / width;
                    prop_assert_eq!(offset, (panel * rows + row) * width + column % width);
                }
                linear.insert(offset);
                swizzled.insert(of(storage.element(&indices)));
            }
            for all in [linear, swizzled] {
                prop_assert_eq!(i64::try_from(all.len()), Ok(shape.iter().product::<i64>()));
                prop_assert!(all.iter().all(|it| (0..len).contains(it)));
                if align.is_none() {
                    prop_assert_eq!(i64::try_from(all.len()), Ok(len));
                }
            }
        }
    }
}
