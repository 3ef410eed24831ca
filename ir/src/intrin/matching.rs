//! Whether a block computes what an intrinsic computes, and on which parts of which buffers.

use std::fmt;

use super::{Instruction, Intrinsic, ProductKind, described::description};
use crate::{
    Access, BinaryOp, Block, DType, Func, Index, Less, Name, Scope, Stmt, Store, Value, arith::Bounds,
};

/// An operand of an intrinsic, found in a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operand {
    /// The name that the description has for it.
    pub name: Name,
    /// The buffer.
    pub buffer: Name,
    /// The first element of the tile: one subscript for each dimension of the buffer, over the iterators of the block.
    pub base: Vec<Index>,
    /// Which dimension of the buffer each dimension of the operand is.
    pub dims: Vec<usize>,
    /// The size of the tile in the operand's dimensions.
    pub tile: Vec<i64>,
}

impl Operand {
    /// The size of the tile in each of so many dimensions of the buffer.
    pub fn extents(&self, rank: usize) -> Vec<i64> {
        let size = |dim: usize| self.dims.iter().position(|it| *it == dim).map_or(1, |at| self.tile[at]);
        (0..rank).map(size).collect()
    }
}

/// A block that computes what an intrinsic does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matched {
    /// The operands in the order of the description, the output first.
    pub operands: Vec<Operand>,
    /// Whether the block starts its sums from zero itself, in its init.
    pub starts: bool,
}

/// Where a block differs from the description of an intrinsic.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum Mismatch {
    #[error("it is no statement of a block, but a way to run one in lanes")]
    NoBlock,
    #[error("the block still has its init, which starts a reduction")]
    Init,
    #[error("the init of the block does not set all of the tile to zero, where the instruction starts from")]
    Start,
    #[error("it has {found} columns, and {allowed} are possible")]
    Columns { found: i64, allowed: &'static str },
    #[error("the block runs under the condition `{guard}`, and the instruction has none")]
    Guard { guard: Less },
    #[error("it has loops of {needed}, and the block has {found}")]
    Loops { needed: Extents, found: Extents },
    #[error("it loads {needed} bytes, and the block copies {found} elements of {bytes} bytes")]
    Size { needed: u32, found: Extents, bytes: usize },
    #[error("it computes `{needed}`, and the block `{found}`")]
    Body { needed: String, found: String },
    #[error("its operand {operand} is of type {needed}, and `{buffer}` of {found}")]
    Type { operand: Name, needed: DType, buffer: Name, found: DType },
    #[error("it is for {}, and `{buffer}` is of type {found}", types(needed))]
    Types { needed: &'static [DType], buffer: Name, found: DType },
    #[error("its operand {operand} is in {} memory, and `{buffer}` is in {} memory", needed.as_str(), found.as_str())]
    Scope { operand: Name, needed: Scope, buffer: Name, found: Scope },
}

impl Mismatch {
    /// What to try instead, if there is one thing to say.
    pub const fn help(&self) -> Option<&'static str> {
        match self {
            Mismatch::NoBlock => Some("name the loop over the rows of the tile by `loop`"),
            Mismatch::Init => {
                Some("decompose_reduction the block first, and tensorize its `_init` with `lanes_m16n8`")
            }
            Mismatch::Start => Some("decompose_reduction the block, or let its sum start from zero"),
            Mismatch::Columns { .. } => Some("split the loop over the columns by one of them"),
            Mismatch::Guard { .. } => Some("pad_einsum the block first, so that all tiles are whole"),
            Mismatch::Loops { .. } | Mismatch::Size { .. } => {
                Some("split the loops by the extents of the instruction")
            }
            Mismatch::Body { .. } => Some("`explain` shows what the intrinsic computes"),
            Mismatch::Type { .. } | Mismatch::Types { .. } => Some("choose the intrinsic for these types"),
            Mismatch::Scope { .. } => {
                Some("cache_read and cache_write the operands into the scopes it needs, or set_scope them")
            }
        }
    }
}

/// The numbers of iterations of a nest of loops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extents(pub Vec<Index>);

impl fmt::Display for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x "))
    }
}

fn types(all: &[DType]) -> String {
    all.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ")
}

/// The loops of a block's body and the store inside them, if it is a nest around one store.
fn nest(body: &Stmt) -> Option<(Vec<(&Name, &Index)>, &Store)> {
    let mut loops = Vec::new();
    let mut at = body;
    loop {
        match at {
            Stmt::Loop(it) => {
                loops.push((&it.var, &it.extent));
                at = &it.body;
            }
            Stmt::Store(it) => return Some((loops, it)),
            Stmt::Block(_) | Stmt::Seq(_) | Stmt::Instr(_) => return None,
        }
    }
}

/// Compares a block with the description of an intrinsic.
///
/// The loops may stand in another order, the factors of a product too, and a buffer may have its dimensions in
/// another order and more of them; the types and scopes must be those of the description.
pub fn matched(intrinsic: &'static Intrinsic, func: &Func, block: &Block) -> Result<Matched, Mismatch> {
    if matches!(intrinsic.instruction, Instruction::Lanes(_)) {
        return Err(Mismatch::NoBlock);
    }
    let starts_itself = matches!(intrinsic.instruction, Instruction::Wgmma { .. } | Instruction::Tcgen05(_));
    if block.init.is_some() && !starts_itself {
        return Err(Mismatch::Init);
    }
    if let Some(guard) = block.guards.first() {
        return Err(Mismatch::Guard { guard: guard.clone() });
    }
    let description = described(intrinsic, func, block)?;
    let wanted = description.body.blocks();
    let (needed, pattern) = nest(&wanted[0].body).expect("descriptions are tried by a test");
    let extents = |all: &[(&Name, &Index)]| Extents(all.iter().map(|it| it.1.clone()).collect());
    let Some((found, store)) = nest(&block.body) else {
        let found = "several statements".to_owned();
        return Err(Mismatch::Body { needed: line(pattern), found });
    };
    let fitting = permutations(&needed, &found, &description.dims);
    if fitting.is_empty() {
        return Err(Mismatch::Loops { needed: extents(&needed), found: extents(&found) });
    }
    expect_size(intrinsic, func, store, &extents(&found))?;
    for order in &fitting {
        let mut unify = Unify { order, operands: vec![] };
        if unify.access(&pattern.place, &store.place) && unify.value(&pattern.value, &store.value) {
            let mut operands = unify.operands;
            operands.sort_by_key(|it| description.buffers.get_index_of(&it.name));
            check_operands(description, func, &operands)?;
            expect_columns(intrinsic, func, &operands)?;
            let starts = starts_from_zero(block, &operands)?;
            return Ok(Matched { operands, starts });
        }
    }
    Err(Mismatch::Body { needed: line(pattern), found: line(store) })
}

fn line(store: &Store) -> String {
    format!("{} = {}", store.place, store.value)
}

/// The description with `T` replaced by the type that the block's result has.
fn described(intrinsic: &'static Intrinsic, func: &Func, block: &Block) -> Result<&'static Func, Mismatch> {
    let mut of = None;
    if let (Some(place), [_, ..]) = (block.writes().first(), intrinsic.types)
        && let Some(found) = func.dtype_of(&place.buffer)
    {
        if !intrinsic.types.contains(&found) {
            let (needed, buffer) = (intrinsic.types, place.buffer.clone());
            return Err(Mismatch::Types { needed, buffer, found });
        }
        of = Some(found);
    }
    Ok(description(intrinsic, of))
}

/// A loop of the description with the block's loop in its place, and that loop's extent.
type Pairing = Vec<(Name, Name, Index)>;

/// The ways to pair loops such that extents agree, loops in the same order first.
fn permutations(needed: &[(&Name, &Index)], found: &[(&Name, &Index)], free: &[Name]) -> Vec<Pairing> {
    let mut out = vec![Pairing::new()];
    if needed.len() != found.len() {
        return vec![];
    }
    for (var, extent) in needed {
        let is_free = extent.as_var().is_some_and(|it| free.contains(it));
        let extended = out.iter().flat_map(|known: &Pairing| {
            let unused = found.iter().filter(|it| known.iter().all(|known| known.1 != *it.0));
            let fits = unused.filter(|it| is_free || it.1 == *extent);
            fits.map(|(own, extent)| {
                known.iter().cloned().chain([((*var).clone(), (*own).clone(), (*extent).clone())]).collect()
            })
        });
        out = extended.collect();
    }
    out
}

/// The tile of a matrix load or store is as large as its matrices.
fn expect_size(intrinsic: &Intrinsic, func: &Func, store: &Store, found: &Extents) -> Result<(), Mismatch> {
    let (matrices, warps): (_, &[u32]) = match intrinsic.instruction {
        Instruction::Ldmatrix { matrices, .. } => (matrices, &[1]),
        // Of a warpgroup, each of the four warps stores as many.
        Instruction::Stmatrix { matrices, .. } => (matrices, &[1, 4]),
        _ => return Ok(()),
    };
    let needed = matrices * 128;
    let bytes = func.dtype_of(&store.place.buffer).expect("the buffer is declared").bytes();
    let elements: Option<i64> = found.0.iter().map(Index::as_int).product();
    let all = elements.and_then(|it| it.checked_mul(i64::try_from(bytes).ok()?));
    if warps.iter().any(|warps| all == Some(i64::from(needed * warps))) {
        return Ok(());
    }
    Err(Mismatch::Size { needed, found: found.clone(), bytes })
}

/// The columns that a product of a warpgroup may have (PTX ISA, `wgmma.mma_async`, shapes), one into tensor memory (`tcgen05.mma`,
/// shapes, of 128 rows), and what is loaded from there (`tcgen05.ld`, of whole tiles of registers).
fn expect_columns(intrinsic: &Intrinsic, func: &Func, operands: &[Operand]) -> Result<(), Mismatch> {
    let found = operands.first().and_then(|it| it.tile.get(1)).copied().unwrap_or(0);
    let is_integer = func.dtype_of(&operands[0].buffer) == Some(DType::I32);
    let is_one_of = |step: i64, most: i64| found % step == 0 && (step..=most).contains(&found);
    let (fits, allowed) = match intrinsic.instruction {
        Instruction::Wgmma { .. } if is_integer => {
            let allowed = "8, 16, 24, and multiples of 16 from 32 to 256";
            (is_one_of(8, 24) || is_one_of(16, 256), allowed)
        }
        Instruction::Wgmma { .. } => (is_one_of(8, 256), "multiples of 8 from 8 to 256"),
        // Each block of a pair has half of them.
        Instruction::Tcgen05(ProductKind { blocks: 2, .. }) => {
            (is_one_of(32, 256), "multiples of 32 from 32 to 256")
        }
        Instruction::Tcgen05(ProductKind { scaled: Some(_), .. }) => (is_one_of(128, 256), "128 and 256"),
        Instruction::Tcgen05(_) => (is_one_of(16, 256), "multiples of 16 from 16 to 256"),
        Instruction::TensorLoad(_) => (is_one_of(8, 128) && found.count_ones() == 1, "8, 16, 32, 64 and 128"),
        _ => return Ok(()),
    };
    if fits { Ok(()) } else { Err(Mismatch::Columns { found, allowed }) }
}

/// Whether a block has an init that sets the tile of its output to zero.
fn starts_from_zero(block: &Block, operands: &[Operand]) -> Result<bool, Mismatch> {
    let Some(init) = &block.init else { return Ok(false) };
    let (loops, store) = nest(init).ok_or(Mismatch::Start)?;
    let extents: Vec<_> = loops.iter().map(|it| it.1.as_int()).collect();
    let rows: Pairing = loops.iter().map(|it| (it.0.clone(), it.0.clone(), it.1.clone())).collect();
    let output = &operands[0];
    let is_zero = matches!(&store.value, Value::Const(it) if it.to_f64() == 0.0);
    let tiles = permutations_of(&rows).into_iter().any(|order| {
        let indices = order.iter().map(|it| Index::var(&it.0)).collect();
        let pattern = Access { buffer: output.name.clone(), indices, lanes: 1 };
        let found = Unify { order: &rows, operands: vec![] }.operand(&pattern, &store.place);
        found.as_ref() == Some(output)
    });
    let whole = extents.len() == output.tile.len();
    if is_zero && whole && tiles { Ok(true) } else { Err(Mismatch::Start) }
}

/// The orders of two loops.
fn permutations_of(loops: &Pairing) -> [Pairing; 2] {
    [loops.clone(), loops.iter().rev().cloned().collect()]
}

fn check_operands(description: &Func, func: &Func, operands: &[Operand]) -> Result<(), Mismatch> {
    for it in operands {
        let (needed, found) = (&description.buffers[&it.name], &func.buffers[&it.buffer]);
        let (operand, buffer) = (it.name.clone(), it.buffer.clone());
        if needed.dtype != found.dtype {
            return Err(Mismatch::Type { operand, needed: needed.dtype, buffer, found: found.dtype });
        }
        if needed.scope != found.scope {
            return Err(Mismatch::Scope { operand, needed: needed.scope, buffer, found: found.scope });
        }
    }
    Ok(())
}

/// Compares expressions under one pairing of loops, noting what operands stand for.
#[derive(Clone)]
struct Unify<'a> {
    order: &'a Pairing,
    operands: Vec<Operand>,
}

impl Unify<'_> {
    fn value(&mut self, pattern: &Value, value: &Value) -> bool {
        match (pattern, value) {
            (Value::Load(a), Value::Load(b)) => self.access(a, b),
            (Value::Const(a), Value::Const(b)) => a == b,
            (Value::Cast(to, a), Value::Cast(own, b)) => to == own && self.value(a, b),
            (Value::Unary(op, a), Value::Unary(own, b)) => op == own && self.value(a, b),
            (Value::Binary(op, a, b), Value::Binary(own, c, d)) if op == own => {
                let before = self.clone();
                if self.value(a, c) && self.value(b, d) {
                    return true;
                }
                *self = before;
                // Exchanging the two changes nothing, not even a bit.
                let commutes = *op == BinaryOp::Add || op.is_product();
                commutes && self.value(a, d) && self.value(b, c)
            }
            (
                Value::Const(_)
                | Value::Load(_)
                | Value::Index(..)
                | Value::Cast(..)
                | Value::Unary(..)
                | Value::Binary(..)
                | Value::Select(..)
                | Value::Where(..),
                _,
            ) => false,
        }
    }

    fn access(&mut self, pattern: &Access, access: &Access) -> bool {
        let Some(operand) = self.operand(pattern, access) else { return false };
        if let Some(known) = self.operands.iter().find(|it| it.name == operand.name) {
            return *known == operand;
        }
        self.operands.push(operand);
        true
    }

    /// The tile that an access runs through: what a subscript of the pattern makes of the loops is a term of one subscript of the access,
    /// and no other has any of them.
    fn operand(&self, pattern: &Access, access: &Access) -> Option<Operand> {
        let is_inner = |name: &Name| self.order.iter().any(|it| it.1 == *name);
        let own = |name: &Name| self.order.iter().find(|it| it.0 == *name).map(|it| Index::var(&it.1));
        let mut bounds = Bounds::default();
        self.order.iter().for_each(|(_, own, extent)| bounds.insert(own, extent));
        let mut base: Vec<Index> = access.indices.iter().map(|it| bounds.simplify(it)).collect();
        let (mut dims, mut tile) = (Vec::new(), Vec::new());
        for subscript in &pattern.indices {
            let run = bounds.simplify(&subscript.subst(&own));
            // A subscript that is the same for all elements of this tile says nothing of it.
            if !run.any_var(&is_inner) {
                continue;
            }
            let rest = |at: usize| bounds.simplify(&(&base[at] - &run));
            let is_run = |at: &usize| {
                !dims.contains(at) && base[*at].any_var(&is_inner) && !rest(*at).any_var(&is_inner)
            };
            let at = (0..base.len()).find(is_run)?;
            base[at] = rest(at);
            let (Some(0), Some(most)) = bounds.interval(&run) else { return None };
            dims.push(at);
            tile.push(most + 1);
        }
        if base.iter().any(|it| it.any_var(&is_inner)) {
            return None;
        }
        let (name, buffer) = (pattern.buffer.clone(), access.buffer.clone());
        Some(Operand { name, buffer, base, dims, tile })
    }
}
