//! Operands whose rows begin where no wide copy can, and copies of them whose rows do not.

use super::{
    Draft,
    model::copy_cycles,
    product::{Factor, Product},
};

/// The most memory that packed operands may take.
const MOST_BYTES: i64 = 1 << 30;

/// Which operands a kernel of their own puts into memory with rows padded to whole tiles, before the product reads them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Packing {
    pub a: bool,
    pub b: bool,
    /// The factor B of the product beside this one.
    pub further: bool,
}

impl Packing {
    /// Neither.
    pub(super) const NONE: Packing = Packing { a: false, b: false, further: false };

    /// Those whose rows do not begin at a multiple of so many bytes, if there is memory for what they become: the patches of a
    /// convolution are many times its input.
    pub(super) fn of(product: &Product, bytes: i64) -> Option<Packing> {
        let is_odd = |it: &Factor| it.row * it.dtype.bytes_i64() % bytes != 0;
        let further = product.beside.as_ref().is_some_and(|it| is_odd(&it.b));
        let all = Packing { a: is_odd(&product.a), b: is_odd(&product.b), further };
        (all.bytes(product).fold(0, i64::saturating_add) <= MOST_BYTES).then_some(all)
    }

    /// The size of each, about.
    fn bytes(self, product: &Product) -> impl Iterator<Item = i64> {
        let Product { i, j, k, a, b, beside, .. } = product;
        let further = beside.as_ref().map(|it| (self.further, j.extent, &it.b));
        let sizes = [(self.a, i.extent, a), (self.b, j.extent, b)].into_iter().chain(further);
        let bytes = move |(_, rows, it): (_, i64, &Factor)| {
            it.matrices.saturating_mul(rows * k.extent).saturating_mul(it.dtype.bytes_i64())
        };
        sizes.filter(|it| it.0).map(bytes)
    }

    pub(super) fn is_any(self) -> bool {
        self != Packing::NONE
    }

    /// The library that has its steps, before another one.
    pub(super) fn libraries(self, product: &Product, own: &'static str) -> Vec<&'static str> {
        let has_steps = self.is_any() || self.operands(product).any(|it| it.1.is_gathered);
        if has_steps { vec!["std/copy", own] } else { vec![own] }
    }

    /// How long these kernels take.
    pub(super) fn cycles(self, product: &Product, units: i64) -> f64 {
        self.bytes(product).map(|it| copy_cycles(it, units)).sum()
    }

    /// The operands, those that are packed, and the blocks that read them.
    fn operands(self, product: &Product) -> impl Iterator<Item = (bool, &Factor, &Product)> {
        let further = product.beside.as_ref().map(|it| (self.further, &it.b, &**it));
        [(self.a, &product.a, product), (self.b, &product.b, product)].into_iter().chain(further)
    }

    /// What procedures call the operands.
    pub(super) fn factors(self, product: &Product) -> Vec<String> {
        self.operands(product).map(|(is_packed, it, _)| called(it, is_packed)).collect()
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
        for (is_packed, it, of) in self.operands(product) {
            let block = if std::ptr::eq(of, product) { block } else { of.block.as_str() };
            match (is_packed, it.is_gathered) {
                (true, _) => pack(out, product, it, block),
                (false, true) => out.because(
                    format!("Tiles of {} are those of the matrix that is asked for, which may be another for each of the batch.", it.buffer),
                    format!("gather(block: {block:?}, name: {:?})", it.buffer.as_str()),
                ),
                (false, false) => {}
            }
        }
    }
}

/// What procedures call an operand.
pub(super) fn called(factor: &Factor, is_packed: bool) -> String {
    match (is_packed, factor.is_gathered) {
        (true, _) => format!("{}_packed", factor.buffer),
        (false, true) => format!("{}_gathered", factor.buffer),
        (false, false) => factor.buffer.to_string(),
    }
}

/// The steps that pack an operand.
fn pack(out: &mut Draft, product: &Product, factor: &Factor, block: &str) {
    let (name, axes) = (factor.buffer.as_str(), product.axes());
    let gathered = if factor.is_gathered { ", gathered: 1" } else { "" };
    out.because(
        format!(
            "{}, too odd for copies of 16 bytes: a kernel ahead pads each to whole tiles.",
            factor.lengths()
        ),
        format!("pack(block: {block:?}, name: {name:?}{gathered}{axes})"),
    );
    if product.batch.is_some() {
        out.step(format!("bind(loop: \"{name}_pad_0\", axis: \"blockIdx.z\")"));
    }
}
