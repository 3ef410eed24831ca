use ir::{DType, Name, Role, Scope, Swizzle as Layout, XorSwizzle};
use serde::{Deserialize, Serialize};

use super::Primitive;
use crate::{LayoutError, Number, ScheduleError, ScheduleState, error::Thing};

/// Permutes a temporary in shared memory so that rows read at once lie in different banks.
///
/// ```text
/// swizzle(buffer: "A_shared")
///
/// temp A_shared: f32[64, 32] @shared
/// ->
/// temp A_shared: f32[64, 32] @shared swizzle(auto)
/// ```
///
/// The 16-byte chunks of a row change places by exclusive or with bits of the row's number, so that one chunk of each
/// of eight rows can be read at once, as matrix instructions do, and no byte is spent on padding. No value changes, and
/// accesses of up to 16 aligned bytes stay one access.
///
/// `mode` is `auto`, `32B`, `64B`, `128B` or `none`. A mode has the name of the rows it is for, in bytes: `128B` is bits 4 to
/// 6 of an offset in bytes xor bits 7 to 9, `64B` bits 4 and 5 xor bits 7 and 8, `32B` bit 4 xor bit 7. `auto`, which
/// is what is taken where nothing is said, is settled by the lowering from the rows that a block keeps of the buffer;
/// the source says what it found. `none` takes the swizzle away. Instead of a mode, `bits`, `base` and `shift` give any
/// other: `bits` bits from bit `base` on of an offset in bytes xor those `shift` higher, with `shift >= bits`.
///
/// The buffer starts at a multiple of the bytes after which the pattern repeats (1024 where that is more), so that the
/// pattern is one of addresses as well, which copies of tiles by the hardware demand.
///
/// The last dimension is the row, padded as `storage_align` asks; lowering refuses a swizzle whose bytes, 1 << (`base` +
/// `bits`), do not divide it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
// One of: nothing | mode | bits, base, shift
pub struct Swizzle {
    /// The temporary.
    pub buffer: Name,
    /// The name of a swizzle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Name>,
    /// How many bits change, where it has no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<Number>,
    /// The lowest bit that changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Number>,
    /// How much higher the bits are that change them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<Number>,
}

const NONE: &str = "none";

impl Primitive for Swizzle {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let buffer = state.expect_buffer(&self.buffer)?;
        let name = || self.buffer.clone();
        if buffer.role != Role::Temp {
            return Err(ScheduleError::NotTemp { name: name() });
        }
        if buffer.scope != Scope::Shared {
            return Err(LayoutError::NotShared { name: name(), scope: buffer.scope }.into());
        }
        let swizzle = self.layout(buffer.dtype)?;
        if let Some(Layout::Xor(it)) = swizzle
            && !it.is_valid(buffer.dtype.bytes_i64())
        {
            return Err(LayoutError::BadSwizzle { name: name(), dtype: buffer.dtype }.into());
        }

        if let Some(buffer) = state.func.buffers.get_mut(&self.buffer) {
            buffer.layout.swizzle = swizzle;
        }
        Ok(())
    }

    fn moves_work(&self) -> bool {
        false
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        [&mut self.bits, &mut self.base, &mut self.shift].into_iter().flatten().collect()
    }
}

impl Swizzle {
    /// The layout that is asked for, of elements of a type.
    fn layout(&self, dtype: DType) -> Result<Option<Layout>, ScheduleError> {
        let name = || self.buffer.clone();
        match (&self.mode, &self.bits, &self.base, &self.shift) {
            (None, None, None, None) => Ok(Some(Layout::Auto)),
            (Some(mode), None, None, None) if *mode == NONE => Ok(None),
            (Some(mode), None, None, None) => Layout::parse(mode.as_str()).map(Some).ok_or_else(|| {
                let known = Layout::words().into_iter().chain([NONE.into()]).collect();
                ScheduleError::NoSuch { thing: Thing::Mode, name: mode.clone(), known }
            }),
            (None, Some(bits), Some(base), Some(shift)) => {
                let wrong = || LayoutError::BadSwizzle { name: name(), dtype };
                let number =
                    |it: &Number| Ok::<_, ScheduleError>(u32::try_from(it.get()?).map_err(|_| wrong())?);
                let (bits, base, shift) = (number(bits)?, number(base)?, number(shift)?);
                Ok(Some(Layout::Xor(XorSwizzle { bits, base, shift })))
            }
            (Some(_) | None, ..) => Err(LayoutError::SwizzleWhat { name: name() }.into()),
        }
    }
}
