//! Tensor memory: its allocation, products into it by `tcgen05.mma`, scales of factors there, and loads from it.
//!
//! Products of one thread are waited for by groups. The end of each group arrives at the next of a few mbarriers (`tcgen05.commit`), which the
//! thread that started it waits at, and counts in a register.

use ir::{
    Arrival, DType, Kernel, Major, Matrix, Scope, Tcgen05, TensorOp, Tile, Wait, XorSwizzle,
    intrin::{self, Instruction, ProductKind, WARPGROUP},
};

use super::{
    Printer,
    helper::Helper,
    names::identifier,
    ptx::{Ptx, SHARED, function, plain},
    wgmma::layouts,
};
use crate::launch::{TensorMemory, tensor_memory_offset};

/// A form of the product: what it multiplies, the columns, and which factors have K not contiguous.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct TensorProduct {
    intrinsic: &'static str,
    columns: i64,
    /// How many blocks compute it together.
    blocks: i64,
    transposed: [bool; 2],
}

impl TensorProduct {
    /// What the function is called.
    pub(super) fn name(self) -> String {
        let rows = format!("m{}", Scope::TENSOR_ROWS * self.blocks);
        let of = self.intrinsic.replacen(&rows, &format!("{rows}n{}", self.columns), 1);
        format!("tw_{of}{}", layouts(self.transposed))
    }

    /// The instruction descriptor of a dense product without negation, whose sum is in f32 or i32 (PTX ISA, *Instruction descriptor*). Where factors
    /// have scales, these are of a type that it says, ue4m3 if not ue8m0, and which of them is meant comes in addition.
    fn descriptor(self, format: u32, sum: DType, scales: Option<DType>) -> u32 {
        let types = match (scales, sum) {
            (None, DType::I32) => SUM_IS_I32,
            (None, _) => SUM_IS_F32,
            (Some(DType::F8e8m0), _) => SCALES_ARE_UE8M0,
            (Some(_), _) => 0,
        };
        let [left, right] = self.transposed.map(u32::from);
        let columns = u32::try_from(self.columns / 8).expect("a product has at most 256 columns");
        let rows = Scope::TENSOR_ROWS * self.blocks;
        let rows = u32::try_from(rows / 16).expect("there are 128 rows in each block");
        types | format << 7 | format << 10 | left << 15 | right << 16 | columns << 17 | rows << 24
    }
}

impl Printer<'_> {
    /// Has a warp ask for tensor memory, and tells all threads where it is.
    pub(super) fn begin_tensor_memory(&mut self, kernel: &Kernel) {
        let Some(memory) = TensorMemory::of(kernel) else { return };
        let groups = memory.groups.expect("`available` refuses others");
        self.frame.tensor_groups = Some(groups);
        let pair = kernel.multiplies_in_pairs();
        self.frame.multiplies_in_pairs = pair;
        let at = tensor_memory_offset(kernel);
        let address = at + memory.shared_bytes() - 8;
        self.line(&format!("unsigned int *const tw_tensor_at = (unsigned int *)(tw_shared + {address});"));
        if groups > 0 {
            self.begin_groups(groups, at);
        }
        let allocate = self.require(Helper::Ptx(Ptx::TensorAlloc { pair }));
        self.line(&format!("if (tw_warp == 0) {allocate}(tw_tensor_at, {});", memory.allocated()));
        self.tensor_barrier(|it| it.line("__syncthreads();"));
        self.line("const unsigned int tw_tensor = *tw_tensor_at;");
        for (name, [first, _]) in &memory.buffers {
            self.line(&format!("const unsigned int {} = tw_tensor + {first};", identifier(name)));
        }
    }

    /// The mbarriers that tell when groups are over.
    fn begin_groups(&mut self, groups: i64, at: i64) {
        self.line(&format!("unsigned long long *const tw_over = (unsigned long long *)(tw_shared + {at});"));
        self.line("unsigned int tw_groups = 0;");
        self.nest("if (threadIdx.x + threadIdx.y + threadIdx.z == 0)", |printer| {
            let init = printer.require(Helper::Ptx(Ptx::MbarrierInit));
            printer.line(&format!(
                "for (int tw_slot = 0; tw_slot < {groups}; ++tw_slot) {init}(&tw_over[tw_slot], 1);"
            ));
            let fence = printer.require(Helper::Ptx(Ptx::MbarrierInitFence));
            printer.line(&format!("{fence}();"));
        });
    }

    /// Gives tensor memory back when all threads have done with it.
    pub(super) fn end_tensor_memory(&mut self, kernel: &Kernel) {
        let Some(memory) = TensorMemory::of(kernel) else { return };
        let pair = kernel.multiplies_in_pairs();
        // What one block gives back, the other may still write: products are for both (PTX ISA, *tcgen05*, issue granularity).
        self.tensor_barrier(|it| {
            let name =
                if pair { it.require(Helper::Ptx(Ptx::ClusterMeeting)) } else { "__syncthreads".to_owned() };
            it.line(&format!("{name}();"));
        });
        let free = self.require(Helper::Ptx(Ptx::TensorFree { pair }));
        self.line(&format!("if (tw_warp == 0) {free}(tw_tensor, {});", memory.allocated()));
    }

    /// A barrier behind which threads find in tensor memory what others did before it: in kernels that have some, it takes two fences.
    pub(super) fn tensor_barrier(&mut self, barrier: impl FnOnce(&mut Self)) {
        self.tensor_fence(true);
        barrier(self);
        self.tensor_fence(false);
    }

    /// In a kernel that has tensor memory, lets what was done there come before what tells others of it, or behind what told of it.
    pub(super) fn tensor_fence(&mut self, before: bool) {
        if self.frame.tensor_groups.is_some() {
            let name = self.require(Helper::Ptx(Ptx::TensorFence { before }));
            self.line(&format!("{name}();"));
        }
    }

    /// A product that begins.
    pub(super) fn tcgen05(&mut self, it: &Tcgen05) {
        let Tcgen05 { intrinsic, place, operands, starts } = it;
        let Some([left, right]) = it.factors() else {
            return operands.first().map_or((), |from| self.tensor_copy(place, from));
        };
        let is_transposed = |tile: &Tile| tile.matrix.is_some_and(|it| it.major == Major::Mn);
        let blocks = if intrinsic.is_of_pair() { 2 } else { 1 };
        let product = TensorProduct {
            intrinsic: intrinsic.name,
            columns: right.extents.first().copied().unwrap_or(0) * blocks,
            blocks,
            transposed: [left, right].map(is_transposed),
        };
        let name = self.require(Helper::Tcgen05(product));
        let sum = self.columns(&place.first);
        let [left, right] = [left, right].map(|it| self.tensor_matrix(it));
        let adds = match starts.as_deref() {
            None => "true".to_owned(),
            Some([]) => "false".to_owned(),
            Some(conditions) => format!("!({})", self.conditions(conditions)),
        };
        let scales = it.scales().map(|all| all.map(|it| self.first_scale(it)).concat()).unwrap_or_default();
        self.line(&format!("{name}({sum}, {left}, {right}, {adds}{scales});"));
    }

    /// Where the scales of a factor begin: a column of tensor memory, and how many scales of a row of it are left out.
    fn first_scale(&mut self, tile: &Tile) -> String {
        let name = identifier(&tile.first.buffer).into_owned();
        let first = tile.first.indices.get(1).map_or_else(|| "0".to_owned(), |it| self.index(it));
        format!(", {name}, {first}")
    }

    /// A copy of scales to tensor memory, four of them in a column.
    fn tensor_copy(&mut self, place: &Tile, from: &Tile) {
        let name = self.require(Helper::Ptx(Ptx::TensorCopy));
        let columns = place.first.indices.iter().map(|it| it.floor_div(&ir::Index::int(SCALES_OF_COLUMN)));
        let to = self.columns(&ir::Access { indices: columns.collect(), ..place.first.clone() });
        let from = self.tensor_matrix(from);
        self.line(&format!("{name}({to}, {from});"));
    }

    /// The address of columns of tensor memory.
    fn columns(&mut self, it: &ir::Access) -> String {
        let name = identifier(&it.buffer).into_owned();
        match it.indices.get(1) {
            Some(column) if column.as_int() != Some(0) => format!("{name} + {}", self.index(column)),
            _ => name,
        }
    }

    /// The descriptor of a factor.
    fn tensor_matrix(&mut self, tile: &Tile) -> String {
        let name = self.require(Helper::Ptx(Ptx::TensorMatrix));
        let at = self.address(&tile.first);
        let Some(Matrix { leading, stride, swizzle, .. }) = tile.matrix else { return at };
        format!("{name}({at}, {leading}, {stride}, {})", mode(swizzle))
    }

    /// Columns of the row that a lane has, from tensor memory to its registers. The warps of a warpgroup have 32 rows each.
    pub(super) fn tensor_load(&mut self, TensorOp { intrinsic, place, operands }: &TensorOp) {
        let Some(from) = operands.first() else { return };
        let of = self.frame.memory[&from.buffer].0;
        let name = self.require(Helper::TensorLoad(intrinsic.name, of, place.lanes));
        let (to, from) = (self.element_address(place), self.columns(from));
        let warps = WARPGROUP / ir::intrin::WARP;
        self.line(&format!("{name}({to}, {from} + (tw_warp % {warps} << 21));"));
    }

    /// An arrival behind products, in one block of a cluster or in several.
    pub(super) fn commit_at(&mut self, it: &Arrival, at: &str) {
        let (pair, multicast) = (self.frame.multiplies_in_pairs, !it.along.is_empty());
        let name = self.require(Helper::Ptx(Ptx::TensorCommit { pair, multicast }));
        let mask = if multicast { format!(", {}", self.multicast_mask(&it.along)) } else { String::new() };
        self.line(&format!("{name}({at}{mask});"));
    }

    /// Closes a group of products.
    pub(super) fn commit_tensor(&mut self) {
        let name = self.require(Helper::Ptx(Ptx::TensorCommit { pair: false, multicast: false }));
        let slot = self.slot_of("tw_groups");
        self.line(&format!("{name}(&tw_over[{slot}]);"));
        self.line("++tw_groups;");
    }

    /// Waits for all but the youngest groups of products.
    pub(super) fn wait_tensor(&mut self, it: &Wait) {
        let name = self.require(Helper::Ptx(Ptx::Await));
        let group = format!("tw_groups - {}", it.in_flight + 1);
        let slot = self.slot_of(&format!("({group})"));
        let number = match self.frame.tensor_groups {
            Some(groups) if groups > 1 => format!("({group}) / {groups}"),
            _ => group,
        };
        self.line(&format!("if (tw_groups > {}) {name}(&tw_over[{slot}], {number});", it.in_flight));
    }

    fn slot_of(&self, group: &str) -> String {
        match self.frame.tensor_groups {
            Some(groups) if groups > 1 => format!("{group} % {groups}"),
            _ => "0".to_owned(),
        }
    }

    /// The function that loads so many columns, and waits for them.
    pub(super) fn define_tensor_load(&mut self, name: &str, of: DType, columns: u32) -> String {
        let element = self.require(Helper::Type(of, 1));
        let count = columns as usize;
        format!(
            "TW_INLINE void {name}({element} *out, unsigned int at) {{\n  \
             unsigned int *to = (unsigned int *)out;\n  \
             asm volatile(\"tcgen05.ld.sync.aligned.32x32b.x{columns}.b32 {{{}}}, [%{count}]; tcgen05.wait::ld.sync.aligned;\"\n               \
             : {}\n               \
             : \"r\"(at)\n               \
             : \"memory\");\n}}\n",
            super::tensor::numbered(0, count),
            super::tensor::register_list("=r", "to", count),
        )
    }
}

/// The function that holds a product's instruction.
pub(super) fn define_product(product: TensorProduct) -> String {
    let Some(intrinsic) = ir::intrin::find(product.intrinsic) else { return String::new() };
    let Instruction::Tcgen05(kind) = intrinsic.instruction else { return String::new() };
    let types = intrin::operand_types(intrinsic);
    // The scales of the left factor stand behind it.
    let scales = kind.scaled.and_then(|_| types.get(2).copied());
    let descriptor = product.descriptor(kind.format, types[0], scales);
    if kind.scaled.is_some() {
        return define_scaled(product, kind, descriptor);
    }
    format!(
        "TW_INLINE void {}(unsigned int d, unsigned long long a, unsigned long long b, bool adds) {{\n  \
         asm volatile(\"{{ .reg .pred p; setp.ne.b32 p, %4, 0; \"\n               \
         \"tcgen05.mma.cta_group::{}.kind::{} [%0], %1, %2, %3, p; }}\"\n               \
         :: \"r\"(d), \"l\"(a), \"l\"(b), \"r\"({descriptor:#x}), \"r\"((int)adds)\n               \
         : \"memory\");\n}}\n",
        product.name(),
        product.blocks,
        kind.name,
    )
}

/// A product of factors with scales: a column of tensor memory has four of each row, one behind the other along K, and the instruction
/// descriptor says which one is meant, or the first of several (PTX ISA, *Scale factor A ID*).
fn define_scaled(product: TensorProduct, kind: ProductKind, descriptor: u32) -> String {
    let (name, scales) = (kind.name, kind.scales_of_row());
    format!(
        "TW_INLINE void {}(unsigned int d, unsigned long long a, unsigned long long b, bool adds, \
         unsigned int at_a, unsigned int of_a, unsigned int at_b, unsigned int of_b) {{\n  \
         const unsigned int which = {descriptor:#x} | (of_a % 4) << 29 | (of_b % 4) << 4;\n  \
         asm volatile(\"{{ .reg .pred p; setp.ne.b32 p, %6, 0; \"\n               \
         \"tcgen05.mma.cta_group::{}.kind::{name}.block_scale.scale_vec::{scales}X [%0], %1, %2, %3, [%4], [%5], p; }}\"\n               \
         :: \"r\"(d), \"l\"(a), \"l\"(b), \"r\"(which), \"r\"(at_a + of_a / 4), \"r\"(at_b + of_b / 4), \"r\"((int)adds)\n               \
         : \"memory\");\n}}\n",
        product.name(),
        product.blocks,
    )
}

/// How many scales of a row a column of tensor memory has.
const SCALES_OF_COLUMN: i64 = 4;
/// Bits of instruction descriptors.
const SUM_IS_F32: u32 = 1 << 4;
const SUM_IS_I32: u32 = 2 << 4;
const SCALES_ARE_UE8M0: u32 = 1 << 23;

/// The number of a swizzle in a descriptor of a factor.
fn mode(swizzle: Option<XorSwizzle>) -> u8 {
    match swizzle.map(XorSwizzle::block_bytes) {
        Some(128) => 2,
        Some(64) => 4,
        Some(32) => 6,
        _ => 0,
    }
}

/// The definition of the function of an instruction that is about tensor memory.
pub(super) fn define(it: Ptx, name: &str) -> String {
    let group = |pair: bool| if pair { "cta_group::2" } else { "cta_group::1" };
    match it {
        Ptx::TensorAlloc { pair } => function(
            name,
            "const void *at, unsigned int columns",
            &format!(
                "tcgen05.alloc.{0}.sync.aligned.shared::cta.b32 [%0], %1; tcgen05.relinquish_alloc_permit.{0}.sync.aligned;",
                group(pair)
            ),
            &[SHARED, "\"r\"(columns)"],
        ),
        Ptx::TensorFree { pair } => function(
            name,
            "unsigned int at, unsigned int columns",
            &format!("tcgen05.dealloc.{}.sync.aligned.b32 %0, %1;", group(pair)),
            &["\"r\"(at)", "\"r\"(columns)"],
        ),
        Ptx::TensorCommit { pair, multicast } => {
            let (parameter, modifier, mask, operand) = if multicast {
                (", unsigned short blocks", ".multicast::cluster", ", %1", &["\"h\"(blocks)"][..])
            } else {
                ("", "", "", &[][..])
            };
            function(
                name,
                &format!("const void *at{parameter}"),
                &format!(
                    "tcgen05.commit.{}.mbarrier::arrive::one.shared::cluster{modifier}.b64 [%0]{mask};",
                    group(pair)
                ),
                &[&[SHARED], operand].concat(),
            )
        }
        Ptx::TensorCopy => function(
            name,
            "unsigned int to, unsigned long long from",
            "tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;",
            &["\"r\"(to)", "\"l\"(from)"],
        ),
        Ptx::TensorFence { before: true } => plain(name, "tcgen05.fence::before_thread_sync;"),
        Ptx::TensorFence { before: false } => plain(name, "tcgen05.fence::after_thread_sync;"),
        _ => define_matrix(name),
    }
}

/// PTX ISA, *Shared memory descriptor*: fields of 14 bits in units of 16 bytes, a constant, and the mode of the swizzle.
fn define_matrix(name: &str) -> String {
    format!(
        "TW_INLINE unsigned long long {name}(const void *at, unsigned int leading, unsigned int stride, unsigned int mode) {{\n  \
           const unsigned int low = (tw_shared_address(at) & 0x3ffff) >> 4 | leading >> 4 << 16;\n  \
           const unsigned int high = stride >> 4 | 1 << 14 | mode << 29;\n  \
           return (unsigned long long)high << 32 | low;\n}}\n"
    )
}
