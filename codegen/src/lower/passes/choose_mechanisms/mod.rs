//! Chooses how the asynchronous stages of pipelined loops copy.

pub(crate) mod cp_async;
pub(crate) mod register_staged;

use std::sync::Arc;

use ir::{
    ForcedMechanism, Func, Loop, Mechanism, Name, Stmt, Target,
    pipeline::{NamedComponent, PipelineError, STAGE, async_stages, components_of, is_pipeline, numbers},
};

use crate::lower::{Context, LowerError, MechanismChoice};

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
///   block A_shared(vk: 8 = k, v: 32 = t) #{async_copy: 1}
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
        for (at, choice) in choices {
            let name = &components[at].name;
            let candidate = CANDIDATES.iter().find(|it| it.mechanism == choice.mechanism);
            if let Some(added) = candidate.and_then(|it| (it.rewrite)(&mut func, &var, name)) {
                let reason = format!("It holds what `{name}` stores.");
                context.mechanisms.insert((var.clone(), added), MechanismChoice { reason, ..choice.clone() });
            }
            context.mechanisms.insert((var.clone(), name.clone()), choice);
        }
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
const CANDIDATES: [Candidate; 3] = [
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

/// Why a mechanism cannot do a component: a clause, and what to change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Obstacle {
    pub(crate) reason: String,
    pub(crate) change: &'static str,
}

impl Obstacle {
    pub(crate) fn new(reason: impl Into<String>, change: &'static str) -> Obstacle {
        Obstacle { reason: reason.into(), change }
    }
}

/// A component that asks for a mechanism, with what stands around it.
pub(crate) struct Question<'a> {
    pub(crate) func: &'a Func,
    pub(crate) target: &'a Target,
    /// The loops from the outermost to the pipelined one.
    pub(crate) around: &'a [&'a Loop],
    pub(crate) component: &'a Component,
    /// All components of the loop.
    pub(crate) all: &'a [Component],
}

/// A statement of a pipelined loop.
pub(crate) struct Component {
    /// The name by which the annotations call it.
    pub(crate) name: Name,
    pub(crate) body: Stmt,
    pub(crate) stage: i64,
    pub(crate) writes: Vec<Name>,
    pub(crate) reads: Vec<Name>,
}

/// The components of a pipeline with asynchronous stages; nothing for other loops.
fn components(it: &Loop) -> Option<Vec<Component>> {
    if !is_pipeline(it) || async_stages(it).is_empty() {
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
    let wanted = async_stages(it);
    let forced = it.attrs.pipeline.as_ref().and_then(|it| it.mechanism.as_ref());
    let mut out = Vec::new();
    for (at, component) in all.iter().enumerate() {
        let names: Vec<_> = component.body.blocks().into_iter().map(|it| it.name.clone()).collect();
        let own = forced.and_then(|it| it.of(&names));
        if wanted.contains(&component.stage) {
            let question = Question { func, target, around, component, all };
            out.push((at, choose(&question, own)?));
        } else if let (Some(ForcedMechanism::Each(_)), Some(mechanism)) = (forced, own) {
            let (name, component) = (it.var.clone(), component.name.clone());
            let reason = "its stage does not copy asynchronously".to_owned();
            let change = "name its stage in `software_pipeline_async_stages`, or leave its mechanism out";
            return Err(PipelineError::Mechanism { name, component, mechanism, reason, change }.into());
        }
    }
    Ok(out)
}

/// The first candidate that can do it, or the forced one.
fn choose(question: &Question<'_>, forced: Option<Mechanism>) -> Result<MechanismChoice, LowerError> {
    let mut failed = Vec::new();
    for candidate in CANDIDATES.iter().filter(|it| forced.is_none_or(|forced| forced == it.mechanism)) {
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
        Mechanism::Plain | Mechanism::Synchronous => {}
        Mechanism::CpAsync | Mechanism::RegisterStaged => {
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

/// Puts another statement in the place of one component of a loop.
pub(crate) fn replace_component(func: &mut Func, var: &Name, block: &Name, f: impl FnOnce(&Stmt) -> Stmt) {
    func.replace_loop(var, |mut old| {
        if let Stmt::Seq(stmts) = &mut old.body
            && let Some(stmt) = stmts.iter_mut().find(|it| it.blocks().iter().any(|it| it.name == *block))
        {
            *stmt = f(stmt);
        }
        Stmt::Loop(Arc::new(old))
    });
}

#[cfg(test)]
mod tests;
