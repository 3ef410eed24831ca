//! Tiles of shared memory that tensor cores read by themselves, where descriptors say they are.
//!
//! An element of a factor is at the start of its tile, further by what the canonical layout makes of the leading and the stride byte
//! offset (PTX ISA, *Strides*), and where the swizzle takes that absolute address.

use std::ops::Range;

use ir::{Major, Matrix, XorSwizzle};

use super::{
    exec::Machine,
    index::{IndexCode, WARP},
};

/// A factor in shared memory.
#[derive(Debug)]
pub(crate) struct TileCode {
    pub(crate) buffer: usize,
    pub(crate) first: IndexCode,
    pub(crate) matrix: Matrix,
    /// Of the dimension that the result has, too, and of the one that is summed over.
    pub(crate) extents: [usize; 2],
}

impl TileCode {
    /// How far from the start of the tile an element of `each` bytes is, before the swizzle.
    fn offset(&self, each: i64, [mn, k]: [i64; 2]) -> i64 {
        let Matrix { major, leading, stride, swizzle } = self.matrix;
        let chunk = 16 / each;
        let span = swizzle.map_or(16, XorSwizzle::block_bytes);
        match (major, swizzle) {
            (Major::K, Some(_)) => mn % 8 * span + mn / 8 * stride + k * each,
            (Major::K, None) => mn % 8 * span + mn / 8 * stride + k / chunk * leading + k % chunk * each,
            (Major::Mn, Some(_)) => {
                let panel = span / each;
                mn % panel * each + mn / panel * leading + k % 8 * span + k / 8 * stride
            }
            // Without a swizzle the two offsets have changed places.
            (Major::Mn, None) => mn % chunk * each + mn / chunk * stride + k % 8 * span + k / 8 * leading,
        }
    }

    /// What the bytes of the start have to be at a multiple of, and below what in the period of the swizzle: rows of the pattern
    /// begin with the first.
    fn has_start(&self, byte: i64) -> bool {
        let in_pattern = |it: XorSwizzle| byte & (it.period_bytes() - 1) < it.block_bytes();
        byte % 16 == 0 && self.matrix.swizzle.is_none_or(in_pattern)
    }
}

impl Machine<'_, '_, '_> {
    /// Where the elements of some rows of a factor are, in the shared memory of a block of the cluster.
    pub(crate) fn factor(
        &mut self,
        site: u32,
        tile: &TileCode,
        rows: Range<usize>,
        block: usize,
    ) -> Option<Vec<(usize, usize)>> {
        let mut first = [0; WARP];
        self.index(&tile.first, &mut first);
        let buffer = &self.program.buffers[tile.buffer];
        let each = buffer.dtype.bytes_i64();
        let start = first[0].wrapping_mul(each).wrapping_add(buffer.start);
        if !tile.has_start(start) {
            let align = tile.matrix.swizzle.filter(|_| start % 16 == 0).map_or(16, XorSwizzle::period_bytes);
            self.expect_box(site, (tile.buffer, first[0]), start, align, 0);
        }
        let number = |it: usize| i64::try_from(it).expect("a tile is small");
        let mut out = Vec::with_capacity(rows.len() * tile.extents[1]);
        for mn in rows {
            for k in 0..tile.extents[1] {
                let byte = start.wrapping_add(tile.offset(each, [number(mn), number(k)]));
                let byte = tile.matrix.swizzle.map_or(byte, |it| it.byte(byte));
                let Some(it) = self.at_byte(tile.buffer, byte, block) else {
                    let element = byte.wrapping_sub(buffer.start).div_euclid(each);
                    self.out_of_bounds(site, tile.buffer, element, 0);
                    return None;
                };
                out.push(it);
            }
        }
        Some(out)
    }
}
