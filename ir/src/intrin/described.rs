//! The descriptions of intrinsics as programs, and what they say of types.

use std::sync::{LazyLock, OnceLock};

use super::{ALL, Intrinsic};
use crate::{Block, DType, Func, text};

/// The description of an intrinsic with a type in the place of `T`, read once.
pub(super) fn description(intrinsic: &'static Intrinsic, of: Option<DType>) -> &'static Func {
    /// For each intrinsic, without a type and with each.
    type Read = Vec<[OnceLock<Func>; 1 + DType::ALL.len()]>;
    static READ: LazyLock<Read> = LazyLock::new(|| ALL.iter().map(|_| Default::default()).collect());
    let number = ALL.iter().position(|it| it.name == intrinsic.name).expect("the list has all intrinsics");
    READ[number][of.map_or(0, |it| 1 + it as usize)].get_or_init(|| {
        let text = intrinsic.description;
        let text = of.map_or_else(|| text.to_owned(), |it| text.replace(": T[", &format!(": {it}[")));
        text::parse(&text).expect("descriptions are tried by a test")
    })
}

/// The types of the operands of a product, the sum first.
pub fn operand_types(intrinsic: &'static Intrinsic) -> Vec<DType> {
    description(intrinsic, None).buffers.values().map(|it| it.dtype).collect()
}

/// The product of a family that has the types of a block: of what it writes, and of what it reads beside that, in whatever order.
///
/// # Errors
/// Those types, in the order of the block, where there is none.
pub fn of_types(family: &str, func: &Func, block: &Block) -> Result<&'static Intrinsic, Vec<DType>> {
    let written = block.writes().first().map(|it| it.buffer.clone());
    let factors = block.reads().into_iter().map(|it| &it.buffer).filter(|it| Some(*it) != written.as_ref());
    let types: Vec<_> = written.iter().chain(factors).filter_map(|it| func.dtype_of(it)).collect();
    let in_order = |mut all: Vec<DType>| {
        all.get_mut(1..).unwrap_or_default().sort_unstable();
        all
    };
    let has_types = |it: &'static Intrinsic| in_order(operand_types(it)) == in_order(types.clone());
    let mut members = ALL.iter().copied().filter(|it| it.family() == Some(family));
    members.find(|it| has_types(it)).ok_or(types)
}
