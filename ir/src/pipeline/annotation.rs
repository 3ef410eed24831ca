//! How the annotations of a pipeline name statements.

use indexmap::IndexMap;

use super::{LAST_STAGE, PipelineError, STAGE};
use crate::{Block, Loop, LoopKind, Name, Numbers, Stmt};

/// The names of the three parts of an inner pipeline, where an outer one takes them as three components.
pub fn part_names(inner: &Name) -> [Name; 3] {
    ["prologue", "body", "epilogue"].map(|part| Name::new(format!("{inner}_{part}")))
}

/// The stages of a loop that are to copy asynchronously.
pub fn async_stages(it: &Loop) -> &[i64] {
    it.attrs.pipeline.as_ref().and_then(|it| it.async_stages.as_deref()).unwrap_or_default()
}

/// Whether a component of a loop is to copy asynchronously, given its stage and its blocks.
pub fn is_asynchronous(it: &Loop, stage: i64, names: &[Name]) -> bool {
    let blocks = it.attrs.pipeline.as_ref().and_then(|it| it.async_blocks.as_deref()).unwrap_or_default();
    async_stages(it).contains(&stage) || names.iter().any(|name| blocks.contains(name))
}

/// Whether a loop has stages and orders.
pub fn is_pipeline(it: &Loop) -> bool {
    it.attrs.pipeline.as_ref().is_some_and(|it| it.stages.is_some() && it.orders.is_some())
}

/// A statement of a pipelined loop, or a part of one, and the names by which annotations may call it.
#[derive(Clone, Debug)]
pub struct NamedComponent<'a> {
    /// The statement.
    pub stmt: &'a Stmt,
    /// Which part of the pipeline that it is, if it counts as three.
    pub part: Option<usize>,
    /// Its names: those of its blocks, or that of the part.
    pub names: Vec<Name>,
}

/// The components of a loop's body, in program order: its statements, where `in_parts` says so of an inner pipeline
/// its parts.
pub fn components<'a>(it: &'a Loop, in_parts: &dyn Fn(&Loop) -> bool) -> Vec<NamedComponent<'a>> {
    let stmts: Vec<&Stmt> = match &it.body {
        Stmt::Seq(stmts) => stmts.iter().collect(),
        other @ (Stmt::Loop(_) | Stmt::Block(_) | Stmt::Store(_) | Stmt::Instr(_)) => vec![other],
    };
    let slots = stmts.into_iter().flat_map(|stmt| match stmt {
        Stmt::Loop(inner) if is_pipeline(inner) && in_parts(inner) => {
            let parts = part_names(&inner.var).into_iter().enumerate();
            parts.map(|(part, name)| NamedComponent { stmt, part: Some(part), names: vec![name] }).collect()
        }
        Stmt::Loop(_) | Stmt::Block(_) | Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {
            let names = stmt.blocks().iter().map(|it: &&Block| it.name.clone()).collect();
            vec![NamedComponent { stmt, part: None, names }]
        }
    });
    slots.collect()
}

/// The components as the keys of a map name them: an inner pipeline in parts if one of its parts is named.
pub fn components_of<'a>(it: &'a Loop, map: &IndexMap<Name, i64>) -> Vec<NamedComponent<'a>> {
    components(it, &|inner| part_names(&inner.var).iter().any(|part| map.contains_key(part)))
}

/// Positional numbers as a map: each component under the name of its last block, inner pipelines as one component or,
/// as TVM counts them, as three.
pub fn named(it: &Loop, list: &[i64]) -> Result<IndexMap<Name, i64>, PipelineError> {
    let mut slots = components(it, &|_| false);
    if slots.len() != list.len() {
        let parts = components(it, &|_| true);
        if parts.len() != list.len() {
            let (name, components) = (it.var.clone(), slots.len());
            return Err(PipelineError::PipelineArity { name, components, given: list.len() });
        }
        slots = parts;
    }
    let ends = slots.iter().filter_map(|it| it.names.last().cloned());
    Ok(ends.zip(list.iter().copied()).collect())
}

/// The number of each component, in program order, under the name that the map gives it.
pub fn in_program_order(
    it: &Loop,
    key: &'static str,
    map: &IndexMap<Name, i64>,
) -> Result<IndexMap<Name, i64>, PipelineError> {
    let slots = components_of(it, map);
    if slots.len() < 2 {
        return Err(PipelineError::OneComponent { name: it.var.clone() });
    }
    if let Some(block) = map.keys().find(|name| !slots.iter().any(|it| it.names.contains(name))) {
        let known = slots.iter().flat_map(|it| &it.names).cloned().collect();
        return Err(PipelineError::NotInLoop { name: it.var.clone(), block: block.clone(), known });
    }
    let mut out = IndexMap::new();
    for slot in &slots {
        let mut given = slot.names.iter().filter_map(|name| map.get_key_value(name));
        let Some((first, number)) = given.next() else {
            let block = slot.names.last().unwrap_or(&it.var).clone();
            return Err(PipelineError::PipelineMissing { name: it.var.clone(), key, block });
        };
        if let Some((second, _)) = given.find(|(_, other)| *other != number) {
            let (first, second) = (first.clone(), second.clone());
            return Err(PipelineError::OneStatement { name: it.var.clone(), first, second });
        }
        out.insert(first.clone(), *number);
    }
    Ok(out)
}

/// The numbers that a loop's annotation gives its components, in program order.
pub fn numbers(it: &Loop, key: &'static str) -> Result<IndexMap<Name, i64>, PipelineError> {
    let pipeline = it.attrs.pipeline.as_ref();
    let given = pipeline.and_then(|it| if key == STAGE { it.stages.as_ref() } else { it.orders.as_ref() });
    match given {
        Some(Numbers::Map(map)) => in_program_order(it, key, map),
        Some(Numbers::List(list)) => in_program_order(it, key, &named(it, list)?),
        None => Err(PipelineError::NotAMap { name: it.var.clone(), key }),
    }
}

/// Refuses loops whose iterations do not run one after the other.
pub fn expect_serial(it: &Loop) -> Result<(), PipelineError> {
    let name = it.var.clone();
    match it.kind {
        LoopKind::Serial | LoopKind::Unrolled => Ok(()),
        LoopKind::Bound(axis) => Err(PipelineError::Bound { name, axis }),
        LoopKind::Parallel => Err(PipelineError::Kind { name, kind: "parallel" }),
        LoopKind::Vectorized => Err(PipelineError::Kind { name, kind: "vectorized" }),
    }
}

/// Refuses numbers out of range and places given twice; both maps are in program order.
pub fn check_numbers(
    stages: &IndexMap<Name, i64>,
    orders: &IndexMap<Name, i64>,
) -> Result<(), PipelineError> {
    for (block, &stage) in stages {
        let block = block.clone();
        if stage < 0 {
            return Err(PipelineError::NegativeStage { block, stage });
        }
        if stage > LAST_STAGE {
            return Err(PipelineError::StageTooLate { block, stage, limit: LAST_STAGE });
        }
    }
    for (n, (second, &order)) in orders.iter().enumerate() {
        if let Some((first, _)) = orders.iter().take(n).find(|it| *it.1 == order) {
            let (first, second) = (first.clone(), second.clone());
            return Err(PipelineError::SameOrder { first, second, order });
        }
    }
    Ok(())
}
