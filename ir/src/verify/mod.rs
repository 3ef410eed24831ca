//! The verifier: what is true of every well-formed function.
//!
//! # Names
//! * The name of the function, and those of dimensions, buffers, loops (those inside blocks too), blocks and
//!   iterators are identifiers ([`Name::is_valid`](crate::Name::is_valid)).
//! * None is [reserved](crate::is_reserved): a word of C, CUDA or the text form, or a name that emitted sources use.
//! * All are different from each other, except that a block may have the name of a buffer, and that blocks may
//!   use the same iterator names as other blocks.
//!
//! # Buffers
//! * Shapes are over the dimensions. An extent that is a constant is at least 1.
//! * Inputs and outputs are in global memory.
//! * Of `align` there is at most one for each dimension of the buffer, with `1 <= factor` and
//!   `0 <= offset < factor`.
//! * Inputs are never written. Outputs, and temporaries that are read, are written by some block.
//!
//! # Statements
//! * A sequence is as [`Stmt::seq`](crate::Stmt::seq) makes it: not directly inside another, not of one statement.
//! * Stores stand in blocks only, and blocks not in blocks. A loop has a body, and a block a store.
//! * A loop inside a block is serial and has no annotations.
//! * The extent of a loop is over the dimensions and the variables of the loops around it (inside a block, its
//!   iterators and the loops around it in the block). An extent that is a constant is at least 1.
//! * On the path to a loop a GPU axis is bound twice only by loops of one extent, where no block under the inner
//!   loop uses the outer one: the work is then the same for every outer iteration, and each thread does its share.
//! * The keys of annotations are not empty.
//!
//! # Blocks
//! * Bindings and guards are over the dimensions and the variables of the loops around the block.
//! * The extents of iterators are over the dimensions. One that is a constant is at least 1.
//! * Init and body are over the dimensions and the iterators of the block: they read no variable of a loop around
//!   the block.
//! * A block with an init has a reduction iterator. The init reads no reduction iterator and writes only what the
//!   body writes. (A block with a reduction iterator and no init is the update of a decomposed reduction.)
//!
//! # Expressions
//! * A divisor that is a constant is at least 1.
//! * An access names a buffer, has one subscript for each of its dimensions, and is of one lane.
//! * A literal is one of its type. An index becomes a value of an integer type.
//! * Both operands of an operation, both branches of a selection, and the two sides of a store have one type.
//! * `exp`, `log`, `sqrt`, `rsqrt`, `tanh` and `erf` take floats; of booleans there is only `min` and `max`.
//!
//! # Ranges
//! * The binding of an iterator is within `0..extent`, and a subscript within the shape, in every run of the block.
//! * Neither overflows 64 bits on the way, in any run of the block.
//!
//! These are not decided but *tried*: the block is run at corners of its iteration space, with guards and selections obeyed, and a run that
//! goes wrong is reported. So a refusal is always right, and names an example; other runs are left to the interpreter and the virtual GPU.

mod corners;
mod elements;
mod error;
mod help;
mod kernel;
mod kernel_async;
mod kernel_claims;
mod kernel_differs;
mod kernel_error;
mod kernel_index;
mod names;
mod values;

use std::collections::BTreeSet;

pub use error::{Example, Part, VerifyError, VerifyErrorKind};
pub use kernel::verify_module;
pub use kernel_error::{KernelError, KernelErrorKind};

use self::values::bad_divisor;
use crate::{
    Access, Annotations, Block, Buffer, Func, Index, IterKind, Loop, LoopKind, Mode, Name, Role, Scope, Stmt,
    StorageAlign, Swizzle, cost,
};

/// Checks all invariants; returns every one that does not hold, in program order, ranges only if all others do, and
/// the size of the buffers last.
pub fn verify(func: &Func) -> Result<(), Vec<VerifyError>> {
    verify_step(func, &[])?;
    let least = func.dims.iter().map(|it| (it.clone(), 1)).collect();
    if cost::footprint(func, &least).is_some_and(|it| it <= cost::MOST_BYTES) {
        return Ok(());
    }
    Err(vec![VerifyError { at: func.name.clone(), kind: VerifyErrorKind::TooLarge }])
}

/// Checks all invariants of a function that was made from a verified one by a rewrite: as [`verify`], but for what
/// is inside those blocks that were `kept` (see [`unchanged_blocks`](crate::unchanged_blocks)).
pub fn verify_step(func: &Func, kept: &[bool]) -> Result<(), Vec<VerifyError>> {
    let kept = Kept { blocks: kept, at: 0 };
    let mut it =
        Verifier { func, errors: names::check(func), around: Vec::with_capacity(16), kept: kept.clone() };
    it.buffers();
    it.sequence(&func.body);
    it.stmt(&func.body);
    it.usage();
    if it.errors.is_empty() {
        it.errors = corners::check(func, kept);
    }
    if it.errors.is_empty() { Ok(()) } else { Err(it.errors) }
}

/// Whether the work under `inner` is the same in every iteration of `outer`, so that one axis can run both.
fn shares_axis(outer: &Loop, inner: &Loop) -> bool {
    let uses_outer = |index: &Index| index.any_var(&|var| *var == outer.var);
    outer.extent == inner.extent
        && inner.body.blocks().into_iter().all(|block| {
            block.iters.iter().all(|it| !uses_outer(&it.binding))
                && block.guards.iter().all(|it| !uses_outer(&it.lhs) && !uses_outer(&it.rhs))
        })
}

/// Which blocks were kept, to be asked once for each block in program order. Blocks beyond the list were not.
#[derive(Clone)]
struct Kept<'a> {
    blocks: &'a [bool],
    at: usize,
}

impl Kept<'_> {
    fn next(&mut self) -> bool {
        self.at += 1;
        self.blocks.get(self.at - 1) == Some(&true)
    }
}

struct Verifier<'a> {
    func: &'a Func,
    kept: Kept<'a>,
    errors: Vec<VerifyError>,
    /// The loops around the statement that is looked at, from the outermost.
    around: Vec<&'a Loop>,
}

impl<'a> Verifier<'a> {
    fn report(&mut self, at: &Name, kind: VerifyErrorKind) {
        let error = VerifyError { at: at.clone(), kind };
        if self.errors.last() != Some(&error) {
            self.errors.push(error);
        }
    }

    /// Whether this is a symbolic dimension.
    fn is_dim(&self, var: &Name) -> bool {
        self.func.dims.contains(var)
    }

    /// Whether this is a symbolic dimension or the variable of a loop around.
    fn is_outside(&self, var: &Name) -> bool {
        self.is_dim(var) || self.around.iter().any(|it| it.var == *var)
    }

    /// Checks the variables and divisors of an index.
    fn index(&mut self, at: &Name, part: &Part, index: &Index, in_scope: &dyn Fn(&Self, &Name) -> bool) {
        let mut unknown = Vec::new();
        index.each_var(&mut |var| {
            if !in_scope(self, var) && !unknown.contains(&var) {
                unknown.push(var);
            }
        });
        for var in unknown {
            let is_loop = self.around.iter().any(|it| it.var == *var);
            let (part, var) = (part.clone(), var.clone());
            self.report(at, VerifyErrorKind::NotInScope { var, part, is_loop });
        }
        if let Some(divisor) = bad_divisor(index) {
            self.report(at, VerifyErrorKind::Divisor { divisor, index: index.clone() });
        }
    }

    /// Checks an extent, of whatever part.
    fn extent(&mut self, at: &Name, part: &Part, extent: &Index, in_scope: &dyn Fn(&Self, &Name) -> bool) {
        self.index(at, part, extent, in_scope);
        if let Some(extent) = extent.as_int().filter(|it| *it < 1) {
            self.report(at, VerifyErrorKind::Extent { part: part.clone(), extent });
        }
    }

    fn buffers(&mut self) {
        for (name, buffer) in &self.func.buffers {
            for extent in &buffer.shape {
                self.extent(name, &Part::Shape, extent, &Self::is_dim);
            }
            if buffer.role != Role::Temp && buffer.scope != Scope::Global {
                self.report(name, VerifyErrorKind::ParameterScope { scope: buffer.scope });
            }
            self.layout(name, buffer);
            self.below(name, buffer);
        }
    }

    fn layout(&mut self, name: &Name, buffer: &Buffer) {
        let mut seen = BTreeSet::new();
        for &StorageAlign { axis, factor, offset } in &buffer.layout.align {
            let fits = axis < buffer.shape.len() && factor >= 1 && (0..factor).contains(&offset);
            if !fits || !seen.insert(axis) {
                self.report(name, VerifyErrorKind::Align { axis, factor, offset });
            }
        }
        if let Some(Swizzle::Xor(it)) = buffer.layout.swizzle
            && !it.is_valid(buffer.dtype.bytes_i64())
        {
            self.report(name, VerifyErrorKind::Swizzle(it));
        }
        if buffer.layout.swizzle.is_some() && buffer.scope != Scope::Shared {
            self.report(name, VerifyErrorKind::SwizzleScope { scope: buffer.scope });
        }
    }

    /// Checks that a body is no sequence of one statement and has no sequence directly inside.
    fn sequence(&mut self, stmt: &Stmt) {
        if let Stmt::Seq(stmts) = stmt
            && (stmts.len() == 1 || stmts.iter().any(|it| matches!(it, Stmt::Seq(_))))
        {
            let at = self.around.last().map_or(&self.func.name, |it| &it.var);
            self.report(&at.clone(), VerifyErrorKind::Sequence);
        }
    }

    /// Checks a statement outside blocks.
    fn stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Loop(it) => {
                self.for_loop(it);
                self.around.push(it);
                self.sequence(&it.body);
                self.stmt(&it.body);
                self.around.pop();
            }
            Stmt::Block(it) => {
                if !self.kept.next() {
                    self.block(it);
                }
            }
            Stmt::Seq(stmts) => {
                for stmt in stmts {
                    self.stmt(stmt);
                }
            }
            Stmt::Store(it) => {
                let at = self.around.last().map_or(&self.func.name, |it| &it.var).clone();
                self.report(&at, VerifyErrorKind::StoreOutsideBlock { buffer: it.place.buffer.clone() });
            }
            Stmt::Instr(it) => {
                let at = self.around.last().map_or(&self.func.name, |it| &it.var).clone();
                self.report(&at, VerifyErrorKind::Instruction { name: it.word() });
            }
        }
    }

    fn for_loop(&mut self, it: &Loop) {
        self.elements(&it.var, &it.extent, false);
        self.extent(&it.var, &Part::Extent, &it.extent, &Self::is_outside);
        if let LoopKind::Bound(axis) = it.kind {
            let clashes = |outer: &&Loop| outer.kind == LoopKind::Bound(axis) && !shares_axis(outer, it);
            if let Some(outer) = self.around.iter().copied().find(clashes) {
                self.report(&it.var, VerifyErrorKind::AxisTwice { axis, outer: outer.var.clone() });
            }
        }
        if it.body.is_empty() {
            self.report(&it.var, VerifyErrorKind::EmptyLoop);
        }
        self.notes(&it.var, &it.attrs.notes);
    }

    fn notes(&mut self, at: &Name, notes: &Annotations) {
        if notes.contains_key("") {
            self.report(at, VerifyErrorKind::EmptyKey);
        }
    }

    fn block(&mut self, block: &'a Block) {
        let name = &block.name;
        for iter in &block.iters {
            let part = Part::IterExtent(iter.var.clone());
            self.extent(name, &part, &iter.extent, &Self::is_dim);
            self.index(name, &Part::Binding(iter.var.clone()), &iter.binding, &Self::is_outside);
        }
        for index in block.guards.iter().flat_map(|it| [&it.lhs, &it.rhs]) {
            self.index(name, &Part::Guard, index, &Self::is_outside);
        }
        self.notes(name, &block.attrs.notes);
        self.no_elements(block);
        self.init(block);
        for (part, stmt) in block.init.iter().map(|it| (Part::Init, it)).chain([(Part::Body, &block.body)]) {
            self.inner_sequence(block, stmt);
            self.inner(block, &part, stmt, &mut Vec::new());
        }
        if block.writes().is_empty() {
            self.report(name, VerifyErrorKind::NoStore);
        }
    }

    fn init(&mut self, block: &Block) {
        let Some(init) = &block.init else { return };
        if block.iters.iter().all(|it| it.kind == IterKind::Spatial) {
            self.report(&block.name, VerifyErrorKind::InitWithoutReduction);
        }
        let mut written = BTreeSet::new();
        block.body.each_store(&mut |store| {
            written.insert(&store.place.buffer);
        });
        let mut others = Vec::new();
        init.each_store(&mut |store| {
            if !written.contains(&store.place.buffer) {
                others.push(store.place.buffer.clone());
            }
        });
        for buffer in others {
            self.report(&block.name, VerifyErrorKind::InitWritesOther { buffer });
        }
    }

    fn inner_sequence(&mut self, block: &Block, stmt: &Stmt) {
        if let Stmt::Seq(stmts) = stmt
            && (stmts.len() == 1 || stmts.iter().any(|it| matches!(it, Stmt::Seq(_))))
        {
            self.report(&block.name, VerifyErrorKind::Sequence);
        }
    }

    /// Checks a statement inside a block, below the loops `inside` the block.
    fn inner(&mut self, block: &'a Block, part: &Part, stmt: &'a Stmt, inside: &mut Vec<&'a Name>) {
        match stmt {
            Stmt::Loop(it) => {
                let extent = it.extent.clone();
                self.inner_index(block, part, &extent, inside);
                if let Some(extent) = extent.as_int().filter(|it| *it < 1) {
                    self.report(&it.var, VerifyErrorKind::Extent { part: Part::Extent, extent });
                }
                if it.kind != LoopKind::Serial || !it.attrs.is_empty() {
                    self.report(&block.name, VerifyErrorKind::InnerLoop { var: it.var.clone() });
                }
                if it.body.is_empty() {
                    self.report(&it.var, VerifyErrorKind::EmptyLoop);
                }
                self.inner_sequence(block, &it.body);
                inside.push(&it.var);
                self.inner(block, part, &it.body, inside);
                inside.pop();
            }
            Stmt::Block(it) => {
                self.report(&block.name, VerifyErrorKind::NestedBlock { inner: it.name.clone() });
            }
            Stmt::Seq(stmts) => {
                for stmt in stmts {
                    self.inner(block, part, stmt, inside);
                }
            }
            Stmt::Store(it) => self.store(block, part, it, inside),
            Stmt::Instr(it) => self.report(&block.name, VerifyErrorKind::Instruction { name: it.word() }),
        }
    }

    /// Checks an index of the init or body of a block.
    fn inner_index(&mut self, block: &Block, part: &Part, index: &Index, inside: &[&Name]) {
        let in_scope = |this: &Self, var: &Name| {
            let iter = block.find_iter(var).filter(|it| *part == Part::Body || it.kind == IterKind::Spatial);
            iter.is_some() || inside.contains(&var) || this.is_dim(var)
        };
        self.index(&block.name, part, index, &in_scope);
    }

    /// Checks who writes and who reads each buffer.
    fn usage(&mut self) {
        let (mut written, mut read) = (Vec::with_capacity(16), Vec::with_capacity(16));
        let note = |known: &mut Vec<&'a Name>, buffer: &'a Name| {
            if !known.contains(&buffer) {
                known.push(buffer);
            }
        };
        let mut each = |access: &'a Access, mode: Mode| {
            if mode == Mode::Read {
                note(&mut read, &access.buffer);
            }
            if mode.writes() {
                note(&mut written, &access.buffer);
            }
        };
        for block in self.func.body.blocks() {
            block.init.iter().chain([&block.body]).for_each(|it| it.each_access(&mut each));
        }
        let is_input = |name: &&Name| self.func.buffers.get(*name).is_some_and(|it| it.role == Role::Input);
        for buffer in written.iter().copied().filter(is_input).cloned().collect::<Vec<_>>() {
            let writes =
                |it: &&Block| it.any_access(&mut |access, mode| mode.writes() && access.buffer == buffer);
            let first = self.func.body.blocks().into_iter().find(writes);
            let at = first.map_or(&self.func.name, |it| &it.name).clone();
            self.report(&at, VerifyErrorKind::InputWritten { buffer });
        }
        for (name, buffer) in &self.func.buffers {
            let needed = match buffer.role {
                Role::Input => false,
                Role::Output => true,
                Role::Temp => read.contains(&name),
            };
            if needed && !written.contains(&name) {
                self.report(name, VerifyErrorKind::NeverWritten);
            }
        }
    }
}
