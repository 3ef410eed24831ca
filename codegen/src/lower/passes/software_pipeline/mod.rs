//! Overlaps the iterations of loops annotated with pipeline stages.

pub(crate) mod ledger;
pub(crate) mod rings;
mod stores;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use indexmap::IndexMap;
use ir::{
    AllocScope, Arrival, Fence, Func, Group, Index, Instr, Loop, LoopKind, Mbarriers, Mechanism, Name,
    Origin, PipelineStep, SemaphoreKind, Stmt, SyncKind, ThreadAxis, Turn,
    pipeline::{COMPUTE, Emission, EmissionPoint, Hooks, Insertions, PipelinePlan, Section, expand},
};

use crate::lower::{
    Context, LowerError,
    analysis::roles,
    marks,
    passes::software_pipeline::{ledger::Over, rings::Pace},
    report::{PipelineReport, report},
};

/// ```text
/// for k in 0..8 #{software_pipeline_stage: {A_shared: 0, C: 1}, software_pipeline_order: {A_shared: 0, C: 1}}
///   A_shared[i] = A[k, i]
///   C[i] = C[i] + A_shared[i]
/// ->
/// A_shared[0, i] = A[0, i]
/// for k in 0..7
///   A_shared[(k + 1) mod 2, i] = A[k + 1, i]
///   C[i] = C[i] + A_shared[k mod 2, i]
/// C[i] = C[i] + A_shared[1, i]
/// ```
///
/// What the annotations mean, and the whole expansion, is [`ir::pipeline`]'s; this pass adds what a machine needs:
/// commits of asynchronous copies and waits for them, counted by the [`ledger`], and the new allocation scopes of buffers.
pub(crate) fn software_pipeline(func: &Func, context: &mut Context) -> Result<Func, LowerError> {
    let writes = func.body.blocks().into_iter().flat_map(|it| it.writes());
    let written = writes.map(|it| it.buffer.clone()).collect();
    let alloc_scopes = func.buffers.iter().map(|(name, it)| (name.clone(), it.alloc_scope.clone())).collect();
    let mbarriers = func.mbarriers.clone();
    let mut hooks = Lowering {
        func,
        written,
        context,
        alloc_scopes,
        mbarriers,
        drains: vec![],
        lag: 0,
        stages: vec![],
        reports: Vec::new(),
    };
    let mut out = expand(func, &mut hooks)?;
    let Lowering { alloc_scopes, mbarriers, drains, reports, .. } = hooks;
    out.mbarriers = mbarriers;
    for (outermost, stmts) in drains {
        out.replace_loop(&outermost, |it| {
            Stmt::Seq([Stmt::Loop(Arc::new(it))].into_iter().chain(stmts).collect())
        });
    }
    for (name, alloc_scope) in alloc_scopes {
        out.buffers[&name].alloc_scope = alloc_scope;
    }
    context.pipelines = reports;
    Ok(out)
}

struct Lowering<'a> {
    func: &'a Func,
    /// The buffers that the program writes.
    written: BTreeSet<Name>,
    context: &'a Context,
    /// Those of the buffers as they are now.
    alloc_scopes: IndexMap<Name, Option<AllocScope>>,
    /// Those of the rings that the copy engine fills.
    mbarriers: IndexMap<Name, Mbarriers>,
    /// What stands behind loops when their last iteration is over.
    drains: Vec<(Name, Vec<Stmt>)>,
    /// How many groups of products may be in flight when a slot is given back, in the loop with roles that is at hand.
    lag: u32,
    /// The stage and the place in a step that the script gives each component of that loop.
    stages: Vec<(i64, i64)>,
    reports: Vec<PipelineReport>,
}

impl Hooks for Lowering<'_> {
    fn is_private(&self, var: &Name, buffer: &Name) -> bool {
        self.alloc_scopes.get(buffer) == Some(&Some(AllocScope::Loop(var.clone())))
    }

    fn insertions(&mut self, plan: &PipelinePlan, emission: &Emission, around: &[&Loop]) -> Insertions {
        let outermost = around.iter().find(|it| !matches!(it.kind, LoopKind::Bound(_)));
        let last_stores = outermost.and_then(|_| stores::outlasting(self.func, plan, emission, around));
        let groups = |kind| {
            let outlasts = kind == Group::Bulk && last_stores.is_some();
            ledger::groups(kind, self.func, plan, emission, &self.written, outlasts)
        };
        let mut all: Vec<Insertions> = Group::ALL.map(groups).into();
        let end = EmissionPoint { section: Section::Epilogue, step: emission.epilogue.len(), at: 0 };
        let is_taken = |it: &Name| self.func.is_taken(it) || self.mbarriers.contains_key(it);
        let kernel = kernel_of(self.func, &plan.var);
        let compute = Name::from(COMPUTE);
        let warps = |role: Option<&Name>| roles::warps_of_one(kernel, role.unwrap_or(&compute));
        let blocks = |axis: ThreadAxis| {
            let of_axis = around.iter().find(|it| it.kind == LoopKind::Bound(axis));
            of_axis.and_then(|it| it.extent.as_int()).unwrap_or(1)
        };
        let over = ledger::over_in_step(self.func, plan, emission, &self.written);
        let lag = |reader: usize| if is_over_in_loop(emission, &over, reader) { 0 } else { self.lag.into() };
        let pace = Pace { lag: &lag, warps: &warps, blocks: &blocks };
        let rings = rings::rings(self.func, plan, &pace, &is_taken);
        all.extend(rings.iter().map(|ring| rings::insertions(ring, plan, emission, &over, around)));
        all.push(fences(plan, emission));
        all.push(turns(plan, emission, around));
        self.mbarriers.extend(rings.iter().flat_map(rings::Ring::mbarriers));
        let drain = rings.iter().flat_map(|ring| rings::drain(ring, plan, around));
        let drain: Vec<Stmt> = last_stores.into_iter().chain(drain).collect();
        match outermost {
            _ if drain.is_empty() => {}
            Some(outermost) => self.drains.push((outermost.var.clone(), behind(plan, &end, drain))),
            None => all.push(Insertions::from([(end, drain)])),
        }
        merged(all)
    }

    fn declared(&mut self, plan: &PipelinePlan, emission: &Emission) {
        self.lag = ledger::lag(self.func, plan, emission, &self.written);
        self.stages = plan.components.iter().map(|it| (it.stage, it.order)).collect();
    }

    fn expanded(&mut self, plan: &PipelinePlan, alloc_scope: Option<&Name>) {
        let declared = std::mem::take(&mut self.stages);
        self.reports.push(report(plan, &declared, self.func, self.context));
        let alloc_scope = alloc_scope.map_or(AllocScope::Program, |var| AllocScope::Loop(var.clone()));
        for buffer in plan.slots.keys() {
            self.alloc_scopes.insert(buffer.clone(), Some(alloc_scope.clone()));
        }
    }
}

/// Whether the products of a component are over in the step of the steady loop that starts them.
fn is_over_in_loop(emission: &Emission, over: &BTreeMap<EmissionPoint, Over>, component: usize) -> bool {
    let section = Section::Steady;
    let steps = emission.steady.iter().flat_map(|it| it.steps.iter().enumerate());
    let mut places = steps.flat_map(|(step, it)| it.iter().enumerate().map(move |it| (step, it)));
    places.any(|(step, (at, it))| {
        it.component == component && over.contains_key(&EmissionPoint { section, step, at })
    })
}

/// What stands behind all runs of a pipeline, which says that it belongs to the end of the last.
fn behind(plan: &PipelinePlan, end: &EmissionPoint, stmts: Vec<Stmt>) -> Vec<Stmt> {
    let (var, section, step) = (plan.var.clone(), end.section, end.step);
    let place = PipelineStep { var, section, step, component: None };
    stmts.into_iter().map(|it| marks::at(it, &Origin::default().inside(place.clone()))).collect()
}

/// The top-level statement that a loop is in, which becomes a kernel.
fn kernel_of<'a>(func: &'a Func, var: &Name) -> &'a Stmt {
    let has = |stmt: &&Stmt| {
        let mut found = false;
        stmt.walk(&mut |stmt| found |= matches!(stmt, Stmt::Loop(it) if it.var == *var));
        found
    };
    match &func.body {
        Stmt::Seq(stmts) => stmts.iter().find(has).unwrap_or(&func.body),
        stmt => stmt,
    }
}

/// The beginning and the end of a turn, if it is in turns that warpgroups run the loop: the next one begins when the last products have been
/// started, before they are over.
///
/// The rings of the loop need it, too. A wait for phase `p` of a slot asks for a parity, and so must not come while phase `p - 2` or an
/// earlier one is the last that is over. A warpgroup alone comes to the slot once for each phase, and has waited for `p - 1` itself. Of several, the one that waits for `p` need not be the
/// one that waited for `p - 1`: but that one had an earlier turn, and the phase was over before the turn was. Phase `p + 1` cannot be over
/// either, since the slot is filled again only when this warpgroup has given it back.
fn turns(plan: &PipelinePlan, emission: &Emission, around: &[&Loop]) -> Insertions {
    let outer = around.iter().rev().find(|it| !matches!(it.kind, LoopKind::Bound(_)));
    let in_turn = outer.and_then(|it| Some((*it, it.attrs.ping_pong.as_ref()?)));
    let Some((outer, ping_pong)) = in_turn.filter(|it| it.1.turns == plan.var) else {
        return Insertions::new();
    };
    let one = |kind: SemaphoreKind| {
        let (turn, count) = (Index::var(&outer.var), outer.extent.clone());
        let it = Turn { kind, of: plan.var.clone(), turn, count, members: ping_pong.members };
        vec![marks::instruction(kind.as_str(), Instr::Turn(it))]
    };
    let end = EmissionPoint { section: Section::Epilogue, step: emission.epilogue.len(), at: 0 };
    Insertions::from([
        (EmissionPoint::START, one(SemaphoreKind::Acquire)),
        (end, one(SemaphoreKind::Release)),
    ])
}

/// A fence before each run of products in a step: what the registers and slots hold by then, they are to find.
fn fences(plan: &PipelinePlan, emission: &Emission) -> Insertions {
    let products: Vec<usize> = ledger::done_by(Mechanism::Wgmma, plan).collect();
    let mut out = Insertions::new();
    let steady = emission.steady.as_ref().map_or(&[][..], |it| &it.steps);
    let sections = [
        (Section::Prologue, &*emission.prologue),
        (Section::Steady, steady),
        (Section::Epilogue, &*emission.epilogue),
    ];
    for (section, steps) in sections {
        for (step, instances) in steps.iter().enumerate() {
            let is_product = |at: usize| instances.get(at).is_some_and(|it| products.contains(&it.component));
            let starts = |at: &usize| is_product(*at) && !(*at > 0 && is_product(*at - 1));
            for at in (0..instances.len()).filter(starts) {
                let fence = marks::instruction("fence", Instr::Fence(Fence::Wgmma));
                out.insert(EmissionPoint { section, step, at }, vec![fence]);
            }
        }
    }
    out
}

/// All that goes to each place, in the order in which it has to be there: what closes groups, what waits, what goes on.
fn merged(all: Vec<Insertions>) -> Insertions {
    let mut out = Insertions::new();
    for (place, stmts) in all.into_iter().flatten() {
        out.entry(place).or_default().extend(stmts);
    }
    for it in out.values_mut() {
        it.sort_by_key(rank);
    }
    out
}

fn rank(stmt: &Stmt) -> usize {
    let Stmt::Block(block) = stmt else { return 0 };
    let Stmt::Instr(it) = &block.body else { return 0 };
    match it.sync() {
        Some(SyncKind::Commit(_)) => 0,
        Some(SyncKind::Turn(_)) => 1,
        Some(SyncKind::Wait(_)) => 2,
        Some(SyncKind::Barrier) => 3,
        Some(SyncKind::Arrive(Arrival { bytes: None, .. })) => 4,
        Some(SyncKind::Await(_)) => 5,
        Some(SyncKind::Fence(_)) => 6,
        Some(SyncKind::Arrive(_)) | None => 7,
    }
}
