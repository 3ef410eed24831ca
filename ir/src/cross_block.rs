//! Reductions whose terms come from several blocks of threads: how those add to the same elements.

use crate::{BinaryOp, DType, Store, Value};

/// The key of [`crate::LoopAttrs::cross_block`].
pub const CROSS_BLOCK: &str = "cross_block_reduction";

/// How the iterations of a loop, each run by a block of threads of its own, reduce into the same elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum CrossBlock {
    /// By atomic additions, in no order.
    Atomic,
    /// One block after the other, in the order of the loop.
    Semaphore,
}

impl CrossBlock {
    /// Every way, in declaration order.
    pub const ALL: [CrossBlock; 2] = [CrossBlock::Atomic, CrossBlock::Semaphore];

    /// The word in scripts and annotations.
    pub const fn as_str(self) -> &'static str {
        match self {
            CrossBlock::Atomic => "atomic",
            CrossBlock::Semaphore => "semaphore",
        }
    }

    /// The way of a word.
    pub fn parse(text: &str) -> Option<CrossBlock> {
        CrossBlock::ALL.into_iter().find(|it| it.as_str() == text)
    }

    /// Whether memory can add to elements of a type in one step.
    pub const fn can_add(dtype: DType) -> bool {
        matches!(dtype, DType::F32 | DType::F64 | DType::I32 | DType::U32)
    }
}

/// What a store adds to its place, if it is `place = place + term` and the term does not read the buffer.
pub fn added(store: &Store) -> Option<&Value> {
    let Value::Binary(BinaryOp::Add, a, b) = &store.value else { return None };
    let is_place = |value: &Value| matches!(value, Value::Load(it) if *it == store.place);
    let term = if is_place(a) {
        b
    } else if is_place(b) {
        a
    } else {
        return None;
    };
    let mut others = 0;
    term.each_load(&mut |it| others += usize::from(it.buffer == store.place.buffer));
    (others == 0).then_some(&**term)
}
