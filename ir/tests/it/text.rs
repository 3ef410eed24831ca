//! The text form, there and back.

use std::{fmt::Write as _, sync::Arc};

use tilewright_ir::{
    Access, Alloc, Arg, DType, For, ForKind, Independence, Index, Instr, Kernel, Less, Module, Name, Op,
    Origin, PipelineStep, Role, Scope, ThreadAxis, Value, text, verify,
};

const MATMUL: &str = r#"
func matmul(n)                                   // symbolic dimensions in parentheses
  in A: f32[n, 64]
  in B: f32[64, 32]
  out C: f32[n, 32]
  temp A_shared: f32[n, 64] @shared align(0, 32, 4)   // storage_align: axis, factor, offset

  for io in 0..n floordiv 8 @blockIdx.x
    for k in 0..64 #{software_pipeline_stage: {A_shared: 0, C: 1}, hint: 3, note: "te\"xt", list: [0, 1]}
      block C(vi: n = io*8 + ii, vj: 32 = j, vk: reduce 64 = k) if io*8 + ii < n #{x: -1}
        init
          C[vi, vj] = 0.0f32

        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
  for empty in 0..4 @unrolled
  block last()
    s[] = select(vi - 1 < n && true_ < 2, -inf_f32, exp(f32(i32{vi - vj*4})))
"#;

#[test]
fn prints_what_it_parses() {
    let func = text::parse(MATMUL).unwrap();
    let listing = text::print(&func);
    assert_eq!(listing.parts.len(), listing.text.lines().count());
    insta::assert_snapshot!(listing.text);
    let heads: Vec<_> =
        listing.heads.iter().map(|(name, at)| format!("{name}: {}", &listing.text[at.clone()])).collect();
    insta::assert_snapshot!(heads.join("\n"));
    assert_eq!(text::parse(&listing.text).unwrap(), func);
}

#[test]
fn layouts_keep_their_text() {
    for layout in ["", " align(0, 32, 4)", " swizzle(auto)", " align(0, 64, 0) swizzle(3, 4, 3)"] {
        let source = format!(
            "func f\n  out C: f32[8]\n  temp T: f32[64, 64] @shared{layout}\n\n  block T()\n    T[0, 0] = 0.0f32\n"
        );
        let func = text::parse(&source).unwrap();
        assert_eq!(text::print(&func).text, source);
    }
}

/// Indices that print exactly as they are written: no parenthesis is more than needed.
const INDICES: &str = "
a - 1
a - b*2
-1*a
-a
-(a*4)
a + -(a*4)
a*-4
a - (b + c)
a - (b - c)
a - b - c
a + (b + c)
a*(b*c)
a*b*c
a floordiv 4 mod 8*c
a*(b floordiv 4)
a floordiv (b*c)
(a + b) mod 4
min(a, b + 1)*max(a, 3)
xor(a + 1, xor(b, 3))*8
-min(a, b)
-9223372036854775808
-(-9223372036854775808)
a + -9223372036854775808
a*-b
a + 9223372036854775807
a - -a*4
5 - a
-(a + b)*c
assume(t[a*4 + b] < n) + 1
E - assume(t[assume(u[a] < m)] < 7)*4
";

/// Values that print exactly as they are written.
const VALUES: &str = "
1.5f32
-0.0f32
inf_f64
-inf_f32
nan_f32
-nan_f16
nan_x7ff8000000000001_f64
1e300f64
3i32
-9223372036854775808i64
true
false
0.1f8e4m3
1e-7f8e5m2
-(1.5f32)
-(-x[i])
-x[i] * -y[]
x[i] - (y[] - z[])
x[i] / (y[] * z[])
(x[i] + y[]) * z[]
min(x[i], 1.0f32)
select(true, x[i], y[])
select(a < b && c < d + 1, x[i], 0i8)
i32{vi + 1}
rsqrt(-(x[i + 1, j] + y[]))
x[i +: 4]
bf16(x[i]) - -1.0bf16
a[] < b[]
(a[] < b[]) == (c[] != d[])
(a[] < b[]) & (c[] <= d[]) | e[]
a[] | b[] ^ c[] & d[] << e[] + f[] * 3i32
(a[] | b[]) & c[]
a[] << b[] >> (c[] >> 1i32)
(a[] & b[]) + 1u8
a[] - (b[] & c[])
a[] + b[] < -c[] * 2.0f32
a[] & b[] == c[] & d[]
where(a[] < 0.0f32, -a[], where(m[], exp2(a[]), rint(b[])))
f32(a[] < b[])
";

#[test]
fn expressions_keep_their_text() {
    for text in INDICES.trim().lines() {
        let index: Index = text.parse().unwrap();
        assert_eq!(index.to_string(), text, "{index:?}");
    }
    for text in VALUES.trim().lines() {
        let value: Value = text.parse().unwrap();
        assert_eq!(value.to_string(), text, "{value:?}");
    }
    assert_eq!("a<b".parse::<Less>().unwrap().to_string(), "a < b");
}

#[test]
fn lowered_programs_print_in_the_same_taste() {
    let index = |text: &str| text.parse::<Index>().unwrap();
    let access =
        |buffer: &str, at: &str, lanes| Access { lanes, ..Access::new(&Name::from(buffer), vec![index(at)]) };
    let arg = |len, role| Arg {
        dtype: DType::F32,
        shape: vec![index(len)],
        layout: tilewright_ir::Layout::default(),
        role,
        zeroed: false,
        below: None,
    };
    let alloc =
        Alloc { offset: Some(64), ..Alloc::new(Name::from("A_shared"), DType::F32, 512, Scope::Shared) };
    let load = Value::Load(access("A", "blockIdx_x*512 + threadIdx_x*4", 4));
    let copy = Op::from(Instr::Store(access("A_shared", "threadIdx_x*4", 4), load));
    let sum = "C[blockIdx_x] + A_shared[k]".parse().unwrap();
    let add = Op::from(Instr::Store(access("C", "blockIdx_x", 1), sum));
    let k = Op::For(Arc::new(For {
        var: Name::from("k"),
        extent: index("512"),
        kind: ForKind::Unrolled,
        counters: vec![],
        independent: Independence::Unknown,
        body: vec![Op::If(vec!["threadIdx_x < 1".parse().unwrap()], vec![add])],
    }));
    let launch = [(ThreadAxis::BlockX, index("n")), (ThreadAxis::ThreadX, index("128"))].into();
    let kernel = Kernel {
        args: [(Name::from("A"), false), (Name::from("C"), true)].into(),
        blocks_per_sm: Some(3),
        body: vec![
            Op::Alloc(alloc),
            Op::comment("A_shared", Origin::default()),
            copy,
            Instr::barrier().into(),
            k,
        ],
        ..Kernel::new(Name::from("sum"), launch)
    };
    let plain = Kernel {
        name: Name::from("sum_1"),
        launch: [].into(),
        blocks_per_sm: None,
        wide: false,
        body: vec![],
        ..kernel.clone()
    };
    let module = Module {
        name: Name::from("sum"),
        dims: vec![Name::from("n")],
        args: [
            (Name::from("A"), arg("n*512", Role::Input)),
            (Name::from("C"), arg("n", Role::Output)),
            (Name::from("C_partial"), arg("n*4", Role::Temp)),
        ]
        .into(),
        kernels: vec![kernel, plain],
    };
    insta::assert_snapshot!(module);
}

/// A line tells where the instructions below it come from, until another one does.
#[test]
fn kernels_tell_where_instructions_come_from() {
    let text = "module copies
  in A: f32[8]
  out C: f32[8]

  kernel copies<<<threadIdx.x: 8>>>(A, mut C)
    alloc S: f32[8] @shared
    of S @k prologue 0 component 0
    // A remark comes from somewhere, too.
    if threadIdx_x < 7
      S[threadIdx_x] <- A[threadIdx_x]
    of @k prologue 0
    commit
    of @ko steady 0 component 1 @k epilogue 0 component 1
    wait 0 for S
    barrier \"S: \\\"written\\\" before\", \"S: read after\"
    for of in 0..2
      of C @ko steady 0 component 1 @k epilogue 0 component 1
      C[threadIdx_x] = S[7 - threadIdx_x]
      of
      barrier

  kernel again<<<threadIdx.x: 8>>>(A, mut C)
    C[threadIdx_x] = A[threadIdx_x]
    of C
    C[threadIdx_x] = A[threadIdx_x]
";
    let module = text::parse_module(text).unwrap();
    assert_eq!(module.to_string(), text);
    let mut told = String::new();
    for op in module.kernels.iter().flat_map(|it| &it.body) {
        op.walk(&mut |op| {
            if let Op::Instr(_, origin) = op {
                let step = |it: &PipelineStep| {
                    format!(" {} {:?} {} {:?}", it.var, it.section, it.step, it.component)
                };
                let steps: String = origin.steps().iter().map(step).collect();
                writeln!(told, "{:?}{steps}", origin.block().map(Name::as_str)).unwrap();
            }
        });
    }
    insta::assert_snapshot!(told);
}

/// Kernels that copy boxes and multiply in warpgroups, with roles and without, are read back as they were, and break no rule.
#[test]
fn kernels_of_the_copy_engine_round_trip() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../codegen/tests/vgpu");
    let names = [
        "wgmma_one_stage_clean",
        "wgmma_ring_clean",
        "wgmma_roles_clean",
        "wgmma_cluster_clean",
        "wgmma_cluster_square_clean",
    ];
    for name in names {
        let text = std::fs::read_to_string(folder.join(format!("{name}.tw"))).unwrap();
        let module = text::parse_module(&text).unwrap_or_else(|err| panic!("{name}: {err}"));
        tilewright_ir::verify_module(&module).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
        let printed = module.to_string();
        let lines = text.lines().filter(|it| !it.is_empty() && !it.starts_with("//"));
        assert!(printed.lines().filter(|it| !it.is_empty()).eq(lines), "{name}:\n{printed}");
        assert_eq!(text::parse_module(&printed).unwrap(), module, "{name}");
    }
}

/// A program that is being lowered keeps its mbarriers, its panels, and the instructions in its blocks.
#[test]
fn programs_in_lowering_keep_their_text() {
    let text = "func f
  in A: bf16[128, 64]
  out C: f32[32]
  temp S: bf16[2, 128, 128] @shared swizzle(3, 4, 3) panel 64 per k
  temp X: f32[32] @local once
  mbarriers k_full[2] arrivals 1
  mbarriers k_empty[2] arrivals 8

  for k in 0..8 @cluster.x
    block expect()
      await k_empty[k mod 2] phase k floordiv 2 - 1
      expect k_full[k mod 2] bytes 16384
    block S(vk: 8 = k) #{asynchronous: \"tma\"}
      S[vk mod 2, 0, 0; 1 x 128 x 64] <= A[0, 0] by A_map on k_full[vk mod 2]
    block T(vk: 8 = k) #{asynchronous: \"tma\", multicast: \"cluster.x\"}
      S[vk mod 2, 0, 0; 1 x 128 x 64] <= A[0, 0] by A_map on k_full[vk mod 2] along cluster.x
      arrive k_empty[vk mod 2] along cluster.x, cluster.z
    block C(vk: 8 = k) if k < 7 #{asynchronous: \"wgmma\"}
      await k_full[vk mod 2] phase vk floordiv 2
      fence wgmma
      X[0 +: 32] <- wgmma_rs_m64k16_bf16_f32(X[0 +: 8], S[0, 0, 0; 1 x 64 x 16 by k leading 16 stride 1024 swizzle 128B]) from zero
      X[0 +: 32] <- wgmma_m64k16_bf16_f32(S[0, 0, 0; 1 x 64 x 16 by mn leading 16384 stride 1024], S[0, 0, 0; 1 x 64 x 16]) from zero if vk < 1 && k < 2
      commit wgmma
      wait wgmma 1 for S
      wait bulk reads 0
      arrive k_empty[vk mod 2]
      barrier warpgroup
";
    let func = text::parse(text).unwrap();
    assert_eq!(text::print(&func).text, text);
    assert_eq!(func.mbarriers.len(), 2);
}

/// What is no origin is refused where it stands, in kernels and in programs.
#[test]
fn broken_origins_are_refused() {
    let kernel = |line: &str| format!("module m\n\n  kernel m()\n    {line}\n    commit\n");
    let block = |text: &str| {
        format!("func f\n  out A: f32[1]\n\n  block A() #{{origin: {text}}}\n    A[0] = 1.0f32\n")
    };
    let mut out = String::new();
    for line in [
        "of A B",
        "of A @k",
        "of @k later 0",
        "of @k steady x",
        "of @k steady 0 component",
        "of 3",
        "of A, B",
    ] {
        let err = text::parse_module(&kernel(line)).unwrap_err();
        writeln!(out, "{line}\n  {err}").unwrap();
    }
    for text in ["3", "\"A @k\"", "\"two words\""] {
        let err = text::parse(&block(text)).unwrap_err();
        writeln!(out, "{text}\n  {err}").unwrap();
    }
    let text = block("\"C @ko steady 0 component 1\"");
    assert_eq!(text::parse(&text).unwrap().to_string(), text);
    insta::assert_snapshot!(out);
}

/// The grammar tells these words from names by what follows them; workloads call their buffers so.
#[test]
fn most_words_of_the_form_may_be_names() {
    let text = "func func(block, select)
  in in: f32[block, select]
  out out: f32[block, select]

  for init in 0..block
    for for_ in 0..select
      block align(temp: block = init, kernel: select = for_) if init < block
        out[temp, kernel] = in[temp, kernel]
  block init_(kernel: select = 0)
    in_loop[] = out[0, kernel]
";
    let text = text.replace("  out out", "  temp in_loop: f32[]\n  out out");
    let func = text::parse(&text).unwrap();
    assert_eq!(func.to_string(), text);
    assert_eq!(verify(&func), Ok(()));
}
