//! Products of a few vectors and a matrix that is stored in few bits on tensor cores: lanes make in registers what they have of the matrix in
//! fragments. The sum is taken in an order in which that is neighbours in memory, which come in one load.

use ir::{DType, Target, intrin};

use super::{
    Draft, Request, counted,
    gemv::{Gemv, Stored, VECTOR},
    model::units,
    product::vector,
    size::Size,
};

/// The rows of the matrix in an instruction, and the lanes that share a row.
const ROWS: i64 = 16;
const LANES: i64 = 4;

/// The bytes of the matrix that a lane may read at once of a row, which begin where as many do.
const READS: [i64; 3] = [16, 8, 4];

/// The most elements of the matrix that are made of one.
const PACKED: i64 = 4;

/// The warps that share a tile, if the sum has enough for each, and how many a multiprocessor has at least where a block has several tiles: then the vectors
/// are read and put in order once for these. On an H200 (`made-fragments` in `bench/fits`; those of eight bits with eight vectors are in no record), 16384 x 16384 weights of four bits take 45.0 us with one tile and 43.3 with
/// four for one vector, and 61 and 48 for eight; 8192 x 8192 of eight bits, whose vectors are in order as they are, 20.4 and 21.5 (two tiles) for
/// eight, and 34.7 and 25.5 for sixteen.
const WARPS: i64 = 8;
const RESIDENT: i64 = 15;

/// The vectors in an instruction.
const VECTORS: i64 = 8;

/// How lanes read the matrix.
struct Run<'a> {
    stored: &'a Stored,
    /// How many elements of the matrix are made of a stored one.
    packed: i64,
    /// How many elements of a row a lane makes at once.
    length: i64,
}

impl Gemv {
    /// The kernel, where a stage makes the matrix of bytes that lie side by side.
    pub(super) fn by_fragments(&self, request: &Request<'_>) -> Option<Draft> {
        let product = &self.product;
        let ([stage], [before @ .., last]) = (&product.lead[..], &product.tail[..]) else { return None };
        let Target::Cuda(arch) = request.target else { return None };
        let (matrix, vectors) = (self.matrix(), self.vectors());
        let intrin = match (matrix.dtype, vectors.dtype, product.acc) {
            (DType::F16, DType::F16, DType::F32) => "mma_m16n8k16_f16_f32",
            (DType::Bf16, DType::Bf16, DType::F32) => "mma_m16n8k16_bf16_f32",
            _ => return None,
        };
        intrin::find(intrin).filter(|it| arch.has(it.needs))?;
        // The procedures call the stage by what it makes.
        let is_named = *stage == matrix.buffer;
        let is_whole = self.axis(self.many).extent % ROWS == 0 && vectors.is_k_last;
        let run = self.run().filter(|_| is_named && is_whole)?;
        let wide = vector(vectors.row, vectors.dtype, VECTOR).min(run.length);

        let about = "Warps make fragments of the matrix in registers, and multiply on tensor cores.";
        let mut out = Draft::new("gemv", about.to_owned(), &["std/gemv"], request);
        let sizes = self.sizes(&mut out, request, &run);
        let block = product.block.as_str();
        let (made, few) = (stage.as_str(), vectors.buffer.as_str());
        self.tile(&mut out, &run, &sizes, before);
        let rows: Vec<_> = self.rows_of(&run).collect();
        let own = run.stored.buffer.as_str();
        out.because(
            format!("A lane reads {} bytes of a row of {own} at once, and makes what it has in fragments of them.", run.length / run.packed),
            format!(
                "made_fragments(block: {block:?}, made: {made:?}, stored: {own:?}, rows: {rows:?}, run: {}, packed: {})",
                run.length, run.packed
            ),
        );
        out.step(format!("vector_fragments(block: {block:?}, vectors: {few:?}, vector: {wide})"));
        let [tiles, warps] = &sizes;
        out.step(format!(
            "made_results(block: {block:?}, out: {:?}, many: {}, few: {}, tiles: {tiles}, warps: {warps})",
            last.as_str(),
            self.many,
            self.few
        ));
        self.overlap(&mut out, made, &rows, own);
        Some(out)
    }

    /// How lanes read the matrix: as much at once as divides the sum.
    fn run(&self) -> Option<Run<'_>> {
        let least = self.stored.iter().map(|it| it.shared_by).min()??;
        let mut packed = self.stored.iter().filter(|it| it.shared_by == Some(least));
        let (stored, None) = (packed.next()?, packed.next()) else { return None };
        (stored.dtype.bytes() == 1 && least <= PACKED).then_some(())?;
        let lengths = READS.map(|it| it * least);
        let length = lengths.into_iter().find(|it| self.product.k.extent % (LANES * it) == 0)?;
        Some(Run { stored, packed: least, length })
    }

    /// What has one element for all that a warp reads of a row at once.
    fn rows_of<'a>(&'a self, run: &'a Run<'_>) -> impl Iterator<Item = &'a str> {
        let is_shared = |it: &&Stored| it.shared_by.is_some_and(|by| by % (LANES * run.length) == 0);
        self.stored.iter().filter(|it| it.is_along).filter(is_shared).map(|it| it.buffer.as_str())
    }

    /// The tiles of a block of threads along the rows, and its warps.
    fn sizes(&self, out: &mut Draft, request: &Request<'_>, run: &Run<'_>) -> [Size; 2] {
        let count = self.axis(self.many).extent / ROWS;
        let parts = self.product.k.extent / (LANES * run.length);
        let shares: Vec<_> = [1, 2, 4, 8, 16].into_iter().filter(|it| parts % it == 0).collect();
        let warps = shares.iter().copied().filter(|it| *it <= WARPS).max().unwrap_or(1);
        let several: Vec<_> = [1, 2, 4].into_iter().filter(|it| count % it == 0).collect();
        let is_shared = run.packed > 1 || self.axis(self.few).extent > VECTORS;
        let fills = |it: &i64| *it == 1 || is_shared && count / it * warps >= RESIDENT * units(request);
        let tiles = several.iter().copied().filter(fills).max().unwrap_or(1);
        [out.knob("tiles", tiles, &several), out.knob("warps", warps, &shares)]
    }

    /// The step that makes tiles.
    fn tile(&self, out: &mut Draft, run: &Run<'_>, [tiles, warps]: &[Size; 2], before: &[ir::Name]) {
        let (product, block) = (&self.product, self.product.block.as_str());
        let [many, few] = [self.many, self.few].map(|it| self.axis(it).loop_name.as_str());
        let before: Vec<_> = before.iter().map(ir::Name::as_str).collect();
        let inline = if before.is_empty() { String::new() } else { format!(", inline: {before:?}") };
        out.because(
            format!(
                "{} for each of {}; the sum is in an order in which a lane has {} of a row beside each other.",
                counted(warps.value, "warp"),
                counted(self.axis(self.many).extent / (ROWS * tiles.value), "tile"),
                counted(run.length, "element"),
            ),
            format!(
                "made_tile(block: {block:?}, made: {:?}, vectors: {:?}, many: {many:?}, few: {few:?}, sum: {:?}, turned: {}{inline}, tiles: {tiles}, warps: {warps}, run: {}, packed: {})",
                self.matrix().buffer.as_str(),
                self.vectors().buffer.as_str(),
                product.k.loop_name.as_str(),
                self.many,
                run.length,
                run.packed
            ),
        );
    }

    /// The steps by which a part of the sum is loaded while the one before it is multiplied.
    fn overlap(&self, out: &mut Draft, made: &str, rows: &[&str], stored: &str) {
        let (block, few) = (self.product.block.as_str(), self.vectors().buffer.as_str());
        let reads = std::iter::once(&stored).chain(rows).map(|it| format!("{it}_read"));
        let first: Vec<_> = reads.chain([format!("{few}_pad")]).collect();
        let matrix = self.matrix().buffer.as_str();
        let then = [made.to_owned(), format!("{matrix}_frag"), format!("{few}_frag"), format!("{block}_rf")];
        let staged = |all: &[String], stage: i64| {
            all.iter().map(|it| format!("{it:?}: {stage}")).collect::<Vec<_>>().join(", ")
        };
        out.because(
            "What is loaded for the next part of the sum arrives while this one is multiplied.",
            format!(
                "software_pipeline_stage(loop: \"{block}_part\", stages: {{{}, {}}})",
                staged(&first, 0),
                staged(&then, 1)
            ),
        );
        let order: Vec<_> = first.iter().chain(&then).collect();
        out.step(format!("software_pipeline_order(loop: \"{block}_part\", order: {order:?})"));
    }
}
