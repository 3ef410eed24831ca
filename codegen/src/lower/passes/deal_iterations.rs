//! Deals the iterations of persistent loops to the blocks of a grid that is as large as the machine, and those of a block to warpgroups.

use std::sync::Arc;

use ir::{
    Access, AllocScope, Feature, Func, Index, Loop, LoopAttrs, LoopKind, Name, PingPong, Scope, Stmt,
    StorageAlign, Target, ThreadAxis, intrin,
    pipeline::{COMPUTE, is_pipeline},
};

use crate::lower::{LowerError, analysis::roles};

/// ```text
/// for tile in 0..512 @blockIdx.x #{persistent: 132}
///   s(tile)
/// ->
/// for tile_cta in 0..132 @blockIdx.x
///   for tile_wave in 0..(643 - tile_cta) floordiv 132 #{independent: 1}
///     s(tile_wave*132 + tile_cta)
/// ```
///
/// A block runs every so many iterations, one after the other, and none where there are fewer than blocks. Iterations of a loop over blocks
/// do not meet in global memory, as `check_races` has proved; that the waves do not either is noted on their loop, since subscripts
/// no longer show it.
///
/// Where warpgroups are to take the waves in turn, that stays noted on the loop until `lower_blocks` knows which of them run it. Here
/// each of them gets memory of its own: shared memory that lives in an iteration has a copy a warpgroup, that of wave `w` being `w mod members`.
///
/// # Errors
/// If another loop of the kernel is bound to the same axis: an iteration of it would run in another block than the iteration of the dealt
/// loop that it may exchange data with. If warpgroups are to take turns, and cannot.
pub(crate) fn deal_iterations(mut func: Func, target: &Target) -> Result<Func, LowerError> {
    without_idle_turns(&mut func, target);
    if *target == Target::Cpu {
        return Ok(func);
    }
    let persistent = |it: &&Loop| it.attrs.persistent.is_some();
    let dealt: Vec<Name> = func.loops().into_iter().filter(persistent).map(|it| it.var.clone()).collect();
    for var in dealt {
        if let Some(other) = beside(&func, &var) {
            return Err(LowerError::GridShared { var, other });
        }
        expect_turns(&func, &var)?;
        let fresh = |stem: &str| Name::fresh(&format!("{var}_{stem}"), |it| func.is_taken(it));
        let (cta, wave) = (fresh("cta"), fresh("wave"));
        for buffer in func.buffers.values_mut() {
            if buffer.alloc_scope == Some(AllocScope::Loop(var.clone())) {
                buffer.alloc_scope = Some(AllocScope::Loop(wave.clone()));
            }
        }
        func.replace_loop(&var, |old| dealt_to_blocks(&old, &cta, &wave));
        go_on_across(&mut func, &var, &wave);
        func = with_own_memory(func, &wave);
    }
    claimed(func, target)
}

/// ```text
/// for tile in 0..512 @blockIdx.x #{cluster_launch_control: 1}
///   s(tile)
/// ->
/// for tile in 0..512 @blockIdx.x #{cluster_launch_control: 1}
///   for tile_wave in 0..tile_claims #{independent: 1}
///     s(tile)
/// ```
///
/// The same of loops whose iterations the GPU deals out: nobody knows before how many a block has, which is a symbolic dimension of its own until
/// `lower_blocks` lets them find out.
fn claimed(mut func: Func, target: &Target) -> Result<Func, LowerError> {
    let claims = |it: &&Loop| it.attrs.claims;
    let dealt: Vec<Name> = func.loops().into_iter().filter(claims).map(|it| it.var.clone()).collect();
    for var in dealt {
        if let Some(other) = beside(&func, &var) {
            return Err(LowerError::GridShared { var, other });
        }
        expect_claims(&func, &var, target)?;
        let fresh = |stem: &str| Name::fresh(&format!("{var}_{stem}"), |it| func.is_taken(it));
        let (count, wave) = (fresh("claims"), fresh("wave"));
        for buffer in func.buffers.values_mut() {
            if buffer.alloc_scope == Some(AllocScope::Loop(var.clone())) {
                buffer.alloc_scope = Some(AllocScope::Loop(wave.clone()));
            }
        }
        func.replace_loop(&var, |old| {
            let attrs = LoopAttrs { is_independent: true, ..LoopAttrs::default() };
            let (body, extent) = (old.body, Index::var(&count));
            let inner = Loop { var: wave.clone(), extent, kind: LoopKind::Serial, attrs, body };
            Stmt::Loop(Arc::new(Loop { body: Stmt::Loop(Arc::new(inner)), ..old }))
        });
        func.dims.push(count);
    }
    Ok(func)
}

/// Refuses loops whose iterations blocks cannot take over.
fn expect_claims(func: &Func, var: &Name, target: &Target) -> Result<(), LowerError> {
    let refuse = |why: String, help| Err(LowerError::NotClaimed { var: var.clone(), why, help });
    if let Target::Cuda(arch) = target
        && !arch.has(Feature::ClusterLaunchControl)
    {
        let least = Feature::ClusterLaunchControl.least_sm();
        return refuse(format!("that needs sm_{least} or later, and the target is {arch}"), CLAIM_LATER);
    }
    let path = func.path_to_loop(var).expect("it has been found");
    let kernel = of(path.first().expect("the path ends with it"));
    if roles::roles(&kernel).is_empty() {
        return refuse("its warps have no roles, and nobody has time to ask".to_owned(), CLAIM_ROLES);
    }
    let mut found = Ok(());
    func.find_loop(var).expect("it has been found").body.walk(&mut |stmt| {
        let Stmt::Loop(it) = stmt else { return };
        let goes_on = it.attrs.pipeline.as_ref().is_some_and(|it| it.across.as_ref() == Some(var));
        let why = match () {
            () if goes_on => {
                format!("the pipeline of loop `{}` goes on from each iteration to the next", it.var)
            }
            () if it.extent.any_var(&|name| name == var) => {
                format!("how often loop `{}` runs depends on its iteration", it.var)
            }
            () => return,
        };
        if found.is_ok() {
            found = refuse(why, CLAIM_STATIC);
        }
    });
    found
}

const CLAIM_LATER: &str =
    "deal the iterations to a grid of a fixed size by `persistent`, or choose a later target by `--target`";
const CLAIM_ROLES: &str =
    "give roles to the warps of the loop by `warp_specialize`, or deal the iterations out by `persistent`";
const CLAIM_STATIC: &str = "deal the iterations to a grid of a fixed size by `persistent`";

/// Pipelines that go on through the iterations of a loop go on through those that one block has of it.
fn go_on_across(func: &mut Func, var: &Name, wave: &Name) {
    func.body.walk_mut(&mut |stmt| {
        if let Stmt::Loop(it) = stmt
            && it.attrs.pipeline.as_ref().is_some_and(|it| it.across.as_ref() == Some(var))
        {
            Arc::make_mut(it).attrs.pipeline_mut().across = Some(wave.clone());
        }
        true
    });
}

/// Takes turns from loops whose iterations nobody has several of, and from kernels all of whose warps do the same.
fn without_idle_turns(func: &mut Func, target: &Target) {
    let has_roles = |it: &Loop| {
        let path = func.path_to_loop(&it.var);
        path.and_then(|it| it.first().copied()).is_some_and(|it| !roles::roles(&of(it)).is_empty())
    };
    let in_turn = func.loops().into_iter().filter(|it| it.attrs.ping_pong.is_some());
    let is_idle = |it: &&Loop| *target == Target::Cpu || it.attrs.persistent.is_none() || !has_roles(it);
    let idle: Vec<Name> = in_turn.filter(is_idle).map(|it| it.var.clone()).collect();
    for var in idle {
        func.replace_loop(&var, |mut old| {
            old.attrs.ping_pong = None;
            of(&old)
        });
    }
}

fn of(it: &Loop) -> Stmt {
    Stmt::Loop(Arc::new(it.clone()))
}

/// Refuses a loop that warpgroups are to take in turn, where later steps of its schedule have taken away what that needs.
fn expect_turns(func: &Func, var: &Name) -> Result<(), LowerError> {
    let ping_pong = func.find_loop(var).and_then(|it| it.attrs.ping_pong.as_ref());
    let Some(PingPong { turns, .. }) = ping_pong else { return Ok(()) };
    let refuse =
        |other: &Name, why| Err(LowerError::NotInTurn { var: var.clone(), other: other.clone(), why });
    // A block of a cluster runs one iteration of a loop over those.
    let is_block = |it: &&Loop| matches!(it.kind, LoopKind::Bound(axis) if axis.is_cluster());
    let is_inside = func.path_to_loop(turns).is_some_and(|path| {
        let is_pipelined = path.last().is_some_and(|it| is_pipeline(it));
        let mut around = path.into_iter().rev().skip(1).skip_while(is_block);
        is_pipelined && around.next().is_some_and(|it| it.var == *var)
    });
    if !is_inside {
        return refuse(turns, "is not pipelined directly inside");
    }
    let kernel = func.path_to_loop(var).and_then(|it| it.first().copied()).expect("it has been found");
    let mut found = Ok(());
    of(kernel).walk(&mut |stmt| {
        let Stmt::Loop(it) = stmt else { return };
        let bad = match it.kind {
            LoopKind::Bound(ThreadAxis::ThreadY | ThreadAxis::ThreadZ) => {
                "is bound to an axis that numbers them"
            }
            LoopKind::Bound(ThreadAxis::ThreadX) if it.extent.as_int() != Some(intrin::WARPGROUP) => {
                "is bound to threadIdx.x, and has other iterations than a warpgroup has threads"
            }
            _ => return,
        };
        if found.is_ok() {
            found = refuse(&it.var, bad);
        }
    });
    found?;
    let threads = roles::axes(&of(kernel), &Name::from(COMPUTE), false);
    match threads.get(&ThreadAxis::ThreadX) {
        Some(&intrin::WARPGROUP) => Ok(()),
        _ => refuse(turns, "is not run by the 128 threads of one"),
    }
}

/// Another loop of the kernel of a loop that is bound to its axis.
fn beside(func: &Func, var: &Name) -> Option<Name> {
    let path = func.path_to_loop(var)?;
    let (kernel, dealt) = (path.first()?, path.last()?);
    let mut found = None;
    kernel.body.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt
            && it.kind == dealt.kind
            && it.var != *var
        {
            found.get_or_insert_with(|| it.var.clone());
        }
    });
    found
}

fn dealt_to_blocks(old: &Loop, cta: &Name, wave: &Name) -> Stmt {
    let most = old.attrs.persistent.expect("only such loops are dealt");
    // Blocks without work are not launched where it is known how much there is.
    let blocks = old.extent.as_int().map_or(most, |it| it.clamp(1, most));
    let ping_pong = old.attrs.ping_pong.clone();
    let own = LoopAttrs { is_independent: true, ping_pong, ..LoopAttrs::default() };
    let attrs = LoopAttrs { persistent: None, ping_pong: None, ..old.attrs.clone() };
    let takers =
        Loop { var: cta.clone(), extent: Index::int(blocks), kind: old.kind, attrs, body: Stmt::Seq(vec![]) };
    dealt(old, takers, wave, own)
}

/// The iterations of a loop dealt out to those of another, each of which has a loop over its own.
fn dealt(old: &Loop, takers: Loop, own: &Name, attrs: LoopAttrs) -> Stmt {
    let count = takers.extent.as_int().expect("there are so many");
    let taker = Index::var(&takers.var);
    // Nobody sees any more that an only iteration is the first one.
    let is_only = old.extent.as_int() == Some(1);
    let iteration = if is_only { Index::int(0) } else { Index::var(own) * count + taker.clone() };
    let body = old.body.subst(&|name| (*name == old.var).then(|| iteration.clone()));
    let extent = (&old.extent + (count - 1) - taker).floor_div(&Index::int(count));
    let inner = Loop { var: own.clone(), extent, kind: LoopKind::Serial, attrs, body };
    Stmt::Loop(Arc::new(Loop { body: Stmt::Loop(Arc::new(inner)), ..takers }))
}

/// The program with a copy of shared memory for each warpgroup that takes iterations of a loop, where each iteration has its own.
fn with_own_memory(mut func: Func, wave: &Name) -> Func {
    let ping_pong = func.find_loop(wave).and_then(|it| it.attrs.ping_pong.as_ref());
    let Some(members) = ping_pong.map(|it| it.members) else { return func };
    let (mut inside, mut written) = (vec![], vec![]);
    let body = &func.find_loop(wave).expect("it has just been found").body;
    body.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt {
            inside.push(it.var.clone());
        }
    });
    inside.push(wave.clone());
    for block in body.blocks().into_iter().filter(|it| roles::role_of(it).as_str() == COMPUTE) {
        written.extend(block.writes().into_iter().map(|it| it.buffer.clone()));
    }
    let is_own = |name: &Name| {
        let it = &func.buffers[name];
        let lives_inside = matches!(&it.alloc_scope, Some(AllocScope::Loop(at)) if inside.contains(at));
        it.scope == Scope::Shared && lives_inside && written.contains(name)
    };
    let own: Vec<Name> = func.buffers.keys().filter(|it| is_own(it)).cloned().collect();
    for name in &own {
        let buffer = &mut func.buffers[name];
        buffer.shape.insert(0, Index::int(members));
        let moved = buffer.layout.align.iter().map(|it| StorageAlign { axis: it.axis + 1, ..*it });
        buffer.layout.align = moved.collect();
    }
    let which = Index::var(wave).floor_mod(&Index::int(members));
    func.body = func.body.map_accesses(&mut |it| {
        let first = own.contains(&it.buffer).then(|| which.clone());
        Access { indices: first.into_iter().chain(it.indices.iter().cloned()).collect(), ..it.clone() }
    });
    func
}

/// What the members of a role run of a statement: in a loop that they take in turn, each of them its own iterations.
///
/// ```text
/// for tile_wave in 0..8 #{ping_pong: {ko: 2}, independent: 1}
///   s(tile_wave)
/// ->
/// for tile_member in 0..2 @threadIdx.y
///   for tile_wave in 0..(9 - tile_member) floordiv 2 #{ping_pong: {ko: 2}, independent: 1}
///     s(tile_wave*2 + tile_member)
/// ```
pub(crate) fn to_members(func: &Func, mut stmt: Stmt) -> Stmt {
    stmt.walk_mut(&mut |stmt| {
        let Stmt::Loop(it) = stmt else { return true };
        let Some(ping_pong) = &it.attrs.ping_pong else { return true };
        let var = Name::fresh(&format!("{}_member", it.var), |it| func.is_taken(it));
        let takers = Loop {
            var,
            extent: Index::int(ping_pong.members),
            kind: LoopKind::Bound(roles::MEMBER_AXIS),
            attrs: LoopAttrs::default(),
            body: Stmt::Seq(vec![]),
        };
        *stmt = dealt(it, takers, &it.var, it.attrs.clone());
        false
    });
    stmt
}
