//! What a schedule tells of its program: loops, blocks, buffers.

use ir::{Access, Buffer, Func, Index, Iter, LoopKind, Name, Stmt};

use super::Schedule;

/// A loop of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopInfo {
    /// Its name, which is that of its variable.
    pub name: Name,
    /// How often its body runs: `0..extent`. [`Index::as_int`] is the number where it has no symbolic dimensions.
    pub extent: Index,
    /// How its iterations are run.
    pub kind: LoopKind,
    /// The loop around it, if it is in one.
    pub parent: Option<Name>,
    /// The blocks in it, in the order of the program.
    pub blocks: Vec<Name>,
}

/// A block of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockInfo {
    /// Its name.
    pub name: Name,
    /// The loops around it, outermost first.
    pub loops: Vec<Name>,
    /// Its iterators: name, extent, whether they are spatial or reduced over, and their value over the loops around it.
    pub iterators: Vec<Iter>,
    /// What it reads, with subscripts over its iterators; the elements that it adds to are among them.
    pub reads: Vec<Access>,
    /// What it writes, with subscripts over its iterators.
    pub writes: Vec<Access>,
}

/// A buffer of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferInfo {
    /// Its name.
    pub name: Name,
    /// The type of its elements, its shape, its memory ([`ir::Scope`]), its role and its layout.
    pub buffer: Buffer,
    /// The blocks that write it.
    pub writers: Vec<Name>,
    /// The blocks that read it.
    pub readers: Vec<Name>,
}

/// What can be asked of a schedule.
///
/// ```
/// # fn main() -> Result<(), tilewright::Diagnostic> {
/// use tilewright::{Schedule, Target, ir::LoopKind};
///
/// let mut schedule = Schedule::new("matmul", [("m", 64), ("n", 64), ("k", 64)], Target::Cpu)?;
/// schedule.split("i", [("io", None), ("ii", Some(8))])?.parallel("io")?;
///
/// let io = schedule.find_loop("io").unwrap();
/// assert_eq!((io.extent.as_int(), io.kind, io.parent), (Some(8), LoopKind::Parallel, None));
/// assert_eq!(schedule.find_loop("ii").unwrap().parent.unwrap(), "io");
/// assert!(schedule.find_loop("i").is_none(), "it was split");
///
/// let block = schedule.find_block("C").unwrap();
/// assert_eq!(block.loops, ["io", "ii", "j", "k"]);
/// assert_eq!(block.iterators[0].binding.to_string(), "io*8 + ii");
/// let reads: Vec<_> = block.reads.iter().map(ToString::to_string).collect();
/// assert_eq!(reads, ["C[vi, vj]", "A[vi, vk]", "B[vk, vj]"]);
///
/// let a = schedule.find_buffer("A").unwrap();
/// assert_eq!((a.buffer.dtype.as_str(), a.buffer.scope.as_str()), ("f32", "global"));
/// assert_eq!(a.readers, ["C"]);
///
/// let steps: Vec<_> = schedule.steps().map(|it| it.name()).collect();
/// assert_eq!(steps, ["split", "parallel"]);
/// println!("{schedule}"); // the loop nest
/// # Ok(())
/// # }
/// ```
impl Schedule {
    /// All loops, each before those in it.
    pub fn loops(&self) -> Vec<LoopInfo> {
        let mut out = vec![];
        loops(&self.func().body, None, &mut out);
        out
    }

    /// The loop of that name.
    pub fn find_loop(&self, name: &str) -> Option<LoopInfo> {
        self.loops().into_iter().find(|it| it.name == name)
    }

    /// All blocks in the order of the program.
    pub fn blocks(&self) -> Vec<BlockInfo> {
        let func = self.func();
        let info = |block: &ir::Block| BlockInfo {
            name: block.name.clone(),
            loops: around(func, &block.name),
            iterators: block.iters.clone(),
            reads: block.reads().into_iter().cloned().collect(),
            writes: block.writes().into_iter().cloned().collect(),
        };
        func.body.blocks().into_iter().map(info).collect()
    }

    /// The block of that name.
    pub fn find_block(&self, name: &str) -> Option<BlockInfo> {
        self.blocks().into_iter().find(|it| it.name == name)
    }

    /// All buffers: inputs and outputs in the order of parameters, then temporaries.
    pub fn buffers(&self) -> Vec<BufferInfo> {
        let func = self.func();
        let names = |all: Vec<&ir::Block>| all.into_iter().map(|it| it.name.clone()).collect();
        let info = |(name, buffer): (&Name, &Buffer)| BufferInfo {
            name: name.clone(),
            buffer: buffer.clone(),
            writers: names(func.writers(name)),
            readers: names(func.readers(name)),
        };
        func.buffers.iter().map(info).collect()
    }

    /// The buffer of that name.
    pub fn find_buffer(&self, name: &str) -> Option<BufferInfo> {
        self.buffers().into_iter().find(|it| it.name == name)
    }
}

/// The loops in a statement, the innermost of those around it being `parent`.
fn loops(stmt: &Stmt, parent: Option<&Name>, out: &mut Vec<LoopInfo>) {
    let Stmt::Loop(it) = stmt else {
        return stmt.children().for_each(|it| loops(it, parent, out));
    };
    out.push(LoopInfo {
        name: it.var.clone(),
        extent: it.extent.clone(),
        kind: it.kind,
        parent: parent.cloned(),
        blocks: it.body.blocks().into_iter().map(|it| it.name.clone()).collect(),
    });
    loops(&it.body, Some(&it.var), out);
}

/// The loops around a block, outermost first.
fn around(func: &Func, block: &Name) -> Vec<Name> {
    let path = func.loops_of(block).expect("the block is one of the program's");
    path.into_iter().map(|it| it.var.clone()).collect()
}
