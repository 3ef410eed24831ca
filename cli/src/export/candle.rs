//! The custom op for candle: a crate of its own in the bundle, since candle is heavy and its GPU part needs a toolkit.

use ir::{Arch, DType, Role};

use super::{
    common::TOOL,
    expr::fill,
    spec::{Buffer, Spec, rust_type},
};

/// The most inputs that candle's custom ops have.
const MAX_INPUTS: usize = 3;

/// The files of the crate, or why there is none.
pub(super) fn files(spec: &Spec<'_>, arch: &Arch) -> Result<[(&'static str, String); 2], String> {
    if !spec.maps.is_empty() {
        return Err("its kernels take tensor maps, and the op encodes none".to_owned());
    }
    let (outputs, inputs): (Vec<_>, Vec<_>) =
        spec.params().iter().enumerate().partition(|it| it.1.role == Role::Output);
    let [(at, output)] = outputs[..] else {
        return Err(format!("candle's ops have one output, and this has {}", outputs.len()));
    };
    if inputs.is_empty() || inputs.len() > MAX_INPUTS {
        return Err(format!("candle's ops have one to {MAX_INPUTS} inputs, and this has {}", inputs.len()));
    }
    if let Some(it) = spec.params().iter().find(|it| !is_known(it.dtype)) {
        return Err(format!("candle has no tensors of {} (`{}`)", it.dtype, it.name));
    }
    let mut holes = holes(spec, arch, &inputs);
    holes.extend([
        ("OUTPUT", at.to_string()),
        ("OUT_TYPE", rust_type(output.dtype).to_owned()),
        ("COUNT", inputs.len().to_string()),
    ]);
    let manifest = fill(include_str!("templates/candle.toml.txt"), &holes);
    Ok([
        ("candle/Cargo.toml", manifest),
        ("candle/candle_op.rs", fill(include_str!("templates/candle_op.rs.txt"), &holes)),
    ])
}

fn holes(spec: &Spec<'_>, arch: &Arch, inputs: &[(usize, &Buffer)]) -> Vec<(&'static str, String)> {
    let list = |word: &dyn Fn(usize, &Buffer) -> String| {
        inputs.iter().map(|(n, it)| word(*n, it)).collect::<Vec<_>>().join(", ")
    };
    let fields =
        spec.dims().map(|(name, ident)| format!("    /// The dimension `{name}`.\n    pub {ident}: i64,\n"));
    let dims: Vec<_> = spec.dims().map(|it| format!("self.{}", it.1)).collect();
    let number = |dtype: DType| match dtype {
        DType::F16 | DType::Bf16 => format!("{}::to_f64", rust_type(dtype)),
        DType::I64 => "|it| it as f64".to_owned(),
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::Tf32
        | DType::F8e4m3
        | DType::F8e5m2
        | DType::F8e8m0
        | DType::F32
        | DType::F64 => "f64::from".to_owned(),
    };
    let cpu = |(n, it): &(usize, &Buffer)| {
        format!(
            "        inputs[{n}] = numbers::<{}>(s{n}, l{n}, {n}, &dims, {})?;\n",
            rust_type(it.dtype),
            number(it.dtype)
        )
    };
    let cuda = |(n, it): &(usize, &Buffer)| {
        format!(
            "        let v{n} = view::<{}>(s{n}, l{n}, {n}, &dims)?;\n        let (address, _guard{n}) = \
             v{n}.device_ptr(&stream);\n        all[{n}] = aligned(address, {n})?;\n",
            rust_type(it.dtype)
        )
    };
    let output = spec.params().iter().find(|it| it.role == Role::Output);
    vec![
        ("FUNC", spec.subject.module.name.to_string()),
        ("TOOL", TOOL.to_owned()),
        ("CRATE", spec.name.to_owned()),
        ("ARCH", arch.to_string()),
        ("FIELDS", fields.collect()),
        ("DIMS", dims.join(", ")),
        ("CPU_ARGS", list(&|n, _| format!("s{n}: &CpuStorage, l{n}: &Layout"))),
        ("CUDA_ARGS", list(&|n, _| format!("s{n}: &CudaStorage, l{n}: &Layout"))),
        ("CUDA_STORAGES", list(&|n, _| format!("s{n}"))),
        // Candle keeps modules by name for as long as its device lives: two bundles must not share one.
        ("MODULE", spec.unique.clone()),
        ("CPU_INPUTS", inputs.iter().map(cpu).collect()),
        ("CUDA_INPUTS", inputs.iter().map(cuda).collect()),
        (
            "CAST",
            output.map_or_else(String::new, |it| match it.dtype {
                DType::F16 | DType::Bf16 => format!("{}::from_f64(it)", rust_type(it.dtype)),
                _ => format!("it as {}", rust_type(it.dtype)),
            }),
        ),
    ]
}

/// Whether candle has tensors of a type. Halves of tensor cores in 32 bits are plain floats there.
const fn is_known(dtype: DType) -> bool {
    match dtype {
        DType::U8
        | DType::U32
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::F16
        | DType::Bf16
        | DType::Tf32
        | DType::F32
        | DType::F64 => true,
        DType::Bool | DType::I8 | DType::U16 | DType::F8e4m3 | DType::F8e5m2 | DType::F8e8m0 => false,
    }
}
