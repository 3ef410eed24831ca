//! Going through small programs, iteration by iteration.

use std::collections::BTreeMap;

use crate::{
    Func, Less, Loop, Name, Stmt,
    access::{FuncAccess, accesses_of},
    region::Nest,
};

/// The most runs of blocks that are gone through.
const MAX_RUNS: i64 = 20_000;

/// The values of loop variables.
pub(super) type Values = BTreeMap<Name, i64>;

/// Whether the loops around blocks have known extents that are few enough to be gone through.
pub(super) fn few_runs(func: &Func, blocks: &[&Nest<'_>]) -> bool {
    // A loop that never runs may be in one that often does.
    let extent = |it: &&Loop| it.extent.as_int().map(|it| it.max(1));
    let runs =
        |nest: &&Nest<'_>| nest.loops.iter().map(extent).try_fold(1_i64, |all, it| all.checked_mul(it?));
    let all = blocks.iter().map(runs).try_fold(0_i64, |all, it| all.checked_add(it?));
    func.dims.is_empty() && all.is_some_and(|it| it <= MAX_RUNS)
}

/// Calls `f` for each iteration of nested loops of constant extents until it says no; whether it never did.
pub(super) fn each_point(loops: &[&Loop], values: &mut Values, f: &mut dyn FnMut(&Values) -> bool) -> bool {
    let [first, rest @ ..] = loops else { return f(values) };
    let extent = first.extent.as_int().expect("`few_runs` has seen that it is constant");
    (0..extent).all(|value| {
        values.insert(first.var.clone(), value);
        each_point(rest, values, f)
    })
}

/// Calls `f` with each access to a buffer and its element, in the order in which they happen, until it says no. Whether it
/// never did, and everything could be gone through.
pub(super) fn walk(
    stmt: &Stmt,
    buffer: &Name,
    values: &mut Values,
    f: &mut dyn FnMut(&FuncAccess<'_>, Vec<i64>) -> bool,
) -> bool {
    let users = stmt.blocks().into_iter().map(|block| {
        let all = accesses_of(block).into_iter().filter(|it| it.buffer == buffer);
        (&block.name, all.collect())
    });
    Walk { accesses: users.collect(), f }.stmt(stmt, values)
}

struct Walk<'a> {
    /// Those of each block.
    accesses: BTreeMap<&'a Name, Vec<FuncAccess<'a>>>,
    f: &'a mut dyn FnMut(&FuncAccess<'_>, Vec<i64>) -> bool,
}

impl Walk<'_> {
    fn stmt(&mut self, stmt: &Stmt, values: &mut Values) -> bool {
        match stmt {
            Stmt::Loop(it) => {
                // What does not touch the buffer is not gone through.
                if it.body.blocks().iter().all(|block| self.accesses[&block.name].is_empty()) {
                    return true;
                }
                let extent = it.extent.eval(&|name| values.get(name).copied());
                extent.is_some_and(|extent| {
                    (0..extent).all(|value| {
                        values.insert(it.var.clone(), value);
                        self.stmt(&it.body, values)
                    })
                })
            }
            Stmt::Seq(stmts) => stmts.iter().all(|it| self.stmt(it, values)),
            Stmt::Block(block) => self.block(&block.name, values),
            Stmt::Store(_) => true,
            Stmt::Instr(_) => false,
        }
    }

    fn block(&mut self, block: &Name, values: &Values) -> bool {
        self.accesses[block].iter().all(|access| {
            // Loops in the body of a block are not gone through.
            if !access.loops.is_empty() {
                return false;
            }
            let value = |name: &Name| values.get(name).copied();
            let holds = |it: &Less| Some(it.lhs.eval(&value)? < it.rhs.eval(&value)?);
            match access.conditions().map(holds).collect::<Option<Vec<_>>>() {
                None => false,
                Some(all) if all.contains(&false) => true,
                Some(_) => {
                    let place = access.indices.iter().map(|it| it.eval(&value)).collect::<Option<Vec<_>>>();
                    place.is_some_and(|place| (self.f)(access, place))
                }
            }
        })
    }
}
