//! Programs that are a product of two matrices, with elementwise stages behind it.

use ir::{Access, Block, DType, Func, Index, IterKind, Name, Role, Stmt};

use super::Request;
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
    /// The length of its rows in memory.
    pub row: i64,
}

/// A matrix product and what is done to its results.
#[derive(Clone, Debug)]
pub(super) struct Product {
    pub block: Name,
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
    /// The two innermost loops of the block that writes the output, once the product is padded.
    pub out_loops: [String; 2],
    /// What those blocks read beside each other's results, if all subscripts of it are iterators alone.
    pub inputs: Option<Vec<Name>>,
}

impl Product {
    /// The product that a program is, if it is one with constant sizes, of A and B, and with the loops i, j and k, which are the names
    /// that the procedures of the library expect.
    pub(super) fn of(request: &Request<'_>) -> Option<Product> {
        let found = Product::find(request.func)?;
        let loops = [&found.i, &found.j, &found.k].map(|it| it.loop_name.as_str());
        let factors = [&found.a, &found.b].map(|it| it.buffer.as_str());
        (loops == ["i", "j", "k"] && factors == ["A", "B"]).then_some(found)
    }

    fn find(func: &Func) -> Option<Product> {
        let blocks = func.body.blocks();
        let (first, tail) = blocks.split_first()?;
        let (place, left, right) = product_of(first)?;
        if place.buffer != first.name {
            return None;
        }
        let reduce: Vec<_> = first.iters.iter().filter(|it| it.kind == IterKind::Reduce).collect();
        let [k] = reduce.as_slice() else { return None };
        let spatial = || first.iters.iter().filter(|it| it.kind == IterKind::Spatial);
        let has = |access: &Access, var: &Name| access.indices.iter().any(|it| it == &Index::var(var));
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
        let axis = |it: &ir::Iter| axis_of(func, first, it);
        let out = tail.last().unwrap_or(first);
        Some(Product {
            block: first.name.clone(),
            batch: both.first().map(|it| axis(it)).map_or(Some(None), |it| it.map(Some))?,
            i: axis(i)?,
            j: axis(j)?,
            k: axis(k)?,
            a: factor(func, a, &k.var)?,
            b: factor(func, b, &k.var)?,
            acc: func.dtype_of(&place.buffer)?,
            tail: elementwise_tail(func, &place.buffer, tail)?,
            out_loops: out_loops(func, first, tail)?,
            out: func.dtype_of(&out.writes().last()?.buffer)?,
            inputs: inputs(func, tail),
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

    /// The blocks between the padded product and the last one, as an argument of a procedure: `, inline: […]`.
    pub(super) fn inlined(&self) -> String {
        let Some((_, before)) = self.tail.split_last() else { return String::new() };
        let unpad = format!("{}_unpad", self.block);
        let all: Vec<_> = [unpad].into_iter().chain(before.iter().map(ToString::to_string)).collect();
        format!(", inline: {all:?}")
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

fn axis_of(func: &Func, block: &Block, iter: &ir::Iter) -> Option<Axis> {
    let around = func.loops_of(&block.name)?;
    let it = around.into_iter().find(|it| iter.binding == Index::var(&it.var))?;
    Some(Axis { loop_name: it.var.clone(), extent: it.extent.as_int()? })
}

fn factor(func: &Func, access: &Access, k: &Name) -> Option<Factor> {
    let buffer = func.buffers.get(&access.buffer)?;
    Some(Factor {
        buffer: access.buffer.clone(),
        dtype: buffer.dtype,
        is_k_last: access.indices.last() == Some(&Index::var(k)),
        row: buffer.shape.last()?.as_int()?,
    })
    .filter(|_| buffer.role == Role::Input)
}

/// The blocks behind the product, if each only does something to the elements of the one before.
fn elementwise_tail(func: &Func, product: &Name, tail: &[&Block]) -> Option<Vec<Name>> {
    let mut from = product.clone();
    for block in tail {
        let Stmt::Store(store) = &block.body else { return None };
        let is_plain = block.init.is_none() && block.iters.iter().all(|it| it.kind == IterKind::Spatial);
        let reads = block.reads();
        let same = reads.iter().filter(|it| it.buffer == from).all(|it| it.indices == store.place.indices);
        let is_next = is_plain && same && reads.iter().any(|it| it.buffer == from);
        if !is_next || func.readers(&from).iter().any(|it| it.name != block.name && it.name != *product) {
            return None;
        }
        from = store.place.buffer.clone();
    }
    (func.buffers.get(&from)?.role == Role::Output).then(|| tail.iter().map(|it| it.name.clone()).collect())
}

/// The inputs that a tail reads, in order, if a padded block can read them.
fn inputs(func: &Func, tail: &[&Block]) -> Option<Vec<Name>> {
    let mut all: Vec<Name> = vec![];
    for block in tail {
        let is_iter = |it: &Index| block.iters.iter().any(|iter| *it == Index::var(&iter.var));
        let reads = block.reads();
        let is_input = |it: &Name| func.buffers.get(it).is_some_and(|it| it.role == Role::Input);
        for access in reads.iter().filter(|it| is_input(&it.buffer)) {
            if !access.indices.iter().all(is_iter) {
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
