//! Programs that scan: cumulative sums, and elementwise stages before and after.

use ir::{Access, Block, DType, Func, Index, IterKind, Name, Role, Target};
use schedule::{ScanLoops, scan_loops};

use super::{Draft, Request, counted, free, scan_columns, scan_rows};

/// What the rule is called.
pub(super) const RULE: &str = "scan";

/// The elements of a tile on a CPU: a carried sum waits for one addition where the elements would wait for as many.
const TILE: i64 = 8;

/// A scan, and what is done to single elements before and after.
pub(super) struct Scanned {
    before: Vec<Name>,
    pub(super) block: Name,
    pub(super) loops: ScanLoops,
    /// What follows, in order.
    pub(super) after: Vec<Name>,
    /// The loops of the last stage: those of the other dimensions, and that along the scan.
    pub(super) rows: Vec<Name>,
    pub(super) along: Name,
    /// What is read along the scan, as it lies in memory.
    pub(super) input: Option<Input>,
    /// The loop along which results lie beside each other in memory.
    beside: Option<Name>,
    /// How many elements a scan has, and how many scans there are.
    pub(super) length: i64,
    pub(super) count: i64,
    /// The type of the output.
    pub(super) out: DType,
}

/// An input whose last dimension is scanned.
pub(super) struct Input {
    pub(super) buffer: Name,
    pub(super) dtype: DType,
    pub(super) rank: usize,
}

/// By what the program is run on, and by the dimension that is scanned.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    let Some(found) = Scanned::of(request.func) else { return vec![] };
    match (request.target, &found.input) {
        (Target::Cpu, Some(_)) => vec![found.in_tiles(request), found.running(request)],
        (Target::Cpu, None) => vec![found.running(request)],
        (Target::Cuda(_), Some(input)) => scan_rows::drafts(request, &found, input),
        (Target::Cuda(_), None) => scan_columns::drafts(request, &found),
    }
}

impl Scanned {
    fn of(func: &Func) -> Option<Scanned> {
        let blocks = func.body.blocks();
        let at = blocks.iter().position(|it| it.iters.iter().any(|it| it.kind == IterKind::Reduce))?;
        let (block, loops) = (blocks[at], scan_loops(func, &blocks[at].name)?);
        let is_spatial =
            |it: &&Block| it.init.is_none() && it.iters.iter().all(|it| it.kind == IterKind::Spatial);
        let last = blocks.last()?;
        let writes = |it: &Block| it.writes().first().map(|it| it.buffer.clone());
        let is_chain = blocks[at..]
            .windows(2)
            .all(|it| it[1].reads().iter().any(|read| Some(&read.buffer) == writes(it[0]).as_ref()));
        let mut others = blocks[..at].iter().chain(&blocks[at + 1..]);
        if !others.all(is_spatial) || !is_chain {
            return None;
        }
        let along = block.iters.iter().filter(|it| it.kind == IterKind::Spatial);
        let axis = along.clone().position(|it| it.binding.as_var() == Some(&loops.along))?;
        let of_last = last.iters.iter().filter(|it| it.kind == IterKind::Spatial);
        let names: Vec<Name> = of_last.map(|it| it.binding.as_var().cloned()).collect::<Option<_>>()?;
        if names.len() != along.count() {
            return None;
        }
        let extent = |it: &Name| func.find_loop(it)?.extent.as_int();
        let counts = loops.others.iter().map(extent).collect::<Option<Vec<_>>>()?;
        Some(Scanned {
            before: blocks[..at].iter().map(|it| it.name.clone()).collect(),
            after: blocks[at + 1..].iter().map(|it| it.name.clone()).collect(),
            rows: names.iter().enumerate().filter(|it| it.0 != axis).map(|it| it.1.clone()).collect(),
            along: names[axis].clone(),
            input: input(func, block, &blocks[..at], &loops).filter(|_| axis + 1 == names.len()),
            beside: beside(block, last),
            length: extent(&loops.over)?,
            count: counts.iter().fold(1, |all: i64, it| all.saturating_mul(*it)),
            out: func.dtype_of(&writes(last)?)?,
            block: block.name.clone(),
            loops,
        })
    }

    /// The last stage.
    pub(super) fn into(&self) -> &Name {
        self.after.last().unwrap_or(&self.block)
    }

    /// A script that begins with what stands before the scan.
    pub(super) fn begun(&self, request: &Request<'_>, about: String, uses: &[&'static str]) -> Draft {
        let mut out = Draft::new(RULE, about, uses, request);
        for it in &self.before {
            out.step(format!("compute_inline(block: {:?})", it.as_str()));
        }
        out
    }

    /// Puts the results of the scan into the stages that follow, but for the last.
    pub(super) fn inlined(&self, out: &mut Draft) {
        for it in std::iter::once(&self.block).chain(&self.after).take(self.after.len()) {
            out.step(format!("compute_inline(block: {:?})", it.as_str()));
        }
    }

    /// The block of the sums, and what follows it, where all sums have a buffer of their own.
    pub(super) fn with_own_buffer(&self, request: &Request<'_>, out: &mut Draft) -> Vec<String> {
        let mut after: Vec<String> = self.after.iter().map(ToString::to_string).collect();
        if after.is_empty() {
            let copy = self.sums_buffer(request);
            out.step(format!(
                "cache_write(block: {:?}, scope: \"local\", name: {copy:?})",
                self.block.as_str()
            ));
            after.push(copy);
        }
        after
    }

    /// On a CPU, tile by tile.
    fn in_tiles(&self, request: &Request<'_>) -> Draft {
        let about = "Along each row in tiles, whose elements do not wait for each other.".to_owned();
        let mut out = self.begun(request, about, &["std/scan"]);
        let into = self.with_own_buffer(request, &mut out);
        let dims = self.loops.others.len();
        let rows: Vec<_> = self.loops.others.iter().map(Name::as_str).collect();
        let into: Vec<_> = into.iter().map(|it| format!("{it:?}: {dims}")).collect();
        let tile = out.knob("tile", TILE, &[4, 16]);
        out.because(
            format!("A carried sum waits for one addition, where {} would wait for as many.", counted(tile.value, "element")),
            format!(
                "scan_in_tiles(block: {:?}, buffer: {:?}, loop: {:?}, along: {:?}, rows: {rows:?}, into: {{{}}}, tile: {tile}, backward: {}, element: {}, term: {})",
                self.block.as_str(),
                self.sums_buffer(request),
                self.loops.over.as_str(),
                self.loops.along.as_str(),
                into.join(", "),
                i64::from(self.loops.is_backward),
                dims + 1,
                dims + 2,
            ),
        );
        if let Some(row) = rows.first() {
            out.because("Rows are independent of each other.", format!("parallel(loop: {row:?})"));
        }
        out
    }

    /// On a CPU, each result from the one before it, and of many scans those that lie beside each other in turn.
    fn running(&self, request: &Request<'_>) -> Draft {
        let about = "Each result from the one before it.".to_owned();
        let mut out = self.begun(request, about, &[]);
        let into = self.with_own_buffer(request, &mut out);
        let ScanLoops { over, along, others, .. } = &self.loops;
        let beside = self.beside.as_ref().unwrap_or(along);
        let outer = others.iter().filter(|it| *it != beside);
        let mut order: Vec<_> = outer.chain([along]).collect();
        order.extend((beside != along).then_some(beside));
        order.push(over);
        let own = request.func.loops_of(&self.block).into_iter().flatten();
        if !own.map(|it| &it.var).eq(order.iter().copied()) {
            let order: Vec<_> = order.into_iter().map(Name::as_str).collect();
            out.because(
                "Those that lie beside each other in memory are scanned side by side.",
                format!("reorder(order: {order:?})"),
            );
        }
        out.step(format!("rolling_scan(loop: {:?})", over.as_str()));
        for it in into {
            out.step(format!("reverse_compute_at(block: {it:?}, loop: {:?})", beside.as_str()));
        }
        out
    }

    /// The temporary of the sums, which is made by `cache_write` where the program has none.
    pub(super) fn sums_buffer(&self, request: &Request<'_>) -> String {
        if self.after.is_empty() {
            return free(request.func, &format!("{}_local", self.block)).to_string();
        }
        let block = request.func.find_block(&self.block).expect("the block is one of the program's");
        block.writes().first().expect("a scan writes its sums").buffer.to_string()
    }
}

/// The loop of a scan along which the results of the last stage lie beside each other.
fn beside(block: &Block, last: &Block) -> Option<Name> {
    let place = last.writes().first().copied()?;
    let var = place.indices.last()?.as_var()?;
    let mut dims = last.iters.iter().filter(|it| it.kind == IterKind::Spatial);
    let dim = dims.position(|it| it.var == *var)?;
    let own = block.iters.iter().filter(|it| it.kind == IterKind::Spatial).nth(dim)?;
    own.binding.as_var().cloned()
}

/// The first input of the terms whose last dimension is scanned.
fn input(func: &Func, block: &Block, before: &[&Block], loops: &ScanLoops) -> Option<Input> {
    let is_input = |it: &Name| func.buffers.get(it).is_some_and(|it| it.role == Role::Input);
    let over = block.iters.iter().find(|it| it.binding.as_var() == Some(&loops.over))?;
    let is_along = |it: &Access| it.indices.last().and_then(Index::as_var) == Some(&over.var);
    let reads = block.reads();
    let read = reads.iter().find(|it| is_along(it))?;
    let mut found = *read;
    // What is computed before is put in place, and reads at the same place.
    if !is_input(&found.buffer) {
        let maker = before.iter().find(|it| it.writes().iter().any(|it| it.buffer == found.buffer))?;
        let last = &maker.iters.last()?.var;
        let reads = maker.reads();
        found = reads
            .into_iter()
            .find(|it| is_input(&it.buffer) && it.indices.last().and_then(Index::as_var) == Some(last))?;
    }
    Some(Input {
        buffer: found.buffer.clone(),
        dtype: func.dtype_of(&found.buffer)?,
        rank: found.indices.len(),
    })
}
