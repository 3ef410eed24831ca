//! Scans along columns on a GPU: a thread for each column, or for each piece of one where columns are few.

use ir::Name;

use super::{
    Draft, Request, counted, free,
    model::{ceil_div, units},
    scan::Scanned,
    size::Size,
};

/// Threads of a block.
const THREADS: i64 = 128;

/// Threads of a multiprocessor that keep memory busy, where each has a few loads under way.
const BUSY: i64 = 1024;

/// The shortest piece of a column, and how many of its elements are loaded at once.
const PIECE: i64 = 16;
const AT_ONCE: i64 = 8;

/// Whole columns where there are threads enough, else pieces.
pub(super) fn drafts(request: &Request<'_>, found: &Scanned) -> Vec<Draft> {
    let columns = Columns { request, found };
    let wanted = ceil_div(units(request) * BUSY, found.count);
    let piece = ceil_div(found.length, wanted).max(PIECE);
    let mut out = vec![];
    if wanted > 1 && 2 * piece <= found.length {
        // As many elements as a whole number of those that are loaded at once.
        out.push(columns.in_pieces(ceil_div(piece, AT_ONCE) * AT_ONCE));
    }
    out.push(columns.whole());
    out
}

struct Columns<'a> {
    request: &'a Request<'a>,
    found: &'a Scanned,
}

impl Columns<'_> {
    fn free(&self, name: &str) -> String {
        free(self.request.func, name).to_string()
    }

    /// Gives the iterations of loops to threads, the last one to neighbours.
    fn threads(&self, out: &mut Draft, loops: &[String], name: &str, threads: &Size) {
        let mut all = loops[0].clone();
        if loops.len() > 1 {
            all = self.free(&format!("{name}_all"));
            out.step(format!("fuse(loops: {loops:?}, into: {all:?})"));
        }
        let (block, thread) = (self.free(&format!("{name}_block")), self.free(&format!("{name}_thread")));
        out.step(format!("split(loop: {all:?}, into: {{{block:?}: None, {thread:?}: {threads}}})"));
        out.step(format!("bind(loop: {block:?}, axis: \"blockIdx.x\")"));
        out.step(format!("bind(loop: {thread:?}, axis: \"threadIdx.x\")"));
    }

    /// Loads several elements of a loop at once.
    fn unrolled(&self, out: &mut Draft, of: &str) {
        let (some, one) = (self.free(&format!("{of}_some")), self.free(&format!("{of}_one")));
        out.step(format!("split(loop: {of:?}, into: {{{some:?}: None, {one:?}: {AT_ONCE}}})"));
        out.step(format!("unroll(loop: {one:?})"));
    }

    /// A thread for each column, which goes along it.
    fn whole(&self) -> Draft {
        let found = self.found;
        let about = "A thread for each column, which goes along it.".to_owned();
        let mut out = found.begun(self.request, about, &[]);
        let threads = out.knob("threads", THREADS, &[32, 64, 256]);
        let into = found.with_own_buffer(self.request, &mut out);
        let (block, loops) = (found.block.as_str(), &found.loops);
        let order: Vec<_> = loops.others.iter().chain([&loops.along, &loops.over]).collect();
        let own = self.request.func.loops_of(&found.block).into_iter().flatten();
        if !own.map(|it| &it.var).eq(order.iter().copied()) {
            let order: Vec<_> = order.into_iter().map(Name::as_str).collect();
            out.step(format!("reorder(order: {order:?})"));
        }
        out.because(
            "Columns are read beside each other, and sums stay in registers.",
            format!("rolling_scan(loop: {:?})", loops.over.as_str()),
        );
        for it in into {
            out.step(format!("reverse_compute_at(block: {it:?}, loop: {:?})", loops.along.as_str()));
        }
        self.unrolled(&mut out, loops.along.as_str());
        let others: Vec<_> = loops.others.iter().map(ToString::to_string).collect();
        self.threads(&mut out, &others, "column", &threads);
        for it in [format!("{block}_run"), found.sums_buffer(self.request)] {
            out.step(format!("set_scope(buffer: {it:?}, scope: \"local\")"));
        }
        out
    }

    /// A thread for each piece of a column: what pieces come to, what is before each, and their elements.
    fn in_pieces(&self, piece: i64) -> Draft {
        let found = self.found;
        let about = "A thread for each piece of a column: what they come to, what is before each, and their elements.";
        let mut out = found.begun(self.request, about.to_owned(), &[]);
        let piece = out.knob("piece", piece, &[16, 32, 64, 128]);
        let threads = out.knob("threads", THREADS, &[32, 64, 256]);
        out.because(
            format!(
                "{} are too few for all multiprocessors, so pieces of {} run at once.",
                counted(found.count, "column"),
                counted(piece.value, "element")
            ),
            format!("decompose_scan(loop: {:?}, tile: {piece})", found.loops.over.as_str()),
        );
        found.inlined(&mut out);
        self.aggregates(&mut out, &threads);
        self.carries(&mut out, &threads);
        self.elements(&mut out, &piece, &threads);
        out
    }

    /// The loops of the other dimensions in one of the nests of a scan in pieces.
    fn others(&self, part: &str) -> Vec<String> {
        self.found.loops.others.iter().map(|it| format!("{it}_{part}")).collect()
    }

    /// The kernel that adds up pieces.
    fn aggregates(&self, out: &mut Draft, threads: &Size) {
        let found = self.found;
        let (block, along) = (&found.block, format!("{}_aggregate", found.loops.along));
        let over = format!("{}_aggregate", found.loops.over);
        let loops: Vec<_> = [along].into_iter().chain(self.others("aggregate")).collect();
        for it in ["aggregate", "carry"] {
            // Neighbours have neighbouring columns here, too.
            let last = loops.len() - 1;
            let order: Vec<_> = [last].into_iter().chain(0..last).collect();
            out.step(format!("transform_layout(buffer: \"{block}_{it}\", order: {order:?})"));
        }
        let order: Vec<_> = loops.iter().chain([&over]).collect();
        out.step(format!("reorder(order: {order:?})"));
        let copy = self.free(&format!("{block}_piece"));
        out.step(format!("cache_write(block: \"{block}_aggregate\", scope: \"local\", name: {copy:?})"));
        out.step(format!("reverse_compute_at(block: {copy:?}, loop: {:?})", loops[loops.len() - 1]));
        self.unrolled(out, &over);
        self.threads(out, &loops, "aggregate", threads);
    }

    /// The kernel that goes along what pieces come to.
    fn carries(&self, out: &mut Draft, threads: &Size) {
        let found = self.found;
        out.step(format!("rolling_scan(loop: \"{}_carry\")", found.loops.over));
        self.unrolled(out, &format!("{}_carry", found.loops.along));
        self.threads(out, &self.others("carry"), "carry", threads);
        out.step(format!("set_scope(buffer: \"{}_carry_run\", scope: \"local\")", found.block));
    }

    /// The kernel that goes along the elements of pieces.
    fn elements(&self, out: &mut Draft, length: &Size, threads: &Size) {
        let (found, loops) = (self.found, &self.found.loops);
        let (piece, element) = (self.free("piece"), self.free("element"));
        out.step(format!("rolling_scan(loop: \"{}_within\")", loops.over));
        out.step(format!(
            "split(loop: {:?}, into: {{{piece:?}: None, {element:?}: {length}}})",
            found.along.as_str()
        ));
        let rows: Vec<_> = found.rows.iter().map(ToString::to_string).collect();
        let order: Vec<_> = rows.iter().chain([&piece, &element]).collect();
        out.step(format!("reorder(order: {order:?})"));
        for (within, row) in self.others("within").iter().zip(&rows) {
            out.step(format!("merge(loops: [{within:?}, {row:?}], into: {row:?})"));
        }
        out.step(format!("merge(loops: [\"{}_within\", {piece:?}], into: {piece:?})", loops.along));
        if loops.is_backward {
            out.because("The last element is the first.", format!("reverse(loop: {element:?})"));
        }
        out.step(format!("merge(loops: [\"{}_in_within\", {element:?}], into: {element:?})", loops.along));
        let order: Vec<_> = [&piece].into_iter().chain(&rows).collect();
        out.step(format!("reorder(order: {order:?})"));
        self.unrolled(out, &element);
        let all: Vec<_> = [piece].into_iter().chain(rows).collect();
        self.threads(out, &all, "column", threads);
        for it in ["within", "within_run"] {
            out.step(format!("set_scope(buffer: \"{}_{it}\", scope: \"local\")", found.block));
        }
    }
}
