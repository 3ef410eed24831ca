//! `PingPong`: how the warpgroups of a role share the iterations of a loop.

use indexmap::IndexMap;

use crate::{Annotation, Name};

/// Warpgroups that take the iterations of a loop in turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PingPong {
    /// The loop inside that only one of them runs at a time, in the order of the iterations.
    pub turns: Name,
    /// How many warpgroups there are.
    pub members: i64,
}

impl PingPong {
    /// As the value of an entry of `#{…}`.
    pub(crate) fn annotation(&self) -> Annotation {
        Annotation::Map(IndexMap::from([(self.turns.clone(), self.members)]))
    }

    /// What such a value says, or what it should have been.
    pub(crate) fn parse(value: &Annotation) -> Result<PingPong, String> {
        let wanted = || "a loop inside and how many warpgroups take turns in it: 2 or 3".to_owned();
        let Annotation::Map(map) = value else { return Err(wanted()) };
        let mut entries = map.iter();
        match (entries.next(), entries.next()) {
            (Some((turns, &members)), None) if PingPong::MEMBERS.contains(&members) => {
                Ok(PingPong { turns: turns.clone(), members })
            }
            _ => Err(wanted()),
        }
    }

    /// How many warpgroups there may be: with a fourth, threads would have too few registers for what two of them gain.
    pub const MEMBERS: std::ops::RangeInclusive<i64> = 2..=3;
}
