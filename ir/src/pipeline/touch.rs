//! What the statements of a pipelined loop touch, element by element.

use crate::{Access, Block, Index, IterKind, Less, Name, Stmt, Value};

/// An access to a buffer in a statement.
#[derive(Clone, Debug)]
pub(super) struct Touch {
    pub(super) block: Name,
    pub(super) buffer: Name,
    /// Over the variables of loops.
    pub(super) indices: Vec<Index>,
    pub(super) write: bool,
    /// The loops inside the statement around it, outermost first.
    pub(super) loops: Vec<(Name, Index)>,
    /// What must hold for it to happen.
    pub(super) conditions: Vec<Less>,
}

/// The accesses of a statement in program order: what a store reads, then what it writes.
pub(super) fn touches(stmt: &Stmt) -> Vec<Touch> {
    let mut out = Vec::new();
    walk(stmt, &mut Vec::new(), &mut out);
    out
}

fn walk(stmt: &Stmt, loops: &mut Vec<(Name, Index)>, out: &mut Vec<Touch>) {
    match stmt {
        Stmt::Loop(it) => {
            loops.push((it.var.clone(), it.extent.clone()));
            walk(&it.body, loops, out);
            loops.pop();
        }
        Stmt::Seq(stmts) => stmts.iter().for_each(|it| walk(it, loops, out)),
        Stmt::Block(block) => block_touches(block, loops, out),
        Stmt::Store(_) => {}
    }
}

fn block_touches(block: &Block, loops: &[(Name, Index)], out: &mut Vec<Touch>) {
    let binding = |name: &Name| block.find_iter(name).map(|it| it.binding.clone());
    let reduces = block.iters.iter().filter(|it| it.kind == IterKind::Reduce);
    let first = reduces.map(|it| Less::new(it.binding.clone(), Index::int(1)));
    let first: Vec<Less> = block.guards.iter().cloned().chain(first).collect();
    let parts = block.init.iter().map(|it| (it, &first)).chain([(&block.body, &block.guards)]);
    for (part, conditions) in parts {
        part.each_store(&mut |store| {
            let mut add = |access: &Access, write: bool, chosen: &[Less]| {
                let chosen = chosen.iter().map(|it| it.subst(&binding));
                out.push(Touch {
                    block: block.name.clone(),
                    buffer: access.buffer.clone(),
                    indices: access.indices.iter().map(|it| it.subst(&binding)).collect(),
                    write,
                    loops: loops.to_vec(),
                    conditions: conditions.iter().cloned().chain(chosen).collect(),
                });
            };
            loads(&store.value, &mut Vec::new(), &mut |access, chosen| add(access, false, chosen));
            add(&store.place, true, &[]);
        });
    }
}

/// Each load with the conditions of the selections that it is the first choice of.
///
/// A second choice is taken to happen always: that its condition fails is no conjunction.
fn loads(value: &Value, chosen: &mut Vec<Less>, f: &mut dyn FnMut(&Access, &[Less])) {
    match value {
        Value::Const(_) | Value::Index(..) => {}
        Value::Load(access) => f(access, chosen),
        Value::Cast(_, a) | Value::Unary(_, a) => loads(a, chosen, f),
        Value::Binary(_, a, b) => {
            loads(a, chosen, f);
            loads(b, chosen, f);
        }
        Value::Select(cond, a, b) => {
            let outside = chosen.len();
            chosen.extend(cond.iter().cloned());
            loads(a, chosen, f);
            chosen.truncate(outside);
            loads(b, chosen, f);
        }
    }
}
