//! Lowered programs as the passes before `flatten` leave them.

use ir::{BinaryOp, DType, ForKind, Instr, Module, Op, Scope, ThreadAxis, UnaryOp, Value};
use std::sync::Arc;

use super::build::*;

pub(crate) const F32: DType = DType::F32;

/// A register-tiled product with packed operands: `mr` rows and `nv` vectors of `lanes` lanes a tile.
pub(crate) fn tiled_matmul(m: i64, k: i64, (mr, nv, lanes): (i64, i64, i64), threads: bool) -> Module {
    let nr = nv * lanes;
    let kind = if threads { ForKind::Parallel } else { ForKind::Serial };
    let place = v("ii") * nr + v("jv") * lanes + v("jl");
    let c = (v("io") * mr + v("ii")) * m + v("jo") * nr + v("jv") * lanes + v("jl");
    let tile = |suffix: &str, body: Op| {
        let rename = |name: &ir::Name| {
            ["ii", "jv", "jl"].contains(&name.as_str()).then(|| v(&format!("{name}{suffix}")))
        };
        let inner = vectorized(&format!("jl{suffix}"), lanes, vec![body.subst(&rename)]);
        unrolled(&format!("ii{suffix}"), mr, vec![unrolled(&format!("jv{suffix}"), nv, vec![inner])])
    };
    let product = mul(
        load("A", (v("io") * k + v("k")) * mr + v("ii")),
        load("B", (v("jo") * k + v("k")) * nr + v("jv") * lanes + v("jl")),
    );
    let body = vec![
        alloc("C_local", F32, mr * nr, Scope::Local),
        tile("_init", store("C_local", place.clone(), constant(F32, 0.0))),
        serial(
            "k",
            k,
            vec![tile("", store("C_local", place.clone(), add(load("C_local", place.clone()), product)))],
        ),
        tile("_out", store("C", c, load("C_local", place))),
    ];
    let all = vec![each("io", m / mr, kind, vec![serial("jo", m / nr, body)])];
    module(
        "matmul",
        &[],
        &[("A", F32, (m * k).into()), ("B", F32, (m * k).into()), ("C+", F32, (m * m).into())],
        all,
    )
}

/// `out[i] = a * x[i] + y[i]` over a symbolic `n`, in vectors guarded at the end.
pub(crate) fn guarded_axpy() -> Module {
    let i = v("i") * 4 + v("l");
    let value = add(mul(constant(F32, 2.5), load("x", i.clone())), load("y", i.clone()));
    let guarded = Op::If(vec![less(i.clone(), v("n"))], vec![store("out", i, value)]);
    let body = vec![serial("i", v("n").ceil_div(&4.into()), vec![vectorized("l", 4, vec![guarded])])];
    module("axpy", &["n"], &[("x", F32, v("n")), ("y", F32, v("n")), ("out+", F32, v("n"))], body)
}

/// A padded copy in which every third element is dropped: the dividend of its guard can be negative.
pub(crate) fn padded() -> Module {
    let h = v("i") - 1;
    let cond = vec![less(h.floor_mod(&3.into()), 2), less(0, v("i")), less(h.clone(), 6)];
    let value = Value::Select(cond, Arc::new(load("A", h)), Arc::new(constant(F32, -0.0)));
    let body = vec![serial("i", 8, vec![store("B", v("i"), value)])];
    module("padded", &[], &[("A", F32, 6.into()), ("B+", F32, 8.into())], body)
}

/// Vectors that narrow and widen: `y = f16(exp(max(f32(x), 0)) * f32(w)) + x` with f16 `x` and `y`, bf16 `w`.
pub(crate) fn narrow_floats(lanes: i64) -> Module {
    let i = v("i") * lanes + v("l");
    let x = load("x", i.clone());
    let relu = Value::binary(BinaryOp::Max, cast(F32, x.clone()), constant(F32, 0.0));
    let product = mul(Value::Unary(UnaryOp::Exp, Arc::new(relu)), cast(F32, load("w", i.clone())));
    let y = add(cast(DType::F16, product), x);
    let body = vec![serial("i", 64 / lanes, vec![vectorized("l", lanes, vec![store("y", i, y)])])];
    let args = [("x", DType::F16, 64.into()), ("w", DType::Bf16, 64.into()), ("y+", DType::F16, 64.into())];
    module("narrow", &[], &args, body)
}

/// Vectorised loops that cannot be: a stride, a choice by lane, and a write to one place.
pub(crate) fn not_lanes() -> Module {
    let choice = Value::Select(
        vec![less(v("b"), 3)],
        Arc::new(load("A", v("b"))),
        Arc::new(constant(F32, f64::INFINITY)),
    );
    let sum = add(load("B", 0), load("A", v("c")));
    let body = vec![
        vectorized("a", 8, vec![store("B", v("a"), load("A", v("a") * 2))]),
        vectorized("b", 8, vec![store("B", v("b"), choice)]),
        vectorized("c", 8, vec![store("B", 0, sum)]),
    ];
    module("not_lanes", &[], &[("A", F32, 16.into()), ("B+", F32, 8.into())], body)
}

/// The matmul of a GPU: cooperative vector copies to shared memory, an accumulator tile in registers.
pub(crate) fn gpu_matmul(n: i64) -> Module {
    let (bm, bk, tm) = (64, 8, 4);
    let copy = |name: &str, from: &str, source: ir::Index, var: &str| {
        let place = v("threadIdx_x") * 4 + v(var);
        let guarded = Op::If(
            vec![less(v("threadIdx_x"), bm * bk / 4)],
            vec![vectorized(var, 4, vec![store(name, place, load(from, source))])],
        );
        vec![guarded]
    };
    let flat = |var: &str| v("threadIdx_x") * 4 + v(var);
    let a_row = v("blockIdx_y") * bm + flat("va").floor_div(&bk.into());
    let a = a_row * n + v("ko") * bk + flat("va").floor_mod(&bk.into());
    let b = (v("ko") * bk + flat("vb").floor_div(&bm.into())) * n
        + v("blockIdx_x") * bm
        + flat("vb").floor_mod(&bm.into());
    let (ty, tx) = (v("threadIdx_x").floor_div(&16.into()), v("threadIdx_x").floor_mod(&16.into()));
    let place = v("i") * tm + v("j");
    let product = mul(
        load("A_shared", (ty.clone() * tm + v("i")) * bk + v("ki")),
        load("B_shared", v("ki") * bm + tx.clone() * tm + v("j")),
    );
    let step = store("C_local", place.clone(), add(load("C_local", place.clone()), product));
    let mut k_body = copy("A_shared", "A", a, "va");
    k_body.extend(copy("B_shared", "B", b, "vb"));
    k_body.push(Instr::barrier().into());
    k_body.push(unrolled("ki", bk, vec![unrolled("i", tm, vec![unrolled("j", tm, vec![step])])]));
    k_body.push(Instr::barrier().into());
    let init = store("C_local", v("i0") * tm + v("j0"), constant(F32, 0.0));
    let out = (v("blockIdx_y") * bm + ty * tm + v("i1")) * n + v("blockIdx_x") * bm + tx * tm + v("j1");
    let body = vec![
        alloc("A_shared", F32, bm * bk, Scope::Shared),
        alloc("B_shared", F32, bm * bk, Scope::Shared),
        alloc("C_local", F32, tm * tm, Scope::Local),
        serial("i0", tm, vec![serial("j0", tm, vec![init])]),
        serial("ko", n / bk, k_body),
        serial(
            "i1",
            tm,
            vec![vectorized("j1", tm, vec![store("C", out, load("C_local", v("i1") * tm + v("j1")))])],
        ),
    ];
    let args = [("A", F32, (n * n).into()), ("B", F32, (n * n).into()), ("C+", F32, (n * n).into())];
    let launch = [
        (ThreadAxis::BlockX, (n / bm).into()),
        (ThreadAxis::BlockY, (n / bm).into()),
        (ThreadAxis::ThreadX, 256.into()),
    ];
    launched(module("matmul", &[], &args, body), &launch)
}

/// One thread for each element of a symbolic size.
pub(crate) fn gpu_elementwise() -> Module {
    let i = v("blockIdx_x") * 256 + v("threadIdx_x");
    let value = Value::Unary(UnaryOp::Tanh, Arc::new(load("x", i.clone())));
    let body = vec![Op::If(vec![less(i.clone(), v("n"))], vec![store("out", i, value)])];
    let args = [("x", F32, v("n")), ("out+", F32, v("n"))];
    let launch = [(ThreadAxis::BlockX, v("n").ceil_div(&256.into())), (ThreadAxis::ThreadX, 256.into())];
    launched(module("tanh", &["n"], &args, body), &launch)
}
