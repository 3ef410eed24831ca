//! Roles of warps: who runs what of a kernel before it is cut into one program a role.

use indexmap::IndexMap;
use ir::{
    Block, Instr, Loop, LoopKind, Mechanism, Name, PingPong, Stmt, ThreadAxis, intrin, pipeline::COMPUTE,
};

/// The axis that numbers the members of a role, warpgroups that take the iterations of a loop in turn.
pub(crate) const MEMBER_AXIS: ThreadAxis = ThreadAxis::ThreadY;

/// The role of a block: the one that it names, or the rest.
pub(crate) fn role_of(block: &Block) -> Name {
    block.attrs.role.clone().unwrap_or_else(|| Name::from(COMPUTE))
}

/// The roles of a statement with the registers that each of their threads gets, the declared ones first; none if all warps do the
/// same.
pub(crate) fn roles(stmt: &Stmt) -> IndexMap<Name, Option<u32>> {
    let mut declared: IndexMap<Name, i64> = IndexMap::new();
    stmt.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt {
            declared.extend(it.attrs.roles.clone());
        }
    });
    let mut out: IndexMap<Name, Option<u32>> = IndexMap::new();
    if declared.is_empty() {
        return out;
    }
    let used: Vec<Name> = stmt.blocks().into_iter().map(role_of).collect();
    let compute = Name::from(COMPUTE);
    // Without pipelines nothing is there to order them by.
    if declared.keys().any(|it| *it != compute && !is_one_thread(stmt, it)) {
        return out;
    }
    let all = declared.keys().filter(|it| **it != compute).chain([&compute]);
    for name in all.filter(|it| used.contains(it)) {
        let registers = declared.get(name).copied().and_then(|it| u32::try_from(it).ok());
        out.insert(name.clone(), registers.filter(|it| *it > 0));
    }
    out
}

/// Whether a role only starts copies, or products into tensor memory, which one thread does.
pub(crate) fn is_one_thread(stmt: &Stmt, role: &Name) -> bool {
    let is_copy = |it: &Block| {
        let orders =
            matches!(&it.body, Stmt::Instr(it) if matches!(**it, Instr::Await(_) | Instr::Arrive(_)));
        orders || matches!(it.attrs.mechanism, Some(Mechanism::Tma | Mechanism::Tcgen05))
    };
    stmt.blocks().into_iter().filter(|it| role_of(it) == *role).all(is_copy)
}

/// The thread axes of a role: as wide as the widest loop that is bound to them around what it runs.
pub(crate) fn axes(stmt: &Stmt, role: &Name, has_registers: bool) -> IndexMap<ThreadAxis, i64> {
    let mut out = IndexMap::new();
    if is_one_thread(stmt, role) {
        // Registers are given to whole warpgroups.
        let threads = if has_registers { intrin::WARPGROUP } else { intrin::WARP };
        out.insert(ThreadAxis::ThreadX, threads);
        return out;
    }
    stmt.walk(&mut |stmt| {
        let Stmt::Loop(it) = stmt else { return };
        if let Some(it) = &it.attrs.ping_pong {
            out.insert(MEMBER_AXIS, it.members);
        }
        let LoopKind::Bound(axis) = it.kind else { return };
        let runs = it.body.blocks().into_iter().any(|it| role_of(it) == *role);
        if let (true, true, Some(extent)) = (axis.is_thread(), runs, it.extent.as_int()) {
            let known = out.entry(axis).or_insert(extent);
            *known = extent.max(*known);
        }
    });
    for block in stmt.blocks().into_iter().filter(|it| role_of(it) == *role) {
        if let Some(intrinsic) = block.attrs.tensorize {
            let known = out.entry(ThreadAxis::ThreadX).or_insert(1);
            *known = intrinsic.lanes().max(*known);
        }
    }
    out.sort_keys();
    out
}

/// How many warps of a role run one iteration of the loops in it: all, or those of one of its members.
pub(crate) fn warps_of_one(stmt: &Stmt, role: &Name) -> i64 {
    let axes = axes(stmt, role, false);
    let is_one = |axis: ThreadAxis| axis != MEMBER_AXIS || ping_pong(stmt).is_none();
    let threads = axes.iter().filter(|it| is_one(*it.0)).fold(1, |out: i64, it| out.saturating_mul(*it.1));
    threads.saturating_add(intrin::WARP - 1) / intrin::WARP
}

/// The loop whose iterations the members of a role take in turn, if there is one.
pub(crate) fn ping_pong(stmt: &Stmt) -> Option<(&Loop, &PingPong)> {
    let mut found = None;
    stmt.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt
            && let Some(ping_pong) = &it.attrs.ping_pong
        {
            found.get_or_insert((&**it, ping_pong));
        }
    });
    found
}

/// What a role runs of a statement, with the loops around it; nothing where it runs nothing. A role of one thread is under no loop
/// over threads.
pub(crate) fn slice(stmt: &Stmt, role: &Name, one_thread: bool) -> Option<Stmt> {
    match stmt {
        Stmt::Loop(it) => {
            let body = slice(&it.body, role, one_thread)?;
            if one_thread && matches!(it.kind, LoopKind::Bound(axis) if axis.is_thread()) {
                let zero = |name: &Name| (*name == it.var).then(|| ir::Index::int(0));
                return Some(body.subst(&zero));
            }
            Some(Stmt::Loop(std::sync::Arc::new(Loop { body, ..Loop::clone(it) })))
        }
        Stmt::Seq(stmts) => {
            let kept: Vec<_> = stmts.iter().filter_map(|it| slice(it, role, one_thread)).collect();
            (!kept.is_empty()).then(|| Stmt::seq(kept))
        }
        Stmt::Block(it) => (role_of(it) == *role).then(|| stmt.clone()),
        Stmt::Store(_) | Stmt::Instr(_) => Some(stmt.clone()),
    }
}
