//! Identifiers of the emitted source.

use std::borrow::Cow;

use ir::Name;

/// Words that a name of ours must not be: keywords of C and C++, and what the emitted source itself calls.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "assert",
    "auto",
    "bitand",
    "bitor",
    "blockDim",
    "blockIdx",
    "bool",
    "break",
    "buffers",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "const",
    "constexpr",
    "continue",
    "ctx",
    "decltype",
    "default",
    "delete",
    "dims",
    "do",
    "double",
    "else",
    "enum",
    "erf",
    "erff",
    "exp",
    "expf",
    "explicit",
    "export",
    "extern",
    "fabs",
    "fabsf",
    "false",
    "float",
    "fmax",
    "fmaxf",
    "fmin",
    "fminf",
    "for",
    "friend",
    "goto",
    "gridDim",
    "if",
    "inline",
    "int",
    "int16_t",
    "int32_t",
    "int64_t",
    "int8_t",
    "linux",
    "log",
    "logf",
    "long",
    "main",
    "max",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "min",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "requires",
    "restrict",
    "return",
    "rsqrt",
    "rsqrtf",
    "rt",
    "short",
    "signed",
    "sizeof",
    "sqrt",
    "sqrtf",
    "static",
    "struct",
    "switch",
    "tanh",
    "tanhf",
    "template",
    "this",
    "threadIdx",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "uint8_t",
    "union",
    "unix",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "warpSize",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
];

/// What `stdint.h` defines macros of: `INT64_MAX`, `UINT8_C`, `SIZE_MAX`.
const LIMITED: &[&str] = &[
    "INT",
    "UINT",
    "INTMAX",
    "UINTMAX",
    "INTPTR",
    "UINTPTR",
    "PTRDIFF",
    "SIG_ATOMIC",
    "SIZE",
    "WCHAR",
    "WINT",
];

/// Functions of the library: a kernel of such a name would be taken for it, or it for the kernel.
const LIBRARY: &str = "abs acos acosh asin asinh atan atan2 atanh cbrt ceil clock cos cosh exp2 exp10 expm1 fdim \
    floor fma fmod free frexp gamma hypot index j0 j1 jn ldexp lgamma log10 log1p log2 logb lrint malloc modf nan \
    norm norm3d norm4d pow printf puts remainder rint round scalbn sin sincos sinh sinpi tan tgamma time trunc y0 \
    y1 yn";

/// The symbol of a kernel of a name: an `identifier` that no function of the library has either.
pub fn symbol(name: &Name) -> Cow<'_, str> {
    let stem = name.as_str().trim_end_matches('_');
    if LIBRARY.split_whitespace().any(|it| it == stem) {
        Cow::Owned(format!("{name}_"))
    } else {
        identifier(name)
    }
}

/// The identifier that stands for a variable or buffer in emitted C and CUDA C++.
///
/// It is the name itself, unless that is a keyword or would be taken for something of the compiler's or the
/// source's own: then a letter or an underscore is added such that different names stay different.
pub(super) fn identifier(name: &Name) -> Cow<'_, str> {
    let text = name.as_str();
    if is_foreign(text.trim_start_matches('v')) {
        Cow::Owned(format!("v{text}"))
    } else if is_taken(text.trim_end_matches('_')) {
        Cow::Owned(format!("{text}_"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether a name means something in the emitted source already, as a word of its language or a macro of its header.
fn is_taken(text: &str) -> bool {
    let macros = |(stem, last): (&str, &str)| {
        let stem = stem.trim_end_matches(|it: char| it.is_ascii_digit());
        let stem = stem.strip_suffix("_LEAST").or_else(|| stem.strip_suffix("_FAST")).unwrap_or(stem);
        matches!(last, "MIN" | "MAX" | "WIDTH" | "C") && LIMITED.contains(&stem)
    };
    RESERVED.binary_search(&text).is_ok() || text.rsplit_once('_').is_some_and(macros)
}

/// Whether the compiler (`__x`, `_X`) or the emitted source (`tw_x`) keeps such names for itself.
fn is_foreign(text: &str) -> bool {
    let mut bytes = text.bytes();
    let mut is_compilers =
        || bytes.next() == Some(b'_') && bytes.next().is_some_and(|it| it == b'_' || it.is_ascii_uppercase());
    text.starts_with("tw_") || is_compilers()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_sorted_for_the_search() {
        assert!(RESERVED.is_sorted());
    }

    #[test]
    fn macros_of_the_header_are_no_names() {
        for it in "INT64_MAX UINT8_C INT_LEAST16_MIN UINT_FAST32_MAX SIZE_MAX INTPTR_MIN SIG_ATOMIC_WIDTH"
            .split(' ')
        {
            assert_eq!(identifier(&Name::new(it)), format!("{it}_"));
        }
        for it in "A_MAX MAX_SIZE INT64 SIZE C".split(' ') {
            assert_eq!(identifier(&Name::new(it)), it);
        }
    }

    #[test]
    fn different_names_stay_different() {
        let names = [
            "int", "int_", "int__", "A", "A_", "_A", "v_A", "v_A_", "tw_x", "vtw_x", "vtw_x_", "__x", "v__x",
        ];
        let mut out: Vec<_> = names.iter().map(|it| identifier(&Name::new(*it)).into_owned()).collect();
        assert_eq!(out[..5], ["int_", "int__", "int___", "A", "A_"]);
        out.sort();
        out.dedup();
        assert_eq!(out.len(), names.len(), "{out:?}");
    }
}
