//! Buffers: parameters, temporaries, and parts of buffers that blocks give names to.

use std::ops::Range;

use ir::{Annotation, Buffer, DType, Index, Layout, Name, Role, Scope, StorageAlign};
use ruff_python_ast::{Expr, ExprCall, ExprSubscript};

use super::{
    args::{Args, items, text_of},
    attrs::entries,
    block::difference,
    error::{Refusal, malformed, unsayable},
    function::Reader,
    scope::Meaning,
    span,
};

/// What declares a buffer takes.
pub(super) const PARAMETER: [&str; 11] = [
    "shape",
    "dtype",
    "data",
    "strides",
    "elem_offset",
    "scope",
    "align",
    "offset_factor",
    "buffer_type",
    "axis_separators",
    "layout",
];
const MATCH: [&str; 11] = [
    "param",
    "shape",
    "dtype",
    "data",
    "strides",
    "elem_offset",
    "scope",
    "align",
    "offset_factor",
    "buffer_type",
    "axis_separators",
];

impl Reader<'_> {
    /// A declaration: the buffer gets a name, and the word of the file means it.
    pub(super) fn buffer(
        &mut self,
        call: &ExprCall,
        word: &str,
        names: &'static [&'static str],
        at: Range<usize>,
    ) -> Result<Name, Refusal> {
        let args = Args::of(call, names)?;
        let dtype = args.get("dtype").map_or(Ok(DType::F32), |it| self.dtype(it))?;
        let shape = self.shape(args.need("shape")?)?;
        self.expect_row_major(&args, &shape)?;
        let scope = args.get("scope").map_or(Ok(Scope::Global), memory)?;
        Ok(self.declare(word, at, Buffer::temp(dtype, shape, scope)))
    }

    fn declare(&mut self, word: &str, at: Range<usize>, buffer: Buffer) -> Name {
        let name = self.names.buffer(word);
        self.places.insert(name.clone(), at);
        self.scope.bind(word, Meaning::Buffer(name.clone()));
        self.buffers.insert(name.clone(), buffer);
        name
    }

    /// A parameter as older versions of TVM write it.
    pub(super) fn subscripted_buffer(
        &mut self,
        it: &ExprSubscript,
        word: &str,
        at: Range<usize>,
    ) -> Result<Name, Refusal> {
        let (shape, dtype) = match items(&it.slice) {
            [shape, dtype @ Expr::StringLiteral(_)] => (shape, self.dtype(dtype)?),
            _ => (&*it.slice, DType::F32),
        };
        let shape = self.shape(shape)?;
        Ok(self.declare(word, at, Buffer::temp(dtype, shape, Scope::Global)))
    }

    /// The extents of a buffer, some of which may be expressions in quotes.
    fn shape(&mut self, expr: &Expr) -> Result<Vec<Index>, Refusal> {
        items(expr).iter().map(|it| self.extent_of_shape(it)).collect()
    }

    fn extent_of_shape(&mut self, expr: &Expr) -> Result<Index, Refusal> {
        let Expr::StringLiteral(it) = expr else { return self.index(expr) };
        self.quoted_index(it.value.to_str()).map_err(|it| Refusal { span: span(expr), ..it })
    }

    /// An index that stands in a string. Its places are those in the string.
    fn quoted_index(&mut self, text: &str) -> Result<Index, Refusal> {
        super::length::check(text)?;
        let parsed = ruff_python_parser::parse_expression(text)
            .map_err(|_| malformed(0..0, format!("`{text}` is no expression")))?;
        self.index(&parsed.into_expr())
    }

    /// Refuses layouts that are not row-major.
    fn expect_row_major(&mut self, args: &Args<'_>, shape: &[Index]) -> Result<(), Refusal> {
        let help =
            "store it row by row; `transform_layout` and `storage_align` change how a program stores it";
        if let Some(strides) = args.get("strides") {
            let mut least = Index::int(1);
            let mut wanted = vec![];
            for extent in shape.iter().rev() {
                wanted.insert(0, least.clone());
                least = least * extent.clone();
            }
            let strides_given = items(strides).iter().map(|it| self.index(it)).collect::<Result<Vec<_>, _>>();
            if !items(strides).is_empty() && strides_given.ok().as_deref() != Some(&*wanted) {
                return Err(unsayable(span(strides), "strides of its own are not those of rows", help));
            }
        }
        if let Some(offset) = args.get("elem_offset")
            && self.index(offset).ok().and_then(|it| it.as_int()) != Some(0)
        {
            return Err(unsayable(span(offset), "a buffer begins with its first element here", help));
        }
        if let Some(kind) = args.get("buffer_type")
            && !text_of(kind)?.is_empty()
        {
            return Err(unsayable(span(kind), "subscripts are not broadcast here", "write the whole shape"));
        }
        Ok(())
    }

    /// `A = T.match_buffer(…)`: of a handle, or of a region of a buffer.
    pub(super) fn match_buffer(
        &mut self,
        call: &ExprCall,
        word: &str,
        at: Range<usize>,
    ) -> Result<(), Refusal> {
        let args = Args::of(call, &MATCH)?;
        let what = args.need("param")?;
        if let Expr::Subscript(region) = what {
            return self.view(region, &args, word);
        }
        let meaning = match what {
            Expr::Name(name) => self.scope.find(name.id.as_str()).cloned(),
            _ => None,
        };
        match meaning {
            Some(Meaning::Handle(handle)) => {
                let name = self.buffer(call, word, &MATCH, at)?;
                self.match_handle(handle, &name, span(what))
            }
            Some(Meaning::Buffer(buffer)) => {
                let starts = vec![Index::int(0); self.buffers[&buffer].shape.len()];
                let rank = starts.len();
                self.scope.bind(word, Meaning::View { buffer, starts, rank });
                Ok(())
            }
            _ => Err(malformed(span(what), "a parameter, or a region of a buffer, is expected here")),
        }
    }

    /// A region of a buffer with a name of its own: accesses to it are accesses to the buffer.
    fn view(&mut self, region: &ExprSubscript, args: &Args<'_>, word: &str) -> Result<(), Refusal> {
        let unsaid = |at: &Expr, title: &str| {
            unsayable(
                span(at),
                title,
                "write the subscripts of the buffer itself, in place of those of its part",
            )
        };
        let buffer = match &*region.value {
            Expr::Name(name) => match self.scope.find(name.id.as_str()) {
                Some(Meaning::Buffer(buffer)) => buffer.clone(),
                _ => return Err(unsaid(&region.value, "only a part of a buffer gets a name of its own")),
            },
            _ => return Err(malformed(span(&*region.value), "a buffer is expected here")),
        };
        let parts = items(&region.slice);
        if parts.len() != self.buffers[&buffer].shape.len() {
            return Err(malformed(span(region), "a region has a range for each dimension"));
        }
        let dtype = self.buffers[&buffer].dtype;
        if args.get("dtype").map_or(Ok(DType::F32), |it| self.dtype(it))? != dtype {
            return Err(unsaid(&region.value, "a part of a buffer has elements of its type"));
        }
        let (mut starts, mut extents) = (vec![], vec![]);
        for part in parts {
            let (start, extent) = self.range(part)?;
            starts.push(start);
            extents.push(extent);
        }
        let shape = self.shape(args.need("shape")?)?;
        let squeezed = extents.len().checked_sub(shape.len());
        let fits = squeezed.is_some_and(|it| {
            let same = |(a, b): (&Index, &Index)| a.as_int().is_none() || b.as_int().is_none() || a == b;
            extents[..it].iter().all(|it| it.as_int() == Some(1))
                && extents[it..].iter().zip(&shape).all(same)
        });
        if !fits {
            return Err(unsaid(&region.value, "the part has another shape than the region"));
        }
        self.scope.bind(word, Meaning::View { buffer, starts, rank: shape.len() });
        Ok(())
    }

    /// The start and the extent of a range `a:b`, or of one subscript.
    fn range(&mut self, expr: &Expr) -> Result<(Index, Index), Refusal> {
        let Expr::Slice(it) = expr else { return Ok((self.index(expr)?, Index::int(1))) };
        let (Some(lower), Some(upper), None) = (&it.lower, &it.upper, &it.step) else {
            return Err(malformed(span(expr), "a range has both its ends, and no step"));
        };
        let (lower, upper) = (self.index(lower)?, self.index(upper)?);
        let extent = difference(&upper, &lower);
        Ok((lower, extent))
    }

    /// `buffer_dim_align` of a block: which of its written buffers, which dimension, factor and offset.
    pub(super) fn align(&mut self, expr: &Expr, written: &[Name]) -> Result<(), Refusal> {
        for row in items(expr) {
            let numbers = match self.annotation(row)? {
                Annotation::List(it) => it,
                Annotation::Int(_) | Annotation::Text(_) | Annotation::Map(_) | Annotation::Words(_) => {
                    vec![]
                }
            };
            let found = match numbers[..] {
                [buffer, axis, factor, offset] => usize::try_from(buffer)
                    .ok()
                    .and_then(|it| written.get(it))
                    .zip(usize::try_from(axis).ok())
                    .map(|(buffer, axis)| (buffer, StorageAlign { axis, factor, offset })),
                _ => None,
            };
            let Some((buffer, align)) = found else {
                return Err(malformed(
                    span(row),
                    "a buffer that is written, its dimension, a factor and an offset",
                ));
            };
            self.buffers[buffer].layout.align.push(align);
        }
        Ok(())
    }

    /// `tilewright.layout`: how buffers are stored, in the words of the text form.
    pub(super) fn layouts(&mut self, expr: &Expr) -> Result<(), Refusal> {
        for it in entries(expr)? {
            let words = text_of(it.value)?;
            let layout = layout_of(&words).ok_or_else(|| malformed(it.span.clone(), "this is no layout"))?;
            let buffer = self.of_attribute(&it.key, it.span)?;
            // Alignments stand at the block that writes it.
            buffer.layout = Layout { align: std::mem::take(&mut buffer.layout.align), ..layout };
        }
        Ok(())
    }

    /// `tilewright.below`: what the elements of inputs are less than.
    pub(super) fn bounds(&mut self, expr: &Expr) -> Result<(), Refusal> {
        for it in entries(expr)? {
            let below = self.extent_of_shape(it.value)?;
            self.of_attribute(&it.key, it.span)?.below = Some(below);
        }
        Ok(())
    }

    fn of_attribute(&mut self, word: &str, at: Range<usize>) -> Result<&mut Buffer, Refusal> {
        self.buffers.get_mut(word).ok_or_else(|| malformed(at, format!("there is no buffer `{word}`")))
    }

    /// Makes a buffer that is a temporary of a block.
    pub(super) fn allocate(&mut self, call: &ExprCall, word: &str, at: Range<usize>) -> Result<(), Refusal> {
        let name = self.buffer(call, word, &PARAMETER, at)?;
        self.buffers[&name].role = Role::Temp;
        Ok(())
    }
}

/// A kind of memory.
fn memory(expr: &Expr) -> Result<Scope, Refusal> {
    let word = text_of(expr)?;
    scope_of(&word).ok_or_else(|| {
        unsayable(
            span(expr),
            format!("there is no memory `{word}` here"),
            "there is global, shared, shared.dyn and local; `tensorize` puts what tensor cores hold into fragments",
        )
    })
}

/// A kind of memory by TVM's word, or by one of our own for what TVM has not.
fn scope_of(word: &str) -> Option<Scope> {
    match word {
        "" => Some(Scope::Global),
        "shared.dyn" => Some(Scope::Shared),
        _ => Scope::parse(word),
    }
}

/// A layout of the text form, without the rest of the line.
fn layout_of(words: &str) -> Option<Layout> {
    if words.contains('\n') {
        return None;
    }
    let func = ir::text::parse(&format!("func f\n  temp A: f32[1] @shared {words}\n")).ok()?;
    func.buffers.into_iter().next().map(|(_, it)| it.layout)
}
