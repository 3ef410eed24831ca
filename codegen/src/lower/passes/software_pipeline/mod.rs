//! Overlaps the iterations of loops annotated with pipeline stages.

pub(crate) mod ledger;

use std::collections::BTreeSet;

use indexmap::IndexMap;
use ir::{
    AllocScope, Func, Name,
    pipeline::{Emission, Hooks, Insertions, PipelinePlan, expand},
};

use crate::lower::{
    Context, LowerError,
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
    let mut hooks = Lowering { func, written, context, alloc_scopes, reports: Vec::new() };
    let mut out = expand(func, &mut hooks)?;
    let Lowering { alloc_scopes, reports, .. } = hooks;
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
    reports: Vec<PipelineReport>,
}

impl Hooks for Lowering<'_> {
    fn is_private(&self, var: &Name, buffer: &Name) -> bool {
        self.alloc_scopes.get(buffer) == Some(&Some(AllocScope::Loop(var.clone())))
    }

    fn insertions(&mut self, plan: &PipelinePlan, emission: &Emission) -> Insertions {
        ledger::marks(plan, emission, &ledger::copies(plan), &self.written)
    }

    fn expanded(&mut self, plan: &PipelinePlan, alloc_scope: Option<&Name>) {
        self.reports.push(report(plan, self.func, self.context));
        let alloc_scope = alloc_scope.map_or(AllocScope::Program, |var| AllocScope::Loop(var.clone()));
        for buffer in plan.slots.keys() {
            self.alloc_scopes.insert(buffer.clone(), Some(alloc_scope.clone()));
        }
    }
}
