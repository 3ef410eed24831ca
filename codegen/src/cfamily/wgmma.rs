//! Products of warpgroups: `wgmma` on the registers of a lane and on matrices in shared memory.

use std::fmt::Write as _;

use ir::{
    DType, Factor, Major, Matrix, Tile, Wgmma, XorSwizzle,
    intrin::{Instruction, Intrinsic},
};

use super::{Printer, helper::Helper, ptx::Ptx, tensor, types};

/// The rows of the product.
const ROWS: i64 = 64;

/// The bytes of a register.
const REGISTER: usize = 4;

/// A form of the instruction: what it multiplies, the columns of the product, and which factors have K not contiguous.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Product {
    intrinsic: &'static str,
    columns: i64,
    transposed: [bool; 2],
}

impl Product {
    /// What the function is called.
    pub(super) fn name(self) -> String {
        let of = self.intrinsic.replacen("m64", &format!("m64n{}", self.columns), 1);
        format!("tw_{of}{}", layouts(self.transposed))
    }
}

/// What tells in the name of a product which factors have K not contiguous.
pub(super) const fn layouts(transposed: [bool; 2]) -> &'static str {
    match transposed {
        [false, false] => "",
        [true, false] => "_tn",
        [false, true] => "_nt",
        [true, true] => "_tt",
    }
}

impl Printer<'_> {
    /// A product that begins.
    pub(super) fn wgmma(&mut self, it: &Wgmma) {
        let Wgmma { intrinsic, place, left, right, starts } = it;
        let is_transposed = |tile: &Tile| tile.matrix.is_some_and(|it| it.major == Major::Mn);
        let left_transposed = match left {
            Factor::Shared(tile) => is_transposed(tile),
            Factor::Registers(_) => false,
        };
        let product = Product {
            intrinsic: intrinsic.name,
            columns: right.extents.first().copied().unwrap_or(0),
            transposed: [left_transposed, is_transposed(right)],
        };
        let name = self.require(Helper::Wgmma(product));
        let sum = self.element_address(place);
        let left = match left {
            Factor::Shared(tile) => self.matrix(tile),
            Factor::Registers(it) => self.element_address(it),
        };
        let right = self.matrix(right);
        let adds = match starts.as_deref() {
            None => "true".to_owned(),
            Some([]) => "false".to_owned(),
            Some(conditions) => format!("!({})", self.conditions(conditions)),
        };
        self.line(&format!("{name}({sum}, {left}, {right}, {adds});"));
    }

    /// The descriptor of a matrix.
    fn matrix(&mut self, tile: &Tile) -> String {
        let name = self.require(Helper::Ptx(Ptx::Matrix));
        let at = self.address(&tile.first);
        let Some(Matrix { leading, stride, swizzle, .. }) = tile.matrix else { return at };
        format!("{name}({at}, {leading}, {stride}, {})", mode(swizzle))
    }

    /// The function that holds a product's instruction.
    pub(super) fn define_wgmma(&mut self, product: Product) -> String {
        let Some(intrinsic) = ir::intrin::find(product.intrinsic) else { return String::new() };
        let Instruction::Wgmma { types: words, left, k, transposes, .. } = intrinsic.instruction else {
            return String::new();
        };
        let [sum, factor] = element_types(intrinsic).map(|it| {
            self.require(Helper::Type(it, 1));
            (types::scalar(self.dialect, it), it.bytes(), it)
        });
        let lanes = intrinsic.lanes();
        let count = |elements: i64, bytes: usize| {
            usize::try_from(elements / lanes).expect("sizes are positive") * bytes / REGISTER
        };
        let outputs = count(ROWS * product.columns, sum.1);
        let (of, constraint) = if sum.2 == DType::F32 { ("float", "+f") } else { ("unsigned int", "+r") };
        let lefts = left.map(|_| count(ROWS * k, factor.1));
        let (parameter, left_places, left_operands, used) = match lefts {
            None => ("unsigned long long a".to_owned(), format!("%{outputs}"), "\"l\"(a)".to_owned(), 1),
            Some(count) => (
                format!("const {} *a", factor.0),
                format!("{{{}}}", tensor::numbered(outputs, count)),
                tensor::register_list("r", "left", count),
                count,
            ),
        };
        let (right, adds) = (outputs + used, outputs + used + 1);
        let mut last = String::new();
        if !words.starts_with(".s32") {
            last.push_str(", 1, 1");
        }
        let transposed = if left.is_some() { &product.transposed[1..] } else { &product.transposed };
        for it in transposed.iter().filter(|_| transposes) {
            let _ = write!(last, ", {}", u8::from(*it));
        }
        let registers =
            if left.is_some() { "  const unsigned int *left = (const unsigned int *)a;\n" } else { "" };
        format!(
            "TW_INLINE void {}({} *d, {parameter}, unsigned long long b, bool adds) {{\n  \
             {of} *to = ({of} *)d;\n{registers}  \
             asm volatile(\"{{ .reg .pred p; setp.ne.b32 p, %{adds}, 0; \"\n               \
             \"wgmma.mma_async.sync.aligned.m64n{}k{k}{words} {{{}}}, {left_places}, %{right}, p{last}; }}\"\n               \
             : {}\n               \
             : {left_operands}, \"l\"(b), \"r\"((int)adds)\n               \
             : \"memory\");\n}}\n",
            product.name(),
            sum.0,
            product.columns,
            tensor::numbered(0, outputs),
            tensor::register_list(constraint, "to", outputs),
        )
    }
}

/// The types of the sum and of the factors.
fn element_types(intrinsic: &Intrinsic) -> [DType; 2] {
    let func = ir::text::parse(intrinsic.description).expect("descriptions are programs");
    let of = |at: usize| func.buffers.get_index(at).expect("a sum and two factors").1.dtype;
    [of(0), of(1)]
}

/// The number of a swizzle in a descriptor.
fn mode(swizzle: Option<XorSwizzle>) -> u8 {
    match swizzle.map(XorSwizzle::block_bytes) {
        Some(128) => 1,
        Some(64) => 2,
        Some(32) => 3,
        _ => 0,
    }
}
