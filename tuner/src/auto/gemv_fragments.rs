//! Products of a few vectors and a matrix on tensor cores: lanes load what they have of the matrix in fragments, or make it in registers where it is stored in
//! few bits. The sum is taken in an order in which that is neighbours in memory, which come in one load.

use ir::{Arch, DType, Func, Name, Target, intrin};

use super::{
    Draft, Request, counted, free,
    gemv::{Gemv, Stored, VECTOR},
    model::units,
    product::vector,
    size::Size,
};

/// The rows of the matrix in an instruction, and the lanes that share a row.
const ROWS: i64 = 16;
const LANES: i64 = 4;

/// The bytes of the matrix that a lane may have at once of a row, which begin where as many do, of a matrix that is stored in few bits, and of one that is loaded as it is. On an
/// H200 8192 x 8192 in f16 with four vectors take 34.0 us with 32 bytes, 37.0 with 16 and 36.6 with 64 (`bench/fits/2026-11-29-h200-loaded-fragments.jsonl`).
const READS: [i64; 3] = [16, 8, 4];
const LOADS: [i64; 3] = [32, 16, 8];

/// The most elements of the matrix that are made of one.
const PACKED: i64 = 4;

/// The warps that share a tile, if the sum has enough for each, and how many a multiprocessor has at least where a block has several tiles: then the vectors
/// are read and put in order once for these. On an H200 (`made-fragments` in `bench/fits`; those of eight bits with eight vectors are in no record), 16384 x 16384 weights of four bits take 45.0 us with one tile and 43.3 with
/// four for one vector, and 61 and 48 for eight; 8192 x 8192 of eight bits, whose vectors are in order as they are, 20.4 and 21.5 (two tiles) for
/// eight, and 34.7 and 25.5 for sixteen.
const WARPS: i64 = 8;
const RESIDENT: i64 = 15;

/// The most warps where no number of them leaves the blocks of all tiles a place at once, of a matrix that is loaded as it is. On that H200 11008 x 4096 in f16 with four vectors take 22.7 us with
/// four warps, whose blocks have one, and 25.5 with eight, and 4096 x 14336 30.2 with eight and 32.9 with four; 28672 x 4096 in bf16 with sixteen, which no number fits well, 59.1 with two, 62.0 with four
/// and 63.5 with eight (`few-vectors` in `bench/results`).
const FEWEST: i64 = 2;

/// The vectors in an instruction.
const VECTORS: i64 = 8;

/// The registers of a thread that loads a matrix as it is, by how many times [`VECTORS`] there are (NVRTC 13.0).
const REGISTERS: [i64; 4] = [64, 102, 134, 128];

/// How lanes read the matrix.
struct Run<'a> {
    stored: &'a Stored,
    /// How many elements of the matrix are made of a stored one.
    packed: i64,
    /// How many elements of a row a lane makes at once.
    length: i64,
}

impl Gemv {
    /// The kernel, where the matrix lies along the sum, or a stage makes it of bytes that do.
    pub(super) fn by_fragments(&self, request: &Request<'_>) -> Option<Draft> {
        let product = &self.product;
        let Target::Cuda(arch) = request.target else { return None };
        let (matrix, vectors) = (self.matrix(), self.vectors());
        let intrin = match (matrix.dtype, vectors.dtype, product.acc) {
            (DType::F16, DType::F16, DType::F32) => "mma_m16n8k16_f16_f32",
            (DType::Bf16, DType::Bf16, DType::F32) => "mma_m16n8k16_bf16_f32",
            _ => return None,
        };
        intrin::find(intrin).filter(|it| arch.has(it.needs))?;
        let is_whole = self.axis(self.many).extent % ROWS == 0 && vectors.is_k_last;
        let run = self.run().filter(|_| is_whole)?;
        let wide = vector(vectors.row, vectors.dtype, VECTOR).min(run.length);

        let about = match product.lead[..] {
            [] => "Warps load fragments of the matrix, and multiply on tensor cores.",
            _ => "Warps make fragments of the matrix in registers, and multiply on tensor cores.",
        };
        let mut out = Draft::new("gemv", about.to_owned(), &["std/gemv"], request);
        let sizes = self.sizes(&mut out, request, &run);
        let made = self.stage(&mut out, request.func)?;
        let (last, before) = self.results(&mut out, request.func);
        let (block, few, made) = (product.block.as_str(), vectors.buffer.as_str(), made.as_str());
        self.tile(&mut out, &run, &sizes, made, before);
        let rows: Vec<_> = self.rows_of(&run).collect();
        let own = run.stored.buffer.as_str();
        let bytes = run.length / run.packed * run.stored.dtype.bytes_i64();
        out.because(
            format!("A lane reads {bytes} bytes of a row of {own} at once, of which it has fragments."),
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

    /// The stage that makes the matrix, which the procedures call by what it makes: one of its own where the matrix is loaded as it is.
    fn stage(&self, out: &mut Draft, func: &Func) -> Option<Name> {
        let matrix = &self.matrix().buffer;
        if let [stage, ..] = &self.product.lead[..] {
            return (self.product.lead.len() == 1 && stage == matrix).then(|| stage.clone());
        }
        let own = free(func, &format!("{matrix}_own"));
        let (block, matrix, name) = (self.product.block.as_str(), matrix.as_str(), own.as_str());
        out.step(format!(
            "cache_read(block: {block:?}, buffer: {matrix:?}, scope: \"global\", name: {name:?})"
        ));
        Some(own)
    }

    /// The block that writes the results, one of its own where the sums are these, and those between.
    fn results(&self, out: &mut Draft, func: &Func) -> (Name, &[Name]) {
        if let Some((last, before)) = self.product.tail.split_last() {
            return (last.clone(), before);
        }
        let block = self.product.block.as_str();
        let last = free(func, &format!("{block}_out"));
        out.step(format!("cache_write(block: {block:?}, scope: \"global\", name: {:?})", last.as_str()));
        (last, &[])
    }

    /// How lanes read the matrix: as much at once as divides the sum.
    fn run(&self) -> Option<Run<'_>> {
        let least = self.stored.iter().map(|it| it.shared_by).min()??;
        let mut packed = self.stored.iter().filter(|it| it.shared_by == Some(least));
        let (stored, None) = (packed.next()?, packed.next()) else { return None };
        let lengths = match (stored.dtype.bytes_i64(), self.product.lead.is_empty()) {
            (bytes, true) => LOADS.map(|it| it / bytes),
            (1, false) if least <= PACKED => READS.map(|it| it * least),
            (_, false) => return None,
        };
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
        let few = shares.iter().copied().filter(|it| *it <= WARPS);
        let is_plain = self.product.lead.is_empty();
        let fits = |it: &i64| !is_plain || *it >= FEWEST && count <= self.resident(request, *it);
        let warps = few.clone().filter(fits).max().or(few.filter(|it| *it <= FEWEST).max());
        let warps = warps.expect("one warp has the whole sum");
        let several: Vec<_> = [1, 2, 4].into_iter().filter(|it| count % it == 0).collect();
        let is_shared = !is_plain && (run.packed > 1 || self.axis(self.few).extent > VECTORS);
        let fills = |it: &i64| *it == 1 || is_shared && count / it * warps >= RESIDENT * units(request);
        let tiles = several.iter().copied().filter(fills).max().unwrap_or(1);
        [out.knob("tiles", tiles, &several), out.knob("warps", warps, &shares)]
    }

    /// How many blocks of so many warps the multiprocessors hold at once.
    fn resident(&self, request: &Request<'_>, warps: i64) -> i64 {
        let Target::Cuda(arch) = request.target else { return 0 };
        let groups = (self.axis(self.few).extent - 1).div_euclid(VECTORS);
        let registers =
            usize::try_from(groups).ok().and_then(|it| REGISTERS.get(it)).unwrap_or(&REGISTERS[3]);
        let of_block = registers * i64::from(Arch::WARP) * warps;
        i64::from(arch.caps().registers_per_sm) / of_block * units(request)
    }

    /// The step that makes tiles.
    fn tile(&self, out: &mut Draft, run: &Run<'_>, [tiles, warps]: &[Size; 2], made: &str, before: &[Name]) {
        let (product, block) = (&self.product, self.product.block.as_str());
        let [many, few] = [self.many, self.few].map(|it| self.axis(it).loop_name.as_str());
        let before: Vec<_> = before.iter().map(Name::as_str).collect();
        let inline = if before.is_empty() { String::new() } else { format!(", inline: {before:?}") };
        out.because(
            format!(
                "{} for each of {}; the sum is in an order in which a lane has {} of a row beside each other.",
                counted(warps.value, "warp"),
                counted(self.axis(self.many).extent / (ROWS * tiles.value), "tile"),
                counted(run.length, "element"),
            ),
            format!(
                "made_tile(block: {block:?}, made: {made:?}, vectors: {:?}, many: {many:?}, few: {few:?}, sum: {:?}, turned: {}{inline}, tiles: {tiles}, warps: {warps}, run: {}, packed: {})",
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
        let then = [made.to_owned(), format!("{made}_frag"), format!("{few}_frag"), format!("{block}_rf")];
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
