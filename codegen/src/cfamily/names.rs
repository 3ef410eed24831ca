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

/// The identifier that stands for a name in emitted C and CUDA C++, and the symbol of a kernel of that name.
///
/// It is the name itself, unless that is a keyword or would be taken for something of the source's own (`tw_…`,
/// `_…`): then underscores are added such that different names stay different.
pub fn identifier(name: &Name) -> Cow<'_, str> {
    let text = name.as_str();
    let stem = text.trim_end_matches('_');
    if text.starts_with('_') || text.starts_with("tw_") {
        Cow::Owned(format!("v{text}_"))
    } else if RESERVED.binary_search(&stem).is_ok() || (stem.starts_with("v_") || stem.starts_with("vtw_")) {
        Cow::Owned(format!("{text}_"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_sorted_for_the_search() {
        assert!(RESERVED.is_sorted());
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
