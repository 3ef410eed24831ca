//! A transformer block in candle, computed twice: by candle's own operations, and with three exported kernels in place of some of them.
//!
//! `./run` exports the kernels, builds this and runs it. See README.md.

use std::{env, error::Error, time::Instant};

use candle_core::{CpuStorage, D, Device, Result, Storage, Tensor};
use candle_nn::ops;

/// The size of the block: its weights are for this.
const WIDTH: usize = 512;
const HEADS: usize = 8;
const HIDDEN: usize = 1408;
const EPS: f32 = 1e-6;
/// The sequence that the kernels were exported for.
const TOKENS: usize = 256;
/// How often each is run, one after the other in turn.
const RUNS: usize = 201;
/// The largest difference that is allowed, in parts of the largest result.
const TOLERANCE: f32 = 1e-5;

/// The weights of the block, random.
struct Block {
    norm: Tensor,
    qkv: Tensor,
    out: Tensor,
    mlp_norm: Tensor,
    gate: Tensor,
    up: Tensor,
    down: Tensor,
}

/// Who computes a part of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Candle,
    Kernels,
}

/// Numbers between -1 and 1, always the same.
fn random(shape: &[usize], scale: f32, seed: &mut u64) -> Result<Tensor> {
    let count = shape.iter().product();
    let mut next = || {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*seed >> 40) as f32 / (1u32 << 23) as f32 - 1.0) * scale
    };
    Tensor::from_vec((0..count).map(|_| next()).collect::<Vec<f32>>(), shape, &Device::Cpu)
}

impl Block {
    fn new(seed: &mut u64) -> Result<Block> {
        let wide = 1.0 / (WIDTH as f32).sqrt();
        Ok(Block {
            norm: random(&[WIDTH], 1.0, seed)?,
            qkv: random(&[WIDTH, 3 * WIDTH], wide, seed)?,
            out: random(&[WIDTH, WIDTH], wide, seed)?,
            mlp_norm: random(&[WIDTH], 1.0, seed)?,
            gate: random(&[WIDTH, HIDDEN], wide, seed)?,
            up: random(&[WIDTH, HIDDEN], wide, seed)?,
            down: random(&[HIDDEN, WIDTH], 1.0 / (HIDDEN as f32).sqrt(), seed)?,
        })
    }

    /// The block on a sequence: `[tokens, WIDTH]` to the same.
    fn forward(&self, x: &Tensor, by: By) -> Result<Tensor> {
        let tokens = x.dim(0)?;
        let qkv = self.normed(x, by)?.matmul(&self.qkv)?.reshape((tokens, 3, HEADS, WIDTH / HEADS))?;
        let part = |at: usize| qkv.narrow(1, at, 1)?.squeeze(1)?.transpose(0, 1)?.contiguous();
        let heads = self.attention(&part(0)?, &part(1)?, &part(2)?, by)?;
        let joined = heads.transpose(0, 1)?.reshape((tokens, WIDTH))?;
        let x = (x + joined.matmul(&self.out)?)?;
        self.mlp(&x, by)
    }

    /// The norm before attention.
    fn normed(&self, x: &Tensor, by: By) -> Result<Tensor> {
        if by == By::Candle {
            return ops::rms_norm(x, &self.norm, EPS);
        }
        let run = |all: &[View<'_>], out: &mut [f32], shape: &[usize]| {
            let given =
                |at: usize| rms_norm::Tensor::new(all[at].data, all[at].shape).with_strides(&all[at].strides);
            rms_norm::run(given(0), given(1), rms_norm::TensorMut::new(out, shape), 0).map(drop)
        };
        exported(&[x, &self.norm], x.dims(), run, || self.normed(x, By::Candle))
    }

    /// Softmax of the scaled products of queries and keys, times values: `[HEADS, tokens, WIDTH / HEADS]` each.
    fn attention(&self, q: &Tensor, k: &Tensor, v: &Tensor, by: By) -> Result<Tensor> {
        if by == By::Candle {
            let scores = (q.matmul(&k.transpose(D::Minus2, D::Minus1)?)? * 0.125)?;
            return ops::softmax_last_dim(&scores)?.matmul(v);
        }
        // The kernel has a dimension for the batch.
        let [q1, k1, v1] = [q.unsqueeze(0)?, k.unsqueeze(0)?, v.unsqueeze(0)?];
        let run = |all: &[View<'_>], out: &mut [f32], shape: &[usize]| {
            let given = |at: usize| {
                attention::Tensor::new(all[at].data, all[at].shape).with_strides(&all[at].strides)
            };
            attention::run(given(0), given(1), given(2), attention::TensorMut::new(out, shape), 0).map(drop)
        };
        let own = || self.attention(q, k, v, By::Candle)?.unsqueeze(0);
        exported(&[&q1, &k1, &v1], q1.dims(), run, own)?.squeeze(0)
    }

    /// The feed-forward layer with its norm and its residual: `x + (silu(n·gate) * (n·up))·down`.
    fn mlp(&self, x: &Tensor, by: By) -> Result<Tensor> {
        if by == By::Candle {
            let n = ops::rms_norm(x, &self.mlp_norm, EPS)?;
            let gated = (n.matmul(&self.gate)?.silu()? * n.matmul(&self.up)?)?;
            return x + gated.matmul(&self.down)?;
        }
        let run = |all: &[View<'_>], out: &mut [f32], shape: &[usize]| {
            let given =
                |at: usize| mlp::Tensor::new(all[at].data, all[at].shape).with_strides(&all[at].strides);
            let out = mlp::TensorMut::new(out, shape);
            mlp::run(given(0), given(1), given(2), given(3), given(4), out, 0).map(drop)
        };
        let inputs = [x, &self.mlp_norm, &self.gate, &self.up, &self.down];
        exported(&inputs, x.dims(), run, || self.mlp(x, By::Candle))
    }
}

/// The elements of a tensor on the processor, and how they lie.
struct View<'a> {
    data: &'a [f32],
    shape: &'a [usize],
    strides: Vec<isize>,
}

/// What an exported kernel makes of these tensors, or `own` where the crate has none that takes them: it says so before it computes.
fn exported<E: std::fmt::Display>(
    inputs: &[&Tensor],
    shape: &[usize],
    run: impl Fn(&[View<'_>], &mut [f32], &[usize]) -> std::result::Result<(), E>,
    own: impl Fn() -> Result<Tensor>,
) -> Result<Tensor> {
    let storages: Vec<_> = inputs.iter().map(|it| it.storage_and_layout()).collect();
    let mut views = Vec::new();
    for (storage, layout) in &storages {
        let Storage::Cpu(CpuStorage::F32(all)) = &**storage else {
            candle_core::bail!("the kernels are for f32 on the processor")
        };
        let start = layout.start_offset();
        let len = layout.shape().elem_count();
        let Some(data) = all.get(start..start + len) else { return own() };
        let strides = layout.stride().iter().map(|it| *it as isize).collect();
        views.push(View { data, shape: layout.dims(), strides });
    }
    let mut out = vec![0.0_f32; shape.iter().product()];
    match run(&views, &mut out, shape) {
        Ok(()) => Tensor::from_vec(out, shape, &Device::Cpu),
        Err(err) => {
            static ONCE: std::sync::Once = std::sync::Once::new();
            ONCE.call_once(|| println!("candle's own, since {err}"));
            own()
        }
    }
}

/// The largest difference in parts of the largest result.
fn difference(a: &Tensor, b: &Tensor) -> Result<f32> {
    let most = |it: Tensor| it.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>();
    Ok(most((a - b)?)? / most(a.clone())?)
}

/// Both in turn; the least and the median of each in milliseconds.
fn timed(run: &dyn Fn(By) -> Result<Tensor>) -> Result<[[f64; 2]; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..RUNS + 3 {
        for (times, by) in times.iter_mut().zip([By::Candle, By::Kernels]) {
            let start = Instant::now();
            let out = run(by)?;
            let took = start.elapsed().as_secs_f64() * 1e3;
            drop(out);
            // The first rounds warm caches and start threads.
            if round >= 3 {
                times.push(took);
            }
        }
    }
    Ok(times.map(|mut all| {
        all.sort_by(f64::total_cmp);
        [all[0], all[all.len() / 2]]
    }))
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let tokens = match arguments.as_slice() {
        [] => TOKENS,
        [option, count] if option == "--tokens" => count.parse()?,
        _ => return Err("usage: block [--tokens N]".into()),
    };
    let mut seed = 7;
    let block = Block::new(&mut seed)?;
    let x = random(&[tokens, WIDTH], 1.0, &mut seed)?;
    let heads = || random(&[HEADS, tokens, WIDTH / HEADS], 1.0, &mut 11);
    let (q, k, v) = (heads()?, heads()?, heads()?);
    println!(
        "{tokens} tokens, width {WIDTH}, {HEADS} heads, hidden {HIDDEN}, f32; medians (and the least) of {RUNS} runs each, in turn"
    );
    let parts: [(&str, &dyn Fn(By) -> Result<Tensor>); 4] = [
        ("norm", &|by| block.normed(&x, by)),
        ("attention", &|by| block.attention(&q, &k, &v, by)),
        ("feed-forward", &|by| block.mlp(&x, by)),
        ("whole block", &|by| block.forward(&x, by)),
    ];
    for (name, run) in parts {
        let difference = difference(&run(By::Candle)?, &run(By::Kernels)?)?;
        let [candle, kernels] = timed(run)?;
        println!(
            "{name:<12} candle {:7.3} ({:7.3}) ms  with kernels {:7.3} ({:7.3}) ms  {:.2}x ({:.2}x)  difference {difference:.1e}",
            candle[1],
            candle[0],
            kernels[1],
            kernels[0],
            candle[1] / kernels[1],
            candle[0] / kernels[0],
        );
        if !(difference <= TOLERANCE) {
            return Err(
                format!("{name}: results differ by {difference:e}, and {TOLERANCE:e} is allowed").into()
            );
        }
    }
    Ok(())
}
