//! Sources of the kernels that multiply on tensor cores: one for each shape and type, printed from what the instructions are.

use std::fmt::Write as _;

use ir::Feature;

/// A type of factors, as PTX has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Factors {
    /// As names of measurements have it.
    pub(super) word: &'static str,
    /// In `mma.sync`, with the feature that it came with.
    pub(super) mma: Feature,
    /// The types of sums and factors in instructions.
    types: &'static str,
    /// Factors of a product of a warp or a warpgroup along the sum.
    pub(super) depth: i64,
    /// Whether sums are integers.
    is_integer: bool,
    /// Whether a descriptor may be transposed.
    is_half: bool,
}

/// Those that tensor cores of several generations take.
pub(super) const FACTORS: [Factors; 5] = [
    Factors::new("f16", Feature::MmaF16, "f32.f16.f16", 16),
    Factors::new("bf16", Feature::MmaBf16, "f32.bf16.bf16", 16),
    Factors::new("tf32", Feature::MmaTf32, "f32.tf32.tf32", 8),
    Factors::new("e4m3", Feature::MmaF8, "f32.e4m3.e4m3", 32),
    Factors::new("i8", Feature::MmaI8, "s32.s8.s8", 32),
];

impl Factors {
    const fn new(word: &'static str, mma: Feature, types: &'static str, depth: i64) -> Factors {
        let (is_integer, is_half) = (types.as_bytes()[0] == b's', depth == 16);
        Factors { word, mma, types, depth, is_integer, is_half }
    }

    /// The type of the sums in C, the letter of their registers in constraints, and in `mma.sync` the types of all four matrices.
    fn sums(self) -> (&'static str, char, String) {
        let (sum, factors) = self.types.split_once('.').expect("sums and factors");
        let (of, letter) = if self.is_integer { ("int", 'r') } else { ("float", 'f') };
        (of, letter, format!("{sum}.{factors}.{sum}"))
    }
}

/// Chains of products of a warp (`mma.sync.m16n8`), so many of them independent of each other.
pub(super) fn mma(factors: Factors, chains: usize) -> String {
    let (sum, letter, types) = factors.sums();
    let (word, depth) = (factors.word, factors.depth);
    format!(
        "
KERNEL mma_{word}_{chains}(ARGUMENTS) {{
    {sum} sums[{chains}][4] = {{}};
    const u32 it = static_cast<u32>(stride);
    __syncthreads();
    const long long start = now();
#pragma unroll 4
    for (int i = 0; i < 512; ++i)
#pragma unroll
        for (int chain = 0; chain < {chains}; ++chain) {{
            {sum} *c = sums[chain];
            asm volatile(\"mma.sync.aligned.m16n8k{depth}.row.col.{types} {{%0, %1, %2, %3}}, {{%4, %4, %4, %4}}, {{%4, %4}}, {{%0, %1, %2, %3}};\"
                         : \"+{letter}\"(c[0]), \"+{letter}\"(c[1]), \"+{letter}\"(c[2]), \"+{letter}\"(c[3])
                         : \"r\"(it));
        }}
    {sum} all = 0;
    for (int chain = 0; chain < {chains}; ++chain)
        all += sums[chain][0] + sums[chain][1] + sums[chain][2] + sums[chain][3];
    sink[threadIdx.x] = static_cast<u32>(all);
    tell(cycles, start);
}}
"
    )
}

/// Groups of so many products of warpgroups of 64 rows and so many columns, each group waited for. Factors are zero and lie in shared
/// memory without a swizzle, as matrices of 8 rows of 16 bytes, 128 bytes apart one way and 256 the other; the left one perhaps in
/// registers.
pub(super) fn wgmma(factors: Factors, columns: i64, in_registers: bool, count: usize) -> String {
    let name = wgmma_name(factors, columns, in_registers);
    let (sum, letter, _) = factors.sums();
    let (types, depth, registers) = (factors.types, factors.depth, columns / 2);
    let list = |from: i64| (0..registers).map(|n| format!("%{}", from + n)).collect::<Vec<_>>().join(", ");
    let bound = (0..registers).map(|n| format!("\"+{letter}\"(c[{n}])")).collect::<Vec<_>>().join(", ");
    let (left, inputs, next) = if in_registers {
        let all = (0..4).map(|n| format!("%{}", registers + n)).collect::<Vec<_>>().join(", ");
        (format!("{{{all}}}"), "\"r\"(zero), \"r\"(zero), \"r\"(zero), \"r\"(zero)", registers + 4)
    } else {
        (format!("%{registers}"), "\"l\"(place)", registers + 1)
    };
    let signs = match (factors.is_integer, factors.is_half, in_registers) {
        (true, ..) => "",
        (false, false, _) => ", 1, 1",
        (false, true, true) => ", 1, 1, 0",
        (false, true, false) => ", 1, 1, 0, 0",
    };
    let product = format!(
        "        asm volatile(\"{{ .reg .pred p; setp.ne.b32 p, %{}, 0; wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.{types} \
         {{{}}}, {left}, %{next}, p{signs}; }}\"\n                     : {bound}\n                     : {inputs}, \"l\"(place), \"r\"(1));\n",
        next + 1,
        list(0),
    );
    let mut out = format!(
        "
KERNEL {name}_{count}(ARGUMENTS) {{
    __shared__ __align__(1024) u32 factors[2560];
    for (int i = threadIdx.x; i < 2560; i += blockDim.x) factors[i] = 0;
    asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");
    __syncthreads();
    const u64 place = static_cast<u64>((shared_address(factors) & 0x3ffff) >> 4) | u64(128 >> 4) << 16 | u64(256 >> 4) << 32;
    const u32 zero = 0;
    {sum} c[{registers}] = {{}};
    const long long start = now();
    for (int i = 0; i < 64; ++i) {{
        asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");
"
    );
    for _ in 0..count {
        out.push_str(&product);
    }
    write!(
        out,
        "        asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");
        asm volatile(\"wgmma.wait_group.sync.aligned 0;\" ::: \"memory\");
    }}
    {sum} all = 0;
    for (int i = 0; i < {registers}; ++i) all += c[i];
    sink[threadIdx.x] = static_cast<u32>(all);
    tell(cycles, start);
}}
"
    )
    .expect("a text can be written to");
    out
}

/// What the measurements of a product of a warpgroup are called.
pub(super) fn wgmma_name(factors: Factors, columns: i64, in_registers: bool) -> String {
    let registers = if in_registers { "_registers" } else { "" };
    format!("wgmma_{}_n{columns}{registers}", factors.word)
}
