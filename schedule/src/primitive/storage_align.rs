use ir::{Name, Role, StorageAlign as Align};
use serde::{Deserialize, Serialize};

use super::Primitive;
use crate::{Number, ScheduleError, ScheduleState};

/// Pads a dimension of a temporary so that its stride is not a multiple of what threads read at once.
///
/// ```text
/// storage_align(buffer: "A_shared", axis: -2, factor: 32, offset: 4)
///
/// temp A_shared: f32[64, 32] @shared
/// ->
/// temp A_shared: f32[64, 32] @shared align(0, 32, 4)
/// ```
///
/// The stride of the axis becomes the least one, counted in elements, that leaves `offset` when divided by
/// `factor`. Negative axes count from the last dimension, whose own stride stays 1. No value changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageAlign {
    /// The temporary.
    pub buffer: Name,
    /// The dimension, from the first or, if negative, from the last.
    pub axis: i64,
    /// What the stride is divided by.
    pub factor: Number,
    /// What it has to leave.
    pub offset: Number,
}

impl Primitive for StorageAlign {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let buffer = state.expect_buffer(&self.buffer)?;
        let name = || self.buffer.clone();
        if buffer.role != Role::Temp {
            return Err(ScheduleError::NotTemp { name: name() });
        }
        let rank = buffer.shape.len();
        let range = ScheduleError::AxisRange { name: name(), axis: self.axis, rank };
        let signed = i64::try_from(rank).expect("dimensions are in memory");
        let axis = if self.axis < 0 { self.axis.saturating_add(signed) } else { self.axis };
        let axis = usize::try_from(axis).ok().filter(|axis| *axis < rank).ok_or(range)?;
        if axis + 1 == rank || buffer.layout.align.iter().any(|it| it.axis == axis) {
            return Err(ScheduleError::AxisNotAlignable { name: name(), axis });
        }
        let (factor, offset) = (self.factor.get()?, self.offset.get()?);
        if factor < 1 || factor > i64::from(u16::MAX) || !(0..factor).contains(&offset) {
            return Err(ScheduleError::BadAlignment { name: name(), factor, offset });
        }

        if let Some(buffer) = state.func.buffers.get_mut(&self.buffer) {
            buffer.layout.align.push(Align { axis, factor, offset });
            buffer.layout.align.sort_by_key(|it| it.axis);
        }
        Ok(())
    }

    fn moves_work(&self) -> bool {
        false
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        vec![&mut self.factor, &mut self.offset]
    }
}
