//! Lifetimes of temporaries that several pipelines use.

use std::sync::Arc;

use super::{STAGE, private::private};
use crate::{Access, Func, Loop, Name, Stmt, region::Nest};

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
pub fn split_lifetimes(mut func: Func) -> Func {
    let is_pipeline = |it: &&Loop| it.annotations.contains_key(STAGE);
    let vars: Vec<Name> = func.loops().into_iter().filter(is_pipeline).map(|it| it.var.clone()).collect();
    for var in vars {
        let Some(it) = func.find_loop(&var) else { continue };
        let shared: Vec<Name> =
            private(&func, it).into_iter().filter(|it| is_used_outside(&func, &var, it)).collect();
        for buffer in shared {
            let Some(info) = func.buffers.get(&buffer).cloned() else { continue };
            let fresh = Name::fresh(buffer.as_str(), |it| func.is_taken(it));
            func.buffers.insert(fresh.clone(), info);
            rename_inside(&mut func, &var, &buffer, &fresh);
        }
    }
    func
}

fn is_used_outside(func: &Func, var: &Name, buffer: &Name) -> bool {
    let is_inside = |nest: &Nest<'_>| nest.loops.iter().any(|it| it.var == *var);
    Nest::all(func).iter().any(|it| it.uses(buffer) && !is_inside(it))
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
