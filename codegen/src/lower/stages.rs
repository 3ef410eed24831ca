//! Reads pipeline annotations and judges them.

use std::collections::BTreeMap;

use ir::{Annotation, Func, Loop, LoopKind, Name, Stmt};

use super::{Homes, PipelineError};

/// The annotation that gives each statement its stage.
pub(crate) const STAGE: &str = "software_pipeline_stage";
/// The annotation that gives each statement its place in the new body.
pub(crate) const ORDER: &str = "software_pipeline_order";
/// The annotation of a block whose buffer shall have two slots at least.
const DOUBLE: &str = "double_buffer_scope";
/// The greatest stage: prologue and epilogue are written out that many times.
const LAST_STAGE: i64 = 16;

/// A statement of a pipelined loop.
#[derive(Clone)]
pub(crate) struct Component {
    pub(crate) body: Stmt,
    pub(crate) stage: i64,
    pub(crate) order: i64,
    /// What it is called in messages: its last block.
    name: Name,
    reads: Vec<Name>,
    writes: Vec<Name>,
    doubled: bool,
}

/// What becomes of a loop.
pub(crate) struct Plan {
    /// The statements in program order.
    pub(crate) components: Vec<Component>,
    /// The buffers that live in an iteration of the loop, and how many iterations of them there must be.
    pub(crate) slots: BTreeMap<Name, i64>,
}

/// What the annotations of a loop ask for; `None` without any, or with one of the two.
pub(crate) fn plan(it: &Loop, func: &Func, homes: &Homes) -> Result<Option<Plan>, PipelineError> {
    let var = it.var.clone();
    let (stages, orders) = match (it.annotations.get(STAGE), it.annotations.get(ORDER)) {
        (None, _) | (_, None) => return Ok(None),
        (Some(stages), Some(orders)) => (stages, orders),
    };
    match it.kind {
        LoopKind::Serial | LoopKind::Unrolled => {}
        LoopKind::Bound(axis) => return Err(PipelineError::Bound { var, axis }),
        LoopKind::Parallel => return Err(PipelineError::Kind { var, kind: "parallel" }),
        LoopKind::Vectorized => return Err(PipelineError::Kind { var, kind: "vectorized" }),
    }
    let Stmt::Seq(stmts) = &it.body else { return Err(PipelineError::Single { var }) };
    let stages = numbers(&var, STAGE, stages, stmts)?;
    let orders = numbers(&var, ORDER, orders, stmts)?;
    let mut components: Vec<_> = stmts
        .iter()
        .zip(stages)
        .zip(orders)
        .map(|((body, stage), order)| component(body, stage, order))
        .collect();
    check_numbers(&var, &components)?;
    let first = components.iter().map(|it| it.stage).min().unwrap_or(0);
    for it in &mut components {
        it.stage -= first;
    }

    let private = |name: &Name| homes.get(name).is_some_and(|home| home.as_ref() == Some(&it.var));
    check_order(&var, &components, &private)?;
    let slots = func.buffers.keys().filter(|name| private(name));
    let slots = slots.map(|name| (name.clone(), slots_of(name, &components))).collect();
    Ok(Some(Plan { components, slots }))
}

fn component(body: &Stmt, stage: i64, order: i64) -> Component {
    let blocks = body.blocks();
    let names =
        |accesses: Vec<&ir::Access>| accesses.into_iter().map(|it| it.buffer.clone()).collect::<Vec<_>>();
    Component {
        stage,
        order,
        name: blocks.last().map_or_else(|| Name::new("statement"), |it| it.name.clone()),
        reads: blocks.iter().flat_map(|it| names(it.reads())).collect(),
        writes: blocks.iter().flat_map(|it| names(it.writes())).collect(),
        doubled: blocks.iter().any(|it| it.annotations.contains_key(DOUBLE)),
        body: body.clone(),
    }
}

/// The number of each statement: by position, or by the names of its blocks, which must agree.
fn numbers(
    var: &Name,
    key: &'static str,
    given: &Annotation,
    stmts: &[Stmt],
) -> Result<Vec<i64>, PipelineError> {
    let names = |it: &Stmt| it.blocks().iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    let error = || {
        let statements = stmts.iter().flat_map(names).collect();
        PipelineError::Statements { var: var.clone(), key, statements }
    };
    match given {
        Annotation::List(list) if list.len() == stmts.len() => Ok(list.clone()),
        Annotation::Map(map) => {
            let all: Vec<_> = stmts.iter().flat_map(names).collect();
            if map.keys().any(|it| !all.contains(it)) {
                return Err(error());
            }
            let number = |stmt: &Stmt| {
                let mut given =
                    stmt.blocks().into_iter().filter_map(|it| map.get(&it.name).copied()).collect::<Vec<_>>();
                given.dedup();
                match given.as_slice() {
                    [one] => Ok(*one),
                    _ => Err(error()),
                }
            };
            stmts.iter().map(number).collect()
        }
        Annotation::List(_) | Annotation::Int(_) | Annotation::Text(_) => Err(error()),
    }
}

fn check_numbers(var: &Name, components: &[Component]) -> Result<(), PipelineError> {
    for (n, it) in components.iter().enumerate() {
        if !(0..=LAST_STAGE).contains(&it.stage) {
            let (var, statement) = (var.clone(), it.name.clone());
            return Err(PipelineError::Stage { var, statement, stage: it.stage, limit: LAST_STAGE });
        }
        if let Some(first) = components[..n].iter().find(|first| first.order == it.order) {
            let (first, second) = (first.name.clone(), it.name.clone());
            return Err(PipelineError::SameOrder { var: var.clone(), first, second, order: it.order });
        }
    }
    Ok(())
}

/// Judges each dependence: what touched an element first must still be first.
///
/// A buffer that lives in an iteration carries nothing to the next; of any other, the next iteration's earlier
/// statements depend on this one's later statements.
fn check_order(
    var: &Name,
    components: &[Component],
    private: &dyn Fn(&Name) -> bool,
) -> Result<(), PipelineError> {
    for (n, later) in components.iter().enumerate() {
        for earlier in &components[..n] {
            let shared = later.touches().find(|it| {
                earlier.touches().any(|other| other == *it)
                    && (later.writes.contains(it) || earlier.writes.contains(it))
            });
            let all = later.touches().filter(|it| {
                earlier.touches().any(|other| other == *it)
                    && (later.writes.contains(it) || earlier.writes.contains(it))
            });
            let error = |first: &Component, then: &Component, distance, buffer: &Name| PipelineError::Order {
                var: var.clone(),
                earlier: first.name.clone(),
                later: then.name.clone(),
                distance,
                buffer: buffer.clone(),
            };
            if let Some(buffer) = shared
                && (earlier.stage, earlier.order) >= (later.stage, later.order)
            {
                return Err(error(earlier, later, 0, buffer));
            }
            let mut carried = all.filter(|it| !private(it));
            if let Some(buffer) = carried.next()
                && (later.stage, later.order) >= (earlier.stage + 1, earlier.order)
            {
                return Err(error(later, earlier, 1, buffer));
            }
        }
    }
    Ok(())
}

/// How many iterations of a buffer must exist at once, so that no slot is overwritten while it is in use.
fn slots_of(buffer: &Name, components: &[Component]) -> i64 {
    let writers = components.iter().filter(|it| it.writes.contains(buffer));
    let needed = writers.flat_map(|writer| {
        let users = components.iter().filter(|it| it.touches().any(|name| name == buffer));
        users.map(|user| user.stage - writer.stage + i64::from(writer.order < user.order))
    });
    let doubled = components.iter().any(|it| it.doubled && it.writes.contains(buffer));
    needed.max().unwrap_or(1).max(if doubled { 2 } else { 1 })
}

impl Component {
    pub(crate) fn with_body(&self, body: Stmt) -> Component {
        Component { body, ..self.clone() }
    }

    fn touches(&self) -> impl Iterator<Item = &Name> {
        self.reads.iter().chain(&self.writes)
    }
}
