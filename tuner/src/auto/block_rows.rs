//! Programs that reduce rows on a GPU: threads share a row, keep it in registers, and reduce it together.

use ir::{Access, BinaryOp, Block, DType, Index, Name, Role, Stmt, Target, UnaryOp, Value};

use super::{
    Draft, Request,
    model::units,
    row_steps::Writer,
    rows::{Does, Stage, Stages, is_row, stages},
};

/// How many elements of a row a thread has, at best: enough loads in flight, and few enough registers for many threads.
const ELEMENTS: i64 = 16;

/// The most registers of a thread that rows stay in, the registers of a multiprocessor, and how many a thread needs besides.
const REGISTERS: i64 = 64;
const ALL_REGISTERS: i64 = 1 << 16;
const BESIDES: i64 = 24;

/// The fewest threads of a block, the most of them, and the threads of a warp.
const THREADS: i64 = 128;
const MOST: i64 = 1024;
const WARP: i64 = 32;

/// The bytes of the widest access.
const VECTOR: i64 = 16;

/// The registers of a row that a thread has at best where the blocks of a cluster share it. Measured at 65536 columns in
/// f32 on an H100: 8 blocks with 32 registers each take 203 us, with 16 221, with 8 285; 4 blocks with 32 take 204, 2 212.
const OF_CLUSTER: i64 = 32;

/// The threads of a block where rows or parts of rows wait in shared memory, how many elements each has at most, and the blocks of a multiprocessor.
/// Measured on an H200 at 2²⁶ elements (`bench/fits/2026-11-29-h200-shared-rows.jsonl`): softmax in f32 takes 158 us at 131072 columns with 256 threads of 8 blocks
/// and 163 with 512, at 262144 176 with 16 blocks and 211 by the registers of 8.
const SHARING: [i64; 3] = [256, 512, 1024];
const WAITING: i64 = 80;
const BLOCKS: i64 = 3;

/// The bytes of a row that each block of a cluster has at best, if there are blocks enough. Measured there: in f16 65536 columns take 89 us with 4 blocks, 91 with 2 and 93 with 8,
/// 131072 92 with 8 and 98 with 4, 262144 100 with 8 and 102 with 16; layer norm of 65536 columns in f32 (2²⁵ elements) 88 with 8, 101 with 4.
const PART: i64 = 1 << 15;

/// The elements from which on a row that is stored in fewer bits than it is computed in waits in the shared memory of a block, and up to which what is costly of it stays in registers
/// beside that. Measured there, in f16: 16384 columns take 68 us, by registers alone 74, computed twice 76; 32768 take 79, 88, and 91 kept.
const LONG: i64 = 16384;

/// The bytes of shared memory that the reductions of a block take.
const REDUCED: i64 = 1024;

/// What a program over rows is made of.
pub(super) struct Rows<'a> {
    /// All of it, in order.
    pub(super) stages: Stages<'a>,
    /// What may be computed where it is used: elements between two stages, and what is done once a row.
    inlined: Vec<&'a Block>,
    /// Those of them that are worth keeping: each element costs a function, and several stages want it.
    costly: Vec<&'a Block>,
    /// The inputs that are read a row at a time.
    pub(super) inputs: Vec<Name>,
    /// The bytes of the widest element that is read or written, and of the inputs of a column together.
    widest: i64,
    column: i64,
    /// The bytes of the widest temporary, in which is computed.
    pub(super) computed: i64,
}

/// What is chosen for a row that stays in registers.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    /// How many elements are read at once.
    pub(super) vector: i64,
    /// Whether costly elements stay, too.
    costly: bool,
    /// How many blocks of a cluster share it: one has it alone.
    pub(super) blocks: i64,
    /// Whether it waits in shared memory, rather than in registers: what is costly and stays is in registers then, too.
    pub(super) shared: bool,
}

/// How a row comes to the threads that share it.
#[derive(Clone, Copy)]
pub(super) enum Row {
    /// Once, into registers.
    Stays(Kept),
    /// Anew for each stage, with so many elements at once.
    Streams(i64),
}

impl Row {
    pub(super) fn vector(self) -> i64 {
        match self {
            Row::Stays(it) => it.vector,
            Row::Streams(vector) => vector,
        }
    }

    /// How many blocks share it.
    pub(super) fn blocks(self) -> i64 {
        match self {
            Row::Stays(it) => it.blocks,
            Row::Streams(_) => 1,
        }
    }

    /// Whether what is costly stays.
    fn keeps_costly(self) -> bool {
        matches!(self, Row::Stays(it) if it.costly)
    }
}

/// All stages in one kernel: rows that stay in registers first, of a block or of a cluster, then rows that are read once for each stage.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    if *request.target == Target::Cpu {
        return vec![];
    }
    let Some(rows) = rows(request) else { return vec![] };
    let length = rows.stages.length();
    let mut out = Vec::new();
    for (blocks, shared) in rows.places(request) {
        let mut vector = VECTOR / rows.widest;
        while vector >= 1 {
            for costly in [true, false] {
                let kept = Kept { vector, costly, blocks, shared };
                if length % vector == 0
                    && (!costly || !rows.costly.is_empty())
                    && let Some(threads) = rows.threads(request, kept)
                {
                    out.push(rows.draft(request, threads, Row::Stays(kept)));
                }
            }
            vector /= 2;
        }
    }
    // A row of several axes is read in vectors only where it stays, and lies as one.
    let widest = if rows.stages.along.len() > 1 { 1 } else { VECTOR / rows.widest };
    // Fewer rows than multiprocessors get all the threads that one can have: none shares it with another row.
    let most = if rows.stages.rows.iter().product::<i64>() <= units(request) { MOST } else { 512 };
    for vector in (0..=widest.ilog2()).rev().map(|it| 1 << it).filter(|it| length % it == 0) {
        let threads = (0..10).map(|it| 1 << it).find(|it| it * vector >= length).unwrap_or(most);
        out.push(rows.draft(request, threads, Row::Streams(vector)));
    }
    out
}

/// The program as stages over rows, if it is one that reduces them.
fn rows<'a>(request: &Request<'a>) -> Option<Rows<'a>> {
    let func = request.func;
    let role = |it: &Name| func.buffers.get(it).map(|it| it.role);
    let is_temp = |it: &Block| it.writes().iter().all(|it| role(&it.buffer) == Some(Role::Temp));
    let stages = stages(request)?;
    let (last, before) = stages.all.split_last()?;
    let writes_one = |it: &Block| matches!(it.body, Stmt::Store(_));
    if !before.iter().all(|it| is_temp(it.block)) || !stages.all.iter().all(|it| writes_one(it.block)) {
        return None;
    }
    let rank = stages.rows.len() + stages.along.len();
    let mut inputs: Vec<Name> = Vec::new();
    for it in &stages.all {
        for read in it.block.reads() {
            let whole =
                func.buffers.get(&read.buffer).filter(|it| it.role == Role::Input && it.shape.len() == rank);
            // What a table says is read from memory as it is: an element of a row at most.
            if whole.is_none() || read.indices.iter().any(Index::has_element) {
                continue;
            }
            if !is_row(read, it.block) {
                return None;
            }
            if !inputs.contains(&read.buffer) {
                inputs.push(read.buffer.clone());
            }
        }
    }
    let bytes = |it: &Name| func.dtype_of(it).map(DType::bytes_i64);
    let column = inputs.iter().filter_map(bytes).sum();
    let written = (last.does == Does::Elements).then(|| last.block.writes()).into_iter().flatten();
    let touched = inputs.iter().chain(written.map(|it| &it.buffer));
    let widest = touched.filter_map(bytes).max()?;
    let made = stages.all.iter().flat_map(|it| it.block.writes());
    let computed = made.filter_map(|it| bytes(&it.buffer)).max()?;
    let inlined: Vec<_> = before.iter().filter(|it| it.does != Does::Reduce).map(|it| it.block).collect();
    let is_costly = |it: &&Stage<'_>| {
        it.does == Does::Elements
            && matches!(&it.block.body, Stmt::Store(store) if costs(&store.value))
            && it.block.writes().iter().any(|it| func.readers(&it.buffer).len() > 1)
    };
    let costly = before.iter().filter(is_costly).map(|it| it.block).collect();
    (!inputs.is_empty()).then_some(Rows { stages, inlined, costly, inputs, widest, column, computed })
}

impl Rows<'_> {
    /// Where a row may stay, the best place first: so many blocks share it, in their shared memory or in their registers.
    fn places(&self, request: &Request<'_>) -> Vec<(i64, bool)> {
        let Target::Cuda(arch) = request.target else { return vec![] };
        let is_again = self.is_read_again();
        let is_narrow = self.computed > self.widest && self.stages.length() >= LONG && is_again;
        let mut out = vec![(1, false)];
        let cluster = arch.caps().cluster.filter(|_| self.stages.along.len() == 1 && is_again);
        if let Some([portable, most]) = cluster.map(|it| [it.portable, it.most].map(i64::from)) {
            // As many as have few enough bytes each, of those that every GPU launches; else as many as it takes.
            let bytes = |blocks: &i64| self.part(*blocks).saturating_mul(self.column);
            let few = (1..=portable.ilog2()).map(|it| 1 << it).find(|it| bytes(it) <= PART);
            let blocks =
                few.unwrap_or(if bytes(&portable) <= Rows::place(request) { portable } else { most });
            out.push((portable, false));
            let is_slower = blocks > portable && self.has_weights();
            out.insert(if is_narrow { 0 } else { 1 + usize::from(is_slower) }, (blocks, true));
        }
        if is_narrow {
            out.insert(0, (1, true));
        }
        out
    }

    /// Whether something lies along a row that all rows share, as the weights of a layer norm do. Then the registers of a few blocks are faster than the shared memory of many:
    /// with 262144 columns in f32 111 us for 118 (2²⁵ elements).
    fn has_weights(&self) -> bool {
        self.stages.all.iter().any(|stage| {
            let along = stage.block.iters.iter().skip(self.stages.rows.len());
            let mut others = stage.block.reads().into_iter().filter(|it| !self.inputs.contains(&it.buffer));
            let along: Vec<_> = along.map(|it| &it.var).collect();
            others.any(|it| {
                it.indices.len() < stage.block.iters.len()
                    && it.indices.iter().any(|it| it.any_var(&|var| along.contains(&var)))
            })
        })
    }

    /// Whether an element of a row is wanted more than once: what is read once gains nothing.
    fn is_read_again(&self) -> bool {
        let readers = |it: &Name| {
            self.stages
                .all
                .iter()
                .filter(|stage| stage.block.reads().iter().any(|read| read.buffer == *it))
                .count()
        };
        self.stages.all.last().is_some_and(|it| it.does != Does::Reduce)
            || self.inputs.iter().any(|it| readers(it) > 1)
    }

    /// The elements of a row that each of so many blocks has.
    fn part(&self, blocks: i64) -> i64 {
        (self.stages.length() - 1).div_euclid(blocks) + 1
    }

    /// The bytes of shared memory that each block has where several are on a multiprocessor, so that one loads while others compute.
    fn place(request: &Request<'_>) -> i64 {
        let Target::Cuda(arch) = request.target else { return 0 };
        i64::from(arch.caps().shared_per_sm) / BLOCKS - REDUCED
    }

    /// How many threads of each block share a row of vectors, if it fits where it is to stay.
    fn threads(&self, request: &Request<'_>, kept: Kept) -> Option<i64> {
        match (kept.blocks, kept.shared) {
            (_, true) => self.threads_of_shared(request, kept),
            (1, false) => self.threads_of_block(kept),
            (_, false) => self.threads_of_cluster(kept),
        }
    }

    /// As few as have no more than is best, or all there may be.
    fn threads_of_cluster(&self, kept: Kept) -> Option<i64> {
        let (vector, length) = (kept.vector, self.stages.length());
        let registers = |threads: i64| {
            let vectors = (length - 1).div_euclid(kept.blocks * threads * vector) + 1;
            vectors.saturating_mul(vector).saturating_mul(self.bytes(kept)) / 4
        };
        let fewest = (5..=10).map(|it| 1 << it).find(|it| registers(*it) <= OF_CLUSTER);
        fewest.or_else(|| Some(MOST).filter(|it| registers(*it) <= ALL_REGISTERS / it - BESIDES))
    }

    /// As few as have no more than is best. As many elements are read at once as are computed at once. What is costly is computed again, but where a block alone has
    /// the registers for it.
    fn threads_of_shared(&self, request: &Request<'_>, kept: Kept) -> Option<i64> {
        let part = self.part(kept.blocks);
        let is_held = part.saturating_mul(self.column) <= Rows::place(request);
        let is_wide = kept.vector * self.computed <= VECTOR;
        let keeps = !kept.costly || kept.blocks == 1 && part <= LONG;
        SHARING.into_iter().find(|it| part <= it * WAITING).filter(|_| is_held && is_wide && keeps)
    }

    fn threads_of_block(&self, kept: Kept) -> Option<i64> {
        let (vector, length) = (kept.vector, self.stages.length());
        let has = |threads: i64| (length - 1).div_euclid(threads * vector) + 1;
        let elements = |threads: i64| has(threads).saturating_mul(vector);
        // Neighbours read what lies beside each other, so a row of vectors has as many as there are, up to a warp.
        let least = has(1).min(WARP);
        let below = (0..5).map(|it| 1 << it).filter(|it| *it >= least);
        let all: Vec<_> = below.chain((1..=32).map(|it| it * WARP)).collect();
        let few = all.iter().copied().find(|it| elements(*it) <= ELEMENTS.max(vector)).unwrap_or(MOST);
        // Somewhat more threads may have fewer places beyond the end of the row; of as many, powers of two reduce in fewer steps.
        let near = all.into_iter().filter(|it| (few..=(2 * few - 1).min(MOST)).contains(it));
        let few = near.min_by_key(|it| (it * has(*it), !it.count_ones().eq(&1), *it)).unwrap_or(few);
        let registers = elements(few).saturating_mul(self.bytes(kept)) / 4;
        (registers <= REGISTERS.min(ALL_REGISTERS / few - BESIDES)).then_some(few)
    }

    /// The bytes that stay of a column.
    fn bytes(&self, kept: Kept) -> i64 {
        if !kept.costly {
            return self.column;
        }
        let costly = self.computed * i64::try_from(self.costly.len()).expect("stages are few");
        let first = self.costly.first().map(|it| &it.name);
        let behind = self.stages.all.iter().skip_while(|it| Some(&it.block.name) != first).skip(1);
        let is_read_again =
            behind.flat_map(|it| it.block.reads()).any(|read| self.inputs.contains(&read.buffer));
        if is_read_again { self.column + costly } else { self.column.max(costly) }
    }

    /// Whether a stage is computed where it is used.
    pub(super) fn is_inlined(&self, block: &Block, row: Row) -> bool {
        let stays = row.keeps_costly() && self.costly.iter().any(|it| it.name == block.name);
        !stays && self.inlined.iter().any(|it| it.name == block.name)
    }

    /// The script, for a row that comes so to so many threads.
    fn draft(&self, request: &Request<'_>, threads: i64, row: Row) -> Draft {
        let about = match row {
            Row::Stays(it) if it.shared && it.blocks == 1 => {
                "Each row once through the shared memory of the threads that share it."
            }
            Row::Stays(it) if it.shared => {
                "Each row once through the shared memory of a cluster of blocks, whose threads share it."
            }
            Row::Stays(it) if it.blocks > 1 => {
                "Each row once through the registers of a cluster of blocks, whose threads share it."
            }
            Row::Stays(_) => "Each row once through the registers of the threads that share it.",
            Row::Streams(_) => "Each row by the threads that share it, once for each stage.",
        };
        let mut out = Draft::new("block_rows", about.to_owned(), &["std/rows"], request);
        let share = out.knob("threads", threads, &[32, 64, 128, 256, 512, 1024]);
        let mut rows = 1.into();
        if row.blocks() == 1 {
            rows = out.knob("rows", (THREADS / threads).max(1), &[1, 2, 4, 8]);
            out.constraint("threads * rows <= 1024");
        }
        let inlined = self.inlined.iter().filter(|it| self.is_inlined(it, row));
        for (number, it) in inlined.enumerate() {
            if number == 0 {
                out.reason("What is cheap, or done once a row, is computed where it is used.");
            }
            out.step(format!("compute_inline(block: {:?})", it.name.as_str()));
        }
        Writer { rows: self, request, out: &mut out, share, row }.steps(&rows);
        out
    }

    /// Whether an input is read by rows alone, and nowhere that a table says.
    pub(super) fn is_read_by_rows(&self, input: &Name) -> bool {
        let reads = self.stages.all.iter().flat_map(|it| it.block.reads());
        reads.filter(|it| it.buffer == *input).all(|it| !it.indices.iter().any(Index::has_element))
    }

    /// The stages that read an input once what is inlined is, in order.
    pub(super) fn readers(&self, input: &Name, row: Row) -> Vec<&Stage<'_>> {
        // What an inlined block reads, its readers do.
        let mut carried = vec![input.clone()];
        let mut out = vec![];
        for it in &self.stages.all {
            let reads_row = |read: &&Access| {
                carried.contains(&read.buffer) && !read.indices.iter().any(Index::has_element)
            };
            if !it.block.reads().iter().any(reads_row) {
                continue;
            }
            if self.is_inlined(it.block, row) {
                carried.push(written_by(it.block).clone());
            } else {
                out.push(it);
            }
        }
        out
    }
}

/// The buffer that a stage writes, which is one.
pub(super) fn written_by(block: &Block) -> &Name {
    &block.writes().last().expect("a stage writes something").buffer
}

/// Whether a value takes a function or a quotient.
fn costs(value: &Value) -> bool {
    match value {
        Value::Unary(UnaryOp::Neg | UnaryOp::Abs, a) | Value::Cast(_, a) => costs(a),
        Value::Unary(..) | Value::Binary(BinaryOp::Div, ..) => true,
        Value::Binary(_, a, b) | Value::Select(_, a, b) => costs(a) || costs(b),
        Value::Where(cond, a, b) => [cond, a, b].into_iter().any(|it| costs(it)),
        Value::Const(_) | Value::Load(_) | Value::Index(..) => false,
    }
}
