//! Programs that reduce rows on a GPU: threads share a row, keep it in registers, and reduce it together.

use ir::{Access, Block, IterKind, Name, Role, Target};

use super::{
    Draft, Request, counted, free,
    rows::{Stage, stages},
    size::Size,
};

/// How many elements of a row a thread has, at best: enough loads in flight, and few enough registers for many threads.
const ELEMENTS: i64 = 16;

/// The most registers of a thread that rows stay in.
const REGISTERS: i64 = 64;

/// The fewest threads of a block.
const THREADS: i64 = 128;

/// The bytes of the widest load.
const VECTOR: i64 = 16;

/// The loads of a thread that are in flight where rows do not stay.
const IN_FLIGHT: i64 = 4;

/// What a program over rows is made of.
struct Rows<'a> {
    /// What is computed where it is used: elements between two stages, and what is done once a row.
    inlined: Vec<&'a Block>,
    /// The others, in order.
    stages: Vec<Stage<'a>>,
    /// The inputs that are read a row at a time, each with the first block that reads it.
    inputs: Vec<(Name, Name)>,
    /// How many elements a row has, and how many rows there are.
    length: i64,
    /// The bytes of the widest element that is read or written, and of the inputs of a column together.
    widest: i64,
    column: i64,
}

/// All stages in one kernel: rows that stay in registers first, then rows that are read once for each stage.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    if *request.target == Target::Cpu {
        return vec![];
    }
    let Some(rows) = rows(request) else { return vec![] };
    let mut out = Vec::new();
    let mut vector = VECTOR / rows.widest;
    while vector >= 1 {
        if rows.length % vector == 0
            && let Some(threads) = rows.threads(vector)
        {
            out.push(rows.draft(request, threads, Some(vector)));
        }
        vector /= 2;
    }
    let threads = (0..9).map(|it| 1 << it).find(|it| *it >= rows.length).unwrap_or(512);
    out.push(rows.draft(request, threads, None));
    out
}

/// The program as stages over rows, if it is one that reduces them.
fn rows<'a>(request: &Request<'a>) -> Option<Rows<'a>> {
    let func = request.func;
    let role = |it: &Name| func.buffers.get(it).map(|it| it.role);
    let blocks = func.body.blocks();
    let last = blocks.last()?.name.clone();
    let is_temp = |it: &Block| it.writes().iter().all(|it| role(&it.buffer) == Some(Role::Temp));
    let is_spatial = |it: &Block| it.init.is_none() && it.iters.iter().all(|it| it.kind == IterKind::Spatial);
    let is_inlined = |it: &&Block| it.name != last && is_temp(it) && is_spatial(it);
    let (inlined, kept): (Vec<_>, Vec<_>) = blocks.into_iter().partition(is_inlined);
    let (stages, length) = stages(request, kept)?;
    let (last, before) = stages.split_last()?;
    let fits = before.iter().all(|it| it.is_reduction && is_temp(it.block));
    if !fits
        || !stages.iter().any(|it| it.is_reduction)
        || !inlined.iter().all(|it| (1..=2).contains(&it.iters.len()))
    {
        return None;
    }
    let mut inputs: Vec<(Name, Name)> = Vec::new();
    for block in inlined.iter().copied().chain(stages.iter().map(|it| it.block)) {
        for read in block.reads() {
            let matrix =
                func.buffers.get(&read.buffer).filter(|it| it.role == Role::Input && it.shape.len() == 2);
            if matrix.is_none() {
                continue;
            }
            if !is_row(read, block) {
                return None;
            }
            if !inputs.iter().any(|it| it.0 == read.buffer) {
                inputs.push((read.buffer.clone(), block.name.clone()));
            }
        }
    }
    let bytes = |it: &Name| func.dtype_of(it).map(ir::DType::bytes_i64);
    let column = inputs.iter().filter_map(|it| bytes(&it.0)).sum();
    let written = (!last.is_reduction).then(|| last.block.writes()).into_iter().flatten();
    let touched = inputs.iter().map(|it| &it.0).chain(written.map(|it| &it.buffer));
    let widest = touched.filter_map(bytes).max()?;
    (!inputs.is_empty()).then_some(Rows { inlined, stages, inputs, length, widest, column })
}

/// Whether an access is to the row and the column that the block is about.
fn is_row(access: &Access, block: &Block) -> bool {
    let iters: Vec<_> = block.iters.iter().map(|it| Some(&it.var)).collect();
    access.indices.iter().map(ir::Index::as_var).eq(iters)
}

impl Rows<'_> {
    /// How many threads share a row of vectors, if it fits in their registers.
    fn threads(&self, vector: i64) -> Option<i64> {
        let has = |threads: i64| (self.length - 1).div_euclid(threads * vector) + 1;
        let elements = |threads: i64| has(threads).saturating_mul(vector);
        // Neighbours read what lies beside each other, so a row of vectors has as many as there are, up to a warp.
        let least = has(1).min(32);
        let mut all = (0..=10).map(|it| 1 << it).filter(|it| *it >= least);
        let few = all.find(|it| elements(*it) <= ELEMENTS.max(vector));
        let registers = |threads: i64| elements(threads).saturating_mul(self.column) / 4;
        few.or(Some(1024)).filter(|it| registers(*it) <= REGISTERS)
    }

    /// The script: `vector` says how many elements are read at once and stay, none that rows do not stay.
    fn draft(&self, request: &Request<'_>, threads: i64, vector: Option<i64>) -> Draft {
        let about = match vector {
            Some(_) => "Each row once through the registers of the threads that share it.",
            None => "Each row by the threads that share it, once for each stage.",
        };
        let mut out = Draft::new("block_rows", about.to_owned(), &[], request.form);
        let share = out.knob("threads", threads, &[32, 64, 128, 256, 512, 1024]);
        let rows = out.knob("rows", (THREADS / threads).max(1), &[1, 2, 4, 8]);
        out.constraint("threads * rows <= 1024");
        for (number, it) in self.inlined.iter().enumerate() {
            if number == 0 {
                out.reason("What is done to single elements is computed where it is used.");
            }
            out.step(format!("compute_inline(block: {:?})", it.name.as_str()));
        }
        let name = |it: &str| free(request.func, it).to_string();
        let kept: Vec<String> = self.inputs.iter().map(|it| name(&format!("{}_row", it.0))).collect();
        if let Some(vector) = vector {
            let at_once = counted(vector, "element");
            out.reason(format!(
                "A row is read once, {at_once} at a time, and stays in registers: {threads} threads share it."
            ));
            for ((input, reader), kept) in self.inputs.iter().zip(&kept) {
                let (reader, input) = (self.reader(input, reader), input.as_str());
                out.step(format!(
                    "cache_read(block: {reader:?}, buffer: {input:?}, scope: \"local\", name: {kept:?})"
                ));
            }
        }
        let row = self.in_one_kernel(&mut out, &name("row_block"), name("row"), &rows);
        if let Some(vector) = vector {
            for kept in &kept {
                out.step(format!("compute_at(block: {kept:?}, loop: {row:?})"));
                share_row(&mut out, &format!("{kept}_1"), kept, &share, Some(vector));
                out.step(format!("vectorize(loop: \"{kept}_vector\")"));
            }
        }
        self.shared(&mut out, &share, vector);
        out
    }

    /// Gives rows to blocks of threads, with all that is done to them; the loop over the rows of a block.
    fn in_one_kernel(&self, out: &mut Draft, block: &str, row: String, rows: &Size) -> String {
        let (last, before) = self.stages.split_last().expect("there are some");
        let loops = last.loops[0].as_str();
        out.step(format!("split(loop: {loops:?}, into: {{{block:?}: None, {row:?}: {rows}}})"));
        out.step(format!("bind(loop: {block:?}, axis: \"blockIdx.x\")"));
        out.step(format!("bind(loop: {row:?}, axis: \"threadIdx.y\")"));
        if !before.is_empty() {
            out.reason(
                "All stages of a row are in one kernel; what a row is reduced to, each of its threads has.",
            );
        }
        for it in before.iter().rev() {
            out.step(format!("compute_at(block: {:?}, loop: {row:?})", it.block.name.as_str()));
        }
        for place in before.iter().flat_map(|it| it.block.writes()) {
            out.step(format!("set_scope(buffer: {:?}, scope: \"local\")", place.buffer.as_str()));
        }
        row
    }

    /// Lets the threads of a row share what each stage does to it.
    fn shared(&self, out: &mut Draft, threads: &Size, vector: Option<i64>) {
        out.reason(
            "They reduce it together: by shuffles, and through shared memory where they are several warps.",
        );
        for (number, it) in self.stages.iter().enumerate() {
            let block = it.block.name.as_str();
            let is_last = number + 1 == self.stages.len();
            let along = if is_last { it.loops[1].to_string() } else { format!("{block}_1") };
            share_row(out, &along, block, threads, vector);
            if vector.is_some() {
                let how = if it.is_reduction { "unroll" } else { "vectorize" };
                out.step(format!("{how}(loop: \"{block}_vector\")"));
            }
        }
    }

    /// The first block that reads an input once what is inlined is.
    fn reader(&self, input: &Name, first: &Name) -> String {
        let reads = |block: &Block, buffer: &Name| block.reads().iter().any(|it| it.buffer == *buffer);
        // What an inlined block reads, its readers do.
        let mut carried = vec![input.clone()];
        for block in &self.inlined {
            if carried.iter().any(|it| reads(block, it)) {
                carried.extend(block.writes().iter().map(|it| it.buffer.clone()));
            }
        }
        let reader = self.stages.iter().find(|it| carried.iter().any(|buffer| reads(it.block, buffer)));
        reader.map_or(first, |it| &it.block.name).to_string()
    }
}

/// Splits a loop along a row among threads.
fn share_row(out: &mut Draft, along: &str, stem: &str, threads: &Size, vector: Option<i64>) {
    let parts = match vector {
        Some(vector) => {
            format!("\"{stem}_part\": None, \"{stem}_thread\": {threads}, \"{stem}_vector\": {vector}")
        }
        None => {
            format!("\"{stem}_part\": None, \"{stem}_load\": {IN_FLIGHT}, \"{stem}_thread\": {threads}")
        }
    };
    out.step(format!("split(loop: {along:?}, into: {{{parts}}})"));
    out.step(format!("bind(loop: \"{stem}_thread\", axis: \"threadIdx.x\")"));
    let unrolled = if vector.is_some() { "part" } else { "load" };
    out.step(format!("unroll(loop: \"{stem}_{unrolled}\")"));
}
