//! Products of a matrix and a few vectors on a GPU: each element of the matrix is read once and used a few times, so that all is about reading it.
//! The matrix may be stored otherwise, in few bits and with scales: a stage ahead then says what it is, and becomes part of the product.

use ir::{DType, Func, Index, IndexKind, Name, Role, Target};

use super::{
    Draft, Request,
    columns::Columns,
    counted,
    product::{Axis, Factor, Product, vector},
};

/// The most vectors by threads, in types that tensor cores multiply and in others, by whether the matrix lies along the sum: with more, tiles of sums
/// are faster. Measured on an H100 with a matrix of 8192 x 8192 (in part in `bench/fits`): in f16 along the sum 1 vector 46 us and 4 of them 54 (a copy of as many
/// bytes 48, `wgmma` 58 and 57), across it 1 and 2 of them 51 and 78 (`wgmma` 56); in f32 along it 4 take 97 (`simt` 130), across it 2 and 4 take 104 and 144 (126).
const NARROW: [i64; 2] = [1, 2];
const WIDE: [i64; 2] = [2, 4];

/// The same where a stage makes the matrix of what is stored, which else would be written out and read again: with weights of 8 bits, 8192 x 8192 on an H100,
/// 8 vectors take 99 us, and 126 by two kernels (the latter is in no record).
const STORED: [i64; 2] = [0, 8];

/// The same where tensor cores multiply them, a matrix that a stage makes and one that is loaded. On an H200 (`bench/fits/2026-11-29-h200-loaded-fragments.jsonl`) 8192 x 8192 in f16 take 33.9 us with 2
/// vectors (38.9 by threads), 35.4 with 16 and 39.0 with 32 (`wgmma` 57, 50 and 46).
const FRAGMENTS: i64 = 16;
const LOADED: i64 = 32;

/// The rows of a matrix from which on threads multiply one vector: there, 4096 x 4096 take 7.3 us and 5.7 on tensor cores, 4096 x 14336 32.4 and 29.4, 11008 x 4096 22.1 by both, 8192 x 8192
/// 32.9 and 34.2.
const MANY: i64 = 8192;

/// The bytes of the widest load, the loads that a thread has in flight, the threads of a warp, and the most and the fewest of a block.
pub(super) const VECTOR: i64 = 16;
pub(super) const IN_FLIGHT: i64 = 4;
const WARP: i64 = 32;
const MOST: i64 = 256;
const THREADS: i64 = 128;

/// A matrix and a few vectors.
pub(super) struct Gemv {
    pub(super) product: Product,
    /// The dimension of the results along which the matrix is, and the other one: 0 are rows.
    pub(super) many: usize,
    pub(super) few: usize,
    /// What is loaded for each row of the matrix, with how many elements lie along the row: the matrix itself, or what a stage makes it of.
    pub(super) stored: Vec<Stored>,
}

/// An input that lies along the sum.
pub(super) struct Stored {
    pub(super) buffer: Name,
    pub(super) dtype: DType,
    row: i64,
    /// Whether it has a dimension along the sum, or one element for a whole row.
    pub(super) is_along: bool,
    /// How many elements of the matrix beside each other an element is for, where that is known.
    pub(super) shared_by: Option<i64>,
}

/// By rows of the matrix where it lies along the sum, else by columns.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    if *request.target == Target::Cpu {
        return vec![];
    }
    let Some(found) = Product::find(request.func).and_then(|it| Gemv::of(request.func, it)) else {
        return vec![];
    };
    if !found.matrix().is_k_last {
        return vec![found.by_columns(request)];
    }
    let by_threads = || found.by_made_rows(request).unwrap_or_else(|| found.by_rows(request));
    let vectors = found.axis(found.few).extent;
    let threads = (vectors <= found.most_by_threads()).then(by_threads);
    let fragments = found.by_fragments(request);
    if found.product.lead.is_empty() && vectors == 1 && found.axis(found.many).extent >= MANY {
        return threads.into_iter().chain(fragments).collect();
    }
    fragments.into_iter().chain(threads).collect()
}

impl Gemv {
    fn of(func: &Func, product: Product) -> Option<Gemv> {
        let is_narrow = matches!(product.a.dtype, DType::F16 | DType::Bf16);
        let most = match (product.lead.is_empty(), is_narrow) {
            (false, _) => [0, FRAGMENTS],
            (true, true) => [NARROW[0], LOADED],
            (true, false) => WIDE,
        };
        let is_few = |it: &Axis, matrix: &Factor| it.extent <= most[usize::from(matrix.is_k_last)];
        // Of two that are narrow, the matrix is the one that a stage makes.
        let is_made = |it: &Factor| product.lead.iter().any(|stage| makes(func, stage, it));
        let (many, few) = match (is_few(&product.i, &product.b), is_few(&product.j, &product.a)) {
            (true, false) => (1, 0),
            (false, true) => (0, 1),
            (true, true) if is_made(&product.b) => (1, 0),
            (true, true) if is_made(&product.a) => (0, 1),
            (true, true) if is_narrow && product.i.extent < product.j.extent => (1, 0),
            (true, true) if is_narrow && product.i.extent > product.j.extent => (0, 1),
            (true, true) | (false, false) => return None,
        };
        let matrix = [&product.a, &product.b][many];
        let stored = match &product.lead[..] {
            [] => {
                let (buffer, dtype, row) = (matrix.buffer.clone(), matrix.dtype, matrix.row);
                vec![Stored { buffer, dtype, row, is_along: true, shared_by: Some(1) }]
            }
            [stage] => stored(func, stage, matrix)?,
            _ => return None,
        };
        product.batch.is_none().then_some(Gemv { product, many, few, stored })
    }

    /// The most vectors that threads multiply one by one.
    fn most_by_threads(&self) -> i64 {
        let is_along = usize::from(self.matrix().is_k_last);
        match (self.product.lead.is_empty(), self.matrix().dtype) {
            (false, _) => STORED[is_along],
            (true, DType::F16 | DType::Bf16) => NARROW[is_along],
            (true, _) => WIDE[is_along],
        }
    }

    pub(super) fn axis(&self, dimension: usize) -> &Axis {
        [&self.product.i, &self.product.j][dimension]
    }

    pub(super) fn matrix(&self) -> &Factor {
        [&self.product.a, &self.product.b][self.many]
    }

    pub(super) fn vectors(&self) -> &Factor {
        [&self.product.a, &self.product.b][self.few]
    }

    /// The loops of the block that writes the output.
    pub(super) fn loops(&self) -> [&str; 2] {
        match self.product.tail.last() {
            None => [0, 1].map(|it| self.axis(it).loop_name.as_str()),
            Some(_) => self.product.out_loops.each_ref().map(String::as_str),
        }
    }

    fn started(&self, request: &Request<'_>, about: &str) -> Draft {
        let mut out = Draft::new("gemv", about.to_owned(), &["std/rows"], request);
        let before = self.product.tail.split_last().map_or(&[][..], |it| it.1);
        for it in self.product.lead.iter().chain(before) {
            out.step(format!("compute_inline(block: {:?})", it.as_str()));
        }
        out
    }

    /// How many terms of a sum a thread has at once: as the widest load has of the matrix, or of the vectors where the matrix is stored in fewer bits.
    pub(super) fn width(&self) -> i64 {
        let (matrix, vectors, sum) = (self.matrix(), self.vectors(), self.product.k.extent);
        if self.product.lead.is_empty() {
            return vector(matrix.row, matrix.dtype, VECTOR);
        }
        let most = vector(sum, vectors.dtype, VECTOR);
        let is_whole = |width: &i64| {
            let mut rows = self.stored.iter().map(|it| (it.row, it.vector(*width, sum)));
            rows.all(|(row, own)| own == 1 || row % own == 0)
        };
        (0..=most.ilog2()).map(|it| most >> it).find(is_whole).unwrap_or(1)
    }

    /// The matrix lies along the sum: threads share a row of it, as rows are summed up.
    fn by_rows(&self, request: &Request<'_>) -> Draft {
        let (product, matrix) = (&self.product, self.matrix());
        let mut out = self.started(
            request,
            "The threads that share a row of the matrix read it once, and sum up together.",
        );
        let width = self.width();
        let fits = |it: &i64| it * width * IN_FLIGHT <= product.k.extent;
        let threads = [MOST, MOST / 2, MOST / 4].into_iter().find(fits).unwrap_or(WARP);
        let share = out.knob("threads", threads, &[32, 64, 128, 256]);
        let rows = out.knob("rows", (THREADS / threads).max(1), &[1, 2, 4, 8]);
        let loads = out.knob("loads", IN_FLIGHT, &[1, 2, 4, 8]);
        out.constraint("threads * rows <= 1024");
        let block = product.block.as_str();
        let (many, few) = (self.loops()[self.many], self.loops()[self.few]);
        let mut sum = product.k.loop_name.to_string();
        let mut inner = self.axis(self.few).loop_name.to_string();
        if product.tail.is_empty() {
            out.step(format!("reorder(order: {:?})", [many, &sum, &inner]));
            out.step(format!("rows_in_blocks(loop: {many:?}, rows: {rows})"));
        } else {
            out.step(format!("reorder(order: {:?})", [many, few]));
            out.step(format!("rows_in_blocks(loop: {many:?}, rows: {rows})"));
            out.because(
                "Sums stay in registers until the stage behind them.",
                format!("row_stage(block: {block:?}, buffer: {:?})", self.sums(request)),
            );
            (sum, inner) = (format!("{block}_2"), format!("{block}_{}", self.few));
            out.step(format!("reorder(order: {:?})", [&format!("{block}_{}", self.many), &sum, &inner]));
            out.step(format!("unroll(loop: {few:?})"));
        }
        out.because(
            format!(
                "{} of each vector are multiplied by a row of {} by {}, {} at once.",
                counted(product.k.extent, "element"),
                matrix.buffer,
                counted(threads, "thread"),
                counted(width, "element"),
            ),
            format!(
                "share_long_row(loop: {sum:?}, name: {block:?}, threads: {share}, loads: {loads}, vector: {width}, wide: 0)"
            ),
        );
        let vectors = self.vectors();
        let streams = vectors.is_k_last && vector(vectors.row, vectors.dtype, VECTOR) >= width;
        let streamed = streams.then_some((&vectors.buffer, width));
        let rows = self.stored.iter().map(|it| (&it.buffer, it.vector(width, product.k.extent)));
        for (buffer, width) in rows.chain(streamed).filter(|it| it.1 > 1) {
            out.step(format!(
                "stream_row(block: {block:?}, buffer: {:?}, name: \"{block}_{buffer}\", threads: {share}, vector: {width})",
                buffer.as_str()
            ));
        }
        out.step(format!("unroll(loop: {inner:?})"));
        out
    }

    /// The matrix lies along the results: threads have columns of it, as columns are summed up.
    fn by_columns(&self, request: &Request<'_>) -> Draft {
        let (product, matrix) = (&self.product, self.matrix());
        let mut out =
            self.started(request, "Threads side by side along a row of the matrix, several for each result.");
        let (many, few) = (self.axis(self.many), self.axis(self.few));
        let order = [many, &product.k, few].map(|it| it.loop_name.as_str());
        out.step(format!("reorder(order: {order:?})"));
        let block = product.block.as_str();
        let columns = Columns {
            block: product.block.clone(),
            outer: vec![],
            along: many.loop_name.clone(),
            reduced: product.k.loop_name.clone(),
            buffer: matrix.buffer.clone(),
            dtype: matrix.dtype,
            sums: product.acc,
            axes: [0, 1],
            width: many.extent,
            height: product.k.extent,
            count: 1,
        };
        let is_sliced = columns.reduce(request, &mut out);
        let inner = if is_sliced { format!("{}_rf", few.loop_name) } else { few.loop_name.to_string() };
        out.step(format!("unroll(loop: {inner:?})"));
        if let Some(last) = product.tail.last() {
            let at = if is_sliced { "thread" } else { "column" };
            out.because(
                "The stage behind the sums is where they are made.",
                format!("reverse_compute_at(block: {:?}, loop: \"{block}_{at}\")", last.as_str()),
            );
            out.step(format!("set_scope(buffer: {:?}, scope: \"local\")", self.sums(request)));
        }
        out
    }

    /// The buffer of the sums.
    pub(super) fn sums(&self, request: &Request<'_>) -> String {
        let block = request.func.find_block(&self.product.block);
        let place = block.and_then(|it| it.writes().first().map(|it| it.buffer.to_string()));
        place.expect("the product is a block that writes its sums")
    }
}

impl Stored {
    /// The elements that `width` terms of a sum of such a length need, if these are whole ones that one load can have; else one at a time.
    pub(super) fn vector(&self, width: i64, sum: i64) -> i64 {
        let (all, most) = (self.row.saturating_mul(width), VECTOR / self.dtype.bytes_i64());
        if all % sum == 0 && all / sum <= most { all / sum } else { 1 }
    }
}

/// How many elements beside each other have the same subscript.
fn shared_by(index: &Index, along: &Name) -> Option<i64> {
    match index.kind() {
        IndexKind::FloorDiv(a, b) if a.as_var() == Some(along) => b.as_int(),
        _ => (index.as_var() == Some(along)).then_some(1),
    }
}

/// Whether a stage makes a factor.
fn makes(func: &Func, stage: &Name, it: &Factor) -> bool {
    func.find_block(stage).is_some_and(|block| block.writes().iter().any(|to| to.buffer == it.buffer))
}

/// The inputs of which a stage makes the matrix row by row.
fn stored(func: &Func, stage: &Name, matrix: &Factor) -> Option<Vec<Stored>> {
    let block = func.find_block(stage)?;
    let [row, along] = block.iters.as_slice() else { return None };
    let input = |it: &ir::Access| {
        let buffer = func.buffers.get(&it.buffer)?;
        it.indices.first().filter(|it| it.as_var() == Some(&row.var))?;
        let (length, shared_by) = match &it.indices[..] {
            [_] => (1, along.extent.as_int()),
            [_, index] => (buffer.shape.last()?.as_int()?, shared_by(index, &along.var)),
            _ => return None,
        };
        let (name, dtype, is_along) = (it.buffer.clone(), buffer.dtype, it.indices.len() > 1);
        let stored = Stored { buffer: name, dtype, row: length, is_along, shared_by };
        (buffer.role == Role::Input).then_some(stored)
    };
    let all = block.reads().into_iter().map(input).collect::<Option<Vec<_>>>()?;
    (makes(func, stage, matrix) && matrix.is_k_last).then_some(all)
}
