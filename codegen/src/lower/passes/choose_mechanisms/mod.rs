//! Chooses how the asynchronous stages of pipelined loops copy.

pub(crate) mod cp_async;
pub(crate) mod question;
pub(crate) mod register_staged;
pub(crate) mod tma;

use ir::{
    Feature, ForcedMechanism, Func, Loop, Mechanism, Name, Stmt, Target,
    intrin::Instruction,
    pipeline::{NamedComponent, PipelineError, STAGE, components_of, is_asynchronous, is_pipeline, numbers},
};

use question::{Component, Obstacle, Question};

use crate::lower::{Context, LowerError, MechanismChoice, analysis::pairs};

/// For each component of an asynchronous stage, takes the first mechanism of [`CANDIDATES`] that can do it, or the one
/// that the script forces, and rewrites the component for it.
///
/// ```text
/// for k in 0..8 #{software_pipeline_stage: {A_shared: 0, C: 1}, …, software_pipeline_async_stages: [0]}
///   block A_shared(vk: 8 = k, v: 32 = t)
///     A_shared[v] = A[vk, v]
///   block C(vk: 8 = k, v: 32 = t)
///     C[vk, v] = A_shared[v]
/// -> (cp_async)
///   block A_shared(vk: 8 = k, v: 32 = t) #{asynchronous: "cp_async"}
/// ```
///
/// A loop without both stages and orders is no pipeline and is left alone, and so is one whose annotations make no
/// sense: `software_pipeline` says why. What was chosen, and why, goes to the context.
pub(crate) fn choose_mechanisms(mut func: Func, context: &mut Context) -> Result<Func, LowerError> {
    let loops: Vec<_> = func.loops().iter().map(|it| it.var.clone()).collect();
    for var in loops {
        let Some(around) = func.path_to_loop(&var) else { continue };
        let Some(components) = around.last().and_then(|it| components(it)) else { continue };
        let choices = decide(&func, &context.target, &around, &components)?;
        for (at, mut choice) in choices {
            let name = &components[at].name;
            if matches!(choice.mechanism, Mechanism::Wgmma | Mechanism::Tcgen05) {
                cp_async::mark_as(choice.mechanism, &mut func, &var, name);
            }
            let candidate = CANDIDATES.iter().find(|it| it.mechanism == choice.mechanism);
            if let Some(added) = candidate.and_then(|it| (it.rewrite)(&mut func, &var, name)) {
                let reason = format!("It holds what `{name}` stores.");
                context.mechanisms.insert((var.clone(), added), MechanismChoice { reason, ..choice.clone() });
            }
            if let Some(axis) = func.find_block(name).and_then(|it| it.attrs.multicast) {
                let part = if components.iter().any(|it| pairs::has_pairs(&it.body)) {
                    "Each block of the pair copies and keeps half of it.".to_owned()
                } else {
                    format!("Each block of the cluster along {} copies a part for all.", axis.as_str())
                };
                choice.reason = format!("{} {part}", choice.reason);
            }
            context.mechanisms.insert((var.clone(), name.clone()), choice);
        }
    }
    if context.target != Target::Cpu {
        pairs::expect_pairs(&func)?;
    }
    Ok(func)
}

/// A way to copy.
struct Candidate {
    mechanism: Mechanism,
    /// Why it can do a component (a clause), or why not.
    judge: fn(&Question<'_>) -> Result<String, Obstacle>,
    /// Rewrites the component of a loop for it, both by name; answers with the component that it adds, if it does.
    rewrite: fn(&mut Func, &Name, &Name) -> Option<Name>,
}

/// The mechanisms in the order they are tried.
const CANDIDATES: [Candidate; 4] = [
    Candidate { mechanism: Mechanism::Tma, judge: tma::judge, rewrite: tma::rewrite },
    Candidate { mechanism: Mechanism::CpAsync, judge: cp_async::judge, rewrite: cp_async::mark },
    Candidate {
        mechanism: Mechanism::RegisterStaged,
        judge: register_staged::judge,
        rewrite: register_staged::stage_through_registers,
    },
    Candidate {
        mechanism: Mechanism::Synchronous,
        judge: |_| Ok("it is copied in its place".to_owned()),
        rewrite: |_, _, _| None,
    },
];

/// The components of a pipeline; nothing for other loops.
fn components(it: &Loop) -> Option<Vec<Component>> {
    if !is_pipeline(it) {
        return None;
    }
    let stages = numbers(it, STAGE).ok()?;
    let slots = components_of(it, &stages);
    let component = |(slot, (name, &stage)): (NamedComponent<'_>, (&Name, &i64))| {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        slot.stmt.each_store(&mut |store| {
            writes.push(store.place.buffer.clone());
            store.value.each_load(&mut |access| reads.push(access.buffer.clone()));
        });
        writes.dedup();
        Component { name: name.clone(), body: slot.stmt.clone(), stage, writes, reads }
    };
    Some(slots.into_iter().zip(&stages).map(component).collect())
}

/// The mechanism of each component of an asynchronous stage, by its place.
fn decide(
    func: &Func,
    target: &Target,
    around: &[&Loop],
    all: &[Component],
) -> Result<Vec<(usize, MechanismChoice)>, LowerError> {
    let Some(it) = around.last() else { return Ok(vec![]) };
    let forced = it.attrs.pipeline.as_ref().and_then(|it| it.mechanism.as_ref());
    let mut out = Vec::new();
    for (at, component) in all.iter().enumerate() {
        let names: Vec<_> = component.body.blocks().into_iter().map(|it| it.name.clone()).collect();
        let role = component.body.blocks().into_iter().find_map(|it| it.attrs.role.clone());
        let role = role.filter(|_| *target != Target::Cpu);
        let own = forced.and_then(|it| it.of(&names));
        if let Some((mechanism, reason)) = products(component, target) {
            out.push((at, MechanismChoice { mechanism, reason: reason.to_owned(), is_forced: false }));
        } else if is_asynchronous(it, component.stage, &names) {
            let is_forced = own.is_some() || role.is_some();
            let question = Question { func, target, around, component, is_forced, all };
            let choice = match &role {
                Some(role) => of_role(&question, role, own)?,
                None => choose(&question, own)?,
            };
            out.push((at, choice));
        } else if let (Some(ForcedMechanism::Each(_)), Some(mechanism)) = (forced, own) {
            let (name, component) = (it.var.clone(), component.name.clone());
            let reason = "its stage does not copy asynchronously".to_owned();
            let change = "name its stage in `software_pipeline_async_stages`, or leave its mechanism out";
            return Err(PipelineError::Mechanism { name, component, mechanism, reason, change }.into());
        }
    }
    Ok(out)
}

/// How a component is done, and why, if it is products that nobody waits for at once.
fn products(component: &Component, target: &Target) -> Option<(Mechanism, &'static str)> {
    let mechanism = |it: &&ir::Block| match it.attrs.tensorize.map(|it| it.instruction) {
        Some(Instruction::Wgmma { .. }) => {
            Some((Mechanism::Wgmma, "The warpgroup goes on while it multiplies."))
        }
        Some(Instruction::Tcgen05(_)) => Some((
            Mechanism::Tcgen05,
            "One thread starts the products, and all go on while the tensor core multiplies.",
        )),
        Some(Instruction::TensorCopy) => {
            Some((Mechanism::Tcgen05, "The tensor core copies, in turn with its products."))
        }
        _ => None,
    };
    let blocks = component.body.blocks();
    let found = blocks.first().filter(|_| *target != Target::Cpu).and_then(mechanism)?;
    blocks.iter().all(|it| mechanism(it) == Some(found)).then_some(found)
}

/// What a role of its own does: it only starts copies of the copy engine, so another mechanism is refused.
fn of_role(
    question: &Question<'_>,
    role: &Name,
    forced: Option<Mechanism>,
) -> Result<MechanismChoice, LowerError> {
    let starts = format!("the warps of role `{role}` only start copies of the copy engine");
    if let (Some(mechanism), Some(it)) = (forced.filter(|it| *it != Mechanism::Tma), question.around.last()) {
        let (name, component) = (it.var.clone(), question.component.name.clone());
        let change = "force `tma`, or leave the mechanism open";
        return Err(PipelineError::Mechanism { name, component, mechanism, reason: starts, change }.into());
    }
    match choose(question, Some(Mechanism::Tma)) {
        Ok(it) => Ok(MechanismChoice { is_forced: forced.is_some(), ..it }),
        Err(LowerError::Pipeline(PipelineError::Mechanism {
            name,
            component,
            mechanism,
            reason,
            change,
        })) => {
            let reason = format!("{reason}, and {starts}");
            Err(PipelineError::Mechanism { name, component, mechanism, reason, change }.into())
        }
        Err(other) => Err(other),
    }
}

/// The first candidate that can do it, or the forced one.
fn choose(question: &Question<'_>, forced: Option<Mechanism>) -> Result<MechanismChoice, LowerError> {
    let mut failed = Vec::new();
    // That an older machine has no TMA goes without saying, unless it is asked for.
    let has_tma = matches!(question.target, Target::Cuda(arch) if arch.has(Feature::Tma));
    let is_candidate = |it: &&Candidate| match forced {
        Some(forced) => forced == it.mechanism,
        None => it.mechanism != Mechanism::Tma || has_tma,
    };
    for candidate in CANDIDATES.iter().filter(is_candidate) {
        let mechanism = candidate.mechanism;
        match judge(candidate, question) {
            Ok(_) if forced == Some(Mechanism::Synchronous) => {
                let reason = "The script asks for it.".to_owned();
                return Ok(MechanismChoice { mechanism, reason, is_forced: true });
            }
            Ok(why) => {
                let reason = sentences(&why, &failed);
                return Ok(MechanismChoice { mechanism, reason, is_forced: forced.is_some() });
            }
            Err(it) if forced.is_some() => {
                let var = question.around.last().map_or_else(|| Name::new("loop"), |it| it.var.clone());
                let component = question.component.name.clone();
                let Obstacle { reason, change } = it;
                return Err(
                    PipelineError::Mechanism { name: var, component, mechanism, reason, change }.into()
                );
            }
            Err(it) if failed.iter().all(|(_, reason)| *reason != it.reason) => {
                failed.push((mechanism, it.reason));
            }
            Err(_) => {}
        }
    }
    let reason = sentences("it is copied in its place", &failed);
    Ok(MechanismChoice { mechanism: Mechanism::Synchronous, reason, is_forced: false })
}

/// What a candidate says, after what holds for all of them.
fn judge(candidate: &Candidate, question: &Question<'_>) -> Result<String, Obstacle> {
    match candidate.mechanism {
        Mechanism::Plain | Mechanism::Wgmma | Mechanism::Tcgen05 | Mechanism::Synchronous => {}
        Mechanism::Tma | Mechanism::CpAsync | Mechanism::RegisterStaged => {
            if *question.target == Target::Cpu {
                let change = "leave the mechanism open, or lower for the target `cuda`";
                return Err(Obstacle::new("a CPU has no asynchronous copies", change));
            }
            let mut inner = None;
            question.component.body.walk(&mut |stmt| {
                if let Stmt::Loop(it) = stmt
                    && is_pipeline(it)
                {
                    inner.get_or_insert(it.var.clone());
                }
            });
            if let Some(inner) = inner {
                let reason = format!("loop `{inner}` in it is a pipeline of its own");
                return Err(Obstacle::new(reason, "name only stages of plain copies"));
            }
        }
    }
    (candidate.judge)(question)
}

/// `It is copied in its place. Not cp_async: it computes with what it loads.`
fn sentences(why: &str, failed: &[(Mechanism, String)]) -> String {
    let mut letters = why.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase).collect::<String>();
    let nots = failed.iter().map(|(mechanism, reason)| format!(" Not {mechanism}: {reason}."));
    format!("{first}{}.{}", letters.as_str(), nots.collect::<String>())
}

#[cfg(test)]
mod tests;
