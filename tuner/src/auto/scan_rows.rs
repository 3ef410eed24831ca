//! Scans along rows on a GPU: rows that blocks of threads keep in registers, go along piece by piece, or share.

use std::fmt::Write as _;

use super::{
    Draft, Request, counted, free,
    model::{ceil_div, units},
    scan::{Input, Scanned},
    size::Size,
};

/// The bytes of the widest vector.
const VECTOR: i64 = 16;

/// Threads of a warp.
const LANES: i64 = 32;

/// The most warps of a block, and the most vectors that each thread has of a row.
const WARPS: i64 = 16;
const PARTS: i64 = 4;

/// A row that a block keeps as a whole, the block before the registers are too few, and a piece of a longer one.
#[derive(Clone, Copy)]
struct Shape {
    vector: i64,
    /// Whether rows begin at whole vectors, of the input and of the output.
    loads: bool,
    stores: bool,
}

/// Whole rows where a block has registers for one; else piece after piece where there are rows for all multiprocessors, and
/// all pieces at once where there are not.
pub(super) fn drafts(request: &Request<'_>, found: &Scanned, input: &Input) -> Vec<Draft> {
    let bytes = input.dtype.bytes_i64().max(found.out.bytes_i64());
    let vector = (VECTOR / bytes).max(2);
    let whole = found.length % vector == 0;
    let wide = |bytes: i64| whole && vector * bytes <= VECTOR;
    let shape = Shape { vector, loads: wide(input.dtype.bytes_i64()), stores: wide(found.out.bytes_i64()) };
    let rows = Rows { request, found, input, shape };
    let most = WARPS * LANES * vector * PARTS;
    let mut out = vec![];
    if found.length <= most {
        out.push(rows.whole());
    } else if found.count >= units(request) {
        out.push(rows.piece_after_piece());
        out.push(rows.pieces_at_once());
    } else {
        out.push(rows.pieces_at_once());
    }
    let narrow = Shape { loads: false, stores: false, ..shape };
    if shape.loads || shape.stores {
        let rows = Rows { shape: narrow, ..rows };
        out.push(if found.length <= most { rows.whole() } else { rows.pieces_at_once() });
    }
    out
}

/// What the choices are made of.
struct Rows<'a> {
    request: &'a Request<'a>,
    found: &'a Scanned,
    input: &'a Input,
    shape: Shape,
}

/// A call of `scan_in_block`.
struct InBlock<'a> {
    block: &'a str,
    into: &'a str,
    along: &'a str,
    buffer: &'a str,
    row: &'a str,
    name: &'a str,
    readers: &'a str,
    warps: &'a Size,
    /// The dimensions before the scanned one, of the block and of the buffer.
    dims: usize,
    axis: usize,
    shape: Shape,
}

impl InBlock<'_> {
    fn step(&self) -> String {
        let InBlock { block, into, along, buffer, row, name, readers, warps, dims, axis, shape } = self;
        let mut words = format!(
            "block: {block:?}, into: {into:?}, along: {along:?}, buffer: {buffer:?}, row: {row:?}, name: {name:?}, warps: {warps}, vector: {}",
            shape.vector
        );
        if !readers.is_empty() {
            let _ = write!(words, ", readers: [{readers}]");
        }
        if *dims != 1 {
            let _ = write!(words, ", tile: {dims}, lane: {}, term: {}", dims + 1, dims + 2);
        }
        if *axis != 1 {
            let _ = write!(words, ", axis: {axis}");
        }
        for (name, holds) in [("wide", shape.loads), ("store", shape.stores)] {
            if !holds {
                let _ = write!(words, ", {name}: 0");
            }
        }
        format!("scan_in_block({words})")
    }
}

impl Rows<'_> {
    fn free(&self, name: &str) -> String {
        free(self.request.func, name).to_string()
    }

    /// So many warps that a row has no more vectors a thread than there may be.
    fn warps(&self, length: i64) -> i64 {
        let vectors = ceil_div(length, LANES * self.shape.vector);
        (0..5).map(|at| 1 << at).find(|it| *it * PARTS >= vectors).unwrap_or(WARPS)
    }

    /// One loop of several, or one that has a single iteration where there are none.
    fn row(&self, out: &mut Draft, loops: &[String], along: &str, name: &str) -> String {
        if let [one] = loops {
            return one.clone();
        }
        let row = self.free(name);
        out.step(match loops {
            [] => format!("add_unit_loop(loop: {along:?}, into: {row:?})"),
            several => format!("fuse(loops: {several:?}, into: {row:?})"),
        });
        row
    }

    fn levels(&self, out: &mut Draft, block: &str, over: &str) {
        out.step(format!("scan_levels(block: {block:?}, loop: {over:?}, vector: {})", self.shape.vector));
    }

    /// A row, or several, for each block of threads.
    fn whole(&self) -> Draft {
        let found = self.found;
        let warps = self.warps(found.length);
        let about = format!("Rows in registers, {} each.", counted(warps, "warp"));
        let mut out = found.begun(self.request, about, &["std/scan", "std/rows"]);
        let warps = out.knob("warps", warps, &[1, 2, 4, 8, 16]);
        out.reason(format!(
            "{} a thread beside each other, what the 32 threads of a warp come to, and what was before these.",
            counted(self.shape.vector, "element")
        ));
        self.levels(&mut out, found.block.as_str(), found.loops.over.as_str());
        found.inlined(&mut out);
        let along = found.along.to_string();
        let loops: Vec<_> = found.rows.iter().map(ToString::to_string).collect();
        let row = self.row(&mut out, &loops, &along, "rows");
        let rows = (4 / warps.value).clamp(1, found.count);
        let name = self.free("row");
        out.step(format!("rows_in_blocks(loop: {row:?}, name: {name:?}, rows: {rows})"));
        let (block, into) = (found.block.as_str(), found.into().as_str());
        let call = InBlock {
            block,
            into,
            along: &along,
            buffer: self.input.buffer.as_str(),
            row: &name,
            name: &self.free(&format!("{}_row", self.input.buffer)),
            readers: "",
            warps: &warps,
            dims: found.loops.others.len(),
            axis: self.input.rank - 1,
            shape: self.shape,
        };
        out.because(
            "Each element is read once. Threads read in shared memory what those before them in the warp have.",
            call.step(),
        );
        out
    }

    /// Cuts the scan into pieces that a block of threads can keep; the loop along the last stage becomes the two that come back.
    fn cut(&self, out: &mut Draft, warps: &Size) -> [String; 2] {
        let found = self.found;
        let piece = warps.times(LANES * self.shape.vector * PARTS);
        let piece = out.value("elements", &piece);
        out.because(
            format!(
                "Pieces of {}, each as much as a block keeps in registers.",
                counted(piece.value, "element")
            ),
            format!("decompose_scan(loop: {:?}, tile: {piece})", found.loops.over.as_str()),
        );
        found.inlined(out);
        let [pieces, element] = ["piece", "element"].map(|it| self.free(it));
        out.step(format!(
            "split(loop: {:?}, into: {{{pieces:?}: None, {element:?}: {piece}}})",
            found.along.as_str()
        ));
        [pieces, element]
    }

    /// The scan of a piece, where `row` has one.
    fn piece(&self, out: &mut Draft, row: &str, along: &str, warps: &Size, is_alone: bool) {
        let found = self.found;
        let block = format!("{}_within", found.block);
        let readers = format!("\"{block}_aggregate\", \"{block}_within\"");
        let call = InBlock {
            block: &block,
            into: found.into().as_str(),
            along,
            buffer: self.input.buffer.as_str(),
            row,
            name: &self.free(&format!("{}_row", self.input.buffer)),
            readers: if is_alone { &readers } else { "" },
            warps,
            dims: found.loops.others.len() + 1,
            axis: self.input.rank - 1,
            shape: self.shape,
        };
        out.step(call.step());
    }

    fn levels_of_pieces(&self, out: &mut Draft) {
        let block = format!("{}_within", self.found.block);
        self.levels(out, &block, &format!("{}_within", self.found.loops.over));
        out.step(format!("compute_inline(block: {block:?})"));
    }

    /// A row for each block of threads, which goes along it.
    fn piece_after_piece(&self) -> Draft {
        let (found, loops) = (self.found, &self.found.loops);
        let about = "Rows piece after piece, each of which a block keeps in registers.".to_owned();
        let mut out = found.begun(self.request, about, &["std/scan", "std/rows"]);
        let warps = out.knob("warps", WARPS, &[4, 8, 32]);
        let [piece, element] = self.cut(&mut out, &warps);
        out.because(
            "What a piece starts from is carried along.",
            format!("rolling_scan(loop: \"{}_carry\")", loops.over),
        );
        if loops.is_backward {
            out.because("The last piece is the first.", format!("reverse(loop: {piece:?})"));
        }
        for (other, row) in loops.others.iter().zip(&found.rows) {
            out.step(format!("merge(loops: [\"{other}_carry\", \"{row}\"], into: \"{row}\")"));
        }
        out.step(format!("merge(loops: [\"{}_carry\", {piece:?}], into: {piece:?})", loops.along));
        self.levels_of_pieces(&mut out);
        let rows: Vec<_> = found.rows.iter().map(ToString::to_string).collect();
        let row = self.row(&mut out, &rows, "", "rows");
        out.step(format!("rows_in_blocks(loop: {row:?}, name: {:?})", self.free("row")));
        out.step(format!("compute_at(block: \"{}_aggregate\", loop: {piece:?})", found.block));
        self.piece(&mut out, &piece, &element, &warps, false);
        let term = loops.others.len() + 1;
        out.step(format!(
            "carry_in_block(block: {:?}, warps: {warps}, vector: {}, term: {term})",
            found.block.as_str(),
            self.shape.vector
        ));
        out
    }

    /// What pieces come to, what is before each, and then the elements: three kernels.
    fn pieces_at_once(&self) -> Draft {
        let found = self.found;
        let about =
            "Pieces of rows at once: what they come to, what is before each, and their elements.".to_owned();
        let mut out = found.begun(self.request, about, &["std/scan", "std/rows"]);
        let warps = out.knob("warps", WARPS / 2, &[4, 16]);
        let [piece, element] = self.cut(&mut out, &warps);
        out.reason("Few rows: their pieces run at once, and what they come to is read again.");
        self.aggregates(&mut out, &warps);
        self.carries(&mut out, warps.value * LANES * self.shape.vector * PARTS);
        self.levels_of_pieces(&mut out);
        let mut rows: Vec<_> = found.rows.iter().map(ToString::to_string).collect();
        rows.push(piece);
        let all = self.row(&mut out, &rows, "", "pieces");
        let row = self.free("row");
        out.step(format!("rows_in_blocks(loop: {all:?}, name: {row:?})"));
        self.piece(&mut out, &row, &element, &warps, true);
        out
    }

    /// The kernel that adds up pieces.
    fn aggregates(&self, out: &mut Draft, warps: &Size) {
        let (found, input, shape) = (self.found, self.input, self.shape);
        let block = format!("{}_aggregate", found.block);
        let loops: Vec<_> = found
            .loops
            .others
            .iter()
            .chain([&found.loops.along])
            .map(|it| format!("{it}_aggregate"))
            .collect();
        let all = self.row(out, &loops, "", "aggregates");
        let (row, copy) = (self.free("aggregate"), self.free(&format!("{}_piece", input.buffer)));
        out.step(format!("rows_in_blocks(loop: {all:?}, name: {row:?})"));
        out.step(format!(
            "keep_row(block: {block:?}, buffer: {:?}, name: {copy:?}, row: {row:?}, readers: [{block:?}])",
            input.buffer.as_str()
        ));
        let threads = warps.times(LANES);
        for (of, name, wide) in [
            (format!("{copy}_{}", input.rank - 1), copy.as_str(), i64::from(shape.loads)),
            (format!("{}_aggregate", found.loops.over), block.as_str(), 0),
        ] {
            out.step(format!(
                "share_row(loop: {of:?}, name: {name:?}, threads: {threads}, vector: {}, wide: {wide})",
                shape.vector
            ));
        }
    }

    /// The kernel that scans what pieces come to.
    fn carries(&self, out: &mut Draft, piece: i64) {
        let found = self.found;
        let block = format!("{}_carry", found.block);
        self.levels(out, &block, &format!("{}_carry", found.loops.over));
        let others: Vec<_> = found.loops.others.iter().map(|it| format!("{it}_carry")).collect();
        let along = format!("{}_carry", found.loops.along);
        let all = self.row(out, &others, &along, "carries");
        let row = self.free("carry");
        out.step(format!("rows_in_blocks(loop: {all:?}, name: {row:?})"));
        let dims = others.len();
        let call = InBlock {
            block: &block,
            into: &block,
            along: &along,
            buffer: &format!("{}_aggregate", found.block),
            row: &row,
            name: &self.free("aggregates_row"),
            readers: "",
            warps: &self.warps(ceil_div(found.length, piece)).into(),
            dims,
            axis: dims,
            shape: Shape { loads: false, stores: false, ..self.shape },
        };
        out.step(call.step());
    }
}
