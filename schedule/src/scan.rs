//! Scans alone in their nests, which `decompose_scan` and `rolling_scan` take.

use ir::{Block, Func, Index, Iter, IterKind, Less, Loop, Name, Scan, Stmt, Value};

use crate::{BlockError, ScheduleError, ScheduleState, check::chain::expect_alone};

/// The loops of a scan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScanLoops {
    /// The loop over the terms.
    pub over: Name,
    /// The loop along the results, which is as long.
    pub along: Name,
    /// The loops of the other dimensions, in the order of the dimensions.
    pub others: Vec<Name>,
    /// Whether a result takes the terms behind it.
    pub is_backward: bool,
}

/// The loops of a block that `decompose_scan` and `rolling_scan` take.
pub fn scan_loops(func: &Func, block: &Name) -> Option<ScanLoops> {
    let reduced = func.find_block(block)?.iters.iter().find(|it| it.kind == IterKind::Reduce)?;
    let over = reduced.binding.as_var().filter(|it| func.find_loop(it).is_some())?;
    let nest = ScanNest::over(func, over).ok()?;
    Some(ScanLoops {
        over: over.clone(),
        along: ScanNest::loop_of(&nest.along).clone(),
        others: nest.others.iter().map(|it| ScanNest::loop_of(it).clone()).collect(),
        is_backward: nest.scan.is_backward,
    })
}

/// A block that is a scan, and nothing but its loops around it.
pub(crate) struct ScanNest {
    pub(crate) scan: Scan,
    pub(crate) block: Block,
    /// The loops around the block, outermost first. Each of them is an iterator's own.
    pub(crate) loops: Vec<Loop>,
    /// The iterators of the results but for `along`.
    pub(crate) others: Vec<Iter>,
    /// The iterator of the dimension that is scanned.
    pub(crate) along: Iter,
    /// The iterator of the terms.
    pub(crate) over: Iter,
}

impl ScanNest {
    /// The scan over a loop.
    pub(crate) fn of(state: &ScheduleState, target: &Name) -> Result<ScanNest, ScheduleError> {
        state.expect_plain_loop(target)?;
        ScanNest::over(&state.func, target)
    }

    /// The scan over a loop that the program has.
    fn over(func: &Func, target: &Name) -> Result<ScanNest, ScheduleError> {
        let nested = func.find_loop(target).expect("the loop is one of the program's").body.blocks();
        let Some(block) = nested.first().map(|it| Block::clone(it)) else {
            return Err(BlockError::NotAlone { block: target.clone(), loop_name: target.clone() }.into());
        };
        let loops = func.loops_of(&block.name).expect("the block is one of the program's");
        let loops: Vec<Loop> = loops.into_iter().cloned().collect();
        expect_alone(&block, &loops)?;
        let not_scan = || BlockError::NotScan { block: block.name.clone(), loop_name: target.clone() };
        let scan = Scan::of(&block).filter(|it| is_plain(func, &block, it)).ok_or_else(not_scan)?;
        let iter = |var: &Name| block.find_iter(var).expect("a scan has the iterators of its block").clone();
        let (along, over) = (iter(&scan.along), iter(&scan.over));
        if !has_own_loops(&block, &loops) || over.binding.as_var() != Some(target) {
            return Err(not_scan().into());
        }
        if !scan.has_same_terms() {
            let (block, along) = (block.name.clone(), ScanNest::loop_of(&along).clone());
            return Err(BlockError::ScanTerm { block, loop_name: target.clone(), along }.into());
        }
        let is_other = |it: &&Iter| it.var != along.var && it.var != over.var;
        let others = block.iters.iter().filter(is_other).cloned().collect();
        Ok(ScanNest { scan, block, loops, others, along, over })
    }

    /// `term` where the conditions hold, and what changes nothing elsewhere.
    pub(crate) fn chosen(&self, conds: Vec<Less>, term: Value) -> Value {
        Scan::chosen(conds, term, self.scan.identity)
    }

    /// The loop of an iterator.
    pub(crate) fn loop_of(it: &Iter) -> &Name {
        it.binding.as_var().expect("each iterator of a scan has a loop of its own")
    }

    /// The subscripts of the other dimensions.
    pub(crate) fn other_indices(&self) -> Vec<Index> {
        self.others.iter().map(|it| Index::var(&it.var)).collect()
    }

    /// The extents of the other dimensions.
    pub(crate) fn other_extents(&self) -> Vec<Index> {
        self.others.iter().map(|it| it.extent.clone()).collect()
    }
}

/// Whether a scan starts from what changes nothing, in the type of its results, and leaves no place out.
fn is_plain(func: &Func, block: &Block, scan: &Scan) -> bool {
    let place = &scan.reducer.place;
    let init = Stmt::store(place.clone(), Value::Const(scan.identity));
    func.dtype_of(&place.buffer) == Some(scan.identity.dtype)
        && block.init.as_ref() == Some(&init)
        && block.guards.is_empty()
}

/// Whether each loop is one iterator's, and each iterator a loop's.
fn has_own_loops(block: &Block, loops: &[Loop]) -> bool {
    let owns =
        |it: &Loop| block.iters.iter().filter(|iter| iter.binding.as_var() == Some(&it.var)).count() == 1;
    block.iters.len() == loops.len() && loops.iter().all(owns)
}
