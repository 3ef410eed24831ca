//! Vectors of narrow integers in CUDA, a word of 32 bits at a time: their bits, and bytes that become halves.
//!
//! The compiler takes each byte out of its word and puts the results together again. What is the same for all bytes of a word takes one
//! instruction for all of them. Vectors have their words as members, and come by reference: it takes what comes by value byte by byte.

use ir::{BinaryOp, DType};

use super::Dialect;

/// How many words a vector of narrow integers fills.
pub(super) fn words(dialect: Dialect, dtype: DType, lanes: u32) -> Option<usize> {
    let is_narrow = matches!(dtype, DType::I8 | DType::U8 | DType::I16 | DType::U16);
    let bytes = dtype.bytes() * lanes as usize;
    (!dialect.is_c() && is_narrow && bytes.is_multiple_of(4)).then_some(bytes / 4)
}

/// Whether all lanes of a vector are shifted by one number as words are. The sign of a number would fill what it leaves to the right.
pub(super) fn shifts(dialect: Dialect, op: BinaryOp, dtype: DType, lanes: u32) -> bool {
    let is_known = match op {
        BinaryOp::Shl => true,
        BinaryOp::Shr => matches!(dtype, DType::U8 | DType::U16),
        _ => false,
    };
    is_known && words(dialect, dtype, lanes).is_some()
}

/// An operation on bits, of two vectors.
pub(super) fn define_bits(name: &str, op: BinaryOp, of: &str, words: usize) -> String {
    format!(
        "TW_INLINE {of} {name}(const {of} &a, const {of} &b) {{\n  {of} r;\n  #pragma unroll\n  for (int w = 0; w < {words}; ++w)\n    \
         r.words[w] = a.words[w] {} b.words[w];\n  return r;\n}}\n",
        op.as_str()
    )
}

/// A shift of all lanes by one number: lanes lose what comes from their neighbours in the word.
pub(super) fn define_shift(name: &str, op: BinaryOp, (dtype, of): (DType, &str), words: usize) -> String {
    let bits = dtype.bytes() * 8;
    let (lane, each) = if bits == 8 { ("0xffu", "0x01010101u") } else { ("0xffffu", "0x00010001u") };
    let sign = op.as_str();
    format!(
        "TW_INLINE {of} {name}(const {of} &a, unsigned int b) {{\n  {of} r;\n  b &= {};\n  const unsigned int kept = ({lane} {sign} b & {lane}) * {each};\n  \
         #pragma unroll\n  for (int w = 0; w < {words}; ++w)\n    \
         r.words[w] = a.words[w] {sign} b & kept;\n  return r;\n}}\n",
        bits - 1
    )
}

/// The body of a function that makes f16 of bytes, and takes a number of at most [`MOST_LESS`] from them. A byte in the low bits of 1024 is 1024 more than
/// it is alone; with the highest bit turned round, one that has a sign is 1152 more. All of these are exact.
pub(super) fn halves_of_bytes(from: DType, to: &str, words: usize, less: u32) -> String {
    let (turned, more) = if from == DType::I8 { (" ^ 0x80808080u", 0x6480) } else { ("", 0x6400) };
    let more = (more + less) * 0x0001_0001;
    format!(
        "\n  {to} r;\n  #pragma unroll\n  for (int w = 0; w < {words}; ++w) {{\n    \
         const unsigned int bytes = a.words[w]{turned};\n    \
         const unsigned int low = __byte_perm(bytes, 0x64646464u, 0x4140), high = __byte_perm(bytes, 0x64646464u, 0x4342);\n    \
         asm(\"sub.rn.f16x2 %0, %1, %2;\" : \"=r\"(((unsigned int *)&r)[2 * w]) : \"r\"(low), \"r\"({more:#x}u));\n    \
         asm(\"sub.rn.f16x2 %0, %1, %2;\" : \"=r\"(((unsigned int *)&r)[2 * w + 1]) : \"r\"(high), \"r\"({more:#x}u));\n  }}\n  return r;\n"
    )
}

/// The greatest number that f16 has together with 1152 in its ten bits behind the first.
const MOST_LESS: f64 = 895.0;

/// The number that is taken from bytes as halves are made of them, if it is one of which the difference is exact.
pub(super) fn less(number: f64) -> Option<u32> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a small whole number")]
    let whole = |it: f64| it as u32;
    (number.fract() == 0.0 && (0.0..=MOST_LESS).contains(&number)).then(|| whole(number))
}
