//! Sums of products that are no product of matrices as they stand, but become one where iterators are taken together: a convolution is the
//! product of a matrix of patches, which exists a tile at a time only, in shared memory or in a cache, and one of filters (implicit GEMM).
//! Where only the loops have other names than the rules for products expect, they get these.

use ir::{Block, Index, Iter, IterKind, Name, Stmt};
use schedule::{
    Session, Step,
    primitive::{ComputeInline, Reindex, TransformBlockLayout, TransformLayout},
};

use super::{Draft, Request, cpu, free, on_tensor_cores, product::Product, simt};

/// What this rule is called.
const RULE: &str = "contraction";

/// The product that the program becomes, by the rules for products, likeliest first.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    if Product::of(request).is_some() {
        return vec![];
    }
    let named = Matrices::by_name(request).map(|it| it.drafts(request)).unwrap_or_default();
    if !named.is_empty() {
        return named;
    }
    Matrices::of(request).map(|it| it.drafts(request)).unwrap_or_default()
}

/// Whether the rules for products know it as it stands.
fn is_product(request: &Request<'_>) -> bool {
    Product::gathered(request).or_else(|| Product::pair(request)).is_some()
}

/// The iterators of a product, by what they are of it.
struct Groups {
    batch: Vec<Name>,
    i: Vec<Name>,
    j: Vec<Name>,
    k: Vec<Name>,
    /// The factor with i, and the one with j.
    a: Name,
    b: Name,
    /// The result, and which iterator each of its dimensions has.
    result: Name,
    dims: Vec<Option<Name>>,
}

impl Groups {
    /// Those of a sum of products of two buffers, each read at one place.
    fn of(block: &Block) -> Option<Groups> {
        let Stmt::Store(store) = &block.body else { return None };
        let mut loads = vec![];
        store.value.each_load(&mut |it| loads.push(it));
        loads.retain(|it| it.buffer != store.place.buffer);
        let [left, right] = loads[..] else { return None };
        if left.buffer == right.buffer {
            return None;
        }
        let has = |access: &ir::Access, it: &Iter| {
            access.indices.iter().any(|index| index.any_var(&|name| *name == it.var))
        };
        let spatial = |in_left: bool, in_right: bool| -> Vec<&Iter> {
            let all = block.iters.iter().filter(|it| it.kind == IterKind::Spatial);
            all.filter(|it| (has(left, it), has(right, it)) == (in_left, in_right)).collect()
        };
        let (of_left, of_right, batch) = (spatial(true, false), spatial(false, true), spatial(true, true));
        let reduce: Vec<_> = block.iters.iter().filter(|it| it.kind == IterKind::Reduce).collect();
        if of_left.is_empty() || of_right.is_empty() || reduce.is_empty() || !spatial(false, false).is_empty()
        {
            return None;
        }
        // What the result has next to each other are columns.
        let last = store.place.indices.last()?;
        let ends = |all: &[&Iter]| all.iter().any(|it| last.any_var(&|name| *name == it.var));
        let (a, b, i, j) = match (ends(&of_left), ends(&of_right)) {
            (false, true) => (left, right, of_left, of_right),
            (true, false) => (right, left, of_right, of_left),
            (true, true) | (false, false) => return None,
        };
        let names = |all: Vec<&Iter>| all.into_iter().map(|it| it.var.clone()).collect();
        Some(Groups {
            batch: names(batch),
            i: names(i),
            j: names(j),
            k: names(reduce),
            a: a.buffer.clone(),
            b: b.buffer.clone(),
            result: store.place.buffer.clone(),
            dims: store.place.indices.iter().map(|it| it.as_var().cloned()).collect(),
        })
    }

    /// Its groups with the names that the loops get, outermost first.
    fn named(&self) -> impl Iterator<Item = (&'static str, &Vec<Name>)> {
        let all = [("batch", &self.batch), ("i", &self.i), ("j", &self.j), ("k", &self.k)];
        all.into_iter().filter(|(_, it)| !it.is_empty())
    }
}

/// The program as a product of matrices.
struct Matrices {
    /// With the steps that made it one.
    session: Session,
    why: String,
}

impl Matrices {
    fn drafts(&self, request: &Request<'_>) -> Vec<Draft> {
        let inner = Request { func: self.session.func(), ..*request };
        let steps: Vec<_> = self.session.trace().map(|it| it.to_ron().trim().to_owned()).collect();
        let rules = [on_tensor_cores, simt::drafts, cpu::drafts];
        let all = rules.into_iter().flat_map(|drafts| drafts(&inner));
        all.map(|it| it.behind(RULE, &self.why, &steps)).collect()
    }

    /// The program with the names of loops that the rules for products expect, where nothing else stands in their way: the loops of a product
    /// behind other stages are called after it.
    fn by_name(request: &Request<'_>) -> Option<Matrices> {
        if is_product(request) {
            return None;
        }
        let blocks = request.func.body.blocks();
        let (first, rest) = blocks.split_first()?;
        let mut session = Session::new(request.func.clone(), Some(request.target.clone()));
        give_loops(&mut session, first, &Groups::of(first)?, "")?;
        // The loops of a product beside it are called after it.
        if let Some((other, groups)) = rest.first().and_then(|it| Some((it, Groups::of(it)?))) {
            give_loops(&mut session, other, &groups, &format!("_{}", other.name))?;
        }
        let inner = Request { func: session.func(), ..*request };
        let why = "Loops get the names of rows, columns and the sum.".to_owned();
        is_product(&inner).then_some(Matrices { session, why })
    }

    fn of(request: &Request<'_>) -> Option<Matrices> {
        let func = request.func;
        let blocks = func.body.blocks();
        let (first, tail) = blocks.split_first()?;
        let groups = Groups::of(first)?;
        let mut session = Session::new(func.clone(), Some(request.target.clone()));
        give_loops(&mut session, first, &groups, "")?;
        let [a, b, c] = ["A", "B", "C"].map(|it| free(func, it));
        for (buffer, name) in [(&groups.a, &a), (&groups.b, &b), (&groups.result, &c)] {
            let reindex = Reindex {
                block: first.name.clone(),
                buffer: Some(buffer.clone()),
                scope: None,
                name: Some(name.clone()),
            };
            apply(&mut session, &Step::Reindex(reindex))?;
            batch_first(&mut session, &first.name, name, &groups)?;
        }
        for (n, block) in tail.iter().enumerate() {
            stage(&mut session, block, &groups)?;
            if n == 0 {
                apply(&mut session, &Step::ComputeInline(ComputeInline { block: c.clone() }))?;
            }
        }
        let word = |it: &[Name]| it.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
        let why = format!(
            "A product of matrices: rows are ({}), columns ({}), and the sum is over ({}). What the matrices {a} and {b} have is copied from {} and {} tile by tile.",
            word(&groups.i),
            word(&groups.j),
            word(&groups.k),
            groups.a,
            groups.b,
        );
        Some(Matrices { session, why })
    }
}

/// Gives a product one loop for each group of its iterators, named after the group with `suffix` behind.
fn give_loops(session: &mut Session, product: &Block, groups: &Groups, suffix: &str) -> Option<()> {
    let name = |name: &str| Name::new(format!("{name}{suffix}"));
    let into = groups.named().map(|(group, it)| (name(group), it.clone())).collect();
    let step = TransformBlockLayout { block: product.name.clone(), into };
    apply(session, &Step::TransformBlockLayout(step))
}

/// The step as a part of the script, if it is legal.
fn apply(session: &mut Session, step: &Step) -> Option<()> {
    session.apply(step).ok()
}

/// Puts the dimension of the batch before the others of a copy for the block, and its iterator where the copy is of the result.
fn batch_first(session: &mut Session, block: &Name, buffer: &Name, groups: &Groups) -> Option<()> {
    let block = session.func().find_block(block)?;
    let Some(batch) = block.iters.first().filter(|_| !groups.batch.is_empty()) else { return Some(()) };
    let used = block.reads().into_iter().chain(block.writes()).find(|it| it.buffer == *buffer)?;
    let at = used.indices.iter().position(|index| *index == Index::var(&batch.var))?;
    let order: Vec<_> = [at].into_iter().chain((0..used.indices.len()).filter(|it| *it != at)).collect();
    let copy = session.func().find_block(buffer)?;
    let is_result = copy.reads().iter().any(|it| it.buffer == *buffer);
    let iters: Vec<_> = order.iter().map(|at| copy.iters[*at].var.clone()).collect();
    let name = |part: &str| free(session.func(), &format!("{buffer}_{part}"));
    let into = ["batch", "i", "j"].into_iter().zip(iters).map(|(part, it)| (name(part), vec![it])).collect();
    if at > 0 {
        let layout = TransformLayout { buffer: buffer.clone(), order: Some(order), index_map: None };
        apply(session, &Step::TransformLayout(layout))?;
        if is_result {
            let layout = TransformBlockLayout { block: buffer.clone(), into };
            apply(session, &Step::TransformBlockLayout(layout))?;
        }
    }
    Some(())
}

/// Gives a stage behind the product its rows and columns.
fn stage(session: &mut Session, block: &Block, groups: &Groups) -> Option<()> {
    let Stmt::Store(store) = &block.body else { return None };
    let of = |name: &Name| {
        let at = groups.dims.iter().position(|it| it.as_ref() == Some(name))?;
        store.place.indices.get(at)?.as_var().cloned()
    };
    let named = groups.named().filter(|(name, _)| *name != "k");
    let into = named.map(|(name, all)| {
        let all = all.iter().map(of).collect::<Option<Vec<_>>>()?;
        Some((free(session.func(), &format!("{name}_{}", block.name)), all))
    });
    let into = into.collect::<Option<_>>()?;
    apply(session, &Step::TransformBlockLayout(TransformBlockLayout { block: block.name.clone(), into }))
}
