//! The memory of buffers, and what is remembered of each element.

use ir::{DType, Scope as Space};

use super::{
    Contents,
    index::WARP,
    program::{Buffer, Program},
    shadow::Cell,
    track::Track,
};

/// The memory of a buffer.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) space: Space,
    pub(crate) dtype: DType,
    /// How many elements each has who has it for himself: a thread, a block of a cluster, or all.
    pub(crate) len: usize,
    /// Element by element; of local memory warp by warp, the lanes of an element together.
    pub(crate) values: Vec<f64>,
    /// Not zero where an element was written: of local memory a bit for each lane, of shared memory the first epoch of
    /// the block.
    pub(crate) written: Vec<u32>,
    /// Of shared memory, and of global memory that the kernel writes.
    pub(crate) cells: Vec<Cell>,
    /// The same where clocks tell the order.
    pub(crate) tracks: Vec<Track>,
    /// Of global memory: what the present block comes after.
    pub(crate) seen: Vec<(u32, u32)>,
    /// Of local memory where clocks tell the order: for each element of a warp how many fences for products will have to be
    /// between the last access and a product, and how many products in flight use it.
    pub(crate) touched: Vec<u32>,
    pub(crate) busy: Vec<u32>,
}

impl Memory {
    /// What a kernel finds: global memory as it is, other memory with nothing in it.
    pub(crate) fn new(program: &Program, it: &Buffer, contents: &mut [Contents]) -> Memory {
        let (mut values, mut written, mut remembered, mut rows) = (vec![], vec![], 0, 0);
        if let Some((at, is_written)) = it.arg {
            values = std::mem::take(&mut contents[at].values);
            written = std::mem::take(&mut contents[at].written);
            remembered = if is_written { it.len } else { 0 };
        } else if it.space.is_per_block() {
            // The blocks of a cluster one after the other.
            remembered = it.len * program.cluster.blocks();
            values.resize(remembered, f64::NAN);
            written.resize(remembered, 0);
        } else {
            rows = it.len * program.scope.count / WARP;
            values.resize(rows * WARP, f64::NAN);
            written.resize(rows, 0);
        }
        let (tracked, rows) = if program.resumes { (remembered, rows) } else { (0, 0) };
        Memory {
            space: it.space,
            dtype: it.dtype,
            len: it.len,
            values,
            written,
            cells: vec![Cell::default(); remembered],
            tracks: vec![Track::default(); tracked],
            seen: vec![],
            touched: vec![0; rows],
            busy: vec![0; rows],
        }
    }
}
