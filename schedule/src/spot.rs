//! Where in a step a refusal is to be shown.

use ir::Name;

use crate::{BlockError, CrossBlockError, LayoutError, ScheduleError, TileError};

/// The part of a step that is to blame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blame {
    /// The first of the error's names that the step mentions.
    Name,
    /// The same, where it stands for the second time.
    Again,
    /// The value of a field.
    Field(&'static str),
}

impl ScheduleError {
    /// The part of the step that is to blame.
    pub fn blame(&self) -> Blame {
        use ScheduleError as E;
        match self {
            E::NamedTwice { .. } => Blame::Again,
            E::Layout(
                LayoutError::MapSyntax { .. }
                | LayoutError::MapRank { .. }
                | LayoutError::MapRange { .. }
                | LayoutError::MapSymbolic { .. }
                | LayoutError::MapForgets { .. }
                | LayoutError::MapNotOnto { .. }
                | LayoutError::MapNotOneToOne { .. }
                | LayoutError::MapUnproved { .. },
            ) => Blame::Field("index_map"),
            E::Layout(LayoutError::SwizzleWhat { .. } | LayoutError::BadSwizzle { .. }) => {
                Blame::Field("bits")
            }
            E::NotAPermutation { .. } => Blame::Field("order"),
            E::AxisRange { .. } | E::AxisNotAlignable { .. } => Blame::Field("axis"),
            E::BadAlignment { factor, .. } if !(1..=65_535).contains(factor) => Blame::Field("factor"),
            E::BadAlignment { .. } => Blame::Field("offset"),
            E::AnnotationValue { .. } => Blame::Field("value"),
            E::Block(BlockError::FactorAxis { .. }) => Blame::Field("factor_axis"),
            E::Block(BlockError::NotReducer { .. }) => Blame::Field("loop"),
            E::Tile(TileError::PaddingRange { .. }) => Blame::Field("padding"),
            E::Tile(TileError::NotWhole { .. }) | E::CrossBlock(CrossBlockError::NotAtomic { .. }) => {
                Blame::Field("loop")
            }
            _ => Blame::Name,
        }
    }

    /// The name that means a buffer, where the error is about that first: a block may have the same name.
    pub fn buffer(&self) -> Option<&Name> {
        use ScheduleError as E;
        match self {
            E::NotTemp { name }
            | E::AxisRange { name, .. }
            | E::AxisNotAlignable { name, .. }
            | E::NotAPermutation { name, .. }
            | E::AlreadyAligned { name }
            | E::BadAlignment { name, .. } => Some(name),
            E::Layout(it) => it.names().first().copied(),
            _ => None,
        }
    }
}
