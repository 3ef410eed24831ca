//! What a rewrite left alone, so that it need not be checked again.

use std::sync::Arc;

use crate::{Block, Buffer, Func, Loop, Name, Stmt};

/// For each block of `after`, in program order, whether it is what it was in `before`: the same object, under loops of
/// the same names and extents, over the same dimensions and the same buffers.
///
/// The kinds and annotations of loops may differ, and so may what else is under the loops.
pub fn unchanged_blocks(before: &Func, after: &Func) -> Vec<bool> {
    let (mut old, mut new) = (Nests::new(), Nests::new());
    old.collect(&before.body, None);
    new.collect(&after.body, None);
    if before.dims != after.dims {
        return vec![false; new.blocks.len()];
    }
    let is_changed = |at: usize, name: &Name, buffer: &Buffer| {
        let was = before.buffers.get_index(at).filter(|it| it.0 == name).map(|it| it.1);
        was.or_else(|| before.buffers.get(name)) != Some(buffer)
    };
    let changed: Vec<&Name> = after
        .buffers
        .iter()
        .enumerate()
        .filter_map(|(at, (name, buffer))| is_changed(at, name, buffer).then_some(name))
        .collect();
    // Blocks mostly stay where they were, one after the other.
    let mut next = 0;
    let mut kept = Vec::with_capacity(new.blocks.len());
    for (block, path) in &new.blocks {
        let places = (next..old.blocks.len()).chain(0..next);
        let was = places.into_iter().find(|at| Arc::ptr_eq(old.blocks[*at].0, block));
        next = was.map_or(next, |at| at + 1);
        let is_alike = |at: usize| are_alike((&old, old.blocks[at].1), (&new, *path));
        kept.push(was.is_some_and(is_alike) && !accesses_any(block, &changed));
    }
    kept
}

/// The blocks of a program and the loops around them.
struct Nests<'a> {
    /// Each block with the number of the innermost loop around it.
    blocks: Vec<(&'a Arc<Block>, Option<usize>)>,
    /// Each loop with the number of the next one around it.
    loops: Vec<(&'a Arc<Loop>, Option<usize>)>,
}

impl<'a> Nests<'a> {
    fn new() -> Nests<'a> {
        Nests { blocks: Vec::with_capacity(16), loops: Vec::with_capacity(40) }
    }

    fn collect(&mut self, stmt: &'a Stmt, around: Option<usize>) {
        match stmt {
            Stmt::Loop(it) => {
                let here = self.loops.len();
                self.loops.push((it, around));
                self.collect(&it.body, Some(here));
            }
            Stmt::Block(it) => self.blocks.push((it, around)),
            Stmt::Seq(stmts) => stmts.iter().for_each(|it| self.collect(it, around)),
            Stmt::Store(_) | Stmt::Instr(_) => {}
        }
    }
}

/// Whether loops, from these to the outermost, have the same names and extents.
fn are_alike(mut a: (&Nests<'_>, Option<usize>), mut b: (&Nests<'_>, Option<usize>)) -> bool {
    while let (Some(x), Some(y)) = (a.1, b.1) {
        let ((x, x_around), (y, y_around)) = (a.0.loops[x], b.0.loops[y]);
        if !Arc::ptr_eq(x, y) && (x.var != y.var || x.extent != y.extent) {
            return false;
        }
        (a.1, b.1) = (x_around, y_around);
    }
    a.1.is_none() && b.1.is_none()
}

fn accesses_any(block: &Block, buffers: &[&Name]) -> bool {
    !buffers.is_empty() && block.any_access(&mut |it, _| buffers.contains(&&it.buffer))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::unchanged_blocks;
    use crate::{Func, Index, Loop, LoopKind, Name, Stmt};

    const TWO: &str = "
func two()
  in A: f32[8]
  out B: f32[8]
  out C: f32[8]

  for i in 0..8
    block B(v: 8 = i)
      B[v] = A[v]
  for j in 0..8
    block C(v: 8 = j)
      C[v] = A[v]
";

    fn two() -> Func {
        crate::text::parse(TWO).expect("the text above is a program")
    }

    #[test]
    fn the_same_program_is_kept() {
        assert_eq!(unchanged_blocks(&two(), &two()), [false, false], "equal is not the same object");
        let func = two();
        assert_eq!(unchanged_blocks(&func, &func.clone()), [true, true]);
    }

    #[test]
    fn a_changed_block_is_not_kept() {
        let mut func = two();
        func.replace_block(&Name::new("C"), |it| Stmt::Block(Arc::new(it)));
        assert_eq!(unchanged_blocks(&two(), &func), [false, false]);
        let before = two();
        let mut after = before.clone();
        after.replace_block(&Name::new("C"), |it| Stmt::Block(Arc::new(it)));
        assert_eq!(unchanged_blocks(&before, &after), [true, false]);
    }

    #[test]
    fn a_block_under_another_loop_is_not_kept() {
        let before = two();
        let mut after = before.clone();
        after.replace_loop(&Name::new("j"), |it| Stmt::Loop(Arc::new(Loop { extent: Index::int(9), ..it })));
        assert_eq!(unchanged_blocks(&before, &after), [true, false]);
        let mut after = before.clone();
        after.replace_loop(&Name::new("i"), |it| {
            Stmt::Loop(Arc::new(Loop { kind: LoopKind::Parallel, ..it }))
        });
        assert_eq!(unchanged_blocks(&before, &after), [true, true]);
    }

    #[test]
    fn a_block_over_another_buffer_is_not_kept() {
        let before = two();
        let mut after = before.clone();
        after.buffers[&Name::new("C")].shape = vec![Index::int(9)];
        assert_eq!(unchanged_blocks(&before, &after), [true, false]);
    }
}
