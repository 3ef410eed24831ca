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
        Stmt::Store(_) | Stmt::Instr(_) => {}
    }
}

fn block_touches(block: &Block, loops: &[(Name, Index)], out: &mut Vec<Touch>) {
    let reduces = block.iters.iter().filter(|it| it.kind == IterKind::Reduce);
    let first = reduces.map(|it| Less::new(it.binding.clone(), Index::int(1)));
    let first: Vec<Less> = block.guards.iter().cloned().chain(first).collect();
    let parts = block.init.iter().map(|it| (it, &first)).chain([(&block.body, &block.guards)]);
    let mut inside = Inside { block, loops: loops.to_vec(), renamed: Vec::new(), count: 0, out };
    for (part, conditions) in parts {
        inside.stmt(part, conditions);
    }
}

/// Goes through the body of a block.
struct Inside<'a> {
    block: &'a Block,
    loops: Vec<(Name, Index)>,
    /// The loops of the body around a statement, each with a name that no other loop has.
    renamed: Vec<(&'a Name, Name)>,
    count: usize,
    out: &'a mut Vec<Touch>,
}

impl<'a> Inside<'a> {
    /// An index over the variables of loops.
    fn resolve(&self, name: &Name) -> Option<Index> {
        let renamed = self.renamed.iter().rev().find(|it| it.0 == name).map(|it| Index::var(&it.1));
        renamed.or_else(|| self.block.find_iter(name).map(|it| it.binding.clone()))
    }

    fn stmt(&mut self, stmt: &'a Stmt, conditions: &[Less]) {
        match stmt {
            Stmt::Loop(it) => {
                self.count += 1;
                let name = Name::new(format!("{}.{}.{}", self.block.name, it.var, self.count));
                let extent = it.extent.subst(&|name| self.resolve(name));
                self.loops.push((name.clone(), extent));
                self.renamed.push((&it.var, name));
                self.stmt(&it.body, conditions);
                self.renamed.pop();
                self.loops.pop();
            }
            Stmt::Seq(stmts) => stmts.iter().for_each(|it| self.stmt(it, conditions)),
            Stmt::Block(_) | Stmt::Instr(_) => {}
            Stmt::Store(store) => {
                let mut found = Vec::new();
                let mut add = |access: &Access, write: bool, chosen: &[Less]| {
                    let with = |name: &Name| self.resolve(name);
                    let chosen = chosen.iter().map(|it| it.subst(&with));
                    found.push(Touch {
                        block: self.block.name.clone(),
                        buffer: access.buffer.clone(),
                        indices: access.indices.iter().map(|it| it.subst(&with)).collect(),
                        write,
                        loops: self.loops.clone(),
                        conditions: conditions.iter().cloned().chain(chosen).collect(),
                    });
                };
                loads(&store.value, &mut Vec::new(), &mut |access, chosen| add(access, false, chosen));
                add(&store.place, true, &[]);
                self.out.append(&mut found);
            }
        }
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
