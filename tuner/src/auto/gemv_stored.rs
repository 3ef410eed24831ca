//! Products of a few vectors and a matrix that is stored in few bits, of which a stage makes it: in registers, as many elements at once as a
//! word has bytes, by threads that have several rows and convert what they read of the vectors once for all of them.

use ir::DType;

use super::{
    Draft, Request, counted,
    gemv::{Gemv, IN_FLIGHT, VECTOR},
    model::units,
    product::vector,
};

/// The fewest elements that are made at once: the bytes of a word.
const WORD: i64 = 4;

/// The rows of a thread, where each multiprocessor has so many blocks of threads then, and the threads that share them. With 16384 x 16384 weights of
/// four bits and 8192 x 8192 of eight, and one vector and four, on an H200 (`bench/fits`), this with four loads is the best of 36 points: within 3 % of
/// the best of each on average.
const EACH: i64 = 4;
const BLOCKS: i64 = 8;
const SHARE: i64 = 64;

/// The fewest vectors for which elements are made so that are not f16: bytes become halves a word at a time, and other types one by one. In bf16, 8192 x
/// 8192 weights of eight bits take one vector 43.9 us in place of 37.7 on an H200, and four 52.9 in place of 58.8.
const OTHER: i64 = 4;

impl Gemv {
    /// The kernel, where a stage makes the matrix of elements that lie side by side and of others that all of a vector share.
    pub(super) fn by_made_rows(&self, request: &Request<'_>) -> Option<Draft> {
        let product = &self.product;
        let ([stage], [before @ .., _]) = (&product.lead[..], &product.tail[..]) else { return None };
        let width = self.width();
        let packed = self.packed(width)?;
        (self.matrix().dtype == DType::F16 || self.axis(self.few).extent >= OTHER).then_some(())?;
        let about = "Threads make the rows of the matrix that they share in registers, and sum up together.";
        let mut out = Draft::new("gemv", about.to_owned(), &["std/rows"], request);
        for it in before {
            out.step(format!("compute_inline(block: {:?})", it.as_str()));
        }
        let threads = self.share(&mut out, request, width);
        out.because(
            format!("{} of the matrix are made at once.", counted(width / packed, "element")),
            format!(
                "make_row(block: {:?}, buffer: {:?}, loop: \"{}_thread\", vector: {width}, packed: {packed})",
                stage.as_str(),
                self.matrix().buffer.as_str(),
                product.block
            ),
        );
        self.streams(&mut out, (stage.as_str(), width), &threads);
        Some(out)
    }

    /// The steps that give rows to threads; how many threads share one, in the words of the draft.
    fn share(&self, out: &mut Draft, request: &Request<'_>, width: i64) -> String {
        let (many, few, sum) = (self.loops()[self.many], self.loops()[self.few], self.product.k.extent);
        let count = self.axis(self.many).extent;
        let is_enough = |each: &i64| count % each == 0 && count / each >= BLOCKS * units(request);
        let each = [EACH, EACH / 2].into_iter().find(is_enough).unwrap_or(1);
        let threads = if SHARE * width * IN_FLIGHT <= sum { SHARE } else { SHARE / 2 };
        let choices: Vec<_> = [1, 2, 4, 8].into_iter().filter(|it| count % it == 0).collect();
        let own = out.knob("each", each, &choices);
        let share = out.knob("threads", threads, &[32, 64, 128, 256]);
        let rows = out.knob("rows", SHARE / threads, &[1, 2, 4, 8]);
        let loads = out.knob("loads", IN_FLIGHT, &[1, 2, 4, 8]);
        out.constraint("threads * rows <= 1024");
        let block = self.product.block.as_str();
        out.step(format!("reorder(order: {:?})", [many, few]));
        out.because(
            format!(
                "A thread has {} of the matrix, and converts each element of a vector once for them.",
                counted(each, "row")
            ),
            format!("split(loop: {many:?}, into: {{\"{many}_rows\": None, \"{many}_each\": {own}}})"),
        );
        out.step(format!("rows_in_blocks(loop: \"{many}_rows\", rows: {rows})"));
        out.step(format!("unroll(loop: \"{many}_each\")"));
        out.step(format!("unroll(loop: {few:?})"));
        out.because(
            "Sums stay in registers until the stage behind them.",
            format!("row_stage(block: {block:?}, buffer: {:?})", self.sums(request)),
        );
        let [row, vectors] = [self.many, self.few].map(|it| format!("{block}_{it}"));
        out.step(format!("reorder(order: {:?})", [&format!("{block}_2"), &row, &vectors]));
        out.because(
            format!(
                "{} of each vector are multiplied by rows of {} by {}, {} at once.",
                counted(sum, "element"),
                self.matrix().buffer,
                counted(threads, "thread"),
                counted(width, "element"),
            ),
            format!(
                "share_long_row(loop: \"{block}_2\", name: {block:?}, threads: {share}, loads: {loads}, vector: {width}, wide: 0)"
            ),
        );
        out.step(format!("unroll(loop: {row:?})"));
        out.step(format!("unroll(loop: {vectors:?})"));
        share.to_string()
    }

    /// The copies of what is read in vectors: what the matrix is made of, and the vectors.
    fn streams(&self, out: &mut Draft, (stage, width): (&str, i64), threads: &str) {
        let block = self.product.block.as_str();
        for it in &self.stored {
            let own = it.vector(width, self.product.k.extent);
            if own > 1 {
                let buffer = it.buffer.as_str();
                out.step(format!(
                    "stream_stored(block: {stage:?}, buffer: {buffer:?}, name: \"{block}_{buffer}\", part: {block:?}, threads: {threads}, vector: {own})"
                ));
            }
        }
        let vectors = self.vectors();
        if vectors.is_k_last && vector(vectors.row, vectors.dtype, VECTOR) >= width {
            let buffer = vectors.buffer.as_str();
            out.step(format!(
                "stream_row(block: {block:?}, buffer: {buffer:?}, name: \"{block}_{buffer}\", threads: {threads}, vector: {width})"
            ));
        }
    }

    /// How many elements of the matrix beside each other are made of one that is stored, where whole words of these are read at once and all else is
    /// the same for elements that are made at once.
    fn packed(&self, width: i64) -> Option<i64> {
        let shares = self.stored.iter().map(|it| it.shared_by).collect::<Option<Vec<_>>>()?;
        let least = shares.iter().copied().min()?;
        let is_uniform = shares.iter().all(|it| *it == least || it % width == 0);
        let are_read = self.stored.iter().all(|it| {
            it.shared_by != Some(least) || it.vector(width, self.product.k.extent) == width / least
        });
        (least <= 2 && is_uniform && are_read && width / least >= WORD).then_some(least)
    }
}
