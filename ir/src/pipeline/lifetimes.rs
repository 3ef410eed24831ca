//! Lifetimes of temporaries that several pipelines use.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{is_pipeline, private::shared_in_name};
use crate::{Access, Func, Loop, Name, Stmt};

/// Gives each pipeline its own of the temporaries that it shares with the rest of the program in name only.
///
/// ```text
/// for i in 0..8 #{software_pipeline_stage: …} { B = A[i]; C[i] = B }
/// for j in 0..8 #{software_pipeline_stage: …} { B = C[j]; D[j] = B }
/// ->
/// for i in 0..8 { B_1 = A[i]; C[i] = B_1 }
/// for j in 0..8 { B = C[j]; D[j] = B }
/// ```
///
/// Two pipelines may need different numbers of slots, and what is around a pipeline needs none.
#[must_use]
pub fn split_lifetimes(func: Func) -> Func {
    split(func).0
}

/// The same, with the names that the new buffers had.
pub(super) fn split(mut func: Func) -> (Func, BTreeMap<Name, Name>) {
    let mut origins = BTreeMap::new();
    let pipelines = func.loops().into_iter().filter(|it| is_pipeline(it));
    let vars: Vec<Name> = pipelines.map(|it| it.var.clone()).collect();
    // What one pipeline gets may leave another alone with the rest.
    while let Some((var, buffer)) =
        vars.iter().find_map(|var| Some((var, shared_in_name(&func, func.find_loop(var)?)?)))
    {
        let Some(info) = func.buffers.get(&buffer).cloned() else { break };
        let fresh = Name::fresh(buffer.as_str(), |it| func.is_taken(it));
        func.buffers.insert(fresh.clone(), info);
        rename_inside(&mut func, var, &buffer, &fresh);
        let origin = origins.get(&buffer).unwrap_or(&buffer).clone();
        origins.insert(fresh, origin);
    }
    (func, origins)
}

/// The buffers that blocks outside a loop use.
pub(super) fn used_outside<'a>(func: &'a Func, var: &Name) -> BTreeSet<&'a Name> {
    fn collect<'a>(stmt: &'a Stmt, var: &Name, out: &mut BTreeSet<&'a Name>) {
        match stmt {
            Stmt::Loop(it) if it.var == *var => {}
            Stmt::Block(_) => stmt.each_access(&mut |access, _| {
                out.insert(&access.buffer);
            }),
            _ => stmt.children().for_each(|it| collect(it, var, out)),
        }
    }
    let mut out = BTreeSet::new();
    collect(&func.body, var, &mut out);
    out
}

fn rename_inside(func: &mut Func, var: &Name, from: &Name, to: &Name) {
    let renamed = |it: &Access| {
        let buffer = if it.buffer == *from { to } else { &it.buffer };
        Access { buffer: buffer.clone(), ..it.clone() }
    };
    func.replace_loop(var, |it| {
        let body = it.body.map_accesses(&mut |access| renamed(access));
        Stmt::Loop(Arc::new(Loop { body, ..it }))
    });
}
