//! Which sums follow a reduction that is read while it grows.

use std::collections::BTreeSet;

use ir::{
    BinaryOp, Block, Func, Name, Reducer, Role, Stmt, Value,
    access::{Conflict, Iteration},
    region::{Nest, Way},
};

use super::{
    Follower, Rescale, Rolled,
    extremum::{Extremum, elementwise},
};
use crate::{BlockError, ScheduleError, nest};

/// The sums in the loop that go by the result of the reduction, which nothing else there may.
///
/// # Errors
/// [`BlockError::NotRolling`] for a block that goes by it in another way.
pub(crate) fn followers(func: &Func, rolled: &Rolled<'_>) -> Result<Vec<Follower>, ScheduleError> {
    let inside = func.find_loop(rolled.outer).map(|it| it.body.blocks()).unwrap_or_default();
    let refused = |it: &Block, why| BlockError::NotRolling {
        block: rolled.block.clone(),
        other: it.name.clone(),
        loop_name: rolled.target.clone(),
        why,
    };
    let (dependent, sums) = dependents(func, rolled, &inside).map_err(|it| refused(it.block, it.why))?;
    expect_own_iteration(func, rolled, &dependent).map_err(|it| refused(it.block, it.why))?;
    let block = func.find_block(rolled.block).expect("it was put there");
    let is_constant = matches!(&block.init, Some(Stmt::Store(it)) if matches!(it.value, Value::Const(_)));
    if let Some(it) = sums.first().filter(|_| !is_constant) {
        return Err(refused(it, "the reduction does not start from a constant").into());
    }
    let extremum = Extremum::new(func, block, rolled.reducer, &dependent);
    let mut out = Vec::new();
    for it in sums {
        let found = follows(func, rolled.reducer, &extremum, it, &inside).map_err(|why| refused(it, why))?;
        out.extend(found.map(|rescale| Follower { block: it.name.clone(), rescale }));
    }
    Ok(out)
}

/// A block that may not go by the reduction, and why.
struct Refusal<'a> {
    block: &'a Block,
    why: &'static str,
}

/// The buffers that go by the result element by element, and the other blocks that do; or one that may not, and why.
fn dependents<'a>(
    func: &Func,
    rolled: &Rolled<'_>,
    inside: &[&'a Block],
) -> Result<(BTreeSet<Name>, Vec<&'a Block>), Refusal<'a>> {
    let refused = |block, why| Err(Refusal { block, why });
    let (mut dependent, mut others) = (BTreeSet::new(), Vec::new());
    for it in inside.iter().filter(|it| it.name != *rolled.block) {
        let mut reads = it.reads().into_iter().map(|it| &it.buffer);
        if !reads.any(|it| *it == rolled.reducer.place.buffer || dependent.contains(it)) {
            continue;
        }
        if !func.loops_of(&it.name).is_some_and(|loops| loops.iter().any(|it| it.var == *rolled.target)) {
            return refused(it, "it stands outside of the loop");
        }
        let Some(store) = elementwise(it) else {
            others.push(*it);
            continue;
        };
        let buffer = &store.place.buffer;
        let is_inside = |reader: &Name| inside.iter().any(|it| it.name == *reader);
        if func.buffers[buffer].role != Role::Temp
            || !func.readers(buffer).iter().all(|it| is_inside(&it.name))
        {
            return refused(
                it,
                "what it computes is of use behind the loop, where the reduction is complete",
            );
        }
        dependent.insert(buffer.clone());
    }
    Ok((dependent, others))
}

/// What goes by the result is used in the iteration that computes it: in a later one it would belong to another result.
fn expect_own_iteration<'a>(
    func: &'a Func,
    rolled: &Rolled<'_>,
    dependent: &BTreeSet<Name>,
) -> Result<(), Refusal<'a>> {
    let path = nest::path(func, Some(rolled.target));
    let rolling: Vec<&Name> = path.iter().map(|it| &it.var).skip_while(|it| *it != rolled.outer).collect();
    let around = |name: &Name| path.iter().any(|it| it.var == *name) && !rolling.contains(&name);
    let when = |name: &Name| Iteration::same_if(around(name));
    for buffer in dependent {
        for (writer, reader) in func
            .writers(buffer)
            .into_iter()
            .flat_map(|it| func.readers(buffer).into_iter().map(move |other| (it, other)))
        {
            let (write, read) = (Nest::of(func, writer), Nest::of(func, reader));
            let (write, read) = (write.places(buffer, Way::Write), read.places(buffer, Way::Read));
            let mut pairs = write.iter().flat_map(|it| read.iter().map(move |other| (it, other)));
            let is_own = pairs.all(|(first, second)| {
                let both = Conflict { first, second, dims: &func.dims, when: &when };
                rolling.iter().all(|it| both.has_same(it))
            });
            if !is_own {
                return Err(Refusal { block: reader, why: "it reads what other iterations have computed" });
            }
        }
    }
    Ok(())
}

/// By what a sum is multiplied as the extremum grows; `None` if it does not go by it after all.
fn follows(
    func: &Func,
    reducer: &Reducer,
    extremum: &Extremum<'_>,
    sum: &Block,
    inside: &[&Block],
) -> Result<Option<Rescale>, &'static str> {
    let dtype = func.dtype_of(&reducer.place.buffer);
    if !matches!(reducer.op, BinaryOp::Max | BinaryOp::Min) || dtype.is_none_or(|it| !it.is_float()) {
        return Err("only maxima and minima of floats are seen while they grow");
    }
    let found = Reducer::of(sum).filter(|it| it.op == BinaryOp::Add);
    let found = found.ok_or("it is neither elementwise nor a sum")?;
    let buffer = &found.place.buffer;
    let uses_it = |it: &&Block| it.name != sum.name && inside.iter().any(|other| other.name == it.name);
    if func.readers(buffer).iter().any(uses_it) || func.writers(buffer).iter().any(uses_it) {
        return Err("others in the loop use its sums before they are complete");
    }
    let others = func.writers(buffer).into_iter().filter(|it| it.name != sum.name).map(|it| &it.body);
    if !others.chain(&sum.init).all(stores_zero) {
        return Err("its sums do not start from zero");
    }
    extremum.rescale(sum, &found.term)
}

/// Whether a statement stores zero and nothing else.
fn stores_zero(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Store(it) if matches!(it.value, Value::Const(it) if it.to_f64() == 0.0))
}
