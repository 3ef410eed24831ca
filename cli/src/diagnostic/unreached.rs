//! Refusals that no command line leads to without a GPU that fails, a full disk or a bug, as their pages print them. All other
//! pages are played by the test `book`.

use std::{
    collections::BTreeSet, fs, io, os::unix::process::ExitStatusExt, path::Path, process::ExitStatus,
    sync::Arc,
};

use codegen::{
    LaunchError,
    device::DeviceError,
    emit::EmitError,
    lower::{LowerError, Pass, State},
    vgpu::VgpuError,
};
use ir::{Arch, DType, Func, Index, Name, Stmt, Target, ThreadAxis, VerifyErrorKind};
use schedule::{BlockError, PipelineError, ScheduleError};
use tuner::{
    CaseError, Failure,
    log::{ErrorKind, LogError, Stage, TrialError},
    pool::PoolError,
    tune::Stopped,
};

use super::Diagnostic;
use crate::{
    build::lower,
    command::doctor::unfit,
    guard::{self, Activity},
    kernel::{CallError, Place, refusals},
    plan::Plan,
    script_text::ScriptText,
    studio::port_taken,
    usage_error::UsageError,
};

fn func(text: &str) -> Func {
    ir::text::parse(text).unwrap()
}

/// A step that is refused.
fn step(text: &str, word: &str, err: &ScheduleError) -> Diagnostic {
    let script = format!("schedule(\n    workload: \"own.tw\",\n    steps: [{text}],\n)\n");
    let start = script.find(text).unwrap();
    Diagnostic::refused(
        &ScriptText::plain("script.ron", &script),
        &(start..start + text.len()),
        word,
        &func(COPY),
        err,
    )
}

const COPY: &str = "func copy
  in A: f32[64]
  out B: f32[64]

  for i in 0..64
    block B(vi: 64 = i)
      B[vi] = A[vi]
";

const TWICE: &str = "func add
  in A: f32[32]
  out B: f32[32, 32]

  for i in 0..32 @threadIdx.x
    for j in 0..32 @threadIdx.x
      block B(vi: 32 = i, vj: 32 = j)
        B[vi, vj] = A[vi]
";

/// What comes of programs and steps that a Rust program makes and a script does not.
fn by_programs() -> Vec<Diagnostic> {
    let name = Name::new;
    let mut nested = func(COPY);
    if let Stmt::Loop(it) = &mut nested.body {
        let inner = it.body.clone();
        Arc::make_mut(it).body = Stmt::Seq(vec![inner]);
    }
    let clash = VerifyErrorKind::NameTaken { name: name("v0"), first: "a loop", second: "an iterator" };
    let unsound = ScheduleError::Unsound { step: "pad_einsum", message: format!("`C_pad`: {clash}") };
    let open = ScheduleError::UnresolvedKnob { name: name("bk") };
    let silent = BlockError::WritesNothing { block: name("B") }.into();
    let (outer, inner, block) = (name("i"), name("j"), name("B"));
    let twice = LowerError::AxisTwice { outer, inner, axis: ThreadAxis::ThreadX, block };
    let reserved = COPY.replace("= i)", "= threadIdx_x)");
    let reserved = func(&reserved.replace("for i in 0..64", "for threadIdx_x in 0..64 @threadIdx.x"));
    let bare = PipelineError::NotAMap { name: name("i"), key: ir::pipeline::STAGE };
    let missing = EmitError::NoInstruction {
        kernel: name("matmul"),
        what: "wgmma_m64k16_bf16_f32 (wgmma)".to_owned(),
        target: Target::Cuda(Arch { sm: 80, suffix: None }),
    };
    let unknown = EmitError::UnknownBuffer { kernel: name("copy"), buffer: name("A_shared") };
    vec![
        Diagnostic::unsound("the program", &nested, &ir::verify(&nested).unwrap_err()).unwrap(),
        step(r#"pad_einsum(block: "B", padding: {"i": 16})"#, "pad_einsum", &unsound),
        step(r#"split(loop: "i", into: {"io": None, "ii": "bk"})"#, "split", &open),
        step(r#"cache_write(block: "B", scope: "local")"#, "cache_write", &silent),
        Diagnostic::failed(&bare, bare.to_string()),
        Diagnostic::lower(&func(TWICE), &twice),
        Diagnostic::lower(&reserved, &LowerError::ReservedName { name: name("threadIdx_x") }),
        Diagnostic::emit(&func(COPY), &unknown),
        Diagnostic::emit(&func(COPY), &missing),
    ]
}

/// What the proofs about phases say of kernels that no pass makes: those of the tests of that pass.
fn by_kernels() -> Vec<Diagnostic> {
    let names = [
        "bytes",
        "arrivals",
        "out_of_step",
        "ahead",
        "unfinished",
        "stuck",
        "given_back",
        "in_flight",
        "unfenced",
        "exchange",
        "uncounted",
        "outstanding",
        "too_far",
        "remote",
    ];
    let pass = Pass::find("check_phases").unwrap();
    let target = Target::Cuda(Arch { sm: 90, suffix: Some('a') });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../codegen/tests/passes");
    let refused = |name: &&str| {
        let text = fs::read_to_string(folder.join(format!("check_phases_{name}.tw"))).unwrap();
        let module = ir::text::parse_module(text.split_once('\n').unwrap().1).unwrap();
        let err = pass.run(State::Module(module), &target).unwrap_err();
        Diagnostic::lower(&func(COPY), &err)
    };
    names.iter().map(refused).collect()
}

/// What comes of sizes and inputs that do not fit.
fn by_values() -> Vec<Diagnostic> {
    let name = Name::new;
    let input = VgpuError::InputLength { buffer: name("A"), expected: 128, given: 100 };
    let buffers = Failure::Buffers { program: vec![4096, 4096], case: vec![8192, 8192] };
    let size = CaseError::Dimension(name("n"));
    let map = LaunchError::TensorMap {
        map: name("A_map"),
        buffer: name("A"),
        what: "neighbours at a distance in bytes of k*2 = 142".to_owned(),
        rule: "multiples of 16 below 2^40",
    };
    vec![
        Diagnostic::launch(&func(COPY), &LaunchError::NoSize { name: name("n") }),
        Diagnostic::launch(&func(COPY), &LaunchError::BadSize { name: name("n"), value: 0 }),
        Diagnostic::launch(&func(COPY), &map),
        long_grid(),
        Diagnostic::failed(&input, format!("script.ron: {input}")),
        Diagnostic::failed(&buffers, format!("script.ron: {buffers}")).help(buffers.help()),
        Diagnostic::failed(&size, format!("elementwise: {size}")),
    ]
}

/// A grid that is too long for its axis, where a GPU would have to be there to be asked.
fn long_grid() -> Diagnostic {
    let text = r#"schedule(
        workload: "elementwise",
        target: "cuda",
        params: {"n": "n"},
        steps: [
            split(loop: "i", into: {"io": None, "ii": 32}),
            bind(loop: "io", axis: "blockIdx.y"),
            bind(loop: "ii", axis: "threadIdx.x"),
        ],
    )"#;
    let plan = Plan::parse(Path::new("wrong.ron"), text, &[]).unwrap();
    let target = plan.target(None, None);
    let session = plan.schedule(&target, None).unwrap();
    let (module, _) = lower(session.func(), &target).unwrap();
    let dims = [(Name::new("n"), 4_194_304)].into_iter().collect();
    let err = codegen::program(&module, &dims, vec![]).unwrap_err();
    Diagnostic::launch(session.func(), &err)
}

/// What machines do.
fn by_machines() -> Vec<Diagnostic> {
    let words = str::to_owned;
    let script =
        |it: &Failure, what: &str| Diagnostic::failed(it, format!("script.ron: {it}{what}")).help(it.help());
    let device = [
        DeviceError::Compile {
            compiler: words("NVRTC 13.0"),
            log: words("elementwise.cu(12): error: identifier \"__example\" is undefined"),
        },
        DeviceError::Call {
            call: words("taking 8589934592 bytes of GPU memory"),
            reason: words("CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
        },
        DeviceError::Lost {
            call: words("running `matmul`"),
            reason: words("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"),
        },
        DeviceError::Hang { what: words("`matmul`"), seconds: 10.0 },
        DeviceError::Broken {
            what: words("the C compiler that CC names (`false`)"),
            status: words("exit status: 1"),
            help: words("unset CC, or let it name a C compiler such as gcc or clang"),
        },
    ];
    let logs = [
        LogError::Entry(words("it is of an unknown kind")),
        LogError::Locked("matmul.twlog/run-20261121T191300Z-1f3a9c2b.jsonl".into()),
        LogError::Exists("matmul.twlog/run-a.jsonl".into()),
        LogError::Lost { path: "matmul.twlog/run-a.jsonl".into(), what: words("was taken away") },
    ];
    let wrong = ": 3 of 4096 compared elements of `C` differ; C[7, 0] is 1.5 and should be 0.75";
    let pool = PoolError::NoWorkers;
    let mut out: Vec<_> =
        device.iter().map(Diagnostic::device).chain(logs.iter().map(Diagnostic::log)).collect();
    out.extend([
        script(&Failure::WrongAfterTiming, wrong),
        script(&Failure::NoTime, ""),
        Diagnostic::usage(&pool, pool.to_string())
            .help(words("`tilewright doctor` tells what this machine has")),
        unfit(&["c-compiler"]),
        no_finals(),
        guard::crashed(ExitStatus::from_raw(11), Some("run: verifying matmul.ron")),
        guard::too_late(Activity::Compiler, 300.0, Some("compiling")),
        Diagnostic::from(io::Error::from_raw_os_error(28)),
        port_taken(7117, &io::ErrorKind::AddrInUse.into()),
        Diagnostic::failed(
            UsageError::Process,
            "line 1 of the input is no job: expected value at line 1 column 1",
        ),
    ]);
    out
}

/// What comes of arrays that a kernel is called on; the package for Python raises them.
fn by_calls() -> Vec<Diagnostic> {
    let [a, b, c] = ["A", "B", "C"].map(Name::new);
    let shape = ["K", "N"].map(|it| Index::var(&Name::new(it)));
    let arguments = "the kernel takes 2 inputs (`A`, `B`), not 1";
    let help = "results are given as `out=`, or made by the call";
    let exchange = "an object of <class 'list'> is no array";
    let protocols = "arrays have `__dlpack__`, `__cuda_array_interface__` or `__array_interface__`: those of NumPy, PyTorch, CuPy \
                     and JAX do";
    vec![
        Diagnostic::usage(CallError::Arguments, arguments).help(help.to_owned()),
        refusals::other_type(&b, DType::F32, DType::F64),
        refusals::other_shape(&b, &shape, Some(&[6, 8]), &[5, 8]),
        refusals::other_shape(&a, &[Index::int(64), Index::int(32)], None, &[64, 31]),
        refusals::not_row_major(&a, &[4, 6], &[1, 4]),
        refusals::other_target(&a, Place::Cpu, "cuda:sm_90a"),
        refusals::apart(&b, Place::Gpu(1), Place::Gpu(0)),
        refusals::misaligned(&a, 16, 0x7f31_a000_0004),
        refusals::shared(&c, &a),
        refusals::read_only(&c),
        Diagnostic::usage(CallError::Exchange, exchange).help(protocols.to_owned()),
    ]
}

/// Finals whose worker died.
fn no_finals() -> Diagnostic {
    let message =
        "worker `m0` was killed by SIGKILL (by another process, or by the system for want of memory)";
    let (stage, kind) = (Stage::Run, ErrorKind::WorkerDied);
    let died = TrialError { stage, kind, message: message.to_owned(), sticky: true };
    Diagnostic::failed(UsageError::Finals, Stopped::Finals(died).to_string())
        .help("try again with: tilewright resume matmul.twlog".to_owned())
}

fn pages() -> impl Iterator<Item = (String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/errors");
    let paths = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    paths.map(|it| (it.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(it).unwrap()))
}

#[test]
fn pages_that_nobody_plays_print_what_is_told() {
    let told: Vec<Diagnostic> =
        [by_programs(), by_kernels(), by_values(), by_machines(), by_calls()].into_iter().flatten().collect();
    let pages: Vec<_> = pages().collect();
    let wrong = told.iter().filter_map(|it| {
        let (code, text) = (it.code().to_string(), it.render(false, super::WIDTH));
        let page = pages.iter().find(|(name, _)| *name == code).map_or("", |it| &it.1);
        let has = page.contains(&format!("\n{}\n", text.trim_end()));
        (!has).then(|| format!("{code} should have\n```text\n{text}\n```\n"))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.concat());
    // Each page shows its error, in a block that the test `book` plays or in one from here.
    let here: BTreeSet<String> = told.iter().map(|it| it.code().to_string()).collect();
    for (name, page) in pages.iter().filter(|it| it.0.starts_with("TW")) {
        let shown = page.split("```console\n").skip(1).chain(page.split("```console,nvrtc\n").skip(1));
        let of = [format!("error[{name}]"), format!("\"code\":\"{name}\"")];
        let played = shown.map(|it| it.split("```").next().unwrap_or_default());
        let played = played.into_iter().any(|it| of.iter().any(|of| it.contains(of)));
        assert!(played || here.contains(name), "nobody checks the error of {name}");
    }
}
