//! Operands whose rows begin where no wide copy can, or run across the sum, and copies of them whose rows do not; results whose rows do, which lanes
//! store.

use ir::{Name, TensorMap};

use super::{
    Draft,
    model::{as_f64, copy_cycles},
    product::{Factor, Product, vector},
};

/// The most memory that packed operands may take.
const MOST_BYTES: i64 = 1 << 30;

/// The bytes of the widest vector, and of a row of a tile that is transposed.
const WIDEST: i64 = 16;
const ROW: i64 = 128;

/// The most rows of such a tile.
const TURNED_ROWS: i64 = 128;

/// What a kernel ahead of the product does to an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pack {
    /// Nothing: the product reads it as it is.
    No,
    /// Puts it into memory with rows padded to whole tiles.
    Rows,
    /// The same transposed, so that the sum runs along its rows.
    Turned,
}

impl Pack {
    /// Whether there is such a kernel.
    pub(super) fn is_any(self) -> bool {
        self != Pack::No
    }

    /// Whether the sum runs along the rows of what the product reads.
    pub(super) fn is_k_last(self, of: &Factor) -> bool {
        of.is_k_last || self == Pack::Turned
    }
}

/// Which operands a kernel of their own brings into another form, before the product reads them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Packing {
    pub a: Pack,
    pub b: Pack,
    /// The factor B of the product beside this one.
    pub further: Pack,
}

/// A factor of the product, or of the one beside it.
struct Operand<'a> {
    pack: Pack,
    factor: &'a Factor,
    /// How many rows it has that are no sum.
    rows: i64,
    /// The product beside, if it is that one's.
    beside: Option<&'a Name>,
}

impl Packing {
    /// Neither.
    pub(super) const NONE: Packing = Packing { a: Pack::No, b: Pack::No, further: Pack::No };

    /// Those whose rows do not begin at a multiple of so many bytes, if there is memory for what they become: the patches of a
    /// convolution are many times its input.
    pub(super) fn of(product: &Product, bytes: i64) -> Option<Packing> {
        let rows = |it: &Factor| {
            if it.row * it.dtype.bytes_i64() % bytes == 0 { Pack::No } else { Pack::Rows }
        };
        Packing::each(product, rows).fitting(product)
    }

    /// The same for tensor cores, which read elements of other than two bytes only where the sum runs along rows: other operands are
    /// transposed, however their rows begin.
    pub(super) fn of_tensor_cores(product: &Product, bytes: i64) -> Option<Packing> {
        let rows = Packing::of(product, bytes)?;
        Packing {
            a: turned(&product.a, rows.a),
            b: turned(&product.b, rows.b),
            further: further(product, |it| turned(it, rows.further)),
        }
        .fitting(product)
    }

    /// Only what tensor cores cannot do without.
    pub(super) fn least(product: &Product) -> Option<Packing> {
        Packing::each(product, |it| turned(it, Pack::No)).fitting(product)
    }

    fn each(product: &Product, pack: impl Fn(&Factor) -> Pack) -> Packing {
        Packing { a: pack(&product.a), b: pack(&product.b), further: further(product, pack) }
    }

    /// This, if there is memory for it.
    fn fitting(self, product: &Product) -> Option<Packing> {
        (self.bytes(product).fold(0, i64::saturating_add) <= MOST_BYTES).then_some(self)
    }

    /// The size of each, about.
    fn bytes(self, product: &Product) -> impl Iterator<Item = i64> {
        let bytes = |it: Operand<'_>| {
            let elements = it.factor.matrices.saturating_mul(it.rows * product.k.extent);
            elements.saturating_mul(it.factor.dtype.bytes_i64())
        };
        self.operands(product).filter(|it| it.pack.is_any()).map(bytes)
    }

    pub(super) fn is_any(self) -> bool {
        self != Packing::NONE
    }

    /// The library that has its steps, before another one.
    pub(super) fn libraries(self, product: &Product, own: &'static str) -> Vec<&'static str> {
        let has_steps = self.is_any() || self.operands(product).any(|it| it.factor.is_gathered);
        if has_steps { vec!["std/copy", own] } else { vec![own] }
    }

    /// How long these kernels take.
    pub(super) fn cycles(self, product: &Product, units: i64) -> f64 {
        self.bytes(product).map(|it| copy_cycles(it, units)).sum()
    }

    /// The operands, and what is done to them.
    fn operands(self, product: &Product) -> impl Iterator<Item = Operand<'_>> {
        let Product { i, j, a, b, beside, .. } = product;
        let own = [(self.a, a, i.extent), (self.b, b, j.extent)];
        let own = own.map(|(pack, factor, rows)| Operand { pack, factor, rows, beside: None });
        let further = beside.as_ref().map(|it| Operand {
            pack: self.further,
            factor: &it.b,
            rows: j.extent,
            beside: Some(&it.block),
        });
        own.into_iter().chain(further)
    }

    /// What procedures call the operands.
    pub(super) fn factors(self, product: &Product) -> Vec<String> {
        self.operands(product).map(|it| called(it.factor, it.pack)).collect()
    }

    /// These names as arguments of a procedure, with the comma before each; none where they are its defaults.
    pub(super) fn names(self, product: &Product) -> String {
        let (a, b) = (called(&product.a, self.a), called(&product.b, self.b));
        let named = |param: &str, name: &str, default: &str| {
            if name == default { String::new() } else { format!(", {param}: {name:?}") }
        };
        named("a", &a, "A") + &named("b", &b, "B")
    }

    /// The steps that pack operands of a block, and those by which it reads what is gathered.
    pub(super) fn steps(self, out: &mut Draft, product: &Product, block: &str) {
        for operand in self.operands(product) {
            let it = operand.factor;
            let block = operand.beside.map_or(block, Name::as_str);
            match (operand.pack, it.is_gathered) {
                (Pack::Rows, _) => pack_rows(out, product, it, block),
                (Pack::Turned, _) => pack_turned(out, product, &operand, block),
                (Pack::No, true) => out.because(
                    format!("Tiles of {} are those of the matrix that is asked for, which may be another for each of the batch.", it.buffer),
                    format!("gather(block: {block:?}, name: {:?})", it.buffer.as_str()),
                ),
                (Pack::No, false) => {}
            }
        }
    }
}

/// The cycles that an element of the result takes where lanes store it and not the copy engine: 4097³ in f16 has 17 million, with which a kernel took 256
/// microseconds in place of 250 on an H200.
const STORED_BY_LANE: f64 = 0.08;

/// Whether lanes store the result, since the copy engine does not find its rows.
pub(super) fn leaves_by_lanes(product: &Product) -> bool {
    product.j.extent * product.out.bytes_i64() % TensorMap::UNIT != 0
}

/// How much longer that takes.
pub(super) fn leaving_cycles(product: &Product, units: i64) -> f64 {
    let batch = product.batch.as_ref().map_or(1, |it| it.extent);
    let each = if leaves_by_lanes(product) { STORED_BY_LANE } else { 0.0 };
    each * as_f64(batch * product.i.extent * product.j.extent) / as_f64(units)
}

/// The form of the factor of the product beside this one, if there is one.
fn further(product: &Product, pack: impl Fn(&Factor) -> Pack) -> Pack {
    product.beside.as_ref().map_or(Pack::No, |it| pack(&it.b))
}

/// Transposed where tensor cores could not read it as it is.
fn turned(factor: &Factor, otherwise: Pack) -> Pack {
    if factor.is_k_last || factor.dtype.bytes_i64() == 2 { otherwise } else { Pack::Turned }
}

/// What procedures call an operand.
pub(super) fn called(factor: &Factor, pack: Pack) -> String {
    match (pack, factor.is_gathered) {
        (Pack::Rows | Pack::Turned, _) => format!("{}_packed", factor.buffer),
        (Pack::No, true) => format!("{}_gathered", factor.buffer),
        (Pack::No, false) => factor.buffer.to_string(),
    }
}

/// The steps that pad the rows of an operand.
fn pack_rows(out: &mut Draft, product: &Product, factor: &Factor, block: &str) {
    let name = factor.buffer.as_str();
    out.because(
        format!(
            "{}, too odd for copies of 16 bytes: a kernel ahead pads each to whole tiles.",
            factor.lengths()
        ),
        format!("pack(block: {block:?}, name: {name:?}{}{})", gathered(factor), product.axes()),
    );
    if product.batch.is_some() {
        out.step(format!("bind(loop: \"{name}_pad_0\", axis: \"blockIdx.z\")"));
    }
}

/// The steps that transpose an operand and pad it. Eight threads store the 128 bytes that a row of a tile has, and each loads as many
/// elements of a row as it can at once.
fn pack_turned(out: &mut Draft, product: &Product, operand: &Operand<'_>, block: &str) {
    let factor = operand.factor;
    let name = factor.buffer.as_str();
    let stored = WIDEST / factor.dtype.bytes_i64();
    let loaded = vector(factor.row, factor.dtype, WIDEST);
    // A row of a tile in shared memory has 128 bytes, and `loaded` of them lie between two stores of neighbouring threads.
    let shift = (ROW * loaded).trailing_zeros() - WIDEST.trailing_zeros();
    let rows = powers_from(loaded).find(|it| *it >= operand.rows).unwrap_or(TURNED_ROWS);
    let threads = (8 * rows / loaded).clamp(32, 256);
    let is_batch = product.batch.is_some();
    let order = if is_batch { ", others: [0], order: [0, 2, 1]" } else { "" };
    let (axes, gathered) = (product.axes(), gathered(factor));
    out.because(
        format!(
            "The sum runs across the rows of {name}, and tensor cores read such elements along it: a kernel ahead transposes it, and pads it to \
             whole tiles."
        ),
        format!(
            "pack_turned(block: {block:?}, name: {name:?}{gathered}{axes}{order}, rows: {rows}, stored: {stored}, loaded: {loaded}, threads: {threads}, \
             shift: {shift})"
        ),
    );
    if is_batch {
        out.step(format!("bind(loop: \"{name}_turned_0\", axis: \"blockIdx.z\")"));
    }
}

/// The numbers of rows that a tile may have.
fn powers_from(least: i64) -> impl Iterator<Item = i64> {
    std::iter::successors(Some(least), |it| Some(it * 2)).take_while(|it| *it <= TURNED_ROWS)
}

/// What procedures are told of an operand of which something else than the number in the batch says the matrix.
fn gathered(factor: &Factor) -> &'static str {
    if factor.is_gathered { ", gathered: 1" } else { "" }
}
