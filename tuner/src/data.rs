//! Tensors for a run: random inputs from a seed, and the poison that outputs hold before they are written.

use std::thread;

use half::{bf16, f16};
use ir::{
    DType, Literal, Number,
    number::{decode, encode, round},
};
use rand::{Rng, SeedableRng, rngs::ChaCha8Rng};

/// A tensor as a machine holds it: row-major, little endian.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tensor {
    /// The type of its elements.
    pub dtype: DType,
    /// Its size in each dimension. Rank 0 is one element.
    pub shape: Vec<usize>,
    /// Its elements.
    pub bytes: Vec<u8>,
}

/// How many elements one random stream fills. The number of threads does not change what is drawn.
const CHUNK: usize = 1 << 16;
/// How many elements are scanned for doubtful ones at once.
const SCAN: usize = 1 << 12;

impl Tensor {
    /// Random elements: N(0, 1) rounded to the type for floats, small uniform numbers for integers (-4 to 4, or 0
    /// to 8 where there is no sign), 0 or 1 for booleans. `index` tells the tensors of one seed apart.
    pub fn random(dtype: DType, shape: &[usize], seed: u64, index: u32) -> Tensor {
        Tensor::drawn(dtype, shape, seed, index, |rng, bytes| fill(dtype, rng, bytes))
    }

    /// The same of an input of integers whose elements are below a number, if there is one: uniform from zero on.
    pub fn random_below(dtype: DType, shape: &[usize], most: Option<i64>, seed: u64, index: u32) -> Tensor {
        // A type that ends before holds what it holds.
        let held = match Literal::highest(dtype).number {
            Number::Int(it) => it.saturating_add(1),
            Number::Float(_) => i64::MAX,
        };
        let most = most.and_then(|it| u64::try_from(it.min(held)).ok()).filter(|it| *it > 0);
        let Some(most) = most else { return Tensor::random(dtype, shape, seed, index) };
        Tensor::drawn(dtype, shape, seed, index, |rng, bytes| {
            integers(dtype, rng, bytes, |rng| below_u64(rng, most) as f64);
        })
    }

    fn drawn(
        dtype: DType,
        shape: &[usize],
        seed: u64,
        index: u32,
        fill: impl Fn(&mut ChaCha8Rng, &mut [u8]) + Sync,
    ) -> Tensor {
        let fill = &fill;
        let mut tensor = Tensor::zeroed(dtype, shape);
        let size = CHUNK * dtype.bytes();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let mut parts: Vec<(u64, &mut [u8])> = (0..).zip(tensor.bytes.chunks_mut(size)).collect();
        let part_len = parts.len().div_ceil(threads).max(1);
        thread::scope(|scope| {
            for part in parts.chunks_mut(part_len) {
                let work = move || {
                    for (at, bytes) in part {
                        let mut rng = stream(seed, (u64::from(index) << 32) | *at);
                        fill(&mut rng, bytes);
                    }
                };
                scope.spawn(work);
            }
        });
        tensor
    }

    /// A tensor no element of which was written: a NaN that arithmetic does not make for floats, an odd number
    /// for integers.
    pub fn poisoned(dtype: DType, shape: &[usize]) -> Tensor {
        let mut tensor = Tensor::zeroed(dtype, shape);
        let poison = poison(dtype);
        tensor.bytes.chunks_exact_mut(poison.len()).for_each(|it| it.copy_from_slice(poison));
        tensor
    }

    /// Zeroes, to download into.
    pub fn zeroed(dtype: DType, shape: &[usize]) -> Tensor {
        let len: usize = shape.iter().product();
        Tensor { dtype, shape: shape.to_vec(), bytes: vec![0; len * dtype.bytes()] }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.bytes()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The number at a flat offset.
    ///
    /// # Panics
    /// Where there is no such element.
    pub fn get(&self, at: usize) -> f64 {
        decode(self.dtype, self.raw(at))
    }

    /// Puts a number at a flat offset, rounded to the type.
    ///
    /// # Panics
    /// Where there is no such element.
    pub fn set(&mut self, at: usize, value: f64) {
        let size = self.dtype.bytes();
        let mut bytes = Vec::with_capacity(size);
        encode(self.dtype, value, &mut bytes);
        self.bytes[at * size..][..size].copy_from_slice(&bytes);
    }

    /// All elements as numbers, for a reference in f64.
    pub fn to_f64(&self) -> Vec<f64> {
        self.bytes.chunks_exact(self.dtype.bytes()).map(|it| decode(self.dtype, it)).collect()
    }

    /// The offsets of the elements that still hold the poison, and of those that are NaN otherwise.
    pub fn doubtful(&self) -> (Vec<usize>, Vec<usize>) {
        let poison = poison(self.dtype);
        let (mut unwritten, mut nan) = (Vec::new(), Vec::new());
        let is_nan = nan_test(self.dtype);
        // Outputs are scanned twice for each candidate of a search, and nearly always all is well.
        let parts = self.bytes.chunks(SCAN * poison.len()).enumerate();
        for (part, bytes) in parts.filter(|(_, bytes)| any_doubtful(self.dtype, bytes)) {
            for (at, bytes) in (part * SCAN..).zip(bytes.chunks_exact(poison.len())) {
                if bytes == poison {
                    unwritten.push(at);
                } else if is_nan(bytes) {
                    nan.push(at);
                }
            }
        }
        (unwritten, nan)
    }

    fn raw(&self, at: usize) -> &[u8] {
        let size = self.dtype.bytes();
        &self.bytes[at * size..][..size]
    }
}

/// A random stream: the same seed and stream number give the same numbers on any machine.
pub(crate) fn stream(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

/// A uniform number below `bound`.
pub(crate) fn below(rng: &mut ChaCha8Rng, bound: usize) -> usize {
    usize::try_from(below_u64(rng, bound as u64)).expect("it is below `bound`")
}

fn below_u64(rng: &mut ChaCha8Rng, bound: u64) -> u64 {
    let product = u128::from(rng.next_u64()) * u128::from(bound);
    u64::try_from(product >> 64).expect("it is below `bound`")
}

/// A random order of `0..len`.
pub(crate) fn shuffled(rng: &mut ChaCha8Rng, len: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    for at in (1..len).rev() {
        order.swap(at, below(rng, at + 1));
    }
    order
}

fn fill(dtype: DType, rng: &mut ChaCha8Rng, out: &mut [u8]) {
    match dtype {
        DType::F32 => each(rng, out, f32::to_le_bytes),
        DType::Tf32 => each(rng, out, |it| to_tf32(it).to_le_bytes()),
        DType::F16 => each(rng, out, |it| f16::from_f32(it).to_le_bytes()),
        DType::Bf16 => each(rng, out, |it| bf16::from_f32(it).to_le_bytes()),
        DType::F8e4m3 | DType::F8e5m2 | DType::F8e8m0 => {
            let mut byte = Vec::new();
            each(rng, out, |it| {
                byte.clear();
                encode(dtype, f64::from(it), &mut byte);
                [byte[0]]
            });
        }
        DType::F64 => {
            for it in out.chunks_exact_mut(8) {
                it.copy_from_slice(&normal_f64(rng).to_le_bytes());
            }
        }
        DType::Bool => out.iter_mut().for_each(|it| *it = u8::from(rng.next_u32() & 1 == 1)),
        DType::U8 | DType::U16 | DType::U32 => integers(dtype, rng, out, one_of_nine),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
            integers(dtype, rng, out, |rng| one_of_nine(rng) - 4.0);
        }
    }
}

fn one_of_nine(rng: &mut ChaCha8Rng) -> f64 {
    ((u64::from(rng.next_u32()) * 9) >> 32) as f64
}

fn integers(dtype: DType, rng: &mut ChaCha8Rng, out: &mut [u8], draw: impl Fn(&mut ChaCha8Rng) -> f64) {
    let mut bytes = Vec::new();
    for it in out.chunks_exact_mut(dtype.bytes()) {
        bytes.clear();
        encode(dtype, draw(rng), &mut bytes);
        it.copy_from_slice(&bytes);
    }
}

fn to_tf32(value: f32) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "every tf32 is an f32")]
    let value = round(DType::Tf32, f64::from(value)) as f32;
    value
}

/// Normal numbers two at a time, by Box and Muller, in single precision: 24-bit uniforms reach 5.7 deviations.
fn each<const N: usize>(rng: &mut ChaCha8Rng, out: &mut [u8], mut to_bytes: impl FnMut(f32) -> [u8; N]) {
    for pair in out.chunks_mut(2 * N) {
        let bits = rng.next_u64();
        #[expect(clippy::cast_possible_truncation, reason = "the high and the low half are wanted")]
        let (high, low) = ((bits >> 40) as u32, bits as u32 >> 8);
        let radius = (-2.0 * ((high + 1) as f32 / 16_777_216.0).ln()).sqrt();
        let (sin, cos) = (low as f32 * (std::f32::consts::TAU / 16_777_216.0)).sin_cos();
        let (first, second) = pair.split_at_mut(N);
        first.copy_from_slice(&to_bytes(radius * cos));
        if !second.is_empty() {
            second.copy_from_slice(&to_bytes(radius * sin));
        }
    }
}

fn normal_f64(rng: &mut ChaCha8Rng) -> f64 {
    let uniform = |bits: u64| (bits >> 11) as f64 / 9_007_199_254_740_992.0;
    let radius = (-2.0 * (1.0 - uniform(rng.next_u64())).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(rng.next_u64())).cos()
}

/// The bytes that an element holds before it is written.
///
/// A float's NaN has a payload that no machine makes by itself. An eight-bit number may well be written as its
/// poison; such an element is only doubtful until it is compared.
fn poison(dtype: DType) -> &'static [u8] {
    match dtype {
        DType::Bool | DType::U8 | DType::I8 => &[0xa5],
        DType::F8e4m3 | DType::F8e5m2 => &[0x7f],
        DType::F8e8m0 => &[0xff],
        DType::I16 | DType::U16 => &[0x5a, 0xa5],
        DType::F16 => &[0xad, 0x7f],
        DType::Bf16 => &[0xed, 0x7f],
        DType::I32 | DType::U32 => &[0xbe, 0xba, 0xad, 0xde],
        DType::Tf32 | DType::F32 => &[0xef, 0xbe, 0xed, 0x7f],
        DType::I64 => &[0xbe, 0xba, 0xfe, 0xca, 0xef, 0xbe, 0xad, 0xde],
        DType::F64 => &[0xef, 0xbe, 0xad, 0xde, 0xef, 0xbe, 0xfd, 0x7f],
    }
}

fn nan_test(dtype: DType) -> fn(&[u8]) -> bool {
    match dtype {
        DType::Tf32 | DType::F32 => |it| decode(DType::F32, it).is_nan(),
        DType::F64 => |it| decode(DType::F64, it).is_nan(),
        DType::F16 => |it| it[1] & 0x7c == 0x7c && (it[1] & 3 != 0 || it[0] != 0),
        DType::Bf16 => |it| it[1] & 0x7f == 0x7f && it[0] & 0x80 != 0 && it[0] & 0x7f != 0,
        DType::F8e4m3 => |it| it[0] & 0x7f == 0x7f,
        DType::F8e5m2 => |it| it[0] & 0x7f > 0x7c,
        DType::F8e8m0 => |it| it[0] == 0xff,
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32 => |_| false,
    }
}

/// Whether any element is poison or NaN. Without branches, so that it runs at the speed of memory.
fn any_doubtful(dtype: DType, bytes: &[u8]) -> bool {
    match dtype {
        DType::F32 | DType::Tf32 => any(bytes, |it| u32::from_le_bytes(it) & 0x7fff_ffff > 0x7f80_0000),
        DType::F64 => any(bytes, |it| u64::from_le_bytes(it) & (u64::MAX >> 1) > 0x7ff0_0000_0000_0000),
        DType::F16 => any(bytes, |it| u16::from_le_bytes(it) & 0x7fff > 0x7c00),
        DType::Bf16 => any(bytes, |it| u16::from_le_bytes(it) & 0x7fff > 0x7f80),
        DType::F8e4m3 => any(bytes, |[it]| it & 0x7f == 0x7f),
        DType::F8e5m2 => any(bytes, |[it]| it & 0x7f > 0x7c),
        DType::F8e8m0 => any(bytes, |[it]| it == 0xff),
        DType::Bool | DType::U8 | DType::I8 => any(bytes, |it: [u8; 1]| it == poison(dtype)),
        DType::I16 | DType::U16 => any(bytes, |it: [u8; 2]| it == poison(dtype)),
        DType::I32 | DType::U32 => any(bytes, |it: [u8; 4]| it == poison(dtype)),
        DType::I64 => any(bytes, |it: [u8; 8]| it == poison(dtype)),
    }
}

fn any<const N: usize>(bytes: &[u8], test: impl Fn([u8; N]) -> bool) -> bool {
    bytes.as_chunks::<N>().0.iter().fold(false, |found, it| found | test(*it))
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these numbers are exact")]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_tensor_others() {
        let shape = [300, 301]; // more than one chunk, and an odd number of elements
        let first = Tensor::random(DType::F32, &shape, 7, 0);
        assert_eq!(first, Tensor::random(DType::F32, &shape, 7, 0));
        assert_ne!(first, Tensor::random(DType::F32, &shape, 7, 1));
        assert_ne!(first, Tensor::random(DType::F32, &shape, 8, 0));
        // A shorter tensor is a prefix of a longer one: streams go by chunk.
        let half = Tensor::random(DType::F32, &[301], 7, 0);
        assert_eq!(half.bytes[..300 * 4], first.bytes[..300 * 4]);
    }

    #[test]
    fn floats_are_standard_normal() {
        for dtype in [DType::F64, DType::F32, DType::Tf32, DType::F16, DType::Bf16, DType::F8e4m3] {
            let values = Tensor::random(dtype, &[200_000], 1, 0).to_f64();
            let mean = values.iter().sum::<f64>() / 200_000.0;
            let square = values.iter().map(|it| it * it).sum::<f64>() / 200_000.0;
            let fourth = values.iter().map(|it| it.powi(4)).sum::<f64>() / 200_000.0;
            assert!(mean.abs() < 0.01, "{dtype}: mean {mean}");
            assert!((square - 1.0).abs() < 0.02, "{dtype}: variance {square}");
            assert!((fourth - 3.0).abs() < 0.2, "{dtype}: fourth moment {fourth}");
        }
    }

    #[test]
    fn integers_are_small_and_reach_both_ends() {
        for (dtype, low, high) in
            [(DType::I8, -4.0, 4.0), (DType::I64, -4.0, 4.0), (DType::U32, 0.0, 8.0), (DType::Bool, 0.0, 1.0)]
        {
            let values = Tensor::random(dtype, &[2000], 3, 0).to_f64();
            assert_eq!(values.iter().copied().fold(f64::INFINITY, f64::min), low, "{dtype}");
            assert_eq!(values.iter().copied().fold(f64::NEG_INFINITY, f64::max), high, "{dtype}");
        }
    }

    #[test]
    fn poison_is_found_and_other_nans_are_told_apart() {
        for dtype in DType::ALL {
            let mut tensor = Tensor::poisoned(dtype, &[4, 5]);
            assert_eq!(tensor.doubtful().0.len(), 20, "{dtype}");
            assert!(!dtype.is_float() || tensor.get(0).is_nan(), "{dtype}");
            for at in 0..20 {
                tensor.set(at, 1.0);
            }
            assert_eq!(tensor.doubtful(), (vec![], vec![]), "{dtype}");
            if dtype.is_float() && dtype.bytes() > 1 {
                tensor.set(3, f64::NAN);
                assert_eq!(tensor.doubtful(), (vec![], vec![3]), "{dtype}");
                tensor.set(3, f64::INFINITY);
                assert_eq!(tensor.doubtful(), (vec![], vec![]), "{dtype}");
            }
        }
    }

    #[test]
    fn a_shuffle_is_a_permutation_and_changes() {
        let mut rng = stream(1, 2);
        let (first, second) = (shuffled(&mut rng, 50), shuffled(&mut rng, 50));
        assert_ne!(first, second);
        let mut sorted = first;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }
}
