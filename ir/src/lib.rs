//! The language: programs, their text, arithmetic and meaning.
//!
//! # What a program means
//!
//! A [`Func`] is a tree of loops over [`Block`]s. A loop runs its body for each value of its variable from zero up
//! to its extent, whatever its [`LoopKind`]: the kind says how a machine should run the iterations, never what they
//! compute. A block runs when all its guards hold; each iterator gets the value of its binding; the `init` runs
//! first when every reduction iterator is zero; then the body runs. A block's body reads its own iterators and the
//! symbolic dimensions, and no loop variable: that is what lets primitives move blocks about.
//!
//! Every loop, block and buffer has a name unique among all names of its `Func`, but that a block may have the
//! name of a buffer: block `C` computes `C`. Iterator names are local to their block. Names are the
//! identity: scripts, errors, diffs, logs and emitted comments all say the same word.
//!
//! What a well-formed function is, invariant by invariant, is the page of [`mod@verify`].
//!
//! # Two expression types
//!
//! [`Index`] is exact and may be rewritten by any law of integers. [`Value`] is machine arithmetic and is never
//! rewritten at all.
//!
//! # Two program forms
//!
//! [`Func`] is schedulable. [`Kernel`] is lowered: flat subscripts, launch dimensions, allocations, barriers.
//!
//! # Text
//!
//! ```text
//! func matmul(n)                                   // symbolic dimensions in parentheses
//!   in A: f32[n, 64]
//!   in B: f32[64, 32]
//!   out C: f32[n, 32]
//!   temp A_shared: f32[n, 64] @shared align(0, 32, 4)   // storage_align: axis, factor, offset
//!
//!   for io in 0..n floordiv 8 @blockIdx.x          // kinds: @parallel @vectorized @unrolled @blockIdx.x …
//!     for k in 0..64 #{software_pipeline_stage: {A_shared: 0, C: 1}, hint: 3, note: "text", list: [0, 1]}
//!       block C(vi: n = io*8 + ii, vj: 32 = j, vk: reduce 64 = k) if io*8 + ii < n
//!         init
//!           C[vi, vj] = 0.0f32
//!         C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
//! ```
//!
//! *Lines.* One statement a line; indentation nests, two spaces a level; `//` begins a comment. The first line may end with how
//! far outputs may be from exact ones: `func matmul(n) tolerance 0.001f64`. Buffers stand
//! before statements: `in`, `out` or `temp`, the type, the shape, then what differs from the usual (`@shared`,
//! `@local`, `@cluster`, `align(…)`, `swizzle(auto)` or `swizzle(3, 4, 3)`; in a program that is being lowered `panel 64` where so many
//! columns of all rows stand together, `per ko` where each iteration of a loop has its own, and `once` where the program has one). A block lists its iterators as `name: extent = binding` or `name: reduce extent =
//! binding`, then its guards after `if`, joined by `&&`. What is asked of a loop or block ([`LoopAttrs`],
//! [`BlockAttrs`]) stands last, in `#{…}`, together with notes under any other key; a key that is no identifier is quoted.
//!
//! *Indices* have `+ - *`, `floordiv`, `mod`, `min(a, b)`, `max(a, b)`, `xor(a, b)` and the sign `-a`. In what a block loads and in the conditions of a
//! `select` they may have `assume(ids[i] < n)`, the element of an input of integers at a row-major position, where the input is declared as `in ids: i32[m] below n`. `* floordiv mod` bind
//! equally tightly and, as `+ -`, group from the left. There is no subtraction in the tree: `a - b` is the sum
//! of `a` and [`Index::negated`] `b`.
//!
//! *Values* have literals with their type (`1.5f32`, `-inf_f32`, `nan_f32`, `3i32`, `true`), loads, `+ - * /`, the
//! sign, `min(a, b)`, `max(a, b)`, `exp(a)` and the other functions of [`UnaryOp`], `f32(a)` for a conversion,
//! `i32{vi + 1}` for an index as a value, and `select(a < b && c < d, x, y)`, whose conditions are on indices. Of integers there are
//! `& | ^ << >>`. `a < b`, `<=`, `==` and `!=` compare, which gives a `bool`, on which `& | ^` compute too; `where(c, x, y)` chooses by one. They bind as
//! in Python and Rust: `* /` most tightly, then `+ -`, `<< >>`, `&`, `^`, `|`, and comparisons least. The negation of a literal is
//! `-(1.5f32)`, since `-1.5f32` is a literal. `A[i*4 +: 4]` is an access to four adjacent elements, which only a
//! [`Kernel`] has.
//!
//! A [`Module`] prints in the same taste: `kernel matmul<<<blockIdx.x: 64>>>(A, B, mut C)`, `alloc`, `if`, `barrier`,
//! `acquire turns[blockIdx_x] at blockIdx_z of 4` and `release …` for a [`Semaphore`], `C[i] += x` for an atomic addition,
//! `S[i] <- A[i]` for an asynchronous copy, `commit`, `wait 1 for S`. A barrier may say what it is there for: `barrier "S: written
//! before, read after"`. Where instructions come from ([`Origin`]) stands on a line of its own before the first of them, and holds until
//! another such line: `of C` for a block, `of C @ko steady 0 component 1` in a step of a pipeline, `of @ko steady 0` for what stands
//! at its end. [`text::parse_module`] reads it as it was printed, comments among statements included.
//!
//! What the copy engine and warpgroups do has lines of its own. First, before the statements of a kernel, what it has:
//!
//! ```text
//! tensor_map A_map = A[m, 256] strides (256, 1) box 128 x 64 swizzle 128B   // a TensorMap; strides where there are gaps
//! mbarriers ko_full[4] arrivals 1                                           // Mbarriers: four, an arrival a phase
//! claims tile_claims                                                        // the variable that counts for how many blocks one stands (Claim)
//! role load<<<threadIdx.x: 128>>> registers 40                              // a WarpRole; the kernel has no thread axes then
//! ```
//!
//! A box of shared memory ([`Tile`]) is `A_shared[0; 128 x 64]`: its first element and its sides. Then, among the statements:
//!
//! ```text
//! in load                                                  // what the threads of a role do
//!   leader role                                            // one thread for its warp, warpgroup, role or block
//!     await ko_empty[ko mod 4] phase ko floordiv 4 - 1     // waits for a phase of an mbarrier, the first one being 0
//!     expect ko_full[ko mod 4] bytes 16384                 // arrives, and says how many bytes come in the phase
//!     A_shared[ko mod 4*8192; 128 x 64] <= A[i, ko*64] by A_map on ko_full[ko mod 4]   // `along cluster.x`: to each block there
//!     C[i, j] <= C_shared[0; 64 x 64] by C_map             // back; `by C_map added` adds
//!   C_tmem[0, 0; 128 x 256] <- tcgen05_m128k16_f16_f32(A_shared[…], B_shared[…]) from zero if ko < 1   // sum in tensor memory
//!   commit bulk                                            // groups: `bulk`, `wgmma`, `tcgen05`, or nothing for `cp.async`
//!   wait bulk reads 0                                      // `reads`: until the copies have read
//! fence wgmma                                              // or `fence async`
//! C_acc[0 +: 32] <- wgmma_m64k16_bf16_f32(A_shared[0; 64 x 16 by k leading 16 stride 1024 swizzle 128B], B_shared[…]) from zero if ko < 1
//! arrive ko_empty[ko mod 4]                                // `along cluster.x`: in each block of the cluster along an axis; `at first`: in its first block; `behind tcgen05`: when products are over
//! barrier role                                             // of a warp, warpgroup, role or cluster; else of the block
//! C[i] = S[1 - cluster_x, i]                               // of memory of a cluster: the block, and the element there
//! claim tile_answer[0 +: 4] for tile_full[0]               // a Claim; its answer comes as a box does
//! take tile_answer[0 +: 4]                                 // a Take: the last statement of a loop over `0..tile_claims`
//! acquire turn ko at tile_wave*2 + threadIdx_y of 8 among 2   // a Turn of a warpgroup; `release turn …` ends it
//! ```
//!
//! A product starts `from zero` always, `from zero if` where the conditions hold, or never. What follows `by` in a box is how a matrix
//! instruction finds its elements ([`Matrix`]): which dimension is contiguous, `k` or `mn`, and the distances that the hardware is told.
//! In a [`Func`] that is being lowered, `mbarriers ko_full[4] arrivals 1` stands among the buffers, and the instructions are bodies of blocks.

pub mod access;
mod annotation;
mod arch;
pub mod arith;
mod attrs;
mod bulk;
mod claim;
mod code;
pub mod cost;
mod cross_block;
pub mod deps;
mod dtype;
mod effects;
mod func;
mod index;
mod instr;
pub mod interp;
pub mod intrin;
mod kernel;
mod less;
mod mbarrier;
mod mechanism;
pub mod modulo;
mod name;
mod near;
pub mod number;
mod op;
mod operator;
mod origin;
mod ping_pong;
pub mod pipeline;
mod raster;
mod reducer;
pub mod reference;
pub mod region;
mod reserved;
mod scan;
#[cfg(feature = "schema")]
mod schema;
mod scope;
mod semaphore;
pub mod solve;
mod stmt;
mod storage;
mod swizzle;
mod sync;
mod tables;
mod target;
mod tcgen05;
pub mod text;
mod thread_axis;
pub mod thread_group;
mod turn;
mod unchanged;
mod value;
pub mod verify;
mod warp_reduce;
mod wgmma;

pub use annotation::{Annotation, Annotations};
pub use arch::{Arch, Caps, Cluster, Feature, Features, Latencies, Paces, TensorRates};
pub use attrs::{
    BLOCKS_PER_SM, BlockAttrs, CLUSTER_LAUNCH_CONTROL, ForcedMechanism, LoopAttrs, Numbers, PERSISTENT,
    PING_PONG, PROGRAMMATIC_LAUNCH, PipelineSpec, RASTERIZE, REVERSE, ROLE, SERPENTINE, WARP_ROLES,
};
pub use bulk::{BulkCopy, BulkKind, Major, Matrix, TensorMap, Tile};
pub use claim::{Claim, Take};
pub use code::{Code, Coded};
pub use cross_block::{CROSS_BLOCK, CrossBlock, added};
pub use dtype::DType;
pub use effects::{Completion, Effect, Effects, Fence, Fill, Group, Mode, Participants, Proxy, SyncKind};
pub use func::{AllocScope, Buffer, Buffers, Func, Layout, Role, StorageAlign};
pub use index::{Index, IndexKind};
pub use instr::{Instr, TensorOp};
pub use interp::{InterpError, Site, Tensor};
pub use kernel::{Alloc, Arg, For, ForKind, Independence, Kernel, Module, RingCounter, WarpRole, axis_var};
pub use less::Less;
pub use mbarrier::{Arrival, Mbarriers, Phase};
pub use mechanism::Mechanism;
pub use name::Name;
pub use op::Op;
pub use operator::{BinaryOp, UnaryOp};
pub use origin::{Origin, PipelineStep};
pub use ping_pong::PingPong;
pub use raster::Raster;
pub use reducer::Reducer;
pub use reserved::is_reserved;
pub use scan::Scan;
pub use scope::Scope;
pub use semaphore::{Semaphore, SemaphoreKind};
pub use stmt::{Block, Iter, IterKind, Loop, LoopKind, Stmt, Store};
pub use storage::Storage;
pub use swizzle::{Swizzle, XorSwizzle};
pub use sync::{Barrier, Wait};
pub use target::Target;
pub use tcgen05::Tcgen05;
pub use thread_axis::ThreadAxis;
pub use turn::Turn;
pub use unchanged::unchanged_blocks;
pub use value::{Access, Literal, Number, Value};
pub use verify::{
    Example, KernelError, KernelErrorKind, Part, VerifyError, VerifyErrorKind, verify, verify_module,
    verify_step,
};
pub use warp_reduce::WarpReduce;
pub use wgmma::{Factor, Wgmma};
