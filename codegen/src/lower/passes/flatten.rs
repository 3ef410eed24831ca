//! Turns subscripts into one element offset.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use ir::{
    Access, Alloc, BulkCopy, Factor, Index, Instr, Layout, Major, Module, Name, Op, Origin, Scope, Storage,
    Swizzle, Tcgen05, Tile, Wgmma, XorSwizzle,
};

use crate::lower::{Context, LowerError};

/// ```text
/// B[i, j] = A[j]   ->   B[i*8 + j] = A[j]
/// ```
///
/// The offset is the sum of subscripts times strides, swizzled where the buffer is; making it cheap is the business of
/// `simplify_indices`. A comment before the allocation of a buffer tells its swizzle. From here on a buffer is so many
/// elements; memory of a cluster is so many in each of its blocks, and keeps the subscript that says which block. Tensor memory keeps rows and
/// columns: matrices of more rows than it has, and of further dimensions, stand beside each other.
///
/// Refuses an access to neighbours that a swizzle would take apart.
pub(crate) fn flatten(mut module: Module, context: &mut Context) -> Result<Module, LowerError> {
    let args: BTreeMap<_, _> = module.args.iter().map(|(name, it)| (name.clone(), it.storage())).collect();
    for kernel in &mut module.kernels {
        let mut flat = Flat {
            storages: args.clone(),
            dealt_out: BTreeSet::new(),
            tensors: BTreeMap::new(),
            cut: RefCell::default(),
        };
        kernel.body.iter().for_each(|op| flat.collect(op));
        kernel.body = flat.ops(&kernel.body, &mut context.swizzles);
        flat.cut.into_inner().map_or(Ok(()), Err)?;
    }
    for (name, storage) in args {
        let arg = &mut module.args[&name];
        (arg.shape, arg.layout) = (vec![storage.len], Layout::default());
    }
    Ok(module)
}

struct Flat {
    storages: BTreeMap<Name, Storage>,
    /// The buffers of which each block of a cluster has a part.
    dealt_out: BTreeSet<Name>,
    /// The shapes of those in tensor memory, and in how many rows they stand.
    tensors: BTreeMap<Name, (Vec<i64>, i64)>,
    /// The first access that a swizzle takes apart.
    cut: RefCell<Option<LowerError>>,
}

impl Flat {
    fn collect(&mut self, op: &Op) {
        op.walk(&mut |op| {
            if let Op::Alloc(it) = op {
                self.storages.insert(it.name.clone(), it.storage());
                if it.blocks().is_some() {
                    self.dealt_out.insert(it.name.clone());
                }
                if it.scope == Scope::Tensor {
                    let rows = Scope::tensor_rows(it.dtype.bytes());
                    self.tensors.insert(it.name.clone(), (it.shape.clone(), rows));
                }
            }
        });
    }

    fn ops(&self, ops: &[Op], swizzles: &mut Vec<String>) -> Vec<Op> {
        let mut out = Vec::new();
        for op in ops {
            match op {
                Op::Alloc(it) => {
                    if let Some(told) = told(it) {
                        swizzles.push(told.clone());
                        out.push(Op::comment(told, Origin::default()));
                    }
                    let shape = match it.scope {
                        Scope::Tensor => {
                            let rows = Scope::tensor_rows(it.dtype.bytes());
                            vec![rows, columns_of(&it.shape, rows)]
                        }
                        _ => it.blocks().into_iter().chain([it.elements()]).collect(),
                    };
                    let layout = Layout::default();
                    out.push(Op::Alloc(Alloc { shape, layout, ..it.clone() }));
                }
                Op::For(_) | Op::If(..) | Op::Leader(..) | Op::Role(..) => {
                    out.push(op.clone().map_children(&mut |body| self.ops(&body, swizzles)));
                }
                Op::Instr(it, origin) => {
                    out.push(Op::Instr(self.instr(it), origin.clone()));
                }
            }
        }
        out
    }

    /// Boxes begin where they would without a swizzle, since hardware permutes addresses itself, and the tensors of maps are
    /// not flattened.
    fn instr(&self, it: &Instr) -> Instr {
        match it {
            Instr::Bulk(it) => Instr::Bulk(BulkCopy { shared: self.tile(&it.shared), ..it.clone() }),
            Instr::Wgmma(it) => {
                let left = match &it.left {
                    Factor::Shared(it) => Factor::Shared(self.tile(it)),
                    Factor::Registers(it) => Factor::Registers(self.access(it)),
                };
                let (place, right) = (self.access(&it.place), self.tile(&it.right));
                Instr::Wgmma(Wgmma { place, left, right, ..it.clone() })
            }
            Instr::Tcgen05(it) => {
                let place = self.columns(&it.place);
                let operands = it.operands.iter().map(|it| match self.tensors.get(&it.first.buffer) {
                    Some(_) => self.columns(it),
                    None => self.tile(it),
                });
                Instr::Tcgen05(Box::new(Tcgen05 { place, operands: operands.collect(), ..(**it).clone() }))
            }
            it => it.map_accesses(&mut |it| self.access(it)),
        }
    }

    /// A tile of tensor memory.
    fn columns(&self, it: &Tile) -> Tile {
        let extents = it.extents.iter().copied().filter(|it| *it > 1).collect();
        Tile { first: self.access(&it.first), extents, matrix: None }
    }

    fn tile(&self, it: &Tile) -> Tile {
        let Some(storage) = self.storages.get(&it.first.buffer) else { return it.clone() };
        let indices = vec![storage.linear(&it.first.indices)];
        let mut extents: Vec<i64> = it.extents.iter().copied().filter(|it| *it > 1).collect();
        if it.matrix.is_some_and(|it| it.major == Major::Mn) {
            extents.reverse();
        }
        Tile { first: Access { indices, ..it.first.clone() }, extents, matrix: it.matrix }
    }

    fn access(&self, access: &Access) -> Access {
        if let Some((shape, rows)) = self.tensors.get(&access.buffer) {
            return Access { indices: row_and_column(shape, *rows, &access.indices), ..access.clone() };
        }
        let Some(storage) = self.storages.get(&access.buffer) else { return access.clone() };
        let (buffer, bytes) = (&access.buffer, i64::from(access.lanes) * storage.element_bytes());
        if let Some(chunk) = storage.chunk_bytes().filter(|it| access.lanes > 1 && bytes > *it) {
            let cut = LowerError::SwizzleChunk { buffer: buffer.clone(), bytes, chunk };
            self.cut.borrow_mut().get_or_insert(cut);
        }
        let owners = usize::from(self.dealt_out.contains(buffer));
        let (owner, own) = access.indices.split_at(owners.min(access.indices.len()));
        let indices = owner.iter().cloned().chain([storage.element(own)]).collect();
        Access { indices, ..access.clone() }
    }
}

/// How many elements of a buffer of a shape stand in each of so many rows of tensor memory.
fn columns_of(shape: &[i64], rows: i64) -> i64 {
    let elements = shape.iter().fold(1i64, |all, it| all.saturating_mul(*it));
    (elements + rows - 1) / rows
}

/// The row and the column of tensor memory that an element has: of matrices of so many rows, one beside the other.
fn row_and_column(shape: &[i64], rows: i64, indices: &[Index]) -> Vec<Index> {
    let ([outer @ .., row, column], [.., height, width]) = (indices, shape) else { return indices.to_vec() };
    let mut matrix = Index::int(0);
    for (index, extent) in outer.iter().zip(shape) {
        matrix = matrix * *extent + index.clone();
    }
    let below = (height + rows - 1) / rows;
    let rows = Index::int(rows);
    let matrix = matrix * below + row.floor_div(&rows);
    vec![row.floor_mod(&rows), matrix * *width + column.clone()]
}

/// How a buffer with a swizzle lies in memory, in a sentence.
fn told(alloc: &Alloc) -> Option<String> {
    let (name, row) = (&alloc.name, alloc.storage().row());
    let rows = match row.as_int() {
        Some(it) => format!("rows of {} bytes", it * alloc.dtype.bytes_i64()),
        None => format!("rows of {row} elements"),
    };
    match alloc.layout.swizzle? {
        Swizzle::Xor(it) => Some(format!("`{name}`, {rows}, is swizzled: {}.", pattern(it))),
        Swizzle::None => Some(format!("`{name}`, {rows}, is not swizzled: it would be read no faster.")),
        Swizzle::Auto => None,
    }
}

fn pattern(swizzle: XorSwizzle) -> String {
    let XorSwizzle { bits, base, shift } = swizzle;
    let mode = swizzle.mode().map(|it| format!("{it}, ")).unwrap_or_default();
    let last = base + bits - 1;
    let bits = if bits == 1 { format!("bit {base}") } else { format!("bits {base} to {last}") };
    format!("{mode}{bits} of an offset in bytes xor those {shift} higher")
}
