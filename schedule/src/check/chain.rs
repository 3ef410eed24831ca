//! Chains: loops each of which is all that the one above it contains.

use ir::{Block, Loop, LoopKind, Name, Stmt};

use crate::{BlockError, ScheduleError, ScheduleState};

/// The loops of the chain that goes from the outermost to the innermost of `names`, those between included.
///
/// Refuses names that stand twice or are not all on one chain.
pub(crate) fn expect_chain<'a>(
    state: &'a ScheduleState,
    names: &[Name],
) -> Result<Vec<&'a Loop>, ScheduleError> {
    let mut deepest: Vec<&Loop> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let path = state.expect_path(name)?;
        if names[..at].contains(name) {
            return Err(ScheduleError::NamedTwice { name: name.clone() });
        }
        if path.len() > deepest.len() {
            deepest = path;
        }
    }
    let not_a_chain = |first: &Name, second: &Name| ScheduleError::NotAChain {
        first: first.clone(),
        second: second.clone(),
    };
    if let (Some(stray), Some(last)) =
        (names.iter().find(|it| deepest.iter().all(|on| on.var != **it)), deepest.last())
    {
        return Err(not_a_chain(stray, &last.var));
    }
    let top = deepest.iter().position(|it| names.contains(&it.var)).unwrap_or(0);
    let chain = deepest.split_off(top);
    for pair in chain.windows(2) {
        if !is_only_child(pair[0], &pair[1].var) {
            return Err(not_a_chain(&pair[0].var, &pair[1].var));
        }
    }
    Ok(chain)
}

/// Whether a loop contains another directly, and nothing else.
pub(crate) fn is_only_child(outer: &Loop, inner: &Name) -> bool {
    matches!(&outer.body, Stmt::Loop(it) if it.var == *inner)
}

/// Every loop around the block is plain and holds nothing else.
pub(crate) fn expect_alone(block: &Block, loops: &[Loop]) -> Result<(), BlockError> {
    let (name, shared) = (&block.name, loops.iter().find(|it| it.body.blocks().len() > 1));
    if let Some(it) = shared {
        return Err(BlockError::NotAlone { block: name.clone(), loop_name: it.var.clone() });
    }
    let marked = loops.iter().find(|it| it.kind != LoopKind::Serial || !it.attrs.is_empty());
    match marked {
        None => Ok(()),
        Some(it) => Err(BlockError::MarkedLoop { block: name.clone(), loop_name: it.var.clone() }),
    }
}
