//! Names: valid, not reserved, and told apart.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use super::{VerifyError, VerifyErrorKind};
use crate::{Block, DType, Func, Iter, Name, Stmt, UnaryOp};

/// Checks the names of a function.
pub(super) fn check(func: &Func) -> Vec<VerifyError> {
    if surely_fine(func) { vec![] } else { judged(func) }
}

/// Whether all names are well-formed and told apart: what almost every function passes, cheaply.
fn surely_fine(func: &Func) -> bool {
    let mut fine = true;
    let mut print = |name: &Name| {
        fine &= name.is_valid() && !is_reserved(name.as_str());
        name.key()
    };
    let mut taken = vec![print(&func.name)];
    taken.extend(func.dims.iter().map(&mut print));
    let (mut blocks, mut iters) = (Vec::new(), Vec::new());
    func.body.walk(&mut |stmt| match stmt {
        Stmt::Loop(stmt) => taken.push(print(&stmt.var)),
        Stmt::Block(stmt) => {
            blocks.push(print(&stmt.name));
            iters.push(stmt.iters.iter().map(|it| print(&it.var)).collect::<Vec<_>>());
        }
        Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {}
    });
    // A block may be called as a buffer is.
    blocks.extend(&taken);
    taken.extend(func.buffers.keys().map(print));
    blocks.sort_unstable();
    taken.sort_unstable();
    let is_free = |it: &usize| taken.binary_search(it).is_err() && blocks.binary_search(it).is_err();
    fine && [&taken, &blocks].into_iter().all(|it| it.is_sorted_by(|a, b| a < b))
        && iters.iter().all(|of| of.iter().enumerate().all(|(n, it)| is_free(it) && !of[..n].contains(it)))
}

fn judged(func: &Func) -> Vec<VerifyError> {
    let mut it = Names { taken: BTreeMap::new(), blocks: BTreeSet::new(), errors: Vec::new() };
    it.introduce(&func.name, "a function");
    func.dims.iter().for_each(|name| it.introduce(name, "a dimension"));
    func.buffers.keys().for_each(|name| it.introduce(name, "a buffer"));
    func.body.walk(&mut |stmt| match stmt {
        Stmt::Loop(stmt) => it.introduce(&stmt.var, "a loop"),
        Stmt::Block(stmt) => it.block(&stmt.name),
        Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {}
    });
    for block in func.body.blocks() {
        for (at, iter) in block.iters.iter().enumerate() {
            it.iterator(block, &block.iters[..at], &iter.var);
        }
    }
    it.errors
}

struct Names<'a> {
    /// What each name is, but for blocks.
    taken: BTreeMap<&'a Name, &'static str>,
    blocks: BTreeSet<&'a Name>,
    errors: Vec<VerifyError>,
}

impl<'a> Names<'a> {
    fn introduce(&mut self, name: &'a Name, what: &'static str) {
        self.well_formed(name, name);
        if let Some(first) = self.taken.insert(name, what) {
            self.clash(name, name, first, what);
        } else if self.blocks.contains(name) {
            self.clash(name, name, "a block", what);
        }
    }

    fn block(&mut self, name: &'a Name) {
        self.well_formed(name, name);
        if !self.blocks.insert(name) {
            self.clash(name, name, "a block", "a block");
        }
        match self.taken.get(name) {
            None | Some(&"a buffer") => {}
            Some(first) => self.clash(name, name, first, "a block"),
        }
    }

    fn iterator(&mut self, block: &Block, before: &[Iter], var: &Name) {
        self.well_formed(&block.name, var);
        let first = self.taken.get(var).copied();
        let first = first.or_else(|| self.blocks.contains(var).then_some("a block"));
        let first = first.or_else(|| before.iter().any(|it| it.var == *var).then_some("an iterator"));
        if let Some(first) = first {
            self.clash(&block.name, var, first, "an iterator");
        }
    }

    fn well_formed(&mut self, at: &Name, name: &Name) {
        let name = name.clone();
        let kind = if !name.is_valid() {
            VerifyErrorKind::InvalidName { name }
        } else if is_reserved(name.as_str()) {
            VerifyErrorKind::ReservedName { name }
        } else {
            return;
        };
        self.errors.push(VerifyError { at: at.clone(), kind });
    }

    fn clash(&mut self, at: &Name, name: &Name, first: &'static str, second: &'static str) {
        let kind = VerifyErrorKind::NameTaken { name: name.clone(), first, second };
        self.errors.push(VerifyError { at: at.clone(), kind });
    }
}

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
    let axis = name.strip_prefix("blockIdx_").or_else(|| name.strip_prefix("threadIdx_"));
    let compiler = name
        .strip_prefix('_')
        .is_some_and(|it| it.starts_with(|ch: char| ch == '_' || ch.is_ascii_uppercase()));
    name.starts_with("tw_")
        || compiler
        || matches!(axis, Some("x" | "y" | "z"))
        || RESERVED[slot(name)].contains(&name)
}
