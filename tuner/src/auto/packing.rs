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
}

impl Packing {
    /// Neither.
    pub(super) const NONE: Packing = Packing { a: false, b: false };

    /// Those whose rows do not begin at a multiple of so many bytes, if there is memory for what they become: the patches of a
    /// convolution are many times its input.
    pub(super) fn of(product: &Product, bytes: i64) -> Option<Packing> {
        let is_odd = |it: &Factor| it.row * it.dtype.bytes_i64() % bytes != 0;
        let all = Packing { a: is_odd(&product.a), b: is_odd(&product.b) };
        (all.bytes(product).sum::<i64>() <= MOST_BYTES).then_some(all)
    }

    /// The size of each, about.
    fn bytes(self, product: &Product) -> impl Iterator<Item = i64> {
        let Product { batch, i, j, k, a, b, .. } = product;
        let count = batch.as_ref().map_or(1, |it| it.extent) * k.extent;
        let sizes = [(self.a, count * i.extent, a), (self.b, count * j.extent, b)];
        sizes.into_iter().filter(|it| it.0).map(|(_, elements, it)| elements * it.dtype.bytes_i64())
    }

    pub(super) fn is_any(self) -> bool {
        self != Packing::NONE
    }

    /// How long these kernels take.
    pub(super) fn cycles(self, product: &Product, units: i64) -> f64 {
        self.bytes(product).map(|it| copy_cycles(it, units)).sum()
    }

    /// What procedures call the operands.
    pub(super) fn factors(self, product: &Product) -> [String; 2] {
        [(self.a, &product.a), (self.b, &product.b)].map(|(is_packed, it)| {
            if is_packed { format!("{}_packed", it.buffer) } else { it.buffer.to_string() }
        })
    }

    /// These names as arguments of a procedure, with the comma before each; none where they are its defaults.
    pub(super) fn names(self, product: &Product) -> String {
        let [a, b] = self.factors(product);
        let named = |param: &str, name: &str, default: &str| {
            if name == default { String::new() } else { format!(", {param}: {name:?}") }
        };
        named("a", &a, "A") + &named("b", &b, "B")
    }

    /// The steps that pack operands of a block.
    pub(super) fn steps(self, out: &mut Draft, product: &Product, block: &str) {
        let axes = product.axes();
        for (_, it) in [(self.a, &product.a), (self.b, &product.b)].into_iter().filter(|it| it.0) {
            let name = it.buffer.as_str();
            out.because(
                format!(
                    "{}, too odd for copies of 16 bytes: a kernel ahead pads each to whole tiles.",
                    it.lengths()
                ),
                format!("pack(block: {block:?}, name: {name:?}{axes})"),
            );
            if product.batch.is_some() {
                out.step(format!("bind(loop: \"{name}_pad_0\", axis: \"blockIdx.z\")"));
            }
        }
    }
}
