//! Prints a `Func`, and remembers where each name is introduced.

use std::{
    fmt::{self, Display, Formatter},
    ops::Range,
};

use indexmap::IndexMap;

use super::expr::{All, Attached, separated};
use crate::{
    AllocScope, Block, Buffer, Func, Iter, IterKind, Layout, LoopKind, Name, Role, Scope, Stmt, StorageAlign,
    Store, Swizzle, XorSwizzle,
};

/// A printed function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// The text, each line ended by a newline.
    pub text: String,
    /// The byte range of the line, without its indentation, that introduces each loop, block and buffer; the
    /// symbolic dimensions and the function itself are introduced by the first line. Where a block has the name
    /// of the buffer it computes, it is the block's line.
    pub heads: IndexMap<Name, Range<usize>>,
    /// The same of the lines that declare buffers, also where a block has the name.
    pub buffers: IndexMap<Name, Range<usize>>,
    /// The part of the program that each line belongs to; none for the first line and the empty one.
    pub parts: Vec<Option<Part>>,
    /// The part that is being printed.
    part: Option<Part>,
}

/// A part of a program that has a name, and keeps it through every rewrite.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Part {
    /// The declaration of a buffer.
    Buffer(Name),
    /// The head of a loop.
    Loop(Name),
    /// A block: its head and its statements, without the loops and blocks inside it.
    Block(Name),
}

/// Prints a function.
pub fn print(func: &Func) -> Listing {
    let mut out = Listing::default();
    let mut dims = String::new();
    if !func.dims.is_empty() {
        dims = format!("({})", func.dims.iter().map(Name::as_str).collect::<Vec<_>>().join(", "));
    }
    let tolerance = func.tolerance.map_or_else(String::new, |it| format!(" tolerance {it}"));
    let head = out.line(0, format_args!("func {}{dims}{tolerance}", func.name));
    for name in func.dims.iter().chain([&func.name]) {
        out.introduce(name, &head);
    }
    for (name, buffer) in &func.buffers {
        out.part = Some(Part::Buffer(name.clone()));
        let head = out.line(1, format_args!("{}", Declaration(name, buffer)));
        out.introduce(name, &head);
        out.buffers.insert(name.clone(), head);
    }
    out.part = None;
    for (name, it) in &func.mbarriers {
        let head = out.line(1, format_args!("mbarriers {name}{it}"));
        out.introduce(name, &head);
    }
    if !func.buffers.is_empty() && !func.body.is_empty() {
        out.text.push('\n');
        out.parts.push(None);
    }
    out.stmt(1, &func.body);
    out
}

impl Listing {
    /// Adds a line and returns its range.
    pub(super) fn line(&mut self, depth: usize, text: fmt::Arguments<'_>) -> Range<usize> {
        for _ in 0..depth {
            self.text.push_str("  ");
        }
        let start = self.text.len();
        fmt::write(&mut self.text, text).expect("writing to a string does not fail");
        let range = start..self.text.len();
        self.text.push('\n');
        self.parts.push(self.part.clone());
        range
    }

    /// Prints lines of a part, and goes on with the part that it is in.
    fn part(&mut self, part: Part, lines: impl FnOnce(&mut Self)) {
        let outside = self.part.replace(part);
        lines(self);
        self.part = outside;
    }

    /// Keeps the first place where a name is introduced; a second one is an error that the verifier reports.
    fn introduce(&mut self, name: &Name, at: &Range<usize>) {
        self.heads.entry(name.clone()).or_insert_with(|| at.clone());
    }

    fn stmt(&mut self, depth: usize, stmt: &Stmt) {
        match stmt {
            Stmt::Loop(it) => {
                let annotations = Attached(&it.attrs.entries());
                self.part(Part::Loop(it.var.clone()), |out| {
                    let head = out.line(
                        depth,
                        format_args!(
                            "for {} in 0..{}{}{annotations}",
                            it.var,
                            it.extent,
                            LoopKindSuffix(it.kind)
                        ),
                    );
                    out.introduce(&it.var, &head);
                });
                self.stmt(depth + 1, &it.body);
            }
            Stmt::Block(it) => self.part(Part::Block(it.name.clone()), |out| {
                let head = out.line(depth, format_args!("{}", Head(it)));
                out.heads.insert(it.name.clone(), head);
                if let Some(init) = &it.init {
                    out.line(depth + 1, format_args!("init"));
                    out.stmt(depth + 2, init);
                }
                out.stmt(depth + 1, &it.body);
            }),
            Stmt::Seq(stmts) => stmts.iter().for_each(|it| self.stmt(depth, it)),
            Stmt::Store(it) => {
                self.line(depth, format_args!("{it}"));
            }
            Stmt::Instr(it) => {
                self.line(depth, format_args!("{it}"));
            }
        }
    }
}

impl Display for Func {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self).text)
    }
}

impl Display for Stmt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut out = Listing::default();
        out.stmt(0, self);
        f.write_str(&out.text)
    }
}

impl Display for Store {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.place, self.value)
    }
}

impl Display for Scope {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Role {
    /// The word in the text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Input => "in",
            Role::Output => "out",
            Role::Temp => "temp",
        }
    }
}

/// The line that declares a buffer.
struct Declaration<'a>(&'a Name, &'a Buffer);

impl Display for Declaration<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Declaration(name, buffer) = self;
        write!(f, "{} {name}: {}[", buffer.role.as_str(), buffer.dtype)?;
        separated(f, ", ", &buffer.shape)?;
        f.write_str("]")?;
        if buffer.scope != Scope::Global {
            write!(f, " @{}", buffer.scope)?;
        }
        write!(f, "{}", buffer.layout)?;
        match &buffer.alloc_scope {
            None => {}
            Some(AllocScope::Program) => f.write_str(" once")?,
            Some(AllocScope::Loop(var)) => write!(f, " per {var}")?,
        }
        buffer.below.as_ref().map_or(Ok(()), |it| write!(f, " below {it}"))
    }
}

/// What differs from row-major order, each with a blank before it.
impl Display for Layout {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for StorageAlign { axis, factor, offset } in &self.align {
            write!(f, " align({axis}, {factor}, {offset})")?;
        }
        match self.swizzle {
            None => {}
            Some(Swizzle::Auto) => f.write_str(" swizzle(auto)")?,
            Some(Swizzle::None) => f.write_str(" swizzle(none)")?,
            Some(Swizzle::Xor(XorSwizzle { bits, base, shift })) => {
                write!(f, " swizzle({bits}, {base}, {shift})")?;
            }
        }
        self.panel.map_or(Ok(()), |it| write!(f, " panel {it}"))
    }
}

/// The kind of a loop with a blank before it; nothing for a serial loop.
struct LoopKindSuffix(LoopKind);

impl Display for LoopKindSuffix {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            LoopKind::Serial => Ok(()),
            LoopKind::Parallel => f.write_str(" @parallel"),
            LoopKind::Vectorized => f.write_str(" @vectorized"),
            LoopKind::Unrolled => f.write_str(" @unrolled"),
            LoopKind::Bound(axis) => write!(f, " @{}", axis.as_str()),
        }
    }
}

/// The first line of a block.
struct Head<'a>(&'a Block);

impl Display for Head<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let block = self.0;
        write!(f, "block {}(", block.name)?;
        separated(f, ", ", &block.iters)?;
        f.write_str(")")?;
        if !block.guards.is_empty() {
            write!(f, " if {}", All(&block.guards))?;
        }
        write!(f, "{}", Attached(&block.attrs.entries()))
    }
}

impl Display for Iter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            IterKind::Spatial => "",
            IterKind::Reduce => "reduce ",
        };
        write!(f, "{}: {kind}{} = {}", self.var, self.extent, self.binding)
    }
}
