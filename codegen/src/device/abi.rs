//! The C interface of emitted CPU kernels.
//!
//! A kernel is one exported function, named as its [`Launch`](super::Launch) says:
//!
//! ```c
//! void NAME(void *const *buffers, const int64_t *dims, const tw_runtime *rt);
//! ```
//!
//! * `buffers[i]` is the start of the i-th of `Launch::buffers`, aligned as its elements are. None that is written overlaps another.
//! * `dims[i]` is the i-th of `Launch::dims`; the pointer is valid (and may dangle) when there are none.
//! * `rt` runs parallel loops and is passed on untouched. `rt->parallel(rt, n, body, ctx)` calls `body(ctx, i)` once
//!   for each `0 <= i < n`, on several threads and in any order, and returns when all are done: everything that a
//!   `body` wrote is visible then. It may be called from inside a `body`. `ctx` is the caller's own and is not
//!   copied, so it may live on the caller's stack. With one thread the calls happen inline, in order.
//!
//! A kernel neither allocates from nor unwinds through the host: C has no exceptions, and the host's callbacks abort
//! rather than unwind into C.

use std::ffi::c_void;

/// What stands at the top of every emitted C source: the integer types and the runtime.
pub const CPU_ABI_HEADER: &str = r"#include <stdint.h>

typedef struct tw_runtime tw_runtime;
struct tw_runtime {
  void (*parallel)(const tw_runtime *rt, int64_t n, void (*body)(void *ctx, int64_t i), void *ctx);
  void *pool;
};
";

/// The body of a parallel loop.
pub(super) type Body = unsafe extern "C" fn(ctx: *mut c_void, i: i64);

/// `tw_runtime`.
#[repr(C)]
pub(super) struct Runtime {
    pub(super) parallel: unsafe extern "C" fn(rt: *const Runtime, n: i64, body: Body, ctx: *mut c_void),
    pub(super) pool: *const c_void,
}

/// An emitted kernel.
pub(super) type KernelFn =
    unsafe extern "C" fn(buffers: *const *mut c_void, dims: *const i64, rt: *const Runtime);
