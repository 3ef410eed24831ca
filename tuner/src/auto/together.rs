//! Which elements that a copy moves lie next to each other in memory.

use ir::{Access, Block, Func, Index, IterKind, Less, Name, Stmt, Value, arith::Bounds};

/// The most that are looked for: no vector has more.
const MOST: i64 = 16;

/// How many elements a block may move at once, a power of two: as its last iterator grows from a multiple of that on, so does the place in
/// memory at which it uses a buffer, which begins at a multiple too, and all conditions stay as they are. One where nothing is known.
pub(super) fn together(func: &Func, block: &Block, access: &Access) -> i64 {
    let found = place(func, access).zip(block.iters.iter().rfind(|it| it.kind == IterKind::Spatial));
    let Some((place, iter)) = found else { return 1 };
    let conditions = conditions(&block.body);
    let mut width = MOST;
    while width > 1 && !is_vector(func, block, (&iter.var, width), &place, &conditions) {
        width /= 2;
    }
    width
}

/// Where the element is, counted from the first one of the buffer.
fn place(func: &Func, access: &Access) -> Option<Index> {
    let mut place = Index::int(0);
    for (index, extent) in access.indices.iter().zip(&func.buffers.get(&access.buffer)?.shape) {
        place = place * extent.as_int()? + index.clone();
    }
    Some(place)
}

/// What decides about the values of a block.
fn conditions(body: &Stmt) -> Vec<Less> {
    fn collect(value: &Value, out: &mut Vec<Less>) {
        match value {
            Value::Const(_) | Value::Load(_) | Value::Index(..) => {}
            Value::Cast(_, a) | Value::Unary(_, a) => collect(a, out),
            Value::Binary(_, a, b) => {
                collect(a, out);
                collect(b, out);
            }
            Value::Where(cond, a, b) => [cond, a, b].into_iter().for_each(|it| collect(it, out)),
            Value::Select(cond, a, b) => {
                out.extend(cond.iter().cloned());
                collect(a, out);
                collect(b, out);
            }
        }
    }
    let mut out = vec![];
    body.each_store(&mut |store| collect(&store.value, &mut out));
    out
}

fn is_vector(
    func: &Func,
    block: &Block,
    (var, width): (&Name, i64),
    place: &Index,
    conditions: &[Less],
) -> bool {
    // No program has names with a dot.
    let (group, lane) = (Name::new("group.0"), Name::new("lane.0"));
    let mut bounds = Bounds::of_dims(func);
    for it in &block.iters {
        if it.var != *var {
            bounds.insert(&it.var, &it.extent);
        } else if bounds.divides(width, &it.extent) {
            bounds.insert(&group, &it.extent.floor_div(&Index::int(width)));
        } else {
            return false;
        }
    }
    bounds.insert(&lane, &Index::int(width));
    let in_vector = Index::var(&group) * width + Index::var(&lane);
    let subst = |name: &Name| (name == var).then(|| in_vector.clone());
    let is_same = |it: &Less| {
        let it = bounds.simplify_less(&it.subst(&subst));
        bounds.linear_in(&(&it.lhs - &it.rhs), &lane).is_some_and(|(stride, _)| stride == 0)
    };
    let grows = bounds.linear_in(&place.subst(&subst), &lane);
    grows.is_some_and(|(stride, start)| stride == 1 && bounds.divides(width, &start))
        && conditions.iter().all(is_same)
}
