//! Words that are not to be given to anything as a name.

use std::sync::LazyLock;

use crate::{DType, UnaryOp};

/// Keywords of C23 and C++20, and the words that CUDA adds.
const KEYWORDS: &str = "alignas alignof and and_eq asm atomic auto bitand bitor bool break case catch char \
    char8_t char16_t char32_t class co_await co_return co_yield compl concept const const_cast consteval \
    constexpr constinit continue decltype default delete do double dynamic_cast else enum explicit export extern \
    false float for friend goto if import inline int long module mutable namespace new noexcept not not_eq \
    nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return short \
    signed sizeof static static_assert static_cast struct switch template this thread_local throw true try \
    typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor \
    xor_eq blockDim blockIdx gridDim threadIdx warpSize dim3 half half2 float2 float4 double2 int2 int4 uint2 \
    uint4 linux unix";

/// Names of the C library that emitted sources call, or that a function of this name would replace.
const LIBRARY: &str = "NULL abort abs assert calloc cosf errno erff exit expf fabs fabsf floor floorf fmax \
    fmaxf fmin fminf fopen free int8_t int16_t int32_t int64_t intptr_t logf main malloc memcpy memset pow powf \
    printf ptrdiff_t realloc rsqrtf signal sin cos sinf size_t sqrtf stderr stdin stdout tanhf uint8_t uint16_t \
    uint32_t uint64_t uintptr_t";

/// Words that the text form would not read as names, besides the types and functions.
const TEXT: &str = "floordiv max min mod reduce";

/// The words by [`slot`].
static RESERVED: LazyLock<Vec<Vec<&str>>> = LazyLock::new(|| {
    let words = [KEYWORDS, LIBRARY, TEXT].into_iter().flat_map(str::split_whitespace);
    let types = DType::ALL.into_iter().map(DType::as_str);
    let mut slots = vec![vec![]; 256];
    for word in words.chain(types).chain(UnaryOp::ALL.into_iter().map(UnaryOp::as_str)) {
        slots[slot(word)].push(word);
    }
    slots
});

/// Where a word is looked for: below 256.
fn slot(word: &str) -> usize {
    let at = |it: Option<&u8>| usize::from(it.copied().unwrap_or_default());
    (at(word.as_bytes().first()) * 5 + at(word.as_bytes().last()) * 3 + word.len()) % 256
}

/// Whether a name is not to be given to anything: keywords of C, C++ and CUDA, names of the C library, words of the
/// text form, the variables of thread axes such as `blockIdx_x`, and all that begins with `tw_`, `__` or `_` and a
/// capital.
pub fn is_reserved(name: &str) -> bool {
    let axis = ["blockIdx_", "cluster_", "threadIdx_"].iter().find_map(|it| name.strip_prefix(it));
    let compiler = name
        .strip_prefix('_')
        .is_some_and(|it| it.starts_with(|ch: char| ch == '_' || ch.is_ascii_uppercase()));
    name.starts_with("tw_")
        || compiler
        || matches!(axis, Some("x" | "y" | "z"))
        || RESERVED[slot(name)].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::is_reserved;
    use crate::{ThreadAxis, axis_var};

    #[test]
    fn variables_of_axes_are_nobody_elses() {
        for axis in ThreadAxis::ALL {
            assert!(is_reserved(axis_var(axis).as_str()), "{}", axis.as_str());
        }
        assert!(!is_reserved("cluster_w") && !is_reserved("cluster"));
    }
}
