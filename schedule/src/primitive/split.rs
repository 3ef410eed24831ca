use indexmap::IndexMap;
use ir::{Index, Less, Name, Stmt, region::bounds_of};
use serde::{Deserialize, Serialize};

use super::Primitive;
use crate::{
    Number, ScheduleError, ScheduleState,
    check::repeat::expect_repeatable,
    rewrite::{simplify_loop, subst_loops},
    ron_text::unique,
};

/// Splits a loop into a nest of loops, outermost first.
///
/// ```text
/// split(loop: "i", into: {"io": None, "ii": 8})
///
/// for i in 0..e { s }
/// ->
/// for io in 0..ceil(e/8) { for ii in 0..8 { s[i := io*8 + ii] if io*8 + ii < e } }
/// ```
///
/// One factor may be `None`: the fewest iterations that cover the loop. Where the nest covers more than the loop,
/// the blocks in it are guarded; a guard that always holds is left out. The order in which iterations run does not
/// change. Loops with annotations, or bound to threads or lanes, are not split: split first, bind afterwards.
///
/// ```text
/// split(loop: "i", into: {"io": None, "ii": 8}, overlap: true)
///
/// for i in 0..e { s }
/// ->
/// for io in 0..ceil(e/8) { for ii in 0..8 { s[i := min(io*8, e - 8) + ii] } }
/// ```
///
/// With `overlap: true` nothing is guarded: the last iteration of the outermost new loop is shifted back to end with the
/// loop, so that every part is whole. What two parts share runs twice, and the second run has to change nothing: a block
/// that adds to what an earlier iteration left, or updates in place, is refused, and so are blocks that hand data from one
/// iteration to another. The loop has to have a whole part at least. TVM has no such option.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// The loop to split.
    #[serde(rename = "loop")]
    pub target: Name,
    /// The loops to make, outermost first, each with its number of iterations.
    #[serde(deserialize_with = "unique")]
    pub into: IndexMap<Name, Option<Number>>,
    /// Whether the last part overlaps the one before it, in place of guards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overlap: bool,
}

impl Primitive for Split {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let extent = state.expect_plain_loop(&self.target)?.extent.clone();
        if self.into.is_empty() {
            return Err(ScheduleError::TooFewLoops { primitive: "split", needed: 1 });
        }
        for name in self.into.keys().filter(|it| **it != self.target) {
            state.expect_fresh(name)?;
        }
        let extents = self.extents(&extent)?;
        let part = extents.values().skip(1).fold(Index::int(1), |part, it| part * it.clone());
        if self.overlap {
            expect_whole_part(state, &self.target, &part, &extent)?;
            expect_repeatable(&state.func, &self.target)?;
        }

        let mut digits = extents.iter();
        let first = digits.next().map_or(Index::int(0), |(var, _)| Index::var(var) * part.clone());
        let start = if self.overlap { first.minimum(&(&extent - &part)) } else { first };
        let within =
            digits.fold(Index::int(0), |outer, (var, extent)| outer * extent.clone() + Index::var(var));
        let value = start + within;
        state.func.replace_loop(&self.target, |old| {
            let mut body = old.body;
            if !self.overlap {
                guard_blocks(&mut body, &Less::new(Index::var(&self.target), extent));
            }
            subst_loops(&mut body, &|var| (*var == self.target).then(|| value.clone()));
            extents.into_iter().rev().fold(body, |body, (var, extent)| Stmt::serial(&var, extent, body))
        });
        self.into.keys().take(1).for_each(|it| simplify_loop(&mut state.func, it));
        Ok(())
    }

    fn moves_work(&self) -> bool {
        false
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        self.into.values_mut().flatten().collect()
    }
}

impl Split {
    /// The extent of each new loop, the inferred one included.
    fn extents(&self, extent: &Index) -> Result<IndexMap<Name, Index>, ScheduleError> {
        let target = || self.target.clone();
        let (mut product, mut inferred) = (1i64, None);
        for (name, factor) in &self.into {
            let Some(factor) = factor else {
                if let Some(first) = inferred.replace(name) {
                    return Err(ScheduleError::TwoInferred { first: first.clone(), second: name.clone() });
                }
                continue;
            };
            let factor = factor.get()?;
            if factor < 1 {
                return Err(ScheduleError::FactorNotPositive { name: name.clone(), factor });
            }
            let next = product.checked_mul(factor).filter(|it| *it <= i64::from(i32::MAX));
            product = next.ok_or_else(|| ScheduleError::FactorsTooLarge { name: target() })?;
        }
        let covers = extent.as_int().is_some_and(|it| it <= product);
        if inferred.is_none() && !covers {
            let extent = extent.clone();
            return Err(ScheduleError::FactorsTooSmall { name: target(), extent, product });
        }
        let rest = extent.ceil_div(&Index::int(product));
        let made = self.into.iter().map(|(name, factor)| {
            Ok((name.clone(), factor.as_ref().map_or(Ok(rest.clone()), |it| it.get().map(Index::int))?))
        });
        made.collect()
    }
}

/// Refuses a part that may be longer than the loop.
fn expect_whole_part(
    state: &ScheduleState,
    name: &Name,
    part: &Index,
    extent: &Index,
) -> Result<(), ScheduleError> {
    let path = state.expect_path(name)?;
    let around = bounds_of(&state.func, &path[..path.len() - 1]);
    if around.at_most(part, extent) {
        return Ok(());
    }
    let (name, extent, part) = (name.clone(), extent.clone(), around.simplify(part));
    Err(ScheduleError::PartTooLong { name, extent, part })
}

/// Adds a guard to every block in or below.
fn guard_blocks(stmt: &mut Stmt, guard: &Less) {
    stmt.walk_mut(&mut |stmt| match stmt {
        Stmt::Block(it) => {
            std::sync::Arc::make_mut(it).guards.push(guard.clone());
            false
        }
        Stmt::Loop(_) | Stmt::Seq(_) => true,
        Stmt::Store(_) | Stmt::Instr(_) => false,
    });
}
