//! Programs that are a product of two matrices, with elementwise stages behind it, and copies before and behind as [`contraction`](super::contraction)
//! makes them.

use ir::{Access, Block, DType, Func, Index, IterKind, Name, Role, Stmt};

use super::{Request, counted, together::together};
use crate::baseline::product_of;

/// A loop of the product.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub loop_name: Name,
    pub extent: i64,
}

/// A factor of the product.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    pub buffer: Name,
    pub dtype: DType,
    /// Whether the sum runs along its rows in memory.
    pub is_k_last: bool,
    /// The length of its rows in memory; of a copy, how many elements come together.
    pub row: i64,
    /// Whether a copy ahead of the product makes it.
    pub is_copy: bool,
    /// How many matrices it has.
    pub matrices: i64,
    /// Whether something else than the number in the batch says which of them is multiplied: the element of a table, or a head that shares one.
    pub is_gathered: bool,
}

impl Factor {
    /// How its elements lie, in words.
    pub(super) fn lengths(&self) -> String {
        let (of, row) = (&self.buffer, counted(self.row, "element"));
        if self.is_copy { format!("Of {of} {row} come together") } else { format!("Rows of {of} have {row}") }
    }
}

/// A matrix product and what is done to its results.
#[derive(Clone, Debug)]
pub(super) struct Product {
    pub block: Name,
    /// The stages before it that make its factors, which become part of what pads them.
    pub lead: Vec<Name>,
    pub batch: Option<Axis>,
    pub i: Axis,
    pub j: Axis,
    pub k: Axis,
    pub a: Factor,
    pub b: Factor,
    pub acc: DType,
    /// The elementwise blocks behind it, in order.
    pub tail: Vec<Name>,
    /// The type of the output.
    pub out: DType,
    /// The length of its rows in memory, or how many elements come together to where they go.
    pub out_row: i64,
    /// The two innermost loops of the block that writes the output, once the product is padded.
    pub out_loops: [String; 2],
    /// The iterators along rows and columns of the last block behind the product.
    pub out_iters: Option<[Name; 2]>,
    /// What those blocks read beside each other's results, if all subscripts of it are iterators alone.
    pub inputs: Option<Vec<Name>>,
    /// Another product of the same factor A, whose results the same blocks read.
    pub beside: Option<Box<Product>>,
}

impl Product {
    /// The product that a program is, if it is one with constant sizes, and with the loops i, j and k, which are the names that the
    /// procedures of the library expect.
    pub(super) fn of(request: &Request<'_>) -> Option<Product> {
        Product::gathered(request).filter(|it| !it.a.is_gathered && !it.b.is_gathered)
    }

    /// The same, also where matrices of a batch are gathered.
    pub(super) fn gathered(request: &Request<'_>) -> Option<Product> {
        let found = Product::find(request.func)?;
        let loops = [&found.i, &found.j, &found.k].map(|it| it.loop_name.as_str());
        (loops == ["i", "j", "k"]).then_some(found)
    }

    /// Two products of the same factor A and the same sizes, which the same stages read: both sums of a gated unit, `silu(X*W) * (X*V)`. It is the
    /// first one that is found, as if the results of the other one were an input.
    pub(super) fn pair(request: &Request<'_>) -> Option<Product> {
        let func = request.func;
        let Stmt::Seq(stages) = &func.body else { return None };
        let of = |at: usize| match stages[at].blocks()[..] {
            [block] => product_of(block).map(|(place, ..)| (block, place)),
            _ => None,
        };
        let found: Vec<_> = (0..stages.len()).filter(|at| of(*at).is_some()).collect();
        let [first, second] = found[..] else { return None };
        let (block, place) = of(second)?;
        let with_role = |body: Stmt, role: Role| {
            let mut out = Func { body, ..func.clone() };
            out.buffers.get_mut(&place.buffer)?.role = role;
            Some(out)
        };
        let others = stages.iter().enumerate().filter(|it| it.0 != second).map(|it| it.1.clone());
        let without = with_role(Stmt::seq(others), Role::Input)?;
        let alone = with_role(stages[second].clone(), Role::Output)?;
        let one = Product::gathered(&Request { func: &without, ..*request })?;
        let other = Product::find(&alone)?;
        let named = |it: &Axis, stem: &str| it.loop_name == Name::new(format!("{stem}_{}", block.name));
        let is_batch_alike = match (&one.batch, &other.batch) {
            (None, None) => true,
            (Some(a), Some(b)) => a.extent == b.extent && named(b, a.loop_name.as_str()),
            (None, Some(_)) | (Some(_), None) => false,
        };
        let is_alike = one.a.buffer == other.a.buffer
            && one.a.is_gathered == other.a.is_gathered
            && one.b.buffer != other.b.buffer
            && (one.b.dtype, one.acc, one.b.is_k_last) == (other.b.dtype, other.acc, other.b.is_k_last)
            && [(&one.i, &other.i), (&one.j, &other.j), (&one.k, &other.k)]
                .iter()
                .all(|it| it.0.extent == it.1.extent)
            && is_batch_alike
            && named(&other.i, "i")
            && named(&other.j, "j")
            && named(&other.k, "k");
        let padded = |it: &Name| {
            if *it == place.buffer { Name::new(format!("{}_pad", block.name)) } else { it.clone() }
        };
        let inputs = one.inputs.as_ref().map(|all| all.iter().map(padded).collect());
        let is_beside = first < second && is_alike && func.buffers.get(&place.buffer)?.role == Role::Temp;
        is_beside.then(|| Product { inputs, beside: Some(Box::new(other)), ..one })
    }

    /// How many products there are.
    pub(super) fn products(&self) -> i64 {
        if self.beside.is_some() { 2 } else { 1 }
    }

    /// Whether the factors are inputs themselves.
    pub(super) fn is_of_inputs(&self) -> bool {
        self.lead.is_empty()
    }

    /// The same whatever its loops are called.
    pub(super) fn find(func: &Func) -> Option<Product> {
        let blocks = func.body.blocks();
        let at = blocks.iter().position(|it| product_of(it).is_some())?;
        let (lead, first, tail) = (&blocks[..at], blocks[at], &blocks[at + 1..]);
        let (place, left, right) = product_of(first)?;
        let makes =
            |it: &Block, factor: &Access| it.writes().iter().any(|place| place.buffer == factor.buffer);
        if !lead.iter().all(|it| is_stage(it) && [left, right].iter().any(|factor| makes(it, factor))) {
            return None;
        }
        let reduce: Vec<_> = first.iters.iter().filter(|it| it.kind == IterKind::Reduce).collect();
        let [k] = reduce.as_slice() else { return None };
        let spatial = || first.iters.iter().filter(|it| it.kind == IterKind::Spatial);
        let has =
            |access: &Access, var: &Name| access.indices.iter().any(|it| it.any_var(&|name| name == var));
        let only = |one: &Access, other: &Access| {
            let mut found = spatial().filter(|it| has(one, &it.var) && !has(other, &it.var));
            found.next().filter(|_| found.next().is_none())
        };
        // `A * B` may also be written `B * A`: the row of the result belongs to A.
        let row = place.indices.len().checked_sub(2)?;
        let is_row = |it: &ir::Iter| place.indices.get(row) == Some(&Index::var(&it.var));
        let (a, b) = if is_row(only(left, right)?) { (left, right) } else { (right, left) };
        let (i, j) = (only(a, b)?, only(b, a)?);
        if !is_row(i) || place.indices.last() != Some(&Index::var(&j.var)) {
            return None;
        }
        let both: Vec<_> = spatial().filter(|it| has(a, &it.var) && has(b, &it.var)).collect();
        if both.len() > 1 || both.len() + 2 != spatial().count() {
            return None;
        }
        let batch = both.first().copied();
        let is_first = |it: &ir::Iter| place.indices.first() == Some(&Index::var(&it.var));
        let is_matrix = |access: &Access, row: &ir::Iter| is_matrix(access, [row, k], batch);
        if !batch.is_none_or(is_first) || !is_matrix(a, i) || !is_matrix(b, j) {
            return None;
        }
        let axis = |it: &ir::Iter| axis_of(func, first, it);
        let out = tail.last().copied().unwrap_or(first);
        Some(Product {
            block: first.name.clone(),
            lead: lead.iter().map(|it| it.name.clone()).collect(),
            batch: batch.map(axis).map_or(Some(None), |it| it.map(Some))?,
            i: axis(i)?,
            j: axis(j)?,
            k: axis(k)?,
            a: factor(func, a, &k.var, batch)?,
            b: factor(func, b, &k.var, batch)?,
            acc: func.dtype_of(&place.buffer)?,
            tail: elementwise_tail(func, &place.buffer, tail)?,
            out_loops: out_loops(func, first, tail)?,
            out_iters: out_iters(tail),
            out: func.dtype_of(&out.writes().last()?.buffer)?,
            out_row: out_row(func, out)?,
            inputs: inputs(func, tail),
            beside: None,
        })
    }

    /// What procedures are told of the dimensions of a batch.
    pub(super) fn axes(&self) -> &'static str {
        if self.batch.is_some() { ", row_axis: 1, column_axis: 2" } else { "" }
    }

    /// The block that writes the output, once the product is padded.
    pub(super) fn last_block(&self) -> String {
        self.tail.last().map_or_else(|| format!("{}_unpad", self.block), ToString::to_string)
    }

    /// The blocks that become part of others, as an argument of a procedure: `, inline: […]`. These are copies that make the factors, and what
    /// is between the padded product and the last block.
    pub(super) fn inlined(&self) -> String {
        let mut all: Vec<_> = self.lead.iter().map(ToString::to_string).collect();
        if let Some((_, before)) = self.tail.split_last() {
            all.push(format!("{}_unpad", self.block));
            all.extend(before.iter().map(ToString::to_string));
        }
        if all.is_empty() { String::new() } else { format!(", inline: {all:?}") }
    }

    /// How the elements of both factors lie, in words.
    pub(super) fn lengths(&self) -> String {
        let these = if self.b.is_copy { "of" } else { "those of" };
        format!("{} and {these} {} {}", self.a.lengths(), self.b.buffer, self.b.row)
    }
}

/// The loops of the last block, or of the copy that padding makes.
fn out_loops(func: &Func, product: &Block, tail: &[&Block]) -> Option<[String; 2]> {
    let Some(last) = tail.last() else {
        let dims = product.writes().last()?.indices.len();
        return Some([dims - 2, dims - 1].map(|it| format!("{}_unpad_{it}", product.name)));
    };
    let loops = func.loops_of(&last.name)?;
    let [.., rows, columns] = loops.as_slice() else { return None };
    Some([rows, columns].map(|it| it.var.to_string()))
}

/// The two innermost iterators of the last block.
fn out_iters(tail: &[&Block]) -> Option<[Name; 2]> {
    let [.., rows, columns] = tail.last()?.iters.as_slice() else { return None };
    Some([rows, columns].map(|it| it.var.clone()))
}

/// The loop that an iterator of a block is.
pub(super) fn axis_of(func: &Func, block: &Block, iter: &ir::Iter) -> Option<Axis> {
    let around = func.loops_of(&block.name)?;
    let it = around.into_iter().find(|it| iter.binding == Index::var(&it.var))?;
    Some(Axis { loop_name: it.var.clone(), extent: it.extent.as_int()? })
}

/// Whether a place is one of a matrix with two iterators, or of one of several matrices, which the iterator of a batch alone decides.
fn is_matrix(access: &Access, iters: [&ir::Iter; 2], batch: Option<&ir::Iter>) -> bool {
    let Some(rest) = access.indices.len().checked_sub(2) else { return false };
    let (before, last) = access.indices.split_at(rest);
    let is_whole = iters.iter().all(|it| last.contains(&Index::var(&it.var)));
    let is_told = match (before, batch) {
        ([], None) => true,
        ([which], Some(batch)) => which.vars().iter().all(|it| *it == batch.var),
        _ => false,
    };
    is_whole && is_told
}

fn factor(func: &Func, access: &Access, k: &Name, batch: Option<&ir::Iter>) -> Option<Factor> {
    let buffer = func.buffers.get(&access.buffer)?;
    let row = match buffer.role {
        Role::Input => buffer.shape.last()?.as_int()?,
        Role::Temp => run(func, &access.buffer)?,
        Role::Output => return None,
    };
    let is_k_last = access.indices.last() == Some(&Index::var(k));
    let which = access.indices.first().filter(|_| batch.is_some());
    let is_gathered = which.is_some_and(|it| batch.is_some_and(|batch| *it != Index::var(&batch.var)));
    let matrices = if which.is_some() { buffer.shape.first()?.as_int()? } else { 1 };
    let (is_copy, dtype) = (buffer.role == Role::Temp, buffer.dtype);
    Some(Factor { buffer: access.buffer.clone(), dtype, is_k_last, row, is_copy, matrices, is_gathered })
}

/// How many elements of a copy come together from what it copies.
fn run(func: &Func, copy: &Name) -> Option<i64> {
    let [block] = func.writers(copy)[..] else { return None };
    match block.reads()[..] {
        [from] => Some(together(func, block, from)),
        _ => Some(1),
    }
}

/// How many results come together to where they go in the end.
fn out_row(func: &Func, last: &Block) -> Option<i64> {
    let place = *last.writes().last()?;
    let row = func.buffers.get(&place.buffer)?.shape.last()?.as_int()?;
    Some(if place.indices.last()?.as_var().is_some() { row } else { together(func, last, place) })
}

/// Whether a block does something to single elements.
pub(super) fn is_stage(block: &Block) -> bool {
    matches!(block.body, Stmt::Store(_))
        && block.init.is_none()
        && block.guards.is_empty()
        && block.iters.iter().all(|it| it.kind == IterKind::Spatial)
}

/// The blocks behind the product, if each only does something to the elements of the one before.
pub(super) fn elementwise_tail(func: &Func, product: &Name, tail: &[&Block]) -> Option<Vec<Name>> {
    let mut from = product.clone();
    for block in tail {
        let Stmt::Store(store) = &block.body else { return None };
        let reads = block.reads();
        // Results may go elsewhere than where they come from, if they come in the order of the block.
        let own: Vec<_> = block.iters.iter().map(|it| Index::var(&it.var)).collect();
        let is_own = |it: &Access| it.indices == store.place.indices || it.indices == own;
        let is_next = is_stage(block)
            && reads.iter().filter(|it| it.buffer == from).all(|it| is_own(it))
            && reads.iter().any(|it| it.buffer == from);
        if !is_next || func.readers(&from).iter().any(|it| it.name != block.name && it.name != *product) {
            return None;
        }
        from = store.place.buffer.clone();
    }
    (func.buffers.get(&from)?.role == Role::Output).then(|| tail.iter().map(|it| it.name.clone()).collect())
}

/// The inputs that a tail reads, in order, if a padded block can read them.
pub(super) fn inputs(func: &Func, tail: &[&Block]) -> Option<Vec<Name>> {
    let mut all: Vec<Name> = vec![];
    for block in tail {
        let is_iter = |it: &Index| block.iters.iter().any(|iter| *it == Index::var(&iter.var));
        let reads = block.reads();
        let is_input = |it: &Name| func.buffers.get(it).is_some_and(|it| it.role == Role::Input);
        for access in reads.iter().filter(|it| is_input(&it.buffer)) {
            if !access.indices.iter().all(|it| is_iter(it) || it.as_int().is_some()) {
                return None;
            }
            if !all.contains(&access.buffer) {
                all.push(access.buffer.clone());
            }
        }
    }
    Some(all)
}

/// The widest vector, in elements, of up to `bytes` bytes that all rows of such a length begin with a whole one of.
pub(super) fn vector(row: i64, dtype: DType, bytes: i64) -> i64 {
    let most = (bytes / dtype.bytes_i64()).max(1);
    let mut width = most;
    while width > 1 && row % width != 0 {
        width /= 2;
    }
    width
}
