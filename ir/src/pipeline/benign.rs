//! Stores of which only the last iteration counts, as the script says: is it true?

use std::collections::BTreeSet;

use super::PipelineError;
use crate::{
    Loop, Name,
    access::{Axes, FuncAccess, accesses},
};

/// The blocks that the loop's annotation calls benign.
///
/// Such a block stores the same elements in every iteration and nothing else in the loop touches them, so that what it
/// stores before the last iteration is never seen, right or wrong. What it reads may then be overwritten before it has
/// read it, by a later iteration: in the last one there is none.
pub(super) fn benign(it: &Loop) -> Result<BTreeSet<Name>, PipelineError> {
    let benign = it.attrs.pipeline.as_ref().and_then(|it| it.benign.as_deref()).unwrap_or_default();
    if benign.is_empty() {
        return Ok(BTreeSet::new());
    }
    let all = accesses(&it.body, Axes::AsLoops);
    for block in benign {
        if !all.iter().any(|it| it.block_name() == *block) {
            let mut known: Vec<Name> = all.iter().map(FuncAccess::block_name).collect();
            known.dedup();
            return Err(PipelineError::NotInLoop { name: it.var.clone(), block: block.clone(), known });
        }
        if let Some(reason) = reason(&it.var, block, &all) {
            return Err(PipelineError::NotBenign { name: it.var.clone(), block: block.clone(), reason });
        }
    }
    Ok(benign.iter().cloned().collect())
}

/// Why a block is not benign.
fn reason(var: &Name, block: &Name, all: &[FuncAccess<'_>]) -> Option<String> {
    let own = |it: &&FuncAccess<'_>| it.block_name() == *block && it.write;
    let varies = |it: &FuncAccess<'_>| {
        let conditions = it.conditions().flat_map(|it| [&it.lhs, &it.rhs]);
        let extents = it.variables().iter().map(|it| &it.1);
        it.indices.iter().chain(conditions).chain(extents).any(|it| it.any_var(&|name| name == var))
    };
    if let Some(it) = all.iter().filter(own).find(|it| varies(it)) {
        return Some(format!("the elements of `{}` that it stores depend on `{var}`", it.buffer));
    }
    let shared = all.iter().filter(own).find_map(|it| {
        let other = all.iter().find(|other| other.buffer == it.buffer && !own(other))?;
        Some((it.buffer.clone(), other.block_name()))
    });
    shared.map(|(buffer, other)| format!("`{other}` touches `{buffer}` in the loop as well"))
}
